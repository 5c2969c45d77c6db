"""A client's connections and headers, over real sockets on both loops (HTTP.2, HTTP.3, LIM.3)."""

from __future__ import annotations

import gc
import json
import threading
from socket import SO_KEEPALIVE, SOL_SOCKET, socket
from time import sleep
from typing import Any

import pytest
from mcp_tasks_adapters.client import (
    Completed,
    ConnectionLimits,
    Failed,
    Fault,
    NoResultError,
    ObservationLost,
)
from mcp_tasks_adapters.client.http import _Places

from tests.adapters.client_harness import (
    DONE,
    LOOPS,
    PATIENCE_SECONDS,
    QUICK,
    Reply,
    against,
    answers,
    failure,
    no_tools,
    one_after_the_other,
    run,
    scripted,
    task,
    texts,
)


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# -- connections ---------------------------------------------------------------------------------------------


def test_one_connection_serves_one_request_after_the_other(loop: str) -> None:
    server = scripted(tools_call=answers(DONE), server_discover=answers({"n": 1}))

    async def scenario(on: Any, client: Any) -> None:
        for _ in range(5):
            await client.call_tool("t")
            await client.discover()

    against(loop, server, scenario)
    assert {asked.connection for asked in server.asked} == {1}


def test_that_the_other_side_of_a_connection_is_gone_without_a_word_is_found_out(loop: str) -> None:
    """By the system, which probes it: on a stream that carries nothing for hours nothing else would."""
    server = scripted(server_discover=answers({}))

    async def scenario(_: Any, client: Any) -> None:
        await client.discover()
        (kept,) = (one for one in gc.get_objects() if isinstance(one, socket) and leads_to(one, server.port))
        assert kept.getsockopt(SOL_SOCKET, SO_KEEPALIVE)

    against(loop, server, scenario)


def leads_to(one: socket, port: int) -> bool:
    """Whether it is a connection to a server at this port."""
    try:
        return bool(one.getpeername()[1] == port)
    except (OSError, IndexError):
        return False


def test_connections_are_bounded_and_requests_wait_for_one(loop: str) -> None:
    server = scripted(server_discover=answers({}))

    async def scenario(on: Any, client: Any) -> None:
        finished = []

        async def ask() -> None:
            finished.append(await client.discover())

        for _ in range(20):
            on.spawn(ask)
        while len(finished) < 20:
            await on.sleep(0.01)

    against(loop, server, scenario, connection_limits=ConnectionLimits(connections=3))
    assert server.connections <= 3


def test_a_request_that_waits_for_a_connection_can_be_given_up(loop: str) -> None:
    server = scripted(
        tools_call=lambda reply: reply.hang(),
        server_discover=one_after_the_other(lambda reply: reply.hang(), answers({"second": True})),
    )

    async def scenario(on: Any, client: Any) -> None:
        first = on.spawn(client.discover)
        while server.count("server/discover") < 1:
            await on.sleep(0.01)
        second, _ = on.spawn(client.discover), on.spawn(client.discover)
        await on.sleep(0.01)
        second.cancel()
        await on.sleep(0.01)
        assert server.count("server/discover") == 1
        first.cancel()
        assert await client.discover()  # the third has its turn, and nobody's place is lost

    against(loop, server, scenario, connection_limits=ConnectionLimits(connections=1))


def test_few_idle_connections_are_kept(loop: str) -> None:
    started = threading.Barrier(8)

    def together(reply: Reply) -> None:
        started.wait(PATIENCE_SECONDS)
        reply.result({})

    server = scripted(server_discover=together)

    async def scenario(on: Any, client: Any) -> None:
        finished = []

        async def ask() -> None:
            finished.append(await client.discover())

        for _ in range(8):
            on.spawn(ask)
        while len(finished) < 8 or server.open > 2:
            await on.sleep(0.01)
        assert server.connections == 8

    # A client that has yet to find out its server's era sends one request ahead of all others.
    limits = ConnectionLimits(idle_connections=2)
    against(loop, server, scenario, connection_limits=limits, era="modern")


def test_a_place_that_was_given_to_a_request_as_it_was_cancelled_is_not_lost(loop: str) -> None:
    async def main(on: Any) -> None:
        async with on.connect("http://localhost/") as client:
            places = _Places(client._driver.loop, 1)
            await places.take()
            taken, waiting = [], on.event()

            async def take() -> None:
                waiting.set()
                await places.take()
                taken.append(True)

            job = on.spawn(take)
            await waiting.wait()
            await on.sleep(0.01)
            places.give_back()
            job.cancel()
            await on.sleep(0.01)
            if taken:  # it got through, which is as well
                places.give_back()
            await places.take()

    run(loop, main)


def test_what_is_answered_while_a_client_closes_is_not_kept(loop: str) -> None:
    closing = threading.Event()

    def late(reply: Reply) -> None:
        closing.wait(PATIENCE_SECONDS)
        reply.result({})

    server = scripted(server_discover=late)

    async def scenario(on: Any, client: Any) -> None:
        on.spawn(client.discover)
        while not server.asked:
            await on.sleep(0.01)
        await client._driver._transport.close()
        closing.set()
        while server.open:
            await on.sleep(0.01)

    against(loop, server, scenario)


