"""Streamable HTTP on trio: sockets, timers and concurrency, and nothing that a protocol would decide.

A connection is one task that reads, and one that is its alarm. An answer is written on the spot, by whoever
has it; only what the system does not take at once gets a third task, which waits until it does.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import trio

from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_adapters.driver import LAST_WORDS_SECONDS, Service, Store
from mcp_tasks_adapters.http_connection import READ_BYTES, HttpConnection, busy_response
from mcp_tasks_adapters.http_endpoint import HttpEndpoint, endpoint_policy, endpoint_url, most_connections
from mcp_tasks_adapters.toolkit import Server
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_adapters.trio_h11.loop import Alarm, file_of, open_driver, told_when_cancelled
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import EndpointPolicy

__all__ = ["HttpServer", "serve_endpoint", "serve_http"]

logger = logging.getLogger("mcp_tasks_adapters")


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
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve over HTTP until cancelled.

    Once it accepts connections, ``ready`` is called with its URL, which ``nursery.start`` returns as well.
    Port 0 takes a free one. Without a ``store``, tasks are kept in memory. ``Host`` and ``Origin`` headers
    must name this machine (``localhost``, a loopback address, or ``host``) or one of ``allowed_hosts`` and
    ``allowed_origins`` (HTTP.1), where ``example.com:*`` stands for every port, and ``*`` for everything.

    When cancelled it accepts no more, ends listen streams with their result (SUB.4), and gives requests that
    are being answered ``Limits.shutdown_grace_ms``. Then connections are closed and workers cancelled, and
    when this returns nothing of it is left. Raises ``OSError`` when it cannot listen.
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
        task_status=task_status,
    )


async def serve_endpoint(
    opening: AbstractAsyncContextManager[Service],
    *,
    policy: EndpointPolicy,
    limits: Limits,
    host: str,
    port: int,
    ready: Callable[[str], None] | None,
    task_status: trio.TaskStatus[str],
) -> None:
    """Serve what ``opening`` opens until cancelled, as :func:`serve_http` serves a server."""
    async with (
        _listening(host, port) as listeners,
        told_when_cancelled() as cancelled,
        opening as driver,
        trio.open_nursery() as nursery,
    ):
        http = HttpServer(driver, policy=policy, limits=limits)
        accepting = trio.CancelScope()
        nursery.start_soon(_accept, accepting, http, listeners, nursery)
        url = endpoint_url(listeners[0].socket.getsockname(), policy.path)
        if ready is not None:
            ready(url)
        task_status.started(url)
        await cancelled.wait()
        accepting.cancel()
        await http.close()


@asynccontextmanager
async def _listening(host: str, port: int) -> AsyncIterator[list[trio.SocketListener]]:
    listeners = await trio.open_tcp_listeners(port, host=host)
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.socket.close()


async def _accept(
    scope: trio.CancelScope, http: HttpServer, listeners: list[trio.SocketListener], nursery: trio.Nursery
) -> None:
    with scope:
        await trio.serve_listeners(http.serve_stream, listeners, handler_nursery=nursery)


class HttpServer:
    """The endpoint of one server, for streams that come from anywhere: see :meth:`serve_stream`.

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
        self._left = trio.lowlevel.ParkingLot()

    async def serve_stream(self, stream: trio.abc.Stream) -> None:
        """Serve one connection, from its first byte to its end; the stream is closed then."""
        if self._stopping or len(self._open) >= self._room:
            await self._turn_away(stream)
            return
        connection = _Connection(self._endpoint, stream)
        self._open.add(connection)
        try:
            await connection.run()
        except Exception as error:
            # Without its message, which may hold what a peer sent.
            logger.error("a connection was closed because of an error in this server: %s", describe(error))
        finally:
            self._open.discard(connection)
            self._left.unpark_all()

    async def close(self) -> None:
        """Let what is under way end by itself, for ``Limits.shutdown_grace_ms``; then cut it short.

        When this returns every connection has ended. The driver takes no further requests.
        """
        self._stopping = True
        self._endpoint.driver.shutdown()
        for connection in list(self._open):
            connection.stop()
        with trio.move_on_after(self._endpoint.limits.shutdown_grace_ms / 1000):
            await self._all_left()
        self._endpoint.driver.stop_calls()
        with trio.move_on_after(LAST_WORDS_SECONDS):
            await self._all_left()
        for connection in list(self._open):
            connection.cancel()
        await self._all_left()

    async def _all_left(self) -> None:
        while self._open:
            await self._left.park()

    async def _turn_away(self, stream: trio.abc.Stream) -> None:
        async with stream:
            with (
                trio.move_on_after(self._endpoint.limits.write_timeout_ms / 1000),
                suppress(trio.BrokenResourceError),
            ):
                await stream.send_all(busy_response(self._endpoint.now_ms()))


