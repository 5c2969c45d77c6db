"""The mistakes of others: rows of TRAPS that a tool's author would notice, each test named after its row."""

from __future__ import annotations

from typing import Any

import trio
from mcp_tasks_adapters import (
    ReportRejected,
    TaskContext,
    ToolCall,
    elicit,
)

from mcp_tasks_proto.effects import Load, Save
from tests.adapters.driver_harness import (
    ELICITATION,
    YES,
    HeldStore,
    World,
    leftovers,
    on_both_loops,
    on_trio,
    served,
    working,
)

NO = {"action": "decline"}


# -- the mistakes of others (TRAPS) --------------------------------------------------------------------------


@on_both_loops
async def test_trap_1_an_empty_update_runs_nothing_again(world: World) -> None:
    runs = 0
    release = world.loop.event()

    async def run(task: TaskContext) -> str:
        nonlocal runs
        runs += 1
        await release.wait()
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool")
    for _ in range(3):
        assert (await world.update(task_id, {})).result["resultType"] == "complete"
    release.set()
    assert (await world.get(task_id))["status"] == "completed"
    assert runs == 1


@on_both_loops
async def test_trap_2_an_answer_arrives_exactly_once(world: World) -> None:
    heard: list[Any] = []

    async def run(task: TaskContext) -> str:
        answers = await task.request_input({"k": elicit(message="?")})
        heard.append(answers["k"].content)
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    answer = {"k": {"action": "accept", "content": {"n": 1}}}
    again = {"k": {"action": "accept", "content": {"n": 2}}}
    assert (await world.update(task_id, answer)).result["resultType"] == "complete"
    assert (await world.update(task_id, again)).result["resultType"] == "complete"
    assert heard == [{"n": 1}]
    assert (await world.get(task_id))["status"] == "completed"


@on_both_loops
async def test_trap_3_answers_of_the_same_moment_are_both_kept(world: World) -> None:
    """Both updates read the record before either saves; one meets a conflict and decides again."""
    heard: list[Any] = []

    async def run(task: TaskContext) -> str:
        heard.append(await task.request_input({"a": elicit(message="A?"), "b": elicit(message="B?")}))
        return "done"

    store = HeldStore()
    world.serve(working(run), store)
    task_id = await world.create("tool", capabilities=ELICITATION)
    store.held = True
    first = world.start("tasks/update", {"taskId": task_id, "inputResponses": {"a": YES}}, id=1)
    second = world.start("tasks/update", {"taskId": task_id, "inputResponses": {"b": NO}}, id=2)
    store.answer_next(Load)
    store.answer_next(Load)
    store.answer_next(Save)
    store.answer_next(Save)
    assert len(first.replies) == 1
    assert second.replies == []
    store.let_go()
    await world.settle()
    assert first.result["resultType"] == second.result["resultType"] == "complete"
    [answers] = heard
    assert answers["a"].accepted
    assert answers["b"].declined
    assert (await world.get(task_id))["status"] == "completed"


@on_both_loops
async def test_trap_4_an_answer_after_a_cancel_revives_nothing(world: World) -> None:
    heard: list[Any] = []

    async def run(task: TaskContext) -> str:
        heard.append(await task.request_input({"k": elicit(message="?")}))
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    assert (await world.get(task_id))["status"] == "input_required"
    assert (await world.cancel(task_id)).result["resultType"] == "complete"
    assert (await world.get(task_id))["status"] == "cancelled"
    assert (await world.update(task_id, {"k": YES})).result["resultType"] == "complete"
    assert (await world.get(task_id))["status"] == "cancelled"
    assert heard == []


@on_both_loops
async def test_trap_5_a_cancel_after_the_end_changes_nothing(world: World) -> None:
    async def run(task: TaskContext) -> str:
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool")
    before = await world.get(task_id)
    assert before["status"] == "completed"
    world.loop.now += 5
    assert (await world.cancel(task_id)).result["resultType"] == "complete"
    assert await world.get(task_id) == before


@on_both_loops
async def test_trap_6_nothing_stays_parked_when_its_time_has_passed(world: World) -> None:
    ended: list[str] = []

    async def run(task: TaskContext) -> str:
        try:
            await task.request_input({"k": elicit(message="?")})
        finally:
            ended.append("told to stop" if task.cancelled else "stopped")
        return "done"

    async def handler(call: ToolCall) -> Any:
        return call.task(run, ttl_ms=60_000)

    driver = world.serve(served(handler))
    task_id = await world.create("tool", capabilities=ELICITATION)
    await world.advance(59_999)
    assert (await world.get(task_id))["status"] == "input_required"
    await world.advance(1)
    assert ended == ["told to stop"]
    for method in ("tasks/get", "tasks/cancel"):
        assert (await world.ask(method, {"taskId": task_id})).error["code"] == -32602
    assert len(world.store) == 0  # type: ignore[arg-type]
    assert leftovers(driver) == {}


@on_trio
async def test_trap_7_a_worker_keeps_its_arguments_longer_than_anybody(world: World) -> None:
    """Never an empty call: the work has what it was called with, and asking fails in so many words."""
    seen: list[Any] = []
    late = trio.Event()

    async def run(task: TaskContext) -> str:
        with trio.CancelScope(shield=True):
            await late.wait()
            seen.append(dict(task.arguments))
            try:
                await task.request_input({"k": elicit(message="?")})
            except ReportRejected as rejected:
                seen.append(str(rejected))
        return "done"

    async def handler(call: ToolCall) -> Any:
        return call.task(run, ttl_ms=1000)

    world.serve(served(handler))
    await world.create("tool", {"scene": "beach"}, capabilities=ELICITATION)
    await world.advance(5000)
    late.set()
    await world.settle()
    assert seen[0] == {"scene": "beach"}
    assert "gone" in seen[1]


@on_both_loops
async def test_trap_8_a_round_of_questions_before_a_task_mints_none(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        if not call.answers:
            return call.input_required({"ok": elicit(message="?")})
        raise ValueError("failed after all")

    driver = world.serve(served(handler))
    params = {"name": "tool", "arguments": {}}
    first = (await world.ask("tools/call", params, capabilities=ELICITATION)).result
    assert first["resultType"] == "input_required"
    assert "taskId" not in first
    retry = {**params, "requestState": first["requestState"], "inputResponses": {"ok": YES}}
    second = (await world.ask("tools/call", retry, capabilities=ELICITATION, id=2)).result
    assert second["isError"] is True
    assert len(world.store) == 0  # type: ignore[arg-type]
    assert leftovers(driver) == {}
