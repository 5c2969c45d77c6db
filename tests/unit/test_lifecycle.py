"""THE table: LIFE.1, CAN.6, UPD.5, TTL.3.

What is expected is written down here once more, from the contract and as words: one line a trigger, one
column a status. Every cell is compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto.lifecycle import (
    IGNORE,
    REJECT,
    STAY,
    TABLE,
    TERMINAL,
    Goto,
    Status,
    Trigger,
    Verdict,
    render_mermaid,
    render_table,
    transition,
)

# w = working, i = input_required, then completed, failed and cancelled, which never differ.
EXPECTED: Final = """
                            w                   i                   ended
    WorkProgressed          stay                stay                ignore
    InputAsked              input_required      stay                reject
    InputAskedAfterCancel   reject              reject              reject
    InputAskedAgain         stay                stay                reject
    InputsPartlyAnswered    ignore              stay                ignore
    InputsFullyAnswered     ignore              working             ignore
    NothingAnswered         ignore              ignore              ignore
    InputsPartlyWithdrawn   ignore              stay                ignore
    InputsFullyWithdrawn    ignore              working             ignore
    CancelRequested         stay                stay                ignore
    TtlChanged              stay                stay                stay
    WorkCompleted           completed           completed           ignore
    WorkFailed              failed              failed              ignore
    WorkStopped             cancelled           cancelled           ignore
    WorkLost                failed              failed              ignore
    WorkResumed             stay                stay                ignore
    GraceElapsed            cancelled           cancelled           ignore
    HostCancelled           cancelled           cancelled           reject
    HostFailed              failed              failed              reject
