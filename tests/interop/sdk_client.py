"""A client made of the official Python SDK, as any user of it would write one.

It runs in an environment of its own and knows nothing of this project::

    python sdk_client.py http http://127.0.0.1:8000/mcp
    python sdk_client.py stdio mcp-tasks serve tests/interop/farm.py:server --stdio

It goes through every scenario against the server of ``farm.py`` and prints one JSON object: ``sdk``, the
SDK's version; ``outcomes``, what came of each scenario: ``{"returned": …}`` or ``{"raised": …}``; ``wire``,
what the client of each kind sent. What of this is right is for ``test_official_sdk.py`` to say. The last
scenario stops the server.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"
# The SDK is not installed where this is checked.

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Literal

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from pydantic import BaseModel, ConfigDict, TypeAdapter

PATIENCE_S = 30.0
"""For one scenario, on a machine that is busy."""

MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"

Json = dict[str, Any]
Scenario = Callable[["Clients"], Awaitable[Any]]

SCENARIOS: dict[str, Scenario] = {}


def scenario(run: Scenario) -> Scenario:
    """Have ``run`` be one of the scenarios; they run in the order they stand in."""
    SCENARIOS[run.__name__] = run
    return run


def wire(model: BaseModel) -> Json:
    """Return a model as it stands on the wire."""
    dumped: Json = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


# -- the tasks extension, on the SDK's own extension interface -------------------------------------------
# The SDK knows no tasks, but lets an extension claim a resultType and finish such results by itself.


class CreateTaskResult(types.Result):
    """What a call answers that became a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"]
    task_id: str
    poll_interval_ms: int


class TaskView(types.Result):
    """What ``tasks/get`` and ``notifications/tasks`` show."""

    model_config = ConfigDict(extra="allow")
    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    ttl_ms: int | None
    status_message: str | None = None
    input_requests: dict[str, types.InputRequest] | None = None
    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the task."""
        return self.status in ("completed", "failed", "cancelled")


class TaskRequest(types.Request[dict[str, Any], str]):
    """A request about one task; the SDK puts its id into the ``Mcp-Name`` header."""

    name_param = "taskId"


class ListenRequest(types.Request[dict[str, Any], Literal["subscriptions/listen"]]):
    """A listen request for tasks, which the SDK's own one has no place for."""


