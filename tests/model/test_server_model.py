"""The reference model by itself, against the contract: it must not be wrong in the same way as an engine."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto.testing.model import (
    SOME_TEXT,
    ErrorAnswer,
    ModelCaller,
    ModelTask,
    ReportAnswer,
    ResultAnswer,
    ServerModel,
    answer_fits,
    difference,
    may_be_asked,
)

NOW: Final = 1_700_000_000_000
TASK: Final = "task-one-0123456789abcdef"
ADA: Final = ModelCaller(principal="ada")
BOB: Final = ModelCaller(principal="bob")
FORM: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {
        "message": "Which?",
        "requestedSchema": {
            "type": "object",
            "properties": {"it": {"type": "string", "enum": ["a", "b"]}, "n": {"type": "integer"}},
            "required": ["it"],
        },
    },
}
LINK: Final[dict[str, Any]] = {"method": "elicitation/create", "params": {"mode": "url"}}
SAMPLE: Final[dict[str, Any]] = {"method": "sampling/createMessage", "params": {"messages": []}}
ROOTS: Final[dict[str, Any]] = {"method": "roots/list"}
ACCEPTED: Final[dict[str, Any]] = {"action": "accept", "content": {"it": "a"}}
ACKNOWLEDGED: Final = ResultAnswer({"resultType": "complete"})


def begun(**facts: Any) -> ServerModel:
    """Return a model with one task of Ada's."""
    model = ServerModel(**facts)
    task = ModelTask(
        task_id=TASK,
        owner="ada",
        capabilities={"elicitation": {}, "roots": {}},
        created_at_ms=NOW,
        ttl_ms=60_000,
        resumable=True,
        node="a",
    )
    assert isinstance(model.created(task), ResultAnswer)
    assert isinstance(model.created(task), ErrorAnswer), "an id is used once"
    return model


def shown(model: ServerModel, caller: ModelCaller = ADA) -> dict[str, Any]:
    """Return what a get shows."""
    answer = model.get(TASK, caller, NOW)
    assert isinstance(answer, ResultAnswer), answer
    return dict(answer.result)


def test_get1_the_view_has_the_members_of_its_status() -> None:
    model = begun()
    assert shown(model) == {
        "resultType": "complete",
        "taskId": TASK,
        "status": "working",
        "createdAt": "2023-11-14T22:13:20.000Z",
        "ttlMs": 60_000,
    }
    model.progressed(TASK, NOW, message="half", poll_interval_ms=500)
    model.asked(TASK, NOW, "one", {"q": FORM})
    assert shown(model)["inputRequests"] == {"q": FORM}
    assert (shown(model)["status"], shown(model)["statusMessage"]) == ("input_required", "half")
    model.ended(TASK, NOW, "completed", result={"content": []})
    assert shown(model)["result"] == {"resultType": "complete", "content": []}
    assert model.changes[TASK] == 3


def test_neg5_who_may_be_given_a_task() -> None:
    model = ServerModel()
    undeclared = ModelCaller(principal="ada", declares_tasks=False)
    assert [model.called(support, ADA) for support in ("forbidden", "optional", "required")] == [
        False,
        True,
        True,
    ]
    assert [model.called(support, undeclared) for support in ("forbidden", "optional")] == [False, False]
    refused = model.called("required", undeclared)
    assert isinstance(refused, ErrorAnswer)
    assert refused.code == -32021


@pytest.mark.parametrize(
    ("caller", "wanted", "now"),
    [(BOB, TASK, NOW), (ADA, "task-none", NOW), (ADA, 7, NOW), (ADA, TASK, NOW + 60_000)],
    ids=["foreign", "unknown", "malformed", "expired"],
)
def test_get2_four_ways_to_be_unknown(caller: ModelCaller, wanted: Any, now: int) -> None:
    model = begun()
    answers = [
        model.get(wanted, caller, now),
        model.update(wanted, {}, caller, now),
        model.cancel(wanted, caller, now),
    ]
    assert answers == [ErrorAnswer(code=-32602, unknown_task=True)] * 3


