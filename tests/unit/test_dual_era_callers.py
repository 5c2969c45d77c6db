"""Callers of 2025-11-25 before a proxy: the rows "bridge" and "hidden", PRX.2, PRX.11, LEG.2 to LEG.8."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest

from mcp_tasks_proto import (
    ConnectionClosed,
    ExchangeClosed,
    HmacSealer,
    HttpHead,
    LoadFailed,
    LocalProtocolError,
    MessageReceived,
    SaveFailed,
    ShutdownStarted,
    TimePassed,
)
from mcp_tasks_proto.effects import OpenStream, Reply, StopCall
from mcp_tasks_proto.errors import internal_error, limit_reached
from mcp_tasks_proto.legacy.proxy import HandlesListed
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import (
    Access,
    AccessChanged,
    DropTask,
    HandleKey,
    InputKind,
    ProxyLimits,
    SaveBinding,
    SealedHandles,
    SettingsChanged,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
    UpstreamChanged,
    UpstreamFailed,
)
from mcp_tasks_proto.proxy.callers import SHUTTING_DOWN
from mcp_tasks_proto.wire.jsonrpc import error_message, notification_message, request_message, result_message
from tests.unit.dual_era_proxy_world import DualEraHost, legacy_task, legacy_tool, make_dual_era
from tests.unit.proxy_world import (
    ToyAead,
    completed,
    create,
    discover,
    discover_all,
    error,
    make_settings,
    methods,
    reason,
    result,
    task,
)
from tests.unit.world import ACCEPTED, form

ELICITATION: dict[str, Any] = {"elicitation": {}}
OLD_KEY, NEW_KEY = b"o" * 32, b"n" * 32


def bridged(capabilities: dict[str, Any] | None = None, **settings: Any) -> DualEraHost:
    """Return a proxy that bridges, with a session of a legacy caller's open."""
    host = make_dual_era(**{"bridging": True, **settings})
    opening = host.initialize(ELICITATION if capabilities is None else capabilities)
    discover_all(host)
    host.reply_to(opening)
    return host


def made(host: DualEraHost, task_id: str = "up-7", **facts: Any) -> str:
    """Have a task made, and return its handle."""
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}}, **facts)
    host.answer("tools/call", create(task_id))
    handle: str = result(host.reply_to(exchange))["task"]["taskId"]
    return handle


# -- sessions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bridging", "tasks", "expected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_leg2_prx2_a_session_has_tasks_where_they_are_bridged_and_to_be_had(
    bridging: bool, tasks: bool, expected: bool
) -> None:
    host = make_dual_era(bridging=bridging, instructions="Call tools.")
    opening = host.initialize()
    discover(host, tasks=tasks, capabilities={"prompts": {}})
    opened = result(host.reply_to(opening))
    assert opened["protocolVersion"] == "2025-11-25"
    assert opened["serverInfo"] == {"name": "proxy", "version": "1"}
    assert opened["instructions"] == "Call tools."
    served: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {}}
    if expected:
        served["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert opened["capabilities"] == served
    (reply,) = host.of(Reply)
    assert reply.session == "session-1"


def test_neg7_where_the_extension_is_off_a_session_has_no_tasks() -> None:
    host = make_dual_era(bridging=True)
    opening = host.initialize(tasks_enabled=False)
    discover_all(host)
    assert "tasks" not in result(host.reply_to(opening))["capabilities"]


def test_prx7_a_session_sees_what_its_caller_sees() -> None:
    host = make_dual_era(Upstream(name="one"), Upstream(name="two"), bridging=True)
    access = Access(authorizations={"one": ""})
    opening = host.initialize(access=access)
    discover(host, tasks=False)
    assert "tasks" not in result(host.reply_to(opening))["capabilities"]
    listed = result(host.reply_to(host.ask("tools/list", access=access)))
    assert [tool["name"] for tool in listed["tools"]] == ["one__render"]


def test_leg2_nonsense_is_no_session() -> None:
    host = make_dual_era()
    refused = host.arrive(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 7}}, new_session="s"
    )
    assert error(host.reply_to(refused))["code"] == -32602
    assert host.in_flight == {}


def test_leg2_a_session_keeps_to_its_version() -> None:
    host = bridged()
    headers = {"mcp-session-id": "session-1", "mcp-protocol-version": "2025-06-18"}
    exchange = next(host._exchanges)
    host.give(
        MessageReceived(
            exchange=exchange, message=request_message(2, "ping", {}), http=HttpHead(headers=headers)
        )
    )
    assert error(host.reply_to(exchange))["data"] == {"supported": ["2026-07-28", "2025-11-25"]}


def test_leg2_who_leaves_before_the_session_stands_has_none() -> None:
    host = make_dual_era()
    opening = host.initialize()
    host.give(ExchangeClosed(opening))
    discover_all(host)
    assert error(host.reply_to(host.ask("ping")))["code"] == -32600


def test_lim3_there_are_so_many_sessions() -> None:
    host = make_dual_era(limits=Limits(sessions=1))
    host.initialize()
    discover_all(host)
    refused = host.initialize(id=3)
    assert error(host.reply_to(refused))["data"]["reason"] == "sessions"


def test_lim3_there_may_be_no_room_to_ask_what_there_is() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(exchanges=1))
    host.request("server/discover")
    refused = host.initialize(id=9)
    assert host.of(Reply) == [Reply(refused, error_message(9, limit_reached("exchanges")), 200)]


def test_std1_on_a_shared_channel_the_connection_is_the_session() -> None:
    host = make_dual_era(bridging=True)
    opening = host.initialize(connection="pipe", id="a")
    discover_all(host)
    assert "tasks" in result(host.reply_to(opening))["capabilities"]
    own = host.tell("notifications/initialized", connection="pipe")
    assert result(host.reply_to(host.ask("ping", connection="pipe"))) == {}
    host.request("tools/list", connection="pipe", id=9)
    busy = host.ask("tools/call", {"name": "render"}, connection="pipe", id=5)
    again = host.ask("ping", connection="pipe", id=5)
    assert error(host.reply_to(again))["code"] == -32600
    host.tell("notifications/cancelled", {"requestId": 5}, connection="pipe")
    assert StopCall(busy) in host.effects
    modern = host.request("tools/call", {"name": "render"}, connection="pipe", id=6)
    assert error(host.reply_to(host.ask("ping", connection="pipe", id=6)))["code"] == -32600
    host.tell("notifications/cancelled", {"requestId": 6}, connection="pipe")
    assert [one for one in host.of(Reply) if one.exchange == modern] == []
    host.give(ConnectionClosed("pipe"))
    assert own in [one.exchange for one in host.of(Reply)]