def test_a_connection_that_died_while_it_was_kept_costs_nothing(loop: str) -> None:
    """Nothing was sent on it, so that even a call may go on another."""
    server = scripted(server_discover=lambda reply: reply.result({}).close(), tools_call=answers(DONE))

    async def scenario(on: Any, client: Any) -> None:
        await client.list_tools()
        for _ in range(3):
            await client.discover()
            await on.sleep(0.05)
            assert isinstance((await client.call_tool("t")).outcome, Completed)

    against(loop, server, scenario)
    assert server.count("tools/call") == 3


def test_that_it_died_is_seen_before_the_loop_has_told(loop: str) -> None:
    """A loop that was kept busy meanwhile runs the request before it looks at the socket."""
    server = scripted(
        server_discover=lambda reply: reply.result({}).close(), tools_call=answers(DONE), tools_list=no_tools
    )

    async def scenario(on: Any, client: Any) -> None:
        await client.list_tools()
        await client.discover()
        while server.open:
            sleep(0.01)
        assert isinstance((await client.call_tool("t")).outcome, Completed)

    against(loop, server, scenario)


def test_a_kept_connection_that_is_flooded_is_not_read_but_closed(loop: str) -> None:
    """LIM.3."""
    kept, cut_off = threading.Event(), threading.Event()

    def flood(reply: Reply) -> None:
        reply.result({})
        kept.wait(PATIENCE_SECONDS)
        try:
            for _ in range(1000):
                reply.raw(b"x" * 1_000_000)
        except ConnectionError:
            cut_off.set()
        reply.close()

    server = scripted(server_discover=flood)

    async def scenario(on: Any, client: Any) -> None:
        await client.discover()
        kept.set()
        while server.open:
            await on.sleep(0.01)
        assert cut_off.is_set()

    against(loop, server, scenario)


def test_what_nobody_asked_for_is_no_answer_to_the_next_request(loop: str) -> None:
    forged = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    server = scripted(server_discover=lambda reply: reply.result({}).raw(forged), tools_call=answers(DONE))

    async def scenario(on: Any, client: Any) -> None:
        await client.list_tools()
        await client.discover()
        await on.sleep(0.05)
        assert texts((await client.call_tool("t")).outcome.result) == ["done"]

    against(loop, server, scenario)


def test_a_kept_connection_that_closes_under_a_request(loop: str) -> None:
    """A request that does no harm twice is sent again on a new one, once; a call is not."""
    server = scripted(
        server_discover=one_after_the_other(lambda reply: reply.close(), answers({"n": 1})),
        tools_call=lambda reply: reply.close(),
    )

    async def scenario(on: Any, client: Any) -> None:
        await client.list_tools()
        assert (await client.discover())["n"] == 1
        assert server.count("server/discover") == 2
        await client.list_tools()
        call = await client.call_tool("t")
        assert isinstance(call.outcome, ObservationLost)

    against(loop, server, scenario)
    assert server.count("tools/call") == 1


def test_a_call_takes_no_connection_that_may_be_about_to_close(loop: str) -> None:
    server = scripted(tools_call=answers(DONE))
    now_ms = 10_000_000_000

    async def scenario(on: Any, client: Any) -> None:
        nonlocal now_ms
        await client.list_tools()
        now_ms += 5_000
        await client.call_tool("t")
        now_ms += 3_600_000
        await client.list_tools()

    async def main(on: Any) -> None:
        async with on.connect(server.url, requester_limits=QUICK) as client:
            client._driver.loop.now_ms = lambda: now_ms
            await scenario(on, client)

    with server:
        run(loop, main)
    assert [asked.connection for asked in server.asked] == [1, 2, 3]


def test_a_server_that_closes_after_each_answer_says_so(loop: str) -> None:
    server = scripted(server_discover=lambda reply: reply.json(reply.message({}), "Connection: close"))

    async def scenario(on: Any, client: Any) -> None:
        for _ in range(3):
            await client.discover()

    against(loop, server, scenario)
    assert [asked.connection for asked in server.asked] == [1, 2, 3]


def test_an_old_server_ends_its_body_with_the_connection(loop: str) -> None:
    def old(reply: Reply) -> None:
        head = b"HTTP/1.0 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n\r\n"
        reply.raw(head, json.dumps(reply.message({"n": 1})).encode())
        reply.close()

    async def scenario(on: Any, client: Any) -> None:
        assert (await client.discover())["n"] == 1

    against(loop, scripted(server_discover=old), scenario)


def test_chunks_and_early_hints(loop: str) -> None:
    def chunked(reply: Reply) -> None:
        body = json.dumps(reply.message({"n": "ü" * 100}), ensure_ascii=False).encode()
        reply.raw(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
        reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 7):
            part = body[at : at + 7]
            reply.raw(b"%x\r\n%s\r\n" % (len(part), part))
        reply.raw(b"0\r\nTrailer: yes\r\n\r\n")

    async def scenario(on: Any, client: Any) -> None:
        for _ in range(3):
            assert (await client.discover())["n"] == "ü" * 100

    server = scripted(server_discover=chunked)
    against(loop, server, scenario)
    assert server.connections == 1


