"""Servers over one SQLite file: any node answers for any task, wherever its work runs. LIFE.4, UPD.5."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.asyncio_h11.loop import AsyncioThread
from mcp_tasks_adapters.driver import Driver, Event, RequestFacts, Store
from mcp_tasks_adapters.storing import LoopThread, StoreError
from mcp_tasks_adapters.toolkit import Limits, Server, TaskContext, ToolCall, elicit, text
from mcp_tasks_adapters.trio_h11.loop import TrioThread

from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing.messages import request
from tests.adapters.store_harness import PATIENCE_S, opened, record, sqlite_store

FACTS = RequestFacts(transport="http", headers={})
HARDLY_EVER_MS = 600_000
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@both_loops
def test_upd5_an_answer_given_at_another_node_reaches_the_worker(loop: Loop, path: Path) -> None:
    said: list[str] = []

    async def main() -> None:
        async with (
            loop.node(farm(loop, said), sqlite_store(path)) as home,
            loop.node(farm(loop, []), sqlite_store(path)) as away,
        ):
            task_id = await loop.create(home, "publish")
            await loop.until(away, task_id, "input_required")
            await loop.ask(away, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            view = await loop.until(away, task_id, "completed")
            assert view["result"]["content"][0]["text"] == "Published."
            assert await loop.until(home, task_id, "completed") == view
        assert said == ["answered"]

    loop.run(main)


@both_loops
def test_can6_a_cancel_at_another_node_reaches_the_worker(loop: Loop, path: Path) -> None:
    said: list[str] = []

    async def main() -> None:
        async with (
            loop.node(farm(loop, said), sqlite_store(path)) as home,
            loop.node(farm(loop, []), sqlite_store(path)) as away,
        ):
            task_id = await loop.create(home, "wait")
            await loop.when(lambda: bool(said))
            await loop.ask(away, "tasks/cancel", taskId=task_id)
            await loop.until(away, task_id, "cancelled")
        assert said == ["began", "told to stop"]

    loop.run(main)


@both_loops
def test_can6_a_worker_that_asks_before_it_hears_of_the_cancel_stops_all_the_same(
    loop: Loop, path: Path
) -> None:
    """It must not take the rejected question for an error of its own: the task would end as completed."""

    async def main() -> None:
        server, asks = Server("farm"), loop.event()

        @server.tool()
        async def hesitate(call: ToolCall) -> Any:
            async def run(task: TaskContext) -> Any:
                await asks.wait()
                await task.request_input({"sure": elicit(message="Sure?")})

            return call.task(run)

        async with (
            loop.node(server, sqlite_store(path, poll_ms=HARDLY_EVER_MS)) as home,
            loop.node(farm(loop, []), sqlite_store(path)) as away,
        ):
            task_id = await loop.create(home, "hesitate")
            await loop.ask(away, "tasks/cancel", taskId=task_id)
            asks.set()
            await loop.until(away, task_id, "cancelled")

    loop.run(main)


@both_loops
def test_sub2_a_listener_at_another_node_hears_of_every_step(loop: Loop, path: Path) -> None:
    async def main() -> None:
        async with (
            loop.node(farm(loop, []), sqlite_store(path)) as home,
            loop.node(farm(loop, []), sqlite_store(path)) as away,
        ):
            task_id = await loop.create(home, "publish")
            await loop.until(home, task_id, "input_required")
            listener = loop.start(away, "subscriptions/listen", notifications={"taskIds": [task_id]})
            await loop.when(lambda: len(listener.sent) == 2)
            await loop.ask(home, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            await loop.when(lambda: listener.sent[-1]["params"].get("status") == "completed")
            assert listener.sent[1]["params"]["status"] == "input_required", "the snapshot"

    loop.run(main)


@both_loops
def test_ttl1_a_task_that_another_node_sweeps_stops_its_worker(loop: Loop, path: Path) -> None:
    said: list[str] = []

    async def main() -> None:
        async with loop.node(farm(loop, said), sqlite_store(path)) as home:
            task_id = await loop.create(home, "wait", ttl_ms=3_600_000)
            await loop.when(lambda: bool(said))
            async with loop.node(farm(loop, []), sqlite_store(path)) as away:
                expire(path, task_id)
                assert "error" in await loop.ask(away, "tasks/get", taskId=task_id)
            await loop.when(lambda: said == ["began", "told to stop"])

    loop.run(main)


def expire(path: Path, task_id: str) -> None:
    """Give a task a lifetime that has passed."""
    with opened(sqlite_store(path)) as bench:
        current = bench.load(task_id)
        assert current is not None
        bench.saved(evolve(current, version=current.version + 1, ttl_ms=1), current.version)


@both_loops
def test_life4_a_task_is_there_after_a_restart_and_has_ended_in_good_order(loop: Loop, path: Path) -> None:
    said: list[str] = []
    task_ids: list[str] = []

    async def main() -> None:
        async with loop.node(farm(loop, said), sqlite_store(path)) as node:
            for tool in ("publish", "publish", "wait"):
                task_ids.append(await loop.create(node, tool))
            await loop.until(node, task_ids[0], "input_required")
            await loop.ask(node, "tasks/update", taskId=task_ids[0], inputResponses={"sure": YES})
            await loop.until(node, task_ids[0], "completed")
        async with loop.node(farm(loop, []), sqlite_store(path)) as node:
            await loop.until(node, task_ids[0], "completed")
            for task_id in task_ids[1:]:
                view = await loop.until(node, task_id, "cancelled")
                assert view["statusMessage"] == "The server stopped before the work was done."

    loop.run(main)


@both_loops
def test_life2_what_a_node_left_behind_fails_and_says_why(loop: Loop, path: Path) -> None:
    with opened(sqlite_store(path)) as gone:
        for task_id in (FIRST.task_id, ASKED_TO_CANCEL.task_id):
            gone.saved(evolve(LEFT[task_id], node=gone.store.node))

    async def main() -> None:
        async with loop.node(farm(loop, []), sqlite_store(path)) as node:
            view = await loop.until(node, FIRST.task_id, "failed")
            assert view["error"]["code"] == -32603
            assert view["error"]["data"] == {"reason": "worker_lost"}
            assert "lost" in view["statusMessage"]
            await loop.until(node, ASKED_TO_CANCEL.task_id, "cancelled")

    loop.run(main)


FIRST: TaskRecord = record("task-one-0123456789abcdef", ttl_ms=None)
ASKED_TO_CANCEL: TaskRecord = record("task-two-0123456789abcdef", ttl_ms=None, cancel_requested_at_ms=5)
LEFT = {one.task_id: one for one in (FIRST, ASKED_TO_CANCEL)}


@both_loops
def test_what_a_thread_says_after_the_end_of_the_loop_is_lost_without_a_sound(loop: Loop) -> None:
    threads: list[LoopThread] = []

    async def main() -> None:
        threads.append(loop.thread())

    loop.run(main)
    threads[0].post(lambda: pytest.fail("there is no loop any more"))


@both_loops
def test_a_store_that_cannot_be_opened_is_said_so(loop: Loop, tmp_path: Path) -> None:
    async def main() -> None:
        async with loop.node(farm(loop, []), sqlite_store(tmp_path)):
            raise AssertionError("it is a folder")

    with pytest.raises(StoreError, match="cannot be used"):
        loop.run(main)


@both_loops
def test_a_store_is_closed_though_the_server_could_not_be_made(loop: Loop, path: Path) -> None:
    server = farm(loop, [])
    server.version = 7  # type: ignore[assignment]
    store = sqlite_store(path)

    async def main() -> None:
        async with loop.node(server, store):
            raise AssertionError("a version is text")

    with pytest.raises(BaseExceptionGroup):
        loop.run(main)
    assert store.node is None


@both_loops
def test_ttl2_expired_tasks_are_swept_slice_by_slice(loop: Loop, path: Path) -> None:
    with opened(sqlite_store(path)) as before:
        for number in range(500):
            before.saved(record(f"task-{number}"))

    async def main() -> None:
        async with loop.node(farm(loop, [], Limits(sweep_batch=20)), sqlite_store(path)) as node:
            task_id = await loop.create(node, "publish")
            await loop.when(lambda: _kept(path) == 1)
            await loop.until(node, task_id, "input_required")

    loop.run(main)


def _kept(path: Path) -> int:
    with opened(sqlite_store(path)) as bench:
        return len(bench.find(2**60, 1000)[0])
