"""The strategies give what they say: valid is served, anything is answered, records are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    DeliverInput,
    Effect,
    ErrorObject,
    Input,
    LimitExceeded,
    Limits,
    MessageReceived,
    RejectReport,
    RemoteProtocolError,
    Reply,
    Send,
    StartTool,
    StartWork,
    Status,
    TaskRecord,
    WorkAskedInput,
    WorkCheckpointed,
)
from mcp_tasks_proto.input_requests import check_requests
from mcp_tasks_proto.requester import Prompt, RequesterEngine, RequesterSettings
from mcp_tasks_proto.testing import Pair, RequesterHost, ServerHost
from mcp_tasks_proto.testing.model import (
    ErrorAnswer,
    ModelCaller,
    ResultAnswer,
    ServerModel,
    may_be_asked,
)
from mcp_tasks_proto.testing.strategies import (
    ToolScript,
    callers,
    capabilities,
    hostile_bytes,
    hostile_messages,
    input_requests,
    legacy_messages,
    messages,
    nearly_valid_messages,
    records,
    tool_scripts,
    valid_messages,
)
from mcp_tasks_proto.testing.strategies_for_requesters import ClientScript, client_scripts
from mcp_tasks_proto.wire.jsonrpc import decode
from mcp_tasks_proto.wire.schema import record_from_json, record_to_json, task_view
from tests.model.exploring_requester import Bounds, SmallWorld
from tests.model.test_every_requester_state import comes_to_an_end, go_on
from tests.model.test_pair import LONG_MS
from tests.model.workshop import Plan, Workshop, fits, make_pair, make_requester
from tests.unit.world import TASK, make_host, parked

EVERYTHING: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}}


def heard(host: ServerHost, message: Any) -> list[Any]:
    """Return what a message led to, each of it an answer or the beginning of one."""
    effects = host.give(MessageReceived(exchange="one", message=message, principal="ada"))
    assert effects
    return effects


@settings(max_examples=30, deadline=None)
@given(valid_messages())
def test_neg3_a_valid_message_is_not_refused_for_what_it_is(message: dict[str, Any]) -> None:
    effects = heard(make_host(), message)
    if isinstance(effects[0], Reply):
        body = effects[0].message or {}
        assert "result" in body or body["error"]["code"] == -32602, "only the task or the tool is not known"
    else:
        assert isinstance(effects[0], Send | StartTool)


@settings(max_examples=30, deadline=None)
@given(valid_messages(tools=st.just("optional")))
def test_a_valid_call_of_a_tool_that_there_is_begins(message: dict[str, Any]) -> None:
    effects = heard(make_host(), message)
    assert isinstance(effects[0], StartTool) == (message["method"] == "tools/call")


def test_other_messages_name_the_tools_that_there_are_as_well() -> None:
    tools = st.just("of this name")
    for strategy in (nearly_valid_messages(tools=tools), messages(tools=tools)):
        look_for(strategy, {"its name": partial(mentions, "of this name")})


@settings(max_examples=80, deadline=None)
@given(messages(st.just(TASK)))
def test_a_peer_cannot_make_an_engine_raise(message: Any) -> None:
    """WIRE.1, and what is there stays as it was unless the message was one that may change it."""
    host = make_host()
    parked(host, principal="bob")
    before = host.store.records[TASK]
    heard(host, message)
    assert host.store.records[TASK] == before, "SEC.1: it belongs to somebody else"


@settings(max_examples=20, deadline=None)
@given(nearly_valid_messages() | hostile_messages())
def test_messages_are_json(message: Any) -> None:
    assert json.loads(json.dumps(message)) == message


HOSTILE: Final[dict[str, Callable[[Any], bool]]] = {
    "a batch": lambda message: isinstance(message, list) and len(message) > 1,
    "no version": lambda message: "tasks/get" in says(message, "method") and "jsonrpc" not in message,
    "an id that is null": lambda message: says(message, "id") == ["tasks/get", None],
    "an id that is a boolean": lambda message: says(message, "id") == ["tasks/get", True],
    "an id that is a fraction": lambda message: says(message, "id") == ["tasks/get", 0.5],
    "an id beyond 64 bits": lambda message: 10**400 in says(message, "id"),
    "an id with a lone surrogate": lambda message: "\ud800" in says(message, "id"),
    "a request that is a response": lambda message: says(message, "result") != [],
    "params that are an array": lambda message: [] in says(message, "params"),
    "a number beyond 64 bits, somewhere": lambda message: f": {2**63}" in json.dumps(message),
    "nested deep": lambda message: json.dumps(message).count("[{") > 150,
    "long": lambda message: len(json.dumps(message)) > 4_000,
}


def says(message: Any, member: str) -> list[Any]:
    """Return the method of a request and one of its members, if it has both."""
    if isinstance(message, dict) and "method" in message and member in message:
        return [message["method"], message[member]]
    return []


def look_for(strategy: SearchStrategy[Any], traits: dict[str, Callable[[Any], bool]]) -> None:
    """Look at values until each trait was seen."""
    missing = dict(traits)

    def is_last(value: Any) -> bool:
        for name in [name for name, has in missing.items() if has(value)]:
            del missing[name]
        return not missing

    patient = settings(max_examples=5_000, database=None, derandomize=True, phases=[Phase.generate])
    with suppress(NoSuchExample):
        find(strategy, is_last, settings=patient)
    assert not missing


def test_hostile_messages_have_what_breaks_servers() -> None:
    look_for(hostile_messages(), HOSTILE)


@settings(max_examples=150, deadline=None)
@given(hostile_bytes())
def test_wire2_hostile_bytes_are_no_message(data: bytes) -> None:
    with pytest.raises((RemoteProtocolError, LimitExceeded)):
        decode(data, Limits())


def test_hostile_bytes_have_what_parsers_disagree_about() -> None:
    parts = [b"NaN", b"-Infinity", b"1e999", b"9" * 5_000, rb'"\ud800"', b"\xef\xbb\xbf", b"\xff"]
    parts += [b"}{", b"[[[", b'"method": "tasks/cancel"}']
    look_for(hostile_bytes(), {str(part): partial(contains, part) for part in parts})


def contains(part: bytes, whole: bytes) -> bool:
    """Whether these bytes are in those."""
    return part in whole


def test_valid_messages_are_of_every_method_that_is_served() -> None:
    """NEG.1, and both of a stream's wishes (SUB.1)."""
    methods = ["server/discover", "tools/list", "tools/call", "subscriptions/listen"]
    methods += ["tasks/get", "tasks/update", "tasks/cancel"]
    words = [*(f'"method": "{method}"' for method in methods), "toolsListChanged", "progressToken"]
    look_for(valid_messages(), {word: partial(mentions, word) for word in words})


