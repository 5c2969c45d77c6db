"""One call, from its request to its outcome: REQ.1, REQ.3, REQ.6, NEG.2, NEG.4; traps 9, 13."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from mcp_tasks_proto import LocalProtocolError
from mcp_tasks_proto.inputs import ShutdownStarted
from mcp_tasks_proto.requester import (
    CallWanted,
    Completed,
    Failed,
    Fault,
    HttpReply,
    NotificationReceived,
    ObservationLost,
    PassOn,
    RequesterLimits,
    RequesterSettings,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    Settle,
    StopRequest,
)
from tests.unit.requester_world import (
    DONE,
    FORMS,
    HINT,
    START,
    TASK,
    at_rest,
    completed,
    form,
    got,
    handle,
    make_engine,
    make_host,
    outcome,
    polled,
    working,
)

TASKS_DECLARED: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
MISSING: Final[dict[str, Any]] = {"requiredCapabilities": {"sampling": {}}}


def failed(found: Any) -> Failed:
    """Return an outcome, which must be a failure."""
    assert isinstance(found, Failed), found
    return found


# -- what a request carries (NEG.1, NEG.4) -----------------------------------------------------------


def test_neg1_every_request_says_version_client_and_capabilities() -> None:
    """Trap 13: the names are the specification's own, written out."""
    host = make_host(mirror_arguments=True)
    call = host.call(meta={"traceparent": "00-ab"})
    host.reply("tools/list", {"tools": []})
    host.reply("tools/call", handle("input_required"))
    host.advance(HINT)
    host.reply("tasks/get", got("input_required", inputRequests={"k": form()}))
    host.answer(call, "k", {"action": "decline"})
    host.cancel(call)
    methods = [sent.message["method"] for sent in host.of(SendRequest)]
    assert methods == ["tools/list", "tools/call", "tasks/get", "tasks/update", "tasks/cancel"]
    for sent in host.of(SendRequest):
        assert sent.message["params"]["_meta"] == {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {**FORMS, **TASKS_DECLARED},
            **({"traceparent": "00-ab"} if sent.message["method"] == "tools/call" else {}),
        }


