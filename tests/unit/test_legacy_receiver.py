"""LEG.10: questions of a legacy server that become tasks of this side.

LEG.3, LEG.4, LEG.5 and LEG.7, the other way.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto.requester import Completed, Prompt, RequesterLimits, ShowView, WithdrawPrompt
from tests.unit.legacy_requester_world import (
    RELATED,
    LegacyHost,
    elicitation,
    legacy_host,
    legacy_task,
    nested,
    outcome,
    related,
    server_of_tasks,
)
from tests.unit.requester_world import ACCEPTED, DONE, TASK, at_rest, form, sampling

MINE = "client-task"
BOTH: Final[dict[str, Any]] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


def asked(method: str = "elicitation/create", params: Any = None, **options: Any) -> tuple[LegacyHost, int]:
    """Return a host with a call whose server has asked something as a task, and the call."""
    host = legacy_host(**options)
    call = host.call()
    host.answer_http("GET", 405)
    params = elicitation() if params is None else params
    host.ask_client(method, {"task": {"ttl": 60_000}, **params}, message_id="q", on="tools/call")
    return host, call


def answer_to(host: LegacyHost, method: str, params: Any = None) -> Any:
    """Return the answer to another request of the server's; ``None``: there is none yet."""
    before = len(host.responses())
    host.ask_client(method, {"taskId": MINE} if params is None else params, message_id=f"{method} {before}")
    later = host.responses()[before:]
    if not later:
        return None
    [response] = later
    return response.get("result", response.get("error"))


def test_leg3_a_question_as_a_task_is_answered_with_one_and_then_put_to_somebody() -> None:
    host, call = asked()
    [made] = host.responses()
    assert made["id"] == "q"
    task = made["result"]["task"]
    assert (task["taskId"], task["status"], task["ttl"]) == (MINE, "working", 60_000)
    assert task["pollInterval"] == 1_000
    assert task["createdAt"] == task["lastUpdatedAt"] == "2023-11-14T22:13:20.000Z"
    assert host.of(Prompt) == [Prompt(call=call, key="elicitation", request=form())]
    assert answer_to(host, "tasks/get") == task


def test_leg4_its_result_is_what_the_question_would_have_been_answered_with() -> None:
    host, call = asked()
    assert answer_to(host, "tasks/result") is None
    assert answer_to(host, "tasks/result") is None
    host.advance(1_000)
    host.answer(call, "elicitation", ACCEPTED)
    results = [one["result"] for one in host.responses()[1:]]
    assert results == [{**ACCEPTED, "_meta": {RELATED: {"taskId": MINE}}}] * 2
    task = answer_to(host, "tasks/get")
    assert (task["status"], task["lastUpdatedAt"]) == ("completed", "2023-11-14T22:13:21.000Z")
    assert "result" not in task
    assert answer_to(host, "tasks/result")["action"] == "accept"
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_leg10_it_has_ended_when_it_is_answered_whatever_else_is_asked_beside_it() -> None:
    """And stays so when the call is answered, or time passes, before the rest is."""
    host = legacy_host()
    call = host.call()
    host.answer_http("GET", 405)
    host.ask_client("elicitation/create", elicitation("First?"), message_id=1, on="tools/call")
    host.ask_client("elicitation/create", elicitation(task={}), message_id=2, on="tools/call", new_id=MINE)
    host.ask_client("elicitation/create", elicitation("Third?"), message_id=3, on="tools/call")
    host.answer(call, "elicitation", ACCEPTED)
    assert answer_to(host, "tasks/result") is None
    host.answer(call, "elicitation.2", ACCEPTED)
    result = host.responses()[-1]["result"]
    assert result == {**ACCEPTED, "_meta": {RELATED: {"taskId": MINE}}}
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)
    assert answer_to(host, "tasks/get")["status"] == "completed"
    assert answer_to(host, "tasks/result") == result


@pytest.mark.parametrize("capabilities", [BOTH, {"sampling": {}}])
def test_leg10_sampling_too(capabilities: dict[str, Any]) -> None:
    sampled = {"role": "assistant", "content": {"type": "text", "text": "Yes."}, "model": "m"}
    host, call = asked("sampling/createMessage", sampling()["params"], capabilities=capabilities)
    host.answer(call, "sampling", sampled)
    assert answer_to(host, "tasks/result") == {**sampled, "_meta": {RELATED: {"taskId": MINE}}}


