"""Clients on asyncio, over HTTP with h11 and on stdio: sockets, processes, timers and concurrency."""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Unpack, cast

from mcp_tasks_adapters.asyncio_h11.loop import AsyncioLoop
from mcp_tasks_adapters.client.client import Client
from mcp_tasks_adapters.client.driver import ClientDriver, Transport
from mcp_tasks_adapters.client.http import ConnectionLimits, HeadersFunction, HttpTransport
from mcp_tasks_adapters.client.options import HttpOptions, Options, StdioOptions, requester_settings
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.stdio_client import StdioTransport
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import RequesterSettings

__all__ = [
    "AsyncioClientLoop",
    "connect",
    "connect_stdio",
    "http_transports",
    "process_spawner",
    "stdio_transports",
    "stream_opener",
]

UNREAD_BYTES: Final = 256 * 1024
"""While more than this has come and was not taken, nothing is read."""


@asynccontextmanager
async def connect(url: str, **options: Unpack[HttpOptions]) -> AsyncIterator[Client]:
    """Give a client of the MCP endpoint at ``url``, for the length of the block.

    What may be given beside the URL stands at :class:`~mcp_tasks_adapters.client.options.HttpOptions`.
    Nothing is sent, and no connection made, before the client is asked for something. When the block is left
    nothing of the client is left either. Raises ``ValueError`` for a URL or options that cannot be used.
    """
    settings = requester_settings(url, mirror_arguments=True, options=options)
    transport = http_transports(
        url,
        headers=options.get("headers"),
        ssl_context=options.get("ssl_context"),
        limits=options.get("limits") or Limits(),
        connection_limits=options.get("connection_limits") or ConnectionLimits(),
    )
    async with _client_of(transport, settings, options) as client:
        yield client


@asynccontextmanager
async def connect_stdio(command: Sequence[str], **options: Unpack[StdioOptions]) -> AsyncIterator[Client]:
    """Start a server and give a client of it, for the length of the block; then the server is ended.

    What may be given beside the command stands at
    :class:`~mcp_tasks_adapters.client.options.StdioOptions`. Raises ``OSError`` when the command cannot be
    started, and ``ValueError`` for options that cannot be used.
    """
    settings = requester_settings(f"stdio:{shlex.join(command)}", mirror_arguments=False, options=options)
    transport = stdio_transports(
        command,
        env=options.get("env"),
        cwd=options.get("cwd"),
        stderr=options.get("stderr"),
        limits=options.get("limits") or Limits(),
    )
    async with _client_of(transport, settings, options) as client:
        yield client


# -- ways to a server ----------------------------------------------------------------------------------------


def stream_opener(
    url: str, *, ssl_context: ssl.SSLContext | None = None, limits: Limits
) -> tuple[HttpAddress, Callable[[], Awaitable[_Stream]]]:
    """Return where an endpoint is, and what opens a connection to it. Raises ``ValueError`` for its URL."""
    address = HttpAddress.parse(url)
    context = ssl_context if address.secure else None
    if address.secure and context is None:
        context = ssl.create_default_context()

    async def open_stream() -> _Stream:
        _, stream = await asyncio.get_running_loop().create_connection(
            lambda: _Stream(limits.write_timeout_ms / 1000),
            address.host,
            address.port,
            ssl=context,
        )
        return stream

    return address, open_stream


def process_spawner(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Any,
) -> Callable[[], Awaitable[_Process]]:
    """Return what starts a server, with pipes to it."""

    async def spawn() -> _Process:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=env,
            cwd=cwd,
        )
        return process

    return spawn


def http_transports(
    url: str,
    *,
    headers: Mapping[str, str] | HeadersFunction | None,
    ssl_context: ssl.SSLContext | None,
    limits: Limits,
    connection_limits: ConnectionLimits,
) -> Callable[[AsyncioClientLoop], HttpTransport]:
    """Return what makes a transport to an endpoint on a loop. Raises ``ValueError`` for its URL."""
    address, open_stream = stream_opener(url, ssl_context=ssl_context, limits=limits)
    return lambda loop: HttpTransport(
        address,
        loop=loop,
        open_stream=open_stream,
        headers=headers,
        limits=limits,
        connection_limits=connection_limits,
    )


