"""Authors' code at its worst: one outcome comes of it, to those concerned, and the server goes on (LIM.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import evolve
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.asyncio_h11.loop import AsyncioLoop
from mcp_tasks_adapters.driver import Driver, RequestFacts
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.toolkit import ProtocolError, Server, TaskContext, TaskOffer, ToolCall, ToolError
from mcp_tasks_adapters.toolkit.values import DEPTH, wire_value

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import (
    CallFailed,
    Loaded,
    StreamReady,
    TtlChanged,
    WorkCompleted,
    WorkFailed,
    WorkStopped,
)
from mcp_tasks_proto.testing import request
from tests.adapters.driver_harness import (
    Exchange,
    World,
    leftovers,
    logged,
    on_both_loops,
    on_trio,
    served,
    texts,
    working,
)


def nested(depth: int) -> Any:
    """Return arrays within each other."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def server_of(make: Callable[[], Any]) -> Server:
    """Return a server whose ``call`` does as ``make``, ``task`` does it as a task, ``ask`` as a handler."""
    server = Server("bad")

    @server.tool()
    async def call(call: ToolCall) -> Any:
        return make()

    @server.tool()
    async def task(call: ToolCall) -> TaskOffer:
        async def run(task: TaskContext) -> Any:
            return make()

        return call.task(run)

    async def handler(request: Any) -> Any:
        return make()

    server.on_request("test/ask", handler)
    return server


def raises(error: BaseException | type[BaseException]) -> Callable[[], Any]:
    def make() -> Any:
        raise error

    return make


class WithoutTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("there is none")


class WithoutTextToolError(ToolError):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class OfItsOwnKind(BaseException):
    pass


class UnfinishedError(ProtocolError):
    def __init__(self) -> None:
        """Forget to call the base class."""


class SpoiltError(ProtocolError):
    def __init__(self, error: Any) -> None:
        super().__init__(1, "fine until here")
        self.error = error


# -- exceptions ----------------------------------------------------------------------------------------------

