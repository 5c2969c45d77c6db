"""A server or a proxy as an ASGI application, for uvicorn, hypercorn and their like.

That is how TLS, HTTP/2 and many processes are had::

    app = asgi_app(server, store=store)     # uvicorn my_module:app --timeout-graceful-shutdown 3

The application runs on asyncio and needs the server's lifespan protocol, which is on by default; on trio use
:mod:`mcp_tasks_adapters.trio_h11`. How many connections there may be, and how slow their heads, is for the
server to bound; the rest of ``Limits`` holds here as well. Each process has its own tasks unless ``store`` is
one they share.

Servers do not tell an application that they are about to stop while requests are open. So listen streams are
not ended with a result then (SUB.4) but cut off, when the server's patience ends; set a timeout for that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from mcp_tasks_adapters.asyncio_h11.loop import open_driver
from mcp_tasks_adapters.asyncio_h11.proxy import open_proxy
from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_adapters.driver import Service, Store
from mcp_tasks_adapters.http_endpoint import (
    Headers,
    HttpEndpoint,
    endpoint_policy,
    over_limit,
    response_parts,
)
from mcp_tasks_adapters.proxy import Proxy, ProxyStore
from mcp_tasks_adapters.toolkit import Server
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import STREAM_HEADERS, EndpointPolicy, Refusal
from mcp_tasks_proto.wire.jsonrpc import encode, error_message, message_too_large
from mcp_tasks_proto.wire.pages import PageHead
from mcp_tasks_proto.wire.sse import KEEP_ALIVE, encode_event

__all__ = ["AsgiApp", "asgi_app", "asgi_proxy_app"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def asgi_app(
    server: Server,
    *,
    path: str = "/mcp",
    store: Store | None = None,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
) -> AsgiApp:
    """Return an ASGI application that serves ``server`` at ``path``, below the application's root path.

    Without a ``store``, tasks are kept in memory. ``Host`` and ``Origin`` headers must name this machine
    (``localhost`` or a loopback address) or one of ``allowed_hosts`` and ``allowed_origins`` (HTTP.1), where
    ``example.com:*`` stands for every port, and ``*`` for everything.
    """
    policy = endpoint_policy(path, allowed_hosts, allowed_origins, sessions=server.serves_sessions)
    return AsgiApp(lambda: open_driver(server, store), policy=policy, limits=server.limits)


def asgi_proxy_app(
    proxy: Proxy,
    *,
    path: str = "/mcp",
    store: ProxyStore | None = None,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
) -> AsgiApp:
    """Return an ASGI application that runs ``proxy`` at ``path``, below the application's root path.

    All else is as with :func:`asgi_app`. A proxy's file is open in one process at a time.
    """
    policy = endpoint_policy(path, allowed_hosts, allowed_origins, sessions=True)
    return AsgiApp(lambda: open_proxy(proxy, store), policy=policy, limits=proxy.limits)


class AsgiApp:
    """An ASGI 3 application; made by :func:`asgi_app` or :func:`asgi_proxy_app`."""

    def __init__(
        self,
        opening: Callable[[], AbstractAsyncContextManager[Service]],
        *,
        policy: EndpointPolicy,
        limits: Limits,
    ) -> None:
        self._opening = opening
        self._policy = policy
        self._limits = limits
        self._endpoint: HttpEndpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one scope. Raises ``RuntimeError`` for a request outside of the application's lifespan."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http" if self._endpoint is not None:
                await _respond(self._endpoint, scope, receive, send)
            case "http":
                raise RuntimeError("the ASGI server must run the lifespan protocol; tasks live in it")
            case kind:
                raise ValueError(f"there is nothing here for a {kind} connection")

    async def _live(self, receive: Receive, send: Send) -> None:
        """Run the driver from the start of the server to its end."""
        await receive()
        async with self._opening() as driver:
            self._endpoint = HttpEndpoint(
                driver=driver, policy=self._policy, limits=self._limits, now_ms=unix_ms
            )
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self._endpoint = None
            driver.shutdown()
        await send({"type": "lifespan.shutdown.complete"})


async def _respond(endpoint: HttpEndpoint, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request."""
    response = _Response(endpoint, send)
    head = endpoint.check(scope["method"], _target(endpoint, scope), scope["headers"])
    if isinstance(head, Refusal):
        await response.refuse(head)
        return
    body = await _read_body(receive, endpoint)
    if isinstance(body, Refusal):
        await response.refuse(body)
    elif body is not None:
        client = scope.get("client")
        await response.converse(receive, head, body, client[0] if client else None)


def _target(endpoint: HttpEndpoint, scope: Scope) -> str:
    """Return the target of a request, as HTTP/1.1 has it where more is looked at than one path."""
    root: str = scope.get("root_path", "")
    path: str = scope["path"].removeprefix(root)
    pages = endpoint.driver.pages
    if pages is None or not path.startswith(pages.prefix):
        return path
    raw: bytes | None = scope.get("raw_path")  # which servers need not give
    escaped = quote(path) if raw is None else raw.decode("latin-1").removeprefix(quote(root))
    return f"{escaped}?{scope['query_string'].decode('latin-1')}"


