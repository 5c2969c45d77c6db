"""Rounds of input before a result (MRTR): REQ.1, REQ.4, INP.2, INP.4 as a requester sees them; trap 8."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Failed,
    Fault,
    ObservationLost,
    Prompt,
    RequesterLimits,
    SendRequest,
    Settle,
    WithdrawPrompt,
)
from tests.unit.requester_world import (
    ACCEPTED,
    DECLINED,
    DONE,
    START,
    asking,
    asks,
    at_rest,
    completed,
    form,
    handle,
    make_host,
    outcome,
    polled,
    sampling,
)

STATE = "opaque ✓"


def test_req1_answers_and_state_go_back_with_the_same_call_and_another_id() -> None:
    host = make_host()
    call = host.call("render", {"frames": 3}, meta={"traceparent": "00-ab"})
    assert host.reply("tools/call", asks("a", "b", state=STATE)) == [
        Prompt(call=call, key="a", request=form()),
        Prompt(call=call, key="b", request=form()),
    ]
    assert host.answer(call, "b", DECLINED) == []
    (sent,) = host.answer(call, "a", ACCEPTED)
    assert isinstance(sent, SendRequest)
    first = host.of(SendRequest)[0]
    assert sent.message["id"] != first.message["id"]
    assert sent.message["params"] == {
        **first.message["params"],
        "inputResponses": {"a": ACCEPTED, "b": DECLINED},
        "requestState": STATE,
    }
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)
    at_rest(host)


def test_req1_without_a_state_none_goes_back() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks("a"))
    host.answer(call, "a", ACCEPTED)
    params = host.params_of("tools/call")
    assert params["inputResponses"] == {"a": ACCEPTED}
    assert "requestState" not in params


def test_req1_a_null_state_is_none() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", {**asks("a"), "requestState": None})
    host.answer(call, "a", ACCEPTED)
    assert "requestState" not in host.params_of("tools/call")


def test_req1_a_state_alone_goes_back_after_a_pause_without_answers() -> None:
    host = make_host(RequesterLimits(first_backoff_ms=300))
    host.call()
    host.reply("tools/call", asks(state=STATE))
    assert not host.advance(299)
    host.advance(1)
    params = host.params_of("tools/call")
    assert params["requestState"] == STATE
    assert "inputResponses" not in params


def test_req1_each_round_stands_for_itself() -> None:
    """Keys may come again, answers and states of an earlier round do not."""
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks("a", state="one"))
    host.answer(call, "a", ACCEPTED)
    host.reply("tools/call", asks("a"))
    assert len(host.of(Prompt)) == 2
    host.answer(call, "a", DECLINED)
    params = host.params_of("tools/call")
    assert params["inputResponses"] == {"a": DECLINED}
    assert "requestState" not in params


def test_trap8_a_round_before_a_task_makes_none_and_its_keys_are_apart() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks("confirm", state=STATE))
    assert not host.references
    host.answer(call, "confirm", ACCEPTED)
    host.reply("tools/call", handle())
    assert host.references[call]["keys"] == {}
    polled(host, asking("confirm", at=1))
    assert len(host.of(Prompt)) == 2
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_req1_other_methods_may_ask_as_well(method: str) -> None:
    host = make_host()
    call = host.ask(method, {"name": "x", "uri": "a:b"})
    host.reply(method, asks("a", state=STATE))
    host.answer(call, "a", ACCEPTED)
    params = host.params_of(method)
    assert (params["name"], params["inputResponses"]) == ("x", {"a": ACCEPTED})
    host.reply(method, {"messages": []})
    assert outcome(host, call) == Completed({"messages": []})


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "completion/complete", "tasks/get"])
def test_req1_the_rest_may_not(method: str) -> None:
    host = make_host()
    call = host.ask(method)
    host.reply(method, asks("a"))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert found.fault is Fault.SERVER
    assert not host.of(Prompt)


@pytest.mark.parametrize(
    "result",
    [
        asks(),
        asks(requests={}),
        {**asks(), "inputRequests": None},
        asks(requests=[]),
        asks(requests="name"),
        asks(requests={"a": None}),
        asks(requests={"a": []}),
        asks(requests={"a": {"method": "elicitation/create"}}),
        asks(requests={"a": {"method": ["elicitation/create"], "params": {}}}),
        asks(requests={"a": {"method": "tasks/cancel", "params": {}}}),
        asks(requests={"": form()}),
        asks("a", state=5),
        asks("a", state={"x": 1}),
        asks(requests={"a": sampling()}),
        asks(requests={"a": {"method": "roots/list"}, "b": form()}),
        asks(requests={f"k{number}": form() for number in range(5)}),
    ],
    ids=lambda result: str(result)[:60],
)
def test_req1_a_round_that_cannot_be_answered_is_the_servers_fault(result: dict[str, Any]) -> None:
    """Among them kinds that were not declared (INP.2), and more questions than a round may have (LIM.3)."""
    host = make_host(RequesterLimits(ledger_keys=4))
    call = host.call()
    host.reply("tools/call", result)
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert (found.code, found.fault) == (None, Fault.SERVER)
    assert not host.of(Prompt)
    at_rest(host)


def test_req1_what_is_wrong_with_a_round_is_said() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks(requests={"a": {"method": "tasks/cancel", "params": {}}}))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert found.message.startswith("the server's input_required result is wrong: requests['a'].method")


def test_req4_a_form_with_more_than_an_author_may_ask_is_shown_all_the_same() -> None:
    """A required field that is not there: the client cannot mend the form, and the person can decline."""
    asked = form()
    asked["params"]["requestedSchema"]["required"] = ["name", "not there"]
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks(requests={"a": asked}))
    assert host.of(Prompt) == [Prompt(call=call, key="a", request=asked)]


def test_lim3_a_round_may_have_as_many_questions_as_the_limit_says() -> None:
    host = make_host(RequesterLimits(ledger_keys=4))
    host.call()
    host.reply("tools/call", asks("a", "b", "c", "d"))
    assert len(host.on_show) == 4


def test_req4_an_elicitation_that_was_not_declared_is_cancelled() -> None:
    host = make_host(capabilities={"sampling": {}}, limits=None)
    call = host.call()
    host.reply("tools/call", asks(requests={"a": form(), "s": sampling()}))
    assert [one.key for one in host.of(Prompt)] == ["s"]
    words = {"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "m"}
    assert host.answer(call, "a", ACCEPTED) == []
    host.answer(call, "s", words)
    assert host.params_of("tools/call")["inputResponses"] == {"a": {"action": "cancel"}, "s": words}


def test_req4_a_round_of_nothing_else_goes_back_after_a_pause() -> None:
    host = make_host(RequesterLimits(first_backoff_ms=300), capabilities={})
    call = host.call()
    host.reply("tools/call", asks("a", "b"))
    host.advance(300)
    answers = host.params_of("tools/call")["inputResponses"]
    assert answers == {"a": {"action": "cancel"}, "b": {"action": "cancel"}}
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)


def test_lim3_rounds_are_bounded() -> None:
    host = make_host(RequesterLimits(input_rounds=3))
    call = host.call()
    for _ in range(4):
        host.reply("tools/call", asks("a"))
        if call not in host.outcomes:
            host.answer(call, "a", ACCEPTED)
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert "input_rounds" in found.message
    at_rest(host)


def test_lim3_endless_rounds_of_states_are_slow_and_end() -> None:
    host = make_host()
    call = host.call()
    while call not in host.outcomes:
        host.reply("tools/call", asks(state=STATE))
        host.advance(30_000)
    assert len(host.sent("tools/call")) == RequesterLimits().input_rounds + 1
    times = host.now - START
    assert times > 20 * 30_000
    at_rest(host)


ENDS: dict[str, Any] = {
    "cancel": lambda host, call: host.cancel(call),
    "cancel and wait": lambda host, call: host.cancel(call, wait=True),
    "abandoned": lambda host, call: host.abandon(call),
    "deadline": lambda host, call: host.advance(60_000),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_req4_prompts_of_a_round_are_withdrawn_at_the_end(end: Any) -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 60_000)
    host.reply("tools/call", asks("a", "b"))
    host.answer(call, "a", ACCEPTED)
    end(host, call)
    assert host.of(WithdrawPrompt) == [WithdrawPrompt(call, "b")]
    assert isinstance(outcome(host, call), (Cancelled, ObservationLost))
    assert host.answer(call, "b", ACCEPTED) == []
    assert len(host.sent("tools/call")) == 1
    at_rest(host)


def test_req7_a_call_that_waits_to_go_back_can_be_cancelled() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks(state=STATE))
    host.cancel(call)
    assert isinstance(outcome(host, call), Cancelled)
    at_rest(host)


def test_req4_people_may_take_their_time() -> None:
    """No request is in flight meanwhile, so that none can time out."""
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks("a", state=STATE))
    host.advance(7 * 86_400_000)
    host.answer(call, "a", ACCEPTED)
    host.reply("tools/call", DONE)
    assert outcome(host, call) == Completed(DONE)


def test_req4_an_answer_counts_once() -> None:
    host = make_host()
    call = host.call()
    host.reply("tools/call", asks("a"))
    host.answer(call, "a", ACCEPTED)
    assert host.answer(call, "a", DECLINED) == []
    assert host.params_of("tools/call")["inputResponses"] == {"a": ACCEPTED}


def test_neg2_a_round_survives_a_change_of_version() -> None:
    host = make_host(versions=("2027-01-01", "2026-07-28"))
    call = host.call()
    host.reply("tools/call", asks("a", state=STATE))
    host.answer(call, "a", ACCEPTED)
    host.refuse("tools/call", -32022, data={"supported": ["2026-07-28"]})
    params = host.params_of("tools/call")
    assert (params["inputResponses"], params["requestState"]) == ({"a": ACCEPTED}, STATE)
    host.reply("tools/call", DONE)
    assert [type(effect) for effect in host.effects].count(Settle) == 1
