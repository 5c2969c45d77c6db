"""THE decision of the proxy, row by row and then as a whole: the table of PRX."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import fields

from mcp_tasks_proto import TaskSupport
from mcp_tasks_proto.proxy import (
    Circumstances,
    Decision,
    DecisionReason,
    Era,
    Kind,
    Row,
    decide,
    judge_answer,
)
from mcp_tasks_proto.proxy.decision import find_row

ALL_WELL: dict[str, Any] = {
    "caller": Era.MODERN,
    "declares": True,
    "profile_allows": True,
    "gate_open": True,
    "upstream": Era.MODERN,
    "upstream_tasks": True,
}
LEGACY_CALLER = {"caller": Era.LEGACY, "bridging": True}

VECTORS: list[tuple[str, dict[str, Any], Row, DecisionReason]] = [
    ("row 1: everybody takes tasks", {}, Row.RELAY, DecisionReason.EVERYBODY_AGREES),
    ("row 1: the profile does not", {"profile_allows": False}, Row.ORDINARY, DecisionReason.PROFILE),
    (
        "row 1: the profile does not, and nothing is promoted",
        {"profile_allows": False, "promotion": True},
        Row.ORDINARY,
        DecisionReason.PROFILE,
    ),
    ("row 2: no tasks upstream", {"upstream_tasks": False}, Row.ORDINARY, DecisionReason.UPSTREAM),
    ("row 2: gate off", {"gate_open": False}, Row.ORDINARY, DecisionReason.GATE),
    (
        "row 2: no tasks upstream, promotion on",
        {"upstream_tasks": False, "promotion": True},
        Row.PROMOTE,
        DecisionReason.UPSTREAM,
    ),
    (
        "row 2: gate off, promotion on",
        {"gate_open": False, "promotion": True},
        Row.PROMOTE,
        DecisionReason.GATE,
    ),
    (
        "row 3: legacy upstream, optional",
        {"upstream": Era.LEGACY},
        Row.TRANSLATE,
        DecisionReason.LEGACY_UPSTREAM,
    ),
    (
        "row 3: legacy upstream, required",
        {"upstream": Era.LEGACY, "tool": TaskSupport.REQUIRED},
        Row.TRANSLATE,
        DecisionReason.LEGACY_UPSTREAM,
    ),
    (
        "row 3: legacy upstream, forbidden",
        {"upstream": Era.LEGACY, "tool": TaskSupport.FORBIDDEN},
        Row.ORDINARY,
        DecisionReason.TOOL,
    ),
    ("row 4: not declared", {"declares": False}, Row.UNDECLARED, DecisionReason.NOT_DECLARED),
    (
        "row 4: not declared, collapse on",
        {"declares": False, "collapse": True},
        Row.COLLAPSE,
        DecisionReason.NOT_DECLARED,
    ),
    (
        "row 4: collapse on, the profile allows no tasks",
        {"declares": False, "collapse": True, "profile_allows": False},
        Row.UNDECLARED,
        DecisionReason.NOT_DECLARED,
    ),
    (
        "row 4: collapse on, no tasks upstream",
        {"declares": False, "collapse": True, "upstream_tasks": False},
        Row.UNDECLARED,
        DecisionReason.NOT_DECLARED,
    ),
    ("row 5: bridged", LEGACY_CALLER, Row.BRIDGE, DecisionReason.EVERYBODY_AGREES),
    ("row 5: not bridged", {"caller": Era.LEGACY}, Row.HIDDEN, DecisionReason.NOT_BRIDGED),
    ("row 5: no params.task", {**LEGACY_CALLER, "declares": False}, Row.HIDDEN, DecisionReason.NOT_ASKED),
    ("row 5: profile", {**LEGACY_CALLER, "profile_allows": False}, Row.HIDDEN, DecisionReason.PROFILE),
    ("row 5: gate", {**LEGACY_CALLER, "gate_open": False}, Row.HIDDEN, DecisionReason.GATE),
]


@pytest.mark.parametrize(
    ("changed", "row", "reason"), [vector[1:] for vector in VECTORS], ids=[vector[0] for vector in VECTORS]
)
def test_prx_rows(changed: dict[str, Any], row: Row, reason: DecisionReason) -> None:
    assert decide(Circumstances(**{**ALL_WELL, **changed})) == Decision(row, reason)


def test_prx_every_row_and_reason_has_a_vector() -> None:
    assert {vector[2] for vector in VECTORS} == set(Row)
    assert {vector[3] for vector in VECTORS} == set(DecisionReason)


CHOICES: dict[str, tuple[Any, ...]] = {
    "caller": tuple(Era),
    "upstream": tuple(Era),
    "tool": tuple(TaskSupport),
    **dict.fromkeys(
        ("declares", "profile_allows", "gate_open", "upstream_tasks", "promotion", "collapse", "bridging"),
        (False, True),
    ),
}


def test_prx_the_row_of_a_call_is_that_of_the_decision() -> None:
    for values in product(*CHOICES.values()):
        known = dict(zip(CHOICES, values, strict=True))
        assert find_row(**known) is decide(Circumstances(**known)).row


def test_prx1_whatever_the_circumstances() -> None:
    """Total, and never more than the intersection: nobody is offered a task that one of the three refuses."""
    assert set(CHOICES) == {known.name for known in fields(Circumstances)}
    for values in product(*CHOICES.values()):
        circumstances = Circumstances(**dict(zip(CHOICES, values, strict=True)))
        row = decide(circumstances).row
        if row.declares:
            assert circumstances.declares
            assert circumstances.profile_allows
            assert circumstances.gate_open
            assert circumstances.upstream_tasks
            assert circumstances.tool is not TaskSupport.FORBIDDEN
        if row.promotes:
            assert circumstances.promotion
            assert circumstances.declares
            assert circumstances.profile_allows
        if row is Row.COLLAPSE:
            assert circumstances.collapse
            assert not circumstances.declares
        legacy = circumstances.caller is Era.LEGACY
        assert legacy is (row in (Row.BRIDGE, Row.HIDDEN))


# -- what comes back -------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", Row)
def test_prx_row_6_a_task_only_where_it_was_asked_for(row: Row) -> None:
    task = {"resultType": "task", "taskId": "t"}
    expected = Kind.TASK if row in (Row.RELAY, Row.TRANSLATE, Row.BRIDGE) else Kind.UNASKED_TASK
    assert judge_answer("tools/call", task, declared=row.declares) is expected
    assert judge_answer("prompts/get", task, declared=row.declares) is Kind.UNASKED_TASK


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({}, Kind.COMPLETE),
        ({"resultType": "complete"}, Kind.COMPLETE),
        ({"resultType": "input_required"}, Kind.INPUT_REQUIRED),
        ({"resultType": "stream"}, Kind.UNKNOWN),
        ({"resultType": None}, Kind.UNKNOWN),
        ({"resultType": ["task"]}, Kind.UNKNOWN),
    ],
)
def test_req1_what_a_result_is(result: dict[str, Any], kind: Kind) -> None:
    assert judge_answer("tools/call", result, declared=True) is kind
