"""What the server itself does to tasks: end them, take their work over, remove them."""

from __future__ import annotations

from collections.abc import Collection

from attrs import define, evolve

from mcp_tasks_proto.errors import WORKER_LOST, ErrorObject, internal_error, limit_reached
from mcp_tasks_proto.lifecycle import REJECT, Trigger, transition
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.server.operations.base import DONE, Decision, Operation, applied, ended
from mcp_tasks_proto.wire.jsonrpc import json_size

__all__ = ["ElapseGrace", "EndTask", "LoseWork", "Refresh", "Remove"]


@define(kw_only=True, eq=False)
class ElapseGrace(Operation):
    """A cancelled worker has had its time (CAN.6)."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """End the task as cancelled."""
        if record is None:
            return DONE
        return Decision(after=ended(record, Trigger.GRACE_ELAPSED, now, payload_bytes=0))


@define(kw_only=True, eq=False)
class EndTask(Operation):
    """The host ends the task, whatever its worker does (LEG.5)."""

    trigger: Trigger
    error: ErrorObject | None = None
    error_bytes: int = 0
    status_message: str | None = None

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """End the task, unless it has ended already."""
        if record is None:
            return Decision(rejection="the task is gone: its time to live has passed")
        if transition(record.status, self.trigger) is REJECT:
            return Decision(rejection=f"the task has ended: it is {record.status.value}")
        return Decision(
            after=ended(
                record,
                self.trigger,
                now,
                error=self.error,
                payload_bytes=self.error_bytes,
                status_message=self.status_message or record.status_message,
            )
        )


@define(kw_only=True, eq=False)
class LoseWork(Operation):
    """The node that ran the work is gone; nobody will report any more."""

    node: str
    successor: str | None
    """The node that takes the work over, if it may be; ``None``: this engine has no name."""
    resumable: Collection[str]
    """The tools that are declared resumable here."""
    resumptions: int
    """How often the work of one task may be taken over."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Take the work over or end the task, unless its work is not that node's any more.

        As cancelled, if that was asked for: the worker has stopped, be it for another reason (CAN.6).
        """
        if record is None or record.node != self.node:
            return DONE
        if record.cancel_requested_at_ms is not None:
            return Decision(after=ended(record, Trigger.WORK_STOPPED, now, payload_bytes=0))
        resumption = record.resumption
        if self.successor is None or resumption is None or record.tool not in self.resumable:
            error = internal_error("the worker of the task was lost", reason=WORKER_LOST)
            return self._fail(record, now, error, "The worker was lost: the server that ran it is gone.")
        if resumption.times >= self.resumptions:
            message = f"The worker was lost, and had been resumed {resumption.times} times before."
            return self._fail(record, now, limit_reached("resumptions"), message)
        after = applied(
            record,
            Trigger.WORK_RESUMED,
            now,
            node=self.successor,
            resumption=evolve(resumption, times=resumption.times + 1),
            inputs=tuple(evolve(entry, ask=None) for entry in record.inputs),
        )
        return Decision(after=after, resumes=True)

    def _fail(self, record: TaskRecord, now: int, error: ErrorObject, message: str) -> Decision:
        size = json_size(error.to_wire())
        after = ended(record, Trigger.WORK_LOST, now, error=error, payload_bytes=size, status_message=message)
        return Decision(after=after)


@define(kw_only=True, eq=False)
class Refresh(Operation):
    """A look at a task whose work has just begun here: news of it may have come when it was of no concern."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Hand the record on, to whoever is here and should know."""
        return Decision(found=record)


@define(kw_only=True, eq=False)
class Remove(Operation):
    """A task that nobody may read any more goes (TTL.1). Alone among operations it sees expired records."""

    orphaned: bool = False
    """The caller went away before it got the handle: the task goes whether expired or not."""
    swept: bool = False
    """It is one of a slice; the next slice waits for it."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Remove it, unless it is gone or was given more time meanwhile."""
        return Decision(removes=record is not None and (self.orphaned or record.expired(now)))
