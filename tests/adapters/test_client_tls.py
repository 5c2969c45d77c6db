"""Clients over TLS, through the standard library, on both loops.

``localhost.pem`` is for these tests alone: a key that everybody knows, and its certificate.
"""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mcp_tasks_adapters.cli.commands import mcp_tasks
from mcp_tasks_adapters.cli.proxy import make_config
from mcp_tasks_adapters.client import Completed, ConnectionLimits, NoResultError
from mcp_tasks_adapters.trust import trusting

from mcp_tasks_proto.vocabulary import MODERN_VERSION
from mcp_tasks_proto.wire.jsonrpc import encode
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
    run,
    scripted,
)
from tests.adapters.proxy_harness import connecting, proxying

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


def test_records_that_come_together(loop: str, tls: ssl.SSLContext, trust: ssl.SSLContext) -> None:
    """However many small ones the server makes of its answer, nothing of it gets lost."""
    text = "".join(f"{number:04}" for number in range(2_000))

    def in_small_records(reply: Reply) -> None:
        body = encode(reply.message({"text": text}))
        parts = [body[start : start + 7] for start in range(0, len(body), 7)]
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        reply.raw(head % len(body), *parts)

    async def scenario(on: Any, client: Any) -> None:
        assert (await client.discover())["text"] == text

    against(loop, scripted(tls, server_discover=in_small_records), scenario, ssl_context=trust)


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


@pytest.mark.parametrize(("options", "code"), [(["--ca-file", str(CERTIFICATE)], 0), ([], 4)])
def test_the_command_line_names_who_is_trusted(
    loop: str, tls: ssl.SSLContext, options: list[str], code: int
) -> None:
    listed = {"tools": [{"name": "render", "inputSchema": {"type": "object"}}]}
    with scripted(tls, tools_list=answers(listed)) as server:
        words = ["tools", server.url, "--era", "modern", "--loop", loop, *options]
        ended = CliRunner().invoke(mcp_tasks, words)
    assert ended.exit_code == code
    assert ("render" in ended.stdout) is (code == 0)
    assert ("--ca-file FILE" in ended.stderr) is (code != 0)


def test_prx15_a_proxy_trusts_whom_it_is_told_to(loop: str, tls: ssl.SSLContext) -> None:
    listed = {"tools": [{"name": "render", "inputSchema": {"type": "object"}}]}
    found = {"supportedVersions": [MODERN_VERSION], "capabilities": {"tools": {}}}
    with scripted(tls, server_discover=answers(found), tools_list=answers(listed)) as server:

        async def go(on: Any) -> None:
            config = make_config([server.url], ca_file=str(CERTIFICATE))
            async with proxying(on, config.proxy()) as url, connecting(on, url) as client:
                assert [tool["name"] for tool in await client.list_tools()] == ["render"]

        run(loop, go)


def test_the_same_certificates_are_the_same_trust(tmp_path: Path) -> None:
    """So a configuration that is read anew changes nothing where nothing has changed."""
    (tmp_path / "copy.pem").write_text(f"# Überprüft\n{CERTIFICATE.read_text()}", encoding="utf-8")
    assert trusting(CERTIFICATE) is trusting(str(CERTIFICATE))
    assert trusting(tmp_path / "copy.pem").get_ca_certs() == trusting(CERTIFICATE).get_ca_certs() != []
