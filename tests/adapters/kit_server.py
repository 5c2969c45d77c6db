"""A server that has a tool for everything the kit wants to see, and keeps nobody waiting.

mcp-tasks serve tests/adapters/kit_server.py:server --legacy serve
mcp-tasks kit URL --header 'x-user: ada' --other-header 'x-user: bob'
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_tasks_adapters import RequestFacts
from mcp_tasks_adapters.toolkit import (
    ProtocolError,
    Server,
    TaskContext,
    TaskOffer,
    ToolCall,
    ToolError,
    elicit,
    text,
)

__all__ = ["make_server", "server"]

POLL_MS = 20
FOREVER_S = 3600.0
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


async def sleep(seconds: float) -> None:
    """Sleep on the running loop, whichever it is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        import trio

        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


def caller(facts: RequestFacts) -> str | None:
    """Return who calls: whoever says a name. Nobody else has one."""
    return facts.headers.get("x-user")


def make_server() -> Server:
    """Return a server with tools named after what they do; ``flash`` is gone after a second."""
    server = Server("kit", version="1", legacy="serve", principal=caller)

    @server.tool(task="forbidden", description="Greet somebody", input_schema=NAME)
    async def greet(call: ToolCall) -> Any:
        return text(f"Hello, {call.arguments['name']}!")

    @server.tool(task="forbidden", description="Repeat an argument in a header", input_schema=REGION)
    async def ship(call: ToolCall) -> Any:
        return text("Shipped.")

    @server.tool(task="forbidden", description="Ask before anything else")
    async def book(call: ToolCall) -> Any:
        if not call.answers:
            return call.input_required({"who": elicit(message="Who?", schema=NAME)}, state="asked")
        return text("Booked.")

    @server.tool(task="optional", description="Complete")
    async def render(call: ToolCall) -> Any:
        if not call.can_create_task:
            return text("Rendered at once.")

        async def run(task: TaskContext) -> Any:
            await task.update("Rendering")
            await sleep(0.05)
            return text("Rendered.")

        return call.task(run, poll_interval_ms=POLL_MS)

    @server.tool(task="required", description="Report an error of the tool's own")
    async def spoil(call: ToolCall) -> TaskOffer:
        async def run(task: TaskContext) -> Any:
            raise ToolError("Burnt.")

        return call.task(run, poll_interval_ms=POLL_MS)

    @server.tool(task="required", description="Fail with a protocol error")
    async def collapse(call: ToolCall) -> TaskOffer:
        async def run(task: TaskContext) -> Any:
            raise ProtocolError(-32603, "It fell in.")

        return call.task(run, poll_interval_ms=POLL_MS)

    @server.tool(task="required", description="Ask for two things at once")
    async def commission(call: ToolCall) -> TaskOffer:
        async def run(task: TaskContext) -> Any:
            questions = {name: elicit(message=f"{name}?", schema=NAME) for name in ("who", "where")}
            await task.request_input(questions)
            return text("Commissioned.")

        return call.task(run, poll_interval_ms=POLL_MS)

    @server.tool(task="required", description="Work until cancelled")
    async def idle(call: ToolCall) -> TaskOffer:
        async def run(task: TaskContext) -> Any:
            await sleep(FOREVER_S)

        return call.task(run, poll_interval_ms=POLL_MS)

    @server.tool(task="required", description="Work until its time to live is over")
    async def flash(call: ToolCall) -> TaskOffer:
        async def run(task: TaskContext) -> Any:
            await sleep(FOREVER_S)

        return call.task(run, ttl_ms=1_000, poll_interval_ms=POLL_MS)

    return server


server = make_server()
