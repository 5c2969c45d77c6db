"""A proxy before upstreams of 2025-11-25: the row "translate", PRX.1 to PRX.14, LEG.2 to LEG.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks_proto import MODERN_VERSION, ExchangeClosed, LocalProtocolError, TimePassed
from mcp_tasks_proto.effects import Reply
from mcp_tasks_proto.legacy.messages import ConnectionLost, ServerAsked, StreamOpened
from mcp_tasks_proto.legacy.proxy import (
    DualEraUpstreams,
    SendLegacyUpstream,
    UpstreamSaid,
    UpstreamsClosing,
)
from mcp_tasks_proto.proxy import (
    Access,
    InputKind,
    ProxyLimits,
    SendUpstream,
    SettingsChanged,
    StopUpstream,
    Upstream,
    UpstreamAnswered,
)
from mcp_tasks_proto.requester import NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.testing import ProxyStore
from mcp_tasks_proto.vocabulary import LEGACY_VERSION
from mcp_tasks_proto.wire.jsonrpc import notification_message, request_message, result_message
from tests.unit.dual_era_proxy_world import TASKS, DualEraHost, held, legacy_task, legacy_tool, make_dual_era
from tests.unit.proxy_world import FORMS, START, create, discover, error, make_settings, reason, result, view
from tests.unit.world import ACCEPTED, form

FORM = form()["params"]
SAMPLE: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
}


def call(host: DualEraHost, tool: str = "render", **facts: Any) -> int:
    """Call a tool of a legacy upstream, and let the call go up."""
    facts.setdefault("capabilities", FORMS)
    exchange = host.request("tools/call", {"name": tool, "arguments": {}, **facts.pop("params", {})}, **facts)
    if any(one.message["method"] == "server/discover" for one in host.in_flight.values()):
        tools = {"render": "optional", "paint": "required", "add": None}
        host.turn_legacy(*(legacy_tool(name, support) for name, support in tools.items()))
    host.streams_open()
    return exchange


def handed_out(host: DualEraHost, task_id: str = "old-7", **facts: Any) -> str:
    exchange = call(host, **facts)
    host.answer("tools/call", {"task": legacy_task(task_id=task_id)})
    handle: str = result(host.reply_to(exchange))["taskId"]
    return handle


def poll(host: DualEraHost, handle: str, task: dict[str, Any], end: dict[str, Any] | None = None) -> Any:
    """Ask how a task stands, have the upstream answer, and return the reply."""
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", task)
    if end is not None:
        host.answer("tasks/result", end)
    return host.reply_to(exchange)


# -- the row "translate" -------------------------------------------------------------------------------------


def test_prx_a_task_goes_up_as_params_task_and_comes_back_as_a_handle() -> None:
    host = make_dual_era()
    exchange = call(host)
    assert host.sent_legacy("tools/call")[0]["params"] == {"name": "render", "arguments": {}, "task": {}}
    host.answer("tools/call", {"task": legacy_task()})
    created = result(host.reply_to(exchange))
    assert (created["resultType"], created["status"], created["ttlMs"]) == ("task", "working", 60_000)
    assert created["taskId"] != "old-7"
    assert (created["pollIntervalMs"], "ttl" in created) == (1000, False)


def test_leg4_what_it_ended_with_is_fetched_and_kept() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    assert view(poll(host, handle, legacy_task()))["status"] == "working"
    ended = view(poll(host, handle, legacy_task("completed"), {"content": [], "isError": False}))
    assert ended["result"]["content"] == []
    assert host.reply_to(host.request("tasks/get", {"taskId": handle}))["result"]["status"] == "completed"
    assert len(host.sent_legacy("tasks/get")) == 2
    assert not any(one.streams for one in host.legacy_sent if one.send.verb == "POST"), "a caller waits"


def test_leg6_a_failure_that_has_a_result_is_completed() -> None:
    host = make_dual_era()
    ended = view(poll(host, handed_out(host), legacy_task("failed"), {"content": [], "isError": True}))
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)


@pytest.mark.parametrize(("text", "told"), [("no wheel", "no wheel"), (None, "it is not known why")])
def test_life2_a_failure_that_says_nothing_more_is_an_error(text: str | None, told: str) -> None:
    host = make_dual_era()
    task = legacy_task("failed") if text is None else legacy_task("failed", statusMessage=text)
    ended = view(poll(host, handed_out(host), task, {}))
    assert ended["error"]["code"] == -32603
    assert told in ended["error"]["message"]


def test_leg3_a_tool_that_takes_no_task_is_called_plainly() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    assert "task" not in host.sent_legacy("tools/call")[0]["params"]
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_trap22_who_declares_no_tasks_calls_plainly() -> None:
    host = make_dual_era()
    exchange = call(host, tasks=False)
    assert "task" not in host.sent_legacy("tools/call")[0]["params"]
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_neg5_a_tool_that_must_be_a_task_is_refused_before_it_goes_up() -> None:
    host = make_dual_era()
    exchange = call(host, "paint", tasks=False)
    refused = error(host.reply_to(exchange))
    assert refused["code"] == -32021
    assert refused["data"]["requiredCapabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert host.sent_legacy("tools/call") == []


def test_prx17_collapsed_it_goes_up_as_a_task_at_once() -> None:
    host = make_dual_era(collapse=True)
    call(host, "paint", tasks=False)
    assert host.sent_legacy("tools/call")[0]["params"]["task"] == {}


def test_prx2_a_legacy_upstream_has_its_discovery_kept() -> None:
    host = make_dual_era()
    host.answer_call(call(host))
    host.answer_call(call(host))
    assert len(host.sent_legacy("tools/list")) == 1
    host.now += 60_000
    call(host)
    assert len(host.sent_legacy("tools/list")) == 2


def test_prx2_what_a_legacy_upstream_lists_is_kept_for_each_authorization() -> None:
    """Whatever it says: that all see the same is a word of the other era."""
    host = make_dual_era()
    for name in ("alice", "bob"):
        host.request("tools/list", access=Access(authorizations={"renderer": name}))
        discovering = host.waiting("server/discover").request
        host.give(UpstreamAnswered(request=discovering, message=None, http_status=400))
        said = {"protocolVersion": LEGACY_VERSION, "capabilities": {"tools": {}}, "cacheScope": "public"}
        host.answer("initialize", said)
        host.accept("notifications/initialized")
        host.answer("tools/list", {"tools": [legacy_tool(name)], "cacheScope": "public"})
    listed = [result(one.message)["tools"] for one in host.of(Reply) if one.message is not None]
    assert [[tool["name"] for tool in tools] for tools in listed] == [["alice"], ["bob"]]


def test_prx2_an_upstream_without_tasks_advertises_none() -> None:
    host = make_dual_era()
    exchange = host.request("server/discover")
    host.turn_legacy(capabilities={"tools": {}})
    assert "extensions" not in result(host.reply_to(exchange))["capabilities"]


def test_an_upstream_that_describes_nothing_is_no_upstream() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    host.turn_legacy(capabilities={})
    assert error(host.reply_to(exchange))["code"] == -32602


# -- the session ---------------------------------------------------------------------------------------------


def test_prx1_the_proxy_declares_what_its_policy_lets_pass() -> None:
    kinds = frozenset({InputKind.FORM, InputKind.SAMPLING, InputKind.ROOTS})
    host = make_dual_era(input_kinds=kinds)
    call(host)
    declared = host.sent_legacy("initialize")[0]["params"]
    assert declared["clientInfo"] == {"name": "proxy", "version": "1"}
    capabilities = dict(declared["capabilities"])
    capabilities.pop("tasks")
    assert capabilities == {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    nothing = make_dual_era(input_kinds=frozenset())
    call(nothing)
    assert nothing.sent_legacy("initialize")[0]["params"]["capabilities"] == {}


def test_leg2_later_messages_name_the_session() -> None:
    host = make_dual_era()
    call(host)
    by_method = {(one.send.message or {}).get("method"): one.send for one in host.legacy_sent}
    assert by_method["initialize"].session is None
    assert by_method["tools/call"].session == "upstream-session"
    assert by_method["tools/call"].version == "2025-11-25"


def test_prx_each_authorization_has_a_session_of_its_own() -> None:
    host = make_dual_era()
    alice, bob = (Access(authorizations={"renderer": name}) for name in ("alice", "bob"))
    call(host, access=alice)
    call(host, access=bob)
    openings = [one for one in host.legacy_sent if (one.send.message or {}).get("method") == "initialize"]
    assert [one.authorization for one in openings] == ["alice", "bob"]


def test_a_modern_upstream_is_passed_through_as_it_is() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"}, meta={"progressToken": "p"})
    discover(host)
    sent = host.waiting("tools/call")
    assert (sent.task_path, sent.message["params"]["name"]) == (True, "render")
    progress = notification_message("notifications/progress", {"progressToken": sent.request, "progress": 1})
    host.give(NotificationReceived(sent.request, progress))
    host.answer("tools/call", {"content": []})
    assert host.sent_on(exchange)[0]["params"]["progressToken"] == "p"
    assert view(host.reply_to(exchange)) == {"content": []}
    assert host.legacy_sent == []


def test_a_listener_who_is_first_does_not_keep_the_era_from_showing() -> None:
    """A listen request is not answered, so that ``server/discover`` goes ahead of it."""
    host = make_dual_era()
    host.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    (probe,) = host.in_flight.values()
    assert (probe.message["method"], probe.upstream, probe.authorization) == (
        "server/discover",
        "renderer",
        "",
    )
    discover_only(host)
    assert [one.message["method"] for one in host.in_flight.values()] == ["subscriptions/listen"]


def discover_only(host: DualEraHost) -> None:
    """Answer a probe."""
    found = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
    host.answer("server/discover", found)


def test_prx2_a_modern_upstream_says_itself_for_how_long_it_is_so() -> None:
    host = make_dual_era()
    for _ in range(3):
        exchange = host.request("tools/call", {"name": "render"})
        discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0}
        host.answer("server/discover", discovered)
        listed = [{"name": "render", "inputSchema": {"type": "object"}}]
        host.answer("tools/list", {"tools": listed, "ttlMs": 3_600_000})
        host.answer("tools/call", {"content": []})
        assert view(host.reply_to(exchange)) == {"content": []}


@pytest.mark.parametrize("http", [True, False])
def test_prx4_how_a_modern_upstream_refuses_is_told(http: bool) -> None:
    """Over HTTP a status may be all that it says; on stdio there is none."""
    host = make_dual_era(http=http)
    exchange = host.request("tools/call", {"name": "render"})
    if not http:
        discover_only(host)
    discover(host)
    name = host.waiting("tools/call").request
    if http:
        host.give(UpstreamAnswered(request=name, message=None, http_status=403))
        assert reason(host.reply_to(exchange)) == "upstream_refused"
    else:
        host.give(ResponseReceived(request=name, message=result_message(name, {"content": []})))
        assert view(host.reply_to(exchange)) == {"content": []}


def test_a_modern_upstream_that_breaks_off_is_modern_all_the_same() -> None:
    """Over HTTP a connection that broke says nothing of the era: nobody has to wait until that shows."""
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    discover(host, ttl_ms=0)
    host.answer("tools/call", create())
    handle = result(host.reply_to(exchange))["taskId"]
    host.request("server/discover")
    host.fail("server/discover")
    assert host.waiting("server/discover"), "it is asked again"
    host.request("tasks/get", {"taskId": handle})
    assert host.waiting("tasks/get").task_path


def test_an_upstream_of_a_later_version_is_asked_in_it() -> None:
    versions = ("2027-03-26", MODERN_VERSION)
    host = make_dual_era(versions=versions, http=False)
    exchange = host.request("tools/call", {"name": "render"})
    probe = host.waiting("server/discover").message["params"]["_meta"]
    assert probe == {
        "io.modelcontextprotocol/protocolVersion": "2027-03-26",
        "io.modelcontextprotocol/clientInfo": {"name": "proxy", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    }
    discovered = {"supportedVersions": ["2027-03-26"], "capabilities": {"tools": {}}, "ttlMs": 60_000}
    host.answer("server/discover", discovered)
    host.answer("server/discover", discovered)
    host.answer("tools/list", {"tools": [{"name": "render", "inputSchema": {"type": "object"}}]})
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_an_upstream_that_comes_back_modern_is_found_out() -> None:
    host = make_dual_era()
    host.answer_call(call(host))
    host.now += 60_000
    exchange = host.request("tools/call", {"name": "render"})
    listing = host.waiting("tools/list").request
    host.give(UpstreamAnswered(request=listing, message=None, http_status=404))
    host.refuse("initialize", {"code": -32601, "message": "unknown"})
    listed = [{"name": "render", "inputSchema": {"type": "object"}}]
    host.answer("tools/list", {"resultType": "complete", "tools": listed})
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}
    host.request("tools/call", {"name": "render"})
    discover(host)
    assert host.waiting("tools/call").task_path


def test_an_upstream_that_comes_back_legacy_is_found_out() -> None:
    host = make_dual_era()
    host.request("tools/call", {"name": "render"})
    discover(host, ttl_ms=0)
    host.answer("tools/call", {"content": []})
    exchange = host.request("tools/call", {"name": "render"})
    name = host.waiting("server/discover").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    assert reason(host.reply_to(exchange)) == "upstream_refused"
    exchange = call(host)
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_an_upstream_that_is_said_to_be_legacy_is_greeted_at_once() -> None:
    host = make_dual_era(Upstream(name="renderer", era="legacy"))
    exchange = host.request("tools/call", {"name": "render", "arguments": {}}, capabilities=FORMS)
    assert [one.message["method"] for one in host.in_flight.values()] == ["initialize"]
    for _ in range(3):
        host.refuse("initialize", {"code": -32601, "message": "unknown"})
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"
    exchange = host.request("tools/call", {"name": "render", "arguments": {}}, capabilities=FORMS)
    host.open_session()
    host.streams_open()
    host.answer("tools/call", {"task": legacy_task()})
    assert result(host.reply_to(exchange))["resultType"] == "task"


def test_an_upstream_that_is_said_to_be_modern_is_never_greeted() -> None:
    host = make_dual_era(Upstream(name="renderer", era="modern"))
    exchange = host.request("tools/call", {"name": "render"})
    name = host.waiting("server/discover").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    assert reason(host.reply_to(exchange)) == "upstream_refused"
    for _ in range(2):
        host.request("tools/call", {"name": "render"})
        name = host.waiting("server/discover").request
        host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    assert host.legacy_sent == []


def test_an_upstream_has_an_era_that_there_is() -> None:
    with pytest.raises(ValueError, match="era"):
        Upstream(name="renderer", era="modrn")  # type: ignore[arg-type]


def test_prx15_an_upstream_that_is_down_is_unavailable() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    for _ in range(3):
        host.fail("server/discover", sent=False)
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


def test_prx4_a_session_that_cannot_be_opened_has_sent_nothing() -> None:
    """So the call is tried again, and the era is found out anew."""
    host = make_dual_era()
    host.answer_call(call(host))
    exchange = call(host)
    name = host.waiting("tools/call").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=404))
    host.fail("initialize", sent=False)
    assert "server/discover" in [one.message["method"] for one in host.in_flight.values()]
    host.turn_legacy()
    host.streams_open()
    host.answer("tools/list", {"tools": [legacy_tool("render", "optional")]})
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_prx4_a_call_whose_answer_is_lost_is_not_sent_again() -> None:
    host = make_dual_era()
    exchange = call(host)
    host.fail("tools/call")
    assert reason(host.reply_to(exchange)) == "outcome_unknown"
    assert len(host.sent_legacy("tools/call")) == 1


def test_prx4_nor_one_whose_stream_cannot_be_taken_up_for_want_of_a_connection() -> None:
    """What was not sent then is the wish to read on; the call was."""
    host = make_dual_era()
    exchange = call(host, "add")
    host.give(RequestFailed(host.waiting("tools/call").request, "closed", last_event_id="e1"))
    for _ in range(5):
        assert exchange not in [one.exchange for one in host.of(Reply)]
        host.advance(4_000)
        name = host.waiting("GET").request
        host.give(RequestFailed(name, "no connection", sent=False, last_event_id="e1"))
    assert reason(host.reply_to(exchange)) == "outcome_unknown"
    assert len(host.sent_legacy("tools/call")) == 1


def test_trap25_a_task_that_nobody_asked_for_is_no_result() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    host.answer("tools/call", {"task": legacy_task()})
    assert reason(host.reply_to(exchange)) == "outcome_unknown"


def test_the_session_is_ended_unless_tasks_were_made_in_it() -> None:
    host = make_dual_era()
    host.answer_call(call(host))
    host.give(UpstreamsClosing())
    assert host.legacy_sent[-1].send.verb == "DELETE"
    busy = make_dual_era()
    handed_out(busy)
    busy.give(UpstreamsClosing())
    assert busy.legacy_sent[-1].send.verb == "POST"


# -- questions of plain calls --------------------------------------------------------------------------------


def test_inp4_a_question_on_the_way_is_a_round_of_input() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    asked = result(host.reply_to(exchange))
    assert asked["inputRequests"]["elicitation"]["params"]["message"] == FORM["message"]
    again = call(
        host,
        "add",
        params={"requestState": asked["requestState"], "inputResponses": {"elicitation": ACCEPTED}},
    )
    assert host.responses()[0]["result"] == ACCEPTED
    assert len(host.sent_legacy("tools/call")) == 1
    host.accept("a response")
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(again)) == {"content": []}


def test_inp4_what_is_not_answered_is_asked_again() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    asked = result(host.reply_to(exchange))
    again = result(host.reply_to(call(host, "add", params={"requestState": asked["requestState"]})))
    assert list(again["inputRequests"]) == ["elicitation.2"]
    assert host.responses() == []


def test_inp4_a_round_is_answered_once() -> None:
    """A state that is presented twice does not take the call from whoever waits for it."""
    host = make_dual_era()
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    params = {
        "requestState": result(host.reply_to(exchange))["requestState"],
        "inputResponses": {"elicitation": ACCEPTED},
    }
    first, second = call(host, "add", params=params), call(host, "add", params=params)
    assert "answered before" in error(host.reply_to(second))["message"]
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(first)) == {"content": []}


def test_inp4_a_state_of_another_process_is_of_no_call_here() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    params = {
        "requestState": result(host.reply_to(exchange))["requestState"],
        "inputResponses": {"elicitation": ACCEPTED},
    }
    other = make_dual_era(store=host.store)
    other.now += 1
    call(other, "add", principal="bob")
    refused = call(other, "add", params=params)
    assert "lost" in error(other.reply_to(refused))["message"]
    assert other.responses() == []


def test_a_round_that_nobody_comes_back_to_is_given_up() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_state_ms=5000))
    call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    host.advance(4999)
    assert [one.message["method"] for one in host.in_flight.values()] == ["tools/call"]
    host.advance(1)
    assert [one.message["method"] for one in host.in_flight.values()] == ["notifications/cancelled"]


def test_one_that_somebody_has_come_back_to_is_not() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_state_ms=5000))
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    state = result(host.reply_to(exchange))["requestState"]
    again = call(host, "add", params={"requestState": state, "inputResponses": {"elicitation": ACCEPTED}})
    host.accept("a response")
    host.advance(5000)
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(again)) == {"content": []}


def test_the_answer_that_comes_while_a_round_is_open_waits_for_its_caller() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    host.answer("tools/call", {"content": []})
    state = result(host.reply_to(exchange))["requestState"]
    params = {"requestState": state, "inputResponses": {"elicitation": ACCEPTED}}
    assert view(host.reply_to(call(host, "add", params=params))) == {"content": []}
    once_more = error(host.reply_to(call(host, "add", params=params)))
    assert once_more["message"] == "Invalid params: the call of this round is over, or was lost"


def test_prx10_each_caller_is_asked_what_it_declared_itself() -> None:
    """Whatever the session declares for all of them."""
    host = make_dual_era(input_kinds=frozenset(InputKind))
    exchange = call(host, "add", capabilities=FORMS)
    host.asks("sampling/createMessage", SAMPLE, on="tools/call")
    assert host.responses()[0]["error"]["code"] == -32601
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_sec1_a_question_is_put_to_nobody_where_it_may_be_anothers() -> None:
    """On stdio nothing tells whose it is, unless there is one call only."""
    host = make_dual_era(http=False)
    one = call(host, "add", principal="alice", id=1)
    host.asks("elicitation/create", FORM, on=None, id="q1")
    assert result(host.reply_to(one))["resultType"] == "input_required"
    call(host, "add", principal="alice", id=2)
    call(host, "add", principal="bob", id=3)
    host.asks("elicitation/create", FORM, on=None, id="q2")
    assert host.responses()[-1]["error"]["code"] == -32603


@pytest.mark.parametrize("on", ["GET", None])
def test_sec1_what_a_task_asks_is_not_put_to_the_call_of_another(on: str | None) -> None:
    """The task is one of a process that has ended: it is not followed here, and may be anybody's."""
    store = ProxyStore()
    handed_out(make_dual_era(store=store, http=on is not None), principal="alice")
    host = make_dual_era(store=store, http=on is not None)
    exchange = host.request(
        "tools/call", {"name": "render", "arguments": {}}, capabilities=FORMS, principal="bob"
    )
    host.turn_legacy()
    if on is not None:
        host.give(StreamOpened(host.waiting("GET").request))
    host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on=on)
    assert host.responses()[-1]["error"]["code"] == -32603
    host.asks("elicitation/create", FORM, on=on, id="q2")
    assert result(host.reply_to(exchange))["resultType"] == "input_required"


