"""What a requester knows of a server's tools: which arguments are mirrored into headers (HTTP.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from mcp_tasks_proto.wire.http import HeaderParameter, header_parameters

__all__ = ["ToolList"]


@frozen
class _ListedTool:
    definition: Mapping[str, Any]
    parameters: tuple[HeaderParameter, ...] = ()
    fault: str | None = None


@define(eq=False, repr=False)
class ToolList:
    """The tools that a server listed, over all pages that were read, by whomever."""

    _most_pages: int
    complete: bool = field(init=False, default=False)
    """Whether it was read to its end."""
    _pages: int = field(init=False, default=0)
    _tools: dict[str, _ListedTool] = field(init=False, factory=dict)

    def add_page(self, result: Mapping[str, Any], *, first: bool) -> str | None:
        """Take in one page; the first one replaces all that was known.

        Returns the cursor of the next page, if there is one and it may be read.
        """
        if first:
            self._pages, self._tools = 0, {}
        cursor = result.get("nextCursor")
        if self._pages < self._most_pages:
            self._pages += 1
            self._tools.update({tool.definition["name"]: tool for tool in _read_page(result)})
        self.complete = not isinstance(cursor, str) or self._pages >= self._most_pages
        return None if self.complete else cursor

    def knows(self, name: str) -> bool:
        """Whether it is known which arguments of this tool are mirrored, be it that there is no such tool."""
        return self.complete or name in self._tools

    def definition(self, name: str) -> Mapping[str, Any] | None:
        """Return what was listed of a tool."""
        tool = self._tools.get(name)
        return None if tool is None else tool.definition

    def parameters(self, name: str) -> tuple[HeaderParameter, ...]:
        """Return the arguments of a tool that are mirrored."""
        tool = self._tools.get(name)
        return () if tool is None else tool.parameters

    def fault(self, name: str) -> str | None:
        """Return what is wrong with a tool's annotations, if anything is."""
        tool = self._tools.get(name)
        return None if tool is None else tool.fault


def usable_tools(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a page of ``tools/list`` without the tools that are wrongly annotated: they must not be used."""
    if not isinstance(result.get("tools"), list):
        return result
    return {**result, "tools": [tool.definition for tool in _read_page(result) if tool.fault is None]}


def _read_page(result: Mapping[str, Any]) -> list[_ListedTool]:
    """Return the entries of a page that can be tools at all."""
    entries = result.get("tools")
    read = []
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        try:
            read.append(_ListedTool(entry, header_parameters(entry.get("inputSchema"))))
        except ValueError as error:
            read.append(_ListedTool(entry, fault=str(error)))
    return read
