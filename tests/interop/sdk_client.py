"""A client made of the official Python SDK, as any user of it would write one.

It runs in an environment of its own and knows nothing of this project::

    python -m tests.interop.sdk_client http http://127.0.0.1:8000/mcp
    python -m tests.interop.sdk_client stdio mcp-tasks serve tests/interop/farm.py:server --stdio

It goes through every scenario against the server of ``farm.py`` and prints one JSON object: ``sdk``, the
SDK's version; ``outcomes``, what came of each scenario: what it ``returned``, the JSON-RPC ``error`` or the
``traceback`` it ended with; and what each client sent, as ``messages`` and, over HTTP, as ``requests``. Which
of this is right is for ``test_official_sdk.py`` to say. The last scenario stops the server; ``LEFT_OUT`` in
the environment names one that is left out.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"
# The SDK is not installed where this is checked.

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import httpx2
import mcp.client.session
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost

from tests.interop.sdk_tasks import ListenRequest, Tasks, about, ended_view, wire

PATIENCE_S = 60.0
# Of a server that has not started by then, as on a busy machine, the SDK takes it that it is a legacy one.
mcp.client.session.DISCOVER_TIMEOUT_SECONDS = PATIENCE_S / 2
"""For one scenario, on a machine that is busy."""

Json = dict[str, Any]
Scenario = Callable[["Clients"], Awaitable[Any]]

SCENARIOS: dict[str, Scenario] = {}


def scenario(run: Scenario) -> Scenario:
    """Have ``run`` be one of the scenarios; they run in the order they stand in."""
    SCENARIOS[run.__name__] = run
    return run


# -- a user with clients ---------------------------------------------------------------------------------


class User:
    """Answers what is asked, and remembers what that was."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Forget everything, and be willing."""
        self.action = "accept"
        self.asked: list[Json] = []
        self.logged: list[Json] = []

    async def fill_in(self, context: Any, params: Any) -> Any:
        """Fill in a form, with a fixed value for each field there may be, or do what ``action`` says."""
        self.asked.append(wire(params))
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        values = {"channel": "public", "copies": 3, "sure": True}
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: values[name] for name in fields})

    async def think(self, context: Any, params: Any) -> Any:
        """Be the client's model."""
        self.asked.append(wire(params))
        content = types.TextContent(type="text", text="Yes.")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def show_roots(self, context: Any) -> Any:
        """Show the client's roots."""
        return types.ListRootsResult(roots=[types.Root(uri="file:///farm")])

    async def read_log(self, params: Any) -> None:
        """Read a log message."""
        self.logged.append(wire(params))


class Tap:
    """The way to the server, where what goes through is noted."""

    def __init__(self, write: Any, sent: list[Json]) -> None:
        self._write = write
        self._sent = sent

    async def __aenter__(self) -> Tap:
        await self._write.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> Any:
        return await self._write.__aexit__(*exception)

    async def send(self, item: Any) -> None:
        """Note a message and send it on."""
        self._sent.append(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))
        await self._write.send(item)

    async def aclose(self) -> None:
        """Close the way to the server."""
        await self._write.aclose()


@asynccontextmanager
async def tapped(transport: Any, sent: list[Json]) -> AsyncIterator[Any]:
    """Open a transport of the SDK, with a tap on what is sent."""
    async with transport as (read, write):
        yield read, Tap(write, sent)


