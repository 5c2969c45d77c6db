"""Going on in a new process: REQ.4 and REQ.6."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tasks_proto.requester import (
    Completed,
    Expired,
    Failed,
    Fault,
    KeepReference,
    ObservationLost,
    Prompt,
    RequesterLimits,
    ShowView,
    TaskReference,
)
from mcp_tasks_proto.testing import RequesterHost
from tests.unit.requester_world import (
    ACCEPTED,
    DECLINED,
    ENDPOINT,
    HINT,
    OTHER,
    START,
    TASK,
    asking,
    at_rest,
    completed,
    form,
    got,
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
LATER = START + 60_000
"""When the second process begins."""


def saved(host: RequesterHost, call: int = 1) -> Any:
    """Return a reference as a file would give it back."""
    return json.loads(json.dumps(host.references[call]))


def resumed(reference: Any, **settings: Any) -> tuple[RequesterHost, int]:
    """Go on in a new process."""
    host = make_host(now=LATER, **settings)
    return host, host.resume(reference)


def reference(**changes: Any) -> dict[str, Any]:
    """Return a reference, some members changed, or left out where they are ``None``."""
    members = {
        "schema": 1,
        "endpoint": ENDPOINT,
        "taskId": TASK,
        "tool": "render",
        "capabilities": {"elicitation": {}},
        "createdMs": START,
        "ttlMs": 3_600_000,
        "pollIntervalMs": HINT,
        "keys": {},
    }
    return {name: value for name, value in (members | changes).items() if value is not None}


# -- going on (REQ.6) --------------------------------------------------------------------------------


def test_req6_a_new_process_goes_on_where_the_last_one_ended() -> None:
    host, call = resumed(saved(working_host()))
    assert host.params_of("tasks/get")["taskId"] == TASK
    assert not host.of(KeepReference), "nothing has changed"
    host.reply("tasks/get", got(at=1))
    assert until_poll(host) == HINT
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def working_host(**facts: Any) -> RequesterHost:
    host = make_host()
    working(host, **facts)
    return host


def test_req6_an_unknown_task_is_expired_and_no_exception() -> None:
    host, call = resumed(saved(working_host()))
    host.refuse("tasks/get", -32602, "Task not found")
    assert outcome(host, call) == Expired(view=None)
    at_rest(host)


def test_req3_a_first_poll_that_fails_is_not_the_end() -> None:
    host, call = resumed(reference(ttlMs=None, pollIntervalMs=None))
    host.fail("tasks/get")
    polled(host, completed(at=1))
    assert isinstance(outcome(host, call), Completed)


def test_req6_a_task_whose_time_is_over_is_asked_for_once() -> None:
    for fate in ("result", "failure"):
        host, call = resumed(reference(ttlMs=1_000))
        host.advance(0)
        assert call not in host.outcomes
        if fate == "result":
            host.reply("tasks/get", completed(at=1))
            assert isinstance(outcome(host, call), Completed)
        else:
            host.fail("tasks/get")
            assert isinstance(outcome(host, call), Expired)
        at_rest(host)


def test_req6_a_resumed_task_is_listened_to() -> None:
    host, call = resumed(saved(working_host()), listen=True)
    host.advance(20)
    assert host.params_of("subscriptions/listen")["notifications"] == {"taskIds": [TASK]}
    host.reply("tasks/get", completed(at=1))
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


def test_req6_a_deadline_holds_for_a_resumed_task() -> None:
    host = make_host(now=LATER)
    call = host.resume(reference(), deadline_ms=LATER + 1_000)
    host.advance(1_000)
    assert outcome(host, call) == ObservationLost("the deadline has passed", None)
    at_rest(host)


def test_neg6_a_requester_that_does_not_declare_tasks_learns_that_it_may_not_ask() -> None:
    host, call = resumed(reference(), tasks=False)
    host.refuse("tasks/get", -32021, data={"requiredCapabilities": {}})
    assert isinstance(outcome(host, call), ObservationLost)


def test_req6_a_reference_from_the_newest_process_can_be_resumed_again() -> None:
    host, call = resumed(saved(working_host()))
    host.reply("tasks/get", asking("k", at=1, ttlMs=9_000_000))
    third, again = resumed(saved(host, call))
    third.reply("tasks/get", completed(at=2))
    assert isinstance(outcome(third, again), Completed)


# -- what is no reference (REQ.6) --------------------------------------------------------------------

GARBAGE: list[Any] = [
    None,
    5,
    "task-one",
    [],
    {},
    {"schema": 1},
    reference(schema=None),
    reference(schema=2),
    reference(schema=0),
    reference(schema=-1),
    reference(schema="1"),
    reference(schema=True),
    reference(schema=1.0),
    reference(endpoint=None),
    reference(endpoint=["x"]),
    reference(taskId=None),
    reference(taskId={"a": 1}),
    reference(tool=None),
    reference(tool=5),
    reference(capabilities=None),
    reference(capabilities=[]),
    reference(createdMs=None),
    reference(createdMs=1.5),
    reference(createdMs=True),
    reference(ttlMs="60"),
    reference(ttlMs=True),
    reference(pollIntervalMs=0.5),
    reference(keys=None),
    reference(keys=[]),
    reference(keys={"k": None}),
    reference(keys={"k": "shown"}),
    reference(keys={"k": {}}),
    reference(keys={"k": {"state": "forgotten"}}),
    reference(keys={"k": {"state": ["shown"]}}),
    reference(keys={"k": {"state": "answered"}}),
    reference(keys={"k": {"state": "answered", "response": "yes"}}),
    reference(keys={"k": {"state": "shown", "response": ACCEPTED}}),
    reference(keys={"k": {"state": "sent", "response": ACCEPTED}}),
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: str(garbage)[:70])
def test_req6_what_is_no_reference_is_the_callers_fault_and_no_exception(garbage: Any) -> None:
    host, call = resumed(garbage)
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert found.fault is Fault.CALLER
    at_rest(host)


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: str(garbage)[:70])
def test_req6_what_is_no_reference_cannot_be_read(garbage: Any) -> None:
    with pytest.raises(ValueError, match="reference"):
        TaskReference.from_json(garbage)


def test_req6_a_later_schema_is_named() -> None:
    host, call = resumed(reference(schema=2))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert "schema 2" in found.message


def test_req6_a_key_that_cannot_be_read_is_named() -> None:
    host, call = resumed(reference(keys={"good": {"state": "shown"}, "bad": {"state": "forgotten"}}))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert "key 'bad'" in found.message


def test_req6_members_that_are_absent_or_unknown_do_no_harm() -> None:
    """``ttlMs`` and ``pollIntervalMs`` may be null; that they are not there means the same."""
    host, call = resumed(reference(ttlMs=None, pollIntervalMs=None, colour="red"))
    host.reply("tasks/get", completed(at=1))
    assert isinstance(outcome(host, call), Completed)


def test_sec2_a_reference_to_another_servers_task_goes_nowhere() -> None:
    """Whoever knows a task's id may be able to use it."""
    host, call = resumed(reference(endpoint="https://evil.example/mcp"))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert found.fault is Fault.CALLER
    assert TASK not in found.message
    at_rest(host)


