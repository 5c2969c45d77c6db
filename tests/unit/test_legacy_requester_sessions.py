"""Sessions with a legacy server: LEG.2, and what Streamable HTTP of 2025-11-25 has beside messages."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.legacy.messages import SendLegacy, StreamOpened
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    HttpReply,
    KeepReference,
    ObservationLost,
    RequesterLimits,
    RequestFailed,
    ResponseReceived,
    StopRequest,
)
from tests.unit.legacy_requester_world import (
    CAPABILITIES,
    LegacyHost,
    elicitation,
    initialized,
    legacy_host,
    legacy_task,
    make_dual,
    nested,
    outcome,
    server_of_tasks,
    tools,
)
from tests.unit.requester_world import DONE, TASK, at_rest, task


def test_leg2_the_session_and_the_version_are_in_every_message_after_the_greeting() -> None:
    host = make_dual(era="legacy")
    host.ask("tools/list")
    host.reply("initialize", initialized(), http=HttpReply(status=200, session="s-9"))
    confirmation = host.legacy("notifications/initialized")
    assert (confirmation.version, confirmation.session) == ("2025-11-25", "s-9")
    assert confirmation.message == {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    assert host.flight() == ["notifications/initialized"]  # nothing overtakes it
    host.take_all()
    request = host.legacy("tools/list")
    assert (request.version, request.session) == ("2025-11-25", "s-9")
    assert request.message is not None
    assert "_meta" not in request.message["params"]


def test_leg2_discovery_is_what_the_greeting_said() -> None:
    host = make_dual(era="legacy")
    call = host.ask("server/discover")
    host.greet({**CAPABILITIES, "extensions": {"com.example/x": {}}})
    found = outcome(host, call).result
    assert found["supportedVersions"] == ["2025-11-25"]
    assert found["capabilities"] == {
        "tools": {"listChanged": True},
        "extensions": {"com.example/x": {}, "io.modelcontextprotocol/tasks": {}},
    }
    assert found["serverInfo"] == {"name": "old", "version": "1"}
    assert found["_meta"] == {"io.modelcontextprotocol/serverInfo": {"name": "old", "version": "1"}}
    assert found["instructions"] == "Ask."
    at_rest(host)


@pytest.mark.parametrize(
    "capabilities",
    [None, [], {}, {"tasks": {}, "extensions": 1}, {"tasks": {"requests": {"tools": {}}}}],
)
def test_discovery_of_a_server_that_says_little(capabilities: Any) -> None:
    host = make_dual(era="legacy")
    call = host.ask("server/discover")
    said = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
    host.reply("initialize", said, http=HttpReply(status=200))
    host.take_all()
    found = outcome(host, call).result
    assert "tasks" not in found["capabilities"]
    assert "io.modelcontextprotocol/tasks" not in str(found["capabilities"])
    assert "serverInfo" not in found


@pytest.mark.parametrize(
    ("version", "named"),
    [
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("x" * 19, "x" * 19),
        ("x" * 20, "no version that has a name"),
        (None, "no version that has a name"),
        (7, "no version that has a name"),
    ],
)
def test_another_revision_is_an_error_that_names_what_is_spoken(version: Any, named: str) -> None:
    host = make_dual(era="legacy")
    call = host.call()
    host.reply("initialize", initialized(version=version))
    why = f"the server speaks {named}, and this client 2026-07-28, 2025-11-25"
    message = f"no session with the server: {why}"
    assert outcome(host, call) == Failed(code=None, message=message, fault=Fault.SERVER)
    at_rest(host)


def test_a_greeting_that_is_refused_fails_what_waited_for_it() -> None:
    host = make_dual(era="legacy")
    calls = [host.call(), host.ask("tools/list")]
    host.refuse("initialize", -32602, "Unsupported protocol version")
    message = "no session with the server: Unsupported protocol version (-32602)"
    for call in calls:
        assert outcome(host, call) == Failed(code=None, message=message, fault=Fault.SERVER)
    at_rest(host)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "the server answered HTTP 404 without a message"),
        (200, "no session with the server: HTTP 200 without a message that helps"),
        (None, "no session with the server: an answer that is none"),
    ],
)
def test_a_greeting_that_is_answered_with_nothing(status: int | None, said: str) -> None:
    host = make_dual(era="legacy", http=status is not None)
    call = host.call()
    if status is None:
        host.give(ResponseReceived(request=host.number_of("initialize"), message=[]))
    else:
        host.answer_http("initialize", status)
    failed = outcome(host, call)
    assert (failed.message, failed.http_status) == (said, 404 if status == 404 else None)


@pytest.mark.parametrize("status", [300, 307, 401, 403, 404, 503])
def test_an_http_status_in_place_of_a_session_is_told_as_one(status: int) -> None:
    """So that whoever shows it can say what to do, as in the other era."""
    host = make_dual(era="legacy")
    calls = [host.call(), host.ask("tools/list")]
    host.answer_http("initialize", status, retry_after_ms=5_000)
    assert {outcome(host, call).http_status for call in calls} == {status}
    at_rest(host)


def test_who_is_to_name_itself_before_a_session_hears_so() -> None:
    host = make_dual(era="legacy")
    call = host.call()
    host.refuse("initialize", -32600, "who are you?", http=HttpReply(status=401))
    failed = outcome(host, call)
    assert (failed.http_status, failed.message, failed.fault) == (401, "who are you?", Fault.CALLER)


def test_req3_a_task_whose_session_is_denied_twice_is_not_polled_without_end() -> None:
    host = make_dual()
    call = host.resume(saved_reference())
    host.answer_http("tasks/get", 404)  # the session is gone, and so are the credentials for another
    host.answer_http("initialize", 401)
    host.advance(60_000)
    host.answer_http("initialize", 401)
    lost = outcome(host, call)
    assert (type(lost).__name__, lost.http_status) == ("ObservationLost", 401)


def test_a_greeting_that_is_not_answered_in_time() -> None:
    host = make_dual(era="legacy", limits=RequesterLimits(request_timeout_ms=1_000))
    call = host.call()
    host.advance(1_000)
    assert isinstance(outcome(host, call), Failed)
    at_rest(host)


@pytest.mark.parametrize("status", [300, 400])
def test_a_confirmation_that_is_not_taken(status: int) -> None:
    host = make_dual(era="legacy")
    call = host.call()
    host.reply("initialize", initialized(), http=HttpReply(status=200, session="s"))
    host.answer_http("notifications/initialized", status)
    assert outcome(host, call).http_status == status
    host.call()
    assert host.flight() == ["initialize"]


def test_what_is_given_up_before_there_is_a_session_is_not_sent() -> None:
    host = make_dual(era="legacy")
    call, other = host.ask("tools/list"), host.ask("prompts/list")
    host.cancel(call)
    host.greet()
    assert host.flight() == ["prompts/list"]
    host.cancel(other)


# -- a session is lost -------------------------------------------------------------------------------------


def test_a_404_begins_another_session_and_what_was_asked_is_asked_again() -> None:
    host = legacy_host()
    call = host.ask("resources/list")
    name = host.number_of("resources/list")
    host.answer_http("resources/list", 404)
    greeting = host.legacy("initialize")
    assert (greeting.version, greeting.session) == (None, None)
    host.greet(session="s-2")
    assert host.number_of("resources/list") == name
    assert host.legacy("resources/list").session == "s-2"
    host.reply("resources/list", {"resources": []})
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_it_is_asked_again_once() -> None:
    host = legacy_host()
    call = host.ask("resources/list")
    host.answer_http("resources/list", 404)
    host.greet(session="s-2")
    host.answer_http("resources/list", 404)
    assert outcome(host, call).http_status == 404


def refuse_session(host: LegacyHost, request: str, code: int = -32600) -> None:
    """Have a server say with an error of its own that there is no such session."""
    host.refuse(request, code, "there is no such session", http=HttpReply(status=404))


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result"])
@pytest.mark.parametrize("code", [-32600, -32001])
def test_req3_what_is_said_of_a_session_is_not_said_of_a_task(method: str, code: int) -> None:
    """Not of one that has ended either, whose result would have been that error."""
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    host.advance(1_000)
    if method == "tasks/result":
        host.reply("tasks/get", legacy_task("completed", at=1))
    refuse_session(host, method, code)
    host.greet(session="s-2")
    refuse_session(host, method, code)
    assert call not in host.outcomes
    host.advance(1_000)
    host.greet(session="s-3")
    host.reply("tasks/get", legacy_task("completed", at=1))
    host.reply("tasks/result", DONE)
    assert isinstance(outcome(host, call), Completed)


@pytest.mark.parametrize("code", [-32601, -32602])
def test_some_servers_answer_requests_with_404(code: int) -> None:
    host = legacy_host()
    call = host.ask("resources/list")
    refuse_session(host, "resources/list", code)
    host.greet(session="s-2")
    refuse_session(host, "resources/list", code)
    assert outcome(host, call).code == code


def test_a_stream_that_cannot_be_taken_up_as_its_session_is_gone_is_lost() -> None:
    host = legacy_host()
    call = host.call()
    host.answer_http("GET", 405)
    broken_off(host, "tools/call", "e1")
    host.advance(0)
    refuse_session(host, "GET")
    assert isinstance(outcome(host, call), ObservationLost)


def test_a_404_of_a_session_that_is_gone_already_does_no_more() -> None:
    host = legacy_host()
    calls = [host.ask("resources/list"), host.ask("prompts/list")]
    host.answer_http("resources/list", 404)
    host.greet(session="s-2")
    host.answer_http("prompts/list", 404)  # it was sent in the first one
    assert host.flight() == ["resources/list", "prompts/list"]
    for method in host.flight():
        host.reply(method, {})
    assert all(isinstance(outcome(host, call), Completed) for call in calls)


def test_without_a_next_session_it_fails() -> None:
    host = legacy_host()
    call = host.ask("resources/list")
    host.answer_http("resources/list", 404)
    host.answer_http("initialize", 503)
    assert "HTTP 503" in outcome(host, call).message
    at_rest(host)


def test_a_session_that_is_lost_while_nothing_needs_one_is_opened_when_something_does() -> None:
    host = legacy_host()
    host.cancel(host.ask("resources/list"))
    host.answer_http("notifications/cancelled", 404)
    at_rest(host)
    host.ask("resources/list")
    assert host.flight() == ["initialize"]


def test_a_404_of_a_server_without_sessions_is_an_answer() -> None:
    host = legacy_host(session=None)
    call = host.ask("resources/list")
    host.answer_http("resources/list", 404)
    assert outcome(host, call).http_status == 404


def test_a_process_that_ends_takes_its_session_with_it() -> None:
    host = legacy_host(http=False)
    host.die()
    host.ask("resources/list")
    assert host.flight() == ["initialize"]
    host.die()  # and once more, while there is none
    assert host.flight() == ["initialize"]


def test_on_stdio_a_process_is_begun_anew_for_the_next_message_alone() -> None:
    host = server_of_tasks(http=False)
    host.call()
    host.reply("tools/call", nested())
    host.die()
    assert host.flight() == []
    host.advance(1_000)
    assert host.flight() == ["initialize"]


def test_over_http_no_connection_is_the_session() -> None:
    host = legacy_host()
    host.die()
    host.ask("resources/list")
    assert host.flight() == ["resources/list"]


def lose_session(host: LegacyHost) -> None:
    """Let a request find out that the session is gone."""
    host.ask("resources/list")
    host.answer_http("resources/list", 404)


@pytest.mark.parametrize("how", ["opened", "late"])
def test_a_call_whose_session_is_lost_while_it_waits_for_its_stream_begins_in_the_next(how: str) -> None:
    host = server_of_tasks(limits=RequesterLimits(stream_wait_ms=100))
    host.slow = True
    call = host.call()
    lose_session(host)
    assert host.flight() == ["initialize"]
    host.greet(session="s-2")
    assert host.flight() == ["GET", "resources/list"]
    if how == "opened":
        host.give(StreamOpened(host.number_of("GET")))
    else:
        host.advance(100)
    host.reply("tools/list", tools(render="optional"))
    sent = host.legacy("tools/call")
    assert (sent.session, (sent.message or {})["params"]["task"]) == ("s-2", {})
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_what_is_asked_while_there_is_no_session_waits_for_the_next() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.call()
    lose_session(host)
    host.reply("tools/list", tools(render="optional"))
    assert host.all_sent("tools/call") == []
    host.greet(session="s-2")
    assert host.legacy("tools/call").session == "s-2"
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_without_a_next_session_what_waits_for_it_fails() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.call()
    lose_session(host)
    host.reply("tools/list", tools(render="optional"))
    host.answer_http("initialize", 503)
    assert "HTTP 503" in outcome(host, call).message
    assert host.all_sent("tools/call") == []


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_req7_a_call_that_is_given_up_is_not_sent_in_the_next_session(opens: bool, asked: bool) -> None:
    host = legacy_host()
    call = host.call()
    if asked:
        host.ask_client("elicitation/create", elicitation(), message_id=1)
    host.answer_http("tools/call", 404)
    host.abandon(call)
    if opens:
        host.greet(session="s-2")
    else:
        host.answer_http("initialize", 503)
    assert len(host.all_sent("tools/call")) == 1
    assert isinstance(outcome(host, call), ObservationLost)


def test_a_list_of_tools_that_is_asked_for_again_is_not_waited_for_without_end() -> None:
    host = legacy_host(CAPABILITIES, limits=RequesterLimits(request_timeout_ms=1_000))
    host.call()
    host.answer_http("tools/list", 404)
    host.greet(session="s-2")
    assert len(host.waiting("tools/list")) == 1
    host.advance(1_000)
    assert host.waiting("tools/list") == []
    assert len(host.waiting("tools/call")) == 1


# -- requests are cancelled by a message ------------------------------------------------------------------


def test_over_http_a_request_that_is_given_up_is_cancelled_by_a_message() -> None:
    host = legacy_host()
    call = host.ask("resources/list")
    name = host.number_of("resources/list")
    host.cancel(call)
    assert StopRequest(name) in host.effects
    assert host.legacy("notifications/cancelled").message == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": name},
    }
    host.take_all()
    at_rest(host)


def test_a_message_that_is_never_taken_is_given_up() -> None:
    host = legacy_host(limits=RequesterLimits(request_timeout_ms=1_000))
    host.cancel(host.ask("resources/list"))
    host.advance(1_000)
    at_rest(host)


def test_an_error_is_told_with_its_http_status() -> None:
    host = legacy_host()
    call = host.ask("resources/read", {"uri": "file:///a"})
    host.refuse("resources/read", -32603, "not today", http=HttpReply(status=503))
    failed = Failed(code=-32603, message="not today", fault=Fault.SERVER, http_status=503)
    assert outcome(host, call) == failed


def test_an_answer_to_another_request_is_none() -> None:
    """Whatever its number."""
    host = legacy_host()
    for number in range(9):
        call = host.ask("resources/list", {"n": number})
        name = host.number_of("resources/list")
        body = {"jsonrpc": "2.0", "id": name - 1, "result": {"resources": []}}
        host.answer_http(name, 200, body=body)
        assert isinstance(outcome(host, call), Failed)


def test_on_stdio_the_transport_says_so() -> None:
    host = legacy_host(http=False)
    host.cancel(host.ask("resources/list"))
    assert host.flight() == []


# -- the stream for what is said unasked -----------------------------------------------------------------


def test_a_stream_is_opened_with_the_first_call() -> None:
    host = legacy_host()
    host.call()
    stream = host.legacy("GET")
    assert (stream.version, stream.session) == ("2025-11-25", "s-1")
    host.call()
    assert host.waiting("GET") == [stream.request]


def test_a_server_without_a_stream_is_not_asked_again_in_this_session() -> None:
    host = legacy_host()
    host.call()
    host.answer_http("GET", 405)
    host.call()
    assert host.waiting("GET") == []
    for number in host.waiting("tools/call"):
        host.answer_http(number, 404)
    host.greet(session="s-2")
    host.call()
    assert len(host.waiting("GET")) == 1


def test_a_stream_that_ends_is_opened_again_while_there_is_a_call() -> None:
    host = legacy_host()
    call = host.call()
    host.fail("GET")
    assert host.waiting("GET") == []
    host.call()
    assert host.waiting("GET") == []  # not in a hurry
    host.advance(500)
    assert len(host.waiting("GET")) == 1
    host.fail("GET")
    for number in host.waiting("tools/call"):
        host.reply(number, DONE)
    host.advance(60_000)
    assert host.waiting("GET") == []
    assert isinstance(outcome(host, call), Completed)
    host.call()
    assert len(host.waiting("GET")) == 1


@pytest.mark.parametrize(("status", "refused"), [(400, True), (499, True), (500, False), (200, False)])
def test_a_status_of_400_to_499_says_that_there_is_no_stream(status: int, refused: bool) -> None:
    host = legacy_host()
    host.call()
    host.answer_http("GET", status)
    host.advance(500)
    assert (host.waiting("GET") == []) is refused


def times_of_streams(host: LegacyHost, milliseconds: int) -> list[int]:
    """Break off every stream as soon as it is opened; return when they were, since now."""
    begin, times = host.now, []
    while host.deadline is not None and host.deadline <= begin + milliseconds:
        host.advance(host.deadline - host.now)
        if host.waiting("GET"):
            times.append(host.now - begin)
            host.fail("GET")
    return times


def test_a_stream_that_breaks_again_and_again_is_opened_ever_less_often() -> None:
    """And in the next session as in the first."""
    host = legacy_host()
    host.call()
    host.fail("GET")
    assert times_of_streams(host, 4_000) == [500, 1_500, 3_500]
    lose_session(host)
    host.greet(session="s-2")
    host.fail("GET")
    assert times_of_streams(host, 2_000) == [500, 1_500]


def test_a_stream_that_has_yet_to_be_opened_again_is_opened_with_the_next_session() -> None:
    host = legacy_host()
    host.call()
    host.fail("GET")
    lose_session(host)
    host.greet(session="s-2")
    assert host.legacy("GET").session == "s-2"


def test_a_stream_goes_with_its_session_and_the_next_has_one_for_what_is_under_way() -> None:
    host = legacy_host()
    host.call()
    stream = host.number_of("GET")
    lose_session(host)
    assert StopRequest(stream) in host.effects
    host.greet(session="s-2")
    assert host.legacy("GET").session == "s-2"


def test_no_stream_is_opened_where_no_session_is() -> None:
    host = legacy_host()
    host.call()
    lose_session(host)
    host.answer_http("initialize", 503)
    assert host.waiting("GET") == []


def test_a_404_to_a_stream_says_that_there_is_none() -> None:
    """If it is the session that is gone, the next request finds that out."""
    host = legacy_host()
    host.slow = True
    call = host.call()
    host.answer_http("GET", 404)
    assert host.legacy("tools/call").session == "s-1"
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)
    host.call()
    assert host.waiting("GET") == []


@pytest.mark.parametrize("how", ["opened", "late", "refused"])
def test_leg8_a_call_waits_for_the_stream_on_which_it_may_be_asked_something(how: str) -> None:
    host = legacy_host(limits=RequesterLimits(stream_wait_ms=100))
    host.slow = True
    call, given_up = host.call(), host.call()
    host.cancel(given_up)
    assert host.flight() == ["GET"]
    match how:
        case "opened":
            host.give(StreamOpened(host.number_of("GET")))
        case "late":
            host.advance(100)
        case _:
            host.answer_http("GET", 405)
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)
    assert len(host.all_sent("tools/call")) == 1


def test_a_stream_that_opens_in_another_era_is_nobody_s() -> None:
    host = make_dual()
    assert host.give(StreamOpened(1)) == []


def test_on_stdio_there_is_none() -> None:
    host = legacy_host(http=False)
    host.call()
    assert host.flight() == ["tools/call"]


# -- ends --------------------------------------------------------------------------------------------------


def test_a_session_is_ended_when_nobody_needs_it() -> None:
    host = legacy_host()
    host.close()
    farewell = host.legacy("DELETE")
    assert farewell.session == "s-1"
    host.answer_http("DELETE", 404)
    at_rest(host)


def test_a_call_whose_session_is_ended_here_is_not_sent_in_another() -> None:
    """It may have been carried out: with 404 the server says no more than what it was told."""
    host = legacy_host()
    call = host.call()
    host.close()
    host.answer_http("DELETE", 200)
    host.answer_http("tools/call", 404)
    assert outcome(host, call).http_status == 404
    host.greet(session="s-2")  # for its stream
    assert len(host.all_sent("tools/call")) == 1


@pytest.mark.parametrize("status", [200, 405])
def test_a_server_that_ends_no_sessions(status: int) -> None:
    host = legacy_host()
    host.close()
    host.answer_http("DELETE", status)
    at_rest(host)


def test_where_there_is_no_session_none_is_ended() -> None:
    for host in (legacy_host(session=None), legacy_host(http=False), make_dual(era="legacy")):
        host.close()
        assert host.in_flight == {}


def test_req7_a_task_that_goes_on_keeps_its_session() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    host.abandon(call)
    host.close()
    assert host.all_sent("DELETE") == []


def test_one_that_has_ended_does_not_nor_a_call_that_became_none() -> None:
    host = server_of_tasks()
    call, plain = host.call(), host.call("greet")
    host.reply("tools/call", nested())
    host.fail("tools/call")
    host.advance(1_000)
    host.reply("tasks/get", legacy_task("cancelled"))
    assert isinstance(outcome(host, call), Cancelled)
    assert isinstance(outcome(host, plain), ObservationLost)
    host.close()
    assert [farewell.session for farewell in host.all_sent("DELETE")] == ["s-1"]


# -- going on in another process -------------------------------------------------------------------------


def saved_reference() -> dict[str, Any]:
    """Return the reference of a task in a session."""
    host = server_of_tasks()
    host.call()
    host.reply("tools/call", nested())
    return host.of(KeepReference)[-1].reference


def test_req6_a_reference_says_which_era_and_session_its_task_is_of() -> None:
    reference = saved_reference()
    assert reference["era"] == "legacy"
    assert reference["session"] == {
        "id": "s-1",
        "initialized": {"capabilities": CAPABILITIES, "serverInfo": {"name": "old", "version": "1"}},
    }


def test_req6_another_process_goes_on_in_the_same_session() -> None:
    host = make_dual()
    call = host.resume(saved_reference())
    assert host.engine.era == "legacy"
    poll = host.legacy("tasks/get")
    assert (poll.session, poll.message and poll.message["params"]) == ("s-1", {"taskId": TASK})
    assert host.legacy("GET").session == "s-1"
    host.reply("tasks/get", legacy_task("cancelled"))
    assert isinstance(outcome(host, call), Cancelled)


def test_req6_no_id_comes_twice_in_a_session_whoever_is_in_it() -> None:
    """2025-11-25, Base Protocol: Requests. What an earlier process has asked may still be under way."""
    host = server_of_tasks()
    host.call()
    host.reply("tools/call", nested())
    used, reference = ids_of(host), host.of(KeepReference)[-1].reference
    for later in (1_000, 2_000):
        moment, host = host.now + later, make_dual()
        host.now = moment
        host.resume(reference)
        host.reply("tasks/get", legacy_task("working"))
        host.advance(1_000)
        assert len(ids_of(host)) == 2
        used += ids_of(host)
    assert len(set(used)) == len(used)


def test_req6_those_who_are_in_a_session_at_the_same_time_use_no_id_of_each_other() -> None:
    """However short a time lies between their beginnings, and whichever of them asks more."""
    one = server_of_tasks()
    tasks = [f"task-{number}" for number in range(3)]
    for task_id in tasks:
        one.call()
        one.reply("tools/call", nested(task_id=task_id))
    references = list(one.references.values())
    used: list[Any] = []
    for number, later in ((0, 0), (1, 0), (2, 3), (2, 4)):
        host = make_dual()
        host.now = one.now + later
        host.resume(references[number])
        for at in range(20):
            host.reply("tasks/get", legacy_task("working", task_id=tasks[number], at=at))
            host.advance(1_000)
        assert len(ids_of(host)) > 20
        used += ids_of(host)
    assert len(set(used)) == len(used)
    assert all(type(one) is int and one < 2**53 for one in used), "which every parser of JSON can tell apart"


def test_req6_a_task_goes_on_whatever_its_server_calls_it() -> None:
    """A lone surrogate is no character, and JSON may name one."""
    reference = {**saved_reference(), "taskId": "task-\ud800"}
    host = make_dual()
    host.resume(reference)
    poll = host.legacy("tasks/get")
    assert poll.message is not None
    assert poll.message["params"]["taskId"] == "task-\ud800"


def ids_of(host: LegacyHost) -> list[Any]:
    """Return the ids of all requests of a process in its session."""
    messages = [sent.message or {} for sent in host.of(SendLegacy) if sent.session is not None]
    return [message["id"] for message in messages if "method" in message and "id" in message]


def test_req6_what_is_known_of_that_session_goes_along() -> None:
    host = make_dual()
    host.resume(saved_reference())
    host.call()
    assert "tools/list" in host.flight()  # for its server has tasks


@pytest.mark.parametrize("session", [{}, {"id": 1, "initialized": {}}, {"id": "s-1"}, "s-1"])
def test_req6_a_session_that_is_none_is_not_gone_on_in(session: Any) -> None:
    host = make_dual()
    host.resume(saved_reference() | {"session": session})
    assert host.flight() == ["initialize"]


def test_req3_a_poll_in_another_process_is_not_waited_for_without_end() -> None:
    host = make_dual(limits=RequesterLimits(request_timeout_ms=1_000))
    host.resume(saved_reference())
    assert host.deadline == host.now + 1_000
    host.advance(1_000)
    assert host.waiting("tasks/get") == []


def test_req7_a_task_that_goes_on_keeps_the_session_of_another_process() -> None:
    host = make_dual()
    host.abandon(host.resume(saved_reference()))
    host.close()
    assert host.all_sent("DELETE") == []


def test_req7_a_session_of_another_process_is_not_ended_with_one_of_its_tasks() -> None:
    """That process may have left others in it, and who follows those would lose them."""
    host = make_dual()
    call = host.resume(saved_reference())
    host.reply("tasks/get", legacy_task("cancelled"))
    assert isinstance(outcome(host, call), Cancelled)
    host.close()
    assert host.all_sent("DELETE") == []
    host.ask("tools/list")
    host.answer_http("tools/list", 404)
    host.greet(session="s-2")
    host.close()
    assert [farewell.session for farewell in host.all_sent("DELETE")] == ["s-2"]


def test_req6_tasks_of_a_session_that_is_gone_all_go_on_in_the_next() -> None:
    """A server that has no sessions by now says 400 to each of them, to some of them late."""
    host = make_dual()
    reference = saved_reference()
    calls = [host.resume(reference | {"taskId": f"task-{number}"}) for number in (1, 2, 3)]
    polls = host.waiting("tasks/get")
    for number in polls[:2]:
        host.refuse(number, -32600, "no such session", http=HttpReply(status=400))
    host.greet(session="s-2")
    host.refuse(polls[2], -32600, "no such session", http=HttpReply(status=400))
    assert [host.legacy(number).session for number in polls] == ["s-2"] * 3
    assert not set(calls) & set(host.outcomes)


def test_req6_or_in_a_new_one_where_that_is_gone() -> None:
    host = make_dual()
    call = host.resume(saved_reference())
    host.answer_http("tasks/get", 404)
    host.greet(session="s-2")
    host.refuse("tasks/get", -32602)
    assert isinstance(outcome(host, call), Expired)


def test_req6_or_in_the_other_era_where_its_server_speaks_only_that_by_now() -> None:
    """What an earlier process found out may be out of date (versioning: re-probe where it fails)."""
    host = make_dual()
    call = host.resume(saved_reference())
    http = HttpReply(status=400)
    host.refuse("tasks/get", -32602, "_meta is missing", http=http)  # that is not: the task is unknown
    host.refuse("initialize", -32022, data={"supported": ["2026-07-28"]}, http=http)
    assert host.engine.era == "modern"
    host.advance(1_000)
    host.reply("tasks/get", {"resultType": "complete", **task("cancelled")})
    assert type(outcome(host, call)).__name__ == "Cancelled"
    assert host.close() == []


@pytest.mark.parametrize("session_id", ["s-1", ""])
def test_req6_a_session_that_has_answered_is_not_given_up_for_a_400(session_id: str) -> None:
    host = make_dual()
    reference = saved_reference()
    reference["session"]["id"] = session_id
    call = host.resume(reference)
    host.reply("tasks/get", legacy_task("working"), http=HttpReply(status=200))
    host.advance(1_000)
    host.refuse("tasks/get", -32602, http=HttpReply(status=400))
    assert type(outcome(host, call)).__name__ == "Expired"


def test_req6_being_sent_elsewhere_is_no_answer_of_a_session() -> None:
    host = make_dual()
    call = host.resume(saved_reference())
    host.answer_http("tasks/get", 300)
    host.advance(1_000)
    host.refuse("tasks/get", -32602, http=HttpReply(status=400))
    assert call not in host.outcomes
    assert "initialize" in host.flight()


def test_an_era_that_was_asked_for_is_not_changed() -> None:
    host = make_dual(era="legacy")
    call = host.call()
    host.refuse("initialize", -32022, data={"supported": ["2026-07-28"]}, http=HttpReply(status=400))
    assert isinstance(outcome(host, call), Failed)
    assert host.engine.era == "legacy"


def test_req6_a_reference_of_stdio_has_no_session() -> None:
    host = server_of_tasks(http=False)
    host.call()
    host.reply("tools/call", nested())
    reference = host.of(KeepReference)[-1].reference
    assert "session" not in reference
    for saved in (reference, saved_reference()):
        other = make_dual(http=False)
        other.resume(saved)
        assert other.flight() == ["initialize"]


def test_a_session_that_stands_is_not_given_up_for_that_of_a_reference() -> None:
    host = legacy_host(session="s-9")
    host.resume(saved_reference())
    assert host.legacy("tasks/get").session == "s-9"


def test_a_reference_does_not_decide_while_the_era_is_being_found_out() -> None:
    host = make_dual()
    host.ask("tools/list")
    host.resume({**saved_reference(), "session": {"id": 1}})
    assert host.flight() == ["tools/list"]
    host.reply("tools/list", {"resultType": "complete", "tools": []})
    assert host.engine.era == "modern"


def test_a_modern_server_is_told_of_no_session() -> None:
    host = make_dual()
    host.ask("tools/list")
    host.resume(saved_reference())
    host.reply("tools/list", {"resultType": "complete", "tools": []})
    host.close()
    assert host.all_sent("DELETE") == []


@pytest.mark.parametrize("reference", [None, {}, {"era": "legacy"}, {"endpoint": "https://other.example"}])
def test_a_reference_that_is_none_decides_nothing(reference: Any) -> None:
    host = make_dual()
    if reference and "endpoint" in reference:
        reference = saved_reference() | reference
    call = host.resume(reference)
    assert isinstance(outcome(host, call), Failed)
    assert host.engine.era is None
    at_rest(host)


def test_a_reference_of_the_modern_era_is_resumed_as_ever() -> None:
    reference = {name: it for name, it in saved_reference().items() if name not in ("era", "session")}
    host = make_dual()
    host.resume(reference)
    assert host.of(SendLegacy) == []
    assert host.flight() == ["tasks/get"]
    modern = make_dual(era="modern")
    modern.resume(reference)
    assert modern.flight() == ["tasks/get"]


def test_what_was_forgotten_long_ago_may_still_be_answered() -> None:
    host = legacy_host()
    host.fail(77)
    at_rest(host)


# -- streams that are taken up again -----------------------------------------------------------------------


def broken_off(host: Any, request: str, event: str, retry_ms: int | None = None) -> None:
    """Break the stream of a request off after an event."""
    number = host.number_of(request)
    host.give(RequestFailed(number, "closed", last_event_id=event, retry_ms=retry_ms))


def test_a_stream_that_breaks_off_is_taken_up_where_it_did() -> None:
    host = legacy_host()
    call = host.call()
    host.answer_http("GET", 405)
    name = host.number_of("tools/call")
    broken_off(host, "tools/call", "e1", retry_ms=300)
    host.advance(299)
    assert host.in_flight == {}
    host.advance(1)
    again = host.legacy("GET")
    assert (again.request, again.last_event_id, again.session) == (name, "e1", "s-1")
    host.reply("GET", DONE)
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_it_is_taken_up_as_often_as_there_is_something_new() -> None:
    host = legacy_host(limits=RequesterLimits(stream_attempts=2))
    call = host.call()
    host.answer_http("GET", 405)
    broken_off(host, "tools/call", "e0")
    for event in ("e1", "e2", "e3", "e3"):
        host.advance(500)
        broken_off(host, "GET", event)
    host.advance(500)
    assert call not in host.outcomes
    broken_off(host, "GET", "e3")
    assert isinstance(outcome(host, call), ObservationLost)
    at_rest(host)


@pytest.mark.parametrize("status", [404, 405, 200])
def test_where_it_cannot_be_it_is_lost_and_not_repeated(status: int) -> None:
    """A tool is not called a second time, not in another session either."""
    host = legacy_host()
    call = host.call()
    host.answer_http("GET", 405)
    broken_off(host, "tools/call", "e1")
    host.advance(0)
    host.answer_http("GET", status)
    lost = outcome(host, call)
    assert isinstance(lost, ObservationLost)
    assert lost.reason == "closed"
    assert len(host.all_sent("tools/call")) == 1


def test_a_call_that_is_given_up_meanwhile_is_cancelled() -> None:
    host = legacy_host()
    call = host.call()
    host.answer_http("GET", 405)
    broken_off(host, "tools/call", "e1", retry_ms=1_000)
    host.cancel(call)
    assert host.flight() == ["notifications/cancelled"]
    host.take_all()
    at_rest(host)


def test_one_that_is_given_up_when_it_was_taken_up_again_is_stopped_and_cancelled() -> None:
    host = legacy_host()
    call = host.call()
    host.answer_http("GET", 405)
    name = host.number_of("tools/call")
    broken_off(host, "tools/call", "e1")
    host.advance(0)
    host.cancel(call)
    assert host.effects.count(StopRequest(name)) == 1
    assert host.flight() == ["notifications/cancelled"]
    host.take_all()
    at_rest(host)


def test_what_takes_too_long_while_its_stream_is_broken_off() -> None:
    host = legacy_host(CAPABILITIES, http=True, limits=RequesterLimits(request_timeout_ms=1_000))
    host.call()
    broken_off(host, "tools/list", "e1", retry_ms=5_000)
    host.advance(1_000)
    assert "tools/call" in host.flight()


def test_what_breaks_after_its_session_is_lost() -> None:
    host = legacy_host()
    call, other = host.call(), host.ask("resources/list")
    host.answer_http("resources/list", 404)
    broken_off(host, "tools/call", "e1")
    assert isinstance(outcome(host, call), ObservationLost)
    host.cancel(other)


def test_the_stream_of_no_request_is_taken_up_as_well() -> None:
    host = legacy_host()
    host.call()
    broken_off(host, "GET", "e1", retry_ms=2_000)
    host.advance(1_999)
    assert host.waiting("GET") == []
    host.advance(1)
    assert host.legacy("GET").last_event_id == "e1"


@pytest.mark.parametrize("request_", ["GET", "tools/call"])
def test_how_long_a_stream_wants_to_be_left_alone_holds_until_it_says_otherwise(request_: str) -> None:
    """It is not said anew by a connection that breaks before there is anything on it."""
    host = legacy_host()
    host.call()
    if request_ != "GET":
        host.answer_http("GET", 405)
    broken_off(host, request_, "e1", retry_ms=9_000)
    for retry_ms, wait_ms in ((None, 9_000), (3_000, 9_000), (None, 3_000)):
        host.advance(wait_ms - 1)
        assert host.waiting("GET") == []
        host.advance(1)
        broken_off(host, "GET", "e1", retry_ms=retry_ms)


def test_it_is_taken_up_where_it_was_when_there_was_something_new_on_it() -> None:
    """What fails before it has begun says nothing of where it was, and each time it is tried later."""
    host = legacy_host()
    host.call()
    broken_off(host, "GET", "e1")
    assert times_of_streams(host, 2_000) == [500, 1_500]
    assert {sent.last_event_id for sent in host.all_sent("GET")[1:]} == {"e1"}
    host.advance(2_000)
    broken_off(host, "GET", "e2")
    host.advance(500)
    assert host.legacy("GET").last_event_id == "e2"
    broken_off(host, "GET", "e2")
    host.advance(999)
    assert host.waiting("GET") == []
    host.advance(1)
    assert host.legacy("GET").last_event_id == "e2"
