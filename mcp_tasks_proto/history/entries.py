"""What the ledger keeps of one task: safe metadata and a timeline, never a payload (HIS.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.wire.schema import from_stored, to_stored

__all__ = ["ASSIGNED", "CREATED", "STATUS", "TaskEntry", "TimelineEvent", "entry_from_json", "entry_to_json"]

CREATED = "created"
STATUS = "status"
ASSIGNED = "assigned"


@frozen(kw_only=True)
class TimelineEvent:
    """One thing that happened to a task."""

    kind: str
    """:data:`CREATED`, :data:`STATUS` or :data:`ASSIGNED`."""
    at_ms: int
    """When the proxy learned of it, Unix milliseconds."""
    status: Status | None = None
    """The new one; ``None`` with :data:`ASSIGNED`."""
    actor: str | None = None
    """Who assigned."""
    assignee: str | None = None
    """To whom; ``None``: the assignment was taken back."""


@frozen(kw_only=True)
class TaskEntry:
    """One task in the ledger. It changes by being replaced, its :attr:`version` one higher each time."""

    handle: str
    """The proxy's own id of the task; the key of the entry."""
    version: int = 1
    project: str | None
    owner: str | None
    """The original user."""
    caller: str
    """A label of the caller, safe to show to everybody who may read the entry."""
    api_key: bool = False
    """Whether an API key started it: its payloads and controls are nobody's (HIS.3)."""
    upstream: str
    """The upstream's label, safe to show."""
    tool: str
    """The tool, as the caller called it."""
    status: Status
    created_at_ms: int
    updated_at_ms: int
    """When the status last changed."""
    assignee: str | None = None
    polls: int = 0
    """How often its status was asked for; counted, not listed."""
    timeline: tuple[TimelineEvent, ...]
    """Oldest first."""
    extra: Mapping[str, Any] = field(factory=dict)
    """Fields that a later version of this package wrote; carried along."""


def entry_to_json(entry: TaskEntry) -> dict[str, Any]:
    """Return an entry as JSON that a store can keep."""
    return to_stored(entry)


def entry_from_json(value: Any) -> TaskEntry:
    """Read what :func:`entry_to_json` wrote. Raises ``ValueError`` for anything else."""
    return from_stored(TaskEntry, value, "ledger entry")
