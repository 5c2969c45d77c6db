"""Which tools of a legacy server are called as tasks: those that it says it can run so (LEG.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.reading import task_support

__all__ = ["TaskTools"]

Known = Callable[[bool], None]


@define(eq=False, repr=False)
class TaskTools:
    """What the server has listed, by whomever it was asked. It is read once for all who have to know."""

    channel: Channel
    _support: dict[str, bool] = field(init=False, factory=dict)
    _complete: bool = field(init=False, default=False)
    _waiting: dict[int, tuple[str, Known]] = field(init=False, factory=dict)
    """Who has to know, by the engine's request, and of which tool."""
    _reading: bool = field(init=False, default=False)

    def find_out(self, inner: int, tool: str, known: Known) -> None:
        """Say whether a tool is to be called as a task, as soon as that is known."""
        session = self.channel.session
        if session is None or not session.offers("tasks", "requests", "tools", "call"):
            known(False)
        elif tool in self._support or self._complete:
            known(self._support.get(tool, False))
        else:
            self._waiting[inner] = (tool, known)
            if not self._reading:
                self._reading = True
                self._read(None, 0)

    def stop(self, inner: int) -> None:
        """Nobody has to know any more."""
        self._waiting.pop(inner, None)

    def take_in(self, result: Mapping[str, Any]) -> None:
        """Take in a page that was listed."""
        self._support.update(task_support(result))
        self._complete = not isinstance(result.get("nextCursor"), str)

    def forget(self) -> None:
        """The server has other tools now."""
        self._support.clear()
        self._complete = False

    def _read(self, cursor: str | None, pages: int) -> None:
        params = {} if cursor is None else {"cursor": cursor}
        name = self.channel.ask(None, "tools/list", params, partial(self._listed, pages + 1))
        self.channel.time_out(name)

    def _listed(self, pages: int, answer: Answer) -> None:
        """A list that cannot be had, or has no end, leaves calls plain."""
        result = None if answer.response is None else answer.response.result
        if result is not None:
            self.take_in(result)
            if not self._complete and pages < self.channel.settings.limits.tool_pages:
                self._read(result["nextCursor"], pages)
                return
        self._reading = False
        waiting, self._waiting = self._waiting, {}
        for tool, known in waiting.values():
            known(self._support.get(tool, False))
