"""The tools for testing: a host, a store, a request."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_tasks_proto import (
    CallBecameTask,
    Delete,
    ExpiredFound,
    FindExpired,
    Load,
    Loaded,
    Quota,
    Reply,
    Save,
    SaveConflict,
    Saved,
    SaveRefused,
    StartWork,
    Status,
    TaskRecord,
)
from mcp_tasks_proto.testing import DictStore, request
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
