"""Upstream calls that become tasks of the proxy's own: PRX.16."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import ExchangeClosed, LoadFailed, SaveFailed, StreamReady, WorkLost
from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.proxy import (
    Access,
    DropTask,
    HandleKey,
    ProxyLimits,
    Purge,
    SaveBinding,
    SaveSnapshot,
    SealedHandles,
    SettingsChanged,
    StopUpstream,
)
from mcp_tasks_proto.testing import ProxyHost
from mcp_tasks_proto.vocabulary import SERVER_INFO
from tests.unit.proxy_world import (
    DONE,
    UPSTREAM_TASK,
    ToyAead,
    ask,
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
    view,
)
from tests.unit.world import form

WORKING = {
    "status": "working",
    "createdAt": "2023-11-14T22:13:25.000Z",
    "lastUpdatedAt": "2023-11-14T22:13:25.000Z",
    "ttlMs": 86_400_000,
    "pollIntervalMs": 500,
}


DAY_MS = 86_400_000


def slow(**more: Any) -> tuple[ProxyHost, int]:
    """Return a proxy that promotes after five seconds, and a call to an upstream without tasks."""
    host = make_proxy(promote_after_ms=5000, node=more.pop("node", "node-1"), **more)
    return host, slow_call(host)


def slow_call(host: ProxyHost, **facts: Any) -> int:
    exchange = host.request("tools/call", {"name": "render"}, principal="alice", **facts)
    if "tools/call" not in methods(host):
        discover(host, tasks=False)
    return exchange


def promoted(**more: Any) -> tuple[ProxyHost, str]:
    host, exchange = slow(**more)
    host.advance(5000)
    return host, result(host.reply_to(exchange))["taskId"]


def test_prx16_a_call_that_is_quick_stays_a_call() -> None:
    host, exchange = slow()
    host.advance(4999)
    host.answer("tools/call", DONE)
    assert view(host.reply_to(exchange)) == DONE
    host.held = True
    host.advance(60_000)
    assert host.asked == []


def test_can7_a_caller_who_leaves_in_time_has_nothing_promoted() -> None:
    host, exchange = slow()
    host.give(ExchangeClosed(exchange))
    host.held = True
    host.advance(60_000)
    assert host.asked == []


def test_prx16_a_call_that_is_slow_becomes_a_task() -> None:
    host, exchange = slow()
    host.advance(5000)
    handed = result(host.reply_to(exchange))
    handle = handed["taskId"]
    assert handed == {
        "resultType": "task",
        "taskId": handle,
        **WORKING,
        "_meta": {SERVER_INFO: {"name": "proxy", "version": "1"}},
    }
    assert host.store.bindings[handle].node == "node-1"
    assert view(get(host, handle)) == {"taskId": handle, **WORKING}
    assert methods(host).count("tools/call") == 1
    assert "tasks/get" not in methods(host)


def test_prx16_it_is_durable_before_the_reply() -> None:
    host, exchange = slow()
    host.held = True
    host.advance(5000)
    host.answer_next()
    assert isinstance(host.asked[0], SaveBinding)
    with pytest.raises(LookupError):
        host.reply_to(exchange)
    host.answer_next()
    assert result(host.reply_to(exchange))["resultType"] == "task"


def test_prx16_the_answer_to_the_call_is_the_end_of_the_task() -> None:
    host, handle = promoted()
    host.now += 1000
    host.answer("tools/call", {**DONE, "_meta": {SERVER_INFO: {"name": "hidden"}}})
    ended = view(get(host, handle))
    assert ended["status"] == "completed"
    assert ended["lastUpdatedAt"] == "2023-11-14T22:13:26.000Z"
    assert ended["result"] == {
        **DONE,
        "resultType": "complete",
        "_meta": {SERVER_INFO: {"name": "proxy", "version": "1"}},
    }
    entry = host.store.entries[handle]
    assert [event.status.value for event in entry.timeline if event.status] == ["working", "completed"]
    assert entry.polls == 1, "only what its caller asked (HIS.1)"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"code": 7, "message": "broke", "data": 1}, {"code": 7, "message": "broke", "data": 1}),
        ("connection", "outcome_unknown"),
        ({"resultType": "input_required", "inputRequests": {"a": form()}}, "input_after_promotion"),
        (create(), "upstream_unasked_task"),
        ({"resultType": "stream"}, "upstream_invalid"),
    ],
)
def test_prx16_a_call_that_comes_to_nothing_fails_the_task(answer: Any, expected: Any) -> None:
    host, handle = promoted()
    if answer == "connection":
        host.fail("tools/call")
    elif "code" in answer:
        host.refuse("tools/call", answer)
    else:
        host.answer("tools/call", answer)
    failed = view(get(host, handle))
    assert failed["status"] == "failed"
    assert failed["statusMessage"] == failed["error"]["message"]
    if isinstance(expected, dict):
        assert failed["error"] == expected
    else:
        assert failed["error"]["data"]["reason"] == expected
    orphans = [UPSTREAM_TASK] if expected == "upstream_unasked_task" else []
    assert [params["taskId"] for params in sent_up(host, "tasks/cancel")] == orphans


def test_prx16_what_the_upstream_reports_then_is_for_nobody() -> None:
    host, _ = promoted()
    assert host.notify("tools/call", "notifications/progress", {"progress": 1}) == []


def test_prx16_it_can_be_cancelled() -> None:
    host, handle = promoted()
    exchange = ask(host, "tasks/cancel", handle)
    assert len(host.of(StopUpstream)) == 1
    assert view(host.reply_to(exchange)) == {}
    assert view(get(host, handle))["status"] == "cancelled"
    assert view(host.reply_to(ask(host, "tasks/cancel", handle))) == {}
    host.held = True
    host.advance(60_000)
    assert host.asked == [], "it is kept once"


def test_prx16_a_cancel_that_the_store_fails_is_kept_in_mind() -> None:
    host, handle = promoted()
    host.held = True
    exchange = ask(host, "tasks/cancel", handle)
    host.answer_next()
    host.give(SaveFailed(host.asked.pop().token))
    assert reason(host.reply_to(exchange)) == "store_unavailable"
    host.held = False
    assert view(get(host, handle))["status"] == "working"
    host.advance(250)
    assert view(get(host, handle))["status"] == "cancelled"


def test_prx16_an_end_is_tried_until_it_is_kept() -> None:
    host, handle = promoted()
    host.held = True
    host.answer("tools/call", DONE)
    for wait in (250, 500, 1000):
        (saving,) = host.asked
        assert isinstance(saving, SaveSnapshot)
        host.asked.clear()
        host.give(SaveFailed(saving.token))
        host.advance(wait - 1)
        assert host.asked == []
        host.advance(1)
    early = ask(host, "tasks/cancel", handle)
    host.asked.reverse()
    host.held = False
    host.answer_next()
    host.answer_next()
    assert view(host.reply_to(early)) == {}
    assert view(get(host, handle))["status"] == "completed"


def test_prx16_an_answer_that_comes_while_the_binding_is_saved_is_the_reply() -> None:
    host, exchange = slow()
    host.held = True
    host.advance(5000)
    host.answer("tools/call", DONE)
    host.answer_next()
    with pytest.raises(LookupError):
        host.reply_to(exchange)
    host.answer_next()
    assert view(host.reply_to(exchange)) == DONE
    assert len(host.of(DropTask)) == 1
    assert not host.store.bindings


def test_prx16_a_binding_that_cannot_be_kept_leaves_it_a_call() -> None:
    host, exchange = slow()
    host.held = True
    host.advance(5000)
    host.answer_next()
    host.give(SaveFailed(host.asked.pop().token))
    host.answer("tools/call", DONE)
    assert view(host.reply_to(exchange)) == DONE
    host, exchange = slow()
    host.held = True
    host.advance(5000)
    host.answer_next()
    host.answer("tools/call", DONE)
    host.give(SaveFailed(host.asked.pop().token))
    assert view(host.reply_to(exchange)) == DONE


def test_prx16_a_caller_who_leaves_meanwhile_leaves_nothing() -> None:
    for fails in (False, True):
        host, exchange = slow()
        host.held = True
        host.advance(5000)
        host.answer_next()
        host.give(ExchangeClosed(exchange))
        assert len(host.of(StopUpstream)) == 1
        saving = host.asked.pop()
        host.give(SaveFailed(saving.token) if fails else host.store.answer(saving))
        assert not host.store.bindings


def test_can7_a_caller_who_leaves_later_leaves_the_task_alone() -> None:
    host, exchange = slow()
    host.advance(5000)
    host.give(ExchangeClosed(exchange))
    assert not host.of(StopUpstream)


def test_lim3_there_is_room_for_so_many() -> None:
    host, first = slow(limits=ProxyLimits(promoted=1))
    second = slow_call(host)
    host.advance(5000)
    assert result(host.reply_to(first))["resultType"] == "task"
    for _ in range(2):
        host.answer("tools/call", DONE)
    assert view(host.reply_to(second)) == DONE


def saving_of(host: ProxyHost) -> SaveBinding:
    """Let the host draw what it is asked for, and return the binding that the store is asked to save."""
    host.answer_next()
    saving = host.asked.pop()
    assert isinstance(saving, SaveBinding)
    return saving


@pytest.mark.parametrize("saved", [True, False])
def test_lim3_bindings_under_way_take_room_until_they_are_through(saved: bool) -> None:
    host, first = slow(limits=ProxyLimits(promoted=2))
    calls = [first, slow_call(host), slow_call(host)]
    host.held = True
    host.advance(5000)
    assert [type(one).__name__ for one in host.asked] == ["DrawRandom", "DrawRandom"]
    later = slow_call(host)
    for _ in range(2):
        saving = saving_of(host)
        host.give(host.store.answer(saving) if saved else SaveFailed(saving.token))
    host.held = False
    host.advance(5000)
    for _ in range(4):
        host.answer("tools/call", DONE)
    kinds = [result(host.reply_to(exchange))["resultType"] for exchange in [*calls, later]]
    assert kinds == (["task", "task", "complete", "complete"] if saved else ["complete"] * 3 + ["task"])


def test_lim3_bindings_that_came_to_nothing_leave_room_for_no_more() -> None:
    host, first = slow(limits=ProxyLimits(promoted=1))
    host.held = True
    host.advance(5000)
    host.give(SaveFailed(saving_of(host).token))
    exchanges = [first, slow_call(host), slow_call(host)]
    host.advance(5000)
    assert len(host.asked) == 1
    host.held = False
    host.answer_next()
    for _ in range(3):
        host.answer("tools/call", DONE)
    kinds = [result(host.reply_to(exchange))["resultType"] for exchange in exchanges]
    assert kinds == ["complete", "task", "complete"]


def test_lim3_ends_that_are_not_kept_take_room() -> None:
    host, _ = promoted(limits=ProxyLimits(promoted=1))
    host.held = True
    host.answer("tools/call", DONE)
    (saving,) = host.asked
    assert isinstance(saving, SaveSnapshot)
    second = slow_call(host)
    host.advance(5000)
    assert len(host.asked) == 1
    host.answer("tools/call", DONE)
    assert view(host.reply_to(second)) == DONE
    host.answer_next()
    slow_call(host)
    host.advance(5000)
    assert len(host.asked) == 1


def test_prx16_only_for_callers_who_declare_tasks() -> None:
    host, _ = slow()
    exchange = slow_call(host, tasks=False)
    host.advance(60_000)
    with pytest.raises(LookupError):
        host.reply_to(exchange)


def test_prx16_an_update_has_nothing_to_answer() -> None:
    host, handle = promoted()
    exchange = ask(host, "tasks/update", handle, params={"inputResponses": {"a": {}}})
    assert view(host.reply_to(exchange)) == {}


# -- after a restart ---------------------------------------------------------------------------------------


def test_prx16_after_a_restart_an_orphan_is_honestly_failed() -> None:
    before, handle = promoted()
    host = make_proxy(store=before.store, node="node-2")
    assert view(get(host, handle))["status"] == "working", "it may be running elsewhere"
    host.give(WorkLost(handle, "node-1"))
    failed = view(get(host, handle))
    assert failed["status"] == "failed"
    assert failed["error"]["data"]["reason"] == "worker_lost"
    assert methods(host) == []


def test_prx16_what_another_node_loses_is_its_own() -> None:
    before, handle = promoted()
    host = make_proxy(store=before.store, node="node-2")
    relayed = handed_out(host)
    for lost in (WorkLost(handle, "node-0"), WorkLost(relayed, "node-2")):
        host.give(lost)
    assert host.store.snapshots == {}


def test_prx16_what_is_not_lost_goes_on() -> None:
    host, handle = promoted()
    host.give(WorkLost(handle, "node-1"))
    host.give(WorkLost(handle, "node-0"))
    host.give(WorkLost("nobody's", "node-1"))
    assert view(get(host, handle))["status"] == "working"
    host.answer("tools/call", DONE)
    host.give(WorkLost(handle, "node-1"))
    assert view(get(host, handle))["status"] == "completed"


def test_prx16_a_store_that_fails_is_told_again() -> None:
    before, handle = promoted()
    host = make_proxy(store=before.store, node="node-2")
    host.held = True
    host.give(WorkLost(handle, "node-1"))
    host.give(LoadFailed(host.asked.pop().token))
    host.give(WorkLost(handle, "node-1"))
    host.answer_next()
    host.give(SaveFailed(host.asked.pop().token))
    host.held = False
    host.give(WorkLost(handle, "node-1"))
    assert view(get(host, handle))["status"] == "failed"


def test_prx16_a_cancel_on_another_node_is_the_first_end() -> None:
    home, handle = promoted()
    away = make_proxy(store=home.store, node="node-2")
    assert view(away.reply_to(ask(away, "tasks/cancel", handle))) == {}
    home.answer("tools/call", DONE)
    assert view(get(home, handle))["status"] == "cancelled"
    other, handle = promoted()
    away = make_proxy(store=other.store, node="node-2")
    away.held = True
    exchange = ask(away, "tasks/cancel", handle)
    away.answer_next()
    away.give(SaveFailed(away.asked.pop().token))
    assert reason(away.reply_to(exchange)) == "store_unavailable"


def test_prx16_with_sealed_handles_the_binding_is_kept_all_the_same() -> None:
    codec = SealedHandles([HandleKey("a", ToyAead(b"k"))])
    before, handle = promoted(codec=codec)
    assert before.store.bindings[handle].node == "node-1"
    host = make_proxy(store=before.store, node="node-2", codec=codec)
    host.give(WorkLost(handle, "node-1"))
    assert view(get(host, handle))["status"] == "failed"
    assert error(get(host, handle, principal="bob"))["message"] == "Task not found"


# -- when its end is not kept any more -----------------------------------------------------------------------

SEALED = SealedHandles([HandleKey("a", ToyAead(b"k"))])


@pytest.mark.parametrize("settings", [{}, {"codec": SEALED}], ids=["stored", "sealed"])
def test_his4_a_promoted_task_goes_with_its_end_and_does_not_work_again(settings: dict[str, Any]) -> None:
    """LIFE.1: whether the end waits to be removed or has been, whoever asks and whatever node it ran on."""
    host, handle = promoted(**settings)
    host.answer("tools/call", DONE)
    host.advance(DAY_MS - 1)
    assert view(get(host, handle))["status"] == "completed"
    host.now += 1
    assert error(get(host, handle))["message"] == "Task not found"
    host.advance(60_000)
    host.give(WorkLost(handle, "node-1"))
    for method in ("tasks/get", "tasks/cancel"):
        assert error(host.reply_to(ask(host, method, handle)))["message"] == "Task not found"
    assert (host.store.bindings, host.store.snapshots) == ({}, {})


def test_ttl1_it_promises_no_more_than_that() -> None:
    host, handle = promoted(limits=ProxyLimits(keep_ms=3_600_000))
    assert view(get(host, handle))["ttlMs"] == 3_600_000
    host, handle = promoted(retention=Retention(payload_ms=60_000))
    assert view(get(host, handle))["ttlMs"] == 60_000
    host.advance(120_000)
    assert view(get(host, handle))["status"] == "working", "a call that goes on is not gone"


def test_his4_an_end_that_comes_after_another_is_gone_brings_nothing_back() -> None:
    """It was cancelled on another node, while its call went on here."""
    here, handle = promoted(codec=SEALED, retention=Retention(payload_ms=60_000))
    there = make_proxy(store=here.store, node="node-2", codec=SEALED)
    ask(there, "tasks/cancel", handle)
    here.advance(120_000)
    here.answer("tools/call", DONE)
    assert error(get(here, handle))["message"] == "Task not found"


def test_ttl1_prx5_another_proxy_with_the_same_keys_and_a_store_of_its_own_does_not_call_it_unknown() -> None:
    """As far as it knows the call goes on, until an end could have been kept for as long as it may be."""
    _, handle = promoted(codec=SEALED, retention=Retention(payload_ms=60_000))
    there = make_proxy(codec=SEALED, node="node-2", retention=Retention(payload_ms=60_000))
    there.now += 5000 + 59_999
    assert view(get(there, handle))["status"] == "working"
    ask(there, "tasks/cancel", handle)
    assert view(get(there, handle))["status"] == "cancelled"
    there.now += 1
    assert error(get(there, handle))["message"] == "Task not found"


def test_his4_a_sealed_handle_of_a_deleted_project_is_unknown() -> None:
    host, exchange = slow(access=FILM, codec=SEALED)
    host.advance(5000)
    handle = result(host.reply_to(exchange))["taskId"]
    assert view(get(host, handle, access=FILM))["status"] == "working"
    host.give(SettingsChanged(make_settings(**DELETED)))
    assert error(get(host, handle, access=FILM))["message"] == "Task not found"


def test_his4_whoever_listens_hears_no_more_of_it() -> None:
    host, handle = promoted()
    host.answer("tools/call", DONE)
    params = {"notifications": {"taskIds": [handle]}}
    exchange = host.request("subscriptions/listen", params, principal="alice")
    host.now += DAY_MS
    host.give(StreamReady(exchange))
    host.advance(60_000)
    assert len(host.sent_on(exchange)) == 1


# -- projects that are deleted ------------------------------------------------------------------------------

FILM = Access(project="film")
DELETED: dict[str, Any] = {"promote_after_ms": 5000, "deleted_projects": frozenset({"film"})}


def test_his4_deleting_a_project_removes_what_is_kept_of_it_at_once() -> None:
    host, exchange = slow(access=FILM)
    host.advance(5000)
    handle = result(host.reply_to(exchange))["taskId"]
    other = host.request("tools/call", {"name": "render"}, access=Access(project="other"))
    host.advance(5000)
    kept = result(host.reply_to(other))["taskId"]
    host.give(SettingsChanged(make_settings(**DELETED)))
    (purge,) = host.of(Purge)[-1:]
    assert purge.projects == {"film"}
    assert [*host.store.bindings] == [*host.store.entries] == [kept]
    assert handle != kept
    host.give(SettingsChanged(make_settings(**DELETED)))
    assert host.of(Purge)[-1] is purge, "once is enough"
    host.advance(60_000)
    assert host.of(Purge)[-1].projects == {"film"}, "of what was under way at that time"


def test_his4_the_end_of_a_call_of_a_deleted_project_is_not_kept() -> None:
    host, exchange = slow(access=FILM)
    host.advance(5000)
    result(host.reply_to(exchange))
    host.give(SettingsChanged(make_settings(**DELETED)))
    host.held = True
    host.answer("tools/call", DONE)
    assert (host.asked, host.store.snapshots, host.store.entries) == ([], {}, {})


def test_lim3_an_end_that_must_not_be_kept_takes_no_room() -> None:
    host, _ = slow(access=FILM, limits=ProxyLimits(promoted=1))
    host.advance(5000)
    host.give(SettingsChanged(make_settings(**DELETED, limits=ProxyLimits(promoted=1))))
    host.answer("tools/call", DONE)
    exchange = host.request("tools/call", {"name": "render"}, principal="alice")
    discover(host, tasks=False)
    host.advance(5000)
    assert result(host.reply_to(exchange))["resultType"] == "task"


def test_his4_a_binding_whose_entry_is_gone_goes_with_its_project() -> None:
    host, _ = slow(access=FILM)
    host.advance(5000)
    host.store.entries.clear()
    host.give(SettingsChanged(make_settings(**DELETED)))
    assert host.store.bindings == {}
