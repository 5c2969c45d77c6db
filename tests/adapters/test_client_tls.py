"""Clients over TLS, through the standard library, on both loops.

``localhost.pem`` is for these tests alone: a key that everybody knows, and its certificate.
"""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp_tasks_adapters.client import Completed, ConnectionLimits, NoResultError

from tests.adapters.client_harness import (
    DONE,
    LOOPS,
    Reply,
    ScriptedServer,
    against,
    answers,
    done,
    handle,
    no_tools,
    outcome_of_call,
    scripted,
)

CERTIFICATE = Path(__file__).parent / "localhost.pem"


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def tls() -> ssl.SSLContext:
    """Return what the server needs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.fixture
def trust() -> ssl.SSLContext:
    """Return what a client needs to trust it."""
    return ssl.create_default_context(cafile=str(CERTIFICATE))


def test_calls_and_kept_connections(loop: str, tls: ssl.SSLContext, trust: ssl.SSLContext) -> None:
    server = scripted(tls, tools_call=answers(DONE), server_discover=answers({"text": "ü" * 100_000}))

    async def scenario(on: Any, client: Any) -> None:
        for _ in range(3):
            assert (await client.discover())["text"] == "ü" * 100_000
            call = await client.call_tool("t", {"large": "x" * 1_000_000})
            assert isinstance(call.outcome, Completed)

    against(loop, server, scenario, ssl_context=trust)
    assert server.connections == 1


def test_streams(loop: str, tls: ssl.SSLContext, trust: ssl.SSLContext) -> None:
    def streamed(reply: Reply) -> None:
        reply.stream().event(reply.message(DONE)).hang()

    server = scripted(tls, tools_call=streamed)
    assert isinstance(outcome_of_call(loop, server, ssl_context=trust), Completed)


@pytest.mark.parametrize("end", [Reply.close, Reply.reset])
def test_a_connection_that_breaks(loop: str, tls: ssl.SSLContext, trust: ssl.SSLContext, end: Any) -> None:
    polls: list[Reply] = []

    def poll(reply: Reply) -> None:
        polls.append(reply)
        if len(polls) < 3:
            end(reply)
        done(reply)

    server = scripted(tls, tools_call=handle, tasks_get=poll)
    assert isinstance(outcome_of_call(loop, server, ssl_context=trust), Completed)


def test_a_certificate_that_nobody_vouches_for(loop: str, tls: ssl.SSLContext) -> None:
    """The default is to check."""
    server = scripted(tls, server_discover=answers({}))

    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError, match="its certificate is not accepted"):
            await client.discover()

    against(loop, server, scenario)
    assert not server.asked


def test_a_server_without_tls(loop: str, trust: ssl.SSLContext) -> None:
    class Plain(ScriptedServer):
        @property
        def url(self) -> str:
            return super().url.replace("http:", "https:")

        def _serve(self, connection: Any, number: int) -> None:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            connection.close()

    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError, match="no connection"):
            await client.discover()

    against(loop, Plain({}), scenario, ssl_context=trust)


@pytest.mark.parametrize("secure", [False, True])
def test_a_server_that_does_not_shake_hands(loop: str, trust: ssl.SSLContext, secure: bool) -> None:
    """A connection that does not come to stand in time is none, and nothing was sent on it."""
    stop = threading.Event()

    class Silent(ScriptedServer):
        @property
        def url(self) -> str:
            return super().url.replace("http:", "https:" if secure else "http:")

        def _serve(self, connection: Any, number: int) -> None:
            if secure:
                stop.wait()
                connection.close()
            else:
                super()._serve(connection, number)

    async def scenario(on: Any, client: Any) -> None:
        if secure:
            with pytest.raises(NoResultError, match="too long"):
                await client.discover()
        else:
            await client.list_tools()  # what has nothing to shake is as quick as ever
        stop.set()

    limits = ConnectionLimits(connect_timeout_ms=100 if secure else 5000)
    against(loop, Silent({"tools/list": no_tools}), scenario, ssl_context=trust, connection_limits=limits)