def test_req6_json_goes_there_and_back() -> None:
    keys = {"a": {"state": "shown"}, "b": {"state": "answered", "response": ACCEPTED}, "c": {"state": "sent"}}
    whole = reference(keys=keys)
    assert TaskReference.from_json(whole).to_json() == whole


def test_req4_a_task_is_watched_once_in_one_process() -> None:
    """Two watchers would show each question twice."""
    host, call = resumed(reference())
    again = host.resume(reference())
    found = outcome(host, again)
    assert isinstance(found, Failed)
    assert found.fault is Fault.CALLER
    other = host.resume(reference(taskId=OTHER))
    for number, task_id in zip(host.waiting("tasks/get"), (TASK, OTHER), strict=True):
        host.reply(number, completed(at=1, task_id=task_id))
    assert isinstance(outcome(host, call), Completed)
    assert isinstance(outcome(host, other), Completed)
    third = host.resume(reference())
    host.reply("tasks/get", completed(at=1))
    assert isinstance(outcome(host, third), Completed)
    at_rest(host)


# -- questions (REQ.4) -------------------------------------------------------------------------------


def test_req4_a_question_without_an_answer_is_shown_again_and_said_to_be_so() -> None:
    first = make_host()
    parked(first, "k")
    host, call = resumed(saved(first))
    assert not host.of(Prompt), "only the server knows what is outstanding"
    host.reply("tasks/get", asking("k", "new", at=2))
    assert host.of(Prompt) == [
        Prompt(call=call, key="k", request=form(), again=True),
        Prompt(call=call, key="new", request=form(), again=False),
    ]
    host.answer(call, "k", ACCEPTED)
    assert host.params_of("tasks/update")["inputResponses"] == {"k": ACCEPTED}
    polled(host, asking("k", "new", at=3))
    assert len(host.of(Prompt)) == 2