def test_neg4_the_extension_stands_beside_others() -> None:
    host = make_host(capabilities={"extensions": {"com.example/x": {"a": 1}}})
    host.call()
    declared = host.params_of("tools/call")["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared["extensions"] == {"com.example/x": {"a": 1}, "io.modelcontextprotocol/tasks": {}}


def test_neg4_a_requester_without_tasks_does_not_declare_them() -> None:
    host = make_host(tasks=False)
    host.call()
    declared = host.params_of("tools/call")["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared == FORMS


def test_neg1_a_caller_cannot_change_what_the_protocol_says_in_meta() -> None:
    host = make_host()
    meta = {"io.modelcontextprotocol/protocolVersion": "1900-01-01", "progressToken": "p"}
    host.call(meta=meta)
    carried = host.params_of("tools/call")["_meta"]
    assert carried["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert carried["progressToken"] == "p"


def test_neg1_a_request_carries_what_its_caller_puts_into_meta() -> None:
    host = make_host()
    host.give(RequestWanted(call=1, method="resources/read", meta={"traceparent": "00-ab"}))
    assert host.params_of("resources/read")["_meta"]["traceparent"] == "00-ab"


def test_wire3_ids_differ() -> None:
    host = make_host()
    for _ in range(3):
        host.call()
    ids = [sent.message["id"] for sent in host.of(SendRequest)]
    assert len(set(ids)) == 3


# -- results (REQ.1) ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{"resultType": "complete"}, {}], ids=["complete", "absent"])
def test_req1_a_complete_result_ends_the_call(kind: dict[str, Any]) -> None:
    host = make_host()
    call = host.call("render", {"frames": 3})
    params = host.params_of("tools/call")
    assert (params["name"], params["arguments"]) == ("render", {"frames": 3})
    host.reply("tools/call", {**kind, **DONE})
    assert outcome(host, call) == Completed({**kind, **DONE})
    at_rest(host)


def test_req1_a_tools_own_error_is_a_result() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", {**DONE, "isError": True})
    assert outcome(host, call) == Completed({**DONE, "isError": True})


def test_req1_a_task_is_watched_to_its_result() -> None:
    host = make_host()
    call = working(host)
    assert call not in host.outcomes
    host.advance(HINT)
    assert host.params_of("tasks/get")["taskId"] == TASK
    host.reply("tasks/get", completed(at=1))
    assert outcome(host, call) == Completed({"resultType": "complete", **DONE})
    at_rest(host)


@pytest.mark.parametrize(
    "kind", ["partial", "", None, 5, True, ["task"], {"task": {}}, "TASK", "complete "], ids=repr
)
def test_req1_an_unknown_result_type_is_invalid(kind: Any) -> None:
    """Trap 9, and JSON that cannot be a dictionary's key."""
    host = make_host()
    call = host.call()
    host.reply("tools/call", {"resultType": kind, **DONE})
    assert failed(outcome(host, call)).fault is Fault.SERVER
    at_rest(host)


@pytest.mark.parametrize("method", ["tools/list", "resources/read", "prompts/get", "server/discover"])
def test_req1_only_a_tool_call_may_become_a_task(method: str) -> None:
    host = make_host()
    call = host.ask(method)
    host.reply(method, {**handle(), "tools": []})
    assert failed(outcome(host, call)).fault is Fault.SERVER
    at_rest(host)


def test_req1_a_task_for_a_call_that_did_not_declare_them_is_invalid() -> None:
    host = make_host(tasks=False)
    call = host.call()
    host.reply("tools/call", handle())
    assert failed(outcome(host, call)).fault is Fault.SERVER
    at_rest(host)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"taskId": None},
        {"taskId": 7},
        {"taskId": ["a"]},
        {"status": "running"},
        {"status": {"a": 1}},
        {"status": None},
        {"createdAt": None},
        {"lastUpdatedAt": 5},
        {"ttlMs": "60"},
        {"ttlMs": 1.5},
        {"pollIntervalMs": "fast"},
        {"pollIntervalMs": True},
    ],
    ids=repr,
)
def test_trap9_a_handle_that_cannot_be_read_is_invalid_and_no_empty_success(spoiled: dict[str, Any]) -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", handle(**spoiled))
    assert failed(outcome(host, call)).fault is Fault.SERVER
    at_rest(host)


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        "done",
        {},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": []},
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": 1, "error": "no"},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": {}, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "1.0", "id": 1, "result": DONE},
        {"jsonrpc": "2.0", "id": 2, "result": DONE},
        {"jsonrpc": "2.0", "id": "1", "result": DONE},
        {"jsonrpc": "2.0", "id": True, "result": DONE},
        {"jsonrpc": "2.0", "result": DONE},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}},
    ],
    ids=repr,
)
def test_wire1_what_is_no_response_to_this_request_is_the_servers_fault(message: Any) -> None:
    host = make_host()
    call = host.call()
    host.give(ResponseReceived(request=1, message=message))
    assert failed(outcome(host, call)).fault is Fault.SERVER
    assert failed(outcome(host, call)).code is None
    at_rest(host)


# -- errors, typed by who must act (REQ.6) -----------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (-32602, Fault.CALLER),
        (-32601, Fault.CALLER),
        (-32600, Fault.CALLER),
        (-32700, Fault.CALLER),
        (-32020, Fault.CALLER),
        (-32021, Fault.CALLER),
        (-32022, Fault.CALLER),
        (-32002, Fault.CALLER),
        (-32603, Fault.SERVER),
        (-32000, Fault.SERVER),
        (-32003, Fault.SERVER),
        (7, Fault.SERVER),
        (-(10**30), Fault.SERVER),
    ],
)
def test_req6_an_error_says_who_has_to_act(code: int, fault: Fault) -> None:
    host = make_host()
    call = host.call()
    host.refuse("tools/call", code, "why", data={"a": [1]})
    assert outcome(host, call) == Failed(code=code, message="why", data={"a": [1]}, fault=fault)
    at_rest(host)