class _Connection:
    """One stream and the tasks around it.

    What the system takes at once is written on the spot, by whoever has it; the rest is the writer's.
    """

    _nursery: trio.Nursery

    def __init__(self, endpoint: HttpEndpoint, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._file = file_of(stream)
        self._http = HttpConnection(
            endpoint, peer=_peer(stream), now=trio.current_time(), output_ready=self._settle
        )
        self._alarm = Alarm(self._ring)
        self._alarm.move(self._http.deadline)
        self._rest = b""
        self._has_writer = False
        self._writer = trio.lowlevel.ParkingLot()
        self._reader = trio.lowlevel.ParkingLot()
        self._half_closed = False

    async def run(self) -> None:
        """Serve the connection until it ends, then close the stream."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._alarm.run)
                with suppress(trio.BrokenResourceError):  # peers may leave without a word
                    await self._read()
                self._nursery.cancel_scope.cancel()
        finally:
            self._http.lost()
            await trio.aclose_forcefully(self._stream)

    def stop(self) -> None:
        """Take no further request."""
        self._http.stop(trio.current_time())
        self._settle()

    def cancel(self) -> None:
        """Close it now."""
        self._nursery.cancel_scope.cancel()

    async def _read(self) -> None:
        http = self._http
        while not http.closed:
            if http.wants_input:
                http.receive(await self._receive(), trio.current_time())
                self._settle()
            else:
                await self._reader.park()

    async def _receive(self) -> bytes:
        """Wait for bytes. To try first is in vain where an answer has only just left."""
        if self._file is None:
            return bytes(await self._stream.receive_some(READ_BYTES))
        while True:
            await trio.lowlevel.wait_readable(self._file)
            try:
                return os.read(self._file, READ_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def _write(self) -> None:
        """Write what did not leave at once, and end this side of the connection when that is due."""
        http = self._http
        with suppress(trio.BrokenResourceError):
            while not http.closed:
                if self._rest or http.has_output:
                    data = self._rest or http.take_output(trio.current_time())
                    self._alarm.move(http.deadline)
                    await self._stream.send_all(data)
                    self._rest = b""
                    self._written()
                    self._alarm.move(http.deadline)
                elif http.half_closed and not self._half_closed:
                    self._half_closed = True
                    if isinstance(self._stream, trio.abc.HalfCloseableStream):
                        await self._stream.send_eof()
                else:
                    await self._writer.park()
        self._nursery.cancel_scope.cancel()

    def _ring(self) -> float:
        self._http.time_passed(trio.current_time())
        self._settle()
        return self._http.deadline

    def _settle(self) -> None:
        """Something happened: write what there is now, and let the tasks see what concerns them."""
        http = self._http
        if http.has_output and not http.closed:
            self._write_now()
        if http.closed:
            self._nursery.cancel_scope.cancel()
            return
        if http.has_output or self._rest or (http.half_closed and not self._half_closed):
            self._wake_writer()
        self._alarm.move(http.deadline)

    def _write_now(self) -> None:
        """Write one answer without waiting; should there be more, others get their turn first."""
        if self._file is None:
            return
        data = self._http.take_output(trio.current_time())
        try:
            sent = os.write(self._file, data)
        except BlockingIOError:
            sent = 0
        except OSError:  # the peer has left
            self._http.lost()
            return
        if sent == len(data):
            self._written()
        else:
            self._rest = data[sent:]

    def _written(self) -> None:
        self._http.written(trio.current_time())
        if self._reader:
            self._reader.unpark()

    def _wake_writer(self) -> None:
        if not self._has_writer:
            self._has_writer = True
            self._nursery.start_soon(self._write)
        self._writer.unpark()


def _peer(stream: trio.abc.Stream) -> str | None:
    """Return the address of the other end, where there is one."""
    if not isinstance(stream, trio.SocketStream):
        return None
    try:
        name = stream.socket.getpeername()
    except OSError:
        return None
    return str(name[0]) if isinstance(name, tuple) else None
