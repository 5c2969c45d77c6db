"""The reference models of 2025-11-25, by themselves: what they say."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.testing.model import (
    ErrorAnswer,
    LegacyCaller,
    LegacyRequesterModel,
    LegacyServerModel,
    ModelOutcome,
    ModelTask,
    ResultAnswer,
    WantedTask,
    is_no_end,
    legacy_outcome,
)

TASK: Final = "task-one-0123456789abcdef"
FORM: Final[dict[str, Any]] = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {}},
}
ADA: Final = LegacyCaller(principal="ada", capabilities={"elicitation": {}})
RELATED: Final = "io.modelcontextprotocol/related-task"


def serving() -> LegacyServerModel:
    """Return a model with a task of Ada's that asks something."""
    model = LegacyServerModel()
    model.created(ModelTask(task_id=TASK, owner="ada", capabilities={"elicitation": {}}, created_at_ms=0))
    model.tasks.asked(TASK, 0, "one", {"q": {"method": "elicitation/create", "params": FORM}})
    return model


def test_leg2_leg3_what_is_promised_and_what_becomes_a_task() -> None:
    model = LegacyServerModel()
    assert model.capability(ADA) == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert "list" not in (model.capability(LegacyCaller()) or {})
    assert model.called("optional", {"task": {"ttl": 5}}, ADA) == WantedTask(5)
    assert model.called("required", {}, ADA) == ErrorAnswer(code=-32601)
    model.serves_tasks = False
    assert model.capability(ADA) is None
    assert model.called("optional", {"task": {}}, ADA) is None


def test_leg8_a_question_is_with_one_client_until_it_leaves() -> None:
    model = serving()
    assert model.awaited("first", TASK, ADA, 0) is None
    assert model.awaited("second", TASK, ADA, 0) is None
    model.asked[TASK, "q"] = "first"
    assert list(model.unasked(0)) == []
    model.left("second")
    assert list(model.unasked(0)) == []
    model.left("first")
    assert model.awaited("third", TASK, ADA, 0) is None
    assert list(model.unasked(0)) == [(TASK, "q")]
    assert model.can_be_asked("third", "q", 0)
    assert not model.can_be_asked("third", "r", 0)


def test_leg4_the_end_reaches_everybody_and_makes_questions_moot() -> None:
    model = serving()
    assert model.awaited("first", TASK, ADA, 0) is None
    model.asked[TASK, "q"] = "elsewhere"
    assert model.due(0) == {}
    assert model.moot(0) == []
    model.tasks.ended(TASK, 0, "completed", result={"resultType": "complete", "content": []})
    assert model.moot(0) == [(TASK, "q")]
    assert model.due(0) == {"first": ResultAnswer({"content": []})}


def test_leg8_an_error_for_an_answer() -> None:
    """To an elicitation it counts as cancelled."""
    model = serving()
    model.asked[TASK, "q"] = "first"
    model.answered(TASK, "q", None, {"code": -1, "message": "nobody there"}, 0)
    assert model.tasks.tasks[TASK].questions["q"].answer == {"action": "cancel"}


def client(**capabilities: Any) -> LegacyRequesterModel:
    """Return a model of a client that can be asked these."""
    return LegacyRequesterModel(capabilities=capabilities)


def ask(model: LegacyRequesterModel, name: Any, method: str = "elicitation/create", **params: Any) -> Any:
    """Ask something, as request ``name``; a form unless said otherwise."""
    whole = {**FORM, **params} if method == "elicitation/create" else params
    return model.asked(name, method, whole, new_id="made-here", now=0, under_way=True)


