"""How an operation on a task travels between the engine and the store.

::

    begin ---- Load ---> _decide ---- Save ------> saved -----> conclude
                            ^                       |              |
                            '---- SaveConflict -----'       reply or report

What is promised to a peer waits for its save (raft's rule): ``conclude`` runs after ``Saved``, never before.
A worker's report needs no ``Load``: it is decided on the record as last seen here, and the save tells whether
that was still current.
:meth:`Tasks.news` is the one place where a changed record becomes known: to the listeners and to the
worker.

A peer learns at once when the store fails. A worker does not: its report waits and is tried again, since
there is nobody else who could repeat it, and a result that was earned must not be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import (
    CancelReason,
    Delete,
    DeliverInput,
    Effect,
    FindExpired,
    InputAnswer,
    Load,
    Quota,
    RequestCancel,
    Save,
)
from mcp_tasks_proto.errors import STORE_UNAVAILABLE, LocalProtocolError, internal_error, limit_reached
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    LoadFailed,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
)
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.server.operations import (
    AnswerTask,
    CreateTask,
    Decision,
    ElapseGrace,
    EndWork,
    LoseWork,
    Operation,
    Remove,
)
from mcp_tasks_proto.server.reports import check_text
from mcp_tasks_proto.server.sweeping import Sweeping
from mcp_tasks_proto.subscriptions import Streams
from mcp_tasks_proto.timers import Timers, exponential_backoff

__all__ = ["Tasks", "check_record"]

FIRST_RETRY_MS: Final = 250
LAST_RETRY_MS: Final = 30_000
"""A report that meets a failing store is tried again after the first, then ever longer, up to the last."""

ANY_NUMBER: Final = 2**62
"""More tasks than any store has, and small enough for the integers of all of them."""

STORE_DOWN: Final = "the task store did not answer"


@define(eq=False, repr=False)
class _Worker:
    """A worker that was started here and has not ended."""

    record: TaskRecord
    """Its task, as last seen while the work was this worker's; another node may have changed it since."""
    delivered: set[str] = field(factory=set)
    """Keys whose answers it has."""
    told_to_stop: bool = False


@define(eq=False, repr=False)
class _Question:
    """What the engine asked the store and has not heard back on."""

    operation: Operation
    decision: Decision | None = None
    """What to conclude once it is saved."""
    conflicts: int = 0
    failures: int = 0