def mentions(word: str, message: Any) -> bool:
    """Whether a message has this in its JSON."""
    return word in json.dumps(message)


def test_legacy_messages_are_requests_notifications_and_answers() -> None:
    """LEG.4 to LEG.8: of every method about tasks, and with the ids that they are given."""
    methods = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "ping", "notifications/cancelled"]
    traits: dict[str, Callable[[Any], bool]] = {
        method: partial(mentions, f'"method": "{method}"') for method in methods
    }
    traits["an answer"] = lambda message: "result" in message and "method" not in message
    traits["the id"] = partial(mentions, f'{{"taskId": "{TASK}"}}')
    look_for(legacy_messages(st.just(TASK)), traits)


def test_inp2_tools_ask_in_every_way_that_there_is() -> None:
    kinds = ["elicitation/create", "sampling/createMessage", "roots/list"]
    look_for(input_requests(), {kind: partial(mentions, f'"method": "{kind}"') for kind in kinds})


@settings(max_examples=50, deadline=None)
@given(input_requests())
def test_inp2_what_tools_ask_is_for_who_declares_it(asked: dict[str, Any]) -> None:
    assert check_requests({"q": asked}) is None
    assert may_be_asked(asked, EVERYTHING)
    assert not may_be_asked(asked, {})


@settings(max_examples=30, deadline=None)
@given(records())
def test_records_are_such_as_a_store_keeps(record: TaskRecord) -> None:
    """LIFE.5, INP.1: each has the members of its status, and comes back from JSON as it was."""
    assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record
    assert bool(record.outstanding) == (record.status is Status.INPUT_REQUIRED)
    assert len({entry.key for entry in record.inputs}) == len(record.inputs)
    assert (record.result is not None, record.error is not None) == (
        record.status is Status.COMPLETED,
        record.status is Status.FAILED,
    )
    assert task_view(record)["status"] == record.status.value


