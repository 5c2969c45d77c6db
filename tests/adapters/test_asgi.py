"""The ASGI application: under uvicorn, and spoken to directly where a server would hide what it does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from attrs import define, field
from mcp_tasks_adapters.asgi import AsgiApp, asgi_app
from mcp_tasks_adapters.toolkit import Limits, Server, ToolCall, text

from tests.adapters.http_harness import (
    PATIENCE_SECONDS,
    Client,
    Tools,
    call,
    mcp_headers,
    message,
    passes,
    post,
    raw,
)

# -- under uvicorn ---------------------------------------------------------------------------------------


@define(eq=False)
class Hosted:
    """An application under uvicorn, on a thread."""

    tools: Tools
    port: int
    loop: asyncio.AbstractEventLoop

    def connect(self) -> Client:
        """Connect to it."""
        return Client(self.port)

    def release(self) -> None:
        """Let the tools that wait go on."""
        self.loop.call_soon_threadsafe(self.tools.release)


@pytest.fixture(scope="module")
def hosted() -> Iterator[Hosted]:
    tools = Tools(loop="asyncio", limits=Limits(message_bytes=64 * 1024))
    loops: list[asyncio.AbstractEventLoop] = []
    started = threading.Event()
    server: uvicorn.Server | None = None

    async def serve() -> None:
        nonlocal server
        app = asgi_app(tools.server(), path="/rpc")
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
        loops.append(asyncio.get_running_loop())
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        started.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    assert server is not None
    yield Hosted(tools, server.servers[0].sockets[0].getsockname()[1], loops[0])
    server.should_exit = True
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


@pytest.fixture
def client(hosted: Hosted) -> Iterator[Client]:
    with hosted.connect() as client:
        yield client


def to_rpc(body: dict[str, Any]) -> bytes:
    return post(body).replace(b"POST /mcp", b"POST /rpc", 1)


def test_requests_on_one_connection(client: Client) -> None:
    for number in range(3):
        client.send(to_rpc(call("echo", text="x", id=number)))
        response = client.response()
        assert (response.status, response.json["id"]) == (200, number)


def test_a_stream(client: Client) -> None:
    client.send(to_rpc(call("count", to=3)))
    response = client.response()
    assert response.headers["x-accel-buffering"] == "no"
    *progress, last = response.events
    assert progress[0]["method"] == "notifications/progress"
    assert last["result"]["content"][0]["text"] == "counted"


def test_a_task_and_who_listens_to_it(hosted: Hosted, client: Client) -> None:
    client.send(to_rpc(call("work")))
    task_id = client.response().json["result"]["taskId"]
    assert passes(hosted.tools.started)
    with hosted.connect() as listener:
        filters = {"notifications": {"taskIds": [task_id]}}
        listener.send(to_rpc(message("subscriptions/listen", filters, id="s")))
        assert listener.head()[0] == 200
        assert listener.event()["method"] == "notifications/subscriptions/acknowledged"
        assert listener.event()["params"]["status"] == "working"
        hosted.release()
        assert listener.event()["params"]["status"] == "completed"


def test_a_notification(client: Client) -> None:
    client.send(to_rpc({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
    response = client.response()
    assert (response.status, response.body) == (202, b"")


def test_refusals(client: Client) -> None:
    client.send(raw(b"", [("Host", "localhost")], method="GET", target="/rpc"))
    assert (response := client.response()).status == 405
    assert response.headers["allow"] == "POST"
    client.send(raw(b"", [("Host", "evil.example")], target="/rpc"))
    assert client.response().status == 403
    client.send(raw(b"", [("Host", "localhost")], target="/other"))
    assert client.response().status == 404


@pytest.mark.parametrize("length", [True, False])
def test_a_body_over_the_limit(client: Client, length: bool) -> None:
    body = b" " * (64 * 1024 + 1)
    framing = ("Content-Length", str(len(body))) if length else ("Transfer-Encoding", "chunked")
    data = body if length else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    client.send(raw(data, [*mcp_headers(call("echo")), framing], target="/rpc"))
    response = client.response()
    assert response.status == 413
    assert response.json["error"]["data"] == {"reason": "message_bytes"}


@pytest.mark.parametrize("tool", [call("wait"), call("count", to=1, wait=True)])
def test_a_client_that_goes_away_cancels_its_request(hosted: Hosted, tool: dict[str, Any]) -> None:
    """CAN.7."""
    with hosted.connect() as client:
        client.send(to_rpc(tool))
        assert passes(hosted.tools.started)
    assert passes(hosted.tools.cancelled)


# -- spoken to directly ----------------------------------------------------------------------------------

Event = dict[str, Any]


@define(eq=False)
class Exchange:
    """One request as an ASGI server would make it: events in, events out."""

    app: AsgiApp
    scope: Event
    to_app: asyncio.Queue[Event] = field(factory=asyncio.Queue)
    from_app: asyncio.Queue[Event] = field(factory=asyncio.Queue)
    failure: BaseException | None = None
    task: asyncio.Task[None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.task = asyncio.ensure_future(self.app(self.scope, self.to_app.get, self._send))

    async def _send(self, event: Any) -> None:
        if self.failure is not None:
            raise self.failure
        await self.from_app.put(event)

    def body(self, data: bytes, *, more: bool = False) -> None:
        """Hand in a piece of the body."""
        self.to_app.put_nowait({"type": "http.request", "body": data, "more_body": more})

    def disconnect(self) -> None:
        """Say that the client is gone."""
        self.to_app.put_nowait({"type": "http.disconnect"})

    async def event(self) -> Event:
        """Return the application's next event."""
        return await asyncio.wait_for(self.from_app.get(), PATIENCE_SECONDS)

    async def end(self) -> None:
        """Wait until the application is done with the request."""
        await asyncio.wait_for(asyncio.shield(self.task), PATIENCE_SECONDS)


