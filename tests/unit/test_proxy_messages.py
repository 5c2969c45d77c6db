"""Messages that come to a proxy, and hosts that break its rules: WIRE.1, WIRE.3, NEG, LIM.3."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mcp_tasks_proto import (
    ExchangeClosed,
    LocalProtocolError,
    MessageReceived,
    Reply,
    Saved,
    SaveRefused,
    StreamReady,
    TimePassed,
    ToolsChanged,
)
from mcp_tasks_proto.effects import StopCall
from mcp_tasks_proto.proxy import (
    MOST_RANDOM_BYTES,
    RANDOM_BYTES,
    Access,
    AccessChanged,
    MessageAdmitted,
    ProxyLimits,
    Purge,
    RandomDrawn,
    SnapshotKept,
    StopUpstream,
    TaskLoaded,
    UpstreamAnswered,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.testing import ProxyHost, request
from mcp_tasks_proto.timers import LAST_MS
from mcp_tasks_proto.wire.base64url import to_text
from tests.unit.proxy_world import (
    DONE,
    ask,
    call,
    completed,
    create,
    error,
    handed_out,
    make_proxy,
    methods,
    result,
    view,
)


def refused(host: ProxyHost, fact: Any) -> str:
    """Hand in what the host must not say now, and return the complaint."""
    before = len(host.effects)
    with pytest.raises(LocalProtocolError) as caught:
        host.engine.handle(fact, now=host.now)
    assert len(host.effects) == before
    return str(caught.value)


# -- messages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ([], -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, -32600),
        (request("nonsense"), -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, -32602),
    ],
)
def test_wire1_what_is_no_request_is_refused(message: Any, code: int) -> None:
    host = make_proxy()
    assert error(host.reply_to(host.send(message)))["code"] == code
    assert methods(host) == []


def test_wire3_notifications_get_no_reply() -> None:
    host = make_proxy()
    for method, params in (("notifications/x", {}), ("notifications/cancelled", {"requestId": None})):
        exchange = host.send({"jsonrpc": "2.0", "method": method, "params": params})
        assert host.of(Reply)[-1] == Reply(exchange, None, 202)


def test_wire3_ids_in_flight_on_a_channel_differ() -> None:
    host = make_proxy()
    first = call(host, connection="stdio", id="a")
    second = host.request("tools/list", connection="stdio", id="a")
    assert error(host.reply_to(second))["code"] == -32600
    host.answer("tools/call", DONE)
    assert view(host.reply_to(first)) == DONE
    third = host.request("tools/list", connection="stdio", id="a")
    assert "result" in host.reply_to(third)


def test_can7_a_call_is_cancelled_on_its_channel_only() -> None:
    host = make_proxy()
    call(host, connection="stdio", id="a")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}
    host.send(cancelled, connection="another")
    assert not host.of(StopUpstream)
    host.send(cancelled, connection="stdio")
    assert len(host.of(StopUpstream)) == 1


def test_can7_a_channel_that_goes_on_is_told_that_nothing_more_comes() -> None:
    """Or its host would wait for a reply, for as long as the channel is there."""
    host = make_proxy()
    exchange = call(host, connection="stdio", id="a")
    host.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}},
        connection="stdio",
    )
    assert host.of(StopCall) == [StopCall(exchange)]


def test_wire1_a_response_on_a_shared_channel_is_not_answered() -> None:
    """Two who answer each other's answers never end."""
    host = make_proxy()
    exchange = host.send({"jsonrpc": "2.0", "id": 1, "result": {}}, connection="stdio")
    assert host.of(Reply) == [Reply(exchange, None, 202)]


def test_lim3_callers_have_room_for_so_many_requests() -> None:
    host = make_proxy(limits=ProxyLimits(exchanges=1))
    call(host)
    assert error(host.reply_to(host.request("tools/list")))["data"] == {"reason": "exchanges"}


def test_a_message_has_the_access_that_it_came_with() -> None:
    host = make_proxy(access=Access(authorizations={}))
    assert error(host.reply_to(host.request("tools/call", {"name": "render"})))["code"] == -32602
    call(host, access=Access())
    assert methods(host).count("tools/call") == 1


# -- hosts -------------------------------------------------------------------------------------------------


def test_a_host_that_says_what_cannot_be_is_told() -> None:
    host = make_proxy()
    exchange = call(host)
    assert "not an input" in refused(host, ToolsChanged())
    assert "open already" in refused(host, MessageReceived(exchange=exchange, message={}))
    assert "open already" in refused(host, MessageAdmitted(exchange=exchange, message={}, access=Access()))
    for name in (0, 99, True, "1"):
        for fact in (
            UpstreamAnswered(request=name, message=None),  # type: ignore[arg-type]
            UpstreamFailed(name),  # type: ignore[arg-type]
            UpstreamNotified(name, {}),  # type: ignore[arg-type]
        ):
            assert refused(host, fact) == f"{type(fact).__name__}: no request has this name"
    for answer in (Saved(99), TaskLoaded(99, None, None), RandomDrawn(99, bytes(32))):
        assert "open question" in refused(host, answer)


