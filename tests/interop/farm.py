"""The server that other people's clients are pointed at: one tool for each thing that can happen to a call.

::

    mcp-tasks serve tests/interop/farm.py:server --loop trio
    uvicorn tests.interop.farm:app

A tool's name says what it does; where a client must act, its description says how.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from mcp_tasks_adapters import RequestFacts
from mcp_tasks_adapters.asgi import asgi_app
from mcp_tasks_adapters.toolkit import (
    ProtocolError,
    Request,
    Server,
    TaskContext,
    TaskOffer,
    ToolCall,
    ToolError,
    elicit,
    list_roots,
    sample,
    structured,
    text,
)

__all__ = ["app", "server"]


def caller(facts: RequestFacts) -> str | None:
    """Return who calls: whoever says a name. Nobody else has one."""
    return facts.headers.get("x-user")


server = Server(
    "interop-farm",
    version="1.0",
    title="The farm",
    instructions="Ask for anything.",
    capabilities={"logging": {}},
    principal=caller,
)

POLL_MS = 20
FOREVER_S = 3600.0

CHANNEL_FORM = {
    "type": "object",
    "properties": {
        "channel": {"type": "string", "enum": ["public", "private"]},
        "copies": {"type": "integer", "minimum": 1, "default": 1},
    },
    "required": ["channel"],
}
CONFIRMATION_FORM = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}},
    "required": ["sure"],
}


async def sleep(seconds: float) -> None:
    """Sleep on the running loop, whichever it is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        import trio

        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


# -- calls that end by themselves ------------------------------------------------------------------------


@server.tool(
    task="forbidden",
    title="Greeter",
    description="Greet somebody",
    input_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    annotations={"readOnlyHint": True},
)
async def greet(call: ToolCall) -> Any:
    return text(f"Hello, {call.arguments['name']}!")


@server.tool(task="forbidden", description="Report every step on the way")
async def count(call: ToolCall) -> Any:
    for step in (1, 2, 3):
        await call.progress(step, total=3, message=f"Step {step}")
    return text("Counted to 3.")


@server.tool(task="forbidden", description="Log at two levels")
async def log(call: ToolCall) -> Any:
    await call.log("debug", "too fine for most", logger="farm")
    await call.log("warning", {"fuel": "low"}, logger="farm")
    return text("Logged.")


@server.tool(
    task="forbidden",
    description="Answer with structured content",
    output_schema={
        "type": "object",
        "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
        "required": ["width", "height"],
    },
)
async def measure(call: ToolCall) -> Any:
    return structured({"width": 1920, "height": 1080}, "Full HD")


@server.tool(
    task="forbidden",
    description="Answer with structured content that breaks its own promise",
    output_schema={"type": "object", "properties": {"width": {"type": "integer"}}, "required": ["width"]},
)
async def mismeasure(call: ToolCall) -> Any:
    return {"structuredContent": {"width": "wide"}}


@server.tool(task="forbidden", description="Fail, as a tool fails")
async def refuse(call: ToolCall) -> Any:
    raise ToolError("Out of colour.")


@server.tool(task="forbidden", description="Fail with a protocol error")
async def break_down(call: ToolCall) -> Any:
    raise ProtocolError(-32603, "The mill broke down.", {"part": "wheel"})


# -- what a client sends ---------------------------------------------------------------------------------


@server.tool(task="forbidden", description="Show the metadata of this very request, as it came in")
async def metadata(call: ToolCall) -> Any:
    return {"structuredContent": call.params["_meta"]}


@server.tool(
    task="forbidden",
    description="Take a parameter that HTTP clients repeat in a header",
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "weight": {"type": "number"}},
        "required": ["region"],
    },
)
async def ship(call: ToolCall) -> Any:
    return text(f"Shipped to {call.arguments['region']}.")


# -- several at once, and calls that are given up --------------------------------------------------------

_at_the_table = 0
_given_up = False


