"""Rounds of input through the proxy, and tasks collapsed into them: INP.4, PRX.10, PRX.17."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import TASKS_EXTENSION, ExchangeClosed, LoadFailed
from mcp_tasks_proto.proxy import DropTask, ProxyLimits, SettingsChanged, ToolProfile
from mcp_tasks_proto.testing import ProxyHost
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES
from tests.unit.proxy_world import (
    DONE,
    FORMS,
    LATER,
    UPSTREAM_TASK,
    call,
    completed,
    create,
    discover,
    error,
    make_proxy,
    make_settings,
    methods,
    reason,
    result,
    sent_up,
    task,
    view,
)
from tests.unit.world import ACCEPTED, form

STALE = "requestState is not one that this proxy gave for this request, or is too old"
ASKS = {"resultType": "input_required", "inputRequests": {"a": form()}, "requestState": "upstream-state"}
NEEDS_TASKS = {
    "code": -32021,
    "message": "Missing required client capability",
    "data": {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
}


def again(host: ProxyHost, reply: dict[str, Any], answers: dict[str, Any] | None = None, **facts: Any) -> int:
    """Send the call again, with the state of a reply and these answers."""
    facts.setdefault("capabilities", FORMS)
    params: dict[str, Any] = {"name": "render", "arguments": {"frames": 3}}
    params["requestState"] = result(reply)["requestState"]
    if answers is not None:
        params["inputResponses"] = answers
    return host.request("tools/call", {**params, **facts.pop("params", {})}, **facts)


# -- rounds ------------------------------------------------------------------------------------------------


def test_inp4_a_round_comes_down_under_the_proxys_own_state() -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", ASKS)
    asked = result(host.reply_to(exchange))
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {"a": form()}
    assert "upstream-state" not in asked["requestState"]


def test_inp4_answers_go_up_with_the_upstreams_state() -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", ASKS)
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED, "never": ACCEPTED})
    sent = sent_up(host, "tools/call")[1]
    assert (sent["inputResponses"], sent["requestState"]) == ({"a": ACCEPTED}, "upstream-state")
    host.answer("tools/call", DONE)
    assert view(host.reply_to(retry)) == DONE


def test_inp4_a_round_may_have_a_state_or_questions_alone() -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", {"resultType": "input_required", "requestState": "later"})
    assert "inputRequests" not in result(host.reply_to(exchange))
    again(host, host.reply_to(exchange))
    assert sent_up(host, "tools/call")[1]["requestState"] == "later"
    host.answer("tools/call", {"resultType": "input_required", "inputRequests": {"a": form()}})
    again(host, host.reply_to(2), {"a": ACCEPTED})
    assert "requestState" not in sent_up(host, "tools/call")[2]


@pytest.mark.parametrize(
    ("method", "params"), [("prompts/get", {"name": "p"}), ("resources/read", {"uri": "file:///x"})]
)
def test_inp4_prompts_and_resources_may_ask_too(method: str, params: dict[str, Any]) -> None:
    host = make_proxy()
    exchange = host.request(method, params, capabilities=FORMS)
    discover(host)
    host.answer(method, ASKS)
    asked = result(host.reply_to(exchange))
    assert asked["inputRequests"] == {"a": form()}
    answers = {"a": ACCEPTED}
    host.request(
        method,
        {**params, "requestState": asked["requestState"], "inputResponses": answers},
        capabilities=FORMS,
    )
    assert sent_up(host, method)[1]["inputResponses"] == answers


def test_inp4_answers_are_an_object() -> None:
    host = make_proxy()
    params = {"name": "p", "requestState": "x", "inputResponses": 7}
    assert error(host.reply_to(host.request("prompts/get", params)))["code"] == -32602


def test_inp4_other_methods_may_not() -> None:
    host = make_proxy()
    exchange = host.request("prompts/list", {"requestState": "x"}, capabilities=FORMS)
    discover(host)
    host.answer("prompts/list", ASKS)
    assert reason(host.reply_to(exchange)) == "upstream_invalid"


@pytest.mark.parametrize(
    "facts",
    [
        {"principal": "mallory"},
        {"params": {"arguments": {"frames": 4}}},
        {"params": {"requestState": "forged"}},
        {"params": {"requestState": 7}},
    ],
    ids=["foreign", "transplanted", "forged", "mistyped"],
)
def test_inp4_a_state_is_good_for_its_own_call_only(facts: dict[str, Any]) -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", ASKS)
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED}, **facts)
    refused = error(host.reply_to(retry))
    assert refused["code"] == -32602
    if "params" not in facts or facts["params"].get("requestState") != 7:
        assert refused["message"] == f"Invalid params: {STALE}"
    assert methods(host).count("tools/call") == 1


def test_inp4_a_state_gets_too_old() -> None:
    host = make_proxy(limits=ProxyLimits(request_state_ms=1000))
    exchange = call(host)
    host.answer("tools/call", ASKS)
    host.now += 1000
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED})
    assert error(host.reply_to(retry))["message"].endswith(STALE)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"capabilities": {}}, -32021),
        ({"params": {"inputResponses": {"a": {"action": "perhaps"}}}}, -32602),
        ({"params": {"inputResponses": []}}, -32602),
    ],
)
def test_prx10_answers_are_checked_before_they_go_up(facts: dict[str, Any], code: int) -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", ASKS)
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED}, **facts)
    assert error(host.reply_to(retry))["code"] == code
    assert methods(host).count("tools/call") == 1


def test_inp4_without_a_state_nothing_was_asked_and_nothing_goes_up() -> None:
    host = make_proxy()
    params = {"name": "render", "inputResponses": {"a": ACCEPTED}}
    host.request("tools/call", params)
    discover(host)
    assert "inputResponses" not in sent_up(host, "tools/call")[0]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"inputRequests": {}}, "upstream_invalid"),
        ({"inputRequests": [], "requestState": "x"}, "upstream_invalid"),
        ({"requestState": 7}, "upstream_invalid"),
        ({"inputRequests": {"a": {"method": "roots/list"}}}, "upstream_undeclared_input"),
        ({"inputRequests": {"a": {"method": "nonsense"}}}, "upstream_undeclared_input"),
    ],
)
def test_prx10_a_round_that_must_not_be_is_the_upstreams_fault(wrong: dict[str, Any], why: str) -> None:
    host = make_proxy()
    exchange = call(host)
    host.answer("tools/call", {"resultType": "input_required", **wrong})
    assert reason(host.reply_to(exchange)) == why


def test_lim3_a_state_may_be_so_long() -> None:
    host = make_proxy(limits=ProxyLimits(request_state_chars=1000))
    exchange = call(host)
    host.answer("tools/call", {"resultType": "input_required", "requestState": "x" * 2000})
    assert reason(host.reply_to(exchange)) == "request_state_chars"
    exchange = call(host)
    host.answer("tools/call", ASKS)
    length = len(result(host.reply_to(exchange))["requestState"])
    host = make_proxy(limits=ProxyLimits(request_state_chars=length))
    exchange = call(host)
    host.answer("tools/call", ASKS)
    assert len(result(host.reply_to(exchange))["requestState"]) == length


# -- collapse ------------------------------------------------------------------------------------------------


def collapsing(**more: Any) -> tuple[ProxyHost, int]:
    """Return a proxy whose caller takes no tasks, and a call that the upstream has made one of."""
    host = make_proxy(collapse=True, **more)
    exchange = call(host, tasks=False, principal="alice")
    assert "extensions" not in sent_up(host, "tools/call")[0]["_meta"][CLIENT_CAPABILITIES]
    host.refuse("tools/call", NEEDS_TASKS)
    return host, exchange


def collapsed(**more: Any) -> tuple[ProxyHost, int]:
    host, exchange = collapsing(**more)
    host.answer("tools/call", create())
    return host, exchange


def test_prx17_a_tool_that_needs_tasks_is_called_again_with_the_proxys_own_declaration() -> None:
    host, exchange = collapsing()
    declared = sent_up(host, "tools/call")[1]["_meta"][CLIENT_CAPABILITIES]
    assert declared["extensions"] == {TASKS_EXTENSION: {}}
    host.answer("tools/call", DONE)
    assert view(host.reply_to(exchange)) == DONE


def test_prx17_other_errors_are_relayed() -> None:
    host = make_proxy(collapse=True)
    others: list[Any] = [{"elicitation": {}}, {"extensions": {}}, {"extensions": 7}]
    for data in (*({"requiredCapabilities": other} for other in others), None):
        exchange = call(host, tasks=False)
        refusal = {"code": -32021, "message": "no", **({"data": data} if data else {})}
        host.refuse("tools/call", refusal)
        assert error(host.reply_to(exchange)) == refusal
    assert methods(host).count("tools/call") == 4


def test_prx4_a_call_is_not_sent_a_third_time() -> None:
    host, exchange = collapsing()
    host.refuse("tools/call", NEEDS_TASKS)
    assert error(host.reply_to(exchange)) == NEEDS_TASKS


def test_prx17_a_task_that_ends_soon_is_a_plain_result() -> None:
    host, exchange = collapsed()
    host.answer("tasks/get", task())
    host.advance(1000)
    host.answer("tasks/get", completed())
    assert view(host.reply_to(exchange)) == DONE


def test_prx17_a_task_that_takes_long_has_its_caller_come_again() -> None:
    host, exchange = collapsed(limits=ProxyLimits(collapse_ms=1500))
    host.answer("tasks/get", task())
    host.advance(1000)
    host.answer("tasks/get", task())
    host.advance(500)
    host.answer("tasks/get", task())
    reply = host.reply_to(exchange)
    assert result(reply)["resultType"] == "input_required"
    assert UPSTREAM_TASK not in str(reply)
    retry = again(host, reply, tasks=False, principal="alice")
    host.answer("tasks/get", completed())
    assert view(host.reply_to(retry)) == DONE
    assert methods(host).count("tools/call") == 2


def test_prx17_a_question_of_the_task_is_a_round_of_the_call() -> None:
    host, exchange = collapsed()
    asking = task("input_required", lastUpdatedAt=LATER, inputRequests={"a": form(), "b": form()})
    host.answer("tasks/get", asking)
    reply = host.reply_to(exchange)
    assert result(reply)["inputRequests"] == {"a": form(), "b": form()}
    retry = again(host, reply, {"a": ACCEPTED}, tasks=False, principal="alice")
    host.answer("tasks/get", asking)
    assert sent_up(host, "tasks/update")[0]["inputResponses"] == {"a": ACCEPTED}
    host.answer("tasks/update", {})
    host.answer("tasks/get", completed())
    assert view(host.reply_to(retry)) == DONE


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (
            task("failed", error={"code": 7, "message": f"{UPSTREAM_TASK} broke"}),
            {"code": 7, "message": " broke"},
        ),
        (
            task("cancelled"),
            {"code": -32603, "message": "Internal error: the task of this call was cancelled"},
        ),
    ],
)
def test_prx17_the_call_ends_as_its_task_does(ended: dict[str, Any], expected: dict[str, Any]) -> None:
    host, exchange = collapsed()
    host.answer("tasks/get", ended)
    failed = error(host.reply_to(exchange))
    assert failed["code"] == expected["code"]
    assert failed["message"].endswith(expected["message"])
    assert UPSTREAM_TASK not in failed["message"]


def test_prx17_an_end_that_is_kept_answers_the_next_round() -> None:
    host, exchange = collapsed()
    asking = task("input_required", inputRequests={"a": form()})
    host.answer("tasks/get", asking)
    reply = host.reply_to(exchange)
    first = again(host, reply, tasks=False, principal="alice")
    host.answer("tasks/get", completed())
    assert view(host.reply_to(first)) == DONE
    second = again(host, reply, {"a": ACCEPTED}, tasks=False, principal="alice")
    assert view(host.reply_to(second)) == DONE
    assert methods(host).count("tasks/get") == 2


def test_prx17_an_upstream_that_is_away_for_a_moment_does_not_end_the_call() -> None:
    host, exchange = collapsed(limits=ProxyLimits(attempts=1))
    host.fail("tasks/get")
    host.advance(500)
    host.answer("tasks/get", completed())
    assert view(host.reply_to(exchange)) == DONE


def test_prx17_a_task_that_is_lost_does() -> None:
    host, exchange = collapsed()
    host.refuse("tasks/get", {"code": -32602, "message": "Task not found"})
    assert reason(host.reply_to(exchange)) == "upstream_lost_task"


def test_prx17_the_handle_is_hidden_from_tasks() -> None:
    host, _ = collapsed()
    (handle,) = host.store.bindings
    for method in ("tasks/get", "tasks/cancel"):
        exchange = host.request(method, {"taskId": handle}, principal="alice")
        assert error(host.reply_to(exchange))["message"] == "Task not found"


def test_prx17_a_caller_who_leaves_before_it_has_a_state_leaves_no_orphan() -> None:
    host, exchange = collapsed()
    host.answer("tasks/get", task())
    host.give(ExchangeClosed(exchange))
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == UPSTREAM_TASK
    assert len(host.of(DropTask)) == 1
    host.advance(60_000)
    assert methods(host).count("tasks/get") == 1


def test_prx17_a_caller_who_leaves_later_may_come_again() -> None:
    host, exchange = collapsed()
    host.answer("tasks/get", task("input_required", inputRequests={"a": form()}))
    reply = host.reply_to(exchange)
    host.give(ExchangeClosed(again(host, reply, tasks=False, principal="alice")))
    host.answer("tasks/get", completed())
    assert "tasks/cancel" not in methods(host)
    retry = again(host, reply, tasks=False, principal="alice")
    assert view(host.reply_to(retry)) == DONE


def test_prx17_a_caller_who_leaves_while_its_answers_go_up() -> None:
    host, exchange = collapsed()
    asking = task("input_required", inputRequests={"a": form()})
    host.answer("tasks/get", asking)
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED}, tasks=False, principal="alice")
    host.answer("tasks/get", asking)
    host.give(ExchangeClosed(retry))
    host.answer("tasks/update", {})
    assert methods(host).count("tasks/get") == 2


def test_prx17_nor_does_one_who_leaves_after_its_answers_went_up_lose_the_task() -> None:
    host, exchange = collapsed()
    asking = task("input_required", inputRequests={"a": form()})
    host.answer("tasks/get", asking)
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED}, tasks=False, principal="alice")
    host.answer("tasks/get", asking)
    host.answer("tasks/update", {})
    host.give(ExchangeClosed(retry))
    assert "tasks/cancel" not in methods(host)


def test_prx17_answers_that_do_not_fit_are_refused() -> None:
    host, exchange = collapsed()
    asking = task("input_required", inputRequests={"a": form()})
    host.answer("tasks/get", asking)
    retry = again(host, host.reply_to(exchange), {"a": ACCEPTED}, tasks=False, principal="alice")
    host.refuse("tasks/get", {"code": -32603, "message": "no"})
    assert reason(host.reply_to(retry)) == "upstream_unavailable"


@pytest.mark.parametrize("what", ["withdrawn", "store", "left"])
def test_prx7_every_round_rechecks(what: str) -> None:
    host, exchange = collapsed()
    host.answer("tasks/get", task("input_required", inputRequests={"a": form()}))
    reply = host.reply_to(exchange)
    host.held = True
    retry = again(host, reply, tasks=False, principal="alice")
    if what == "withdrawn":
        host.give(
            SettingsChanged(
                make_settings(collapse=True, profiles={"default": ToolProfile(tools=frozenset())})
            )
        )
        host.answer_next()
        assert error(host.reply_to(retry))["message"].endswith(STALE)
    elif what == "store":
        host.give(LoadFailed(host.asked.pop().token))
        assert reason(host.reply_to(retry)) == "store_unavailable"
    else:
        host.give(ExchangeClosed(retry))
        assert host.answer_next() == []


def test_prx17_without_the_policy_the_task_is_for_get_only() -> None:
    host = make_proxy()
    exchange = call(host, tasks=False)
    host.refuse("tools/call", NEEDS_TASKS)
    assert error(host.reply_to(exchange))["code"] == -32021


@pytest.mark.parametrize(("answers", "which"), [(7, "inputResponses"), ({"a": 7}, "inputResponses['a']")])
def test_inp4_answers_without_a_state_have_to_be_answers(answers: Any, which: str) -> None:
    host = make_proxy()
    call(host)
    params = {"name": "render", "inputResponses": answers}
    refused = error(host.reply_to(host.request("tools/call", params)))
    assert refused == {"code": -32602, "message": f"Invalid params: {which} must be an object"}
    assert methods(host).count("tools/call") == 1


def test_inp4_answers_without_a_state_go_up_as_they_are() -> None:
    """Core, "MRTR": an upstream may know them by their keys, and ignores what it does not expect."""
    host = make_proxy()
    answers = {"a": ACCEPTED, "unexpected": ACCEPTED}
    params = {"name": "render", "inputResponses": answers}
    exchange = host.request("tools/call", params, capabilities=FORMS)
    discover(host)
    assert sent_up(host, "tools/call")[0]["inputResponses"] == answers
    assert "requestState" not in sent_up(host, "tools/call")[0]
    host.answer("tools/call", ASKS)
    assert result(host.reply_to(exchange))["inputRequests"] == {"a": form()}


def test_prx10_who_can_be_asked_nothing_answers_nothing() -> None:
    host = make_proxy()
    host.request("tools/call", {"name": "render", "inputResponses": {"a": ACCEPTED}})
    discover(host)
    assert "inputResponses" not in sent_up(host, "tools/call")[0]


def test_lim3_answers_without_a_state_are_so_many() -> None:
    host = make_proxy(limits=ProxyLimits(input_keys=1))
    params = {"name": "render", "inputResponses": {"a": ACCEPTED, "b": ACCEPTED}}
    refused = host.request("tools/call", params, capabilities=FORMS)
    assert error(host.reply_to(refused))["data"]["reason"] == "input_keys"
    answers = {"a": ACCEPTED}
    host.request("tools/call", {"name": "render", "inputResponses": answers}, capabilities=FORMS)
    discover(host)
    assert sent_up(host, "tools/call")[0]["inputResponses"] == answers
