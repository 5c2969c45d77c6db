"""The memory store keeps the promises of ``stores/contract.md``, and what it alone has to keep."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import pytest
from hypothesis import given, settings
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.storing import News, StoreEffect

from mcp_tasks_proto.inputs import RecordChanged, RecordRemoved
from mcp_tasks_proto.testing.store_suite import STORE_CHECKS, Ask, Check, compare
from tests.adapters.store_harness import NOW, Bench, opened, record
from tests.adapters.store_strategies import effect_lists

CODE = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with opened(MemoryStore()) as bench:
        yield bench


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_every_store(bench: Bench, check: Check[Ask]) -> None:
    check(bench.ask)


@settings(max_examples=200, deadline=None)
@given(effects=effect_lists)
def test_it_answers_as_the_obvious_store_does(effects: list[StoreEffect]) -> None:
    compare(Bench(MemoryStore()).ask, effects)


def test_it_says_how_much_it_keeps(bench: Bench) -> None:
    bench.saved(record("a", payload_bytes=10))
    bench.saved(record("b", payload_bytes=5))
    bench.saved(record("a", payload_bytes=70, version=2), 1)
    assert (len(bench.store), bench.store.payload_bytes) == (2, 75)
    bench.delete("a", 2)
    assert (len(bench.store), bench.store.payload_bytes) == (1, 5)


def test_a_record_is_found_once_however_often_its_lifetime_changed(bench: Bench) -> None:
    for version, ttl in enumerate([10, 20, 10, 20, 10], start=1):
        bench.saved(record(ttl_ms=ttl, version=version), version - 1 or None)
    bench.saved(record("b", ttl_ms=15))
    assert bench.find(NOW + 12) == (["a"], NOW + 15)
    assert bench.find(NOW + 30) == (["a", "b"], None)
    assert bench.find(NOW + 30, limit=1) == (["a"], NOW + 15)


def test_changing_one_record_for_ever_takes_no_more_memory(bench: Bench) -> None:
    """Rule 8: what is left of old expiries is bounded by the records there are."""
    bench.saved(record())
    for version in range(2, 10_002):
        bench.saved(record(ttl_ms=1000 + version, version=version), version - 1)
        if version == 1000:
            before = held_bytes(bench.store)
    assert held_bytes(bench.store) - before < 20_000


def test_records_that_come_and_go_leave_nothing_behind(bench: Bench) -> None:
    for number in range(10_000):
        bench.saved(record(f"task{number}", principal=f"user{number}"))
        bench.delete(f"task{number}", 1)
        if number == 1000:
            before = held_bytes(bench.store)
    assert held_bytes(bench.store) - before < 20_000
    assert len(bench.store) == bench.store.payload_bytes == 0


def held_bytes(store: MemoryStore) -> int:
    """Return the size of everything that ``store`` refers to, but for code."""
    seen, found = {id(store)}, [store]
    for held in found:
        for other in gc.get_referents(held):
            if id(other) not in seen and not isinstance(other, CODE):
                seen.add(id(other))
                found.append(other)
    return sum(sys.getsizeof(held) for held in found)


# -- several drivers on one loop (rule 11) -------------------------------------------------------------------


def test_whoever_is_alone_hears_nothing(bench: Bench) -> None:
    bench.watch()
    bench.saved(record())
    assert bench.heard == []


def test_those_who_share_it_hear_of_changes_that_concern_them(bench: Bench) -> None:
    others: list[News] = []
    unwatch = bench.store.watch(lambda task_id: task_id == "a", others.append)
    bench.watch()
    for task_id in ("a", "b"):
        bench.saved(record(task_id))
    bench.delete("a", 1)
    assert others == [RecordChanged(record("a")), RecordRemoved("a")]
    assert len(bench.heard) == 3
    unwatch()
    bench.saved(record("a"))
    assert len(others) == 2
