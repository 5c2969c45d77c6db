"""Proxies, from what opens to what closes; a loop module adds its loop, its sockets and its processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TypedDict

from mcp_tasks_adapters.client.http import HttpTransport
from mcp_tasks_adapters.client.loop import NetworkLoop
from mcp_tasks_adapters.connecting import http_transports, stdio_transports
from mcp_tasks_adapters.http_endpoint import endpoint_policy
from mcp_tasks_adapters.proxy.driver import ProxyDriver, Reconfigure
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, Proxy, StdioUpstream, UpstreamHeaders
from mcp_tasks_adapters.proxy.storing import ProxyStore
from mcp_tasks_adapters.proxy.transports import Transports
from mcp_tasks_adapters.stdio_client import StdioTransport
from mcp_tasks_adapters.storing import SETTLE_MS
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import EndpointPolicy
from mcp_tasks_proto.wire.jsonrpc import encode_checked

__all__ = ["ProxyOptions", "running_proxy", "served_at"]


class ProxyOptions(TypedDict, total=False):
    """What a proxy may be told when it is served; all of it may be left out, and means what it means to
    ``serve_http``."""

    host: str
    """The name or address to listen on: ``127.0.0.1``."""
    port: int
    """By default a free one."""
    path: str
    """``/mcp``."""
    store: ProxyStore | None
    """Where tasks are kept: in memory."""
    allowed_hosts: Collection[str]
    """What ``Host`` may name beside this machine (HTTP.1)."""
    allowed_origins: Collection[str]
    """What ``Origin`` may name beside this machine."""
    ready: Callable[[str], None] | None
    """Is called with the URL once connections are accepted."""
    running: Callable[[Reconfigure], object] | None
    """Is called, before anything is served, with the function that puts another declaration in force while it
    runs: :meth:`ProxyDriver.reconfigure`, to be called on the loop's thread."""


class _Place(TypedDict):
    policy: EndpointPolicy
    limits: Limits
    host: str
    port: int
    ready: Callable[[str], None] | None


def served_at(proxy: Proxy, options: ProxyOptions) -> _Place:
    """Return what an HTTP endpoint has to know. Raises ``TypeError`` for options that there are not."""
    if unknown := options.keys() - ProxyOptions.__annotations__.keys():
        raise TypeError(f"a proxy is not served with {', '.join(sorted(unknown))}=")
    host = options.get("host", "127.0.0.1")
    policy = endpoint_policy(
        options.get("path", "/mcp"),
        options.get("allowed_hosts", ()),
        options.get("allowed_origins", ()),
        sessions=True,
        bound=host,
    )
    return {
        "policy": policy,
        "limits": proxy.limits,
        "host": host,
        "port": options.get("port", 0),
        "ready": options.get("ready"),
    }


@asynccontextmanager
async def running_proxy(
    proxy: Proxy,
    store: ProxyStore,
    loop: NetworkLoop,
    running: Callable[[Reconfigure], object] | None = None,
) -> AsyncIterator[ProxyDriver]:
    """Run a proxy's driver for the length of the block; ``store`` is open. All its connections and processes
    are gone at the end. ``running`` is that of :class:`ProxyOptions`."""
    transports = _transports(proxy, loop)
    driver = ProxyDriver(proxy, store=store, loop=loop, ways=transports)
    loop.start(driver.wake)
    if running is not None:
        running(driver.reconfigure)
    try:
        yield driver
    finally:
        try:
            await loop.finish(SETTLE_MS / 1000, driver.settled)
        finally:
            driver.close()
            loop.close()
            await loop.finish(None, transports.close)


def _transports(proxy: Proxy, loop: NetworkLoop) -> Transports:
    def http(upstream: HttpUpstream, headers: UpstreamHeaders) -> HttpTransport:
        return http_transports(
            upstream.url,
            headers=headers,
            ssl_context=upstream.ssl_context,
            limits=proxy.limits,
            connection_limits=upstream.connection_limits,
            encode=encode_checked,  # what goes up is made of JSON that was read
        )(loop)

    def stdio(upstream: StdioUpstream) -> StdioTransport:
        return stdio_transports(
            upstream.command,
            env=upstream.env,
            cwd=upstream.cwd,
            stderr=upstream.stderr,
            limits=proxy.limits,
            own_session=True,
        )(loop)

    return Transports(proxy, http=http, stdio=stdio)
