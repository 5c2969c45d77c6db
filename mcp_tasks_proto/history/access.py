"""Who may do what with a task in the ledger: one decision, with its reason (HIS.3, HIS.5)."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from attrs import frozen

from mcp_tasks_proto.history.entries import TaskEntry
from mcp_tasks_proto.history.retention import Retention

__all__ = ["AccessDecision", "AccessReason", "Action", "Viewer", "decide_access", "decide_project"]


class Action(Enum):
    """What somebody wants to do with a task."""

    READ = "read"
    """See its metadata and timeline."""
    ASSIGN = "assign"
    """Change who it is assigned to."""
    READ_PAYLOAD = "read_payload"
    """See its input requests, its result or its error."""
    ANSWER = "answer"
    """Answer its input requests."""
    CANCEL = "cancel"
    """Cancel it."""


class AccessReason(Enum):
    """Why."""

    TEAM = "a member of the project's team"
    DIRECT = "a direct member of the project"
    ORIGINAL_USER = "the original user"
    OUTLIVED = "the entry is past its retention"
    OUTSIDE = "no access to the project"
    NO_TEAM_RIGHTS = "direct membership gives no rights of the team"
    API_KEY = "an API key started it: its payloads and controls are nobody's"
    SOMEBODY_ELSES = "not the original user"
    UPSTREAM = "no authorization for the upstream any more"
    ENDED = "it has ended: there is nothing left to control"


@frozen(kw_only=True)
class Viewer:
    """Somebody who looks at a project, as the host has authenticated them, now."""

    principal: str
    teams: Set[str] = frozenset()
    """Projects whose team they are in."""
    direct: Set[str] = frozenset()
    """Projects they are a direct member of."""
    upstreams: Set[str] = frozenset()
    """Labels of the upstreams that they are authorized for."""


@frozen
class AccessDecision:
    """Whether, and why."""

    allowed: bool
    reason: AccessReason


def decide_access(
    entry: TaskEntry, viewer: Viewer, action: Action, retention: Retention, now: int
) -> AccessDecision:
    """Decide. Total and pure; the first that stands in the way is the reason.

    An entry without a project is its original user's alone.
    """
    if not retention.has_metadata(entry.created_at_ms, now):
        return AccessDecision(False, AccessReason.OUTLIVED)
    membership = _membership(entry, viewer)
    if membership is AccessReason.OUTSIDE:
        return AccessDecision(False, membership)
    if action is Action.READ:
        return AccessDecision(True, membership)
    if action is Action.ASSIGN:
        if membership is AccessReason.DIRECT:
            return AccessDecision(False, AccessReason.NO_TEAM_RIGHTS)
        return AccessDecision(True, membership)
    return _decide_payload(entry, viewer, action)


def decide_project(viewer: Viewer, project: str) -> AccessDecision:
    """Decide whether somebody may look at a project at all, be it there or not."""
    reason = _role(viewer, project)
    return AccessDecision(reason is not AccessReason.OUTSIDE, reason)


def _membership(entry: TaskEntry, viewer: Viewer) -> AccessReason:
    if entry.project is None:
        own = entry.owner == viewer.principal and not entry.api_key
        return AccessReason.ORIGINAL_USER if own else AccessReason.OUTSIDE
    return _role(viewer, entry.project)


def _role(viewer: Viewer, project: str) -> AccessReason:
    if project in viewer.teams:
        return AccessReason.TEAM
    return AccessReason.DIRECT if project in viewer.direct else AccessReason.OUTSIDE


def _decide_payload(entry: TaskEntry, viewer: Viewer, action: Action) -> AccessDecision:
    if entry.api_key:
        return AccessDecision(False, AccessReason.API_KEY)
    if entry.owner != viewer.principal:
        return AccessDecision(False, AccessReason.SOMEBODY_ELSES)
    if entry.upstream not in viewer.upstreams:
        return AccessDecision(False, AccessReason.UPSTREAM)
    if action is not Action.READ_PAYLOAD and entry.status.terminal:
        return AccessDecision(False, AccessReason.ENDED)
    return AccessDecision(True, AccessReason.ORIGINAL_USER)
