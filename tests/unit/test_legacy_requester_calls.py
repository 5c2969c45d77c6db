"""Calls that a legacy server answers at once, and its questions on the way: REQ.1, LEG.3; traps 9 and 22."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.legacy.messages import ServerAsked
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Failed,
    Fault,
    NotificationReceived,
    ObservationLost,
    PassOn,
    Prompt,
    RequesterLimits,
    WithdrawPrompt,
)
from mcp_tasks_proto.wire.jsonrpc import request_message
from tests.unit.legacy_requester_world import (
    CAPABILITIES,
    RELATED,
    LegacyHost,
    elicitation,
    legacy_host,
    nested,
    outcome,
    server_of_tasks,
    tools,
)
from tests.unit.requester_world import ACCEPTED, DECLINED, DONE, at_rest, form, sampling

EVERYTHING: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Yes."}, "model": "m"}


def calling(**options: Any) -> tuple[LegacyHost, int]:
    """Return a host with a call that the server has, without a stream for what is said unasked."""
    host = legacy_host(**options)
    call = host.call("render", {"frames": 3}, meta={"traceparent": "00-ab"})
    if host.engine.http:
        host.answer_http("GET", 405)
    return host, call


def test_leg3_a_call_is_plain_where_the_server_has_no_tasks() -> None:
    host, call = calling()
    assert host.params_of("tools/call") == {
        "name": "render",
        "arguments": {"frames": 3},
        "_meta": {"traceparent": "00-ab"},
    }
    host.reply("tools/call", {**DONE, "isError": True, "resultType": "task"})
    assert outcome(host, call) == Completed({**DONE, "isError": True, "resultType": "complete"})
    at_rest(host)


def test_an_error_is_the_caller_s() -> None:
    host, call = calling()
    host.refuse("tools/call", -32042, "go there first", data={"elicitations": []})
    failed = outcome(host, call)
    assert (failed.code, failed.data) == (-32042, {"elicitations": []})
    at_rest(host)


def test_what_is_no_response_is_the_server_s_fault() -> None:
    host, call = calling()
    host.answer_http("tools/call", 200, body={"jsonrpc": "2.0", "id": 999, "result": {}})
    assert outcome(host, call).fault is Fault.SERVER


def test_a_result_that_names_a_task_beside_its_content_is_one() -> None:
    host, call = calling()
    host.reply("tools/call", {**nested(), **DONE})
    assert outcome(host, call) == Completed({**nested(), **DONE, "resultType": "complete"})


def test_req1_a_task_that_nobody_asked_for_is_an_invalid_response() -> None:
    """Trap 9."""
    host, call = calling()
    host.reply("tools/call", nested())
    assert outcome(host, call).fault is Fault.SERVER


def test_progress_is_passed_on() -> None:
    host, call = calling()
    params = {"progressToken": call, "progress": 1}
    host.say("notifications/progress", params, on="tools/call")
    assert host.of(PassOn) == [PassOn(call, "notifications/progress", params)]
    host.say("notifications/progress", params)
    assert len(host.of(PassOn)) == 1


def test_so_it_is_after_a_round_of_input() -> None:
    host, call = asked()
    host.answer(call, "elicitation", ACCEPTED)
    host.say("notifications/progress", {"progressToken": call, "progress": 1}, on="tools/call")
    assert [passed.call for passed in host.of(PassOn)] == [call]


def test_what_a_cancelled_call_asks_late_is_not_asked_for_another() -> None:
    """It may have been on its way when its stream was closed."""
    host, call = calling()
    other = host.call()
    stopped = host.number_of("tools/call")
    host.cancel(call)
    assert stopped not in host.in_flight
    late = request_message(7, "elicitation/create", elicitation())
    host.give_dual(ServerAsked(request=stopped, message=late, new_id="late"))
    assert not host.of(Prompt)
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, other), Completed)


def test_a_notification_that_is_none_is_passed_over() -> None:
    host, _ = calling()
    assert host.give(NotificationReceived(host.number_of("tools/call"), [])) == []


def test_other_requests_go_as_they_are() -> None:
    host = legacy_host()
    call = host.ask("completion/complete", {"ref": {}})
    assert host.params_of("completion/complete") == {"ref": {}}
    host.reply("completion/complete", {"completion": {"values": []}})
    assert isinstance(outcome(host, call), Completed)
    host.cancel(host.ask("completion/complete", {"ref": {}}))
    assert host.flight() == ["notifications/cancelled"]


def test_there_are_no_listen_streams() -> None:
    host = legacy_host()
    call = host.ask("subscriptions/listen", {"notifications": {}})
    message = "Method not found: subscriptions/listen"
    assert outcome(host, call) == Failed(code=-32601, message=message, fault=Fault.CALLER)
    assert host.in_flight == {}


# -- questions on the way ----------------------------------------------------------------------------------


def test_a_question_is_put_to_somebody_and_the_answer_goes_back() -> None:
    host, call = calling()
    host.ask_client("elicitation/create", elicitation(), message_id="q", on="tools/call")
    assert host.of(Prompt) == [Prompt(call=call, key="elicitation", request=form())]
    host.answer(call, "elicitation", ACCEPTED)
    answer = host.legacy("response")
    assert answer.message == {"jsonrpc": "2.0", "id": "q", "result": ACCEPTED}
    assert answer.session == "s-1"
    host.take_all()
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)
    assert len(host.all_sent("tools/call")) == 1
    at_rest(host)


def test_questions_one_after_the_other_have_keys_of_their_own() -> None:
    host, call = calling()
    for number, key in enumerate(("elicitation", "elicitation.2"), start=1):
        host.ask_client("elicitation/create", elicitation(), message_id=number, on="tools/call")
        host.answer(call, key, ACCEPTED)
    assert [response["id"] for response in host.responses()] == [1, 2]


def in_a_round() -> tuple[LegacyHost, int]:
    """Return a host that has answered one question of a call, and shows the two that came meanwhile."""
    host, call = calling()
    for number in (1, 2, 3):
        host.ask_client("elicitation/create", elicitation(f"{number}?"), message_id=number, on="tools/call")
    host.answer(call, "elicitation", ACCEPTED)
    assert [prompt.key for prompt in host.of(Prompt)] == ["elicitation", "elicitation.2", "elicitation.3"]
    return host, call


def test_a_second_question_at_the_same_time_waits_for_the_first_answer() -> None:
    host, call = calling()
    host.ask_client("elicitation/create", elicitation("One?"), message_id=1, on="tools/call")
    host.ask_client("elicitation/create", elicitation("Two?"), message_id=2, on="tools/call")
    assert len(host.of(Prompt)) == 1
    host.answer(call, "elicitation", ACCEPTED)
    assert len(host.of(Prompt)) == 2
    host.answer(call, "elicitation.2", DECLINED)
    assert [response["result"] for response in host.responses()] == [ACCEPTED, DECLINED]
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_leg8_an_answer_does_not_wait_for_the_others_of_its_round() -> None:
    host, call = in_a_round()
    host.answer(call, "elicitation.3", ACCEPTED)
    assert [response["id"] for response in host.responses()] == [1, 3]
    host.answer(call, "elicitation.3", DECLINED)
    host.say("notifications/cancelled", {"requestId": 3})
    host.answer(call, "elicitation.2", DECLINED)
    assert [response["id"] for response in host.responses()] == [1, 3, 2]
    assert [response["result"] for response in host.responses()] == [ACCEPTED, ACCEPTED, DECLINED]
    host.take_all()
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_what_is_no_answer_is_not_sent() -> None:
    host, call = in_a_round()
    with pytest.raises(LocalProtocolError, match="AnswerGiven"):
        host.answer(call, "elicitation.3", {"action": "perhaps"})
    host.answer(call, "elicitation.4", ACCEPTED)
    assert [response["id"] for response in host.responses()] == [1]


def test_one_answer_of_a_round_that_does_not_get_there_is_the_end_of_the_call() -> None:
    host, call = in_a_round()
    host.take_all()
    host.answer(call, "elicitation.3", ACCEPTED)
    host.answer_http("response", 500)
    assert host.of(WithdrawPrompt) == [WithdrawPrompt(call, "elicitation.2")]
    assert isinstance(outcome(host, call), ObservationLost)
    host.take_all()
    assert [response["id"] for response in host.responses()] == [1, 3]
    at_rest(host)


def test_a_question_may_come_on_any_stream() -> None:
    host = legacy_host(capabilities=EVERYTHING)
    call = host.call()
    host.ask_client("sampling/createMessage", sampling()["params"], message_id=5, on="GET")
    host.answer(call, "sampling", SAMPLED)
    host.ask_client("roots/list", message_id=6)
    host.answer(call, "roots", {"roots": [{"uri": "file:///a"}]})
    assert [response["id"] for response in host.responses()] == [5, 6]


def test_nobody_hurries_a_person() -> None:
    """The patience with the server counts from the answer on."""
    host, call = calling(limits=RequesterLimits(call_timeout_ms=1_000))
    host.ask_client("elicitation/create", elicitation(), on="tools/call")
    host.advance(3_600_000)
    host.answer(call, "elicitation", ACCEPTED)
    host.take_all()
    assert call not in host.outcomes
    host.advance(1_000)
    assert isinstance(outcome(host, call), ObservationLost)
    host.take_all()
    at_rest(host)


def test_what_was_not_declared_is_refused_and_the_call_goes_on() -> None:
    """INP.2"""
    host, call = calling()
    host.ask_client("sampling/createMessage", sampling()["params"], message_id=1, on="tools/call")
    url = {"mode": "url", "message": "Go", "url": "https://example.com", "elicitationId": "e"}
    host.ask_client("elicitation/create", url, message_id=2, on="tools/call")
    host.ask_client("elicitation/create", {"message": 7}, message_id=3, on="tools/call")
    host.ask_client("roots/list", message_id=4, on="tools/call")
    host.ask_client("no/such", message_id=5, on="tools/call")
    codes = [(response["id"], response["error"]["code"]) for response in host.responses()]
    assert codes == [(1, -32601), (2, -32602), (3, -32602), (4, -32601), (5, -32601)]
    named = [response["error"]["message"].rpartition(" ")[2] for response in host.responses()]
    assert [named[at] for at in (0, 3, 4)] == ["sampling/createMessage", "roots/list", "no/such"]
    assert host.of(Prompt) == []
    assert call not in host.outcomes


def test_a_ping_is_answered() -> None:
    host = legacy_host()
    host.ask_client("ping", message_id=0)
    assert host.responses() == [{"jsonrpc": "2.0", "id": 0, "result": {}}]


def test_what_is_no_request_is_passed_over() -> None:
    host = legacy_host()
    assert host.give_dual(ServerAsked(message=[], new_id="n")) == []


def test_a_question_of_nobody_s_call_is_put_to_the_one_that_has_waited_longest() -> None:
    host = legacy_host(http=False)
    first, _ = host.call(), host.call()
    host.ask_client("elicitation/create", elicitation(), message_id="q")
    assert [prompt.call for prompt in host.of(Prompt)] == [first]


@pytest.mark.parametrize("task_id", [7, [1], None])
def test_a_question_of_what_cannot_be_a_task_is_its_call_s(task_id: Any) -> None:
    host, call = calling()
    params = {**elicitation(), "_meta": {RELATED: {"taskId": task_id}}}
    host.ask_client("elicitation/create", params, message_id="q", on="tools/call")
    host.answer(call, "elicitation", ACCEPTED)
    assert [response["result"] for response in host.responses()] == [ACCEPTED]


def test_a_question_that_nothing_here_can_ask_is_refused() -> None:
    host = legacy_host()
    host.ask_client("elicitation/create", elicitation(), message_id=1)
    assert host.responses()[0]["error"]["code"] == -32603


def test_lim3_a_server_may_not_ask_without_end() -> None:
    host, _ = calling(limits=RequesterLimits(ledger_keys=2))
    for number in range(3):
        host.ask_client("elicitation/create", elicitation(), message_id=number, on="tools/call")
    assert [response["error"]["data"] for response in host.responses()] == [{"reason": "ledger_keys"}]


def test_lim3_answers_that_nobody_takes_are_not_heaped_up() -> None:
    host = legacy_host(limits=RequesterLimits(calls=1, ledger_keys=2))
    for number in range(9):
        host.ask_client("ping", message_id=number)
    assert len(host.responses()) == 3


def test_lim3_a_round_whose_answer_finds_too_much_on_its_way_ends_its_call() -> None:
    """Another question of the call waits: it is not put to anybody any more."""
    host, call = calling(limits=RequesterLimits(calls=1, ledger_keys=2))
    for number in (1, 2):
        host.ask_client("elicitation/create", elicitation(), message_id=number, on="tools/call")
    for number in (3, 4):
        host.ask_client("ping", message_id=number)
    host.answer(call, "elicitation", ACCEPTED)
    assert isinstance(outcome(host, call), ObservationLost)
    assert len(host.of(Prompt)) == 1
    host.take_all()
    at_rest(host)


# -- ends while a question is open -----------------------------------------------------------------------


def asked(**options: Any) -> tuple[LegacyHost, int]:
    """Return a host with a call whose server has asked something, and the call."""
    host, call = calling(**options)
    host.ask_client("elicitation/create", elicitation(), message_id="q", on="tools/call")
    return host, call


def test_a_result_that_comes_all_the_same_withdraws_the_question() -> None:
    host, call = asked()
    host.reply("tools/call", DONE)
    assert WithdrawPrompt(call, "elicitation") in host.effects
    assert isinstance(outcome(host, call), Completed)
    assert host.responses() == []
    at_rest(host)


def test_so_does_a_connection_that_breaks() -> None:
    host, call = asked()
    host.fail("tools/call")
    assert isinstance(outcome(host, call), ObservationLost)
    at_rest(host)


@pytest.mark.parametrize("given", ["cancel", "abandon"])
def test_a_caller_that_gives_up_gives_up_the_server_s_request(given: str) -> None:
    host, call = asked()
    name = host.number_of("tools/call")
    getattr(host, given)(call)
    assert host.params_of("notifications/cancelled") == {"requestId": name}
    assert isinstance(outcome(host, call), Cancelled if given == "cancel" else ObservationLost)
    host.take_all()
    at_rest(host)


def test_a_server_may_take_its_question_back() -> None:
    host, call = asked()
    for stranger in ("x", 7, None):
        host.say("notifications/cancelled", {"requestId": stranger})
    assert host.on_show
    host.say("notifications/cancelled", {"requestId": "q"})
    assert WithdrawPrompt(call, "elicitation") in host.effects
    assert host.responses() == []
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_also_one_that_waits_for_another() -> None:
    host, call = asked()
    host.ask_client("elicitation/create", elicitation("Two?"), message_id="q2", on="tools/call")
    host.say("notifications/cancelled", {"requestId": "q2"})
    host.answer(call, "elicitation", ACCEPTED)
    assert len(host.of(Prompt)) == 1
    assert [response["id"] for response in host.responses()] == ["q"]


def test_an_answer_that_does_not_get_there_is_the_end_of_the_call() -> None:
    host, call = asked()
    host.answer(call, "elicitation", ACCEPTED)
    host.answer_http("response", 500)
    assert isinstance(outcome(host, call), ObservationLost)
    host.take_all()
    at_rest(host)


def test_unless_the_call_is_over() -> None:
    host, call = asked()
    host.answer(call, "elicitation", ACCEPTED)
    host.reply("tools/call", DONE)
    host.fail("response")
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_a_state_of_a_round_that_is_unknown_is_refused() -> None:
    host = legacy_host()
    call = host.ask("prompts/get", {"name": "a", "requestState": "2025-11-25:9"})
    assert outcome(host, call).code == -32602
    assert host.in_flight == {}
    host.ask("prompts/get", {"name": "a", "requestState": "mine"})
    assert host.waiting("prompts/get")


def test_nor_can_somebody_else_answer_for_a_call() -> None:
    host, call = asked()
    host.ask("prompts/get", {"name": "a", "requestState": f"2025-11-25:{host.number_of('tools/call')}"})
    assert host.responses() == []
    host.cancel(call)


def test_a_call_that_waits_for_another_session_asks_nothing() -> None:
    host = legacy_host()
    host.call()
    host.answer_http("tools/call", 404)
    assert host.waiting("GET") == []  # it went with its session
    host.ask_client("elicitation/create", elicitation(), message_id=1)
    assert host.responses()[0]["error"]["code"] == -32603
    host.greet(session="s-2")
    assert len(host.waiting("tools/call")) == 1


def test_req4_an_answer_goes_to_its_own_question_and_no_other_sessions() -> None:
    host = legacy_host()
    call = host.call()
    host.ask_client("elicitation/create", elicitation(), message_id=1)
    host.answer_http("tools/call", 404)
    host.greet(session="s-2")
    host.ask_client("elicitation/create", elicitation("Sure?"), message_id=1, on="tools/call")
    host.answer(call, "elicitation", ACCEPTED)
    assert host.responses() == []
    host.answer(call, "elicitation.2", DECLINED)
    assert [response["result"] for response in host.responses()] == [DECLINED]


def test_several_calls_are_told_apart() -> None:
    host = legacy_host()
    one, two = host.call(), host.call()
    first, second = host.waiting("tools/call")
    host.ask_client("elicitation/create", elicitation(), message_id=1, on=second)
    host.ask_client("elicitation/create", elicitation(), message_id=2, on=first)
    host.answer(one, "elicitation", DECLINED)
    host.answer(two, "elicitation", ACCEPTED)
    assert {response["id"]: response["result"] for response in host.responses()} == {1: ACCEPTED, 2: DECLINED}
    host.cancel(one)
    host.reply(second, DONE)
    assert isinstance(outcome(host, two), Completed)


# -- which calls become tasks ------------------------------------------------------------------------------


@pytest.mark.parametrize("support", ["optional", "required", "forbidden", None, "sometimes"])
def test_leg3_a_call_asks_for_a_task_where_capability_and_tool_allow_it(support: str | None) -> None:
    host = server_of_tasks(support)
    host.call()
    params = host.params_of("tools/call")
    assert ("task" in params) is (support in ("optional", "required"))


def test_leg3_nor_where_this_side_has_none() -> None:
    host = server_of_tasks(tasks=False)
    host.call()
    assert "task" not in host.params_of("tools/call")


def test_trap22_a_plain_result_is_one() -> None:
    """Trap 22, and a server that ignores the hint."""
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_a_call_with_the_hint_that_is_refused() -> None:
    host = server_of_tasks()
    call = host.call()
    host.refuse("tools/call", -32601)
    assert isinstance(outcome(host, call), Failed)


@pytest.mark.parametrize("requests", [{}, {"tools": {}}, {"sampling": {"createMessage": {}}}])
def test_leg3_nor_where_the_server_runs_no_tools_as_tasks(requests: Any) -> None:
    host = legacy_host({"tools": {}, "tasks": {"requests": requests}}, http=False)
    host.call()
    assert host.flight() == ["tools/call"]


def test_the_tools_are_listed_once_for_all_calls_that_have_to_know() -> None:
    host = legacy_host(CAPABILITIES, http=False)
    host.call("render")
    host.call("greet")
    given_up = host.call("other")
    assert host.flight() == ["tools/list"]
    assert host.params_of("tools/list") == {}
    host.cancel(given_up)
    host.reply("tools/list", {**tools(render="required"), "nextCursor": "2"})
    assert host.params_of("tools/list") == {"cursor": "2"}
    host.reply("tools/list", {"tools": [1, {"name": 7}, *tools(greet=None)["tools"]]})
    sent = [host.in_flight[number].message["params"] for number in host.waiting("tools/call")]
    assert [("task" in params, params["name"]) for params in sent] == [(True, "render"), (False, "greet")]
    host.call("unheard-of")
    unheard_of = host.params_of(host.waiting("tools/call")[2])
    assert ("task" in unheard_of, unheard_of["name"]) == (False, "unheard-of")


def test_tools_that_cannot_be_listed_are_called_plainly() -> None:
    host = legacy_host(CAPABILITIES, http=False)
    host.call()
    host.refuse("tools/list", -32603)
    assert "task" not in host.params_of("tools/call")


def test_nor_are_tools_listed_for_ever() -> None:
    host = legacy_host(CAPABILITIES, http=False, limits=RequesterLimits(request_timeout_ms=1_000))
    host.call()
    host.advance(1_000)
    assert host.flight() == ["tools/call"]


def test_lim3_a_list_without_end_is_not_read_to_it() -> None:
    host = legacy_host(CAPABILITIES, http=False, limits=RequesterLimits(tool_pages=2))
    host.call()
    host.reply("tools/list", {"tools": {}, "nextCursor": "more"})
    host.reply("tools/list", {"tools": 7, "nextCursor": "more"})
    assert host.flight() == ["tools/call"]


def test_tools_that_change_are_listed_anew() -> None:
    host = server_of_tasks(http=False)
    host.say("notifications/tools/list_changed")
    host.call()
    assert host.flight() == ["tools/list"]


def test_as_often_as_they_change() -> None:
    host = legacy_host(CAPABILITIES, http=False)
    for _ in range(3):
        host.call()
        assert host.flight()[-1] == "tools/list"
        host.reply("tools/list", tools(render="optional"))
        assert host.flight()[-1] == "tools/call"
        host.say("notifications/tools/list_changed")


def test_a_list_that_is_refused_teaches_nothing() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tools/list")
    host.refuse("tools/list", -32603)
    assert isinstance(outcome(host, call), Failed)


def test_a_handle_is_the_modern_one() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", {**nested(ttl=None), "_meta": {"note": 1}})
    assert host.references[call]["ttlMs"] is None
    assert host.references[call]["pollIntervalMs"] == 1_000