def test_codes_a_drafts_missing_capability_reads_as_todays() -> None:
    """Codes: peers' stale -32003 with ``requiredCapabilities`` reads as -32021."""
    host = make_host()
    call = host.call()
    host.refuse("tools/call", -32003, data=MISSING)
    assert outcome(host, call) == Failed(code=-32021, message="no", data=MISSING, fault=Fault.CALLER)


def test_codes_a_drafts_missing_capability_reads_as_todays_in_a_failed_task() -> None:
    host = make_host()
    call = working(host)
    error = {"code": -32003, "message": "no", "data": MISSING}
    polled(host, got("failed", at=1, error=error))
    assert outcome(host, call) == Failed(code=-32021, message="no", data=MISSING, fault=Fault.CALLER)


@pytest.mark.parametrize("data", [None, [], "requiredCapabilities", {"other": 1}], ids=repr)
def test_codes_any_other_32003_is_an_error_like_others(data: Any) -> None:
    host = make_host()
    call = host.call()
    host.refuse("tools/call", -32003, data=data)
    assert failed(outcome(host, call)).code == -32003


def test_wire1_an_error_without_an_id_answers_the_request_it_came_for() -> None:
    host = make_host()
    call = host.call()
    message = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}}
    host.give(ResponseReceived(request=1, message=message))
    assert failed(outcome(host, call)).code == -32700


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (300, Fault.CALLER),
        (301, Fault.CALLER),
        (302, Fault.CALLER),
        (307, Fault.CALLER),
        (308, Fault.CALLER),
        (400, Fault.CALLER),
        (401, Fault.CALLER),
        (403, Fault.CALLER),
        (404, Fault.CALLER),
        (405, Fault.CALLER),
        (415, Fault.CALLER),
        (408, Fault.SERVER),
        (425, Fault.SERVER),
        (429, Fault.SERVER),
        (500, Fault.SERVER),
        (502, Fault.SERVER),
        (503, Fault.SERVER),
        (200, Fault.SERVER),
        (202, Fault.SERVER),
        (204, Fault.SERVER),
    ],
)
def test_req6_a_status_without_a_message_says_who_has_to_act(status: int, fault: Fault) -> None:
    host = make_host()
    call = host.call()
    host.answer_http("tools/call", status)
    found = failed(outcome(host, call))
    assert (found.code, found.fault) == (None, fault)
    assert found.http_status == (None if status < 300 else status)
    at_rest(host)


def test_req6_an_error_for_no_request_of_ours_tells_why_all_the_same() -> None:
    """Servers refuse what they have not read as a request of theirs, under a name of their own."""
    host = make_host()
    call = host.call()
    error = {"code": -32600, "message": "Missing session ID"}
    host.answer_http("tools/call", 400, body={"jsonrpc": "2.0", "id": "server-error", "error": error})
    found = failed(outcome(host, call))
    assert (found.code, found.message) == (None, "the server answered HTTP 400: Missing session ID")


@pytest.mark.parametrize("body", [{"method": "ping", "id": 1}, {"method": "notifications/message"}], ids=repr)
def test_req6_a_status_with_a_message_that_is_no_response_counts_alone(body: dict[str, Any]) -> None:
    host = make_host()
    call = host.call()
    host.answer_http("tools/call", 400, body={"jsonrpc": "2.0", **body})
    found = failed(outcome(host, call))
    assert (found.code, found.message) == (None, "the server answered HTTP 400 without a message")


def test_req6_an_error_keeps_the_status_it_came_with() -> None:
    host = make_host()
    call = host.call()
    host.refuse("tools/call", -32001, http=HttpReply(status=401))
    refused = failed(outcome(host, call))
    assert (refused.http_status, refused.fault) == (401, Fault.CALLER)


