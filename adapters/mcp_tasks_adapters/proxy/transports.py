"""The ways to a proxy's upstreams, made when there is a first request for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from mcp_tasks_adapters.client.http import HttpTransport
from mcp_tasks_adapters.client.loop import Unasked
from mcp_tasks_adapters.proxy.driver import UpstreamTransport
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, Proxy, StdioUpstream, UpstreamHeaders
from mcp_tasks_adapters.stdio_client import StdioTransport

__all__ = ["Transports"]


class Transports:
    """One for each authorization at an upstream. Over HTTP, listen streams have connections of their own, so
    that many of them leave the others their places; on stdio all is said to one process.

    When upstreams are declared anew, those that are not as before get new transports; an old one stays until
    what is in flight on it has been answered.
    """

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
        self._old: list[HttpTransport | StdioTransport] = []

    def find(self, upstream: str, authorization: str, streams: bool) -> UpstreamTransport | None:
        """Return the way to an upstream; ``None``: there is none, or it knows no such authorization."""
        declared = self._upstreams.get(upstream)
        if declared is None:
            return None
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

    def change(self, proxy: Proxy) -> Set[tuple[str, str]]:
        """Lead to the upstreams of another declaration from now on; return where that is another way to what
        is the same server."""
        before, self._upstreams = self._upstreams, proxy.upstreams
        changed = set()
        for key in list(self._made):
            if _way(before.get(key[0]), key[1]) != _way(self._upstreams.get(key[0]), key[1]):
                old = self._made.pop(key)
                old.unasked(_nobody)  # what it still says is of a server that is not meant any more
                self._old.append(old)
                if _identity(before.get(key[0])) == _identity(self._upstreams.get(key[0])):
                    changed.add(key[:2])
        return changed

    @property
    def old(self) -> Sequence[UpstreamTransport]:
        """Those that no new request goes to."""
        return tuple(self._old)

    async def end(self, transport: UpstreamTransport) -> None:
        """End an old one, on which nothing is in flight any more."""
        found = next((old for old in self._old if old is transport), None)
        if found is None:
            return
        try:
            await found.close()  # where this is cancelled, it is for close() to end
        except Exception:
            self._old.remove(found)
            raise
        self._old.remove(found)

    async def close(self) -> None:
        """End all of them. No request is in flight any more."""
        for transport in (*self._made.values(), *self._old):
            await transport.close()


def _identity(declared: HttpUpstream | StdioUpstream | None) -> str | None:
    return None if declared is None else declared.settings.identity


def _nobody(_: Unasked) -> None:
    """Where nobody wants to hear of what belongs to no request."""


def _way(declared: HttpUpstream | StdioUpstream | None, authorization: str) -> object:
    """Return all that makes a transport what it is; labels and gates do not."""
    if isinstance(declared, HttpUpstream):
        headers = declared.authorizations.get(authorization) if authorization else declared.headers
        return declared.url, headers, declared.ssl_context, declared.connection_limits
    if isinstance(declared, StdioUpstream):
        return declared.command, declared.env, declared.cwd, declared.stderr
    return None
