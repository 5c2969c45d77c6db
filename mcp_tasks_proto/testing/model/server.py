"""The model itself: one method for each thing that can happen to a server of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from mcp_tasks_proto.testing.model.answers import (
    ACKNOWLEDGED,
    SOME_TEXT,
    TAKEN,
    UNDECLARED,
    UNKNOWN,
    ErrorAnswer,
    PeerAnswer,
    ReportAnswer,
    ResultAnswer,
)
from mcp_tasks_proto.testing.model.forms import answer_fits, may_be_asked
from mcp_tasks_proto.testing.model.tasks import ModelCaller, ModelTask, Question

__all__ = ["ServerModel"]


@define(eq=False, kw_only=True)
class ServerModel:
    """A server, as its callers and its workers see it."""

    cancel_grace_ms: int = 10_000
    input_keys: int = 256
    resumptions: int = 16
    strict: bool = False
    """Whether a poll must declare the kinds of input that it is shown (INP.2)."""
    tasks: dict[str, ModelTask] = field(factory=dict)
    changes: dict[str, int] = field(factory=dict)
    """How often the view of each task has changed: ``lastUpdatedAt`` moves exactly then (LIFE.5)."""

    def read(self, task_id: Any, now: int) -> ModelTask | None:
        """Return a task; ``None``: there is none, or none any more."""
        task = self.tasks.get(task_id) if isinstance(task_id, str) else None
        return None if task is None or task.expired(now) else task

    def _put(self, task: ModelTask, **changes: Any) -> None:
        before, after = task.view(), evolve(task, **changes).settled()
        self.tasks[task.task_id] = after
        if after.view() != before:
            self.changes[task.task_id] = self.changes.get(task.task_id, 0) + 1

    def _end(self, task: ModelTask, status: str, **changes: Any) -> None:
        self._put(task, status=status, questions={}, node=None, checkpoint=None, **changes)

    # -- callers -------------------------------------------------------------------------------------------

    def _refused(self, caller: ModelCaller) -> ErrorAnswer | None:
        """NEG.6, NEG.7: the extension is off for this request, or not declared by it."""
        if not caller.tasks_enabled:
            return ErrorAnswer(code=-32601)
        return None if caller.declares_tasks else UNDECLARED

    def _owned(self, task_id: Any, caller: ModelCaller, now: int) -> ModelTask | ErrorAnswer:
        """GET.2, SEC.1: unknown, expired, foreign and malformed are one."""
        refused = self._refused(caller)
        if refused is not None:
            return refused
        task = self.read(task_id, now)
        return UNKNOWN if task is None or task.owner != caller.principal else task

    def called(self, support: str, caller: ModelCaller) -> bool | ErrorAnswer:
        """Whether a call of a tool may become a task; ``support`` is what the tool declares (NEG.5)."""
        may = caller.declares_tasks and caller.tasks_enabled
        if support == "required" and not may:
            return UNDECLARED
        return may and support != "forbidden"

    def created(self, task: ModelTask) -> PeerAnswer:
        """A call became this task, and the task is durable (LIFE.3, LIFE.4)."""
        if task.task_id in self.tasks:
            return ErrorAnswer(code=-32603)
        self.tasks[task.task_id] = task
        return ResultAnswer({"resultType": "task", **task.view()})

    def get(self, task_id: Any, caller: ModelCaller, now: int) -> PeerAnswer:
        """``tasks/get`` reads and changes nothing (GET.1)."""
        task = self._owned(task_id, caller, now)
        if isinstance(task, ErrorAnswer):
            return task
        requests = [waiting.request for waiting in task.outstanding.values()]
        if self.strict and not all(may_be_asked(request, caller.capabilities) for request in requests):
            return ErrorAnswer(code=-32021)
        return ResultAnswer({"resultType": "complete", **task.view()})

    def update(self, task_id: Any, responses: Mapping[str, Any], caller: ModelCaller, now: int) -> PeerAnswer:
        """``tasks/update``: the answers to outstanding keys, all or nothing (UPD.3, UPD.4, UPD.5)."""
        task = self._owned(task_id, caller, now)
        if isinstance(task, ErrorAnswer):
            return task
        if task.cancelled_at_ms is not None:
            return ACKNOWLEDGED  # a cancelled task is not revived (CAN.6)
        questions = dict(task.questions)
        for key, question in task.outstanding.items():
            if key in responses:
                if not answer_fits(question.request, responses[key]):
                    return ErrorAnswer(code=-32602, names=key)
                questions[key] = evolve(question, answer=responses[key])
        self._put(task, questions=questions)
        return ACKNOWLEDGED

    def cancel(self, task_id: Any, caller: ModelCaller, now: int) -> PeerAnswer:
        """``tasks/cancel`` notes the wish, once (CAN.6)."""
        task = self._owned(task_id, caller, now)
        if isinstance(task, ErrorAnswer):
            return task
        if not task.ended and task.cancelled_at_ms is None:
            self._put(task, cancelled_at_ms=now)
        return ACKNOWLEDGED

    # -- the worker ----------------------------------------------------------------------------------------

    def progressed(self, task_id: str, now: int, *, run: int = 0, **changes: Any) -> ReportAnswer:
        """The worker changes ``message``, ``ttl_ms`` or ``poll_interval_ms``."""
        task = self.read(task_id, now)
        if task is None or task.ended:
            return TAKEN
        if task.run != run:
            return ReportAnswer("taken over")
        self._put(task, **changes)
        return TAKEN

    def checkpointed(
        self, task_id: str, now: int, value: Any, *, run: int = 0, received: tuple[str, ...] = ()
    ) -> ReportAnswer:
        """The worker saves where it is; the answers that this takes into account are used up."""
        task = self.read(task_id, now)
        if task is None or task.ended:
            return TAKEN
        if task.run != run:
            return ReportAnswer("taken over")
        if not task.resumable:
            return ReportAnswer("resumable")
        questions = {
            key: evolve(question, withdrawn=True)
            if question.ask in received and not question.outstanding
            else question
            for key, question in task.questions.items()
        }
        self._put(task, checkpoint=value, questions=questions)
        return TAKEN

    def asked(
        self, task_id: str, now: int, ask: str, requests: Mapping[str, Mapping[str, Any]], *, run: int = 0
    ) -> ReportAnswer:
        """The worker asks for input; each request gets a key that the task never had (INP.1, INP.2)."""
        task = self.read(task_id, now)
        if task is None:
            return ReportAnswer("gone")
        if task.ended:
            return ReportAnswer("ended")
        if task.run != run:
            return ReportAnswer("taken over")
        if task.cancelled_at_ms is not None:
            return ReportAnswer("cancel")
        if not all(may_be_asked(request, task.capabilities) for request in requests.values()):
            return ReportAnswer("declare")
        questions = dict(task.questions)
        for name, request in requests.items():
            self._ask(questions, Question(name=name, ask=ask, request=request))
        if len(questions) > max(self.input_keys, len(task.questions)):
            return ReportAnswer("input_keys")
        self._put(task, questions=questions)
        return TAKEN

    def _ask(self, questions: dict[str, Question], wanted: Question) -> None:
        """Take up the same question of a run that is gone, or ask a new one in its place."""
        left = {
            key: question
            for key, question in questions.items()
            if question.ask is None and question.name == wanted.name and not question.withdrawn
        }
        for key, question in left.items():
            if question.request == wanted.request:
                questions[key] = evolve(question, ask=wanted.ask)
                return
        for key, question in left.items():
            questions[key] = evolve(question, withdrawn=question.outstanding)
        key, number = wanted.name, 1
        while key in questions:
            number += 1
            key = f"{wanted.name}.{number}"
        questions[key] = wanted

    def withdrew(self, task_id: str, now: int, ask: str, *, run: int = 0) -> ReportAnswer:
        """The worker no longer waits for what it asked."""
        task = self.read(task_id, now)
        if task is None or task.ended:
            return TAKEN
        if task.run != run:
            return ReportAnswer("taken over")
        questions = {
            key: evolve(question, withdrawn=True)
            if question.ask == ask and question.outstanding
            else question
            for key, question in task.questions.items()
        }
        self._put(task, questions=questions)
        return TAKEN

    def ended(self, task_id: str, now: int, status: str, *, run: int = 0, **changes: Any) -> ReportAnswer:
        """The worker is done: ``result`` with completed, ``error`` and ``message`` with failed (LIFE.2)."""
        task = self.read(task_id, now)
        if task is None or task.ended:
            return TAKEN
        if task.run != run:
            return ReportAnswer("taken over")
        self._end(task, status, **changes)
        return TAKEN

    # -- the host --------------------------------------------------------------------------------------------

    def ttl_changed(self, task_id: str, now: int, ttl_ms: int | None) -> ReportAnswer:
        """The host gives a task another lifetime, be it ended or not (TTL.3)."""
        task = self.read(task_id, now)
        if task is not None:
            self._put(task, ttl_ms=ttl_ms)
        return TAKEN

    def host_ended(self, task_id: str, now: int, error: Mapping[str, Any] | None) -> ReportAnswer:
        """The host ends a task at once: as failed with an error, as cancelled without (LEG.5)."""
        task = self.read(task_id, now)
        if task is None:
            return ReportAnswer("gone")
        if task.ended:
            return ReportAnswer("ended")
        if error is None:
            self._end(task, "cancelled")
        else:
            self._end(task, "failed", error=error, message=error["message"])
        return TAKEN

    def grace_elapsed(self, task_id: str, now: int) -> bool:
        """A cancelled worker has had its time (CAN.6); return whether that ends the task."""
        task = self.read(task_id, now)
        if task is not None and not task.ended and task.cancelled_at_ms is not None:
            assert now >= task.cancelled_at_ms + self.cancel_grace_ms, "the grace has not elapsed yet"
            self._end(task, "cancelled")
            return True
        return False

    def work_lost(self, task_id: str, now: int, node: str, successor: str | None) -> bool:
        """The node of the work is gone; return whether ``successor`` takes it over."""
        task = self.read(task_id, now)
        if task is None or task.ended or task.node != node:
            return False
        if task.cancelled_at_ms is not None:
            self._end(task, "cancelled")
            return False
        if successor is None or not task.resumable or task.run >= self.resumptions:
            reason = "resumptions" if successor is not None and task.resumable else "worker_lost"
            error = {"code": -32603, "message": SOME_TEXT, "data": {"reason": reason}}
            self._end(task, "failed", error=error, message=SOME_TEXT)
            return False
        questions = {key: evolve(question, ask=None) for key, question in task.questions.items()}
        self._put(task, node=successor, run=task.run + 1, questions=questions)
        return True
