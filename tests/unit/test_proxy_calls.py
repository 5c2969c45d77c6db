"""Calls through the proxy, from the decision to the reply: PRX.1 to PRX.4, PRX.6, PRX.8, PRX.9, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from mcp_tasks_proto import TASKS_EXTENSION, ExchangeClosed, Saved, SaveFailed, StreamReady
from mcp_tasks_proto.proxy import (
    Access,
    DropTask,
    InputKind,
    ProxyLimits,
    SaveBinding,
    SendUpstream,
    SettingsChanged,
    StopUpstream,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
    UpstreamNotified,
)
from mcp_tasks_proto.testing import ProxyHost, request
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    SERVER_INFO,
)
from mcp_tasks_proto.wire.http import request_headers
from tests.unit.proxy_world import (
    CREATED,
    DONE,
    START,
    UPSTREAM_TASK,
    call,
    create,
    discover,
    error,
    get,
    handed_out,
    make_proxy,
    make_settings,
    methods,
    reason,
    result,
    sent_up,
    task,
    view,
)
from tests.unit.world import head

NEEDS_TASKS = {
    "code": -32021,
    "message": "Missing required client capability",
    "data": {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
}
PROXY = {"name": "proxy", "version": "1"}


def declared(host: ProxyHost, number: int = -1) -> dict[str, Any]:
    """Return the client capabilities that went up with a call."""
    found: dict[str, Any] = sent_up(host, "tools/call")[number]["_meta"][CLIENT_CAPABILITIES]
    return found


# -- the rows of the table -------------------------------------------------------------------------------


def test_prx_row_1_a_complete_result_is_relayed() -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", DONE)
    assert view(host.reply_to(exchange)) == DONE
    assert declared(host) == {"elicitation": {"form": {}}, "extensions": {TASKS_EXTENSION: {}}}
    assert not host.store.bindings


def test_prx_row_1_a_task_is_relayed_under_a_handle() -> None:
    host = make_proxy()
    exchange = call(host, principal="alice")
    host.answer("tools/call", create(statusMessage=f"queued as {UPSTREAM_TASK}"))
    handed = result(host.reply_to(exchange))
    handle = handed["taskId"]
    assert handed == {
        "resultType": "task",
        "taskId": handle,
        "status": "working",
        "createdAt": CREATED,
        "lastUpdatedAt": CREATED,
        "ttlMs": 60_000,
        "pollIntervalMs": 1000,
        "statusMessage": f"queued as {handle}",
        "_meta": {SERVER_INFO: PROXY},
    }
    bound = host.store.bindings[handle]
    assert (bound.upstream_task_id, bound.principal, bound.tool) == (UPSTREAM_TASK, "alice", "render")
    assert view(get(host, handle, task(), principal="alice"))["taskId"] == handle


@pytest.mark.parametrize(
    "settings",
    [
        {"profiles": {"default": ToolProfile(task_tools=frozenset())}},
        {"tasks": False},
        {"upstreams": (Upstream(name="renderer", tasks=False),)},
    ],
    ids=["profile", "gate of the proxy", "gate of the upstream"],
)
def test_prx_row_2_a_gate_that_is_closed_keeps_tasks_out(settings: dict[str, Any]) -> None:
    host = make_proxy(*settings.pop("upstreams", ()), **settings)
    exchange = call(host)
    assert "extensions" not in declared(host)
    host.answer("tools/call", DONE)
    assert view(host.reply_to(exchange)) == DONE


def test_prx_row_2_an_upstream_without_tasks_hears_of_none() -> None:
    host = make_proxy()
    host.request("tools/call", {"name": "render"})
    discover(host, tasks=False)
    assert declared(host) == {}
    assert not host.waiting("tools/call").task_path


def test_prx_row_2_where_the_extension_is_off_for_a_request_nothing_is_declared() -> None:
    host = make_proxy()
    call(host, tasks_enabled=False)
    assert "extensions" not in declared(host)


def legacy_upstream(host: ProxyHost, support: str | None) -> None:
    """Answer as a translator before a legacy upstream does."""
    capabilities: dict[str, Any] = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    host.answer("server/discover", {"supportedVersions": ["2025-11-25"], "capabilities": capabilities})
    tool: dict[str, Any] = {"name": "render", "inputSchema": {"type": "object"}}
    if support is not None:
        tool["execution"] = {"taskSupport": support}
    host.answer("tools/list", {"tools": [tool]})


@pytest.mark.parametrize(
    ("support", "declares"), [("required", True), ("optional", True), ("forbidden", False), (None, False)]
)
def test_prx_row_3_a_legacy_upstreams_tool_says_whether_it_takes_tasks(
    support: str | None, declares: bool
) -> None:
    host = make_proxy()
    exchange = host.request("tools/call", {"name": "render"}, principal="alice")
    legacy_upstream(host, support)
    assert ("extensions" in declared(host)) is declares
    if declares:
        host.answer("tools/call", create())
        assert result(host.reply_to(exchange))["resultType"] == "task"


def test_prx_row_4_a_caller_that_does_not_declare_gets_no_task_and_the_upstream_hears_of_none() -> None:
    host = make_proxy()
    exchange = call(host, tasks=False)
    assert "extensions" not in declared(host)
    host.refuse("tools/call", NEEDS_TASKS)
    assert error(host.reply_to(exchange)) == NEEDS_TASKS
    assert methods(host).count("tools/call") == 1


@pytest.mark.parametrize(("bridging", "declares"), [(True, True), (False, False)])
def test_prx_row_5_a_legacy_caller_is_bridged_if_that_is_on(bridging: bool, declares: bool) -> None:
    host = make_proxy(bridging=bridging)
    call(host, legacy=True)
    assert ("extensions" in declared(host)) is declares


BRIDGED: dict[str, Any] = {"legacy": True, "principal": "alice"}


def test_leg3_a_result_at_once_becomes_a_task_that_has_ended() -> None:
    host = make_proxy(bridging=True)
    exchange = call(host, **BRIDGED)
    host.answer("tools/call", DONE)
    handed = result(host.reply_to(exchange))
    assert (handed["resultType"], handed["status"]) == ("task", "working")
    handle = handed["taskId"]
    assert view(get(host, handle, legacy=True, access=Access()))["status"] == "completed"


def test_leg3_a_caller_who_leaves_meanwhile_leaves_nothing() -> None:
    host = make_proxy(bridging=True)
    exchange = call(host, **BRIDGED)
    host.held = True
    host.answer("tools/call", DONE)
    host.give(ExchangeClosed(exchange))
    host.held = False
    host.answer_next()
    assert len(host.of(DropTask)) == 1
    assert (host.store.bindings, host.store.entries, host.store.snapshots) == ({}, {}, {})


@pytest.mark.parametrize("saved", [True, False])
def test_lim3_results_that_become_tasks_have_room_for_so_many(saved: bool) -> None:
    """Those count whose binding is on its way to the store, and no others."""
    host = make_proxy(bridging=True, limits=ProxyLimits(promoted=2))
    exchanges = [call(host, **BRIDGED) for _ in range(3)]
    host.held = True
    for _ in exchanges:
        host.answer("tools/call", DONE)
    assert [type(one).__name__ for one in host.asked] == ["DrawRandom", "DrawRandom"]
    assert reason(host.reply_to(exchanges.pop())) == "promoted"
    for exchange in exchanges:
        host.answer_next()
        saving = host.asked.pop()
        host.give(host.store.answer(saving) if saved else SaveFailed(saving.token))
        if saved:
            host.give(host.store.answer(host.asked.pop()))
            assert result(host.reply_to(exchange))["resultType"] == "task"
        else:
            assert reason(host.reply_to(exchange)) == "binding_not_stored"
    exchanges = [call(host, **BRIDGED) for _ in range(3)]
    for _ in exchanges:
        host.answer("tools/call", DONE)
    assert len(host.asked) == 2
    assert reason(host.reply_to(exchanges.pop())) == "promoted"


def test_prx_row_6_a_task_that_nobody_asked_for_is_invalid_and_cancelled() -> None:
    host = make_proxy()
    exchange = call(host, tasks=False)
    host.answer("tools/call", create())
    assert reason(host.reply_to(exchange)) == "upstream_unasked_task"
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK
    assert not host.store.bindings
    call(host)
    assert methods(host).count("server/discover") == 2, "a contradicting result drops the discovery (PRX.2)"


def test_prx_row_6_nor_may_another_method_make_one() -> None:
    host = make_proxy()
    exchange = host.request("prompts/get", {"name": "p"})
    discover(host)
    host.answer("prompts/get", create())
    assert reason(host.reply_to(exchange)) == "upstream_unasked_task"
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK


# -- PRX.1 -------------------------------------------------------------------------------------------------


def test_prx1_the_proxy_declares_itself_and_hop_keys_are_minted_anew() -> None:
    host = make_proxy()
    meta = {
        CLIENT_INFO: {"name": "the caller", "version": "9"},
        PROGRESS_TOKEN: "caller's",
        "traceparent": "00-trace",
        "app.example/x": {"a": 1},
    }
    call(host, meta=meta, capabilities={"elicitation": {}, "sampling": {}, "experimental": {"x": {}}})
    sent = host.waiting("tools/call")
    assert sent.message["params"]["_meta"] == {
        "traceparent": "00-trace",
        "app.example/x": {"a": 1},
        PROTOCOL_VERSION: "2026-07-28",
        CLIENT_INFO: PROXY,
        CLIENT_CAPABILITIES: {"elicitation": {"form": {}}, "extensions": {TASKS_EXTENSION: {}}},
        PROGRESS_TOKEN: sent.request,
    }


def test_prx1_other_extensions_go_up_where_caller_proxy_and_upstream_agree() -> None:
    host = make_proxy(extensions=frozenset({"a", "b"}))
    offered = {"extensions": {"a": {"x": 1}, "b": {}, "c": {}}}
    host.request("tools/call", {"name": "render"}, capabilities=offered)
    discover(host, capabilities={"extensions": {"a": {}, "c": {}}})
    assert declared(host)["extensions"] == {"a": {"x": 1}, TASKS_EXTENSION: {}}
    call(host, capabilities={"extensions": {"c": {}}})
    assert declared(host)["extensions"] == {TASKS_EXTENSION: {}}
    call(host, capabilities={}, tasks=False)
    assert declared(host) == {}


def test_prx8_params_go_up_whole_within_bounds() -> None:
    host = make_proxy(limits=ProxyLimits(meta_bytes=100, meta_depth=2))
    params = {
        "name": "render",
        "arguments": {"deep": [[[[1]]]], "long": "x" * 500},
        "app": {"x": 1},
        "deep": [[[1]]],
        "long": "y" * 500,
        "task": {"ttl": 1},
    }
    host.request("tools/call", params)
    discover(host)
    sent = sent_up(host, "tools/call")[0]
    del sent["_meta"]
    assert sent == {"name": "render", "arguments": params["arguments"], "app": {"x": 1}, "task": {"ttl": 1}}


# -- PRX.2 -------------------------------------------------------------------------------------------------


def test_prx2_a_discovery_is_asked_for_once_and_shared_by_all_who_wait() -> None:
    host = make_proxy()
    first = host.request("tools/call", {"name": "render"})
    second = host.request("tools/call", {"name": "render"})
    assert methods(host) == ["server/discover"]
    discover(host)
    for exchange in (first, second):
        host.answer("tools/call", DONE)
        assert view(host.reply_to(exchange)) == DONE
    call(host)
    assert methods(host).count("server/discover") == 1


def test_prx2_a_discovery_is_kept_no_longer_than_it_may_be() -> None:
    host = make_proxy()
    host.request("tools/call", {"name": "render"})
    discover(host, ttl_ms=1000)
    host.advance(1000)
    call(host)
    assert methods(host).count("server/discover") == 2


def test_prx2_each_authorization_has_its_own() -> None:
    host = make_proxy()
    for name in ("alice's", "bob's"):
        call(host, access=Access(authorizations={"renderer": name}))
    asked = [
        sent.authorization for sent in host.of(SendUpstream) if sent.message["method"] == "server/discover"
    ]
    assert asked == ["alice's", "bob's"]
    assert host.waiting("tools/call").authorization == "alice's"


@pytest.mark.parametrize("code", [-32021, -32022, -32601])
def test_prx2_an_error_that_contradicts_it_drops_it(code: int) -> None:
    host = make_proxy()
    call(host)
    host.refuse("tools/call", {"code": code, "message": "no", "data": {"requiredCapabilities": {}}})
    call(host)
    assert methods(host).count("server/discover") == 2


def test_prx2_one_that_is_contradicted_while_it_is_asked_for_is_not_kept() -> None:
    host = make_proxy()
    host.request("tools/call", {"name": "render"})
    discover(host, ttl_ms=1000)
    host.advance(1000)
    waiting = host.request("tools/call", {"name": "render"})
    host.refuse("tools/call", NEEDS_TASKS)
    discover(host)
    host.answer("tools/call", DONE)
    assert view(host.reply_to(waiting)) == DONE
    host.request("tools/call", {"name": "render"})
    assert methods(host).count("server/discover") == 3


def test_prx2_all_pages_of_the_tool_list_are_read() -> None:
    host = make_proxy(limits=ProxyLimits(tool_pages=2))
    exchange = host.request("tools/call", {"name": "second"})
    host.answer("server/discover", {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    host.answer("tools/list", {"tools": [{"name": "first"}], "nextCursor": "more"})
    assert sent_up(host, "tools/list")[1]["cursor"] == "more"
    host.answer("tools/list", {"tools": [{"name": "second"}], "nextCursor": "and more"})
    host.answer("tools/call", DONE)
    assert view(host.reply_to(exchange)) == DONE


def test_prx2_an_upstream_without_tools_is_not_asked_for_them() -> None:
    host = make_proxy()
    exchange = host.request("tools/call", {"name": "render"})
    host.answer("server/discover", {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    assert error(host.reply_to(exchange))["code"] == -32602


@pytest.mark.parametrize(
    ("what", "why"),
    [("refused", "upstream_refused"), ("nonsense", "upstream_invalid"), ("down", "upstream_unavailable")],
)
def test_prx2_without_a_discovery_nothing_is_called(what: str, why: str) -> None:
    host = make_proxy()
    exchange = host.request("tools/call", {"name": "render"})
    if what == "refused":
        host.refuse("server/discover", {"code": -32601, "message": "Method not found"})
    elif what == "nonsense":
        host.answer("server/discover", {"hello": "world"})
    else:
        for _ in range(3):
            host.fail("server/discover")
    assert reason(host.reply_to(exchange)) == why
    assert "tools/call" not in methods(host)


# -- PRX.3 -------------------------------------------------------------------------------------------------


def test_prx3_what_is_on_the_task_path_says_so() -> None:
    """Trap 29: no cache, no merging, no retries and no cutting, also where it completes at once."""
    host = make_proxy()
    call(host)
    assert host.waiting("tools/call").task_path
    host.answer("tools/call", DONE)
    call(host, tasks=False)
    assert not host.waiting("tools/call").task_path


# -- PRX.4 -------------------------------------------------------------------------------------------------


def test_prx4_a_call_that_was_not_sent_is_sent_again() -> None:
    host = make_proxy(limits=ProxyLimits(attempts=2))
    exchange = call(host)
    host.fail("tools/call", sent=False)
    host.fail("tools/call", sent=False)
    assert methods(host).count("tools/call") == 2
    failed = error(host.reply_to(exchange))
    assert failed["data"] == {"reason": "upstream_unavailable", "retryable": True}


def unknown_outcomes(host: ProxyHost, how: str, method: str = "tools/call") -> None:
    name = host.waiting(method).request
    match how:
        case "connection broke":
            host.fail("tools/call")
        case "timed out":
            host.advance(300_000)
        case "garbage":
            host.give(UpstreamAnswered(request=name, message={"hello": "world"}))
        case "another's answer":
            host.give(UpstreamAnswered(request=name, message={"jsonrpc": "2.0", "id": 99, "result": {}}))
        case _:
            host.give(UpstreamAnswered(request=name, message=None, http_status=int(how)))


@pytest.mark.parametrize(
    "how", ["connection broke", "timed out", "garbage", "another's answer", "500", "503", "200", "429"]
)
def test_prx4_a_call_that_was_sent_is_never_sent_again(how: str) -> None:
    host = make_proxy()
    exchange = call(host)
    unknown_outcomes(host, how)
    failed = error(host.reply_to(exchange))
    assert failed["code"] == -32603
    assert failed["data"] == {"reason": "outcome_unknown", "retryable": False}
    assert methods(host).count("tools/call") == 1


def test_prx4_other_methods_do_nothing_that_must_not_be_done_twice() -> None:
    host = make_proxy()
    exchange = host.request("prompts/get", {"name": "p"})
    discover(host)
    host.fail("prompts/get")
    assert error(host.reply_to(exchange))["data"] == {"reason": "upstream_unavailable", "retryable": True}
    exchange = host.request("prompts/get", {"name": "p"})
    unknown_outcomes(host, "another's answer", "prompts/get")
    assert reason(host.reply_to(exchange)) == "upstream_invalid"


@pytest.mark.parametrize("status", [401, 403, 404, 415])
def test_a_refusal_of_the_transport_is_the_proxys_trouble(status: int) -> None:
    host = make_proxy()
    exchange = call(host)
    name = host.waiting("tools/call").request
    host.give(UpstreamAnswered(request=name, message=None, http_status=status))
    assert reason(host.reply_to(exchange)) == "upstream_refused"


def test_lim3_there_is_room_for_so_many_requests_to_upstreams() -> None:
    host = make_proxy(limits=ProxyLimits(upstream_requests=1))
    call(host)
    exchange = call(host)
    assert error(host.reply_to(exchange))["data"] == {"reason": "upstream_unavailable", "retryable": True}
    assert methods(host).count("tools/call") == 1


def test_prx4_a_slow_call_lives_on_signs_of_life_but_not_for_ever() -> None:
    host = make_proxy(limits=ProxyLimits(call_timeout_ms=1000, longest_call_ms=2500))
    exchange = call(host)
    for _ in range(2):
        host.advance(900)
        host.notify("tools/call", "notifications/progress", {"progress": 1})
    host.advance(699)
    assert not host.of(StopUpstream)
    host.advance(1)
    assert len(host.of(StopUpstream)) == 1
    assert reason(host.reply_to(exchange)) == "outcome_unknown"


# -- PRX.6: tasks that cannot be handed out ----------------------------------------------------------------


@pytest.mark.parametrize("answer", [SaveFailed, "tasks"])
def test_prx6_a_binding_that_is_not_durable_is_not_handed_out(answer: Any) -> None:
    host = make_proxy(limits=ProxyLimits(tasks=1))
    if answer == "tasks":
        handed_out(host)
    exchange = call(host, principal="bob")
    host.held = True
    host.answer("tools/call", create("up-2"))
    host.answer_next()
    (saving,) = host.asked
    assert isinstance(saving, SaveBinding)
    with pytest.raises(LookupError):
        host.reply_to(exchange)
    host.give(host.store.answer(saving) if answer == "tasks" else SaveFailed(saving.token))
    failed = error(host.reply_to(exchange))
    assert failed["code"] == -32603
    assert failed["data"]["reason"] == ("tasks" if answer == "tasks" else "binding_not_stored")
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == "up-2"


def test_lim3_a_principal_has_room_for_so_many_tasks() -> None:
    host = make_proxy(limits=ProxyLimits(tasks_per_principal=1))
    handed_out(host)
    exchange = call(host, principal="alice")
    host.answer("tools/call", create("up-2"))
    assert reason(host.reply_to(exchange)) == "tasks_per_principal"
    handed_out(host, "up-3", principal="bob")


def test_prx6_the_binding_is_durable_before_the_handle_is_released() -> None:
    host = make_proxy()
    exchange = call(host)
    host.held = True
    host.answer("tools/call", create())
    assert [type(one).__name__ for one in host.asked] == ["DrawRandom"]
    host.answer_next()
    (saving,) = host.asked
    with pytest.raises(LookupError):
        host.reply_to(exchange)
    host.give(Saved(saving.token))
    assert result(host.reply_to(exchange))["taskId"] == saving.entry.handle  # type: ignore[union-attr]


def test_trap26_a_caller_who_leaves_before_the_handle_leaves_no_orphan() -> None:
    host = make_proxy()
    exchange = call(host)
    host.held = True
    host.answer("tools/call", create())
    host.answer_next()
    host.give(ExchangeClosed(exchange))
    host.held = False
    host.answer_next()
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK
    assert len(host.of(DropTask)) == 1
    assert not host.store.bindings
    assert not host.store.entries


def test_prx7_an_orphan_is_cancelled_under_the_authorization_that_made_it() -> None:
    host = make_proxy()
    exchange = call(host, access=Access(authorizations={"renderer": "alice's"}))
    host.held = True
    host.answer("tools/call", create())
    host.give(ExchangeClosed(exchange))
    host.held = False
    host.answer_next()
    assert host.waiting("tasks/cancel").authorization == "alice's"


def test_prx6_a_task_of_an_upstream_that_is_not_configured_any_more_is_known_by_its_name() -> None:
    host = make_proxy()
    exchange = call(host)
    host.give(SettingsChanged(make_settings(Upstream(name="other"))))
    host.answer("tools/call", create())
    handle = result(host.reply_to(exchange))["taskId"]
    assert host.store.entries[handle].upstream == "renderer"


@pytest.mark.parametrize("longest", [43, 42])
def test_lim3_a_handle_may_be_so_long(longest: int) -> None:
    host = make_proxy(limits=ProxyLimits(handle_chars=longest))
    exchange = call(host)
    host.answer("tools/call", create())
    if longest == 43:
        assert len(result(host.reply_to(exchange))["taskId"]) == 43
    else:
        assert reason(host.reply_to(exchange)) == "handle_chars"
        assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK


def test_trap26_a_save_that_fails_after_the_caller_has_left() -> None:
    host = make_proxy()
    exchange = call(host)
    host.held = True
    host.answer("tools/call", create())
    host.answer_next()
    host.give(ExchangeClosed(exchange))
    host.give(SaveFailed(host.asked[0].token))
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK


def test_can7_a_caller_who_leaves_takes_its_request_along() -> None:
    host = make_proxy()
    exchange = call(host)
    name = host.waiting("tools/call").request
    host.give(ExchangeClosed(exchange))
    assert host.of(StopUpstream) == [StopUpstream(name)]
    assert host.give(UpstreamAnswered(request=name, message=None)) == [], "it may still be answered"
    host.give(ExchangeClosed(exchange))


def test_a_caller_who_leaves_during_discovery_has_nothing_called() -> None:
    host = make_proxy()
    exchange = host.request("tools/call", {"name": "render"})
    host.give(ExchangeClosed(exchange))
    discover(host)
    assert "tools/call" not in methods(host)


@pytest.mark.parametrize(
    ("changed", "cancelled"),
    [
        ({"taskId": ""}, None),
        ({"taskId": 7}, None),
        ({"taskId": "x" * 4097}, None),
        ({"status": "sleeping"}, UPSTREAM_TASK),
        ({"createdAt": 7}, UPSTREAM_TASK),
        ({"status": "sleeping", "taskId": "x"}, "x"),
        ({"status": "sleeping", "taskId": "x" * 4096}, "x" * 4096),
    ],
)
def test_trap25_an_invalid_envelope_is_rejected_and_its_task_cancelled(
    changed: dict[str, Any], cancelled: str | None
) -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", {**create(), **changed})
    assert reason(host.reply_to(exchange)) == "upstream_invalid"
    assert [params["taskId"] for params in sent_up(host, "tasks/cancel")] == (
        [cancelled] if cancelled else []
    )


def test_life3_a_create_result_carries_no_payload_whatever_came_up_with_it() -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer(
        "tools/call", create(status="completed", result={"x": 1}, error="?", inputRequests=7, requestState=8)
    )
    handed = view(host.reply_to(exchange))
    assert handed["status"] == "completed"
    assert not {"result", "error", "inputRequests", "requestState"} & set(handed)


@pytest.mark.parametrize("wrong", ["stream", None, 7])
def test_an_unknown_result_type_is_invalid(wrong: Any) -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", {"resultType": wrong})
    assert reason(host.reply_to(exchange)) == "upstream_invalid"


def test_an_orphan_is_told_a_few_times() -> None:
    host = make_proxy(limits=ProxyLimits(attempts=3, first_backoff_ms=100))
    call(host, tasks=False)
    host.answer("tools/call", create())
    for wait in (100, 200):
        host.fail("tasks/cancel")
        host.advance(wait - 1)
        assert not [sent for sent in host.in_flight.values() if sent.message["method"] == "tasks/cancel"]
        host.advance(1)
    host.fail("tasks/cancel")
    host.advance(60_000)
    assert methods(host).count("tasks/cancel") == 3


def test_the_pause_between_two_tries_is_doubled_up_to_the_longest() -> None:
    limits = ProxyLimits(attempts=25, first_backoff_ms=1, last_backoff_ms=1_000_000)
    host = make_proxy(limits=limits)
    call(host, tasks=False)
    host.answer("tools/call", create())
    for doubled in range(24):
        host.fail("tasks/cancel")
        host.advance(min(2**doubled, 1_000_000) - 1)
        assert methods(host).count("tasks/cancel") == doubled + 1
        host.advance(1)
        assert methods(host).count("tasks/cancel") == doubled + 2


def test_an_orphan_whose_upstream_knows_is_left_alone() -> None:
    host = make_proxy()
    call(host, tasks=False)
    host.answer("tools/call", create())
    host.refuse("tasks/cancel", {"code": -32602, "message": "Task not found"})
    host.advance(60_000)
    assert methods(host).count("tasks/cancel") == 1


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-32603, -32602, 7])
def test_a_tools_own_error_is_relayed_exactly(code: int) -> None:
    host = make_proxy()
    exchange = call(host)
    failed = {"code": code, "message": "no", "data": {"x": [1]}}
    host.refuse("tools/call", failed)
    assert error(host.reply_to(exchange)) == failed


@pytest.mark.parametrize("code", [-32700, -32600, -32020, -32022, -32601])
def test_an_error_about_how_the_proxy_speaks_is_the_proxys(code: int) -> None:
    host = make_proxy()
    exchange = call(host)
    host.refuse("tools/call", {"code": code, "message": "secret detail of the upstream"})
    assert reason(host.reply_to(exchange)) == "upstream_refused"


def test_a_drafts_32003_reads_as_32021() -> None:
    host = make_proxy()
    exchange = call(host, tasks=False)
    host.refuse("tools/call", {**NEEDS_TASKS, "code": -32003})
    assert error(host.reply_to(exchange)) == NEEDS_TASKS


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"name": "nobody"}, "unknown tool: nobody"),
        ({"name": "delete"}, "unknown tool: delete"),
        ({"name": 7}, "name must be a string"),
        ({}, "name is missing"),
    ],
)
def test_a_tool_that_is_not_there_or_not_allowed_is_unknown(params: dict[str, Any], text: str) -> None:
    host = make_proxy(profiles={"default": ToolProfile(tools=frozenset({"render", "nobody"}))})
    exchange = host.request("tools/call", params)
    if params == {"name": "nobody"}:
        discover(host, "render", "delete")
    assert error(host.reply_to(exchange)) == {"code": -32602, "message": f"Invalid params: {text}"}


def test_prx7_a_tool_that_is_withdrawn_while_its_upstream_is_asked_what_it_is() -> None:
    host = make_proxy()
    exchange = host.request("tools/call", {"name": "render"})
    host.give(SettingsChanged(make_settings(profiles={"default": ToolProfile(tools=frozenset())})))
    discover(host)
    assert error(host.reply_to(exchange)) == {
        "code": -32602,
        "message": "Invalid params: unknown tool: render",
    }
    assert "tools/call" not in methods(host)


# -- PRX.9 ---------------------------------------------------------------------------------------------------

MIRRORED = {
    "name": "mirror",
    "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}


def mirror(host: ProxyHost, arguments: Mapping[str, Any], **changed: str) -> int:
    """Call the tool that mirrors an argument, over HTTP."""
    message = request("tools/call", {"name": "mirror", "arguments": arguments})
    exchange = host.send(message, http=head(message, **changed))
    if any(sent.message["method"] == "server/discover" for sent in host.in_flight.values()):
        discover(host, definitions=[MIRRORED])
    return exchange


def test_prx9_headers_are_checked_inbound_and_written_anew_outbound() -> None:
    host = make_proxy()
    exchange = mirror(host, {"region": "eu"})
    assert error(host.reply_to(exchange))["code"] == -32020
    mirror(host, {"region": "eu"}, mcp_param_region="eu")
    sent = host.waiting("tools/call")
    headers = request_headers("tools/call", sent.message["params"], "2026-07-28", sent.parameters)
    assert ("Mcp-Param-Region", "eu") in headers
    assert ("Mcp-Name", "mirror") in headers


def test_prx9_without_headers_there_is_nothing_to_check() -> None:
    host = make_proxy()
    host.request("tools/call", {"name": "mirror", "arguments": {"region": "eu"}})
    discover(host, definitions=[MIRRORED])
    assert sent_up(host, "tools/call")[0]["arguments"] == {"region": "eu"}


def test_prx9_a_wrong_name_in_the_header_is_refused() -> None:
    host = make_proxy()
    exchange = mirror(host, {}, mcp_name="other")
    assert error(host.reply_to(exchange))["code"] == -32020
    assert methods(host) == []


# -- PRX.15 --------------------------------------------------------------------------------------------------


def two() -> ProxyHost:
    return make_proxy(Upstream(name="first"), Upstream(name="second", label="The second"))


def test_prx15_a_call_goes_to_the_upstream_that_its_name_begins_with() -> None:
    host = two()
    exchange = host.request("tools/call", {"name": "second__render"}, principal="alice")
    discover(host)
    sent = host.waiting("tools/call")
    assert (sent.upstream, sent.message["params"]["name"]) == ("second", "render")
    host.answer("tools/call", create())
    handle = result(host.reply_to(exchange))["taskId"]
    assert host.store.bindings[handle].tool == "second__render"
    assert host.store.entries[handle].upstream == "The second"
    exchange = host.request("tasks/get", {"taskId": handle}, principal="alice")
    assert host.waiting("tasks/get").upstream == "second"


def test_prx15_other_methods_are_for_an_only_upstream() -> None:
    host = two()
    assert error(host.reply_to(host.request("prompts/list")))["code"] == -32601
    host = make_proxy()
    exchange = host.request("prompts/list", {"cursor": "c"})
    discover(host)
    assert sent_up(host, "prompts/list")[0]["cursor"] == "c"
    host.answer("prompts/list", {"prompts": [], "ttlMs": 5, "_meta": {SERVER_INFO: {"name": "hidden"}}})
    assert result(host.reply_to(exchange)) == {
        "resultType": "complete",
        "prompts": [],
        "ttlMs": 5,
        "_meta": {SERVER_INFO: PROXY},
    }


def test_prx7_a_caller_without_authorization_sees_no_upstream() -> None:
    host = make_proxy()
    nothing = Access(authorizations={})
    refused = error(host.reply_to(host.request("prompts/list", access=nothing)))
    assert refused == {"code": -32601, "message": "Method not found: prompts/list"}
    assert (
        error(host.reply_to(host.request("tools/call", {"name": "render"}, access=nothing)))["code"] == -32602
    )
    assert methods(host) == []


def test_an_unknown_method_is_32601() -> None:
    host = make_proxy()
    for method in ("tasks/list", "tasks/result", "nonsense"):
        assert error(host.reply_to(host.request(method)))["code"] == -32601


# -- on the way ----------------------------------------------------------------------------------------------


def test_progress_comes_down_under_the_callers_own_token() -> None:
    host = make_proxy()
    exchange = call(host, meta={PROGRESS_TOKEN: "mine"})
    host.notify("tools/call", "notifications/progress", {"progressToken": 3, "progress": 1})
    params = {"progressToken": "mine", "progress": 1}
    told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    assert host.sent_on(exchange) == [told]


def test_log_messages_come_down_where_they_were_asked_for() -> None:
    host = make_proxy()
    silent, listening = call(host), call(host, meta={LOG_LEVEL: "info"})
    for sent in list(host.in_flight):
        for method in ("notifications/message", "notifications/progress", "notifications/other"):
            message = {"jsonrpc": "2.0", "method": method, "params": {"level": "info", "data": "x"}}
            host.give(UpstreamNotified(sent, message))
        host.give(UpstreamNotified(sent, {"nonsense": 1}))
    assert host.sent_on(silent) == []
    params = {"level": "info", "data": "x"}
    assert host.sent_on(listening) == [
        {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    ]


def test_a_caller_that_takes_no_stream_gets_no_notifications() -> None:
    host = make_proxy()
    call(host)
    message = request("tools/call", {"name": "render"}, meta={PROGRESS_TOKEN: 1, LOG_LEVEL: "info"})
    exchange = host.send(message, http=evolve(head(message), accepts_stream=False))
    assert PROGRESS_TOKEN not in sent_up(host, "tools/call")[1]["_meta"]
    host.give(UpstreamAnswered(request=host.waiting("tools/call").request, message=None))
    host.notify("tools/call", "notifications/message", {"level": "info", "data": "x"})
    assert host.sent_on(exchange) == []


def test_lim3_a_caller_that_reads_slowly_gets_the_latest_and_bounded_logs() -> None:
    host = make_proxy()
    exchange = call(host, meta={PROGRESS_TOKEN: 1, LOG_LEVEL: "info"})
    for number in range(100):
        host.notify("tools/call", "notifications/progress", {"progress": number})
        host.notify("tools/call", "notifications/message", {"level": "info", "data": number})
    host.give(StreamReady(exchange))
    assert [one["params"].get("progress") for one in host.sent_on(exchange)] == [0, 99]
    host.answer("tools/call", DONE)
    assert len(host.sent_on(exchange)) == 2 + 64


def test_policy_decides_which_kinds_of_input_go_up() -> None:
    host = make_proxy(input_kinds=frozenset({InputKind.SAMPLING}))
    call(host, capabilities={"elicitation": {}, "sampling": {}})
    assert "sampling" in declared(host)
    assert "elicitation" not in declared(host)


def test_his1_a_task_is_created_once_in_the_ledger() -> None:
    host = make_proxy()
    access = Access(project="film", caller="Alice's laptop", api_key=True)
    handle = handed_out(host, access=access)
    entry = host.store.entries[handle]
    assert (entry.project, entry.owner, entry.caller, entry.api_key) == (
        "film",
        "alice",
        "Alice's laptop",
        True,
    )
    assert (entry.upstream, entry.tool, entry.created_at_ms) == ("renderer", "render", START)


def test_neg10_a_method_that_the_upstream_does_not_have_is_unknown() -> None:
    host = make_proxy()
    exchange = host.request("prompts/list")
    discover(host)
    host.refuse("prompts/list", {"code": -32601, "message": "Method not found: elsewhere/list"})
    assert error(host.reply_to(exchange)) == {"code": -32601, "message": "Method not found: prompts/list"}
