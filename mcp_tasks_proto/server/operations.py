"""What is done to one task, as pure decisions on its record.

An :class:`Operation` is an intention: it survives a save conflict by deciding again on the fresh record.
It knows who waits for its outcome - a peer's exchange, a worker's report, or nobody - and it
never touches anything but its arguments.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable, Mapping
from typing import Any, Final

from attrs import evolve, frozen

from mcp_tasks_proto.errors import (
    ErrorObject,
    internal_error,
    invalid_params,
    limit_reached,
    missing_capability,
    unknown_task,
)
from mcp_tasks_proto.input_requests import check_response, missing_capabilities, unique_key
from mcp_tasks_proto.inputs import KEEP, Keep
from mcp_tasks_proto.lifecycle import IGNORE, REJECT, Goto, Trigger, transition
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.records import InputEntry, TaskRecord
from mcp_tasks_proto.wire.jsonrpc import json_size
from mcp_tasks_proto.wire.schema import create_result, task_view

__all__ = [
    "AnswerTask",
    "AskInput",
    "CancelTask",
    "Checkpoint",
    "CreateTask",
    "Decision",
    "ElapseGrace",
    "EndTask",
    "EndWork",
    "LookUp",
    "LoseWork",
    "Operation",
    "Progress",
    "ReadTask",
    "Refresh",
    "Remove",
    "WithdrawInput",
]


@frozen(kw_only=True, eq=False)
class Decision:
    """What an operation wants: first a save, if ``after`` is given, then its answer."""

    after: TaskRecord | None = None
    result: dict[str, Any] | None = None
    """For a peer: what to reply."""
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


@frozen(kw_only=True, eq=False)
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


# -- of a peer -------------------------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
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


@frozen(kw_only=True, eq=False)
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


@frozen(kw_only=True, eq=False)
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
        after = _apply(
            record,
            trigger,
            now,
            inputs=inputs,
            payload_bytes=record.payload_bytes + sum(json_size(self.responses[key]) for key in answered),
        )
        return Decision(after=after, result={})


@frozen(kw_only=True, eq=False)
class CancelTask(PeerOperation):
    """``tasks/cancel``: note the wish; the worker does the rest (CAN.6)."""

    def decide_for_owner(self, record: TaskRecord, now: int) -> Decision:
        """Note the first request; later ones change nothing."""
        if record.cancel_requested_at_ms is not None:
            return Decision(result={})
        after = _apply(record, Trigger.CANCEL_REQUESTED, now, cancel_requested_at_ms=now)
        return Decision(after=after, result={})


@frozen(kw_only=True, eq=False)
class LookUp(Operation):
    """A listen stream's first look at a task it asks for (SUB.1)."""

    principal: str | None

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Hand the record to the stream, if it is its caller's; there is no hint if it is not."""
        if record is None or record.principal != self.principal:
            return DONE
        return Decision(found=record)


@frozen(kw_only=True, eq=False)
class CreateTask(Operation):
    """A call goes on as a task (LIFE.3, LIFE.4). It is not looked up first: there is nothing yet."""

    record: TaskRecord

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Offer the new record; a task that has the id already is not touched."""
        if record is not None:
            return Decision(error=internal_error("the new task's id is in use", reason="task_id_conflict"))
        return Decision(after=self.record, result=create_result(self.record))


# -- of a worker ------------------------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class WorkerOperation(Operation):
    """A report. Of several runs of a task's work only the last one's are taken: a node that was taken for
    gone may still be there, and not know."""

    resumption: int | None = None
    """Which run of the work reports; ``None``: it is the host, whose word always counts."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Refuse what is not said by whoever runs the work now; decide on the rest."""
        if (
            record is not None
            and not record.status.terminal
            and self.resumption not in (None, record.resumptions)
        ):
            return Decision(rejection="the work of the task was taken over by another node")
        return self.decide_for_worker(record, now)

    @abstractmethod
    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """Decide on the report of whoever runs the work."""


@frozen(kw_only=True, eq=False)
class Progress(WorkerOperation):
    """The worker, or the host, changes what the view says beside the status."""

    changes: Mapping[str, Any]
    trigger: Trigger = Trigger.WORK_PROGRESSED

    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """Take the changes in, unless they are too late."""
        if record is None:
            return DONE
        changes = {name: value for name, value in self.changes.items() if value is not KEEP}
        if all(getattr(record, name) == value for name, value in changes.items()):
            return DONE
        return Decision(after=_apply(record, self.trigger, now, **changes))


