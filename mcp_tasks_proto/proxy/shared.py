"""What all parts of one proxy engine have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.proxy.effects import TaskQuota
from mcp_tasks_proto.proxy.handles import HandleCodec
from mcp_tasks_proto.proxy.settings import ProxyLimits, ProxySettings
from mcp_tasks_proto.timers import Timers

__all__ = ["Served", "Shared"]


_NONE: Final = frozenset[str]()


@frozen
class Served:
    """What is served to callers; for :func:`~mcp_tasks_proto.negotiation.negotiate`."""

    versions: tuple[str, ...]
    methods: frozenset[str]


@define(eq=False, repr=False, kw_only=True)
class Shared:
    """Settings, effects, timers and the time of the input that is being handled."""

    settings: ProxySettings
    codec: HandleCodec
    node: str | None
    out: list[Any] = field(init=False, factory=list)
    """Where effects go, in order."""
    timers: Timers = field(init=False, factory=Timers)
    now: int = field(init=False, default=0)
    limits: ProxyLimits = field(init=False)
    """The bounds in force, as are the others that follow from the settings."""
    quota: TaskQuota = field(init=False)
    served: Served = field(init=False)
    server_info: Mapping[str, Any] = field(init=False)
    """The proxy, as it names itself to callers (WIRE.4)."""
    client_info: Mapping[str, Any] = field(init=False)
    """The proxy, as it names itself to upstreams."""

    def __attrs_post_init__(self) -> None:
        self.put_in_force(self.settings)

    def put_in_force(self, settings: ProxySettings) -> None:
        """Go on with these settings."""
        limits, name, version = settings.limits, settings.name, settings.version
        self.settings = settings
        self.limits = limits
        self.quota = TaskQuota(tasks=limits.tasks, tasks_per_principal=limits.tasks_per_principal)
        self.served = Served(settings.versions, settings.methods if settings.single else _NONE)
        self.server_info = {**settings.info, "name": name, "version": version}
        self.client_info = {"name": name, "version": version}
