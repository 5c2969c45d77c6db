"""The driver between engine, store, handlers and workers: order, trouble, shutdown, no leftovers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from mcp_tasks_adapters import (
    Limits,
    RequestFacts,
    TaskContext,
    ToolCall,
    elicit,
)

from mcp_tasks_proto.effects import Delete, Load, Save
from mcp_tasks_proto.testing.messages import request
from tests.adapters.driver_harness import (
    ELICITATION,
    TURNS,
    YES,
    AsyncioLoop,
    BrokenStore,
    Exchange,
    HeldStore,
    World,
    leftovers,
    on_both_loops,
    on_trio,
    served,
    texts,
    waiting_handler,
    working,
)

STOPPED = "The server stopped before the work was done."
STDIO = RequestFacts(transport="stdio", headers={})


# -- durable before told (LIFE.4) ----------------------------------------------------------------------------


@on_both_loops
async def test_a_handle_is_told_and_work_starts_when_the_task_is_durable(world: World) -> None:
    started: list[str] = []

    async def run(task: TaskContext) -> str:
        started.append(task.task_id)
        return "done"

    store = HeldStore()
    world.serve(working(run), store)
    store.held = True
    created = await world.ask("tools/call", {"name": "tool"})
    assert created.replies == []
    assert started == []
    store.answer_next(Save)
    await world.settle()
    assert created.result["resultType"] == "task"
    assert started == [created.result["taskId"]]
    store.let_go()
    assert (await world.get(started[0]))["status"] == "completed"


@on_both_loops
async def test_work_that_is_done_leaves_nothing_to_the_garbage_collector(world: World) -> None:
    contexts: list[weakref.ref[TaskContext]] = []

    async def run(task: TaskContext) -> str:
        contexts.append(weakref.ref(task))
        return "done"

    world.serve(working(run))
    gc.disable()
    try:
        await world.create("tool")
        await world.settle()
        assert [context() for context in contexts] == [None]
    finally:
        gc.enable()


@on_both_loops
async def test_an_update_returns_when_it_is_durable(world: World) -> None:
    reached: list[str] = []
    go_on = world.loop.event()

    async def run(task: TaskContext) -> str:
        await go_on.wait()
        await task.update("half")
        reached.append("half")
        return "done"

    store = HeldStore()
    world.serve(working(run), store)
    task_id = await world.create("tool")
    store.held = True
    go_on.set()
    await world.settle()
    assert reached == []
    store.answer_next(Save)
    await world.settle()
    assert reached == ["half"]
    store.let_go()
    assert (await world.get(task_id))["status"] == "completed"


@on_both_loops
async def test_a_question_given_up_on_its_way_is_withdrawn_once_it_is_asked(world: World) -> None:
    """With a slow store the withdrawal must not overtake the question, or it would be asked for ever."""
    give_up, asked = world.loop.event(), world.loop.event()

    async def run(task: TaskContext) -> str:
        await give_up.wait()
        timeout = world.loop.timeout(0.01)
        if isinstance(world.loop, AsyncioLoop):
            async with timeout:
                await task.request_input({"k": elicit(message="?")})
        else:
            with timeout:
                await task.request_input({"k": elicit(message="?")})
        await asked.wait()
        return "went on"

    store = HeldStore()
    world.serve(working(run), store)
    task_id = await world.create("tool", capabilities=ELICITATION)
    store.held = True
    give_up.set()
    await world.loop.sleep(0.05)
    await world.settle()
    store.answer_in_turn()
    store.held = False
    view = await world.get(task_id)
    assert view["status"] == "working"
    assert "inputRequests" not in view
    asked.set()
    assert (await world.get(task_id))["status"] == "completed"


@on_both_loops
async def test_an_answer_may_come_before_the_question_is_reported_durable(world: World) -> None:
    """The store of another node may be faster than the news of our own save."""
    heard: list[Any] = []

    async def run(task: TaskContext) -> str:
        heard.append(await task.request_input({"k": elicit(message="?")}))
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    await world.update(task_id, {"k": YES})
    assert heard[0]["k"].accepted


def test_task_ids_cannot_be_guessed_and_fit_a_header() -> None:
    """LIFE.6."""

    @on_trio
    async def check(world: World) -> None:
        async def run(task: TaskContext) -> str:
            return "done"

        world.serve(working(run))
        ids = {await world.create("tool") for _ in range(50)}
        assert len(ids) == 50
        for task_id in ids:
            assert len(task_id) >= 21  # 122 bits, six to a character
            assert task_id.isascii()
            assert task_id.replace("-", "").replace("_", "").isalnum()

    check()


# -- tasks that were not to be -------------------------------------------------------------------------------


@on_both_loops
async def test_work_of_a_task_that_was_refused_never_starts(world: World) -> None:
    """TTL.2: at a cap creation fails, and no work started."""
    runs = 0

    async def run(task: TaskContext) -> str:
        nonlocal runs
        runs += 1
        return "done"

    driver = world.serve(working(run, limits=Limits(tasks=1)))
    await world.create("tool")
    refused = await world.call("tool")
    assert refused.error["code"] == -32603
    assert refused.error["data"] == {"reason": "tasks"}
    assert runs == 1
    await world.advance(3_600_000)
    assert leftovers(driver) == {}
    await world.create("tool")
    assert runs == 2


@on_both_loops
async def test_a_store_that_raises_is_an_error_to_those_concerned(world: World) -> None:
    async def run(task: TaskContext) -> str:
        return "done"

    store = BrokenStore(Load)
    driver = world.serve(working(run), store)
    task_id = (await world.call("tool")).result["taskId"]
    exchange = await world.ask("tasks/get", {"taskId": task_id})
    assert exchange.error["code"] == -32603
    assert "disk" not in exchange.error["message"]
    store.broken = None
    await world.advance(60_000)  # the work's result was not lost: it was reported again
    assert (await world.get(task_id))["status"] == "completed"
    store.broken = Save
    assert (await world.call("tool")).error["code"] == -32603
    store.broken = None
    await world.advance(3_600_000)
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_store_that_cannot_delete_is_asked_again(world: World) -> None:
    async def run(task: TaskContext) -> str:
        return "done"

    store = BrokenStore(Delete)
    driver = world.serve(working(run), store)
    task_id = await world.create("tool")
    await world.advance(3_600_000)
    assert (await world.ask("tasks/get", {"taskId": task_id})).error["code"] == -32602
    store.broken = None
    await world.advance(120_000)
    assert len(store) == 0
    assert leftovers(driver) == {}


# -- one thing at a time -------------------------------------------------------------------------------------


class Impatient(Exchange):
    """A channel that calls back from within what the driver does."""

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Any = (),
        event_id: str | None = None,
    ) -> None:
        super().reply(message, http_status, headers)
        assert self.driver is not None
        self.driver.closed(self.number)


@on_both_loops
async def test_channels_may_call_back_at_once(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        for step in range(20):
            await call.progress(step)
        return "done"

    driver = world.serve(served(handler))
    channel = Impatient(driver)
    message = request("tools/call", {"name": "tool"}, meta={"progressToken": "p"})
    channel.number = driver.receive(message, channel, facts=STDIO)
    await world.settle()
    assert [sent["params"]["progress"] for sent in channel.sent] == list(range(20))
    assert texts(channel.result) == ["done"]
    assert leftovers(driver) == {}


@on_both_loops
async def test_the_last_word_on_the_next_deadline_counts(world: World) -> None:
    """A store that answers at once makes steps within steps; each has a deadline, the newest one holds."""
    said: list[str] = []

    async def run(task: TaskContext) -> str:
        try:
            await world.loop.event().wait()
        finally:
            said.append("stopped")
        return "done"

    world.serve(working(run, limits=Limits(ttl_ms=1000)))
    await world.create("tool")
    await world.advance(1000)
    assert said == ["stopped"]
    assert len(world.store) == 0  # type: ignore[arg-type]


@on_both_loops
async def test_a_slow_reader_gets_the_latest_progress_only(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        for step in range(1000):
            await call.progress(step)
        await release.wait()
        return "done"

    release = world.loop.event()
    world.serve(served(handler))
    slow = await world.call("tool", meta={"progressToken": 1}, slow=True)
    if isinstance(world.loop, AsyncioLoop):
        for _ in range(1000 // TURNS):
            await world.settle()
    assert [sent["params"]["progress"] for sent in slow.sent] == [0]
    slow.read()
    assert [sent["params"]["progress"] for sent in slow.sent] == [0, 999]
    release.set()
    await world.settle()
    assert texts(slow.result) == ["done"]


# -- the end -------------------------------------------------------------------------------------------------


@on_both_loops
async def test_stopping_answers_calls_and_cancels_work(world: World) -> None:
    said: list[str] = []

    async def run(task: TaskContext) -> str:
        try:
            await world.loop.event().wait()
        finally:
            said.append("told" if task.cancelled else "not told")
        return "done"

    server = working(run)
    server.tool("slow")(waiting_handler(world, said))
    driver = world.serve(server)
    task_id = await world.create("tool")
    waiting = await world.call("slow")
    late = world.start("tools/call", {"name": "slow"})
    driver.shutdown()
    driver.stop_work()
    await world.settle()
    assert sorted(said) == ["began", "stopped", "told"]
    for call in (waiting, late):
        assert call.error["code"] == -32603
        assert call.error["data"] == {"reason": "shutting_down"}
    record = world.store._records[task_id]  # type: ignore[attr-defined]
    assert record.status.value == "cancelled"
    assert record.status_message == STOPPED
    assert world.loop.jobs == 0


@on_both_loops
async def test_nothing_is_started_any_more_once_work_was_stopped(world: World) -> None:
    async def run(task: TaskContext) -> str:
        pytest.fail("the work was started")

    store = HeldStore()
    driver = world.serve(working(run), store)
    store.held = True
    created = await world.ask("tools/call", {"name": "tool"})
    driver.stop_work()
    store.let_go()
    await world.settle()
    assert world.loop.jobs == 0
    view = await world.get(created.result["taskId"])
    assert (view["status"], view["statusMessage"]) == ("cancelled", STOPPED)
    assert (await world.call("tool")).error["code"] == -32603


@on_both_loops
async def test_stopping_forgets_those_at_the_door(world: World) -> None:
    async def forever(facts: RequestFacts) -> str:
        await world.loop.event().wait()
        return "ann"

    driver = world.serve(served(waiting_handler(world, []), principal=forever))
    world.start("tools/list")
    await world.settle()
    world.start("tools/list")
    driver.stop_work()
    await world.settle()
    assert world.loop.jobs == 0


@on_both_loops
async def test_shutdown_ends_listen_streams_gracefully(world: World) -> None:
    """SUB.4."""

    async def run(task: TaskContext) -> str:
        await world.loop.event().wait()
        return "done"

    driver = world.serve(working(run))
    task_id = await world.create("tool")
    listening = await world.ask("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}, id="sub")
    assert [message["method"] for message in listening.sent] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
    ]
    driver.shutdown()
    await world.settle()
    assert listening.result["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"
    assert "error" in (await world.ask("tools/list")).message
    driver.stop_work()
    await world.settle()


@on_both_loops
async def test_listeners_hear_of_every_change_until_the_end(world: World) -> None:
    """SUB.2, with a store that answers at once and channels that are read at once."""

    async def run(task: TaskContext) -> str:
        await release.wait()
        await task.update("half")
        return "done"

    release = world.loop.event()
    driver = world.serve(working(run))
    task_id = await world.create("tool")
    listening = await world.ask("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
    release.set()
    await world.settle()
    views = [sent["params"] for sent in listening.sent if sent["method"] == "notifications/tasks"]
    assert [(view["status"], view.get("statusMessage")) for view in views] == [
        ("working", None),
        ("working", "half"),
        ("completed", "half"),
    ]
    driver.closed(listening.number)
    await world.advance(3_600_000)
    assert leftovers(driver) == {}


# -- no leftovers --------------------------------------------------------------------------------------------


@on_both_loops
async def test_what_is_open_is_seen_to_be_open(world: World) -> None:
    """So that the other tests' "nothing left" means something."""
    driver = world.serve(served(waiting_handler(world, [])))
    hanging = await world.call("tool")
    assert {"Driver._channels", "Calls._calls", "Exchanges.by_key"} <= leftovers(driver).keys()
    driver.closed(hanging.number)
    await world.settle()
    assert leftovers(driver) == {}