def test_sec1_nor_what_is_asked_on_a_stream_of_anothers() -> None:
    host = make_dual_era()
    handle = handed_out(host, principal="alice")
    host.request("tasks/get", {"taskId": handle}, capabilities=FORMS, principal="alice")
    host.answer("tasks/get", legacy_task("input_required"))
    exchange = call(host, "add", principal="bob")
    host.asks("elicitation/create", FORM, on="tasks/result")
    assert host.responses()[-1]["error"]["code"] == -32603
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


@pytest.mark.parametrize("whose", ["a call", "a task"])
def test_lim3_an_upstream_may_ask_so_much(whose: str) -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(input_keys=1))
    if whose == "a call":
        call(host, "add")
        about: dict[str, Any] = {}
    else:
        host.request("tasks/get", {"taskId": handed_out(host)}, capabilities=FORMS)
        host.answer("tasks/get", legacy_task("input_required"))
        about = {"_meta": related("old-7")}
    on = "tools/call" if whose == "a call" else "tasks/result"
    host.asks("elicitation/create", {**FORM, **about}, on=on, id="q1")
    assert host.responses() == []
    host.asks("elicitation/create", {**form("Your age?")["params"], **about}, on=on, id="q2")
    assert [one["error"]["data"] for one in host.responses()] == [{"reason": "ledger_keys"}]


