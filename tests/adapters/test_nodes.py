"""Several drivers over one store, in virtual time: LIFE.2, LIFE.4, UPD.5, CAN.6, SUB.2, INP.1."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from attrs import define, field
from mcp_tasks_adapters.toolkit import (
    Limits,
    ProtocolError,
    ReportRejected,
    Server,
    TaskContext,
    ToolCall,
    elicit,
    text,
)

from tests.adapters.driver_harness import (
    ELICITATION,
    YES,
    World,
    leftovers,
    on_both_loops,
    on_trio,
    texts,
)
from tests.adapters.shared_store import Shared

SURE = {"sure": elicit(message="Sure?")}


@define(eq=False)
class Farm:
    """Several worlds, each a node over the same records, and what their tools said."""

    first: World
    shared: Shared = field(factory=Shared)
    said: list[str] = field(factory=list)
    limits: Limits | None = None

    def node(self, name: str, server: Server | None = None) -> World:
        world = World(self.first.loop.another())
        world.serve(self.server(name) if server is None else server, self.shared.node(name))
        return world

    def server(self, name: str) -> Server:
        """Return a server whose work says where it runs and what it finds."""
        server = Server("farm", limits=self.limits)
        server.tool("lasting", resumable=True)(self.handler(name))
        server.tool("fleeting")(self.handler(name))
        return server

    def handler(self, name: str) -> Any:
        async def handler(call: ToolCall) -> Any:
            self.said.append(f"{name} called{' again' if call.resumed else ''} with {dict(call.arguments)}")

            async def run(task: TaskContext) -> Any:
                self.said.append(f"{name} begins at {task.checkpointed}")
                frame = task.checkpointed or 0
                try:
                    if not frame:
                        answers = await task.request_input(SURE)
                        self.said.append(f"{name} was told {'yes' if answers['sure'].accepted else 'no'}")
                        await task.checkpoint(1)
                    await self.first.loop.event().wait()
                finally:
                    self.said.append(f"{name} {'told to stop' if task.cancelled else 'stops'}")

            return call.task(run, status_message="Queued", ttl_ms=600_000)

        return handler

    async def round(self) -> None:
        """Let one watch round trip pass."""
        await self.first.settle()
        self.shared.tell()
        await self.first.settle()


async def parked(world: World, tool: str = "lasting") -> str:
    return await world.create(tool, {"frames": 3}, capabilities=ELICITATION)


# -- news travels (one watch round trip) ----------------------------------------------------------------


@on_both_loops
async def test_upd5_an_answer_given_at_another_node_reaches_the_worker_in_one_round(world: World) -> None:
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    await away.update(task_id, {"sure": YES})
    assert (await away.get(task_id))["status"] == "working"
    assert "home was told yes" not in farm.said, "nothing travels by itself"
    await farm.round()
    assert "home was told yes" in farm.said


@on_both_loops
async def test_can6_a_cancel_given_at_another_node_reaches_the_worker_in_one_round(world: World) -> None:
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    await away.cancel(task_id)
    await farm.round()
    assert farm.said[-1] == "home told to stop"
    assert (await away.get(task_id))["status"] == "cancelled"


@on_both_loops
async def test_sub2_listeners_at_every_node_hear_in_one_round(world: World) -> None:
    farm = Farm(world)
    home, *others = farm.node("home"), farm.node("one"), farm.node("two")
    task_id = await parked(home)
    streams = [
        node.start("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}) for node in others
    ]
    await world.settle()
    assert [len(stream.sent) for stream in streams] == [2, 2], "acknowledged, and a snapshot"
    await others[0].update(task_id, {"sure": YES})
    await farm.round()
    assert [stream.sent[-1]["params"]["status"] for stream in streams] == ["working", "working"]
    await others[1].cancel(task_id)
    await farm.round()
    await farm.round()
    assert [stream.sent[-1]["params"]["status"] for stream in streams] == ["cancelled", "cancelled"]


# -- taking over ----------------------------------------------------------------------------------------


@on_both_loops
async def test_work_is_resumed_and_its_question_keeps_its_key(world: World) -> None:
    """INP.1."""
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    before = await away.get(task_id)
    farm.shared.lose("home")
    await farm.round()
    assert farm.said[2:] == ["away called again with {'frames': 3}", "away begins at None"]
    assert await away.get(task_id) == before
    await away.update(task_id, {"sure": YES})
    await world.settle()
    assert farm.said[-1] == "away was told yes"


@on_both_loops
async def test_an_answer_that_came_while_nobody_ran_it_is_not_asked_for_again(world: World) -> None:
    """UPD.5, INP.1."""
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    farm.shared.lose("home")
    await away.update(task_id, {"sure": YES})
    await farm.round()
    assert farm.said[-1] == "away was told yes"
    assert farm.shared.record(task_id).inputs[0].withdrawn, "its checkpoint stands for the answer"


@on_both_loops
async def test_it_goes_on_from_its_checkpoint(world: World) -> None:
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    await home.update(task_id, {"sure": YES})
    await world.settle()
    farm.shared.lose("home")
    await farm.round()
    assert farm.said[-1] == "away begins at 1"
    await away.cancel(task_id)
    assert farm.said[-1] == "away told to stop"
    assert (await away.get(task_id))["status"] == "cancelled"
    assert leftovers(away.driver) == {}


@on_both_loops
async def test_life2_a_tool_that_is_not_resumable_fails(world: World) -> None:
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home, "fleeting")
    farm.shared.lose("home")
    await farm.round()
    assert (await away.get(task_id))["error"]["data"] == {"reason": "worker_lost"}
    assert len(farm.said) == 2


@on_both_loops
async def test_two_survivors_and_one_runs_it(world: World) -> None:
    farm = Farm(world)
    home, one, two = farm.node("home"), farm.node("one"), farm.node("two")
    task_ids = {await parked(home) for _ in range(5)}
    farm.shared.lose("home")
    await farm.round()
    await farm.round()
    begun = [line for line in farm.said if "begins" in line and not line.startswith("home")]
    assert len(begun) == 5
    assert {*farm.shared.named("one"), *farm.shared.named("two")} == task_ids
    assert one
    assert two


@on_both_loops
async def test_a_node_that_was_taken_for_gone_is_told_to_stop_and_refused(world: World) -> None:
    """A process that was suspended, and wakes: its worker finds out by its next report, or by news."""
    farm = Farm(world)
    said: list[str] = []
    goes_on = world.loop.event()
    server = Server("farm")

    @server.tool(resumable=True)
    async def lasting(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            if task.resumed:
                await world.loop.event().wait()
            await goes_on.wait()
            try:
                await task.checkpoint("mine")
                said.append("saved")
            finally:
                said.append("told to stop" if task.cancelled else "not told")
            return "it was me"

        return call.task(run)

    home, away = farm.node("home", server), farm.node("away", server)
    task_id = await parked(home)
    farm.shared.lose("home", cut_off=False)
    farm.shared.nodes["away"].tell()
    await world.settle()
    after = farm.shared.record(task_id)
    assert after.node == "away"
    farm.shared.nodes["home"].news.clear()  # it has not heard of it
    goes_on.set()
    await world.settle()
    assert said == ["told to stop"]
    assert farm.shared.record(task_id) == after
    assert (await away.get(task_id))["status"] == "working"
    assert leftovers(home.driver) == {}


@on_both_loops
async def test_news_of_a_take_over_stops_the_first_worker(world: World) -> None:
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    farm.shared.lose("home", cut_off=False)
    await farm.round()
    await farm.round()
    assert "home told to stop" in farm.said
    await away.update(task_id, {"sure": YES})
    await farm.round()
    assert [line for line in farm.said if "was told" in line] == ["away was told yes"]
    assert (await home.get(task_id))["status"] == "working"
    assert leftovers(home.driver) == {}


@on_trio
async def test_a_node_that_takes_its_own_work_back_runs_it_once(world: World) -> None:
    """The first run does not heed its cancellation; nothing that it says then counts as the second's."""
    farm = Farm(world)
    first_ends = world.loop.event()
    server = Server("farm")

    @server.tool(resumable=True)
    async def stubborn(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            with trio.CancelScope(shield=not task.resumed):
                await (world.loop.event() if task.resumed else first_ends).wait()
            return "the first"

        return call.task(run)

    home, away = farm.node("home", server), farm.node("away", server)
    task_id = await parked(home, "stubborn")
    farm.shared.lose("home", cut_off=False)
    await farm.round()
    farm.shared.gone = {"away"}
    farm.shared.nodes["away"].cut_off = True
    await farm.round()
    assert farm.shared.record(task_id).resumptions == 2
    assert farm.shared.record(task_id).node == "home"
    first_ends.set()
    await world.settle()
    assert (await home.get(task_id))["status"] == "working"
    await home.cancel(task_id)
    assert (await home.get(task_id))["status"] == "cancelled"
    assert leftovers(home.driver) == {}
    assert away


# -- what a handler does the second time ----------------------------------------------------------------


@pytest.mark.parametrize("way", ["returns", "raises", "refuses", "asks"])
def test_a_handler_need_not_go_on_as_a_task(way: str) -> None:
    ends = {
        "returns": ("completed", "done at once"),
        "raises": ("completed", "ValueError: broken"),
        "refuses": ("failed", "no more"),
        "asks": ("completed", "asked through the task"),
    }

    async def test(world: World) -> None:
        farm = Farm(world)
        server = Server("farm")

        @server.tool(resumable=True)
        async def lasting(call: ToolCall) -> Any:
            async def run(task: TaskContext) -> Any:
                await world.loop.event().wait()

            if not call.resumed:
                return call.task(run)
            await call.log("info", "nobody hears this")
            match way:
                case "returns":
                    return text("done at once")
                case "raises":
                    raise ValueError("broken")
                case "refuses":
                    raise ProtocolError(-32000, "no more")
                case _:
                    if "sure" in call.answers:
                        return text("asked through the task")
                    return call.input_required(SURE)

        home, away = farm.node("home", server), farm.node("away", server)
        task_id = await parked(home)
        farm.shared.lose("home")
        await farm.round()
        await away.update(task_id, {"sure": YES})  # which counts only where it was asked
        view = await away.get(task_id)
        status, said = ends[way]
        assert view["status"] == status
        found = texts(view["result"])[0] if status == "completed" else view["error"]["message"]
        assert said in found
        assert leftovers(away.driver) == {}

    for loop in ("trio", "asyncio"):
        on_both_loops(test)(loop)


@on_both_loops
async def test_inp4_a_handler_that_asked_first_finds_the_answers_again(world: World) -> None:
    farm = Farm(world)
    server = Server("farm")
    said: list[Any] = []

    @server.tool(resumable=True)
    async def lasting(call: ToolCall) -> Any:
        if "sure" not in call.answers:
            return call.input_required(SURE, state={"step": 1})
        said.append((call.answers["sure"].accepted, call.state, call.params["name"]))

        async def run(task: TaskContext) -> Any:
            await world.loop.event().wait()

        return call.task(run)

    home, away = farm.node("home", server), farm.node("away", server)
    asked = (await home.call("lasting", capabilities=ELICITATION)).result
    params = {
        "name": "lasting",
        "arguments": {},
        "requestState": asked["requestState"],
        "inputResponses": {"sure": YES},
    }
    await home.ask("tools/call", params, capabilities=ELICITATION)
    farm.shared.lose("home")
    await farm.round()
    assert said == [(True, {"step": 1}, "lasting")] * 2
    assert away


# -- the end of a server --------------------------------------------------------------------------------


@on_both_loops
async def test_a_server_that_stops_hands_on_what_can_be_resumed(world: World) -> None:
    farm = Farm(world)
    home = farm.node("home")
    lasting, fleeting, waiting = [await parked(home, tool) for tool in ("lasting", "fleeting", "lasting")]
    await home.update(lasting, {"sure": YES})
    home.driver.shutdown()
    home.driver.stop_work()
    await world.settle()
    await home.driver.settled()
    assert {*farm.shared.named("home")} == {lasting, waiting}
    farm.shared.lose("home")
    away = farm.node("away")
    await farm.round()
    assert "away begins at 1" in farm.said
    assert (await away.get(lasting))["status"] == "working"
    assert (await away.get(fleeting))["status"] == "cancelled"
    assert list((await away.get(waiting))["inputRequests"]) == ["sure"], "its question was not given up"


@on_both_loops
async def test_can6_what_was_to_be_cancelled_is_not_handed_on(world: World) -> None:
    farm = Farm(world)
    home = farm.node("home")
    task_id = await parked(home)
    await world.settle()
    home.start("tasks/cancel", {"taskId": task_id})
    home.driver.stop_work()
    await world.settle()
    await home.driver.settled()
    assert farm.shared.named("home") == []


@on_both_loops
async def test_a_task_made_in_the_last_moment_is_handed_on(world: World) -> None:
    """LIFE.4: its client has the handle."""
    farm = Farm(world)
    home = farm.node("home")
    store = farm.shared.nodes["home"]
    store.held = []
    calls = [
        home.start("tools/call", {"name": name, "arguments": {}}, capabilities=ELICITATION)
        for name in ("lasting", "fleeting")
    ]
    await world.settle()
    home.driver.stop_work()
    store.let_go()
    await world.settle()
    await home.driver.settled()
    lasting, fleeting = [call.result["taskId"] for call in calls]
    assert farm.shared.named("home") == [lasting]
    farm.shared.lose("home")
    away = farm.node("away")
    await farm.round()
    assert farm.said[-1] == "away begins at None"
    assert (await away.get(fleeting))["status"] == "cancelled"


@on_both_loops
async def test_what_is_taken_over_in_the_last_moment_is_handed_on(world: World) -> None:
    farm = Farm(world)
    home, away = farm.node("home"), farm.node("away")
    task_id = await parked(home)
    farm.shared.lose("home")
    away.driver.stop_work()
    await farm.round()
    assert farm.shared.named("away") == [task_id]
    farm.shared.lose("away")
    last = farm.node("last")
    await farm.round()
    assert farm.said[-1] == "last begins at None"
    assert list((await last.get(task_id))["inputRequests"]) == ["sure"]


@on_both_loops
async def test_a_tool_that_is_withdrawn_meanwhile_cannot_be_resumed(world: World) -> None:
    farm = Farm(world)
    home, server = farm.node("home"), farm.server("away")
    away = farm.node("away", server)
    task_id = await parked(home)
    farm.shared.lose("home")
    store = farm.shared.nodes["away"]
    store.held = []
    store.tell()
    await world.settle()
    load, answer = store.held.pop()
    store.shared.memory.submit(load, answer)
    server.remove_tool("lasting")  # the engine has decided to resume it, and waits for the save
    store.let_go()
    await world.settle()
    view = await away.get(task_id)
    assert view["status"] == "failed"
    assert "no such tool" in view["error"]["message"]


# -- mistakes -------------------------------------------------------------------------------------------


@on_both_loops
async def test_a_checkpoint_that_cannot_be_saved_says_why(world: World) -> None:
    farm = Farm(world, limits=Limits(checkpoint_bytes=5))
    said: list[str] = []

    async def save(task: TaskContext, value: Any) -> None:
        try:
            await task.checkpoint(value)
            said.append("saved")
        except (ValueError, ReportRejected) as error:
            said.append(str(error))

    server = Server("farm", limits=farm.limits)

    @server.tool(resumable=True)
    async def lasting(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            await save(task, "12345")
            await save(task, float("nan"))
            await save(task, "123")
            assert not task.resumed

        return call.task(run)

    @server.tool()
    async def fleeting(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            await save(task, 1)

        return call.task(run)

    home = farm.node("home", server)
    await parked(home)
    await parked(home, "fleeting")
    await world.settle()
    assert "checkpoint_bytes" in said[0]
    assert "JSON" in said[1]
    assert said[2] == "saved"
    assert "resumable" in said[3]
