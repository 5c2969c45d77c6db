"""Tasks of a legacy server and their questions, as a requester sees them; traps 20, 21, 23 and 24.

LEG.3, LEG.4, LEG.5, LEG.6, LEG.7, LEG.8.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    HttpReply,
    ObservationLost,
    Prompt,
    RequesterLimits,
    ShowView,
    WithdrawPrompt,
)
from mcp_tasks_proto.requester.outcomes import fault_of
from mcp_tasks_proto.wire.jsonrpc import request_message
from tests.unit.legacy_requester_world import (
    CAPABILITIES,
    PLAIN,
    RELATED,
    LegacyHost,
    elicitation,
    legacy_host,
    legacy_task,
    make_dual,
    nested,
    outcome,
    related,
    server_of_tasks,
)
from tests.unit.requester_world import ACCEPTED, DECLINED, DONE, OTHER, TASK, at_rest, form

FINAL = {**DONE, "resultType": "complete"}


def following(**options: Any) -> tuple[LegacyHost, int]:
    """Return a host whose call has become a task, and the call. The server has no GET stream."""
    host = server_of_tasks(**options)
    call = host.call()
    host.reply("tools/call", nested())
    if host.engine.http:
        host.answer_http("GET", 405)
    return host, call


def poll(host: LegacyHost, status: str, **more: Any) -> None:
    """Wait for the next poll, and answer it."""
    host.advance(1_000)
    host.reply("tasks/get", legacy_task(status, **more))


def asked(**options: Any) -> tuple[LegacyHost, int, str]:
    """Return a host with a task that asks something, its call, and the key of the question."""
    host, call = following(**options)
    poll(host, "input_required", at=1)
    host.ask_client("elicitation/create", related(elicitation()), message_id="q", on="tasks/result")
    return host, call, host.of(Prompt)[-1].key


def ask_again(host: LegacyHost) -> None:
    """Have the stream of the question break, and the server ask the same once more."""
    host.fail("tasks/result")
    poll(host, "input_required", at=1)
    host.ask_client("elicitation/create", related(elicitation()), message_id="q2", on="tasks/result")


# -- how it stands, and how it ends ------------------------------------------------------------------------


def test_leg3_a_nested_handle_is_watched_in_modern_words() -> None:
    host, call = following()
    assert host.references[call]["ttlMs"] == 60_000
    poll(host, "working", at=1, statusMessage="Half")
    view = host.of(ShowView)[-1].view
    assert (view.status.value, view.status_message, view.ttl_ms) == ("working", "Half", 60_000)
    assert host.legacy_params_sent("tasks/get") == [{"taskId": TASK}]


def test_leg4_the_result_is_fetched_once_the_task_is_completed() -> None:
    host, call = following()
    poll(host, "completed")
    assert host.flight() == ["tasks/result"]
    assert host.params_of("tasks/result") == {"taskId": TASK}
    host.reply("tasks/result", related({**DONE, "_meta": {"mine": 1}} | {"isError": False}))
    result = outcome(host, call).result
    assert result == {**FINAL, "isError": False}
    at_rest(host)


def test_other_metadata_of_a_result_is_kept() -> None:
    host, call = following()
    poll(host, "completed")
    host.reply("tasks/result", {**DONE, "_meta": {"mine": 1, RELATED: {"taskId": TASK}}})
    assert outcome(host, call).result["_meta"] == {"mine": 1}


def test_metadata_that_is_no_object_is_left_out() -> None:
    host, call = following()
    poll(host, "completed")
    host.reply("tasks/result", {**DONE, "_meta": 7})
    assert outcome(host, call) == Completed(FINAL)


def test_trap21_the_payload_of_a_failed_tool_reaches_its_caller() -> None:
    """Trap 21; LEG.6, LIFE.2: ``failed`` with an ``isError`` result is completed."""
    host, call = following()
    poll(host, "failed", statusMessage="The tool said no.")
    host.reply("tasks/result", related({**DONE, "isError": True}))
    assert outcome(host, call) == Completed({**FINAL, "isError": True})


def test_trap21_also_where_the_result_does_not_say_so() -> None:
    host, call = following()
    poll(host, "failed")
    host.reply("tasks/result", related({"structuredContent": {"a": 1}}))
    assert outcome(host, call).result["isError"] is True


def test_leg4_a_protocol_error_is_the_outcome() -> None:
    host, call = following()
    poll(host, "failed", statusMessage="no")
    host.refuse("tasks/result", -32050, "broken", data={"part": "wheel"})
    failed = outcome(host, call)
    assert (failed.code, failed.message, failed.data) == (-32050, "broken", {"part": "wheel"})


def test_leg4_also_of_a_task_that_is_said_to_be_completed() -> None:
    host, call = following()
    poll(host, "completed")
    host.refuse("tasks/result", -32050, "broken")
    assert outcome(host, call) == Failed(code=-32050, message="broken", fault=Fault.SERVER)


def test_a_failure_without_a_payload_is_told_by_its_status() -> None:
    host, call = following()
    poll(host, "failed", statusMessage="the mill has no wheel")
    host.reply("tasks/result", related({}))
    assert outcome(host, call) == Failed(code=None, message="the mill has no wheel", fault=Fault.SERVER)


def test_leg5_cancelled_needs_no_result() -> None:
    host, call = following()
    poll(host, "cancelled")
    assert isinstance(outcome(host, call), Cancelled)
    assert host.all_sent("tasks/result") == []
    at_rest(host)


def test_trap23_a_task_that_is_gone_is_expired() -> None:
    """Trap 23: for a blocked ``tasks/result`` as well."""
    host, call, _ = asked()
    host.refuse("tasks/result", -32602)
    host.advance(1_000)
    host.refuse("tasks/get", -32602)
    assert isinstance(outcome(host, call), Expired)
    at_rest(host)


def test_req3_a_result_that_does_not_come_through_is_fetched_again() -> None:
    host, call = following()
    poll(host, "completed")
    host.fail("tasks/result")
    assert call not in host.outcomes
    poll(host, "completed")
    host.reply("tasks/result", related())
    assert isinstance(outcome(host, call), Completed)


def test_req3_nor_one_that_is_slow() -> None:
    host, call = following(limits=RequesterLimits(request_timeout_ms=500))
    poll(host, "completed")
    host.advance(500)
    assert host.flight() == ["notifications/cancelled"]
    host.take_all()
    poll(host, "completed")
    host.reply("tasks/result", related())
    assert isinstance(outcome(host, call), Completed)


@pytest.mark.parametrize("code", [-32603, -32602, -32600])
def test_req3_a_server_that_fails_to_give_a_result_is_asked_again(code: int) -> None:
    """The request of a completed task was successful: this is trouble with ``tasks/result``."""
    host, call = following()
    poll(host, "completed")
    host.refuse("tasks/result", code, "the store did not answer")
    assert call not in host.outcomes
    poll(host, "completed")
    host.reply("tasks/result", related())
    assert outcome(host, call) == Completed(FINAL)
    at_rest(host)


def test_req3_a_server_that_never_gives_it_is_asked_ever_later_and_then_taken_at_its_word() -> None:
    host, call = following(limits=RequesterLimits(result_attempts=4))
    asked_ms = []
    while call not in host.outcomes:
        host.advance(500)
        if host.waiting("tasks/get"):
            asked_ms.append(host.now)
            host.reply("tasks/get", legacy_task("completed"))
            host.refuse("tasks/result", -32603, "down", data={"reason": "disk"})
    assert [later - earlier for earlier, later in pairwise(asked_ms)] == [1_000, 1_000, 2_000]
    assert outcome(host, call) == Failed(
        code=-32603, message="down", data={"reason": "disk"}, fault=Fault.SERVER
    )
    at_rest(host)


def test_req3_a_caller_who_does_not_wait_so_long_is_told_why() -> None:
    host, call = following()
    poll(host, "completed")
    host.refuse("tasks/result", -32603, "down")
    host.abandon(call)
    assert isinstance(outcome(host, call), ObservationLost)


def test_req3_what_is_asked_beside_it_does_not_count() -> None:
    """Whoever looks at the same task in the same moment makes the server no more trouble than it has."""
    host, call = following(limits=RequesterLimits(result_attempts=2))
    poll(host, "completed")
    for _ in range(3):
        look = host.ask("tasks/get", {"taskId": TASK})
        host.reply("tasks/get", legacy_task("completed"))
        host.refuse(host.waiting("tasks/result")[-1], -32603)
        assert outcome(host, look).code == -32603
    host.refuse("tasks/result", -32603)
    assert call not in host.outcomes
    poll(host, "completed")
    host.refuse("tasks/result", -32603, "down")
    assert isinstance(outcome(host, call), Failed)


def test_req3_of_a_task_that_has_expired_between_two_requests_its_caller_hears_so() -> None:
    host, call = following()
    poll(host, "completed")
    host.refuse("tasks/result", -32602, "no such task")
    host.advance(1_000)
    host.refuse("tasks/get", -32602, "no such task")
    assert isinstance(outcome(host, call), Expired)


@pytest.mark.parametrize("code", [-32603, -32602, -32600])
def test_leg4_a_task_that_has_failed_may_have_failed_with_any_error(code: int) -> None:
    host, call = following()
    poll(host, "failed")
    host.refuse("tasks/result", code, "broken")
    assert outcome(host, call) == Failed(code=code, message="broken", fault=fault_of(code))


@pytest.mark.parametrize("status", ["completed", "failed"])
@pytest.mark.parametrize("http_status", [500, 503])
def test_req3_an_http_status_that_says_that_the_server_failed_is_about_the_server(
    status: str, http_status: int
) -> None:
    host, call = following()
    poll(host, status)
    stopping = HttpReply(status=http_status, retry_after_ms=5_000)
    host.refuse("tasks/result", -32603, "shutting down", http=stopping)
    host.advance(4_999)
    assert host.waiting("tasks/get") == []
    host.advance(1)
    host.reply("tasks/get", legacy_task(status))
    host.refuse("tasks/result", -32050, "broken", http=HttpReply(status=200))
    assert outcome(host, call) == Failed(code=-32050, message="broken", fault=Fault.SERVER)


def test_req3_one_that_wants_other_credentials_says_nothing_of_the_task() -> None:
    host, call = following()
    for _ in range(2):
        poll(host, "failed")
        host.refuse("tasks/result", -32600, "who are you?", http=HttpReply(status=401))
    lost = outcome(host, call)
    assert isinstance(lost, ObservationLost)
    assert (lost.fault, lost.http_status) == (Fault.CALLER, 401)


def test_req3_who_only_looks_at_a_task_is_told_what_the_server_says() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/get", {"taskId": OTHER})
    host.reply("tasks/get", legacy_task("completed", task_id=OTHER))
    host.refuse("tasks/result", -32603, "down")
    failed = outcome(host, call)
    assert (failed.code, "down (-32603)" in failed.message) == (-32603, True)
    at_rest(host)


def test_req3_who_waits_for_the_end_on_an_open_stream_asks_again_likewise() -> None:
    host, call, _ = asked()
    poll(host, "completed", at=2)
    host.refuse("tasks/result", -32603, "down")
    assert call not in host.outcomes
    poll(host, "completed", at=2)
    host.reply("tasks/result", related())
    assert outcome(host, call) == Completed(FINAL)


def test_req3_what_is_said_on_an_open_stream_is_the_end_likewise_when_it_is_not_asked_again() -> None:
    host, call, _ = asked(limits=RequesterLimits(result_attempts=1))
    poll(host, "completed", at=2)
    host.refuse("tasks/result", -32603, "down")
    assert outcome(host, call) == Failed(code=-32603, message="down", fault=Fault.SERVER)


def test_req3_a_poll_that_fails_is_not_the_end() -> None:
    host, call = following()
    host.advance(1_000)
    host.fail("tasks/get")
    assert call not in host.outcomes
    poll(host, "cancelled")
    assert isinstance(outcome(host, call), Cancelled)


# -- one request about a task ----------------------------------------------------------------------------


def test_a_task_that_is_only_looked_at_is_asked_nothing() -> None:
    """Whoever opens ``tasks/result`` takes the questions; that is for who follows the task."""
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/get", {"taskId": OTHER})
    host.reply("tasks/get", legacy_task("input_required", task_id=OTHER))
    result = outcome(host, call).result
    assert (result["status"], result["ttlMs"]) == ("input_required", 60_000)
    assert host.in_flight == {}


def test_a_task_that_is_only_looked_at_shows_its_result() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/get", {"taskId": OTHER})
    host.reply("tasks/get", legacy_task("completed", task_id=OTHER))
    host.reply("tasks/result", related(task_id=OTHER))
    assert outcome(host, call).result["result"] == FINAL


def test_a_request_that_is_not_as_it_should_be_is_the_server_s_to_refuse() -> None:
    host = legacy_host(CAPABILITIES)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        call = host.ask(method, {"taskId": [1], "inputResponses": {}})
        assert host.params_of(method)["taskId"] == [1]
        host.refuse(method, -32602)
        assert outcome(host, call).code == -32602


def test_req7_it_can_be_given_up_as_any_other() -> None:
    host = legacy_host(CAPABILITIES)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        host.cancel(host.ask(method, {"taskId": [1]}))
        assert host.flight() == ["notifications/cancelled"]
        host.take_all()
    at_rest(host)


def test_so_is_an_update_without_answers() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/update", {"taskId": OTHER})
    host.refuse("tasks/update", -32602)
    assert outcome(host, call).code == -32602


def test_nobody_answers_for_a_task_that_is_not_followed_here() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/update", {"taskId": OTHER, "inputResponses": {}})
    message = "Invalid params: a task of a 2025-11-25 server is answered by whoever follows it"
    assert outcome(host, call) == Failed(code=-32602, message=message, fault=Fault.CALLER)


def test_a_time_to_live_that_is_left_out_is_unlimited() -> None:
    """LIFE.5"""
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/get", {"taskId": OTHER})
    task = legacy_task(task_id=OTHER)
    del task["ttl"]
    host.reply("tasks/get", task)
    assert outcome(host, call).result["ttlMs"] is None


# -- cancelling ------------------------------------------------------------------------------------------


def test_leg5_cancel_is_acknowledged() -> None:
    host, call = following()
    host.cancel(call, wait=True)
    host.reply("tasks/cancel", legacy_task("cancelled"))
    poll(host, "cancelled")
    assert isinstance(outcome(host, call), Cancelled)
    at_rest(host)


def test_leg5_the_acknowledgement_is_an_empty_result() -> None:
    """CAN.6"""
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/cancel", {"taskId": OTHER})
    assert host.params_of("tasks/cancel") == {"taskId": OTHER}
    host.reply("tasks/cancel", legacy_task("cancelled", task_id=OTHER))
    assert outcome(host, call) == Completed({"resultType": "complete"})


def test_leg5_a_task_that_has_ended_already_is_an_acknowledgement() -> None:
    """CAN.6: -32602 there, an empty result here."""
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/cancel", {"taskId": OTHER})
    host.refuse("tasks/cancel", -32602, "already completed")
    assert host.params_of("tasks/get") == {"taskId": OTHER}
    host.reply("tasks/get", legacy_task("completed", task_id=OTHER))
    assert outcome(host, call) == Completed({"resultType": "complete"})


@pytest.mark.parametrize("looked_up", [False, True])
def test_req7_a_wish_to_cancel_can_be_given_up(looked_up: bool) -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/cancel", {"taskId": OTHER})
    if looked_up:
        host.refuse("tasks/cancel", -32602)
    host.cancel(call)
    assert host.flight() == ["notifications/cancelled"]


def test_leg7_an_unknown_one_is_refused() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/cancel", {"taskId": OTHER})
    host.refuse("tasks/cancel", -32602, "Task not found", http=HttpReply(status=400))
    host.refuse("tasks/get", -32602)
    failed = Failed(code=-32602, message="Task not found", fault=Fault.CALLER, http_status=400)
    assert outcome(host, call) == failed


def test_another_error_is_one() -> None:
    host = legacy_host(CAPABILITIES)
    call = host.ask("tasks/cancel", {"taskId": OTHER})
    host.refuse("tasks/cancel", -32603)
    assert outcome(host, call).code == -32603
    other = host.ask("tasks/cancel", {"taskId": OTHER})
    host.fail("tasks/cancel")
    assert isinstance(outcome(host, other), ObservationLost)


def test_where_the_server_cannot_cancel_nothing_is_sent() -> None:
    host = legacy_host({"tasks": {"list": {}}})
    call = host.ask("tasks/cancel", {"taskId": OTHER})
    message = "Method not found: tasks/cancel"
    assert outcome(host, call) == Failed(code=-32601, message=message, fault=Fault.CALLER)
    assert host.in_flight == {}


def test_req7_a_wish_to_cancel_outlives_a_session_that_says_nothing_of_tasks() -> None:
    """A proxy may say so for a while, as long as it does not reach the server behind it."""
    host, call = following()
    host.cancel(call, wait=True)
    host.answer_http("tasks/cancel", 404)
    host.greet(PLAIN, session="s-2")
    host.refuse("tasks/cancel", -32603)
    host.advance(500)
    host.reply("tasks/cancel", legacy_task("cancelled"))
    poll(host, "cancelled")
    assert isinstance(outcome(host, call), Cancelled)


# -- questions ---------------------------------------------------------------------------------------------


def test_leg8_a_task_that_waits_for_input_has_its_result_stream_opened_and_asks_on_it() -> None:
    host, call, key = asked()
    assert host.of(Prompt) == [Prompt(call=call, key=key, request=form())]
    view = host.of(ShowView)[-1].view
    assert view.input_requests == {key: form()}
    host.answer(call, key, ACCEPTED)
    assert host.responses() == [
        {"jsonrpc": "2.0", "id": "q", "result": {**ACCEPTED, "_meta": {RELATED: {"taskId": TASK}}}}
    ]
    host.take_all()
    poll(host, "working", at=2)
    poll(host, "completed", at=3)
    host.reply("tasks/result", related())
    assert outcome(host, call) == Completed(FINAL)
    assert len(host.all_sent("tasks/result")) == 1
    at_rest(host)


def test_trap24_one_result_stream_however_often_it_is_seen_to_wait() -> None:
    """Trap 24."""
    host, _, _ = asked()
    for second in range(2, 6):
        poll(host, "input_required", at=second)
    assert len(host.all_sent("tasks/result")) == 1
    assert len(host.of(Prompt)) == 1


def test_a_question_that_comes_late_is_in_the_next_view() -> None:
    host, _ = following(limits=RequesterLimits(question_wait_ms=200))
    poll(host, "input_required", at=1)
    assert host.of(Prompt) == []
    host.advance(200)
    assert host.of(ShowView)[-1].view.input_requests is None
    host.ask_client("elicitation/create", related(elicitation()), on="tasks/result")
    poll(host, "input_required", at=1)
    assert len(host.of(Prompt)) == 1


def test_a_poll_that_waits_for_a_question_may_be_given_up() -> None:
    host, call = following()
    poll(host, "input_required", at=1)
    host.abandon(call)
    host.take_all()
    at_rest(host)


def test_leg8_a_question_may_come_on_any_stream() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    poll(host, "input_required", at=1)
    host.ask_client("elicitation/create", related(elicitation()), message_id=4, on="GET")
    host.answer(call, host.of(Prompt)[0].key, DECLINED)
    assert host.responses()[0]["id"] == 4


def test_a_server_that_asks_without_saying_that_its_task_waits() -> None:
    host, call = following()
    host.ask_client("elicitation/create", related(elicitation()), message_id="q")
    poll(host, "working", at=1)
    assert host.of(ShowView)[-1].view.status.value == "input_required"
    host.answer(call, host.of(Prompt)[0].key, ACCEPTED)
    assert host.responses()[0]["id"] == "q"


def test_a_question_that_its_task_no_longer_waits_for_is_withdrawn() -> None:
    host, call, key = asked()
    poll(host, "working", at=2)
    assert WithdrawPrompt(call, key) in host.effects
    assert host.responses() == []


def test_one_that_was_taken_back_stays_so_however_its_task_goes_on() -> None:
    host, _ = following()
    host.ask_client("elicitation/create", related(elicitation()), message_id="q")
    host.say("notifications/cancelled", {"requestId": "q"})
    for second in (1, 2):
        poll(host, "working", at=second)
    assert host.of(ShowView)[-1].view.status.value == "working"
    assert host.of(Prompt) == []


def test_a_server_may_take_its_question_back() -> None:
    host, call, key = asked()
    host.say("notifications/cancelled", {"requestId": "other"})
    poll(host, "input_required", at=2)
    assert host.of(WithdrawPrompt) == []
    host.say("notifications/cancelled", {"requestId": "q"})
    poll(host, "input_required", at=3)
    host.advance(2_000)
    assert WithdrawPrompt(call, key) in host.effects


def test_inp1_what_is_asked_twice_has_two_keys() -> None:
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.take_all()
    poll(host, "working", at=2)
    host.ask_client("elicitation/create", related(elicitation()), message_id="q2", on="tasks/result")
    poll(host, "input_required", at=3)
    assert [prompt.key for prompt in host.of(Prompt)] == [key, f"{key}.2"]


def test_inp1_also_at_the_same_time() -> None:
    host, _, key = asked()
    host.ask_client("elicitation/create", related(elicitation()), message_id="q2", on="tasks/result")
    poll(host, "input_required", at=2)
    assert [prompt.key for prompt in host.of(Prompt)] == [key, f"{key}.2"]


def test_several_at_once_are_answered_one_at_a_time() -> None:
    host, call, key = asked()
    host.ask_client("elicitation/create", related(elicitation("Age?")), message_id="q2", on="tasks/result")
    poll(host, "input_required", at=1)
    other = host.of(Prompt)[1].key
    host.answer(call, other, ACCEPTED)
    host.answer(call, key, DECLINED)
    assert [response["id"] for response in host.responses()] == ["q2"]
    host.take_all()
    assert [response["id"] for response in host.responses()] == ["q2", "q"]
    host.take_all()
    poll(host, "input_required", at=2)
    host.advance(2_000)  # the next question may be on its way
    assert host.of(ShowView)[-1].view.input_requests == {}


def test_answers_that_wait_together_go_together() -> None:
    host, call, key = asked()
    for number, text in enumerate(("A?", "B?")):
        host.ask_client("elicitation/create", related(elicitation(text)), message_id=number)
    poll(host, "input_required", at=1)
    _, second, third = (prompt.key for prompt in host.of(Prompt))
    for one in (key, second, third):
        host.answer(call, one, ACCEPTED)
    host.take_all()
    first, last = host.waiting("response")
    host.answer_http(first, 202)
    host.fail(last)
    host.advance(500)
    assert [response["id"] for response in host.responses()] == ["q", 0, 1, 1]
    host.take_all()
    host.advance(5_000)
    assert len(host.responses()) == 4


def test_an_answer_that_does_not_get_there_is_sent_again() -> None:
    """REQ.4: nobody is asked twice for it."""
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.answer_http("response", 503)
    host.advance(500)
    assert [response["id"] for response in host.responses()] == ["q", "q"]
    host.take_all()
    assert len(host.of(Prompt)) == 1


def test_who_answers_hears_that_it_did_not_get_there() -> None:
    """UPD.3"""
    host, _, key = asked()
    update = host.ask("tasks/update", {"taskId": TASK, "inputResponses": {key: ACCEPTED}})
    host.fail("response")
    assert outcome(host, update) == ObservationLost("an answer did not reach the server")


def test_keys_that_are_not_asked_are_passed_over() -> None:
    """UPD.3"""
    host, _, key = asked()
    update = host.ask("tasks/update", {"taskId": TASK, "inputResponses": {"other": ACCEPTED}})
    assert outcome(host, update) == Completed({"resultType": "complete"})
    again = host.ask("tasks/update", {"taskId": TASK, "inputResponses": {key: ACCEPTED}})
    host.take_all()
    assert outcome(host, again) == Completed({"resultType": "complete"})


def test_a_client_without_anybody_to_ask_leaves_questions_to_others() -> None:
    host, _ = following(capabilities={})
    poll(host, "input_required", at=1)
    assert host.all_sent("tasks/result") == []
    assert host.of(ShowView)[-1].view.status.value == "input_required"


@pytest.mark.parametrize("kind", ["elicitation", "sampling", "roots"])
def test_a_client_with_anybody_to_ask_has_a_task_that_waits_ask(kind: str) -> None:
    host, _ = following(capabilities={kind: {}})
    poll(host, "input_required", at=1)
    assert host.flight() == ["tasks/result"]


def test_lim3_a_task_may_not_ask_without_end() -> None:
    host, _ = following(limits=RequesterLimits(ledger_keys=1))
    for number in (1, 2):
        host.ask_client("elicitation/create", related(elicitation(f"{number}?")), message_id=number)
    assert [response["error"]["data"] for response in host.responses()] == [{"reason": "ledger_keys"}]


def test_a_question_that_is_more_than_json_is_asked_all_the_same() -> None:
    """A host may parse by itself."""
    host, _ = following()
    host.ask_client("elicitation/create", related(elicitation(more=float("nan"))))
    poll(host, "input_required", at=1)
    assert [prompt.key for prompt in host.of(Prompt)] == ["elicitation.0"]


# -- streams that break ------------------------------------------------------------------------------------


def test_a_stream_that_breaks_is_opened_again_and_nobody_is_asked_twice() -> None:
    """REQ.4: the server asks again under another id."""
    host, call, key = asked()
    host.fail("tasks/result")
    poll(host, "input_required", at=1)
    assert len(host.all_sent("tasks/result")) == 2
    host.ask_client("elicitation/create", related(elicitation()), message_id="q2", on="tasks/result")
    host.answer(call, key, ACCEPTED)
    assert [response["id"] for response in host.responses()] == ["q2"]
    assert len(host.of(Prompt)) == 1


def test_inp1_what_is_asked_twice_after_a_stream_broke_has_two_keys() -> None:
    """Only the first of them can be what was asked before it did."""
    host, _, key = asked()
    host.fail("tasks/result")
    poll(host, "input_required", at=1)
    for message_id in ("q2", "q3"):
        host.ask_client("elicitation/create", related(elicitation()), message_id=message_id)
    poll(host, "input_required", at=2)
    assert [prompt.key for prompt in host.of(Prompt)] == [key, f"{key}.2"]


def test_what_was_answered_as_the_stream_broke_is_answered_again() -> None:
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.take_all()
    ask_again(host)
    host.take_all()
    assert [response["id"] for response in host.responses()] == ["q", "q2"]
    assert len(host.of(Prompt)) == 1


def test_inp1_an_answer_that_is_on_its_way_is_not_sent_beside_itself() -> None:
    host, _, key = asked()
    answer = {"taskId": TASK, "inputResponses": {key: ACCEPTED}}
    updates = [host.ask("tasks/update", answer) for _ in range(2)]
    assert [response["id"] for response in host.responses()] == ["q"]
    host.take_all()
    for update in updates:
        assert outcome(host, update) == Completed({"resultType": "complete"})
    assert len(host.responses()) == 1


def test_upd5_what_becomes_of_an_answer_to_what_was_asked_again_since_says_nothing() -> None:
    host, _, key = asked()
    update = host.ask("tasks/update", {"taskId": TASK, "inputResponses": {key: ACCEPTED}})
    ask_again(host)
    first, second = host.waiting("response")
    host.answer_http(first, 503)
    assert update not in host.outcomes
    host.answer_http(second, 202)
    assert outcome(host, update) == Completed({"resultType": "complete"})


def test_upd3_an_answer_that_was_taken_and_is_asked_for_again_is_sent_until_it_gets_there() -> None:
    """Who answered has heard that it did, and does not come again."""
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.take_all()
    ask_again(host)
    for number in (1, 2):
        assert [response["id"] for response in host.responses()] == ["q", *(["q2"] * number)]
        host.answer_http("response", 503)
        poll(host, "input_required", at=1)
    host.take_all()
    poll(host, "input_required", at=2)
    assert len(host.responses()) == 4
    assert len(host.of(Prompt)) == 1


def test_upd3_an_answer_that_was_taken_stays_the_answer() -> None:
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.take_all()
    ask_again(host)
    host.answer_http("response", 503)
    host.ask("tasks/update", {"taskId": TASK, "inputResponses": {key: DECLINED}})
    assert host.responses()[-1]["result"] == related(ACCEPTED)


@pytest.mark.parametrize("taken", [True, False])
def test_the_same_request_that_comes_once_more_has_one_response(taken: bool) -> None:
    """A stream that is taken up again may bring it anew; a server may refuse the second response to it."""
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    if taken:
        host.take_all()
    host.ask_client("elicitation/create", related(elicitation()), message_id="q", on="tasks/result")
    assert len(host.responses()) == 1
    host.take_all()
    poll(host, "working", at=2)
    assert host.of(ShowView)[-1].view.status.value == "working"


def test_lim3_an_answer_that_finds_too_much_on_its_way_has_not_got_there() -> None:
    host, _, key = asked(limits=RequesterLimits(calls=2, ledger_keys=1))
    for number in range(3):
        host.ask_client("ping", message_id=number)
    update = host.ask("tasks/update", {"taskId": TASK, "inputResponses": {key: ACCEPTED}})
    assert outcome(host, update) == ObservationLost("an answer did not reach the server")


def test_the_same_request_on_two_streams_is_one_question() -> None:
    host, call, key = asked()
    host.ask_client("elicitation/create", related(elicitation()), message_id="q")
    host.answer(call, key, ACCEPTED)
    assert len(host.responses()) == 1


def test_what_was_asked_before_an_answer_and_its_task_went_on_is_another_question() -> None:
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.take_all()
    poll(host, "working", at=2)
    host.fail("tasks/result")
    poll(host, "input_required", at=3)
    host.ask_client("elicitation/create", related(elicitation()), message_id="q2", on="tasks/result")
    assert [prompt.key for prompt in host.of(Prompt)] == [key, f"{key}.2"]


def test_questions_of_a_session_that_is_lost_may_be_asked_again() -> None:
    host, call, key = asked(http=False)
    host.die()
    host.fail("tasks/result", "the server ended")
    host.advance(1_000)
    host.greet()
    host.reply("tasks/get", legacy_task("input_required", at=1))
    host.ask_client("elicitation/create", related(elicitation()), message_id=1)
    host.answer(call, key, ACCEPTED)
    assert [response["id"] for response in host.responses()] == [1]


def test_req4_an_answer_goes_to_its_own_question_and_no_other_sessions() -> None:
    """A server counts anew in each session: the same id is another question there."""
    host, call, key = asked()
    host.ask("resources/list")
    host.answer_http("resources/list", 404)
    host.greet(session="s-2")
    host.answer_http("tasks/result", 404)
    other = related(elicitation("Sure?"))
    host.ask_client("elicitation/create", other, message_id="q", on="tasks/result")
    host.answer(call, key, ACCEPTED)
    assert host.responses() == []
    host.ask_client("elicitation/create", related(elicitation()), message_id="next", on="tasks/result")
    assert [response["id"] for response in host.responses()] == ["next"]


def test_req4_what_a_session_that_is_gone_asks_late_is_not_asked_in_the_next() -> None:
    """Its streams may bring something when the next one stands, where the same id is another question, and
    before that."""
    host, call, key = asked()
    (late,) = host.waiting("tasks/result")
    host.ask("resources/list")
    host.answer_http("resources/list", 404)
    host.ask_client("elicitation/create", related(elicitation("Early?")), message_id="p", on=late)
    host.greet(session="s-2")
    host.ask_client("elicitation/create", related(elicitation("Late?")), message_id="q", on=late)
    poll(host, "input_required", at=2)
    host.advance(10_000)
    assert [prompt.key for prompt in host.of(Prompt)] == [key]
    host.ask_client("elicitation/create", related(elicitation()), message_id="q", on="GET")
    host.notify(late, "notifications/cancelled", {"requestId": "q"})
    host.answer(call, key, ACCEPTED)
    answers = [sent for sent in host.of(SendLegacy) if "result" in (sent.message or {})]
    assert [(sent.session, (sent.message or {})["id"]) for sent in answers] == [("s-2", "q")]


def test_req4_what_comes_on_a_stream_that_was_stopped_is_not_asked_in_the_next_session() -> None:
    """The stream of a session is stopped with it; what was on its way may yet be handed in."""
    host, call, key = asked()
    lose_session(host, "s-2")
    (stopped,) = host.waiting("GET")
    lose_session(host, "s-3")
    assert stopped not in host.in_flight
    late = request_message("q", "elicitation/create", related(elicitation("Late?")))
    host.give_dual(ServerAsked(request=stopped, message=late, new_id="late"))
    poll(host, "input_required", at=2)
    assert [prompt.key for prompt in host.of(Prompt)] == [key]
    host.ask_client("elicitation/create", related(elicitation()), message_id="q", on="GET")
    host.notify(stopped, "notifications/cancelled", {"requestId": "q"})
    host.answer(call, key, ACCEPTED)
    answers = [sent for sent in host.of(SendLegacy) if "result" in (sent.message or {})]
    assert [(sent.session, (sent.message or {})["id"]) for sent in answers] == [("s-3", "q")]


def lose_session(host: LegacyHost, another: str) -> None:
    """Have a session end, and another begin."""
    host.ask("resources/list")
    host.answer_http("resources/list", 404)
    host.greet(session=another)


def test_a_result_that_came_before_the_poll_is_kept_for_it() -> None:
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    host.take_all()
    host.reply("tasks/result", related())
    poll(host, "completed", at=2)
    assert outcome(host, call) == Completed(FINAL)
    assert len(host.all_sent("tasks/result")) == 1


def test_a_server_that_does_not_wait_with_the_result() -> None:
    """One that answers at once, with an error, is asked again when there is one."""
    host, call = following()
    poll(host, "input_required", at=1)
    host.refuse("tasks/result", -32603, "not yet")
    poll(host, "completed", at=2)
    host.reply("tasks/result", related())
    assert outcome(host, call) == Completed(FINAL)


def test_a_server_that_answers_too_early() -> None:
    host, _ = following()
    poll(host, "input_required", at=1)
    host.reply("tasks/result", related())
    poll(host, "input_required", at=2)
    assert host.of(ShowView)[-1].view.status.value == "input_required"
    assert len(host.all_sent("tasks/result")) == 1


def test_a_result_stream_that_breaks_while_the_end_waits_for_it() -> None:
    host, call, _ = asked()
    poll(host, "completed", at=2)
    assert len(host.all_sent("tasks/result")) == 1
    host.fail("tasks/result")
    poll(host, "completed", at=2)
    host.reply("tasks/result", related())
    assert isinstance(outcome(host, call), Completed)
    assert len(host.all_sent("tasks/result")) == 2


def test_req3_who_waits_for_the_end_as_well_as_one_who_gives_up_still_hears_of_it() -> None:
    host, call, _ = asked()
    looking = host.ask("tasks/get", {"taskId": TASK})
    host.reply("tasks/get", legacy_task("completed", at=2))
    poll(host, "completed", at=2)
    assert host.flight() == ["tasks/result"]
    host.cancel(looking)
    host.take_all()
    assert host.flight() == ["tasks/result"]
    assert host.params_of("tasks/result") == {"taskId": TASK}
    host.reply("tasks/result", related())
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_a_result_that_is_slow_to_come_is_asked_for_anew() -> None:
    host, call, _ = asked(limits=RequesterLimits(request_timeout_ms=500))
    poll(host, "completed", at=2)
    host.advance(500)
    assert host.flight() == ["notifications/cancelled"]
    host.take_all()
    poll(host, "completed", at=2)
    host.reply("tasks/result", related())
    assert isinstance(outcome(host, call), Completed)


def test_a_poll_that_waits_too_long_for_a_question_leaves_the_stream_for_it_open() -> None:
    host, _ = following(limits=RequesterLimits(request_timeout_ms=500))
    poll(host, "input_required", at=1)
    host.advance(500)
    assert host.flight() == ["tasks/result"]
    host.ask_client("elicitation/create", related(elicitation()), on="tasks/result")
    poll(host, "input_required", at=1)
    assert len(host.of(Prompt)) == 1


def test_trap20_cancelling_withdraws_the_question_and_a_late_end_does_not_undo_it() -> None:
    """Trap 20."""
    host, call, key = asked()
    host.cancel(call)
    assert WithdrawPrompt(call, key) in host.effects
    assert isinstance(outcome(host, call), Cancelled)
    host.refuse("tasks/cancel", -32602, "it has ended already")
    host.reply("tasks/get", legacy_task("completed"))
    assert isinstance(outcome(host, call), Cancelled)
    assert host.responses() == []
    host.take_all()
    at_rest(host)


def test_req7_a_task_that_nobody_follows_any_more_is_let_go() -> None:
    host, call, key = asked()
    host.abandon(call)
    assert WithdrawPrompt(call, key) in host.effects
    host.take_all()
    at_rest(host)


# -- another process -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "asked_again"), [("shown", True), ("sent", False)])
def test_req4_a_question_has_its_key_in_another_process_too(state: str, asked_again: bool) -> None:
    host, call, key = asked()
    reference = host.references[call]
    reference["keys"][key] = {"state": state}
    other = make_dual()
    resumed = other.resume(reference)
    other.reply("tasks/get", legacy_task("input_required", at=1))
    other.ask_client("elicitation/create", related(elicitation()), message_id=9, on="tasks/result")
    expected = key if asked_again else f"{key}.2"
    assert [(prompt.key, prompt.again) for prompt in other.of(Prompt)] == [(expected, asked_again)]
    other.answer(resumed, expected, ACCEPTED)
    assert other.responses()[0]["id"] == 9


def test_req4_an_answer_that_was_given_before_is_sent_when_its_question_comes() -> None:
    host, call, key = asked()
    host.answer(call, key, ACCEPTED)
    other = make_dual()
    other.resume(host.references[call])
    other.reply("tasks/get", legacy_task("input_required", at=1))
    other.ask_client("elicitation/create", related(elicitation()), message_id=9, on="tasks/result")
    assert other.of(Prompt) == []
    assert [response["id"] for response in other.responses()] == [9]


def test_two_calls_may_follow_two_tasks() -> None:
    host, _ = following()
    second = host.call()
    host.reply("tools/call", nested(task_id=OTHER))
    host.ask_client("elicitation/create", related(elicitation(), OTHER), message_id=2)
    host.advance(1_000)
    for number in host.waiting("tasks/get"):
        task_id = host.params_of(number)["taskId"]
        host.reply(number, legacy_task("input_required", task_id=task_id, at=1))
    host.advance(5_000)
    assert [prompt.call for prompt in host.of(Prompt)] == [second]
    host.say("notifications/cancelled", {"requestId": 2})
