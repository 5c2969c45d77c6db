"""Pages of a project's list, and who may look at a project: HIS.2, HIS.3."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto import Status
from mcp_tasks_proto.history import (
    AccessDecision,
    AccessReason,
    Assigned,
    Place,
    ProjectPage,
    ProjectView,
    Retention,
    TaskEntry,
    Viewer,
    assign,
    decide_project,
    place_of,
    project_list,
    project_page,
)
from tests.unit.test_history import BOB, DIRECT, START, entry

FEW = 7
"""Entries in a stretch."""


@pytest.mark.parametrize(
    ("viewer", "decision"),
    [
        (BOB, AccessDecision(True, AccessReason.TEAM)),
        (DIRECT, AccessDecision(True, AccessReason.DIRECT)),
        (Viewer(principal="eve", teams={"other"}), AccessDecision(False, AccessReason.OUTSIDE)),
    ],
)
def test_his3_who_may_look_at_a_project(viewer: Viewer, decision: AccessDecision) -> None:
    assert decide_project(viewer, "film") == decision


def stretch_after(entries: list[TaskEntry], after: Place | None) -> list[TaskEntry]:
    """Return what a store gives: so many entries of a project from a place on."""
    ordered = sorted(entries, key=place_of)
    return [one for one in ordered if after is None or place_of(one) > after][:FEW]


def pages(entries: list[TaskEntry], most: int, **wanted: Any) -> list[ProjectPage]:
    """Turn the pages to the last one."""
    found: list[ProjectPage] = []
    after: Place | None = None
    while not found or after is not None:
        stretch = stretch_after(entries, after)
        page = project_page(
            stretch,
            BOB,
            project="film",
            most=most,
            is_last=len(stretch) < FEW,
            retention=Retention(),
            now=START,
            **wanted,
        )
        found.append(page)
        after = page.after
    return found


ENTRIES = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(Status), st.sampled_from([None, "bob", "carol"])),
    max_size=40,
)


@given(ENTRIES, st.integers(1, 9), st.sampled_from(ProjectView), st.sampled_from(Assigned))
def test_his2_the_pages_together_are_the_list(
    facts: list[tuple[int, Status, str | None]], most: int, view: ProjectView, assigned: Assigned
) -> None:
    entries = [
        assign(entry(status, handle=f"h{number}", now=START - age), actor="bob", assignee=who, now=START)
        for number, (age, status, who) in enumerate(facts)
    ]
    wanted: dict[str, Any] = {"view": view, "assigned": assigned}
    turned = pages(entries, most, **wanted)
    whole = project_list(entries, BOB, project="film", retention=Retention(), now=START, **wanted)
    assert [row for page in turned for row in page.rows] == whole
    assert all(len(page.rows) <= most for page in turned)


def test_his2_a_page_may_be_empty_with_more_after_it() -> None:
    """A page costs a bounded number of entries, however few of them are to be shown."""
    entries = [entry(handle=f"h{number}", now=START - number) for number in range(FEW)]
    entries.append(entry(Status.FAILED, handle="old", now=START - 99))
    first, second = pages(entries, 5, view=ProjectView.FAILED)
    assert (first.rows, first.after) == ([], Place(-(START - FEW + 1), f"h{FEW - 1}"))
    assert [row["taskId"] for row in second.rows] == ["old"]


def test_his2_nothing_has_nothing_after_it() -> None:
    page = project_page([], BOB, project="film", most=1, is_last=False, retention=Retention(), now=START)
    assert page == ProjectPage(rows=[], after=None)


@pytest.mark.parametrize(("most", "rows", "more"), [(1, 1, True), (2, 2, False), (3, 2, False)])
def test_his2_a_last_page_that_is_just_full_is_the_last(most: int, rows: int, more: bool) -> None:
    stretch = [entry(handle="one"), entry(handle="two")]
    page = project_page(
        stretch, BOB, project="film", most=most, is_last=True, retention=Retention(), now=START
    )
    assert (len(page.rows), page.after is not None) == (rows, more)
