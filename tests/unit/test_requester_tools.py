"""Tools, headers and cached results: HTTP.2, HTTP.3, REQ.8, NEG.9 as a requester sees them; traps 10, 11."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Failed,
    Fault,
    ObservationLost,
    RequesterLimits,
    RequestWanted,
    SendRequest,
)
from mcp_tasks_proto.testing import RequesterHost
from mcp_tasks_proto.wire.http import request_headers
from tests.unit.requester_world import (
    DONE,
    HINT,
    START,
    TASK,
    asks,
    at_rest,
    completed,
    handle,
    make_host,
    outcome,
    polled,
)

REGION = {
    "name": "query",
    "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "outputSchema": {"type": "object", "required": ["rows"]},
}
PLAIN = {"name": "render", "inputSchema": {"type": "object"}}
WRONG = {
    "name": "wrong",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "array", "x-mcp-header": "X"}}},
}
LIST = "tools/list"
CALL = "tools/call"


def http_host(limits: RequesterLimits | None = None, **settings: Any) -> RequesterHost:
    """Return a host whose transport has headers."""
    return make_host(limits, mirror_arguments=True, **settings)


def headers_of(sent: SendRequest) -> dict[str, str]:
    """Return the headers that a transport sends with a request."""
    message = sent.message
    return dict(request_headers(message["method"], message["params"], "2026-07-28", sent.parameters))


def newest(host: RequesterHost) -> SendRequest:
    return host.of(SendRequest)[-1]


# -- mirrored arguments (HTTP.3) ---------------------------------------------------------------------


def test_http3_the_tools_are_listed_before_the_first_call_and_arguments_are_mirrored() -> None:
    host = http_host()
    call = host.call("query", {"region": "eu", "sql": "x"})
    assert [sent.message["method"] for sent in host.of(SendRequest)] == [LIST]
    host.reply(LIST, {"tools": [PLAIN, REGION]})
    headers = headers_of(newest(host))
    assert headers["Mcp-Param-Region"] == "eu"
    assert headers["Mcp-Name"] == "query"
    host.reply(CALL, DONE)
    assert outcome(host, call) == Completed(DONE)
    at_rest(host)


def test_http3_the_list_is_read_once_for_all_calls() -> None:
    host = http_host()
    for _ in range(2):
        host.call("query")
    host.reply(LIST, {"tools": [REGION]})
    host.call("query")
    host.call("never heard of")
    assert len(host.sent(LIST)) == 1
    assert len(host.waiting(CALL)) == 4


def test_http3_over_all_pages() -> None:
    host = http_host()
    host.call("query", {"region": "eu"})
    host.reply(LIST, {"tools": [PLAIN], "nextCursor": "two"})
    assert host.params_of(LIST)["cursor"] == "two"
    assert not host.waiting(CALL)
    host.call("render")
    assert len(host.waiting(CALL)) == 1, "that one is known already"
    host.reply(LIST, {"tools": [REGION], "nextCursor": None})
    assert headers_of(newest(host))["Mcp-Param-Region"] == "eu"


def test_lim3_pages_are_bounded() -> None:
    host = http_host(RequesterLimits(tool_pages=3))
    host.call("query")
    for number in range(3):
        host.reply(LIST, {"tools": [], "nextCursor": str(number)})
    assert not host.waiting(LIST)
    assert len(host.waiting(CALL)) == 1


def test_lim3_pages_that_a_caller_reads_are_bounded_too() -> None:
    host = make_host(RequesterLimits(tool_pages=2))
    for number in range(4):
        host.ask(LIST, {"cursor": str(number)} if number else {})
        host.reply(LIST, {"tools": [{**PLAIN, "name": f"t{number}"}], "nextCursor": str(number)})
    assert [host.engine.tool(f"t{number}") is not None for number in range(4)] == [True, True, False, False]


def test_http3_without_headers_there_is_nothing_to_mirror() -> None:
    host = make_host()
    host.call("query", {"region": "eu"})
    assert newest(host).message["method"] == CALL
    assert newest(host).parameters == ()


def test_http3_what_a_caller_has_listed_need_not_be_listed_again() -> None:
    host = http_host()
    host.ask(LIST)
    host.reply(LIST, {"tools": [REGION], "nextCursor": "two"})
    host.call("query", {"region": "eu"})
    assert headers_of(newest(host))["Mcp-Param-Region"] == "eu"
    host.call("render")
    assert len(host.waiting(LIST)) == 1, "that one may be on another page"


LIST_FAILURES: dict[str, Any] = {
    "error": lambda host: host.refuse(LIST, -32601),
    "internal": lambda host: host.refuse(LIST, -32603),
    "status": lambda host: host.answer_http(LIST, 502),
    "reset": lambda host: host.fail(LIST),
    "unsent": lambda host: host.fail(LIST, sent=False),
    "garbage": lambda host: host.answer_http(LIST, 200, body=[]),
    "unknown type": lambda host: host.reply(LIST, {"resultType": "input_required", "tools": [WRONG]}),
    "silence": lambda host: host.advance(30_000),
}


@pytest.mark.parametrize("fail", LIST_FAILURES.values(), ids=LIST_FAILURES)
def test_http3_without_the_list_the_call_goes_out_plain(fail: Any) -> None:
    """A server that needs the headers says so."""
    host = http_host()
    call = host.call("query", {"region": "eu"})
    fail(host)
    assert newest(host).parameters == ()
    host.reply(CALL, DONE)
    assert outcome(host, call) == Completed(DONE)
    host.call("query", {"region": "eu"})
    assert len(host.waiting(LIST)) == 1, "the next one tries again"


@pytest.mark.parametrize(
    "tools",
    [None, "all", {"query": 1}, [None, 5, "x", [], {}, {"name": 5}, {"name": ["query"]}]],
    ids=repr,
)
def test_http3_what_is_no_list_of_tools_lists_none(tools: Any) -> None:
    host = http_host()
    call = host.call("query")
    host.reply(LIST, {"tools": tools})
    host.reply(CALL, DONE)
    assert outcome(host, call) == Completed(DONE)


def test_http3_a_wrongly_annotated_tool_is_not_called() -> None:
    """Neither by who waited for the list, nor later."""
    host = http_host()
    first = host.call("wrong")
    host.reply(LIST, {"tools": [WRONG]})
    for call in (first, host.call("wrong")):
        found = outcome(host, call)
        assert isinstance(found, Failed)
        assert found.fault is Fault.SERVER
        assert "x-mcp-header" in found.message
    assert not host.sent(CALL)
    at_rest(host)


def test_http3_a_caller_is_not_shown_wrongly_annotated_tools() -> None:
    host = http_host()
    call = host.ask(LIST)
    host.reply(LIST, {"tools": [PLAIN, WRONG, "nonsense", REGION], "ttlMs": 60_000})
    expected = {"tools": [PLAIN, REGION], "ttlMs": 60_000}
    assert outcome(host, call) == Completed(expected)
    assert outcome(host, host.ask(LIST)) == Completed(expected)


@pytest.mark.parametrize("tools", [None, "all", 5], ids=repr)
def test_wire5_a_result_that_lists_no_tools_is_passed_on_as_it_is(tools: Any) -> None:
    host = http_host()
    call = host.ask(LIST)
    host.reply(LIST, {"tools": tools})
    assert outcome(host, call) == Completed({"tools": tools})


@pytest.mark.parametrize("region", [["eu"], {"a": 1}, 2**60, 1.5], ids=repr)
def test_http3_an_argument_that_no_header_can_carry_is_the_callers_fault(region: Any) -> None:
    host = http_host()
    host.ask(LIST)
    host.reply(LIST, {"tools": [REGION]})
    call = host.call("query", {"region": region})
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert (found.code, found.fault) == (None, Fault.CALLER)
    assert found.message == "Mcp-Param-Region: its argument is nothing that a header can carry"
    assert not host.sent(CALL)
    at_rest(host)


def test_http2_a_method_that_no_header_can_carry_is_the_callers_fault() -> None:
    host = http_host()
    found = outcome(host, host.ask("täsks/get"))
    assert isinstance(found, Failed)
    assert found.fault is Fault.CALLER


def test_trap11_every_request_has_the_headers_that_its_body_asks_for() -> None:
    host = http_host()
    call = host.call(" odd name ")
    host.reply(LIST, {"tools": []})
    host.reply(CALL, handle())
    host.advance(HINT)
    host.cancel(call)
    names = {sent.message["method"]: headers_of(sent).get("Mcp-Name") for sent in host.of(SendRequest)}
    assert names == {
        LIST: None,
        CALL: "=?base64?IG9kZCBuYW1lIA==?=",
        "tasks/get": TASK,
        "tasks/cancel": TASK,
    }


# -- a definition that has changed (HTTP.3) ----------------------------------------------------------


def test_http3_after_a_header_mismatch_the_list_is_read_again_and_the_call_sent_once_more() -> None:
    host = http_host()
    host.ask(LIST)
    host.reply(LIST, {"tools": [{**REGION, "inputSchema": {"type": "object"}}], "ttlMs": 60_000})
    call = host.call("query", {"region": "eu"})
    assert newest(host).parameters == ()
    host.refuse(CALL, -32020)
    host.reply(LIST, {"tools": [REGION]})
    assert headers_of(newest(host))["Mcp-Param-Region"] == "eu"
    host.reply(CALL, DONE)
    assert outcome(host, call) == Completed(DONE)


def test_http3_the_list_that_is_read_again_replaces_the_one_before() -> None:
    """A tool that it lacks has no definition any more, and no arguments to mirror; pages count anew."""
    host = http_host(RequesterLimits(tool_pages=2))
    call = host.call("query", {"region": "eu"})
    host.reply(LIST, {"tools": [REGION], "nextCursor": "two"})
    host.reply(LIST, {"tools": [PLAIN]})
    host.refuse(CALL, -32020)
    host.reply(LIST, {"tools": [{**PLAIN, "name": "third"}], "nextCursor": "two"})
    host.reply(LIST, {"tools": [{**PLAIN, "name": "fourth"}]})
    assert newest(host).parameters == ()
    names = ("query", "render", "third", "fourth")
    assert [name for name in names if host.engine.tool(name)] == ["third", "fourth"]
    host.reply(CALL, DONE)
    assert outcome(host, call) == Completed(DONE)


def test_http3_a_second_mismatch_is_the_end() -> None:
    host = http_host()
    call = host.call("query")
    host.reply(LIST, {"tools": [REGION]})
    host.refuse(CALL, -32020)
    host.reply(LIST, {"tools": [REGION]})
    host.refuse(CALL, -32020, "still")
    assert outcome(host, call) == Failed(code=-32020, message="still", fault=Fault.CALLER)
    assert len(host.sent(CALL)) == 2
    at_rest(host)


def test_http3_version_and_headers_can_both_be_put_right() -> None:
    host = http_host(versions=("2027-01-01", "2026-07-28"))
    call = host.call("query", {"region": "eu"})
    host.refuse(LIST, -32022, data={"supported": ["2026-07-28"]})
    host.refuse(CALL, -32020)
    host.refuse(LIST, -32603)
    host.refuse(CALL, -32022, data={"supported": ["2027-01-01"]})
    host.reply(CALL, DONE)
    assert outcome(host, call) == Completed(DONE)


def test_http3_calls_that_mismatch_together_wait_for_one_list() -> None:
    host = http_host()
    for _ in range(3):
        host.call("query")
    host.reply(LIST, {"tools": [REGION]})
    for number in host.waiting(CALL):
        host.refuse(number, -32020)
    assert len(host.waiting(LIST)) == 1
    host.reply(LIST, {"tools": [REGION]})
    assert len(host.waiting(CALL)) == 3


@pytest.mark.parametrize("method", ["resources/read", "server/discover"])
def test_http3_other_methods_have_nothing_to_read_again(method: str) -> None:
    host = http_host()
    call = host.ask(method, {"uri": "a:b"})
    host.refuse(method, -32020)
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert found.code == -32020


def test_http3_without_headers_a_mismatch_is_the_end() -> None:
    host = make_host()
    call = host.call("query")
    host.refuse(CALL, -32020)
    assert isinstance(outcome(host, call), Failed)


# -- ends while the list is read ---------------------------------------------------------------------


def test_the_list_is_not_read_on_for_nobody() -> None:
    host = http_host()
    first, second = host.call("query"), host.call("query")
    host.cancel(first)
    assert host.waiting(LIST)
    host.abandon(second)
    assert isinstance(outcome(host, first), Cancelled)
    assert isinstance(outcome(host, second), ObservationLost)
    at_rest(host)
    third = host.call("query", {"region": "eu"})
    host.reply(LIST, {"tools": [REGION]})
    assert headers_of(newest(host))["Mcp-Param-Region"] == "eu"
    host.reply(CALL, DONE)
    assert outcome(host, third) == Completed(DONE)


def test_req3_the_deadline_ends_the_wait_for_the_list() -> None:
    host = http_host()
    call = host.call("query", deadline_ms=START + 1_000)
    host.advance(1_000)
    assert isinstance(outcome(host, call), ObservationLost)
    at_rest(host)


# -- what is known of a tool (REQ.8) -----------------------------------------------------------------


def test_req8_the_definition_of_a_tool_can_be_told_for_its_output_schema() -> None:
    """Whoever listed it: this engine, or its caller."""
    host = http_host()
    assert host.engine.tool("query") is None
    host.call("query")
    host.reply(LIST, {"tools": [REGION]})
    assert host.engine.tool("query") == REGION
    assert host.engine.tool("render") is None
    host.ask(LIST)
    host.reply(LIST, {"tools": [PLAIN]})
    assert host.engine.tool("query") is None
    assert host.engine.tool("render") == PLAIN


def test_trap10_a_task_is_no_result_to_hold_a_schema_against() -> None:
    """What settles the call is the final result alone, as it came."""
    host = http_host()
    call = host.call("query")
    host.reply(LIST, {"tools": [REGION]})
    host.reply(CALL, asks(state="opaque"))
    host.advance(1_000)
    host.reply(CALL, handle())
    assert call not in host.outcomes
    result = {"content": [], "structuredContent": {"rows": []}}
    polled(host, completed(result, at=1))
    assert outcome(host, call) == Completed({"resultType": "complete", **result})


# -- cached results (core, "Caching") ----------------------------------------------------------------


def cached(host: RequesterHost, method: str, result: dict[str, Any], params: Any = None) -> None:
    """Have a request answered."""
    host.ask(method, params)
    host.reply(method, result)


@pytest.mark.parametrize(
    "method",
    [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ],
)
def test_caching_a_fresh_result_is_given_without_asking(method: str) -> None:
    host = make_host()
    result = {"resultType": "complete", "tools": [], "ttlMs": 5_000, "cacheScope": "private"}
    cached(host, method, result)
    host.advance(4_999)
    assert outcome(host, host.ask(method)) == Completed(result)
    host.advance(1)
    assert host.ask(method) not in host.outcomes
    assert len(host.sent(method)) == 2


def test_caching_a_millisecond_is_a_time() -> None:
    host = make_host()
    cached(host, "resources/read", {"contents": [], "ttlMs": 1})
    assert host.ask("resources/read") in host.outcomes


@pytest.mark.parametrize("ttl", [None, 0, -1, -(10**30), "60", True, 1.5, [60]], ids=repr)
def test_caching_without_a_time_nothing_is_kept(ttl: Any) -> None:
    host = make_host()
    cached(host, "resources/read", {"contents": [], "ttlMs": ttl})
    assert host.ask("resources/read") not in host.outcomes


def test_caching_a_huge_time_does_not_overflow() -> None:
    host = make_host()
    cached(host, "resources/read", {"contents": [], "ttlMs": 10**400})
    host.advance(86_400_000)
    assert host.ask("resources/read") in host.outcomes


@pytest.mark.parametrize("method", ["prompts/get", "completion/complete", "tasks/get"])
def test_caching_other_methods_are_asked_each_time(method: str) -> None:
    host = make_host()
    cached(host, method, {"ttlMs": 60_000})
    assert host.ask(method) not in host.outcomes


def test_caching_params_tell_results_apart() -> None:
    host = make_host()
    for uri in ("a:1", "a:2"):
        cached(host, "resources/read", {"contents": [{"uri": uri}], "ttlMs": 60_000}, {"uri": uri})
    assert outcome(host, host.ask("resources/read", {"uri": "a:1"})) == Completed(
        {"contents": [{"uri": "a:1"}], "ttlMs": 60_000}
    )
    assert host.ask("resources/read", {"uri": "a:3"}) not in host.outcomes
    assert host.ask("resources/read", {"uri": "a:1", "more": [{"deep": None}]}) not in host.outcomes


def test_caching_what_took_answers_is_not_kept() -> None:
    """They are no part of the key."""
    host = make_host()
    call = host.ask("resources/read", {"uri": "a:b"})
    host.reply("resources/read", asks("a", state="opaque"))
    host.answer(call, "a", {"action": "decline"})
    host.reply("resources/read", {"contents": [], "ttlMs": 60_000})
    assert isinstance(outcome(host, call), Completed)
    assert host.ask("resources/read", {"uri": "a:b"}) not in host.outcomes


def test_caching_an_error_is_not_kept() -> None:
    host = make_host()
    host.ask("resources/read")
    host.refuse("resources/read", -32603)
    assert host.ask("resources/read") not in host.outcomes


def test_caching_what_a_caller_does_to_a_result_reaches_nobody_else() -> None:
    host = make_host()
    cached(host, "resources/read", {"contents": [{"text": "x"}], "ttlMs": 60_000})
    first = outcome(host, 1)
    assert isinstance(first, Completed)
    first.result["contents"].clear()
    second = outcome(host, host.ask("resources/read"))
    assert second == Completed({"contents": [{"text": "x"}], "ttlMs": 60_000})
    assert isinstance(second, Completed)
    second.result["contents"].append("y")
    assert outcome(host, host.ask("resources/read")) == Completed(
        {"contents": [{"text": "x"}], "ttlMs": 60_000}
    )


def test_lim3_kept_results_are_bounded_and_the_oldest_makes_room() -> None:
    """One that was asked for anew is the newest, and makes room for nobody but itself."""
    host = make_host(RequesterLimits(cached_results=2))

    def known() -> list[bool]:
        uris = ("a:1", "a:2", "a:3")
        return [host.ask("resources/read", {"uri": uri}) in host.outcomes for uri in uris]

    for uri, ttl in (("a:1", 1_000), ("a:2", 60_000)):
        cached(host, "resources/read", {"contents": [], "ttlMs": ttl}, {"uri": uri})
    assert known() == [True, True, False]
    host.advance(1_000)
    cached(host, "resources/read", {"contents": [], "ttlMs": 60_000}, {"uri": "a:1"})
    cached(host, "resources/read", {"contents": [], "ttlMs": 60_000}, {"uri": "a:3"})
    assert known() == [True, False, True]


def test_lim3_a_result_that_may_not_be_kept_makes_nobody_make_room() -> None:
    host = make_host(RequesterLimits(cached_results=1))
    cached(host, "resources/read", {"contents": [], "ttlMs": 60_000}, {"uri": "a:1"})
    cached(host, "resources/read", {"contents": [], "ttlMs": 0}, {"uri": "a:2"})
    assert host.ask("resources/read", {"uri": "a:1"}) in host.outcomes


def test_lim3_a_result_that_came_twice_makes_room_for_nobody_else() -> None:
    host = make_host(RequesterLimits(cached_results=2))
    cached(host, "resources/read", {"contents": [], "ttlMs": 60_000}, {"uri": "a:1"})
    for _ in range(2):
        host.ask("resources/read", {"uri": "a:2"})
    for _ in range(2):
        host.reply("resources/read", {"contents": [], "ttlMs": 60_000})
    assert host.ask("resources/read", {"uri": "a:1"}) in host.outcomes


def test_caching_a_result_that_is_no_json_is_passed_on_and_not_kept() -> None:
    """A host's own parser may take more: NaN, or half of a surrogate pair."""
    host = make_host()
    cached(host, "resources/read", {"contents": ["\ud800", float("inf")], "ttlMs": 60_000})
    assert isinstance(outcome(host, 1), Completed)
    assert host.ask("resources/read") not in host.outcomes


def test_caching_a_known_result_needs_no_room_beyond_its_call() -> None:
    host = make_host(RequesterLimits(calls=1))
    cached(host, "server/discover", {"ttlMs": 60_000})
    host.call()
    found = outcome(host, host.ask("server/discover"))
    assert isinstance(found, Failed)
    assert "RequesterLimits.calls" in found.message


def test_caching_the_key_of_a_call_is_free_again() -> None:
    host = make_host()
    cached(host, "server/discover", {"ttlMs": 60_000})
    effects = host.give(RequestWanted(call="again", method="server/discover"))
    assert len(effects) == 1
    at_rest(host)
