"""The tools that a server serves at present."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.settings import ToolDeclaration

__all__ = ["Tools"]


@define(eq=False, repr=False, init=False)
class Tools:
    """What an engine knows of its tools. They may come and go while it runs."""

    by_name: dict[str, ToolDeclaration]
    """In the order ``tools/list`` shows them."""
    resumable: frozenset[str]
    """The names of those whose work another node may take over."""

    def __init__(self, declarations: Sequence[ToolDeclaration]) -> None:
        self.change(declarations)

    def change(self, declarations: Sequence[ToolDeclaration]) -> None:
        """Serve these from now on. Raises :class:`LocalProtocolError` when two have the same name."""
        by_name = {tool.name: tool for tool in declarations}
        if len(by_name) < len(declarations):
            raise LocalProtocolError("two tools have the same name")
        self.by_name = by_name
        self.resumable = frozenset(name for name, tool in by_name.items() if tool.resumable)
