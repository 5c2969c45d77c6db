"""Who calls, and are tasks on: ``principal=`` and ``enabled=`` on every request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp_tasks_adapters import (
    Limits,
    RequestFacts,
    Server,
    TaskContext,
    Unauthorized,
)

from tests.adapters.driver_harness import (
    World,
    WorldTest,
    leftovers,
    on_asyncio,
    on_both_loops,
    on_trio,
    served,
    waiting_handler,
    working,
)

# -- admission (SEC.1, NEG.7) --------------------------------------------------------------------------------


def owned(principal: Any = None, enabled: Any = None) -> Server:
    async def run(task: TaskContext) -> str:
        return "done"

    return working(run, principal=principal, enabled=enabled)


def by(name: str) -> RequestFacts:
    return RequestFacts(transport="http", headers={"x-user": name})


def sync_user(facts: RequestFacts) -> str | None:
    return facts.headers.get("x-user")


async def async_user(facts: RequestFacts) -> str | None:
    return facts.headers.get("x-user")


@pytest.mark.parametrize("principal", [sync_user, async_user])
def test_only_the_owner_finds_a_task(principal: Any) -> None:
    @on_trio
    async def check(world: World) -> None:
        driver = world.serve(owned(principal))
        task_id = await world.create("tool", facts=by("ann"))
        assert (await world.get(task_id, facts=by("ann")))["status"] == "completed"
        for stranger in ({"facts": by("bob")}, {}):
            error = (await world.ask("tasks/get", {"taskId": task_id}, **stranger)).error
            assert error["code"] == -32602
        await world.advance(3_600_000)
        assert leftovers(driver) == {}

    check()


@on_both_loops
async def test_nobody_comes_in_without_the_facts_of_a_request(world: World) -> None:
    """Not even where the function would let everybody in."""
    driver = world.serve(owned(lambda facts: None))
    assert driver.asks_who_calls
    stranger = await world.ask("server/discover", facts=None)
    assert stranger.error["code"] == -32603


@pytest.mark.parametrize("later", [False, True])
def test_tasks_can_be_off_for_a_request(later: bool) -> None:
    @on_trio
    async def check(world: World) -> None:
        async def enabled_later(facts: RequestFacts) -> bool:
            return "x-user" in facts.headers

        driver = world.serve(
            owned(enabled=enabled_later if later else lambda facts: "x-user" in facts.headers)
        )
        task_id = await world.create("tool", facts=by("ann"))
        assert (await world.ask("tasks/get", {"taskId": task_id})).error["code"] == -32601
        assert (await world.get(task_id, facts=by("bob")))["status"] == "completed"
        await world.advance(3_600_000)
        assert leftovers(driver) == {}

    check()


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("where", ["principal", "enabled"])
def test_who_is_not_authorized_is_told_how_to_be(where: str, later: bool) -> None:
    @on_trio
    async def check(world: World) -> None:
        def refuse(facts: RequestFacts) -> Any:
            raise Unauthorized("no token for ann", 'Bearer realm="farm"')

        async def refuse_later(facts: RequestFacts) -> Any:
            refuse(facts)

        driver = world.serve(owned(**{where: refuse_later if later else refuse}))
        exchange = await world.ask("tools/list", id="q")
        assert exchange.status == 401
        assert exchange.headers == {"www-authenticate": 'Bearer realm="farm"'}
        assert exchange.message["id"] == "q"
        assert "ann" not in str(exchange.error)
        notified = world.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
        nonsense = world.send([1, 2])
        await world.settle()
        assert (notified.replies, notified.status) == ([None], 401)
        assert nonsense.status == 401
        assert "id" not in nonsense.message
        assert leftovers(driver) == {}

    check()


@on_trio
async def test_a_refusal_without_a_challenge_has_no_header(world: World) -> None:
    def refuse(facts: RequestFacts) -> str:
        raise Unauthorized

    world.serve(owned(refuse))
    exchange = await world.ask("tools/list")
    assert (exchange.status, exchange.headers) == (401, {})


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("answer", [ValueError("no database"), 42, b"ann"])
@pytest.mark.parametrize("where", ["principal", "enabled"])
def test_a_function_that_fails_lets_nobody_in(where: str, answer: Any, later: bool) -> None:
    """SEC.1: never mistaken for "no principal"."""

    @on_trio
    async def check(world: World) -> None:
        def function(facts: RequestFacts) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def function_later(facts: RequestFacts) -> Any:
            return function(facts)

        driver = world.serve(owned(**{where: function_later if later else function}))
        exchange = await world.ask("tools/list")
        assert exchange.error["code"] == -32603
        assert "database" not in exchange.error["message"]
        assert leftovers(driver) == {}

    check()


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("on_loop", [on_trio, on_asyncio])
def test_whatever_a_function_raises_only_its_caller_hears_of_it(
    on_loop: Callable[[WorldTest], Callable[[], None]], kind: type[BaseException], later: bool
) -> None:
    """LIM.3: it may not end the server. A cancellation that nobody asked for is one more way to fail."""

    @on_loop
    async def check(world: World) -> None:
        def function(facts: RequestFacts) -> Any:
            raise kind

        async def function_later(facts: RequestFacts) -> Any:
            return function(facts)

        driver = world.serve(owned(function_later if later else function))
        for connection in (None, "pipe"):
            exchange = await world.ask("tools/list", connection=connection)
            assert exchange.error["code"] == -32603
        assert world.loop.jobs == 0
        assert leftovers(driver) == {}

    check()


@on_trio
async def test_an_async_name_beside_a_failing_switch_is_not_left_hanging(world: World) -> None:
    """A coroutine that nobody awaits would be a warning, and warnings are errors here."""

    def broken(facts: RequestFacts) -> bool:
        raise ValueError("broken")

    world.serve(owned(async_user, broken))
    assert (await world.ask("tools/list")).error["code"] == -32603


@on_both_loops
async def test_messages_of_one_connection_come_in_as_they_arrived(world: World) -> None:
    """A cancellation must not overtake its request while somebody looks up who asked."""
    said: list[str] = []
    known = world.loop.event()

    driver = world.serve(served(waiting_handler(world, said), principal=_first_slow(known)))
    call = world.start("tools/call", {"name": "tool"}, id=7, connection="pipe")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    notified = world.send(cancelled, connection="pipe")
    elsewhere = world.start("tools/list", connection="other pipe")
    await world.settle()
    assert "tools" in elsewhere.result
    assert (call.replies, notified.replies) == ([], [])
    known.set()
    await world.settle()
    assert notified.replies == [None]
    assert call.replies == [None]
    assert said in ([], ["began", "stopped"])
    assert leftovers(driver) == {}


def _first_slow(known: Any) -> Any:
    """A ``principal=`` function that waits on the first request only."""
    asked = 0

    async def wait() -> str:
        await known.wait()
        return "ann"

    def principal(facts: RequestFacts) -> Any:
        nonlocal asked
        asked += 1
        return wait() if asked == 1 else "ann"

    return principal


@on_both_loops
async def test_a_client_may_go_while_its_name_is_looked_up(world: World) -> None:
    async def forever(facts: RequestFacts) -> str:
        await world.loop.event().wait()
        return "ann"

    driver = world.serve(owned(forever))
    for connection in (None, "pipe"):
        at_once = world.start("tools/list", connection=connection)
        driver.closed(at_once.number)
        later = world.start("tools/list", connection=connection)
        await world.settle()
        driver.closed(later.number)
        await world.settle()
        assert at_once.replies == later.replies == []
    assert world.loop.jobs == 0
    assert leftovers(driver) == {}


@on_both_loops
async def test_messages_on_their_way_in_are_bounded(world: World) -> None:
    """LIM.3."""

    async def forever(facts: RequestFacts) -> str:
        await world.loop.event().wait()
        return "ann"

    driver = world.serve(served(waiting_handler(world, []), principal=forever, limits=Limits(exchanges=3)))
    waiting = [world.start("tools/list", id=number, connection="pipe") for number in range(3)]
    refused = world.start("tools/list", id=9, connection="pipe")
    assert refused.error["data"] == {"reason": "exchanges"}
    await world.settle()
    for exchange in waiting:
        driver.closed(exchange.number)
    await world.settle()
    assert leftovers(driver) == {}
