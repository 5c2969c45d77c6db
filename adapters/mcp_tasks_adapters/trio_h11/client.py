"""Clients on trio, over HTTP with h11 and on stdio: sockets, processes, timers and concurrency."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Any

import trio

from mcp_tasks_adapters.client.processes import HAS_SESSIONS, signal_session, starting
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.connecting import Connector, keep_alive
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.trio_h11.loop import TrioLoop, file_of

__all__ = ["TrioClientLoop", "connect", "connect_stdio", "open_loop"]

READ_BYTES = 16 * 1024
"""At a time: a peer that floods leaves others their turns (LIM.3)."""


# -- running -------------------------------------------------------------------------------------------------


class TrioClientLoop(TrioLoop):
    """The :class:`~mcp_tasks_adapters.client.loop.NetworkLoop` in a nursery of the caller's."""

    async def within(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> bool:
        """Await ``run()`` for at most so long."""
        with trio.move_on_after(inf if seconds is None else seconds) as scope:
            await run()
        return not scope.cancelled_caught

    async def finish(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> None:
        """Await ``run()`` for at most so long, cancelled or not."""
        with trio.move_on_after(inf if seconds is None else seconds, shield=True):
            await run()

    def close(self) -> None:
        """Nothing is left to do: the alarm ends with the nursery."""

    async def open_stream(
        self, address: HttpAddress, context: ssl.SSLContext | None, patience: float
    ) -> _Stream:
        """Connect."""
        raw = await trio.open_tcp_stream(address.host, address.port)
        keep_alive(raw)
        if context is None:
            return _Stream(raw, raw, patience, self._nursery)
        secure = trio.SSLStream(raw, context, server_hostname=address.host, https_compatible=True)
        try:
            with _as_os_errors():
                await secure.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(raw)
            raise
        return _Stream(secure, raw, patience, self._nursery)

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
            process = await trio.lowlevel.open_process(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=own_session,
            )
        return _Process(process, own_session and HAS_SESSIONS)


@asynccontextmanager
async def open_loop() -> AsyncIterator[TrioClientLoop]:
    """Give a loop for the length of the block. An exception of the block stays as it is, in no group."""
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield TrioClientLoop(nursery, SteadyClock().now_ms)
        except BaseException as error:
            raised = error
        # Whoever was cancelled from outside has that exception already.
        nursery.cancel_scope.shield = True
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised


_connector = Connector(open_loop)
connect = _connector.connect
connect_stdio = _connector.connect_stdio


# -- connections ---------------------------------------------------------------------------------------------


class _Stream:
    """A connection, with TLS or without, over ``raw``. A task reads all the time; what does not leave at once
    is for another one to write."""

    def __init__(
        self, stream: trio.abc.Stream, raw: trio.SocketStream, patience: float, nursery: trio.Nursery
    ) -> None:
        self._stream = stream
        self._raw = raw
        self._file = file_of(stream)
        self._patience = patience
        self._nursery = nursery
        self._unwritten = b""
        self._open = True
        self._heard: Callable[[bytes], None] = lambda _: None
        self.error: OSError | None = None

    def start(self, heard: Callable[[bytes], None]) -> None:
        """Hand over what comes."""
        self._heard = heard
        self._nursery.start_soon(self._read)

    def write(self, data: bytes) -> None:
        """Write what the system takes at once, and leave the rest to a task."""
        if self._unwritten:
            self._unwritten += data
            return
        sent = 0
        if self._file is not None and self._open:
            try:
                sent = os.write(self._file, data)
            except BlockingIOError:
                pass
            except OSError as error:  # but the server may have said something before it stopped to read
                self.error = error
                return
        if sent < len(data):
            self._unwritten = data[sent:]
            self._nursery.start_soon(self._write)

    def idle(self) -> bool:
        """Whether nothing has come, the end included."""
        return self._open and not self._raw.socket.is_readable()

    def close(self) -> None:
        """Close at once."""
        self._heard = lambda _: None
        self._shut()

    def _shut(self) -> None:
        # From here on the descriptor may be that of something else.
        self._open = False
        self._raw.socket.close()

    async def _read(self) -> None:
        data = b"-"
        while data and self._open:
            try:
                data = await self._receive()
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
                self.error = self.error or _os_error(error)
                data = b""
            self._heard(data)

    async def _receive(self) -> bytes:
        if self._file is None:
            return bytes(await self._stream.receive_some(READ_BYTES))
        while True:
            await trio.lowlevel.wait_readable(self._file)
            if not self._open:
                raise trio.ClosedResourceError
            try:
                return os.read(self._file, READ_BYTES)
            except BlockingIOError:
                continue

    async def _write(self) -> None:
        """Write what did not leave at once, if the peer takes it in time."""
        while self._unwritten and self._open:
            data = self._unwritten
            with trio.move_on_after(self._patience) as scope:
                try:
                    await self._stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                    self.error = self.error or _os_error(error)
                    return
            if scope.cancelled_caught:
                self.error = TimeoutError("the server does not read")
                self._shut()  # which the reader hears of
                return
            self._unwritten = self._unwritten[len(data) :]


class _Process:
    """A process and its pipes."""

    def __init__(self, process: trio.Process, own_session: bool) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._own_session = own_session
        self._stdin = process.stdin
        self._stdout = process.stdout

    async def send(self, data: bytes) -> None:
        """Write to its stdin."""
        with _as_os_errors():
            await self._stdin.send_all(data)

    async def receive(self) -> bytes:
        """Return what comes next from its stdout."""
        with _as_os_errors():
            return bytes(await self._stdout.receive_some(READ_BYTES))

    async def close_input(self) -> None:
        """Close its stdin."""
        await trio.aclose_forcefully(self._stdin)

    async def wait(self) -> int:
        """Wait for its end."""
        return await self._process.wait()

    def terminate(self) -> None:
        """Ask it to end less kindly."""
        if self._own_session:
            signal_session(self._process.pid, signal.SIGTERM)
        else:
            self._process.terminate()

    def kill(self) -> None:
        """End it."""
        if self._own_session:
            signal_session(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    async def close(self) -> None:
        """Let go of the pipes."""
        await trio.aclose_forcefully(self._stdin)
        await trio.aclose_forcefully(self._stdout)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Make an ``OSError`` of what trio raises for a broken stream, and for one that was closed here."""
    try:
        yield
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise _os_error(error) from error


def _os_error(error: Exception) -> OSError:
    """Return an ``OSError`` for what trio raises of a broken stream, and of one that was closed here."""
    if isinstance(error, OSError):
        return error
    return ConnectionError(str(error.__cause__ or error) or type(error).__name__)