def test_req6_a_result_that_came_with_a_failing_status_is_a_result() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", DONE, http=HttpReply(status=500))
    assert outcome(host, call) == Completed(DONE)


# -- the network (REQ.3) -----------------------------------------------------------------------------


def test_req3_a_call_that_never_left_failed() -> None:
    host = make_host()
    call = host.call()
    host.fail("tools/call", "connection refused", sent=False)
    assert outcome(host, call) == Failed(code=None, message="connection refused", fault=Fault.NETWORK)
    at_rest(host)


def test_req3_a_call_that_may_have_arrived_is_lost_and_not_repeated() -> None:
    """A truncated stream is one."""
    host = make_host()
    call = host.call()
    host.fail("tools/call", "the stream ended early")
    assert outcome(host, call) == ObservationLost("the stream ended early")
    host.advance(3_600_000)
    assert len(host.sent("tools/call")) == 1
    at_rest(host)


def test_req3_a_call_without_an_answer_is_given_up() -> None:
    host = make_host(RequesterLimits(call_timeout_ms=60_000))
    call = host.call()
    assert not host.advance(59_999)
    effects = host.advance(1)
    assert effects == [StopRequest(1), Settle(call, host.outcomes[call])]
    assert isinstance(outcome(host, call), ObservationLost)
    at_rest(host)


def test_req3_signs_of_life_keep_a_call_waiting_up_to_a_day() -> None:
    """The core, "Timeouts": there is a maximum, whatever progress a server reports."""
    host = make_host(RequesterLimits(call_timeout_ms=60_000, longest_call_ms=200_000))
    call = host.call(meta={"progressToken": 1})
    for _ in range(3):
        host.advance(59_999)
        host.notify("tools/call", "notifications/progress", {"progressToken": 1, "progress": 1})
    host.advance(20_000)
    assert call not in host.outcomes
    host.advance(10_000)
    assert isinstance(outcome(host, call), ObservationLost)


@pytest.mark.parametrize("method", ["server/discover", "prompts/get"])
def test_req3_other_requests_have_less_time(method: str) -> None:
    """Be it that they have a name, as the call of a tool has."""
    host = make_host(RequesterLimits(request_timeout_ms=7_000))
    call = host.ask(method, {"name": "render"})
    host.advance(7_000)
    assert isinstance(outcome(host, call), ObservationLost)


def test_req3_the_deadline_ends_the_wait_for_other_requests_too() -> None:
    host = make_host()
    call = host.ask("server/discover", deadline_ms=START + 1_000)
    assert not host.advance(999)
    host.advance(1)
    assert outcome(host, call) == ObservationLost("the deadline has passed")
    at_rest(host)


def test_the_call_that_a_request_carries_can_be_told() -> None:
    host = make_host()
    call = working(host)
    host.advance(HINT)
    other = host.call()
    carried = {number: host.engine.call_of(number) for number in (*host.in_flight, 1, 99)}
    assert carried == {
        host.number_of("tasks/get"): None,
        host.number_of("tools/call"): other,
        1: None,
        99: None,
    }
    assert call != other


def test_http4_what_is_said_on_the_way_is_passed_on() -> None:
    host = make_host()
    call = host.call(meta={"progressToken": 1})
    progress = {"progressToken": 1, "progress": 0.5}
    host.notify("tools/call", "notifications/progress", progress)
    host.notify("tools/call", "notifications/message", {"level": "info", "data": "hm"})
    host.notify("tools/call", "notifications/unheard-of", {})
    assert host.of(PassOn) == [
        PassOn(call, "notifications/progress", progress),
        PassOn(call, "notifications/message", {"level": "info", "data": "hm"}),
    ]


