"""Questions and answers, inside a task and before one: INP.1 to INP.4, UPD.3 to UPD.5, TRAPS 2, 3, 8."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from mcp_tasks_proto import (
    AcceptReport,
    CallAskedInput,
    CallBecameTask,
    CallReturned,
    DeliverInput,
    ErrorCode,
    Forward,
    HmacSealer,
    InputAnswer,
    InputVisibility,
    Limits,
    RejectReport,
    Reply,
    Save,
    ServerEngine,
    StartTool,
    StartWork,
    WorkAskedInput,
    WorkCompleted,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing import DictStore, ServerHost, request
from mcp_tasks_proto.wire.jsonrpc import json_size
from tests.unit.world import (
    ACCEPTED,
    DECLINED,
    DONE,
    FORMS,
    TASK,
    TOOLS,
    asked,
    call,
    error,
    form,
    forwarded,
    make_engine,
    make_host,
    parked,
    refused,
    result,
    update,
    view,
    working,
)

URL = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay", "url": "https://x.example/"},
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5},
}
ROOTS = {"method": "roots/list"}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}


def outstanding(host: ServerHost) -> list[str]:
    """Return the keys that the owner sees."""
    return list(view(host).get("inputRequests", {}))


def withdraw(host: ServerHost, ask: str) -> None:
    host.give(WorkWithdrewInput(task_id=TASK, token="withdrawn", ask=ask))


# -- asking (INP.1, INP.2, INP.3) ------------------------------------------------------------------


def test_inp1_the_owner_sees_all_outstanding_requests_and_only_those() -> None:
    host = make_host()
    working(host)
    host.give(asked("first", "confirm", "colour", token="q"))
    assert host.of(AcceptReport) == [AcceptReport("q")]
    assert view(host)["status"] == "input_required"
    assert view(host)["inputRequests"] == {"confirm": form(), "colour": form()}
    update(host, {"confirm": ACCEPTED})
    assert outstanding(host) == ["colour"]
    host.give(asked("second", "size"))
    assert outstanding(host) == ["colour", "size"]


def test_inp1_a_key_is_never_used_again() -> None:
    """Not while it waits, nor once it was answered, nor once it was given up."""
    host = make_host()
    parked(host, "confirm")
    host.give(asked("second", "confirm"))
    assert outstanding(host) == ["confirm", "confirm.2"]
    update(host, {"confirm": ACCEPTED})
    withdraw(host, "second")
    assert view(host)["status"] == "working"
    host.give(asked("third", "confirm"))
    assert outstanding(host) == ["confirm.3"]
    update(host, {"confirm.3": ACCEPTED})
    host.give(asked("fourth", "confirm", "confirm.4"))
    assert sorted(outstanding(host)) == ["confirm.4", "confirm.4.2"]


def test_inp1_names_that_look_like_keys_stay_apart() -> None:
    host = make_host()
    parked(host, "confirm.2", "confirm")
    host.give(asked("second", "confirm"))
    assert outstanding(host) == ["confirm.2", "confirm", "confirm.3"]


def test_inp2_only_what_the_original_call_declared_may_be_asked() -> None:
    host = make_host()
    working(host, capabilities={"elicitation": {}, "roots": {}})
    host.give(asked("fine", ROOTS=ROOTS, FORM=form()))
    for request_ in (URL, SAMPLE):
        (rejected,) = host.give(asked("wrong", "also", confirm=request_, token="q"))
        assert isinstance(rejected, RejectReport)
        assert rejected.token == "q"
        assert "did not declare" in rejected.reason
    assert outstanding(host) == ["ROOTS", "FORM"], "nothing of a rejected question is asked"


def test_inp2_a_later_request_declares_nothing_for_the_task() -> None:
    host = make_host()
    working(host, capabilities={})
    view(host, capabilities=FORMS)
    assert isinstance(host.give(asked("first", "confirm"))[0], RejectReport)


@pytest.mark.parametrize(
    "requests",
    [
        {},
        {"": form()},
        {"confirm": {}},
        {"confirm": {"method": "tools/call"}},
        {"confirm": form(requestedSchema=[])},
        {"confirm": form(requestedSchema={"type": "object", "properties": {}, "required": ["nmae"]})},
    ],
    ids=repr,
)
def test_a_question_that_is_none_is_rejected(requests: Any) -> None:
    host = make_host()
    working(host)
    (rejected,) = host.give(WorkAskedInput(task_id=TASK, token="q", ask="first", requests=requests))
    assert isinstance(rejected, RejectReport)
    assert view(host)["status"] == "working"


def test_inp2_the_owner_sees_requests_whatever_the_poll_declares() -> None:
    host = make_host()
    parked(host)
    assert list(view(host, capabilities={})["inputRequests"]) == ["confirm"]


def test_inp2_the_strict_policy_shows_them_to_who_can_answer() -> None:
    host = make_host(input_visibility=InputVisibility.STRICT)
    parked(host)
    assert list(view(host, capabilities=FORMS)["inputRequests"]) == ["confirm"]
    exchange = host.send(request("tasks/get", {"taskId": TASK}))
    assert host.of(Reply)[-1].http_status == 400
    assert error(host.reply_to(exchange)) == {
        "code": ErrorCode.MISSING_CLIENT_CAPABILITY,
        "message": "Missing required client capability: elicitation (form)",
        "data": {"requiredCapabilities": {"elicitation": {"form": {}}}},
    }


def test_inp2_the_strict_policy_names_only_what_is_outstanding_and_missing() -> None:
    host = make_host(input_visibility=InputVisibility.STRICT)
    every: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}}
    working(host, capabilities=every)
    host.give(asked("first", a=form(), b=URL, c=ROOTS, d=SAMPLE))
    refusal = host.ask("tasks/get", {"taskId": TASK}, capabilities={"elicitation": {"form": {}}, "roots": {}})
    assert error(refusal)["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}, "sampling": {}}
    update(host, {"b": {"action": "accept"}, "d": SAMPLED})
    assert outstanding_for(host, {"elicitation": {"form": {}}, "roots": {}}) == ["a", "c"]
    withdraw(host, "first")
    assert view(host, capabilities={})["status"] == "working", "nothing is hidden where nothing is asked"


def outstanding_for(host: ServerHost, capabilities: dict[str, Any]) -> list[str]:
    return list(view(host, capabilities=capabilities)["inputRequests"])


def test_inp2_a_stranger_learns_nothing_from_the_strict_policy() -> None:
    host = make_host(input_visibility=InputVisibility.STRICT)
    parked(host, principal="alice")
    refusal = host.ask("tasks/get", {"taskId": TASK}, principal="bob")
    assert error(refusal)["message"] == "Task not found"


def test_inp3_several_at_once_answered_one_at_a_time() -> None:
    host = make_host()
    parked(host, "a", "b", "c")
    for key, left in [("b", ["a", "c"]), ("a", ["c"])]:
        update(host, {key: ACCEPTED})
        assert view(host)["status"] == "input_required"
        assert outstanding(host) == left
    update(host, {"c": DECLINED})
    assert view(host)["status"] == "working"
    assert [answer.key for delivered in host.of(DeliverInput) for answer in delivered.answers] == [
        "b",
        "a",
        "c",
    ]


def test_lim3_a_task_asks_only_so_often() -> None:
    host = make_host(Limits(input_keys=3))
    parked(host, "a", "b")
    (rejected,) = host.give(asked("second", "c", "d", token="q"))
    assert isinstance(rejected, RejectReport)
    assert "input_keys" in rejected.reason
    update(host, {"a": ACCEPTED, "b": ACCEPTED})
    host.give(asked("third", "c"))
    assert outstanding(host) == ["c"]
    assert isinstance(host.give(asked("fourth", "d"))[0], RejectReport)


def test_lim3_requests_have_a_size() -> None:
    host = make_host(Limits(result_bytes=json_size({"confirm": form("x" * 200)})))
    working(host)
    host.give(asked("first", confirm=form("x" * 200)))
    assert outstanding(host) == ["confirm"]
    (rejected,) = host.give(asked("second", confirm=form("x" * 201), token="q"))
    assert isinstance(rejected, RejectReport)
    assert "result_bytes" in rejected.reason


def test_a_request_does_not_change_with_the_object_it_came_in() -> None:
    host = make_host()
    working(host)
    wanted = form()
    host.give(asked("first", confirm=wanted))
    wanted["params"]["message"] = "Your password?"
    assert view(host)["inputRequests"]["confirm"] == form()


# -- withdrawing -----------------------------------------------------------------------------------


def test_a_worker_may_give_up_a_question() -> None:
    host = make_host()
    parked(host, "a", "b")
    host.give(asked("second", "c"))
    update(host, {"a": ACCEPTED})
    withdraw(host, "first")
    assert view(host)["status"] == "input_required"
    assert outstanding(host) == ["c"]
    withdraw(host, "second")
    assert view(host)["status"] == "working"
    withdraw(host, "second")
    assert view(host)["status"] == "working"
    assert "result" in update(host, {"b": ACCEPTED, "c": ACCEPTED})
    assert len(host.of(DeliverInput)) == 1, "a superseded key is ignored"


# -- answering (UPD.3, UPD.4, UPD.5) ---------------------------------------------------------------


def test_upd3_an_answer_reaches_the_worker_with_the_acknowledgement_and_once() -> None:
    """TRAP 2."""
    host = make_host()
    parked(host)
    before = len(host.effects)
    reply = update(host, {"confirm": ACCEPTED})
    assert result(reply)["resultType"] == "complete"
    assert [type(effect) for effect in host.effects[before:]] == [DeliverInput, Reply]
    assert host.of(DeliverInput) == [
        DeliverInput(TASK, (InputAnswer("confirm", "first", "confirm", ACCEPTED),))
    ]
    assert view(host)["status"] == "working"
    update(host, {"confirm": DECLINED})
    assert len(host.of(DeliverInput)) == 1, "an answered key is ignored"


def test_upd3_an_answer_finds_its_question() -> None:
    """A key is the peer's word; the worker knows its question and the name it gave."""
    host = make_host()
    parked(host, "confirm")
    host.give(asked("second", "confirm"))
    update(host, {"confirm.2": DECLINED})
    (delivered,) = host.of(DeliverInput)
    assert delivered.answers == (InputAnswer("confirm.2", "second", "confirm", DECLINED),)


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"unknown": ACCEPTED},
        {"": {}},
        {"first": ACCEPTED},
        {"confirm.2": ACCEPTED},
        {"unknown": {"x": 1}},
    ],
    ids=repr,
)
def test_upd3_unknown_keys_are_ignored(answers: dict[str, Any]) -> None:
    """TRAP 1 among them: nothing runs."""
    host = make_host()
    parked(host)
    before = view(host)
    effects_before = len(host.effects)
    assert result(update(host, answers))["resultType"] == "complete"
    assert [type(effect) for effect in host.effects[effects_before:]] == [Reply]
    assert view(host) == before


