"""The ways to a proxy's upstreams, made when there is a first request for each."""

from __future__ import annotations

from collections.abc import Callable

from mcp_tasks_adapters.client.http import HttpTransport
from mcp_tasks_adapters.proxy.driver import UpstreamTransport
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, Proxy, StdioUpstream, UpstreamHeaders
from mcp_tasks_adapters.stdio_client import StdioTransport

__all__ = ["Transports"]


class Transports:
    """One for each authorization at an upstream. Over HTTP, listen streams have connections of their own, so
    that many of them leave the others their places; on stdio all is said to one process."""

    def __init__(
        self,
        proxy: Proxy,
        *,
        http: Callable[[HttpUpstream, UpstreamHeaders], HttpTransport],
        stdio: Callable[[StdioUpstream], StdioTransport],
    ) -> None:
        """Take what makes a transport on the loop that runs."""
        self._upstreams = proxy.upstreams
        self._http = http
        self._stdio = stdio
        self._made: dict[tuple[str, str, bool], HttpTransport | StdioTransport] = {}

    def find(self, upstream: str, authorization: str, streams: bool) -> UpstreamTransport | None:
        """Return the way to an upstream; ``None``: it knows no such authorization."""
        declared = self._upstreams[upstream]
        key = upstream, authorization, streams and isinstance(declared, HttpUpstream)
        found = self._made.get(key)
        if found is None:
            made = self._make(declared, authorization)
            if made is None:
                return None
            found = self._made[key] = made
        return found

    def _make(
        self, declared: HttpUpstream | StdioUpstream, authorization: str
    ) -> HttpTransport | StdioTransport | None:
        if isinstance(declared, StdioUpstream):
            return None if authorization else self._stdio(declared)
        if not authorization:
            return self._http(declared, declared.headers)
        if authorization not in declared.authorizations:
            return None
        return self._http(declared, declared.authorizations[authorization])

    async def close(self) -> None:
        """End all of them. No request is in flight any more."""
        for transport in self._made.values():
            await transport.close()
