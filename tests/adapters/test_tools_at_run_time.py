"""Tools that come and go while the server runs."""

from __future__ import annotations

import pytest
from mcp_tasks_adapters import Server, ToolCall

from tests.adapters.driver_harness import World, on_both_loops


async def hello(call: ToolCall) -> str:
    return "hello"


async def listed(world: World) -> list[str]:
    return [tool["name"] for tool in (await world.ask("tools/list")).result["tools"]]


@on_both_loops
async def test_a_new_tool_is_listed_and_can_be_called(world: World) -> None:
    server = Server("test")
    world.serve(server)
    assert await listed(world) == []
    server.tool("hello")(hello)
    assert await listed(world) == ["hello"]
    called = await world.call("hello")
    assert called.result["content"] == [{"type": "text", "text": "hello"}]


@on_both_loops
async def test_a_withdrawn_tool_is_unknown(world: World) -> None:
    server = Server("test")
    server.tool("hello")(hello)
    world.serve(server)
    server.remove_tool("hello")
    assert await listed(world) == []
    assert (await world.call("hello")).error["code"] == -32602


@on_both_loops
async def test_listeners_are_told(world: World) -> None:
    """A stream that asked for it hears of a change of the list (SUB.1)."""
    server = Server("test")
    world.serve(server)
    stream = world.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    await world.settle()
    server.tool("hello")(hello)
    await world.settle()
    assert [message["method"] for message in stream.sent] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]


@on_both_loops
async def test_a_driver_that_has_stopped_watches_no_more(world: World) -> None:
    server = Server("test")
    world.serve(server)
    stream = world.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    await world.settle()
    world.driver.stop_work()
    world.driver.stop_work()
    server.tool("hello")(hello)
    await world.settle()
    assert len(stream.sent) == 1


def test_removing_what_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no tool"):
        Server("test").remove_tool("hello")