def test_leg10_a_task_that_an_upstream_makes_here_is_polled_no_faster_than_others() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(poll_floor_ms=1500))
    call(host, "add")
    host.asks("elicitation/create", {**FORM, "task": {}}, on="tools/call")
    (made,) = host.responses()
    assert made["result"]["task"]["pollInterval"] == 1500


def test_lim3_of_a_list_without_an_end_so_many_pages_are_read() -> None:
    """A new session may have other tools: which of them take tasks is read again, as far as that goes."""
    host = make_dual_era(http=False, proxy_limits=ProxyLimits(tool_pages=2))
    host.answer_call(call(host))
    host.give(UpstreamSaid(upstream="renderer", authorization="", fact=ConnectionLost()))
    exchange = call(host)
    host.open_session(legacy_tool("paint", "required"))
    before = len(host.sent_legacy("tools/list"))
    host.give(UpstreamSaid(upstream="renderer", authorization="", fact=ConnectionLost()))
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}
    exchange = call(host)
    host.answer("initialize", {"protocolVersion": LEGACY_VERSION, "capabilities": {"tools": {}, **TASKS}})
    host.accept("notifications/initialized")
    for page in range(2):
        host.answer("tools/list", {"tools": [legacy_tool(f"add{page}")], "nextCursor": f"{page}"})
    assert len(host.sent_legacy("tools/list")) == before + 2
    assert "task" not in host.sent_legacy("tools/call")[-1]["params"]


