"""What a tool's author touches.

::

    server = Server("render-farm", version="1.0")

    @server.tool(description="Render frames", input_schema={"type": "object"})
    async def render(call):
        if not call.can_create_task:
            return await render_now(call.arguments)

        async def run(task):
            await task.update("Rendering")
            answers = await task.request_input({"confirm": elicit(message="Publish?")})
            return "done" if answers["confirm"].accepted else "kept private"

        return call.task(run, ttl_ms=600_000)

A handler returns a result, ``call.task(run)`` to go on as a task, or ``call.input_required({...})`` to ask
the client first. What may be returned as a result stands at :meth:`Tool.result`, what becomes of exceptions
in :mod:`mcp_tasks_adapters.toolkit.outcomes`.
"""

from mcp_tasks_adapters.toolkit.calls import InputRequired, Request, TaskOffer, ToolCall, Work
from mcp_tasks_adapters.toolkit.content import (
    Answer,
    elicit,
    elicit_url,
    error_text,
    list_roots,
    sample,
    structured,
    text,
)
from mcp_tasks_adapters.toolkit.errors import ProtocolError, ReportRejected, ToolError, Unauthorized
from mcp_tasks_adapters.toolkit.server import Server
from mcp_tasks_adapters.toolkit.tasks import Cancellation, TaskContext
from mcp_tasks_adapters.toolkit.tools import Tool
from mcp_tasks_proto.inputs import DEFAULT, KEEP
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.settings import InputVisibility

__all__ = [
    "DEFAULT",
    "KEEP",
    "Answer",
    "Cancellation",
    "InputRequired",
    "InputVisibility",
    "Limits",
    "ProtocolError",
    "ReportRejected",
    "Request",
    "Server",
    "TaskContext",
    "TaskOffer",
    "Tool",
    "ToolCall",
    "ToolError",
    "Unauthorized",
    "Work",
    "elicit",
    "elicit_url",
    "error_text",
    "list_roots",
    "sample",
    "structured",
    "text",
]
