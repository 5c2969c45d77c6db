"""How a call can end: the five outcomes of REQ.6."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from attrs import field, frozen

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.wire.reading import modern
from mcp_tasks_proto.wire.schema import TaskView

__all__ = [
    "DENIED",
    "Cancelled",
    "Completed",
    "Expired",
    "Failed",
    "Fault",
    "ObservationLost",
    "Outcome",
    "failure",
    "fault_of",
    "outcome_of",
]


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
    http_status: int | None = None
    """What the server answered with over HTTP, where that was no success: 401, say."""


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
    unheard: bool = False
    """Whether its time passed without news, so that the server has not said that it does not know it."""


@frozen
class ObservationLost:
    """What became of the call is not known here; its task may well go on (REQ.3)."""

    reason: str
    view: TaskView | None = None
    """The last view there was; ``None``: it is not even known whether there is a task."""
    fault: Fault | None = field(default=None, kw_only=True)
    """Who has to act before the task can be seen again, where it is clear; it can be resumed then."""
    http_status: int | None = field(default=None, kw_only=True)
    """What the server answered with over HTTP, where that is why: 401, say."""


Outcome = Completed | Failed | Cancelled | Expired | ObservationLost

DENIED: Final = frozenset({401, 403})
"""HTTP statuses that ask for other credentials: the answer stays the same, however long one waits."""

_STALE_UNKNOWN_RESOURCE: Final = -32002
"""What earlier versions had in place of -32602 for a resource that does not exist."""

_CALLERS_CODES: Final = frozenset(
    {
        ErrorCode.INVALID_PARAMS,
        ErrorCode.METHOD_NOT_FOUND,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.PARSE_ERROR,
        ErrorCode.HEADER_MISMATCH,
        _STALE_UNKNOWN_RESOURCE,
    }
)


def fault_of(code: int) -> Fault:
    """Return who has to act on an error with this code. The caller's own would come again, unchanged."""
    return Fault.CALLER if code in _CALLERS_CODES else Fault.SERVER


def failure(error: ErrorObject, http_status: int | None = None) -> Failed:
    """Return the outcome that an error from the server is."""
    return Failed(
        code=error.code,
        message=error.message,
        data=error.data,
        fault=Fault.CALLER if http_status in DENIED else fault_of(error.code),
        http_status=http_status,
    )


def outcome_of(view: TaskView) -> Outcome | None:
    """Return how a task has ended; ``None``: it has not. A payload that is missing is not made up."""
    match view.status:
        case Status.COMPLETED:
            if view.result is None or view.result.get("resultType", "complete") != "complete":
                message = "the task is said to be completed, without a final result"
                return Failed(code=None, message=message, fault=Fault.SERVER)
            return Completed(view.result)
        case Status.FAILED:
            if view.error is None:
                message = view.status_message or "the task failed, and the server does not say why"
                return Failed(code=None, message=message, fault=Fault.SERVER)
            return failure(modern(view.error))
        case Status.CANCELLED:
            return Cancelled(view=view)
        case _:
            return None