def test_lim3_so_many_calls_may_be_under_way() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(upstream_requests=2))
    exchange = call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    assert result(host.reply_to(exchange))["resultType"] == "input_required"
    second = call(host, "add")
    host.asks("elicitation/create", FORM, on=None)
    third = call(host, "add")
    assert error(host.reply_to(third))["data"] == {"reason": "calls"}
    assert second != third


def test_lim3_a_call_whose_caller_left_is_under_way_no_longer() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(upstream_requests=1))
    for number in range(1, 4):
        exchange = call(host, "add")
        assert len(host.sent_legacy("tools/call")) == number
        host.give(ExchangeClosed(exchange))
        host.accept("notifications/cancelled")


# -- questions of tasks --------------------------------------------------------------------------------------


def test_leg8_what_a_task_asks_stands_in_its_view_and_the_answer_goes_where_it_came_from() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result")
    asked = view(host.reply_to(exchange))
    (key,) = asked["inputRequests"]
    update = host.request(
        "tasks/update", {"taskId": handle, "inputResponses": {key: ACCEPTED}}, capabilities=FORMS
    )
    host.answer("tasks/get", legacy_task("input_required"))
    assert host.responses()[0]["result"] == {**ACCEPTED, "_meta": related("old-7")}
    host.accept("a response")
    assert view(host.reply_to(update)) == {}


def test_upd5_an_answer_whose_session_is_gone_is_given_when_it_is_asked_for_again() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    (key,) = waits_for_input(host, handle, "old-7")
    host.streams_open()
    answers = {"taskId": handle, "inputResponses": {key: ACCEPTED}}
    update = host.request("tasks/update", answers, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    for name in [host.waiting(method).request for method in ("a response", "tasks/result")]:
        host.give(UpstreamAnswered(request=name, message=None, http_status=404))
    host.open_session()
    assert view(host.reply_to(update)) == {}
    host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result", id="again")
    assert [one["id"] for one in host.responses()] == ["q old-7", "again"]
    poll = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(2_000)
    assert view(host.reply_to(poll))["inputRequests"] == {}


def test_upd5_who_leaves_while_an_answer_is_on_its_way_hears_nothing_of_it() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    (key,) = waits_for_input(host, handle, "old-7")
    answers = {"taskId": handle, "inputResponses": {key: ACCEPTED}}
    update = host.request("tasks/update", answers, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.give(ExchangeClosed(update))
    host.accept("a response")
    assert not [one for one in host.of(Reply) if one.exchange == update]


def test_lim3_an_update_that_took_too_long_is_over_whatever_its_answer_does_later() -> None:
    """The server has asked again meanwhile, so that the answer is under way for longer than the update."""
    host = make_dual_era(proxy_limits=ProxyLimits(request_timeout_ms=1000))
    handle = handed_out(host)
    (key,) = waits_for_input(host, handle, "old-7")
    answers = {"taskId": handle, "inputResponses": {key: ACCEPTED}}
    update = host.request("tasks/update", answers, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(500)
    host.give(UpstreamAnswered(request=host.waiting("tasks/result").request, message=None, http_status=500))
    poll = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result", id="again")
    assert [one["id"] for one in host.responses()] == ["q old-7", "again"]
    assert list(view(host.reply_to(poll))["inputRequests"]) == [key]
    host.advance(500)
    assert reason(host.reply_to(update)) == "upstream_unavailable"
    host.advance(500)
    assert len([one for one in host.of(Reply) if one.exchange == update]) == 1


def test_lim3_of_an_update_that_took_too_long_one_answer_may_have_got_there() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_timeout_ms=1000))
    handle = handed_out(host)
    waits_for_input(host, handle, "old-7")
    other = {**FORM, "message": "And which colour?", "_meta": related("old-7")}
    host.asks("elicitation/create", other, on="tasks/result", id="q2")
    keys = waits_for_input(host, handle, "old-7")
    assert len(keys) == 2
    answers = {"taskId": handle, "inputResponses": dict.fromkeys(keys, ACCEPTED)}
    update = host.request("tasks/update", answers, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.accept("a response")
    host.advance(400)
    broken = host.waiting("tasks/result").request
    host.give(UpstreamAnswered(request=broken, message=None, http_status=500))
    host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.asks("elicitation/create", other, on="tasks/result", id="q3")
    host.advance(600)
    assert reason(host.reply_to(update)) == "upstream_unavailable"
    assert [one["id"] for one in host.responses()] == ["q old-7", "q2", "q3"]


def test_lim3_nothing_is_held_of_updates_that_took_too_long_however_often_the_server_asks_again() -> None:
    """Each time that it does, the answer has as long to get there as it had at first."""
    host = make_dual_era(proxy_limits=ProxyLimits(request_timeout_ms=1000))
    handle = handed_out(host)
    (key,) = waits_for_input(host, handle, "old-7")
    answers = {"taskId": handle, "inputResponses": {key: ACCEPTED}}

    def took_too_long(number: int) -> int:
        update = host.request("tasks/update", answers, capabilities=FORMS)
        host.answer("tasks/get", legacy_task("input_required"))
        for again in (f"again {number}", f"and again {number}"):
            host.advance(400)
            broken = host.waiting("tasks/result").request
            host.give(UpstreamAnswered(request=broken, message=None, http_status=500))
            host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
            host.answer("tasks/get", legacy_task("input_required"))
            host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result", id=again)
        host.advance(200)
        assert reason(host.reply_to(update)) == "upstream_unavailable"
        return held(host.engine)

    sizes = [took_too_long(number) for number in range(5)]
    assert sizes[1:] == sizes[1:2] * 4
    assert len(host.responses()) == 11, "an answer was on its way all along"


def test_inp1_what_is_asked_in_another_process_has_another_key() -> None:
    """Its caller may have had an answer accepted that never got to the server, and answers no key twice."""
    first = make_dual_era()
    handle = handed_out(first)
    (key,) = waits_for_input(first, handle, "old-7")
    second = make_dual_era(Upstream(name="renderer", era="legacy"), store=first.store)
    second.now = first.now + 1_000
    update = second.request(
        "tasks/update", {"taskId": handle, "inputResponses": {key: ACCEPTED}}, capabilities=FORMS
    )
    second.open_session()
    second.answer("tasks/get", legacy_task("input_required"))
    second.advance(2_000)
    assert reason(second.reply_to(update)) == "asked_elsewhere"
    poll = second.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    second.answer("tasks/get", legacy_task("input_required"))
    second.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result")
    (other,) = view(second.reply_to(poll))["inputRequests"]
    assert other != key


def related(task_id: str) -> dict[str, Any]:
    return {"io.modelcontextprotocol/related-task": {"taskId": task_id}}


def test_leg8_before_its_question_has_come_a_task_asks_nothing() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(2000)
    asked = view(host.reply_to(exchange))
    assert (asked["status"], asked["inputRequests"]) == ("input_required", {})
    streaming = [one.send.message for one in host.legacy_sent if one.streams and one.send.verb != "GET"]
    assert streaming == host.sent_legacy("tasks/result")


def test_prx10_a_task_is_asked_what_its_call_declared() -> None:
    host = make_dual_era(input_kinds=frozenset(InputKind))
    handed_out(host, capabilities=FORMS)
    host.asks("sampling/createMessage", {**SAMPLE, "_meta": related("old-7")}, on=None)
    assert host.responses()[0]["error"]["code"] == -32601


def test_prx10_also_before_it_is_one() -> None:
    host = make_dual_era(input_kinds=frozenset(InputKind))
    call(host, capabilities=FORMS)
    assert host.sent_legacy("tools/call")[0]["params"]["task"] == {}
    host.asks("sampling/createMessage", SAMPLE, on="tools/call")
    assert host.responses()[0]["error"]["code"] == -32601


def test_prx4_a_poll_that_waited_too_long_for_a_question_is_answered_once() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_timeout_ms=1000))
    handle = handed_out(host)
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(1000)
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"
    host.advance(2000)
    assert [one.message["method"] for one in host.in_flight.values()] == ["tasks/result"]


