"""Streamable HTTP on asyncio: sockets, timers and concurrency, and nothing that a protocol would decide.

A connection is an :class:`asyncio.Protocol`: what can be answered at once is answered from its callback, and
no task exists but those of the tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, closing, suppress
from typing import Any, Final, cast

from mcp_tasks_adapters.asyncio_h11.loop import Alarm, open_driver
from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_adapters.driver import Service, Store
from mcp_tasks_adapters.http_connection import HttpConnection, busy_response
from mcp_tasks_adapters.http_endpoint import (
    OTHER_FILES,
    HttpEndpoint,
    endpoint_policy,
    endpoint_url,
    most_connections,
)
from mcp_tasks_adapters.toolkit import Server
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import EndpointPolicy

__all__ = ["HttpServer", "serve_endpoint", "serve_http"]

logger = logging.getLogger("mcp_tasks_adapters")

ACCEPTED_AT_ONCE: Final = OTHER_FILES // 2
"""So many connections asyncio accepts before it lets us turn one away; there must be files for them."""


async def serve_http(
    server: Server,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    path: str = "/mcp",
    store: Store | None = None,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve over HTTP until cancelled.

    Once it accepts connections, ``ready`` is called with the endpoint's URL. Port 0 takes a free one. Without
    a ``store``, tasks are kept in memory. ``Host`` and ``Origin`` headers must name this machine
    (``localhost``, a loopback address, or ``host``) or one of ``allowed_hosts`` and ``allowed_origins``
    (HTTP.1), where ``example.com:*`` stands for every port, and ``*`` for everything.

    When cancelled it accepts no more, ends listen streams with their result (SUB.4), and gives requests that
    are being answered ``Limits.shutdown_grace_ms``. Then connections are closed and workers cancelled, and
    when this returns nothing of it is left; a second cancellation cuts the waiting short. Raises ``OSError``
    when it cannot listen.
    """
    await serve_endpoint(
        open_driver(server, store),
        policy=endpoint_policy(
            path, allowed_hosts, allowed_origins, sessions=server.serves_sessions, bound=host
        ),
        limits=server.limits,
        host=host,
        port=port,
        ready=ready,
    )


async def serve_endpoint(
    opening: AbstractAsyncContextManager[Service],
    *,
    policy: EndpointPolicy,
    limits: Limits,
    host: str,
    port: int,
    ready: Callable[[str], None] | None,
) -> None:
    """Serve what ``opening`` opens until cancelled, as :func:`serve_http` serves a server."""
    http: HttpServer
    listener = await asyncio.get_running_loop().create_server(
        lambda: http.protocol(),
        host,
        port,
        backlog=ACCEPTED_AT_ONCE,
        start_serving=False,
    )
    url = endpoint_url(listener.sockets[0].getsockname(), policy.path)
    cancelled: asyncio.CancelledError | None = None
    with closing(listener):
        async with opening as driver:
            http = HttpServer(driver, policy=policy, limits=limits)
            try:
                await listener.start_serving()
                _lengthen_queue(listener, limits.connections)
                if ready is not None:
                    ready(url)
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                cancelled = error
            listener.close()
            await http.close()
    if cancelled is not None:
        raise cancelled


def _lengthen_queue(listener: asyncio.Server, length: int) -> None:
    """Have the system hold so many clients who wait to be accepted.

    Others would try again after a second or more, which is long for what may be another one's rush. asyncio
    knows one number only, for this and for ``ACCEPTED_AT_ONCE``.
    """
    for listening in listener.sockets:
        with listening.dup() as same:
            same.listen(length)


class HttpServer:
    """The endpoint of one server, for connections that come from anywhere: each gets a :meth:`protocol`.

    ``now_ms`` is Unix milliseconds.
    """

    def __init__(
        self,
        driver: Service,
        *,
        policy: EndpointPolicy,
        limits: Limits,
        now_ms: Callable[[], int] = unix_ms,
    ) -> None:
        self._endpoint = HttpEndpoint(driver=driver, policy=policy, limits=limits, now_ms=now_ms)
        self._room = most_connections(limits)
        self._open: set[_Connection] = set()
        self._stopping = False
        self._left = asyncio.Event()

    def protocol(self) -> asyncio.Protocol:
        """Return what answers one connection, for ``loop.create_server`` and its like."""
        return _Connection(self, self._endpoint)

    async def close(self) -> None:
        """Let what is under way end by itself, for ``Limits.shutdown_grace_ms``; then cut it short.

        When this returns every connection has ended. The driver takes no further requests. Being cancelled
        cuts it short at once.
        """
        self._stopping = True
        self._endpoint.driver.shutdown()
        for connection in list(self._open):
            connection.stop()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._endpoint.limits.shutdown_grace_ms / 1000):
                    await self._all_left()
        finally:
            self._endpoint.driver.stop_calls()  # what can be written is written at once
            for connection in list(self._open):
                connection.abort()
        await self._all_left()

    async def _all_left(self) -> None:
        while self._open:
            self._left.clear()
            await self._left.wait()

    def _enter(self, connection: _Connection) -> bool:
        """Take in a new connection, unless there are too many."""
        if self._stopping or len(self._open) >= self._room:
            return False
        self._open.add(connection)
        return True

    def _leave(self, connection: _Connection) -> None:
        self._open.discard(connection)
        self._left.set()


