"""Our clients with servers of 2025-11-25 on the official TypeScript SDK 1.x: its own examples, as they come.

``simpleTaskInteractive`` has two tools that are called as tasks, and ask a form and a model; it cancels none.
``simpleStreamableHttp`` has plain tools as well, keeps events for streams that are taken up again, and sends
what is said on the way on the stream of no request.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_tasks_adapters.client import Answer, Failed, accept, decline

from tests.adapters.client_harness import LOOPS
from tests.interop.servers import needed
from tests.interop.visitor import PATIENCE_S, Visitor, over_http

EXAMPLES: Final = "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server"
START_SECONDS: Final = 60.0
HAIKU: Final = {"role": "assistant", "content": {"type": "text", "text": "An old pond."}, "model": "none"}
CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {"form": {}}, "sampling": {}}


@contextmanager
def serving(example: str, port_variable: str, log: Path) -> Iterator[str]:
    """Run an example for the length of the block; give its URL. What it says goes to ``log``."""
    node = needed("MCP_NODE", "Node.js 22 or newer")
    folder = Path(needed("MCP_NPM", "a folder with npm's @modelcontextprotocol/sdk 1.x"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with log.open("w") as output:
        process = subprocess.Popen(
            [node, str(folder / EXAMPLES / f"{example}.js")],
            env={**os.environ, port_variable: str(port)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        await_port(process, port, log)
        yield f"http://localhost:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until somebody answers at a port."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("localhost", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the server was never ready:\n{log.read_text()}")


@pytest.fixture(scope="module")
def interactive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("interactive") / "server.log"
    with serving("simpleTaskInteractive", "PORT", log) as url:
        yield url


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("simple") / "server.log"
    with serving("simpleStreamableHttp", "MCP_PORT", log) as url:
        yield url


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Guest(Visitor):
    """Answers forms and models."""

    async def answer(self, question: Any) -> Answer:
        """Answer by what is asked."""
        self.asked.append(question)
        if question.method == "sampling/createMessage":
            return Answer(HAIKU)
        return self.answers.get(question.message, accept({"confirm": True}))


def visit(loop: str, url: str, scenario: Any, **options: Any) -> None:
    """Run a scenario."""
    over_http(loop, url, scenario, visitor_class=Guest, capabilities=CAPABILITIES, **options)


def words(outcome: Any) -> str:
    """Return the text of a result."""
    text: str = outcome.result["content"][0]["text"]
    return text


def test_leg8_a_task_that_asks_a_form(loop: str, interactive: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        call = await visitor.client.call_tool("confirm_delete", {"filename": "a.txt"}, timeout=PATIENCE_S)
        assert visitor.client.era == "legacy"
        assert call.task_id is not None
        assert words(await call.settle()) == "Deleted 'a.txt'"
        assert visitor.questions("confirm_delete") == ["Are you sure you want to delete 'a.txt'?"]
        assert len(visitor.sent("tasks/result", taskId=call.task_id)) == 1

    visit(loop, interactive, scenario)


def test_leg8_a_form_that_is_declined(loop: str, interactive: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.answers["Are you sure you want to delete 'b.txt'?"] = decline()
        outcome = await visitor.outcome("confirm_delete", {"filename": "b.txt"})
        assert words(outcome) == "Deletion cancelled"

    visit(loop, interactive, scenario)


def test_leg8_a_task_that_asks_a_model(loop: str, interactive: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        assert words(await visitor.outcome("write_haiku", {"topic": "ponds"})) == "Haiku:\nAn old pond."

    visit(loop, interactive, scenario)


def test_leg5_where_nothing_can_be_cancelled_the_caller_stops_waiting(loop: str, interactive: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        call = await visitor.client.call_tool("confirm_delete")
        await call.cancel()
        assert type(call.outcome).__name__ == "Cancelled"

    visit(loop, interactive, scenario)


def test_plain_calls_and_what_is_said_on_the_way(loop: str, simple: str) -> None:
    """Trap 22."""

    async def scenario(visitor: Visitor) -> None:
        assert words(await visitor.outcome("greet", {"name": "Ada"})) == "Hello, Ada!"
        names = [tool["name"] for tool in await visitor.client.list_tools()]
        assert {"greet", "delay"} <= set(names)
        failed = await visitor.outcome("no such tool")
        assert isinstance(failed, Failed) or failed.result["isError"] is True

    visit(loop, simple, scenario)


def test_leg3_a_task_that_takes_a_while(loop: str, simple: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        call = await visitor.client.call_tool("delay", {"duration": 300}, timeout=PATIENCE_S)
        assert call.task_id is not None
        assert words(await call.settle()) == "Completed 300ms delay"

    visit(loop, simple, scenario)


def test_req1_a_plain_call_that_asks_a_form(loop: str, simple: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        outcome = await visitor.outcome("collect-user-info", {"infoType": "preferences"})
        assert "declined" in words(outcome)
        assert len(visitor.asked) == 1

    class Decliner(Guest):
        async def answer(self, question: Any) -> Answer:
            self.asked.append(question)
            return decline()

    over_http(loop, simple, scenario, visitor_class=Decliner, capabilities=CAPABILITIES)


def test_leg2_the_session_is_ended(loop: str, simple: str) -> None:
    trace: list[Any] = []

    async def scenario(visitor: Visitor) -> None:
        await visitor.outcome("greet", {"name": "Ada"})
        trace.append(visitor.trace)

    visit(loop, simple, scenario)
    [entries] = trace
    [farewell] = [entry for entry in entries if entry.verb == "DELETE"]
    statuses = [entry.http_status for entry in entries if entry.request == farewell.request]
    assert statuses == [None, 200]