def test_req4_an_answer_without_acknowledgement_is_sent_again_and_never_asked_again() -> None:
    first = make_host()
    call = parked(first, "k", "other")
    first.answer(call, "k", ACCEPTED)
    host, call = resumed(saved(first))
    assert not host.sent("tasks/update"), "first the server tells what it still waits for"
    host.reply("tasks/get", asking("k", at=2))
    assert host.params_of("tasks/update")["inputResponses"] == {"k": ACCEPTED}
    assert not host.of(Prompt)
    host.reply("tasks/update", ACK)
    assert host.references[call]["keys"]["k"] == {"state": "sent"}


def test_upd3_an_answer_that_has_arrived_is_not_sent_again() -> None:
    first = make_host()
    call = parked(first, "k")
    first.answer(call, "k", ACCEPTED)
    host, call = resumed(saved(first))
    host.reply("tasks/get", got(at=2))
    assert host.references[call]["keys"] == {"k": {"state": "sent"}}
    polled(host, completed(at=3))
    assert not host.sent("tasks/update")


def test_req4_what_was_sent_is_never_asked_again() -> None:
    first = make_host()
    call = parked(first, "k")
    first.answer(call, "k", DECLINED)
    first.reply("tasks/update", ACK)
    host, call = resumed(saved(first))
    host.reply("tasks/get", asking("k", at=2))
    polled(host, asking("k", at=3))
    assert not host.of(Prompt)
    assert not host.sent("tasks/update")
    assert host.answer(call, "k", ACCEPTED) == []


def test_req4_what_is_no_longer_asked_is_not_shown() -> None:
    host, call = resumed(reference(keys={"k": {"state": "shown"}}))
    host.reply("tasks/get", got(at=2))
    polled(host, completed(at=3))
    assert isinstance(outcome(host, call), Completed)
    assert not host.of(Prompt)


@pytest.mark.parametrize("key", ["a question of old", ""])
def test_req4_a_process_that_can_do_less_does_not_show_what_it_cannot_answer(key: str) -> None:
    """Nor does it answer for the one that could."""
    host, _ = resumed(
        reference(keys={key: {"state": "shown"}}, capabilities={"sampling": {}, "elicitation": {}}),
        capabilities={},
    )
    requests = {key: sampling(), "new": form()}
    host.reply("tasks/get", got("input_required", at=2, inputRequests=requests))
    assert not host.of(Prompt)
    assert not host.sent("tasks/update")


def test_req4_an_elicitation_that_the_call_never_declared_is_cancelled_by_any_process() -> None:
    host, _ = resumed(reference(capabilities={}), capabilities={})
    host.reply("tasks/get", asking("k", at=2))
    assert host.params_of("tasks/update")["inputResponses"] == {"k": {"action": "cancel"}}


def test_lim3_a_long_ledger_is_no_reason_to_give_up() -> None:
    keys = {f"k{number}": {"state": "sent"} for number in range(9)}
    host = make_host(RequesterLimits(ledger_keys=5), now=LATER)
    call = host.resume(reference(keys=keys))
    host.reply("tasks/get", got(at=1))
    assert call not in host.outcomes
    polled(host, asking("one more", at=2))
    assert isinstance(outcome(host, call), Failed)


def test_req4_answers_of_two_processes_are_each_sent_once() -> None:
    """A whole life: shown, killed, shown again, answered, killed, sent again, acknowledged, killed, done."""
    first = make_host()
    parked(first, "k")
    second, call = resumed(saved(first))
    second.reply("tasks/get", asking("k", at=2))
    second.answer(call, "k", ACCEPTED)
    third, call = resumed(saved(second, call))
    third.reply("tasks/get", asking("k", at=2))
    third.reply("tasks/update", ACK)
    fourth, call = resumed(saved(third, call))
    fourth.reply("tasks/get", asking("k", at=2))
    polled(fourth, completed(at=3))
    assert isinstance(outcome(fourth, call), Completed)
    prompts = [len(host.of(Prompt)) for host in (first, second, third, fourth)]
    updates = [len(host.sent("tasks/update")) for host in (first, second, third, fourth)]
    assert (prompts, updates) == ([1, 1, 0, 0], [0, 1, 1, 0])


def test_req4_a_task_that_was_listened_to_can_be_resumed() -> None:
    first = make_host(listen=True)
    listening(first)
    news(first, "input_required", at=1, inputRequests={"k": form()})
    host, call = resumed(saved(first))
    host.reply("tasks/get", asking("k", at=1))
    assert [one.again for one in host.of(Prompt)] == [True]
    assert [one.call for one in host.of(ShowView)] == [call]
