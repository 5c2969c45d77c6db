"""Proxies on asyncio: callers over HTTP in front, upstreams over HTTP or on stdio behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress

from mcp_tasks_adapters.asyncio_h11.client import AsyncioClientLoop, http_transports, stdio_transports
from mcp_tasks_adapters.asyncio_h11.loop import AsyncioThread
from mcp_tasks_adapters.asyncio_h11.server import serve_endpoint
from mcp_tasks_adapters.client.http import HttpTransport
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.http_endpoint import endpoint_policy
from mcp_tasks_adapters.proxy import HttpUpstream, MemoryProxyStore, Proxy, ProxyStore, StdioUpstream
from mcp_tasks_adapters.proxy.driver import ProxyDriver, Reconfigure
from mcp_tasks_adapters.proxy.proxy import UpstreamHeaders
from mcp_tasks_adapters.proxy.transports import Transports
from mcp_tasks_adapters.stdio_client import StdioTransport
from mcp_tasks_adapters.storing import SETTLE_MS

__all__ = ["open_proxy", "serve_proxy"]


async def serve_proxy(
    proxy: Proxy,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    path: str = "/mcp",
    store: ProxyStore | None = None,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
    ready: Callable[[str], None] | None = None,
    running: Callable[[Reconfigure], object] | None = None,
) -> None:
    """Run a proxy over HTTP until cancelled; everything else is as with
    :func:`~mcp_tasks_adapters.asyncio_h11.serve_http`.

    ``running`` is called, before anything is served, with the function that puts another declaration in
    force while it runs: :meth:`ProxyDriver.reconfigure`, to be called on this loop's thread.

    When it ends, tasks go on at their upstreams, and what a store other than memory keeps of them is there
    when it is opened again. Raises :class:`~mcp_tasks_adapters.storing.StoreError` too.
    """
    await serve_endpoint(
        open_proxy(proxy, store, running),
        policy=endpoint_policy(path, allowed_hosts, allowed_origins, sessions=False, bound=host),
        limits=proxy.limits,
        host=host,
        port=port,
        ready=ready,
    )


@asynccontextmanager
async def open_proxy(
    proxy: Proxy, store: ProxyStore | None, running: Callable[[Reconfigure], object] | None = None
) -> AsyncIterator[ProxyDriver]:
    """Run a proxy's driver for the length of the block; nothing of it is left behind."""
    async with (
        _opened(MemoryProxyStore() if store is None else store) as opened,
        asyncio.TaskGroup() as group,
    ):
        loop = AsyncioClientLoop(group, SteadyClock().now_ms)
        transports = _transports(proxy, loop)
        driver = ProxyDriver(proxy, store=opened, loop=loop, ways=transports)
        loop.start(driver.wake)
        if running is not None:
            running(driver.reconfigure)
        try:
            yield driver
        finally:
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SETTLE_MS / 1000):
                        await driver.settled()
            finally:
                driver.close()
                loop.close()
                await transports.close()


def _transports(proxy: Proxy, loop: AsyncioClientLoop) -> Transports:
    def http(upstream: HttpUpstream, headers: UpstreamHeaders) -> HttpTransport:
        return http_transports(
            upstream.url,
            headers=headers,
            ssl_context=upstream.ssl_context,
            limits=proxy.limits,
            connection_limits=upstream.connection_limits,
        )(loop)

    def stdio(upstream: StdioUpstream) -> StdioTransport:
        return stdio_transports(
            upstream.command,
            env=upstream.env,
            cwd=upstream.cwd,
            stderr=upstream.stderr,
            limits=proxy.limits,
        )(loop)

    return Transports(proxy, http=http, stdio=stdio)


@asynccontextmanager
async def _opened(store: ProxyStore) -> AsyncIterator[ProxyStore]:
    await store.open(AsyncioThread())
    try:
        yield store
    finally:
        await store.close()
