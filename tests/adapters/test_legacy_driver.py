"""What the driver does for 2025-11-25: handlers as the work of a task, sessions, streams (LEG)."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_tasks_adapters import (
    Limits,
    ProtocolError,
    RequestFacts,
    Server,
    TaskContext,
    ToolCall,
    ToolError,
    text,
)
from mcp_tasks_adapters.toolkit import elicit
from mcp_tasks_adapters.toolkit.server import LEGACY_POLICIES

from mcp_tasks_proto.effects import Save
from mcp_tasks_proto.inputs import HttpHead
from tests.adapters.driver_harness import (
    BrokenStore,
    Exchange,
    World,
    leftovers,
    logged,
    on_both_loops,
    on_trio,
    served,
    waiting_handler,
)
from tests.adapters.legacy_harness import EVERYTHING, message

VERSION = {"mcp-protocol-version": "2025-11-25"}
STDIO = RequestFacts(transport="stdio", headers={})
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def legacy(handler: Any, *, principal: Any = None, limits: Limits | None = None, **options: Any) -> Server:
    """Return a server with one tool that serves tasks to clients of 2025-11-25."""
    server = served(handler, principal=principal, limits=limits, **options)
    server.legacy = "serve"
    return server


class Client:
    """A session with a driver."""

    def __init__(self, world: World, user: str | None = None, connection: str | None = None) -> None:
        self.world = world
        self.connection = connection
        headers = {} if user is None else {"x-user": user}
        self.facts = RequestFacts(transport="http", headers=headers) if connection is None else STDIO
        self.session = ""

    def head(self, method: str = "POST") -> HttpHead:
        return HttpHead(headers={**VERSION, "mcp-session-id": self.session}, method=method)

    async def send(self, value: Any) -> Exchange:
        http = None if self.connection is not None else self.head()
        exchange = self.world.send(value, facts=self.facts, http=http, connection=self.connection)
        await self.world.loop.settle()
        return exchange

    async def open(self) -> Exchange:
        params = {"protocolVersion": "2025-11-25", "capabilities": EVERYTHING}
        exchange = await self.send(message("initialize", params, id=0))
        self.session = exchange.headers.get("mcp-session-id", "")
        return exchange

    async def ask(self, method: str, params: Any = None) -> Exchange:
        return await self.send(message(method, params, id=f"{method}-{id(params)}"))

    async def task(self, **arguments: Any) -> str:
        """Call the tool as a task; return the task's id."""
        exchange = await self.ask("tools/call", {"name": "tool", "arguments": arguments, "task": {}})
        task_id: str = exchange.result["task"]["taskId"]
        return task_id

    async def view(self, task_id: str) -> dict[str, Any]:
        return (await self.ask("tasks/get", {"taskId": task_id})).result

    async def outcome(self, task_id: str) -> Exchange:
        return await self.ask("tasks/result", {"taskId": task_id})

    async def empty(self, method: str) -> Exchange:
        """Send a request without a message."""
        exchange = Exchange(self.world.driver)
        exchange.number = self.world.driver.receive_head(exchange, facts=self.facts, http=self.head(method))
        await self.world.loop.settle()
        return exchange


async def opened(world: World, server: Server, user: str | None = None) -> Client:
    world.serve(server)
    client = Client(world, user)
    await client.open()
    return client


# -- handlers as work --------------------------------------------------------------------------------------


@on_both_loops
async def test_leg3_a_handler_runs_as_the_work_of_a_task_that_is_there_already(world: World) -> None:
    seen: list[Any] = []

    async def handler(call: ToolCall) -> str:
        seen.append((call.can_create_task, dict(call.arguments)))
        return "done"

    client = await opened(world, legacy(handler))
    task_id = await client.task(a=1)
    assert (await client.view(task_id))["status"] == "completed"
    assert (await client.outcome(task_id)).result["content"][0]["text"] == "done"
    assert seen == [(True, {"a": 1})]
    assert leftovers(world.driver).keys() <= {"Registry._sessions", "Registry._per_principal"}


