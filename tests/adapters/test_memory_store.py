"""The memory store keeps the promises of ``stores/contract.md``; rules are cited as ``rule 2``."""

from __future__ import annotations

import tracemalloc
from collections.abc import Hashable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_tasks_adapters.driver import StoreEffect
from mcp_tasks_adapters.stores import MemoryStore

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Quota, Save
from mcp_tasks_proto.inputs import ExpiredFound, Loaded, SaveConflict, Saved, SaveRefused, StoreInput
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing.store import DictStore

NOW = 1_700_000_000_000
ROOMY = Quota(tasks=1000, tasks_per_principal=1000, task_bytes=1_000_000)


def record(task_id: str = "a", **changes: Any) -> TaskRecord:
    plain = TaskRecord(
        task_id=task_id,
        version=1,
        principal=None,
        tool="render",
        arguments={"frames": 3},
        client_capabilities={},
        status=Status.WORKING,
        created_at_ms=NOW,
        last_updated_at_ms=NOW,
        ttl_ms=1000,
        payload_bytes=10,
    )
    return evolve(plain, **changes)


class Bench:
    """A store, asked one thing at a time."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.tokens = 0

    def ask(self, effect: StoreEffect) -> StoreInput:
        answers: list[StoreInput] = []
        self.store.submit(effect, answers.append)
        assert len(answers) == 1, "a store answers each effect exactly once"
        assert answers[0].token == effect.token  # type: ignore[union-attr]
        return answers[0]

    def token(self) -> Hashable:
        self.tokens += 1
        return ("token", self.tokens)

    def load(self, task_id: str) -> TaskRecord | None:
        answer = self.ask(Load(task_id, self.token()))
        assert isinstance(answer, Loaded)
        return answer.record

    def save(self, saved: TaskRecord, expected: int | None = None, quota: Quota | None = None) -> StoreInput:
        return self.ask(Save(saved, expected, self.token(), quota))

    def delete(self, task_id: str, expected: int) -> StoreInput:
        return self.ask(Delete(task_id, expected, self.token()))

    def find(self, now: int = NOW, limit: int = 100) -> tuple[list[str], int | None]:
        answer = self.ask(FindExpired(now, limit, self.token()))
        assert isinstance(answer, ExpiredFound)
        return [found.task_id for found in answer.records], answer.next_expiry_ms


@pytest.fixture
def bench() -> Bench:
    return Bench()


# -- load, save, delete --------------------------------------------------------------------------------------


def test_an_unknown_record_loads_as_none(bench: Bench) -> None:
    assert bench.load("a") is None


def test_what_was_saved_is_loaded(bench: Bench) -> None:
    """Rules 1 and 7."""
    saved = record(extra={"later": [1, None]}, status_message="Queued")
    assert isinstance(bench.save(saved), Saved)
    assert bench.load("a") == saved
    assert len(bench.store) == 1


def test_a_new_record_never_replaces_one(bench: Bench) -> None:
    """Rule 2: no expected version means that there is none."""
    first = record()
    bench.save(first)
    answer = bench.save(record(tool="other"))
    assert isinstance(answer, SaveConflict)
    assert answer.current == first
    assert bench.load("a") == first


def test_a_save_against_an_old_version_changes_nothing(bench: Bench) -> None:
    """Rule 2: of two saves against the same version one succeeds. TRAPS 3 rests on it."""
    bench.save(record())
    first, second = record(version=2, status_message="one"), record(version=2, status_message="two")
    assert isinstance(bench.save(first, 1), Saved)
    answer = bench.save(second, 1)
    assert isinstance(answer, SaveConflict)
    assert answer.current == first
    assert bench.load("a") == first


def test_a_save_of_a_record_that_is_gone_is_a_conflict_with_none(bench: Bench) -> None:
    answer = bench.save(record(version=2), 1)
    assert isinstance(answer, SaveConflict)
    assert answer.current is None
    assert bench.load("a") is None


def test_a_delete_compares_versions_too(bench: Bench) -> None:
    bench.save(record())
    bench.save(record(version=2), 1)
    stale = bench.delete("a", 1)
    assert isinstance(stale, SaveConflict)
    assert stale.current == record(version=2)
    assert isinstance(bench.delete("a", 2), Saved)
    assert bench.load("a") is None
    gone = bench.delete("a", 2)
    assert isinstance(gone, SaveConflict)
    assert gone.current is None


# -- quota (rule 4, TTL.2) -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "limit"),
    [
        ({"tasks": 2}, "tasks"),
        ({"tasks_per_principal": 2}, "tasks_per_principal"),
        ({"task_bytes": 20}, "task_bytes"),
        ({"tasks": 2, "tasks_per_principal": 2, "task_bytes": 20}, "tasks"),
        ({"tasks_per_principal": 2, "task_bytes": 20}, "tasks_per_principal"),
    ],
)
def test_the_bound_that_is_hit_is_named(bench: Bench, bounds: dict[str, int], limit: str) -> None:
    quota = evolve(ROOMY, **bounds)
    assert isinstance(bench.save(record("a", principal="ann"), quota=quota), Saved)
    assert isinstance(bench.save(record("b", principal="ann"), quota=quota), Saved)
    refused = bench.save(record("c", principal="ann"), quota=quota)
    assert isinstance(refused, SaveRefused)
    assert refused.limit == limit
    assert bench.load("c") is None
    assert len(bench.store) == 2


def test_one_principal_at_its_bound_disturbs_no_other(bench: Bench) -> None:
    """LIM.3; no principal is one more principal."""
    quota = evolve(ROOMY, tasks_per_principal=1)
    for number, principal in enumerate(["ann", "bob", None]):
        assert isinstance(bench.save(record(str(number), principal=principal), quota=quota), Saved)
    for number, principal in enumerate(["ann", "bob", None]):
        again = record(f"again{number}", principal=principal)
        assert isinstance(bench.save(again, quota=quota), SaveRefused)


def test_what_is_deleted_makes_room(bench: Bench) -> None:
    quota = Quota(tasks=1, tasks_per_principal=1, task_bytes=10)
    bench.save(record("a"), quota=quota)
    assert isinstance(bench.save(record("b"), quota=quota), SaveRefused)
    bench.delete("a", 1)
    assert isinstance(bench.save(record("b"), quota=quota), Saved)


def test_a_record_that_changes_is_counted_as_it_is_now(bench: Bench) -> None:
    bench.save(record(payload_bytes=10))
    bench.save(record(payload_bytes=70, version=2), 1)
    assert bench.store.payload_bytes == 70
    bench.save(record(payload_bytes=5, version=3), 2)
    assert bench.store.payload_bytes == 5
    assert isinstance(bench.save(record("b"), quota=evolve(ROOMY, task_bytes=15)), Saved)
    assert isinstance(bench.save(record("c"), quota=evolve(ROOMY, task_bytes=15)), SaveRefused)


def test_a_change_under_a_quota_takes_the_place_it_has(bench: Bench) -> None:
    quota = Quota(tasks=1, tasks_per_principal=1, task_bytes=20)
    bench.save(record(), quota=quota)
    assert isinstance(bench.save(record(version=2, payload_bytes=20), 1, quota), Saved)
    refused = bench.save(record(version=3, payload_bytes=21), 2, quota)
    assert isinstance(refused, SaveRefused)
    assert refused.limit == "task_bytes"


def test_a_conflict_comes_before_the_quota(bench: Bench) -> None:
    bench.save(record())
    assert isinstance(bench.save(record(), quota=evolve(ROOMY, tasks=1)), SaveConflict)


def test_nothing_is_dropped_to_make_room(bench: Bench) -> None:
    """Rule 5, also for a record that has expired long ago."""
    bench.save(record("a", ttl_ms=1))
    assert isinstance(bench.save(record("b"), quota=evolve(ROOMY, tasks=1)), SaveRefused)
    assert bench.load("a") is not None


# -- expiry (rule 6, TTL.1) ----------------------------------------------------------------------------------


def test_nothing_expires_in_an_empty_store(bench: Bench) -> None:
    assert bench.find() == ([], None)


def test_a_record_expires_at_its_very_millisecond(bench: Bench) -> None:
    bench.save(record(ttl_ms=1000))
    assert bench.find(NOW + 999) == ([], NOW + 1000)
    assert bench.find(NOW + 1000) == (["a"], None)


def test_the_earliest_come_first_a_slice_at_a_time(bench: Bench) -> None:
    for task_id, ttl in [("late", 40), ("first", 10), ("third", 30), ("second", 20)]:
        bench.save(record(task_id, ttl_ms=ttl))
    assert bench.find(NOW + 35, limit=2) == (["first", "second"], NOW + 30)
    # They stay until they are deleted.
    assert bench.find(NOW + 35, limit=2) == (["first", "second"], NOW + 30)
    bench.delete("first", 1)
    bench.delete("second", 1)
    assert bench.find(NOW + 35, limit=2) == (["third"], NOW + 40)


def test_unlimited_records_never_expire(bench: Bench) -> None:
    bench.save(record(ttl_ms=None))
    assert bench.find(2**53) == ([], None)


def test_huge_lifetimes_are_no_trouble(bench: Bench) -> None:
    """TRAPS 15."""
    bench.save(record(ttl_ms=2**53))
    assert bench.find(NOW) == ([], NOW + 2**53)


def test_a_changed_lifetime_counts(bench: Bench) -> None:
    """TTL.3: shorter, longer, unlimited and back again."""
    for version, ttl in enumerate([1000, 10, 500, None, 1000, 10, 1000], start=1):
        bench.save(record(ttl_ms=ttl, version=version), version - 1 or None)
        expiry = None if ttl is None else NOW + ttl
        assert bench.find(NOW) == ([], expiry)
    assert bench.find(NOW + 999) == ([], NOW + 1000)
    assert bench.find(NOW + 1000) == (["a"], None)


def test_a_record_is_found_once_however_often_its_lifetime_changed(bench: Bench) -> None:
    for version, ttl in enumerate([10, 20, 10, 20, 10], start=1):
        bench.save(record(ttl_ms=ttl, version=version), version - 1 or None)
    bench.save(record("b", ttl_ms=15))
    assert bench.find(NOW + 12) == (["a"], NOW + 15)
    assert bench.find(NOW + 30) == (["a", "b"], None)
    assert bench.find(NOW + 30, limit=1) == (["a"], NOW + 15)


def test_a_removed_record_is_not_found(bench: Bench) -> None:
    bench.save(record("a", ttl_ms=10))
    bench.save(record("b", ttl_ms=20))
    bench.delete("a", 1)
    assert bench.find(NOW + 15) == ([], NOW + 20)


def test_changing_one_record_for_ever_takes_no_more_memory(bench: Bench) -> None:
    """Rule 8: what is left of old expiries is bounded by the records there are."""
    bench.save(record())
    tracemalloc.start()
    try:
        for version in range(2, 10_002):
            bench.save(record(ttl_ms=1000 + version, version=version), version - 1)
            if version == 1000:
                before, _ = tracemalloc.get_traced_memory()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def test_records_that_come_and_go_leave_nothing_behind(bench: Bench) -> None:
    tracemalloc.start()
    try:
        for number in range(10_000):
            bench.save(record(f"task{number}", principal=f"user{number}"))
            bench.delete(f"task{number}", 1)
            if number == 1000:
                before, _ = tracemalloc.get_traced_memory()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000
    assert len(bench.store) == bench.store.payload_bytes == 0


# -- against the obvious store -------------------------------------------------------------------------------

ids = st.sampled_from(["a", "b", "c", "d"])
versions = st.integers(1, 3)
ttls = st.sampled_from([None, 1, 2, 5, 5])
quotas = st.none() | st.builds(
    Quota,
    tasks=st.integers(1, 4),
    tasks_per_principal=st.integers(1, 3),
    task_bytes=st.integers(1, 60),
)
records = st.builds(
    record,
    ids,
    version=versions,
    ttl_ms=ttls,
    principal=st.sampled_from([None, "ann"]),
    payload_bytes=st.integers(0, 30),
)
new_saves = st.builds(Save, records, st.none(), st.just("token"), quotas)
changes = st.builds(Save, records, versions, st.just("token"))
effects = st.one_of(
    new_saves,
    changes,
    st.builds(Load, ids, st.just("token")),
    st.builds(Delete, ids, versions, st.just("token")),
    st.builds(FindExpired, st.integers(NOW, NOW + 6), st.integers(1, 3), st.just("token")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(effects, max_size=30))
def test_it_answers_as_the_obvious_store_does(sequence: list[StoreEffect]) -> None:
    store, obvious = Bench(), DictStore()
    for effect in sequence:
        if isinstance(effect, Save) and isinstance(
            current := obvious.records.get(effect.record.task_id), TaskRecord
        ):
            # A record keeps its owner for life.
            effect = evolve(effect, record=evolve(effect.record, principal=current.principal))
        mine, theirs = store.ask(effect), obvious.answer(effect)
        if isinstance(mine, ExpiredFound) and isinstance(theirs, ExpiredFound):
            # Which of two that expire at the same moment comes first is nobody's business.
            assert [one.expires_at_ms for one in mine.records] == [
                one.expires_at_ms for one in theirs.records
            ]
            assert mine.next_expiry_ms == theirs.next_expiry_ms
            assert len({one.task_id for one in mine.records}) == len(mine.records)
        else:
            assert mine == theirs
