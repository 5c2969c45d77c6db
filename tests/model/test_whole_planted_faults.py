"""Faults in one engine among all roles are found at their step, also those that the world around would hide.

A second reply finds nobody, a question that is not listed is listed later, what is kept for ever does no harm
in so short a story: everything would end well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from itertools import count
from typing import Any, Final

import pytest

from mcp_tasks_proto import Send, ServerEngine
from mcp_tasks_proto.legacy.requester.channel import Channel
from mcp_tasks_proto.legacy.server.inner import Inner
from mcp_tasks_proto.legacy.server.registry import Registry
from mcp_tasks_proto.legacy.server.sessions import Outlet
from mcp_tasks_proto.proxy import ProxyEngine
from mcp_tasks_proto.proxy.asking import Asking
from mcp_tasks_proto.proxy.callers import Callers
from mcp_tasks_proto.proxy.listening import Listeners
from mcp_tasks_proto.proxy.upstreams import UpstreamRequests
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.requester.calling import Calls
from mcp_tasks_proto.requester.requests import Requests
from mcp_tasks_proto.requester.watching import Watcher
from mcp_tasks_proto.server.exchanges import Exchanges
from mcp_tasks_proto.server.operations import peers
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.subscriptions import Streams
from mcp_tasks_proto.timers import LAST_MS, Timers
from tests.model.mill import Grinding
from tests.model.planting import Wrapped, always, begun_twice
from tests.model.test_whole_storms import live
from tests.model.whole import PEOPLE

TWO_QUESTIONS: Final = Grinding(steps=((90, "ask twice"), (1_500, "progress")))
SESSIONS: Final[Mapping[str, Any]] = {"legacy": frozenset(PEOPLE)}
"""Everybody speaks 2025-11-25 to the proxy."""
LEGACY_SERVERS: Final[Mapping[str, Any]] = {"legacy_servers": True}
"""The proxy speaks it to the servers."""
PASSED: Final = "a deadline that has passed"


def _twice(end: Wrapped) -> Wrapped:
    """The last message is sent once more."""

    def faulty(self: Any, *given: Any) -> None:
        before = len(self.out)
        end(self, *given)
        self.out.extend(self.out[before:][-1:])

    return faulty


def _talkative(finish: Wrapped) -> Wrapped:
    """There is something to add."""

    def faulty(self: Exchanges, exchange: Any, *given: Any) -> None:
        finish(self, exchange, *given)
        self.out.append(Send(exchange.key, {"jsonrpc": "2.0", "method": "notifications/message"}))

    return faulty


def _one_by_one(task_view: Wrapped) -> Wrapped:
    """Of all that is asked the first is listed, until it has its answer."""

    def faulty(record: TaskRecord) -> Any:
        view = task_view(record)
        if "inputRequests" in view:
            view["inputRequests"] = dict(list(view["inputRequests"].items())[:1])
        return view

    return faulty


def _busy(task_view: Wrapped) -> Wrapped:
    """A task that asks something is said to work."""

    def faulty(record: TaskRecord) -> Any:
        view = task_view(record)
        return {**view, "status": "working"} if view["status"] == "input_required" else view

    return faulty


def _keeps(table: str) -> Callable[[Wrapped], Wrapped]:
    """What is forgotten is not."""

    def plant(forget: Wrapped) -> Wrapped:
        def faulty(self: Any, *given: Any, **more: Any) -> Any:
            before = dict(getattr(self, table))
            outcome = forget(self, *given, **more)
            getattr(self, table).update(before)
            return outcome

        return faulty

    return plant


def _counts_on(counter: str) -> Callable[[Wrapped], Wrapped]:
    """One that is over still counts."""

    def plant(forget: Wrapped) -> Wrapped:
        def faulty(self: Any, *given: Any) -> None:
            forget(self, *given)
            setattr(self, counter, getattr(self, counter) + 1)

        return faulty

    return plant


def _plans(timers: Callable[[Any], Timers]) -> Callable[[Wrapped], Wrapped]:
    """Each time something is planned, for the end of days."""

    def plant(act: Wrapped) -> Wrapped:
        def faulty(self: Any, *given: Any, **more: Any) -> Any:
            timers(self).set(object(), LAST_MS)
            return act(self, *given, **more)

        return faulty

    return plant


def _waits_on(end: Wrapped) -> Wrapped:
    """What a session brought is waited for in the next one."""

    def faulty(self: Channel, name: int) -> Any:
        pending = end(self, name)
        if pending is not None:
            self._pending[name] = copy(pending)
            self._pending[name].in_flight = False
        return pending

    return faulty


def _one_token(ask: Wrapped) -> Wrapped:
    """Every question has the same token."""

    def faulty(self: Any, *given: Any) -> Any:
        self._tokens = count()
        return ask(self, *given)

    return faulty


def _remembered(news: Wrapped) -> Wrapped:
    """Who worked at a task is remembered once it has ended."""

    def faulty(self: Tasks, record: TaskRecord) -> None:
        news(self, record)
        if record.status.terminal:
            self.work_started(record)

    return faulty


Planted = tuple[str, Any, str, Callable[[Wrapped], Wrapped], str, Mapping[str, Any]]
"""What is wrong, where, in which function, what makes it so, what is said of it, and in which world."""
FAULTS: Final[list[Planted]] = [
    ("a server answers twice", Exchanges, "finish", _twice, "one reply", {}),
    ("a proxy answers twice", Callers, "finish", _twice, "one reply", {}),
    ("a proxy answers twice in a session", Outlet, "end", _twice, "one reply", SESSIONS),
    ("a server answers twice in a session", Outlet, "end", _twice, "one reply", LEGACY_SERVERS),
    ("a server goes on after its reply", Exchanges, "finish", _talkative, "nothing is said after", {}),
    ("of two questions one is listed", peers, "task_view", _one_by_one, "INP.1", {}),
    ("who waits is said to work", peers, "task_view", _busy, "GET.1", {}),
    ("a server does nothing when time passes", Tasks, "time_passed", always(None), PASSED, {}),
    ("a proxy does nothing when time passes", ProxyEngine, "_time_passed", always(None), PASSED, {}),
    ("a server has one token", Tasks, "_ask", _one_token, "no two questions", {}),
    ("a proxy has one token", Asking, "_ask", _one_token, "no two questions", {}),
    ("work is begun twice", ServerEngine, "_conclude", begun_twice, "two workers of one task", {}),
    # What is kept where it ought to be forgotten, at whom.
    ("a server: the store's answers", Tasks, "loaded", _keeps("_questions"), "a server has asked", {}),
    ("a server: requests", Exchanges, "_forget", _keeps("by_key"), "owed a reply", {}),
    ("a server: streams", Streams, "close", _keeps("_streams"), "listens to a server", {}),
    ("a server: calls that became tasks", Tasks, "_conclude", _counts_on("_creations"), "work that is", {}),
    ("a server: workers", Tasks, "news", _remembered, "LIM.3: workers", {}),
    ("a server: times", Tasks, "loaded", _plans(lambda tasks: tasks.timers), "times of a server", {}),
    ("a proxy: the store's answers", Asking, "answered", _keeps("_open"), "a proxy has asked", {}),
    ("a proxy: requests", Callers, "_forget", _keeps("by_key"), "owed a reply", {}),
    ("a proxy: streams", Listeners, "_close", _keeps("_streams"), "listens to a proxy", {}),
    ("a proxy: what it sent", UpstreamRequests, "_end", _keeps("_in_flight"), "a proxy has sent", {}),
    (
        "a proxy: what it waits for",
        UpstreamRequests,
        "_end",
        _keeps("_in_flight"),
        "its time",
        LEGACY_SERVERS,
    ),
    (
        "a proxy: times",
        UpstreamRequests,
        "send",
        _plans(lambda one: one.shared.timers),
        "times of a proxy",
        {},
    ),
    ("sessions: requests", Registry, "_left", _counts_on("requests"), "requests of sessions", SESSIONS),
    ("sessions: times", Registry, "_left", _plans(lambda one: one.timers), "times of sessions", SESSIONS),
    ("sessions: answers", Inner, "_carry_out", _keeps("_open"), "asked for sessions", SESSIONS),
    ("a requester: calls", Calls, "settle", _keeps("by_key"), "LIM.3: calls", {}),
    ("a requester: tasks", Watcher, "end", _keeps("_watched"), "tasks that are watched", {}),
    ("a requester: what it sent", Requests, "end", _keeps("_in_flight"), "a requester has sent", {}),
    (
        "a requester: what it waits for",
        Requests,
        "end",
        _keeps("_in_flight"),
        "a requester waits for",
        SESSIONS,
    ),
    ("a requester: times", Requests, "end", _plans(lambda one: one.timers), "times of a requester", {}),
    ("a requester: what its session holds", Channel, "_end", _keeps("_pending"), "in its session", SESSIONS),
    ("a requester: what waits for a session", Channel, "_end", _waits_on, "waits for a session", SESSIONS),
]


@pytest.mark.parametrize(
    "facts", [{}, SESSIONS, LEGACY_SERVERS], ids=["modern", "sessions", "legacy servers"]
)
def test_without_a_fault_all_is_well(facts: Mapping[str, Any]) -> None:
    live(plan=TWO_QUESTIONS, **facts)


@pytest.mark.parametrize(
    ("where", "name", "plant", "words", "facts"),
    [pytest.param(*fault, id=what) for what, *fault in FAULTS],
)
def test_a_fault_at_one_step_is_found_at_that_step(
    where: Any,
    name: str,
    plant: Callable[[Wrapped], Wrapped],
    words: str,
    facts: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where, name, plant(getattr(where, name)))
    with pytest.raises(AssertionError, match=words):
        live(plan=TWO_QUESTIONS, **facts)