@frozen(kw_only=True, eq=False)
class Checkpoint(WorkerOperation):
    """The worker saves what the next run of it would begin with."""

    value: Any
    value_bytes: int
    received: Collection[str]

    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """Replace the checkpoint; answers that it takes into account are for no other question."""
        if record is None or record.status.terminal:
            return DONE
        if record.resumption is None:
            return Decision(rejection="the tool was not declared resumable when the task was made")
        inputs = tuple(
            evolve(entry, withdrawn=True) if entry.ask in self.received and not entry.outstanding else entry
            for entry in record.inputs
        )
        after = _apply(
            record,
            Trigger.WORK_PROGRESSED,
            now,
            inputs=inputs,
            resumption=evolve(record.resumption, checkpoint=self.value),
            payload_bytes=record.payload_bytes + self.value_bytes - checkpoint_bytes(record),
        )
        return Decision(after=after)


def checkpoint_bytes(record: TaskRecord) -> int:
    """Return what the checkpoint in a record counts; having none counts nothing."""
    resumption = record.resumption
    return 0 if resumption is None or resumption.checkpoint is None else json_size(resumption.checkpoint)


@frozen(kw_only=True, eq=False)
class AskInput(WorkerOperation):
    """The worker asks for input (INP.1, INP.2)."""

    ask: str
    requests: Mapping[str, Mapping[str, Any]]
    request_bytes: int
    limits: Limits

    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """Give each request a key that is new to the task, or the one that a run before asked it under."""
        if record is None:
            return Decision(rejection="the task is gone: its time to live has passed")
        cancelled = record.cancel_requested_at_ms is not None
        trigger = Trigger.INPUT_ASKED_AFTER_CANCEL if cancelled else Trigger.INPUT_ASKED
        if transition(record.status, trigger) is REJECT:
            why = "it has ended" if record.status.terminal else "its cancellation was requested"
            return Decision(rejection=f"the task takes no more input: {why}")
        if missing := missing_capabilities(self.requests, record.client_capabilities):
            return Decision(rejection=f"the call that made the task did not declare {missing}")
        before, fresh, request_bytes = list(record.inputs), self.requests, self.request_bytes
        if record.resumptions:
            fresh = self._take_up(before)
            request_bytes = json_size(fresh)
        if not fresh:
            return Decision(after=_apply(record, Trigger.INPUT_ASKED_AGAIN, now, inputs=tuple(before)))
        if len(before) + len(fresh) > self.limits.input_keys:
            return Decision(rejection="the task has made too many input requests (Limits.input_keys)")
        used = {entry.key for entry in before}
        entries = []
        for name, request in fresh.items():
            key = unique_key(name, used)
            used.add(key)
            entries.append(InputEntry(key=key, name=name, ask=self.ask, request=request))
        after = _apply(
            record,
            trigger,
            now,
            inputs=(*before, *entries),
            payload_bytes=record.payload_bytes + request_bytes,
        )
        return Decision(after=after)

    def _take_up(self, entries: list[InputEntry]) -> Mapping[str, Mapping[str, Any]]:
        """Make what runs before asked the questions of this run; return what none of them has asked.

        The first of the same name and request is meant. One of the same name that asks for something else is
        no longer waited for: the run that asked it is gone, and this one has come to another point.
        """
        fresh: dict[str, Mapping[str, Any]] = {}
        for name, request in self.requests.items():
            same_name = [
                at
                for at, entry in enumerate(entries)
                if entry.ask is None and entry.name == name and not entry.withdrawn
            ]
            at = next((at for at in same_name if entries[at].request == request), None)
            if at is not None:
                entries[at] = evolve(entries[at], ask=self.ask)
                continue
            fresh[name] = request
            for at in same_name:
                if entries[at].outstanding:
                    entries[at] = evolve(entries[at], withdrawn=True)
        return fresh


