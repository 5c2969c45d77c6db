"""A tasks server that somebody else wrote: PyPI ``fastmcp`` with ``fastmcp-tasks``, both 4.1.4.

It runs in an environment with these and knows nothing of this project::

    python -m tests.interop.fastmcp_server http     # says "listening on URL" on stderr
    python -m tests.interop.fastmcp_server stdio

Tasks live in the memory of the process, so a client may come and go, but not the server.

Seen by requests written by hand:

* ``server/discover``: version 2026-07-28, the tasks extension with ``{}``, ``ttlMs: 0``.
  ``subscriptions/listen`` is -32601, HTTP 404: tasks can only be polled. ``initialize`` is served as well
  (2025-11-25).
* A create result is always ``working`` and without a message; ``ttlMs`` is 900000, ``pollIntervalMs`` 50.
* Timestamps have microseconds and ``+00:00``. ``lastUpdatedAt`` is the time of the ``tasks/get``: it moves
  with every poll, also after the end.
* ``statusMessage`` is the progress message while ``working``, and gone afterwards, but for ``failed``.
* ``spoil`` and ``crash`` are completed with ``isError`` ("Burnt.", "Error calling tool 'crash': by
  accident"); ``collapse`` is failed with the error it raised, data and all. Inner results have
  ``resultType`` and ``isError``.
* ``idle`` is cancelled the moment ``tasks/cancel`` is acknowledged, as is a task that waits for input; an
  answer after that is acknowledged and changes nothing.
* Keys of input requests are ``taskId:16 hex digits``, new in each round. Unknown and answered keys are
  acknowledged and ignored; of two, either may be answered first, and the other stays.
* Its source says: while the next round is being prepared, a poll may show the answered request still.
* ``book`` answers ``input_required`` with a sealed state, then a task; declined, a plain result and no
  task.
* ``render`` without tasks declared is a plain result, ``idle`` -32021 with ``requiredCapabilities``, HTTP
  400; so is ``tasks/get`` of who does not declare them. An unknown id is -32602, HTTP 400; ``tasks/list``
  and ``tasks/result`` are -32601, HTTP 404.
* ``Mcp-Name`` of another task is -32020; none at all is let through.
* Unknown tools and wrong arguments are results with ``isError``.
* On stdio it logs to stderr. Task ids may begin with ``-``.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"
# FastMCP is not installed where this is checked.

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from fastmcp.tools import InputRequiredToolResult, ToolResult
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from tests.interop.over_http import serve_over_http

__all__ = ["server"]

POLL = timedelta(milliseconds=50)
OPTIONAL = TaskConfig(mode="optional", poll_interval=POLL)
REQUIRED = TaskConfig(mode="required", poll_interval=POLL)

WHERE = {"channel": {"type": "string", "enum": ["public", "private"]}}
SURE = {"sure": {"type": "boolean"}}


class AskFirst(Middleware):
    """Asks before ``book`` is called at all, so before there is a task."""

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Answer a first call of ``book`` with a question."""
        if context.message.name != "book":
            return await call_next(context)
        answers = context.message.input_responses
        if not answers:
            return InputRequiredToolResult(asking({"confirm": form("Are you sure?", SURE)}, state="asked"))
        if answers["confirm"].action != "accept":
            return ToolResult(content="Not booked.")
        return await call_next(context)


server = FastMCP("fastmcp-farm", version="1.0", middleware=[AskFirst()])
server.add_extension(TasksExtension())


def form(message: str, properties: dict[str, Any]) -> Any:
    """Return a form, all of whose fields are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    params = ElicitRequestFormParams(mode="form", message=message, requested_schema=schema)
    return ElicitRequest(method="elicitation/create", params=params)


def asking(requests: dict[str, Any], *, state: str | None = None) -> Any:
    """Return a round of questions."""
    return InputRequiredResult(result_type="input_required", input_requests=requests, request_state=state)


@server.tool(output_schema=None)
async def greet(name: str) -> str:
    """Greet somebody; never a task."""
    return f"Hello, {name}!"


@server.tool(task=OPTIONAL, output_schema=None)
async def render(ctx: Context) -> str:
    """Render two frames: as a task for who declares tasks, at once for who does not."""
    for frame in (1, 2):
        await ctx.report_progress(frame, 2, f"Frame {frame}/2")
        await asyncio.sleep(0.1)
    return "Rendered."


@server.tool(task=REQUIRED)
async def tally() -> dict[str, int]:
    """Answer with structured content."""
    return {"frames": 24}


@server.tool(task=REQUIRED, output_schema=None)
async def spoil() -> str:
    """Fail, as a tool fails."""
    raise ToolError("Burnt.")


@server.tool(task=REQUIRED, output_schema=None)
async def crash() -> str:
    """Fail by an exception that nobody thought of."""
    raise ZeroDivisionError("by accident")


@server.tool(task=REQUIRED, output_schema=None)
async def collapse() -> str:
    """Fail with a protocol error."""
    raise MCPError(-32603, "The roof fell in.", {"floor": 2})


@server.tool(task=REQUIRED, output_schema=None)
async def idle(ctx: Context) -> str:
    """Do nothing until cancelled."""
    await ctx.report_progress(0, message="Idling")
    await asyncio.Event().wait()
    return "Never."


@server.tool(task=REQUIRED, output_schema=None)
async def choose(ctx: Context) -> Any:
    """Ask one question."""
    answers = ctx.input_responses
    if not answers:
        return asking({"where": form("Where to?", WHERE)})
    if answers["where"].action != "accept":
        return "Nowhere."
    return f"To {answers['where'].content['channel']}."


@server.tool(task=REQUIRED, output_schema=None)
async def commission(ctx: Context) -> Any:
    """Ask two questions at once."""
    answers = ctx.input_responses
    if not answers:
        return asking({"where": form("Where to?", WHERE), "confirm": form("Are you sure?", SURE)})
    sure = "sure" if answers["confirm"].content["sure"] else "unsure"
    return f"{answers['where'].content['channel']}, {sure}"


@server.tool(task=REQUIRED, output_schema=None)
async def interview(ctx: Context) -> Any:
    """Ask one question, and then another."""
    answers, state = ctx.input_responses or {}, ctx.request_state
    if state is None:
        return asking({"where": form("Where to?", WHERE)}, state="asked where")
    if state == "asked where":
        return asking({"confirm": form("Are you sure?", SURE)}, state=answers["where"].content["channel"])
    return f"{state}, {'sure' if answers['confirm'].content['sure'] else 'unsure'}"


@server.tool(task=REQUIRED, output_schema=None)
async def book() -> str:
    """Run as a task, once the user has agreed; see ``AskFirst``."""
    return "Booked."


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http"]:
            serve_over_http(server.http_app(path="/mcp"))
        case ["stdio"]:
            server.run("stdio", show_banner=False)
        case _:
            sys.exit("usage: python -m tests.interop.fastmcp_server http|stdio")
