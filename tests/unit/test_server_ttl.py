"""The end of a task's time: TTL.1 to TTL.3, LIFE.5, TRAPS 6, 7 and 15."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    CancelReason,
    Delete,
    DeliverInput,
    ExpiredFound,
    FindExpired,
    Limits,
    LoadFailed,
    RejectReport,
    RequestCancel,
    SaveConflict,
    SaveFailed,
    StartWork,
    StopCall,
    TimePassed,
    ToolsChanged,
    TtlChanged,
    WorkCompleted,
    WorkProgressed,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing import DictStore, ServerHost, request
from tests.unit.world import (
    ACCEPTED,
    DONE,
    OTHER,
    START,
    TASK,
    THIRD,
    asked,
    call,
    cancel,
    error,
    listen,
    make_engine,
    make_host,
    parked,
    refused,
    update,
    view,
    working,
)

EXPIRED = RequestCancel(TASK, CancelReason.EXPIRED)


def known(host: ServerHost, task_id: str = TASK) -> bool:
    return "result" in host.ask("tasks/get", {"taskId": task_id})


# -- the boundary (TTL.1) --------------------------------------------------------------------------


@pytest.mark.parametrize(("age_ms", "readable"), [(0, True), (999, True), (1_000, False), (5_000, False)])
@pytest.mark.parametrize("ended", [False, True])
def test_ttl1_readable_until_its_time_is_up_and_not_after(age_ms: int, readable: bool, ended: bool) -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    if ended:
        host.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    host.now += age_ms
    assert known(host) is readable


def test_ttl1_without_a_lifetime_a_task_stays() -> None:
    """TRAP 15."""
    host = make_host()
    working(host, ttl_ms=None)
    assert host.deadline is None
    host.now += 10**12
    host.give(TimePassed())
    assert view(host)["ttlMs"] is None


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_ttl1_a_late_access_removes_it(method: str) -> None:
    """Before the sweep comes: unknown at once, then the record goes and the worker is told."""
    host = make_host()
    parked(host, ttl_ms=1_000)
    host.now += 1_000
    reply = host.ask(method, {"taskId": TASK, "inputResponses": {"confirm": ACCEPTED}})
    assert error(reply)["message"] == "Task not found"
    assert host.store.records == {}
    assert host.of(RequestCancel) == [EXPIRED]
    assert not host.of(DeliverInput)
    assert host.advance(60_000) == [], "nothing is left to do"


def test_ttl1_a_parked_task_expires_by_deadline() -> None:
    """TRAP 6: nothing stays parked."""
    host = make_host()
    parked(host, ttl_ms=1_000)
    assert host.deadline == START + 1_000
    assert host.advance(999) == []
    assert host.advance(1) == [EXPIRED]
    assert host.store.records == {}
    assert not known(host)


def test_ttl1_an_expired_task_is_not_read_by_a_stranger_either() -> None:
    """GET.2: and who reads it makes no difference."""
    host = make_host()
    working(host, principal="alice", ttl_ms=1_000)
    host.now += 1_000
    assert error(host.ask("tasks/get", {"taskId": TASK}, principal="bob"))["message"] == "Task not found"


def test_ttl1_an_ended_task_goes_without_a_word() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    host.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    assert host.advance(1_000) == []
    assert host.store.records == {}


def test_ttl1_reports_come_too_late() -> None:
    host = make_host()
    parked(host, ttl_ms=1_000)
    host.now += 1_000
    (rejected, told) = host.give(asked("second", "more", token="q"))
    assert isinstance(rejected, RejectReport)
    assert "time to live" in rejected.reason
    assert told == EXPIRED
    for late in (
        WorkProgressed(task_id=TASK, token="r", status_message="busy"),
        WorkWithdrewInput(task_id=TASK, token="r", ask="first"),
        WorkCompleted(task_id=TASK, token="r", result=DONE),
    ):
        assert host.give(late) == [AcceptReport("r")]
    assert host.store.records == {}


def test_ttl1_a_worker_that_was_told_to_stop_is_not_told_again() -> None:
    host = make_host(Limits(cancel_grace_ms=5_000))
    working(host, ttl_ms=1_000)
    cancel(host)
    host.advance(60_000)
    assert host.of(RequestCancel) == [RequestCancel(TASK, CancelReason.REQUESTED)]
    assert host.store.records == {}


def test_ttl1_the_arguments_live_as_long_as_the_task() -> None:
    """TRAP 7: they cannot run out before the task that needs them."""
    host = make_host()
    parked(host, ttl_ms=1_000)
    host.now += 999
    assert host.store.records[TASK].arguments == {"frames": 3}
    update(host, {"confirm": ACCEPTED})
    assert len(host.of(DeliverInput)) == 1


# -- sweeping (TTL.2) ------------------------------------------------------------------------------


def test_ttl2_the_first_thing_is_to_look_for_what_expired_before() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    later = ServerHost(engine=make_engine(), store=host.store, now=START + 5_000)
    assert later.give(ToolsChanged()) == []
    assert later.deadline is not None
    assert later.deadline <= later.now
    later.advance(0)
    assert later.store.records == {}


def test_ttl2_sweeping_goes_in_slices() -> None:
    host = make_host(Limits(sweep_batch=2))
    for number in range(5):
        working(host, f"task-{number}-0123456789abcdef", ttl_ms=1_000)
    working(host, TASK, ttl_ms=9_000)
    host.held = True
    host.now += 1_000
    for left in (4, 2, 1):
        host.give(TimePassed())
        (find,) = host.asked
        assert isinstance(find, FindExpired)
        assert (find.now_ms, find.limit) == (host.now, 2)
        host.answer_next()
        assert all(isinstance(effect, Delete) for effect in host.asked)
        while host.asked:
            host.answer_next()
        assert len(host.store.records) == left
        assert host.deadline is not None
        host.now = host.deadline
    assert host.now == START + 9_000, "after the last slice, only the next expiry is waited for"


def test_ttl2_each_task_has_its_own_moment() -> None:
    host = make_host()
    working(host, TASK, ttl_ms=3_000)
    working(host, OTHER, ttl_ms=1_000)
    working(host, THIRD, ttl_ms=2_000)
    seen = []
    for _ in range(3):
        host.advance(1_000)
        seen.append([told.task_id for told in host.of(RequestCancel)])
    assert seen == [[OTHER], [OTHER, THIRD], [OTHER, THIRD, TASK]]
    assert host.deadline is None


def test_ttl2_nothing_is_dropped_to_make_room() -> None:
    host = make_host(Limits(tasks=1))
    working(host, ttl_ms=1_000)
    exchange = call(host)
    host.give(CallBecameTask(exchange=exchange, task_id=OTHER))
    assert error(host.reply_to(exchange))["data"] == {"reason": "tasks"}
    assert known(host)
    host.advance(1_000)
    working(host, OTHER)
    assert known(host, OTHER)


def test_ttl2_a_sweep_that_fails_is_tried_again() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    host.held = True
    host.now += 1_000
    host.give(TimePassed())
    host.give(LoadFailed(host.asked.pop().token))
    assert host.deadline is not None
    assert host.deadline > host.now
    host.held = False
    host.advance(60_000)
    assert host.store.records == {}


def test_ttl2_a_removal_that_fails_is_tried_again_by_the_sweep() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    host.held = True
    host.now += 1_000
    host.give(TimePassed())
    host.answer_next()
    host.give(SaveFailed(host.asked.pop().token))
    host.held = False
    assert host.advance(60_000) == [EXPIRED]
    assert host.store.records == {}


def test_ttl2_one_removal_that_failed_does_not_hold_up_later_sweeps() -> None:
    host = make_host()
    for task_id, ttl_ms in [(TASK, 1_000), (OTHER, 1_010), (THIRD, 1_020)]:
        working(host, task_id, ttl_ms=ttl_ms)
    host.now += 1_000
    host.held = True
    host.send(request("tasks/get", {"taskId": TASK}))
    host.answer_next()
    host.give(SaveFailed(host.asked.pop().token))
    host.held = False
    for left in ({OTHER, THIRD}, {THIRD}, set()):
        host.advance(0)
        assert set(host.store.records) == left
        host.now += 10


def test_ttl2_a_late_access_is_no_part_of_the_slice_under_way() -> None:
    host = make_host(Limits(sweep_batch=2))
    for task_id in (OTHER, TASK, THIRD):
        working(host, task_id, ttl_ms=1_000)
    host.now += 1_000
    host.held = True
    host.give(TimePassed())
    host.answer_next()
    first, second = [effect for effect in host.asked if isinstance(effect, Delete)]
    host.asked.clear()
    host.send(
        request("tasks/get", {"taskId": ({OTHER, TASK, THIRD} - {first.task_id, second.task_id}).pop()})
    )
    host.answer_next()
    host.answer_next()
    host.give(host.store.answer(first))
    assert host.deadline is None, "the slice is not done"
    host.give(host.store.answer(second))
    assert host.deadline is not None
    assert host.store.records == {}


def test_lim3_a_store_that_removes_nothing_does_not_pile_up_work() -> None:
    """However often an expired task is asked for, only the sweep remembers it, and only so often."""
    host = make_host()
    working(host, ttl_ms=1_000)
    host.now += 1_000
    host.held = True
    for _ in range(50):
        host.send(request("tasks/get", {"taskId": TASK}))
        host.answer_next()
        host.give(SaveFailed(host.asked.pop().token))
    tried: list[type] = []
    until = host.now + 300_000
    while host.deadline is not None and host.deadline <= until:
        host.now = max(host.now, host.deadline)
        host.give(TimePassed())
        while host.asked:
            effect = host.asked.pop(0)
            tried.append(type(effect))
            failing = isinstance(effect, Delete)
            host.give(SaveFailed(effect.token) if failing else host.store.answer(effect))
    assert set(tried) == {FindExpired, Delete}
    assert len(tried) <= 30


def test_ttl2_a_record_that_got_more_time_meanwhile_stays() -> None:
    """The sweep found it, then the host prolonged it: the removal meets a conflict and gives up."""
    host = make_host()
    working(host, ttl_ms=1_000)
    other = make_host(store=host.store)
    host.held = True
    host.now += 999
    stale = host.store.records[TASK]
    other.now = host.now
    other.give(TtlChanged(task_id=TASK, ttl_ms=60_000, token=1))
    host.now += 1
    host.give(TimePassed())
    host.give(ExpiredFound(host.asked.pop().token, [stale], None))
    host.answer_next()
    assert host.asked == []
    host.held = False
    assert known(host)


def test_ttl2_a_record_that_is_gone_meanwhile_is_gone() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    host.now += 1_000
    host.held = True
    host.give(TimePassed())
    host.answer_next()
    (delete,) = host.asked
    assert host.give(SaveConflict(delete.token, None)) == [EXPIRED], (
        "whoever removed it could not tell the worker"
    )


def test_ttl2_found_is_said_of_what_was_looked_for() -> None:
    host = make_host()
    assert "outstanding" in refused(host, ExpiredFound("?", [], None))


@pytest.mark.parametrize("next_expiry_ms", [0, START, START + 1])
def test_ttl2_what_should_have_been_found_is_looked_for_a_moment_later(next_expiry_ms: int) -> None:
    """A store that says so again and again is not asked all the time."""
    host = ServerHost(engine=make_engine(), held=True, now=START)
    host.give(TimePassed())
    (look,) = host.asked
    host.give(ExpiredFound(look.token, [], next_expiry_ms))
    assert host.deadline == START + 1


def test_a_new_task_may_take_the_id_of_an_expired_one() -> None:
    """It cannot happen with random ids; if it does, the old record goes and the new one is offered again."""
    store = DictStore()
    host = make_host(store=store)
    working(host, ttl_ms=1_000)
    host.now += 1_000
    assert working(host)["status"] == "working"
    assert store.records[TASK].created_at_ms == START + 1_000


def test_a_new_task_may_take_the_id_of_one_that_was_removed_elsewhere() -> None:
    """Nobody has told of the removal: the work of the old one is taken for gone."""
    host = make_host()
    working(host, ttl_ms=1_000)
    del host.store.records[TASK]
    assert working(host)["status"] == "working"
    assert [started.task_id for started in host.of(StartWork)] == [TASK, TASK]
    assert host.of(StopCall) == []


# -- other lifetimes (TTL.3) -----------------------------------------------------------------------


def change(host: ServerHost, ttl_ms: int | None, by: str = "host") -> None:
    if by == "host":
        host.give(TtlChanged(task_id=TASK, ttl_ms=ttl_ms, token="ttl"))
    else:
        host.give(WorkProgressed(task_id=TASK, ttl_ms=ttl_ms, token="ttl"))
    assert host.of(AcceptReport)[-1] == AcceptReport("ttl")


@pytest.mark.parametrize("by", ["host", "worker"])
def test_ttl3_a_lifetime_may_grow(by: str) -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    change(host, 5_000, by)
    assert view(host)["ttlMs"] == 5_000
    assert host.advance(4_999) == []
    assert host.advance(1) == [EXPIRED]


@pytest.mark.parametrize("by", ["host", "worker"])
def test_ttl3_a_lifetime_may_shrink(by: str) -> None:
    host = make_host()
    working(host, ttl_ms=60_000)
    host.now += 100
    change(host, 500, by)
    assert view(host)["ttlMs"] == 500
    assert host.advance(399) == []
    assert host.advance(1) == [EXPIRED]


def test_ttl3_a_lifetime_may_shrink_into_the_past() -> None:
    host = make_host()
    working(host, ttl_ms=60_000)
    host.now += 1_000
    change(host, 1)
    assert not known(host)
    assert host.of(RequestCancel) == [EXPIRED]


def test_ttl3_a_lifetime_may_end_and_begin() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    change(host, None)
    host.advance(10**9)
    assert view(host)["ttlMs"] is None
    change(host, 10**9 + 5)
    assert host.advance(5) == [EXPIRED]


def test_ttl3_an_ended_task_may_be_kept_longer() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    host.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    before = view(host)
    stream = listen(host, TASK)
    told = host.sent_on(stream)
    host.now += 500
    change(host, 5_000)
    after = view(host)
    assert after == {**before, "ttlMs": 5_000, "lastUpdatedAt": after["lastUpdatedAt"]}
    assert after["lastUpdatedAt"] > before["lastUpdatedAt"]
    assert host.sent_on(stream) == told, "nobody is notified of an ended task any more"
    host.advance(4_499)
    assert known(host)
    host.advance(1)
    assert not known(host)


def test_ttl3_the_worker_of_an_ended_task_cannot() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    host.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    change(host, 5_000, by="worker")
    assert view(host)["ttlMs"] == 1_000


@pytest.mark.parametrize(("wanted", "given"), [(5_000, 5_000), (10_001, 10_000), (None, 10_000)])
def test_lim3_lifetimes_have_a_ceiling(wanted: int | None, given: int) -> None:
    host = make_host(Limits(ttl_ceiling_ms=10_000))
    facts: dict[str, Any] = {"ttl_ms": wanted}
    assert working(host, **facts)["ttlMs"] == given
    change(host, 7)
    change(host, wanted)
    assert view(host)["ttlMs"] == given
