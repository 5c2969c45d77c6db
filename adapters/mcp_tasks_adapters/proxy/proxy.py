"""A proxy as its operator declares it: upstreams, callers, policies. No loop, no sockets, nothing running."""

from __future__ import annotations

import os
import shlex
import ssl
from collections.abc import Mapping, Sequence
from hashlib import sha256
from secrets import token_bytes
from typing import Any, TypedDict, Unpack

from attrs import field, frozen

from mcp_tasks_adapters.client.http import ConnectionLimits, HeadersFunction
from mcp_tasks_adapters.http_exchange import HttpAddress, check_headers
from mcp_tasks_adapters.proxy.callers import AuthenticateFunction
from mcp_tasks_adapters.proxy.members import Members
from mcp_tasks_adapters.toolkit.server import RecordFunction
from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.legacy.messages import Era
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import (
    Access,
    HandleCodec,
    InputKind,
    ProxyLimits,
    ProxySettings,
    StoredHandles,
    ToolProfile,
    Upstream,
)
from mcp_tasks_proto.request_state import HmacSealer, Sealer

__all__ = ["HttpUpstream", "Policies", "Proxy", "StdioUpstream", "UpstreamHeaders"]

UpstreamHeaders = Mapping[str, str] | HeadersFunction | None
"""Headers to add to every request to an upstream, or a function, async or not, that is asked each time."""


@frozen(kw_only=True)
class HttpUpstream:
    """A server over Streamable HTTP. Raises ``ValueError`` for a URL or headers that cannot be used."""

    name: str
    url: str
    headers: UpstreamHeaders = field(default=None, repr=False)
    """The proxy's own authorization there: that of callers whose ``Access.authorizations`` is ``None``."""
    authorizations: Mapping[str, UpstreamHeaders] = field(factory=dict, repr=False)
    """Name of an authorization in ``Access.authorizations`` -> its headers."""
    label: str | None = None
    tasks: bool = True
    listen: bool = True
    era: Era | None = None
    """The only protocol that is spoken with it: ``"modern"`` or ``"legacy"``; by default it shows which."""
    ssl_context: ssl.SSLContext | None = None
    """For ``https``, in place of the standard library's default."""
    connection_limits: ConnectionLimits = field(
        factory=lambda: ConnectionLimits(connections=256, idle_connections=64)
    )
    """For each authorization; listen streams have as many connections of their own."""

    def __attrs_post_init__(self) -> None:
        HttpAddress.parse(self.url)
        for headers in (self.headers, *self.authorizations.values()):
            if isinstance(headers, Mapping):
                check_headers(headers.items())

    @property
    def settings(self) -> Upstream:
        """What the engine has to know of it."""
        return Upstream(
            name=self.name,
            label=self.label,
            identity=_digest(f"http {self.url}"),
            tasks=self.tasks,
            listen=self.listen,
            era=self.era,
        )


@frozen(kw_only=True)
class StdioUpstream:
    """A server on stdio, which is started when there is a first request for it. It knows no authorizations:
    it is for callers whose ``Access.authorizations`` is ``None``, or names it with the empty one."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] | None = field(default=None, repr=False)
    """Its environment; by default this process's own."""
    cwd: str | os.PathLike[str] | None = None
    stderr: Any = None
    """Where its stderr goes, as ``subprocess`` has it: by default to this process's own."""
    label: str | None = None
    tasks: bool = True
    listen: bool = True
    era: Era | None = None

    @property
    def settings(self) -> Upstream:
        """What the engine has to know of it."""
        return Upstream(
            name=self.name,
            label=self.label,
            identity=_digest(f"stdio {shlex.join(self.command)}"),
            tasks=self.tasks,
            listen=self.listen,
            http=False,
            era=self.era,
        )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class Policies(TypedDict, total=False):
    """Policies of a proxy; each stands at :class:`~mcp_tasks_proto.proxy.ProxySettings`."""

    info: Mapping[str, Any]
    instructions: str | None
    profiles: Mapping[str, ToolProfile]
    access: Access
    tasks: bool
    bridging: bool
    legacy_callers: bool
    promote_after_ms: int | None
    collapse: bool
    input_kinds: frozenset[InputKind]
    extensions: frozenset[str]
    methods: frozenset[str]
    cached_methods: frozenset[str]
    response_bytes: int | None
    retention: Retention
    deleted_projects: frozenset[str]
    several_processes: bool
    discovery_ttl_ms: int
    page_size: int


def legacy_policies(legacy: str) -> Policies:
    """Return what the ``legacy`` of a server says, for a proxy (LEG.1): callers of 2025-11-25 get everything
    but tasks (``"ignore"``), tasks as well (``"serve"``), or nothing (``"refuse"``)."""
    return Policies(bridging=legacy == "serve", legacy_callers=legacy != "refuse")


class Proxy:
    """What a proxy stands before, and for whom. Give it to one of the loop modules to run.

    ``authenticate`` is asked on every request. Without it nobody has a name, so every caller may use every
    handle it knows. ``limits`` bound what callers and upstreams may send, ``proxy_limits`` the proxy itself.

    ``members`` say who belongs to which project: with them, and ``authenticate``, the tasks of projects are
    shown over HTTP (:mod:`mcp_tasks_adapters.dashboard`).

    ``sealer`` seals ``requestState``; without one each process makes a key of its own, which serves one node
    until it restarts. ``codec`` makes the handles; by default they are random, and mean nothing without the
    store.

    Raises ``ValueError`` for settings that contradict each other.
    """

    def __init__(
        self,
        upstreams: Sequence[HttpUpstream | StdioUpstream],
        *,
        name: str = "mcp-tasks-proxy",
        version: str = "0",
        authenticate: AuthenticateFunction | None = None,
        members: Members | None = None,
        limits: Limits | None = None,
        proxy_limits: ProxyLimits | None = None,
        sealer: Sealer | None = None,
        codec: HandleCodec | None = None,
        **policies: Unpack[Policies],
    ) -> None:
        self.upstreams = {upstream.name: upstream for upstream in upstreams}
        self.authenticate = authenticate
        self.members = members
        self.limits = limits or Limits()
        self.codec = codec or StoredHandles()
        self.record: RecordFunction | None = None
        """Records the engine. Read when the proxy starts; each engine takes a function of its own."""
        self.settings = ProxySettings(
            name=name,
            version=version,
            upstreams=tuple(upstream.settings for upstream in upstreams),
            sealer=sealer or HmacSealer((token_bytes(32),)),
            limits=proxy_limits or ProxyLimits(),
            **policies,
        )
