"""What every host relies on, of an engine of a server or a proxy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from attrs import define, field

from mcp_tasks_proto.effects import (
    AcceptReport,
    DeliverInput,
    OpenStream,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Send,
    StartWork,
    Step,
    StopCall,
    StoreEffect,
)
from mcp_tasks_proto.inputs import (
    ExchangeClosed,
    ExpiredFound,
    Loaded,
    LoadFailed,
    MessageReceived,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    SessionEnded,
    StreamRequested,
    TasksListed,
    TimePassed,
    WorkCompleted,
    WorkFailed,
    WorkInput,
    WorkStopped,
)
from mcp_tasks_proto.legacy.proxy import DualEraProxyStep, HandlesListed, ListHandles
from mcp_tasks_proto.proxy import (
    DrawRandom,
    LoadTask,
    ProxyStep,
    RandomDrawn,
    SaveBinding,
    SaveSnapshot,
    SnapshotKept,
    TaskLoaded,
)

__all__ = ["Promises"]

Question = StoreEffect | LoadTask | SaveBinding | SaveSnapshot | DrawRandom | ListHandles
"""What an engine asks of its host, under a token."""
Answer = (
    Loaded | LoadFailed | Saved | SaveConflict | SaveFailed | SaveRefused | ExpiredFound | TasksListed
) | (TaskLoaded | SnapshotKept | RandomDrawn | HandlesListed)
"""What it is told to that, under the same token."""


@define(eq=False)
class _Worker:
    run: int = 0
    delivered: set[str] = field(factory=set)
    """Keys of the answers that it has."""
    told_to_stop: bool = False


@define(eq=False)
class Promises:
    """Looks at each step of one engine, and raises ``AssertionError`` for one that breaks a promise:

    * a request has one reply, and nothing is sent on its exchange after that, nor once it is closed or
      stopped;
    * a report is accepted or rejected once;
    * no two questions wait under one token;
    * no run of a task is resumed twice; only a worker that was begun here hears anything, until it says that
      it has ended: each answer once, and once that it is to stop (UPD.5, CAN.6);
    * once time was told, the next deadline lies ahead.
    """

    owed: set[Hashable] = field(init=False, factory=set)
    """Exchanges on which something came that has no reply yet; whoever sent it is still there."""
    asked: set[Hashable] = field(init=False, factory=set)
    """Tokens of what was asked of the host, and has no answer yet."""
    reports: Counter[Hashable] = field(init=False, factory=Counter)
    """How many reports under one token have no answer."""
    workers: dict[str, _Worker] = field(init=False, factory=dict)
    """Those that were begun here last and have not ended, by task."""
    _now: int = field(init=False, default=0)

    def look(self, fact: object, step: Step | ProxyStep | DualEraProxyStep, now: int) -> None:
        """Look at what the engine was told, at what it said to that, and at when that was."""
        self._now = max(self._now, now)  # as the engine has it
        self._take(fact)
        for effect in step.effects:
            self._see(effect)
        if isinstance(fact, TimePassed):
            ahead = step.deadline is None or step.deadline > self._now
            assert ahead, f"a deadline that has passed: {step.deadline} at {self._now}"

    def _take(self, fact: object) -> None:
        """Note what the engine owes by now, or no longer."""
        match fact:
            case (
                MessageReceived(exchange=exchange)
                | StreamRequested(exchange=exchange)
                | SessionEnded(exchange=exchange)
            ):
                self.owed.add(exchange)
            case ExchangeClosed(exchange=exchange):
                self.owed.discard(exchange)
        if isinstance(fact, Answer):
            self.asked.discard(fact.token)
        elif isinstance(fact, WorkInput):
            self.reports[fact.token] += 1
            if isinstance(fact, WorkCompleted | WorkFailed | WorkStopped):
                self._end_worker(fact.task_id, fact.resumption)

    def _end_worker(self, task_id: str, run: int) -> None:
        worker = self.workers.get(task_id)
        if worker is not None and worker.run == run:
            del self.workers[task_id]

    def _see(self, effect: object) -> None:
        match effect:
            case Reply(exchange=exchange):
                _hold("one reply to each request, while somebody waits", exchange in self.owed, effect)
                self.owed.remove(exchange)
            case Send(exchange=exchange) | OpenStream(exchange=exchange):
                _hold(
                    "nothing is said after the reply, nor where nobody waits", exchange in self.owed, effect
                )
            case StopCall(exchange=exchange):  # of one that is cancelled there is no reply
                self.owed.discard(exchange)
            case AcceptReport(token=token) | RejectReport(token=token):
                _hold("one answer to each report", self.reports[token] > 0, effect)
                self.reports[token] -= 1
            case StartWork(task_id=task_id):  # a new task may have the id of one that is gone
                self.workers[task_id] = _Worker()
            case ResumeWork(task_id=task_id, resumption=run):
                worker = self.workers.get(task_id)
                _hold("no two workers of one task", worker is None or run > worker.run, effect)
                self.workers[task_id] = _Worker(run)
            case DeliverInput(task_id=task_id, answers=answers):
                worker = self._worker(task_id, effect)
                for answer in answers:
                    _hold("each answer is delivered once", answer.key not in worker.delivered, effect)
                    worker.delivered.add(answer.key)
            case RequestCancel(task_id=task_id):
                worker = self._worker(task_id, effect)
                _hold("a worker is told to stop once", not worker.told_to_stop, effect)
                worker.told_to_stop = True
        if isinstance(effect, Question):
            _hold("no two questions under one token", effect.token not in self.asked, effect)
            self.asked.add(effect.token)

    def _worker(self, task_id: str, effect: object) -> _Worker:
        _hold("only a worker that was begun, and goes on, hears anything", task_id in self.workers, effect)
        return self.workers[task_id]


def _hold(promise: str, kept: bool, effect: object) -> None:
    assert kept, f"broken: {promise}: {effect}"