@settings(max_examples=30, deadline=None)
@given(callers(), capabilities(), st.sampled_from(["forbidden", "optional", "required"]))
def test_neg5_callers_and_what_they_may_have(
    caller: ModelCaller, declared: dict[str, Any], support: str
) -> None:
    model = ServerModel()
    may = model.called(support, caller)
    assert isinstance(may, ErrorAnswer) or may == (support != "forbidden" and caller == evolved(caller))
    assert not isinstance(model.get("task-that-nobody-ever-made", caller, 0), ResultAnswer)
    assert may_be_asked({"method": "roots/list"}, declared) == ("roots" in declared)


def evolved(caller: ModelCaller) -> ModelCaller:
    """Return the same caller with tasks declared and on."""
    return ModelCaller(principal=caller.principal, capabilities=caller.capabilities)


@settings(max_examples=30, deadline=None)
@given(tool_scripts())
def test_scripts_ask_what_may_be_asked(script: ToolScript) -> None:
    """INP.2: the shapes are those of the specification."""
    for kind, *facts in script.steps:
        assert kind != "ask" or check_requests(facts[0]) is None
    assert script.end[0] in ("complete", "fail", "stop", "never")


@settings(max_examples=30, deadline=None)
@given(client_scripts())
def test_req6_whatever_a_caller_does_it_hears_how_its_task_ends(script: ClientScript) -> None:
    """REQ.4, REQ.7: or that it no longer wants to."""
    world = SmallWorld(sizes=Bounds())
    world.begin()
    world.change("one", "input_required")
    for kind, *facts in script.steps:
        for call in list(world.model.calls):
            if kind == "cancel":
                world.cancel(call, wait=facts[0])
            elif kind == "answer":
                world.answer(call, "q", None if facts[0] else {"action": "maybe"})
        if kind == "restart":
            world.restart()
        elif kind == "wait":
            go_on(world)
            world.wait(facts[0])
    if script.end == ("stay",):
        comes_to_an_end(world)
    else:
        world.bring_to_an_end()


# -- scripts, played ---------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(tool_scripts())
def test_a_tool_script_reports_what_it_does(script: ToolScript) -> None:
    """LIFE.2, INP.1: a task is what its worker says, and each report is taken or not."""
    host = make_host()
    host.create_task("optional", task_id=TASK, ttl_ms=None, capabilities=EVERYTHING)
    reports = list(script.reports(TASK))
    for report in reports:
        host.give(report)
    rejected = host.of(RejectReport)
    assert len(rejected) == sum(kind == "checkpoint" for kind, *_ in script.steps), (
        "the tool is not resumable"
    )
    assert len(host.of(AcceptReport)) + len(rejected) == len(reports)
    record = host.store.records[TASK]
    said = [facts[0] for kind, *facts in script.steps if kind == "progress"]
    match script.end:
        case ("complete", result):
            assert record.status is Status.COMPLETED
            assert record.result is not None
            assert result.items() <= record.result.items()
        case ("fail", code, message):
            assert record.error == ErrorObject(code, message)
        case ("stop",):
            assert record.status is Status.CANCELLED
        case ("never",):
            assert not record.status.terminal
            assert record.status_message == (said[-1] if said else None)
            lifetimes = [facts[0] for kind, *facts in script.steps if kind == "ttl"]
            assert record.ttl_ms == (lifetimes[-1] if lifetimes else None)


def test_a_tool_script_withdraws_what_it_asked_last() -> None:
    roots = {"method": "roots/list"}
    steps = (("withdraw",), ("ask", {"a": roots}), ("ask", {"b": roots}), ("withdraw",), ("withdraw",))
    host = make_host()
    host.create_task("optional", task_id=TASK, capabilities=EVERYTHING)
    outstanding = []
    for report in ToolScript((*steps, ("withdraw",)), ("never",)).reports(TASK):
        host.give(report)
        outstanding.append([entry.name for entry in host.store.records[TASK].outstanding])
    assert outstanding == [["a"], ["a", "b"], ["a"], []]


def test_a_checkpoint_of_a_tool_script_is_for_the_next_run() -> None:
    (report,) = ToolScript((("checkpoint", {"at": 3}),), ("never",)).reports(TASK)
    assert isinstance(report, WorkCheckpointed)
    assert report.value == {"at": 3}


def test_a_script_has_no_other_steps() -> None:
    with pytest.raises(ValueError, match=r"not a step of a ToolScript: \('progres', 'x'\)"):
        list(ToolScript((("progres", "x"),), ("stop",)).reports(TASK))
    with pytest.raises(ValueError, match=r"not a step of a ClientScript: \('sleep', 5\)"):
        played(("sleep", 5))