def test_nobody_listens_there(loop: str) -> None:
    server = scripted()
    with server:
        url = server.url

    async def main(on: Any) -> None:
        async with on.connect(url) as client:
            outcome = (await client.call_tool("t")).outcome
            assert isinstance(outcome, Failed)
            assert outcome.fault is Fault.NETWORK
            assert "no connection" in outcome.message
        async with on.connect("http://no-such-host.invalid/mcp") as client:
            with pytest.raises(NoResultError, match="no connection") as caught:
                await client.discover()
            assert failure(caught.value.outcome).fault is Fault.NETWORK

    run(loop, main)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/mcp",
        "x/mcp",
        "http://",
        "http://u:p@x/mcp",
        "http://x/m cp",
        "http://x/\r\nHost: y",
        "http://x:99999/",
        "http://x/ü",
    ],
)
def test_what_is_no_url_of_an_endpoint(loop: str, url: str) -> None:
    async def main(on: Any) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - one of several
            async with on.connect(url):
                pass

    run(loop, main)


# -- headers -------------------------------------------------------------------------------------------------


def test_every_request_has_its_headers(loop: str) -> None:
    """HTTP.2, trap 11."""
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}},
    }
    server = scripted(
        tools_list=answers({"tools": [{"name": "wö", "inputSchema": schema}]}),
        tools_call=lambda reply: reply.result({**task(), "taskId": "id ü", "resultType": "task"}),
        tasks_get=lambda reply: reply.result({**task("completed", result=dict(DONE)), "taskId": "id ü"}),
    )

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("wö", {"region": "eu west", "n": 1})
        assert isinstance(await call.settle(), Completed)

    against(loop, server, scenario, listen=False)
    called, got = server.all("tools/call")[0], server.all("tasks/get")[0]
    for asked in (called, got):
        assert asked.headers["mcp-method"] == asked.method
        assert asked.headers["mcp-protocol-version"] == "2026-07-28"
        assert asked.headers["accept"] == "application/json, text/event-stream"
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["host"] == f"localhost:{server.port}"
    assert called.headers["mcp-name"] == "=?base64?d8O2?="
    assert called.headers["mcp-param-region"] == "eu west"
    assert got.headers["mcp-name"] == "=?base64?aWQgw7w=?="


@pytest.mark.parametrize("is_async", [False, True])
def test_headers_may_be_new_for_every_request(loop: str, is_async: bool) -> None:
    tokens = iter(range(10))
    server = scripted(server_discover=answers({}))

    def headers() -> Any:
        return {"Authorization": f"Bearer {next(tokens)}"}

    async def headers_later() -> Any:
        return headers()

    async def scenario(on: Any, client: Any) -> None:
        await client.discover()
        await client.discover()

    against(loop, server, scenario, headers=headers_later if is_async else headers)
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer 0", "Bearer 1"]
    assert server.asked[0].headers["user-agent"] == "mcp-tasks-proto"


def test_headers_may_be_fixed(loop: str) -> None:
    server = scripted(server_discover=answers({}))

    async def scenario(on: Any, client: Any) -> None:
        await client.discover()

    against(loop, server, scenario, headers={"user-agent": "me", "X-Tenant": "7"})
    assert (server.asked[0].headers["user-agent"], server.asked[0].headers["x-tenant"]) == ("me", "7")


def failing() -> Any:
    raise LookupError("no token")


@pytest.mark.parametrize(
    "headers",
    [
        failing,
        lambda: {"Mcp-Method": "tools/list"},
        lambda: {"Content-Length": "0"},
        lambda: {"X-Token": "line\r\nbreak"},
        lambda: {"X-Token": "ü"},
        lambda: {"X Token": "x"},
        lambda: {"X-Token": None},
        lambda: 7,
    ],
)
def test_headers_that_cannot_be_sent_are_the_callers_fault(loop: str, headers: Any) -> None:
    server = scripted()

    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError) as caught:
            await client.discover()
        assert failure(caught.value.outcome).fault is Fault.CALLER

    against(loop, server, scenario, headers=headers)
    assert not server.asked


def test_fixed_headers_are_checked_at_once(loop: str) -> None:
    async def main(on: Any) -> None:
        with pytest.raises(ValueError, match="Mcp-Name"):
            async with on.connect("http://x/mcp", headers={"Mcp-Name": "x"}):
                pass

    run(loop, main)


def test_an_argument_that_no_header_can_carry_is_the_callers_fault(loop: str) -> None:
    """HTTP.3."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    server = scripted(tools_list=answers({"tools": [{"name": "t", "inputSchema": schema}]}))

    async def scenario(on: Any, client: Any) -> None:
        outcome = (await client.call_tool("t", {"n": 2**60})).outcome
        assert isinstance(outcome, Failed)
        assert (outcome.fault, server.count("tools/call")) == (Fault.CALLER, 0)

    against(loop, server, scenario)