def test_an_answer_must_be_of_the_questions_kind() -> None:
    host = make_proxy()
    call(host)
    host.held = True
    host.answer("tools/call", create())
    (drawing,) = host.asked
    assert "open question" in refused(host, Saved(drawing.token))
    for random in (b"", bytes(31), bytes(33), bytes(MOST_RANDOM_BYTES + 32), "x" * 32):
        assert "32 random bytes" in refused(host, RandomDrawn(drawing.token, random))  # type: ignore[arg-type]
    host.answer_next()
    (saving,) = host.asked
    assert refused(host, SaveRefused(saving.token, cast(Any, 5))) == "SaveRefused: limit is a string"
    host.answer_next()
    assert not host.asked


def test_what_a_store_answers_is_what_it_was_given() -> None:
    host = make_proxy()
    handle = handed_out(host)
    host.held = True
    exchange = ask(host, "tasks/get", handle)
    (loading,) = host.asked
    (binding,) = host.store.bindings.values()
    for odd in (
        TaskLoaded(loading.token, cast(Any, {}), None),
        TaskLoaded(loading.token, binding, cast(Any, {})),
    ):
        assert refused(host, odd) == "TaskLoaded: what is loaded is a Binding and a Snapshot, or None"
    host.answer_next()
    host.answer("tasks/get", {"resultType": "complete", **completed()})
    (keeping,) = host.asked
    complaint = refused(host, SnapshotKept(keeping.token, cast(Any, None)))
    assert complaint == "SnapshotKept: what is kept is a Snapshot"
    host.answer_next()
    assert result(host.reply_to(exchange))["status"] == "completed"


def test_what_a_caller_may_do_is_an_access() -> None:
    host = make_proxy()
    odd = cast(Any, {"project": "p"})
    admitted = MessageAdmitted(exchange=1, message=request("tools/list"), access=odd)
    assert refused(host, admitted) == "MessageAdmitted: access is an Access"
    exchange = call(host)
    changed = AccessChanged(exchange=exchange, principal=None, access=odd)
    assert refused(host, changed) == "AccessChanged: access is an Access, or None"


def test_prx5_randomness_that_is_left_serves_the_next_handles_once_each() -> None:
    host = make_proxy()
    host.held = True
    blocks = [bytes([number]) * RANDOM_BYTES for number in range(1, 4)]
    exchanges = [call(host) for _ in blocks]
    host.answer("tools/call", create("task-1"))
    (drawing,) = host.asked
    host.asked.clear()
    host.give(RandomDrawn(drawing.token, b"".join(blocks)))
    for task_id in ("task-2", "task-3"):
        host.answer("tools/call", create(task_id))
    host.held = False
    while host.asked:
        host.answer_next()
    handles = [host.reply_to(exchange)["result"]["taskId"] for exchange in exchanges]
    assert handles == [to_text(block) for block in blocks]
    assert host.store.drawn == 0
    call(host)
    host.answer("tools/call", create("task-4"))
    assert host.store.drawn == 1


def test_prx5_what_several_draw_at_once_is_kept_up_to_a_bound() -> None:
    """LIM.3."""
    host = make_proxy()
    host.held = True
    for task_id in ("task-1", "task-2"):
        call(host)
        host.answer("tools/call", create(task_id))
    drawings, host.held = list(host.asked), False
    host.asked.clear()
    for number, drawing in enumerate(drawings):
        host.give(RandomDrawn(drawing.token, bytes([number]) * MOST_RANDOM_BYTES))
    for number in range(MOST_RANDOM_BYTES // RANDOM_BYTES):
        call(host)
        host.answer("tools/call", create(f"more-{number}"))
    assert host.store.drawn == 1


def test_time_is_in_milliseconds_and_does_not_go_back() -> None:
    host = make_proxy()
    for right in (0, LAST_MS):
        assert make_proxy().engine.handle(TimePassed(), now=right).effects
    for wrong in (-1, LAST_MS + 1):
        with pytest.raises(LocalProtocolError, match="milliseconds"):
            host.engine.handle(TimePassed(), now=wrong)
    first = host.engine.handle(TimePassed(), now=host.now)
    assert any(isinstance(effect, Purge) for effect in first.effects)
    later = host.engine.handle(TimePassed(), now=host.now - 1000)
    assert later.effects == ()
    assert later.deadline == first.deadline


def test_what_nobody_listens_for_is_passed_over() -> None:
    host = make_proxy()
    host.request("tools/list")
    assert host.notify("server/discover", "notifications/message", {"level": "info"}) == []


def test_what_comes_late_is_no_mistake() -> None:
    host = make_proxy()
    exchange = call(host)
    name = host.waiting("tools/call").request
    host.answer("tools/call", DONE)
    for fact in (
        UpstreamAnswered(request=name, message=None),
        UpstreamFailed(name),
        UpstreamNotified(name, {}),
        ExchangeClosed(exchange),
        StreamReady(exchange),
    ):
        assert host.give(fact) == []