def test_what_is_said_of_a_request_that_is_over_is_ignored() -> None:
    host = make_host()
    call = host.call()
    host.reply(1, DONE)
    assert host.reply(1, {**DONE, "isError": True}) == []
    assert host.refuse(1, -32603) == []
    assert host.fail(1) == []
    assert host.notify(1, "notifications/progress", {}) == []
    assert host.reply(99, DONE) == []
    assert outcome(host, call) == Completed(DONE)


@pytest.mark.parametrize(
    "message",
    [None, [], 5, {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 1, "method": "ping"}],
    ids=repr,
)
def test_http4_what_is_no_notification_is_ignored(message: Any) -> None:
    host = make_host()
    call = host.call()
    assert host.give(NotificationReceived(1, message)) == []
    assert call not in host.outcomes


# -- versions (NEG.2) --------------------------------------------------------------------------------

TWO = ("2027-01-01", "2026-07-28")


def version_of(host: Any, method: str) -> str:
    version: str = host.params_of(method)["_meta"]["io.modelcontextprotocol/protocolVersion"]
    return version


def test_neg2_the_best_version_that_both_sides_speak_is_taken_and_kept() -> None:
    host = make_host(versions=TWO)
    call = host.call("render", {"frames": 3})
    assert version_of(host, "tools/call") == "2027-01-01"
    host.refuse("tools/call", -32022, data={"supported": ["2025-11-25", "2026-07-28"], "requested": "x"})
    assert version_of(host, "tools/call") == "2026-07-28"
    assert host.params_of("tools/call")["arguments"] == {"frames": 3}
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)
    host.ask("server/discover")
    assert version_of(host, "server/discover") == "2026-07-28"


def test_neg2_requests_that_cross_each_other_all_find_the_version() -> None:
    host = make_host(versions=TWO)
    calls = [host.call(), host.call()]
    for number in (1, 2):
        host.refuse(number, -32022, data={"supported": ["2026-07-28"]})
    for number in host.waiting("tools/call"):
        host.reply(number, DONE)
    assert [outcome(host, call) for call in calls] == [Completed(DONE)] * 2


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "2026-07-28",
        {"supported": "2026-07-28"},
        {"supported": []},
        {"supported": ["2025-11-25"]},
        {"supported": [{"a": 1}, ["2026-07-28"]]},
    ],
    ids=repr,
)
def test_neg2_without_a_version_in_common_the_call_fails(data: Any) -> None:
    host = make_host(versions=TWO)
    call = host.call()
    host.refuse("tools/call", -32022, data=data)
    assert failed(outcome(host, call)).code == -32022
    assert failed(outcome(host, call)).fault is Fault.CALLER
    at_rest(host)


def test_neg2_a_version_that_is_refused_and_offered_is_tried_once_more() -> None:
    """The specification has a client choose from what the server names, whatever it tried before."""
    host = make_host(versions=TWO)
    call, other = host.call(), host.call()
    for number in host.waiting("tools/call"):
        host.refuse(number, -32022, data={"supported": ["2027-01-01"]})
    assert version_of(host, "tools/call") == "2027-01-01"
    first, second = host.waiting("tools/call")
    host.reply(first, DONE)
    host.refuse(second, -32022, data={"supported": ["2027-01-01"]})
    assert outcome(host, call) == Completed(DONE)
    assert failed(outcome(host, other)).code == -32022
    at_rest(host)


def test_neg2_a_server_that_contradicts_itself_is_asked_twice() -> None:
    host = make_host(versions=TWO)
    call = host.call()
    host.refuse("tools/call", -32022, data={"supported": ["2026-07-28"]})
    host.refuse("tools/call", -32022, data={"supported": ["2027-01-01"]})
    assert failed(outcome(host, call)).code == -32022
    assert len(host.sent("tools/call")) == 2