class Clients:
    """The clients of the server under test, and what they send.

    Three stay connected through all scenarios: ``plain``, ``asking``, which can be asked anything, and
    ``tasking``, which declares tasks as well.
    """

    def __init__(self, transport: str, address: Sequence[str]) -> None:
        self._transport = transport
        self._address = address
        self.user = User()
        self.tasks = Tasks()
        self.messages: dict[str, list[Json]] = {}
        self.requests: dict[str, list[Json]] = {}

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Connect the three."""
        able: Json = {
            "elicitation_callback": self.user.fill_in,
            "sampling_callback": self.user.think,
            "list_roots_callback": self.user.show_roots,
            "logging_callback": self.user.read_log,
            "log_level": "info",
        }
        async with (
            self.connect("plain") as self.plain,
            self.connect("asking", **able) as self.asking,
            self.connect("tasking", extensions=[self.tasks], **able) as self.tasking,
        ):
            yield

    @asynccontextmanager
    async def connect(self, name: str, **options: Any) -> AsyncIterator[Any]:
        """Connect a client; what it sends is kept under its ``name``."""
        async with self._open(name) as transport:
            sent = self.messages.setdefault(name, [])
            async with Client(tapped(transport, sent), **options) as client:
                yield client

    @asynccontextmanager
    async def _open(self, name: str) -> AsyncIterator[Any]:
        if self._transport == "stdio":
            command, *arguments = self._address
            yield stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))
            return
        kept = self.requests.setdefault(name, [])

        async def keep(request: Any) -> None:
            kept.append({"method": request.method, "headers": dict(request.headers)})

        async with httpx2.AsyncClient(timeout=PATIENCE_S, event_hooks={"request": [keep]}) as http:
            yield streamable_http_client(self._address[0], http_client=http)


# -- how it connects -------------------------------------------------------------------------------------


@scenario
async def discover(clients: Clients) -> Any:
    """Connect as the SDK does by default: ask the server what it speaks, and go by its answer."""
    session = clients.plain.session
    return {
        "version": clients.plain.protocol_version,
        "initialized": session.initialize_result is not None,
        "discovered": wire(session.discover_result),
    }


@scenario
async def pin_the_version(clients: Clients) -> Any:
    """Connect without asking, and call at once."""
    async with clients.connect("pinned", mode="2026-07-28") as client:
        return wire(await client.call_tool("refuse"))


@scenario
async def connect_as_of_old(clients: Clients) -> Any:
    """Connect by the handshake of 2025, and call a tool."""
    async with clients.connect("legacy", mode="legacy") as client:
        greeting = wire(await client.call_tool("greet", {"name": "Ada"}))
        return {"version": client.protocol_version, "greeting": greeting}


# -- tools -----------------------------------------------------------------------------------------------


@scenario
async def list_tools(clients: Clients) -> Any:
    """List the tools; the second time is within what the server says may be cached."""
    before = len(clients.messages["plain"])
    first, second = await clients.plain.list_tools(), await clients.plain.list_tools()
    sent = [message["method"] for message in clients.messages["plain"][before:]]
    return {"first": wire(first), "second": wire(second), "sent": sent}


@scenario
async def metadata(clients: Clients) -> Any:
    """Learn from the server what came with a call."""
    return [
        wire(await client.call_tool("metadata"))
        for client in (clients.plain, clients.asking, clients.tasking)
    ]


@scenario
async def plain(clients: Clients) -> Any:
    """Call a tool, with text that is hard on any framing."""
    return wire(await clients.plain.call_tool("greet", {"name": "Žofie\r\n\n\u2028data: \U0001f33e"}))


@scenario
async def progress(clients: Clients) -> Any:
    """Be told how far a call is."""
    reports = []

    async def note(*report: Any) -> None:
        reports.append(report)

    result = await clients.plain.call_tool("count", progress_callback=note)
    return {"reports": reports, "result": wire(result)}


@scenario
async def structured(clients: Clients) -> Any:
    """Get structured content, which the SDK checks against the output schema."""
    return wire(await clients.plain.call_tool("measure"))


@scenario
async def broken_promise(clients: Clients) -> Any:
    """Call a tool whose result does not fit its output schema."""
    return wire(await clients.plain.call_tool("mismeasure"))


@scenario
async def header_parameter(clients: Clients) -> Any:
    """Call a tool with a header parameter: before it is listed, then with values that need encoding."""
    regions = ["eu-north", "Zürich", " padded ", "=?base64?eA==?="]
    async with clients.connect("shipping") as client:
        return [wire(await client.call_tool("ship", {"region": region})) for region in regions]


@scenario
async def prompt_and_resource(clients: Clients) -> Any:
    """Use methods that the server's author answers; one of them asks first."""
    prompt = await clients.asking.get_prompt("sure")
    resource = await clients.asking.read_resource("farm://almanac/müller")
    return {"prompt": wire(prompt), "resource": wire(resource)}


@scenario
async def logging(clients: Clients) -> Any:
    """Read the log of a call, from the level asked for."""
    await clients.asking.call_tool("log")
    await clients.plain.call_tool("log")
    return clients.user.logged


# -- errors ----------------------------------------------------------------------------------------------