def test_req3_an_upstream_that_fails_to_give_a_result_is_asked_again() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("completed"))
    host.refuse("tasks/result", {"code": -32603, "message": "the store did not answer"})
    refused = error(host.reply_to(exchange))
    assert refused["data"] == {"reason": "upstream_unavailable", "retryable": True}
    assert host.store.snapshots == {}, "nothing is kept that is no end"
    ended = view(poll(host, handle, legacy_task("completed"), {"content": []}))
    assert (ended["status"], ended["result"]["content"]) == ("completed", [])


def test_req3_one_that_never_gives_it_is_taken_at_its_word_however_hasty_its_callers_are() -> None:
    host = make_dual_era()
    handle = handed_out(host)

    def asked() -> dict[str, Any]:
        exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
        host.answer("tasks/get", legacy_task("completed"))
        host.refuse("tasks/result", {"code": -32603, "message": "down"})
        return host.reply_to(exchange)

    for pause_ms in (500, 1000, 2000, 4000):
        assert [reason(asked()) for _ in range(3)] == ["upstream_unavailable"] * 3
        host.advance(pause_ms)
    ended = view(asked())
    assert (ended["status"], ended["error"]) == ("failed", {"code": -32603, "message": "down"})


def test_req3_a_poll_that_fails_does_not_make_a_question_another_one() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    (key,) = waits_for_input(host, handle, "old-7")
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.refuse("tasks/get", {"code": -32603, "message": "down"})
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"
    host.advance(1000)
    again = view(poll(host, handle, legacy_task("input_required")))
    assert list(again["inputRequests"]) == [key]
    assert len(host.sent_legacy("tasks/result")) == 1


def test_inp1_an_answer_that_was_overtaken_takes_no_question_back() -> None:
    """The task worked when that was said, and has asked something since."""
    host = make_dual_era()
    handle = handed_out(host)
    first, second = (host.request("tasks/get", {"taskId": handle}, capabilities=FORMS) for _ in range(2))
    late, early = (name for name, one in host.in_flight.items() if one.message["method"] == "tasks/get")
    host.give(UpstreamAnswered(request=early, message=result_message(early, legacy_task("input_required"))))
    host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result")
    (key,) = view(host.reply_to(second))["inputRequests"]
    host.give(UpstreamAnswered(request=late, message=result_message(late, legacy_task("working"))))
    assert list(view(host.reply_to(first))["inputRequests"]) == [key]
    host.request("tasks/update", {"taskId": handle, "inputResponses": {key: ACCEPTED}}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    assert [response["result"]["action"] for response in host.responses()] == ["accept"]


def test_prx11_cancel_is_passed_on_and_acknowledged() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    exchange = host.request("tasks/cancel", {"taskId": handle})
    host.answer("tasks/cancel", legacy_task("cancelled"))
    assert view(host.reply_to(exchange)) == {}


def test_prx_an_upstream_that_lost_a_task_is_told_apart() -> None:
    host = make_dual_era()
    handle = handed_out(host)
    exchange = host.request("tasks/get", {"taskId": handle})
    host.refuse("tasks/get", {"code": -32602, "message": "no such task old-7"})
    assert reason(host.reply_to(exchange)) == "upstream_lost_task"


def test_prx_after_a_restart_a_task_of_the_session_before_may_be_lost_and_its_owner_is_told() -> None:
    """A server may show a task to its own session only; which, the proxy that began again cannot know."""
    before = make_dual_era()
    handle = handed_out(before)
    host = make_dual_era(store=before.store)
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    attempt = host.waiting("tasks/get")
    assert attempt.task_path, "what shows the era is the engine's own request, and nothing else of it (PRX.3)"
    host.give(UpstreamAnswered(request=attempt.request, message=None, http_status=400))
    host.open_session()
    assert host.sent_legacy("tasks/get")[0]["params"]["taskId"] == "old-7"
    host.refuse("tasks/get", {"code": -32602, "message": "no such task"})
    assert reason(host.reply_to(exchange)) == "upstream_lost_task"
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task())
    assert view(host.reply_to(exchange))["status"] == "working", "nothing was written down as lost"


def test_lim3_of_tasks_that_are_polled_no_more_what_they_ask_is_forgotten() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(followed_tasks=1))
    first = handed_out(host, "old-1")
    exchange = host.request("tasks/get", {"taskId": first}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required", "old-1"))
    host.asks("elicitation/create", {**FORM, "_meta": related("old-1")}, on="tasks/result")
    assert view(host.reply_to(exchange))["inputRequests"]
    handed_out(host, "old-2")
    assert "tasks/result" not in [one.message["method"] for one in host.in_flight.values()]


def test_leg8_after_a_restart_a_task_is_asked_what_its_call_declared() -> None:
    """All that is known of it then is what its binding says; whoever polls it has it followed."""
    kinds = frozenset(InputKind)
    before = make_dual_era(input_kinds=kinds)
    handle = handed_out(before, capabilities=FORMS)
    host = make_dual_era(store=before.store, input_kinds=kinds)
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    attempt = host.waiting("tasks/get").request
    host.give(UpstreamAnswered(request=attempt, message=None, http_status=400))
    host.open_session()
    host.answer("tasks/get", legacy_task("input_required"))
    host.asks("sampling/createMessage", {**SAMPLE, "_meta": related("old-7")}, on="tasks/result", id="q1")
    assert host.responses()[0]["error"]["code"] == -32601
    host.asks("elicitation/create", {**FORM, "_meta": related("old-7")}, on="tasks/result", id="q2")
    (asked,) = view(host.reply_to(exchange))["inputRequests"].values()
    assert asked["params"]["message"] == FORM["message"]


def waits_for_input(host: DualEraHost, handle: str, task_id: str) -> dict[str, Any]:
    """Poll a task that waits for input, have it ask if it has not, and return what its caller is asked."""
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    waiting = sum(one.message["method"] == "tasks/result" for one in host.in_flight.values())
    host.answer("tasks/get", legacy_task("input_required", task_id))
    if sum(one.message["method"] == "tasks/result" for one in host.in_flight.values()) > waiting:
        opened = [one for one in host.in_flight.values() if one.message["method"] == "tasks/result"][-1]
        question = request_message(f"q {task_id}", "elicitation/create", {**FORM, "_meta": related(task_id)})
        host.give(ServerAsked(request=opened.request, message=question, new_id="t" * 30))
    asked: dict[str, Any] = view(host.reply_to(exchange))["inputRequests"]
    return asked


def test_lim3_a_task_that_is_polled_keeps_what_it_asks() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(followed_tasks=2))
    first, second = handed_out(host, "old-1"), handed_out(host, "old-2")
    asked = waits_for_input(host, first, "old-1")
    waits_for_input(host, second, "old-2")
    assert waits_for_input(host, first, "old-1") == asked != {}
    handed_out(host, "old-3")  # the one that was polled longest ago makes room
    (left,) = [one for one in host.in_flight.values() if one.message["method"] == "tasks/result"]
    assert left.message["params"] == {"taskId": "old-1"}
    waited_for = [message["params"]["taskId"] for message in host.sent_legacy("tasks/result")]
    assert waited_for == ["old-1", "old-2"]


