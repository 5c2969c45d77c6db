"""What a worker reports of its task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from attrs import define, evolve

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.input_requests import missing_capabilities, unique_key
from mcp_tasks_proto.inputs import KEEP, Keep
from mcp_tasks_proto.lifecycle import REJECT, Trigger, transition
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.records import InputEntry, TaskRecord
from mcp_tasks_proto.server.operations.base import DONE, Decision, Operation, applied, ended
from mcp_tasks_proto.wire.jsonrpc import json_size

__all__ = ["AskInput", "Checkpoint", "EndWork", "Progress", "WithdrawInput"]


@define(kw_only=True, eq=False)
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


@define(kw_only=True, eq=False)
class Progress(WorkerOperation):
    """The worker, or the host, changes what the view says beside the status."""

    changes: Mapping[str, Any]
    trigger: Trigger = Trigger.WORK_PROGRESSED

    def decide_for_worker(self, record: TaskRecord | None, now: int) -> Decision:
        """Take the changes in, unless they are too late."""
        if record is None:
            return DONE
        if all(getattr(record, name) == value for name, value in self.changes.items()):
            return DONE
        return Decision(after=applied(record, self.trigger, now, **self.changes))


@define(kw_only=True, eq=False)
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
        after = applied(
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


@define(kw_only=True, eq=False)
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
            return Decision(after=applied(record, Trigger.INPUT_ASKED_AGAIN, now, inputs=tuple(before)))
        if len(before) + len(fresh) > self.limits.input_keys:
            return Decision(rejection="the task has made too many input requests (Limits.input_keys)")
        used = {entry.key for entry in before}
        entries = []
        for name, request in fresh.items():
            key = unique_key(name, used)
            used.add(key)
            entries.append(InputEntry(key=key, name=name, ask=self.ask, request=request))
        after = applied(
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


@define(kw_only=True, eq=False)
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
        return Decision(after=applied(record, trigger, now, inputs=inputs))


@define(kw_only=True, eq=False)
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
            after=ended(
                record,
                self.trigger,
                now,
                result=self.result,
                error=self.error,
                payload_bytes=self.result_bytes,
                status_message=record.status_message if self.status_message is KEEP else self.status_message,
            )
        )
