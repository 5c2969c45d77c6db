"""The trio server on memory streams and a clock that jumps: every time limit, to the millisecond (LIM.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import h11
import pytest
import trio
import trio.testing
from attrs import define
from mcp_tasks_adapters.toolkit import Limits, Server, ToolCall, text
from mcp_tasks_adapters.trio_h11 import HttpServer, open_driver

from mcp_tasks_proto.wire.http import EndpointPolicy
from tests.adapters.http_harness import call, message, post

LIMITS = Limits(
    idle_timeout_ms=60_000,
    header_timeout_ms=10_000,
    body_timeout_ms=20_000,
    write_timeout_ms=30_000,
    keep_alive_ms=15_000,
    shutdown_grace_ms=3_000,
)
Test = Callable[["World"], Awaitable[None]]


@define(eq=False)
class Caller:
    """The client's end of a memory stream, read with the client's half of h11."""

    stream: trio.StapledStream[Any, Any]
    _h11: h11.Connection

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def request(self, body: dict[str, Any]) -> None:
        """Post a message."""
        request = h11.Request(method="POST", target="/mcp", headers=[("host", "localhost")])
        self._h11.send(request)
        self._h11.send(h11.EndOfMessage())
        await self.stream.send_all(post(body))

    async def event(self) -> Any:
        """Return the next h11 event that is not about a body's framing."""
        while True:
            event = self._h11.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._h11.receive_data(bytes(await self.stream.receive_some(65536)))

    async def status(self) -> int:
        """Read a whole response; return its status."""
        response = await self.event()
        assert isinstance(response, h11.Response)
        while not isinstance(await self.event(), h11.EndOfMessage):
            pass
        if self._h11.their_state is h11.DONE and self._h11.our_state is h11.DONE:
            self._h11.start_next_cycle()
        return response.status_code

    async def rest(self) -> bytes:
        """Read everything up to the end."""
        rest = b""
        while data := await self.stream.receive_some(65536):
            rest += data
        return rest


@define(eq=False)
class World:
    """A server on memory streams."""

    http: HttpServer
    nursery: trio.Nursery
    cancelled: trio.Event
    closed: trio.Event

    async def connect(self) -> Caller:
        """Open a connection."""
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.http.serve_stream, theirs)
        return Caller(ours, h11.Connection(h11.CLIENT))

    async def close(self) -> None:
        """Close the server."""
        await self.http.close()
        self.closed.set()


def now_ms() -> int:
    return round(trio.current_time() * 1000)


@asynccontextmanager
async def world(limits: Limits) -> AsyncIterator[World]:
    cancelled = trio.Event()
    server = Server("virtual", limits=limits)

    @server.tool()
    async def wait(call: ToolCall) -> dict[str, Any]:
        try:
            await trio.sleep(call.arguments["seconds"])
        finally:
            cancelled.set()
        return text("waited")

    @server.tool()
    async def count(call: ToolCall) -> dict[str, Any]:
        await call.progress(1)
        return await wait(call)

    @server.tool()
    async def large(call: ToolCall) -> dict[str, Any]:
        return text("x" * 100_000)

    async with open_driver(server, None, now_ms) as driver, trio.open_nursery() as nursery:
        http = HttpServer(driver, policy=EndpointPolicy(), limits=limits, now_ms=now_ms)
        yield World(http, nursery, cancelled, trio.Event())
        nursery.cancel_scope.cancel()


def virtual_time(test: Test) -> Callable[[], None]:
    """Run a test in a world of its own, where time passes as soon as everybody waits for it."""

    def run() -> None:
        async def main() -> None:
            async with world(LIMITS) as here:
                await test(here)

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    run.__name__, run.__doc__ = getattr(test, "__name__", "run"), test.__doc__
    return run


async def elapsed(action: Awaitable[Any]) -> float:
    """Return how many seconds of virtual time an action takes."""
    start = trio.current_time()
    await action
    return round(trio.current_time() - start, 3)


def test_an_error_of_our_own_closes_the_connection_it_met_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """LIM.3: nobody else is disturbed, and somebody who can mend it hears of it."""

    async def main() -> None:
        async with world(LIMITS) as here:
            caller, other = await here.connect(), await here.connect()
            await other.request(call("wait", seconds=10))
            await trio.testing.wait_all_tasks_blocked()
            here.http._endpoint.policy = cast(EndpointPolicy, None)
            await caller.request(message("server/discover"))
            assert await caller.rest() == b""
            assert await other.status() == 200

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@virtual_time
async def test_an_idle_connection_is_closed(world: World) -> None:
    caller = await world.connect()
    assert await elapsed(caller.rest()) == 60