@on_both_loops
async def test_a_busy_day_leaves_nothing_behind(world: World) -> None:
    async def run(task: TaskContext) -> str:
        await task.update("started")
        match task.arguments["kind"]:
            case "ask":
                await task.request_input({"q": elicit(message="?")})
            case "fail":
                raise ValueError("failed")
            case "wait":
                await world.loop.event().wait()
        return "done"

    async def handler(call: ToolCall) -> Any:
        match call.arguments["kind"]:
            case "plain":
                return "at once"
            case "input":
                return call.input_required({"q": elicit(message="?")})
            case "crash":
                raise ValueError("crashed")
            case "hang":
                await world.loop.event().wait()
        return call.task(run, ttl_ms=10_000)

    async def user(facts: RequestFacts) -> str | None:
        return facts.headers["x-user"]

    def by(turn: int) -> RequestFacts:
        return RequestFacts(transport="http", headers={"x-user": f"user {turn}"})

    driver = world.serve(served(handler, principal=user))
    kinds = ["plain", "input", "crash", "hang", "ask", "fail", "wait", "quick"]
    for turn in range(5):
        started: list[Exchange] = []
        for kind in kinds:
            params = {"name": "tool", "arguments": {"kind": kind}}
            started.append(
                world.start("tools/call", params, capabilities=ELICITATION, id=turn, facts=by(turn))
            )
        await world.settle()
        hanging = started[kinds.index("hang")]
        assert [exchange for exchange in started if not exchange.replies] == [hanging]
        driver.closed(hanging.number)
    await world.advance(20_000)
    assert leftovers(driver) == {}
    assert len(world.store) == 0  # type: ignore[arg-type]
    assert world.loop.jobs == 0