def test_lim3_a_task_that_made_room_may_end() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(followed_tasks=1))
    exchange = host.request("tasks/get", {"taskId": handed_out(host, "old-1")}, capabilities=FORMS)
    handed_out(host, "old-2")
    host.answer("tasks/get", legacy_task("completed", "old-1"))
    host.answer("tasks/result", {"content": []})
    assert view(host.reply_to(exchange))["status"] == "completed"


def test_lim3_polls_of_a_task_that_made_room_are_answered() -> None:
    """One waits for a question that may come, the other for the result, on the request that is given up."""
    host = make_dual_era(proxy_limits=ProxyLimits(followed_tasks=1))
    handle = handed_out(host, "old-1")
    first, second = (
        host.request("tasks/get", {"taskId": handle}, id=name, capabilities=FORMS) for name in ("a", "b")
    )
    host.answer("tasks/get", legacy_task("input_required", "old-1"))
    host.answer("tasks/get", legacy_task("completed", "old-1"))
    handed_out(host, "old-2")
    assert view(host.reply_to(first))["inputRequests"] == {}
    host.answer("tasks/result", {"content": []})
    assert view(host.reply_to(second))["status"] == "completed"
    assert len(host.sent_legacy("tasks/result")) == 2


# -- listening -----------------------------------------------------------------------------------------------


def test_prx14_a_legacy_upstream_does_not_push_and_is_polled() -> None:
    host = make_dual_era()
    host.reads = True
    handle = handed_out(host)
    stream = host.request("subscriptions/listen", {"notifications": {"taskIds": [handle]}})
    host.answer("tasks/get", legacy_task())
    host.advance(1000)
    host.answer("tasks/get", legacy_task("completed"))
    host.answer("tasks/result", {"content": []})
    told = [message["params"].get("status") for message in host.sent_on(stream)]
    assert told == [None, "working", "completed"]
    assert "subscriptions/listen" not in [one.message["method"] for one in host.of(SendUpstream)]


def test_sub1_other_tools_of_a_legacy_upstream_are_told_to_whoever_sees_it() -> None:
    host = make_dual_era()
    host.reads = True
    host.answer_call(call(host))
    wants = {"notifications": {"toolsListChanged": True}}
    stream = host.request("subscriptions/listen", wants, access=Access(authorizations={"renderer": ""}))
    stranger = host.request("subscriptions/listen", wants, access=Access(authorizations={}))
    quiet = host.request("subscriptions/listen", {"notifications": {}})
    call(host)
    name = host.waiting("tools/call").request
    host.give(NotificationReceived(name, notification_message("notifications/tools/list_changed", {})))
    assert [one["method"] for one in host.sent_on(stream)][1:] == ["notifications/tools/list_changed"]
    assert len(host.sent_on(stranger)) == len(host.sent_on(quiet)) == 1
    host.answer("tools/call", {"content": []})
    call(host)
    assert len(host.sent_legacy("tools/list")) == 2


def test_sub1_an_upstream_of_the_other_era_has_other_tools() -> None:
    """Whoever listens is told, and what was known of it is asked for again."""
    host = make_dual_era()
    host.reads = True
    host.answer_call(call(host))
    wants = {"notifications": {"toolsListChanged": True}}
    stream = host.request("subscriptions/listen", wants, access=Access(authorizations={"renderer": ""}))
    host.request("tools/call", {"name": "render"})
    host.streams_open()
    gone = host.waiting("tools/call").request
    host.give(UpstreamAnswered(request=gone, message=None, http_status=404))
    host.refuse("initialize", {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}})
    discover_only(host)
    assert [one["method"] for one in host.sent_on(stream)][1:] == ["notifications/tools/list_changed"]


def test_sub1_upstreams_that_other_settings_bring_are_listened_to() -> None:
    host = make_dual_era()
    host.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    discover_only(host)
    old = Upstream(name="old", era="legacy", http=False)
    host.give(SettingsChanged(make_settings(Upstream(name="renderer"), old, Upstream(name="new"))))
    found = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
    host.answer("server/discover", found, upstream="new")
    assert host.waiting("subscriptions/listen", upstream="new").message["params"]["notifications"] == {
        "toolsListChanged": True
    }
    assert [one for one in host.of(SendUpstream) if one.upstream == "old"] == [], "it is said to be legacy"


def test_what_is_said_on_the_way_comes_down() -> None:
    host = make_dual_era()
    exchange = call(host, "add", meta={"progressToken": "p"})
    name = host.waiting("tools/call").request
    token = host.waiting("tools/call").message["params"]["_meta"]["progressToken"]
    progress = notification_message("notifications/progress", {"progressToken": token, "progress": 1})
    host.give(NotificationReceived(name, progress))
    host.give(NotificationReceived(name, "no notification"))
    assert [one["params"]["progressToken"] for one in host.sent_on(exchange)] == ["p"]


# -- ends, and facts that are none ---------------------------------------------------------------------------


def test_can7_a_caller_who_leaves_takes_the_call_along() -> None:
    host = make_dual_era()
    exchange = call(host, "add")
    name = host.waiting("tools/call").request
    host.give(ExchangeClosed(exchange))
    assert StopUpstream(name) in host.effects
    assert host.sent_legacy("notifications/cancelled")[0]["params"] == {"requestId": name}
    host.give(ResponseReceived(request=name, message=None))


def test_can7_a_caller_may_leave_before_the_era_shows_or_the_session_stands() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    host.give(ExchangeClosed(exchange))
    host.turn_legacy()
    assert host.sent_legacy("tools/call") == []


def test_can7_a_caller_of_a_modern_upstream_may_leave() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    discover(host)
    name = host.waiting("tools/call").request
    host.give(ExchangeClosed(exchange))
    assert host.effects[-1] == StopUpstream(name)


def test_prx4_a_legacy_upstream_has_so_much_time() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_timeout_ms=1000))
    handle = handed_out(host)
    exchange = host.request("tasks/get", {"taskId": handle})
    host.advance(1000)
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"
    assert host.sent_legacy("notifications/cancelled")


def test_std1_a_process_that_ends_takes_its_session_along() -> None:
    host = make_dual_era(http=False)
    host.answer_call(call(host))
    host.give(UpstreamSaid(upstream="renderer", authorization="", fact=ConnectionLost()))
    exchange = call(host)
    host.open_session()
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}
    host.give(UpstreamSaid(upstream="nobody", authorization="", fact=ConnectionLost()))


def test_a_server_that_pings_is_answered() -> None:
    host = make_dual_era()
    call(host)
    host.asks("ping", {}, on="tools/call")
    assert host.responses()[0]["result"] == {}


def test_a_stream_that_breaks_is_opened_again_ever_later() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(first_backoff_ms=100, last_backoff_ms=150))
    host.request("tools/call", {"name": "render"}, capabilities=FORMS)
    host.turn_legacy()
    for pause_ms in (100, 150, 150):
        host.fail("GET")
        host.advance(pause_ms - 1)
        assert "GET" not in [one.message["method"] for one in host.in_flight.values()]
        host.advance(1)
        assert host.waiting("GET")


@pytest.mark.parametrize("why", ["the proxy ends", "it makes room"])
def test_lim3_the_end_of_a_session_is_waited_for_no_longer_than_anything(why: str) -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_timeout_ms=1000, discoveries=1))
    host.answer_call(call(host, access=Access(authorizations={"renderer": "alice"})))
    host.advance(5000)
    if why == "the proxy ends":
        host.give(UpstreamsClosing())
    else:
        host.request("tools/call", {"name": "render"}, access=Access(authorizations={"renderer": "bob"}))
    (ending,) = [one.send.request for one in host.legacy_sent if one.send.verb == "DELETE"]
    host.advance(999)
    assert StopUpstream(ending) not in host.effects
    host.advance(1)
    assert StopUpstream(ending) in host.effects


def test_the_stream_for_what_is_said_unasked_lets_calls_go_ahead() -> None:
    host = make_dual_era()
    host.request("tools/call", {"name": "render"})
    host.turn_legacy()
    (get,) = [one for one in host.legacy_sent if one.send.verb == "GET"]
    assert (get.streams, host.sent_legacy("tools/call")) == (True, [])
    host.give(StreamOpened(get.send.request))
    assert len(host.sent_legacy("tools/call")) == 1


