"""The server that is killed: tools that note, in a diary of their own, what reached them.

Each line of the diary is synced before the tool goes on, so that it says what a tool had seen when its
process was killed. ``CRASH_DIARY`` names the file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp_tasks_adapters.toolkit import (
    Limits,
    ProtocolError,
    Server,
    TaskContext,
    TaskOffer,
    ToolCall,
    ToolError,
    elicit,
    structured,
)

from tests.crash.kinds import (
    BRIEF_TTL_MS,
    ERRING_TEXT,
    FAILING_CODE,
    FAILING_MESSAGE,
    LIFETIME_MS,
    MANY,
    ROUNDS,
    question,
)

__all__ = ["server"]

STEP_S = 0.01
POLL_MS = 50
FORM = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}

_diary = os.open(os.environ["CRASH_DIARY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

server = Server(
    "crash", limits=Limits(tasks=MANY, tasks_per_principal=MANY, ttl_ms=LIFETIME_MS, poll_interval_ms=POLL_MS)
)


@server.tool(task="required")
async def plain(call: ToolCall) -> TaskOffer:
    """Report progress, and complete."""

    async def run(task: TaskContext) -> dict[str, Any]:
        note_beginning(task)
        for step in range(3):
            await task.update(f"Step {step}")
            await pause()
        return structured({"task": task.task_id})

    return call.task(run)


@server.tool(task="required")
async def asking(call: ToolCall) -> TaskOffer:
    """Ask several rounds of questions, and return the answers."""

    async def run(task: TaskContext) -> dict[str, Any]:
        note_beginning(task)
        said: dict[str, str] = {}
        for number, names in enumerate(ROUNDS):
            forms = {name: elicit(message=question(number, name), schema=FORM) for name in names}
            for name, answer in (await task.request_input(forms)).items():
                said[question(number, name)] = answer.content["value"]
                note(task, question=question(number, name), value=answer.content["value"])
        return structured({"task": task.task_id, "answers": said})

    return call.task(run)


@server.tool(task="required")
async def failing(call: ToolCall) -> TaskOffer:
    """Fail with a protocol error."""

    async def run(task: TaskContext) -> str:
        note_beginning(task)
        await pause()
        raise ProtocolError(FAILING_CODE, FAILING_MESSAGE, {"task": task.task_id})

    return call.task(run)


@server.tool(task="required")
async def erring(call: ToolCall) -> TaskOffer:
    """Err, as tools do."""

    async def run(task: TaskContext) -> str:
        note_beginning(task)
        raise ToolError(ERRING_TEXT)

    return call.task(run)


@server.tool(task="required")
async def endless(call: ToolCall) -> TaskOffer:
    """Go on until cancelled."""

    async def run(task: TaskContext) -> str:
        note_beginning(task)
        while True:
            await task.update("Still at it")
            await pause()
            await task.update(None)
            await pause()

    return call.task(run)


@server.tool(task="required")
async def brief(call: ToolCall) -> TaskOffer:
    """Ask what nobody answers, for as long as a short time to live allows."""

    async def run(task: TaskContext) -> str:
        note_beginning(task)
        await task.request_input({"never": elicit(message="Is anybody there?")})
        return "Somebody was there."

    return call.task(run, ttl_ms=BRIEF_TTL_MS)


def note_beginning(task: TaskContext) -> None:
    """Note that the work of a task begins."""
    note(task)


def note(task: TaskContext, **members: str) -> None:
    """Write a line into the diary, and sync it."""
    os.write(_diary, f"{json.dumps({'task': task.task_id, **members})}\n".encode())
    os.fsync(_diary)


async def pause() -> None:
    """Sleep for a moment on whichever loop runs this."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        await trio.sleep(STEP_S)
    else:
        await asyncio.sleep(STEP_S)
