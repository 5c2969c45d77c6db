"""Faults in the rules of the server engine are found by the reference model: some are planted, one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from attrs import evolve

from mcp_tasks_proto import TaskRecord, records
from mcp_tasks_proto.errors import unknown_task
from mcp_tasks_proto.inputs import SaveConflict
from mcp_tasks_proto.server.operations import (
    AnswerTask,
    CancelTask,
    CreateTask,
    Decision,
    ElapseGrace,
    EndWork,
    LoseWork,
    WithdrawInput,
    peers,
    workers,
)
from mcp_tasks_proto.server.tasks import Tasks
from tests.model.planting import Fault, Wrapped, must_be_found
from tests.model.stories import STORIES, tell


def _eager(save: Wrapped) -> Wrapped:
    def faulty(self: Tasks, question: Any, before: Any, decision: Decision, after: TaskRecord) -> None:
        self._conclude(question.operation, decision)
        save(self, question, before, decision, after)

    return faulty


def _last_one_wins(_: Wrapped) -> Wrapped:
    def faulty(self: Tasks, conflict: SaveConflict) -> None:
        question, decision = self._written(conflict.token)
        current = conflict.current
        assert decision.after is not None
        assert current is not None
        self._save(question, current, decision, evolve(decision.after, version=current.version + 1))

    return faulty


def _forgetful(member: str, blank: Any) -> Callable[[Wrapped], Wrapped]:
    def plant(inform: Wrapped) -> Wrapped:
        def faulty(self: Tasks, worker: Any, record: TaskRecord) -> None:
            setattr(worker, member, blank() if callable(blank) else blank)
            inform(self, worker, record)

        return faulty

    return plant


def _always(value: Any) -> Callable[[Wrapped], Wrapped]:
    return lambda _: lambda *_: value


def _uncancelled(decide: Wrapped) -> Wrapped:
    return lambda self, record, now: decide(self, evolve(record, cancel_requested_at_ms=None), now)


def _unowned(_: Wrapped) -> Wrapped:
    return lambda self, record, now: (
        Decision(error=unknown_task()) if record is None else self.decide_for_owner(record, now)
    )


def _whichever_run(decide: Wrapped) -> Wrapped:
    return lambda self, record, now: self.decide_for_worker(record, now)


def _never_begun(decide: Wrapped) -> Wrapped:
    def faulty(self: LoseWork, record: TaskRecord | None, now: int) -> Decision:
        decision: Decision = decide(self, record, now)
        return decision if not decision.resumes else evolve(decision, resumes=False)

    return faulty


def _partly(decide: Wrapped) -> Wrapped:
    """One of the answers is taken, and all are acknowledged."""

    def faulty(self: AnswerTask, record: TaskRecord, now: int) -> Decision:
        first = dict(list(self.responses.items())[:1])
        decision: Decision = decide(evolve(self, responses=first), record, now)
        return decision

    return faulty


def _lost_result(decide: Wrapped) -> Wrapped:
    """The result of the work is lost when the task ends."""
    return lambda self, record, now: decide(evolve(self, result={}), record, now)


def _empty_handed(create: Wrapped) -> Wrapped:
    """The caller is told that all is well, and not of which task."""
    return lambda self, record, now: evolve(create(self, record, now), error=None, result={})


FAULTS: Final = [
    Fault(rule="LIFE.4", what="told before it is saved", where=Tasks, name="_save", plant=_eager),
    Fault(rule="UPD.5", what="the last save wins", where=Tasks, name="conflicted", plant=_last_one_wins),
    Fault(
        rule="UPD.5",
        what="answers are delivered again",
        where=Tasks,
        name="_inform",
        plant=_forgetful("delivered", set),
    ),
    Fault(
        rule="CAN.6",
        what="a worker is told to stop again",
        where=Tasks,
        name="_inform",
        plant=_forgetful("told_to_stop", False),
    ),
    Fault(
        rule="CAN.6",
        what="a worker is never told to stop",
        where=Tasks,
        name="_inform",
        plant=_forgetful("told_to_stop", True),
    ),
    Fault(
        rule="CAN.6",
        what="a grace without end",
        where=ElapseGrace,
        name="decide",
        plant=_always(Decision()),
    ),
    Fault(
        rule="CAN.6",
        what="an answer after the cancel request counts",
        where=AnswerTask,
        name="decide_for_owner",
        plant=_uncancelled,
    ),
    Fault(
        rule="CAN.6",
        what="each cancel request begins the grace anew",
        where=CancelTask,
        name="decide_for_owner",
        plant=_uncancelled,
    ),
    Fault(rule="SEC.1", what="anybody is the owner", where=AnswerTask, name="decide", plant=_unowned),
    Fault(rule="SEC.1", what="anybody cancels", where=CancelTask, name="decide", plant=_unowned),
    Fault(
        rule="INP.1",
        what="a key is used again",
        where=workers,
        name="unique_key",
        plant=lambda _: lambda name, _: name,
    ),
    Fault(
        rule="INP.1",
        what="what was withdrawn is still listed",
        where=WithdrawInput,
        name="decide_for_worker",
        plant=_always(Decision()),
    ),
    Fault(
        rule="INP.2",
        what="anything may be asked",
        where=workers,
        name="missing_capabilities",
        plant=_always(None),
    ),
    Fault(
        rule="UPD.3",
        what="an update takes one answer",
        where=AnswerTask,
        name="decide_for_owner",
        plant=_partly,
    ),
    Fault(rule="UPD.4", what="any answer fits", where=peers, name="check_response", plant=_always(None)),
    Fault(
        rule="TTL.1",
        what="a task is readable for ever",
        where=TaskRecord,
        name="expired",
        plant=_always(False),
    ),
    Fault(
        rule="LIFE.5",
        what="any save moves lastUpdatedAt",
        where=records,
        name="_seen",
        plant=lambda _: lambda *_: object(),
    ),
    Fault(
        rule="LIFE.5", what="no change moves lastUpdatedAt", where=records, name="_seen", plant=_always(None)
    ),
    Fault(
        rule="LIFE.2", what="the result is lost", where=EndWork, name="decide_for_worker", plant=_lost_result
    ),
    Fault(
        rule="LIFE.3",
        what="a create result without its task",
        where=CreateTask,
        name="decide",
        plant=_empty_handed,
    ),
    Fault(
        rule="LIFE.2",
        what="two workers of a task report",
        where=workers.Progress,
        name="decide",
        plant=_whichever_run,
    ),
    Fault(
        rule="LIFE.2",
        what="work that was taken over is not begun",
        where=LoseWork,
        name="decide",
        plant=_never_begun,
    ),
]


@pytest.mark.parametrize("name", STORIES)
def test_the_engine_as_it_is_tells_every_story(name: str) -> None:
    tell(STORIES[name])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(fault, (partial(tell, story) for story in STORIES.values()), monkeypatch)
