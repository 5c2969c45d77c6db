"""Patterns for tools, and what a caller would see: PRX.2, PRX.7, PRX.15."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto.proxy import Access, DecisionReason, Row, ToolProfile, Upstream, preview
from mcp_tasks_proto.proxy.patterns import matches, may_begin_with
from tests.unit.proxy_world import make_settings

FARM = Upstream(name="farm")
OLD = Upstream(name="old", tasks=False)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("render", "render", True),
        ("render", "render2", False),
        ("*", "", True),
        ("farm__*", "farm__render", True),
        ("farm__*", "farm_render", False),
        ("*__search", "archive__search", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c", False),
        ("ab*ba", "aba", False),
        ("ab*b*c", "abc", False),
        ("a*b*b", "ab", False),
        ("a*b*c*d", "abcbd", True),
        ("aaa*b*b*c", "aaabc", False),
        ("a*b*b*c", "abc", False),
        ("a**b", "ab", True),
        ("*a*", "bab", True),
    ],
)
def test_prx7_a_star_stands_for_any_characters(pattern: str, name: str, fits: bool) -> None:
    assert matches([pattern], name) is fits
    assert matches(["other", pattern], name) is fits
    profile = ToolProfile(tools=frozenset({pattern}), task_tools=frozenset({pattern, "never"}))
    assert profile.allows(name) is fits
    assert profile.allows_tasks(name) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_patterns_mean_what_they_mean_in_a_shell(pattern: str, name: str) -> None:
    assert matches([pattern], name) is fnmatchcase(name, pattern)


def test_a_pattern_does_not_keep_anybody_busy() -> None:
    assert not matches(["*a" * 2000 + "*b"], "a" * 100_000)


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        ("farm__*", True),
        ("farm__render", True),
        ("far*", True),
        ("farm__re*", True),
        ("farm__", False),
        ("farm", False),
        ("archive__*", False),
    ],
)
def test_prx15_a_pattern_is_for_the_tools_of_an_upstream_or_not(pattern: str, fits: bool) -> None:
    assert may_begin_with(pattern, "farm__") is fits


def seen(access: Access | None = None, **settings: Any) -> dict[str, Any]:
    made = make_settings(FARM, OLD, **settings)
    return {one.upstream: one for one in preview(made, access or Access())}


def test_prx7_a_caller_sees_the_upstreams_that_exist_for_it() -> None:
    assert list(seen()) == ["farm", "old"]
    found = seen(Access(authorizations={"farm": "alice"}))
    assert list(found) == ["farm"]
    assert found["farm"].authorization == "alice"


def test_prx15_tools_are_shown_as_callers_know_them() -> None:
    assert seen()["farm"].tools == ("farm__*",)
    profile = ToolProfile(tools=frozenset({"*__search", "farm__render"}), task_tools=frozenset({"farm__*"}))
    found = seen(profiles={"default": profile})
    assert found["farm"].tools == ("*__search", "farm__render")
    assert found["old"].tools == ("*__search",)
    assert (found["farm"].task_tools, found["old"].task_tools) == (("farm__*",), ())
    assert preview(make_settings(FARM), Access())[0].tools == ("*",)


@pytest.mark.parametrize(
    ("settings", "upstream", "rows", "reason"),
    [
        ({}, "farm", (Row.RELAY, Row.ORDINARY, Row.UNDECLARED), DecisionReason.EVERYBODY_AGREES),
        (
            {"collapse": True},
            "farm",
            (Row.RELAY, Row.ORDINARY, Row.COLLAPSE),
            DecisionReason.EVERYBODY_AGREES,
        ),
        (
            {"promote_after_ms": 1},
            "farm",
            (Row.RELAY, Row.PROMOTE, Row.UNDECLARED),
            DecisionReason.EVERYBODY_AGREES,
        ),
        ({}, "old", (Row.ORDINARY, Row.ORDINARY, Row.UNDECLARED), DecisionReason.GATE),
        ({"tasks": False}, "farm", (Row.ORDINARY, Row.ORDINARY, Row.UNDECLARED), DecisionReason.GATE),
        (
            {"profiles": {"default": ToolProfile(task_tools=frozenset())}},
            "farm",
            (Row.ORDINARY, Row.ORDINARY, Row.UNDECLARED),
            DecisionReason.PROFILE,
        ),
    ],
)
def test_prx2_tasks_are_offered_as_the_decision_says(
    settings: dict[str, Any], upstream: str, rows: tuple[Row, ...], reason: DecisionReason
) -> None:
    found = seen(**settings)[upstream]
    assert (found.with_tasks.row, found.without_tasks.row, found.undeclared.row) == rows
    assert found.with_tasks.reason is reason