@server.tool(
    task="forbidden",
    description="Return when so many calls are here at once",
    input_schema={
        "type": "object",
        "properties": {"party": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["party", "name"],
    },
)
async def meet(call: ToolCall) -> Any:
    global _at_the_table
    _at_the_table += 1
    while _at_the_table < call.arguments["party"]:
        await sleep(0.01)
    return text(f"Enchanted, {call.arguments['name']}.")


@server.tool(task="forbidden", description="Never return; say so once begun, as progress")
async def wait(call: ToolCall) -> Any:
    global _given_up
    try:
        await call.progress(1, message="Waiting")
        await sleep(FOREVER_S)
    finally:
        _given_up = True


@server.tool(task="forbidden", description="Return once a call of wait was given up")
async def see_given_up(call: ToolCall) -> Any:
    while not _given_up:
        await sleep(0.01)
    return text("Given up.")


# -- questions before an answer (MRTR) -------------------------------------------------------------------


@server.tool(task="forbidden", description="Ask two forms, one after the other")
async def publish(call: ToolCall) -> Any:
    match call.state:
        case None:
            question = elicit(message="Where to?", schema=CHANNEL_FORM)
            return call.input_required({"where": question}, state="asked where")
        case "asked where":
            where = call.answers["where"]
            if not where.accepted:
                return text("Declined." if where.declined else "Left unanswered.")
            question = elicit(message="Are you sure?", schema=CONFIRMATION_FORM)
            return call.input_required({"confirm": question}, state=where.content)
        case chosen:
            if not call.answers["confirm"].content["sure"]:
                return text("Thought better of it.")
            return text(f"{chosen['copies']} on {chosen['channel']}.")


@server.tool(task="forbidden", description="Ask the user, the model and the client in one round")
async def survey(call: ToolCall) -> Any:
    if not call.answers:
        questions = {
            "user": elicit(message="Go on?"),
            "model": sample("Say yes.", max_tokens=10),
            "client": list_roots(),
        }
        return call.input_required(questions, state="asked")
    said = call.answers["model"].content["text"]
    roots = [root["uri"] for root in call.answers["client"].response["roots"]]
    return structured({"accepted": call.answers["user"].accepted, "said": said, "roots": roots})


# -- a list of tools that changes ------------------------------------------------------------------------


@server.tool(task="forbidden", description="Add the tool temp")
async def hire(call: ToolCall) -> Any:
    server.tool("temp", task="forbidden", description="Here for the season")(greet)
    return text("Hired.")


@server.tool(task="forbidden", description="Take the tool temp away")
async def dismiss(call: ToolCall) -> Any:
    server.remove_tool("temp")
    return text("Dismissed.")


# -- tasks -----------------------------------------------------------------------------------------------


@server.tool(task="optional", description="A task for who declares tasks, a plain answer for who does not")
async def render(call: ToolCall) -> Any:
    if not call.can_create_task:
        return text("Rendered at once.")

    async def run(task: TaskContext) -> Any:
        await task.update("Frame 1/2")
        await task.update("Frame 2/2")
        return text("Rendered as a task.")

    return call.task(run, status_message="Queued", poll_interval_ms=POLL_MS)


@server.tool(task="required", description="A task that asks two questions at once")
async def commission(call: ToolCall) -> TaskOffer:
    async def run(task: TaskContext) -> Any:
        questions = {
            "where": elicit(message="Where to?", schema=CHANNEL_FORM),
            "confirm": elicit(message="Are you sure?", schema=CONFIRMATION_FORM),
        }
        answers = await task.request_input(questions)
        sure = answers["confirm"].content["sure"]
        return text(f"{answers['where'].content['channel']}, {'sure' if sure else 'unsure'}")

    return call.task(run, poll_interval_ms=POLL_MS)


@server.tool(task="required", description="A form first, a task then")
async def book(call: ToolCall) -> Any:
    if not call.answers:
        return call.input_required({"where": elicit(message="Where to?", schema=CHANNEL_FORM)}, state="asked")
    channel = call.answers["where"].content["channel"]

    async def run(task: TaskContext) -> Any:
        return text(f"Booked on {channel}.")

    return call.task(run, poll_interval_ms=POLL_MS)


@server.tool(task="required", description="A task that ends with a tool error")
async def spoil(call: ToolCall) -> TaskOffer:
    async def run(task: TaskContext) -> Any:
        raise ToolError("Burnt.")

    return call.task(run, poll_interval_ms=POLL_MS)


@server.tool(task="required", description="A task that fails with a protocol error")
async def collapse(call: ToolCall) -> TaskOffer:
    async def run(task: TaskContext) -> Any:
        raise ProtocolError(-32603, "The roof fell in.", {"floor": 2})

    return call.task(run, poll_interval_ms=POLL_MS)


@server.tool(task="required", description="A task that only ends when it is cancelled")
async def idle(call: ToolCall) -> TaskOffer:
    async def run(task: TaskContext) -> Any:
        await sleep(FOREVER_S)

    return call.task(run, status_message="Idling", poll_interval_ms=POLL_MS)


@server.tool(
    task="required",
    description="A task with a result that its output schema describes",
    output_schema={"type": "object", "properties": {"frames": {"type": "integer"}}, "required": ["frames"]},
)
async def tally(call: ToolCall) -> TaskOffer:
    async def run(task: TaskContext) -> Any:
        return {"frames": 24}

    return call.task(run, poll_interval_ms=POLL_MS)


# -- methods of the host ---------------------------------------------------------------------------------


@server.on_request("resources/read")
async def read_resource(request: Request) -> Any:
    if request.params["uri"] != "farm://almanac/müller":
        raise ProtocolError(-32602, "There is no such resource.", {"uri": request.params["uri"]})
    contents = [{"uri": request.params["uri"], "mimeType": "text/plain", "text": "Rain on Sunday."}]
    return {"contents": contents, "ttlMs": 0, "cacheScope": "private"}


@server.on_request("prompts/get")
async def get_prompt(request: Request) -> Any:
    if not request.answers:
        question = elicit(message="Are you sure?", schema=CONFIRMATION_FORM)
        return request.input_required({"confirm": question}, state="asked")
    content = {"type": "text", "text": f"Sure: {request.answers['confirm'].content['sure']}"}
    return {"messages": [{"role": "user", "content": content}]}


# -- the end ---------------------------------------------------------------------------------------------


@server.tool(task="forbidden", description="Have this server stop, as SIGTERM does")
async def stop(call: ToolCall) -> Any:
    os.kill(os.getpid(), signal.SIGTERM)
    return text("Stopping.")


app = asgi_app(server)