def test_neg9_discovery_chooses_the_version() -> None:
    host = make_host(versions=TWO)
    host.ask("server/discover")
    host.reply("server/discover", {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    host.call()
    assert version_of(host, "tools/call") == "2026-07-28"


@pytest.mark.parametrize("offered", [None, "2026-07-28", [], [{}], ["1999-01-01"]], ids=repr)
def test_neg9_discovery_that_names_no_version_in_common_changes_nothing(offered: Any) -> None:
    host = make_host(versions=TWO)
    call = host.ask("server/discover")
    host.reply("server/discover", {"supportedVersions": offered})
    assert isinstance(outcome(host, call), Completed)
    host.call()
    assert version_of(host, "tools/call") == "2027-01-01"


def test_neg2_the_requests_of_a_task_find_the_version_too() -> None:
    """A resumed task begins with a poll, in the best version this side speaks."""
    first = make_host()
    working(first)
    host = make_host(versions=TWO)
    call = host.resume(first.references[1])
    assert version_of(host, "tasks/get") == "2027-01-01"
    host.refuse("tasks/get", -32022, data={"supported": ["2026-07-28"]})
    host.advance(HINT)
    assert version_of(host, "tasks/get") == "2026-07-28"
    host.reply("tasks/get", completed(at=1))
    assert isinstance(outcome(host, call), Completed)


# -- misuse ------------------------------------------------------------------------------------------


def test_a_call_has_a_key_of_its_own() -> None:
    host = make_host()
    call = host.call()
    for wish in (
        CallWanted(call=call, tool="render"),
        RequestWanted(call=call, method="server/discover"),
        ResumeWanted(call=call, reference="garbage"),
    ):
        with pytest.raises(LocalProtocolError):
            host.give(wish)
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)


def test_a_tool_call_is_wanted_as_one() -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError):
        host.ask("tools/call", {"name": "render"})
    at_rest(host)


def test_params_that_are_not_json_are_the_hosts_mistake_and_leave_nothing_behind() -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError):
        host.ask("resources/read", {"uri": object()})
    assert host.give(RequestWanted(call=2, method="resources/read", params={"uri": "a:b"}))
    host.reply("resources/read", {"contents": []})
    at_rest(host)


WRONG_WISHES: Final[dict[str, Any]] = {
    "CallWanted: a tool or a method is named by a string": CallWanted(call=1, tool=cast(Any, None)),
    "CallWanted: arguments, params and meta are objects": CallWanted(
        call=1, tool="render", arguments=cast(Any, [1])
    ),
    "RequestWanted: a tool or a method is named by a string": RequestWanted(call=1, method=cast(Any, 5)),
    "RequestWanted: arguments, params and meta are objects": RequestWanted(
        call=1, method="x/y", meta=cast(Any, "x")
    ),
    "CallWanted: deadline_ms is an integer, Unix milliseconds, or None": CallWanted(
        call=1, tool="render", deadline_ms=cast(Any, "tomorrow")
    ),
    "ResumeWanted: deadline_ms is an integer, Unix milliseconds, or None": ResumeWanted(
        call=1, reference={}, deadline_ms=cast(Any, 0.5)
    ),
}
"""What no request can be made of, and how that is said."""


@pytest.mark.parametrize("complaint", WRONG_WISHES)
def test_a_wish_that_is_none_is_the_hosts_mistake_and_leaves_nothing_behind(complaint: str) -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError) as caught:
        host.engine.handle(WRONG_WISHES[complaint], now=host.now)
    assert str(caught.value) == complaint
    host.give(CallWanted(call=1, tool="render"))
    host.reply("tools/call", DONE)
    assert outcome(host, 1) == Completed(DONE)
    at_rest(host)


def test_an_input_of_another_engine_is_refused() -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError):
        host.give(ShutdownStarted())  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [-1, 253_402_300_800_000])
def test_time_is_unix_milliseconds(now: int) -> None:
    with pytest.raises(LocalProtocolError):
        make_engine().handle(CallWanted(call=1, tool="render"), now=now)


@pytest.mark.parametrize("now", [0, 253_402_300_799_999])
def test_time_has_its_first_and_its_last_moment(now: int) -> None:
    assert make_engine().handle(CallWanted(call=1, tool="render"), now=now).effects