def test_upd3_known_keys_are_taken_beside_unknown_ones() -> None:
    host = make_host()
    parked(host)
    update(host, {"unknown": {"x": 1}, "confirm": ACCEPTED})
    assert view(host)["status"] == "working"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"action": "maybe"},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"name": 5}},
        {"action": "accept", "content": []},
        SAMPLED,
    ],
    ids=repr,
)
def test_upd4_a_malformed_answer_is_refused_and_nothing_is_applied(answer: dict[str, Any]) -> None:
    host = make_host()
    parked(host, "good", "bad")
    before = view(host)
    reply = update(host, {"good": ACCEPTED, "bad": answer})
    assert error(reply)["code"] == ErrorCode.INVALID_PARAMS
    assert "bad" in error(reply)["message"]
    assert not host.of(DeliverInput)
    assert view(host) == before
    update(host, {"good": ACCEPTED, "bad": DECLINED})
    assert view(host)["status"] == "working"


@pytest.mark.parametrize("answers", [None, [], "x", {"confirm": None}, {"confirm": "yes"}], ids=repr)
def test_upd4_answers_are_objects(answers: Any) -> None:
    host = make_host()
    parked(host)
    reply = host.ask("tasks/update", {"taskId": TASK, "inputResponses": answers})
    assert error(reply)["code"] == ErrorCode.INVALID_PARAMS
    assert error(host.ask("tasks/update", {"taskId": TASK}))["code"] == ErrorCode.INVALID_PARAMS


