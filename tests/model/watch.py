"""What an engine of a server or a proxy is held to, at each of its steps.

The world around it hides some faults: a second reply finds nobody any more, and a deadline that has passed
comes a moment later. So each step is looked at here, before anything of it is carried out. A step that breaks
a rule raises ``AssertionError``, which names it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from attrs import define, field

from mcp_tasks_proto import (
    Delete,
    ExchangeClosed,
    ExpiredFound,
    FindExpired,
    Input,
    LegacyInput,
    Load,
    Loaded,
    LoadFailed,
    MessageReceived,
    OpenStream,
    Reply,
    ResumeWork,
    Save,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    Send,
    SessionEnded,
    StartWork,
    Status,
    Step,
    StopCall,
    StreamRequested,
    TimePassed,
    WorkCompleted,
    WorkFailed,
    WorkStopped,
)
from mcp_tasks_proto.proxy import (
    DrawRandom,
    LoadTask,
    RandomDrawn,
    SaveBinding,
    SaveSnapshot,
    SnapshotKept,
    TaskLoaded,
)
from mcp_tasks_proto.records import TaskRecord

__all__ = ["Watch", "Watches"]


@define(eq=False)
class Watch:
    """One engine, and what is under way at it."""

    owed: set[Hashable] = field(init=False, factory=set)
    """Exchanges on which something came that has no reply yet; whoever sent it is still there."""
    asked: set[Hashable] = field(init=False, factory=set)
    """Tokens of what it has asked of its host, and has had no answer to."""
    workers: dict[str, int] = field(init=False, factory=dict)
    """Which run of each task was begun here last; it has not said that it has ended."""
    troubles: int = field(init=False, default=0)
    """How often the store did not do what it was asked."""
    _now: int = field(init=False, default=0)

    def look(self, fact: Any, effects: Sequence[Any], deadline: int | None, now: int) -> None:
        """Look at a step: at what the engine was told, and at what it said to that."""
        self._now = max(self._now, now)  # as the engine has it
        self._take(fact)
        for effect in effects:
            self._see(effect)
        if isinstance(fact, TimePassed):
            ahead = deadline is None or deadline > self._now
            assert ahead, f"a deadline that has passed: {deadline} at {self._now}"
        elif isinstance(fact, Loaded) and fact.record is not None:
            _check_views(fact.record, effects)

    def _take(self, fact: Any) -> None:
        match fact:
            case (
                MessageReceived(exchange=exchange)
                | StreamRequested(exchange=exchange)
                | SessionEnded(exchange=exchange)
            ):
                self.owed.add(exchange)
            case ExchangeClosed(exchange=exchange):
                self.owed.discard(exchange)
            case (
                Loaded(token=token)
                | LoadFailed(token=token)
                | Saved(token=token)
                | SaveConflict(token=token)
                | SaveFailed(token=token)
                | SaveRefused(token=token)
                | ExpiredFound(token=token)
                | TaskLoaded(token=token)
                | RandomDrawn(token=token)
                | SnapshotKept(token=token)
            ):
                self.asked.remove(token)
                self.troubles += isinstance(fact, LoadFailed | SaveFailed | SaveConflict)
            case (
                WorkCompleted(task_id=task_id, resumption=run)
                | WorkFailed(task_id=task_id, resumption=run)
                | WorkStopped(task_id=task_id, resumption=run)
            ) if self.workers.get(task_id) == run:
                del self.workers[task_id]

    def _see(self, effect: Any) -> None:
        match effect:
            case Reply(exchange=exchange):
                assert exchange in self.owed, f"one reply to each request, while somebody waits: {effect}"
                self.owed.remove(exchange)
            case Send(exchange=exchange) | OpenStream(exchange=exchange):
                assert exchange in self.owed, f"nothing is said after the reply: {effect}"
            case StopCall(exchange=exchange):  # of one that is cancelled there is no reply
                self.owed.discard(exchange)
            case (
                Load(token=token)
                | Save(token=token)
                | Delete(token=token)
                | FindExpired(token=token)
                | LoadTask(token=token)
                | SaveBinding(token=token)
                | SaveSnapshot(token=token)
                | DrawRandom(token=token)
            ):
                assert token not in self.asked, f"no two questions under one token: {effect}"
                self.asked.add(token)
            case StartWork(task_id=task_id):
                assert task_id not in self.workers, f"two workers of one task: {effect}"
                self.workers[task_id] = 0
            case ResumeWork(task_id=task_id, resumption=run):
                assert run > self.workers.get(task_id, 0), f"two workers of one task: {effect}"
                self.workers[task_id] = run


@define(eq=False)
class Watches:
    """Those of all processes of a network."""

    by_node: dict[str, Watch] = field(init=False, factory=dict)

    def look(self, node: str, fact: Input | LegacyInput, step: Step, now: int) -> None:
        """Look at a step, for ``Network.seen``."""
        self.by_node.setdefault(node, Watch()).look(fact, step.effects, step.deadline, now)


def _check_views(record: TaskRecord, effects: Sequence[Any]) -> None:
    """INP.1, GET.1: who reads a task sees all of what it asks in its record, and nothing else."""
    waits = record.status is Status.INPUT_REQUIRED
    outstanding = {entry.key for entry in record.outstanding} if waits else set()
    for effect in effects:
        match effect:
            case Reply(message={"result": {"resultType": "complete", "status": status} as view}):
                assert status == record.status.value, f"GET.1: {status} for {record.status}"
                asked = view.get("inputRequests", {}).keys()
                assert asked == outstanding, f"INP.1: {asked} for {outstanding}"
