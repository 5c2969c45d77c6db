"""What a proxy engine asks of its host: commands, in the imperative and in order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from attrs import frozen

from mcp_tasks_proto.effects import Reply, Send, StopCall
from mcp_tasks_proto.history import Observation, TaskEntry
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.snapshots import Snapshot
from mcp_tasks_proto.wire.http import HeaderParameter

__all__ = [
    "DrawRandom",
    "DropTask",
    "LoadTask",
    "Note",
    "ProxyEffect",
    "ProxyStep",
    "Purge",
    "SaveBinding",
    "SaveSnapshot",
    "SendUpstream",
    "StopUpstream",
    "TaskQuota",
]


# -- to the upstreams ----------------------------------------------------------------------------------


@frozen(kw_only=True)
class SendUpstream:
    """Send a request; report ``UpstreamAnswered`` or ``UpstreamFailed``, and notifications before it.

    All headers are made from the message (:func:`~mcp_tasks_proto.wire.http.request_headers`), none from the
    caller's (PRX.9).
    """

    request: int
    """Its name, and its JSON-RPC id."""
    upstream: str
    authorization: str
    """Under which of the host's authorizations there."""
    message: dict[str, Any]
    parameters: tuple[HeaderParameter, ...] = ()
    """Arguments to mirror into headers (HTTP.3)."""
    streams: bool = False
    """Whether it is a listen stream, which stays open for long."""
    task_path: bool = False
    """Whether it is on the task path: then no cache is read or written, no requests are merged, nothing is
    sent twice by the transport, and the answer is not cut (PRX.3)."""


@frozen
class StopUpstream:
    """Nobody waits for this request any more: close its stream, or cancel it on a shared channel.

    Nothing more is expected of it.
    """

    request: int


# -- to the store, and to the source of randomness -----------------------------------------------------


@frozen
class DrawRandom:
    """Answer with ``RandomDrawn``: randomness for a handle, and for some more if that is cheaper."""

    token: Hashable


@frozen
class LoadTask:
    """Answer with ``TaskLoaded`` or ``LoadFailed``."""

    handle: str
    token: Hashable


@frozen(kw_only=True)
class TaskQuota:
    """Refuse the save if, with it, the store would hold more bindings than this (LIM.3)."""

    tasks: int
    tasks_per_principal: int


@frozen(kw_only=True)
class SaveBinding:
    """Write a new binding and its first ledger entry, both or neither.

    ``binding`` is ``None`` where the handle carries it. Answer with ``Saved`` once it is durable, with
    ``SaveRefused`` and the quota that is full, or with ``SaveFailed``, also where the handle is taken.
    """

    binding: Binding | None
    entry: TaskEntry
    quota: TaskQuota
    token: Hashable


@frozen
class DropTask:
    """Remove a binding and its entry: nobody has got the handle. No answer is expected."""

    handle: str


@frozen
class SaveSnapshot:
    """Keep the first end of a task (``first_of``), encrypted, and note it in the ledger (``observe``).

    Answer with ``SnapshotKept`` and the one that stands, or with ``SaveFailed``.
    """

    snapshot: Snapshot
    observation: Observation
    token: Hashable


@frozen
class Note:
    """Note in the ledger what was seen of a task (``observe``). No answer is expected; it may be lost."""

    handle: str
    observation: Observation


@frozen(kw_only=True)
class Purge:
    """Remove what is past its time: bindings at their ``expires_at_ms`` if no snapshot is kept with them;
    snapshots stored before ``payloads_before_ms``, and with them the bindings that say ``promoted``; entries
    created before ``metadata_before_ms``. And of ``projects`` all three, whatever their time (HIS.4): a
    binding knows its project also where its entry is gone. No answer is expected."""

    now_ms: int
    payloads_before_ms: int
    metadata_before_ms: int
    projects: frozenset[str] = frozenset()


ProxyEffect = (
    Reply
    | Send
    | StopCall
    | SendUpstream
    | StopUpstream
    | DrawRandom
    | LoadTask
    | SaveBinding
    | DropTask
    | SaveSnapshot
    | Note
    | Purge
)


@frozen
class ProxyStep:
    """The engine's answer to one input."""

    effects: tuple[ProxyEffect, ...] = ()
    deadline: int | None = None
    """Unix milliseconds at which to hand in ``TimePassed``; ``None``: no need."""
