"""Work whose node is gone, news for nobody, slices that wait: LIFE.1, LIFE.2, CAN.6, TTL.1, TTL.2."""

from __future__ import annotations

import pytest

from mcp_tasks_proto import (
    AcceptReport,
    CancelReason,
    Delete,
    ExpiredFound,
    FindExpired,
    Limits,
    LoadFailed,
    RecordChanged,
    RequestCancel,
    SaveFailed,
    ServerEngine,
    TimePassed,
    WorkCompleted,
    WorkLost,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing import DictStore, ServerHost
from mcp_tasks_proto.wire.jsonrpc import json_size
from tests.unit.world import (
    DONE,
    NEVER,
    OTHER,
    START,
    TASK,
    TOOLS,
    cancel,
    listen,
    make_engine,
    parked,
    read,
    refused,
    view,
    working,
)

LOST = WorkLost(TASK, "home")


def node(name: str | None, store: DictStore, limits: Limits | None = None) -> ServerHost:
    """Return a host whose engine has a name."""
    engine = ServerEngine(settings=make_engine(limits).settings, tools=TOOLS, node=name)
    host = ServerHost(engine=engine, store=store, now=START)
    host.give(TimePassed())
    return host


def two_nodes(limits: Limits | None = None) -> tuple[ServerHost, ServerHost]:
    """Return the node that will be gone, and the one that stays."""
    store = DictStore()
    return node("home", store, limits), node("away", store, limits)


def record(host: ServerHost) -> TaskRecord:
    return host.store.records[TASK]


# -- the node of a task ------------------------------------------------------------------------------


def test_a_record_says_where_its_work_runs_until_it_ends() -> None:
    home, away = two_nodes()
    working(home)
    assert record(home).node == "home"
    cancel(away)
    assert record(home).node == "home", "who else writes does not matter"
    home.give(WorkStopped(task_id=TASK, token=1))
    assert record(home).node is None


def test_life5_the_node_is_no_part_of_the_view() -> None:
    home, _ = two_nodes()
    unnamed = node(None, DictStore())
    working(home)
    working(unnamed)
    assert record(unnamed).node is None
    assert view(home) == view(unnamed)


# -- lost work ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
def test_life2_the_task_of_a_lost_worker_fails_and_says_so(waits: bool) -> None:
    home, away = two_nodes()
    (parked if waits else working)(home)
    away.give(LOST)
    shown = view(away)
    assert shown["status"] == "failed"
    assert shown["error"]["code"] == -32603
    assert shown["error"]["data"] == {"reason": "worker_lost"}
    assert "lost" in shown["statusMessage"]
    after = record(away)
    assert (after.arguments, after.inputs, after.node) == (None, (), None)
    assert after.payload_bytes == json_size(shown["error"])


def test_can6_if_its_cancellation_was_asked_for_it_is_cancelled() -> None:
    home, away = two_nodes()
    working(home)
    cancel(away)
    away.give(LOST)
    assert view(away)["status"] == "cancelled"
    assert record(away).payload_bytes == 0


def test_sub2_listeners_hear_of_it() -> None:
    home, away = two_nodes()
    working(home)
    stream = listen(away, TASK)
    read(away, stream)
    away.give(LOST)
    assert read(away, stream)[-1]["params"]["status"] == "failed"


def test_life1_work_that_ended_before_is_not_lost() -> None:
    home, away = two_nodes()
    working(home)
    home.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    before = view(away)
    away.give(LOST)
    assert view(away) == before


def test_a_task_that_is_gone_or_run_by_another_node_is_left_alone() -> None:
    home, away = two_nodes()
    working(home)
    before = record(away)
    away.give(WorkLost(TASK, "another"))
    away.give(WorkLost(NEVER, "home"))
    assert list(away.store.records.values()) == [before]


def test_life1_whoever_was_only_thought_to_be_gone_is_told_to_stop() -> None:
    home, away = two_nodes()
    working(home)
    away.give(LOST)
    assert home.give(RecordChanged(record(away))) == [RequestCancel(TASK, CancelReason.ENDED)]
    home.give(WorkCompleted(task_id=TASK, token="late", result=DONE))
    assert home.of(AcceptReport) == [AcceptReport("late")]
    assert view(home)["status"] == "failed"


@pytest.mark.parametrize("at", ["load", "save"])
def test_lim3_what_could_not_be_saved_waits_for_the_host_to_say_it_again(at: str) -> None:
    home, away = two_nodes()
    working(home)
    away.held = True
    for _ in range(10):
        away.give(LOST)
        if at == "load":
            away.give(LoadFailed(away.asked.pop().token))
        else:
            away.answer_next()
            away.give(SaveFailed(away.asked.pop().token))
        assert away.asked == []
        assert away.deadline is None, "nothing is tried again by itself"
    away.held = False
    away.give(LOST)
    assert view(away)["status"] == "failed"


# -- what concerns a node ------------------------------------------------------------------------------


def test_a_node_is_concerned_by_its_workers_and_its_listeners() -> None:
    home, away = two_nodes()
    assert not home.engine.concerns(TASK)
    working(home)
    assert home.engine.concerns(TASK)
    assert not away.engine.concerns(TASK)
    stream = listen(away, TASK, NEVER)
    assert away.engine.concerns(TASK)
    assert not away.engine.concerns(NEVER)
    home.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    assert not home.engine.concerns(TASK)
    away.give(RecordChanged(record(home)))
    read(away, stream)
    assert not away.engine.concerns(TASK), "after a terminal view nothing more comes"


def test_a_listener_is_concerned_before_its_stream_is_acknowledged() -> None:
    home, away = two_nodes()
    working(home)
    away.held = True
    listen(away, TASK)
    assert away.engine.concerns(TASK)


def test_ttl1_a_worker_hears_of_a_removal_that_nobody_told_of() -> None:
    home, _ = two_nodes()
    working(home)
    del home.store.records[TASK]
    told = home.give(WorkProgressed(task_id=TASK, token="p", status_message="busy"))
    assert told == [RequestCancel(TASK, CancelReason.EXPIRED), AcceptReport("p")]


# -- one slice at a time (TTL.2) -------------------------------------------------------------------------


def expired_store(tasks: int, limits: Limits) -> ServerHost:
    """Return a host with so many tasks that have just expired, and a store that waits to be told."""
    host = node(None, DictStore(), limits)
    for number in range(tasks):
        working(host, f"task-{number}-0123456789abcdef", ttl_ms=1_000)
    host.now += 1_000
    host.held = True
    return host


def asked_kinds(host: ServerHost) -> list[type]:
    return [type(effect) for effect in host.asked]


def wake(host: ServerHost) -> None:
    assert host.deadline is not None
    host.now = max(host.now, host.deadline)
    host.give(TimePassed())


def test_ttl2_the_next_slice_waits_until_this_one_is_removed() -> None:
    host = expired_store(4, Limits(sweep_batch=2))
    wake(host)
    host.answer_next()
    assert asked_kinds(host) == [Delete, Delete]
    assert host.deadline is None, "a slow store is not asked for the same records again"
    host.answer_next()
    assert host.deadline is None
    host.answer_next()
    wake(host)
    assert asked_kinds(host) == [FindExpired]


def test_ttl2_a_look_that_takes_long_is_not_doubled() -> None:
    host = expired_store(1, Limits())
    wake(host)
    host.held = False
    working(host, OTHER, ttl_ms=500)
    assert host.deadline is None
    host.answer_next()
    assert host.deadline == host.now + 500, "planned meanwhile, and not forgotten"


def test_ttl2_a_slice_that_cannot_be_removed_makes_a_pause() -> None:
    host = expired_store(4, Limits(sweep_batch=2))
    wake(host)
    host.answer_next()
    host.give(SaveFailed(host.asked.pop(0).token))
    host.answer_next()
    assert host.deadline is not None
    assert host.deadline >= host.now + 1_000
    host.held = False
    host.advance(120_000)
    assert host.store.records == {}


def test_ttl2_a_look_that_fails_makes_a_pause_whatever_else_is_planned() -> None:
    host = expired_store(1, Limits())
    wake(host)
    host.held = False
    working(host, OTHER, ttl_ms=500)
    host.give(LoadFailed(host.asked.pop().token))
    assert host.deadline is not None
    assert host.deadline >= host.now + 1_000


def test_ttl2_nobody_looks_under_no_token() -> None:
    host = node(None, DictStore())
    assert "outstanding" in refused(host, LoadFailed(None))
    assert "outstanding" in refused(host, ExpiredFound(None, [], None))
