"""Faults in what is done for clients of 2025-11-25 are found by the reference model: some are planted."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks_proto import ServerEngine
from mcp_tasks_proto.legacy import translation
from mcp_tasks_proto.legacy.server import calls, requests, tasks, waiting
from mcp_tasks_proto.legacy.server import engine as engine_module
from mcp_tasks_proto.legacy.server import inner as inner_module
from mcp_tasks_proto.legacy.server.cursors import Cursors
from mcp_tasks_proto.legacy.server.inner import OwedTask
from mcp_tasks_proto.legacy.server.registry import Registry
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.server.tasks import TaskRequests
from mcp_tasks_proto.legacy.server.waiting import Waiter, Waiting
from mcp_tasks_proto.settings import TaskSupport
from tests.model.legacy_stories import STORIES, tell
from tests.model.planting import Fault, Wrapped, always, begun_twice, must_be_found


def _generous(result: Wrapped) -> Wrapped:
    return lambda settings, *, tasks, list_tasks: result(settings, tasks=True, list_tasks=list_tasks)


def _listing(result: Wrapped) -> Wrapped:
    return lambda settings, *, tasks, list_tasks: result(settings, tasks=tasks, list_tasks=tasks)


def _flat(_: Wrapped) -> Wrapped:
    return lambda result: translation.legacy_task(result)


def _blind(legacy_task: Wrapped) -> Wrapped:
    """``isError`` is not looked at."""
    return lambda view: legacy_task({**view, "result": {}})


def _cooperative(_: Wrapped) -> Wrapped:
    """Cancellation is acknowledged, and nothing happens."""

    def faulty(self: TaskRequests, request: ClientRequest, message: Any, http_status: int) -> None:
        self._found(request, message, http_status)

    return faulty


def _impatient(begin: Wrapped) -> Wrapped:
    """``tasks/result`` is answered at once, with the task."""

    def faulty(self: Waiting, request: ClientRequest, task_id: str) -> None:
        self.inner.request(
            "tasks/get",
            {"taskId": task_id},
            caller=request.caller,
            declares_tasks=True,
            replied=request.answer,
        )

    return faulty


def _anybody(_: Wrapped) -> Wrapped:
    return lambda self, key, principal: self._sessions.get(key)


def _forgetful(_: Wrapped) -> Wrapped:
    """Who is gone was asked, and nobody else is."""

    def faulty(self: Waiting, task_id: str, key: str, *, again: bool) -> None:
        self._asked.discard((task_id, key))

    return faulty


def _noisy(ask: Wrapped) -> Wrapped:
    """Everybody who waits is asked."""

    def faulty(self: Waiting, waiter: Waiter, key: str) -> None:
        self._asked.discard((waiter.task_id, key))
        ask(self, waiter, key)

    return faulty


def _shy(_: Wrapped) -> Wrapped:
    """Who is asked is not told when the answer is no longer needed: its question stays."""
    return lambda self, name: self.asks.pop(name)


def _nameless(final_answer: Wrapped) -> Wrapped:
    """A result that does not say whose it is."""

    def faulty(view: Any) -> Any:
        answer = final_answer(view)
        return {**answer, "_meta": {}} if isinstance(answer, dict) else answer

    return faulty


def _lenient(wanted: Wrapped) -> Wrapped:
    def faulty(task: Any, limits: Any) -> Any:
        ttl = task.get("ttl") if isinstance(task, dict) else None
        return OwedTask(ttl) if isinstance(ttl, int) and ttl > 0 else wanted(task, limits)

    return faulty


FAULTS: Final = [
    Fault(
        rule="LEG.1",
        what="tasks are promised",
        where=engine_module,
        name="initialize_result",
        plant=_generous,
    ),
    Fault(
        rule="LEG.2",
        what="a list is promised to who cannot be told apart",
        where=engine_module,
        name="initialize_result",
        plant=_listing,
    ),
    Fault(rule="LEG.2", what="a session is anybody's", where=Registry, name="find", plant=_anybody),
    Fault(rule="LEG.3", what="a flat handle", where=calls, name="created_task", plant=_flat),
    Fault(
        rule="LEG.3",
        what="every tool takes tasks",
        where=requests,
        name="TaskSupport",
        plant=lambda _: type("Faulty", (), {"REQUIRED": TaskSupport.REQUIRED, "FORBIDDEN": None}),
    ),
    Fault(
        rule="LEG.3",
        what="every tool is called plainly",
        where=requests,
        name="TaskSupport",
        plant=lambda _: type("Faulty", (), {"REQUIRED": None, "FORBIDDEN": TaskSupport.FORBIDDEN}),
    ),
    Fault(rule="LEG.3", what="any lifetime is given", where=requests, name="wanted_task", plant=_lenient),
    Fault(rule="LIFE.2", what="work is begun twice", where=ServerEngine, name="_conclude", plant=begun_twice),
    Fault(rule="LEG.4", what="a result is not waited for", where=Waiting, name="begin", plant=_impatient),
    Fault(rule="LEG.4", what="whose result is not said", where=waiting, name="final_answer", plant=_nameless),
    Fault(
        rule="LEG.5",
        what="cancelling is a wish",
        where=TaskRequests,
        name="_found_to_cancel",
        plant=_cooperative,
    ),
    Fault(rule="LEG.6", what="isError is completed", where=tasks, name="legacy_task", plant=_blind),
    Fault(
        rule="LEG.6",
        what="who waits is told nothing",
        where=waiting,
        name="legacy_task",
        plant=lambda right: lambda view: {**right(view), "status": "working"},
    ),
    Fault(rule="LEG.7", what="any cursor is good", where=Cursors, name="opened", plant=always("task-0")),
    Fault(rule="LEG.7", what="a list has one page", where=Cursors, name="sealed", plant=always("made up")),
    Fault(rule="LEG.7", what="nobody looks at the time", where=waiting, name="expiry_ms", plant=always(None)),
    Fault(rule="LEG.8", what="nobody else is asked", where=Waiting, name="_release", plant=_forgetful),
    Fault(rule="LEG.8", what="everybody is asked", where=Waiting, name="_ask", plant=_noisy),
    Fault(
        rule="LEG.8",
        what="who cannot be asked is",
        where=Waiter,
        name="can_ask",
        plant=lambda _: lambda self, key: key in self.outstanding,
    ),
    Fault(rule="LEG.8", what="questions stay", where=ClientRequest, name="withdraw", plant=_shy),
    Fault(
        rule="LEG.8",
        what="an ended session is asked",
        where=Waiting,
        name="_ask_no_more",
        plant=always(None),
    ),
    Fault(
        rule="LEG.8",
        what="any answer will do",
        where=waiting,
        name="check_response",
        plant=always(None),
    ),
    Fault(
        rule="LEG.9",
        what="another era's capability declares tasks",
        where=inner_module,
        name="modern_params",
        plant=lambda right: lambda params, capabilities, *, tasks=False: right(params, {}, tasks=tasks),
    ),
]


@pytest.mark.parametrize("name", STORIES)
def test_the_server_as_it_is_tells_every_story(name: str) -> None:
    tell(STORIES[name])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(fault, (partial(tell, story) for story in STORIES.values()), monkeypatch)
