"""How a requester or a proxy reads what a server sends: views, their order, and codes of drafts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.wire.jsonrpc import parse_error_object
from mcp_tasks_proto.wire.schema import TaskView, structure

__all__ = ["CALL_MEMBERS", "VIEW_MEMBERS", "is_older", "is_view", "misfit", "modern", "read_view"]

_STALE_MISSING_CAPABILITY: Final = -32003
"""What drafts of the specification had in place of -32021."""


def read_view(members: Mapping[str, Any]) -> TaskView:
    """Read a view from a result or notification, without what belongs to its envelope.

    Raises :class:`~mcp_tasks_proto.wire.schema.ParamsError`.
    """
    return structure(TaskView, {name: value for name, value in members.items() if name not in _ENVELOPE})


_ENVELOPE: Final = frozenset({"_meta", "resultType"})

# -- checked, and not read: for who passes it on -------------------------------------------------------

Kinds = Mapping[str, Set[type]]
"""Members, and which types each of them may have."""

_TEXT: Final = frozenset({str})
_OBJECT: Final = frozenset({dict})

CALL_MEMBERS: Final[Kinds] = {
    "name": _TEXT,
    "arguments": _OBJECT,
    "inputResponses": _OBJECT,
    "requestState": _TEXT,
}
"""Of the params of ``tools/call``: those of :class:`~mcp_tasks_proto.wire.schema.CallToolParams`."""

VIEW_MEMBERS: Final[Kinds] = {
    "taskId": _TEXT,
    "status": _TEXT,
    "statusMessage": _TEXT,
    "createdAt": _TEXT,
    "lastUpdatedAt": _TEXT,
    "ttlMs": frozenset({int, type(None)}),
    "pollIntervalMs": frozenset({int}),
    "inputRequests": _OBJECT,
    "result": _OBJECT,
    "error": _OBJECT,
}
"""Of a view: those of :class:`~mcp_tasks_proto.wire.schema.TaskView`."""

_NEEDED: Final = frozenset({"taskId", "status", "createdAt", "lastUpdatedAt"})
_STATUSES: Final = frozenset(status.value for status in Status)


def misfit(members: Mapping[str, Any], kinds: Kinds) -> str | None:
    """Return the name of a member that is not of a type that it may have; ``None``: there is none."""
    for name, value in members.items():
        if name in kinds and type(value) not in kinds[name]:
            if dict in kinds[name] and isinstance(value, dict):
                continue  # a host's parser may make its own
            return name
    return None


def is_view(members: Mapping[str, Any]) -> bool:
    """Whether :func:`read_view` would read this."""
    if not members.keys() >= _NEEDED or misfit(members, VIEW_MEMBERS) or members["status"] not in _STATUSES:
        return False
    if "error" in members and parse_error_object(members["error"]) is None:
        return False
    return all(isinstance(request, dict) for request in members.get("inputRequests", {}).values())


def is_older(one: str, other: str) -> bool:
    """Whether one RFC 3339 time is before another; a time that cannot be read is never."""
    try:
        return datetime.fromisoformat(one) < datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


def modern(error: ErrorObject) -> ErrorObject:
    """Read the code of a draft as what became of it."""
    stale = error.code == _STALE_MISSING_CAPABILITY and isinstance(error.data, dict)
    if stale and "requiredCapabilities" in error.data:
        return evolve(error, code=int(ErrorCode.MISSING_CLIENT_CAPABILITY))
    return error