def test_what_is_said_by_an_upstream_that_was_asked_nothing_is_nobodys_concern() -> None:
    host = make_dual_era()
    assert host.give(UpstreamSaid(upstream="renderer", authorization="", fact=ConnectionLost())) == []


def test_what_a_modern_upstream_asks_is_nobodys_concern() -> None:
    host = make_dual_era()
    host.request("tools/call", {"name": "render"})
    name = host.waiting("server/discover").request
    host.give(ServerAsked(request=name, message=request_message(1, "ping", {}), new_id="t"))
    host.give(NotificationReceived(name, notification_message("notifications/message", {})))
    discover(host)
    name = host.waiting("tools/call").request
    host.give(ServerAsked(request=name, message=request_message(1, "ping", {}), new_id="t"))
    assert host.legacy_sent == []


def test_prx7_other_settings_let_go_of_upstreams_that_are_others_now() -> None:
    """What goes up by this name goes to the other server, which is not to hear of an old session."""
    host = make_dual_era(Upstream(name="one"), Upstream(name="two"), Upstream(name="three"))
    host.request("server/discover")
    for name in ("one", "two", "three"):
        host.turn_legacy(upstream=name)
    host.give(SettingsChanged(make_settings(Upstream(name="one"), Upstream(name="two", identity="other"))))
    assert [one.upstream for one in host.legacy_sent if one.send.verb == "DELETE"] == []
    host.request("server/discover")
    assert [one.upstream for one in host.of(SendUpstream)][-1] == "two"
    assert len(host.sent_legacy("tools/list")) == 4


OTHER_SERVER: Final = SettingsChanged(make_settings(Upstream(name="renderer", identity="other")))


@pytest.mark.parametrize("step", ["server/discover", "initialize", "notifications/initialized"])
def test_prx7_what_waited_for_a_session_never_goes_to_another_server(step: str) -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    if step != "server/discover":
        host.give(
            UpstreamAnswered(request=host.waiting("server/discover").request, message={}, http_status=400)
        )
    if step == "notifications/initialized":
        host.answer("initialize", {"protocolVersion": LEGACY_VERSION, "capabilities": {"tools": {}}})
    host.give(OTHER_SERVER)
    sent = len(host.effects)
    name = host.waiting(step).request
    if step == "server/discover":
        host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    elif step == "initialize":
        host.answer("initialize", {"protocolVersion": LEGACY_VERSION, "capabilities": {"tools": {}}})
    else:
        host.accept(step)
    assert [one for one in host.effects[sent:] if isinstance(one, (SendUpstream, SendLegacyUpstream))] == []
    assert error(host.reply_to(exchange))["code"] == -32603


def test_prx7_prx4_a_call_that_did_not_go_to_another_server_was_not_carried_out() -> None:
    """It waits until it shows of what era the server is by now; then that one is meant no more."""
    host = make_dual_era()
    host.answer_call(call(host))
    exchange = call(host)
    host.give(UpstreamAnswered(request=host.waiting("tools/call").request, message=None, http_status=404))
    host.fail("initialize", sent=False)
    host.give(OTHER_SERVER)
    discover_only(host)
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


def test_prx7_what_waited_too_long_for_a_server_that_was_replaced_is_told_once() -> None:
    """Its server is found out about, its time is over, and all of that at one moment: for the host slept."""
    host = make_dual_era(http=False)
    exchange = host.request("tools/call", {"name": "render"})
    host.give(SettingsChanged(make_settings(Upstream(name="renderer", identity="other", http=False))))
    host.now += 400_000
    host.give(TimePassed())
    assert error(host.reply_to(exchange))["code"] == -32603
    assert host.of(StopUpstream) == [StopUpstream(host.of(SendUpstream)[0].request)]


def test_prx7_what_never_went_up_to_a_server_that_was_replaced_is_not_stopped_there() -> None:
    host = make_dual_era()
    exchanges = [host.request("server/discover")]
    host.give(SettingsChanged(make_settings(Upstream(name="renderer"))))
    exchanges.append(host.request("server/discover"))  # waits for the first one, which shows the era
    host.give(OTHER_SERVER)
    host.now += 400_000
    host.give(TimePassed())
    assert host.of(StopUpstream) == [StopUpstream(sent.request) for sent in host.of(SendUpstream)]
    assert len(host.of(StopUpstream)) == 1
    assert all("result" in host.reply_to(exchange) for exchange in exchanges)


def test_prx7_what_a_task_ended_with_is_not_fetched_from_another_server() -> None:
    host = make_dual_era()
    exchange = host.request("tasks/get", {"taskId": handed_out(host)})
    host.give(OTHER_SERVER)
    host.answer("tasks/get", legacy_task("completed"))
    assert host.sent_legacy("tasks/result") == []
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


def test_prx7_the_stream_of_a_server_that_is_not_meant_any_more_is_ended() -> None:
    host = make_dual_era()
    host.request("tools/call", {"name": "render"})
    host.turn_legacy()
    (get,) = [one for one in host.legacy_sent if one.send.verb == "GET"]
    host.give(OTHER_SERVER)
    assert host.of(StopUpstream) == [StopUpstream(get.send.request)]
    host.advance(400_000)
    assert host.of(StopUpstream)[1:] == []


def test_lim3_a_way_with_something_in_flight_would_be_missed() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(discoveries=1))
    access = [Access(authorizations={"renderer": name}) for name in ("a", "b", "c")]
    host.give(ExchangeClosed(call(host, "add", access=access[0])))
    call(host, "add", access=access[1])
    assert [one for one in host.legacy_sent if one.send.verb == "DELETE"] == []
    host.accept("notifications/cancelled")
    call(host, "add", access=access[2])
    assert [one.authorization for one in host.legacy_sent if one.send.verb == "DELETE"] == ["a"]


def streams(host: DualEraHost) -> list[SendUpstream]:
    """Return the streams of what is said unasked that are open, or wanted."""
    return [one for one in host.in_flight.values() if one.message["method"] == "GET"]


@pytest.mark.parametrize("task", [False, True])
def test_lim3_a_stream_for_what_is_said_unasked_keeps_no_way_and_ends_with_it(task: bool) -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(discoveries=1))
    for name in ("a", "b", "c"):
        access = Access(authorizations={"renderer": name})
        exchange = host.request("tools/call", {"name": "render"}, capabilities=FORMS, access=access)
        host.turn_legacy()
        host.give(StreamOpened(streams(host)[-1].request))
        if not task:
            host.answer("tools/call", {"content": []})
            continue
        host.answer("tools/call", {"task": legacy_task(task_id=name)})
        handle = result(host.reply_to(exchange))["taskId"]
        host.request("tasks/get", {"taskId": handle}, capabilities=FORMS, access=access)
        host.answer("tasks/get", legacy_task("cancelled", task_id=name))
    assert [one.authorization for one in streams(host)] == ["c"]
    farewells = [one.authorization for one in host.legacy_sent if one.send.verb == "DELETE"]
    assert farewells == ([] if task else ["a", "b"])


def test_lim3_a_way_with_an_answer_that_waits_for_its_caller_would_be_missed() -> None:
    """What came while a round was open is the end of a call that was carried out."""
    host = make_dual_era(proxy_limits=ProxyLimits(discoveries=1))
    alice, bob = (Access(authorizations={"renderer": name}) for name in ("alice", "bob"))
    exchange = call(host, "add", access=alice)
    host.asks("elicitation/create", FORM, on="tools/call")
    host.answer("tools/call", {"content": []})
    state = result(host.reply_to(exchange))["requestState"]
    host.answer_call(call(host, "add", access=bob))
    params = {"requestState": state, "inputResponses": {"elicitation": ACCEPTED}}
    again = call(host, "add", access=alice, params=params)
    host.answer("tools/list", {"tools": [legacy_tool("add")]})
    assert view(host.reply_to(again)) == {"content": []}


