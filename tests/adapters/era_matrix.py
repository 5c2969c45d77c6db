"""Every client of ours with every server of ours, and what comes of it.

``python -m tests.adapters.era_matrix LOOP POLICY`` is one of the servers, on stdio.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.client import Answer, Client, Completed, Failed, accept
from mcp_tasks_adapters.toolkit import Server, TaskContext, ToolCall, elicit, text

from tests.adapters.client_harness import LOOPS, On, run

__all__ = ["CLIENTS", "LOOPS", "SERVERS", "TRANSPORTS", "Cell", "ClientEra", "cell"]

ClientEra = Literal["modern", "legacy", "dual"]

CLIENTS: Final[tuple[ClientEra, ...]] = ("modern", "legacy", "dual")
SERVERS: Final = ("refuse", "ignore", "serve")
TRANSPORTS: Final = ("HTTP", "stdio")

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 60.0
FORM: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@frozen(kw_only=True)
class Cell:
    """What came of one client with one server."""

    era: str | None
    """What they spoke with each other; ``None``: they did not find together."""
    outcomes: tuple[str, ...]
    """Of each of ``TOOLS``: ``"result"``, ``"task"``, or the sentence that a person is shown."""


# -- the server ----------------------------------------------------------------------------------------------


def make_server(policy: str) -> Server:
    """Return a server with the tools of ``TOOLS``."""
    server = Server("matrix", legacy=policy)

    @server.tool(task="forbidden")
    async def greet(call: ToolCall) -> Any:
        if not call.answers:
            return call.input_required({"name": elicit(message="Your name?", schema=FORM)}, state="asked")
        return text(f"Hello, {call.answers['name'].content['name']}!")

    async def rendered(task: TaskContext) -> Any:
        answers = await task.request_input({"name": elicit(message="Your name?", schema=FORM)})
        return text(f"Rendered for {answers['name'].content['name']}.")

    @server.tool(task="optional")
    async def render(call: ToolCall) -> Any:
        return call.task(rendered, poll_interval_ms=20) if call.can_create_task else text("Rendered at once.")

    @server.tool(task="required")
    async def archive(call: ToolCall) -> Any:
        return call.task(rendered, poll_interval_ms=20)

    return server


TOOLS: Final[Mapping[str, Mapping[str, str]]] = {
    "greet": {"result": "Hello, Ada!"},
    "render": {"result": "Rendered at once.", "task": "Rendered for Ada."},
    "archive": {"task": "Rendered for Ada."},
}
"""The tools, forbidden, optional and required as tasks, with what each says where all is well."""


# -- one cell ------------------------------------------------------------------------------------------------


@cache
def cell(client: ClientEra, server: str, transport: str, loop: str) -> Cell:
    """Run one client with one server, both on this loop, and return what came of it."""
    found: list[Cell] = []

    async def scenario(on: On) -> None:
        options = {"era": None if client == "dual" else client, "answer": lambda _: answered()}
        if transport == "HTTP":
            async with on.serving(make_server(server)) as url, on.connect(url, **options) as connected:
                found.append(await visit(connected))
        else:
            command = [sys.executable, "-m", "tests.adapters.era_matrix", loop, server]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            async with on.connect_stdio(command, cwd=ROOT, env=environment, **options) as connected:
                found.append(await visit(connected))

    run(loop, scenario)
    return found[0]


def answered() -> Answer:
    """Answer every question."""
    return accept({"name": "Ada"})


async def visit(client: Client) -> Cell:
    """Call each tool."""
    outcomes = tuple([await called(client, tool) for tool in TOOLS])
    together = any(outcome in ("result", "task") for outcome in outcomes)
    return Cell(era=client.era if together else None, outcomes=outcomes)


async def called(client: Client, tool: str) -> str:
    """Call a tool; return what came of it."""
    call = await client.call_tool(tool, timeout=PATIENCE_S)
    outcome = await call.settle()
    if isinstance(outcome, Failed):
        return outcome.message
    assert isinstance(outcome, Completed), outcome
    kind = "result" if call.task_id is None else "task"
    [block] = outcome.result["content"]
    assert block["text"] == TOOLS[tool][kind], (tool, kind, block)
    return kind


def serve_on_stdio(loop: str, policy: str) -> None:
    """Serve one client."""
    server = make_server(policy)
    if loop == "trio":
        import trio

        trio.run(trio_h11.serve_stdio, server)
    else:
        import asyncio

        asyncio.run(asyncio_h11.serve_stdio(server))


if __name__ == "__main__":
    serve_on_stdio(*sys.argv[1:])
