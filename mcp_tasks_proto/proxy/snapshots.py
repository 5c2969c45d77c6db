"""The end of a task, as the proxy keeps it: immutable, encrypted at rest by the host, for a while (PRX.13).

Only ends are kept. How a task stands that has not ended is asked of the upstream every time, so that an old
view is never served as current; and what an upstream forgets is still here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.wire.schema import from_stored, to_stored

__all__ = ["Snapshot", "first_of", "is_readable", "snapshot_from_json", "snapshot_to_json"]


@frozen(kw_only=True)
class Snapshot:
    """The terminal view of one task, as callers see it."""

    handle: str
    status: Status
    view: Mapping[str, Any]
    """The view as it stands in a result of ``tasks/get``, without that result's envelope."""
    stored_at_ms: int
    extra: Mapping[str, Any] = field(factory=dict)
    """Fields that a later version of this package wrote; carried along."""


def first_of(kept: Snapshot | None, offered: Snapshot) -> Snapshot:
    """Return the one that stands: whichever came first. A store decides so, with no other writer between."""
    return offered if kept is None else kept


def is_readable(snapshot: Snapshot | None, retention: Retention, now: int) -> bool:
    """Whether there is an end that may still be served."""
    return snapshot is not None and retention.has_payload(snapshot.stored_at_ms, now)


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as JSON; to be encrypted where it is kept."""
    return to_stored(snapshot)


def snapshot_from_json(value: Any) -> Snapshot:
    """Read what :func:`snapshot_to_json` wrote. Raises ``ValueError`` for anything else."""
    return from_stored(Snapshot, value, "snapshot")
