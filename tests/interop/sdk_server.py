"""The official Python SDK as a server, with plain tools and no tasks: what a client of ours may meet.

It runs in an environment with PyPI ``mcp`` and knows nothing of this project::

    python -m tests.interop.sdk_server http     # says "listening on URL" on stderr
    python -m tests.interop.sdk_server stdio

Seen with ``mcp`` 2.3.0, by requests written by hand:

* ``server/discover``: version 2026-07-28, no extensions, ``ttlMs: 0``, ``tools.listChanged`` (and
  ``prompts`` and ``resources``, of which there are none). Methods of tasks are -32601, HTTP 404.
* It serves 2025-11-25 as well: over HTTP whoever begins with ``initialize`` gets a session, on stdio the
  first request decides for the connection, and a later ``initialize`` is -32022 with ``data.supported``.
* Results spell out ``isError: false``. Tools that return text have an output schema all the same, and
  ``structuredContent`` of ``{"result": text}``.
* Answered as results with ``isError``: an unknown tool (not -32602), arguments that do not fit, ``refuse``
  ("Error executing tool refuse: Out of colour."), ``crash`` (without the exception's text). ``break_down``
  is the error it raised, with HTTP 200.
* ``count`` streams every step, under the request's progress token. ``publish`` asks without looking at what
  the client declares; its state is sealed, and -32602 with HTTP 400 when tampered with.
* -32020, HTTP 400: ``Mcp-Name`` missing or different, ``Mcp-Param-Region`` missing, another version in the
  header.
* ``subscriptions/listen`` agrees to ``toolsListChanged`` and leaves ``taskIds`` out. A server that is
  stopped cuts listen streams off, without a result.
* stdio: a cancelled call is not answered, a line that is not JSON is passed over in silence, the process
  ends with its input.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"
# The SDK is not installed where this is checked.

from __future__ import annotations

import sys
from typing import Annotated, Any

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel, Field

from tests.interop.over_http import serve_over_http

__all__ = ["server"]

server = MCPServer("sdk-farm", version="1.0", instructions="Ask for anything.", log_level="WARNING")


class Size(BaseModel):
    """What ``measure`` answers."""

    width: int
    height: int


@server.tool()
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@server.tool()
async def count(context: Context) -> str:
    """Report every step on the way."""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"Step {step}")
    return "Counted to 3."


@server.tool()
async def measure() -> Size:
    """Answer with structured content."""
    return Size(width=1920, height=1080)


@server.tool()
async def refuse() -> str:
    """Fail, as a tool fails."""
    raise ToolError("Out of colour.")


@server.tool()
async def crash() -> str:
    """Fail by an exception that nobody thought of."""
    raise ZeroDivisionError("secret")


@server.tool()
async def break_down() -> str:
    """Fail with a protocol error."""
    raise MCPError(-32603, "The mill broke down.", {"part": "wheel"})


@server.tool()
async def ship(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take a parameter that HTTP clients repeat in a header."""
    return f"Shipped to {region}."


@server.tool()
async def publish(context: Context) -> str | InputRequiredResult:
    """Ask two forms, one after the other."""
    answers, state = context.input_responses or {}, context.request_state
    if state is None:
        return asking("where", "Where to?", {"channel": {"type": "string", "enum": ["public", "private"]}})
    if "where" in answers:
        if answers["where"].action != "accept":
            return "Kept."
        channel = answers["where"].content["channel"]
        return asking("confirm", "Are you sure?", {"sure": {"type": "boolean"}}, state=channel)
    return f"On {state}, {'sure' if answers['confirm'].content['sure'] else 'unsure'}."


def asking(key: str, message: str, properties: dict[str, Any], *, state: str = "asked") -> Any:
    """Return a round with one form, all of whose fields are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    form = ElicitRequestFormParams(mode="form", message=message, requested_schema=schema)
    request = ElicitRequest(method="elicitation/create", params=form)
    return InputRequiredResult(
        result_type="input_required", input_requests={key: request}, request_state=state
    )


@server.tool()
async def wait(context: Context) -> str:
    """Never return; say so once begun, as progress."""
    await context.report_progress(1, message="Waiting")
    await anyio.sleep_forever()
    return "Never."


@server.tool()
async def hire(context: Context) -> str:
    """Add the tool temp."""
    server.add_tool(greet, name="temp")
    await context.notify_tools_changed()
    return "Hired."


@server.tool()
async def dismiss(context: Context) -> str:
    """Take the tool temp away."""
    server.remove_tool("temp")
    await context.notify_tools_changed()
    return "Dismissed."


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http"]:
            serve_over_http(server.streamable_http_app())
        case ["stdio"]:
            server.run("stdio")
        case _:
            sys.exit("usage: python -m tests.interop.sdk_server http|stdio")
