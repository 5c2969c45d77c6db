"""The official Python SDK 1.x as a server of 2025-11-25, with tasks: what a client of ours may meet.

It runs in an environment with PyPI ``mcp`` 1.x and knows nothing of this project::

    python -m tests.interop.sdk1_server http     # says "listening on URL" on stderr
    python -m tests.interop.sdk1_server stdio

Seen with ``mcp`` 1.30.0: over HTTP a request without a session is HTTP 400 with -32600 ("Missing session
ID"), ``server/discover`` on stdio is -32602. A task belongs to its session. A question of a task is sent on
the stream of a ``tasks/result`` and once only; one that is sent without ``related_request_id`` goes on the
GET stream. An exception in a task makes it ``failed``, with a ``tasks/result`` that holds nothing but
``_meta``.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator, import-untyped, attr-defined, call-arg"
# The SDK is not installed where this is checked.

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp.types as types
from mcp import McpError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.interop.over_http import serve_over_http

__all__ = ["server"]

server: Any = Server("sdk1-farm", version="1.0", instructions="Ask for anything.")
server.experimental.enable_tasks()

ANY: dict[str, Any] = {"type": "object"}
WHERE: dict[str, Any] = {
    "type": "object",
    "properties": {"channel": {"type": "string", "enum": ["public", "private"]}},
    "required": ["channel"],
}
SURE: dict[str, Any] = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}},
    "required": ["sure"],
}

PLAIN = ("greet", "refuse", "break_down", "count", "publish", "publish_aside", "dream", "wait")
OPTIONAL = ("render",)
REQUIRED = ("approve", "spoil", "crash", "loiter", "delegate")


def said(text: str, *, is_error: bool = False) -> Any:
    """Return a tool's result."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], isError=is_error)


@server.list_tools()
async def list_tools() -> Any:
    """List the tools, each with what it says of tasks."""
    support = {**dict.fromkeys(OPTIONAL, "optional"), **dict.fromkeys(REQUIRED, "required")}
    return [
        types.Tool(
            name=name,
            inputSchema=ANY,
            execution=types.ToolExecution(taskSupport=support[name]) if name in support else None,
        )
        for name in (*PLAIN, *OPTIONAL, *REQUIRED)
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    """Call one of the tools below."""
    experimental = server.request_context.experimental
    if name in REQUIRED:
        experimental.validate_task_mode(types.TASK_REQUIRED)
    if name in REQUIRED or experimental.is_task:

        async def work(task: Any) -> Any:
            return await globals()[f"{name}_as_task"](task, arguments)

        return await experimental.run_task(work)
    return await globals()[name](server.request_context, arguments)


# -- answered at once ------------------------------------------------------------------------------------


async def greet(_: Any, arguments: dict[str, Any]) -> Any:
    """Greet somebody."""
    return said(f"Hello, {arguments['name']}!")


async def refuse(_: Any, __: dict[str, Any]) -> Any:
    """Fail, as a tool fails."""
    return said("Out of colour.", is_error=True)


async def break_down(_: Any, __: dict[str, Any]) -> Any:
    """Fail by an exception, which 1.x makes a tool's error."""
    raise McpError(types.ErrorData(code=-32603, message="The mill broke down."))


async def count(context: Any, _: dict[str, Any]) -> Any:
    """Report every step on the way."""
    token = context.meta.progressToken if context.meta else None
    for step in (1, 2, 3):
        if token is not None:
            await context.session.send_progress_notification(
                token, step, 3, related_request_id=str(context.request_id)
            )
    return said("Counted to 3.")


async def publish(context: Any, _: dict[str, Any]) -> Any:
    """Ask two forms, one after the other, on the call's own stream."""
    return await published(context, context.request_id)


async def publish_aside(context: Any, _: dict[str, Any]) -> Any:
    """Ask the same on no stream in particular."""
    return await published(context, None)


async def published(context: Any, related: Any) -> Any:
    """Ask two forms, one after the other."""
    where = await context.session.elicit_form("Where to?", WHERE, related_request_id=related)
    if where.action != "accept":
        return said("Kept.")
    sure = await context.session.elicit_form("Are you sure?", SURE, related_request_id=related)
    return said(f"On {where.content['channel']}, {'sure' if sure.content['sure'] else 'unsure'}.")


async def dream(context: Any, _: dict[str, Any]) -> Any:
    """Ask a model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Dream."))
    sampled = await context.session.create_message(
        [message], max_tokens=100, related_request_id=context.request_id
    )
    return said(f"Dreamt: {sampled.content.text}")


async def wait(context: Any, _: dict[str, Any]) -> Any:
    """Never return; say so once begun, as progress."""
    await context.session.send_progress_notification(
        context.meta.progressToken, 1, related_request_id=str(context.request_id)
    )
    await anyio.sleep_forever()


async def render(_: Any, arguments: dict[str, Any]) -> Any:
    """Render at once."""
    return said(f"Rendered {arguments.get('frames', 1)} frames at once.")


# -- tasks -----------------------------------------------------------------------------------------------


async def render_as_task(task: Any, arguments: dict[str, Any]) -> Any:
    """Render frame by frame."""
    frames = arguments.get("frames", 1)
    for frame in range(frames):
        await task.update_status(f"Frame {frame + 1} of {frames}")
        await anyio.sleep(0.05)
    return said(f"Rendered {frames} frames.")


async def approve_as_task(task: Any, _: dict[str, Any]) -> Any:
    """Ask two forms, one after the other."""
    where = await task.elicit("Where to?", WHERE)
    if where.action != "accept":
        return said("Kept.")
    sure = await task.elicit("Are you sure?", SURE)
    return said(f"Approved on {where.content['channel']}: {sure.content['sure']}.")


async def spoil_as_task(task: Any, _: dict[str, Any]) -> Any:
    """Fail, as a tool fails; 1.x calls such a task completed."""
    return said("Out of colour.", is_error=True)


async def crash_as_task(task: Any, _: dict[str, Any]) -> Any:
    """Fail by an exception."""
    raise ZeroDivisionError("the mill has no wheel")


async def loiter_as_task(task: Any, _: dict[str, Any]) -> Any:
    """Never return."""
    await anyio.sleep_forever()


async def delegate_as_task(task: Any, _: dict[str, Any]) -> Any:
    """Ask a form as a task of the client's."""
    where = await task.elicit_as_task("Where to?", WHERE, ttl=60_000)
    return said(f"Delegated: {where.action} {where.content}.")


# -- running ---------------------------------------------------------------------------------------------


async def on_stdio() -> None:
    """Serve on stdio."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http() -> None:
    """Serve over HTTP, with sessions."""
    manager = StreamableHTTPSessionManager(server)
    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lambda _: manager.run())
    serve_over_http(app, path="/mcp/")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http"]:
            over_http()
        case ["stdio"]:
            anyio.run(on_stdio)
        case _:
            sys.exit("usage: python -m tests.interop.sdk1_server http|stdio")
