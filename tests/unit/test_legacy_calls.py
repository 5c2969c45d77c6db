"""Calls of a 2025-11-25 client: plain ones, those that ask on the way, those that become tasks (LEG.3)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    ErrorObject,
    ExchangeClosed,
    Forward,
    Limits,
    LocalProtocolError,
    ShutdownStarted,
    StartTool,
    StartWork,
    StopCall,
)
from mcp_tasks_proto.legacy.server import LegacyPolicy
from tests.unit.legacy_world import LegacyClient, call, created, make_dual, opened, started
from tests.unit.world import ACCEPTED, DONE, START_TEXT, TASK, form, view

SAMPLE: Final[dict[str, Any]] = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5},
}
SAMPLED: Final = {"role": "assistant", "content": {"type": "text", "text": "Ho"}, "model": "m"}


def ask(client: LegacyClient, state: Any = None, **requests: Any) -> None:
    """Let the handler that runs now ask."""
    client.host.give(CallAskedInput(started(client.host).exchange, requests, state))


def finish(client: LegacyClient, result: Any = DONE) -> None:
    """Let the handler that runs now return."""
    client.host.give(CallReturned(started(client.host).exchange, result))


# -- plain calls ---------------------------------------------------------------------------------------


def test_leg3_trap22_a_plain_call_stays_plain() -> None:
    client = opened(make_dual())
    exchange = call(client, _meta={"progressToken": 3})
    start = started(client.host)
    assert (start.can_create_task, start.must_create_task, start.arguments) == (False, False, {"frames": 3})
    finish(client)
    assert client.result(exchange) == DONE


def test_leg3_a_tool_that_needs_a_task_refuses_a_plain_call() -> None:
    refused = opened(make_dual()).refused("tools/call", {"name": "required"})
    assert refused["code"] == -32601
    assert refused["message"].endswith("tools/call of required without a task: it runs only as one")


@pytest.mark.parametrize("facts", [{"policy": LegacyPolicy.IGNORE}, {}], ids=["ignore", "off"])
def test_leg1_leg3_where_tasks_are_not_served_the_wish_for_one_is_ignored(facts: dict[str, Any]) -> None:
    client = opened(make_dual(**facts))
    client.tasks_enabled = bool(facts)
    exchange = call(client, task={"ttl": "nonsense"})
    start = started(client.host)
    assert not start.can_create_task
    assert not start.must_create_task
    assert "task" not in start.params
    finish(client)
    assert client.result(exchange) == DONE
    refused = client.refused("tools/call", {"name": "required", "task": {}})
    assert refused["code"] == -32601
    assert "clients of 2025-11-25 have none here; those of 2026-07-28 may" in refused["message"]


def test_what_the_modern_era_says_in_params_means_nothing() -> None:
    client = opened(make_dual())
    call(client, requestState="nonsense", inputResponses={"name": ACCEPTED})
    assert started(client.host).answers == {}


def test_progress_is_told_on_the_calls_own_stream() -> None:
    client = opened(make_dual())
    exchange = call(client, _meta={"progressToken": "p"})
    inner = started(client.host).exchange
    for done in (1, 2, 3):
        client.host.give(CallNotified(inner, "notifications/progress", {"progress": done}))
    told = client.read(exchange)
    assert [one["params"] for one in told] == [
        {"progress": 1, "progressToken": "p"},
        {"progress": 3, "progressToken": "p"},
    ]
    client.host.give(CallNotified(inner, "notifications/message", {"level": "error", "data": 1}))
    finish(client)
    assert client.read(exchange) == told


def test_progress_is_not_told_to_who_takes_no_streams() -> None:
    client = opened(make_dual(), accepts_stream=False)
    exchange = call(client, _meta={"progressToken": "p"})
    for done in (1, 2):
        inner = started(client.host).exchange
        client.host.give(CallNotified(inner, "notifications/progress", {"progress": done}))
    finish(client)
    assert client.read(exchange) == []
    assert client.result(exchange) == DONE


def test_can7_a_call_is_cancelled_by_its_notification() -> None:
    client = opened(make_dual())
    exchange = call(client)
    client.notify("notifications/cancelled", {"requestId": "r1"})
    assert client.host.of(StopCall) == [StopCall(exchange), StopCall(started(client.host).exchange)]
    finish(client)
    assert client.replies(exchange) == []


@pytest.mark.parametrize("request_id", [True, 1.0, "1", [1], {}, None], ids=str)
def test_can7_what_is_no_id_of_a_request_cancels_none(request_id: Any) -> None:
    client = opened(make_dual())
    exchange = client.request("tools/call", {"name": "optional"}, id=1)
    client.notify("notifications/cancelled", {"requestId": request_id})
    assert client.host.of(StopCall) == []
    finish(client)
    assert client.result(exchange) == DONE


def test_a_call_goes_on_without_its_connection() -> None:
    """Over HTTP a lost connection is no cancellation."""
    client = opened(make_dual())
    exchange = call(client, _meta={"progressToken": "p"})
    client.host.give(ExchangeClosed(exchange))
    inner = started(client.host).exchange
    client.host.give(CallNotified(inner, "notifications/progress", {"progress": 1}))
    client.host.give(CallNotified(inner, "notifications/progress", {"progress": 2}))
    assert client.host.of(StopCall) == []
    finish(client)
    assert client.replies(exchange) == []
    assert client.result(client.request("ping", id="r1")) == {}


# -- questions on the way --------------------------------------------------------------------------------


def test_a_call_asks_on_its_own_stream_and_goes_on_with_the_answers() -> None:
    client = opened(make_dual())
    exchange = call(client)
    ask(client, {"round": 1}, name=form(), thought=SAMPLE, roots={"method": "roots/list"})
    name, thought, roots = client.questions(exchange)
    assert (name["method"], name["params"]) == ("elicitation/create", form()["params"])
    assert (thought["method"], thought["params"]) == ("sampling/createMessage", SAMPLE["params"])
    assert (roots["method"], roots["params"]) == ("roots/list", {})
    client.respond(thought, SAMPLED)
    client.respond(roots, {"roots": [{"uri": "file:///tmp"}]})
    assert len(client.host.of(StartTool)) == 1
    client.respond(name, ACCEPTED)
    client.respond(name, ACCEPTED)
    start = started(client.host)
    assert len(client.host.of(StartTool)) == 2
    assert start.state == {"round": 1}
    assert start.answers == {
        "name": ACCEPTED,
        "thought": SAMPLED,
        "roots": {"roots": [{"uri": "file:///tmp"}]},
    }
    finish(client)
    assert client.result(exchange) == DONE


def test_a_call_may_ask_again_and_again() -> None:
    client = opened(make_dual())
    exchange = call(client)
    for number in (1, 2, 3):
        ask(client, number, name=form())
        client.respond(client.questions(exchange)[-1], ACCEPTED)
        assert started(client.host).state == number
    finish(client)
    assert len({one["id"] for one in client.questions(exchange)}) == 3


def test_prompts_and_resources_may_ask_too() -> None:
    client = opened(make_dual(methods=frozenset({"prompts/get"})))
    exchange = client.request("prompts/get", {"name": "p"})
    (first,) = client.host.of(Forward)
    client.host.give(CallAskedInput(first.exchange, {"name": form()}))
    client.respond(client.questions(exchange)[0], ACCEPTED)
    assert client.host.of(Forward)[1].answers == {"name": ACCEPTED}


def test_a_url_to_go_to_gets_an_id_of_its_own() -> None:
    client = opened(make_dual(), capabilities={"elicitation": {"url": {}}})
    exchange = call(client)
    url = {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Go", "url": "https://x.org/"},
    }
    ask(client, first=url, second=url)
    ids = {one["params"]["elicitationId"] for one in client.questions(exchange)}
    assert len(ids) == 2


def test_an_elicitation_that_the_client_cannot_show_counts_as_cancelled() -> None:
    client = opened(make_dual())
    exchange = call(client)
    ask(client, name=form())
    client.respond(client.questions(exchange)[0], error={"code": -32603, "message": "no screen"})
    assert started(client.host).answers == {"name": {"action": "cancel"}}


def test_any_other_error_of_the_client_is_that_of_the_call() -> None:
    client = opened(make_dual())
    exchange = call(client)
    ask(client, thought=SAMPLE, name=form())
    thought, name = client.questions(exchange)
    client.respond(thought, error={"code": -1, "message": "User rejected", "data": 1})
    assert client.error(exchange) == {"code": -1, "message": "User rejected", "data": 1}
    withdrawn = client.read(exchange)[-1]
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"] == {"requestId": name["id"], "reason": "The answer is no longer needed."}
    client.respond(name, ACCEPTED)
    assert len(client.host.of(StartTool)) == 1


def test_upd4_an_answer_that_does_not_fit_ends_the_call() -> None:
    client = opened(make_dual())
    exchange = call(client)
    ask(client, name=form())
    client.respond(client.questions(exchange)[0], {"action": "accept", "content": {"name": 3}})
    assert client.error(exchange)["code"] == -32602


def test_inp2_what_the_client_did_not_declare_is_not_asked() -> None:
    client = opened(make_dual(), capabilities={})
    exchange = call(client)
    ask(client, name=form())
    assert client.error(exchange)["code"] == -32602
    assert client.error(exchange)["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


def test_who_takes_no_streams_cannot_be_asked() -> None:
    client = opened(make_dual(), accepts_stream=False)
    exchange = call(client)
    ask(client, name=form())
    assert client.error(exchange)["code"] == -32600


def test_a_call_that_is_cancelled_takes_its_questions_back() -> None:
    client = opened(make_dual())
    exchange = call(client)
    ask(client, name=form())
    (question,) = client.questions(exchange)
    client.notify("notifications/cancelled", {"requestId": "r1"})
    assert client.read(exchange)[-1]["params"]["requestId"] == question["id"]
    assert client.host.of(StopCall) == [StopCall(exchange)]


def test_a_stopping_server_waits_for_no_answers() -> None:
    client = opened(make_dual())
    exchange, running = call(client), call(client)
    client.host.give(CallAskedInput(client.host.of(StartTool)[0].exchange, {"name": form()}))
    client.host.give(ShutdownStarted())
    assert client.error(exchange)["data"] == {"reason": "shutting_down"}
    assert client.reply(exchange).http_status == 503
    assert client.replies(running) == []


# -- calls that become tasks ---------------------------------------------------------------------------------


def test_leg3_a_call_that_wants_a_task_gets_one_nested() -> None:
    client = opened(make_dual())
    assert created(client) == {
        "taskId": TASK,
        "status": "working",
        "createdAt": f"{START_TEXT}.000Z",
        "lastUpdatedAt": f"{START_TEXT}.000Z",
        "ttl": 3_600_000,
        "pollInterval": 1000,
    }
    assert client.host.of(StartWork) == [StartWork(started(client.host).exchange, TASK)]
    record = client.host.store.records[TASK]
    assert record.client_capabilities["elicitation"] == {}


def test_leg3_a_required_tool_runs_as_a_task() -> None:
    assert created(opened(make_dual()), tool="required")["status"] == "working"


def test_leg3_a_tool_that_never_becomes_a_task_refuses_the_wish_for_one() -> None:
    client = opened(make_dual())
    assert client.refused("tools/call", {"name": "forbidden", "task": {}})["code"] == -32601


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({}, 3_600_000),
        ({"ttl": 60_000}, 60_000),
        ({"ttl": 1500.9}, 1500),
        ({"ttl": 1}, 1),
        ({"ttl": None}, 100_000_000),
        ({"ttl": 2**60}, 100_000_000),
        ({"ttl": 1e300}, 100_000_000),
        ({"ttl": 5, "x": 1}, 5),
    ],
    ids=str,
)
def test_leg3_a_task_lives_as_long_as_its_caller_asks_within_bounds(asked: Any, given: int) -> None:
    client = opened(make_dual(Limits(requested_ttl_ms=100_000_000)))
    assert created(client, **asked)["ttl"] == given


@pytest.mark.parametrize("ttl", [None, 77])
def test_leg3_what_the_tool_says_of_the_lifetime_goes_first(ttl: int | None) -> None:
    client = opened(make_dual())
    exchange = call(client, task={"ttl": 5})
    inner = started(client.host).exchange
    client.host.give(CallBecameTask(exchange=inner, task_id=TASK, ttl_ms=ttl, poll_interval_ms=None))
    assert client.result(exchange)["task"]["ttl"] == ttl
    assert "pollInterval" not in client.result(exchange)["task"]


@pytest.mark.parametrize("task", [7, "x", [], True, {"ttl": 0.5}, {"ttl": -1}, {"ttl": True}, {"ttl": "60"}])
def test_leg3_a_wish_that_makes_no_sense_is_refused(task: Any) -> None:
    client = opened(make_dual())
    assert client.refused("tools/call", {"name": "optional", "task": task})["code"] == -32602
    assert client.host.of(StartTool) == []


def test_leg3_a_null_is_no_wish() -> None:
    client = opened(make_dual())
    call(client, task=None)
    assert not started(client.host).must_create_task


@pytest.mark.parametrize("name", ["nothing", None, 3, ["x"]])
def test_a_tool_that_is_none_is_refused(name: Any) -> None:
    client = opened(make_dual())
    tasks: list[Any] = [{}, None]
    for task in tasks:
        assert client.refused("tools/call", {"name": name, "task": task})["code"] == -32602


def test_leg3_a_handler_owes_the_task_at_once() -> None:
    client = opened(make_dual())
    exchange = call(client, task={})
    inner = started(client.host).exchange
    for fact in (CallReturned(inner, DONE), CallAskedInput(inner, {"name": form()})):
        with pytest.raises(LocalProtocolError, match=r"LEG\.3"):
            client.host.give(fact)
    client.host.give(CallFailed(inner, ErrorObject(-32603, "gone")))
    assert client.error(exchange)["code"] == -32603
    assert client.host.of(StopCall) == []


def test_leg3_a_task_that_the_store_has_no_room_for_is_an_error_and_its_offer_is_let_go() -> None:
    host = make_dual(Limits(tasks=1))
    client = opened(host)
    created(client)
    exchange = call(client, task={})
    inner = started(host).exchange
    host.give(CallBecameTask(exchange=inner, task_id="task-new-0123456789abcdef"))
    assert client.error(exchange)["data"] == {"reason": "tasks"}
    assert host.of(StopCall) == [StopCall(inner)]


def test_can7_who_cancels_before_the_task_is_there_leaves_none() -> None:
    host = make_dual()
    client = opened(host)
    exchange = call(client, task={})
    inner = started(host).exchange
    host.held = True
    host.give(CallBecameTask(exchange=inner, task_id=TASK))
    client.notify("notifications/cancelled", {"requestId": "r1"})
    assert StopCall(exchange) in host.effects
    while host.asked:
        host.answer_next()
    assert client.replies(exchange) == []
    assert TASK not in host.store.records


def test_can7_a_lost_connection_takes_no_task_along() -> None:
    host = make_dual()
    client = opened(host)
    exchange = call(client, task={})
    inner = started(host).exchange
    host.held = True
    host.give(CallBecameTask(exchange=inner, task_id=TASK))
    host.give(ExchangeClosed(exchange))
    host.held = False
    host.answer_next()
    assert client.replies(exchange) == []
    assert view(host)["status"] == "working"
