"""Faults in what is said to servers of 2025-11-25 are found by the reference model: some are planted."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks_proto.legacy.requester import asked, legacy_server, tasks
from mcp_tasks_proto.legacy.requester.calls import PlainCalls
from mcp_tasks_proto.legacy.requester.questions import Question
from mcp_tasks_proto.legacy.requester.receiver import Receiver
from mcp_tasks_proto.legacy.requester.tasks import Followed, FollowedTasks
from mcp_tasks_proto.legacy.requester.tools import TaskTools
from mcp_tasks_proto.requester.requests import Requests
from tests.model.legacy_requester_stories import STORIES, tell
from tests.model.planting import Fault, Wrapped, always, must_be_found


def _eager(_: Wrapped) -> Wrapped:
    """Every tool is called as a task."""
    return lambda self, inner, name, go: go(True)


def _trusting(polled: Wrapped) -> Wrapped:
    """What a task ended with is not fetched."""

    def faulty(self: FollowedTasks, inner: int, task_id: str, followed: Any, task: Any) -> None:
        self._show(inner, followed, {**task, "status": "cancelled"})

    return faulty


def _literal(ended: Wrapped) -> Wrapped:
    """``failed`` is a failure, whatever came with it."""
    return lambda task, result, error: ended({**task, "status": "completed"}, result, error)


def _restless(wait: Wrapped) -> Wrapped:
    """Each poll opens another stream."""

    def faulty(self: FollowedTasks, inner: int, followed: Followed, task: Any) -> None:
        followed.result = None
        wait(self, inner, followed, task)

    return faulty


def _silent(_: Wrapped) -> Wrapped:
    """Who answers is not heard."""
    return lambda self, session, request_id, task_id, response, delivered: delivered(True)


def _twice(answer: Wrapped) -> Wrapped:
    def faulty(self: Any, *facts: Any) -> None:
        answer(self, *facts)
        answer(self, *facts[:-1], lambda _: None)

    return faulty


def _late(received: Wrapped) -> Wrapped:
    """Who waits for the end of a task here is not told of it."""

    def faulty(self: Receiver, task_id: str, **changes: Any) -> None:
        self._tasks[task_id].waiters.clear()
        received(self, task_id, **changes)

    return faulty


FAULTS: Final = [
    Fault(rule="LEG.3", what="every tool runs as a task", where=TaskTools, name="find_out", plant=_eager),
    Fault(
        rule="LEG.3",
        what="handles are not looked for",
        where=legacy_server,
        name="create_result",
        plant=always(None),
    ),
    Fault(rule="LEG.4", what="results are not fetched", where=FollowedTasks, name="_fetch", plant=_trusting),
    Fault(rule="LEG.6", what="isError is not told", where=tasks, name="ended_view", plant=_literal),
    Fault(
        rule="REQ.3",
        what="any error is a task's end",
        where=tasks,
        name="_withholds",
        plant=always(False),
    ),
    Fault(
        rule="REQ.3",
        what="a server that gives no result is asked for ever",
        where=FollowedTasks,
        name="_goes_on_asking",
        plant=always(True),
    ),
    Fault(
        rule="LEG.4",
        what="what a task failed with is asked for again",
        where=tasks,
        name="_withholds",
        plant=always(True),
    ),
    Fault(
        rule="LEG.8",
        what="a stream with each poll",
        where=FollowedTasks,
        name="_wait_for_questions",
        plant=_restless,
    ),
    Fault(rule="LEG.8", what="answers are not sent", where=asked.Reception, name="_answer", plant=_silent),
    Fault(rule="LEG.8", what="answers are sent twice", where=asked.Reception, name="_answer", plant=_twice),
    Fault(
        rule="LEG.8",
        what="answers wait for each other",
        where=PlainCalls,
        name="answered",
        plant=always(None),
    ),
    Fault(
        rule="LEG.8",
        what="what is asked again is new",
        where=Question,
        name="is_same_as",
        plant=always(False),
    ),
    Fault(
        rule="REQ.6",
        what="a silent server is waited for",
        where=Requests,
        name="_set_timeout",
        plant=always(None),
    ),
    Fault(rule="INP.2", what="anything may be asked", where=asked, name="answerable", plant=always(True)),
    Fault(
        rule="REQ.4",
        what="a question that is over stays on show",
        where=PlainCalls,
        name="withdraw",
        plant=always(None),
    ),
    Fault(rule="LEG.10", what="nobody is told of the end", where=Receiver, name="_end", plant=_late),
    Fault(
        rule="LEG.10",
        what="a task here lives for ever",
        where=Receiver,
        name="expire",
        plant=always(None),
    ),
    Fault(
        rule="LEG.10",
        what="nobody answers, and nobody is told",
        where=Question,
        name="abandon",
        plant=always(None),
    ),
]


@pytest.mark.parametrize("name", STORIES)
def test_the_requester_as_it_is_tells_every_story(name: str) -> None:
    tell(STORIES[name])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(fault, (partial(tell, story) for story in STORIES.values()), monkeypatch)