@on_both_loops
async def test_leg3_the_task_that_a_handler_offers_is_the_one_it_has(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> str:
            return task.task_id

        return call.task(run, status_message="Started", ttl_ms=77_000, poll_interval_ms=5)

    client = await opened(world, legacy(handler, task="required"))
    task_id = await client.task()
    view = await client.view(task_id)
    assert (view["statusMessage"], view["ttl"], view["pollInterval"]) == ("Started", 77_000, 5)
    assert (await client.outcome(task_id)).result["content"][0]["text"] == task_id


@on_trio
async def test_leg3_an_offer_that_says_nothing_changes_nothing(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> str:
            return "done"

        return call.task(run)

    client = await opened(world, legacy(handler))
    view = await client.view(await client.task())
    assert (view["ttl"], view["pollInterval"]) == (3_600_000, 1000)
    assert "statusMessage" not in view


@on_both_loops
async def test_leg3_what_a_handler_asks_it_asks_through_its_task(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        if call.state is None:
            return call.input_required({"name": elicit(message="Who?", schema=NAMED)}, state="named")
        if call.state == "named":
            name = call.answers["name"].content["name"]
            return call.input_required({"sure": elicit(message="Sure?", schema=NAMED)}, state={"name": name})
        return f"{call.state['name']} and {call.answers['sure'].content['name']}"

    client = await opened(world, legacy(handler))
    task_id = await client.task()
    waiting = await client.outcome(task_id)
    for name in ("Ada", "Bob"):
        question = [one for one in waiting.sent if one["method"] == "elicitation/create"][-1]
        answer = {"action": "accept", "content": {"name": name}}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    assert waiting.result["content"][0]["text"] == "Ada and Bob"


@on_both_loops
async def test_leg3_what_a_handler_raises_ends_its_task(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        match call.arguments["how"]:
            case "tool":
                raise ToolError("No disk")
            case "protocol":
                raise ProtocolError(-32000 - 99, "Broken")
        raise KeyError("what")

    client = await opened(world, legacy(handler))
    with logged():
        ids = [await client.task(how=how) for how in ("tool", "protocol", "else")]
    assert [(await client.view(one))["status"] for one in ids] == ["failed"] * 3
    tool, protocol, other = [await client.outcome(one) for one in ids]
    assert (tool.result["isError"], tool.result["content"][0]["text"]) == (True, "No disk")
    assert protocol.error["message"] == "Broken"
    assert other.result["content"][0]["text"] == "KeyError: 'what'"


@on_trio
async def test_leg3_arguments_that_do_not_fit_end_the_task_before_the_handler(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        raise AssertionError("never called")

    client = await opened(world, legacy(handler, input_schema=NAMED))
    outcome = await client.outcome(await client.task())
    assert outcome.result["isError"] is True
    assert "name" in outcome.result["content"][0]["text"]


@on_both_loops
async def test_leg5_a_handler_is_told_to_stop_with_its_task(world: World) -> None:
    said: list[str] = []
    client = await opened(world, legacy(waiting_handler(world, said)))
    task_id = await client.task()
    assert said == ["began"]
    assert (await client.ask("tasks/cancel", {"taskId": task_id})).result["status"] == "cancelled"
    await world.loop.settle()
    assert said == ["began", "stopped"]
    assert (await client.view(task_id))["status"] == "cancelled"


@on_trio
async def test_lim3_workers_are_bounded(world: World) -> None:
    client = await opened(world, legacy(waiting_handler(world, []), limits=Limits(workers=1)))
    await client.task()
    refused = await client.ask("tools/call", {"name": "tool", "task": {}})
    assert refused.error["data"] == {"reason": "workers"}


@on_trio
async def test_a_stopping_driver_begins_no_work(world: World) -> None:
    said: list[str] = []
    client = await opened(world, legacy(waiting_handler(world, said)))
    world.driver.stop_calls()
    refused = await client.ask("tools/call", {"name": "tool", "task": {}})
    assert refused.error["data"] == {"reason": "shutting_down"}
    assert said == []


@on_trio
async def test_ttl2_a_task_that_cannot_be_kept_leaves_nothing(world: World) -> None:
    said: list[str] = []
    world.serve(legacy(waiting_handler(world, said)), BrokenStore(Save))
    client = Client(world)
    await client.open()
    with logged():
        refused = await client.ask("tools/call", {"name": "tool", "task": {}})
    assert refused.error["data"] == {"reason": "store_unavailable"}
    assert said == []
    assert "Calls._calls" not in leftovers(world.driver)


@on_trio
async def test_progress_of_a_handler_that_is_a_task_is_dropped(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        await call.progress(1)
        return "done"

    client = await opened(world, legacy(handler))
    assert (await client.view(await client.task()))["status"] == "completed"


# -- sessions ------------------------------------------------------------------------------------------------


def user(facts: RequestFacts) -> str | None:
    return facts.headers.get("x-user")


async def async_user(facts: RequestFacts) -> str | None:
    return facts.headers.get("x-user")


async def done(call: ToolCall) -> dict[str, Any]:
    return text("done")


@pytest.mark.parametrize("principal", [user, async_user])
def test_sec1_a_session_belongs_to_who_opened_it(principal: Any) -> None:
    @on_trio
    async def check(world: World) -> None:
        ann = await opened(world, legacy(done, principal=principal), "ann")
        bob = Client(world, "bob")
        bob.session = ann.session
        assert (await bob.ask("ping")).status == 404
        assert (await bob.empty("GET")).status == 404
        assert (await bob.empty("DELETE")).status == 404
        stream = await ann.empty("GET")
        assert (stream.opened, stream.replies) == (True, [])
        assert (await ann.empty("DELETE")).status == 200
        assert stream.replies == [None]

    check()


@on_both_loops
async def test_leg7_a_caller_with_a_name_lists_its_tasks(world: World) -> None:
    ann = await opened(world, legacy(done, principal=user), "ann")
    bob = Client(world, "bob")
    opened_as = await bob.open()
    assert opened_as.result["capabilities"]["tasks"]["list"] == {}
    ids = sorted([await ann.task() for _ in range(3)])
    listed = (await ann.ask("tasks/list")).result["tasks"]
    assert [task["taskId"] for task in listed] == ids
    assert (await bob.ask("tasks/list")).result == {"tasks": []}


@on_trio
async def test_a_function_that_fails_lets_nobody_open_a_stream(world: World) -> None:
    failing = False

    def principal(facts: RequestFacts) -> str | None:
        if failing:
            raise OSError("no users today")
        return None

    client = await opened(world, legacy(done, principal=principal))
    failing = True
    with logged():
        stream = await client.empty("GET")
    assert stream.error["code"] == -32603


@on_trio
async def test_what_the_engine_cannot_take_is_answered(world: World) -> None:
    client = await opened(world, legacy(done))

    class Broken:
        def handle(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("on fire")

    world.driver._feeder.engine = Broken()
    with logged() as lines:
        assert (await client.empty("DELETE")).error["code"] == -32603
    assert lines[0].startswith("the engine did not take SessionEnded: RuntimeError")


@on_trio
async def test_leg2_on_stdio_a_session_ends_with_its_connection(world: World) -> None:
    world.serve(legacy(done))
    client = Client(world, connection="stdio")
    await client.open()
    assert (await client.ask("ping")).result == {}
    world.driver.connection_closed("stdio")
    assert (await client.ask("ping")).error["code"] == -32602
    assert not {"Registry._sessions"} & leftovers(world.driver).keys()


@on_trio
async def test_a_server_that_refuses_has_no_sessions(world: World) -> None:
    server = legacy(done)
    server.legacy = "refuse"
    world.serve(server)
    client = Client(world, connection="stdio")
    assert (await client.open()).error["data"]["supported"] == ["2026-07-28"]
    world.driver.connection_closed("stdio")


def test_leg1_a_server_says_what_legacy_clients_get() -> None:
    assert Server("test").legacy == "ignore"
    for policy in LEGACY_POLICIES:
        assert Server("test", legacy=policy).serves_sessions is (policy != "refuse")
    with pytest.raises(ValueError, match="legacy='always' is none of ignore, serve, refuse"):
        Server("test", legacy="always")
