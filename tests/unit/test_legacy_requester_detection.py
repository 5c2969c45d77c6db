"""Which era a server is of, as the versioning page has a dual-era client find out; NEG.2, NEG.9."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.legacy.messages import SendLegacy
from mcp_tasks_proto.requester import (
    Completed,
    Failed,
    Fault,
    HttpReply,
    ObservationLost,
    PassOn,
    RequesterLimits,
)
from mcp_tasks_proto.timers import LAST_MS
from tests.unit.legacy_requester_world import (
    legacy_host,
    make_dual,
    nested,
    outcome,
    server_of_tasks,
    tools,
)
from tests.unit.requester_world import DONE, ENDPOINT, START, TASK, at_rest

MODERN = {"resultType": "complete", "tools": []}
DISCOVERED = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
OLD_ONLY = {"supported": ["2025-11-25"], "requested": "2026-07-28"}


# -- HTTP: the first request shows -----------------------------------------------------------------------


def test_over_http_a_modern_server_is_sent_what_is_wanted_and_nothing_else() -> None:
    host = make_dual()
    first, second = host.ask("tools/list"), host.ask("prompts/list")
    assert host.flight() == ["tools/list"]  # the second waits for what the first shows
    host.reply("tools/list", MODERN, http=HttpReply(status=200))
    assert host.engine.era == "modern"
    host.reply("prompts/list", {"resultType": "complete"})
    assert outcome(host, first) == Completed(MODERN)
    assert isinstance(outcome(host, second), Completed)
    assert host.of(SendLegacy) == []
    at_rest(host)


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_recognised_modern_error_is_one(code: int) -> None:
    host = make_dual()
    call = host.ask("tools/list")
    data = {"supported": ["2027-01-01"]} if code == -32022 else None
    host.refuse("tools/list", code, data=data, http=HttpReply(status=400))
    assert host.engine.era == "modern"
    assert isinstance(outcome(host, call), Failed)


def test_an_unsupported_version_without_a_list_is_modern_too() -> None:
    host = make_dual()
    host.ask("tools/list")
    host.refuse("tools/list", -32022, http=HttpReply(status=400))
    assert host.engine.era == "modern"


def test_an_unknown_method_with_404_is_modern() -> None:
    """HTTP.5"""
    host = make_dual()
    call = host.ask("prompts/list")
    host.refuse("prompts/list", -32601, http=HttpReply(status=404))
    assert host.engine.era == "modern"
    assert outcome(host, call).code == -32601


@pytest.mark.parametrize("status", [400, 404, 405, 406])
@pytest.mark.parametrize("body", [None, {"error": "no session"}, {"jsonrpc": "2.0", "id": "server-error"}])
def test_a_4xx_without_a_recognised_modern_error_is_legacy(status: int, body: Any) -> None:
    host = make_dual()
    call = host.ask("tools/list")
    host.answer_http("tools/list", status, body=body)
    assert host.flight() == ["initialize"]
    host.greet()
    assert host.engine.era == "legacy"
    host.reply("tools/list", {"tools": []})
    assert outcome(host, call) == Completed({"tools": [], "resultType": "complete"})


def test_the_error_of_a_legacy_server_is_legacy() -> None:
    host = make_dual()
    call = host.ask("tools/list")
    error = {"code": -32600, "message": "Missing session ID"}
    host.answer_http("tools/list", 400, body={"jsonrpc": "2.0", "id": None, "error": error})
    host.greet()
    host.reply("tools/list", {"tools": []})
    assert isinstance(outcome(host, call), Completed)


def test_a_server_that_names_the_legacy_version_alone_is_legacy() -> None:
    host = make_dual()
    host.ask("tools/list")
    host.refuse("tools/list", -32022, data=OLD_ONLY, http=HttpReply(status=400))
    host.greet()
    assert host.engine.era == "legacy"


def test_a_result_without_its_type_is_not_trusted() -> None:
    """A legacy server without sessions may answer a modern request."""
    host = make_dual()
    call = host.ask("tools/list")
    host.reply("tools/list", {"tools": []}, http=HttpReply(status=200))
    host.refuse("server/discover", -32601, http=HttpReply(status=200))
    assert host.flight() == ["initialize"]
    host.greet(session=None)
    host.reply("tools/list", {"tools": []})
    assert host.engine.era == "legacy"
    assert isinstance(outcome(host, call), Completed)


def test_it_is_modern_all_the_same_where_there_is_no_legacy_session() -> None:
    host = make_dual()
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.reply("tools/list", {"tools": []}, http=HttpReply(status=200))
    host.answer_http("server/discover", 400)
    host.refuse("initialize", -32601, http=HttpReply(status=404))
    assert host.engine.era == "modern"
    assert outcome(host, call) == Completed({"tools": []})
    host.reply("prompts/list", MODERN)
    assert isinstance(outcome(host, other), Completed)


def test_so_it_is_where_the_first_answer_was_an_error() -> None:
    host = make_dual()
    call = host.ask("tasks/get", {"taskId": "x"})
    host.refuse("tasks/get", -32602, http=HttpReply(status=200))
    host.answer_http("server/discover", 400)
    host.refuse("initialize", -32601, http=HttpReply(status=404))
    assert host.engine.era == "modern"
    assert outcome(host, call).code == -32602


def test_one_that_names_the_legacy_version_alone_and_opens_no_session_is_neither() -> None:
    host = make_dual()
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.refuse("tools/list", -32022, "not that", data=OLD_ONLY, http=HttpReply(status=400))
    host.refuse("initialize", -32603, "nor that", http=HttpReply(status=500))
    assert host.engine.era is None
    assert (outcome(host, call).code, outcome(host, call).message) == (-32022, "not that")
    assert (outcome(host, other).code, outcome(host, other).message) == (-32603, "nor that")
    at_rest(host)


@pytest.mark.parametrize("status", [200, 400])
def test_an_error_that_answers_the_request_does_not_show_it_either(status: int) -> None:
    host = make_dual()
    call = host.ask("tasks/get", {"taskId": "x"})
    other = host.ask("prompts/list")
    host.refuse("tasks/get", -32602, http=HttpReply(status=status))
    assert host.flight() == ["server/discover"]
    host.reply("server/discover", {**DISCOVERED, "supportedVersions": ["2026-07-28", "2025-11-25"]})
    assert host.engine.era == "modern"  # of two eras, the newer
    assert outcome(host, call).code == -32602
    host.reply("prompts/list", MODERN)
    assert isinstance(outcome(host, other), Completed)


def test_a_server_that_is_busy_as_it_is_asked_for_its_era() -> None:
    host = make_dual()
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.reply("tools/list", {"tools": []}, http=HttpReply(status=200))
    host.answer_http("server/discover", 503)
    assert host.engine.era is None
    assert outcome(host, call) == Completed({"tools": []})
    assert outcome(host, other).http_status == 503


def test_a_modern_server_may_say_so_only_when_it_is_greeted() -> None:
    host = make_dual()
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.answer_http("tools/list", 400)
    host.refuse("initialize", -32022, data={"supported": ["2026-07-28"]}, http=HttpReply(status=400))
    assert host.engine.era == "modern"
    assert outcome(host, call).http_status == 400
    host.reply("prompts/list", MODERN)
    assert isinstance(outcome(host, other), Completed)


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 503])
def test_what_says_nothing_of_the_era_is_the_caller_s_and_the_next_request_tells(status: int) -> None:
    host = make_dual()
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.answer_http("tools/list", status)
    assert outcome(host, call).http_status == status
    assert host.engine.era is None
    assert host.flight() == ["prompts/list"]
    host.reply("prompts/list", MODERN)
    assert host.engine.era == "modern"
    assert isinstance(outcome(host, other), Completed)


def test_what_is_no_message_with_200_says_nothing() -> None:
    host = make_dual()
    call = host.ask("tools/list")
    host.answer_http("tools/list", 200, body=[])
    assert isinstance(outcome(host, call), Failed)
    assert host.engine.era is None


def test_a_broken_connection_says_nothing_over_http() -> None:
    host = make_dual()
    call = host.ask("tools/list")
    host.fail("tools/list")
    assert isinstance(outcome(host, call), ObservationLost)
    assert host.engine.era is None


def test_a_first_request_that_is_given_up_shows_nothing() -> None:
    host = make_dual()
    call, other, third = host.ask("tools/list"), host.ask("prompts/list"), host.ask("resources/list")
    host.cancel(third)
    host.cancel(call)
    assert host.flight() == ["prompts/list"]
    host.cancel(other)
    at_rest(host)


def test_a_first_request_that_is_given_up_while_a_session_is_tried() -> None:
    host = make_dual()
    call = host.ask("tools/list")
    host.answer_http("tools/list", 400)
    host.cancel(call)
    host.greet()
    assert host.engine.era == "legacy"
    at_rest(host)


def test_a_first_request_that_is_given_up_while_no_session_is_had() -> None:
    host = make_dual()
    call = host.ask("tools/list")
    host.answer_http("tools/list", 400)
    host.cancel(call)
    host.answer_http("initialize", 400)
    assert host.engine.era is None
    at_rest(host)


def test_where_neither_era_is_spoken_each_request_fares_as_what_was_sent_for_it() -> None:
    host = make_dual()
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.answer_http("tools/list", 404)
    host.answer_http("initialize", 404)
    assert host.engine.era is None
    assert outcome(host, call) == outcome(host, other)
    assert outcome(host, call).http_status == 404
    at_rest(host)
    host.ask("resources/list")
    assert host.flight() == ["resources/list"]  # which may show it


def test_progress_on_the_way_to_the_first_answer_reaches_its_caller() -> None:
    host = make_dual()
    call = host.ask("prompts/get", {"name": "a"})
    host.say("notifications/progress", {"progressToken": 1, "progress": 1}, on="prompts/get")
    assert [passed.call for passed in host.of(PassOn)] == [call]


# -- a tool call is not sent before the era is known ----------------------------------------------------


def test_a_tool_call_is_held_until_a_probe_was_answered() -> None:
    """A legacy server might carry out a call that was sent as a modern one."""
    host = make_dual()
    call = host.call()
    assert host.flight() == ["server/discover"]
    host.reply("server/discover", DISCOVERED, http=HttpReply(status=200))
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)


def test_a_probe_that_is_refused_for_now_is_the_caller_s() -> None:
    host = make_dual()
    call, other = host.call(), host.call()
    host.refuse("server/discover", -32603, "later", http=HttpReply(status=503))
    assert outcome(host, call).message == "later"
    assert outcome(host, other).http_status == 503
    assert host.engine.era is None


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_probe_that_is_answered_with_nonsense_is_the_caller_s(earlier: int) -> None:
    """Be it under the number of the call itself."""
    host = make_dual()
    call = host.call()
    number = host.number_of("server/discover")
    body = {"jsonrpc": "2.0", "id": number - earlier, "result": {"resultType": "complete"}}
    host.answer_http("server/discover", 503, body=body)
    assert outcome(host, call).http_status == 503


# -- stdio: a probe goes ahead ---------------------------------------------------------------------------


def probing(**options: Any) -> tuple[Any, int]:
    """Return a host on stdio that has a request to send, and that request."""
    host = make_dual(http=False, **options)
    return host, host.ask("tools/list")


def test_on_stdio_a_probe_goes_ahead_and_a_modern_server_shows() -> None:
    host, call = probing()
    assert host.flight() == ["server/discover"]
    number = host.number_of("server/discover")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    }
    probe = {"jsonrpc": "2.0", "id": number, "method": "server/discover", "params": {"_meta": meta}}
    assert host.in_flight[number].message == probe
    host.reply("server/discover", DISCOVERED)
    host.reply("tools/list", MODERN)
    assert outcome(host, call) == Completed(MODERN)
    at_rest(host)


def test_a_discovery_without_a_version_of_ours_is_still_modern() -> None:
    host, _ = probing()
    host.reply("server/discover", {**DISCOVERED, "supportedVersions": ["2027-01-01"]})
    assert host.engine.era == "modern"


def test_a_discovery_that_names_the_legacy_version_alone_is_legacy() -> None:
    host, _ = probing()
    host.reply("server/discover", {**DISCOVERED, "supportedVersions": ["2025-11-25"]})
    host.greet()
    assert host.engine.era == "legacy"


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, 0])
def test_any_other_error_is_legacy(code: int) -> None:
    """The fallback must not be keyed to one code."""
    host, call = probing()
    host.refuse("server/discover", code)
    host.greet()
    host.reply("tools/list", {"tools": []})
    assert isinstance(outcome(host, call), Completed)


def test_a_server_that_does_not_answer_the_probe_is_legacy() -> None:
    host, call = probing(limits=RequesterLimits(probe_timeout_ms=500))
    host.advance(499)
    assert host.flight() == ["server/discover"]
    host.advance(1)
    assert host.flight() == ["initialize"]
    host.greet()
    host.reply("tools/list", {"tools": []})
    assert isinstance(outcome(host, call), Completed)


def test_a_modern_server_that_is_only_slow_says_so_when_it_is_greeted() -> None:
    """NEG.9"""
    host, call = probing(limits=RequesterLimits(probe_timeout_ms=500))
    host.advance(500)
    host.refuse("initialize", -32022, data={"supported": ["2026-07-28"]})
    assert host.engine.era == "modern"
    host.reply("tools/list", MODERN)
    assert isinstance(outcome(host, call), Completed)


def test_a_server_that_dies_of_the_probe_is_legacy() -> None:
    host, call = probing()
    host.die()
    host.fail("server/discover", "the server ended")
    host.greet()
    host.reply("tools/list", {"tools": []})
    assert isinstance(outcome(host, call), Completed)


def test_a_server_that_cannot_be_started_fails_what_was_wanted() -> None:
    host, call = probing()
    host.fail("server/discover", "no such command", sent=False)
    assert outcome(host, call) == Failed(code=None, message="no such command", fault=Fault.NETWORK)
    at_rest(host)


def test_what_speaks_neither_era_on_stdio() -> None:
    host, call = probing()
    host.refuse("server/discover", -32601)
    host.refuse("initialize", -32601, "what?")
    failed = outcome(host, call)
    assert (failed.code, failed.message) == (-32601, "what?")
    assert host.engine.era is None


def test_what_is_given_up_while_the_probe_is_out_is_not_sent() -> None:
    host, call = probing()
    host.cancel(call)
    host.reply("server/discover", DISCOVERED)
    at_rest(host)


# -- the modern era alone ------------------------------------------------------------------------------


def insisting(**options: Any) -> tuple[Any, int]:
    """Return a host of a client of the modern era alone, on stdio, that calls a tool, and that call."""
    host = make_dual(modern_only=True, **{"http": False, **options})
    return host, host.call()


def test_on_stdio_a_client_of_the_modern_era_alone_asks_first_and_then_passes_all_on() -> None:
    """NEG.2: as the compatibility matrix has it."""
    host, call = insisting()
    assert host.flight() == ["server/discover"]
    host.reply("server/discover", DISCOVERED)
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)
    host.call()
    assert host.flight() == ["tools/call"]  # it is a property of the server, not of a request


@pytest.mark.parametrize("code", [-32601, -32602, -32600, 0])
def test_a_legacy_server_is_sent_nothing_that_it_might_carry_out_and_is_named(code: int) -> None:
    host, call = insisting()
    asked = host.ask("tasks/get", {"taskId": "x"})
    host.refuse("server/discover", code, "what?")
    for one in (call, asked):
        failed = outcome(host, one)
        assert (failed.code, failed.fault) == (-32022, Fault.CALLER)
        assert failed.message == f"the server does not speak 2026-07-28: it answered with what? ({code})"
    assert host.engine.era is None
    at_rest(host)


def test_a_server_that_names_its_versions_is_quoted() -> None:
    host, call = insisting()
    host.refuse("server/discover", -32022, "only 2025-11-25", data=OLD_ONLY)
    failed = outcome(host, call)
    assert (failed.code, failed.message, failed.data) == (-32022, "only 2025-11-25", OLD_ONLY)


def test_what_the_modern_era_alone_wants_of_a_server_is_its_own_probe_where_that_is_discovery() -> None:
    host = make_dual(http=False, modern_only=True)
    wanted, call = host.ask("server/discover"), host.call()
    assert host.flight() == ["server/discover"]
    host.reply("server/discover", DISCOVERED)
    assert host.flight() == ["tools/call"]
    assert outcome(host, wanted) == Completed(DISCOVERED)
    host.cancel(call)
    at_rest(host)


def test_a_discovery_that_is_no_modern_result_is_another_era_s() -> None:
    host = make_dual(http=False, modern_only=True)
    wanted = host.ask("server/discover")
    host.reply("server/discover", {"tools": []})
    assert outcome(host, wanted).message.endswith("it answered with an answer of another era")
    at_rest(host)


def test_a_silent_server_is_waited_for_as_long_as_for_any_answer() -> None:
    """A slow start is no other era, and there is nothing else to try."""
    host, call = insisting(limits=RequesterLimits(probe_timeout_ms=500, request_timeout_ms=2_000))
    host.advance(1_999)
    assert host.flight() == ["server/discover"]
    host.advance(1)
    failed = Failed(
        code=None, message="the server did not answer server/discover in time", fault=Fault.NETWORK
    )
    assert outcome(host, call) == failed
    host.call()
    assert host.flight() == ["server/discover"]  # who wants more asks again


def test_a_server_that_dies_of_it_may_have_died_of_anything() -> None:
    host, call = insisting()
    host.die()
    host.fail("server/discover", "the server ended")
    assert outcome(host, call) == Failed(code=None, message="the server ended", fault=Fault.NETWORK)
    at_rest(host)


def test_a_task_of_the_legacy_era_is_not_watched_without_end() -> None:
    """REQ.3: whoever resumes it has to speak otherwise, and can then."""
    reference = {"schema": 1, "endpoint": ENDPOINT, "taskId": TASK, "tool": "render", "capabilities": {}}
    host = make_dual(http=False, modern_only=True)
    call = host.resume(
        {**reference, "createdMs": START, "ttlMs": None, "pollIntervalMs": None, "keys": {}, "era": "legacy"}
    )
    assert host.flight() == ["server/discover"]
    host.refuse("server/discover", -32601)
    lost = outcome(host, call)
    assert isinstance(lost, ObservationLost)
    assert "does not speak 2026-07-28" in lost.reason
    at_rest(host)


def test_over_http_the_first_answer_shows_that_no_session_is_worth_trying() -> None:
    host, call = insisting(http=True)
    host.answer_http("server/discover", 400)
    assert outcome(host, call).code == -32022
    call = host.ask("tools/list")
    host.answer_http("tools/list", 400)
    failed = outcome(host, call)
    assert (failed.code, failed.http_status) == (-32022, 400)
    assert failed.message.endswith("it answered with an answer of another era")
    at_rest(host)


# -- told beforehand -------------------------------------------------------------------------------------


def test_a_modern_era_that_is_known_is_not_found_out_again() -> None:
    host = make_dual(era="modern")
    host.call()
    assert host.flight() == ["tools/call"]
    assert host.engine.next_poll(1) is None
    assert host.engine.tool("render") is None


def test_in_the_modern_era_what_only_the_legacy_one_has_is_passed_over() -> None:
    host = make_dual(era="modern")
    host.call()
    before = host.deadline
    assert host.ask_client("roots/list") == []
    assert host.die() == []
    assert host.close() == []
    assert host.deadline == before


def test_before_the_era_is_known_a_server_asks_nothing() -> None:
    host = make_dual()
    assert host.ask_client("ping") == []


def test_a_legacy_era_that_is_known_is_greeted_at_once() -> None:
    """LEG.2"""
    host = make_dual(era="legacy")
    host.call()
    greeting = host.legacy("initialize")
    assert (greeting.version, greeting.session) == (None, None)
    assert host.params_of("initialize") == {
        "protocolVersion": "2025-11-25",
        "capabilities": {
            "elicitation": {},
            "tasks": {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}},
        },
        "clientInfo": {"name": "test", "version": "1"},
    }


def test_a_legacy_greeting_declares_no_extensions() -> None:
    """Nobody had any at that time."""
    host = make_dual(era="legacy", capabilities={"roots": {}, "extensions": {"com.example/x": {}}})
    host.call()
    assert host.params_of("initialize")["capabilities"] == {"roots": {}}


def test_what_the_engine_knows_is_told_of_either_era() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    assert host.engine.next_poll(call) == host.now + 1_000
    assert host.engine.tool("render") == tools(render="optional")["tools"][0]


def test_without_tasks_and_without_people_a_legacy_greeting_declares_neither() -> None:
    quiet: list[dict[str, Any]] = [{"tasks": False}, {"capabilities": {"roots": {}}}]
    for settings in quiet:
        host = make_dual(era="legacy", **settings)
        host.call()
        assert "tasks" not in host.params_of("initialize")["capabilities"]


def test_a_misused_engine_is_as_it_was() -> None:
    host = legacy_host()
    for wrong in (-1, 1 << 60):
        with pytest.raises(LocalProtocolError):
            host.engine.handle(TimePassed(), now=wrong)
    with pytest.raises(LocalProtocolError):
        host.engine.handle("nothing", now=host.now + 5)
    assert host.engine.handle(TimePassed(), now=host.now).effects == ()


@pytest.mark.parametrize("now", [0, LAST_MS])
def test_all_times_that_can_be_written_are_times(now: int) -> None:
    assert make_dual().engine.handle(TimePassed(), now=now).deadline is None
