"""Clients on asyncio, over HTTP with h11 and on stdio: sockets, processes, timers and concurrency."""

from __future__ import annotations

import asyncio
import os
import select
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from mcp_tasks_adapters.asyncio_h11.loop import AsyncioLoop
from mcp_tasks_adapters.client.processes import starting
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.connecting import Connector
from mcp_tasks_adapters.http_exchange import HttpAddress

__all__ = ["AsyncioClientLoop", "connect", "connect_stdio", "open_loop"]

UNREAD_BYTES: Final = 256 * 1024
"""While more than this has come and was not taken, nothing is read."""


# -- running -------------------------------------------------------------------------------------------------


class AsyncioClientLoop(AsyncioLoop):
    """The :class:`~mcp_tasks_adapters.client.loop.NetworkLoop` in a task group of the caller's."""

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

    async def finish(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> None:
        """Await ``run()`` for at most so long; a cancellation that came before has been told by now."""
        await self.within(seconds, run)

    async def open_stream(
        self, address: HttpAddress, context: ssl.SSLContext | None, patience: float
    ) -> _Stream:
        """Connect."""
        _, stream = await self._loop.create_connection(
            lambda: _Stream(patience), address.host, address.port, ssl=context
        )
        return stream

    async def start_process(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        stderr: Any,
    ) -> _Process:
        """Start a process."""
        with starting():
            _, process = await self._loop.subprocess_exec(
                _Process,
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd=cwd,
            )
        return process


@asynccontextmanager
async def open_loop() -> AsyncIterator[AsyncioClientLoop]:
    """Give a loop for the length of the block. An exception of the block stays as it is, in no group."""
    raised: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        try:
            yield AsyncioClientLoop(group, SteadyClock().now_ms)
        except BaseException as error:
            raised = error
    if raised is not None:
        raise raised


_connector = Connector(open_loop)
connect = _connector.connect
connect_stdio = _connector.connect_stdio


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

    @property
    def empty(self) -> bool:
        """Whether it has, and more could."""
        return self.error is None and self._empty.is_set()

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
        if self._outbox.empty:  # as almost always
            return
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