def test_time_does_not_go_back_and_a_refused_input_does_not_move_it() -> None:
    engine = make_engine(RequesterLimits(call_timeout_ms=1000))
    engine.handle(CallWanted(call=1, tool="render"), now=5_000)
    with pytest.raises(LocalProtocolError):
        engine.handle(CallWanted(call=1, tool="render"), now=9_000)
    step = engine.handle(CallWanted(call=2, tool="render"), now=4_000)
    assert step.deadline == 6_000
    engine.handle(ResponseReceived(request=1, message={"jsonrpc": "2.0", "id": 1, "result": DONE}), now=1)
    assert engine.handle(CallWanted(call=3, tool="render"), now=5_500).deadline == 6_000


def test_settings_name_at_least_one_version() -> None:
    with pytest.raises(ValueError, match="versions"):
        RequesterSettings(name="test", version="1", endpoint="x", versions=())


# -- limits (LIM.3) ----------------------------------------------------------------------------------


def test_lim3_calls_are_bounded_by_name() -> None:
    host = make_host(RequesterLimits(calls=2))
    first = host.call()
    host.ask("server/discover")
    for refused in (host.call(), host.ask("tools/list"), host.resume({})):
        found = failed(outcome(host, refused))
        assert found.fault is Fault.CALLER
        assert "RequesterLimits.calls" in found.message
    host.reply("tools/call", DONE)
    assert outcome(host, first) == Completed(DONE)
    fourth = host.call()
    host.reply("tools/call", DONE)
    assert outcome(host, fourth) == Completed(DONE)


def test_lim3_cancellations_that_a_server_has_yet_to_hear_of_take_a_place() -> None:
    host = make_host(RequesterLimits(calls=2))
    for task_id in ("a", "b"):
        host.cancel(working(host, task_id=task_id))
    assert "RequesterLimits.calls" in failed(outcome(host, host.call())).message
    host.reply("tasks/cancel", {"resultType": "complete"})
    assert isinstance(host.call(), int)
    assert len(host.waiting("tools/call")) == 1


# -- a task handle (REQ.1, LIFE.3) -------------------------------------------------------------------


def test_trap15_a_handle_without_a_time_to_live_is_of_a_task_that_does_not_expire() -> None:
    bare = handle()
    del bare["ttlMs"]
    host = make_host()
    call = host.call()
    host.reply("tools/call", bare)
    assert host.references[call]["ttlMs"] is None
    polled(host, completed(at=1))
    assert isinstance(outcome(host, call), Completed)


def test_life3_a_handle_may_be_of_a_task_that_has_ended_and_its_result_is_fetched() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", handle("completed", result={"content": []}))
    assert call not in host.outcomes
    host.reply("tasks/get", completed())
    assert outcome(host, call) == Completed({"resultType": "complete", **DONE})
    at_rest(host)


@pytest.mark.parametrize("status", ["failed", "cancelled", "completed"])
def test_life3_a_handle_of_an_ended_task_needs_no_stream(status: str) -> None:
    host = make_host(listen=True)
    host.call()
    host.reply("tools/call", handle(status))
    assert not host.waiting("subscriptions/listen")
    host.advance(1000)
    assert not host.sent("subscriptions/listen")
    assert len(host.waiting("tasks/get")) == 1


def test_a_server_that_gives_one_task_to_two_calls_is_wrong() -> None:
    """REQ.4: each question is shown once over the task's life, so that a task is watched once."""
    host = make_host()
    first = working(host)
    second = working(host)
    assert failed(outcome(host, second)).fault is Fault.SERVER
    polled(host, completed(at=1))
    assert isinstance(outcome(host, first), Completed)
    at_rest(host)


def test_a_plain_call_is_not_disturbed_by_another_ones_task() -> None:
    host = make_host()
    working(host)
    call = host.call()
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)
    polled(host, completed(at=1))
    at_rest(host)
