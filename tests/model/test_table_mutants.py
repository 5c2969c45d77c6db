"""Whoever drops or redirects a cell of the lifecycle table is caught by the reference model.

A dropped cell no longer does what it did: it ignores the fact, or takes in what was to be ignored. A
redirected one leads to another status. That a cell which stays goes to its own status, or one that rejects
stays where nobody looks at the difference, is the same by other words, and no mutant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from mcp_tasks_proto import lifecycle
from mcp_tasks_proto.lifecycle import IGNORE, REJECT, STAY, TABLE, TERMINAL, Goto, Status, Trigger, Verdict
from tests.model.stories import STORIES, tell

Cell = tuple[Status, Trigger]

UNREACHED: Final[dict[Cell, Verdict]] = {
    # Nothing is outstanding while a task works, and an ended task has no questions, no node and no worker.
    **{
        (Status.WORKING, trigger): IGNORE
        for trigger in (
            Trigger.INPUTS_PARTLY_ANSWERED,
            Trigger.INPUTS_FULLY_ANSWERED,
            Trigger.INPUTS_PARTLY_WITHDRAWN,
            Trigger.INPUTS_FULLY_WITHDRAWN,
        )
    },
    **{
        (status, trigger): REJECT if trigger is Trigger.INPUT_ASKED_AGAIN else IGNORE
        for status in TERMINAL
        for trigger in (
            Trigger.INPUT_ASKED_AGAIN,
            Trigger.INPUTS_PARTLY_ANSWERED,
            Trigger.INPUTS_FULLY_ANSWERED,
            Trigger.INPUTS_PARTLY_WITHDRAWN,
            Trigger.INPUTS_FULLY_WITHDRAWN,
            Trigger.WORK_LOST,
            Trigger.WORK_RESUMED,
        )
    },
}
"""Cells that no fact leads to, with what they must say in case one ever does: that nothing happens."""


class Watched(dict[Cell, Verdict]):
    """A table that notes where it was looked up."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self.seen: set[Cell] = set()

    def __getitem__(self, cell: Cell) -> Verdict:
        self.seen.add(cell)
        return super().__getitem__(cell)


@pytest.fixture(scope="module")
def by_cell() -> dict[Cell, list[str]]:
    """Return which stories come to a cell; all of them end well."""
    found: dict[Cell, list[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, story in STORIES.items():
            watched = Watched()
            patch.setattr(lifecycle, "TABLE", watched)
            tell(story)
            for cell in watched.seen:
                found.setdefault(cell, []).append(name)
    return found


def mutants(cell: Cell) -> Iterator[Verdict]:
    """Return what else a cell could say."""
    status, verdict = cell[0], TABLE[cell]
    yield STAY if verdict is IGNORE else IGNORE
    own = verdict.status if isinstance(verdict, Goto) else status
    yield from (Goto(other) for other in Status if other is not own)


def caught(cell: Cell, verdict: Verdict, stories: list[str]) -> bool:
    """Whether a story ends badly with this verdict in the place of the right one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "TABLE", {**TABLE, cell: verdict})
        for name in stories:
            try:
                tell(STORIES[name])
            except AssertionError:
                return True
    return False


def test_the_stories_come_to_every_cell_that_can_be_reached(by_cell: dict[Cell, list[str]]) -> None:
    assert set(by_cell) | set(UNREACHED) == set(TABLE)
    assert not set(by_cell) & set(UNREACHED)


def test_life1_cells_that_nothing_reaches_change_nothing() -> None:
    assert {cell: TABLE[cell] for cell in UNREACHED} == UNREACHED


def test_the_table_as_it_is_is_not_caught(by_cell: dict[Cell, list[str]]) -> None:
    assert not any(caught(cell, TABLE[cell], stories[:1]) for cell, stories in by_cell.items())


@pytest.mark.parametrize("trigger", Trigger, ids=lambda trigger: trigger.value)
def test_every_mutant_is_caught(trigger: Trigger, by_cell: dict[Cell, list[str]]) -> None:
    reached = [status for status in Status if (status, trigger) not in UNREACHED]
    survivors = [
        f"{status.value}, {trigger.value}: {verdict}"
        for status in reached
        for verdict in mutants((status, trigger))
        if not caught((status, trigger), verdict, by_cell[status, trigger])
    ]
    assert not survivors