SCRIPTED = Plan(steps=((300, "ask twice"), (300, "progress"), (300, "ask")), poll_interval_ms=400)


def played(*steps: tuple[Any, ...], end: tuple[str] = ("stay",), **how: Any) -> tuple[Pair, Workshop, Any]:
    """Call a tool and play a script; return the pair, its workshop, and what the call is called now."""
    workshop = Workshop(SCRIPTED)
    pair = make_pair(workshop, answer_ms=None)
    script = ClientScript(steps, end)
    return pair, workshop, script.play(pair, pair.call(), restarted=make_requester, **how)


@settings(max_examples=60, deadline=None)
@given(client_scripts())
def test_req7_who_stays_and_does_not_cancel_hears_of_the_true_end(script: ClientScript) -> None:
    """Once all is answered, whatever it did before."""
    pair, _, now = played(*script.steps, end=script.end)
    left = script.end == ("leave",) or ("cancel", False) in script.steps
    assert not left or now in pair.requester.outcomes
    for _ in range(2):
        pair.run(LONG_MS)
        now = ClientScript((("answer", True),), ("stay",)).play(pair, now, restarted=make_requester)
    assert pair.settle(now, within_ms=LONG_MS)
    assert left or ("cancel", True) in script.steps or fits("complete", pair.requester.outcomes[now])


def test_upd4_what_fits_no_question_is_tried_and_not_sent() -> None:
    pair, workshop, _ = played(("wait", 5_000), ("answer", False), ("wait", 5_000))
    assert len(pair.requester.on_show) == 2
    assert not any(workshop.answers.values())


def test_a_caller_answers_as_it_is_told_to_and_otherwise_declines() -> None:
    steps = (("wait", 5_000), ("answer", True), ("wait", 5_000))
    _, workshop, _ = played(*steps)
    assert list(answered(workshop).values()) == [{"action": "decline"}] * 2
    _, workshop, _ = played(*steps, answer=accepted)
    assert {key: answer["content"]["name"] for key, answer in answered(workshop).items()} == {
        "a": "a",
        "b": "b",
    }


def answered(workshop: Workshop) -> dict[str, Any]:
    """Return what reached the worker of the one task there is."""
    (answers,) = workshop.answers.values()
    return answers


def accepted(prompt: Prompt) -> dict[str, Any]:
    """Return an answer that says what was asked."""
    return {"action": "accept", "content": {"name": prompt.key}}


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage"])
def test_a_caller_that_declines_has_an_answer_to_every_kind_of_question(method: str) -> None:
    params = {} if method == "roots/list" else {"params": {"messages": [], "maxTokens": 1}}
    delivered: list[Any] = []

    def work(effect: Effect) -> Iterator[tuple[int, Input]]:
        match effect:
            case StartTool(exchange=exchange):
                yield 0, CallBecameTask(exchange=exchange, task_id=TASK)
            case StartWork(task_id=task_id):
                requests = {"q": {"method": method, **params}}
                yield 0, WorkAskedInput(task_id=task_id, token=None, ask="first", requests=requests)
            case DeliverInput(answers=answers):
                delivered.extend(answers)

    settings = RequesterSettings(
        name="test", version="1", endpoint="https://example.com/mcp", capabilities=EVERYTHING
    )
    pair = Pair(
        requester=RequesterHost(engine=RequesterEngine(settings=settings)), server=make_host(), work=work
    )
    script = ClientScript((("wait", 10_000), ("answer", True), ("wait", 10_000)), ("stay",))
    script.play(pair, pair.call("optional"), restarted=make_requester)
    assert len(delivered) == 1


def test_req6_a_restart_goes_on_with_a_task_and_with_nothing_else() -> None:
    """REQ.3: before there is a task, and after the end, there is nothing to go on with."""
    restarts = 0

    def restarted() -> RequesterHost:
        nonlocal restarts
        restarts += 1
        return make_requester()

    workshop = Workshop(Plan(poll_interval_ms=400))
    pair = make_pair(workshop)
    key, again = pair.call(), ClientScript((("restart",),), ("stay",))
    assert again.play(pair, key, restarted=restarted) == key
    pair.run(100)
    before = pair.requester
    now = again.play(pair, key, restarted=restarted)
    assert restarts == 1
    assert pair.requester is not before
    assert pair.settle(now, within_ms=LONG_MS)
    assert again.play(pair, now, restarted=restarted) == now
    assert restarts == 1
    assert fits("complete", pair.requester.outcomes[now])
