"""Stores that several nodes share keep the promises of ``stores/contract.md``, alone and with others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from mcp_tasks_adapters.storing import News, StoreEffect, StoreError

from mcp_tasks_proto.effects import Delete, FindExpired, ListTasks, Load, Save
from mcp_tasks_proto.inputs import (
    Loaded,
    LoadFailed,
    RecordChanged,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    TasksListed,
    WorkLost,
)
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.testing.store_suite import NODE_CHECKS, STORE_CHECKS, Ask, Check, Nodes, compare
from tests.adapters.driver_harness import logged
from tests.adapters.store_harness import NOW, ROOMY, Bench, Place, StoreNodes, opened, record
from tests.adapters.store_strategies import effect_lists


@pytest.fixture
def bench(place: Place) -> Iterator[Bench]:
    with opened(place.store()) as bench:
        yield bench


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_every_store(bench: Bench, check: Check[Ask]) -> None:
    check(bench.ask)


@pytest.mark.parametrize("check", NODE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_nodes(place: Place, check: Check[Nodes]) -> None:
    nodes = StoreNodes(place.store)
    try:
        check(nodes)
    finally:
        nodes.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(effects=effect_lists)
def test_it_answers_as_the_obvious_store_does(place: Place, bench: Bench, effects: list[StoreEffect]) -> None:
    place.run(
        *(f"DELETE FROM {table}" for table in ("tasks", "removals", "owners")),
        "UPDATE totals SET tasks = 0, payload_bytes = 0",
    )
    compare(bench.ask, effects)
    assert place.run("SELECT tasks, payload_bytes FROM totals") == place.run(
        "SELECT count(*), coalesce(sum(payload_bytes), 0) FROM tasks"
    )
    assert place.run("SELECT owner, tasks FROM owners ORDER BY owner") == place.run(
        "SELECT owner, count(*) FROM tasks GROUP BY owner ORDER BY owner"
    )


# -- open and close ----------------------------------------------------------------------------------------


def test_what_was_saved_is_there_when_it_is_opened_again(place: Place) -> None:
    """Rule 1: counters, expiries and records outlive the store."""
    with opened(place.store()) as bench:
        bench.saved(record("a", principal="ann", payload_bytes=7))
        bench.saved(record("b", ttl_ms=None))
    with opened(place.store()) as bench:
        assert bench.load("a") == record("a", principal="ann", payload_bytes=7)
        assert bench.find(NOW + 1000) == (["a"], None)
        refused = [
            bench.save(record("c", principal="ann"), quota=evolve(ROOMY, **{bound: value}))
            for bound, value in [("tasks", 2), ("tasks_per_principal", 1), ("task_bytes", 26)]
        ]
        assert [type(one) for one in refused] == [SaveRefused] * 3
        assert bench.save(record("c"), quota=evolve(ROOMY, task_bytes=27)) == Saved("save")


def test_it_has_a_new_name_each_time(place: Place) -> None:
    store = place.store()
    names = [store.node]
    for _ in range(2):
        with opened(store):
            names.append(store.node)
    assert names[0] is None
    assert names[1] != names[2]
    assert store.node is None
    assert place.run("SELECT count(*) FROM nodes") == [(0,)], "nothing is left of either"


def test_it_is_opened_once_at_a_time(bench: Bench) -> None:
    with pytest.raises(StoreError, match="open already"):
        bench.open()
    bench.saved(record())


def test_where_opening_it_is_given_up_nothing_stays_open_and_nobody_is_left(place: Place) -> None:
    bench = Bench(place.store())
    bench.give_up_opening()
    assert bench.store.node is None
    assert place.nodes() == []
    bench.open()
    bench.close()


def test_nothing_is_asked_of_a_store_that_is_not_open(place: Place) -> None:
    store = place.store()
    with pytest.raises(StoreError, match="not open"):
        store.submit(Load("a", 1), print)
    with pytest.raises(StoreError, match="not open"):
        store.watch(bool, print)
    Bench(store).close()


def test_no_answer_comes_after_the_end(place: Place) -> None:
    """What was asked is carried out all the same."""
    with opened(place.store()) as bench:
        answers = bench.start([Save(record(str(number)), None, number) for number in range(100)])
        bench.close()
        assert answers == []
    with opened(place.store()) as bench:
        assert all(bench.load(str(number)) for number in range(100))


# -- many at once ------------------------------------------------------------------------------------------


def test_lim3_what_cannot_wait_any_more_fails_at_once(place: Place) -> None:
    with opened(place.store(waiting=3)) as bench:
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


def test_a_great_deal_is_carried_out_too(bench: Bench) -> None:
    """More than goes to a database server in one statement."""
    large = {"content": ["x" * 1_000_000]}
    records = [record(str(number), result=large) for number in range(10)]
    assert bench.ask([Save(one, None, 0) for one in records]) == [Saved(0)] * 10
    assert bench.ask([Load(one.task_id, 0) for one in records]) == [Loaded(0, one) for one in records]


def test_what_waits_is_written_together(place: Place, bench: Bench) -> None:
    """Many clients do not pay a sync each."""
    bench.ask([Save(record(str(number)), None, number) for number in range(1000)])
    ((writes,),) = place.run("SELECT writes FROM nodes")
    assert writes <= 100


def test_one_that_no_store_can_hold_fails_alone(bench: Bench) -> None:
    """Rule 3: what is saved at the same time does not suffer."""
    unfit = [
        record("infinite", arguments={"x": float("inf")}),
        record("surrogate", status_message="\ud800"),
        record("object", result={"x": object()}),
        record("enormous", payload_bytes=2**70),
        record("surrogate \ud800"),
    ]
    effects = [Save(one, None, one.task_id) for one in (record("a"), *unfit, record("b"))]
    with logged():
        answers = bench.ask(effects)
    assert answers == [Saved("a"), *(SaveFailed(one.task_id) for one in unfit), Saved("b")]
    assert bench.load("b") == record("b")
    assert [bench.load(one.task_id) for one in unfit[:4]] == [None] * 4


def test_a_list_that_nobody_can_ask_for_disturbs_no_other_question(bench: Bench) -> None:
    """Rule 9."""
    bench.saved(record(principal="ann"))
    with logged():
        answers = bench.ask(
            [
                ListTasks(principal="\ud800", after=None, limit=10, token=1),
                ListTasks(principal="ann", after="\ud800", limit=10, token=2),
                Load("a", 3),
            ]
        )
    assert answers == [LoadFailed(1), LoadFailed(2), Loaded(3, record(principal="ann"))]
    assert bench.load() == record(principal="ann")


def test_each_of_a_group_is_told_why(bench: Bench) -> None:
    bench.saved(record("a", version=5))
    answers = bench.ask(
        [
            Save(record("b"), None, 0, evolve(ROOMY, tasks=1)),
            Save(record("a", version=6), 4, 1),
            Save(record("c"), 1, 2),
            Save(record("d"), None, 3, evolve(ROOMY, task_bytes=19)),
            Save(record("e", payload_bytes=9), None, 4, evolve(ROOMY, task_bytes=19)),
            Delete("a", 4, 5),
            Delete("f", 1, 6),
        ]
    )
    stored = record("a", version=5)
    assert answers == [
        SaveRefused(0, "tasks"),
        SaveConflict(1, stored),
        SaveConflict(2, None),
        SaveRefused(3, "task_bytes"),
        Saved(4),
        SaveConflict(5, stored),
        SaveConflict(6, None),
    ]


def test_principals_of_any_length_are_told_apart(bench: Bench) -> None:
    """Rules 4 and 13: also those that no index holds."""
    quota = evolve(ROOMY, tasks_per_principal=1)
    for letter in ("a", "b"):
        principal = letter * 100_000
        assert bench.save(record(letter, principal=principal), quota=quota) == Saved("save")
        again = bench.save(record(f"{letter}2", principal=principal), quota=quota)
        assert again == SaveRefused("save", "tasks_per_principal")
        wanted = ListTasks(principal=principal, after=None, limit=10, token=1)
        assert bench.ask([wanted]) == [TasksListed(1, [record(letter, principal=principal)], False)]


def test_principals_in_turn_are_counted_right(place: Place, bench: Bench) -> None:
    """Rule 4: however a group mixes them."""
    quota = evolve(ROOMY, tasks_per_principal=10)
    principals = ["ann", "bob", None]
    answers = bench.ask(
        [
            Save(record(str(number), principal=principals[number % 3]), None, number, quota)
            for number in range(60)
        ]
    )
    assert [isinstance(answer, Saved) for answer in answers] == [True] * 30 + [False] * 30
    bench.ask([Delete(str(number), 1, number) for number in range(30)])
    assert place.run("SELECT * FROM owners") == []
    assert place.run("SELECT tasks, payload_bytes FROM totals") == [(0, 0)]


def test_an_answer_that_raises_disturbs_no_other(bench: Bench) -> None:
    def raise_it(_: object) -> None:
        raise ValueError("not the store's business")

    with logged() as lines:
        bench.store.submit(Load("a", 1), raise_it)
        answers = bench.start([Load("a", 2)])
        bench.until(lambda: bool(answers))
    assert len(lines) == 1
    assert "not the store's business" not in lines[0], "SEC.2"


# -- news (rule 11) ----------------------------------------------------------------------------------------


def test_only_those_tasks_are_told_that_concern_somebody(place: Place) -> None:
    with opened(place.store()) as here, opened(place.store()) as there:
        there.watch(lambda task_id: task_id == "b")
        for task_id in ("a", "b"):
            here.saved(record(task_id))
            here.saved(record(task_id, version=2), 1)
        there.until(lambda: bool(there.heard))
        assert there.heard == [RecordChanged(record("b", version=2))]


def test_nobody_is_told_of_what_they_did_themselves(place: Place) -> None:
    with opened(place.store()) as here, opened(place.store()) as there:
        there.watch()
        here.saved(record("a"))
        there.saved(record("a", version=2), 1)
        there.delete("a", 2)
        here.saved(record("last"))
        here.saved(record("last", version=2), 1)
        there.until(lambda: bool(there.heard))
        assert there.heard == [RecordChanged(record("last", version=2))]


def test_who_stops_watching_hears_no_more_and_may_begin_again(place: Place) -> None:
    with opened(place.store()) as here, opened(place.store()) as there:
        unwatch = there.watch()
        here.saved(record())
        unwatch()
        here.saved(record(version=2), 1)
        assert there.load() == record(version=2)
        assert there.heard == []
        there.watch()
        here.saved(record(version=3), 2)
        there.until(lambda: RecordChanged(record(version=3)) in there.heard)


def test_a_watcher_that_was_far_behind_hears_of_everything_that_is_there(place: Place) -> None:
    with opened(place.store()) as here, opened(place.store()) as there:
        here.ask([Save(record(str(number)), None, number) for number in range(10_000)])
        here.ask([Save(record(str(number), version=2), 1, number) for number in range(10_000)])
        there.watch()
        there.until(lambda: len({_id(news) for news in there.heard}) == 10_000)


def _id(news: News) -> str:
    return news.record.task_id if isinstance(news, RecordChanged) else news.task_id


# -- nodes that are gone (rule 12) ---------------------------------------------------------------------------


def test_a_node_that_left_nothing_is_forgotten(place: Place) -> None:
    with opened(place.store()) as here:
        for number in range(3):
            here.saved(record(str(number), node=here.store.node))
            here.saved(record(str(number), node=None, version=2), 1)
    assert place.run("SELECT count(*) FROM nodes") == [(0,)]


def test_the_work_of_a_node_that_was_closed_too_early_is_told_until_it_has_ended(place: Place) -> None:
    with opened(place.store()) as here:
        lost = [WorkLost(str(number), here.store.node) for number in range(600)]
        here.ask([Save(record(one.task_id, node=one.node), None, one.task_id) for one in lost])
    with opened(place.store()) as there:
        there.watch()
        there.until(lambda: set(there.heard) >= set(lost))
        ended = [Save(record(one.task_id, version=2, status=Status.FAILED), 1, 0) for one in lost]
        assert there.ask(ended) == [Saved(0)] * 600
        there.until(lambda: place.nodes() == [there.store.node])
