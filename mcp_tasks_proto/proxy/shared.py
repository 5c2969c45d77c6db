"""What all parts of one proxy engine have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.proxy.effects import ProxyEffect
from mcp_tasks_proto.proxy.handles import HandleCodec
from mcp_tasks_proto.proxy.settings import ProxyLimits, ProxySettings
from mcp_tasks_proto.timers import Timers

__all__ = ["Shared"]


@define(eq=False, kw_only=True)
class Shared:
    """Settings, effects, timers and the time of the input that is being handled."""

    settings: ProxySettings
    codec: HandleCodec
    node: str | None
    out: list[ProxyEffect] = field(init=False, factory=list)
    """Where effects go, in order."""
    timers: Timers = field(init=False, factory=Timers)
    now: int = field(init=False, default=0)

    @property
    def limits(self) -> ProxyLimits:
        """The bounds in force."""
        return self.settings.limits

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The proxy, as it names itself to callers (WIRE.4)."""
        settings = self.settings
        return {**settings.info, "name": settings.name, "version": settings.version}
