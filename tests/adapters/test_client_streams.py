"""Event streams that end, or do not, before they should, on both loops (REQ.5, SUB)."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from attrs import evolve
from mcp_tasks_adapters.client import (
    Completed,
    ConnectionLimits,
    Limits,
)

from tests.adapters.client_harness import (
    DONE,
    IMPATIENT,
    LOOPS,
    QUICK,
    Reply,
    Script,
    against,
    answers,
    done,
    handle,
    one_after_the_other,
    outcome_of_call,
    scripted,
    task,
    then_close,
)


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def ack(reply: Reply) -> None:
    """Agree to a listen stream."""
    reply.stream()
    meta = {"io.modelcontextprotocol/subscriptionId": reply.asked.message["id"]}
    wanted = reply.asked.params["notifications"]
    reply.notify("notifications/subscriptions/acknowledged", _meta=meta, notifications=wanted)


def listening(*more: Script) -> Script:
    """Return a script for a listen stream that is agreed to."""

    def script(reply: Reply) -> None:
        ack(reply)
        for one in more:
            one(reply)

    return script


@pytest.mark.parametrize(
    "end",
    [
        lambda reply: reply.close(),
        lambda reply: reply.reset(),
        lambda reply: reply.event(reply.message({})).close(),
        lambda reply: reply.raw(b"data: {nonsense\n\n"),
        lambda reply: reply.raw(b"data: " + b"x" * 100_000),
        lambda reply: reply.notify(
            "notifications/tasks", **{**task("completed", result=DONE), "taskId": "other"}
        ).close(),
    ],
)
def test_a_listen_stream_that_ends_is_no_end_of_the_task(loop: str, end: Script) -> None:
    """REQ.5: polls go on, and know the rest."""
    streams = listening(then_close(end))
    server = scripted(tools_call=handle, subscriptions_listen=streams)

    def polled(reply: Reply) -> None:
        # Only after the stream has ended, so that it is the poll that tells.
        if server.count("subscriptions/listen") > 1:
            done(reply)
        else:
            reply.result(task())

    server.scripts["tasks/get"] = polled
    outcome = outcome_of_call(loop, server, limits=Limits(message_bytes=50_000))
    assert isinstance(outcome, Completed)


def test_news_on_a_stream_end_the_task(loop: str) -> None:
    completed = listening(
        lambda reply: reply.raw(b": comment\r\n\r\nid: 7\nevent: message\ndata:\n\nevent: ping\ndata: x\n\n"),
        lambda reply: reply.notify("notifications/tasks", **task("completed", result=dict(DONE))),
        lambda reply: reply.hang(),
    )
    server = scripted(tools_call=handle, subscriptions_listen=completed, tasks_get=answers(task()))
    assert isinstance(outcome_of_call(loop, server), Completed)


def test_completion_by_stream_and_by_poll_at_once_is_one_outcome(loop: str) -> None:
    """REQ.5, trap 19."""
    completed = listening(
        lambda reply: reply.notify("notifications/tasks", **task("completed", result=dict(DONE))),
        lambda reply: reply.notify(
            "notifications/tasks", **task("failed", error={"code": 1, "message": "x"})
        ),
        lambda reply: reply.hang(),
    )
    for _ in range(5):
        server = scripted(tools_call=handle, subscriptions_listen=completed, tasks_get=done)
        assert isinstance(outcome_of_call(loop, server), Completed)


@pytest.mark.parametrize(
    "stream",
    [
        lambda reply: reply.stream().forever(b":\n\n"),
        lambda reply: reply.stream().forever(b'data: {"jsonrpc": "2.0", "method": "x"}\n\n'),
        lambda reply: reply.hang(),
    ],
)
def test_an_endless_answer_to_a_poll_is_given_up(loop: str, stream: Script) -> None:
    server = scripted(tools_call=handle, tasks_get=one_after_the_other(stream, done))
    outcome = outcome_of_call(loop, server, requester_limits=IMPATIENT)
    assert isinstance(outcome, Completed)
    assert server.count("tasks/get") == 2


def test_an_answer_may_come_on_a_stream(loop: str) -> None:
    def streamed(reply: Reply) -> None:
        reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for text in (b"data:\n\n", b"data: " + json.dumps(reply.message({"n": 1})).encode() + b"\n\n"):
            reply.raw(b"%x\r\n%s\r\n" % (len(text), text))
        reply.raw(b"0\r\n\r\n")

    async def scenario(on: Any, client: Any) -> None:
        for _ in range(3):
            assert (await client.discover())["n"] == 1

    against(loop, scripted(server_discover=streamed), scenario)


def test_requests_of_a_server_are_not_answered(loop: str) -> None:
    """Servers must not send any; what follows counts all the same."""

    def asks(reply: Reply) -> None:
        reply.stream()
        reply.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        reply.event(reply.message({"n": 1}))
        reply.close()

    async def scenario(on: Any, client: Any) -> None:
        assert (await client.discover())["n"] == 1

    server = scripted(server_discover=asks)
    against(loop, server, scenario)
    assert server.connections == 1


@pytest.mark.parametrize("connections", [1, 2, 100])
def test_streams_leave_connections_for_everything_else(loop: str, connections: int) -> None:
    """LIM.3: tasks that come one by one do not take one connection each, for as long as they live."""
    numbers = count(1)
    most = [0]

    def hand_out(reply: Reply) -> None:
        reply.result({**task(taskId=f"task-{next(numbers)}", pollIntervalMs=1), "resultType": "task"})

    def listen(reply: Reply) -> None:
        most[0] = max(most[0], server.open)
        ack(reply)
        reply.hang()

    def poll(reply: Reply) -> None:
        state = "completed" if next(numbers) > 200 else "working"
        more = {"result": dict(DONE)} if state == "completed" else {}
        reply.result(task(state, taskId=reply.asked.params["taskId"], **more))

    server = scripted(tools_call=hand_out, tasks_get=poll)
    server.scripts["subscriptions/listen"] = listen

    async def scenario(on: Any, client: Any) -> None:
        calls = []
        for _ in range(110):
            calls.append(await client.call_tool("t"))
        for call in calls:
            assert isinstance(await call.settle(), Completed)

    options = {
        "connection_limits": ConnectionLimits(connections=connections),
        "requester_limits": evolve(QUICK, listening_poll_ms=50),
    }
    against(loop, server, scenario, **options)
    # Of those that the client has closed the server may not know yet.
    assert most[0] <= connections + 2
    assert (server.count("subscriptions/listen") == 0) is (connections == 1)
