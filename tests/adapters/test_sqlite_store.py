"""The SQLite store keeps the promises of ``stores/contract.md``, alone and with others over one file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from mcp_tasks_adapters.storing import News, StoreEffect, StoreError

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.inputs import LoadFailed, RecordChanged, Saved, SaveFailed, SaveRefused, WorkLost
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.testing.store_suite import NODE_CHECKS, STORE_CHECKS, Ask, Check, Nodes, compare
from tests.adapters.driver_harness import logged
from tests.adapters.store_harness import (
    NOW,
    ROOMY,
    Bench,
    SqliteNodes,
    opened,
    record,
    sqlite_store,
)
from tests.adapters.store_strategies import effect_lists


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@pytest.fixture
def bench(path: Path) -> Iterator[Bench]:
    with opened(sqlite_store(path)) as bench:
        yield bench


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_every_store(bench: Bench, check: Check[Ask]) -> None:
    check(bench.ask)


@pytest.mark.parametrize("check", NODE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_nodes(path: Path, check: Check[Nodes]) -> None:
    nodes = SqliteNodes(path)
    try:
        check(nodes)
    finally:
        nodes.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(effects=effect_lists)
def test_it_answers_as_the_obvious_store_does(
    tmp_path_factory: pytest.TempPathFactory, effects: list[StoreEffect]
) -> None:
    with opened(sqlite_store(tmp_path_factory.mktemp("store") / "tasks.db")) as bench:
        compare(bench.ask, effects)


# -- open and close ----------------------------------------------------------------------------------------


def test_what_was_saved_is_there_when_it_is_opened_again(path: Path) -> None:
    """Rule 1: counters, expiries and records outlive the store."""
    with opened(sqlite_store(path)) as bench:
        bench.saved(record("a", principal="ann", payload_bytes=7))
        bench.saved(record("b", ttl_ms=None))
    with opened(sqlite_store(path)) as bench:
        assert bench.load("a") == record("a", principal="ann", payload_bytes=7)
        assert bench.find(NOW + 1000) == (["a"], None)
        refused = [
            bench.save(record("c", principal="ann"), quota=evolve(ROOMY, **{bound: value}))
            for bound, value in [("tasks", 2), ("tasks_per_principal", 1), ("task_bytes", 26)]
        ]
        assert [type(one) for one in refused] == [SaveRefused] * 3
        assert bench.save(record("c"), quota=evolve(ROOMY, task_bytes=27)) == Saved("save")


def test_it_has_a_new_name_each_time(path: Path) -> None:
    store = sqlite_store(path)
    names = [store.node]
    for _ in range(2):
        with opened(store):
            names.append(store.node)
    assert names[0] is None
    assert names[1] != names[2]
    assert store.node is None
    assert [found.name for found in path.parent.iterdir()] == [path.name], "nothing is left of either"


def test_it_is_opened_once_at_a_time(bench: Bench, path: Path) -> None:
    with pytest.raises(StoreError, match="open already"):
        bench.open()
    bench.saved(record())


def test_nothing_is_asked_of_a_store_that_is_not_open(path: Path) -> None:
    store = sqlite_store(path)
    with pytest.raises(StoreError, match="not open"):
        store.submit(Load("a", 1), print)
    with pytest.raises(StoreError, match="not open"):
        store.watch(bool, print)
    Bench(store).close()
    assert not path.exists()


def test_no_answer_comes_after_the_end(path: Path) -> None:
    """What was asked is carried out all the same."""
    with opened(sqlite_store(path)) as bench:
        answers = bench.start([Save(record(str(number)), None, number) for number in range(100)])
        bench.close()
        assert answers == []
    with opened(sqlite_store(path)) as bench:
        assert all(bench.load(str(number)) for number in range(100))


# -- many at once ------------------------------------------------------------------------------------------


def test_lim3_what_cannot_wait_any_more_fails_at_once(path: Path) -> None:
    with opened(sqlite_store(path, waiting=3)) as bench:
        asked: list[StoreEffect] = [Save(record(str(number)), None, number) for number in range(5)]
        answers = bench.start([*asked, Load("0", 5), FindExpired(NOW, 1, 6), Delete("0", 1, 7)])
        assert answers == [SaveFailed(3), SaveFailed(4), LoadFailed(5), LoadFailed(6), SaveFailed(7)]
        bench.until(lambda: len(answers) == 8)
        assert answers[5:] == [Saved(0), Saved(1), Saved(2)]
        assert bench.load("2") == record("2")
        assert bench.load("3") is None


def test_more_than_fits_into_one_group_is_carried_out_in_order(bench: Bench) -> None:
    changes: list[StoreEffect] = [
        Save(record(version=version), version - 1 or None, version) for version in range(1, 2001)
    ]
    assert bench.ask(changes) == [Saved(version) for version in range(1, 2001)]
    assert bench.load() == record(version=2000)


def test_one_that_no_file_can_hold_fails_alone(bench: Bench) -> None:
    """Rule 3: what is saved at the same time does not suffer."""
    unfit = [
        record("infinite", arguments={"x": float("inf")}),
        record("surrogate", status_message="\ud800"),
        record("object", result={"x": object()}),
        record("enormous", payload_bytes=2**70),
    ]
    effects = [Save(one, None, one.task_id) for one in (record("a"), *unfit, record("b"))]
    answers = bench.ask(effects)
    assert answers == [Saved("a"), *(SaveFailed(one.task_id) for one in unfit), Saved("b")]
    assert bench.load("b") == record("b")
    assert [bench.load(one.task_id) for one in unfit] == [None] * 4


def test_an_answer_that_raises_disturbs_no_other(bench: Bench) -> None:
    def raise_it(_: object) -> None:
        raise ValueError("not the store's business")

    with logged() as lines:
        bench.store.submit(Load("a", 1), raise_it)
        answers = bench.start([Load("a", 2)])
        bench.until(lambda: bool(answers))
    assert len(lines) == 1
    assert "not the store's business" not in lines[0], "SEC.2"


# -- news --------------------------------------------------------------------------------------------------


def test_only_those_tasks_are_told_that_concern_somebody(path: Path) -> None:
    with opened(sqlite_store(path)) as here, opened(sqlite_store(path)) as there:
        there.watch(lambda task_id: task_id == "b")
        for task_id in ("a", "b"):
            here.saved(record(task_id))
            here.saved(record(task_id, version=2), 1)
        there.until(lambda: bool(there.heard))
        assert there.heard == [RecordChanged(record("b", version=2))]


def test_nobody_is_told_of_what_they_did_themselves(path: Path) -> None:
    with opened(sqlite_store(path)) as here, opened(sqlite_store(path)) as there:
        there.watch()
        here.saved(record("a"))
        there.saved(record("a", version=2), 1)
        there.delete("a", 2)
        here.saved(record("last"))
        here.saved(record("last", version=2), 1)
        there.until(lambda: bool(there.heard))
        assert there.heard == [RecordChanged(record("last", version=2))]


def test_who_stops_watching_hears_no_more_and_may_begin_again(path: Path) -> None:
    with opened(sqlite_store(path)) as here, opened(sqlite_store(path)) as there:
        unwatch = there.watch()
        here.saved(record())
        unwatch()
        here.saved(record(version=2), 1)
        assert there.load() == record(version=2)
        assert there.heard == []
        there.watch()
        here.saved(record(version=3), 2)
        there.until(lambda: bool(there.heard))
        assert there.heard[-1] == RecordChanged(record(version=3))


def test_a_watcher_that_was_far_behind_hears_of_everything_that_is_there(path: Path) -> None:
    with opened(sqlite_store(path)) as here, opened(sqlite_store(path)) as there:
        here.ask([Save(record(str(number)), None, number) for number in range(10_000)])
        here.ask([Save(record(str(number), version=2), 1, number) for number in range(10_000)])
        there.watch()
        there.until(lambda: len({_id(news) for news in there.heard}) == 10_000)


def _id(news: News) -> str:
    return news.record.task_id if isinstance(news, RecordChanged) else news.task_id


# -- nodes that are gone (rule 12) ---------------------------------------------------------------------------


def test_a_node_that_left_nothing_is_forgotten(path: Path) -> None:
    with opened(sqlite_store(path)) as here:
        for number in range(3):
            here.saved(record(str(number), node=here.store.node))
            here.saved(record(str(number), node=None, version=2), 1)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM nodes").fetchone() == (0,)


def test_the_work_of_a_node_that_was_closed_too_early_is_told_and_then_forgotten(path: Path) -> None:
    with opened(sqlite_store(path)) as here:
        lost = [WorkLost(str(number), here.store.node) for number in range(600)]
        here.ask([Save(record(one.task_id, node=one.node), None, one.task_id) for one in lost])
    with opened(sqlite_store(path)) as there:
        there.watch()
        there.until(lambda: set(there.heard) >= set(lost))
        ended = [Save(record(one.task_id, version=2, status=Status.FAILED), 1, 0) for one in lost]
        assert there.ask(ended) == [Saved(0)] * 600
        there.until(lambda: _nodes(path) == [there.store.node])
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_node_is_not_gone_only_because_it_is_slow(path: Path) -> None:
    with (
        opened(sqlite_store(path)) as here,
        opened(sqlite_store(path)) as gone,
        opened(sqlite_store(path)) as there,
    ):
        here.saved(record("slow", node=here.store.node))
        gone.saved(record("gone", node=gone.store.node))
        gone.close()
        there.watch()
        there.until(lambda: len(there.heard) >= 5)
        assert {_id(news) for news in there.heard} == {"gone"}


def _nodes(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [node for (node,) in connection.execute("SELECT node FROM nodes").fetchall()]