@define(eq=False, repr=False, kw_only=True)
class Tasks:
    """The operations under way, the workers started here, and every deadline of an engine."""

    limits: Limits
    streams: Streams
    out: list[Effect]
    """Where effects go, in order."""
    conclude: Callable[[Operation, Decision], None]
    """Called once for each operation, when its outcome may be told."""
    now: int = 0
    timers: Timers = field(init=False, factory=Timers)
    _questions: dict[Hashable, _Question] = field(init=False, factory=dict)
    _sweeping: Sweeping = field(init=False)
    _tokens: count[int] = field(init=False, factory=count)
    _workers: dict[str, _Worker] = field(init=False, factory=dict)
    _creations: int = field(init=False, default=0)
    _resumptions: int = field(init=False, default=0)
    """Workers that begin when their take-over is saved."""
    _quota: Quota = field(init=False)
    """For new tasks."""
    _answer_quota: Quota = field(init=False)
    """For answers: what peers may pile up in the tasks there are."""

    def __attrs_post_init__(self) -> None:
        limits = self.limits
        self._quota = Quota(
            tasks=limits.tasks,
            tasks_per_principal=limits.tasks_per_principal,
            task_bytes=limits.task_bytes,
        )
        self._answer_quota = Quota(
            tasks=ANY_NUMBER, tasks_per_principal=ANY_NUMBER, task_bytes=limits.task_bytes
        )
        # Records may have expired before this engine was made: look once, as soon as there is a time.
        self._sweeping = Sweeping(self.timers)
        self._sweeping.plan(0)

    # -- the stations ------------------------------------------------------------------------------

    def begin(self, operation: Operation) -> None:
        """Start an operation; its outcome comes through ``conclude``."""
        if isinstance(operation, CreateTask):
            self._creations += 1
            self._decide(_Question(operation), None)
        else:
            self._look_up(_Question(operation))

    def report(self, operation: Operation) -> None:
        """Start what a worker, or the host, reports of a task.

        The record that is known of a worker's task spares the look-up where a save comes of it, since only a
        save proves that it is current.
        """
        worker = self._workers.get(operation.task_id)
        if (
            worker is not None
            and isinstance(operation, EndWork)
            and operation.resumption == worker.record.resumptions
        ):
            del self._workers[operation.task_id]  # there is nobody left to tell anything
        question = _Question(operation)
        if worker is not None and not worker.record.expired(self.now):
            decision = operation.decide(worker.record, self.now)
            if decision.after is not None:
                self._save(question, worker.record, decision, decision.after)
                return
        self._look_up(question)

    def loaded(self, loaded: Loaded) -> None:
        """The store answered a ``Load``."""
        question = self._loading(loaded.token)
        if loaded.record is not None:
            check_record(loaded.record)
        self._decide(question, loaded.record)
        del self._questions[loaded.token]

    def saved(self, saved: Saved) -> None:
        """The store carried out a ``Save`` or ``Delete``."""
        question, decision = self._written(saved.token)
        if decision.after is None:
            self.removed(question.operation.task_id)
        else:
            self._sweeping.plan(decision.after.expires_at_ms)
            self.news(decision.after)
        self._conclude(question.operation, decision)

    def conflicted(self, conflict: SaveConflict) -> None:
        """Somebody else saved first: decide again, on what is current now."""
        if conflict.current is not None:
            check_record(conflict.current)
        question, _ = self._written(conflict.token)
        question.conflicts += 1
        if question.conflicts < self.limits.save_attempts:
            self._decide(question, conflict.current)
        else:
            self._failed(question, "too many changes at the same time")

    def load_failed(self, failed: LoadFailed) -> None:
        """The store could not answer a ``Load`` or ``FindExpired``."""
        if self._sweeping.looks(failed.token):
            self._sweeping.failed(self.now + LAST_RETRY_MS)
        else:
            question = self._loading(failed.token)
            del self._questions[failed.token]
            self._failed(question, STORE_DOWN)

    def save_failed(self, failed: SaveFailed) -> None:
        """The store could not carry out a ``Save`` or ``Delete``."""
        question, _ = self._written(failed.token)
        self._failed(question, STORE_DOWN)

    def refused(self, refused: SaveRefused) -> None:
        """The store is full (TTL.2)."""
        check_text("limit", refused.limit)
        question = self._questions.get(refused.token)
        if (
            question is None
            or question.decision is None
            or not isinstance(question.operation, (CreateTask, AnswerTask))
        ):
            raise LocalProtocolError("its token is that of an outstanding Save with a quota")
        del self._questions[refused.token]
        self._conclude(question.operation, Decision(error=limit_reached(refused.limit)))

    def _look_up(self, question: _Question) -> None:
        self.out.append(Load(question.operation.task_id, self._ask(question, None)))

    def _decide(self, question: _Question, record: TaskRecord | None) -> None:
        operation = question.operation
        if record is not None:
            self._current_worker(record)
        elif not isinstance(operation, CreateTask):
            # Removed elsewhere, maybe without a word: a worker that is left here must hear of it (TTL.1).
            self.removed(operation.task_id)
        if record is not None and not isinstance(operation, Remove) and record.expired(self.now):
            self._decide(_Question(Remove(task_id=record.task_id)), record)
            record = None
        decision = operation.decide(record, self.now)
        if decision.rejection is not None and record is not None:
            # It may be due to what was done at another node: a worker that hears of that first stops, where
            # one that is merely rejected would err (CAN.6).
            self.news(record)
        if decision.resumes:
            if self.workers >= self.limits.workers:
                return  # somebody else may have room, and the host tells it again
            self._resumptions += 1
        if decision.removes and record is not None:
            token = self._ask(question, decision)
            self.out.append(Delete(record.task_id, record.version, token))
        elif decision.after is not None:
            self._save(question, record, decision, decision.after)
        else:
            self._conclude(operation, decision)

    def _conclude(self, operation: Operation, decision: Decision) -> None:
        if isinstance(operation, CreateTask):
            self._creations -= 1
        elif isinstance(operation, Remove) and operation.swept:
            self._sweeping.removed()
        self.conclude(operation, decision)

    def _failed(self, question: _Question, detail: str) -> None:
        operation = question.operation
        if operation.exchange is not None:
            self._conclude(operation, Decision(error=internal_error(detail, reason=STORE_UNAVAILABLE)))
        elif isinstance(operation, Remove) and not operation.orphaned:
            # The next sweep finds it again; were it kept here, each access would add another one.
            self._sweeping.pause(self.now + LAST_RETRY_MS)
            if operation.swept:
                self._sweeping.removed()
        elif not isinstance(operation, LoseWork):  # which the host tells again
            question.failures += 1
            wait_ms = exponential_backoff(question.failures, FIRST_RETRY_MS, LAST_RETRY_MS)
            self.timers.set(question, self.now + wait_ms)

    def _save(
        self, question: _Question, before: TaskRecord | None, decision: Decision, after: TaskRecord
    ) -> None:
        token = self._ask(question, decision)
        if before is None:
            self.out.append(Save(after, None, token, self._quota))
        else:
            quota = self._answer_quota if isinstance(question.operation, AnswerTask) else None
            self.out.append(Save(after, before.version, token, quota))

    def _ask(self, question: _Question, decision: Decision | None) -> int:
        question.decision = decision
        token = next(self._tokens)
        self._questions[token] = question
        return token

    def _loading(self, token: Hashable) -> _Question:
        question = self._questions.get(token)
        if question is None or question.decision is not None:
            raise LocalProtocolError("its token is that of an outstanding Load")
        return question

    def _written(self, token: Hashable) -> tuple[_Question, Decision]:
        question = self._questions.get(token)
        if question is None or question.decision is None:
            raise LocalProtocolError("its token is that of an outstanding Save or Delete")
        del self._questions[token]
        self._resumptions -= question.decision.resumes
        return question, question.decision

    # -- workers and listeners -----------------------------------------------------------------------

    @property
    def workers(self) -> int:
        """How many workers run here, or will once their task is durable."""
        return len(self._workers) + self._creations + self._resumptions

    def concern(self, task_id: str) -> bool:
        """Whether a worker or a listener is here who should know how this task stands."""
        return task_id in self._workers or self.streams.listened_to(task_id)

    def work_started(self, record: TaskRecord) -> bool:
        """This run of the task's work is being started here; return whether it still is to be.

        The store may have answered so late that a later run was started here meanwhile.
        """
        worker = self._workers.get(record.task_id)
        if worker is not None and worker.record.resumptions > record.resumptions:
            return False
        self._workers[record.task_id] = _Worker(record)
        return True

    def news(self, record: TaskRecord) -> None:
        """A record has changed, here or on another node: tell whom it concerns."""
        self.out.extend(self.streams.offer(record))
        worker = self._current_worker(record)
        if record.status.terminal:
            self.timers.clear(record.task_id)
            if worker is not None:
                self._dismiss(record.task_id, CancelReason.ENDED)
            return
        if record.cancel_requested_at_ms is not None:
            grace_ends_ms = record.cancel_requested_at_ms + self.limits.cancel_grace_ms
            self.timers.set(record.task_id, grace_ends_ms)
        if worker is not None and record.version >= worker.record.version:  # news may be overtaken
            worker.record = record
            self._inform(worker, record)

    def removed(self, task_id: str) -> None:
        """A record is gone, here or on another node: its worker stops, its listeners hear no more."""
        self.streams.removed(task_id)
        self.timers.clear(task_id)
        if task_id in self._workers:
            self._dismiss(task_id, CancelReason.EXPIRED)

    def _inform(self, worker: _Worker, record: TaskRecord) -> None:
        """Hand over the answers it has not had, and the wish to cancel; each once (UPD.5, CAN.6)."""
        answers = tuple(
            InputAnswer(entry.key, entry.ask, entry.name, entry.response)
            for entry in record.inputs
            if entry.response is not None and entry.ask is not None and entry.key not in worker.delivered
        )
        if answers:
            worker.delivered.update(answer.key for answer in answers)
            self.out.append(DeliverInput(record.task_id, answers))
        if record.cancel_requested_at_ms is not None and not worker.told_to_stop:
            worker.told_to_stop = True
            self.out.append(RequestCancel(record.task_id, CancelReason.REQUESTED))

    def _current_worker(self, record: TaskRecord) -> _Worker | None:
        """Return the worker that is here; one whose work another node does now, for this one was taken for
        gone, stops."""
        worker = self._workers.get(record.task_id)
        if worker is not None and worker.record.resumptions < record.resumptions:
            self._dismiss(record.task_id, CancelReason.TAKEN_OVER)
            return None
        return worker

    def _dismiss(self, task_id: str, reason: CancelReason) -> None:
        if not self._workers.pop(task_id).told_to_stop:
            self.out.append(RequestCancel(task_id, reason))

    # -- time ------------------------------------------------------------------------------------------

    def time_passed(self) -> None:
        """Do what is due."""
        for key in self.timers.due(self.now):
            match key:
                case _Question():
                    self._look_up(key)
                case str() as task_id:
                    self.begin(ElapseGrace(task_id=task_id))
                case _:
                    token = next(self._tokens)
                    self._sweeping.begin(token)
                    self.out.append(FindExpired(self.now, self.limits.sweep_batch, token))

    def expired_found(self, found: ExpiredFound) -> None:
        """Remove one slice of expired records; the next is looked for when these are gone (TTL.2)."""
        if not self._sweeping.looks(found.token):
            raise LocalProtocolError("its token is that of an outstanding FindExpired")
        for record in found.records:
            check_record(record)
        expiry_ms = found.next_expiry_ms
        self._sweeping.found(len(found.records), None if expiry_ms is None else max(expiry_ms, self.now + 1))
        for record in found.records:
            self._decide(_Question(Remove(task_id=record.task_id, swept=True)), record)


def check_record(record: Any) -> None:
    """Refuse, as :class:`LocalProtocolError`, what is no record."""
    if not isinstance(record, TaskRecord):
        raise LocalProtocolError("a record is a TaskRecord")
