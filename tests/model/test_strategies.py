"""The strategies give what they say: valid is served, anything is answered, records are kept."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import find, given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import MessageReceived, Reply, Send, StartTool, Status, TaskRecord
from mcp_tasks_proto.input_requests import check_requests
from mcp_tasks_proto.testing import ServerHost
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
    hostile_messages,
    messages,
    nearly_valid_messages,
    records,
    tool_scripts,
    valid_messages,
)
from mcp_tasks_proto.testing.strategies_for_requesters import ClientScript, client_scripts
from mcp_tasks_proto.wire.schema import record_from_json, record_to_json, task_view
from tests.model.exploring_requester import Bounds, SmallWorld
from tests.model.test_every_requester_state import comes_to_an_end, go_on
from tests.unit.world import TASK, make_host, parked


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
        assert find(strategy, lambda message: "of this name" in json.dumps(message))


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
