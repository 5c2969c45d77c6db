"""A host's own mistakes: each is named, and leaves the engine as it was (``LocalProtocolError``).

An engine is all behaviour, so "as it was" is tested by behaviour: two hosts live through the same day, one of
them makes every mistake that can be made at each moment, and everything the engines say is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    ErrorObject,
    ExpiredFound,
    FindExpired,
    Input,
    Limits,
    Load,
    Loaded,
    LoadFailed,
    LocalProtocolError,
    MessageReceived,
    RecordChanged,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    ShutdownStarted,
    TaskEnded,
    TimePassed,
    ToolsChanged,
    TtlChanged,
    WorkAskedInput,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.testing import ServerHost, request
from mcp_tasks_proto.vocabulary import LOG_LEVEL
from tests.unit.world import (
    DONE,
    FORMS,
    OTHER,
    TASK,
    TOOLS,
    asked,
    call,
    form,
    listen,
    make_host,
    parked,
    refused,
    update,
    view,
    working,
)

NOT_JSON: Final[dict[str, Any]] = {"content": [], "x": {1, 2}}

ALWAYS: Final[dict[str, Input]] = {
    "no input": None,  # type: ignore[dict-item]
    "two tools of one name": ToolsChanged((TOOLS[0], TOOLS[0])),
    "no result at all": WorkCompleted(task_id=TASK, token=1, result=cast(Any, None)),
    "a result in disguise": WorkCompleted(task_id=TASK, token=1, result={"resultType": "task"}),
    "a result that is not JSON": WorkCompleted(task_id=TASK, token=1, result=NOT_JSON),
    "an error that is not JSON": WorkFailed(task_id=TASK, token=1, error=ErrorObject(1, "x", NOT_JSON)),
    "half a millisecond": WorkProgressed(task_id=TASK, token=1, ttl_ms=0.5),  # type: ignore[arg-type]
    "an error that is a text": WorkFailed(task_id=TASK, token=1, error=cast(Any, "x")),
    "an error without a code": WorkFailed(task_id=TASK, token=1, error=ErrorObject(cast(Any, "1"), "x")),
    "an error that says nothing": TaskEnded(task_id=TASK, token=1, error=ErrorObject(1, cast(Any, None))),
    "an error with odd members": TaskEnded(
        task_id=TASK, token=1, error=ErrorObject(1, "x", extra=cast(Any, 5))
    ),
    "a status message that is none": WorkProgressed(task_id=TASK, token=1, status_message=cast(Any, 5)),
    "one that nobody can write": WorkStopped(task_id=TASK, token=1, status_message="\ud800"),
    "a question without a name": WorkAskedInput(
        task_id=TASK, token=1, ask=cast(Any, 5), requests={"confirm": form()}
    ),
    "news of no record": RecordChanged(cast(Any, {"taskId": TASK})),
    "no time at all": TtlChanged(task_id=TASK, token=1, ttl_ms=0),
    "a hint in the past": WorkProgressed(task_id=TASK, token=1, poll_interval_ms=-1),
}
"""Wrong whenever it is said."""

STRAY: Final[dict[str, Callable[[Any], Input]]] = {
    "loaded": lambda token: Loaded(token, None),
    "load failed": LoadFailed,
    "saved": Saved,
    "conflict": lambda token: SaveConflict(token, None),
    "save failed": SaveFailed,
    "refused": lambda token: SaveRefused(token, "tasks"),
    "expired": lambda token: ExpiredFound(token, [], None),
}
"""Answers of a store, for a token."""

BROKEN: Final[dict[str, Callable[[Any], Input]]] = {
    "loaded": lambda token: Loaded(token, cast(Any, {"taskId": TASK})),
    "conflict": lambda token: SaveConflict(token, cast(Any, {"taskId": TASK})),
    "refused": lambda token: SaveRefused(token, cast(Any, 5)),
    "expired": lambda token: ExpiredFound(token, [cast(Any, {"taskId": TASK})], None),
}
"""What fits a question, but for what is in it."""

FITTING: Final = {
    "Load": {"loaded", "load failed"},
    "Save": {"saved", "conflict", "save failed"},
    "Delete": {"saved", "conflict", "save failed"},
    "FindExpired": {"expired", "load failed"},
}
"""What fits what the engine asked; a save with a quota may be refused as well."""


def stray_answers(host: ServerHost) -> dict[str, Input]:
    """Return every answer that fits nothing: for no question at all, and of the wrong kind for each."""
    wrong = {f"{name} for nothing": make("?") for name, make in STRAY.items()}
    for number, effect in enumerate(host.asked):
        fitting = FITTING[type(effect).__name__] | ({"refused"} if getattr(effect, "quota", None) else set())
        for name in STRAY.keys() - fitting:
            wrong[f"{name} for the {type(effect).__name__} {number}"] = STRAY[name](effect.token)
        for name in BROKEN.keys() & fitting:
            wrong[f"a broken {name} for {number}"] = BROKEN[name](effect.token)
    return wrong


def call_facts(exchange: Any) -> dict[str, Input]:
    """Return each thing a call may come to."""
    return {
        "returned": CallReturned(exchange, DONE),
        "failed": CallFailed(exchange, ErrorObject(1, "x")),
        "notified": CallNotified(exchange, "notifications/progress", {"progress": 1}),
        "asked": CallAskedInput(exchange, {"confirm": form()}),
        "became": CallBecameTask(exchange=exchange, task_id=TASK),
    }


def opened_again(exchange: Any) -> dict[str, Input]:
    """Return messages on an exchange that is open."""
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    return {
        "a request": MessageReceived(exchange=exchange, message=request("tools/list", id="again")),
        "a notification": MessageReceived(exchange=exchange, message=note),
        "nonsense": MessageReceived(exchange=exchange, message=[]),
    }


class Day:
    """A day of one host, in moments; after each, :attr:`wrong` says what would be wrong now."""

    def __init__(self) -> None:
        self.host = make_host(Limits(cancel_grace_ms=500), methods=frozenset({"x/y"}))
        self.wrong: dict[str, Input] = {}

    def nothing_going_on(self) -> None:
        self.wrong = {}

    def a_call_runs(self) -> None:
        self.call = call(self.host, capabilities=FORMS, meta={LOG_LEVEL: "info"})
        self.wrong = {
            **opened_again(self.call),
            "another notification": CallNotified(self.call, "notifications/tasks", {}),
            "no level": CallNotified(self.call, "notifications/message", {"level": "x"}),
            "a notification without params": CallNotified(
                self.call, "notifications/progress", cast(Any, [1])
            ),
            "one that is not JSON": CallNotified(self.call, "notifications/progress", {"progress": {1}}),
            "an error that is a text": CallFailed(self.call, cast(Any, "x")),
            "an error that is not JSON": CallFailed(self.call, ErrorObject(1, "x", NOT_JSON)),
            "no result at all": CallReturned(self.call, cast(Any, None)),
            "a task in disguise": CallReturned(self.call, {"resultType": "task"}),
            "a question in disguise": CallReturned(self.call, {"resultType": "input_required"}),
            "odd meta": CallReturned(self.call, {"_meta": 5}),
            "no question": CallAskedInput(self.call, {}),
            "a state that is not JSON": CallAskedInput(self.call, {"confirm": form()}, {1}),
            "a short id": CallBecameTask(exchange=self.call, task_id="short"),
            "an odd lifetime": CallBecameTask(exchange=self.call, task_id=TASK, ttl_ms=-1),
            "an odd message": CallBecameTask(
                exchange=self.call, task_id=TASK, status_message=cast(Any, b"x")
            ),
            "an odd hint": CallBecameTask(exchange=self.call, task_id=TASK, poll_interval_ms=0),
        }

    def a_call_runs_that_is_no_tool(self) -> None:
        self.forwarded = self.host.send(request("x/y", capabilities=FORMS))
        self.wrong = {
            "asks": CallAskedInput(self.forwarded, {"confirm": form()}),
            "becomes": CallBecameTask(exchange=self.forwarded, task_id=TASK),
        }

    def a_task_is_being_written(self) -> None:
        self.host.held = True
        self.host.give(CallBecameTask(exchange=self.call, task_id=TASK))
        self.wrong = {**call_facts(self.call), **opened_again(self.call)}

    def a_stream_looks_up(self) -> None:
        self.stream = listen(self.host, TASK, OTHER)
        self.wrong = {**call_facts(self.stream), **opened_again(self.stream)}

    def requests_wait_for_the_store(self) -> None:
        while self.host.asked:
            self.host.answer_next()
        self.update = self.host.send(request("tasks/update", {"taskId": TASK, "inputResponses": {}}))
        self.cancel = self.host.send(request("tasks/cancel", {"taskId": TASK}))
        self.host.give(asked("first", "confirm"))
        self.wrong = {**call_facts(self.update), **opened_again(self.cancel)}

    def saves_wait_for_the_store(self) -> None:
        for _ in range(3):
            self.host.answer_next()
        self.wrong = call_facts(self.cancel)

    def a_sweep_is_under_way(self) -> None:
        while self.host.asked:
            self.host.answer_next()
        self.host.now += 3_600_000
        self.host.give(TimePassed())
        assert any(isinstance(effect, FindExpired) for effect in self.host.asked)
        self.wrong = {}

    def a_removal_is_under_way(self) -> None:
        find = next(effect for effect in self.host.asked if isinstance(effect, FindExpired))
        self.host.asked.remove(find)
        self.host.give(self.host.store.answer(find))
        self.wrong = {}

    def the_server_stops(self) -> None:
        while self.host.asked:
            self.host.answer_next()
        self.host.give(ShutdownStarted())
        self.wrong = {}


MOMENTS: Final[list[Callable[[Day], None]]] = [
    Day.nothing_going_on,
    Day.a_call_runs,
    Day.a_call_runs_that_is_no_tool,
    Day.a_task_is_being_written,
    Day.a_stream_looks_up,
    Day.requests_wait_for_the_store,
    Day.saves_wait_for_the_store,
    Day.a_sweep_is_under_way,
    Day.a_removal_is_under_way,
    Day.the_server_stops,
]


def the_rest_of_the_day(host: ServerHost) -> list[Any]:
    """Finish what is under way, look at everything, and return all that the engine said."""
    while host.asked:
        host.answer_next()
    host.held = False
    host.give(TimePassed())
    host.ask("tasks/get", {"taskId": TASK})
    host.ask("tools/list")
    host.advance(10_000_000)
    return [host.effects, host.deadline, host.store.records]


@pytest.mark.parametrize("last", range(len(MOMENTS)), ids=[moment.__name__ for moment in MOMENTS])
def test_every_input_in_every_wrong_moment_is_refused_and_changes_nothing(last: int) -> None:
    good, bad = Day(), Day()
    for moment in MOMENTS[: last + 1]:
        moment(good)
        moment(bad)
    mistakes = {**ALWAYS, **stray_answers(bad.host), **bad.wrong}
    for name, mistake in mistakes.items():
        with pytest.raises(LocalProtocolError):
            pytest.fail(f"{name} was taken: {bad.host.engine.handle(mistake, now=bad.host.now + 77)}")
    assert the_rest_of_the_day(bad.host) == the_rest_of_the_day(good.host)


def test_a_mistake_does_not_move_the_engines_time() -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError):
        host.engine.handle(Saved("?"), now=host.now + 10**9)
    assert working(host)["createdAt"].startswith("2023-11-14T22:13:20.000")


@pytest.mark.parametrize("name", call_facts(0))
def test_an_outcome_is_told_once(name: str) -> None:
    """A second outcome finds no exchange, as if the client had left: nothing comes of it."""
    host = make_host()
    exchange = call(host, capabilities=FORMS)
    host.give(CallReturned(exchange, DONE))
    assert host.give(call_facts(exchange)[name]) == []


def test_a_refusal_names_the_input_and_the_rule() -> None:
    host = make_host()
    stream = listen(host, toolsListChanged=True)
    for fact in call_facts(stream).values():
        assert refused(host, fact) == f"{type(fact).__name__}: no call is running in this exchange"
    assert "Save with a quota" in refused(host, SaveRefused("?", "tasks"))
    error = refused(host, WorkFailed(task_id=TASK, token=1, error=cast(Any, "x")))
    assert error == "WorkFailed: an error is an ErrorObject"
    data = refused(host, WorkFailed(task_id=TASK, token=1, error=ErrorObject(1, "x", NOT_JSON)))
    assert data == "WorkFailed: not JSON: a value of type set"
    message = refused(host, WorkProgressed(task_id=TASK, token=1, status_message=cast(Any, 5)))
    assert message == "WorkProgressed: status_message is a string"
    unnamed = WorkAskedInput(task_id=TASK, token=1, ask=cast(Any, 5), requests={"confirm": form()})
    assert refused(host, unnamed) == "WorkAskedInput: ask is a string"
    assert refused(host, SaveRefused("?", cast(Any, 5))) == "SaveRefused: limit is a string"


def test_a_save_without_a_quota_is_not_refused() -> None:
    """TTL.2: reports have no cap. A refused one would be accepted without being written."""
    host = make_host()
    working(host)
    host.held = True
    host.give(WorkCompleted(task_id=TASK, token="end", result=DONE))
    (save,) = host.asked
    refused(host, SaveRefused(save.token, "tasks"))
    host.answer_next()
    host.held = False
    assert view(host)["status"] == "completed"


def test_a_load_is_not_answered_as_if_it_were_a_save() -> None:
    host = make_host()
    parked(host)
    host.held = True
    host.send(request("tasks/get", {"taskId": TASK}))
    (load,) = host.asked
    assert isinstance(load, Load)
    for name in ("saved", "conflict", "save failed", "refused", "expired"):
        refused(host, STRAY[name](load.token))
    host.answer_next()
    host.held = False
    assert "result" in update(host, {})