def test_neg6_neg7_who_declares_nothing_gets_nothing() -> None:
    model = begun()
    silent = ModelCaller(principal="ada", declares_tasks=False)
    off = ModelCaller(principal="ada", tasks_enabled=False)
    for caller, code in ((silent, -32021), (off, -32601)):
        answer = model.get(TASK, caller, NOW)
        assert isinstance(answer, ErrorAnswer)
        assert answer.code == code


def test_upd4_all_answers_or_none() -> None:
    model = begun()
    model.asked(TASK, NOW, "one", {"q": FORM, "r": FORM})
    answer = model.update(TASK, {"q": ACCEPTED, "r": {"action": "maybe"}}, ADA, NOW)
    assert answer == ErrorAnswer(code=-32602, names="r")
    assert set(shown(model)["inputRequests"]) == {"q", "r"}
    assert model.update(TASK, {"q": ACCEPTED, "s": 1}, ADA, NOW) == ACKNOWLEDGED
    assert set(shown(model)["inputRequests"]) == {"r"}
    model.withdrew(TASK, NOW, "one")
    assert shown(model)["status"] == "working"


def test_inp1_a_key_is_never_used_twice() -> None:
    model = begun(input_keys=2)
    for ask, key in (("one", "q"), ("two", "q.2")):
        assert model.asked(TASK, NOW, ask, {"q": FORM}) == ReportAnswer()
        assert set(shown(model)["inputRequests"]) == {key}
        model.update(TASK, {key: ACCEPTED}, ADA, NOW)
    assert model.asked(TASK, NOW, "three", {"q": FORM}) == ReportAnswer("input_keys")


def test_inp2_only_what_was_declared_is_asked_and_shown() -> None:
    model = begun(strict=True)
    assert model.asked(TASK, NOW, "one", {"q": SAMPLE}) == ReportAnswer("declare")
    model.asked(TASK, NOW, "two", {"q": ROOTS})
    assert model.get(TASK, ADA, NOW) == ErrorAnswer(code=-32021)
    assert (
        shown(model, ModelCaller(principal="ada", capabilities={"roots": {}}))["status"] == "input_required"
    )


def test_can6_a_cancelled_task_waits_for_its_worker_and_no_longer_than_its_grace() -> None:
    model = begun(cancel_grace_ms=10)
    model.asked(TASK, NOW, "one", {"q": FORM})
    assert model.cancel(TASK, ADA, NOW) == model.cancel(TASK, ADA, NOW + 1) == ACKNOWLEDGED
    assert model.update(TASK, {"q": ACCEPTED}, ADA, NOW) == ACKNOWLEDGED
    assert shown(model)["status"] == "input_required"
    assert model.asked(TASK, NOW, "two", {"r": FORM}) == ReportAnswer("cancel")
    with pytest.raises(AssertionError):
        model.grace_elapsed(TASK, NOW + 9)
    model.grace_elapsed(TASK, NOW + 10)
    assert shown(model)["status"] == "cancelled"


def test_life1_an_ended_task_stays_as_it_is() -> None:
    model = begun()
    model.ended(TASK, NOW, "cancelled")
    before = shown(model)
    model.grace_elapsed(TASK, NOW)
    assert not model.work_lost(TASK, NOW, "a", "b")
    for answer in (
        model.progressed(TASK, NOW, message="late"),
        model.checkpointed(TASK, NOW, 1),
        model.withdrew(TASK, NOW, "one"),
        model.ended(TASK, NOW, "completed", result={}),
    ):
        assert answer == ReportAnswer()
    assert model.asked(TASK, NOW, "one", {"q": FORM}) == ReportAnswer("ended")
    assert model.host_ended(TASK, NOW, None) == ReportAnswer("ended")
    assert (model.cancel(TASK, ADA, NOW), model.update(TASK, {}, ADA, NOW)) == (ACKNOWLEDGED, ACKNOWLEDGED)
    assert shown(model) == before


def test_ttl1_what_is_gone_takes_nothing() -> None:
    model, later = begun(), NOW + 60_000
    assert model.asked(TASK, later, "one", {"q": FORM}) == ReportAnswer("gone")
    assert model.host_ended(TASK, later, None) == ReportAnswer("gone")
    assert model.ttl_changed(TASK, later, None) == ReportAnswer()
    model.ttl_changed(TASK, NOW, 120_000)
    assert isinstance(model.get(TASK, ADA, later), ResultAnswer), "TTL.3"


