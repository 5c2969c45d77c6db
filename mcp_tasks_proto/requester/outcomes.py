"""How a call can end: the five outcomes of REQ.6."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from mcp_tasks_proto.errors import ErrorCode
from mcp_tasks_proto.wire.schema import TaskView

__all__ = ["Cancelled", "Completed", "Expired", "Failed", "Fault", "ObservationLost", "Outcome", "fault_of"]


class Fault(Enum):
    """Who has to act for a call to succeed."""

    CALLER = "caller"
    """The call itself is wrong: its name, its arguments, its capabilities."""
    SERVER = "server"
    """The server failed, or answered what it may not."""
    NETWORK = "network"
    """The server could not be reached."""

    __hash__ = object.__hash__


@frozen
class Completed:
    """The call has a result; a tool's own error (``isError``) is one."""

    result: Mapping[str, Any]


@frozen(kw_only=True)
class Failed:
    """The call, or its task, ended with an error."""

    code: int | None
    """The JSON-RPC code; ``None``: no error was received, this side tells what is wrong."""
    message: str
    data: Any = None
    fault: Fault


@frozen(kw_only=True)
class Cancelled:
    """The task was cancelled, or the caller cancelled the call."""

    view: TaskView | None = None
    """The last view, when the server said so."""


@frozen(kw_only=True)
class Expired:
    """The task is unknown to the server, or its time passed without news."""

    view: TaskView | None = None
    """The last view there was."""


@frozen(kw_only=True)
class ObservationLost:
    """What became of the call is not known here; its task may well go on (REQ.3)."""

    reason: str
    view: TaskView | None = None
    """The last view there was; ``None``: it is not even known whether there is a task."""


Outcome = Completed | Failed | Cancelled | Expired | ObservationLost

_CALLERS_CODES = frozenset(
    {
        ErrorCode.INVALID_PARAMS,
        ErrorCode.METHOD_NOT_FOUND,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.PARSE_ERROR,
        ErrorCode.HEADER_MISMATCH,
    }
)


def fault_of(code: int) -> Fault:
    """Return who has to act on an error with this code."""
    return Fault.CALLER if code in _CALLERS_CODES else Fault.SERVER
