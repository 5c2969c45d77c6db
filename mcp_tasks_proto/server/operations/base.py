"""What an operation is, and the two ways in which it changes a record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, Final

from attrs import define

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.lifecycle import IGNORE, Goto, Trigger, transition
from mcp_tasks_proto.records import TaskRecord

__all__ = ["DONE", "Decision", "Operation", "applied", "ended"]


# Nothing here is changed once it is made. It is not frozen for that: to make a frozen one takes several times
# as long, and every request makes some.


@define(kw_only=True, eq=False)
class Decision:
    """What an operation wants: first a save, if ``after`` is given, then its answer."""

    after: TaskRecord | None = None
    result: dict[str, Any] | None = None
    """For a peer: what to reply; ``None``: that it is done."""
    error: ErrorObject | None = None
    """For a peer: what to reply instead."""
    rejection: str | None = None
    """For a worker: why its report is not taken; ``None``: it is."""
    found: TaskRecord | None = None
    """For a listen stream: the record, if it may see it. For :class:`Refresh`: the record."""
    removes: bool = False
    """Whether the record is to be removed instead of saved."""
    resumes: bool = False
    """Whether the work begins anew here once ``after`` is saved."""


DONE = Decision()


@define(kw_only=True, eq=False)
class Operation:
    """One intention about one task."""

    task_id: str
    exchange: Hashable = None
    """The exchange that awaits the outcome, if one does."""
    report: Hashable = None
    """The token of the worker's report that awaits it, if one does."""

    @abstractmethod
    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Decide on the current record; ``None``: there is none, or it has expired."""


_OF_LIVE_TASKS: Final[Mapping[str, Any]] = {
    "arguments": None,
    "client_capabilities": {},
    "inputs": (),
    "node": None,
    "resumption": None,
}
"""What an ended task has in place of what only a live one needs: one object each for all of them."""


def ended(record: TaskRecord, trigger: Trigger, now: int, **changes: Any) -> TaskRecord | None:
    """Apply an ending: what only a live task needs is dropped with it."""
    return applied(record, trigger, now, **_OF_LIVE_TASKS, **changes)


def applied(record: TaskRecord, trigger: Trigger, now: int, **changes: Any) -> TaskRecord | None:
    """Return the record after ``trigger``, or ``None`` where the table has it ignored."""
    verdict = transition(record.status, trigger)
    if verdict is IGNORE:
        return None
    if isinstance(verdict, Goto):
        # First, for whoever looks whether the view changes: it says so by itself.
        return record.changed(now, status=verdict.status, **changes)
    return record.changed(now, **changes)