@pytest.mark.parametrize(("error", "status"), [(None, "cancelled"), ({"code": 1, "message": "no"}, "failed")])
def test_leg5_the_host_ends_a_task_at_once(error: Any, status: str) -> None:
    model = begun()
    assert model.host_ended(TASK, NOW, error) == ReportAnswer()
    assert shown(model)["status"] == status


def test_lost_work_is_taken_over_and_asks_again_under_the_same_key() -> None:
    """INP.1: what the run before was answered is known to the next."""
    model = begun()
    model.asked(TASK, NOW, "one", {"q": FORM, "r": FORM})
    model.update(TASK, {"q": ACCEPTED}, ADA, NOW)
    model.checkpointed(TASK, NOW, 7, received=("none",))
    assert model.work_lost(TASK, NOW, "a", "b")
    for late in (
        model.progressed(TASK, NOW, message="late"),
        model.checkpointed(TASK, NOW, 8),
        model.asked(TASK, NOW, "one", {"q": FORM}),
        model.withdrew(TASK, NOW, "one"),
        model.ended(TASK, NOW, "cancelled"),
    ):
        assert late == ReportAnswer("taken over")
    assert model.asked(TASK, NOW, "again", {"q": FORM, "r": ROOTS}, run=1) == ReportAnswer()
    task = model.tasks[TASK]
    assert (task.checkpoint, task.questions["q"].answer) == (7, ACCEPTED)
    assert set(task.outstanding) == {"r.2"}, "what is asked otherwise takes the place of what was"


@pytest.mark.parametrize(
    ("facts", "successor", "cancels", "reason"),
    [
        ({"resumptions": 0}, "b", False, "resumptions"),
        ({}, None, False, "worker_lost"),
        ({}, "b", True, None),
    ],
)
def test_lost_work_that_nobody_takes_over_ends(
    facts: dict[str, int], successor: str | None, cancels: bool, reason: str | None
) -> None:
    model = begun(**facts)
    if cancels:
        model.cancel(TASK, ADA, NOW)
    assert not model.work_lost(TASK, NOW, "a", successor)
    view = shown(model)
    assert view["status"] == ("cancelled" if reason is None else "failed")
    if reason is not None:
        assert view["error"] == {"code": -32603, "message": "whatever", "data": {"reason": reason}}
        assert hash(view["statusMessage"]) == hash(view["error"]["message"])


def test_checkpoints_are_for_what_can_be_resumed() -> None:
    model = ServerModel()
    model.created(ModelTask(task_id=TASK, owner="ada", created_at_ms=NOW))
    assert model.checkpointed(TASK, NOW, 1) == ReportAnswer("resumable")