def test_lim3_ways_that_nobody_would_miss_make_room() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(discoveries=1))
    access = [Access(authorizations={"renderer": name}) for name in ("a", "b", "c")]
    host.answer_call(call(host, "add", access=access[0]))
    host.in_flight.clear()
    call(host, "add", access=access[1])
    assert [one.authorization for one in host.legacy_sent if one.send.verb == "DELETE"] == ["a"]
    call(host, "add", access=access[2])
    assert [one.authorization for one in host.legacy_sent if one.send.verb == "DELETE"] == ["a"]


def opened_in_turn(host: DualEraHost) -> list[str]:
    """Return under which authorizations sessions were opened."""
    openings = [one for one in host.legacy_sent if (one.send.message or {}).get("method") == "initialize"]
    return [one.authorization for one in openings]


@pytest.mark.parametrize("end", ["none", "completed", "cancelled", "lost"])
def test_lim3_a_way_is_missed_for_as_long_as_a_task_of_it_is_followed(end: str) -> None:
    """Its session may be all that a question of the task can come in."""
    host = make_dual_era(proxy_limits=ProxyLimits(discoveries=1))
    alice, bob = (Access(authorizations={"renderer": name}) for name in ("alice", "bob"))
    handle = handed_out(host, access=alice)
    if end != "none":
        host.request("tasks/get", {"taskId": handle}, access=alice)
    if end == "lost":
        host.refuse("tasks/get", {"code": -32602, "message": "unknown"})
    elif end == "none":
        pass
    else:
        host.answer("tasks/get", legacy_task(end))
    if end == "completed":
        host.answer("tasks/result", {"content": []})
    host.answer_call(call(host, access=bob))
    call(host, access=alice)
    assert opened_in_turn(host) == (["alice", "bob"] if end == "none" else ["alice", "bob", "alice"])


def a_modern_call(host: DualEraHost) -> None:
    host.request("tools/call", {"name": "render"})
    if any(one.message["method"] == "server/discover" for one in host.in_flight.values()):
        discover(host)
    host.answer("tools/call", {"content": []})


def a_modern_call_that_fails(host: DualEraHost) -> None:
    host.request("tools/call", {"name": "render"})
    if any(one.message["method"] == "server/discover" for one in host.in_flight.values()):
        discover(host)
    host.fail("tools/call")


def a_modern_call_given_up(host: DualEraHost) -> None:
    exchange = host.request("tools/call", {"name": "render"})
    if any(one.message["method"] == "server/discover" for one in host.in_flight.values()):
        discover(host)
    host.give(ExchangeClosed(exchange))


def a_legacy_call(host: DualEraHost) -> None:
    host.answer_call(call(host, "add"))


def a_legacy_call_given_up(host: DualEraHost) -> None:
    host.give(ExchangeClosed(call(host, "add")))
    host.accept("notifications/cancelled")


def a_legacy_task(host: DualEraHost) -> None:
    number = len(host.effects)
    handle = handed_out(host, f"old-{number}")
    poll(host, handle, legacy_task("completed", f"old-{number}"), {"content": []})


def another_server(host: DualEraHost) -> None:
    """Whose answer was never waited for, and the next one's was not either."""
    for identity in ("other", ""):
        host.request("tools/call", {"name": "render"})
        host.give(
            UpstreamAnswered(request=host.waiting("server/discover").request, message={}, http_status=400)
        )
        host.give(SettingsChanged(make_settings(Upstream(name="renderer", identity=identity))))
        host.answer("initialize", {"protocolVersion": LEGACY_VERSION, "capabilities": {"tools": {}}})
        host.advance(60_000)


@pytest.mark.parametrize(
    "story",
    [
        a_modern_call,
        a_modern_call_that_fails,
        a_modern_call_given_up,
        a_legacy_call,
        a_legacy_call_given_up,
        a_legacy_task,
        another_server,
    ],
)
def test_lim3_of_what_is_over_nothing_is_held(story: Callable[[DualEraHost], None]) -> None:
    host = make_dual_era()
    story(host)
    before = held(host.engine)
    for _ in range(3):
        story(host)
    assert held(host.engine) == before


@pytest.mark.parametrize("name", [0, 99, "1", True, [], None])
def test_a_host_that_makes_up_names_is_told(name: Any) -> None:
    host = make_dual_era()
    host.request("server/discover")
    with pytest.raises(LocalProtocolError, match="no request has this name"):
        host.engine.handle(ResponseReceived(request=name, message=None), now=START + 1)


def test_a_host_that_says_what_is_no_input_is_told() -> None:
    engine = DualEraUpstreams(settings=make_settings())
    with pytest.raises(LocalProtocolError, match="not an input"):
        engine.handle("nonsense", now=START)
    with pytest.raises(LocalProtocolError, match="Unix milliseconds"):
        engine.handle(TimePassed(), now=-1)
    assert engine.handle(TimePassed(), now=START).deadline is not None
    assert not engine.in_flight("channel", 1)
    with pytest.raises(LocalProtocolError):
        engine.handle(RequestFailed(1, "never sent"), now=START)


def test_can7_a_listener_may_leave_before_the_era_shows() -> None:
    host = make_dual_era()
    stream = host.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    host.give(ExchangeClosed(stream))
    discover_only(host)
    assert host.in_flight == {}


def test_can7_a_listener_of_a_legacy_upstream_may_leave() -> None:
    host = make_dual_era()
    host.answer_call(call(host))
    stream = host.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    host.give(ExchangeClosed(stream))
    call(host)
    assert len(host.sent_legacy("tools/call")) == 2


def test_an_upstream_on_stdio_that_does_not_answer_a_probe_is_legacy() -> None:
    host = make_dual_era(http=False)
    host.give(TimePassed())
    exchange = host.request("tools/call", {"name": "add"})
    assert host.deadline == START + 10_000
    host.advance(10_000)
    host.open_session(legacy_tool("add"))
    host.answer("tools/call", {"content": []})
    assert view(host.reply_to(exchange)) == {"content": []}


def test_an_upstream_that_refuses_both_eras_is_neither() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    name = host.waiting("server/discover").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    host.refuse("initialize", {"code": -32601, "message": "no"})
    assert reason(host.reply_to(exchange)) == "upstream_refused"


def test_a_round_whose_call_has_ended_is_forgotten_too() -> None:
    host = make_dual_era(proxy_limits=ProxyLimits(request_state_ms=5000))
    call(host, "add")
    host.asks("elicitation/create", FORM, on="tools/call")
    host.answer("tools/call", {"content": []})
    host.advance(5000)
    assert host.in_flight == {}


def test_an_upstream_that_says_when_it_is_greeted_that_it_is_modern_is_not_greeted_again() -> None:
    host = make_dual_era()
    exchange = host.request("tools/call", {"name": "render"})
    name = host.waiting("server/discover").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    supported = {"supported": ["2026-07-28"]}
    host.refuse("initialize", {"code": -32022, "message": "no", "data": supported})
    assert reason(host.reply_to(exchange)) == "upstream_refused"
    exchange = host.request("tools/call", {"name": "render"})
    name = host.waiting("server/discover").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=400))
    assert reason(host.reply_to(exchange)) == "upstream_refused"
    assert len(host.sent_legacy("initialize")) == 1


@pytest.mark.parametrize("members", [{}, {"taskId": 7}])
def test_trap25_a_task_without_an_id_is_none(members: dict[str, Any]) -> None:
    host = make_dual_era()
    exchange = call(host)
    task = {name: value for name, value in legacy_task().items() if name != "taskId"}
    host.answer("tools/call", {"task": {**task, **members}})
    assert reason(host.reply_to(exchange)) == "upstream_invalid"


def test_an_upstream_may_end_its_session_with_nothing_said_of_what_it_can() -> None:
    host = make_dual_era()
    exchange = host.request("server/discover")
    host.turn_legacy(capabilities=["no object"])
    assert result(host.reply_to(exchange))["capabilities"] == {"tools": {"listChanged": True}}
    listed = result(host.reply_to(host.request("tools/list")))["tools"]
    assert listed == []
