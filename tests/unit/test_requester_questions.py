"""What a task asks, and what it is answered: REQ.4, INP.1 to INP.3, UPD.3 to UPD.5."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import LocalProtocolError
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    KeepReference,
    ObservationLost,
    Prompt,
    RequesterLimits,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WithdrawPrompt,
)
from mcp_tasks_proto.testing import RequesterHost
from tests.unit.requester_world import (
    ACCEPTED,
    DECLINED,
    DONE,
    HINT,
    START,
    TASK,
    asking,
    at_rest,
    completed,
    form,
    got,
    handle,
    listening,
    make_host,
    news,
    outcome,
    parked,
    polled,
    sampling,
    until_poll,
    working,
)

ACK = {"resultType": "complete"}


def updates(host: RequesterHost) -> list[dict[str, Any]]:
    """Return the answers in every update so far."""
    return [params["inputResponses"] for params in host.sent("tasks/update")]


def kept(host: RequesterHost, call: int) -> dict[str, Any]:
    """Return the ledger in the newest reference."""
    keys: dict[str, Any] = host.references[call]["keys"]
    return keys


# -- asking (REQ.4, INP.1) ---------------------------------------------------------------------------


def test_req4_a_question_is_kept_in_the_ledger_and_then_put_on_show() -> None:
    host = make_host()
    call = working(host)
    host.advance(HINT)
    effects = host.reply("tasks/get", asking("confirm", at=1))
    assert [type(effect) for effect in effects] == [ShowView, KeepReference, Prompt]
    assert effects[-1] == Prompt(call=call, key="confirm", request=form(), again=False)
    assert kept(host, call) == {"confirm": {"state": "shown"}}


def test_req4_a_question_is_shown_once_however_often_it_comes() -> None:
    host = make_host()
    parked(host, "confirm")
    for second in range(2, 6):
        polled(host, asking("confirm", at=second))
    assert len(host.of(Prompt)) == 1


def test_req4_the_answer_is_kept_sent_once_and_forgotten_when_it_is_acknowledged() -> None:
    host = make_host()
    call = parked(host, "confirm")
    effects = host.answer(call, "confirm", ACCEPTED)
    assert [type(effect) for effect in effects] == [KeepReference, SendRequest]
    assert kept(host, call) == {"confirm": {"state": "answered", "response": ACCEPTED}}
    params = host.params_of("tasks/update")
    assert (params["taskId"], params["inputResponses"]) == (TASK, {"confirm": ACCEPTED})
    host.reply("tasks/update", ACK)
    assert kept(host, call) == {"confirm": {"state": "sent"}}
    for second in range(2, 5):
        polled(host, asking("confirm", at=second))
    assert len(updates(host)) == len(host.of(Prompt)) == 1


def test_inp3_several_are_answered_one_by_one_and_together() -> None:
    """What is answered while an update is in flight goes with the next one."""
    host = make_host()
    call = parked(host, "a", "b", "c")
    host.answer(call, "b", ACCEPTED)
    host.answer(call, "c", DECLINED)
    host.answer(call, "a", ACCEPTED)
    assert updates(host) == [{"b": ACCEPTED}]
    host.reply("tasks/update", ACK)
    assert updates(host)[1:] == [{"a": ACCEPTED, "c": DECLINED}]
    host.reply("tasks/update", ACK)
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_inp3_each_round_has_its_own_keys() -> None:
    host = make_host()
    call = parked(host, "confirm")
    host.answer(call, "confirm", ACCEPTED)
    host.reply("tasks/update", ACK)
    polled(host, got(at=2))
    polled(host, asking("confirm.2", at=3))
    host.answer(call, "confirm.2", ACCEPTED)
    assert updates(host) == [{"confirm": ACCEPTED}, {"confirm.2": ACCEPTED}]


def test_inp1_a_key_that_is_used_again_is_neither_shown_nor_answered_again() -> None:
    host = make_host()
    call = parked(host, "confirm")
    host.answer(call, "confirm", ACCEPTED)
    host.reply("tasks/update", ACK)
    polled(host, got(at=2))
    again = form("Delete everything?")
    polled(host, got("input_required", at=3, inputRequests={"confirm": again}))
    assert len(host.of(Prompt)) == 1
    assert host.answer(call, "confirm", ACCEPTED) == []
    assert len(updates(host)) == 1


def test_inp1_an_answer_belongs_to_the_question_that_was_shown() -> None:
    """A server that changes a question under its key gets what the first one was answered."""
    host = make_host()
    call = parked(host, "k")
    polled(host, got("input_required", at=2, inputRequests={"k": sampling()}))
    assert len(host.of(Prompt)) == 1
    host.answer(call, "k", ACCEPTED)
    assert updates(host) == [{"k": ACCEPTED}]


def test_upd3_an_acknowledgement_may_come_before_the_view_changes() -> None:
    host = make_host()
    call = parked(host, "confirm")
    host.answer(call, "confirm", ACCEPTED)
    host.reply("tasks/update", ACK)
    polled(host, asking("confirm", at=2))
    polled(host, got(at=3))
    polled(host, completed(at=4))
    assert isinstance(outcome(host, call), Completed)
    assert len(updates(host)) == 1


def test_req4_questions_come_by_stream_as_well() -> None:
    host = make_host(listen=True)
    call = listening(host)
    news(host, "input_required", at=1, inputRequests={"k": form()})
    host.answer(call, "k", ACCEPTED)
    host.reply("tasks/update", ACK)
    news(host, "input_required", at=1, inputRequests={"k": form()})
    news(host, "completed", at=2, result=DONE)
    assert len(host.of(Prompt)) == len(updates(host)) == 1
    assert isinstance(outcome(host, call), Completed)


def test_req4_a_handle_may_come_with_questions() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", handle("input_required", inputRequests={"k": form()}))
    assert [(one.call, one.key) for one in host.of(Prompt)] == [(call, "k")]


# -- withdrawing -------------------------------------------------------------------------------------

ENDS: dict[str, Any] = {
    "completed": lambda host, call: polled(host, completed(at=2)),
    "failed": lambda host, call: polled(host, got("failed", at=2, error={"code": 1, "message": "no"})),
    "cancelled": lambda host, call: polled(host, got("cancelled", at=2)),
    "expired": lambda host, call: (host.advance(until_poll(host)), host.refuse("tasks/get", -32602)),
    "lost": lambda host, call: (host.advance(until_poll(host)), host.refuse("tasks/get", -32601)),
    "deadline": lambda host, call: host.advance(60_000),
    "abandoned": lambda host, call: host.abandon(call),
    "cancel": lambda host, call: host.cancel(call),
    "no longer asked": lambda host, call: polled(host, got(at=2)),
    "cancel and wait": lambda host, call: host.cancel(call, wait=True),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_req4_prompts_are_withdrawn_at_every_kind_of_end(end: Any) -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 60_000)
    host.reply("tools/call", handle())
    polled(host, asking("a", "b", at=1))
    host.answer(call, "a", ACCEPTED)
    end(host, call)
    assert host.of(WithdrawPrompt) == [WithdrawPrompt(call, "b")]
    assert not host.on_show


def test_req4_each_question_that_the_task_no_longer_asks_is_withdrawn() -> None:
    host = make_host()
    call = parked(host, "a", "b", "c", "d")
    polled(host, asking("a", "c", at=2))
    assert host.of(WithdrawPrompt) == [WithdrawPrompt(call, "b"), WithdrawPrompt(call, "d")]


def test_req4_a_withdrawn_question_that_comes_back_is_not_shown_twice() -> None:
    host = make_host()
    call = parked(host, "k")
    polled(host, got(at=2))
    polled(host, asking("k", at=3))
    assert len(host.of(Prompt)) == 1
    assert host.answer(call, "k", ACCEPTED) == []


@pytest.mark.parametrize("response", [ACCEPTED, {"action": "nonsense"}, {}], ids=repr)
def test_req4_an_answer_that_comes_too_late_is_ignored_be_it_right_or_wrong(response: Any) -> None:
    host = make_host()
    call = parked(host, "k")
    polled(host, got(at=2))
    assert host.answer(call, "k", response) == []
    host.abandon(call)
    assert host.answer(call, "k", response) == []
    assert host.answer(99, "k", response) == []


def test_req4_an_answer_to_what_was_not_asked_is_ignored() -> None:
    host = make_host()
    call = working(host)
    assert host.answer(call, "k", ACCEPTED) == []
    call = parked(make_host(), "k")
    assert host.answer(call, "other", ACCEPTED) == []


def test_upd4_an_answer_that_does_not_fit_is_the_hosts_mistake_and_the_prompt_stays() -> None:
    host = make_host()
    call = parked(host, "k")
    not_json = {"action": "decline", "content": object()}
    for wrong in (
        {},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"name": 1}},
        not_json,
    ):
        with pytest.raises(LocalProtocolError, match=r"^AnswerGiven: (a response|content|an|not JSON)"):
            host.answer(call, "k", wrong)
    assert (call, "k") in host.on_show
    host.answer(call, "k", ACCEPTED)
    assert updates(host) == [{"k": ACCEPTED}]


# -- what nobody here can answer (INP.2, NEG.10) -----------------------------------------------------


def test_req4_an_elicitation_nobody_can_be_shown_is_cancelled() -> None:
    """The task does not wait in vain; nothing is accepted."""
    host = make_host(capabilities={})
    call = working(host)
    polled(host, asking("k", at=1))
    assert not host.of(Prompt)
    assert updates(host) == [{"k": {"action": "cancel"}}]
    host.reply("tasks/update", ACK)
    polled(host, asking("k", at=2))
    assert len(updates(host)) == 1
    polled(host, completed(at=3))
    assert isinstance(outcome(host, call), Completed)


def test_inp2_another_kind_that_was_not_declared_is_not_answered() -> None:
    """Somebody else may: the owner sees all that is outstanding."""
    host = make_host()
    call = working(host)
    polled(host, got("input_required", at=1, inputRequests={"s": sampling(), "k": form()}))
    assert [one.key for one in host.of(Prompt)] == ["k"]
    assert set(kept(host, call)) == {"k"}


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"method": {}},
        {"method": "elicitation/create"},
        {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": []}},
        {"method": "elicitation/create", "params": {"mode": ["form"], "message": "?"}},
        {"method": "tasks/get", "params": {}},
    ],
    ids=repr,
)
def test_req4_a_question_without_any_right_answer_is_not_shown(request_: dict[str, Any]) -> None:
    host = make_host()
    call = working(host)
    polled(host, got("input_required", at=1, inputRequests={"bad": request_, "k": form()}))
    assert [one.key for one in host.of(Prompt)] == ["k"]
    assert host.answer(call, "bad", ACCEPTED) == []
    cancelled = request_.get("method") == "elicitation/create"
    assert updates(host) == ([{"bad": {"action": "cancel"}}] if cancelled else [])
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)


def test_req4_a_malformed_elicitation_is_left_to_whoever_answers_elicitations() -> None:
    """Who only watches answers nothing, not even what has no right answer."""
    host = make_host()
    call = working(host)
    watcher = make_host(capabilities={})
    watcher.resume(host.references[call])
    watcher.reply(
        "tasks/get", got("input_required", at=1, inputRequests={"bad": {"method": "elicitation/create"}})
    )
    assert updates(watcher) == []


def test_req4_a_form_with_more_than_an_author_may_ask_is_shown_all_the_same() -> None:
    odd = form()
    odd["params"]["requestedSchema"]["properties"]["name"]["pattern"] = "^A"
    host = make_host()
    call = working(host)
    polled(host, got("input_required", at=1, inputRequests={"k": odd}))
    host.answer(call, "k", ACCEPTED)
    assert updates(host) == [{"k": ACCEPTED}]


# -- updates that fail (REQ.4) -----------------------------------------------------------------------

UPDATE_FAILURES: dict[str, Any] = {
    "reset": lambda host: host.fail("tasks/update"),
    "unsent": lambda host: host.fail("tasks/update", sent=False),
    "internal": lambda host: host.refuse("tasks/update", -32603),
    "unknown code": lambda host: host.refuse("tasks/update", -32000),
    "status": lambda host: host.answer_http("tasks/update", 502),
    "garbage": lambda host: host.answer_http("tasks/update", 200, body=[]),
    "unknown type": lambda host: host.reply("tasks/update", {"resultType": "partial"}),
    "handle": lambda host: host.reply("tasks/update", handle()),
}


@pytest.mark.parametrize("fail", UPDATE_FAILURES.values(), ids=UPDATE_FAILURES)
def test_req4_an_update_that_may_not_have_arrived_is_sent_again_with_backoff(fail: Any) -> None:
    host = make_host(RequesterLimits(first_backoff_ms=100))
    call = parked(host, "k", pollIntervalMs=60_000)
    host.answer(call, "k", ACCEPTED)
    for wait in (100, 200, 400):
        fail(host)
        host.advance(wait - 1)
        assert not host.waiting("tasks/update")
        host.advance(1)
    host.reply("tasks/update", ACK)
    assert updates(host) == [{"k": ACCEPTED}] * 4
    host.advance(59_000)
    assert len(updates(host)) == 4


def test_req4_an_update_that_arrived_ends_the_backoff() -> None:
    host = make_host(RequesterLimits(first_backoff_ms=100))
    call = parked(host, "a", "b", pollIntervalMs=60_000)
    for key in ("a", "b"):
        host.answer(call, key, ACCEPTED)
        for wait in (100, 200):
            host.fail("tasks/update")
            host.advance(wait)
        host.reply("tasks/update", ACK)
    assert [list(answers) for answers in updates(host)] == [["a"]] * 3 + [["b"]] * 3


def test_req4_an_update_without_an_answer_is_sent_again() -> None:
    host = make_host(RequesterLimits(request_timeout_ms=3_000))
    call = parked(host, "k", pollIntervalMs=60_000)
    host.answer(call, "k", ACCEPTED)
    effects = host.advance(3_500)
    assert [type(effect) for effect in effects] == [StopRequest, SendRequest]


def test_req2_an_update_honours_retry_after() -> None:
    host = make_host()
    call = parked(host, "k", pollIntervalMs=600_000)
    host.answer(call, "k", ACCEPTED)
    host.answer_http("tasks/update", 429, retry_after_ms=90_000)
    host.advance(89_999)
    assert len(updates(host)) == 1
    host.advance(1)
    assert len(updates(host)) == 2


def test_req4_what_was_answered_meanwhile_goes_with_the_repetition() -> None:
    host = make_host()
    call = parked(host, "a", "b", pollIntervalMs=60_000)
    host.answer(call, "a", ACCEPTED)
    host.fail("tasks/update")
    host.answer(call, "b", DECLINED)
    assert len(updates(host)) == 1
    host.advance(1_000)
    assert updates(host)[1:] == [{"a": ACCEPTED, "b": DECLINED}]


def test_upd3_an_answer_that_arrived_although_its_update_failed_is_not_sent_again() -> None:
    """Each key of an update is one that is outstanding."""
    host = make_host(RequesterLimits(first_backoff_ms=20_000))
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    host.fail("tasks/update")
    polled(host, got(at=2))
    assert kept(host, call) == {"k": {"state": "sent"}}
    host.advance(20_000)
    assert len(updates(host)) == 1


def test_upd3_a_view_without_the_question_does_not_disturb_the_update_in_flight() -> None:
    host = make_host()
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    polled(host, got(at=2))
    assert kept(host, call) == {"k": {"state": "answered", "response": ACCEPTED}}
    host.reply("tasks/update", ACK)
    assert kept(host, call) == {"k": {"state": "sent"}}
    assert len(updates(host)) == 1


def test_neg2_an_update_finds_the_version_too() -> None:
    host = make_host(versions=("2027-01-01", "2026-07-28"))
    call = parked(host, "k", pollIntervalMs=60_000)
    host.answer(call, "k", ACCEPTED)
    host.refuse("tasks/update", -32022, data={"supported": ["2026-07-28"]})
    host.advance(1_000)
    meta = host.params_of("tasks/update")["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


# -- updates that are refused (UPD.3, UPD.4) ---------------------------------------------------------


@pytest.mark.parametrize("code", [-32602, -32601, -32021])
def test_upd4_a_refused_answer_to_a_question_that_stays_ends_the_call(code: int) -> None:
    """It is neither sent nor asked again, and the task would wait for ever."""
    host = make_host()
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    host.refuse("tasks/update", code, "inputResponses['k']: no")
    assert call not in host.outcomes
    polled(host, asking("k", at=1))
    expected = Failed(code=code, message="inputResponses['k']: no", fault=Fault.CALLER)
    assert outcome(host, call) == expected
    assert len(updates(host)) == len(host.of(Prompt)) == 1
    at_rest(host)


def test_get2_a_refused_answer_to_an_unknown_task_is_its_expiry() -> None:
    host = make_host()
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    host.refuse("tasks/update", -32602, "Task not found")
    host.advance(until_poll(host))
    host.refuse("tasks/get", -32602, "Task not found")
    assert isinstance(outcome(host, call), Expired)
    at_rest(host)


def test_upd3_a_refused_answer_that_nobody_waits_for_any_more_does_no_harm() -> None:
    host = make_host()
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    host.refuse("tasks/update", -32602)
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)


def test_upd4_of_several_that_are_refused_together_the_right_ones_arrive() -> None:
    """A server takes all of an update or nothing: each is tried alone."""
    host = make_host()
    call = parked(host, "first", "bad", "good")
    host.answer(call, "first", ACCEPTED)
    host.answer(call, "bad", ACCEPTED)
    host.answer(call, "good", ACCEPTED)
    host.reply("tasks/update", ACK)
    host.refuse("tasks/update", -32602, "bad")
    host.refuse("tasks/update", -32602, "bad")
    host.reply("tasks/update", ACK)
    assert updates(host) == [
        {"first": ACCEPTED},
        {"bad": ACCEPTED, "good": ACCEPTED},
        {"bad": ACCEPTED},
        {"good": ACCEPTED},
    ]
    assert kept(host, call) == {key: {"state": "sent"} for key in ("first", "bad", "good")}
    polled(host, asking("bad", at=2))
    assert outcome(host, call) == Failed(code=-32602, message="bad", fault=Fault.CALLER)


@pytest.mark.parametrize("key", ["a", "b"])
def test_upd4_each_refused_answer_is_remembered(key: str) -> None:
    host = make_host()
    call = parked(host, "a", "b")
    for one in ("a", "b"):
        host.answer(call, one, ACCEPTED)
        host.refuse("tasks/update", -32602, f"not {one}")
    polled(host, asking(key, at=2))
    assert outcome(host, call) == Failed(code=-32602, message=f"not {key}", fault=Fault.CALLER)


# -- limits (LIM.3) ----------------------------------------------------------------------------------


def test_lim3_the_questions_of_a_task_are_bounded() -> None:
    host = make_host(RequesterLimits(ledger_keys=3))
    call = parked(host, "a", "b", "c")
    polled(host, asking("a", "b", "c", at=2))
    polled(host, asking("d", at=3))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert found.fault is Fault.SERVER
    assert "ledger_keys" in found.message
    at_rest(host)


def test_lim3_questions_nobody_here_can_answer_take_no_place() -> None:
    host = make_host(RequesterLimits(ledger_keys=1))
    call = working(host)
    requests = {"k": form(), **{f"s{number}": sampling() for number in range(9)}}
    polled(host, got("input_required", at=1, inputRequests=requests))
    assert call not in host.outcomes
    assert len(host.of(Prompt)) == 1


# -- an end with answers under way -------------------------------------------------------------------


def test_req4_an_end_stops_the_update_in_flight() -> None:
    host = make_host()
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    polled(host, got("cancelled", at=2))
    assert isinstance(outcome(host, call), Cancelled)
    at_rest(host)


def test_req4_an_end_forgets_the_update_that_waits() -> None:
    host = make_host(RequesterLimits(first_backoff_ms=20_000))
    call = parked(host, "k")
    host.answer(call, "k", ACCEPTED)
    host.fail("tasks/update")
    host.abandon(call)
    assert isinstance(outcome(host, call), ObservationLost)
    at_rest(host)


def test_req7_answers_that_wait_are_not_sent_after_a_cancel() -> None:
    host = make_host()
    call = parked(host, "a", "b")
    host.answer(call, "a", ACCEPTED)
    host.answer(call, "b", ACCEPTED)
    host.cancel(call, wait=True)
    host.reply("tasks/update", ACK)
    assert updates(host) == [{"a": ACCEPTED}]
    polled(host, asking("c", at=2))
    assert not host.on_show
    assert len(updates(host)) == 1
    polled(host, got("cancelled", at=3))
    assert [type(effect) for effect in host.effects].count(Settle) == 1


@pytest.mark.parametrize("ask", ["poll", "stream"])
def test_inp1_input_required_without_saying_which_withdraws_nothing(ask: str) -> None:
    host = make_host(listen=ask == "stream")
    call = listening(host) if ask == "stream" else working(host)
    polled(host, asking("k", at=1))
    if ask == "stream":
        news(host, "input_required", at=2, ttlMs=9_000_000)
        host.advance(HINT)
        host.reply("tasks/get", asking("k", at=2))
    else:
        polled(host, got("input_required", at=2))
    assert (call, "k") in host.on_show
    assert not host.of(WithdrawPrompt)
