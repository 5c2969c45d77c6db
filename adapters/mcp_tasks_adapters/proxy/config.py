"""The configuration of a proxy as one value: where it listens, what it stands before, who may call.

:func:`~mcp_tasks_adapters.proxy.config_file.read_config` makes one from a file; nothing in here reads
anything. Who may do and see what is decided by :attr:`ProxyConfig.directory`, which is the core's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from mcp_tasks_adapters.proxy.callers import Caller, Credentials
from mcp_tasks_adapters.proxy.encryption import HandleKeys
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, Policies, Proxy, StdioUpstream
from mcp_tasks_proto.history import Viewer
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import Access, Directory, ProxyLimits, Upstream
from mcp_tasks_proto.request_state import Sealer

__all__ = ["Listen", "ProxyConfig", "StorePlace", "bounds_of_one"]


@frozen(kw_only=True)
class Listen:
    """Where to listen, and for whom."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: a free one."""
    path: str = "/mcp"
    allowed_hosts: Sequence[str] = ()
    """More ``Host`` values than those of the loopback addresses and of ``host``; ``*`` for any (HTTP.1)."""
    allowed_origins: Sequence[str] = ()


@frozen(kw_only=True)
class StorePlace:
    """Where handles, ends and the ledger are kept."""

    place: str | None = None
    """``sqlite:FILE`` or ``memory:``; ``None``: in memory, which is worth a word."""
    key_file: Path | None = None
    """Keys to seal a file with; ``None``: they are in the environment."""


@frozen(kw_only=True)
class ProxyConfig:
    """All that a proxy is told. It changes by being replaced (:attr:`fixed` does not, while it runs)."""

    name: str = "mcp-tasks-proxy"
    """What it calls itself to callers and upstreams."""
    version: str = "0"
    listen: Listen = field(factory=Listen)
    store: StorePlace = field(factory=StorePlace)
    handle_keys: HandleKeys | None = None
    """With them, handles carry their binding, and several proxies take each other's (PRX.5)."""
    limits: Limits = field(factory=Limits)
    """Of messages and connections."""
    proxy_limits: ProxyLimits = field(factory=ProxyLimits)
    upstreams: tuple[HttpUpstream | StdioUpstream, ...]
    directory: Directory = field(factory=Directory)
    """Projects, members with their roles, programs: who may call and look at what (HIS.3)."""
    callers: Mapping[str, Caller] | None = field(default=None, repr=False)
    """SHA-256 digest of a token or an API key, in lower-case hexadecimal -> whose it is, and what that caller
    may do (:meth:`Directory.access`). ``None``: everybody is let in, without a name."""
    policies: Policies = field(factory=lambda: Policies())
    """Tool profiles, feature gates, retention: as :class:`~mcp_tasks_adapters.proxy.Proxy` takes them."""

    @property
    def fixed(self) -> Mapping[str, object]:
        """What cannot change while the proxy runs, by the name of its table in a file."""
        return {
            "listen": self.listen,
            "store": self.store,
            "handles": self.handle_keys,
            "limits": self.limits,
        }

    @property
    def upstream_settings(self) -> Sequence[Upstream]:
        """The upstreams, as the core knows them."""
        return [upstream.settings for upstream in self.upstreams]

    @property
    def credentials(self) -> Credentials | None:
        """What tells callers apart by the headers of their requests, on every route alike.

        Raises :class:`~mcp_tasks_adapters.toolkit.Unauthorized` when it is called with those of a stranger.
        ``None``: everybody is let in, without a name.
        """
        return None if self.callers is None else Credentials(self.callers)

    def viewer(self, caller: Caller, project: str) -> Viewer | None:
        """Return a caller as somebody who looks at a project; ``None``: it is nobody in person.

        Programs with an API key and callers without a name do not look at projects. Whoever has no role in
        the project, be it there or not, is a viewer to whom nothing is shown (HIS.3).
        """
        if caller.principal is None or caller.access.api_key:
            return None
        return self.directory.viewer(caller.principal, project, self.upstream_settings)

    def projects(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Return the projects that a caller may look at; somebody who is nobody in person looks at none."""
        if caller.principal is None or caller.access.api_key:
            return ()
        return self.directory.shown_projects(caller.principal)

    def project(self, caller: Caller, project: str) -> Mapping[str, Any] | None:
        """Return one of these with its members."""
        if caller.principal is None or caller.access.api_key:
            return None
        return self.directory.shown_project(caller.principal, project)

    def access(self, caller: Caller, project: str) -> Access | None:
        """Return what a caller may do with tasks of a project; ``None``: nothing, or it is nobody in person.

        A token says who somebody is. The tasks of its calls belong to one project; on a dashboard its person
        is the same in all of theirs.
        """
        if caller.principal is None or caller.access.api_key:
            return None
        if caller.access.project == project:
            return caller.access
        return self.directory.access(caller.principal, project, self.upstream_settings)

    def proxy(self, *, sealer: Sealer | None = None) -> Proxy:
        """Return the proxy to run, with ``sealer`` for ``requestState``, or one that follows from the keys of
        handles, or else with a key of its own.

        Raises ``ValueError`` for settings that contradict each other.
        """
        keys = self.handle_keys
        if sealer is None and keys is not None:
            sealer = keys.sealer()
        return Proxy(
            self.upstreams,
            name=self.name,
            version=self.version,
            authenticate=self.credentials,
            members=self,
            limits=self.limits,
            proxy_limits=self.proxy_limits,
            sealer=sealer,
            codec=None if keys is None else keys.codec(),
            **self.policies,
        )


def bounds_of_one(limits: ProxyLimits) -> ProxyLimits:
    """Return the bounds of a proxy whose callers have no name: all of them are one to it."""
    return evolve(limits, tasks_per_principal=limits.tasks, streams_per_principal=limits.streams)
