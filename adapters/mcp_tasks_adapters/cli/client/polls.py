"""How the polls of tasks fare, as the wire tells: a task that is not heard of says nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from mcp_tasks_adapters.client import TraceEntry

__all__ = ["PollTroubles"]


@define(eq=False)
class PollTroubles:
    """Calls ``tell`` with a task's id, and what was wrong with its newest poll; an empty text: nothing."""

    _tell: Callable[[str, str], None]
    _polls: dict[int, str] = field(init=False, factory=dict)

    def take(self, entry: TraceEntry) -> None:
        """Take in one thing that happened on the wire."""
        if entry.event == "sent":
            if entry.message is not None and entry.message.get("method") == "tasks/get":
                self._polls[entry.request] = entry.message["params"]["taskId"]
        elif (task_id := self._polls.pop(entry.request, None)) is not None:
            self._tell(task_id, _trouble(entry))


def _trouble(entry: TraceEntry) -> str:
    if entry.reason is not None:
        return entry.reason
    error: Any = entry.message.get("error") if isinstance(entry.message, dict) else None
    if isinstance(error, dict):
        return str(error.get("message"))
    if entry.http_status is not None and not 200 <= entry.http_status < 300:
        return f"HTTP {entry.http_status}"
    return ""
