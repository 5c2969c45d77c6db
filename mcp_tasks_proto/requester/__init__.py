"""The requester role of MCP Tasks: :class:`RequesterEngine`, its inputs, effects and outcomes."""

from mcp_tasks_proto.requester.effects import (
    KeepReference,
    PassOn,
    Prompt,
    RequesterEffect,
    RequesterStep,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WithdrawPrompt,
)
from mcp_tasks_proto.requester.engine import RequesterEngine
from mcp_tasks_proto.requester.inputs import (
    AnswerGiven,
    CallWanted,
    CancelWanted,
    HttpReply,
    NotificationReceived,
    RequesterInput,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    WaitAbandoned,
)
from mcp_tasks_proto.requester.outcomes import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    ObservationLost,
    Outcome,
)
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.settings import RequesterLimits, RequesterSettings

__all__ = [
    "AnswerGiven",
    "CallWanted",
    "CancelWanted",
    "Cancelled",
    "Completed",
    "Expired",
    "Failed",
    "Fault",
    "HttpReply",
    "KeepReference",
    "NotificationReceived",
    "ObservationLost",
    "Outcome",
    "PassOn",
    "Prompt",
    "RequestFailed",
    "RequestWanted",
    "RequesterEffect",
    "RequesterEngine",
    "RequesterInput",
    "RequesterLimits",
    "RequesterSettings",
    "RequesterStep",
    "ResponseReceived",
    "ResumeWanted",
    "SendRequest",
    "Settle",
    "ShowView",
    "StopRequest",
    "TaskReference",
    "WaitAbandoned",
    "WithdrawPrompt",
]
