"""Clients, from what connects to what closes; a loop module adds its loop, its sockets and its processes."""

from __future__ import annotations

import os
import shlex
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol, Unpack

from mcp_tasks_adapters.client.client import Client
from mcp_tasks_adapters.client.driver import ClientDriver, Transport
from mcp_tasks_adapters.client.http import ConnectionLimits, HeadersFunction, HttpTransport
from mcp_tasks_adapters.client.loop import NetworkLoop
from mcp_tasks_adapters.client.options import HttpOptions, Options, StdioOptions, requester_settings
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.stdio_client import StdioTransport
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import RequesterSettings
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = ["Connector", "http_transports", "keep_alive", "stdio_transports"]

PROBES: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""After how many seconds of silence a connection is probed, how far apart and how often, under the names that
systems have for that."""


class Connector:
    """The ways to a client on one kind of loop; each loop module has one, and offers what it can do."""

    def __init__(self, open_loop: Callable[[], AbstractAsyncContextManager[NetworkLoop]]) -> None:
        """``open_loop`` gives a loop for the length of a block, and leaves exceptions of the block as they
        are, in no group."""
        self._open_loop = open_loop

    @asynccontextmanager
    async def connect(self, url: str, **options: Unpack[HttpOptions]) -> AsyncIterator[Client]:
        """Give a client of the MCP endpoint at ``url``, for the length of the block.

        What may be given beside the URL stands at :class:`~mcp_tasks_adapters.client.options.HttpOptions`.
        Nothing is sent, and no connection made, before the client is asked for something. When the block is
        left nothing of the client is left either. Raises ``ValueError`` for a URL or options that cannot be
        used.
        """
        settings = requester_settings(url, mirror_arguments=True, options=options)
        transport_on = http_transports(
            url,
            headers=options.get("headers"),
            ssl_context=options.get("ssl_context"),
            limits=options.get("limits") or Limits(),
            connection_limits=options.get("connection_limits") or ConnectionLimits(),
        )
        async with self._open_loop() as loop, _running(loop, transport_on, settings, options) as client:
            yield client

    @asynccontextmanager
    async def connect_stdio(
        self, command: Sequence[str], **options: Unpack[StdioOptions]
    ) -> AsyncIterator[Client]:
        """Start a server and give a client of it, for the length of the block; then the server is ended.

        What may be given beside the command stands at
        :class:`~mcp_tasks_adapters.client.options.StdioOptions`. Raises ``OSError`` when the command cannot
        be started, and ``ValueError`` for options that cannot be used.
        """
        endpoint = f"stdio:{shlex.join(command)}"
        settings = requester_settings(endpoint, mirror_arguments=False, options=options)
        transport_on = stdio_transports(
            command,
            env=options.get("env"),
            cwd=options.get("cwd"),
            stderr=options.get("stderr"),
            limits=options.get("limits") or Limits(),
        )
        async with self._open_loop() as loop, _running(loop, transport_on, settings, options) as client:
            yield client


@asynccontextmanager
async def _running(
    loop: NetworkLoop,
    transport_on: Callable[[NetworkLoop], Transport],
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
        record=options.get("record"),
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
        await loop.finish(None, transport.close)


class Socket(Protocol):
    """What the loops have for a socket."""

    def setsockopt(self, level: int, option: int, value: int, /) -> object:
        """Set an option."""


def keep_alive(connection: Socket) -> None:
    """Have the system find out that the other side is gone without a word.

    On a stream on which a server is silent for hours, until it asks something, nothing else would.
    """
    with suppress(OSError):  # it has ended already, and will say so itself
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in PROBES.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def http_transports(
    url: str,
    *,
    headers: Mapping[str, str] | HeadersFunction | None,
    ssl_context: ssl.SSLContext | None,
    limits: Limits,
    connection_limits: ConnectionLimits,
    encode: Callable[[Mapping[str, Any]], bytes] = encode,
) -> Callable[[NetworkLoop], HttpTransport]:
    """Return what makes a transport to an endpoint on a loop. Raises ``ValueError`` for its URL."""
    address = HttpAddress.parse(url)
    context = ssl_context if address.secure else None
    if address.secure and context is None:
        context = ssl.create_default_context()
    return lambda loop: HttpTransport(
        address,
        loop=loop,
        open_stream=partial(loop.open_stream, address, context, limits.write_timeout_ms / 1000),
        headers=headers,
        limits=limits,
        connection_limits=connection_limits,
        encode=encode,
    )


def stdio_transports(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: Any,
    limits: Limits,
    own_session: bool = False,
) -> Callable[[NetworkLoop], StdioTransport]:
    """Return what makes a transport to a server that it starts, on a loop."""
    started = {"env": env, "cwd": cwd, "stderr": stderr, "own_session": own_session}
    return lambda loop: StdioTransport(loop, partial(loop.start_process, command, **started), limits)
