"""How a client command ends, as its exit code says it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from mcp_tasks_proto.requester import Cancelled, Completed, Expired, Failed, Outcome

__all__ = ["MEANINGS", "ExitCode", "exit_code", "outcome_name"]


class ExitCode(IntEnum):
    """The exit codes of the client commands."""

    COMPLETED = 0
    TROUBLE = 1
    USAGE = 2
    TOOL_ERROR = 3
    FAILED = 4
    CANCELLED = 5
    EXPIRED = 6
    LOST = 7
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Final[Mapping[ExitCode, str]] = {
    ExitCode.COMPLETED: "completed; get, update and cancel: the server did as it was asked",
    ExitCode.TROUBLE: "mcp-tasks itself could not go on, with a file for example",
    ExitCode.USAGE: "what was typed, or a file it names, cannot be used; a prepared answer does not fit",
    ExitCode.TOOL_ERROR: "the tool ran and reports an error of its own",
    ExitCode.FAILED: "the call or its task failed: refused, a protocol error, or no way to reach the server",
    ExitCode.CANCELLED: "the task was cancelled",
    ExitCode.EXPIRED: "the server does not know the task, or no longer; or its time passed without news",
    ExitCode.LOST: "not known here: the time ran out, or the server stopped answering; the task may go on",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C; the task goes on",
    ExitCode.TERMINATED: "stopped by SIGTERM; the task goes on",
}
"""What each exit code says."""


def exit_code(outcome: Outcome) -> ExitCode:
    """Return the exit code of a call that ended this way."""
    match outcome:
        case Completed(result=result):
            return ExitCode.TOOL_ERROR if result.get("isError") is True else ExitCode.COMPLETED
        case Failed():
            return ExitCode.FAILED
        case Cancelled():
            return ExitCode.CANCELLED
        case Expired():
            return ExitCode.EXPIRED
    return ExitCode.LOST


def outcome_name(outcome: Outcome) -> str:
    """Return the word for an outcome (REQ.6)."""
    match outcome:
        case Completed():
            return "completed"
        case Failed():
            return "failed"
        case Cancelled():
            return "cancelled"
        case Expired():
            return "expired"
    return "observation_lost"
