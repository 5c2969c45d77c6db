"""A server of ours for clients under test; its tools go on when a scenario says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp_tasks_adapters.toolkit import ProtocolError, Server, ToolError, elicit, elicit_url, structured, text

from tests.adapters.client_harness import run

NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Farm:
    """A server with tools to test with; they go on when a scenario says so."""

    def __init__(self, on: Any) -> None:
        self.on = on
        self.release = on.event()
        self.started = on.event()
        self.stopped = on.event()
        self.server = server = Server("farm", version="1")

        @server.tool()
        async def add(call: Any) -> Any:
            return structured({"sum": call.arguments["a"] + call.arguments["b"]})

        @server.tool()
        async def fail(call: Any) -> Any:
            raise ToolError("cannot")

        @server.tool()
        async def break_down(call: Any) -> Any:
            raise ProtocolError(-31_000, "broken", {"node": 7})

        @server.tool()
        async def wait(call: Any) -> Any:
            await call.progress(1, total=2, message="half")
            await self.hold()
            return text("waited")

        @server.tool(task="optional")
        async def work(call: Any) -> Any:
            if not call.can_create_task:
                return text("at once")

            async def go(task: Any) -> Any:
                await task.update("at it")
                await self.hold()
                await task.update("nearly")
                return text("worked")

            return call.task(go, status_message="queued", poll_interval_ms=1)

        @server.tool(task="required")
        async def ask(call: Any) -> Any:
            async def go(task: Any) -> Any:
                question = elicit(message="Who?", schema=NAME_FORM)
                answer = (await task.request_input({"who": question}))["who"]
                return text(str(answer.response))

            return call.task(go, poll_interval_ms=1)

        @server.tool(task="required")
        async def ask_much(call: Any) -> Any:
            async def go(task: Any) -> Any:
                questions = {name: elicit(message=name, schema=NAME_FORM) for name in ("a", "b")}
                given = await task.request_input(questions)
                more = await task.request_input({"url": elicit_url(message="Go", url="https://x.example/")})
                return text(*(str(one.response) for one in (given["a"], given["b"], more["url"])))

            return call.task(go, poll_interval_ms=1)

        @server.tool()
        async def ask_first(call: Any) -> Any:
            if "who" not in call.answers:
                return call.input_required({"who": elicit(message="Who?", schema=NAME_FORM)}, state={"n": 1})
            return text(str(call.answers["who"].response))

    async def hold(self) -> None:
        self.started.set()
        try:
            await self.release.wait()
        except BaseException:
            self.stopped.set()
            raise


Scenario = Callable[[Any, Farm, str], Awaitable[None]]


def with_farm(loop: str, scenario: Scenario) -> None:
    """Run a scenario with a server beside it."""

    async def main(on: Any) -> None:
        farm = Farm(on)
        async with on.serving(farm.server) as url:
            await scenario(on, farm, url)

    run(loop, main)