def stdio_transports(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: Any,
    limits: Limits,
) -> Callable[[AsyncioClientLoop], StdioTransport]:
    """Return what makes a transport to a server that it starts, on a loop."""
    spawn = process_spawner(command, env=env, cwd=cwd, stderr=stderr)
    return lambda loop: StdioTransport(loop, spawn, limits)


# -- running -------------------------------------------------------------------------------------------------


class AsyncioClientLoop(AsyncioLoop):
    """The :class:`~mcp_tasks_adapters.client.loop.ClientLoop` in a task group of the caller's."""

    async def within(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> bool:
        """Await ``run()`` for at most so long."""
        try:
            async with asyncio.timeout(seconds) as time:
                await run()
        except TimeoutError:
            if not time.expired():
                raise
            return False
        return True


@asynccontextmanager
async def _client_of(
    transport_on: Callable[[AsyncioClientLoop], Transport], settings: RequesterSettings, options: Options
) -> AsyncIterator[Client]:
    """Run a client for the length of the block. An exception of the block stays as it is, in no group."""
    raised: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        loop = AsyncioClientLoop(group, SteadyClock().now_ms)
        try:
            async with _running(loop, transport_on, settings, options) as client:
                yield client
        except BaseException as error:
            raised = error
    if raised is not None:
        raise raised


@asynccontextmanager
async def _running(
    loop: AsyncioClientLoop,
    transport_on: Callable[[AsyncioClientLoop], Transport],
    settings: RequesterSettings,
    options: Options,
) -> AsyncIterator[Client]:
    transport = transport_on(loop)
    driver = ClientDriver(
        settings,
        loop=loop,
        transport=transport,
        answer=options.get("answer"),
        on_trace=options.get("on_trace"),
        era=options.get("era"),
    )
    loop.start(driver.wake)
    await transport.open()
    try:
        yield Client(driver)
        await driver.finish()
    finally:
        driver.close()
        loop.close()
        await transport.close()


# -- connections ---------------------------------------------------------------------------------------------


class _Inbox:
    """Bytes that have come and were not taken yet; when there are many, their source is told to wait."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._data = bytearray()
        self._paused = False
        self._news = asyncio.Event()
        self.ended = False
        self.error: Exception | None = None

    def put(self, data: bytes) -> None:
        """Take in bytes."""
        self._data += data
        self._news.set()
        if len(self._data) > UNREAD_BYTES and not self._paused:
            self._paused = True
            self._pause()

    def end(self, error: Exception | None = None) -> None:
        """Note that no more comes, and why."""
        if not self.ended:
            self.ended = True
            self.error = error
            self._news.set()

    def __bool__(self) -> bool:
        return bool(self._data) or self.ended

    async def take(self) -> bytes:
        """Wait for bytes and return all of them; ``b""``: the end. Raises ``OSError`` for a bad end."""
        await self._news.wait()
        data = bytes(self._data)
        self._data.clear()
        if not self.ended:
            self._news.clear()
        elif not data and self.error is not None:
            raise _os_error(self.error)
        if self._paused and not self.ended:
            self._paused = False
            self._resume()
        return data


class _Outbox:
    """Whether what was written has left."""

    def __init__(self) -> None:
        self._empty = asyncio.Event()
        self._empty.set()
        self.error: Exception | None = None

    def block(self) -> None:
        """It has not."""
        self._empty.clear()

    def unblock(self) -> None:
        """It has."""
        self._empty.set()

    def end(self, error: Exception | None) -> None:
        """It never will."""
        self.error = error or ConnectionResetError("the connection was closed")
        self._empty.set()

    async def wait(self) -> None:
        """Wait until it has. Raises ``OSError`` when it never will."""
        await self._empty.wait()
        if self.error is not None:
            raise _os_error(self.error)


def _os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) else ConnectionError(str(error))


class _Stream(asyncio.Protocol):
    """A connection, with TLS or without."""

    _transport: asyncio.Transport
    _inbox: _Inbox

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._outbox = _Outbox()
        self._lost = asyncio.Event()

    # -- what the transport says ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        # With a mark of zero, "not paused" means that everything was written.
        self._transport.set_write_buffer_limits(high=0)
        self._inbox = _Inbox(self._transport.pause_reading, self._transport.resume_reading)

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        self._inbox.put(data)

    def eof_received(self) -> bool:
        """Take in the end of the server's side."""
        self._inbox.end()
        return False

    def pause_writing(self) -> None:
        """Note that what was written has not left yet."""
        self._outbox.block()

    def resume_writing(self) -> None:
        """Note that it has."""
        self._outbox.unblock()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._inbox.end(exc)
        self._outbox.end(exc)
        self._lost.set()

    # -- what the client wants -----------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        """Write, if the peer takes it in time."""
        self._transport.write(data)
        try:
            async with asyncio.timeout(self._patience):
                await self._outbox.wait()
        except TimeoutError:
            raise TimeoutError("the server does not read") from None

    async def receive(self) -> bytes:
        """Return what comes next."""
        return await self._inbox.take()

    def idle(self) -> bool:
        """Whether nothing has come, the end included, be it that the loop has not been told yet."""
        return not self._inbox and not _readable(self._transport.get_extra_info("socket"))

    async def close(self) -> None:
        """Close at once."""
        self._transport.abort()
        await self._lost.wait()


def _readable(socket: Any) -> bool:
    """Whether a socket has something to read, as far as the system can tell without waiting."""
    if not hasattr(select, "poll"):
        return False
    poller = select.poll()
    poller.register(socket.fileno(), select.POLLIN)
    return bool(poller.poll(0))


class _Process(asyncio.SubprocessProtocol):
    """A process and its pipes."""

    _transport: asyncio.SubprocessTransport
    _inbox: _Inbox

    def __init__(self) -> None:
        self._outbox = _Outbox()
        self._exited = asyncio.Event()
        self._lost = asyncio.Event()

    # -- what the transport says ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        self._stdin.set_write_buffer_limits(high=0)
        stdout = cast(asyncio.ReadTransport, self._transport.get_pipe_transport(1))
        self._inbox = _Inbox(stdout.pause_reading, stdout.resume_reading)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take in bytes from stdout, the only pipe that is read."""
        self._inbox.put(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note the end of stdin or stdout."""
        if fd == 0:
            self._outbox.end(exc)
        else:
            self._inbox.end(exc)

    def pause_writing(self) -> None:
        """Note that what was written has not left yet."""
        self._outbox.block()

    def resume_writing(self) -> None:
        """Note that it has."""
        self._outbox.unblock()

    def process_exited(self) -> None:
        """Note the process's end; its pipes may be open still, in its children."""
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that all is closed."""
        self._lost.set()

    # -- what the client wants -----------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        """Write to its stdin."""
        self._stdin.write(data)
        await self._outbox.wait()

    async def receive(self) -> bytes:
        """Return what comes next from its stdout."""
        return await self._inbox.take()

    async def close_input(self) -> None:
        """Close its stdin."""
        self._stdin.close()

    async def wait(self) -> int:
        """Wait for its end."""
        await self._exited.wait()
        code: Any = self._transport.get_returncode()
        return int(code)

    def terminate(self) -> None:
        """Ask it to end less kindly."""
        with suppress(ProcessLookupError):
            self._transport.terminate()

    def kill(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            self._transport.kill()

    async def close(self) -> None:
        """Let go of the pipes."""
        self._transport.close()
        await self._lost.wait()
