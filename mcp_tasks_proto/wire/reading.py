"""How a requester or a proxy reads what a server sends: views, their order, and codes of drafts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.wire.schema import TaskView, structure

__all__ = ["is_older", "modern", "read_view"]

_STALE_MISSING_CAPABILITY: Final = -32003
"""What drafts of the specification had in place of -32021."""


def read_view(members: Mapping[str, Any], *, without: Set[str] = frozenset()) -> TaskView:
    """Read a view from a result or notification, without what belongs to its envelope, and more members.

    Raises :class:`~mcp_tasks_proto.wire.schema.ParamsError`.
    """
    others = without | _ENVELOPE
    return structure(TaskView, {name: value for name, value in members.items() if name not in others})


_ENVELOPE: Final = frozenset({"_meta", "resultType"})


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
