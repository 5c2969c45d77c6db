"""The servers that ``test_sep2663.py`` talks to.

Their tools go on when the client says so, never by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_tasks_adapters.driver import RequestFacts
from mcp_tasks_adapters.toolkit import (
    Limits,
    ProtocolError,
    Server,
    TaskContext,
    ToolCall,
    ToolError,
    elicit,
    text,
)


def caller(facts: RequestFacts) -> str | None:
    """Take the caller's word for who it is: enough for tests of ownership."""
    return facts.headers.get("x-user")


server = Server("sep-2663", version="1.0", principal=caller, capabilities={"logging": {}})
cramped = Server("sep-2663-cramped", version="1.0", principal=caller, limits=Limits(tasks=1))

NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OBJECT = {"type": "object"}


def question(message: str = "Well?") -> dict[str, Any]:
    """Return a form with one field, ``name``."""
    return elicit(message=message, schema=NAME_FORM)


async def ask(task: TaskContext, name: str) -> str:
    """Ask under ``name`` and return what the form says."""
    answers = await task.request_input({name: question()})
    return str(answers[name].content["name"])


def on_trio() -> bool:
    """Whether the running loop is trio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


async def sleep_for_ever() -> None:
    """Wait for nothing but one's cancellation."""
    if on_trio():
        import trio

        await trio.sleep_forever()
    else:
        await asyncio.Event().wait()


async def run_beside(wanted: Callable[[], Awaitable[None]], other: Callable[[], Awaitable[Any]]) -> None:
    """Run both; when ``wanted`` has ended, cancel ``other`` by the running loop's own means."""
    if on_trio():
        import trio

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await wanted()
            nursery.cancel_scope.cancel()
    else:
        beside = asyncio.ensure_future(other())
        try:
            await wanted()
        finally:
            beside.cancel()
            await asyncio.wait([beside])


# -- tools of the roomy server ---------------------------------------------------------------------------


@server.tool(task="required", description="Ask under the same name three times", input_schema=OBJECT)
async def ask_again(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        given = [await ask(task, "confirm") for _ in range(3)]
        return text(*given)

    return call.task(run, status_message="Queued", ttl_ms=600_000, poll_interval_ms=250)


@server.tool(task="required", description="Ask two questions at once", input_schema=OBJECT)
async def ask_both(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        answers = await task.request_input({"a": question("A?"), "b": question("B?")})
        return text(answers["a"].content["name"], answers["b"].content["name"])

    return call.task(run)


@server.tool(task="required", description="Give up one question for another", input_schema=OBJECT)
async def change_of_mind(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        async def until_told() -> None:
            await ask(task, "go_on")

        async def old_question() -> None:
            await ask(task, "old")

        await run_beside(until_told, old_question)
        return text(await ask(task, "new"))

    return call.task(run)


@server.tool(task="required", description="Work until told to stop", input_schema=OBJECT)
async def work_on(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        await sleep_for_ever()

    return call.task(run)


@server.tool(task="optional", description="Answer, as a task where that is possible", input_schema=OBJECT)
async def either_way(call: ToolCall) -> Any:
    if not call.can_create_task:
        return text("at once")

    async def run(task: TaskContext) -> Any:
        return text("as a task")

    return call.task(run, ttl_ms=600_000, poll_interval_ms=250)


@server.tool(task="forbidden", description="Answer at once", input_schema=OBJECT)
async def at_once(call: ToolCall) -> Any:
    return text("at once")


@server.tool(task="required", description="End with a protocol error", input_schema=OBJECT)
async def break_down(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        raise ProtocolError(-31_000, "The render node is lost", {"node": 7})

    return call.task(run)


@server.tool(task="required", description="End as tools fail", input_schema=OBJECT)
async def fail(call: ToolCall) -> Any:
    kind = call.arguments.get("kind")

    async def run(task: TaskContext) -> Any:
        if kind == "raised":
            raise LookupError("a bug of the author")
        if kind == "returned":
            return {"content": [{"type": "text", "text": "no frames"}], "isError": True}
        raise ToolError("no frames")

    return call.task(run)


@server.tool(task="required", description="Live for a millisecond", input_schema=OBJECT)
async def live_briefly(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        return text("done")

    return call.task(run, ttl_ms=1)


@server.tool(task="required", description="Report the way calls do, from a task", input_schema=OBJECT)
async def chatter(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        await ask(task, "go_on")
        await call.progress(1, total=2, message="halfway")
        await call.log("error", "something to say")
        await task.update("still here")
        await call.progress(2, total=2)
        return text("done")

    return call.task(run)


@server.tool(task="required", description="Ask for a name before a task exists", input_schema=OBJECT)
async def ask_first(call: ToolCall) -> Any:
    return await name_then_task(call)


# -- tools of the server with room for one task -----------------------------------------------------------


@cramped.tool("ask_first", task="required", description="Ask before a task exists", input_schema=OBJECT)
async def name_then_task(call: ToolCall) -> Any:
    if "user" not in call.answers:
        return call.input_required({"user": question("Who are you?")}, state={"round": 1})
    name = call.answers["user"].content["name"]
    if name == "nobody":
        raise ToolError("Nobody may start a task.")
    if name == "outlaw":
        raise ProtocolError(-31_001, "Not you")

    async def run(task: TaskContext) -> Any:
        return text(f"{name}, and {await ask(task, 'user')}")

    return call.task(run)
