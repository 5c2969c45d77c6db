"""Clients on trio, over HTTP with h11 and on stdio: sockets, processes, timers and concurrency."""

from __future__ import annotations

import os
import shlex
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Any, Unpack

import trio

from mcp_tasks_adapters.client.client import Client
from mcp_tasks_adapters.client.driver import ClientDriver, Transport
from mcp_tasks_adapters.client.http import ConnectionLimits, HeadersFunction, HttpTransport
from mcp_tasks_adapters.client.options import HttpOptions, Options, StdioOptions, requester_settings
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.stdio_client import StdioTransport
from mcp_tasks_adapters.trio_h11.loop import TrioLoop
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import RequesterSettings

__all__ = [
    "TrioClientLoop",
    "connect",
    "connect_stdio",
    "http_transports",
    "process_spawner",
    "stdio_transports",
    "stream_opener",
]

READ_BYTES = 64 * 1024


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
        return await _open_stream(address, context, limits.write_timeout_ms / 1000)

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
        return _Process(
            await trio.lowlevel.open_process(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd=cwd,
            )
        )

    return spawn


def http_transports(
    url: str,
    *,
    headers: Mapping[str, str] | HeadersFunction | None,
    ssl_context: ssl.SSLContext | None,
    limits: Limits,
    connection_limits: ConnectionLimits,
) -> Callable[[TrioClientLoop], HttpTransport]:
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
) -> Callable[[TrioClientLoop], StdioTransport]:
    """Return what makes a transport to a server that it starts, on a loop."""
    spawn = process_spawner(command, env=env, cwd=cwd, stderr=stderr)
    return lambda loop: StdioTransport(loop, spawn, limits)


# -- running -------------------------------------------------------------------------------------------------


class TrioClientLoop(TrioLoop):
    """The :class:`~mcp_tasks_adapters.client.loop.ClientLoop` in a nursery of the caller's."""

    async def within(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> bool:
        """Await ``run()`` for at most so long."""
        with trio.move_on_after(inf if seconds is None else seconds) as scope:
            await run()
        return not scope.cancelled_caught


@asynccontextmanager
async def _client_of(
    transport_on: Callable[[TrioClientLoop], Transport], settings: RequesterSettings, options: Options
) -> AsyncIterator[Client]:
    """Run a client for the length of the block. An exception of the block stays as it is, in no group."""
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        loop = TrioClientLoop(nursery, SteadyClock().now_ms)
        try:
            async with _running(loop, transport_on, settings, options) as client:
                yield client
        except BaseException as error:
            raised = error
        # Whoever was cancelled from outside has that exception already.
        nursery.cancel_scope.shield = True
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised


@asynccontextmanager
async def _running(
    loop: TrioClientLoop,
    transport_on: Callable[[TrioClientLoop], Transport],
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
        with trio.CancelScope(shield=True):
            await transport.close()


# -- connections ---------------------------------------------------------------------------------------------


async def _open_stream(address: HttpAddress, context: ssl.SSLContext | None, patience: float) -> _Stream:
    raw = await trio.open_tcp_stream(address.host, address.port)
    if context is None:
        return _Stream(raw, raw, patience)
    secure = trio.SSLStream(raw, context, server_hostname=address.host, https_compatible=True)
    try:
        with _as_os_errors():
            await secure.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(raw)
        raise
    return _Stream(secure, raw, patience)


class _Stream:
    """A connection, with TLS or without, over ``raw``."""

    def __init__(self, stream: trio.abc.Stream, raw: trio.SocketStream, patience: float) -> None:
        self._stream = stream
        self._raw = raw
        self._patience = patience

    async def send(self, data: bytes) -> None:
        """Write, if the peer takes it in time."""
        with trio.move_on_after(self._patience) as scope, _as_os_errors():
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            raise TimeoutError("the server does not read")

    async def receive(self) -> bytes:
        """Return what comes next."""
        with _as_os_errors():
            return bytes(await self._stream.receive_some(READ_BYTES))

    def idle(self) -> bool:
        """Whether nothing has come, the end included."""
        return not self._raw.socket.is_readable()

    async def close(self) -> None:
        """Close at once."""
        await trio.aclose_forcefully(self._stream)


class _Process:
    """A process and its pipes."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
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
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
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
        raise ConnectionError(str(error.__cause__ or error) or type(error).__name__) from error
