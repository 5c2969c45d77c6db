"""Requester and server together: whatever the network does for a while, the outcome is the true one.

REQ.1 to REQ.7 on one side, LIFE, UPD.5 and CAN.6 on the other.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import Status
from mcp_tasks_proto.requester import Cancelled, ObservationLost, Prompt
from mcp_tasks_proto.testing import Pair, Passage
from tests.model.workshop import Plan, Workshop, fits, make_pair, outcome, restart

LONG_MS = 3_600_000
"""Longer than any wait, once the weather is fair."""

delays = st.sampled_from([1, 7, 40, 300, 2_500, 20_000])
repeats = st.sampled_from([None, None, None, 1, 300, 20_000])
passages = st.lists(
    st.builds(
        Passage,
        delay_ms=delays,
        lost=st.sampled_from([False, False, False, True]),
        cut=st.sampled_from([False, False, False, True]),
        again_ms=repeats,
    ),
    max_size=30,
)
mild = st.lists(st.builds(Passage, delay_ms=delays, again_ms=repeats), max_size=30)
skews = st.sampled_from([0, 0, 7, -3_600_000, 86_400_000])
plans = st.builds(
    Plan,
    steps=st.lists(
        st.tuples(st.sampled_from([1, 90, 1_500]), st.sampled_from(["progress", "ask", "ask twice"])),
        max_size=5,
    ).map(tuple),
    last_ms=st.sampled_from([1, 700, 12_000]),
    end=st.sampled_from(["complete", "fail", "stop"]),
    obeys=st.booleans(),
    poll_interval_ms=st.sampled_from([1, 400, 5_000]),
)
switches = st.booleans()


def status(pair: Pair, key: int) -> Status:
    """Return how a call's task stands at the server. There are others where the call arrived twice."""
    return pair.server.store.records[pair.requester.references[key]["taskId"]].status


def names(workshop: Workshop, reference: dict[str, Any]) -> set[str]:
    """Return the keys of all answers that reached the worker of a task."""
    return set(workshop.answers[reference["taskId"]])


@settings(max_examples=60, deadline=None)
@given(plans, mild, switches, skews)
def test_on_a_slow_network_every_task_ends_as_planned(
    plan: Plan, storm: list[Passage], listen: bool, skew_ms: int
) -> None:
    """Delays may put messages out of order, and some come twice; each question is shown once, each answer
    is delivered once."""
    workshop = Workshop(plan)
    pair = make_pair(workshop, passages=storm, listen=listen, skew_ms=skew_ms)
    key = pair.call()
    assert pair.settle(key, within_ms=LONG_MS)
    assert fits(plan.end, outcome(pair, key))
    answered = names(workshop, pair.requester.references[key])
    assert len(answered) == len(pair.requester.of(Prompt)) == workshop.questions


@settings(max_examples=150, deadline=None)
@given(plans, passages, switches, skews)
def test_when_the_network_heals_the_outcome_is_the_true_one(
    plan: Plan, storm: list[Passage], listen: bool, skew_ms: int
) -> None:
    """Only a call whose handle never arrived is lost (REQ.3)."""
    workshop = Workshop(plan)
    pair = make_pair(workshop, passages=storm, listen=listen, skew_ms=skew_ms)
    key = pair.call()
    assert pair.settle(key, within_ms=LONG_MS)
    found = outcome(pair, key)
    if key in pair.requester.references:
        assert fits(plan.end, found)
        answered = names(workshop, pair.requester.references[key])
        assert len(answered) == len(pair.requester.of(Prompt)) == workshop.questions
    else:
        assert isinstance(found, ObservationLost)
    pair.run(LONG_MS)
    assert not pair.requester.in_flight
    assert pair.requester.deadline is None


@settings(max_examples=100, deadline=None)
@given(plans, passages, switches, st.integers(0, 20_000), switches)
def test_a_cancelled_call_tells_the_truth(
    plan: Plan, storm: list[Passage], listen: bool, when: int, wait: bool
) -> None:
    """Who waits learns how the task ended; who does not is done at once, and the server is told (REQ.7)."""
    workshop = Workshop(plan)
    pair = make_pair(workshop, passages=storm, listen=listen)
    key = pair.call()
    pair.run(when)
    over, known = key in pair.requester.outcomes, key in pair.requester.references
    pair.cancel(key, wait=wait)
    if not over and not wait:
        assert isinstance(outcome(pair, key), Cancelled)
    assert pair.settle(key, within_ms=LONG_MS)
    pair.run(LONG_MS)
    assert not pair.requester.on_show
    if not known or over:
        return
    stands = status(pair, key)
    if wait or workshop.told:
        assert stands.terminal
    if wait:
        end = {Status.COMPLETED: "complete", Status.FAILED: "fail", Status.CANCELLED: "stop"}[stands]
        assert fits(end, outcome(pair, key))
    assert all(times == 1 for times in workshop.told.values()), "a worker is told once (CAN.6)"


@settings(max_examples=100, deadline=None)
@given(plans, passages, switches, st.lists(st.integers(0, 9_000), min_size=1, max_size=4))
def test_a_task_outlives_the_processes_that_watch_it(
    plan: Plan, storm: list[Passage], listen: bool, lives: list[int]
) -> None:
    """Killed at any moment and resumed, it ends as planned; each answer arrives once (REQ.4, REQ.6)."""
    workshop = Workshop(plan)
    pair = make_pair(workshop, passages=storm, listen=listen)
    key = pair.call()
    reference = None
    for life in lives:
        pair.run(life)
        reference = pair.requester.references.get(key, reference)
        if reference is None or key in pair.requester.outcomes:
            break
        key = restart(pair, reference, listen=listen)
    assert pair.settle(key, within_ms=LONG_MS)
    if reference is not None:
        assert fits(plan.end, outcome(pair, key))
        assert len(names(workshop, reference)) == workshop.questions
