"""Deadlines: one for each key, earliest first, none remembered twice; and pauses that grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto.timers import Timers, exponential_backoff


def test_nothing_is_due_at_first() -> None:
    timers = Timers()
    assert timers.next is None
    assert timers.due(10**15) == []


def test_due_keys_come_earliest_first_and_once() -> None:
    timers = Timers()
    for key, when in [("b", 20), ("a", 10), ("c", 30)]:
        timers.set(key, when)
    assert timers.next == 10
    assert timers.due(20) == ["a", "b"]
    assert timers.due(20) == []
    assert timers.next == 30


def test_keys_may_be_taken_one_by_one() -> None:
    timers = Timers()
    timers.set("b", 20)
    timers.set("a", 10)
    assert timers.pop(9) is None
    assert timers.pop(30) == "a"
    assert timers.get("a") is None
    assert timers.pop(19) is None
    assert timers.pop(20) == "b"
    assert timers.pop(20) is None


def test_a_key_that_is_due_at_the_same_time_comes_in_the_order_it_was_set() -> None:
    timers = Timers()
    for key in ("z", "a", "m"):
        timers.set(key, 5)
    assert timers.due(5) == ["z", "a", "m"]


def test_setting_a_key_again_replaces_its_deadline() -> None:
    timers = Timers()
    timers.set("a", 10)
    timers.set("a", 30)
    assert timers.due(10) == []
    assert timers.next == 30
    timers.set("a", 5)
    assert timers.due(5) == ["a"]
    assert timers.next is None


def test_a_key_that_was_taken_and_set_again_comes_after_those_set_in_between() -> None:
    timers = Timers()
    timers.set("a", 10)
    timers.set("a", 10)
    timers.set("b", 10)
    assert timers.pop(10) == "a"
    timers.set("a", 10)
    assert timers.due(10) == ["b", "a"]


def test_setting_a_key_to_the_time_that_it_has_leaves_nothing_behind() -> None:
    timers = Timers()
    for key in ("a", "other", "a"):
        timers.set(key, 10)
    assert timers.pop(10) == "a"
    for key in ("in between", "a"):
        timers.set(key, 10)
    assert timers.due(10) == ["other", "in between", "a"]


def test_a_cleared_key_is_forgotten() -> None:
    timers = Timers()
    timers.set("a", 10)
    timers.clear("a")
    timers.clear("never set")
    assert timers.get("a") is None
    assert timers.next is None


def test_keys_need_not_be_comparable() -> None:
    timers = Timers()
    timers.set("text", 1)
    timers.set(("a", "tuple"), 1)
    timers.set(7, 1)
    assert timers.due(1) == ["text", ("a", "tuple"), 7]


def test_resetting_one_key_for_ever_keeps_the_answer_right() -> None:
    """A grace that is set anew on every change must not grow the heap; what is due stays the same."""
    timers = Timers()
    timers.set("still", 500)
    for when in range(10_000, 9_000, -1):
        timers.set("moving", when)
    assert timers.due(500) == ["still"]
    assert timers.due(9_000) == []
    assert timers.due(9_001) == ["moving"]


KEYS = st.sampled_from("abcd")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers(0, 50)),
        st.tuples(st.just("clear"), KEYS, st.just(0)),
        st.tuples(st.just("due"), st.just(""), st.integers(0, 50)),
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_timers_behave_like_a_dictionary_searched_from_end_to_end(
    operations: list[tuple[str, str, int]],
) -> None:
    timers = Timers()
    model: dict[str, int] = {}
    for what, key, when in operations:
        if what == "set":
            timers.set(key, when)
            model[key] = when
        elif what == "clear":
            timers.clear(key)
            model.pop(key, None)
        else:
            due = timers.due(when)
            assert sorted(map(str, due)) == sorted(key for key, at in model.items() if at <= when)
            assert [model[str(key)] for key in due] == sorted(model[str(key)] for key in due)
            for key_due in due:
                del model[str(key_due)]
        assert timers.next == min(model.values(), default=None)
        assert all(timers.get(key) == model.get(key) for key in "abcd")


@pytest.mark.parametrize(("last_ms", "pauses"), [(30, [3, 6, 12, 24, 30, 30]), (2, [2, 2, 2, 2, 2, 2])])
def test_pauses_are_doubled_up_to_the_longest(last_ms: int, pauses: list[int]) -> None:
    assert [exponential_backoff(failures, 3, last_ms) for failures in range(1, 7)] == pauses


def test_the_longest_pause_is_reached_however_short_the_first_is() -> None:
    day_ms = 24 * 3600 * 1000
    assert exponential_backoff(27, 1, day_ms) == 2**26
    assert exponential_backoff(28, 1, day_ms) == day_ms
    assert exponential_backoff(10**9, 1, day_ms) == day_ms
