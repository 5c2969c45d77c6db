"""What becomes of an action that the ledger allows: HIS.3, PRX.10."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.history import Action, control_request
from mcp_tasks_proto.proxy import InputKind
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
)
from mcp_tasks_proto.wire.jsonrpc import Request, parse_message
from tests.unit.proxy_world import handed_out, make_proxy, sent_up, task
from tests.unit.test_history import entry
from tests.unit.world import ACCEPTED, form

RESPONSES = {"name": {"action": "accept", "content": {"name": "Ada"}}}
ANSWERS: dict[Action, Any] = {Action.ANSWER: RESPONSES}


@pytest.mark.parametrize(
    ("action", "method"),
    [
        (Action.READ_PAYLOAD, "tasks/get"),
        (Action.ANSWER, "tasks/update"),
        (Action.CANCEL, "tasks/cancel"),
    ],
)
def test_his3_each_control_is_one_request_about_that_task(action: Action, method: str) -> None:
    message = control_request(entry(), action, version=MODERN_VERSION, responses=ANSWERS.get(action))
    request = parse_message(message)
    assert isinstance(request, Request)
    assert request.method == method
    assert request.params["taskId"] == "handle-1"
    assert request.params["_meta"][PROTOCOL_VERSION] == MODERN_VERSION
    assert request.params.get("inputResponses") == ANSWERS.get(action)


def test_his3_an_answer_to_nothing_is_an_answer_still() -> None:
    message = control_request(entry(), Action.ANSWER, version=MODERN_VERSION, responses={})
    assert message["params"]["inputResponses"] == {}


def test_prx10_a_person_may_answer_whatever_the_call_has_declared() -> None:
    message = control_request(entry(), Action.READ_PAYLOAD, version=MODERN_VERSION)
    assert message["params"]["_meta"][CLIENT_CAPABILITIES] == {
        "extensions": {TASKS_EXTENSION: {}},
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
    }


EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
QUESTIONS: dict[InputKind, dict[str, Any]] = {
    InputKind.FORM: form(),
    InputKind.URL: {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Go there", "url": "https://example.com/", "elicitationId": "e"},
    },
    InputKind.SAMPLING: {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    InputKind.ROOTS: {"method": "roots/list"},
}
ANSWERED: dict[InputKind, dict[str, Any]] = {
    InputKind.FORM: ACCEPTED,
    InputKind.URL: {"action": "accept"},
    InputKind.SAMPLING: {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
    InputKind.ROOTS: {"roots": []},
}


@pytest.mark.parametrize("kind", InputKind)
def test_prx10_the_engine_takes_an_answer_of_every_kind(kind: InputKind) -> None:
    host = make_proxy(input_kinds=frozenset(InputKind))
    handle = handed_out(host, capabilities=EVERYTHING)
    responses = {"a": ANSWERED[kind]}
    message = control_request(
        entry(handle=handle), Action.ANSWER, version=MODERN_VERSION, responses=responses
    )
    host.send(message, principal="alice")
    host.answer("tasks/get", task("input_required", inputRequests={"a": QUESTIONS[kind]}))
    (sent,) = sent_up(host, "tasks/update")
    assert sent["inputResponses"] == responses


@pytest.mark.parametrize("action", [Action.READ, Action.ASSIGN])
def test_his3_reading_and_assigning_ask_nothing_of_the_engine(action: Action) -> None:
    with pytest.raises(ValueError, match="no request"):
        control_request(entry(), action, version=MODERN_VERSION)


@pytest.mark.parametrize(
    ("action", "responses"),
    [(Action.ANSWER, None), (Action.CANCEL, RESPONSES), (Action.READ_PAYLOAD, {})],
)
def test_his3_responses_belong_to_an_answer(action: Action, responses: Any) -> None:
    with pytest.raises(ValueError, match="responses belong to ANSWER"):
        control_request(entry(), action, version=MODERN_VERSION, responses=responses)
