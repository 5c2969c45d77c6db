"""Results of tools against the ``outputSchema`` that their server declared (REQ.8)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_adapters.toolkit.schemas import Schema

__all__ = ["OutputSchemas"]

KEPT: Final = 256
"""Schemas kept ready for use."""

_log = logging.getLogger("mcp_tasks_adapters")


@define(eq=False)
class OutputSchemas:
    """The output schemas of one server's tools.

    A schema that is no valid one, or leads to something outside of it, checks nothing: the server is at fault
    there, but the result is not. Nothing is ever fetched. A schema that would keep this process busy checks
    nothing either, and regular expressions are never run: a server can make one that takes for ever.
    """

    _ready: dict[str, tuple[Any, Schema | None]] = field(init=False, factory=dict)

    def problem(self, tool: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
        """Say how a final result differs from what its tool's definition promises; ``None``: it does not.

        A tool's own error owes nothing.
        """
        definition = tool.get("outputSchema")
        if not isinstance(definition, Mapping) or result.get("isError") is True:
            return None
        if "structuredContent" not in result:
            return "structuredContent is missing, and the tool has an outputSchema"
        schema = self._schema(tool["name"], definition)
        try:
            return (
                None if schema is None else schema.problem(result["structuredContent"], "structuredContent")
            )
        except Exception as error:
            # A reference that leads in circles, a pattern that is none in Python: anything may be raised.
            _log.warning("the outputSchema of %r cannot be used (%s)", tool["name"], type(error).__name__)
            return None

    def _schema(self, name: str, definition: Mapping[str, Any]) -> Schema | None:
        known, schema = self._ready.get(name, (None, None))
        if known is not definition:
            if len(self._ready) >= KEPT:
                del self._ready[next(iter(self._ready))]
            schema = _read(name, definition)
            self._ready[name] = (definition, schema)
        return schema


def _read(name: str, definition: Mapping[str, Any]) -> Schema | None:
    try:
        return Schema(definition, owner=f"tool {name!r}, outputSchema", of_peer=True)
    except Exception as error:
        _log.warning("the outputSchema of %r cannot be used (%s)", name, type(error).__name__)
        return None
