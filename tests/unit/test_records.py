"""The stored task: LIFE.5, TTL.1, INP.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import InputEntry, Resumption, TaskRecord
from mcp_tasks_proto.wire.schema import task_view

CREATED: Final = 1_000
HUGE: Final = 2**53


def record(**changes: Any) -> TaskRecord:
    start: dict[str, Any] = {
        "task_id": "a" * 26,
        "version": 1,
        "principal": "ada",
        "tool": "render",
        "arguments": {},
        "client_capabilities": {},
        "status": Status.WORKING,
        "created_at_ms": CREATED,
        "last_updated_at_ms": CREATED,
        "ttl_ms": 60_000,
    }
    return TaskRecord(**{**start, **changes})


def entry(key: str, **changes: Any) -> InputEntry:
    return InputEntry(**{"key": key, "name": key, "ask": "1", "request": {"method": "roots/list"}, **changes})


WAITING: Final = record(status=Status.INPUT_REQUIRED, inputs=(entry("a"), entry("b")))


def view_of(task: TaskRecord) -> dict[str, Any]:
    """The view, but for when it was last updated."""
    view = task_view(task)
    del view["lastUpdatedAt"]
    return view


# -- changes ------------------------------------------------------------------------------------------------

SEEN: Final[Mapping[str, tuple[TaskRecord, dict[str, Any]]]] = {
    "status message": (record(), {"status_message": "half way"}),
    "status message gone": (record(status_message="half way"), {"status_message": None}),
    "poll hint": (record(), {"poll_interval_ms": 500}),
    "poll hint gone": (record(poll_interval_ms=500), {"poll_interval_ms": None}),
    "shorter lifetime": (record(), {"ttl_ms": 1}),
    "no end": (record(), {"ttl_ms": None}),
    "an end": (record(ttl_ms=None), {"ttl_ms": HUGE}),
    "asked": (record(), {"status": Status.INPUT_REQUIRED, "inputs": (entry("a"),)}),
    "asked more": (WAITING, {"inputs": (*WAITING.inputs, entry("c"))}),
    "answered in part": (WAITING, {"inputs": (entry("a", response={}), entry("b"))}),
    "withdrawn in part": (WAITING, {"inputs": (entry("a"), entry("b", withdrawn=True))}),
    "answered": (
        WAITING,
        {"status": Status.WORKING, "inputs": (entry("a", response={}), entry("b", response={}))},
    ),
    "completed": (record(), {"status": Status.COMPLETED, "result": {"content": []}}),
    "failed": (record(), {"status": Status.FAILED, "error": ErrorObject(-32603, "no")}),
    "cancelled": (WAITING, {"status": Status.CANCELLED, "inputs": ()}),
    "lifetime of an ended task": (record(status=Status.CANCELLED), {"ttl_ms": 120_000}),
}

UNSEEN: Final[Mapping[str, tuple[TaskRecord, dict[str, Any]]]] = {
    "nothing": (record(), {}),
    "the same message": (record(status_message="x"), {"status_message": "x"}),
    "cancel requested": (record(), {"cancel_requested_at_ms": 5_000}),
    "arguments dropped": (record(arguments={"a": 1}), {"arguments": None}),
    "size": (record(), {"payload_bytes": 99}),
    "fields of later versions": (record(), {"extra": {"later": 1}}),
    "an answer to what was withdrawn": (
        record(inputs=(entry("a", withdrawn=True),)),
        {"inputs": (entry("a", withdrawn=True, response={}),)},
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_change_that_is_seen_moves_the_time(name: str) -> None:
    """LIFE.5."""
    before, changes = SEEN[name]
    after = before.changed(5_000, **changes)
    assert view_of(after) != view_of(before)
    assert after == attrs.evolve(before, version=2, last_updated_at_ms=5_000, **changes)


@pytest.mark.parametrize("name", UNSEEN)
def test_a_change_that_is_not_seen_leaves_it(name: str) -> None:
    """LIFE.5."""
    before, changes = UNSEEN[name]
    after = before.changed(5_000, **changes)
    assert view_of(after) == view_of(before)
    assert after == attrs.evolve(before, version=2, **changes)


@pytest.mark.parametrize(
    ("now", "moved_to"),
    [(CREATED + 2, CREATED + 2), (CREATED + 1, CREATED + 1), (CREATED, CREATED + 1), (0, CREATED + 1)],
)
def test_it_moves_forward_also_when_the_clock_does_not(now: int, moved_to: int) -> None:
    """LIFE.5: never back, so that it orders views."""
    assert record().changed(now, status_message="x").last_updated_at_ms == moved_to


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([None, "a", "b"]), st.sampled_from([None, 100, 200])),
        max_size=20,
    )
)
def test_times_order_the_views(story: list[tuple[int, str | None, int | None]]) -> None:
    before = record()
    for elapsed, message, poll_ms in story:
        now = before.last_updated_at_ms + elapsed - 2
        after = before.changed(now, status_message=message, poll_interval_ms=poll_ms)
        assert after.version == before.version + 1
        if view_of(after) == view_of(before):
            assert after.last_updated_at_ms == before.last_updated_at_ms
        else:
            assert after.last_updated_at_ms > before.last_updated_at_ms
            assert after.last_updated_at_ms in (now, before.last_updated_at_ms + 1)
        before = after


def test_the_record_before_is_untouched() -> None:
    before = record()
    before.changed(5_000, status_message="x")
    assert before == record()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        before.version = 2  # type: ignore[misc]


# -- lifetime -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl_ms", [1, 60_000, 25 * 24 * 3_600_000, 2**31, HUGE])
def test_it_is_there_until_its_lifetime_is_over(ttl_ms: int) -> None:
    """TTL.1: never unreadable before createdAt + ttlMs. Huge lifetimes are lifetimes (trap 15)."""
    task = record(ttl_ms=ttl_ms)
    assert task.expires_at_ms == CREATED + ttl_ms
    assert not task.expired(CREATED)
    assert not task.expired(CREATED + ttl_ms - 1)
    assert task.expired(CREATED + ttl_ms)
    assert task.expired(CREATED + ttl_ms + HUGE)


def test_without_one_it_stays() -> None:
    task = record(ttl_ms=None)
    assert task.expires_at_ms is None
    assert not task.expired(HUGE)


def test_a_lifetime_counts_from_creation() -> None:
    """TTL.3."""
    task = record().changed(50_000, ttl_ms=10_000)
    assert task.expires_at_ms == CREATED + 10_000
    assert task.expired(50_000)


# -- input requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "outstanding"),
    [
        ({}, True),
        ({"response": {}}, False),
        ({"withdrawn": True}, False),
        ({"response": {}, "withdrawn": True}, False),
    ],
    ids=str,
)
def test_an_entry_waits_until_it_is_answered_or_withdrawn(changes: dict[str, Any], outstanding: bool) -> None:
    """INP.1; an empty answer is an answer."""
    assert entry("a", **changes).outstanding is outstanding


def test_what_is_outstanding_is_in_the_order_of_asking() -> None:
    inputs = (entry("b"), entry("x", response={}), entry("a"), entry("y", withdrawn=True))
    assert [waiting.key for waiting in record(inputs=inputs).outstanding] == ["b", "a"]
    assert record().outstanding == ()


def test_a_run_of_the_work_has_the_number_of_take_overs_before_it() -> None:
    assert record().resumptions == 0
    assert record(resumption=Resumption()).resumptions == 0
    assert record(resumption=Resumption(times=3)).resumptions == 3
