"""What a requester knows of a server's tools: which arguments are mirrored into headers (HTTP.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.wire.http import HeaderParameter, header_parameters

__all__ = ["ToolList"]


@define(eq=False)
class ToolList:
    """The tools that a server listed, over all pages."""

    _most_pages: int
    known: bool = field(init=False, default=False)
    """Whether it was read to its end."""
    _pages: int = field(init=False, default=0)
    _definitions: dict[str, Mapping[str, Any]] = field(init=False, factory=dict)
    _parameters: dict[str, tuple[HeaderParameter, ...]] = field(init=False, factory=dict)
    _faults: dict[str, str] = field(init=False, factory=dict)

    def begin(self) -> None:
        """Forget everything: it is about to be listed anew."""
        self.known, self._pages = False, 0
        self._definitions, self._parameters, self._faults = {}, {}, {}

    def add_page(self, result: Mapping[str, Any]) -> str | None:
        """Take in one page; return the cursor of the next, if there is one and it may be read."""
        self._pages += 1
        for definition in _tools_of(result):
            name = definition["name"]
            self._definitions[name] = definition
            try:
                self._parameters[name] = header_parameters(definition.get("inputSchema", {}))
            except ValueError as error:
                self._faults[name] = str(error)
        cursor = result.get("nextCursor")
        return cursor if isinstance(cursor, str) and self._pages < self._most_pages else None

    def definition(self, name: str) -> Mapping[str, Any] | None:
        """Return what was listed of a tool."""
        return self._definitions.get(name)

    def parameters(self, name: str) -> tuple[HeaderParameter, ...]:
        """Return the arguments of a tool that are mirrored."""
        return self._parameters.get(name, ())

    def fault(self, name: str) -> str | None:
        """Return what is wrong with a tool's annotations, if anything is."""
        return self._faults.get(name)

    def filtered(self, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a result without the tools that a client must not use: those wrongly annotated."""
        if method != "tools/list" or not isinstance(result.get("tools"), list):
            return result
        usable = []
        for tool in _tools_of(result):
            try:
                header_parameters(tool.get("inputSchema", {}))
            except ValueError:
                continue
            usable.append(tool)
        return {**result, "tools": usable}


def _tools_of(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of a page that can be tools at all."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return []
    return [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
