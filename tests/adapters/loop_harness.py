"""Servers over a store, on either loop, and their clients, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from attrs import define, field
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.asyncio_h11.loop import AsyncioThread
from mcp_tasks_adapters.driver import Driver, Event, RequestFacts, Store
from mcp_tasks_adapters.storing import LoopThread
from mcp_tasks_adapters.toolkit import Limits, Server, TaskContext, ToolCall, elicit, text
from mcp_tasks_adapters.trio_h11.loop import TrioThread

from mcp_tasks_proto.testing.messages import request
from tests.adapters.store_harness import PATIENCE_S

FACTS = RequestFacts(transport="http", headers={})
YES = {"action": "accept", "content": {}}


@define(eq=False)
class Peer:
    """Who sent a request to a node, and what came back."""

    answered: Event
    driver: Driver | None = None
    exchange: int = 0
    message: dict[str, Any] | None = None
    sent: list[dict[str, Any]] = field(factory=list)

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[Any] = (),
        event_id: str | None = None,
    ) -> None:
        self.message = message
        self.answered.set()

    def open(self) -> None:
        pass

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        self.sent.append(message)
        if self.driver is not None:
            self.driver.ready(self.exchange)


class Loop:
    """One of the two loops, as these tests need it."""

    def __init__(self, name: str) -> None:
        self._trio = name == "trio"

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def bounded_on_trio() -> None:
            with trio.fail_after(PATIENCE_S):
                await main()

        async def bounded_on_asyncio() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await main()

        if self._trio:
            trio.run(bounded_on_trio)
        else:
            asyncio.run(bounded_on_asyncio())

    def node(self, server: Server, store: Store) -> AbstractAsyncContextManager[Driver]:
        if self._trio:
            return trio_h11.open_driver(server, store)
        return asyncio_h11.open_driver(server, store)

    def thread(self) -> LoopThread:
        return TrioThread() if self._trio else AsyncioThread()

    def event(self) -> Event:
        return trio.Event() if self._trio else asyncio.Event()

    async def pause(self) -> None:
        await (trio.sleep(0.005) if self._trio else asyncio.sleep(0.005))

    # -- a client ------------------------------------------------------------------------------------------

    def start(self, driver: Driver, method: str, **params: Any) -> Peer:
        peer = Peer(self.event())
        message = request(method, params, capabilities={"elicitation": {}})
        peer.exchange = driver.receive(message, peer, facts=FACTS, connection="stdio")
        peer.driver = driver
        return peer

    async def ask(self, driver: Driver, method: str, **params: Any) -> Mapping[str, Any]:
        peer = self.start(driver, method, **params)
        await peer.answered.wait()
        assert peer.message is not None
        return peer.message

    async def create(self, driver: Driver, tool: str, **arguments: Any) -> str:
        reply = await self.ask(driver, "tools/call", name=tool, arguments=arguments)
        task_id: str = reply["result"]["taskId"]
        return task_id

    async def until(self, driver: Driver, task_id: str, status: str) -> Mapping[str, Any]:
        while True:
            reply = await self.ask(driver, "tasks/get", taskId=task_id)
            view: Mapping[str, Any] = reply["result"]
            if view["status"] == status:
                return view
            await self.pause()

    async def when(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await self.pause()


def farm(loop: Loop, said: list[str], limits: Limits | None = None) -> Server:
    """Return a server whose tools are slow, each in its own way."""
    server = Server("farm", limits=limits)

    @server.tool()
    async def publish(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            answers = await task.request_input({"sure": elicit(message="Sure?")})
            said.append("answered")
            return text("Published." if answers["sure"].accepted else "Kept.")

        return call.task(run)

    @server.tool()
    async def wait(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            said.append("began")
            try:
                await loop.event().wait()
            finally:
                said.append("told to stop" if task.cancelled else "stopped")

        return call.task(run, ttl_ms=call.arguments.get("ttl_ms", 60_000))

    return server


both_loops = pytest.mark.parametrize("loop", [Loop("trio"), Loop("asyncio")], ids=["trio", "asyncio"])
