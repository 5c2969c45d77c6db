"""The receiver's side of tasks at a client: what a legacy server asks of it as a task (LEG.10).

A question with ``params.task`` is answered with a task at once, and put to a person as any other. The server
then gets that task, waits for its result, lists or cancels it, as clients do with those of a server. A task
here is the same record as a server's; it lives in memory, for as long as its time to live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import (
    ErrorObject,
    internal_error,
    invalid_params,
    limit_reached,
    unknown_task,
)
from mcp_tasks_proto.legacy.requester.reading import at
from mcp_tasks_proto.legacy.translation import legacy_task, with_related_task
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.requester.settings import RequesterLimits
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.wire.schema import task_view

__all__ = ["RECEIVER_METHODS", "Receiver"]

RECEIVER_METHODS: Final = frozenset({"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"})

Reply = Callable[[str | int, Mapping[str, Any] | ErrorObject], None]
Withdraw = Callable[[], None]


@define(eq=False, repr=False)
class _Received:
    """A task of this side."""

    record: TaskRecord
    withdraw: Withdraw
    """Takes its question off the screen."""
    waiters: list[str | int] = field(factory=list)
    """Requests for its result that wait for its end."""


@define(eq=False, repr=False, kw_only=True)
class Receiver:
    """The tasks that one server has made here."""

    limits: RequesterLimits
    timers: Timers
    reply: Reply
    """Answers a request of the server's."""
    now: int = 0
    _tasks: dict[str, _Received] = field(init=False, factory=dict)

    # -- from creation to end ------------------------------------------------------------------------------

    def refuses(self, new_id: str) -> ErrorObject | None:
        """Say why there can be no task more; ``None``: there can."""
        if len(self._tasks) >= self.limits.received_tasks or new_id in self._tasks:
            return limit_reached("received_tasks")
        return None

    def create(
        self, request_id: str | int, method: str, params: Mapping[str, Any], new_id: str, withdraw: Withdraw
    ) -> None:
        """Make a task of a question, and answer with it (LEG.3)."""
        asked = at(params, "task", "ttl")
        longest_ms = self.limits.received_ttl_ms
        ttl_ms = min(asked, longest_ms) if type(asked) is int and asked > 0 else longest_ms
        record = TaskRecord(
            task_id=new_id,
            version=1,
            principal=None,
            tool=method,
            arguments=None,
            client_capabilities={},
            status=Status.WORKING,
            created_at_ms=self.now,
            last_updated_at_ms=self.now,
            ttl_ms=ttl_ms,
            poll_interval_ms=self.limits.poll_interval_ms,
        )
        self._tasks[new_id] = _Received(record, withdraw)
        self.timers.set(("received", new_id), self.now + ttl_ms)
        self.reply(request_id, {"task": _legacy(record)})

    def answered(self, task_id: str, response: Mapping[str, Any]) -> None:
        """A person, or a program, has answered."""
        self._end(task_id, status=Status.COMPLETED, result=response)

    def failed(self, task_id: str, detail: str) -> None:
        """Nobody will answer any more."""
        self._end(task_id, status=Status.FAILED, error=internal_error(detail), status_message=detail)

    def _end(self, task_id: str, **changes: Any) -> None:
        task = self._tasks[task_id]
        task.record = task.record.changed(self.now, **changes)
        waiters, task.waiters = task.waiters, []
        for request_id in waiters:
            self.reply(request_id, _final(task.record))

    def expire(self, task_id: str) -> None:
        """Its time is over: nobody is asked any more, and the id is unknown (LEG.7)."""
        task = self._tasks.pop(task_id)
        for request_id in task.waiters:
            self.reply(request_id, unknown_task())
        if not task.record.status.terminal:
            task.withdraw()

    def forget(self) -> None:
        """The session is over, and whoever could ask for them is gone."""
        for task_id, task in list(self._tasks.items()):
            self.timers.clear(("received", task_id))
            task.waiters.clear()
            self.expire(task_id)

    # -- what the server asks of them ----------------------------------------------------------------------

    def handle(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> None:
        """Answer a request about the tasks here; ``tasks/result`` when there is one."""
        if method == "tasks/list":
            self._list(request_id, params)
            return
        task = self._tasks.get(task_id) if isinstance(task_id := params.get("taskId"), str) else None
        if task is None:
            self.reply(request_id, unknown_task())
        elif method == "tasks/get":
            self.reply(request_id, _legacy(task.record))
        elif method == "tasks/cancel":
            self._cancel(request_id, task)
        elif task.record.status.terminal:
            self.reply(request_id, _final(task.record))
        elif len(task.waiters) < self.limits.received_tasks:
            task.waiters.append(request_id)
        else:
            self.reply(request_id, limit_reached("received_tasks"))

    def _list(self, request_id: str | int, params: Mapping[str, Any]) -> None:
        """They fit on one page, so that no cursor is right."""
        if params.get("cursor") is not None:
            self.reply(request_id, invalid_params("there is no such cursor"))
        else:
            self.reply(request_id, {"tasks": [_legacy(task.record) for task in self._tasks.values()]})

    def _cancel(self, request_id: str | int, task: _Received) -> None:
        """It is cancelled before the answer says so (LEG.5)."""
        if task.record.status.terminal:
            self.reply(request_id, invalid_params("the task has ended already"))
            return
        self._end(task.record.task_id, status=Status.CANCELLED)
        self.reply(request_id, _legacy(task.record))
        task.withdraw()


def _legacy(record: TaskRecord) -> dict[str, Any]:
    """Return a task in the words of this era, without what it ended with."""
    return legacy_task(task_view(record))


def _final(record: TaskRecord) -> Mapping[str, Any] | ErrorObject:
    """Return what the question would have been answered with (LEG.4)."""
    if record.result is not None:
        return with_related_task(record.result, record.task_id)
    return record.error or invalid_params("the task was cancelled")