EXCEPTIONS = {
    "its own kind": (OfItsOwnKind("x"), "OfItsOwnKind: x"),
    "SystemExit": (SystemExit(3), "SystemExit: 3"),
    "GeneratorExit": (GeneratorExit(), "GeneratorExit: "),
    "group of one": (BaseExceptionGroup("g", [OfItsOwnKind("x")]), "OfItsOwnKind: x"),
    "mixed group": (
        BaseExceptionGroup("g", [OfItsOwnKind("x"), ValueError("y")]),
        "BaseExceptionGroup: g (2 sub-exceptions)",
    ),
    "no text": (WithoutTextError(), "WithoutTextError: (no text)"),
    "odd text": (WithoutTextToolError(), "(no text)"),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_whatever_is_raised_is_the_tools_error(name: str) -> None:
    """LIFE.2, on both loops, in a call, in a task and in a handler of another method."""
    error, said = EXCEPTIONS[name]

    @on_both_loops
    async def check(world: World) -> None:
        driver = world.serve(server_of(raises(error)))
        called = (await world.call("call")).result
        assert (called["isError"], texts(called)) == (True, [said])
        view = await world.get(await world.create("task"))
        assert view["status"] == "completed"
        assert (view["result"]["isError"], texts(view["result"])) == (True, [said])
        assert (await world.ask("test/ask")).error["code"] == -32603
        assert world.loop.jobs == 0
        await world.advance(3_600_000)
        assert leftovers(driver) == {}

    check("trio")
    check("asyncio")


PROTOCOL_ERRORS = {
    "unfinished": UnfinishedError(),
    "spoilt": SpoiltError(None),
    "no json": SpoiltError(ErrorObject(1, "x", {1})),
    "no code": SpoiltError(ErrorObject("one", "x")),  # type: ignore[arg-type]
    "a number that JSON takes no more": ProtocolError(10**5000, "x"),
}


@pytest.mark.parametrize("name", PROTOCOL_ERRORS)
def test_a_protocol_error_that_cannot_be_sent_is_an_internal_error(name: str) -> None:
    @on_both_loops
    async def check(world: World) -> None:
        world.serve(server_of(raises(PROTOCOL_ERRORS[name])))
        assert (await world.call("call")).error["code"] == -32603
        view = await world.get(await world.create("task"))
        assert (view["status"], view["error"]["code"]) == ("failed", -32603)
        assert (await world.ask("test/ask")).error["code"] == -32603

    check("trio")
    check("asyncio")


# -- values --------------------------------------------------------------------------------------------------


def test_values_are_as_deep_as_can_be_written_wherever_they_go() -> None:
    assert wire_value(nested(DEPTH)) == nested(DEPTH)
    assert wire_value([[]] * 1000) == [[]] * 1000, "wide is not deep"
    assert wire_value("[" * 1000) == "[" * 1000
    with pytest.raises(ValueError, match=f"more than {DEPTH} levels"):
        wire_value(nested(DEPTH + 1))


@pytest.mark.parametrize("depth", range(DEPTH, 1100, 25))
def test_a_deep_result_is_answered_whatever_its_depth(depth: int) -> None:
    """Where exactly the interpreter gives up depends on who calls: nobody may be left without an answer."""

    @on_both_loops
    async def check(world: World) -> None:
        world.serve(server_of(lambda: {"content": [], "structuredContent": nested(depth)}))
        called = (await world.call("call")).result
        view = await world.get(await world.create("task"))
        for result in (called, view["result"]):
            assert result.get("isError", False) is (depth > DEPTH - 1)

    check("trio")


@pytest.mark.parametrize("times", [2**63, 10**400, 10**4299])
def test_a_time_that_nobody_can_reckon_with_is_the_authors_error(times: int) -> None:
    """TRAPS 15: a huge one is fine; but what was read in an argument may be anything."""

    @on_trio
    async def check(world: World) -> None:
        async def handler(call: ToolCall) -> Any:
            async def run(task: TaskContext) -> str:
                with pytest.raises(ValueError, match="below"):
                    await task.update(ttl_ms=times)
                with pytest.raises(ValueError, match="below"):
                    await task.update(poll_interval_ms=times)
                return "done"

            match call.arguments.get("what"):
                case "ttl":
                    return call.task(run, ttl_ms=times)
                case "poll":
                    return call.task(run, poll_interval_ms=times)
            return call.task(run)

        world.serve(served(handler))
        for what in ("ttl", "poll"):
            assert (await world.call("tool", {"what": what})).result["isError"] is True
        assert texts((await world.get(await world.create("tool")))["result"]) == ["done"]

    check()


@on_both_loops
async def test_work_whose_end_the_engine_cannot_take_has_failed(world: World) -> None:
    """Nobody shall poll for ever for what will never come."""

    async def run(task: TaskContext) -> str:
        await world.loop.event().wait()
        return "done"

    driver = world.serve(working(run))
    for fact in (
        lambda task_id: WorkCompleted(task_id=task_id, token=1, result={"content": {1}}),
        lambda task_id: WorkFailed(task_id=task_id, token=1, error=ErrorObject(1, "x", {1})),
    ):
        task_id = await world.create("tool")
        with logged() as lines:
            driver.feed(fact(task_id))
        await world.settle()
        view = await world.get(task_id)
        assert (view["status"], view["error"]["code"]) == ("failed", -32603)
        assert len(lines) == 1
    driver.stop_work()


class Faulty:
    """An engine with a fault: it takes no fact of one kind."""

    def __init__(self, engine: Any, fault: type) -> None:
        self._engine = engine
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def handle(self, fact: Any, *, now: int) -> Any:
        if type(fact) is self._fault:
            raise RuntimeError("secret")
        return self._engine.handle(fact, now=now)


def break_engine(world: World, fault: type) -> None:
    feeder = world.driver._feeder
    feeder.engine = Faulty(feeder.engine, fault)


@on_both_loops
async def test_nobody_waits_for_an_answer_that_the_engine_does_not_take(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        raise ProtocolError(-32000, "no")

    driver = world.serve(served(handler))
    break_engine(world, CallFailed)
    with logged() as lines:
        assert (await world.call("tool")).error["code"] == -32603
    assert len(lines) == 1
    assert "secret" not in lines[0]
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_stream_that_cannot_go_on_ends(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        return "done"

    driver = world.serve(served(handler))
    break_engine(world, StreamReady)
    stream = await world.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert stream.error["code"] == -32603
    assert leftovers(driver) == {}


@on_both_loops
async def test_work_whose_stop_the_engine_cannot_take_has_failed(world: World) -> None:
    async def run(task: TaskContext) -> str:
        await world.loop.event().wait()
        return "never"

    world.serve(working(run))
    task_id = await world.create("tool")
    break_engine(world, WorkStopped)
    await world.cancel(task_id)
    assert (await world.get(task_id))["status"] == "failed"


@on_both_loops
async def test_a_record_that_nobody_can_read_is_an_error_to_who_asks(world: World) -> None:
    """A store may hold what was not written by an engine."""

    class Rotten(MemoryStore):
        def submit(self, effect: Any, answer: Any) -> None:
            def rot(told: Any) -> None:
                if isinstance(told, Loaded) and told.record is not None:
                    told = Loaded(told.token, evolve(told.record, created_at_ms=2**62, ttl_ms=None))
                answer(told)

            super().submit(effect, rot)

    async def run(task: TaskContext) -> str:
        return "done"

    world.serve(working(run), Rotten())
    task_id = await world.create("tool")
    asked = await world.ask("tasks/get", {"taskId": task_id})
    assert (asked.error["code"], asked.error["data"]) == (-32603, {"reason": "store_unavailable"})


# -- the loops themselves ------------------------------------------------------------------------------------


@asynccontextmanager
async def _driver(loop: str, server: Server) -> AsyncIterator[Driver]:
    if loop == "trio":
        with trio.fail_after(20):
            async with trio_h11.open_driver(server, None) as driver:
                yield driver
    else:
        async with asyncio.timeout(20), asyncio_h11.open_driver(server, None) as driver:
            yield driver


def _run(loop: str, main: Callable[[], Awaitable[None]]) -> None:
    if loop == "trio":
        trio.run(main)
    else:
        asyncio.run(main())  # type: ignore[arg-type]


async def _pause() -> None:
    """Let everybody have a turn, on whatever loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        await trio.testing.wait_all_tasks_blocked()
    else:
        for _ in range(20):
            await asyncio.sleep(0)


async def _ask(driver: Driver, method: str, params: dict[str, Any]) -> Exchange:
    exchange = Exchange(driver)
    driver.receive(request(method, params), exchange, facts=RequestFacts(transport="http", headers={}))
    await _pause()
    return exchange


def test_sec2_an_error_in_a_timer_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    """By asyncio it would be, and with it."""

    def fail() -> None:
        raise ValueError("secret")

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            loop = AsyncioLoop(group, lambda: 1)
            loop.start(fail)
            loop.wake_at(0)
            await _pause()

    asyncio.run(main())
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_a_cancellation_kept_from_somewhere_else_ends_nothing_else() -> None:
    """On trio ``Cancelled`` belongs to a scope; raised outside of it, it would end the server."""

    async def kept() -> BaseException:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                caught = cancelled
                raise
        return caught

    async def main() -> None:
        server = Server("bad")

        @server.tool()
        async def stray(call: ToolCall) -> str:
            raise await kept()

        @server.tool()
        async def fine(call: ToolCall) -> str:
            return "fine"

        async with _driver("trio", server) as driver:
            assert (await _ask(driver, "tools/call", {"name": "stray"})).error["code"] == -32603
            assert texts((await _ask(driver, "tools/call", {"name": "fine"})).result) == ["fine"]

    trio.run(main)


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_a_lifetime_beyond_all_clocks_is_no_trouble(loop: str) -> None:
    """TRAPS 15, where deadlines become the loop's own times."""

    async def main() -> None:
        server = Server("patient")

        @server.tool()
        async def tool(call: ToolCall) -> TaskOffer:
            async def run(task: TaskContext) -> str:
                return "done"

            return call.task(run, ttl_ms=2**63 - 1)

        async with _driver(loop, server) as driver:
            task_id = (await _ask(driver, "tools/call", {"name": "tool"})).result["taskId"]
            driver.feed(TtlChanged(task_id=task_id, token=1, ttl_ms=10**400))
            assert (await _ask(driver, "tasks/get", {"taskId": task_id})).result["ttlMs"] == 10**400

    _run(loop, main)
