"""The ledger of the proxy and what people see of it: HIS.1 to HIS.5."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto import Status
from mcp_tasks_proto.history import (
    LABELS,
    AccessDecision,
    AccessReason,
    Action,
    Assigned,
    Observation,
    ProjectView,
    Retention,
    TaskEntry,
    Viewer,
    assign,
    count_polls,
    decide_access,
    entry_from_json,
    entry_to_json,
    observe,
    of_project,
    opened,
    outlived,
    project_list,
    repeats,
    task_page,
)
from mcp_tasks_proto.history.ledger import LONGEST_TIMELINE
from mcp_tasks_proto.history.retention import DAY_MS

START = 1_700_000_000_000
KEPT = Retention()


def entry(status: Status = Status.WORKING, **changed: Any) -> TaskEntry:
    facts: dict[str, Any] = {
        "handle": "handle-1",
        "project": "film",
        "owner": "alice",
        "caller": "Alice's laptop",
        "api_key": False,
        "upstream": "renderer",
        "tool": "render",
        "now": START,
    }
    return opened(status=status, **{**facts, **changed})


def seen(status: Status, at_ms: int = START + 1, *, polled: bool = False) -> Observation:
    return Observation(status=status, at_ms=at_ms, polled=polled)


def statuses(found: TaskEntry) -> list[str]:
    return [event.status.value for event in found.timeline if event.status is not None]


# -- HIS.1 ---------------------------------------------------------------------------------------------


def test_his1_a_new_task_is_created_once() -> None:
    assert statuses(entry()) == ["working"]
    assert entry().version == 1


def test_his1_a_task_that_has_ended_already_says_both() -> None:
    ended = entry(Status.COMPLETED)
    assert statuses(ended) == ["working", "completed"]
    assert ended.version == 1


def test_his1_the_same_status_is_noted_once() -> None:
    once = observe(entry(), seen(Status.INPUT_REQUIRED))
    assert statuses(once) == ["working", "input_required"]
    assert observe(once, seen(Status.INPUT_REQUIRED, START + 9)) is once


def test_his1_each_wait_for_input_is_an_event() -> None:
    found = entry()
    for status in (Status.INPUT_REQUIRED, Status.WORKING, Status.INPUT_REQUIRED, Status.COMPLETED):
        found = observe(found, seen(status))
    assert statuses(found) == ["working", "input_required", "working", "input_required", "completed"]


def test_his1_polls_are_counted_and_not_listed() -> None:
    found = observe(entry(), seen(Status.WORKING, polled=True))
    assert (found.polls, len(found.timeline), found.version) == (1, 1, 2)


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("told", list(Status))
def test_his1_polls_may_be_counted_before_they_are_noted(status: Status, told: Status) -> None:
    """That they see nothing else is asked first; then it makes no difference."""
    one_by_one = kept = entry(status)
    assert repeats(kept, seen(told)) is (observe(kept, seen(told)) is kept)
    if repeats(kept, seen(told)):
        for _ in range(3):
            one_by_one = observe(one_by_one, seen(told, polled=True))
        assert count_polls(kept, 3) == one_by_one
    assert count_polls(kept, 0) is kept


@given(st.lists(st.tuples(st.sampled_from(Status), st.integers(0, 2 * START), st.booleans())))
def test_his1_an_end_is_noted_exactly_once_and_last(story: list[tuple[Status, int, bool]]) -> None:
    found = entry()
    for status, at_ms, polled in story:
        found = observe(found, seen(status, at_ms, polled=polled))
    ends = [event for event in found.timeline if event.status is not None and event.status.terminal]
    assert len(ends) == any(status.terminal for status, _, _ in story)
    assert ends in ([], [found.timeline[-1]])
    times = [event.at_ms for event in found.timeline]
    assert times == sorted(times)
    assert sum(event.kind == "created" for event in found.timeline) == 1


def test_lim3_the_last_place_of_a_timeline_is_for_the_end() -> None:
    found = entry()
    for number in range(LONGEST_TIMELINE):
        found = observe(found, seen((Status.INPUT_REQUIRED, Status.WORKING)[number % 2]))
    found = assign(found, actor="bob", assignee="bob", now=START)
    assert len(found.timeline) == LONGEST_TIMELINE - 1
    assert found.assignee == "bob"
    found = observe(found, seen(Status.FAILED))
    assert len(found.timeline) == LONGEST_TIMELINE
    assert statuses(found)[-1] == "failed"


def test_lim3_a_timeline_has_room_for_all_but_the_end_until_its_last_place() -> None:
    found = entry()
    for number in range(LONGEST_TIMELINE - 3):
        found = observe(found, seen((Status.INPUT_REQUIRED, Status.WORKING)[number % 2]))
    asked = observe(found, seen(Status.INPUT_REQUIRED if found.status is Status.WORKING else Status.WORKING))
    assert len(asked.timeline) == LONGEST_TIMELINE - 1
    assert asked.timeline[-1].kind == "status"
    assigned = assign(found, actor="bob", assignee="bob", now=START)
    assert len(assigned.timeline) == LONGEST_TIMELINE - 1
    assert assigned.timeline[-1].kind == "assigned"


def test_his1_a_poll_that_sees_another_status_is_counted_as_well() -> None:
    found = observe(entry(), seen(Status.INPUT_REQUIRED, polled=True))
    assert (found.polls, found.status, found.version) == (1, Status.INPUT_REQUIRED, 2)


def test_an_entry_survives_the_store() -> None:
    found = assign(observe(entry(), seen(Status.FAILED)), actor="bob", assignee=None, now=START)
    found = assign(found, actor="bob", assignee="carol", now=START + 5)
    assert entry_from_json(entry_to_json(found)) == found
    newer = {**entry_to_json(found), "mood": "good"}
    assert entry_to_json(entry_from_json(newer))["mood"] == "good"
    with pytest.raises(ValueError, match="ledger entry"):
        entry_from_json({"schema": 1})


# -- HIS.2 ---------------------------------------------------------------------------------------------

BOB = Viewer(principal="bob", teams={"film"})


def rows(entries: list[TaskEntry], viewer: Viewer = BOB, **wanted: Any) -> list[str]:
    listed = project_list(entries, viewer, project="film", retention=KEPT, now=START, **wanted)
    return [row["taskId"] for row in listed]


def one_of_each() -> list[TaskEntry]:
    return [entry(status, handle=status.value) for status in Status]


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (ProjectView.ALL, {status.value for status in Status}),
        (ProjectView.PENDING, {"working", "input_required"}),
        (ProjectView.COMPLETED, {"completed"}),
        (ProjectView.FAILED, {"failed"}),
        (ProjectView.CANCELLED, {"cancelled"}),
    ],
)
def test_his2_views_go_by_status(view: ProjectView, shown: set[str]) -> None:
    assert set(rows(one_of_each(), view=view)) == shown


def test_his2_the_assigned_filter_is_independent_of_the_view() -> None:
    entries = [
        assign(entry(status, handle=f"{status.value} {who}"), actor="bob", assignee=who, now=START)
        for status, who in product((Status.WORKING, Status.FAILED), ("bob", "carol", None))
    ]
    assert rows(entries, assigned=Assigned.ME) == ["failed bob", "working bob"]
    assert len(rows(entries, assigned=Assigned.SOMEBODY)) == 4
    assert rows(entries, assigned=Assigned.NOBODY, view=ProjectView.FAILED) == ["failed None"]
    assert len(rows(entries)) == 6


def test_his2_input_required_reads_waiting_for_input() -> None:
    assert LABELS[Status.INPUT_REQUIRED] == "Waiting for input"
    listed = project_list([entry(Status.INPUT_REQUIRED)], BOB, project="film", retention=KEPT, now=START)
    assert listed[0]["label"] == "Waiting for input"


def test_his2_assignment_changes_no_status_and_grants_nothing() -> None:
    found = assign(entry(), actor="bob", assignee="mallory", now=START + 1)
    assert found.status is Status.WORKING
    assert found.updated_at_ms == START
    mallory = Viewer(principal="mallory", upstreams={"renderer"})
    assert not any(decide_access(found, mallory, action, KEPT, START).allowed for action in Action)
    assert assign(found, actor="bob", assignee="mallory", now=START + 2) is found


def test_his2_lists_show_the_newest_first_and_one_project() -> None:
    entries = [entry(handle=str(age), now=START - age) for age in (3, 1, 2)]
    entries.append(entry(handle="other", project="other"))
    assert rows(entries) == ["1", "2", "3"]


# -- HIS.3 ---------------------------------------------------------------------------------------------

ALICE = Viewer(principal="alice", teams={"film"}, upstreams={"renderer"})
DIRECT = Viewer(principal="dora", direct={"film"}, upstreams={"renderer"})

ENDED: dict[str, Any] = {"status": Status.COMPLETED}

VECTORS: list[tuple[str, dict[str, Any], Viewer, Action, AccessReason, bool]] = [
    ("team reads", {}, BOB, Action.READ, AccessReason.TEAM, True),
    ("team assigns", {}, BOB, Action.ASSIGN, AccessReason.TEAM, True),
    ("team sees no payload", {}, BOB, Action.READ_PAYLOAD, AccessReason.SOMEBODY_ELSES, False),
    ("team does not answer", {}, BOB, Action.ANSWER, AccessReason.SOMEBODY_ELSES, False),
    ("team does not cancel", {}, BOB, Action.CANCEL, AccessReason.SOMEBODY_ELSES, False),
    ("direct reads", {}, DIRECT, Action.READ, AccessReason.DIRECT, True),
    ("direct does not assign", {}, DIRECT, Action.ASSIGN, AccessReason.NO_TEAM_RIGHTS, False),
    ("direct sees no payload", {}, DIRECT, Action.READ_PAYLOAD, AccessReason.SOMEBODY_ELSES, False),
    ("outsider", {}, Viewer(principal="eve"), Action.READ, AccessReason.OUTSIDE, False),
    ("original user reads payload", {}, ALICE, Action.READ_PAYLOAD, AccessReason.ORIGINAL_USER, True),
    ("original user answers", {}, ALICE, Action.ANSWER, AccessReason.ORIGINAL_USER, True),
    ("original user cancels", {}, ALICE, Action.CANCEL, AccessReason.ORIGINAL_USER, True),
    (
        "original user, thrown out of the project",
        {},
        Viewer(principal="alice", upstreams={"renderer"}),
        Action.READ_PAYLOAD,
        AccessReason.OUTSIDE,
        False,
    ),
    (
        "original user, upstream authorization gone",
        {},
        Viewer(principal="alice", teams={"film"}),
        Action.CANCEL,
        AccessReason.UPSTREAM,
        False,
    ),
    ("api key, metadata", {"api_key": True}, ALICE, Action.READ, AccessReason.TEAM, True),
    ("api key, payload", {"api_key": True}, ALICE, Action.READ_PAYLOAD, AccessReason.API_KEY, False),
    ("api key, answer", {"api_key": True}, ALICE, Action.ANSWER, AccessReason.API_KEY, False),
    ("api key, cancel", {"api_key": True}, ALICE, Action.CANCEL, AccessReason.API_KEY, False),
    (
        "ended, payload",
        ENDED,
        ALICE,
        Action.READ_PAYLOAD,
        AccessReason.ORIGINAL_USER,
        True,
    ),
    ("ended, cancel", ENDED, ALICE, Action.CANCEL, AccessReason.ENDED, False),
    ("no project, own", {"project": None}, ALICE, Action.READ, AccessReason.ORIGINAL_USER, True),
    ("no project, other", {"project": None}, BOB, Action.READ, AccessReason.OUTSIDE, False),
    ("no project, key", {"project": None, "api_key": True}, ALICE, Action.READ, AccessReason.OUTSIDE, False),
    ("outlived", {"now": START - 90 * DAY_MS}, ALICE, Action.READ, AccessReason.OUTLIVED, False),
]


@pytest.mark.parametrize(
    ("facts", "viewer", "action", "reason", "allowed"),
    [vector[1:] for vector in VECTORS],
    ids=[vector[0] for vector in VECTORS],
)
def test_his3_who_may_do_what(
    facts: dict[str, Any], viewer: Viewer, action: Action, reason: AccessReason, allowed: bool
) -> None:
    assert decide_access(entry(**facts), viewer, action, KEPT, START) == AccessDecision(allowed, reason)


def test_his3_every_reason_has_a_vector() -> None:
    assert {vector[4] for vector in VECTORS} == set(AccessReason)


def test_his3_payloads_and_controls_are_the_original_users_alone() -> None:
    """Over every kind of viewer, entry and action: nobody else, no key, no one outside."""
    for teams, direct, upstreams, name, api_key, action in product(
        (set(), {"film"}), (set(), {"film"}), (set(), {"renderer"}), ("alice", "bob"), (False, True), Action
    ):
        viewer = Viewer(principal=name, teams=teams, direct=direct, upstreams=upstreams)
        decision = decide_access(entry(api_key=api_key), viewer, action, KEPT, START)
        member = bool(teams or direct)
        if action is Action.READ:
            expected = member
        elif action is Action.ASSIGN:
            expected = bool(teams)
        else:
            expected = member and name == "alice" and bool(upstreams) and not api_key
        assert decision.allowed is expected


# -- HIS.4 ---------------------------------------------------------------------------------------------


def test_his4_payloads_a_day_metadata_ninety() -> None:
    assert KEPT.has_payload(START, START + DAY_MS - 1)
    assert not KEPT.has_payload(START, START + DAY_MS)
    assert KEPT.has_metadata(START, START + 90 * DAY_MS - 1)
    assert not KEPT.has_metadata(START, START + 90 * DAY_MS)


def test_his4_limits_may_be_shortened_never_lengthened() -> None:
    assert Retention(payload_ms=1, metadata_ms=1).payload_ms == 1
    for name, longest in (("payload_ms", DAY_MS), ("metadata_ms", 90 * DAY_MS)):
        for wrong in (longest + 1, 0, -1):
            with pytest.raises(ValueError, match=name):
                Retention(**{name: wrong})
        with pytest.raises(TypeError):
            Retention(**{name: 1.5})  # type: ignore[arg-type]


def test_his4_what_is_outlived_is_deleted() -> None:
    entries = [entry(handle="old", now=START - 90 * DAY_MS), entry(handle="new")]
    assert outlived(entries, KEPT, START) == ["old"]
    assert rows(entries) == ["new"]


def test_his4_a_deleted_project_takes_everything_with_it() -> None:
    entries = {"a": entry(handle="a"), "b": entry(handle="b", project="other")}
    assert of_project(entries, "film") == ["a"]


# -- HIS.5 ---------------------------------------------------------------------------------------------


def test_his5_a_page_is_the_row_the_timeline_and_what_is_allowed() -> None:
    found = observe(entry(), seen(Status.INPUT_REQUIRED))
    found = assign(found, actor="bob", assignee="carol", now=START + 2)
    assert task_page(found, DIRECT, retention=KEPT, now=START) == {
        "taskId": "handle-1",
        "project": "film",
        "caller": "Alice's laptop",
        "upstream": "renderer",
        "tool": "render",
        "status": "input_required",
        "label": "Waiting for input",
        "createdAtMs": START,
        "updatedAtMs": START + 1,
        "assignee": "carol",
        "polls": 0,
        "timeline": [
            {"kind": "created", "atMs": START, "status": "working", "label": "Working"},
            {"kind": "status", "atMs": START + 1, "status": "input_required", "label": "Waiting for input"},
            {"kind": "assigned", "atMs": START + 2, "actor": "bob", "assignee": "carol"},
        ],
        "allowed": ["read"],
    }
    page = task_page(found, ALICE, retention=KEPT, now=START)
    assert page is not None
    assert page["allowed"] == ["read", "assign", "read_payload", "answer", "cancel"]


def test_his5_a_page_out_of_reach_is_none() -> None:
    assert task_page(entry(), Viewer(principal="eve"), retention=KEPT, now=START) is None
