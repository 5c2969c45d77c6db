"""What is done to one task, as pure decisions on its record.

An :class:`Operation` is an intention: it survives a save conflict by deciding again on the fresh record.
It knows who waits for its outcome - a peer's exchange, a worker's report, or nobody - and it
never touches anything but its arguments.
"""

from mcp_tasks_proto.server.operations.base import Decision, Operation
from mcp_tasks_proto.server.operations.peers import AnswerTask, CancelTask, CreateTask, LookUp, ReadTask
from mcp_tasks_proto.server.operations.server import ElapseGrace, EndTask, LoseWork, Refresh, Remove
from mcp_tasks_proto.server.operations.workers import (
    AskInput,
    Checkpoint,
    EndWork,
    Progress,
    WithdrawInput,
)

__all__ = [
    "AnswerTask",
    "AskInput",
    "CancelTask",
    "Checkpoint",
    "CreateTask",
    "Decision",
    "ElapseGrace",
    "EndTask",
    "EndWork",
    "LookUp",
    "LoseWork",
    "Operation",
    "Progress",
    "ReadTask",
    "Refresh",
    "Remove",
    "WithdrawInput",
]