@scenario
async def tool_error(clients: Clients) -> Any:
    """Call a tool that cannot do it."""
    return wire(await clients.plain.call_tool("refuse"))


@scenario
async def wrong_arguments(clients: Clients) -> Any:
    """Call a tool with arguments that do not fit its schema."""
    return wire(await clients.plain.call_tool("greet", {"name": 7}))


@scenario
async def protocol_error(clients: Clients) -> Any:
    """Call a tool that raises a protocol error."""
    return wire(await clients.plain.call_tool("break_down"))


@scenario
async def unknown_tool(clients: Clients) -> Any:
    """Call a tool that is not there."""
    return wire(await clients.plain.call_tool("Müller's"))


@scenario
async def unknown_method(clients: Clients) -> Any:
    """Call a method that is not there."""
    prompt = types.PromptReference(type="ref/prompt", name="sure")
    return wire(await clients.plain.complete(prompt, {"name": "mood", "value": ""}))


@scenario
async def task_required(clients: Clients) -> Any:
    """Call a tool that needs tasks, without declaring them."""
    return wire(await clients.plain.call_tool("idle"))


@scenario
async def task_optional(clients: Clients) -> Any:
    """Call a tool that could make a task, without declaring them."""
    return wire(await clients.plain.call_tool("render"))


@scenario
async def cannot_be_asked(clients: Clients) -> Any:
    """Call a tool that asks, without being able to answer."""
    return wire(await clients.plain.call_tool("publish"))


# -- questions before an answer --------------------------------------------------------------------------


@scenario
async def two_rounds(clients: Clients) -> Any:
    """Answer two forms, one after the other."""
    result = await clients.asking.call_tool("publish")
    return {"result": wire(result), "asked": clients.user.asked}


@scenario
async def unwilling(clients: Clients) -> Any:
    """Decline a form, and leave one unanswered."""
    results = []
    for clients.user.action in ("decline", "cancel"):
        results.append(wire(await clients.asking.call_tool("publish")))
    return results


@scenario
async def three_kinds(clients: Clients) -> Any:
    """Answer for the user, for the model and for the client in one round."""
    return wire(await clients.asking.call_tool("survey"))


@scenario
async def misplaced_state(clients: Clients) -> Any:
    """Go on with the request state of another tool's call."""
    asked = await clients.asking.session.call_tool("survey", allow_input_required=True)
    return wire(await clients.asking.call_tool("publish", request_state=asked.request_state))


# -- several at once, and giving up ----------------------------------------------------------------------


@scenario
async def at_once(clients: Clients) -> Any:
    """Make calls that only return when all of them are there."""
    names = [f"guest {number}" for number in range(10)]
    answers: Json = {}

    async def join(name: str) -> None:
        arguments = {"party": len(names), "name": name}
        answers[name] = wire(await clients.plain.call_tool("meet", arguments))

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(join, name)
    return answers


@scenario
async def give_up(clients: Clients) -> Any:
    """Give a call up once the tool is at work; the tool learns of it, and the connection goes on."""
    with anyio.CancelScope() as scope:

        async def begun(*report: Any) -> None:
            scope.cancel()

        await clients.plain.call_tool("wait", progress_callback=begun)
    given_up = await clients.plain.call_tool("see_given_up")
    return {"cancelled": scope.cancelled_caught, "seen": wire(given_up)}


@scenario
async def time_out(clients: Clients) -> Any:
    """Lose patience with a call; the connection goes on."""
    try:
        await clients.plain.call_tool("wait", read_timeout_seconds=0.1)
    except MCPError as timed_out:
        after = wire(await clients.plain.call_tool("greet", {"name": "Job"}))
        return {"error": wire(timed_out.error), "after": after}


# -- listening -------------------------------------------------------------------------------------------


@scenario
async def listen(clients: Clients) -> Any:
    """Be told that the list of tools has changed, and list them again."""
    client = clients.plain

    async def has_temp() -> bool:
        return any(tool.name == "temp" for tool in (await client.list_tools()).tools)

    before = await has_temp()
    async with client.listen(tools_list_changed=True, prompts_list_changed=True) as subscription:
        await client.call_tool("hire")
        hired, between = await anext(subscription), await has_temp()
        await client.call_tool("dismiss")
        dismissed, after = await anext(subscription), await has_temp()
    return {
        "honored": wire(subscription.honored),
        "events": [type(hired).__name__, type(dismissed).__name__],
        "has temp": [before, between, after],
    }