@frozen(kw_only=True, eq=False)
class WithdrawInput(WorkerOperation):
    """The worker gives up a question of its own."""

    ask: str

    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """Supersede the keys of this question that are still outstanding."""
        if record is None:
            return DONE
        outstanding = record.outstanding
        given_up = sum(entry.ask == self.ask for entry in outstanding)
        if not given_up:
            return DONE
        all_of_them = given_up == len(outstanding)
        trigger = Trigger.INPUTS_FULLY_WITHDRAWN if all_of_them else Trigger.INPUTS_PARTLY_WITHDRAWN
        inputs = tuple(
            evolve(entry, withdrawn=True) if entry.ask == self.ask and entry.outstanding else entry
            for entry in record.inputs
        )
        return Decision(after=_apply(record, trigger, now, inputs=inputs))


@frozen(kw_only=True, eq=False)
class EndWork(WorkerOperation):
    """The worker is done: with a result, with a protocol error, or without either."""

    trigger: Trigger
    result: Mapping[str, Any] | None = None
    result_bytes: int = 0
    error: ErrorObject | None = None
    status_message: str | Keep | None = KEEP

    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """End the task, unless it has ended already."""
        if record is None:
            return DONE
        return Decision(
            after=_end(
                record,
                self.trigger,
                now,
                result=self.result,
                error=self.error,
                payload_bytes=self.result_bytes,
                status_message=record.status_message if self.status_message is KEEP else self.status_message,
            )
        )


@frozen(kw_only=True, eq=False)
class ElapseGrace(Operation):
    """A cancelled worker has had its time (CAN.6)."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """End the task as cancelled."""
        if record is None:
            return DONE
        return Decision(after=_end(record, Trigger.GRACE_ELAPSED, now, payload_bytes=0))


@frozen(kw_only=True, eq=False)
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
            after=_end(
                record,
                self.trigger,
                now,
                error=self.error,
                payload_bytes=self.error_bytes,
                status_message=self.status_message or record.status_message,
            )
        )


@frozen(kw_only=True, eq=False)
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
            return Decision(after=_end(record, Trigger.WORK_STOPPED, now, payload_bytes=0))
        resumption = record.resumption
        if self.successor is None or resumption is None or record.tool not in self.resumable:
            error = internal_error("the worker of the task was lost", reason="worker_lost")
            return self._fail(record, now, error, "The worker was lost: the server that ran it is gone.")
        if resumption.times >= self.resumptions:
            message = f"The worker was lost, and had been resumed {resumption.times} times before."
            return self._fail(record, now, limit_reached("resumptions"), message)
        after = _apply(
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
        after = _end(record, Trigger.WORK_LOST, now, error=error, payload_bytes=size, status_message=message)
        return Decision(after=after)


# -- of nobody --------------------------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class Refresh(Operation):
    """A look at a task whose work has just begun here: news of it may have come when it was of no concern."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Hand the record on, to whoever is here and should know."""
        return Decision(found=record)


@frozen(kw_only=True, eq=False)
class Remove(Operation):
    """A task that nobody may read any more goes (TTL.1). Alone among operations it sees expired records."""

    orphaned: bool = False
    """The caller went away before it got the handle: the task goes whether expired or not."""
    swept: bool = False
    """It is one of a slice; the next slice waits for it."""

    def decide(self, record: TaskRecord | None, now: int) -> Decision:
        """Remove it, unless it is gone or was given more time meanwhile."""
        return Decision(removes=record is not None and (self.orphaned or record.expired(now)))


_NONE: Final[Mapping[str, Any]] = {}
"""The capabilities of every ended task: one object for all of them."""


def _end(record: TaskRecord, trigger: Trigger, now: int, **changes: Any) -> TaskRecord | None:
    """Apply an ending: what only a live task needs is dropped with it."""
    return _apply(
        record,
        trigger,
        now,
        arguments=None,
        client_capabilities=_NONE,
        inputs=(),
        node=None,
        resumption=None,
        **changes,
    )


def _apply(record: TaskRecord, trigger: Trigger, now: int, **changes: Any) -> TaskRecord | None:
    """Return the record after ``trigger``, or ``None`` where the table has it ignored."""
    verdict = transition(record.status, trigger)
    if verdict is IGNORE:
        return None
    if isinstance(verdict, Goto):
        changes["status"] = verdict.status
    return record.changed(now, **changes)