def test_upd4_the_answer_fits_its_request_not_another() -> None:
    host = make_host()
    working(host, capabilities={"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
    host.give(asked("first", form=form(), url=URL, sample=SAMPLE, roots=ROOTS))
    good: dict[str, Any] = {
        "form": ACCEPTED,
        "url": {"action": "accept"},
        "sample": SAMPLED,
        "roots": {"roots": [{"uri": "file:///tmp"}]},
    }
    for key in good:
        for other, answer in good.items():
            if other != key and not (key == "url" and other == "form"):
                assert "error" in update(host, {key: answer}), (key, other)
    assert "result" in update(host, good)
    assert view(host)["status"] == "working"


def test_upd5_an_update_of_an_ended_task_applies_nothing() -> None:
    host = make_host()
    parked(host)
    host.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    before = view(host)
    assert "result" in update(host, {"confirm": {"not": "checked"}})
    assert view(host) == before
    assert not host.of(DeliverInput)


def test_an_answer_does_not_change_with_the_object_it_came_in() -> None:
    """Nor does the record change with what the worker does to the answer."""
    store = DictStore()
    host = make_host(store=store)
    parked(host, "a", "b")
    content = {"name": "Ada"}
    update(host, {"a": {"action": "accept", "content": content}})
    content["name"] = "Eve"
    kept = store.records[TASK].inputs[0].response
    assert kept == ACCEPTED


def test_answers_count_against_the_size_of_their_task() -> None:
    host = make_host()
    parked(host)
    before = host.store.records[TASK].payload_bytes
    update(host, {"confirm": DECLINED})
    assert host.store.records[TASK].payload_bytes == before + len('{"action":"decline"}')


# -- before a task: multi round-trip requests (INP.4) ----------------------------------------------


def ask_before(host: ServerHost, exchange: int, state: Any = None) -> dict[str, Any]:
    """Let a handler ask for a confirmation; return the result that its client gets."""
    host.give(CallAskedInput(exchange, {"confirm": form()}, state))
    return result(host.reply_to(exchange))


def retry(host: ServerHost, state: Any, answers: Any = None, **facts: Any) -> int:
    """Call the tool again with what came of the round before; return the exchange."""
    params = {"name": "optional", "arguments": facts.pop("arguments", {}), "requestState": state}
    if answers is not None:
        params["inputResponses"] = answers
    principal = facts.pop("principal", None)
    return host.send(request("tools/call", params, capabilities=FORMS, **facts), principal=principal)


def test_inp4_a_call_may_ask_before_there_is_a_task() -> None:
    """TRAP 8: passed through, and no task is minted."""
    host = make_host()
    asking = ask_before(host, call(host, capabilities=FORMS), state={"step": 1})
    assert set(asking) == {"resultType", "inputRequests", "requestState", "_meta"}
    assert asking["resultType"] == "input_required"
    assert asking["inputRequests"] == {"confirm": form()}
    assert host.store.records == {}
    retry(host, asking["requestState"], {"confirm": ACCEPTED, "unknown": {"x": 1}})
    started = host.of(StartTool)[-1]
    assert (started.answers, started.state) == ({"confirm": ACCEPTED}, {"step": 1})


def test_inp4_then_it_may_become_a_task_with_keys_of_its_own() -> None:
    host = make_host()
    asking = ask_before(host, call(host, capabilities=FORMS))
    exchange = retry(host, asking["requestState"], {"confirm": ACCEPTED})
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    assert host.of(StartWork) == [StartWork(exchange, TASK)]
    host.give(asked("first", "confirm"))
    assert outstanding(host) == ["confirm"]


def test_inp4_a_call_may_ask_again() -> None:
    host = make_host()
    asking = ask_before(host, call(host, capabilities=FORMS), state=1)
    second = ask_before(host, retry(host, asking["requestState"], {}), state=2)
    assert host.of(StartTool)[-1].answers == {}, "missing answers are for the handler to ask again"
    retry(host, second["requestState"], {"confirm": DECLINED})
    assert (host.of(StartTool)[-1].answers, host.of(StartTool)[-1].state) == ({"confirm": DECLINED}, 2)


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_inp4_the_hosts_methods_may_ask_too(method: str) -> None:
    host = make_host(methods=frozenset({method}))
    params = {"name": "greet", "uri": "x:y"}
    asking = ask_before(host, forwarded(host, method, params, capabilities=FORMS), state=[1])
    again = {**params, "requestState": asking["requestState"], "inputResponses": {"confirm": ACCEPTED}}
    forwarded(host, method, again, capabilities=FORMS)
    assert (host.of(Forward)[-1].answers, host.of(Forward)[-1].state) == ({"confirm": ACCEPTED}, [1])
    wrong = host.ask(method, {**again, "requestState": "x"}, capabilities=FORMS)
    assert error(wrong)["code"] == ErrorCode.INVALID_PARAMS


def test_inp4_other_methods_may_not() -> None:
    host = make_host(methods=frozenset({"completion/complete"}))
    exchange = forwarded(
        host, "completion/complete", {"requestState": 5, "inputResponses": 6}, capabilities=FORMS
    )
    assert (host.of(Forward)[-1].answers, host.of(Forward)[-1].state) == ({}, None), "not its fields"
    assert "cannot ask" in refused(host, CallAskedInput(exchange, {"confirm": form()}))
    host.give(CallReturned(exchange, {}))
    assert "result" in host.reply_to(exchange)


def test_a_question_before_a_task_is_well_formed() -> None:
    host = make_host()
    exchange = call(host, capabilities=FORMS)
    questions: list[Any] = [{}, {"confirm": {}}, {"confirm": {"method": "ping"}}]
    for wrong in questions:
        assert "requests" in refused(host, CallAskedInput(exchange, wrong))
    assert "not JSON" in refused(host, CallAskedInput(exchange, {"confirm": form()}, state={1, 2}))
    assert ask_before(host, exchange)["resultType"] == "input_required"


def changed(token: str) -> str:
    middle = len(token) // 2
    return token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]


@pytest.mark.parametrize(
    ("spoil", "facts"),
    [
        (lambda token: token, {"principal": "bob"}),
        (lambda token: token, {"principal": None}),
        (lambda token: token, {"principal": "alice", "arguments": {"frames": 9}}),
        (changed, {"principal": "alice"}),
        (lambda token: token[:-4], {"principal": "alice"}),
        (lambda token: "", {"principal": "alice"}),
        (lambda token: None, {"principal": "alice"}),
        (lambda token: {"x": token}, {"principal": "alice"}),
    ],
    ids=["foreign", "nobody's", "transplanted", "changed", "cut", "empty", "null", "an object"],
)
def test_inp4_a_state_that_does_not_fit_is_refused(spoil: Any, facts: dict[str, Any]) -> None:
    host = make_host()
    asking = ask_before(host, call(host, capabilities=FORMS, principal="alice"))
    started = len(host.of(StartTool))
    exchange = retry(host, spoil(asking["requestState"]), {"confirm": ACCEPTED}, **facts)
    assert error(host.reply_to(exchange))["code"] == ErrorCode.INVALID_PARAMS
    assert len(host.of(StartTool)) == started


@pytest.mark.parametrize(("late_ms", "accepted"), [(999, True), (1_000, False)])
def test_inp4_a_state_expires(late_ms: int, accepted: bool) -> None:
    host = make_host(Limits(request_state_ms=1_000))
    asking = ask_before(host, call(host, capabilities=FORMS))
    host.now += late_ms
    started = len(host.of(StartTool))
    retry(host, asking["requestState"], {"confirm": ACCEPTED})
    assert (len(host.of(StartTool)) > started) is accepted


def test_inp4_a_state_is_for_its_own_method() -> None:
    host = make_host(methods=frozenset({"prompts/get"}))
    asking = ask_before(host, call(host, capabilities=FORMS))
    stolen = {"name": "optional", "arguments": {}, "requestState": asking["requestState"]}
    assert error(host.ask("prompts/get", stolen))["code"] == ErrorCode.INVALID_PARAMS


def test_inp4_any_node_with_the_key_opens_it() -> None:
    """SEC.2: keys rotate; the first seals and all open."""
    host = make_host()
    asking = ask_before(host, call(host, capabilities=FORMS))
    rotated = evolve(make_engine().settings, sealer=HmacSealer([b"n" * 32, b"k" * 32]))
    other = ServerHost(engine=ServerEngine(settings=rotated, tools=TOOLS))
    retry(other, asking["requestState"], {"confirm": ACCEPTED})
    assert other.of(StartTool)[-1].answers == {"confirm": ACCEPTED}
    foreign = evolve(rotated, sealer=HmacSealer([b"n" * 32]))
    third = ServerHost(engine=ServerEngine(settings=foreign, tools=TOOLS))
    assert "error" in third.reply_to(retry(third, asking["requestState"]))


@pytest.mark.parametrize("answers", [None, [], "x"], ids=repr)
def test_inp4_answers_are_an_object(answers: Any) -> None:
    for tool_or_method in ("tools/call", "prompts/get"):
        host = make_host(methods=frozenset({"prompts/get"}))
        reply = host.ask(tool_or_method, {"name": "optional", "inputResponses": answers})
        assert error(reply)["code"] == ErrorCode.INVALID_PARAMS
        reply = host.ask(tool_or_method, {"name": "optional", "inputResponses": {"confirm": answers}})
        assert error(reply)["code"] == ErrorCode.INVALID_PARAMS


def test_inp4_an_answer_fits_what_was_asked() -> None:
    host = make_host()
    asking = ask_before(host, call(host, capabilities=FORMS))
    exchange = retry(host, asking["requestState"], {"confirm": {"action": "accept", "content": {"name": 5}}})
    assert error(host.reply_to(exchange))["code"] == ErrorCode.INVALID_PARAMS
    assert "confirm" in error(host.reply_to(exchange))["message"]


def test_inp4_answers_without_a_state_reach_the_handler() -> None:
    """Without the seal nothing says what was asked; the handler must look at them."""
    host = make_host()
    host.send(request("tools/call", {"name": "optional", "inputResponses": {"confirm": {"x": 1}}}))
    assert (host.of(StartTool)[0].answers, host.of(StartTool)[0].state) == ({"confirm": {"x": 1}}, None)


def test_inp4_a_state_that_would_be_too_large_is_an_error() -> None:
    host = make_host()
    size = len(ask_before(host, call(host, capabilities=FORMS), "x" * 1_000)["requestState"])
    host = make_host(Limits(request_state_bytes=size))
    assert "requestState" in ask_before(host, call(host, capabilities=FORMS), "x" * 1_000)
    host = make_host(Limits(request_state_bytes=size - 1))
    exchange = call(host, capabilities=FORMS)
    host.give(CallAskedInput(exchange, {"confirm": form()}, "x" * 1_000))
    assert error(host.reply_to(exchange))["data"] == {"reason": "request_state_bytes"}


def test_upd5_nothing_is_saved_where_nothing_changes() -> None:
    host = make_host()
    parked(host)
    host.held = True
    host.send(request("tasks/update", {"taskId": TASK, "inputResponses": {"unknown": {}}}))
    host.answer_next()
    assert not [effect for effect in host.asked if isinstance(effect, Save)]
