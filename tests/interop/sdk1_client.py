"""A client of 2025-11-25 made of the official Python SDK 1.x, as any user of it would write one.

It runs in an environment with PyPI ``mcp`` 1.x and knows nothing of this project::

    python -m tests.interop.sdk1_client http http://127.0.0.1:8000/mcp
    python -m tests.interop.sdk1_client stdio COMMAND...     # that runs such a server on stdio

It goes through every scenario against the server of ``farm.py`` and prints one JSON object: ``sdk``, the
SDK's version, and ``outcomes``, what came of each scenario. ``npm_client.mjs`` has the same scenarios, and
``test_legacy_clients.py`` says what should come of them.
"""

# mypy: disable-error-code="import-not-found, misc, attr-defined"
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
import httpx
import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PATIENCE_S = 60.0
"""For one scenario, on a machine that is busy."""

Json = dict[str, Any]
Scenario = Callable[["User"], Awaitable[Any]]

SCENARIOS: dict[str, Scenario] = {}


def scenario(run: Scenario) -> Scenario:
    """Have ``run`` be one of the scenarios; they run in the order they stand in."""
    SCENARIOS[run.__name__] = run
    return run


def wire(model: Any) -> Any:
    """Return a model of the SDK's as it goes over the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class User:
    """Has a session, and answers what is asked in it."""

    def __init__(self, url: str | None) -> None:
        self.url = url
        self.session: Any = None
        self.initialized: Any = None
        self.asked: list[str] = []
        self.news: list[str] = []

    async def fill_in(self, context: Any, params: Any) -> Any:
        """Fill in a form, with a fixed value for each field there may be."""
        self.asked.append(params.message)
        values = {"channel": "public", "copies": 3, "sure": True}
        fields = params.requestedSchema["properties"]
        return types.ElicitResult(action="accept", content={name: values[name] for name in fields})

    async def think(self, context: Any, params: Any) -> Any:
        """Be the client's model."""
        content = types.TextContent(type="text", text="Yes.")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def show_roots(self, context: Any) -> Any:
        """Show the client's roots."""
        return types.ListRootsResult(roots=[types.Root(uri="file:///farm")])

    async def hear(self, message: Any) -> None:
        """Hear of what the server says unasked."""
        if isinstance(message, types.ServerNotification):
            self.news.append(message.root.method)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool plainly."""
        return wire(await self.session.call_tool(tool, arguments))

    async def task(self, tool: str, **arguments: Any) -> str:
        """Call a tool as a task, and return the task's id."""
        created = await self.session.experimental.call_tool_as_task(tool, arguments)
        task_id: str = created.task.taskId
        return task_id

    async def result(self, task_id: str) -> Any:
        """Return the result of a task once there is one."""
        return wire(await self.session.experimental.get_task_result(task_id, types.CallToolResult))

    async def until_over(self, task_id: str) -> str:
        """Poll a task to its end, and return its last status."""
        status = ""
        async for view in self.session.experimental.poll_task(task_id):
            status = view.status
        return status


async def error_of(request: Awaitable[Any]) -> Json:
    """Return the error of a request that should have one."""
    try:
        await request
    except McpError as error:
        return dict(wire(error.error))
    raise AssertionError("there was no error")


# -- scenarios -------------------------------------------------------------------------------------------


@scenario
async def connect(user: User) -> Any:
    """What the server said of itself."""
    said = wire(user.initialized)
    return {name: said[name] for name in ("capabilities", "serverInfo", "instructions")}


@scenario
async def ping(user: User) -> Any:
    """Ask whether it is there."""
    return wire(await user.session.send_ping())


@scenario
async def tools(user: User) -> Any:
    """What each tool says of tasks."""
    listed = wire(await user.session.list_tools())["tools"]
    return {tool["name"]: tool.get("execution", {}).get("taskSupport") for tool in listed}


@scenario
async def plain(user: User) -> Any:
    """A plain call."""
    return await user.call("greet", name="Žofie")


@scenario
async def plain_tool_error(user: User) -> Any:
    """A tool's own error."""
    return await user.call("refuse")


@scenario
async def plain_questions(user: User) -> Any:
    """A plain call that asks two forms, one after the other."""
    user.asked.clear()
    result = await user.call("publish")
    return {"asked": list(user.asked), "result": result}


@scenario
async def three_kinds(user: User) -> Any:
    """A plain call that asks the user, the model and the client at once."""
    return await user.call("survey")


@scenario
async def task(user: User) -> Any:
    """A task from its creation to its result."""
    created = wire(await user.session.experimental.call_tool_as_task("render", {}, ttl=90_000))
    task_id = created["task"]["taskId"]
    over = await user.until_over(task_id)
    return {"created": created["task"], "last": over, "result": await user.result(task_id)}


@scenario
async def task_with_questions(user: User) -> Any:
    """A task that asks two forms at once."""
    user.asked.clear()
    task_id = await user.task("commission")
    while (await user.session.experimental.get_task(task_id)).status != "input_required":
        await anyio.sleep(0.02)
    result = await user.result(task_id)
    return {"asked": sorted(user.asked), "result": result, "last": await user.until_over(task_id)}