@pytest.mark.parametrize("again", ["initialize", "of the session", "modern", "of no era"])
def test_wire3_the_id_of_an_initialize_is_taken_until_it_is_answered(again: str) -> None:
    """It is answered once the upstreams have been asked what they are (PRX.2)."""
    host = make_dual_era(bridging=True)
    if again == "of the session":
        host.initialize(connection="pipe", id="before")
        discover_all(host)
        host.give(UpstreamChanged("renderer"))  # what was found out is old
    opening = host.initialize(connection="pipe", id="a")
    if again == "initialize":
        taken = host.initialize(connection="pipe", id="a")
    elif again == "modern":
        taken = host.request("tools/list", connection="pipe", id="a")
    else:
        taken = host.ask("ping", connection="pipe", id="a")
    assert error(host.reply_to(taken))["code"] == -32600
    other = host.initialize(connection="pipe", id="b")
    discover_all(host)
    assert [result(host.reply_to(one))["protocolVersion"] for one in (opening, other)] == ["2025-11-25"] * 2
    assert result(host.reply_to(host.ask("ping", connection="pipe", id="a"))) == {}


def test_wire3_ids_over_http_are_those_of_a_session_and_initialize_begins_one() -> None:
    host = make_dual_era(bridging=True)
    openings = [host.initialize(id="a") for _ in range(2)]
    discover_all(host)
    assert all("capabilities" in result(host.reply_to(one)) for one in openings)
    host.ask("tools/call", {"name": "render"}, id="a")
    opening = host.initialize(id="a")
    assert "capabilities" in result(host.reply_to(opening))


def test_leg2_a_stream_for_what_is_said_unasked_and_the_end_of_a_session() -> None:
    host = bridged()
    stream = host.head("GET")
    assert OpenStream(stream) in host.effects
    name = host.waiting("subscriptions/listen").request
    acknowledged = {"notifications": {"toolsListChanged": True}}
    host.notify("subscriptions/listen", "notifications/subscriptions/acknowledged", acknowledged)
    assert host.sent_on(stream) == []
    host.notify("subscriptions/listen", "notifications/tools/list_changed", {})
    assert [one["method"] for one in host.sent_on(stream)] == ["notifications/tools/list_changed"]
    ended = host.head("DELETE")
    assert [one.http_status for one in host.of(Reply) if one.exchange == ended] == [200]
    assert name not in host.in_flight
    assert error(host.reply_to(host.ask("ping")))["code"] == -32600


def test_leg2_sec1_the_first_thing_in_a_session_may_be_a_stream_for_its_caller() -> None:
    host = make_dual_era(Upstream(name="one"), Upstream(name="two"))
    access = Access(authorizations={"one": "alices"})
    host.initialize(principal="alice", access=access)
    discover(host)
    host.head("GET", principal="alice")
    listening = [one for one in host.in_flight.values() if one.message["method"] == "subscriptions/listen"]
    assert [(one.upstream, one.authorization) for one in listening] == [("one", "alices")]


def test_leg2_a_stream_that_breaks_is_listened_for_no_more() -> None:
    host = bridged()
    stream = host.head("GET")
    assert host.waiting("subscriptions/listen")
    host.give(ExchangeClosed(stream))
    assert host.in_flight == {}


def test_sub4_a_proxy_that_stops_ends_streams_and_opens_no_sessions() -> None:
    host = bridged()
    stream = host.head("GET")
    host.give(ShutdownStarted())
    assert stream in [one.exchange for one in host.of(Reply)]
    opening, again = host.initialize(id=9), host.head("GET")
    assert host.of(Reply)[-2:] == [shut_down(opening, 9), shut_down(again, None)]


def shut_down(exchange: int, request_id: Any) -> Reply:
    """What is said where the proxy takes no more requests."""
    return Reply(exchange, error_message(request_id, SHUTTING_DOWN), 503)


def test_sub4_a_session_that_is_being_opened_when_the_proxy_stops_is_not_opened() -> None:
    host = make_dual_era()
    opening = host.initialize(id=9)
    host.give(ShutdownStarted())
    discover_all(host)
    assert host.of(Reply) == [shut_down(opening, 9)]


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "tasks/get", "tasks/result", "tasks/cancel"])
def test_sub4_a_proxy_that_stops_takes_no_requests_of_sessions(method: str) -> None:
    host = bridged()
    params = {"taskId": made(host), "name": "render"}
    host.give(ShutdownStarted())
    exchange = host.ask(method, params, id=7)
    assert host.of(Reply)[-1] == shut_down(exchange, 7)


@pytest.mark.parametrize("step", ["tasks/get", "tasks/cancel"])
def test_sub4_a_cancellation_under_way_when_the_proxy_stops_goes_no_further(step: str) -> None:
    host = bridged()
    exchange = host.ask("tasks/cancel", {"taskId": made(host)}, id=7)
    if step == "tasks/cancel":
        host.answer("tasks/get", task(task_id="up-7"))
    host.give(ShutdownStarted())
    host.answer(step, {} if step == "tasks/cancel" else task(task_id="up-7"))
    assert host.of(Reply)[-1] == shut_down(exchange, 7)


# -- hidden --------------------------------------------------------------------------------------------------


def test_prx_hidden_where_nothing_is_bridged_there_are_no_tasks() -> None:
    host = bridged(bridging=False)
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    sent = host.waiting("tools/call")
    assert not sent.task_path
    assert "task" not in sent.message["params"]
    host.answer("tools/call", {"content": []})
    assert result(host.reply_to(exchange)) == {"content": []}
    for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update"):
        refused = error(host.reply_to(host.ask(method, {"taskId": "x"})))
        assert refused == {"code": -32601, "message": f"Method not found: {method}"}
    listed = result(host.reply_to(host.ask("tools/list")))
    assert "execution" not in listed["tools"][0]


