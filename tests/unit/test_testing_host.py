"""The tools for testing: a host, a store, a request."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    CancelReason,
    Delete,
    DeliverInput,
    Effect,
    ExchangeClosed,
    ExpiredFound,
    FindExpired,
    HttpHead,
    InputAnswer,
    LegacyInput,
    ListTasks,
    Load,
    Loaded,
    LoadFailed,
    OpenStream,
    Quota,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Save,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    Send,
    SessionEnded,
    StartWork,
    Status,
    Step,
    StopCall,
    StreamRequested,
    TaskRecord,
    TimePassed,
    TtlChanged,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.testing import DictStore, ServerHost, request
from tests.unit.liar import Liar
from tests.unit.world import NEVER, OTHER, START, TASK, THIRD, call, listen, make_host, working

RECORD = TaskRecord(
    task_id=TASK,
    version=1,
    principal="alice",
    tool="render",
    arguments={},
    client_capabilities={},
    status=Status.WORKING,
    created_at_ms=START,
    last_updated_at_ms=START,
    ttl_ms=1_000,
    payload_bytes=10,
)
ROOM = Quota(tasks=10, tasks_per_principal=10, task_bytes=1_000)


def test_a_request_declares_what_it_is_told_to() -> None:
    plain = request("tools/list", tasks=False)["params"]["_meta"]
    assert plain["io.modelcontextprotocol/clientCapabilities"] == {}
    rich = request("tools/list", capabilities={"extensions": {"x": {}}, "roots": {}}, meta={"a": 1})
    meta = rich["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {
        "extensions": {"x": {}, "io.modelcontextprotocol/tasks": {}},
        "roots": {},
    }
    assert meta["a"] == 1


# -- the store -------------------------------------------------------------------------------------


def test_the_store_gives_back_what_was_saved() -> None:
    store = DictStore()
    assert store.answer(Load(TASK, 1)) == Loaded(1, None)
    assert store.answer(Save(RECORD, None, 2, ROOM)) == Saved(2)
    assert store.answer(Load(TASK, 3)) == Loaded(3, RECORD)


def test_the_store_saves_on_the_expected_version_only() -> None:
    store = DictStore({TASK: RECORD})
    second = evolve(RECORD, version=2)
    assert store.answer(Save(RECORD, None, 1, ROOM)) == SaveConflict(1, RECORD)
    assert store.answer(Save(evolve(RECORD, version=3), 2, 2)) == SaveConflict(2, RECORD)
    assert store.answer(Save(second, 1, 3)) == Saved(3)
    assert store.answer(Save(evolve(second, task_id=OTHER), 1, 4)) == SaveConflict(4, None)


def test_the_store_deletes_the_expected_version_only() -> None:
    store = DictStore({TASK: RECORD})
    assert store.answer(Delete(TASK, 2, 1)) == SaveConflict(1, RECORD)
    assert store.answer(Delete(TASK, 1, 2)) == Saved(2)
    assert store.answer(Delete(TASK, 1, 3)) == SaveConflict(3, None)


@pytest.mark.parametrize(
    ("quota", "limit"),
    [
        (evolve(ROOM, tasks=1), "tasks"),
        (evolve(ROOM, tasks_per_principal=1), "tasks_per_principal"),
        (evolve(ROOM, task_bytes=19), "task_bytes"),
    ],
)
def test_the_store_refuses_what_is_over_a_quota(quota: Quota, limit: str) -> None:
    store = DictStore({TASK: RECORD})
    new = evolve(RECORD, task_id=OTHER)
    assert store.answer(Save(new, None, 1, quota)) == SaveRefused(1, limit)
    assert store.answer(Save(new, None, 2, evolve(ROOM, task_bytes=20))) == Saved(2)


def test_the_store_may_fail_at_anything() -> None:
    store = DictStore({TASK: RECORD})
    listing = ListTasks(principal="alice", after=None, limit=1, token=1)
    for effect in (Load(TASK, 1), FindExpired(START, 1, 1), listing):
        assert store.fail(effect) == LoadFailed(1)
    for change in (Save(RECORD, 1, 2), Delete(TASK, 1, 2)):
        assert store.fail(change) == SaveFailed(2)
    assert store.records == {TASK: RECORD}


def test_the_store_finds_what_has_expired_earliest_first() -> None:
    store = DictStore(
        {
            task_id: evolve(RECORD, task_id=task_id, ttl_ms=ttl_ms)
            for task_id, ttl_ms in [(TASK, 30), (OTHER, 10), (THIRD, 20), (NEVER, None)]
        }
    )
    found = store.answer(FindExpired(START + 20, 10, 1))
    assert isinstance(found, ExpiredFound)
    assert [record.task_id for record in found.records] == [OTHER, THIRD]
    assert found.next_expiry_ms == START + 30
    sliced = store.answer(FindExpired(START + 30, 2, 1))
    assert isinstance(sliced, ExpiredFound)
    assert sliced.next_expiry_ms == START + 30, "one that is expired already, but was over the limit"
    every = store.answer(FindExpired(START + 30, 3, 1))
    assert isinstance(every, ExpiredFound)
    assert every.next_expiry_ms is None


# -- the host --------------------------------------------------------------------------------------


def test_the_host_carries_out_what_the_store_is_asked() -> None:
    host = make_host()
    working(host)
    assert list(host.store.records) == [TASK]
    assert host.asked == []


def test_the_host_holds_back_what_the_store_is_asked() -> None:
    host = make_host(held=True)
    exchange = call(host)
    assert host.give(CallBecameTask(exchange=exchange, task_id=TASK)) == []
    with pytest.raises(LookupError):
        host.reply_to(exchange)
    assert [type(effect) for effect in host.answer_next()] == [Reply, StartWork]


def test_the_host_gives_each_message_an_exchange_of_its_own() -> None:
    host = make_host()
    assert len({host.send(request("tools/list")) for _ in range(3)}) == 3


def test_the_host_keeps_what_was_sent_on_each_exchange() -> None:
    host = make_host()
    first, second = listen(host), listen(host)
    assert len(host.sent_on(first)) == len(host.sent_on(second)) == 1
    assert host.sent_on(99) == []


def test_the_host_wakes_the_engine_at_each_deadline_on_the_way() -> None:
    host = make_host()
    working(host, TASK, ttl_ms=1_000)
    working(host, OTHER, ttl_ms=2_000)
    host.advance(500)
    assert len(host.store.records) == 2
    host.advance(10_000)
    assert host.store.records == {}
    assert host.now == START + 10_500


def test_the_host_makes_a_task_only_of_a_call_that_runs() -> None:
    with pytest.raises(AssertionError):
        make_host().create_task("no such tool", task_id=TASK)


# -- what it holds an engine to --------------------------------------------------------------------

OVER = Reply(1, {}, 200)
SENT = Send(1, {})
TAKEN = AcceptReport("r")
REFUSED = RejectReport("r", "too late")
BEGUN = StartWork(1, TASK)
RESUMED = ResumeWork(
    task_id=TASK, resumption=1, tool="t", arguments={}, client_capabilities={}, principal=None
)
ANSWER = InputAnswer("k", "ask", "name", {})
ANSWERED = DeliverInput(TASK, (ANSWER,))
STOP = RequestCancel(TASK, CancelReason.REQUESTED)
REPORT = WorkProgressed(task_id=TASK, token="r")
HTTP = HttpHead(headers={})


def lying(*steps: list[Effect], held: bool = False) -> ServerHost:
    """Return a host of such an engine."""
    engine: Any = Liar(*(Step(tuple(effects)) for effects in steps))
    return ServerHost(engine=engine, held=held)


@pytest.mark.parametrize(
    ("broken", "effects"),
    [
        ("one reply to each request", [Reply(2, {}, 200)]),
        ("nothing is said after the reply", [Send(2, {})]),
        ("nothing is said after the reply", [OpenStream(2)]),
        ("one reply to each request", [OVER, OVER]),
        ("nothing is said after the reply", [OVER, SENT]),
        ("nothing is said after the reply", [OVER, OpenStream(1)]),
        ("one reply to each request", [StopCall(1), OVER]),
        ("one answer to each report", [TAKEN]),
        ("one answer to each report", [REFUSED]),
        ("no two questions under one token", [Load(TASK, 1), Load(OTHER, 1)]),
        ("no two workers of one task", [RESUMED, RESUMED]),
        ("only a worker that was begun", [ANSWERED]),
        ("only a worker that was begun", [STOP]),
        ("only a worker that was begun", [StartWork(1, OTHER), STOP]),
        ("each answer is delivered once", [BEGUN, ANSWERED, ANSWERED]),
        ("each answer is delivered once", [BEGUN, DeliverInput(TASK, (ANSWER, ANSWER))]),
        ("a worker is told to stop once", [BEGUN, STOP, STOP]),
    ],
)
@pytest.mark.parametrize("held", [False, True])
def test_a_broken_promise_is_told(broken: str, effects: list[Effect], held: bool) -> None:
    host = lying(effects, held=held)
    with pytest.raises(AssertionError, match=broken):
        host.send({})


def test_what_is_said_to_somebody_who_is_gone_is_told() -> None:
    host = lying([], [OVER])
    exchange = host.send({})
    with pytest.raises(AssertionError, match="one reply to each request"):
        host.give(ExchangeClosed(exchange))


@pytest.mark.parametrize("again", [TAKEN, REFUSED])
def test_a_second_answer_to_a_report_is_told(again: Effect) -> None:
    host = lying([TAKEN], [again])
    host.give(REPORT)
    with pytest.raises(AssertionError, match="one answer to each report"):
        host.send({})


def test_a_worker_that_has_ended_hears_no_more() -> None:
    """That an earlier run has ended says nothing of a later one."""
    host = lying([RESUMED], [ANSWERED], [STOP])
    host.send({})
    host.give(WorkStopped(task_id=TASK, token="s"))
    with pytest.raises(AssertionError, match="only a worker that was begun, and goes on"):
        host.give(WorkStopped(task_id=TASK, token="s", resumption=1))


def test_a_token_that_still_waits_at_the_store_is_told() -> None:
    host = lying([Load(TASK, 1)], [Load(OTHER, 2), Load(OTHER, 1)], held=True)
    host.send({})
    with pytest.raises(AssertionError, match="no two questions under one token"):
        host.send({})


@pytest.mark.parametrize("deadline", [START - 1, START])
def test_a_deadline_that_stays_in_the_past_is_told(deadline: int) -> None:
    engine: Any = Liar(Step((), deadline), Step((), deadline))
    host = ServerHost(engine=engine, now=START)
    host.send({})
    with pytest.raises(AssertionError, match="a deadline that has passed"):
        host.advance(0)


def test_kept_promises_are_not() -> None:
    """A token is free once it is answered, and a worker that takes over has heard nothing yet."""
    host = lying(
        [OpenStream(1), SENT, Load(TASK, 1)],
        [Load(TASK, 1), OVER],
        [BEGUN, ANSWERED, STOP],
        [RESUMED, ANSWERED, STOP],
        [],
        [TAKEN, REFUSED],
    )
    host.send({})
    host.give(TimePassed())
    host.give(REPORT)
    host.give(TtlChanged(task_id=TASK, ttl_ms=None, token="r"))
    assert len(host.effects) == 11


@pytest.mark.parametrize(
    "opened", [StreamRequested(exchange=1, http=HTTP), SessionEnded(exchange=1, http=HTTP)]
)
def test_streams_and_sessions_have_exchanges_as_well(opened: LegacyInput) -> None:
    """One that has ended may be begun anew under the same key."""
    host = lying([OVER], [SENT, OVER])
    host.give(opened)
    host.give(opened)
    assert host.effects == [OVER, SENT, OVER]


def test_nothing_is_answered_that_was_not_asked() -> None:
    with pytest.raises(LookupError, match="nothing is held back"):
        lying(held=True).answer_next()
