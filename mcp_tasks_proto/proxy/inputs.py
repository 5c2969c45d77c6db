"""What a host tells a proxy engine: facts, in the past tense.

Callers' messages come as to a server (:mod:`mcp_tasks_proto.inputs`). ``request`` is the engine's name for
one message that it had sent to an upstream; ``token`` names one thing that it asked of the host, who hands it
back.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.inputs import (
    ExchangeClosed,
    LoadFailed,
    MessageReceived,
    Saved,
    SaveFailed,
    SaveRefused,
    ShutdownStarted,
    StreamReady,
    TimePassed,
    WorkLost,
)
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.settings import Access, ProxySettings
from mcp_tasks_proto.proxy.snapshots import Snapshot

__all__ = [
    "AccessChanged",
    "MessageAdmitted",
    "ProxyInput",
    "RandomDrawn",
    "SettingsChanged",
    "SnapshotKept",
    "TaskLoaded",
    "UpstreamAnswered",
    "UpstreamChanged",
    "UpstreamFailed",
    "UpstreamNotified",
]


@frozen(kw_only=True, slots=False)
class MessageAdmitted(MessageReceived):
    """A message, with what its caller may do, as the host has found by authenticating it (PRX.7).

    A plain ``MessageReceived`` is taken for one with :attr:`~mcp_tasks_proto.proxy.ProxySettings.access`.
    """

    access: Access
    legacy: bool = False
    """Whether a translator stands before a caller of the legacy era: what this request declares is then the
    ``params.task`` of the caller's."""


@frozen(kw_only=True)
class UpstreamAnswered:
    """A request was answered."""

    request: int
    message: Any
    """The parsed JSON; ``None``: the body was none."""
    http_status: int | None = None
    """``None``: it did not come over HTTP."""


@frozen
class UpstreamNotified:
    """A notification came in on the way to the answer of ``request``, or on its listen stream."""

    request: int
    message: Any


@frozen
class UpstreamFailed:
    """A request will not be answered. ``sent``: whether any of it may have reached the upstream (PRX.4)."""

    request: int
    sent: bool = True


@frozen
class UpstreamChanged:
    """An upstream says, on the way to no request, that its tools are others now."""

    upstream: str


@frozen
class RandomDrawn:
    """Answer to ``DrawRandom``: :data:`~mcp_tasks_proto.proxy.handles.RANDOM_BYTES` random bytes.

    Or a multiple of that, at most :data:`~mcp_tasks_proto.proxy.handles.MOST_RANDOM_BYTES`: the rest is for
    the next handles, which are not asked for then.
    """

    token: Hashable
    random: bytes = field(repr=False)


@frozen
class TaskLoaded:
    """Answer to ``LoadTask``: what the store has under this handle."""

    token: Hashable
    binding: Binding | None
    snapshot: Snapshot | None


@frozen
class SnapshotKept:
    """Answer to ``SaveSnapshot``: the one that stands now, be it another that came first (PRX.13)."""

    token: Hashable
    snapshot: Snapshot


@frozen
class SettingsChanged:
    """The configuration is another one now. Streams stay open, as far as it allows them.

    What callers on open exchanges may do is told by an ``AccessChanged`` for each of them, after it.
    """

    settings: ProxySettings


@frozen(kw_only=True)
class AccessChanged:
    """Whoever waits on an exchange was authenticated anew (PRX.7). Harmless where it is not open any more.

    Where that fails, or finds another principal, a listen stream ends. Another request was let in, and is
    answered; what it has led to is checked anew with each use.
    """

    exchange: Hashable
    principal: str | None
    access: Access | None
    """``None``: the caller is not let in any more."""


ProxyInput = (
    MessageReceived
    | MessageAdmitted
    | ExchangeClosed
    | StreamReady
    | UpstreamAnswered
    | UpstreamNotified
    | UpstreamFailed
    | UpstreamChanged
    | RandomDrawn
    | TaskLoaded
    | LoadFailed
    | Saved
    | SaveFailed
    | SaveRefused
    | SnapshotKept
    | WorkLost
    | SettingsChanged
    | AccessChanged
    | TimePassed
    | ShutdownStarted
)
