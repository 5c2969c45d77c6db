"""What callers ask about their tasks: PRX.4, PRX.7, PRX.8, PRX.10 to PRX.13, HIS.1, and the errors of PRX."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import ExchangeClosed, LoadFailed, SaveFailed
from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.proxy import (
    Access,
    InputKind,
    ProxyLimits,
    SettingsChanged,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
)
from mcp_tasks_proto.testing import ProxyHost
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, RELATED_TASK, SERVER_INFO
from tests.unit.proxy_world import (
    DONE,
    LATER,
    UPSTREAM_TASK,
    ask,
    call,
    completed,
    create,
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
from tests.unit.world import ACCEPTED, DECLINED, form

UNKNOWN = {"code": -32602, "message": "Task not found"}
PROXY = {"name": "proxy", "version": "1"}


def one_task(**settings: Any) -> tuple[ProxyHost, str]:
    host = make_proxy(**settings)
    return host, handed_out(host)


def parked(*keys: str, **requests: Any) -> dict[str, Any]:
    """Return the view of a task that asks for input."""
    asked = {**{key: form() for key in keys}, **requests}
    return task("input_required", lastUpdatedAt=LATER, inputRequests=asked)


def update(host: ProxyHost, handle: str, responses: dict[str, Any], **facts: Any) -> int:
    return ask(host, "tasks/update", handle, params={"inputResponses": responses}, **facts)


# -- get: PRX.8, PRX.12, PRX.13 ----------------------------------------------------------------------------


def test_prx8_a_view_names_the_handle_wherever_it_names_the_task() -> None:
    host, handle = one_task()
    seen = task(
        "input_required",
        statusMessage=f"{UPSTREAM_TASK} waits",
        inputRequests={"a": form(_meta={RELATED_TASK: {"taskId": UPSTREAM_TASK}})},
        app={"note": f"see {UPSTREAM_TASK}"},
        _meta={RELATED_TASK: {"taskId": UPSTREAM_TASK}, SERVER_INFO: {"name": "hidden"}},
    )
    reply = get(host, handle, seen)
    assert UPSTREAM_TASK not in str(reply)
    shown = view(reply)
    assert shown["taskId"] == handle
    assert shown["statusMessage"] == f"{handle} waits"
    assert shown["app"] == {"note": f"see {handle}"}
    assert shown["inputRequests"]["a"]["params"]["_meta"] == {RELATED_TASK: {"taskId": handle}}
    assert result(reply)["_meta"] == {SERVER_INFO: PROXY}


def test_prx8_a_result_is_untouched_and_named_the_proxys() -> None:
    host, handle = one_task()
    content = {
        "content": [{"type": "text", "text": f"made by {UPSTREAM_TASK}"}],
        "_meta": {SERVER_INFO: {"name": "hidden"}},
    }
    shown = view(get(host, handle, task("completed", result=content)))
    assert shown["result"] == {
        "content": content["content"],
        "_meta": {SERVER_INFO: PROXY},
        "resultType": "complete",
    }


def test_prx_a_failed_task_is_a_successful_get_with_that_exact_error() -> None:
    host, handle = one_task()
    failed = {"code": 7, "message": f"{UPSTREAM_TASK} broke", "data": {"x": [1]}}
    shown = view(get(host, handle, task("failed", error=failed)))
    assert shown["error"] == {"code": 7, "message": f"{handle} broke", "data": {"x": [1]}}
    assert shown["statusMessage"] == f"{handle} broke"


def test_prx9_the_upstream_hears_its_own_id_and_what_the_call_declared() -> None:
    host, handle = one_task()
    get(host, handle, task(), capabilities={})
    params = sent_up(host, "tasks/get")[0]
    assert params["taskId"] == UPSTREAM_TASK
    assert params["_meta"][CLIENT_CAPABILITIES]["elicitation"] == {"form": {}}
    assert [sent.task_path for sent in host.effects if hasattr(sent, "task_path")][-1]


@pytest.mark.parametrize(
    ("ttl_ms", "told"), [(None, 3_600_000), (60_000, 60_000), (2**53, 3_600_000), (3_600_001, 3_600_000)]
)
def test_prx12_a_lifetime_is_clamped_to_what_the_proxy_keeps(ttl_ms: Any, told: int) -> None:
    host, handle = one_task(limits=ProxyLimits(keep_ms=3_600_000))
    assert view(get(host, handle, task(ttlMs=ttl_ms)))["ttlMs"] == told


@pytest.mark.parametrize(("hint", "told"), [(1, 500), (501, 501), (0, 500), (-1, 500)])
def test_prx12_a_poll_hint_is_raised_to_the_floor(hint: int, told: int) -> None:
    host, handle = one_task()
    assert view(get(host, handle, task(pollIntervalMs=hint)))["pollIntervalMs"] == told


def test_prx13_an_end_is_served_from_then_on_and_never_changes() -> None:
    host, handle = one_task()
    first = get(host, handle, completed())
    again = get(host, handle)
    assert again == first
    assert methods(host).count("tasks/get") == 1
    assert host.store.snapshots[handle].view["result"]["content"] == DONE["content"]


def test_prx13_the_first_end_stands_whatever_comes_later() -> None:
    """Two polls at once, and an upstream that changes its mind between them."""
    host, handle = one_task()
    first, second = ask(host, "tasks/get", handle), ask(host, "tasks/get", handle)
    host.answer("tasks/get", completed())
    host.answer("tasks/get", task("cancelled", lastUpdatedAt=LATER))
    assert view(host.reply_to(second)) == view(host.reply_to(first))


def test_prx13_an_end_outlives_its_upstream() -> None:
    host, handle = one_task(limits=ProxyLimits(keep_ms=60_000), retention=Retention(payload_ms=3_600_000))
    get(host, handle, completed(ttlMs=60_000))
    host.advance(3_599_999)
    assert view(get(host, handle))["status"] == "completed"
    assert error(get(host, handle, principal="bob")) == UNKNOWN, "rule 7 comes first"
    host.advance(1)
    assert error(get(host, handle)) == UNKNOWN


def test_prx13_no_view_but_an_end_is_ever_served_from_memory() -> None:
    host, handle = one_task()
    get(host, handle, task())
    exchange = ask(host, "tasks/get", handle)
    for _ in range(3):
        host.fail("tasks/get")
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


def test_prx13_a_store_that_cannot_keep_an_end_does_not_hide_it() -> None:
    host, handle = one_task()
    host.held = True
    exchange = ask(host, "tasks/get", handle)
    host.answer_next()
    host.answer("tasks/get", completed())
    host.give(SaveFailed(host.asked.pop().token))
    assert view(host.reply_to(exchange))["status"] == "completed"
    assert host.store.snapshots == {}


def test_prx13_an_end_that_is_past_its_retention_is_asked_for_again() -> None:
    host, handle = one_task(retention=Retention(payload_ms=1000))
    get(host, handle, completed())
    host.advance(1000)
    assert view(get(host, handle, completed()))["status"] == "completed"
    assert methods(host).count("tasks/get") == 2


def test_his4_nor_is_it_told_while_it_waits_to_be_removed() -> None:
    host, handle = one_task(retention=Retention(payload_ms=1000))
    get(host, handle, completed())
    host.advance(1000)
    told = view(get(host, handle, completed(statusMessage="what the upstream says now")))
    assert told["statusMessage"] == "what the upstream says now"


def test_ttl1_a_handle_expires() -> None:
    host, handle = one_task(limits=ProxyLimits(keep_ms=1000))
    host.now += 999
    assert view(get(host, handle, task()))["status"] == "working"
    host.now += 1
    assert error(get(host, handle)) == UNKNOWN
    assert methods(host).count("tasks/get") == 1


# -- what upstreams answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        task(task_id="another"),
        task("sleeping"),
        task("completed"),
        task("completed", result={"resultType": "task"}),
        task("failed"),
        task("input_required"),
        {"hello": "world"},
    ],
)
def test_prx_an_invalid_view_is_the_upstreams_fault(wrong: dict[str, Any]) -> None:
    host, handle = one_task()
    assert reason(get(host, handle, wrong)) == "upstream_invalid"
    assert host.store.snapshots == {}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (-32602, "upstream_lost_task"),
        (-32601, "upstream_refused"),
        (-32021, "upstream_refused"),
        (-32022, "upstream_refused"),
        (-32603, "upstream_unavailable"),
        (7, "upstream_unavailable"),
    ],
)
def test_prx_what_an_upstreams_error_means_to_a_proven_owner(method: str, code: int, why: str) -> None:
    host, handle = one_task()
    exchange = ask(host, method, handle)
    host.refuse(method, {"code": code, "message": f"upstream says {UPSTREAM_TASK}"})
    assert reason(host.reply_to(exchange)) == why
    assert UPSTREAM_TASK not in str(host.reply_to(exchange))


def test_prx_a_task_whose_time_is_over_has_expired_and_was_not_lost() -> None:
    host, handle = one_task()
    host.now += 60_000
    exchange = ask(host, "tasks/get", handle)
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    assert error(host.reply_to(exchange)) == UNKNOWN


def test_prx13_an_upstreams_unknown_never_erases_an_end() -> None:
    """An end that was kept while a poll was under way is there when that poll is refused."""
    host, handle = one_task()
    late, first = ask(host, "tasks/get", handle), ask(host, "tasks/get", handle)
    sent_late, sent_first = host.in_flight
    ended = {"jsonrpc": "2.0", "id": sent_first, "result": completed()}
    host.give(UpstreamAnswered(request=sent_first, message=ended))
    unknown = {"jsonrpc": "2.0", "id": sent_late, "error": {"code": -32602, "message": "Task not found"}}
    host.give(UpstreamAnswered(request=sent_late, message=unknown))
    assert view(host.reply_to(first))["status"] == "completed"
    assert view(host.reply_to(late)) == view(host.reply_to(first))


def test_prx13_a_store_that_fails_then_leaves_it_at_lost() -> None:
    host, handle = one_task()
    exchange = ask(host, "tasks/get", handle)
    host.held = True
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    host.give(LoadFailed(host.asked.pop().token))
    assert reason(host.reply_to(exchange)) == "upstream_lost_task"


def test_prx_garbage_and_transport_refusals() -> None:
    host, handle = one_task()
    for message, status, why in (
        ({"hello": 1}, 200, "upstream_invalid"),
        (None, 403, "upstream_refused"),
        ({"jsonrpc": "2.0", "error": {"code": -32600, "message": "x"}}, 400, "upstream_refused"),
    ):
        exchange = ask(host, "tasks/get", handle)
        name = host.waiting("tasks/get").request
        host.give(UpstreamAnswered(request=name, message=message, http_status=status))
        assert reason(host.reply_to(exchange)) == why


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_prx4_get_and_cancel_are_repeated_and_then_unavailable(method: str) -> None:
    host, handle = one_task(limits=ProxyLimits(attempts=2))
    exchange = ask(host, method, handle)
    host.fail(method)
    host.fail(method)
    assert methods(host).count(method) == 2
    assert error(host.reply_to(exchange))["data"] == {"reason": "upstream_unavailable", "retryable": True}


def test_prx4_what_timed_out_is_not_repeated() -> None:
    host, handle = one_task()
    exchange = ask(host, "tasks/get", handle)
    host.advance(30_000)
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"
    assert methods(host).count("tasks/get") == 1


def test_a_store_that_fails_is_the_proxys_trouble() -> None:
    host, handle = one_task()
    host.held = True
    exchange = ask(host, "tasks/get", handle)
    host.give(LoadFailed(host.asked.pop().token))
    assert error(host.reply_to(exchange))["data"] == {"reason": "store_unavailable", "retryable": True}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_caller_who_leaves_is_not_answered(method: str) -> None:
    host, handle = one_task()
    params = {"inputResponses": {"a": ACCEPTED}}
    host.held = True
    early = ask(host, method, handle, params=params)
    host.give(ExchangeClosed(early))
    host.held = False
    assert host.answer_next() == []
    late = ask(host, method, handle, params=params)
    host.give(ExchangeClosed(late))
    replies = len(host.effects)
    if method == "tasks/cancel":
        host.answer(method, {})
    else:
        host.answer("tasks/get", task())
    assert not any(type(effect).__name__ == "Reply" for effect in host.effects[replies:])


# -- update: PRX.10 ----------------------------------------------------------------------------------------


def test_prx10_answers_go_up_verbatim_for_outstanding_keys_only() -> None:
    host, handle = one_task()
    answer = {**ACCEPTED, "_meta": {"x": 1}, "more": [1]}
    exchange = update(host, handle, {"a": answer, "never": ACCEPTED})
    host.answer("tasks/get", parked("a", "b"))
    sent = sent_up(host, "tasks/update")[0]
    assert (sent["taskId"], sent["inputResponses"]) == (UPSTREAM_TASK, {"a": answer})
    host.answer("tasks/update", {"resultType": "complete"})
    assert view(host.reply_to(exchange)) == {}


def test_prx10_an_update_that_does_not_declare_the_kind_is_told_the_gap() -> None:
    host, handle = one_task()
    exchange = update(host, handle, {"a": ACCEPTED}, capabilities={})
    host.answer("tasks/get", parked("a"))
    refused = error(host.reply_to(exchange))
    assert refused["code"] == -32021
    assert refused["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert "tasks/update" not in methods(host)


def test_prx10_a_kind_that_nobody_declared_is_the_upstreams_fault_and_nothing_is_shown() -> None:
    host, handle = one_task()
    sampling = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    seen = parked("a", b=sampling)
    assert reason(get(host, handle, seen)) == "upstream_undeclared_input"
    exchange = update(host, handle, {"a": ACCEPTED})
    host.answer("tasks/get", seen)
    assert reason(host.reply_to(exchange)) == "upstream_undeclared_input"


def test_prx10_other_kinds_pass_by_policy() -> None:
    host = make_proxy(input_kinds=frozenset(InputKind))
    handle = handed_out(host, capabilities={"sampling": {}})
    sampling = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    shown = view(get(host, handle, parked(b=sampling), capabilities={}))
    assert shown["inputRequests"] == {"b": sampling}


def test_prx10_an_empty_list_of_requests_is_shown_as_one() -> None:
    host, handle = one_task()
    assert view(get(host, handle, parked()))["inputRequests"] == {}


def test_upd4_an_answer_that_does_not_fit_its_request_stays_here() -> None:
    host, handle = one_task()
    exchange = update(host, handle, {"a": {"action": "perhaps"}, "b": DECLINED})
    host.answer("tasks/get", parked("a", "b"))
    assert error(host.reply_to(exchange))["code"] == -32602
    assert "tasks/update" not in methods(host)


def test_upd4_an_upstream_that_is_stricter_is_heard() -> None:
    host, handle = one_task()
    exchange = update(host, handle, {"a": ACCEPTED})
    host.answer("tasks/get", parked("a"))
    refusal = {"code": -32602, "message": f"{UPSTREAM_TASK}: a is too short", "data": {"key": "a"}}
    host.refuse("tasks/update", refusal)
    assert error(host.reply_to(exchange)) == {**refusal, "message": f"{handle}: a is too short"}


@pytest.mark.parametrize("code", [-32603, -32601])
def test_prx_an_update_that_an_upstream_refuses(code: int) -> None:
    host, handle = one_task()
    exchange = update(host, handle, {"a": ACCEPTED})
    host.answer("tasks/get", parked("a"))
    host.refuse("tasks/update", {"code": code, "message": "no"})
    assert reason(host.reply_to(exchange)) in ("upstream_unavailable", "upstream_refused")


def test_prx4_an_update_is_repeated_with_identical_keys_only() -> None:
    host, handle = one_task()
    exchange = update(host, handle, {"a": ACCEPTED, "b": DECLINED})
    host.answer("tasks/get", parked("a", "b"))
    host.fail("tasks/update")
    first, second = (params["inputResponses"] for params in sent_up(host, "tasks/update"))
    assert first == second == {"a": ACCEPTED, "b": DECLINED}
    host.answer("tasks/update", {})
    assert view(host.reply_to(exchange)) == {}


@pytest.mark.parametrize("responses", [{}, {"never": ACCEPTED}])
def test_trap1_an_update_that_answers_nothing_is_acknowledged(responses: dict[str, Any]) -> None:
    host, handle = one_task()
    exchange = update(host, handle, responses)
    if responses:
        host.answer("tasks/get", parked("a"))
    assert view(host.reply_to(exchange)) == {}
    assert "tasks/update" not in methods(host)


def test_upd5_an_update_after_the_end_is_acknowledged() -> None:
    host, handle = one_task()
    get(host, handle, completed())
    assert view(host.reply_to(update(host, handle, {"a": ACCEPTED}))) == {}
    assert "tasks/update" not in methods(host)


@pytest.mark.parametrize("params", [{}, {"inputResponses": 7}])
def test_params_that_do_not_fit_are_refused(params: dict[str, Any]) -> None:
    host, handle = one_task()
    assert (
        "inputResponses" in error(host.reply_to(ask(host, "tasks/update", handle, params=params)))["message"]
    )
    exchange = host.request("tasks/update", {"taskId": 7, **params})
    assert error(host.reply_to(exchange)) == UNKNOWN


# -- cancel: PRX.7, PRX.11 ---------------------------------------------------------------------------------


def test_prx11_a_cancel_is_acknowledged_and_no_status_is_made_up() -> None:
    host, handle = one_task()
    exchange = ask(host, "tasks/cancel", handle)
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK
    host.answer("tasks/cancel", {"resultType": "complete", "status": "cancelled"})
    assert view(host.reply_to(exchange)) == {}
    assert view(get(host, handle, task()))["status"] == "working", "the binding stays"


def test_prx11_a_cancel_after_the_end_is_acknowledged() -> None:
    host, handle = one_task()
    get(host, handle, completed())
    assert view(host.reply_to(ask(host, "tasks/cancel", handle))) == {}
    assert "tasks/cancel" not in methods(host)


def test_trap28_a_withdrawn_tool_is_unknown_but_can_be_cancelled() -> None:
    host, handle = one_task()
    host.give(SettingsChanged(make_settings(profiles={"default": ToolProfile(tools=frozenset())})))
    assert error(get(host, handle)) == UNKNOWN
    assert error(host.reply_to(update(host, handle, {}))) == UNKNOWN
    exchange = ask(host, "tasks/cancel", handle)
    host.answer("tasks/cancel", {})
    assert view(host.reply_to(exchange)) == {}


def test_prx7_never_a_different_upstream() -> None:
    host, handle = one_task()
    host.give(SettingsChanged(make_settings(Upstream(name="renderer", identity="another server"))))
    for method in ("tasks/get", "tasks/cancel"):
        assert error(host.reply_to(ask(host, method, handle))) == UNKNOWN


def test_prx7_a_task_belongs_to_the_upstream_that_was_called() -> None:
    """Another server has taken the name by the time the first one answers."""
    host = make_proxy(Upstream(name="renderer", identity="one server"))
    exchange = call(host, principal="alice")
    host.give(SettingsChanged(make_settings(Upstream(name="renderer", identity="another server"))))
    host.answer("tools/call", create())
    handle = result(host.reply_to(exchange))["taskId"]
    assert host.store.bindings[handle].identity == "one server"
    assert error(host.reply_to(ask(host, "tasks/get", handle))) == UNKNOWN


def test_prx7_what_nobody_waits_for_is_not_cancelled_at_another_server() -> None:
    host = make_proxy(Upstream(name="renderer", identity="one server"))
    exchange = call(host, principal="alice", tasks=False)
    host.answer("tools/call", create())
    assert error(host.reply_to(exchange))["code"] == -32603
    host.fail("tasks/cancel")
    host.give(SettingsChanged(make_settings(Upstream(name="renderer", identity="another server"))))
    host.advance(60_000)
    assert methods(host).count("tasks/cancel") == 1


def test_prx7_a_cancel_goes_up_under_the_authorization_of_the_call() -> None:
    host = make_proxy()
    handle = handed_out(host, access=Access(authorizations={"renderer": "alice's"}))
    ask(host, "tasks/cancel", handle, access=Access(authorizations={}))
    assert host.waiting("tasks/cancel").authorization == "alice's"


# -- HIS.1 -------------------------------------------------------------------------------------------------


def test_his1_what_polls_see_is_noted_once() -> None:
    host, handle = one_task()
    for seen in (task(), parked("a"), parked("a"), task(), completed()):
        get(host, handle, seen)
    get(host, handle)
    entry = host.store.entries[handle]
    statuses = [event.status.value for event in entry.timeline if event.status]
    assert statuses == ["working", "input_required", "working", "completed"]
    assert entry.polls == 6


def test_his4_what_is_past_its_time_is_removed() -> None:
    host, handle = one_task(
        limits=ProxyLimits(keep_ms=1000, purge_interval_ms=1000),
        retention=Retention(payload_ms=5000, metadata_ms=9000),
    )
    get(host, handle, completed())
    host.advance(4000)
    assert (handle in host.store.bindings, handle in host.store.snapshots) == (True, True)
    host.advance(1000)
    assert (handle in host.store.bindings, handle in host.store.snapshots) == (False, False)
    assert handle in host.store.entries
    host.advance(4000)
    assert handle not in host.store.entries


def test_prx10_answers_to_a_task_that_has_ended_meanwhile_answer_nothing() -> None:
    host, handle = one_task()
    exchange = update(host, handle, {"a": ACCEPTED})
    host.answer("tasks/get", completed())
    assert view(host.reply_to(exchange)) == {}
    assert "tasks/update" not in methods(host)


def test_his1_only_what_the_caller_asks_is_a_poll() -> None:
    """Not what is asked for an update, nor what a stream brings, nor how a task of the proxy's own ends."""
    host, handle = one_task()
    host.reads = True
    params = {"notifications": {"taskIds": [handle]}}
    host.request("subscriptions/listen", params, principal="alice")
    host.answer("tasks/get", task())
    host.notify("subscriptions/listen", "notifications/subscriptions/acknowledged", {})
    update(host, handle, {"a": ACCEPTED})
    host.answer("tasks/get", task())
    host.notify("subscriptions/listen", "notifications/tasks", task(lastUpdatedAt=LATER))
    assert host.store.entries[handle].polls == 0
    get(host, handle, task(lastUpdatedAt=LATER))
    assert host.store.entries[handle].polls == 1
    host.notify("subscriptions/listen", "notifications/tasks", completed())
    assert host.store.entries[handle].polls == 1
