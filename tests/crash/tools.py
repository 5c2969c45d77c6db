"""The server that is killed: tools that note, in a diary of their own, what reached them.

Each line of the diary is synced before the tool goes on, so that it says what a tool had seen when its
process was killed. ``CRASH_DIARY`` names the file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from secrets import token_hex
from typing import Any

from mcp_tasks_adapters.toolkit import (
    Limits,
    ProtocolError,
    ReportRejected,
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

PROCESS = token_hex(8)
_diary = os.open(os.environ["CRASH_DIARY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

server = Server(
    "crash", limits=Limits(tasks=MANY, tasks_per_principal=MANY, ttl_ms=LIFETIME_MS, poll_interval_ms=POLL_MS)
)


@server.tool(task="required")
async def plain(call: ToolCall) -> TaskOffer:
    """Report progress, and complete."""

    async def run(task: TaskContext) -> dict[str, Any]:
        note_beginning(task, "plain")
        for step in range(3):
            await task.update(f"Step {step}")
            await pause()
        return structured({"task": task.task_id})

    return call.task(run)


@server.tool(task="required")
async def asking(call: ToolCall) -> TaskOffer:
    """Ask several rounds of questions, and return the answers."""

    async def run(task: TaskContext) -> dict[str, Any]:
        note_beginning(task, "asking")
        said: dict[str, str] = {}
        for number in range(len(ROUNDS)):
            said |= await ask(task, number)
        return structured({"task": task.task_id, "answers": said})

    return call.task(run)


@server.tool(task="required", resumable=True)
async def resumable(call: ToolCall) -> TaskOffer:
    """Do the same, and go on after the last round when the process was killed."""

    async def run(task: TaskContext) -> dict[str, Any]:
        done = task.checkpointed or {"rounds": 0, "said": {}}
        note_beginning(task, "resumable", done["rounds"])
        said = dict(done["said"])
        for number in range(done["rounds"], len(ROUNDS)):
            said |= await ask(task, number)
            await task.checkpoint({"rounds": number + 1, "said": said})
            note(task, "checkpointed", round=number + 1)
        return structured({"task": task.task_id, "answers": said})

    return call.task(run)


@server.tool(task="required")
async def failing(call: ToolCall) -> TaskOffer:
    """Fail with a protocol error."""

    async def run(task: TaskContext) -> str:
        note_beginning(task, "failing")
        await pause()
        raise ProtocolError(FAILING_CODE, FAILING_MESSAGE, {"task": task.task_id})

    return call.task(run)


@server.tool(task="required")
async def erring(call: ToolCall) -> TaskOffer:
    """Err, as tools do."""

    async def run(task: TaskContext) -> str:
        note_beginning(task, "erring")
        raise ToolError(ERRING_TEXT)

    return call.task(run)


@server.tool(task="required")
async def endless(call: ToolCall) -> TaskOffer:
    """Go on until cancelled."""

    async def run(task: TaskContext) -> str:
        note_beginning(task, "endless")
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
        note_beginning(task, "brief")
        with suppress(ReportRejected):  # as when it has no time left to ask
            await task.request_input({"never": elicit(message="Is anybody there?")})
        return "Somebody was there."

    return call.task(run, ttl_ms=BRIEF_TTL_MS)


async def ask(task: TaskContext, number: int) -> dict[str, str]:
    """Ask the questions of a round; note and return the answers, by question."""
    forms = {name: elicit(message=question(number, name), schema=FORM) for name in ROUNDS[number]}
    said = {}
    for name, answer in (await task.request_input(forms)).items():
        said[question(number, name)] = answer.content["value"]
        note(task, "delivered", question=question(number, name), value=answer.content["value"])
    return said


def note_beginning(task: TaskContext, kind: str, at_round: int = 0) -> None:
    """Note that the work of a task begins, or goes on."""
    note(task, "began", kind=kind, round=at_round)


def note(task: TaskContext, what: str, **members: str | int) -> None:
    """Write a line into the diary, and sync it."""
    line = {"what": what, "task_id": task.task_id, "process": PROCESS, **members}
    os.write(_diary, f"{json.dumps(line)}\n".encode())
    os.fsync(_diary)


async def pause() -> None:
    """Sleep for a moment on whichever loop runs this."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        await trio.sleep(STEP_S)
    else:
        await asyncio.sleep(STEP_S)