# -- tasks -----------------------------------------------------------------------------------------------


async def through_a_task(clients: Clients, tool: str) -> Any:
    """Call a tool that makes a task, and wait for it."""
    result = wire(await clients.tasking.call_tool(tool))
    created, last = wire(clients.tasks.created[-1]), wire(clients.tasks.seen[-1])
    return {"created": created, "last": last, "result": result, "asked": clients.user.asked}


@scenario
async def task(clients: Clients) -> Any:
    """Call a tool that makes a task for a client that declares tasks."""
    return await through_a_task(clients, "render")


@scenario
async def task_with_questions(clients: Clients) -> Any:
    """Answer two questions of a task."""
    return await through_a_task(clients, "commission")


@scenario
async def task_after_questions(clients: Clients) -> Any:
    """Answer a form before there is a task."""
    return await through_a_task(clients, "book")


@scenario
async def task_with_tool_error(clients: Clients) -> Any:
    """Wait for a task whose tool cannot do it."""
    return await through_a_task(clients, "spoil")


@scenario
async def task_with_output_schema(clients: Clients) -> Any:
    """Wait for structured content, which the SDK checks once it is there."""
    return await through_a_task(clients, "tally")


@scenario
async def task_failed(clients: Clients) -> Any:
    """Wait for a task that ends with a protocol error."""
    return await through_a_task(clients, "collapse")


@scenario
async def task_cancelled(clients: Clients) -> Any:
    """Cancel a task."""
    session = clients.tasking.session
    created = await session.call_tool("idle", allow_claimed=True)
    acknowledged = await about(session, "tasks/cancel", created.task_id)
    return {"acknowledged": wire(acknowledged), "last": wire(await ended_view(session, created, []))}


@scenario
async def task_unknown(clients: Clients) -> Any:
    """Ask for a task that is not there."""
    return wire(await about(clients.tasking.session, "tasks/get", "no-such-task"))


@scenario
async def task_notifications(clients: Clients) -> Any:
    """Follow a task by notifications instead of polling."""
    session, notified = clients.tasking.session, clients.tasks.notified
    created = await session.call_tool("idle", allow_claimed=True)
    listening = ListenRequest(
        method="subscriptions/listen", params={"notifications": {"taskIds": [created.task_id]}}
    )
    async with anyio.create_task_group() as group:
        group.start_soon(session.send_request, listening, types.EmptyResult)
        while not notified:
            await anyio.sleep(0.01)
        await about(session, "tasks/cancel", created.task_id)
        while not notified[-1].ended:
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    shown = await about(session, "tasks/get", created.task_id)
    return {"notified": [wire(view) for view in notified], "shown": wire(shown)}


# -- the end ---------------------------------------------------------------------------------------------


@scenario
async def stop(clients: Clients) -> Any:
    """Listen to a server that stops."""
    async with (
        clients.connect("stopping") as client,
        client.listen(tools_list_changed=True) as subscription,
    ):
        await client.list_tools()  # else the SDK would after the call, to look for output schemas
        await client.call_tool("stop")
        try:
            events = [type(event).__name__ async for event in subscription]
        except SubscriptionLost:
            return "lost"
    return {"ended after": events}


# -- running it ------------------------------------------------------------------------------------------


async def outcome_of(run: Scenario, clients: Clients) -> Json:
    """Run a scenario; return what came of it."""
    clients.user.start_anew()
    try:
        with anyio.fail_after(PATIENCE_S):
            return {"returned": await run(clients)}
    except Exception as error:
        return described(error)


def described(error: BaseException) -> Json:
    """Return an exception, or the only one of a group, as JSON."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return {"error": wire(error.error)}
    return {"traceback": "".join(traceback.format_exception(error))}


async def main() -> None:
    """Go through all scenarios."""
    transport, *address = sys.argv[1:]
    left_out = os.environ.get("LEFT_OUT")
    clients = Clients(transport, address)
    async with clients.connected():
        outcomes = {
            name: await outcome_of(run, clients) for name, run in SCENARIOS.items() if name != left_out
        }
    report = {
        "sdk": version("mcp"),
        "outcomes": outcomes,
        "messages": clients.messages,
        "requests": clients.requests,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main)
