"""Several nodes and a store that fail between any two effects: nothing acknowledged is ever lost.

LIFE.1, LIFE.2, LIFE.4, UPD.5, CAN.6, INP.1, SUB.2, TTL.1.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import Limits, Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing import Crash, Fate, Network, Passage
from tests.model.mill import LIMITS, Customer, Grinding, Mill, make_engine
from tests.model.watch import Watch

LONG_MS = 900_000
"""Longer than anything takes, once all is well."""

events = st.sampled_from(
    [
        Fate(crash=Crash.BEFORE),
        Fate(crash=Crash.AFTER),
        Fate(sleep_ms=3_000),
        Fate(sleep_ms=9_000),
        Fate(sleep_ms=40),
        Fate(fails=True),
        Fate(delay_ms=60),
        Fate(delay_ms=900),
        Fate(delay_ms=5_000),
        Fate(delay_ms=900, crash=Crash.AFTER),
        Fate(delay_ms=60, sleep_ms=9_000),
        Fate(lost=True),
    ]
)
"""What becomes of an effect."""

AT_ONCE = Passage(delay_ms=1)
accidents = st.sampled_from(
    [
        Passage(lost=True),
        Passage(cut=True),
        Passage(delay_ms=900),
        Passage(delay_ms=5_000),
        Passage(again_ms=1),
        Passage(again_ms=700),
        Passage(again_ms=5_000),
        Passage(delay_ms=900, again_ms=60),
    ]
)
"""What becomes of a message of a customer's."""


def told(story: list[tuple[int, Fate]]) -> list[Fate]:
    """Return the fates of a story: so many effects without an event, then one with it, and so on."""
    return [fate for calm, event in story for fate in (*[Fate()] * calm, event)]


SLOW_TAKE_OVER = told(
    [
        (0, Fate(sleep_ms=9_000)),
        (0, Fate(fails=True)),
        (8, Fate(crash=Crash.BEFORE)),
        (1, Fate(delay_ms=60)),
        (3, Fate(sleep_ms=3_000)),
        (9, Fate(delay_ms=5_000)),
        (1, Fate(sleep_ms=9_000)),
    ]
)
"""A node hears that it has taken work over when it has done so once more."""

fates = st.lists(st.tuples(st.integers(0, 12), events), max_size=14).map(told)
passages = st.lists(st.tuples(st.integers(0, 6), accidents), max_size=6).map(
    lambda story: [passage for calm, accident in story for passage in (*[AT_ONCE] * calm, accident)]
)
plans = st.builds(
    Grinding,
    steps=st.lists(
        st.tuples(
            st.sampled_from([1, 90, 1_500, 6_000]),
            st.sampled_from(["progress", "ask", "ask", "ask twice", "checkpoint"]),
        ),
        max_size=5,
    ).map(tuple),
)
cancels = st.sampled_from([None, None, 10, 1_000, 4_000])


def played(
    plan: Grinding,
    story: list[Fate],
    *,
    size: int,
    passages: list[Passage] | None = None,
    cancels_after_ms: int | None = None,
    resumable: bool = True,
    limits: Limits = LIMITS,
) -> tuple[Network, Mill, list[Customer]]:
    """Live through a story in which two tasks are made, to its end and long after."""
    mill = Mill(plan)
    network = Network(
        make_engine=partial(make_engine, resumable=resumable, limits=limits),
        work=mill.work,
        promises=Watch,
        size=size,
        fates=story,
        passages=passages or [],
    )
    customers = [
        Customer(network=network, number=number, cancels_after_ms=cancels_after_ms) for number in range(2)
    ]
    for customer in customers:
        network.later(40 * customer.number, customer.begin)
    network.run(LONG_MS)
    return network, mill, customers


def histories(network: Network) -> dict[str, list[TaskRecord]]:
    """Return every version of every task, in order."""
    found = defaultdict(list)
    for record in network.history:
        found[record.task_id].append(record)
    return found


def ended(network: Network, customers: list[Customer]) -> dict[str, list[TaskRecord]]:
    """Return the same of the tasks whose customers have the handle: the others may wait for an answer.

    Of those there is one for each call whose reply was lost, or that arrived twice.
    """
    handed_out = {customer.task_id for customer in customers}
    return {task_id: versions for task_id, versions in histories(network).items() if task_id in handed_out}


def check_records(network: Network) -> None:
    """What is true of the records, whatever happened and whoever was told of it."""
    for versions in histories(network).values():
        for before, after in pairwise(versions):
            assert after.version == before.version + 1, "of two that write the same version one wins"
            assert not before.status.terminal, "LIFE.1: a terminal task never changes"
            assert after.resumptions in (before.resumptions, before.resumptions + 1) or after.status.terminal
            taken_over = after.resumptions > before.resumptions
            assert after.node == before.node or taken_over or after.status.terminal
            check_author(before, after)
            for one, later in zip(before.inputs, after.inputs, strict=False):
                assert (one.key, one.name, one.request) == (later.key, later.name, later.request)
                assert one.response in (None, later.response), "an answer is never replaced"


def check_author(before: TaskRecord, after: TaskRecord) -> None:
    """Only the run that the record names writes: never two workers at once."""
    if after.status_message != before.status_message and (after.status_message or "").startswith("run "):
        assert (after.status_message or "").startswith(f"run {before.resumptions} ")
    if after.status is Status.COMPLETED and after.result is not None:
        assert after.result["content"][0]["text"] == f"run {before.resumptions}"