@define(eq=False)
class Host:
    """An application within its lifespan."""

    app: AsgiApp
    cancelled: asyncio.Event
    released: asyncio.Event

    def request(self, body: Any = None, **scope: Any) -> Exchange:
        """Begin a request; with a body, send all of it."""
        headers = [(name.lower().encode(), value.encode()) for name, value in mcp_headers(body or {})]
        usual = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "client": None}
        exchange = Exchange(self.app, {**usual, **scope})
        if body is not None:
            exchange.body(json.dumps(body).encode())
        return exchange


@asynccontextmanager
async def host(limits: Limits | None = None) -> AsyncIterator[Host]:
    server = Server("direct", limits=limits)
    cancelled, released = asyncio.Event(), asyncio.Event()

    @server.tool()
    async def wait(call: ToolCall) -> Any:
        try:
            if call.arguments.get("progress"):
                await call.progress(1)
            await released.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return text("waited")

    app = asgi_app(server)
    lifespan = Exchange(app, {"type": "lifespan"})
    lifespan.to_app.put_nowait({"type": "lifespan.startup"})
    assert await lifespan.event() == {"type": "lifespan.startup.complete"}
    yield Host(app, cancelled, released)
    lifespan.to_app.put_nowait({"type": "lifespan.shutdown"})
    assert await lifespan.event() == {"type": "lifespan.shutdown.complete"}
    await lifespan.end()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def direct(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run an async test on asyncio."""

    def run() -> None:
        async def main() -> None:
            await test()

        asyncio.run(main())

    run.__name__, run.__doc__ = getattr(test, "__name__", "run"), test.__doc__
    return run


def with_progress() -> dict[str, Any]:
    params = {"name": "wait", "arguments": {"progress": True}, "_meta": {"progressToken": "p"}}
    return message("tools/call", params)


@direct
async def test_a_request_outside_of_the_lifespan_is_an_error_of_the_host() -> None:
    app = asgi_app(Server("direct"))
    with pytest.raises(RuntimeError, match="lifespan"):
        await Exchange(app, {"type": "http"}).end()


@direct
async def test_a_websocket_is_not_served() -> None:
    async with host() as here:
        with pytest.raises(ValueError, match="websocket"):
            await Exchange(here.app, {"type": "websocket"}).end()


@direct
async def test_below_a_root_path() -> None:
    async with host() as here:
        for path in ("/app/mcp", "/mcp"):
            exchange = here.request(message("server/discover"), path=path, root_path="/app")
            assert (await exchange.event())["status"] == 200
            assert (await exchange.event())["more_body"] is False
            await exchange.end()


@direct
async def test_a_body_in_pieces() -> None:
    async with host() as here:
        body = message("server/discover")
        exchange = here.request(headers=here.request(body).scope["headers"])
        for byte in json.dumps(body).encode():
            exchange.body(bytes([byte]), more=True)
        exchange.to_app.put_nowait({"type": "http.request"})
        assert (await exchange.event())["status"] == 200
        await exchange.end()
        await asyncio.sleep(0)


@direct
async def test_a_client_that_leaves_before_its_request_is_complete() -> None:
    async with host() as here:
        exchange = here.request()
        exchange.body(b"{", more=True)
        exchange.disconnect()
        await exchange.end()
        assert exchange.from_app.empty()


@direct
async def test_a_body_that_does_not_come_to_its_end() -> None:
    """LIM.3."""
    async with host(Limits(body_timeout_ms=20)) as here:
        exchange = here.request()
        exchange.body(b"{", more=True)
        assert (await exchange.event())["status"] == 408
        assert json.loads((await exchange.event())["body"])["error"]["data"] == {"reason": "body_timeout_ms"}
        await exchange.end()


@direct
async def test_lim3_what_has_come_of_all_requests_is_bounded() -> None:
    async with host(Limits(arriving_bytes=1500)) as here:
        slow, other = here.request(), here.request()
        slow.body(b" " * 1000, more=True)
        await asyncio.sleep(0)
        other.body(b" " * 1000, more=True)
        assert (await other.event())["status"] == 503
        assert json.loads((await other.event())["body"])["error"]["data"] == {"reason": "arriving_bytes"}
        await other.end()
        slow.disconnect()
        await slow.end()
        third = here.request()
        third.body(b" " * 1400, more=True)
        third.body(b"{")
        assert (await third.event())["status"] == 400
        await third.event()
        await third.end()


@direct
async def test_a_client_that_leaves_while_its_tool_runs() -> None:
    """CAN.7."""
    async with host() as here:
        for body in (call("wait"), with_progress()):
            here.cancelled.clear()
            exchange = here.request(body)
            await asyncio.sleep(0.01)
            exchange.disconnect()
            await exchange.end()
            await asyncio.wait_for(here.cancelled.wait(), PATIENCE_SECONDS)


@direct
async def test_a_host_that_says_that_the_client_is_gone_when_asked_to_send() -> None:
    async with host() as here:
        exchange = here.request(with_progress())
        exchange.failure = OSError("gone")
        await exchange.end()
        await asyncio.wait_for(here.cancelled.wait(), PATIENCE_SECONDS)


@direct
async def test_a_host_that_cannot_be_rid_of_what_it_is_given() -> None:
    """LIM.3: a client that does not read."""
    async with host(Limits(write_timeout_ms=20)) as here:
        exchange = here.request(with_progress())
        exchange.from_app._maxsize = 1  # type: ignore[attr-defined]
        await exchange.end()
        await asyncio.wait_for(here.cancelled.wait(), PATIENCE_SECONDS)


@direct
async def test_a_host_that_gives_up_on_a_request() -> None:
    """As uvicorn does when its patience at shutdown ends."""
    async with host() as here:
        exchange = here.request(call("wait"))
        await asyncio.sleep(0.01)
        exchange.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await exchange.end()
        await asyncio.wait_for(here.cancelled.wait(), PATIENCE_SECONDS)


@direct
async def test_comments_on_a_silent_stream() -> None:
    """SUB.4."""
    async with host(Limits(keep_alive_ms=20)) as here:
        exchange = here.request(with_progress())
        assert (await exchange.event())["type"] == "http.response.start"
        assert (await exchange.event())["body"].startswith(b"data: ")
        for _ in range(3):
            assert (await exchange.event())["body"] == b":\n\n"
        here.released.set()
        last = await exchange.event()
        while last["body"] == b":\n\n":
            last = await exchange.event()
        assert b'"result"' in last["body"]
        assert last["more_body"] is False
        await exchange.end()