"""

WORDS: Final[Mapping[str, Verdict]] = {
    "stay": STAY,
    "ignore": IGNORE,
    "reject": REJECT,
    **{status.value: Goto(status) for status in Status},
}


def expectations() -> dict[tuple[Status, Trigger], Verdict]:
    expected = {}
    for line in EXPECTED.strip().splitlines()[1:]:
        trigger, working, input_required, ended = line.split()
        for status in Status:
            word = {"working": working, "input_required": input_required}.get(status.value, ended)
            expected[status, Trigger(trigger)] = WORDS[word]
    return expected


ENDED: Final = [Status.COMPLETED, Status.FAILED, Status.CANCELLED]
CELLS: Final = list(product(Status, Trigger))


def label(cell: object) -> str | None:
    return cell.value if isinstance(cell, Status | Trigger) else None


# -- the whole table --------------------------------------------------------------------------------------


def test_it_is_total() -> None:
    assert set(TABLE) == set(CELLS)
    assert set(expectations()) == set(CELLS)


@pytest.mark.parametrize(("status", "trigger"), CELLS, ids=label)
def test_every_cell(status: Status, trigger: Trigger) -> None:
    assert transition(status, trigger) == TABLE[status, trigger] == expectations()[status, trigger]


def test_statuses_are_those_of_the_specification() -> None:
    """LIFE.1."""
    assert [status.value for status in Status] == [
        "working",
        "input_required",
        "completed",
        "failed",
        "cancelled",
    ]
    assert [status for status in Status if status.terminal] == ENDED
    assert set(ENDED) == TERMINAL


# -- what it means, group by group ---------------------------------------------------------------------------


def targets(status: Status) -> dict[Status, set[Trigger]]:
    """Where the table leads from ``status``, and by what."""
    found: dict[Status, set[Trigger]] = {}
    for trigger in Trigger:
        verdict = transition(status, trigger)
        if isinstance(verdict, Goto):
            found.setdefault(verdict.status, set()).add(trigger)
    return found


LIVE: Final = [Status.WORKING, Status.INPUT_REQUIRED]
ENDINGS: Final = {
    Status.COMPLETED: {Trigger.WORK_COMPLETED},
    Status.FAILED: {Trigger.WORK_FAILED, Trigger.WORK_LOST, Trigger.HOST_FAILED},
    Status.CANCELLED: {Trigger.WORK_STOPPED, Trigger.GRACE_ELAPSED, Trigger.HOST_CANCELLED},
}


def test_a_working_task_waits_only_for_what_it_asked() -> None:
    assert targets(Status.WORKING) == {Status.INPUT_REQUIRED: {Trigger.INPUT_ASKED}, **ENDINGS}


def test_a_waiting_task_resumes_only_when_nothing_is_outstanding() -> None:
    """INP.3: the last answer, or the last withdrawal."""
    resumed = {Trigger.INPUTS_FULLY_ANSWERED, Trigger.INPUTS_FULLY_WITHDRAWN}
    assert targets(Status.INPUT_REQUIRED) == {Status.WORKING: resumed, **ENDINGS}


@pytest.mark.parametrize("status", ENDED, ids=label)
def test_an_ended_task_goes_nowhere(status: Status) -> None:
    """LIFE.1."""
    assert targets(status) == {}


@pytest.mark.parametrize("status", ENDED, ids=label)
def test_only_the_lifetime_of_an_ended_task_still_changes(status: Status) -> None:
    """TTL.3."""
    assert [trigger for trigger in Trigger if transition(status, trigger) is STAY] == [Trigger.TTL_CHANGED]


@pytest.mark.parametrize("status", LIVE, ids=label)
@pytest.mark.parametrize("target", ENDED, ids=label)
def test_every_live_task_can_end_in_every_way(status: Status, target: Status) -> None:
    """LIFE.1: any non-terminal to any terminal."""
    assert target in targets(status)


@pytest.mark.parametrize("status", LIVE, ids=label)
def test_a_cancel_request_moves_nothing_by_itself(status: Status) -> None:
    """CAN.6: the status becomes cancelled when the worker stops, or its grace is over, or by the host."""
    assert transition(status, Trigger.CANCEL_REQUESTED) is STAY
    assert targets(status)[Status.CANCELLED] == ENDINGS[Status.CANCELLED]


@pytest.mark.parametrize("status", Status, ids=label)
def test_a_cancelled_task_does_not_park_again(status: Status) -> None:
    """CAN.6."""
    assert transition(status, Trigger.INPUT_ASKED_AFTER_CANCEL) is REJECT


@pytest.mark.parametrize("status", Status, ids=label)
def test_an_answer_to_nothing_changes_nothing(status: Status) -> None:
    """UPD.3: an update without a key that is outstanding is acknowledged, and that is all."""
    assert transition(status, Trigger.NOTHING_ANSWERED) is IGNORE


@pytest.mark.parametrize("status", ENDED, ids=label)
@pytest.mark.parametrize(
    "trigger",
    [
        Trigger.CANCEL_REQUESTED,
        Trigger.INPUTS_PARTLY_ANSWERED,
        Trigger.INPUTS_FULLY_ANSWERED,
        Trigger.WORK_COMPLETED,
        Trigger.WORK_FAILED,
    ],
    ids=label,
)
def test_whoever_comes_too_late_is_not_told_off(status: Status, trigger: Trigger) -> None:
    """UPD.5, CAN.6: acknowledged, and the task stays as it was."""
    assert transition(status, trigger) is IGNORE


@given(st.lists(st.sampled_from(Trigger), max_size=40))
def test_no_history_leaves_an_ending(history: list[Trigger]) -> None:
    status = Status.WORKING
    ended = None
    for trigger in history:
        verdict = transition(status, trigger)
        status = verdict.status if isinstance(verdict, Goto) else status
        ended = ended or (status if status.terminal else None)
        assert ended in (None, status)


def test_every_status_is_reached() -> None:
    reached = {Status.WORKING}
    while more := {target for status in reached for target in targets(status)} - reached:
        reached |= more
    assert reached == set(Status)


# -- how it is shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [(STAY, "stay"), (IGNORE, "ignore"), (REJECT, "reject"), (Goto(Status.FAILED), "-> failed")],
)
def test_a_verdict_reads_as_a_word(verdict: Verdict, shown: str) -> None:
    assert str(verdict) == shown


def test_the_table_in_markdown() -> None:
    header, rule, *rows = render_table().splitlines()
    assert header == "| trigger | working | input_required | completed | failed | cancelled |"
    assert rule == "|---|---|---|---|---|---|"
    assert len(rows) == len(Trigger)
    for row, trigger in zip(rows, Trigger, strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells == [trigger.value, *(str(TABLE[status, trigger]) for status in Status)]
    assert render_table().endswith("|\n")


def test_the_table_as_a_diagram() -> None:
    first, second, *lines = render_mermaid().splitlines()
    assert (first, second.split()) == ("stateDiagram-v2", ["[*]", "-->", "working"])
    arrows = [re.fullmatch(r" {4}(\w+) --> (\w+): (\w+)", line) for line in lines]
    drawn = {(arrow[1], arrow[2], arrow[3]) for arrow in arrows if arrow}
    assert drawn == {
        (status.value, verdict.status.value, trigger.value)
        for (status, trigger), verdict in TABLE.items()
        if isinstance(verdict, Goto)
    }
    ends = [line.split() for line, arrow in zip(lines, arrows, strict=True) if arrow is None]
    assert ends == [[name, "-->", "[*]"] for name in ("completed", "failed", "cancelled")]
    assert render_mermaid().endswith("\n")