def check_customers(network: Network, customers: list[Customer]) -> None:
    """What was acknowledged to anybody is so."""
    silent = any(fate.lost for fate in network.fates) or any(one.lost for one in network.passages)
    for customer in customers:
        if customer.task_id is None:
            continue
        assert customer.view is not None
        record = network.store.records[customer.task_id]
        assert customer.view["status"] == record.status.value
        assert record.status.terminal, "nothing is left parked, nor runs for ever"
        if customer.listens_at in network.nodes and not customer.broken and not silent:
            assert customer.heard[-1]["params"].get("status") == record.status.value, "SUB.2"
        for node in network.nodes:
            engine = network._nodes[node].engine
            assert not engine.concerns(customer.task_id), "nobody here runs it or waits for it"


def check_done(network: Network, mill: Mill, customers: list[Customer]) -> None:
    """Each question was asked under one key, answered once, and its answer reached the run that ended it."""
    check_records(network)
    check_customers(network, customers)
    assert all(times == 1 for times in mill.starts.values()), "a run is started once"
    questions = mill.plan.keys()
    for task_id, versions in ended(network, customers).items():
        last, before = versions[-1], versions[-2]
        assert last.status is Status.COMPLETED
        assert {entry.key for entry in before.inputs} == questions, "nothing is asked twice (INP.1)"
        settled = {entry.key for entry in before.inputs if entry.withdrawn}
        assert mill.answers[task_id, before.resumptions] | settled == questions
    for customer in customers:
        assert customer.seen <= questions
        assert customer.task_id is None or customer.acknowledged <= questions


THOROUGH = Grinding(
    steps=(
        (1, "ask twice"),
        (90, "checkpoint"),
        (1_500, "ask"),
        (1, "progress"),
        (1, "checkpoint"),
        (6_000, "ask"),
    )
)


@pytest.mark.parametrize(
    "event",
    [
        Fate(crash=Crash.BEFORE),
        Fate(crash=Crash.AFTER),
        Fate(sleep_ms=9_000),
        Fate(fails=True),
        Fate(delay_ms=5_000),
        Fate(lost=True),
    ],
    ids=["crash before", "crash after", "sleep", "store fails", "delay", "loss"],
)
def test_life4_whatever_fails_once_between_any_two_effects(event: Fate) -> None:
    """At each effect in turn, from the first to long after the last."""
    for calm in range(190):
        check_done(*played(THOROUGH, told([(calm, event)]), size=2))


@pytest.mark.parametrize(
    "accident",
    [Passage(lost=True), Passage(cut=True), Passage(again_ms=1), Passage(again_ms=3_000)],
    ids=["loss", "cut", "twice", "twice, much later"],
)
def test_upd5_whatever_becomes_of_one_message_of_a_customer(accident: Passage) -> None:
    """Of each in turn, from the calls to the last look at what came of them."""
    for calm in range(50):
        check_done(*played(THOROUGH, [], size=2, passages=[AT_ONCE] * calm + [accident]))


@settings(max_examples=200, deadline=None)
@given(plans, fates, passages, st.sampled_from([2, 3]))
@example(Grinding(steps=((6_000, "ask"),)), SLOW_TAKE_OVER, [], 2)
def test_every_acknowledged_task_is_done(
    plan: Grinding, story: list[Fate], passages: list[Passage], size: int
) -> None:
    """LIFE.4, UPD.5, INP.1."""
    check_done(*played(plan, story, size=size, passages=passages))


@settings(max_examples=120, deadline=None)
@given(plans, fates, passages, st.sampled_from([2, 3]), cancels)
def test_a_task_that_is_cancelled_ends_so_or_was_faster(
    plan: Grinding, story: list[Fate], passages: list[Passage], size: int, cancels_after_ms: int | None
) -> None:
    """CAN.6: wherever its worker is, and whoever takes it over."""
    network, mill, customers = played(
        plan, story, size=size, passages=passages, cancels_after_ms=cancels_after_ms
    )
    check_records(network)
    check_customers(network, customers)
    assert all(times == 1 for times in mill.starts.values())
    wished = {customer.task_id for customer in customers if customer.told_to_cancel}
    for task_id, versions in ended(network, customers).items():
        assert versions[-1].status in (Status.COMPLETED, Status.CANCELLED)
        if versions[-1].status is Status.CANCELLED:
            assert task_id in wished


@settings(max_examples=120, deadline=None)
@given(
    plans, fates, passages, st.sampled_from([2, 3]), st.sampled_from([(False, 10_000), (True, 1), (True, 3)])
)
def test_what_cannot_be_resumed_ends_and_says_why(
    plan: Grinding, story: list[Fate], passages: list[Passage], size: int, policy: tuple[bool, int]
) -> None:
    """LIFE.2, LIM.3."""
    resumable, resumptions = policy
    if not resumable:
        plan = Grinding(steps=tuple(step for step in plan.steps if step[1] != "checkpoint"))
    network, _, customers = played(
        plan,
        story,
        size=size,
        passages=passages,
        resumable=resumable,
        limits=Limits(resumptions=resumptions),
    )
    check_records(network)
    check_customers(network, customers)
    for versions in ended(network, customers).values():
        last, before = versions[-1], versions[-2]
        if last.status is Status.FAILED:
            assert last.error is not None
            assert last.error.data == {"reason": "resumptions" if resumable else "worker_lost"}
            assert before.node in network.taken_for_gone
            assert before.resumptions == (resumptions if resumable else 0)
        else:
            assert last.status is Status.COMPLETED


@settings(max_examples=60, deadline=None)
@given(plans.filter(lambda plan: not plan.keys()), fates, passages)
def test_a_node_with_one_place_leaves_work_to_others(
    plan: Grinding, story: list[Fate], passages: list[Passage]
) -> None:
    """LIM.3: what does not fit now is told again."""
    network, mill, customers = played(
        plan, story, size=2, passages=passages, limits=Limits(workers=1, resumptions=10_000)
    )
    check_records(network)
    check_customers(network, customers)
    assert all(times == 1 for times in mill.starts.values())
