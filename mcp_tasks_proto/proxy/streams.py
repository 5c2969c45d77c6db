"""The listen streams of a proxy's callers, and what each holds: its tasks, and its upstreams' streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.desk import KnownTask
from mcp_tasks_proto.proxy.upstreams import Target
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import notification_message

__all__ = ["CallerStream", "Listened", "Source"]


@define(eq=False, repr=False, kw_only=True)
class Listened:
    """A task on a caller's stream."""

    stream: CallerStream
    binding: Binding
    source: Source | None = None
    """The upstream stream that brings news of it, once that has agreed to."""
    polling: bool = False
    taking: bool = False
    """Whether a view that was pushed is on its way to the store; others are not taken in meanwhile."""
    told: Mapping[str, Any] | None = None
    """The view that was told last, or is to be told next."""
    updated_at: str = ""
    kept_at_ms: int | None = None
    """When that was stored, where it is an end that is kept."""


@define(eq=False, repr=False, kw_only=True)
class Source:
    """An upstream's stream for one caller's."""

    target: Target
    tasks: dict[str, Listened]
    """By the upstream's own ids."""
    request: int | None = None
    open: bool = False
    """Whether the upstream has acknowledged it."""


@define(eq=False, repr=False, kw_only=True)
class CallerStream:
    """A caller's stream, from its request to its end."""

    exchange: Exchange
    outbox: Outbox
    tools_list_changed: bool
    asked_for_tasks: bool
    handles: tuple[str, ...]
    unanswered: int
    """Look-ups under way; the acknowledgement waits for them."""
    found: dict[str, KnownTask] = field(factory=dict)
    begun: bool = False
    """Whether the upstreams' streams were asked for, where other tools are to be told of."""
    acknowledged: bool = False
    tools_changed: bool = False
    """Whether there were other tools before it could be told."""
    tasks: dict[str, Listened] = field(factory=dict)
    """Those that have not ended, by handle."""
    waiting: dict[str, Listened] = field(factory=dict)
    """Those of which a view waits to be sent, by handle; it may be their end."""
    sources: list[Source] = field(factory=list)

    def notification(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message of this stream: every one names its subscription (SUB.1)."""
        meta = {SUBSCRIPTION_ID: self.exchange.request.id}
        return notification_message(method, {**params, "_meta": meta})
