"""Cancelling tasks, and clients that go away: what work and handlers notice, and what is left."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import trio
from mcp_tasks_adapters import (
    Limits,
    TaskContext,
    ToolCall,
)
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit import Cancellation

from mcp_tasks_proto.effects import Save
from tests.adapters.driver_harness import (
    HeldStore,
    World,
    leftovers,
    logged,
    on_asyncio,
    on_both_loops,
    on_trio,
    served,
    texts,
    waiting_handler,
    working,
)

# -- cancelling tasks (CAN) ----------------------------------------------------------------------------------


@on_both_loops
async def test_a_cancel_reaches_the_work_as_its_loops_own_cancellation(world: World) -> None:
    """CAN.6: the work may clean up, and awaits what it likes meanwhile, if it shields itself."""
    said: list[str] = []
    told: list[Cancellation] = []

    async def run(task: TaskContext) -> str:
        assert not task.cancelled
        try:
            await world.loop.event().wait()
        finally:
            assert task.cancelled
            assert task.cancelled.is_set()
            told.append(task.cancelled)
            said.append("cleaned up")
        return "done"

    driver = world.serve(working(run))
    task_id = await world.create("tool")
    assert (await world.get(task_id))["status"] == "working"
    await world.cancel(task_id)
    assert said == ["cleaned up"]
    await told[0].wait()  # who begins to wait now has been told before
    view = await world.get(task_id)
    assert view["status"] == "cancelled"
    assert "result" not in view
    assert world.loop.jobs == 0
    await world.advance(3_600_000)
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_cancel_before_the_first_step_is_a_cancel_all_the_same(world: World) -> None:
    """asyncio never enters a coroutine that is cancelled before its first step."""
    ran: list[str] = []

    async def run(task: TaskContext) -> str:
        await world.loop.event().wait()
        ran.append("to the end")
        return "done"

    store = HeldStore()
    driver = world.serve(working(run), store)
    store.held = True
    created = await world.ask("tools/call", {"name": "tool"})
    store.answer_next(Save)  # the work is started, and has not had its turn yet
    store.let_go()
    world.start("tasks/cancel", {"taskId": created.result["taskId"]})
    await world.settle()
    assert (await world.get(created.result["taskId"]))["status"] == "cancelled"
    assert ran == []
    await world.advance(3_600_000)
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_job_that_ends_well_in_spite_of_its_cancellation_does_nothing_more(world: World) -> None:
    """On trio what goes on in it would be cancelled as well, and on asyncio it could not be any more."""
    said: list[Any] = []

    async def run() -> str:
        with suppress(world.loop.cancelled):
            await world.loop.event().wait()
        return "done"

    def ended(outcome: str | None) -> None:
        said.extend([outcome, errand.goes_on(run, said.append)])

    errand = Errand(world.loop, run, ended)
    await world.settle()
    errand.cancel()
    await world.settle()
    assert said == ["done", False]


@on_both_loops
async def test_work_that_finishes_first_completes(world: World) -> None:
    """CAN.6."""

    async def run(task: TaskContext) -> str:
        try:
            await world.loop.event().wait()
        except BaseException:
            return "finished anyway"
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool")
    await world.cancel(task_id)
    view = await world.get(task_id)
    assert view["status"] == "completed"
    assert texts(view["result"]) == ["finished anyway"]


@on_trio
async def test_cancellation_can_be_awaited_behind_a_shield(world: World) -> None:
    async def run(task: TaskContext) -> str:
        with trio.CancelScope(shield=True):
            await task.cancelled.wait()
        return "wound down"

    world.serve(working(run))
    task_id = await world.create("tool")
    assert (await world.get(task_id))["status"] == "working"
    await world.cancel(task_id)
    assert texts((await world.get(task_id))["result"]) == ["wound down"]


@on_trio
async def test_work_that_ignores_its_cancellation_is_cancelled_by_deadline(world: World) -> None:
    """CAN.6, ``cancel_grace_ms``; what it returns later is too late."""
    release = trio.Event()

    async def run(task: TaskContext) -> str:
        with trio.CancelScope(shield=True):
            await release.wait()
        return "at last"

    driver = world.serve(working(run, limits=Limits(cancel_grace_ms=500)))
    task_id = await world.create("tool")
    await world.cancel(task_id)
    await world.advance(499)
    assert (await world.get(task_id))["status"] == "working"
    await world.advance(1)
    ended = await world.get(task_id)
    assert ended["status"] == "cancelled"
    release.set()
    await world.settle()
    assert await world.get(task_id) == ended
    await world.advance(3_600_000)
    assert leftovers(driver) == {}


@on_trio
async def test_work_that_outstays_its_cancellation_takes_a_workers_place(world: World) -> None:
    """LIM.3: nobody can pile up stuck workers by cancelling their tasks."""
    release = trio.Event()
    runs = 0

    async def run(task: TaskContext) -> str:
        nonlocal runs
        runs += 1
        with trio.CancelScope(shield=True):
            await release.wait()
        return "at last"

    world.serve(working(run, limits=Limits(cancel_grace_ms=1, workers=1)))
    await world.cancel(await world.create("tool"))
    await world.advance(10)
    refused = await world.call("tool")
    assert refused.error["code"] == -32603
    assert refused.error["data"] == {"reason": "workers"}
    assert runs == 1
    release.set()
    await world.settle()
    await world.create("tool")
    assert runs == 2


def test_work_that_is_cancelled_from_within_is_cancelled() -> None:
    """On asyncio anybody may raise ``CancelledError``; the task ends, and nothing else does."""

    @on_asyncio
    async def check(world: World) -> None:
        async def run(task: TaskContext) -> str:
            raise asyncio.CancelledError

        async def handler(call: ToolCall) -> Any:
            if call.arguments:
                raise asyncio.CancelledError
            return call.task(run)

        world.serve(served(handler))
        assert (await world.get(await world.create("tool")))["status"] == "cancelled"
        assert (await world.call("tool", {"a": 1})).error["code"] == -32603
        assert (await world.get(await world.create("tool")))["status"] == "cancelled"

    check()


@on_trio
async def test_errors_beside_a_cancellation_kill_nothing(world: World) -> None:
    """A nursery raises them as one group; the loop takes its cancellation back, the rest must not escape."""

    async def fail_late() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("cleaning up went wrong")

    async def run(task: TaskContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_late)
            nursery.start_soon(trio.sleep_forever)
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool")
    await world.cancel(task_id)
    assert (await world.get(task_id))["status"] in ("cancelled", "completed")
    assert (await world.get(await world.create("tool")))["status"] == "working"
    world.driver.stop_work()
    await world.settle()


# -- requests that nobody waits for (CAN.7) ------------------------------------------------------------------


@on_both_loops
async def test_a_client_that_goes_away_stops_its_call(world: World) -> None:
    said: list[str] = []
    driver = world.serve(served(waiting_handler(world, said)))
    gone = await world.ask("tools/call", {"name": "tool"})
    driver.closed(gone.number)
    await world.settle()
    assert said == ["began", "stopped"]
    assert gone.replies == []
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_call_that_is_closed_at_once_leaves_nothing(world: World) -> None:
    driver = world.serve(served(waiting_handler(world, [])))
    driver.closed(world.start("tools/call", {"name": "tool"}).number)
    await world.settle()
    assert world.loop.jobs == 0
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_cancelled_notification_stops_the_call_on_its_connection(world: World) -> None:
    said: list[str] = []
    driver = world.serve(served(waiting_handler(world, said)))
    call = world.start("tools/call", {"name": "tool"}, id=7, connection="pipe")
    await world.settle()
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    notified = world.send(cancelled, connection="pipe")
    await world.settle()
    assert said == ["began", "stopped"]
    assert call.replies == [None], "it is over, without a word"
    assert notified.replies == [None]
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_task_already_handed_out_goes_on_without_its_client(world: World) -> None:
    async def run(task: TaskContext) -> str:
        await release.wait()
        return "done"

    release = world.loop.event()
    driver = world.serve(working(run))
    created = await world.call("tool")
    driver.closed(created.number)
    release.set()
    assert (await world.get(created.result["taskId"]))["status"] == "completed"


@on_both_loops
async def test_work_begins_after_the_handles_of_calls_that_came_with_its_own(world: World) -> None:
    """However long it takes to its first await, those who wait for a handle need not."""
    replies: list[int] = []

    async def run(task: TaskContext) -> str:
        replies.append(sum(len(call.replies) for call in calls))
        return "done"

    world.serve(working(run))
    calls = [world.start("tools/call", {"name": "tool"}, id=number) for number in range(3)]
    await world.settle()
    assert replies == [3, 3, 3]


@on_both_loops
async def test_a_client_that_goes_before_its_handle_comes_leaves_no_task(world: World) -> None:
    """The save is under way: the work never starts and the record is taken back."""
    ran: list[str] = []

    async def run(task: TaskContext) -> str:
        ran.append(task.task_id)
        return "done"

    store = HeldStore()
    driver = world.serve(working(run), store)
    store.held = True
    created = await world.ask("tools/call", {"name": "tool"})
    driver.closed(created.number)
    store.answer_next(Save)
    store.let_go()
    await world.settle()
    assert ran == []
    assert created.replies == []
    assert len(store) == 0
    await world.advance(3_600_000)
    assert leftovers(driver) == {}


@on_both_loops
async def test_what_is_closed_or_ready_after_its_reply_is_nobodys_concern(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        return "done"

    driver = world.serve(served(handler))
    answered = await world.call("tool")
    driver.ready(answered.number)
    driver.closed(answered.number)
    driver.closed(answered.number)
    assert texts(answered.result) == ["done"]
    assert leftovers(driver) == {}


@on_both_loops
async def test_progress_after_the_end_of_the_call_goes_nowhere(world: World) -> None:
    calls: list[ToolCall] = []

    async def run(task: TaskContext) -> str:
        await calls[0].progress(1)
        return "done"

    async def handler(call: ToolCall) -> Any:
        calls.append(call)
        return call.task(run)

    world.serve(served(handler))
    created = await world.call("tool", meta={"progressToken": 1})
    assert created.sent == []
    assert (await world.get(created.result["taskId"]))["status"] == "completed"


@on_trio
async def test_progress_while_the_task_is_being_made_goes_nowhere_either(world: World) -> None:
    calls: list[ToolCall] = []

    async def run(task: TaskContext) -> str:
        return "done"

    async def handler(call: ToolCall) -> Any:
        calls.append(call)
        return call.task(run)

    store = HeldStore()
    world.serve(served(handler), store)
    store.held = True
    created = await world.call("tool", meta={"progressToken": 1})
    with logged() as lines:
        await calls[0].progress(1)
    assert lines == []
    store.let_go()
    await world.settle()
    assert created.sent == []
    assert (await world.get(created.result["taskId"]))["status"] == "completed"
