"""Clients on asyncio, over HTTP with h11 and on stdio: sockets, processes, timers and concurrency."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from mcp_tasks_adapters.asyncio_h11.loop import AsyncioLoop
from mcp_tasks_adapters.client.processes import HAS_SESSIONS, signal_session, starting
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.connecting import Connector, keep_alive
from mcp_tasks_adapters.http_exchange import HttpAddress

__all__ = ["AsyncioClientLoop", "connect", "connect_stdio", "open_loop"]

READ_BYTES: Final = 16 * 1024
"""At a time: a peer that floods leaves others their turns (LIM.3)."""

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
        own_session: bool = False,
    ) -> _Process:
        """Start a process."""
        with starting():
            _, process = await self._loop.subprocess_exec(
                lambda: _Process(own_session and HAS_SESSIONS),
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=own_session,
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


class _Stream(asyncio.BufferedProtocol):
    """A connection, with TLS or without."""

    _transport: asyncio.Transport

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._heard: Callable[[bytes], None] = lambda _: None
        # A view, for asyncio's TLS fills slices of it: those of a bytearray would be copies, and lost.
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._loop = asyncio.get_running_loop()
        self._late: asyncio.TimerHandle | None = None
        self._ended = False
        self.error: OSError | None = None

    # -- what the transport says ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; nothing is read until there is somebody who hears it."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.pause_reading()
        connection = self._transport.get_extra_info("socket")
        keep_alive(connection)
        self._poller = _poller_of(connection)
        # With a mark of zero, "not paused" means that everything was written.
        self._transport.set_write_buffer_limits(high=0)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what comes: asyncio's own buffer has so much room that others would wait."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take in bytes."""
        if not self._ended:
            self._heard(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> bool:
        """Take in the end of the server's side."""
        self._end()
        return False

    def pause_writing(self) -> None:
        """Note that what was written has not left yet."""
        self._late = self._loop.call_later(self._patience, self._not_read)

    def resume_writing(self) -> None:
        """Note that it has."""
        self._hurry_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._hurry_no_more()
        if exc is not None and self.error is None:
            self.error = _os_error(exc)
        self._end()

    def _not_read(self) -> None:
        self.error = TimeoutError("the server does not read")
        self._transport.abort()

    def _hurry_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._heard(b"")

    # -- what the client wants -----------------------------------------------------------------------------

    def start(self, heard: Callable[[bytes], None]) -> None:
        """Hand over what comes, be it that all is over by now."""
        self._heard = heard
        if self._ended:
            self._loop.call_soon(lambda: self._heard(b""))
        else:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Write, or have the loop do so."""
        self._transport.write(data)

    def idle(self) -> bool:
        """Whether nothing has come, the end included, be it that the loop has not been told yet."""
        return not self._ended and not (self._poller is not None and self._poller.poll(0))

    def close(self) -> None:
        """Close at once."""
        self._ended = True
        self._heard = lambda _: None
        self._transport.abort()


def _poller_of(socket: Any) -> Any:
    """Return what tells at once whether a socket has something to read; ``None``: here nothing can."""
    if not hasattr(select, "poll"):
        return None
    poller = select.poll()
    poller.register(socket.fileno(), select.POLLIN)
    return poller


class _Process(asyncio.SubprocessProtocol):
    """A process and its pipes."""

    _transport: asyncio.SubprocessTransport
    _inbox: _Inbox

    def __init__(self, own_session: bool) -> None:
        self._own_session = own_session
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
        if self._own_session:
            signal_session(self._transport.get_pid(), signal.SIGTERM)
        else:
            with suppress(ProcessLookupError):
                self._transport.terminate()

    def kill(self) -> None:
        """End it."""
        if self._own_session:
            signal_session(self._transport.get_pid(), signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                self._transport.kill()

    async def close(self) -> None:
        """Let go of the pipes."""
        self._transport.close()
        await self._lost.wait()
