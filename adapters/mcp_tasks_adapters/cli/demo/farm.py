"""The server of ``mcp-tasks demo``: a render farm, as any author would write one."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

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

__all__ = ["server"]

server = Server("render-farm", version="1.0", title="The render farm of the demo")

FRAME_S = 0.4
POLL_MS = 500
TTL_MS = 600_000

RENDER_SCHEMA = {
    "type": "object",
    "properties": {"scene": {"type": "string"}, "frames": {"type": "integer", "minimum": 1}},
    "required": ["scene", "frames"],
}
PUBLISH_FORM = {
    "type": "object",
    "properties": {"channel": {"type": "string", "enum": ["public", "private"]}},
    "required": ["channel"],
}


@server.tool(input_schema=RENDER_SCHEMA, resumable=True)
async def render(call: ToolCall) -> TaskOffer | str:
    """Render frames of a scene, then ask where to publish them.

    Where the process that renders is gone, another one goes on after the last frame that was finished.
    """
    scene, frames = call.arguments["scene"], call.arguments["frames"]
    if not call.can_create_task:
        return f"Queued {frames} frames of {scene}; a caller that declares tasks could watch them."

    async def run(task: TaskContext) -> dict[str, Any]:
        finished = task.checkpointed or 0
        resumed = f" (going on after frame {finished})" if task.resumed else ""
        for frame in range(finished + 1, frames + 1):
            await task.update(f"Frame {frame}/{frames}{resumed}")
            await pause(FRAME_S)
            await task.checkpoint(frame)
        question = elicit(message=f"Where shall {scene} be published?", schema=PUBLISH_FORM)
        answers = await task.request_input({"publish": question})
        if not answers["publish"].accepted:
            return text(f"{scene}: kept to ourselves.")
        return text(f"{scene}: {frames} frames, published on {answers['publish'].content['channel']}.")

    return call.task(run, status_message="Queued", ttl_ms=TTL_MS, poll_interval_ms=POLL_MS)


@server.tool(task="required")
async def archive(call: ToolCall) -> TaskOffer:
    """Move finished scenes to the archive, which is offline."""

    async def run(task: TaskContext) -> str:
        await pause(FRAME_S)
        raise ProtocolError(-32603, "The archive is offline", {"retryAfterMs": 60_000})

    return call.task(run, ttl_ms=TTL_MS, poll_interval_ms=POLL_MS)


@server.tool(task="required")
async def encode(call: ToolCall) -> TaskOffer:
    """Encode a scene in a codec that nobody has."""

    async def run(task: TaskContext) -> str:
        await pause(FRAME_S)
        raise ToolError("No encoder for Betamax; try AV1.")

    return call.task(run, ttl_ms=TTL_MS, poll_interval_ms=POLL_MS)


async def pause(seconds: float) -> None:
    """Sleep on whichever loop runs this."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)
