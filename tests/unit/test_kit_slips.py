"""What the kit says where it is pointed at the wrong thing, or is told of tools that there are not."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.testing.kit import (
    CHECKS,
    Begun,
    Came,
    Ended,
    Fact,
    KitSettings,
    Post,
    Role,
    ToolCall,
    Verdict,
    by_strength,
)
from tests.unit.kit_expectations import CALLS, of
from tests.unit.kit_world import Fault, KitServer


def answering(status: int, body: Any = None, **headers: str) -> Fault:
    """Return what answers every request alike."""

    def says(_: Post, fact: Fact) -> Fact | None:
        match fact:
            case Begun():
                return Begun(status, headers)
            case Came():
                return None if body is None else Came(body)
        return fact

    return Fault(says=says)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (answering(401), "HTTP 401: it wants to know who asks (--header has what it wants)"),
        (answering(401, {"error": "who are you?"}), "HTTP 401: it wants to know who asks"),
        (answering(403, {"id": 1, "error": {"code": -32000}}), "HTTP 403: it lets nobody in who asks like"),
        (answering(404), "HTTP 404: its endpoint may have another path"),
        (answering(405), "HTTP 405: its endpoint may have another path"),
        (answering(307, location="/mcp/"), "HTTP 307: it is at '/mcp/'"),
        (answering(302), "HTTP 302: it is at 'another address'"),
    ],
)
def test_what_keeps_everybody_out_is_no_server_to_judge(fault: Fault, why: str) -> None:
    """A wrong path or a missing token is one sentence, and not a report of what could not be seen."""
    kit = KitServer(fault=fault).examine()
    assert str(kit.unreachable).startswith(f"everything is answered with {why}")
    assert kit.findings == []


def test_a_server_that_knows_no_method_is_judged() -> None:
    """It speaks JSON-RPC: it is the server that is wrong, not the address."""
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "what?"}}
    kit = KitServer(fault=answering(404, error)).examine()
    assert kit.unreachable is None
    assert "discovery" in of(kit, Verdict.FAIL)


def test_a_server_of_one_era_is_judged() -> None:
    """The other one may be unknown to it without a word."""

    def says(post: Post, fact: Fact) -> Fact | None:
        if post.method != "initialize":
            return fact
        return Begun(404) if isinstance(fact, Begun) else Ended()

    kit = KitServer(fault=Fault(says=says)).examine()
    assert kit.unreachable is None
    assert of(kit, Verdict.FAIL).keys() == {"initialize where it is not served"}


@pytest.mark.parametrize(
    "settings",
    [
        KitSettings(skipped=frozenset({"whipe"})),
        KitSettings(calls={Role.SLOW: ToolCall("whipe")}, search=False),
    ],
)
def test_a_tool_that_is_named_and_not_listed_is_a_slip(settings: KitSettings) -> None:
    """Nothing is called: it may be the one that must not be."""
    server = KitServer()
    kit = server.examine(settings)
    assert (kit.unlisted, kit.unreachable, kit.findings) == (("whipe",), None, [])
    assert server.work.called == []


def test_a_list_that_does_not_end_does_not_tell_what_is_not_in_it() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        if post.method == "tools/list" and isinstance(fact, Came) and "result" in fact.message:
            return Came({**fact.message, "result": {**fact.message["result"], "nextCursor": "more"}})
        return fact

    settings = KitSettings(calls={Role.SLOW: ToolCall("elsewhere")}, search=False)
    kit = KitServer(fault=Fault(says=says), legacy=None).examine(settings, checks=())
    assert kit.unlisted == ()


def test_failures_are_counted_by_how_strongly_they_are_asked_for() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        return Begun(200, fact.headers) if isinstance(fact, Begun) and post.verb == "GET" else fact

    kit = KitServer(fault=Fault(says=says)).examine()
    assert {strength.value: number for strength, number in by_strength(kit.findings).items()} == {
        "must": 0,
        "should": 1,
        "choice": 0,
    }


def test_a_server_of_2025_11_25_alone_is_examined_with_the_tools_that_are_named() -> None:
    """LEG: it knows no method of the other era, server/discover included."""

    def says(post: Post, fact: Fact) -> Fact | None:
        unknown = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "what?"}}
        return Came(unknown) if post.era == "modern" and isinstance(fact, Came) else fact

    checks = [one for one in CHECKS if one.rules[0].startswith("LEG.")]
    kit = KitServer(fault=Fault(says=says)).examine(KitSettings(calls=CALLS), checks=checks)
    assert of(kit, Verdict.FAIL).keys() <= {"a task in both eras"}
    assert {"a call with a task", "the result of a task", "a task asks"} <= of(kit, Verdict.PASS).keys()
