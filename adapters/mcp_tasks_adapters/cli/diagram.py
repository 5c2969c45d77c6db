"""``mcp-tasks diagram``: the state machine, as the core runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcp_tasks_proto.lifecycle import render_mermaid, render_table

__all__ = ["FORMATS", "render"]

FORMATS: Final[Mapping[str, Callable[[], str]]] = {"mermaid": render_mermaid, "table": render_table}


def render(output_format: str) -> str:
    """Return the state machine in one of :data:`FORMATS`."""
    return FORMATS[output_format]()
