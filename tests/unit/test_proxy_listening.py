"""Listen streams through the proxy: PRX.14, SUB.1 to SUB.4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve

from mcp_tasks_proto import ExchangeClosed, LoadFailed, Reply, SaveFailed, ShutdownStarted, StreamReady
from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.proxy import (
    Access,
    AccessChanged,
    ProxyLimits,
    SendUpstream,
    SettingsChanged,
    StopUpstream,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
    UpstreamChanged,
    UpstreamNotified,
)
from mcp_tasks_proto.testing import ProxyHost, request
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from tests.unit.proxy_world import (
    DONE,
    LATER,
    UPSTREAM_TASK,
    ask,
    completed,
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
from tests.unit.world import form, head

QUIET = Upstream(name="renderer", listen=False)
STREAM = {SUBSCRIPTION_ID: "stream"}


def listen(host: ProxyHost, *handles: str, principal: str = "alice", **filters: Any) -> int:
    """Open a listen stream and return its exchange."""
    wanted: dict[str, Any] = dict(filters)
    facts = {name: wanted.pop(name) for name in ("access", "connection", "tasks_enabled") if name in wanted}
    if handles:
        wanted["taskIds"] = list(handles)
    params = {"notifications": wanted}
    return host.request("subscriptions/listen", params, id="stream", principal=principal, **facts)


def read(host: ProxyHost, exchange: int) -> list[dict[str, Any]]:
    """Let the caller read all there is, and return all that it has got, without its subscription."""
    while True:
        before = len(host.sent_on(exchange))
        host.give(StreamReady(exchange))
        if len(host.sent_on(exchange)) == before:
            break
    messages = []
    for message in host.sent_on(exchange):
        params = dict(message["params"])
        assert params.pop("_meta") == STREAM, "every message names its subscription (SUB.1)"
        messages.append({"method": message["method"], **params})
    return messages


def statuses(host: ProxyHost, exchange: int, handle: str | None = None) -> list[str]:
    """Return the statuses that the caller has read, of one task or of all."""
    return [
        one["status"]
        for one in read(host, exchange)
        if one["method"] == "notifications/tasks" and handle in (None, one["taskId"])
    ]


def agree(host: ProxyHost, *task_ids: str, **more: Any) -> None:
    """Have the upstream acknowledge its stream."""
    agreed = {"taskIds": list(task_ids), **more}
    host.notify("subscriptions/listen", "notifications/subscriptions/acknowledged", {"notifications": agreed})


def push(host: ProxyHost, view: Mapping[str, Any]) -> None:
    """Have the upstream push a view."""
    host.notify("subscriptions/listen", "notifications/tasks", {**view, "_meta": {SUBSCRIPTION_ID: 4}})


def pushed_to(**settings: Any) -> tuple[ProxyHost, str, int]:
    """Return a proxy with one task, and a stream on it that its upstream has agreed to."""
    host = make_proxy(**settings)
    host.reads = True
    handle = handed_out(host)
    exchange = listen(host, handle)
    agree(host, UPSTREAM_TASK)
    host.answer("tasks/get", task())
    return host, handle, exchange


# -- beginning ---------------------------------------------------------------------------------------------


def test_sub1_the_acknowledgement_comes_first_and_names_owned_tasks_only() -> None:
    host = make_proxy()
    mine, other = handed_out(host), handed_out(host, "up-2", principal="bob")
    exchange = listen(host, other, mine, mine, "nobody's", "", "é")
    first = read(host, exchange)[0]
    assert first == {
        "method": "notifications/subscriptions/acknowledged",
        "notifications": {"taskIds": [mine]},
    }


def test_sub2_then_a_snapshot_of_each() -> None:
    host = make_proxy(QUIET)
    one, two = handed_out(host), handed_out(host, "up-2")
    get(host, two, completed(task_id="up-2"))
    exchange = listen(host, one, two)
    host.answer("tasks/get", task())
    assert [(message["method"], message.get("taskId")) for message in read(host, exchange)[1:]] == [
        ("notifications/tasks", two),
        ("notifications/tasks", one),
    ]
    assert methods(host).count("tasks/get") == 2, "an end that is kept is not asked for"


def test_prx14_upstream_streams_are_split_by_upstream_and_name_its_ids() -> None:
    host = make_proxy(Upstream(name="first"), Upstream(name="second"))
    handles = []
    for name, task_id in (("first", "up-1"), ("second", "up-2"), ("first", "up-3")):
        exchange = host.request("tools/call", {"name": f"{name}__render"}, principal="alice")
        if any(sent.message["method"] == "server/discover" for sent in host.in_flight.values()):
            discover(host)
        host.answer("tools/call", {"resultType": "task", **task(task_id=task_id)})
        handles.append(result(host.reply_to(exchange))["taskId"])
    listen(host, *handles)
    opened = [sent for sent in host.of(SendUpstream) if sent.message["method"] == "subscriptions/listen"]
    assert [(sent.upstream, sent.message["params"]["notifications"]) for sent in opened] == [
        ("first", {"taskIds": ["up-1", "up-3"]}),
        ("second", {"taskIds": ["up-2"]}),
    ]
    assert all(sent.streams and sent.task_path for sent in opened)


def test_neg6_a_caller_that_does_not_declare_is_refused() -> None:
    host = make_proxy()
    params: dict[str, Any] = {"notifications": {"taskIds": []}}
    exchange = host.request("subscriptions/listen", params, tasks=False)
    assert error(host.reply_to(exchange))["code"] == -32021


def test_neg7_where_the_extension_is_off_no_tasks_are_agreed_to() -> None:
    host = make_proxy()
    handle = handed_out(host)
    exchange = listen(host, handle, tasks_enabled=False)
    assert read(host, exchange)[0]["notifications"] == {}


@pytest.mark.parametrize("params", [{}, {"notifications": 7}, {"notifications": {"taskIds": [7]}}])
def test_params_that_do_not_fit_are_refused(params: dict[str, Any]) -> None:
    host = make_proxy()
    assert error(host.reply_to(host.request("subscriptions/listen", params)))["code"] == -32602


def test_params_that_do_not_fit_are_named() -> None:
    host = make_proxy()
    refused = error(host.reply_to(host.request("subscriptions/listen", {})))
    assert refused["message"] == "Invalid params: notifications is missing"


def test_a_caller_that_takes_no_stream_is_told() -> None:
    host = make_proxy()
    message = request("subscriptions/listen", {"notifications": {}})
    exchange = host.send(message, http=evolve(head(message), accepts_stream=False))
    (reply,) = [one for one in host.of(Reply) if one.exchange == exchange]
    assert reply.http_status == 406
    assert reply.message is not None
    assert (reply.message["id"], reply.message["error"]["code"]) == (message["id"], -32600)


def test_lim3_streams_are_bounded() -> None:
    host = make_proxy(limits=ProxyLimits(streams=2, streams_per_principal=1, stream_tasks=1))
    assert reason(host.reply_to(listen(host, "a", "b"))) == "stream_tasks"
    mine = listen(host, "a")
    assert read(host, mine)[0]["notifications"] == {"taskIds": []}, "there is room for one"
    assert reason(host.reply_to(listen(host))) == "streams_per_principal"
    listen(host, principal="bob")
    assert reason(host.reply_to(listen(host, principal="carol"))) == "streams"


def test_sub1_a_store_that_fails_leaves_the_task_out() -> None:
    host = make_proxy()
    handle = handed_out(host)
    host.held = True
    exchange = listen(host, handle)
    assert host.sent_on(exchange) == []
    host.give(LoadFailed(host.asked.pop().token))
    assert read(host, exchange)[0]["notifications"] == {"taskIds": []}


def test_a_caller_who_leaves_before_the_acknowledgement() -> None:
    host = make_proxy()
    handle = handed_out(host)
    host.held = True
    exchange = listen(host, handle)
    host.give(ExchangeClosed(exchange))
    assert host.answer_next() == []


# -- pushed ------------------------------------------------------------------------------------------------


def test_prx14_what_an_upstream_pushes_comes_down_under_the_handle() -> None:
    host, handle, exchange = pushed_to()
    push(host, task(lastUpdatedAt=LATER, statusMessage=f"{UPSTREAM_TASK} is half done"))
    last = read(host, exchange)[-1]
    assert (last["taskId"], last["statusMessage"]) == (handle, f"{handle} is half done")
    assert UPSTREAM_TASK not in str(host.sent_on(exchange))


def test_sub2_a_view_that_is_old_or_known_is_not_told() -> None:
    host, _, exchange = pushed_to()
    push(host, task(lastUpdatedAt=LATER))
    for known in (task(lastUpdatedAt=LATER), task(), task(lastUpdatedAt="2023-11-14T22:13:24.000Z")):
        push(host, known)
    assert statuses(host, exchange) == ["working", "working"]


def test_prx14_nothing_after_an_end() -> None:
    host, handle, exchange = pushed_to()
    push(host, completed())
    assert len(host.of(StopUpstream)) == 1, "the upstream's stream goes with the last task"
    host.advance(120_000)
    assert statuses(host, exchange) == ["working", "completed"]
    assert methods(host).count("tasks/get") == 1
    assert host.store.snapshots[handle].view["result"]["content"] == DONE["content"]


def test_prx13_the_end_that_is_told_is_the_one_that_is_kept() -> None:
    host, handle, exchange = pushed_to()
    get(host, handle, completed())
    push(host, task("cancelled", lastUpdatedAt=LATER))
    assert statuses(host, exchange) == ["working", "completed"]


def test_sub2_a_slow_reader_gets_the_latest_and_always_the_end() -> None:
    host, _, exchange = pushed_to()
    host.reads = False
    push(host, task(lastUpdatedAt=LATER, statusMessage="first"))
    for second in range(1, 9):
        push(host, task(lastUpdatedAt=f"2023-11-14T22:13:3{second}.000Z", statusMessage=str(second)))
    push(host, completed())
    told = [one.get("statusMessage") for one in read(host, exchange)[2:]]
    assert told == ["first", None]
    assert statuses(host, exchange)[-1] == "completed"


def test_prx14_pushed_tasks_are_polled_now_and_then() -> None:
    host, _, _ = pushed_to(limits=ProxyLimits(listening_poll_ms=10_000))
    host.advance(9999)
    assert methods(host).count("tasks/get") == 1
    host.advance(1)
    assert methods(host).count("tasks/get") == 2


def test_prx14_a_push_without_payload_is_asked_for() -> None:
    """Some servers only say that there is news."""
    host, _, exchange = pushed_to()
    push(host, task("completed", lastUpdatedAt=LATER))
    host.advance(499)
    assert methods(host).count("tasks/get") == 1
    host.advance(1)
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["working", "completed"]


@pytest.mark.parametrize(
    "message",
    [
        {"nonsense": 1},
        {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": 7}},
        {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": []}},
        {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": "another's"}},
        {"jsonrpc": "2.0", "method": "notifications/other"},
        {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"},
        {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"taskIds": [7, [], "another's"]}},
        },
    ],
)
def test_what_an_upstream_must_not_say_is_passed_over(message: dict[str, Any]) -> None:
    host, _, exchange = pushed_to()
    name = host.waiting("subscriptions/listen").request
    host.give(UpstreamNotified(name, message))
    assert statuses(host, exchange) == ["working"]


# -- polled ------------------------------------------------------------------------------------------------


def test_prx14_an_upstream_that_cannot_push_is_polled_and_its_changes_are_pushed() -> None:
    host = make_proxy(QUIET)
    host.reads = True
    handle = handed_out(host)
    exchange = listen(host, handle)
    for seen in (
        task(pollIntervalMs=2000),
        task(lastUpdatedAt=LATER, inputRequests={"a": form()}, status="input_required"),
    ):
        host.answer("tasks/get", seen)
        host.advance(1999)
        host.advance(1)
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["working", "input_required", "completed"]
    assert "subscriptions/listen" not in methods(host)


@pytest.mark.parametrize("how", ["refused", "dead", "ended"])
def test_prx14_a_stream_that_dies_takes_nothing_with_it(how: str) -> None:
    host, _, exchange = pushed_to()
    if how == "refused":
        host.refuse("subscriptions/listen", {"code": -32601, "message": "Method not found"})
    elif how == "dead":
        host.fail("subscriptions/listen")
    else:
        host.answer("subscriptions/listen", {})
    host.answer("tasks/get", task(lastUpdatedAt=LATER))
    host.advance(1000)
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["working", "working", "completed"]


def test_prx14_a_stream_that_dies_while_its_task_is_polled() -> None:
    host, _, exchange = pushed_to(limits=ProxyLimits(listening_poll_ms=1000))
    host.advance(1000)
    host.fail("subscriptions/listen")
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["working", "completed"]
    assert methods(host).count("tasks/get") == 2


def test_prx14_the_streams_of_other_upstreams_stay() -> None:
    host = make_proxy(Upstream(name="first"), Upstream(name="second"))
    handles = []
    for name in ("first", "second"):
        call = host.request("tools/call", {"name": f"{name}__render"}, principal="alice")
        discover(host)
        host.answer("tools/call", {"resultType": "task", **task()})
        handles.append(result(host.reply_to(call))["taskId"])
    listen(host, *handles)
    host.answer("tasks/get", completed(), upstream="second")
    (stopped,) = host.of(StopUpstream)
    assert stopped.request not in host.in_flight
    assert host.waiting("subscriptions/listen").upstream == "first"


def test_prx14_a_stream_that_never_begins_is_given_up() -> None:
    host = make_proxy()
    listen(host, handed_out(host))
    host.answer("tasks/get", task())
    host.advance(30_000)
    assert len(host.of(StopUpstream)) >= 1
    assert methods(host).count("subscriptions/listen") == 1


def test_prx14_a_stream_that_was_acknowledged_stays_open() -> None:
    host, _, _ = pushed_to()
    name = host.waiting("subscriptions/listen").request
    host.advance(40_000)
    assert name in host.in_flight


def test_prx14_one_upstream_down_leaves_the_others_working() -> None:
    host = make_proxy(QUIET, limits=ProxyLimits(attempts=1))
    one, two = handed_out(host), handed_out(host, "up-2")
    exchange = listen(host, one, two)
    host.fail("tasks/get")
    host.answer("tasks/get", completed(task_id="up-2"))
    assert statuses(host, exchange, two) == ["completed"]
    host.advance(500)
    host.answer("tasks/get", task())
    assert statuses(host, exchange, one) == ["working"]


def test_prx14_a_task_that_is_lost_is_not_heard_of_again() -> None:
    host = make_proxy(QUIET)
    exchange = listen(host, handed_out(host))
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    host.advance(60_000)
    assert methods(host).count("tasks/get") == 1
    assert statuses(host, exchange) == []


def odd_input(host: ProxyHost) -> None:
    requests = {"a": {"method": "roots/list"}}
    host.answer("tasks/get", task("input_required", inputRequests=requests))


@pytest.mark.parametrize(
    "in_the_way",
    [
        lambda host: host.give(
            UpstreamAnswered(request=host.waiting("tasks/get").request, message=None, http_status=400)
        ),
        lambda host: host.refuse("tasks/get", {"code": -32601, "message": "Method not found"}),
        odd_input,
    ],
    ids=["HTTP 400", "method not found", "input that nobody declared"],
)
def test_sub2_what_is_in_the_way_of_one_poll_does_not_hide_the_end(
    in_the_way: Callable[[ProxyHost], None],
) -> None:
    host = make_proxy(QUIET)
    exchange = listen(host, handed_out(host))
    in_the_way(host)
    host.advance(30_000)
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["completed"]


def test_prx14_a_promoted_task_is_watched_in_the_store() -> None:
    host = make_proxy(promote_after_ms=1000)
    host.reads = True
    call = host.request("tools/call", {"name": "render"}, principal="alice")
    discover(host, tasks=False)
    host.advance(1000)
    handle = result(host.reply_to(call))["taskId"]
    exchange = listen(host, handle)
    host.advance(500)
    host.answer("tools/call", DONE)
    host.advance(500)
    assert statuses(host, exchange) == ["working", "completed"]


def test_prx14_a_promoted_task_that_is_gone_is_not_heard_of_again() -> None:
    host = make_proxy(promote_after_ms=1000)
    host.reads = True
    call = host.request("tools/call", {"name": "render"}, principal="alice")
    discover(host, tasks=False)
    host.advance(1000)
    handle = result(host.reply_to(call))["taskId"]
    exchange = listen(host, handle)
    host.held = True
    host.advance(500)
    host.give(LoadFailed(host.asked.pop().token))
    host.advance(500)
    host.held = False
    del host.store.bindings[handle]
    host.answer_next()
    host.advance(60_000)
    assert host.asked == []
    assert statuses(host, exchange) == ["working"]


def test_lim3_without_room_for_requests_a_stream_lives_on() -> None:
    host = make_proxy(limits=ProxyLimits(upstream_requests=2, attempts=1))
    handle = handed_out(host)
    for name in ("a", "b"):
        host.request("tools/call", {"name": "render", "arguments": {"x": name}})
    exchange = listen(host, handle)
    assert read(host, exchange)[0]["notifications"] == {"taskIds": [handle]}
    host.answer("tools/call", DONE)
    host.advance(500)
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["completed"]


def test_a_save_that_fails_does_not_hide_an_end() -> None:
    host, _, exchange = pushed_to()
    host.held = True
    push(host, completed())
    host.give(SaveFailed(host.asked.pop().token))
    assert statuses(host, exchange) == ["working", "completed"]


def test_lim3_ends_that_are_pushed_again_and_again_ask_the_store_once() -> None:
    host, _, exchange = pushed_to()
    host.held = True
    for _ in range(9):
        push(host, completed())
    assert len(host.asked) == 1
    host.held = False
    host.answer_next()
    assert statuses(host, exchange) == ["working", "completed"]


def test_a_view_that_comes_after_the_caller_left_is_for_nobody() -> None:
    host, _, exchange = pushed_to()
    host.held = True
    push(host, completed())
    host.give(ExchangeClosed(exchange))
    assert host.answer_next() == []
    host, _, exchange = pushed_to()
    host.held = True
    push(host, completed())
    push(host, task("completed", lastUpdatedAt=LATER))
    host.held = False
    host.answer_next()
    host.advance(60_000)
    assert statuses(host, exchange) == ["working", "completed"]


# -- tools -------------------------------------------------------------------------------------------------


def test_prx2_a_change_of_tools_drops_the_discovery_and_is_passed_on() -> None:
    host = make_proxy()
    handed_out(host)
    exchange = listen(host, toolsListChanged=True)
    agree(host, toolsListChanged=True)
    host.notify("subscriptions/listen", "notifications/tools/list_changed", {})
    assert read(host, exchange)[-1] == {"method": "notifications/tools/list_changed"}
    host.request("tools/list")
    assert methods(host).count("server/discover") == 2


def test_prx2_a_change_of_one_upstreams_tools_says_nothing_of_the_others() -> None:
    host = make_proxy(Upstream(name="first"), Upstream(name="second"))
    handed_out(host, tool="first__render")
    handed_out(host, "up-2", tool="second__render")
    listen(host, toolsListChanged=True)
    host.notify("subscriptions/listen", CHANGED, {}, upstream="first")
    host.request("tools/list")
    discovered = [
        sent.upstream for sent in host.of(SendUpstream) if sent.message["method"] == "server/discover"
    ]
    assert discovered == ["first", "second", "first"]


def test_prx7_a_change_is_passed_on_to_those_who_see_the_upstream() -> None:
    host = make_proxy(Upstream(name="first", listen=False), Upstream(name="second", listen=False))
    streams = {
        name: listen(host, toolsListChanged=True, access=Access(authorizations={name: "x"}))
        for name in ("first", "second")
    }
    host.give(UpstreamChanged("first"))
    assert heard(host, streams["first"]) == ["acknowledged", "list_changed"]
    assert heard(host, streams["second"]) == ["acknowledged"]


def test_prx2_a_change_that_was_not_asked_for_is_not_passed_on() -> None:
    host, _, exchange = pushed_to()
    host.notify("subscriptions/listen", "notifications/tools/list_changed", {})
    assert statuses(host, exchange) == ["working"]
    assert len(read(host, exchange)) == 2


def test_prx7_no_stream_goes_to_an_upstream_that_the_caller_cannot_see() -> None:
    host = make_proxy(Upstream(name="first"), Upstream(name="second"), QUIET)
    access = Access(authorizations={"second": "alice's", "renderer": "x"})
    listen(host, toolsListChanged=True, access=access)
    (opened,) = host.of(SendUpstream)
    assert (opened.upstream, opened.authorization) == ("second", "alice's")
    assert opened.message["params"]["notifications"] == {"toolsListChanged": True}


def test_a_stream_for_tools_outlives_its_tasks() -> None:
    host = make_proxy()
    handle = handed_out(host)
    exchange = listen(host, handle, toolsListChanged=True)
    assert sent_up(host, "subscriptions/listen")[0]["notifications"] == {
        "taskIds": [UPSTREAM_TASK],
        "toolsListChanged": True,
    }
    agree(host, UPSTREAM_TASK, toolsListChanged=True)
    host.answer("tasks/get", completed())
    assert not host.of(StopUpstream)
    host.give(ExchangeClosed(exchange))
    assert len(host.of(StopUpstream)) == 1


CHANGED = "notifications/tools/list_changed"


def heard(host: ProxyHost, exchange: int) -> list[str]:
    """Return the methods of all that a caller was told."""
    return [message["method"].rpartition("/")[2] for message in read(host, exchange)]


def test_sub1_other_tools_are_agreed_to_once_somebody_will_tell_of_them() -> None:
    """A caller that changes the tools as soon as its stream is acknowledged must hear of it."""
    host = make_proxy()
    handle = handed_out(host)
    exchange = listen(host, handle, toolsListChanged=True)
    host.notify("subscriptions/listen", CHANGED, {})
    push(host, task(lastUpdatedAt=LATER))
    assert heard(host, exchange) == []
    agree(host, UPSTREAM_TASK, toolsListChanged=True)
    agree(host, UPSTREAM_TASK, toolsListChanged=True)
    host.answer("tasks/get", task())
    assert heard(host, exchange) == ["acknowledged", "list_changed", "tasks"]
    assert read(host, exchange)[0]["notifications"] == {"taskIds": [handle], "toolsListChanged": True}
    host.advance(1000)
    assert heard(host, exchange) == ["acknowledged", "list_changed", "tasks"], "each of them once"
    host.notify("subscriptions/listen", CHANGED, {})
    assert heard(host, exchange)[-1] == "list_changed"


@pytest.mark.parametrize("how", ["refuses", "is slow", "is agreed with, and then gone"])
def test_sub1_an_upstream_that_does_not_push_holds_nobody_up_for_long(how: str) -> None:
    host = make_proxy(Upstream(name="first"), Upstream(name="second"))
    handle = handed_out(host, tool="first__render")
    exchange = listen(host, handle, toolsListChanged=True)
    if how == "refuses":
        host.refuse("subscriptions/listen", {"code": -32601, "message": "no"}, upstream="first")
    elif how == "is agreed with, and then gone":
        agree(host, UPSTREAM_TASK)
        host.fail("subscriptions/listen", upstream="first")
    assert heard(host, exchange) == []
    if how == "is slow":
        host.advance(999)
        assert heard(host, exchange) == []
        host.advance(1)
    else:
        agree(host)
    host.answer("tasks/get", task())
    assert heard(host, exchange) == ["acknowledged", "tasks"]


# -- the end -----------------------------------------------------------------------------------------------


def test_sub1_who_leaves_before_the_acknowledgement_is_not_told_later() -> None:
    host = make_proxy()
    exchange = listen(host, toolsListChanged=True)
    host.give(ExchangeClosed(exchange))
    host.advance(1000)
    assert host.sent_on(exchange) == []


def test_sub4_a_caller_ends_its_stream() -> None:
    host, _, exchange = pushed_to()
    host.give(ExchangeClosed(exchange))
    assert len(host.of(StopUpstream)) == 1
    host.advance(3_600_000)
    assert methods(host).count("tasks/get") == 1


def test_sub4_on_a_shared_channel_a_notification_ends_it() -> None:
    host = make_proxy()
    exchange = listen(host, handed_out(host), connection="stdio")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "stream"}}
    host.send(cancelled, connection="stdio")
    assert len(host.of(StopUpstream)) == 1
    with pytest.raises(LookupError):
        host.reply_to(exchange)


def test_sub4_a_stopping_proxy_ends_streams_gracefully() -> None:
    host, _, exchange = pushed_to()
    host.give(ShutdownStarted())
    reply = result(host.reply_to(exchange))
    assert reply["_meta"][SUBSCRIPTION_ID] == "stream"
    assert len(host.of(StopUpstream)) == 1
    late = host.request("tools/list")
    assert reason(host.reply_to(late)) == "shutting_down"


def test_sub4_on_a_shared_channel_the_result_comes_before_the_notification() -> None:
    host = make_proxy()
    exchange = listen(host, connection="stdio")
    host.give(ShutdownStarted())
    assert host.sent_on(exchange)[-1]["result"]["_meta"][SUBSCRIPTION_ID] == "stream"
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "stream"}}
    assert host.of(Reply)[-1] == Reply(exchange, cancelled, 200)


def test_sub4_a_stream_that_was_not_acknowledged_fails() -> None:
    host = make_proxy()
    handle = handed_out(host)
    host.held = True
    exchange = listen(host, handle)
    host.give(ShutdownStarted())
    assert reason(host.reply_to(exchange)) == "shutting_down"


def test_prx7_other_settings_take_tasks_off_a_stream() -> None:
    host, handle, exchange = pushed_to()
    tools = listen(host, toolsListChanged=True)
    host.advance(1000)
    unacknowledged = handed_out(host, "up-2")
    host.held = True
    listen(host, unacknowledged, toolsListChanged=True, principal="bob")
    host.held = False
    host.give(SettingsChanged(make_settings()))
    push(host, task(lastUpdatedAt=LATER))
    assert statuses(host, exchange) == ["working", "working"]
    host.give(SettingsChanged(make_settings(profiles={"default": ToolProfile(tools=frozenset())})))
    assert read(host, tools)[-1]["method"] == "notifications/tools/list_changed"
    host.advance(120_000)
    assert error(host.reply_to(ask(host, "tasks/get", handle)))["message"] == "Task not found"
    assert methods(host).count("tasks/get") == 1


FIRST, SECOND = Upstream(name="first"), Upstream(name="second", identity="one server")


def sources(host: ProxyHost) -> list[str]:
    """Return the upstreams of the streams that are open."""
    return [
        sent.upstream for sent in host.in_flight.values() if sent.message["method"] == "subscriptions/listen"
    ]


def test_prx14_other_settings_bring_news_from_where_it_comes_from_now() -> None:
    host = make_proxy(FIRST, SECOND)
    tools = listen(host, toolsListChanged=True)
    assert sources(host) == ["first", "second"]
    host.give(SettingsChanged(make_settings(FIRST, evolve(SECOND, identity="another server"))))
    assert sources(host) == ["first", "second"]
    assert len(host.of(StopUpstream)) == 1
    host.give(SettingsChanged(make_settings(evolve(FIRST, listen=False), SECOND, Upstream(name="third"))))
    assert sources(host) == ["second", "third"]
    host.give(SettingsChanged(make_settings(SECOND)))
    assert sources(host) == ["second"]
    assert [one["method"] for one in read(host, tools)][1:] == ["notifications/tools/list_changed"]


def test_prx14_a_task_whose_upstream_is_not_asked_to_push_any_more_is_polled() -> None:
    host, _, exchange = pushed_to()
    host.give(SettingsChanged(make_settings(QUIET)))
    assert sources(host) == []
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["working", "completed"]


def test_prx7_a_stream_goes_on_with_what_its_caller_may_do_now() -> None:
    host, _, exchange = pushed_to()
    again = Access(authorizations={"renderer": ""})
    host.give(AccessChanged(exchange=exchange, principal="alice", access=again))
    push(host, task("input_required", lastUpdatedAt=LATER, inputRequests={"a": form()}))
    assert statuses(host, exchange) == ["working", "input_required"]
    elsewhere = Access(authorizations={"renderer": "another"})
    host.give(AccessChanged(exchange=exchange, principal="alice", access=elsewhere))
    assert sources(host) == []
    with pytest.raises(LookupError):
        host.reply_to(exchange)


@pytest.mark.parametrize(("principal", "access"), [("alice", None), ("bob", Access())])
def test_prx7_a_stream_ends_when_its_caller_is_not_let_in_any_more(
    principal: str, access: Access | None
) -> None:
    host, _, exchange = pushed_to()
    host.give(AccessChanged(exchange=exchange, principal=principal, access=access))
    assert result(host.reply_to(exchange))["_meta"][SUBSCRIPTION_ID] == "stream"
    assert sources(host) == []


def test_prx7_so_does_one_that_was_not_acknowledged() -> None:
    host = make_proxy()
    handle = handed_out(host)
    host.held = True
    exchange = listen(host, handle)
    host.give(AccessChanged(exchange=exchange, principal=None, access=None))
    assert error(host.reply_to(exchange)) == {"code": -32600, "message": "Invalid request: not authorized"}


def test_prx7_other_requests_are_answered() -> None:
    host = make_proxy()
    handle = handed_out(host)
    exchange = ask(host, "tasks/get", handle)
    host.give(AccessChanged(exchange=exchange, principal="alice", access=None))
    host.give(AccessChanged(exchange=exchange, principal="alice", access=Access()))
    host.give(AccessChanged(exchange="not open", principal="alice", access=Access()))
    host.answer("tasks/get", task())
    assert result(host.reply_to(exchange))["status"] == "working"


def test_prx7_what_is_not_allowed_any_more_is_not_agreed_to() -> None:
    host = make_proxy()
    one, two = handed_out(host), handed_out(host, "up-2")
    host.held = True
    exchange = listen(host, one, two)
    host.answer_next()
    host.give(SettingsChanged(make_settings()))  # which allows the first one still
    host.give(SettingsChanged(make_settings(Upstream(name="renderer", identity="another server"))))
    host.answer_next()
    assert read(host, exchange)[0]["notifications"] == {"taskIds": []}


# -- what waits for a slow reader ---------------------------------------------------------------------------

DAY_MS = 86_400_000


def unread(**settings: Any) -> tuple[ProxyHost, str, int]:
    """Return a proxy with a task that has ended; its caller has read nothing yet but the acknowledgement."""
    host = make_proxy(QUIET, **settings)
    handle = handed_out(host, access=Access(project="film"))
    exchange = listen(host, handle, access=Access(project="film"))
    host.answer("tasks/get", completed())
    assert host.sent_on(exchange)[-1]["method"] == "notifications/subscriptions/acknowledged"
    return host, handle, exchange


def test_his4_an_end_that_waits_is_told_while_it_is_kept() -> None:
    host, _, exchange = unread()
    host.now += DAY_MS - 1
    assert statuses(host, exchange) == ["completed"]


def test_his4_an_end_that_waits_is_not_told_when_it_is_not_kept_any_more() -> None:
    """PRX.13: what a get would be told then, the reader is told: the upstream is asked anew."""
    host, handle, exchange = unread()
    host.now += DAY_MS
    assert statuses(host, exchange) == []
    host.answer("tasks/get", completed(statusMessage="still there"))
    (told,) = [one for one in read(host, exchange) if one["method"] == "notifications/tasks"]
    assert (told["taskId"], told["status"], told["statusMessage"]) == (handle, "completed", "still there")


def test_sub2_nothing_older_is_told_in_its_place() -> None:
    host, _, exchange = unread()
    host.now += DAY_MS
    assert statuses(host, exchange) == []
    host.answer("tasks/get", task())
    assert statuses(host, exchange) == []


def test_his4_nor_does_it_wait_for_longer_than_that() -> None:
    """Nobody reads, and yet it is removed when the store removes what is past its time."""
    host, _, exchange = unread()
    host.advance(DAY_MS - 1)
    assert methods(host).count("tasks/get") == 1
    host.advance(1)
    assert methods(host).count("tasks/get") == 2
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    assert statuses(host, exchange) == []
    host.advance(DAY_MS)
    assert methods(host).count("tasks/get") == 2


def test_his4_what_is_asked_anew_may_take_longer_than_the_next_removal() -> None:
    host, _, exchange = unread(limits=ProxyLimits(request_timeout_ms=600_000))
    host.advance(DAY_MS + 120_000)
    assert methods(host).count("tasks/get") == 2
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["completed"]


def test_prx14_what_is_asked_for_anew_is_asked_for_soon_since_nobody_pushes_it() -> None:
    host = make_proxy(retention=Retention(payload_ms=60_000), limits=ProxyLimits(attempts=1))
    exchange = listen(host, handed_out(host))
    agree(host, UPSTREAM_TASK)
    host.answer("tasks/get", task())
    push(host, completed())
    host.now += 60_000
    assert statuses(host, exchange) == []
    host.fail("tasks/get")
    host.advance(ProxyLimits().poll_floor_ms)
    host.answer("tasks/get", completed())
    assert statuses(host, exchange) == ["completed"]


def test_prx7_nor_is_it_asked_for_under_rights_that_are_gone() -> None:
    """They go with the settings that also have all that is past its time removed."""
    host, _, exchange = unread()
    host.now += DAY_MS
    withdrawn = {"default": ToolProfile(tools=frozenset())}
    settings = make_settings(QUIET, profiles=withdrawn, deleted_projects=frozenset({"other"}))
    host.give(SettingsChanged(settings))
    assert methods(host).count("tasks/get") == 1
    assert statuses(host, exchange) == []


def test_his4_a_stream_that_ends_does_not_say_what_is_not_kept_any_more() -> None:
    host, _, exchange = unread()
    host.now += DAY_MS
    host.give(ShutdownStarted())
    assert len(host.sent_on(exchange)) == 1
    assert methods(host).count("tasks/get") == 1


def test_his4_a_shorter_retention_holds_at_once() -> None:
    host, _, exchange = unread()
    host.now += 1000
    host.give(SettingsChanged(make_settings(QUIET, retention=Retention(payload_ms=1000))))
    assert statuses(host, exchange) == []


def test_his4_an_end_found_at_the_beginning_is_asked_for_when_it_is_not_kept_any_more() -> None:
    host = make_proxy(retention=Retention(payload_ms=1000))
    handle = handed_out(host)
    get(host, handle, completed())
    exchange = listen(host, handle, toolsListChanged=True)
    host.advance(1000)
    assert heard(host, exchange) == ["acknowledged"]
    host.answer("tasks/get", completed())
    assert heard(host, exchange) == ["acknowledged", "tasks"]


def test_his4_what_waits_of_a_deleted_project_is_gone_with_it() -> None:
    host, _, exchange = unread()
    other = handed_out(host, "up-2", access=Access(project="other"))
    others = listen(host, other, access=Access(project="other"))
    host.answer("tasks/get", task(task_id="up-2"))
    host.give(SettingsChanged(make_settings(QUIET, deleted_projects=frozenset({"film"}))))
    assert statuses(host, exchange) == []
    assert statuses(host, others) == ["working"]


def test_his4_a_task_of_a_deleted_project_is_not_agreed_to() -> None:
    host = make_proxy(QUIET)
    one, two = handed_out(host, access=Access(project="film")), handed_out(host, "up-2")
    host.held = True
    access = Access(project="film")
    exchange = listen(host, one, two, access=access)
    host.answer_next()
    host.give(SettingsChanged(make_settings(QUIET, deleted_projects=frozenset({"film"}))))
    host.answer_next()
    assert read(host, exchange)[0]["notifications"] == {"taskIds": []}


def test_prx7_what_waits_is_not_told_when_it_is_not_allowed_any_more() -> None:
    host, handle, exchange = unread()
    host.give(AccessChanged(exchange=exchange, principal="alice", access=Access(project="other")))
    assert statuses(host, exchange) == []
    host.give(AccessChanged(exchange=exchange, principal="alice", access=Access(project="film")))
    assert statuses(host, exchange) == []
    assert view(get(host, handle, access=Access(project="film")))["status"] == "completed"
    host.advance(DAY_MS + 60_000)
    assert methods(host).count("tasks/get") == 1, "nor asked for when it is not kept any more"


def test_prx7_who_is_not_let_in_any_more_is_not_told_what_waits() -> None:
    host, _, exchange = unread()
    host.give(AccessChanged(exchange=exchange, principal=None, access=None))
    assert len(host.sent_on(exchange)) == 1
    assert result(host.reply_to(exchange))["_meta"][SUBSCRIPTION_ID] == "stream"


def test_prx14_what_waits_of_a_task_that_is_lost_is_not_told() -> None:
    host = make_proxy(QUIET)
    exchange = listen(host, handed_out(host))
    host.answer("tasks/get", task())
    host.advance(1000)
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    assert statuses(host, exchange) == []


# -- a handle that expires ----------------------------------------------------------------------------------


def expiring(*upstreams: Upstream) -> tuple[ProxyHost, str, int]:
    """Return a proxy whose handles live for a minute, a handle, and a stream of which nothing was read."""
    host = make_proxy(*upstreams, limits=ProxyLimits(keep_ms=60_000))
    handle = handed_out(host)
    return host, handle, listen(host, handle)


def test_prx7_nothing_is_asked_or_told_of_a_handle_that_has_expired() -> None:
    host, handle, exchange = expiring(QUIET)
    host.answer("tasks/get", task(pollIntervalMs=60_000))
    host.advance(60_000)
    assert statuses(host, exchange) == []
    host.advance(600_000)
    assert methods(host).count("tasks/get") == 1
    assert error(get(host, handle))["message"] == "Task not found"


def test_prx7_an_answer_that_comes_when_the_handle_has_expired_is_not_told() -> None:
    host, _, exchange = expiring(QUIET)
    read(host, exchange)
    host.now += 60_000
    host.answer("tasks/get", task())
    assert statuses(host, exchange) == []
    host.advance(600_000)
    assert methods(host).count("tasks/get") == 1


def test_prx7_nor_is_one_that_is_pushed_then() -> None:
    host, _, exchange = expiring()
    agree(host, UPSTREAM_TASK)
    host.answer("tasks/get", task())
    assert statuses(host, exchange) == ["working"]
    host.now += 60_000
    push(host, completed())
    assert statuses(host, exchange) == ["working"]
    host.advance(30_000)
    assert sources(host) == [], "nobody wants to hear of it any more"
    assert methods(host).count("tasks/get") == 1


def test_prx13_an_end_that_was_kept_in_time_is_told_although_the_handle_has_expired() -> None:
    host, handle, exchange = expiring(QUIET)
    host.answer("tasks/get", task(pollIntervalMs=60_000))
    host.advance(59_999)
    get(host, handle, completed())
    host.advance(1)
    assert statuses(host, exchange) == ["completed"]
    assert methods(host).count("tasks/get") == 2