def test_difference_says_what_is_wrong() -> None:
    done, refused = ACKNOWLEDGED, ErrorAnswer(code=-32602, names="q", data={"a": 1})
    good = {"result": {"resultType": "complete", "_meta": {}, "lastUpdatedAt": "x"}}
    wrong = {"error": {"code": -32602, "message": "q", "data": {"a": 1}}}
    assert difference(done, good) is None
    assert difference(refused, wrong) is None
    for answer, reply in (
        (done, wrong),
        (done, {"result": {}}),
        (refused, good),
        (refused, {"error": {"code": -32603, "message": "q"}}),
        (refused, {"error": {"code": -32602, "message": "r"}}),
        (refused, {"error": {"code": -32602, "message": "q"}}),
    ):
        assert difference(answer, reply)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"result": {"a": 1.0, "b": [{"c": None}]}}, "a: wanted 1, got 1.0"),
        ({"result": {"a": True, "b": [{"c": None}]}}, "a: wanted 1, got True"),
        ({"result": {"a": 1, "b": [{"c": None}, 2]}}, "b: wanted [{'c': None}], got [{'c': None}, 2]"),
        ({"result": {"a": 1, "b": [{}]}}, "b: wanted [{'c': None}], got [{}]"),
        ({"result": {"b": [{"c": None}], "d": 2}}, "a: wanted 1, got nothing; d: wanted nothing, got 2"),
        ({"result": None}, "wanted the result {'a': 1, 'b': [{'c': None}]}, got the result None"),
        ({"error": 7}, "wanted the result {'a': 1, 'b': [{'c': None}]}, got the error 7"),
        ("nonsense", "wanted the result {'a': 1, 'b': [{'c': None}]}, got no JSON-RPC response"),
    ],
)
def test_difference_names_the_members_that_are_wrong(reply: Any, said: str) -> None:
    """As JSON has them; and what is no answer at all is no reason to raise."""
    assert difference(ResultAnswer({"a": 1, "b": [{"c": None}]}), reply) == said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"error": {"code": -32602.0, "message": "key"}}, "wanted the error -32602, got the error {"),
        ({"error": {"message": "key"}}, "wanted the error -32602, got the error {"),
        ({"error": {"code": -32602}}, "wanted a message that names 'key', got the error {"),
        ({"error": {"code": -32602, "message": "q"}}, "wanted a message that names 'key', got the error {"),
        ({"error": None}, "wanted the error -32602, got the error None"),
        ({"result": {}}, "wanted the error -32602, got the result {}"),
        ({}, "wanted the error -32602, got no JSON-RPC response"),
        (None, "wanted the error -32602, got no JSON-RPC response"),
    ],
)
def test_difference_reads_an_error_that_is_none(reply: Any, said: str) -> None:
    assert str(difference(ErrorAnswer(code=-32602, names="key"), reply)).startswith(said)


def test_difference_wants_some_text_where_the_model_does_not_say_which() -> None:
    answer = ResultAnswer({"statusMessage": SOME_TEXT})
    assert difference(answer, {"result": {"statusMessage": "whatever"}}) is None
    assert difference(answer, {"result": {"statusMessage": 7}}) == "statusMessage: wanted some text, got 7"
    assert str(difference(ErrorAnswer(code=1), {"error": {"code": 1}})).startswith("wanted a message, got")


@pytest.mark.parametrize(
    ("request_", "answer", "fits"),
    [
        (FORM, ACCEPTED, True),
        (FORM, {"action": "decline"}, True),
        (FORM, {"action": "accept", "content": {"it": "a", "n": 1, "more": []}}, True),
        (FORM, {"action": "accept", "content": {"it": "a", "n": True}}, False),
        (FORM, {"action": "accept", "content": {"it": "c"}}, False),
        (FORM, {"action": "accept", "content": []}, False),
        (FORM, {"action": "accept"}, False),
        (FORM, [], False),
        (LINK, {"action": "accept"}, True),
        (LINK, {"action": "later"}, False),
        (ROOTS, {"roots": [{"uri": "file:///a"}]}, True),
        (ROOTS, {"roots": [{"uri": "https://a"}]}, False),
        (ROOTS, {"roots": {}}, False),
        (SAMPLE, {"role": "assistant", "model": "m", "content": {"type": "text", "text": ""}}, True),
        (SAMPLE, {"role": "judge", "model": "m", "content": {}}, False),
    ],
)
def test_upd4_what_fits(request_: Any, answer: Any, fits: bool) -> None:
    assert answer_fits(request_, answer) is fits


@pytest.mark.parametrize(
    ("request_", "capabilities", "may"),
    [
        (FORM, {"elicitation": {}}, True),
        (FORM, {"elicitation": {"url": {}}}, False),
        (FORM, {"elicitation": True}, False),
        (LINK, {"elicitation": {}}, False),
        (LINK, {"elicitation": {"url": {}}}, True),
        (SAMPLE, {"sampling": {}}, True),
        ({**SAMPLE, "params": {"tools": []}}, {"sampling": {}}, False),
        ({**SAMPLE, "params": {"includeContext": "all"}}, {"sampling": {"context": {}}}, True),
        (ROOTS, {}, False),
    ],
)
def test_inp2_what_may_be_asked(request_: Any, capabilities: Any, may: bool) -> None:
    assert may_be_asked(request_, capabilities) is may