def test_roots_are_listed_at_once() -> None:
    host, call = asked("roots/list", {}, capabilities=BOTH)
    assert host.responses() == []
    host.answer(call, "roots", {"roots": []})
    assert host.responses()[0]["result"] == {"roots": []}


def test_leg5_cancelling_takes_the_question_back_and_is_said_afterwards() -> None:
    host, call = asked()
    assert answer_to(host, "tasks/result") is None
    host.ask_client("tasks/cancel", {"taskId": MINE}, message_id="c")
    waited, cancelled = host.responses()[1:]
    assert waited["error"]["code"] == -32602
    assert (cancelled["id"], cancelled["result"]["status"]) == ("c", "cancelled")
    assert WithdrawPrompt(call, "elicitation") in host.effects
    assert answer_to(host, "tasks/result")["code"] == -32602
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)


def test_leg5_what_has_ended_cannot_be_cancelled() -> None:
    host, call = asked()
    host.answer(call, "elicitation", ACCEPTED)
    assert answer_to(host, "tasks/cancel")["code"] == -32602
    assert answer_to(host, "tasks/get")["status"] == "completed"


def test_leg7_all_are_listed_and_no_cursor_is_right() -> None:
    host, _ = asked()
    assert [task["taskId"] for task in answer_to(host, "tasks/list", {})["tasks"]] == [MINE]
    assert answer_to(host, "tasks/list", {"cursor": "2"})["code"] == -32602


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["other", 7, [1], None])
def test_leg7_an_unknown_id_is_refused(method: str, task_id: Any) -> None:
    host, _ = asked()
    assert answer_to(host, method, {"taskId": task_id}) == {"code": -32602, "message": "Task not found"}


def test_leg7_after_its_time_it_is_unknown_also_to_who_waits_for_it() -> None:
    host, call = asked()
    assert answer_to(host, "tasks/result") is None
    host.advance(59_999)
    assert answer_to(host, "tasks/get")["status"] == "working"
    host.advance(1)
    assert host.responses()[-1]["error"]["message"] == "Task not found"
    assert WithdrawPrompt(call, "elicitation") in host.effects
    assert answer_to(host, "tasks/get")["code"] == -32602


def test_leg7_one_that_has_ended_is_kept_for_its_time() -> None:
    host, call = asked()
    host.answer(call, "elicitation", ACCEPTED)
    host.advance(60_000)
    assert answer_to(host, "tasks/get")["code"] == -32602


@pytest.mark.parametrize(
    ("ttl", "kept_for"),
    [
        (None, 5_000),
        (0, 5_000),
        (-1, 5_000),
        ("60", 5_000),
        (True, 5_000),
        (10**9, 5_000),
        (1, 1),
        (4_999, 4_999),
    ],
)
def test_a_time_to_live_that_is_not_usable_is_the_longest(ttl: Any, kept_for: int) -> None:
    host = legacy_host(limits=RequesterLimits(received_ttl_ms=5_000))
    host.call()
    host.ask_client("elicitation/create", elicitation(task={"ttl": ttl}), on="tools/call")
    assert host.responses()[0]["result"]["task"]["ttl"] == kept_for


def test_a_question_that_nobody_answers_any_more_has_failed() -> None:
    host, call = asked()
    host.abandon(call)
    host.take_all()
    task = answer_to(host, "tasks/get")
    assert (task["status"], task["statusMessage"]) == ("failed", "nobody here answers this")
    message = "Internal error: nobody here answers this"
    assert answer_to(host, "tasks/result") == {"code": -32603, "message": message}


def test_a_question_of_a_call_that_is_answered_meanwhile_has_failed() -> None:
    """Else whoever waits for its result would wait for as long as it is kept."""
    host, call = asked()
    assert answer_to(host, "tasks/result") is None
    host.reply("tools/call", DONE)
    assert isinstance(outcome(host, call), Completed)
    assert host.responses()[-1]["error"]["code"] == -32603
    assert answer_to(host, "tasks/get")["status"] == "failed"


