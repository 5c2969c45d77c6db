"""Every reachable state of small worlds with a requester, and in each all that must never be otherwise.

The worlds have the reference model beside them, and every step from every state is compared with it: see
:mod:`tests.model.requester_world` for what is checked. Steps are: a task asks, or ends, at the server; a
request reaches it and its answer the requester; one of them is lost; somebody answers a question, or cancels
with or without waiting; a deadline comes; the process ends, and another goes on with what was saved.

Bounds: one life of each task, one loss, one restart. Polls are answered or lost before the next deadline,
other requests may still be on their way then. The counts are exact: a rule that comes or goes changes them,
and whoever changes one says why.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from tests.model.exploring_requester import ENDED, METHODS, Bounds, Explored, SmallWorld, explore


@pytest.fixture(autouse=True)
def _without_collecting() -> Iterator[None]:
    """Thousands of states are kept: looking through them for cycles takes longer than the rest."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def comes_to_an_end(world: SmallWorld) -> None:
    """REQ.3, REQ.4, REQ.6: once nothing is lost any more, what was answered arrives, and so does the end."""
    given = {task.saved.task_id: set(task.unsent) for task in world.model.watched() if not task.cancelling}
    for _ in range(3):
        go_on(world)
    for task_id, keys in given.items():
        assert not keys & world.truth[task_id].outstanding, "REQ.4: an answer arrives"
    for task_id, truth in world.truth.items():
        if truth.status not in ENDED:
            world.change(task_id, "completed")
    while world.host.in_flight or world.host.deadline is not None:
        go_on(world)
    for call in world.resumed or world.outcomes:
        task_id = world.saved[call][0].task_id
        kind, at_server = world.outcomes[call].kind, world.truth[task_id].status
        assert kind == at_server or (kind == "cancelled" and at_server in ENDED), (kind, at_server)


def go_on(world: SmallWorld) -> None:
    """The server answers all that has reached it; or, when nothing has, the next deadline comes."""
    if not world.host.in_flight and world.host.deadline is not None:
        world.late()
    for task_id in world.truth:
        for kind in METHODS:
            if world.in_flight(kind, task_id) is not None:
                world.answer_request(kind, task_id)


def explored(sizes: Bounds, check: Callable[[SmallWorld], None] = lambda _: None) -> Explored:
    """Explore, and print what was found."""
    found = explore(sizes, check)
    print(sizes, found)
    return found


def test_one_task_that_may_be_cancelled() -> None:
    """REQ.4, REQ.7."""
    found = explored(Bounds(keys=("q",)))
    assert found == Explored(states=4144, moves=12596, over=36)


def test_one_task_with_two_keys() -> None:
    """REQ.4: answers cross, and are lost, or their acknowledgements are, before and after a restart."""
    found = explored(Bounds(keys=("q", "r"), cancels=False))
    assert found == Explored(states=2868, moves=8334, over=12)


def test_all_comes_to_an_end_wherever_something_was_lost() -> None:
    found = explored(Bounds(keys=("q", "r"), restarts=0, cancels=False), comes_to_an_end)
    assert found == Explored(states=637, moves=1767, over=6)


def test_all_comes_to_an_end_wherever_the_process_ended() -> None:
    found = explored(Bounds(keys=("q", "r"), losses=0, cancels=False), comes_to_an_end)
    assert found == Explored(states=459, moves=1185, over=6)


def test_two_tasks() -> None:
    """REQ.2: each has its own schedule, and its own ledger."""
    found = explored(Bounds(tasks=("one", "two"), losses=0, restarts=0, cancels=False))
    assert found == Explored(states=703, moves=2104, over=6)
