"""How the ledger grows: pure functions from one entry to the next (HIS.1, HIS.2).

Each gives back the very entry that it was given where there is nothing to note, so that the same fact told
twice - by two polls, two nodes, or before and after a crash - is noted once. A store applies them where no
other writer can come between: it reads the entry, calls the function, and writes what came of it.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, frozen

from mcp_tasks_proto.history.entries import ASSIGNED, CREATED, STATUS, TaskEntry, TimelineEvent
from mcp_tasks_proto.lifecycle import Status

__all__ = ["LONGEST_TIMELINE", "Observation", "assign", "count_polls", "observe", "opened", "repeats"]

LONGEST_TIMELINE: Final = 1024
"""Events kept of one task. The last place is for its end, and what no longer fits is not listed."""


@frozen(kw_only=True)
class Observation:
    """What the proxy saw of a task at one moment."""

    status: Status
    at_ms: int
    polled: bool = False
    """Whether a caller had asked."""


def opened(
    *,
    handle: str,
    project: str | None,
    owner: str | None,
    caller: str,
    api_key: bool,
    upstream: str,
    tool: str,
    status: Status,
    now: int,
) -> TaskEntry:
    """Return the entry of a new task, which may have ended already."""
    entry = TaskEntry(
        handle=handle,
        project=project,
        owner=owner,
        caller=caller,
        api_key=api_key,
        upstream=upstream,
        tool=tool,
        status=Status.WORKING,
        created_at_ms=now,
        updated_at_ms=now,
        timeline=(TimelineEvent(kind=CREATED, at_ms=now, status=Status.WORKING),),
    )
    if status is Status.WORKING:
        return entry
    return evolve(observe(entry, Observation(status=status, at_ms=now)), version=1)


def observe(entry: TaskEntry, seen: Observation) -> TaskEntry:
    """Note what was seen: a change of status once, a poll in the count.

    An ended task takes no other status: its end stands in the timeline exactly once, and is the last status
    there. Times do not go back, whatever clock another node has.
    """
    changes: dict[str, Any] = {}
    if seen.polled:
        changes["polls"] = entry.polls + 1
    if not repeats(entry, seen):
        at_ms = max(seen.at_ms, entry.updated_at_ms)
        changes |= {"status": seen.status, "updated_at_ms": at_ms}
        room = LONGEST_TIMELINE - (0 if seen.status.terminal else 1)
        if len(entry.timeline) < room:
            event = TimelineEvent(kind=STATUS, at_ms=at_ms, status=seen.status)
            changes["timeline"] = (*entry.timeline, event)
    return _changed(entry, changes)


def repeats(entry: TaskEntry, seen: Observation) -> bool:
    """Whether there is nothing to note but that there was a poll, if there was one."""
    return seen.status is entry.status or entry.status.terminal


def count_polls(entry: TaskEntry, polls: int) -> TaskEntry:
    """Note so many polls at once, as :func:`observe` does one that :func:`repeats` what is noted."""
    return evolve(entry, version=entry.version + polls, polls=entry.polls + polls) if polls else entry


def assign(entry: TaskEntry, *, actor: str, assignee: str | None, now: int) -> TaskEntry:
    """Assign a task to somebody, or with ``None`` to nobody. It changes no status and grants nothing (HIS.2).

    Whether ``actor`` may is for :func:`~mcp_tasks_proto.history.access.decide_access` to say.
    """
    if entry.assignee == assignee:
        return entry
    changes: dict[str, Any] = {"assignee": assignee}
    if len(entry.timeline) < LONGEST_TIMELINE - 1:
        event = TimelineEvent(kind=ASSIGNED, at_ms=now, actor=actor, assignee=assignee)
        changes["timeline"] = (*entry.timeline, event)
    return _changed(entry, changes)


def _changed(entry: TaskEntry, changes: dict[str, Any]) -> TaskEntry:
    return evolve(entry, version=entry.version + 1, **changes) if changes else entry