@scenario
async def task_after_questions(user: User) -> Any:
    """A tool that asks first and would make a task then: it is one already."""
    user.asked.clear()
    result = await user.result(await user.task("book"))
    return {"asked": list(user.asked), "result": result}


@scenario
async def task_with_tool_error(user: User) -> Any:
    """A task that ends with a tool's own error."""
    task_id = await user.task("spoil")
    return {"last": await user.until_over(task_id), "result": await user.result(task_id)}


@scenario
async def task_failed(user: User) -> Any:
    """A task that ends with a protocol error."""
    task_id = await user.task("collapse")
    return {"last": await user.until_over(task_id), "error": await error_of(user.result(task_id))}


@scenario
async def task_cancelled(user: User) -> Any:
    """A task that is cancelled, twice, while its result is waited for."""
    task_id = await user.task("idle")
    waited: list[Json] = []

    async def wait() -> None:
        waited.append(await error_of(user.result(task_id)))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.sleep(0.1)
        cancelled = wire(await user.session.experimental.cancel_task(task_id))
    again = await error_of(user.session.experimental.cancel_task(task_id))
    view = wire(await user.session.experimental.get_task(task_id))
    return {"cancelled": cancelled, "again": again, "view": view, "waited": waited}


@scenario
async def task_unknown(user: User) -> Any:
    """A task that there is not."""
    experimental = user.session.experimental
    return {
        "get": await error_of(experimental.get_task("never")),
        "result": await error_of(user.result("never")),
        "cancel": await error_of(experimental.cancel_task("never")),
    }


@scenario
async def task_list(user: User) -> Any:
    """Everybody's tasks."""
    return await error_of(user.session.experimental.list_tasks())


@scenario
async def tasks_of_one_s_own(user: User) -> Any:
    """Two callers with names: what each sees of the other's tasks. On stdio nobody has a name."""
    if user.url is None:
        return None
    async with connected(["http", user.url], "ann") as ann, connected(["http", user.url], "bob") as bob:
        made = sorted([await ann.task("render") for _ in range(3)])
        strangers = {
            "get": await error_of(bob.session.experimental.get_task(made[0])),
            "cancel": await error_of(bob.session.experimental.cancel_task(made[0])),
        }
        capability = wire(ann.initialized)["capabilities"]["tasks"].get("list")
        if capability is None:
            return {"made": made, **strangers}
        listed = await ann.session.experimental.list_tasks()
        return {
            "capability": capability,
            "made": made,
            "ann": sorted(task.taskId for task in listed.tasks),
            "bob": wire(await bob.session.experimental.list_tasks()),
            "cursor": await error_of(ann.session.experimental.list_tasks("nonsense")),
            **strangers,
        }


@scenario
async def wrong_way(user: User) -> Any:
    """A task of a tool that makes none, and a plain call of one that only makes tasks."""
    return {
        "as task": await error_of(user.task("greet", name="Ada")),
        "plain": await error_of(user.call("idle")),
    }


@scenario
async def tools_change(user: User) -> Any:
    """Hear of a list of tools that has changed."""
    user.news.clear()
    await user.call("hire")
    while not user.news:
        await anyio.sleep(0.02)
    await user.call("dismiss")
    while len(user.news) < 2:  # what comes while a client leaves is an error to this SDK
        await anyio.sleep(0.02)
    return user.news[0]


# -- running ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def connected(arguments: Sequence[str], name: str | None = None) -> AsyncIterator[User]:
    """Open a session as the command line says, for a caller who has a name or none."""
    user = User(arguments[1] if arguments[0] == "http" else None)
    http = httpx.AsyncClient(headers={} if name is None else {"X-User": name}, timeout=PATIENCE_S)
    match arguments:
        case ["http", url]:
            transport = streamable_http_client(url, http_client=http)
        case ["stdio", command, *options]:
            parameters = StdioServerParameters(command=command, args=options, env=dict(os.environ))
            transport = stdio_client(parameters)
        case _:
            sys.exit("usage: python -m tests.interop.sdk1_client http URL | stdio COMMAND...")
    async with (
        http,
        transport as streams,
        ClientSession(
            *streams[:2],
            elicitation_callback=user.fill_in,
            sampling_callback=user.think,
            list_roots_callback=user.show_roots,
            message_handler=user.hear,
        ) as user.session,
    ):
        user.initialized = await user.session.initialize()
        yield user


async def outcome(run: Scenario, user: User) -> Json:
    """Run one scenario and return what came of it."""
    try:
        with anyio.fail_after(PATIENCE_S):
            return {"returned": await run(user)}
    except Exception:
        return {"traceback": traceback.format_exc()}


async def main(arguments: Sequence[str]) -> None:
    """Run every scenario and print the report."""
    async with connected(arguments) as user:
        outcomes = {name: await outcome(run, user) for name, run in SCENARIOS.items()}
    print(json.dumps({"sdk": version("mcp"), "outcomes": outcomes}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
