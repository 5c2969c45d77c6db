"""The reference model of the requester, by itself: what it says, and what it finds wrong."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve

from mcp_tasks_proto.testing.model import (
    Ended,
    ModelBounds,
    ModelOutcome,
    RequesterModel,
    SavedTask,
    Shown,
    Viewed,
    Withdrawn,
)

ROOTS: Final = {"method": "roots/list"}
DONE: Final[dict[str, Any]] = {"content": []}


def view(status: str = "working", *, at: int = 1, **more: Any) -> dict[str, Any]:
    """Return a task as it stands ``at`` that second."""
    return {
        "taskId": "one",
        "status": status,
        "createdAt": "2023-11-14T22:13:00Z",
        "lastUpdatedAt": f"2023-11-14T22:13:{at:02}Z",
        "ttlMs": None,
        **more,
    }


def asking(**requests: Any) -> dict[str, Any]:
    """Return a task that asks."""
    return view("input_required", inputRequests=requests)


def answer(model: RequesterModel, request: int, result: Any) -> None:
    """Answer a request with a result."""
    model.received(request, {"jsonrpc": "2.0", "id": request, "result": result})


def refuse(model: RequesterModel, request: int, code: int, **more: Any) -> None:
    """Answer it with an error."""
    error = {"code": code, "message": "no", **more}
    model.received(request, {"jsonrpc": "2.0", "id": request, "error": error})


def called(**options: Any) -> RequesterModel:
    """Return a model with a call that was sent as request 1."""
    model = RequesterModel(capabilities={"roots": {}}, **options)
    model.called("c", "render", {})
    assert model.sent(1, "tools/call", {"name": "render", "arguments": {}}) is None
    return model


def watching(**more: Any) -> RequesterModel:
    """Return a model whose call has become a task, and was polled once as request 2."""
    model = called()
    answer(model, 1, {"resultType": "task", **view(**more)})
    model.passed(1_000)
    assert model.sent(2, "tasks/get", {"taskId": "one"}) is None
    model.news()
    return model


def outcome(model: RequesterModel) -> ModelOutcome:
    """Return how the call has ended."""
    [ended] = [told for told in model.news() if isinstance(told, Ended)]
    return ended.outcome


def test_what_is_sent_has_to_be_called_for_and_timely() -> None:
    """REQ.2, REQ.7."""
    model = watching()
    assert model.sent(3, "tasks/get", {"taskId": "one"}) is not None
    assert model.sent(3, "tasks/cancel", {"taskId": "one"}) is not None
    assert model.sent(3, "resources/list", {}) == "nobody wants resources/list"
    answer(model, 2, view())
    assert model.sent(3, "tasks/get", {"taskId": "one"}) == "tasks/get 1000 ms too early"
    model.passed(2_000)
    assert model.overdue() == [("poll", "c")]
    assert model.next_ms() == 2_000


def test_req4_an_update_says_all_that_is_to_be_said() -> None:
    model = watching()
    answer(model, 2, asking(a=ROOTS, b=ROOTS))
    assert [told for told in model.news() if isinstance(told, Shown)] == [
        Shown(call="c", key="a", request=ROOTS),
        Shown(call="c", key="b", request=ROOTS),
    ]
    model.answered("c", "a", {"roots": []})
    assert model.sent(3, "tasks/update", {"taskId": "one", "inputResponses": {"b": {}}}) is not None


def test_req3_credentials_are_tried_twice() -> None:
    """Of a poll, and of an update, each for itself."""
    model = watching()
    answer(model, 2, asking(a=ROOTS))
    model.answered("c", "a", {"roots": []})
    for request, at_ms in ((3, 1_000), (4, 1_500)):
        model.passed(at_ms)
        params = {"taskId": "one", "inputResponses": {"a": {"roots": []}}}
        assert model.sent(request, "tasks/update", params) is None
        model.received(request, None, http_status=401)
    assert outcome(model) == ModelOutcome(kind="observation_lost")


@pytest.mark.parametrize("kind", ["tasks/get", "tasks/update"])
def test_req3_after_a_pause(kind: str) -> None:
    model = watching()
    answer(model, 2, asking(a=ROOTS))
    model.answered("c", "a", {"roots": []})
    model.passed(2_000)
    assert model.sent(3, "tasks/update", {"taskId": "one", "inputResponses": {"a": {"roots": []}}}) is None
    assert model.sent(4, "tasks/get", {"taskId": "one"}) is None
    request, name = {"tasks/get": (4, "poll"), "tasks/update": (3, "update")}[kind]
    model.received(request, None, http_status=403)
    model.news()
    assert model.due[name, "c"] >= 2_500
    assert "c" in model.calls


def test_req5_news_that_say_nothing_and_news_of_nobody() -> None:
    model = watching()
    answer(model, 2, view(at=5))
    model.news()
    model.listening(["one", "two"])
    model.told("two", view("completed", result=DONE))
    model.told("one", {"status": 5})
    model.told("one", view(at=2))
    assert model.news() == []
    model.told("one", view("completed", at=7))
    assert model.news() == []
    assert model.due["poll", "c"] == 2_000
    model.told("one", view("cancelled", at=8))
    assert outcome(model) == ModelOutcome(kind="cancelled")


def test_req5_news_may_come_while_a_poll_is_on_its_way_and_need_not_say_what_is_asked() -> None:
    model = watching()
    model.told("one", view(at=5))
    assert model.news() == [Viewed("c", view(at=5))]
    answer(model, 2, view("input_required", at=4))
    assert model.news() == []
    model.passed(2_000)
    assert model.sent(3, "tasks/get", {"taskId": "one"}) is None
    answer(model, 3, view("input_required", at=6))
    assert model.news() == [Viewed("c", view("input_required", at=6))]


def test_req5_a_poll_that_comes_much_too_late_is_not_waited_for() -> None:
    model = called(bounds=ModelBounds(listening_poll_ms=5))
    answer(model, 1, {"resultType": "task", **view(ttlMs=10, pollIntervalMs=5_000)})
    model.passed(10)
    assert outcome(model) == ModelOutcome(kind="expired")


def test_req7_who_cancels_twice_is_told_once_and_the_server_until_it_knows() -> None:
    model = watching()
    model.cancelled("c", wait=True)
    assert model.sent(3, "tasks/cancel", {"taskId": "one"}) is None
    refuse(model, 3, -32603)
    model.passed(1_500)
    assert model.sent(4, "tasks/cancel", {"taskId": "one"}) is None
    refuse(model, 4, -32602)
    model.cancelled("c", wait=False)
    assert model.cancellations == {}
    assert outcome(model) == ModelOutcome(kind="cancelled")
    model.cancelled("c", wait=False)
    model.abandoned("c")
    model.answered("c", "a", {})
    assert model.news() == []


def test_req1_the_version_is_put_right_once() -> None:
    """NEG.2."""
    model = called()
    refuse(model, 1, -32022, data={"supported": ["2026-07-28"]})
    assert model.sent(2, "tools/call", {"name": "render", "arguments": {}}) is None
    refuse(model, 2, -32022, data={"supported": ["2026-07-28"]})
    assert outcome(model) == ModelOutcome(kind="failed", code=-32022, data={"supported": ["2026-07-28"]})


def test_req1_rounds_of_questions() -> None:
    model = called()
    asked = {"resultType": "input_required", "inputRequests": {"a": ROOTS}}
    answer(model, 1, asked)
    assert model.news() == [Shown(call="c", key="a", request=ROOTS)]
    model.answered("c", "b", {})
    model.answered("c", "a", {"roots": []})
    params = {"name": "render", "arguments": {}, "inputResponses": {"a": {"roots": []}}}
    assert model.sent(2, "tools/call", params) is None
    answer(model, 2, asked)
    model.abandoned("c")
    assert Withdrawn("c", "a") in model.news()


def test_drafts_had_another_code_for_a_missing_capability() -> None:
    model = called()
    refuse(model, 1, -32003, data={"requiredCapabilities": {}})
    assert outcome(model).code == -32021


def test_req6_a_task_is_resumed_once() -> None:
    model = watching()
    saved = model.saved("c")
    assert saved == SavedTask(
        task_id="one", tool="render", capabilities={"roots": {}}, created_ms=0, ttl_ms=None, hint_ms=None
    )
    model.resumed("d", saved)
    assert outcome(model) == ModelOutcome(kind="failed")
    assert model.saved("d") is None


def test_a_time_that_cannot_be_read_is_not_earlier() -> None:
    model = watching()
    answer(model, 2, view(lastUpdatedAt="yesterday"))
    model.told("one", view("working", at=0, statusMessage="news"))
    assert len(model.news()) == 2


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "elicitation/create", "params": {"message": 5}},
        {"method": "elicitation/create", "params": {"message": "?", "mode": "url", "url": 5}},
        {"method": "sampling/createMessage", "params": {"messages": 5}},
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        {"method": "roots/list", "params": 5},
        {"method": "tools/call"},
        5,
    ],
)
def test_req1_a_round_that_makes_no_sense(request_: Any) -> None:
    model = called()
    answer(model, 1, {"resultType": "input_required", "inputRequests": {"a": request_}})
    assert outcome(model) == ModelOutcome(kind="failed")


def test_req4_a_server_in_trouble_is_told_the_answers_once_more() -> None:
    """Its trouble says nothing of them."""
    model = watching()
    answer(model, 2, asking(a=ROOTS))
    model.answered("c", "a", {"roots": []})
    params = {"taskId": "one", "inputResponses": {"a": {"roots": []}}}
    assert model.sent(3, "tasks/update", params) is None
    refuse(model, 3, -32603)
    model.passed(model.due["update", "c"])
    assert model.sent(4, "tasks/update", params) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": True, "error": {"code": -32603, "message": "no"}},
        {"id": 1, "error": {"code": "-32603", "message": "no"}},
        {"id": 1, "error": "no"},
    ],
)
def test_wire3_an_error_that_is_none_says_no_more_than_a_broken_connection(wrong: dict[str, Any]) -> None:
    broken, told = called(), called()
    broken.received(1, "nonsense")
    told.received(1, {"jsonrpc": "2.0", **wrong})
    assert outcome(told) == outcome(broken)


def test_what_nobody_waits_for_changes_nothing() -> None:
    model = called()
    answer(model, 9, DONE)
    model.broke(9)
    model.alive(9)
    model.alive(1)
    assert model.news() == []
    assert model.next_ms() == 300_000
    model.passed(300_000)
    assert outcome(model) == ModelOutcome(kind="observation_lost")


def test_req7_the_cancellations_of_others_go_on() -> None:
    model = watching()
    saved = model.saved("c")
    assert saved is not None
    model.resumed("d", evolve(saved, task_id="two"))
    model.cancelled("c", wait=True)
    model.cancelled("d", wait=False)
    assert set(model.calls) == {"c"}
    assert {cancellation.call for cancellation in model.cancellations.values()} == {"c", None}