@virtual_time
async def test_a_used_connection_is_idle_from_its_last_answer_on(world: World) -> None:
    caller = await world.connect()
    for _ in range(3):
        await trio.sleep(59)
        await caller.request(message("server/discover"))
        assert await caller.status() == 200
    assert await elapsed(caller.rest()) == 60


@virtual_time
async def test_a_head_has_its_time_from_the_first_byte_on(world: World) -> None:
    caller = await world.connect()
    await trio.sleep(30)
    await caller.send(b"P")
    await trio.sleep(9)
    await caller.send(b"O")
    assert await elapsed(caller.event()) == 1


@virtual_time
async def test_a_body_has_its_time_from_the_head_on(world: World) -> None:
    caller = await world.connect()
    await caller.send(post(message("server/discover"))[:-10])
    await trio.sleep(19)
    await caller.send(b"x")
    assert await elapsed(caller.status()) == 1


@virtual_time
async def test_a_refused_client_is_let_go_after_two_seconds(world: World) -> None:
    """Until then it is listened to, so that one that writes first and reads later sees the answer."""
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all(b"nonsense\r\n\r\n")
    assert await elapsed(world.http.serve_stream(theirs)) == 2
    assert (await ours.receive_some()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


@virtual_time
async def test_a_tool_may_take_its_time(world: World) -> None:
    caller = await world.connect()
    await caller.request(call("wait", seconds=100_000))
    assert await elapsed(caller.status()) == 100_000


@virtual_time
async def test_a_client_that_leaves_is_noticed_at_once(world: World) -> None:
    caller = await world.connect()
    await caller.request(call("wait", seconds=100_000))
    await trio.testing.wait_all_tasks_blocked()
    await caller.stream.aclose()
    assert await elapsed(world.cancelled.wait()) == 0


@virtual_time
async def test_a_silent_stream_gets_a_comment_every_fifteen_seconds(world: World) -> None:
    caller = await world.connect()
    await caller.request(message("subscriptions/listen", {"notifications": {}}))
    assert (await caller.event()).status_code == 200
    acknowledgement = await caller.event()
    assert b"acknowledged" in acknowledgement.data
    for _ in range(4):
        start = trio.current_time()
        assert (await caller.event()).data == b":\n\n"
        assert round(trio.current_time() - start, 3) == 15


@virtual_time
async def test_a_shutdown_waits_for_what_is_under_way(world: World) -> None:
    caller = await world.connect()
    await caller.request(call("wait", seconds=2))
    await trio.testing.wait_all_tasks_blocked()
    assert await elapsed(world.close()) == 2
    assert await caller.status() == 200


@virtual_time
async def test_a_shutdown_waits_no_longer_than_its_grace(world: World) -> None:
    caller = await world.connect()
    await caller.request(call("wait", seconds=100_000))
    await trio.testing.wait_all_tasks_blocked()
    assert await elapsed(world.close()) == 3
    assert world.cancelled.is_set()
    assert isinstance(await caller.event(), h11.Response)
    assert b'"shutting_down"' in (await caller.event()).data


@virtual_time
async def test_a_peer_that_takes_no_last_words_is_left(world: World) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    world.nursery.start_soon(world.http.serve_stream, theirs)
    await ours.send_all(post(call("wait", seconds=100_000)))
    await trio.testing.wait_all_tasks_blocked()
    assert await elapsed(world.close()) == 3.5


@virtual_time
async def test_a_shutdown_ends_streams_and_idle_connections_at_once(world: World) -> None:
    idle, listener = await world.connect(), await world.connect()
    await listener.request(message("subscriptions/listen", {"notifications": {}}, id="s"))
    await listener.event()
    await listener.event()
    assert await elapsed(world.close()) == 0
    last = await listener.event()
    assert b'"id":"s"' in last.data
    assert isinstance(await listener.event(), h11.EndOfMessage)
    assert await idle.rest() == b""


@virtual_time
async def test_a_stream_that_comes_after_the_shutdown_is_closed(world: World) -> None:
    await world.close()
    caller = await world.connect()
    assert (await caller.event()).status_code == 503


@virtual_time
async def test_a_peer_that_takes_nothing_is_dropped(world: World) -> None:
    """On a stream without any buffer, so that nothing can be written before it is read."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    world.nursery.start_soon(ours.send_all, post(call("large")))
    assert await elapsed(world.http.serve_stream(theirs)) == 30


@virtual_time
async def test_a_peer_that_takes_no_notifications_loses_its_request(world: World) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    world.nursery.start_soon(ours.send_all, post(call("count", seconds=100_000)))
    assert await elapsed(world.http.serve_stream(theirs)) == 30
    assert world.cancelled.is_set()