async def _read_body(receive: Receive, endpoint: HttpEndpoint) -> bytes | Refusal | None:
    """Return the body, why it is not read, or ``None`` when the client went away."""
    limits, body = endpoint.limits, bytearray()
    try:
        async with asyncio.timeout(limits.body_timeout_ms / 1000):
            more_body = True
            while more_body:
                event = await receive()
                if event["type"] == "http.disconnect":
                    return None
                data = event.get("body", b"")
                body += data
                full = endpoint.arrived(len(data))
                if len(body) > limits.message_bytes:
                    too_large = message_too_large(limits).error
                    return Refusal(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error=too_large)
                more_body = event.get("more_body", False)
                if more_body and full is not None:
                    return Refusal(status=HTTPStatus.SERVICE_UNAVAILABLE, error=full)
    except TimeoutError:
        return Refusal(status=HTTPStatus.REQUEST_TIMEOUT, error=over_limit("body_timeout_ms"))
    finally:
        endpoint.arrived(-len(body))
    return bytes(body)


class _Response:
    """The way back for one request: a channel for the driver, and what carries it to the ASGI server."""

    def __init__(self, endpoint: HttpEndpoint, send: Send) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self._send = send
        self._events: deque[tuple[dict[str, Any] | None, str | None]] = deque()
        self._last: tuple[dict[str, Any] | None, int, Headers, str | None] | None = None
        self._news = asyncio.Event()
        self._streaming = False
        self._gone = False

    # -- the driver's side ---------------------------------------------------------------------------------

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        """Send the last message."""
        self._last = message, http_status, tuple(headers), event_id
        self._news.set()

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """Send a message on the way; the first one makes the response a stream."""
        self._events.append((message, event_id))
        self._news.set()

    def open(self) -> None:
        """Make the response a stream now."""
        self._events.append((None, None))
        self._news.set()

    # -- the server's side ---------------------------------------------------------------------------------

    async def converse(
        self, receive: Receive, head: HttpHead | PageHead, body: bytes, peer: str | None
    ) -> None:
        """Hand in the request and see its answer through."""
        exchange = self._endpoint.receive(head, body, self, peer)
        try:
            if self._last is not None:
                await self._carry(exchange)
                return
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._watch(receive))
                await self._carry(exchange)
                watcher.cancel()
        finally:
            if exchange is not None:
                self._endpoint.driver.closed(exchange)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer without the driver."""
        message = None if refusal.error is None else error_message(None, refusal.error)
        self.reply(message, refusal.status, refusal.headers)
        await self._finish()

    async def _watch(self, receive: Receive) -> None:
        """Notice that the client goes away, which cancels its request (CAN.7)."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._news.set()

    async def _carry(self, exchange: int | None) -> None:
        """Send what comes, until the last message has left or the client is gone."""
        while True:
            while self._events:
                await self._write_event(*self._events.popleft())
            if self._last is not None:
                await self._finish()
            if self._last is not None or self._gone:
                return
            self._news.clear()
            if self._streaming and exchange is not None:
                self._endpoint.driver.ready(exchange)
            await self._wait()

    async def _wait(self) -> None:
        """Wait for news, sending comments meanwhile on a stream."""
        silence = self._limits.keep_alive_ms / 1000 if self._streaming else None
        while not self._news.is_set() and not self._gone:
            try:
                async with asyncio.timeout(silence):
                    await self._news.wait()
            except TimeoutError:
                await self._write(KEEP_ALIVE)

    async def _write_event(self, message: dict[str, Any] | None, event_id: str | None) -> None:
        if not self._streaming:
            self._streaming = True
            await self._start(HTTPStatus.OK, STREAM_HEADERS)
        await self._write(b"" if message is None else encode_event(encode(message), event_id))

    async def _finish(self) -> None:
        assert self._last is not None
        message, status, more, event_id = self._last
        if self._streaming:
            event = b"" if message is None else encode_event(encode(message), event_id)
            await self._write(event, more_body=False)
            return
        headers, body = response_parts(message, more)
        await self._start(status, (*headers, ("content-length", str(len(body)))))
        await self._write(body, more_body=False)

    async def _start(self, status: int, headers: Headers) -> None:
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._pass_on({"type": "http.response.start", "status": int(status), "headers": fields})

    async def _write(self, data: bytes, *, more_body: bool = True) -> None:
        await self._pass_on({"type": "http.response.body", "body": data, "more_body": more_body})

    async def _pass_on(self, event: MutableMapping[str, Any]) -> None:
        """Give the server an event; one that cannot be rid of it in time has lost its client."""
        if self._gone:
            return
        try:
            async with asyncio.timeout(self._limits.write_timeout_ms / 1000):
                await self._send(event)
        except OSError:  # TimeoutError is one
            self._gone = True
