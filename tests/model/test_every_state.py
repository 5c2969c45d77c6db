"""Every reachable state of two small worlds, and in each of them all that must never be otherwise.

The worlds have the reference model beside them, and every step from every state is compared with it: see
:mod:`tests.model.server_world` for what is checked. Steps are: a call becomes a task, its worker asks, its
caller answers, a caller cancels, the worker ends in one of three ways, a deadline passes, the store carries
out one of the changes that wait (so two that were decided on the same record meet as a conflict), the process
ends before or after a change was carried out, another one begins and hears what was lost.

Bounds: one life of each task, one question of each run of its work, one crash. Of two tasks one has changes
that wait at the store, two at most, and one after the crash; of one task there are three, and two. What else
these worlds leave out is in :mod:`tests.model.exploring`. The counts are exact: a rule that comes or goes
changes them, and whoever changes one says why.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_tasks_proto import ServerEngine, Step
from tests.model.exploring import Bounds, Explored, explore
from tests.model.server_world import CALLERS, World


@pytest.fixture(autouse=True)
def _without_collecting() -> Iterator[None]:
    """Thousands of states are kept: looking through them for cycles takes longer than the rest."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def look_around(world: World) -> None:
    """Everywhere the engine holds what is under way, and no more.

    Where nothing waits, everybody sees what is theirs and nobody else's, and nothing changes by it.
    """
    world.check_bounds()
    if world.asked:
        return
    before = dict(world.store.records)
    world.check_rest()
    for number in range(2):
        for caller in CALLERS:
            world.get(number, caller)
        world.answer(number, _other(number), "q")
        world.cancel(number, _other(number))
    world.settle()
    assert world.store.records == before, "SEC.1, GET.1"


def _other(number: int) -> str:
    return CALLERS[1 - number]


def explored(bounds: Bounds) -> Explored:
    """Explore, and print what was found."""
    found = explore(bounds, look_around)
    print(bounds, found)
    return found


def test_two_tasks_of_two_callers_with_a_key_each() -> None:
    found = explored(Bounds(tasks=2, names=("q",)))
    assert found == Explored(states=16541, moves=48126, at_rest=3046, conflicts=8708)


def test_one_task_with_two_keys_at_once() -> None:
    """INP.3, UPD.5: answers to both cross, meet conflicts, and are lost in a crash before they count."""
    found = explored(Bounds(tasks=1, names=("q", "r"), in_flight=3, in_flight_after_crash=2))
    assert found == Explored(states=3825, moves=11759, at_rest=261, conflicts=4681)


def test_lim3_what_is_held_only_while_something_waits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question too many, which is forgotten before all is at rest."""
    handle = ServerEngine.handle

    def hoarding(engine: ServerEngine, fact: Any, *, now: int) -> Step:
        questions = engine._tasks._questions
        questions.pop("spare", None)
        step = handle(engine, fact, now=now)
        if questions:
            questions["spare"] = next(iter(questions.values()))
        return step

    monkeypatch.setattr(ServerEngine, "handle", hoarding)
    with pytest.raises(AssertionError, match="questions that nobody answers"):
        explored(Bounds(tasks=1, crashes=0))
