"""Clients of servers that misbehave, over real sockets on both loops: each has its outcome (REQ.3, LIM.3).

Nothing that a server does is an exception, or hangs a caller, or has a tool called twice.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from time import time
from typing import Any

import pytest
from mcp_tasks_adapters.client import (
    Completed,
    Expired,
    Failed,
    Fault,
    Limits,
    ObservationLost,
)

from tests.adapters.client_harness import (
    IMPATIENT,
    LOOPS,
    Reply,
    Script,
    ScriptedServer,
    against,
    done,
    handle,
    one_after_the_other,
    outcome_of_call,
    scripted,
    task,
    texts,
    then_close,
)


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# -- answers that are errors of HTTP -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        ("500 Oops", Fault.SERVER),
        ("503 Busy", Fault.SERVER),
        ("401 Who", Fault.CALLER),
        ("403 No", Fault.CALLER),
        ("404 Where", Fault.CALLER),
        ("413 Large", Fault.CALLER),
        ("307 There", Fault.CALLER),
        ("301 There", Fault.CALLER),
    ],
)
def test_a_status_without_a_message_fails_a_call(loop: str, status: str, fault: Fault) -> None:
    """And a redirect is not followed: its target may be anybody, and would get the credentials."""
    target = "Location: /elsewhere"
    server = scripted(tools_call=lambda reply: reply.http(b"<html>", target, status=status))
    outcome = outcome_of_call(loop, server, headers={"Authorization": "Bearer secret"})
    assert isinstance(outcome, Failed)
    assert (outcome.http_status, outcome.fault) == (int(status[:3]), fault)
    assert status[:3] in outcome.message
    assert server.count("tools/call") == 1


def test_an_error_keeps_its_status(loop: str) -> None:
    server = scripted(tools_call=lambda reply: reply.error(-32600, "not authorized", status="401 Who"))
    outcome = outcome_of_call(loop, server)
    assert (outcome.code, outcome.message, outcome.http_status) == (-32600, "not authorized", 401)


@pytest.mark.parametrize(
    "trouble",
    [
        lambda reply: reply.http(status="503 Busy"),
        lambda reply: reply.http(status="429 Slow down"),
        lambda reply: reply.http(b"x" * 200_000, status="500 Oops"),
        lambda reply: reply.error(-32603),
        lambda reply: reply.close(),
        lambda reply: reply.reset(),
        lambda reply: reply.raw(b"\x00\xff garbage \r\n\r\n"),
        lambda reply: reply.http(b"{nonsense", "Content-Type: application/json"),
        lambda reply: reply.http(b"<html>", "Content-Type: text/html"),
        lambda reply: reply.json([1, 2]),
        lambda reply: reply.json(task()),
        lambda reply: reply.json({"jsonrpc": "2.0", "id": 10_000, "result": task()}),
        lambda reply: reply.json({"jsonrpc": "2.0", "id": "1", "result": task()}),
        lambda reply: reply.result({"status": "working"}),
        lambda reply: reply.result({**task(), "taskId": "task-2"}),
        lambda reply: reply.result(task("on holiday")),
        lambda reply: reply.result({**task(), "resultType": "surprise"}),
        lambda reply: reply.http(status="204 Nothing"),
        lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").close(),
        lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"),
        lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"),
        lambda reply: reply.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
        lambda reply: reply.stream().close(),
        lambda reply: reply.stream().raw(b"data: {nonsense\n\n"),
        lambda reply: reply.stream().raw(b'data: {"jsonrpc": "2.0", "id": '),
    ],
)
def test_trouble_with_one_poll_is_not_the_end_of_the_task(loop: str, trouble: Script) -> None:
    """REQ.3, trap 18."""
    server = scripted(
        tools_call=handle,
        tasks_get=one_after_the_other(then_close(trouble), done),
    )
    outcome = outcome_of_call(loop, server)
    assert isinstance(outcome, Completed)
    assert texts(outcome.result) == ["done"]
    assert server.count("tasks/get") >= 2
    assert server.count("tools/call") == 1


@pytest.mark.parametrize(
    "wait", [lambda: "3600", lambda: formatdate(time() + 3700, usegmt=True)], ids=["seconds", "date"]
)
def test_retry_after_is_waited_for(loop: str, wait: Callable[[], str]) -> None:
    """REQ.2: in seconds, and as a date."""
    busy = one_after_the_other(
        lambda reply: reply.http(b"", f"Retry-After: {wait()}", status="429 Slow down"), done
    )
    server = scripted(tools_call=handle, tasks_get=busy)

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t")
        while (call.next_poll_ms or 0) < time() * 1000 + 3_000_000:
            await on.sleep(0.01)
        assert call.outcome is None
        assert server.count("tasks/get") == 1

    against(loop, server, scenario)


def test_nonsense_in_retry_after_is_nothing(loop: str) -> None:
    busy = one_after_the_other(
        *[
            lambda reply, wait=wait: reply.http(b"", f"Retry-After: {wait}", status="429 Slow down")
            for wait in ("soon", "-5", "9" * 5000, "Mon, 99 Foo 2026", "1e3")
        ],
        done,
    )
    server = scripted(tools_call=handle, tasks_get=busy)
    assert isinstance(outcome_of_call(loop, server), Completed)


def test_a_task_that_is_unknown_is_expired(loop: str) -> None:
    server = scripted(tools_call=handle, tasks_get=lambda reply: reply.error(-32602))
    assert isinstance(outcome_of_call(loop, server), Expired)


# -- calls that may have happened ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (lambda reply: reply.close(), "without an answer"),
        (lambda reply: reply.reset(), "without an answer"),
        (lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\nConte").close(), "in the middle"),
        (
            lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").close(),
            "in the middle",
        ),
        (lambda reply: reply.stream().close(), "ended without a response"),
        (lambda reply: reply.stream("Content-Length: 99").close(), "in the middle"),
        (lambda reply: reply.raw(b"SSH-2.0-nonsense\r\n\r\n").hang(), "not well-formed HTTP"),
        (lambda reply: reply.hang(), "in time"),
        (lambda reply: reply.stream().forever(b":\n\n"), "in time"),
        (
            lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\n").forever(b"X: y\r\n"),
            "in time|middle|HTTP",
        ),
        (lambda reply: reply.forever(b"HTTP/1.1 100 Continue\r\n\r\n"), "in time"),
        (lambda reply: reply.stream().raw(b"data: [\n\n"), "cannot be read"),
    ],
)
def test_a_call_whose_answer_is_lost_is_never_sent_again(loop: str, script: Script, says: str) -> None:
    """REQ.3: what became of it is not known, and the caller is told so."""
    server = scripted(tools_call=then_close(script))
    outcome = outcome_of_call(loop, server, requester_limits=IMPATIENT)
    assert isinstance(outcome, ObservationLost)
    assert any(part in outcome.reason for part in says.split("|")), outcome
    assert server.count("tools/call") == 1


@pytest.mark.parametrize(
    "script",
    [
        lambda reply: reply.http(b"x" * 100_000, "Content-Type: application/json"),
        lambda reply: reply.json(reply.message({"content": [{"type": "text", "text": "x" * 100_000}]})),
        lambda reply: reply.stream().raw(b"data: " + b"x" * 100_000),
        lambda reply: reply.stream().forever(b"data: " + b"x" * 5_000 + b"\n"),
        lambda reply: reply.stream().forever(b"x" * 10_000),
        lambda reply: reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").forever(
            b"x" * 10_000
        ),
    ],
)
def test_what_is_too_large_is_not_read(loop: str, script: Script) -> None:
    """LIM.3: bodies and events alike."""
    server = scripted(tools_call=script)
    outcome = outcome_of_call(loop, server, limits=Limits(message_bytes=50_000))
    assert isinstance(outcome, ObservationLost)
    assert "Limits.message_bytes" in outcome.reason


def test_what_is_too_deep_is_not_read(loop: str) -> None:
    server = scripted(
        tools_call=lambda reply: reply.stream().raw(b"data: " + b"[" * 100 + b"]" * 100 + b"\n\n")
    )
    assert "Limits.message_depth" in outcome_of_call(loop, server).reason


def last_tools(reply: Reply) -> None:
    """Answer tools/list, and close the connection: what comes next is on another."""
    reply.json(reply.message({"tools": []}), "Connection: close")


def test_a_server_that_does_not_read_is_given_up(loop: str) -> None:
    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t", {"large": "x" * 50_000_000})
        assert isinstance(call.outcome, ObservationLost)
        assert "does not read" in call.outcome.reason

    class Deaf(ScriptedServer):
        def _serve(self, connection: Any, number: int) -> None:
            if number == 1:
                super()._serve(connection, number)
            else:
                self._stopping.wait()
                connection.close()

    against(loop, Deaf({"tools/list": last_tools}), scenario, limits=Limits(write_timeout_ms=100))


def test_an_answer_that_comes_before_the_request_was_read_counts(loop: str) -> None:
    """A server may refuse a body by its head, and close."""

    class Hasty(ScriptedServer):
        def _serve(self, connection: Any, number: int) -> None:
            if number == 1:
                return super()._serve(connection, number)
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self._stopping.wait()
            connection.close()
            return None

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t", {"large": "x" * 20_000_000})
        assert call.outcome.http_status == 413

    against(loop, Hasty({"tools/list": last_tools}), scenario, limits=Limits(write_timeout_ms=200))
