"""The ledger at its most naïve: what is listed of each task, and who may see it and do what (HIS)."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.testing.model.tasks import ENDED, INPUT_REQUIRED, WORKING

__all__ = ["ModelEntry", "ModelLedger", "ModelViewer"]

SHOWN: Final = (
    ("all", (WORKING, INPUT_REQUIRED, *ENDED)),
    ("pending", (WORKING, INPUT_REQUIRED)),
    *((status, (status,)) for status in ENDED),
)
"""View -> the statuses that it shows (HIS.2)."""


@frozen(kw_only=True)
class ModelViewer:
    """Somebody who looks at projects."""

    principal: str
    teams: Set[str] = frozenset()
    """Projects whose team they are in."""
    direct: Set[str] = frozenset()
    """Projects they are a direct member of."""
    upstreams: Set[str] = frozenset()
    """Labels of the upstreams that they are authorized for."""


@define(eq=False, kw_only=True)
class ModelEntry:
    """What everybody who may look at a task sees of it: no payload (HIS.1)."""

    handle: str
    project: str | None
    owner: str | None
    api_key: bool
    upstream: str
    tool: str
    created_at_ms: int
    status: str = WORKING
    polls: int = 0
    assignee: str | None = None
    timeline: list[tuple[str, str | None]] = field(factory=list)
    """``created`` or ``status`` with a status, ``assigned`` with somebody or nobody."""

    def __attrs_post_init__(self) -> None:
        self.timeline.append(("created", WORKING))


@define(eq=False, kw_only=True)
class ModelLedger:
    """All entries."""

    metadata_ms: int
    """How long an entry is kept (HIS.4)."""
    entries: dict[str, ModelEntry] = field(factory=dict)

    def seen(self, handle: str, status: str, *, polled: bool = False) -> None:
        """A task was seen to stand so; its end is noted once, and nothing after it (HIS.1)."""
        entry = self.entries.get(handle)
        if entry is None:
            return
        entry.polls += polled
        if entry.status not in (*ENDED, status):
            entry.status = status
            entry.timeline.append(("status", status))

    def assigned(self, handle: str, assignee: str | None) -> None:
        """Somebody was assigned to a task, or nobody any more: no status changes with it (HIS.2)."""
        entry = self.entries[handle]
        if entry.assignee != assignee:
            entry.assignee = assignee
            entry.timeline.append(("assigned", assignee))

    def purge(self, now: int) -> None:
        """Remove what has been kept long enough."""
        self.entries = {
            handle: entry for handle, entry in self.entries.items() if not self._outlived(entry, now)
        }

    def _outlived(self, entry: ModelEntry, now: int) -> bool:
        return now >= entry.created_at_ms + self.metadata_ms

    def may(self, viewer: ModelViewer, handle: str, action: str, now: int) -> bool:
        """Whether somebody may ``read``, ``assign``, ``read_payload``, ``answer`` or ``cancel`` (HIS.3)."""
        entry = self.entries[handle]
        in_team = entry.project in viewer.teams
        reads = in_team or entry.project in viewer.direct
        if entry.project is None:
            reads = in_team = entry.owner == viewer.principal and not entry.api_key
        if not reads or self._outlived(entry, now):
            return False
        if action in ("read", "assign"):
            return action == "read" or in_team
        originally = entry.owner == viewer.principal and not entry.api_key
        over = action != "read_payload" and entry.status in ENDED
        return originally and entry.upstream in viewer.upstreams and not over

    def listed(
        self, viewer: ModelViewer, project: str, now: int, *, view: str = "all", assigned: str = "any"
    ) -> list[str]:
        """Return the handles in somebody's list of a project, newest first (HIS.2, HIS.5).

        ``assigned``: to ``me``, ``somebody``, ``nobody``, or ``any`` of these.
        """
        statuses = dict(SHOWN)[view]
        wanted: dict[str, Any] = {
            "any": lambda assignee: True,
            "me": lambda assignee: assignee == viewer.principal,
            "somebody": lambda assignee: assignee is not None,
            "nobody": lambda assignee: assignee is None,
        }
        found = [
            entry
            for entry in self.entries.values()
            if entry.project == project and entry.status in statuses and wanted[assigned](entry.assignee)
        ]
        shown = [entry for entry in found if self.may(viewer, entry.handle, "read", now)]
        shown.sort(key=lambda entry: (-entry.created_at_ms, entry.handle))
        return [entry.handle for entry in shown]
