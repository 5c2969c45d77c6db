"""What a proxy of both eras is told, and asks for, beside what the modern engine knows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import frozen

from mcp_tasks_proto.effects import OpenStream, StopCall
from mcp_tasks_proto.inputs import LegacyInput
from mcp_tasks_proto.legacy.messages import ConnectionLost, SendLegacy, ServerAsked, StreamOpened
from mcp_tasks_proto.proxy.effects import ProxyEffect
from mcp_tasks_proto.proxy.inputs import ProxyInput
from mcp_tasks_proto.requester.inputs import NotificationReceived, RequestFailed, ResponseReceived

__all__ = [
    "DualEraProxyEffect",
    "DualEraProxyInput",
    "DualEraProxyStep",
    "HandlesListed",
    "ListHandles",
    "SendLegacyUpstream",
    "UpstreamFact",
    "UpstreamSaid",
    "UpstreamsClosing",
]

UpstreamFact = ResponseReceived | RequestFailed | NotificationReceived | ServerAsked | StreamOpened
"""What comes of a request that was sent to an upstream, by its name; as a requester is told of it.

These take the place of ``UpstreamAnswered``, ``UpstreamFailed`` and ``UpstreamNotified``.
"""


@frozen(kw_only=True)
class UpstreamSaid:
    """An upstream says, on the channel that all share, what belongs to no request; or its process has ended.

    So it is on stdio only: over HTTP everything comes on the stream of some request.
    """

    upstream: str
    authorization: str
    fact: ServerAsked | NotificationReceived | ConnectionLost


@frozen
class UpstreamsClosing:
    """The proxy is about to end: sessions with upstreams that nobody needs any more can be ended."""


@frozen
class HandlesListed:
    """The store's answer to :class:`ListHandles`: a page of one principal's handles, and whether there are
    more after the last of them."""

    token: Hashable
    handles: Sequence[str]
    more: bool


DualEraProxyInput = ProxyInput | LegacyInput | UpstreamFact | UpstreamSaid | UpstreamsClosing | HandlesListed


@frozen(kw_only=True)
class SendLegacyUpstream:
    """Send a message of 2025-11-25 to an upstream; report what comes of it as for ``SendUpstream``."""

    upstream: str
    authorization: str
    send: SendLegacy
    streams: bool = False
    """Whether its stream stays open for long."""


@frozen(kw_only=True)
class ListHandles:
    """Answer with ``HandlesListed`` or ``LoadFailed``: handles of bindings of this principal (LEG.7).

    At most ``limit`` of them, in the order of their characters' code points, beginning behind ``after``.
    """

    principal: str
    after: str | None
    limit: int
    token: Hashable


DualEraProxyEffect = ProxyEffect | ListHandles | SendLegacyUpstream | OpenStream | StopCall


@frozen
class DualEraProxyStep:
    """What is to be done about one input; where no translator has a part in it, it is the engine's own
    ``ProxyStep``, which says the same."""

    effects: tuple[DualEraProxyEffect, ...] = ()
    deadline: int | None = None
    """Unix milliseconds at which to hand in ``TimePassed``; ``None``: no need."""