class Tasks(ClientExtension):
    """Waits for tasks by polling, and answers their questions with the client's own callbacks."""

    identifier = TASKS

    def __init__(self) -> None:
        self.seen: list[TaskView] = []
        self.notified: list[TaskView] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim the handles of tasks."""
        return [ResultClaim(result_type="task", model=CreateTaskResult, resolve=self.resolve)]

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """Take the notifications about tasks."""
        return [NotificationBinding(method="notifications/tasks", params_type=TaskView, handler=self.notice)]

    async def notice(self, view: TaskView) -> None:
        """Keep a notification."""
        self.notified.append(view)

    async def resolve(self, created: CreateTaskResult, context: ClaimContext) -> types.CallToolResult:
        """Finish a call that became a task."""
        view = await ended_view(context.session, created, self.seen)
        if view.error is not None:
            raise MCPError.from_error_data(view.error)
        return types.CallToolResult.model_validate(view.result)


async def about(session: Any, method: str, task_id: str, **params: Any) -> Any:
    """Send one request about a task."""
    answer = TaskView if method == "tasks/get" else types.EmptyResult
    return await session.send_request(
        TaskRequest(method=method, params={"taskId": task_id, **params}), answer
    )


async def ended_view(session: Any, created: CreateTaskResult, seen: list[TaskView]) -> TaskView:
    """Poll until the task has ended; answer what it asks; keep every view that differs from the one before."""
    while True:
        view: TaskView = await about(session, "tasks/get", created.task_id)
        if not seen or wire(seen[-1]) != wire(view):
            seen.append(view)
        if view.ended:
            return view
        if view.input_requests:
            await about(
                session,
                "tasks/update",
                created.task_id,
                inputResponses=await answers_to(session, view.input_requests),
            )
        await anyio.sleep(created.poll_interval_ms / 1000)


async def answers_to(session: Any, requests: Mapping[str, types.InputRequest]) -> Json:
    """Have the client's callbacks answer a task's questions."""
    answers = {}
    for key, request in requests.items():
        context = ClientRequestContext(session=session, request_id=key)
        answers[key] = wire(await session.dispatch_input_request(context, request))
    return answers


# -- a user with a client --------------------------------------------------------------------------------


class User:
    """Answers what is asked, as told to, and remembers what that was."""

    def __init__(self) -> None:
        self.action = "accept"
        self.asked: list[Json] = []
        self.logged: list[Json] = []

    async def fill_in(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Fill in a form, a fixed value for each field there may be."""
        self.asked.append(wire(params))
        values = {"channel": "public", "copies": 3, "sure": True}
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: values[name] for name in fields})

    async def think(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        """Be the client's model."""
        self.asked.append(wire(params))
        content = types.TextContent(type="text", text="Yes.")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def show_roots(self, context: Any) -> types.ListRootsResult:
        """Show the client's roots."""
        return types.ListRootsResult(roots=[types.Root(uri="file:///farm")])

    async def read_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Read a log message."""
        self.logged.append(wire(params))


class Tap:
    """A transport of the SDK, and what goes through it towards the server."""

    def __init__(self, transport: Any, sent: list[Json]) -> None:
        self._transport = transport
        self._sent = sent

    async def __aenter__(self) -> Any:
        read, self._write = await self._transport.__aenter__()
        return read, self

    async def __aexit__(self, *exception: Any) -> Any:
        return await self._transport.__aexit__(*exception)

    async def send(self, item: Any) -> None:
        """Note a message and send it on."""
        self._sent.append(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))
        await self._write.send(item)

    async def aclose(self) -> None:
        """Close the way to the server."""
        await self._write.aclose()


class Clients:
    """Makes clients of the server under test, and keeps what they send."""

    def __init__(self, transport: str, address: Sequence[str]) -> None:
        self._transport = transport
        self._address = address
        self.messages: dict[str, list[Json]] = {}
        self.requests: dict[str, list[Json]] = {}

    @asynccontextmanager
    async def connect(self, kind: str = "plain", **options: Any) -> AsyncIterator[Any]:
        """Connect a client; what it sends is kept under its ``kind``."""
        async with self._open(kind) as transport:
            client = Client(Tap(transport, self.messages.setdefault(kind, [])), **options)
            async with client:
                yield client

    @asynccontextmanager
    async def asking(self, user: User, **options: Any) -> AsyncIterator[Any]:
        """Connect a client that can be asked anything."""
        async with self.connect(
            "asking",
            elicitation_callback=user.fill_in,
            sampling_callback=user.think,
            list_roots_callback=user.show_roots,
            logging_callback=user.read_log,
            log_level="info",
            **options,
        ) as client:
            yield client

    @asynccontextmanager
    async def with_tasks(self, user: User, tasks: Tasks) -> AsyncIterator[Any]:
        """Connect a client that declares tasks."""
        async with self.connect("tasks", elicitation_callback=user.fill_in, extensions=[tasks]) as client:
            yield client

    @asynccontextmanager
    async def _open(self, kind: str) -> AsyncIterator[Any]:
        if self._transport == "stdio":
            command, *arguments = self._address
            yield stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))
            return
        kept = self.requests.setdefault(kind, [])

        async def keep(request: Any) -> None:
            kept.append({"method": request.method, "headers": dict(request.headers)})

        async with httpx2.AsyncClient(timeout=PATIENCE_S, event_hooks={"request": [keep]}) as http:
            yield streamable_http_client(self._address[0], http_client=http)


# -- how it connects -------------------------------------------------------------------------------------


@scenario
async def discover(clients: Clients) -> Any:
    """Connect as the SDK does by default: ask the server what it speaks, fall back where it is old."""
    async with clients.connect("discover") as client:
        return {
            "version": client.protocol_version,
            "initialized": client.session.initialize_result is not None,
            "discovered": wire(client.session.discover_result),
        }


@scenario
async def pin_the_version(clients: Clients) -> Any:
    """Connect without asking anything, and call at once."""
    async with clients.connect("pinned", mode=MODERN) as client:
        return wire(await client.call_tool("greet", {"name": "Ada"}))


@scenario
async def connect_as_of_old(clients: Clients) -> Any:
    """Connect by the handshake of 2025."""
    async with clients.connect("legacy", mode="legacy") as client:
        return client.protocol_version


# -- tools -----------------------------------------------------------------------------------------------


@scenario
async def list_tools(clients: Clients) -> Any:
    """List the tools; the second time is within what the server says may be cached."""
    async with clients.connect("listing") as client:
        first, second = await client.list_tools(), await client.list_tools()
        return {"listed": wire(first), "again": wire(second)}


@scenario
async def metadata(clients: Clients) -> Any:
    """Learn from the server what came with a call."""
    async with clients.connect() as client:
        return wire(await client.call_tool("metadata"))


@scenario
async def plain(clients: Clients) -> Any:
    """Call a tool, with text that is hard on any framing."""
    async with clients.connect() as client:
        return wire(await client.call_tool("greet", {"name": "Žofie\r\n\n\u2028data: \U0001f33e"}))


@scenario
async def progress(clients: Clients) -> Any:
    """Be told how far a call is."""
    reports = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append([progress, total, message])

    async with clients.connect() as client:
        result = await client.call_tool("count", progress_callback=note)
        return {"reports": reports, "result": wire(result)}


@scenario
async def structured(clients: Clients) -> Any:
    """Get structured content, which the SDK checks against the output schema."""
    async with clients.connect() as client:
        return wire(await client.call_tool("measure"))


@scenario
async def broken_promise(clients: Clients) -> Any:
    """Call a tool whose result does not fit its output schema."""
    async with clients.connect() as client:
        return wire(await client.call_tool("mismeasure"))


@scenario
async def header_parameter(clients: Clients) -> Any:
    """Call a tool with a header parameter: unlisted, then with values that need encoding or have none."""
    async with clients.connect("shipping") as client:
        regions = ["eu-north", "Zürich", " padded ", "=?base64?eA==?="]
        return [wire(await client.call_tool("ship", {"region": region})) for region in regions]


# -- errors ----------------------------------------------------------------------------------------------


@scenario
async def tool_error(clients: Clients) -> Any:
    """Call a tool that cannot do it."""
    async with clients.connect() as client:
        return wire(await client.call_tool("refuse"))


@scenario
async def wrong_arguments(clients: Clients) -> Any:
    """Call a tool with arguments that do not fit its schema."""
    async with clients.connect() as client:
        return wire(await client.call_tool("greet", {"name": 7}))


@scenario
async def protocol_error(clients: Clients) -> Any:
    """Call a tool that raises a protocol error."""
    async with clients.connect() as client:
        return wire(await client.call_tool("break_down"))


@scenario
async def unknown_tool(clients: Clients) -> Any:
    """Call a tool that is not there."""
    async with clients.connect() as client:
        return wire(await client.call_tool("Müller's"))


@scenario
async def unknown_method(clients: Clients) -> Any:
    """Call a method that is not there."""
    async with clients.connect() as client:
        return wire(
            await client.complete(
                types.PromptReference(type="ref/prompt", name="x"), {"name": "y", "value": ""}
            )
        )


@scenario
async def task_required(clients: Clients) -> Any:
    """Call a tool that needs tasks, without declaring them."""
    async with clients.connect() as client:
        return wire(await client.call_tool("idle"))


@scenario
async def task_optional(clients: Clients) -> Any:
    """Call a tool that could make a task, without declaring them."""
    async with clients.connect() as client:
        return wire(await client.call_tool("render"))


@scenario
async def cannot_be_asked(clients: Clients) -> Any:
    """Call a tool that asks, without declaring elicitation."""
    async with clients.connect() as client:
        return wire(await client.call_tool("publish"))


# -- questions -------------------------------------------------------------------------------------------


@scenario
async def two_rounds(clients: Clients) -> Any:
    """Answer two forms, one after the other; then decline one, then leave one."""
    user = User()
    async with clients.asking(user) as client:
        results = []
        for user.action in ("accept", "decline", "cancel"):
            results.append(wire(await client.call_tool("publish")))
        return {"results": results, "asked": user.asked}


@scenario
async def three_kinds(clients: Clients) -> Any:
    """Answer for the user, for the model and for the client in one round."""
    user = User()
    async with clients.asking(user) as client:
        return wire(await client.call_tool("survey"))


@scenario
async def tampered_state(clients: Clients) -> Any:
    """Carry on with another call's request state."""
    async with clients.asking(User()) as client:
        asked = await client.session.call_tool("survey", allow_input_required=True)
        return wire(await client.call_tool("publish", request_state=asked.request_state, input_responses={}))


@scenario
async def prompt_and_resource(clients: Clients) -> Any:
    """Use methods that the server's author answers, one of which asks."""
    async with clients.asking(User()) as client:
        prompt = await client.get_prompt("sure")
        resource = await client.read_resource("farm://almanac/müller")
        return {"prompt": wire(prompt), "resource": wire(resource)}


@scenario
async def logging(clients: Clients) -> Any:
    """Read the log of a call, from the level asked for."""
    user = User()
    async with clients.asking(user) as client:
        await client.call_tool("log")
        return user.logged


# -- several at once, and giving up ----------------------------------------------------------------------


@scenario
async def at_once(clients: Clients) -> Any:
    """Make calls that only return when all of them are there."""
    names = [f"guest {number}" for number in range(10)]
    answers: Json = {}

    async def join(name: str) -> None:
        answers[name] = wire(await client.call_tool("meet", {"party": len(names), "name": name}))

    async with clients.connect() as client, anyio.create_task_group() as group:
        for name in names:
            group.start_soon(join, name)
    return answers


@scenario
async def give_up(clients: Clients) -> Any:
    """Give a call up once the tool is at work; the tool learns of it, and the connection goes on."""
    async with clients.connect() as client:
        with anyio.CancelScope() as scope:

            async def begun(*report: Any) -> None:
                scope.cancel()

            await client.call_tool("wait", progress_callback=begun)
        given_up = await client.call_tool("see_given_up")
        return {"cancelled": scope.cancelled_caught, "seen": wire(given_up)}


@scenario
async def time_out(clients: Clients) -> Any:
    """Lose patience with a call."""
    async with clients.connect() as client:
        return wire(await client.call_tool("wait", read_timeout_seconds=0.1))


# -- listening -------------------------------------------------------------------------------------------


@scenario
async def listen(clients: Clients) -> Any:
    """Be told that the list of tools has changed, and list them again."""
    async with clients.connect() as client:

        async def named() -> list[str]:
            return [tool.name for tool in (await client.list_tools()).tools]

        before = await named()
        async with client.listen(tools_list_changed=True, prompts_list_changed=True) as subscription:
            await client.call_tool("hire")
            first = await anext(subscription)
            between = await named()
            await client.call_tool("dismiss")
            second = await anext(subscription)
        return {
            "honored": wire(subscription.honored),
            "events": [type(event).__name__ for event in (first, second)],
            "has temp": ["temp" in names for names in (before, between, await named())],
        }


# -- tasks -----------------------------------------------------------------------------------------------


async def run_as_task(clients: Clients, tool: str) -> Any:
    """Call a tool that makes a task, and wait for it."""
    user, tasks = User(), Tasks()
    async with clients.with_tasks(user, tasks) as client:
        result = wire(await client.call_tool(tool))
    return {"result": result, "last": wire(tasks.seen[-1]), "asked": user.asked}


@scenario
async def task(clients: Clients) -> Any:
    """Call a tool that makes a task for a client that declares tasks."""
    return await run_as_task(clients, "render")


@scenario
async def task_with_questions(clients: Clients) -> Any:
    """Answer two questions of a task."""
    return await run_as_task(clients, "commission")


@scenario
async def task_with_tool_error(clients: Clients) -> Any:
    """Wait for a task whose tool cannot do it."""
    return await run_as_task(clients, "spoil")


@scenario
async def task_with_output_schema(clients: Clients) -> Any:
    """Wait for structured content, which the SDK checks when it is there."""
    return await run_as_task(clients, "tally")


@scenario
async def task_fails(clients: Clients) -> Any:
    """Wait for a task that ends with a protocol error."""
    return await run_as_task(clients, "collapse")


@scenario
async def task_cancelled(clients: Clients) -> Any:
    """Cancel a task."""
    async with clients.with_tasks(User(), Tasks()) as client:
        created = await client.session.call_tool("idle", allow_claimed=True)
        acknowledged = await about(client.session, "tasks/cancel", created.task_id)
        view = await ended_view(client.session, created, [])
        return {"acknowledged": wire(acknowledged), "last": wire(view)}


@scenario
async def task_unknown(clients: Clients) -> Any:
    """Ask for a task that is not there."""
    async with clients.with_tasks(User(), Tasks()) as client:
        return wire(await about(client.session, "tasks/get", "no-such-task"))


@scenario
async def task_notifications(clients: Clients) -> Any:
    """Follow a task by notifications, not by polling."""
    tasks = Tasks()
    async with clients.with_tasks(User(), tasks) as client, anyio.create_task_group() as group:
        created = await client.session.call_tool("idle", allow_claimed=True)
        request = ListenRequest(
            method="subscriptions/listen", params={"notifications": {"taskIds": [created.task_id]}}
        )
        group.start_soon(client.session.send_request, request, types.EmptyResult)
        while not tasks.notified:
            await anyio.sleep(0.01)
        await about(client.session, "tasks/cancel", created.task_id)
        while not tasks.notified[-1].ended:
            await anyio.sleep(0.01)
        shown = await about(client.session, "tasks/get", created.task_id)
        group.cancel_scope.cancel()
    return {"notified": [wire(view) for view in tasks.notified], "shown": wire(shown)}


# -- the end ---------------------------------------------------------------------------------------------


@scenario
async def stop(clients: Clients) -> Any:
    """Listen to a server that stops."""
    async with clients.connect() as client, client.listen(tools_list_changed=True) as subscription:
        await client.call_tool("stop")
        try:
            async for event in subscription:
                return {"event": type(event).__name__}
        except SubscriptionLost:
            return "lost"
    return "ended"


# -- running it ------------------------------------------------------------------------------------------


async def outcome_of(run: Scenario, clients: Clients) -> Json:
    """Run a scenario; return what came of it."""
    try:
        with anyio.fail_after(PATIENCE_S):
            return {"returned": await run(clients)}
    except Exception as error:
        return {"raised": described(error)}


def described(error: BaseException) -> Json:
    """Return an exception, the only one of a group where it is one, as JSON."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return {"type": "MCPError", **wire(error.error)}
    return {"type": type(error).__name__, "traceback": "".join(traceback.format_exception(error))}


async def main() -> None:
    """Go through all scenarios."""
    transport, *address = sys.argv[1:]
    clients = Clients(transport, address)
    outcomes = {name: await outcome_of(run, clients) for name, run in SCENARIOS.items()}
    report = {
        "sdk": version("mcp"),
        "outcomes": outcomes,
        "messages": clients.messages,
        "requests": clients.requests,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main)
