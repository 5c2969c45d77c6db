"""What people see of a proxy's ledger in a trace (HIS): pure functions, asked in between.

``viewer  bob in team film with renderer sees H1``
    What bob may do with it, each action with its reason. ``in team``, ``directly in`` and ``with`` an
    upstream are left out where there is none.

``viewer  bob in team film lists pending assigned me``
    The rows of a list; ``assigned`` is left out for any.

``viewer  bob in team film opens H1``
    Its timeline.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp_tasks_proto.history import (
    Action,
    Assigned,
    ProjectView,
    Retention,
    TaskEntry,
    Viewer,
    decide_access,
    project_list,
    task_page,
)
from mcp_tasks_proto.testing.traces.words import START, TraceError, Words, task_name, tell_json

__all__ = ["viewed"]


def viewed(words: Words, entries: Mapping[str, TaskEntry], project: str, now: int) -> list[str]:
    """Return what somebody sees, a line each. ``entries`` are by the short names of their handles."""
    viewer = _viewer(words)
    match words.word("what the viewer does"):
        case "sees":
            return _seen(_entry(words, entries), viewer, now)
        case "lists":
            return _listed(words, entries, viewer, project, now)
        case "opens":
            return _opened(_entry(words, entries), viewer, now)
        case verb:
            raise TraceError(f"a viewer never {verb}")


def _viewer(words: Words) -> Viewer:
    name = words.word("the viewer")
    team = direct = upstream = frozenset[str]()
    if words.follows("in") and words.follows("team"):
        team = frozenset({words.word("the project")})
    if words.follows("directly") and words.follows("in"):
        direct = frozenset({words.word("the project")})
    if words.follows("with"):
        upstream = frozenset({words.word("the upstream")})
    return Viewer(principal=name, teams=team, direct=direct, upstreams=upstream)


def _entry(words: Words, entries: Mapping[str, TaskEntry]) -> TaskEntry:
    name = words.word("the task")
    if name not in entries:
        raise TraceError(f"the ledger has no {name}")
    return entries[name]


def _seen(entry: TaskEntry, viewer: Viewer, now: int) -> list[str]:
    told = []
    for action in Action:
        decision = decide_access(entry, viewer, action, Retention(), now)
        told.append(f"{action.value}: {'yes' if decision.allowed else 'no'}, {decision.reason.value}")
    return told


def _listed(
    words: Words, entries: Mapping[str, TaskEntry], viewer: Viewer, project: str, now: int
) -> list[str]:
    view = ProjectView(words.word("the view"))
    assigned = Assigned(words.word("whose")) if words.follows("assigned") else Assigned.ANY
    rows = project_list(
        entries.values(),
        viewer,
        project=project,
        view=view,
        assigned=assigned,
        retention=Retention(),
        now=now,
    )
    return [
        f"{task_name(row['taskId'])} {row['status']} {tell_json(row['label'])} polls {row['polls']}"
        for row in rows
    ] or ["nothing"]


def _opened(entry: TaskEntry, viewer: Viewer, now: int) -> list[str]:
    page = task_page(entry, viewer, retention=Retention(), now=now)
    if page is None:
        return ["nothing"]
    told = []
    for event in page["timeline"]:
        rest = {name: value for name, value in event.items() if name not in ("atMs", "kind", "label")}
        told.append(f"+{event['atMs'] - START} {event['kind']} {tell_json(rest)}")
    return told