class _Connection(asyncio.Protocol):
    """One transport and what is said on it."""

    _transport: asyncio.Transport
    _http: HttpConnection
    _alarm: Alarm

    def __init__(self, server: HttpServer, endpoint: HttpEndpoint) -> None:
        self._server = server
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._blocked = False
        self._reading = True
        self._half_closed = False

    # -- what the transport says ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or turn the client away."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._server._enter(self):
            self._transport.set_protocol(asyncio.Protocol())
            self._transport.write(busy_response(self._endpoint.now_ms()))
            self._transport.close()
            return
        # With a mark of zero, "not paused" means that everything was written.
        self._transport.set_write_buffer_limits(high=0)
        self._http = HttpConnection(
            self._endpoint,
            peer=_peer(transport),
            now=self._loop.time(),
            output_ready=self._flush_now,
        )
        self._alarm = Alarm(self._ring)
        self._alarm.move(self._http.deadline)

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        try:
            now = self._loop.time()
            self._http.receive(data, now)
            self._flush(now)
        except Exception as error:
            self._give_up(error)

    def eof_received(self) -> bool:
        """Take in the end of the peer's side; the connection's own side stays open for now."""
        self.data_received(b"")
        return True

    def pause_writing(self) -> None:
        """Note that what was written has not left yet."""
        self._blocked = True

    def resume_writing(self) -> None:
        """Note that what was written has left."""
        self._blocked = False
        self._guard(self._written)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._alarm.close()
        self._guard(self._http.lost)
        self._server._leave(self)

    # -- what the server says ------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no further request."""
        self._guard(self._stop)

    def abort(self) -> None:
        """Close it now."""
        self._guard(self._http.lost)
        self._transport.abort()

    # -- what comes of it, and what if it fails ------------------------------------------------------------

    def _guard(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do what a callback asks for. asyncio would log an error with its message, and go on as before."""
        try:
            action(*arguments)
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        # Without its message, which may hold what a peer sent.
        logger.error("a connection was closed because of an error in this server: %s", describe(error))
        self._transport.abort()

    def _written(self) -> None:
        now = self._loop.time()
        self._http.written(now)
        self._flush(now)

    def _stop(self) -> None:
        now = self._loop.time()
        self._http.stop(now)
        self._flush(now)

    def _time_passed(self) -> None:
        now = self._loop.time()
        self._http.time_passed(now)
        self._flush(now)

    # -- what the connection wants -------------------------------------------------------------------------

    def _flush_now(self) -> None:
        self._guard(self._flush, self._loop.time())

    def _flush(self, now: float) -> None:
        """Write, one answer at a time so that others get their turn; then do what else is wanted."""
        http = self._http
        if data := http.take_output(now):
            self._transport.write(data)
            if not self._blocked:
                http.written(now)
            if http.has_output:
                self._loop.call_soon(self._flush_now)
        if http.closed:
            self._close()
            return
        if http.half_closed and not self._half_closed and not http.has_output:
            self._half_closed = True
            with suppress(OSError):  # the peer has reset the connection; we shall be told
                self._transport.write_eof()
        if http.wants_input is not self._reading:
            self._reading = http.wants_input
            (self._transport.resume_reading if self._reading else self._transport.pause_reading)()
        self._alarm.move(http.deadline)

    def _close(self) -> None:
        if self._blocked:
            self._transport.abort()
        else:
            self._transport.close()

    def _ring(self) -> float:
        self._guard(self._time_passed)
        return self._http.deadline


def _peer(transport: asyncio.BaseTransport) -> str | None:
    """Return the address of the other end, where there is one."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else None