def test_leg10_a_question_as_a_task_and_what_becomes_of_it() -> None:
    model = client(elicitation={})
    [(_, made)] = ask(model, 1, task={"ttl": 10})
    assert isinstance(made, ResultAnswer)
    assert made.result["task"]["ttl"] == 10
    assert ask(model, 2, "tasks/result", taskId="made-here") == []
    [put] = model.questions
    model.withdrawn(1)
    assert put.waits, "it was answered with the task"
    assert model.answered(put, {"action": "decline"}) == [(2, ResultAnswer({"action": "decline"}))]
    assert ask(model, 3, "tasks/cancel", taskId="made-here") == [(3, ErrorAnswer(code=-32602))]
    assert model.over(put) == []
    assert ask(model, 4, "tasks/result", taskId="made-here")[0][1] == ResultAnswer({"action": "decline"})
    assert model.passed(10) == []
    assert ask(model, 5, "tasks/get", taskId="made-here")[0][1] == ErrorAnswer(code=-32602, unknown_task=True)


def test_leg10_it_is_cancelled_or_fails_or_expires() -> None:
    for end, code in (("cancel", -32602), ("over", -32603), ("expire", -32602)):
        model = client(elicitation={})
        ask(model, 1, task={})
        assert ask(model, 2, "tasks/result", taskId="made-here") == []
        [put] = model.questions
        if end == "cancel":
            told = ask(model, 3, "tasks/cancel", taskId="made-here")
        else:
            told = model.over(put) if end == "over" else model.passed(model.received_ttl_ms)
        assert told[0][0] == 2
        assert told[0][1].code == code
        assert not put.waits
        assert model.over(put) == []


def test_leg10_all_are_listed_and_no_cursor_is_right() -> None:
    model = client(sampling={})
    assert ask(model, 1, "tasks/list") == [(1, ResultAnswer({"tasks": []}))]
    assert ask(model, 2, "tasks/list", cursor="x") == [(2, ErrorAnswer(code=-32602))]
    assert ask(client(), 3, "tasks/list") == [(3, ErrorAnswer(code=-32601))]


def test_leg8_what_is_asked_again_is_the_same_question() -> None:
    model = client(elicitation={})
    meta = {RELATED: {"taskId": "one"}}
    assert ask(model, 1, _meta=meta) == []
    [put] = model.questions
    put.lost = True
    assert ask(model, 2, _meta=meta) == []
    model.withdrawn(1)
    assert model.answered(put, {"action": "cancel"}) == [(2, ResultAnswer({"action": "cancel"}))]
    put.lost = True
    assert ask(model, 3, _meta=meta) == [(3, ResultAnswer({"action": "cancel"}))]
    assert model.questions == [put]


def test_leg8_what_nobody_is_asked() -> None:
    model = client(elicitation={})
    assert ask(model, 1, "ping") == [(1, ResultAnswer({}))]
    assert ask(model, 2, "roots/list") == [(2, ErrorAnswer(code=-32601))]
    assert ask(model, 3, message=5) == [(3, ErrorAnswer(code=-32602))]
    lonely = model.asked(4, "elicitation/create", FORM, new_id="x", now=0, under_way=False)
    assert lonely == [(4, ErrorAnswer(code=-32603))]
    assert ask(model, 5) == []
    [put] = model.questions
    model.withdrawn(5)
    assert not put.waits


def test_req3_which_errors_are_not_how_a_task_has_ended() -> None:
    for status, codes in (("completed", (-32600, -32602, -32603)), ("failed", ())):
        told = [code for code in (-32600, -32602, -32603, 7) if is_no_end(status, {"code": code})]
        assert told == list(codes)
        assert is_no_end(status, {"code": 7}, http_status=503)
        assert not is_no_end(status, {"code": 7}, http_status=400)


def test_leg4_leg6_how_a_task_has_ended() -> None:
    assert legacy_outcome("cancelled", None, None) == ModelOutcome(kind="cancelled")
    assert legacy_outcome("failed", {}, None) == ModelOutcome(kind="failed")
    assert legacy_outcome("completed", None, {"code": 7}) == ModelOutcome(kind="failed", code=7)
    told = legacy_outcome("failed", {"content": [], "_meta": {}}, None)
    assert told.result == {"content": [], "isError": True, "resultType": "complete"}
