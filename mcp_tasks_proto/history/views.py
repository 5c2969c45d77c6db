"""What a dashboard shows of the ledger: builders of lists, of their pages, and of one task (HIS.2, HIS.5).

Nothing here is a payload, and nothing is shown that :func:`~mcp_tasks_proto.history.access.decide_access`
does not allow: an entry out of reach is left out of lists, and its page is ``None``, as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.history.access import Action, Viewer, decide_access
from mcp_tasks_proto.history.entries import TaskEntry, TimelineEvent
from mcp_tasks_proto.history.retention import Retention
from mcp_tasks_proto.lifecycle import Status

__all__ = [
    "LABELS",
    "Assigned",
    "Place",
    "ProjectPage",
    "ProjectView",
    "place_of",
    "project_list",
    "project_page",
    "task_page",
]

LABELS: Final[Mapping[Status, str]] = {
    Status.WORKING: "Working",
    Status.INPUT_REQUIRED: "Waiting for input",
    Status.COMPLETED: "Completed",
    Status.FAILED: "Failed",
    Status.CANCELLED: "Cancelled",
}
"""How a status reads to people."""


class ProjectView(Enum):
    """Which tasks a list shows, by status."""

    ALL = "all"
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Assigned(Enum):
    """Which tasks a list shows, by assignment; independent of the view."""

    ANY = "any"
    ME = "me"
    SOMEBODY = "somebody"
    NOBODY = "nobody"


_SHOWN: Final[Mapping[ProjectView, frozenset[Status]]] = {
    ProjectView.ALL: frozenset(Status),
    ProjectView.PENDING: frozenset({Status.WORKING, Status.INPUT_REQUIRED}),
    ProjectView.COMPLETED: frozenset({Status.COMPLETED}),
    ProjectView.FAILED: frozenset({Status.FAILED}),
    ProjectView.CANCELLED: frozenset({Status.CANCELLED}),
}


@frozen(order=True)
class Place:
    """A place in a project's list, which shows the newest task first: see :func:`place_of`.

    It stays where it is, whatever tasks come or go.
    """

    newest_first: int
    """The time of creation, negative."""
    handle: str


def place_of(entry: TaskEntry) -> Place:
    """Return where an entry stands in the list of its project."""
    return Place(-entry.created_at_ms, entry.handle)


@frozen(kw_only=True)
class ProjectPage:
    """A part of a project's list."""

    rows: Sequence[Mapping[str, Any]]
    after: Place | None
    """After which place there may be more; ``None``: that was all. Then this page may be short, or empty."""


def project_list(
    entries: Iterable[TaskEntry],
    viewer: Viewer,
    *,
    project: str,
    view: ProjectView = ProjectView.ALL,
    assigned: Assigned = Assigned.ANY,
    retention: Retention,
    now: int,
) -> list[dict[str, Any]]:
    """Return the rows of a list as JSON, newest task first."""
    shown = [
        entry
        for entry in entries
        if entry.project == project
        and entry.status in _SHOWN[view]
        and _fits(entry, assigned, viewer)
        and decide_access(entry, viewer, Action.READ, retention, now).allowed
    ]
    return [_row(entry) for entry in sorted(shown, key=place_of)]


def project_page(
    stretch: Sequence[TaskEntry],
    viewer: Viewer,
    *,
    project: str,
    view: ProjectView = ProjectView.ALL,
    assigned: Assigned = Assigned.ANY,
    most: int,
    is_last: bool,
    retention: Retention,
    now: int,
) -> ProjectPage:
    """Return a page of at most so many rows, from a stretch of a project's entries.

    A stretch is all entries from one place to another, whatever is shown of them: so a store reads a bounded
    number of them for a page, however few there are to be shown. ``is_last``: there are none after it.
    """
    shown = project_list(
        stretch, viewer, project=project, view=view, assigned=assigned, retention=retention, now=now
    )
    if len(shown) > most:
        rows = shown[:most]
        return ProjectPage(rows=rows, after=Place(-rows[-1]["createdAtMs"], rows[-1]["taskId"]))
    return ProjectPage(rows=shown, after=None if is_last else max(map(place_of, stretch), default=None))


def task_page(entry: TaskEntry, viewer: Viewer, *, retention: Retention, now: int) -> dict[str, Any] | None:
    """Return one task with its timeline and what the viewer may do, as JSON; ``None``: nothing to be seen."""
    if not decide_access(entry, viewer, Action.READ, retention, now).allowed:
        return None
    return {
        **_row(entry),
        "timeline": [_event(event) for event in entry.timeline],
        "allowed": [
            action.value for action in Action if decide_access(entry, viewer, action, retention, now).allowed
        ],
    }


def _fits(entry: TaskEntry, assigned: Assigned, viewer: Viewer) -> bool:
    match assigned:
        case Assigned.ME:
            return entry.assignee == viewer.principal
        case Assigned.SOMEBODY:
            return entry.assignee is not None
        case Assigned.NOBODY:
            return entry.assignee is None
        case _:
            return True


def _row(entry: TaskEntry) -> dict[str, Any]:
    return {
        "taskId": entry.handle,
        "project": entry.project,
        "caller": entry.caller,
        "upstream": entry.upstream,
        "tool": entry.tool,
        "status": entry.status.value,
        "label": LABELS[entry.status],
        "createdAtMs": entry.created_at_ms,
        "updatedAtMs": entry.updated_at_ms,
        "assignee": entry.assignee,
        "polls": entry.polls,
    }


def _event(event: TimelineEvent) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": event.kind, "atMs": event.at_ms}
    if event.status is not None:
        return {**shown, "status": event.status.value, "label": LABELS[event.status]}
    return {**shown, "actor": event.actor, "assignee": event.assignee}
