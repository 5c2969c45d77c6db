"""What peers do to tasks: create, read, answer and cancel them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve

from mcp_tasks_proto.errors import internal_error, invalid_params, missing_capability, unknown_task
from mcp_tasks_proto.input_requests import check_response, missing_capabilities
from mcp_tasks_proto.lifecycle import Trigger
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.server.operations.base import DONE, Decision, Operation, applied
from mcp_tasks_proto.wire.jsonrpc import json_size
from mcp_tasks_proto.wire.schema import create_result, task_view

__all__ = ["AnswerTask", "CancelTask", "CreateTask", "LookUp", "ReadTask"]


@define(kw_only=True, eq=False)
class PeerOperation(Operation):
    """An operation that only the owner may do. All others get one answer (GET.2, SEC.1)."""

    principal: str | None

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Check the owner, then decide."""
        if record is None or record.principal != self.principal:
            return Decision(error=unknown_task())
        return self.decide_for_owner(record, now)

    @abstractmethod
    def decide_for_owner(self, record: TaskRecord, now: int) -> Decision:
        """Decide on the owner's own record."""


@define(kw_only=True, eq=False)
class ReadTask(PeerOperation):
    """``tasks/get``: a pure read (GET.1)."""

    hidden_without: Mapping[str, Any] | None = None
    """Under the ``strict`` policy, what this poll declares: no other kinds of input are shown (INP.2)."""

    def decide_for_owner(self, record: TaskRecord, now: int) -> Decision:
        """Return the view."""
        if self.hidden_without is not None:
            requests = {entry.key: entry.request for entry in record.outstanding}
            if missing := missing_capabilities(requests, self.hidden_without):
                return Decision(error=missing_capability(missing))
        return Decision(result=task_view(record))


@define(kw_only=True, eq=False)
class AnswerTask(PeerOperation):
    """``tasks/update``: answers to outstanding requests, all or none of them (UPD)."""

    responses: Mapping[str, Any]

    def decide_for_owner(self, record: TaskRecord, now: int) -> Decision:
        """Take the answers to outstanding keys; the others are ignored (UPD.3)."""
        taken = () if record.cancel_requested_at_ms is not None else record.outstanding
        answered = {entry.key for entry in taken if entry.key in self.responses}
        for entry in taken:
            if entry.key in answered and (
                problem := check_response(entry.request, self.responses[entry.key])
            ):
                return Decision(error=invalid_params(f"inputResponses[{entry.key!r}]: {problem}"))
        if not answered:
            trigger = Trigger.NOTHING_ANSWERED
        elif len(answered) < len(taken):
            trigger = Trigger.INPUTS_PARTLY_ANSWERED
        else:
            trigger = Trigger.INPUTS_FULLY_ANSWERED
        inputs = tuple(
            evolve(entry, response=self.responses[entry.key]) if entry.key in answered else entry
            for entry in record.inputs
        )
        after = applied(
            record,
            trigger,
            now,
            inputs=inputs,
            payload_bytes=record.payload_bytes + sum(json_size(self.responses[key]) for key in answered),
        )
        return Decision(after=after)


@define(kw_only=True, eq=False)
class CancelTask(PeerOperation):
    """``tasks/cancel``: note the wish; the worker does the rest (CAN.6)."""

    def decide_for_owner(self, record: TaskRecord, now: int) -> Decision:
        """Note the first request; later ones change nothing."""
        if record.cancel_requested_at_ms is not None:
            return DONE
        after = applied(record, Trigger.CANCEL_REQUESTED, now, cancel_requested_at_ms=now)
        return Decision(after=after)


@define(kw_only=True, eq=False)
class LookUp(Operation):
    """A listen stream's first look at a task it asks for (SUB.1)."""

    principal: str | None

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Hand the record to the stream, if it is its caller's; there is no hint if it is not."""
        if record is None or record.principal != self.principal:
            return DONE
        return Decision(found=record)


@define(kw_only=True, eq=False)
class CreateTask(Operation):
    """A call goes on as a task (LIFE.3, LIFE.4). It is not looked up first: there is nothing yet."""

    record: TaskRecord

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Offer the new record; a task that has the id already is not touched."""
        if record is not None:
            return Decision(error=internal_error("the new task's id is in use", reason="task_id_conflict"))
        return Decision(after=self.record, result=create_result(self.record))
