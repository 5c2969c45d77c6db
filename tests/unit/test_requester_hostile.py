"""Servers that say anything at all: SEC.2, LIM.3 ("a peer cannot raise")."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto import Limits
from mcp_tasks_proto.requester import (
    Completed,
    Failed,
    NotificationReceived,
    ResponseReceived,
    SendRequest,
    Settle,
)
from mcp_tasks_proto.testing import RequesterHost
from tests.unit.requester_world import (
    ACCEPTED,
    ACKNOWLEDGED,
    HINT,
    START,
    TASK,
    TASKS,
    asking,
    asks,
    at_rest,
    completed,
    handle,
    make_host,
    outcome,
    parked,
    polled,
    task,
    working,
)

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    float("nan"),
    "",
    "\ud800",
    "x" * 10_000,
    [],
    [[]],
    {},
    {"a": {"b": [1, {"c": None}]}},
]
"""Every kind of JSON value, and what lenient parsers take for it; many are no key of a dictionary."""

DEPTH: Final = Limits().message_depth


def nested(depth: int) -> Any:
    """Return arrays in arrays."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def members(whole: Any) -> list[tuple[str, ...]]:
    """Return the way to every member of an object, those of objects in it included."""
    ways: list[tuple[str, ...]] = []
    for name, value in whole.items():
        ways.append((name,))
        if isinstance(value, dict):
            ways += [(name, *way) for way in members(value)]
    return ways


def spoiled(whole: Any, way: tuple[str, ...], value: Any) -> Any:
    """Return a copy with another value at one place."""
    first, *rest = way
    inner = spoiled(whole[first], tuple(rest), value) if rest else value
    return {**whole, first: inner}


def spoil(whole: Any) -> list[Any]:
    """Return every way to put something odd in place of one member."""
    return [spoiled(whole, way, odd) for way in members(whole) for odd in [*ODD, nested(DEPTH)]]


def live_on(host: RequesterHost) -> None:
    """Let time pass, every request broken: whatever was said before, nothing raises and the call ends."""
    while host.in_flight or host.deadline is not None:
        for number in list(host.in_flight):
            if number in host.in_flight:
                host.fail(number)
        if host.deadline is not None:
            host.advance(max(host.deadline - host.now, 0))
    assert [type(effect) for effect in host.effects].count(Settle) == len(host.outcomes)
    at_rest(host)


def result_of(request: int, result: Any) -> Any:
    return ResponseReceived(request=request, message={"jsonrpc": "2.0", "id": request, "result": result})


@pytest.mark.parametrize("tasks", [True, False])
def test_any_answer_to_a_call(tasks: bool) -> None:
    wholes = [
        {"jsonrpc": "2.0", "id": 1, "result": {**handle(ttlMs=60_000), "inputRequests": {}}},
        {"jsonrpc": "2.0", "id": 1, "result": asks("k", state="opaque")},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no", "data": {"supported": []}}},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32003, "message": "no", "data": {"requiredCapabilities": {}}},
        },
    ]
    for whole in wholes:
        for message in spoil(whole):
            host = make_host(tasks=tasks)
            host.call(deadline_ms=START + 60_000)
            host.give(ResponseReceived(request=1, message=message))
            live_on(host)


def test_any_answer_to_a_poll() -> None:
    for whole in (completed(at=1), asking("k", at=1), handle("failed", error={"code": 1, "message": "no"})):
        for result in spoil({**whole, "statusMessage": "x"}):
            host = make_host()
            host.call(deadline_ms=START + 60_000)
            host.reply("tools/call", handle())
            host.advance(HINT)
            host.give(result_of(host.number_of("tasks/get"), result))
            live_on(host)


def test_any_news_and_acknowledgement() -> None:
    agreed = {"notifications": {"taskIds": [TASK]}, "_meta": {}}
    for method, params in [
        (ACKNOWLEDGED, agreed),
        (TASKS, task("completed", at=1, result={})),
        (TASKS, {**asking("k", at=1), "_meta": {"io.modelcontextprotocol/subscriptionId": 2}}),
        ("notifications/cancelled", {"requestId": 2}),
    ]:
        for message in spoil({"jsonrpc": "2.0", "method": method, "params": params}):
            host = make_host(listen=True)
            host.call(deadline_ms=START + 60_000)
            host.reply("tools/call", handle())
            host.advance(20)
            if method == TASKS:
                host.notify(2, ACKNOWLEDGED, agreed)
            host.give(NotificationReceived(2, message))
            live_on(host)


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "resources/read"])
def test_any_answer_to_other_requests(method: str) -> None:
    tool = {"name": "x", "inputSchema": {"properties": {"a": {"x-mcp-header": "A", "type": "string"}}}}
    whole = {
        "tools": [tool],
        "supportedVersions": ["2026-07-28"],
        "nextCursor": "c",
        "ttlMs": 1,
        "resultType": "complete",
    }
    odd_tools = [{**whole, "tools": [odd]} for odd in spoil(tool)]
    for result in [*spoil(whole), *odd_tools]:
        host = make_host(mirror_arguments=True)
        call = host.ask(method)
        host.give(result_of(1, result))
        assert call in host.outcomes
        at_rest(host)
        host.ask(method)
        host.call("x", {"a": "b"}, deadline_ms=START + 60_000)
        live_on(host)


def test_any_answer_to_an_update_a_cancellation_and_a_listen_request() -> None:
    for message in spoil({"jsonrpc": "2.0", "id": 9, "result": {"resultType": "complete", "_meta": {}}}):
        for method in ("tasks/update", "tasks/cancel", "subscriptions/listen"):
            host = make_host(listen=method == "subscriptions/listen")
            call = parked(host, "k") if method != "subscriptions/listen" else working(host)
            if method == "tasks/update":
                host.answer(call, "k", ACCEPTED)
            elif method == "tasks/cancel":
                host.cancel(call, wait=True)
            else:
                host.advance(20)
            number = host.number_of(method)
            given = {**message, "id": number} if message.get("id") == 9 else message
            host.give(ResponseReceived(request=number, message=given))
            host.abandon(call)
            live_on(host)


@pytest.mark.parametrize(
    "kind", ["x" * 10_000, ["secret"], {"token": "secret"}], ids=lambda kind: str(kind)[:20]
)
def test_sec2_what_a_server_may_not_say_is_not_repeated(kind: Any) -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", {"resultType": kind})
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert "secret" not in found.message
    assert len(found.message) < 200


@pytest.mark.parametrize(
    "task_id", ["", " ", "a\nb", "tâche", "\ud800", "x" * 100_000], ids=lambda one: one[:9]
)
def test_life6_any_string_is_a_tasks_id(task_id: str) -> None:
    host = make_host()
    call = working(host, task_id=task_id)
    host.advance(HINT)
    assert host.params_of("tasks/get")["taskId"] == task_id
    host.reply("tasks/get", completed(at=1, task_id=task_id))
    assert isinstance(outcome(host, call), Completed)


def test_lim3_a_stream_of_nonsense_makes_the_requester_send_nothing() -> None:
    host = make_host(listen=True)
    working(host)
    host.advance(20)
    host.notify(2, ACKNOWLEDGED, {"notifications": {"taskIds": [TASK]}})
    before = len(host.of(SendRequest))
    for number in range(500):
        host.notify(2, ACKNOWLEDGED, {"notifications": {"taskIds": [TASK] * 50}})
        host.notify(2, TASKS, task(at=number % 60, pollIntervalMs=number % 7 - 3))
    assert len(host.of(SendRequest)) == before
    polled(host, completed(at=59))
    at_rest(host)