def test_leg3_a_tool_that_runs_only_as_a_task_says_so_in_this_eras_way() -> None:
    host = make_dual_era(bridging=True)
    host.initialize()
    host.turn_legacy(legacy_tool("paint", "required"))
    refused = error(host.reply_to(host.ask("tools/call", {"name": "paint"})))
    assert refused["code"] == -32601
    assert "only as one" in refused["message"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"render": "optional"}),
        ({"tasks": False}, {"render": None}),
        (
            {"profiles": {"default": ToolProfile(task_tools=frozenset())}},
            {"render": None},
        ),
    ],
)
def test_leg3_each_tool_says_whether_it_may_be_a_task(
    settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    host = bridged(**settings)
    listed = result(host.reply_to(host.ask("tools/list")))["tools"]
    assert {tool["name"]: tool.get("execution", {}).get("taskSupport") for tool in listed} == expected


def test_prx2_the_tools_of_a_legacy_upstream_say_what_they_say_there() -> None:
    host = make_dual_era(bridging=True)
    host.initialize()
    host.turn_legacy(legacy_tool("paint", "required"), legacy_tool("add"))
    listed = result(host.reply_to(host.ask("tools/list")))["tools"]
    assert [tool.get("execution") for tool in listed] == [{"taskSupport": "required"}, None]


def test_tools_that_cannot_be_listed_are_an_error() -> None:
    host = bridged()
    host.give(SettingsChanged(make_settings(bridging=True)))
    exchange = host.ask("tools/list")
    for _ in range(3):
        host.fail("server/discover")
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


# -- bridge --------------------------------------------------------------------------------------------------


def test_prx_bridge_a_task_is_nested_and_begins_as_working() -> None:
    host = bridged()
    exchange = host.ask("tools/call", {"name": "render", "arguments": {"x": 1}, "task": {"ttl": 1000}})
    sent = host.waiting("tools/call")
    assert sent.task_path
    assert "task" not in sent.message["params"]
    host.answer("tools/call", create("up-7", status="input_required"))
    created = result(host.reply_to(exchange))["task"]
    assert (created["status"], created["ttl"], created["pollInterval"]) == ("working", 60_000, 1000)
    assert "up-7" not in str(created)


def test_leg1_methods_of_the_other_era_are_none_of_this_ones() -> None:
    """Not even where there are tasks: an update would be one, if it came by another name."""
    host = bridged()
    params = {"taskId": made(host), "inputResponses": {}}
    for method in ("tasks/update", "tasks/anything", "server/discover", "subscriptions/listen"):
        refused = error(host.reply_to(host.ask(method, params)))
        assert refused == {"code": -32601, "message": f"Method not found: {method}"}
    assert host.in_flight == {}


def test_prx_bridge_to_a_legacy_upstream_both_ends_speak_it() -> None:
    host = make_dual_era(bridging=True)
    host.initialize()
    host.turn_legacy()
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    host.streams_open()
    assert host.sent_legacy("tools/call")[0]["params"]["task"] == {}
    host.answer("tools/call", {"task": legacy_task()})
    handle = result(host.reply_to(exchange))["task"]["taskId"]
    exchange = host.ask("tasks/get", {"taskId": handle})
    host.answer("tasks/get", legacy_task())
    assert result(host.reply_to(exchange))["status"] == "working"


@pytest.mark.parametrize("wanted", [7, {"ttl": -1}])
def test_leg3_a_task_that_makes_no_sense_is_refused(wanted: Any) -> None:
    host = bridged()
    refused = host.ask("tools/call", {"name": "render", "task": wanted})
    assert error(host.reply_to(refused))["code"] == -32602


def test_leg3_a_result_at_once_is_a_task_that_has_ended() -> None:
    host = bridged()
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    host.answer("tools/call", {"content": [], "isError": True})
    created = result(host.reply_to(exchange))["task"]
    assert created["status"] == "working"
    view = result(host.reply_to(host.ask("tasks/get", {"taskId": created["taskId"]})))
    assert view["status"] == "failed"
    ended = result(host.reply_to(host.ask("tasks/result", {"taskId": created["taskId"]})))
    assert (ended["content"], ended["isError"]) == ([], True)
    assert ended["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": created["taskId"]}


def test_prx16_a_result_at_once_is_bound_to_the_node_that_has_it() -> None:
    """So that it can be told which tasks have gone with a node."""
    host = bridged()
    host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    host.answer("tools/call", {"content": []})
    assert [one.node for one in host.store.bindings.values()] == ["node-1"]


def test_prx5_handles_of_sessions_are_made_as_all_are() -> None:
    codec = SealedHandles([HandleKey("a", ToyAead(b"k"))])
    host = bridged(codec=codec)
    handle = made(host)
    opened = codec.open(handle)
    assert opened is not None
    assert opened.upstream_task_id == "up-7"
    assert host.store.bindings == {}


def test_leg3_a_result_at_once_that_cannot_be_kept_is_an_error() -> None:
    host = bridged()
    host.held = True
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    host.answer("tools/call", {"content": []})
    host.answer_next()
    (save,) = host.asked
    assert isinstance(save, SaveBinding)
    host.give(SaveFailed(save.token))
    assert reason(host.reply_to(exchange)) == "binding_not_stored"


def test_lim3_a_result_at_once_may_find_no_room() -> None:
    host = bridged(proxy_limits=ProxyLimits(tasks=1))
    made(host)
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    host.answer("tools/call", {"content": []})
    assert error(host.reply_to(exchange))["data"]["reason"] == "tasks"
    full = bridged(proxy_limits=ProxyLimits(promoted=1))
    full.held = True
    exchanges = []
    for number in (2, 3):
        exchanges.append(full.ask("tools/call", {"name": "render", "task": {}}, id=number))
        full.answer("tools/call", {"content": []})
    assert error(full.reply_to(exchanges[1]))["data"]["reason"] == "promoted"


@pytest.mark.parametrize("saved", [True, False])
def test_can7_who_leaves_before_a_result_at_once_is_a_task_has_none(saved: bool) -> None:
    host = make_dual_era(bridging=True)
    host.initialize(connection="pipe")
    discover_all(host)
    host.held = True
    exchange = host.ask("tools/call", {"name": "render", "task": {}}, connection="pipe")
    host.answer("tools/call", {"content": []})
    host.answer_next()
    host.give(ExchangeClosed(exchange))
    if saved:
        host.answer_next()
    else:
        host.give(SaveFailed(host.asked.pop().token))
    assert len(host.of(DropTask)) == saved
    assert exchange not in [one.exchange for one in host.of(Reply)]


def test_leg8_a_call_that_asks_before_it_is_a_task_asks_on_its_stream() -> None:
    host = bridged()
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    asks = {"resultType": "input_required", "inputRequests": {"a": form()}, "requestState": "s"}
    host.answer("tools/call", asks)
    (question,) = host.sent_on(exchange)
    assert question["method"] == "elicitation/create"
    host.arrive(result_message(question["id"], ACCEPTED), session="session-1")
    sent = host.waiting("tools/call")
    assert (sent.task_path, sent.message["params"]["inputResponses"]) == (True, {"a": ACCEPTED})
    host.answer("tools/call", create())
    assert result(host.reply_to(exchange))["task"]["status"] == "working"


def test_prx_errors_of_a_call_come_down_in_this_era_s_words() -> None:
    host = bridged()
    exchange = host.ask("tools/call", {"name": "render", "task": {}})
    host.refuse(
        "tools/call", {"code": -32021, "message": "needs sampling", "data": {"requiredCapabilities": {}}}
    )
    assert error(host.reply_to(exchange))["code"] == -32602


def test_other_methods_are_passed_on() -> None:
    host = bridged()
    exchange = host.ask("prompts/list")
    host.answer("prompts/list", {"prompts": [], "ttlMs": 0})
    assert result(host.reply_to(exchange)) == {"prompts": []}
    for method in ("server/discover", "subscriptions/listen", "logging/setLevel"):
        assert error(host.reply_to(host.ask(method)))["code"] == -32601


# -- tasks ---------------------------------------------------------------------------------------------------


def test_leg4_the_result_is_waited_for() -> None:
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    host.answer("tasks/get", task(task_id="up-7"))
    assert [one["method"] for one in host.sent_on(waiting)] == ["notifications/tasks/status"]
    host.advance(1000)
    host.answer("tasks/get", completed(taskId="up-7"))
    ended = result(host.reply_to(waiting))
    assert ended["content"] == [{"type": "text", "text": "done"}]


def test_ttl1_a_task_that_outlives_its_ttl_is_looked_at_now_and_then() -> None:
    """The upstream still has it: who waits for its result waits on, and nobody is asked without a pause."""
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    lasting = task(task_id="up-7", ttlMs=5000, pollIntervalMs=60_000)
    host.answer("tasks/get", lasting)
    host.advance(5000)
    for asked in (2, 3):
        assert methods(host).count("tasks/get") == asked
        host.answer("tasks/get", lasting)
        host.advance(999)
        assert methods(host).count("tasks/get") == asked
        host.advance(1)
    host.answer("tasks/get", lasting)
    host.advance(60_000)
    host.answer("tasks/get", completed(taskId="up-7"))
    assert result(host.reply_to(waiting))["content"] == [{"type": "text", "text": "done"}]


def test_leg7_an_upstream_that_keeps_a_task_for_longer_is_asked_now_and_then() -> None:
    """Its clock may be behind. Asking it again and again until the task is gone would be no help."""
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    kept = task(task_id="up-7", pollIntervalMs=50_000)
    host.answer("tasks/get", kept)
    for milliseconds in (30_000, 20_000):
        host.advance(milliseconds)
        host.answer("tasks/get", kept)
    for milliseconds in (10_000, 1000, 1000):
        host.advance(milliseconds - 1)
        assert not host.in_flight
        host.advance(1)
        host.answer("tasks/get", kept)
    host.advance(1000)
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    assert error(host.reply_to(waiting))["message"] == "Task not found"


UNKNOWN: dict[str, Any] = {"code": -32602, "message": "Task not found"}


def test_leg4_a_task_that_its_upstream_has_lost_is_waited_for_by_nobody() -> None:
    """No news of it comes any more, from the beginning or later: the waiter is told, and not left hanging."""
    host = bridged()
    host.reads = True
    lost = made(host)
    waiting = host.ask("tasks/result", {"taskId": lost}, id=3)
    host.refuse("tasks/get", UNKNOWN)
    host.advance(1000)
    host.refuse("tasks/get", UNKNOWN)
    assert reason(host.reply_to(waiting)) == "upstream_lost_task"

    lost_later = made(host, "up-8")
    waiting = host.ask("tasks/result", {"taskId": lost_later}, id=4)
    host.answer("tasks/get", task(task_id="up-8"))
    host.advance(1000)
    host.refuse("tasks/get", UNKNOWN)
    host.advance(28_999)
    assert not host.in_flight
    host.advance(1)
    host.refuse("tasks/get", UNKNOWN)
    assert reason(host.reply_to(waiting)) == "upstream_lost_task"


def test_leg4_an_upstream_that_is_down_for_a_while_is_waited_for() -> None:
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    down = {"code": -32603, "message": "Internal error: out of order"}
    for _ in range(3):
        host.refuse("tasks/get", down)
        host.advance(1000)
    host.answer("tasks/get", completed(taskId="up-7"))
    assert result(host.reply_to(waiting))["content"] == [{"type": "text", "text": "done"}]


def test_leg4_a_task_that_was_lost_for_a_while_is_told_all_the_same() -> None:
    """Nothing is heard of it any more on the stream that was listened to; what is seen when it is looked at
    counts."""
    host = bridged()
    host.reads = True
    waiting = host.ask("tasks/result", {"taskId": made(host)}, id=3)
    host.refuse("tasks/get", UNKNOWN)
    host.advance(1000)
    host.answer("tasks/get", task(task_id="up-7"))
    host.advance(30_000)
    host.answer("tasks/get", completed(taskId="up-7"))
    assert result(host.reply_to(waiting))["content"] == [{"type": "text", "text": "done"}]


def test_leg4_an_upstream_that_refuses_is_not_looked_at_more_often() -> None:
    host = bridged()
    host.reads = True
    host.ask("tasks/result", {"taskId": made(host)}, id=3)
    refused = {"code": -32601, "message": "No such method"}
    host.refuse("tasks/get", refused)
    host.advance(1000)
    host.refuse("tasks/get", refused)
    host.advance(28_999)
    assert methods(host).count("tasks/get") == 2
    host.advance(1)
    assert methods(host).count("tasks/get") == 3


def test_leg4_how_often_a_task_is_looked_at_other_settings_may_say() -> None:
    host = bridged()
    host.reads = True
    limits = ProxyLimits(listening_poll_ms=5_000)
    handle = made(host)
    host.give(SettingsChanged(make_settings(Upstream(name="renderer"), limits=limits, bridging=True)))
    host.ask("tasks/result", {"taskId": handle}, id=3)
    host.answer("tasks/get", task(task_id="up-7", pollIntervalMs=60_000))
    host.advance(5_000)
    assert methods(host).count("tasks/get") == 2


@pytest.mark.parametrize("tells_at_once", [True, False])
def test_leg4_a_task_that_the_proxys_store_cannot_tell_of_is_waited_for(tells_at_once: bool) -> None:
    """It is not listened to then, as one that is unknown; but it is no such one (GET.2)."""
    host = bridged()
    host.reads = True
    handle = made(host)
    host.held = True
    first, second = (host.ask("tasks/result", {"taskId": handle}, id=number) for number in (3, 4))
    for _ in range(2):
        host.give(LoadFailed(host.asked.pop(0).token))
    host.give(ExchangeClosed(second))
    looks = list(host.asked)
    host.asked.clear()
    host.held = False
    for look in looks:
        host.give(host.store.answer(look) if tells_at_once else LoadFailed(look.token))
    if tells_at_once:
        host.answer("tasks/get", task(task_id="up-7"))
        host.answer("tasks/get", task(task_id="up-7"))
    host.advance(999)
    assert not host.in_flight
    host.advance(1)
    host.answer("tasks/get", completed(taskId="up-7"))
    assert result(host.reply_to(first))["content"] == [{"type": "text", "text": "done"}]
    assert not [one for one in host.of(Reply) if one.exchange == second and one.message]


def test_leg8_what_a_task_asks_is_asked_on_the_stream_of_its_result() -> None:
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    host.answer("tasks/get", task("input_required", "up-7", inputRequests={"a": form()}))
    question = host.sent_on(waiting)[-1]
    assert question["method"] == "elicitation/create"
    host.arrive(result_message(question["id"], ACCEPTED), session="session-1")
    host.answer("tasks/get", task("input_required", "up-7", inputRequests={"a": form()}))
    assert host.waiting("tasks/update").message["params"]["inputResponses"] == {"a": ACCEPTED}


def test_leg8_an_answer_is_taken_once_its_upstream_has_it() -> None:
    """Until then it is this process's alone. Meanwhile its sender may be authenticated anew."""
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    asks = task("input_required", "up-7", inputRequests={"a": form()})
    host.answer("tasks/get", asks)
    taken = host.arrive(result_message(host.sent_on(waiting)[-1]["id"], ACCEPTED), session="session-1")
    host.answer("tasks/get", asks)
    host.give(AccessChanged(exchange=taken, principal=None, access=Access()))
    assert taken not in [one.exchange for one in host.of(Reply)]
    host.answer("tasks/update", {})
    assert host.of(Reply)[-1] == Reply(taken, None, 202)


def test_trap24_a_view_that_comes_late_asks_nothing_again() -> None:
    """The upstream has the answer, and a poll that was on its way says what was before."""
    host = bridged()
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    asks = task("input_required", "up-7", inputRequests={"a": form(), "b": form()})
    host.answer("tasks/get", asks)
    first, second = host.sent_on(waiting)[-2:]
    host.arrive(result_message(first["id"], ACCEPTED), session="session-1")
    host.answer("tasks/get", asks)
    host.answer("tasks/update", {})
    host.advance(1000)
    host.answer("tasks/get", {**asks, "statusMessage": "it was so a moment ago"})
    questions = [one for one in host.sent_on(waiting) if one["method"] == "elicitation/create"]
    assert questions == [first, second]


def test_leg8_a_question_that_is_answered_with_an_error_stops_the_task() -> None:
    """The upstream gets no answer; that the task is of no use is what it can be told."""
    host = bridged({"sampling": {}}, input_kinds=frozenset(InputKind))
    host.reads = True
    handle = made(host)
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    sampling = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    host.answer("tasks/get", task("input_required", "up-7", inputRequests={"a": sampling}))
    question = host.sent_on(waiting)[-1]
    refusal = error_message(question["id"], internal_error("no model"))
    host.arrive(refusal, session="session-1")
    assert host.waiting("tasks/cancel").message["params"]["taskId"] == "up-7"
    host.answer("tasks/cancel", {})
    assert host.sent_on(waiting)[-1] == question


def test_leg8_a_task_that_goes_on_all_the_same_asks_again_who_comes_back() -> None:
    """To be told that it is not wanted binds no upstream (PRX.11); until it has an answer it may wait."""
    host = bridged({"sampling": {}}, input_kinds=frozenset(InputKind))
    host.reads = True
    handle = made(host)
    sampling = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    asks = task("input_required", "up-7", inputRequests={"a": sampling})
    for request_id in (3, 4):
        waiting = host.ask("tasks/result", {"taskId": handle}, id=request_id)
        host.answer("tasks/get", asks)
        question = host.sent_on(waiting)[-1]
        assert question["method"] == "sampling/createMessage"
        host.arrive(error_message(question["id"], internal_error("no model")), session="session-1")
        host.answer("tasks/cancel", {})
        host.tell("notifications/cancelled", {"requestId": request_id})


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("task_id", [7, "nobody's"])
def test_leg7_an_unknown_task(method: str, task_id: Any) -> None:
    host = bridged()
    refused = error(host.reply_to(host.ask(method, {"taskId": task_id})))
    assert refused == {"code": -32602, "message": "Task not found"}


def test_sec1_a_task_is_its_callers() -> None:
    host = bridged()
    handle = made(host)
    host.initialize(principal="bob")
    refused = host.ask("tasks/get", {"taskId": handle}, session="session-2", principal="bob")
    assert error(host.reply_to(refused)) == {"code": -32602, "message": "Task not found"}


# -- cancelling ----------------------------------------------------------------------------------------------


def test_leg5_prx11_a_cancellation_is_answered_once_the_upstream_has_cancelled() -> None:
    host = bridged()
    handle = made(host)
    exchange = host.ask("tasks/cancel", {"taskId": handle})
    host.answer("tasks/get", task(task_id="up-7"))
    host.answer("tasks/cancel", {})
    host.answer("tasks/get", task(task_id="up-7"))
    assert exchange not in [one.exchange for one in host.of(Reply)]
    host.advance(999)
    assert host.in_flight == {}, "it is polled as often as it says (PRX.12)"
    host.advance(1)
    host.answer("tasks/get", task("cancelled", "up-7"))
    assert result(host.reply_to(exchange))["status"] == "cancelled"


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_leg5_a_task_that_has_ended_cannot_be_cancelled(when: str) -> None:
    host = bridged()
    handle = made(host)
    exchange = host.ask("tasks/cancel", {"taskId": handle})
    if when == "meanwhile":
        host.answer("tasks/get", task(task_id="up-7"))
        host.answer("tasks/cancel", {})
    host.answer("tasks/get", completed(taskId="up-7"))
    refused = error(host.reply_to(exchange))
    assert refused["code"] == -32602
    assert "it is completed" in refused["message"]


def test_prx11_an_upstream_that_takes_its_time_is_waited_for_so_long() -> None:
    """Then the task is told as it stands: no status is made up."""
    host = bridged(proxy_limits=ProxyLimits(request_timeout_ms=1500))
    handle = made(host)
    exchange = host.ask("tasks/cancel", {"taskId": handle})
    for method in ("tasks/get", "tasks/cancel", "tasks/get"):
        host.answer(method, task(task_id="up-7") if method == "tasks/get" else {})
    for pause_ms in (1000, 500):
        host.advance(pause_ms)
        host.answer("tasks/get", task(task_id="up-7"))
    assert result(host.reply_to(exchange))["status"] == "working"


@pytest.mark.parametrize("step", [0, 1, 2])
def test_leg5_an_upstream_that_fails_meanwhile_is_told(step: int) -> None:
    host = bridged()
    handle = made(host)
    exchange = host.ask("tasks/cancel", {"taskId": handle})
    for number, method in enumerate(("tasks/get", "tasks/cancel", "tasks/get")):
        if number == step:
            for _ in range(3):
                host.give(UpstreamFailed(host.waiting(method).request))
            break
        host.answer(method, task(task_id="up-7") if method == "tasks/get" else {})
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


def test_can7_who_leaves_does_not_wait_for_a_cancellation() -> None:
    host = bridged()
    handle = made(host)
    exchange = host.ask("tasks/cancel", {"taskId": handle})
    for method in ("tasks/get", "tasks/cancel", "tasks/get"):
        host.answer(method, task(task_id="up-7") if method == "tasks/get" else {})
    host.give(ExchangeClosed(exchange))
    host.advance(5000)
    assert host.in_flight == {}


@pytest.mark.parametrize("how", ["it hangs up", "the session is ended", "the request is cancelled"])
@pytest.mark.parametrize("method", ["tools/list", "tasks/get", "tasks/cancel"])
def test_can7_the_answer_to_who_has_left_disturbs_nobody(method: str, how: str) -> None:
    """What is asked of an upstream for one caller others may await, who get it all the same (LIM.3)."""
    host = bridged()
    handle = made(host)
    host.give(SettingsChanged(host.engine.settings))  # what upstreams are is asked for again
    exchange = host.ask(method, {"taskId": handle})
    other = host.request("tools/list")
    if how == "it hangs up":
        host.give(ExchangeClosed(exchange))
    elif how == "the session is ended":
        host.head("DELETE")
    else:
        host.tell("notifications/cancelled", {"requestId": 2})
    if method != "tools/list":
        host.answer("tasks/get", task(task_id="up-7"))
    discover_all(host)
    assert "tools" in result(host.reply_to(other))
    assert ("tasks/cancel" in methods(host)) is (method == "tasks/cancel")  # the wish is passed on
    if method == "tasks/cancel":
        host.answer("tasks/cancel", {})
    assert host.in_flight == {}


def test_can7_who_leaves_while_a_cancellation_is_looked_for_has_it_looked_for_no_more() -> None:
    host = bridged()
    handle = made(host)
    exchange = host.ask("tasks/cancel", {"taskId": handle})
    host.answer("tasks/get", task(task_id="up-7"))
    host.answer("tasks/cancel", {})
    host.give(ExchangeClosed(exchange))
    host.answer("tasks/get", task(task_id="up-7"))
    host.advance(5000)
    assert host.in_flight == {}


# -- the rest ------------------------------------------------------------------------------------------------


def test_modern_callers_go_straight_through_beside_them() -> None:
    host = bridged()
    exchange = host.request("tools/call", {"name": "render"})
    host.answer("tools/call", {"content": []})
    assert result(host.reply_to(exchange))["resultType"] == "complete"


def test_other_settings_are_in_force_for_open_sessions() -> None:
    host = bridged()
    host.give(SettingsChanged(make_settings(bridging=False)))
    assert error(host.reply_to(host.ask("tasks/get", {"taskId": "x"})))["code"] == -32601


def test_lim3_a_session_that_is_idle_ends() -> None:
    host = bridged(limits=Limits(session_idle_ms=1000))
    host.advance(1000)
    host.give(TimePassed())
    assert error(host.reply_to(host.ask("ping")))["code"] == -32600


def test_what_is_no_message_of_a_session_is_nothing() -> None:
    host = bridged()
    host.arrive(notification_message("notifications/progress", {}), session="session-1")
    assert host.of(Reply)[-1].http_status == 202


# -- rights that change while somebody waits -----------------------------------------------------------------


def withdrawn(exchange: int) -> AccessChanged:
    return AccessChanged(exchange=exchange, principal=None, access=None)


def test_prx7_who_waits_for_a_result_waits_no_longer_than_he_may() -> None:
    host = bridged()
    host.reads = True
    waiting = host.ask("tasks/result", {"taskId": made(host)}, id=3)
    host.answer("tasks/get", task(task_id="up-7"))
    host.give(AccessChanged(exchange=waiting, principal=None, access=Access()))
    assert waiting not in [one.exchange for one in host.of(Reply)]
    host.give(withdrawn(waiting))
    refused = host.reply_to(waiting)
    assert error(refused) == {"code": -32600, "message": "Invalid request: not authorized"}
    assert [one.http_status for one in host.of(Reply) if one.exchange == waiting] == [200]
    assert host.in_flight == {}, "nobody asks for the task any more"


def test_prx7_who_waits_for_a_result_under_a_name_that_is_another_now_is_told_so() -> None:
    host = bridged()
    host.reads = True
    handle = made(host)
    first, second = (host.ask("tasks/result", {"taskId": handle}, id=number) for number in (3, 4))
    asks = task("input_required", "up-7", inputRequests={"a": form()}, pollIntervalMs=60_000)
    for _ in range(2):
        host.answer("tasks/get", asks)
    host.give(AccessChanged(exchange=first, principal="bob", access=Access()))
    assert error(host.reply_to(first))["message"] == "Invalid request: not authorized"
    taken_back = host.sent_on(first)[-1]
    assert taken_back["method"] == "notifications/cancelled"
    assert [one["method"] for one in host.sent_on(second)][-1] == "elicitation/create", "another is asked"


def test_sub4_a_proxy_that_stops_says_so_to_who_waits_for_a_result() -> None:
    host = bridged()
    host.reads = True
    waiting = host.ask("tasks/result", {"taskId": made(host)}, id=3)
    host.answer("tasks/get", task(task_id="up-7"))
    host.give(ShutdownStarted())
    assert error(host.reply_to(waiting)) == SHUTTING_DOWN.to_wire()
    assert [one.http_status for one in host.of(Reply) if one.exchange == waiting] == [503]


def test_prx7_who_waits_for_a_result_with_fewer_rights_than_before_is_told_of_no_task() -> None:
    host = bridged()
    host.reads = True
    waiting = host.ask("tasks/result", {"taskId": made(host)}, id=3)
    host.answer("tasks/get", task(task_id="up-7"))
    host.give(AccessChanged(exchange=waiting, principal=None, access=Access(authorizations={})))
    host.advance(30_000)
    assert methods(host).count("tasks/get") == 1, "nothing is asked with rights that are gone"
    assert error(host.reply_to(waiting))["message"] == "Task not found"


def test_prx7_what_a_waiter_without_rights_was_asked_another_is_asked() -> None:
    """To the other its task is not gone."""
    host = bridged()
    host.reads = True
    handle = made(host)
    first, second = (host.ask("tasks/result", {"taskId": handle}, id=number) for number in (3, 4))
    asks = task("input_required", "up-7", inputRequests={"a": form()}, pollIntervalMs=60_000)
    for _ in range(2):
        host.answer("tasks/get", asks)
    host.give(AccessChanged(exchange=first, principal=None, access=Access(authorizations={})))
    host.advance(30_000)
    assert error(host.reply_to(first))["message"] == "Task not found"
    assert [one["method"] for one in host.sent_on(second)][-1] == "elicitation/create"


@pytest.mark.parametrize("access", [None, Access(authorizations={})])
def test_prx7_nor_does_who_waits_while_the_store_cannot_tell_keep_his_rights(access: Access | None) -> None:
    host = bridged()
    host.reads = True
    handle = made(host)
    host.held = True
    waiting = host.ask("tasks/result", {"taskId": handle}, id=3)
    for _ in range(2):
        host.give(LoadFailed(host.asked.pop(0).token))
    host.held = False
    host.give(AccessChanged(exchange=waiting, principal=None, access=access))
    host.advance(1000)
    assert "tasks/get" not in methods(host)
    refused = error(host.reply_to(waiting))
    assert refused["code"] == (-32600 if access is None else -32602)


def test_rights_that_are_none_are_the_hosts_mistake_and_change_nothing() -> None:
    host = bridged()
    odd, waiting = cast(Any, {"project": "p"}), host.head("GET")
    told = AccessChanged(exchange=waiting, principal=None, access=odd)
    call = partial(host.ask, "tools/call", {"name": "render", "arguments": {}}, id=4)
    for wrong in (
        partial(host.initialize, access=odd, new_session="session-9"),
        partial(call, access=odd),
        partial(host.give, told),
    ):
        with pytest.raises(
            LocalProtocolError, match=r"^(MessageAdmitted|AccessChanged): access is an Access"
        ):
            wrong()
    exchange = call()
    host.answer("tools/call", {"content": []})
    assert result(host.reply_to(exchange)) == {"content": []}, "its id is free"
    assert host.waiting("subscriptions/listen")


def test_prx7_a_stream_hears_of_the_tools_that_its_caller_sees_now() -> None:
    host = bridged()
    stream = host.head("GET")
    assert host.waiting("subscriptions/listen")
    host.give(AccessChanged(exchange=stream, principal=None, access=Access(authorizations={})))
    assert host.in_flight == {}


@pytest.mark.parametrize("principal", [None, "bob"])
def test_prx7_the_stream_of_a_caller_who_is_not_let_in_any_more_ends(principal: str | None) -> None:
    host = bridged()
    stream = host.head("GET")
    access = None if principal is None else Access()
    host.give(AccessChanged(exchange=stream, principal=principal, access=access))
    assert [one.message for one in host.of(Reply) if one.exchange == stream] == [None]
    assert host.in_flight == {}


def test_prx7_a_call_that_waits_for_its_client_asks_nothing_of_the_engine() -> None:
    host = bridged()
    exchange = host.ask("tools/call", {"name": "render", "arguments": {}})
    asks = {"resultType": "input_required", "inputRequests": {"a": form()}, "requestState": "s"}
    host.answer("tools/call", asks)
    host.give(withdrawn(exchange))
    assert exchange not in [one.exchange for one in host.of(Reply)]


def test_prx7_modern_callers_are_the_engines() -> None:
    host = bridged()
    host.reads = True
    stream = host.request("subscriptions/listen", {"notifications": {}})
    host.give(withdrawn(stream))
    assert result(host.reply_to(stream))["resultType"] == "complete"


# -- callers of 2025-11-25 who are not served ----------------------------------------------------------------


def test_neg9_where_legacy_callers_are_not_let_in_they_are_told_what_is_spoken() -> None:
    host = make_dual_era(legacy_callers=False)
    refused = error(host.reply_to(host.initialize()))
    assert (refused["code"], refused["data"]["supported"]) == (-32022, ["2026-07-28"])
    assert host.in_flight == {}
    discover_all_of(host)


def discover_all_of(host: DualEraHost) -> None:
    """Callers of the modern era are served as ever."""
    exchange = host.request("server/discover")
    discover(host, tasks=False)
    assert "capabilities" in result(host.reply_to(exchange))


def test_leg9_sessions_end_when_legacy_callers_are_let_in_no_more() -> None:
    host = bridged()
    waiting = host.ask("tools/call", {"name": "render", "arguments": {}})
    host.give(SettingsChanged(make_settings(legacy_callers=False)))
    assert error(host.reply_to(waiting))["code"] == -32603
    assert error(host.reply_to(host.ask("tools/list", id=3)))["code"] == -32602
    gone = host.head("GET")
    assert [one.http_status for one in host.of(Reply) if one.exchange == gone] == [404]
    host.give(SettingsChanged(make_settings(legacy_callers=True)))
    opening = host.initialize()
    discover_all(host)
    assert result(host.reply_to(opening))["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("connection", [None, "pipe"])
def test_neg9_who_is_about_to_be_let_in_when_nobody_is_any_more_is_told_what_is_spoken(
    connection: str | None,
) -> None:
    """No session is opened, then or later."""
    host = make_dual_era(limits=Limits(sessions=1))
    opening = host.initialize(connection=connection)
    host.give(SettingsChanged(make_settings(legacy_callers=False)))
    assert error(host.reply_to(opening))["data"]["supported"] == ["2026-07-28"]
    discover_all(host)
    host.give(SettingsChanged(make_settings(legacy_callers=True)))
    later = host.initialize()
    discover_all(host)
    assert result(host.reply_to(later))["protocolVersion"] == "2025-11-25"


def test_an_exchange_that_is_about_to_be_answered_is_open() -> None:
    host = make_dual_era()
    opening = host.initialize()
    with pytest.raises(LocalProtocolError, match="open already"):
        host.give(
            MessageReceived(exchange=opening, message=request_message(1, "initialize", {}), new_session="s-9")
        )
    discover_all(host)
    assert "capabilities" in result(host.reply_to(opening))


# -- tasks/list ----------------------------------------------------------------------------------------------


def listed_by(host: DualEraHost, params: dict[str, Any] | None = None, **facts: Any) -> int:
    """Ask for a page of the caller's tasks, of which each is working at its upstream."""
    exchange = host.ask("tasks/list", params, **facts)
    answer_polls(host)
    return exchange


def answer_polls(host: DualEraHost) -> None:
    for sent in [one for one in host.in_flight.values() if one.message["method"] == "tasks/get"]:
        shown = {"resultType": "complete", **task(task_id=sent.message["params"]["taskId"])}
        host.give(UpstreamAnswered(request=sent.request, message=result_message(sent.request, shown)))


def bridged_for(principal: str = "alice", **settings: Any) -> DualEraHost:
    host = make_dual_era(**{"bridging": True, **settings})
    opening = host.initialize(principal=principal)
    discover_all(host)
    assert "list" in result(host.reply_to(opening))["capabilities"]["tasks"]
    return host


def test_leg7_a_caller_lists_its_tasks_as_they_are_now() -> None:
    host = bridged_for()
    handles = sorted(made(host, f"up-{number}", principal="alice", id=number + 10) for number in range(3))
    exchange = host.request("tools/call", {"name": "render"}, principal="bob")
    host.answer("tools/call", create("up-9"))
    assert result(host.reply_to(exchange))["taskId"] not in handles
    page = result(host.reply_to(listed_by(host, principal="alice", id=20)))
    assert [one["taskId"] for one in page["tasks"]] == handles
    assert {one["status"] for one in page["tasks"]} == {"working"}
    assert {"ttl", "pollInterval"} <= page["tasks"][0].keys()
    assert "nextCursor" not in page


def test_leg7_pages_follow_each_other() -> None:
    host = bridged_for(proxy_limits=ProxyLimits(listed_tasks=2))
    handles = sorted(made(host, f"up-{number}", principal="alice", id=number + 10) for number in range(3))
    first = result(host.reply_to(listed_by(host, principal="alice", id=20)))
    cursor = {"cursor": first["nextCursor"]}
    second = result(host.reply_to(listed_by(host, cursor, principal="alice", id=21)))
    assert [one["taskId"] for one in (*first["tasks"], *second["tasks"])] == handles
    assert "nextCursor" not in second
    for wrong in ("x", 7, None, first["nextCursor"] + "x"):
        refused = host.ask("tasks/list", {"cursor": wrong}, principal="alice", id=22)
        assert error(host.reply_to(refused))["code"] == -32602


def test_leg7_pages_go_on_when_cursors_are_sealed_otherwise() -> None:
    host = bridged_for(proxy_limits=ProxyLimits(listed_tasks=1))
    handles = sorted(made(host, f"up-{number}", principal="alice", id=number + 10) for number in range(3))
    params: dict[str, Any] = {}
    listed = []
    for number, keys in enumerate(([OLD_KEY], [NEW_KEY, OLD_KEY], [NEW_KEY])):
        settings = make_settings(bridging=True, sealer=HmacSealer(keys), limits=ProxyLimits(listed_tasks=1))
        host.give(SettingsChanged(settings))
        page = result(host.reply_to(listed_by(host, params, principal="alice", id=number + 20)))
        listed += [one["taskId"] for one in page["tasks"]]
        params = {"cursor": page.get("nextCursor")}
    assert listed == handles


def test_leg7_a_state_of_a_round_is_no_cursor() -> None:
    """It is sealed with the same keys, and may be nested deeper than any cursor."""
    host = bridged_for()
    sealer = host.engine.settings.sealer
    for payload in (b"[" * 200 + b"]" * 200, b'{"after":"x"}'):
        refused = host.ask("tasks/list", {"cursor": sealer.seal(payload)}, principal="alice", id=22)
        assert error(host.reply_to(refused))["code"] == -32602


def test_leg7_a_cursor_is_of_no_use_to_another_caller() -> None:
    host = bridged_for(proxy_limits=ProxyLimits(listed_tasks=1))
    for number in range(2):
        made(host, f"up-{number}", principal="alice", id=number + 10)
    cursor = result(host.reply_to(listed_by(host, principal="alice", id=20)))["nextCursor"]
    host.initialize(principal="bob")
    refused = host.ask("tasks/list", {"cursor": cursor}, principal="bob", session="session-2")
    assert error(host.reply_to(refused))["code"] == -32602


def test_leg2_callers_who_cannot_be_told_apart_list_nothing() -> None:
    host = bridged()
    assert error(host.reply_to(host.ask("tasks/list")))["code"] == -32601


def test_prx7_prx13_what_cannot_be_told_of_now_is_left_out() -> None:
    """Another project's, and one whose upstream is away: nothing that was seen before stands in for it."""
    host = bridged_for()
    there = made(host, "up-1", principal="alice", id=10)
    made(host, "up-2", principal="alice", id=11, access=Access(project="other"))
    away = made(host, "up-3", principal="alice", id=12)
    assert there != away
    exchange = host.ask("tasks/list", principal="alice", id=20)
    asked = [one.message["params"]["taskId"] for one in host.in_flight.values()]
    assert sorted(asked) == ["up-1", "up-3"]
    for _ in range(3):
        (gone,) = [one for one in host.in_flight.values() if one.message["params"]["taskId"] == "up-3"]
        host.give(UpstreamFailed(gone.request))
    answer_polls(host)
    assert [one["taskId"] for one in result(host.reply_to(exchange))["tasks"]] == [there]


def test_leg7_whoever_has_no_tasks_has_an_empty_page() -> None:
    host = bridged_for()
    assert result(host.reply_to(host.ask("tasks/list", principal="alice"))) == {"tasks": []}


def test_can7_whoever_leaves_while_the_tasks_are_asked_for_is_waited_for_no_more() -> None:
    host = bridged_for()
    made(host, "up-1", principal="alice", id=10)
    exchange = host.ask("tasks/list", principal="alice", id=20)
    assert host.waiting("tasks/get")
    host.tell("notifications/cancelled", {"requestId": 20}, principal="alice")
    answer_polls(host)
    with pytest.raises(LookupError):
        host.reply_to(exchange)


def test_lim3_whoever_leaves_while_the_tasks_are_asked_for_makes_room_for_others() -> None:
    host = bridged_for(proxy_limits=ProxyLimits(exchanges=2))
    handles = [made(host, f"up-{number}", principal="alice", id=number + 10) for number in range(2)]
    host.ask("tasks/list", principal="alice", id=20)
    refused = host.ask("tasks/get", {"taskId": handles[0]}, principal="alice", id=21)
    assert error(host.reply_to(refused))["data"]["reason"] == "exchanges"
    host.tell("notifications/cancelled", {"requestId": 20}, principal="alice")
    exchange = host.ask("tasks/get", {"taskId": handles[0]}, principal="alice", id=22)
    answer_polls(host)
    assert result(host.reply_to(exchange))["taskId"] == handles[0]


def test_sec1_each_caller_who_lists_at_the_same_time_is_told_of_its_own() -> None:
    host = bridged_for()
    host.initialize(principal="bob")
    callers: list[dict[str, Any]] = [
        {"principal": name, "session": f"session-{n}"} for n, name in ((1, "alice"), (2, "bob"))
    ]
    handles = [made(host, f"up-{number}", id=10, **facts) for number, facts in enumerate(callers)]
    host.held = True
    exchanges = [host.ask("tasks/list", id=30, **facts) for facts in callers]
    host.held = False
    for listing in reversed(host.asked):
        host.give(host.store.answer(listing))
    answer_polls(host)
    listed = [result(host.reply_to(exchange))["tasks"] for exchange in exchanges]
    assert [[one["taskId"] for one in tasks] for tasks in listed] == [[handle] for handle in handles]


def test_leg7_the_store_may_be_late_or_fail_or_answer_nobody() -> None:
    host = bridged_for()
    host.held = True
    first = host.ask("tasks/list", principal="alice", id=20)
    (listing,) = host.asked
    host.give(LoadFailed(listing.token))
    refused = error(host.reply_to(first))
    assert refused["data"] == {"reason": "store_unavailable", "retryable": True}  # as to any other request
    second = host.ask("tasks/list", principal="alice", id=21)
    host.tell("notifications/cancelled", {"requestId": 21}, principal="alice")
    listing = host.asked[-1]
    with pytest.raises(LocalProtocolError, match="more comes after nothing"):
        host.give(HandlesListed(listing.token, [], more=True))
    with pytest.raises(LocalProtocolError, match=r"^HandlesListed: an entry is a str$"):
        host.give(HandlesListed(listing.token, [cast(Any, 5)], more=True))
    host.give(HandlesListed(listing.token, [], more=False))
    assert [one for one in host.of(Reply) if one.exchange == second and one.message] == []
    with pytest.raises(LocalProtocolError):
        host.give(HandlesListed(listing.token, [], more=False))
