"""Proxies on trio: callers over HTTP in front, upstreams over HTTP or on stdio behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Unpack

import trio

from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.proxy import MemoryProxyStore, Proxy, ProxyStore
from mcp_tasks_adapters.proxy.driver import ProxyDriver, Reconfigure
from mcp_tasks_adapters.proxy.serving import ProxyOptions, running_proxy, served_at
from mcp_tasks_adapters.trio_h11.client import TrioClientLoop
from mcp_tasks_adapters.trio_h11.loop import opened
from mcp_tasks_adapters.trio_h11.server import serve_endpoint
from mcp_tasks_adapters.trio_h11.stdio import serve_lines

__all__ = ["open_proxy", "serve_proxy", "serve_proxy_stdio"]


async def serve_proxy(
    proxy: Proxy,
    *,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
    **options: Unpack[ProxyOptions],
) -> None:
    """Run a proxy over HTTP until cancelled, as :func:`~mcp_tasks_adapters.trio_h11.serve_http` runs a
    server.

    What may be given beside it stands at :class:`~mcp_tasks_adapters.proxy.serving.ProxyOptions`. When it
    ends, tasks go on at their upstreams, and what a store other than memory keeps of them is there when it is
    opened again. Raises :class:`~mcp_tasks_adapters.storing.StoreError` too.
    """
    opening = open_proxy(proxy, options.get("store"), options.get("running"))
    await serve_endpoint(opening, **served_at(proxy, options), task_status=task_status)


async def serve_proxy_stdio(
    proxy: Proxy,
    *,
    store: ProxyStore | None = None,
    files: tuple[int, int] | None = None,
    on_end: Callable[[], object] = lambda: None,
) -> None:
    """Run a proxy for one caller on stdin and stdout, until it closes stdin, or until cancelled; everything
    else is as with :func:`~mcp_tasks_adapters.trio_h11.serve_stdio`."""
    await serve_lines(open_proxy(proxy, store), proxy.limits, files=files, on_end=on_end)


@asynccontextmanager
async def open_proxy(
    proxy: Proxy, store: ProxyStore | None, running: Callable[[Reconfigure], object] | None = None
) -> AsyncIterator[ProxyDriver]:
    """Run a proxy's driver for the length of the block; nothing of it is left behind."""
    async with (
        opened(MemoryProxyStore() if store is None else store) as open_store,
        trio.open_nursery() as nursery,
    ):
        loop = TrioClientLoop(nursery, SteadyClock().now_ms)
        async with running_proxy(proxy, open_store, loop, running) as driver:
            yield driver
        nursery.cancel_scope.cancel()