@pytest.mark.parametrize("of_task", [False, True])
def test_leg5_a_request_that_was_answered_with_a_task_cannot_be_taken_back(of_task: bool) -> None:
    """Its task can, by ``tasks/cancel``."""
    host = server_of_tasks()
    call = host.call()
    if of_task:
        host.reply("tools/call", nested())
    host.ask_client("elicitation/create", related(elicitation(task={}), TASK), message_id="q")
    host.say("notifications/cancelled", {"requestId": "q"})
    assert answer_to(host, "tasks/get")["status"] == "working"
    if of_task:
        host.advance(1_000)
        host.reply("tasks/get", legacy_task("input_required", at=1))
    host.answer(call, host.of(Prompt)[-1].key, ACCEPTED)
    assert answer_to(host, "tasks/get")["status"] == "completed"


def test_what_is_refused_makes_no_task() -> None:
    """INP.2"""
    host, _ = asked("sampling/createMessage", sampling()["params"])
    assert host.responses()[0]["error"]["code"] == -32601
    assert answer_to(host, "tasks/list", {})["tasks"] == []


def test_lim3_there_is_a_bound_of_tasks_and_of_who_waits() -> None:
    host, _ = asked(limits=RequesterLimits(received_tasks=1))
    host.ask_client("elicitation/create", elicitation(task={}), message_id=2, new_id="more")
    assert host.responses()[-1]["error"]["data"] == {"reason": "received_tasks"}
    assert answer_to(host, "tasks/result") is None
    host.ask_client("tasks/result", {"taskId": MINE}, message_id="too many")
    refused = host.responses()[-1]
    assert (refused["id"], refused["error"]["data"]) == ("too many", {"reason": "received_tasks"})


def test_life6_no_two_tasks_have_one_id() -> None:
    host, _ = asked()
    host.ask_client("elicitation/create", elicitation(task={}), message_id=2, new_id=MINE)
    assert host.responses()[-1]["error"]["data"] == {"reason": "received_tasks"}
    assert len(answer_to(host, "tasks/list", {})["tasks"]) == 1


def test_where_no_tasks_are_declared_a_question_is_a_question() -> None:
    host, call = asked(tasks=False)
    assert host.responses() == []
    host.answer(call, "elicitation", ACCEPTED)
    assert host.responses()[0]["result"] == ACCEPTED
    assert answer_to(host, "tasks/get")["code"] == -32601


def test_a_task_of_the_server_s_may_ask_as_a_task_of_this_side() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    host.advance(1_000)
    host.reply("tasks/get", legacy_task("input_required", at=1))
    host.ask_client("elicitation/create", related(elicitation(task={})), message_id=1, on="tasks/result")
    key = host.of(Prompt)[0].key
    host.answer(call, key, ACCEPTED)
    assert answer_to(host, "tasks/get")["status"] == "completed"
    assert answer_to(host, "tasks/result")["_meta"] == {RELATED: {"taskId": MINE}}
    host.abandon(call)
    assert TASK in host.references[call]["taskId"]


def test_and_take_it_back() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    host.advance(1_000)
    host.reply("tasks/get", legacy_task("input_required", at=1))
    host.ask_client("elicitation/create", related(elicitation(task={})), message_id=1, on="tasks/result")
    assert answer_to(host, "tasks/cancel")["status"] == "cancelled"
    host.advance(1_000)
    host.reply("tasks/get", legacy_task("input_required", at=1))
    host.advance(2_000)
    assert WithdrawPrompt(call, host.of(Prompt)[0].key) in host.effects


def test_each_of_several_is_taken_back_by_itself() -> None:
    host = server_of_tasks()
    call = host.call()
    host.reply("tools/call", nested())
    for number in (1, 2, 3):
        question = related(elicitation(f"{number}?", task={}))
        host.ask_client("elicitation/create", question, message_id=number, new_id=f"mine-{number}")
    for number, left in ((1, ["2?", "3?"]), (3, ["2?"])):
        answer_to(host, "tasks/cancel", {"taskId": f"mine-{number}"})
        host.advance(1_000)
        host.reply("tasks/get", legacy_task("input_required", at=number))
        shown = (host.of(ShowView)[-1].view.input_requests or {}).values()
        assert [question["params"]["message"] for question in shown] == left
    assert call not in host.outcomes


def test_a_session_that_is_lost_takes_them_with_it() -> None:
    host, call = asked()
    other = host.ask("tools/list")
    host.answer_http("tools/list", 404)
    assert WithdrawPrompt(call, "elicitation") in host.effects
    host.fail("tools/call")
    host.greet(session="s-2")
    assert answer_to(host, "tasks/get")["code"] == -32602
    host.cancel(other)
    host.take_all()
    host.answer_http("GET", 405)
    at_rest(host)
