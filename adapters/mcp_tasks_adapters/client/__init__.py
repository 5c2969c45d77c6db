"""Clients of MCP servers: calling tools, and living with the tasks that come of it.

::

    from mcp_tasks_adapters.client import accept, decline
    from mcp_tasks_adapters.trio_h11 import connect     # or asyncio_h11

    async def ask_user(question):
        return accept({"name": "Ada"}) if question.message == "Your name?" else decline()

    async with connect("http://127.0.0.1:8000/mcp", answer=ask_user) as client:
        call = await client.call_tool("render", {"frames": 100})
        async for view in call.updates():
            print(view.status_message)
        outcome = await call.settle(timeout=60)

``connect_stdio(["command", "argument"], ...)`` starts a server of its own. What may be given to either stands
in :mod:`mcp_tasks_adapters.client.options`.
"""

from mcp_tasks_adapters.client.answers import (
    AnswerError,
    AnswerFunction,
    InputRequest,
    accept,
    cancel,
    decline,
)
from mcp_tasks_adapters.client.calls import Call
from mcp_tasks_adapters.client.client import Client, NoResultError
from mcp_tasks_adapters.client.driver import TraceEntry
from mcp_tasks_adapters.client.files import load_reference, save_reference
from mcp_tasks_adapters.client.http import ConnectionLimits
from mcp_tasks_adapters.toolkit.content import Answer
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    ObservationLost,
    Outcome,
    RequesterLimits,
)
from mcp_tasks_proto.wire.schema import TaskView

__all__ = [
    "Answer",
    "AnswerError",
    "AnswerFunction",
    "Call",
    "Cancelled",
    "Client",
    "Completed",
    "ConnectionLimits",
    "Expired",
    "Failed",
    "Fault",
    "InputRequest",
    "Limits",
    "NoResultError",
    "ObservationLost",
    "Outcome",
    "RequesterLimits",
    "TaskView",
    "TraceEntry",
    "accept",
    "cancel",
    "decline",
    "load_reference",
    "save_reference",
]
