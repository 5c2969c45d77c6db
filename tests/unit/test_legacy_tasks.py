"""Tasks as 2025-11-25 has them: get, result, cancel and list (LEG.4 to LEG.8), and the traps about them."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CancelReason,
    DeliverInput,
    ErrorObject,
    ExchangeClosed,
    HmacSealer,
    InputVisibility,
    Limits,
    ListTasks,
    Load,
    LoadFailed,
    LocalProtocolError,
    MessageReceived,
    RecordRemoved,
    RejectReport,
    RequestCancel,
    SaveFailed,
    Send,
    ShutdownStarted,
    StreamReady,
    TaskEnded,
    TasksListed,
    TtlChanged,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing import ServerHost, request
from mcp_tasks_proto.wire.jsonrpc import json_size
from tests.unit.legacy_world import (
    OTHER_SESSION,
    LegacyClient,
    call,
    completed,
    created,
    make_dual,
    opened,
    started,
)
from tests.unit.test_legacy_calls import SAMPLE, SAMPLED
from tests.unit.world import (
    ACCEPTED,
    DONE,
    FORMS,
    NEVER,
    OTHER,
    TASK,
    asked,
    error,
    form,
    result,
    update,
    view,
    working,
)

RELATED: Final[dict[str, Any]] = {"io.modelcontextprotocol/related-task": {"taskId": TASK}}
RESULT: Final[dict[str, Any]] = DONE
SAMPLED_FROM: Final[dict[str, Any]] = dict(SAMPLE["params"])
BOOM: Final = ErrorObject(-32099, "Boom", {"x": 1})
UNKNOWN: Final = {"code": -32602, "message": "Task not found"}


def result_of(client: LegacyClient, task_id: str = TASK) -> str:
    """Ask for the result of a task, and return the exchange."""
    return client.request("tasks/result", {"taskId": task_id})


def waiting(**facts: Any) -> tuple[LegacyClient, str]:
    """Return a client with a task, and the exchange of its ``tasks/result``."""
    client = opened(make_dual(), **facts)
    created(client)
    return client, result_of(client)


def questioned() -> tuple[LegacyClient, str, dict[str, Any]]:
    """Return such a client, the exchange, and what it was asked there."""
    client, exchange = waiting()
    client.host.give(asked("first", "name"))
    (question,) = client.questions(exchange)
    return client, exchange, question


def get(client: LegacyClient, task_id: str = TASK) -> dict[str, Any]:
    return client.ask("tasks/get", {"taskId": task_id})


# -- tasks/get -----------------------------------------------------------------------------------------


def test_leg6_a_task_is_flat_and_without_what_came_of_it() -> None:
    client = opened(make_dual())
    made = created(client)
    assert get(client) == made
    client.host.give(asked("first", "name"))
    assert get(client)["status"] == "input_required"
    assert set(get(client)) == set(made)
    update(client.host, {"name": ACCEPTED})
    completed(client)
    assert get(client)["status"] == "completed"
    assert set(get(client)) == set(made)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"isError": True, "content": [{"type": "image"}, {"type": "text", "text": "No disk"}]}, "No disk"),
        ({"isError": True, "content": []}, "The tool reported an error."),
        ({"isError": True}, "The tool reported an error."),
        ({"isError": True, "content": "text"}, "The tool reported an error."),
    ],
    ids=["text", "empty", "none", "nonsense"],
)
def test_leg6_a_tools_own_error_is_a_failure(result: dict[str, Any], message: str) -> None:
    client = opened(make_dual())
    created(client)
    completed(client, result)
    assert (get(client)["status"], get(client)["statusMessage"]) == ("failed", message)
    assert view(client.host)["status"] == "completed"


def test_leg6_a_tools_own_error_without_a_text_keeps_the_message_there_is() -> None:
    client = opened(make_dual())
    created(client)
    done = WorkCompleted(task_id=TASK, token=1, result={"isError": True}, status_message="Half way")
    client.host.give(done)
    assert get(client)["statusMessage"] == "Half way"


def test_leg6_a_protocol_error_is_a_failure_too() -> None:
    client = opened(make_dual())
    created(client)
    client.host.give(WorkFailed(task_id=TASK, token="t", error=BOOM))
    assert (get(client)["status"], get(client)["statusMessage"]) == ("failed", "Boom")


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_leg7_an_unknown_task_is_unknown_everywhere(method: str) -> None:
    ann = opened(make_dual(), principal="ann")
    bob = opened(ann.host, session=OTHER_SESSION, principal="bob")
    created(ann)
    for task_id in (TASK, NEVER, "short", 7, None):
        assert bob.refused(method, {"taskId": task_id}) == UNKNOWN
    assert bob.refused(method) == UNKNOWN
    assert get(ann)["status"] == "working"


def test_inp2_under_the_strict_policy_a_client_that_could_not_answer_is_told_so() -> None:
    host = make_dual(input_visibility=InputVisibility.STRICT)
    client = opened(host)
    created(client)
    host.give(asked("first", "name"))
    mute = opened(host, session=OTHER_SESSION, capabilities={})
    refused = mute.refused("tasks/get", {"taskId": TASK})
    assert refused["code"] == -32602
    assert refused["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# -- tasks/result ----------------------------------------------------------------------------------------


def test_leg4_the_result_is_what_the_call_would_have_returned() -> None:
    client, exchange = waiting()
    assert client.replies(exchange) == []
    completed(client, {**RESULT, "_meta": {"a": 1}})
    client.read(exchange)
    expected = {**RESULT, "_meta": {"a": 1, **RELATED}}
    assert client.result(exchange) == expected
    assert client.result(result_of(client)) == expected


def test_leg4_trap21_a_tools_own_error_is_a_result() -> None:
    client, exchange = waiting()
    failed: dict[str, Any] = {"content": [{"type": "text", "text": "No disk"}], "isError": True}
    completed(client, failed)
    client.read(exchange)
    assert client.result(exchange) == {**failed, "_meta": RELATED}
    assert client.result(result_of(client)) == {**failed, "_meta": RELATED}


def test_leg4_a_protocol_error_is_that_error() -> None:
    client, exchange = waiting()
    client.host.give(WorkFailed(task_id=TASK, token="t", error=BOOM))
    client.read(exchange)
    assert client.error(exchange) == client.error(result_of(client)) == BOOM.to_wire()


def test_leg4_a_cancelled_task_has_no_result() -> None:
    client, exchange = waiting()
    client.host.give(WorkStopped(task_id=TASK, token="t"))
    client.read(exchange)
    assert "cancelled" in client.error(exchange)["message"]


def test_leg4_several_waiters_all_get_it() -> None:
    client, first = waiting()
    other = opened(client.host, session=OTHER_SESSION)
    second, third = result_of(client), result_of(other)
    completed(client)
    for owner, exchange in ((client, first), (client, second), (other, third)):
        owner.read(exchange)
        assert owner.result(exchange) == {**RESULT, "_meta": RELATED}


def test_leg4_the_result_of_a_task_that_has_ended_is_one_answer() -> None:
    client = opened(make_dual())
    created(client)
    completed(client)
    exchange = result_of(client)
    assert client.read(exchange) == []
    assert client.result(exchange) == {**RESULT, "_meta": RELATED}


def test_leg6_each_view_is_told_without_saying_twice_whose_it_is() -> None:
    client, exchange = waiting()
    client.read(exchange)
    client.host.give(asked("first", "name"))
    assert client.statuses(exchange) == ["working", "input_required"]
    news = [one for one in client.read(exchange) if one.get("method") == "notifications/tasks/status"]
    assert news[-1]["params"] == get(client)
    assert "_meta" not in news[-1]["params"]


def test_leg4_who_takes_no_streams_gets_the_answer_alone() -> None:
    client, exchange = waiting(accepts_stream=False)
    client.host.give(asked("first", "name"))
    client.host.give(TtlChanged(task_id=TASK, ttl_ms=None, token="t"))
    assert client.read(exchange) == []
    update(client.host, {"name": ACCEPTED})
    completed(client)
    assert client.result(exchange) == {**RESULT, "_meta": RELATED}


def test_leg7_trap23_a_task_that_expires_is_unknown_to_who_waits_for_it() -> None:
    client, exchange = waiting()
    client.host.advance(3_599_999)
    assert client.replies(exchange) == []
    client.host.advance(1)
    assert client.error(exchange) == UNKNOWN
    assert client.error(result_of(client)) == UNKNOWN
    assert client.refused("tasks/get", {"taskId": TASK}) == UNKNOWN


def test_ttl3_who_waits_follows_a_lifetime_that_changes() -> None:
    client, exchange = waiting()
    client.host.give(TtlChanged(task_id=TASK, ttl_ms=None, token="t"))
    client.read(exchange)
    client.host.held = True
    client.host.advance(10_000_000)
    client.host.held = False
    assert [one for one in client.host.asked if isinstance(one, Load)] == []
    assert client.replies(exchange) == []
    client.host.give(TtlChanged(task_id=TASK, ttl_ms=11_000_000, token="t"))
    client.read(exchange)
    client.host.advance(1_000_000)
    assert client.error(exchange) == UNKNOWN


@pytest.mark.parametrize("ttl_ms", [4_000_500, None])
def test_ttl3_a_longer_life_that_was_told_late_counts(ttl_ms: int | None) -> None:
    """The client does not read: the engine holds the news back, and looks when the old time has come."""
    client, exchange = waiting()
    client.host.give(asked("first", "name"))
    client.host.give(TtlChanged(task_id=TASK, ttl_ms=ttl_ms, token="t"))
    client.host.advance(3_600_000)
    assert client.replies(exchange) == []
    client.host.advance(400_499)
    assert client.replies(exchange) == []
    client.host.advance(1)
    assert (client.replies(exchange) == []) is (ttl_ms is None)


def test_leg7_a_store_that_cannot_tell_is_asked_again() -> None:
    client, exchange = waiting()
    host = client.host
    host.held = True
    host.advance(3_600_000)
    loads = [one for one in host.asked if getattr(one, "task_id", None) == TASK]
    host.asked.clear()
    host.held = False
    for load in loads:
        host.give(LoadFailed(load.token))
    host.advance(999)
    assert client.replies(exchange) == []
    host.advance(1)
    assert client.error(exchange) == UNKNOWN


def test_leg4_a_task_that_the_store_cannot_tell_of_is_waited_for() -> None:
    """An error would be taken for that of the call."""
    client = opened(make_dual())
    created(client)
    host = client.host
    host.held = True
    first, second = result_of(client), result_of(client)
    for load in host.asked:
        host.give(LoadFailed(load.token))
    host.asked.clear()
    host.held = False
    host.give(ExchangeClosed(second))
    host.advance(999)
    completed(client)
    assert client.replies(first) == []
    host.advance(1)
    assert client.result(first)["content"] == DONE["content"]
    assert client.replies(second) == []


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_can7_the_answer_of_the_store_to_who_has_left_disturbs_nobody(method: str) -> None:
    client, _ = waiting()
    host = client.host
    host.held = True
    exchange = client.request(method, {"taskId": TASK})
    host.give(ExchangeClosed(exchange))
    host.held = False
    while host.asked:
        host.answer_next()
    assert client.replies(exchange) == []
    assert get(client)["status"] == ("working" if method == "tasks/get" else "cancelled")


def test_leg7_nobody_waits_for_what_was_asked_when_the_answer_comes() -> None:
    client, exchange = waiting()
    host = client.host
    host.held = True
    host.advance(3_600_000)
    client.notify("notifications/cancelled", {"requestId": "r2"})
    host.held = False
    while host.asked:
        host.answer_next()
    assert client.replies(exchange) == []


def test_leg4_a_client_that_leaves_waits_no_more() -> None:
    client, exchange = waiting()
    client.host.give(ExchangeClosed(exchange))
    completed(client)
    assert client.replies(exchange) == []
    assert client.result(client.request("ping", id="r2")) == {}
    assert get(client)["status"] == "completed"


def test_lim3_streams_are_bounded() -> None:
    client = opened(make_dual(Limits(streams=1)))
    created(client)
    result_of(client)
    assert client.error(result_of(client))["data"] == {"reason": "streams"}


def test_lim3_who_asks_for_a_task_that_is_unknown_keeps_no_stream() -> None:
    client = opened(make_dual(Limits(streams=1)))
    created(client)
    assert client.error(result_of(client, OTHER)) == UNKNOWN
    waits = result_of(client)
    client.read(waits)
    completed(client)
    assert client.result(waits) == {**RESULT, "_meta": RELATED}


def test_sub4_a_stopping_server_tells_who_waits() -> None:
    client, exchange = waiting()
    client.host.give(ShutdownStarted())
    assert client.error(exchange)["data"] == {"reason": "shutting_down"}
    assert client.reply(exchange).http_status == 503


def test_sub4_a_client_that_does_not_read_gets_the_end_of_its_task_from_a_stopping_server() -> None:
    client, exchange = waiting()
    completed(client)
    assert client.replies(exchange) == []
    client.host.give(ShutdownStarted())
    assert client.result(exchange) == {**RESULT, "_meta": RELATED}


def test_sub2_a_store_is_told_which_tasks_are_waited_for() -> None:
    client, _ = waiting()
    assert client.host.engine.concerns(TASK)
    assert not client.host.engine.concerns(OTHER)


# -- questions -------------------------------------------------------------------------------------------


def test_leg8_trap24_what_a_task_asks_is_asked_once_on_one_open_result_stream() -> None:
    client, first = waiting()
    second = result_of(client)
    client.read(first)
    client.read(second)
    client.host.give(asked("first", "name", thought=SAMPLE))
    name, thought = client.questions(first)
    assert client.questions(second) == []
    assert name["method"] == "elicitation/create"
    assert name["params"] == {**form()["params"], "_meta": RELATED}
    assert thought["params"] == {**SAMPLED_FROM, "_meta": RELATED}
    for _ in range(3):
        assert get(client)["status"] == "input_required"
    client.respond(thought, SAMPLED)
    assert get(client)["status"] == "input_required"
    client.respond(name, ACCEPTED)
    assert get(client)["status"] == "working"
    assert len(client.questions(first)) == 2
    assert client.statuses(second) == ["working", "input_required", "input_required", "working"]


def test_leg8_answers_reach_the_worker_once() -> None:
    client, _, question = questioned()
    before = len(client.host.effects)
    client.respond(question, ACCEPTED)
    client.respond(question, {"action": "decline"})
    delivered = [one for one in client.host.effects[before:] if isinstance(one, DeliverInput)]
    assert len(delivered) == 1


def test_leg8_an_answer_reaches_the_worker_without_saying_whose_it_is() -> None:
    """What is left in it says no more than an answer of the modern era does."""
    client, _, question = questioned()
    client.respond(question, {**ACCEPTED, "_meta": {**RELATED, "of": "the client's"}})
    (delivered,) = client.host.of(DeliverInput)
    (answer,) = delivered.answers
    assert answer.response == {**ACCEPTED, "_meta": {"of": "the client's"}}


def test_leg8_a_question_that_waits_is_asked_when_a_result_is_asked_for() -> None:
    client = opened(make_dual())
    created(client)
    client.host.give(asked("first", "name"))
    assert len(client.questions(result_of(client))) == 1


def test_leg8_when_its_carrier_leaves_another_asks() -> None:
    client, first = waiting()
    second = result_of(client)
    client.host.give(asked("first", "name", "city"))
    name, city = client.questions(first)
    client.read(second)
    client.respond(city, ACCEPTED)
    client.host.give(ExchangeClosed(first))
    (again,) = client.questions(second)
    assert again["id"] not in (name["id"], city["id"])
    client.respond(name, ACCEPTED)
    assert get(client)["status"] == "input_required"
    client.respond(again, ACCEPTED)
    assert get(client)["status"] == "working"


def test_leg8_nobody_in_a_session_that_ends_is_asked_instead() -> None:
    """LEG.2: both wait in it, and both are told that it is over."""
    client, first = waiting()
    second = result_of(client)
    client.host.give(asked("first", "name"))
    client.read(first)
    client.read(second)
    client.delete()
    assert client.questions(second) == []
    assert client.error(first) == client.error(second)


@pytest.mark.parametrize("ends", ["cancelled", "expired"])
def test_leg8_what_a_task_asked_is_asked_of_nobody_when_it_is_over(ends: str) -> None:
    """LEG.4: all who wait are told that it is, one after the other."""
    client = opened(make_dual())
    created(client, ttl=60_000)
    first, second = result_of(client), result_of(client)
    client.host.give(asked("first", "name"))
    client.read(first)
    client.read(second)
    if ends == "cancelled":
        client.ask("tasks/cancel", {"taskId": TASK})
    else:
        client.host.advance(60_000)
    assert client.questions(second) == []
    assert client.error(first) == client.error(second)


def test_leg8_an_answer_under_way_is_not_asked_for_by_another() -> None:
    client, first = waiting()
    host = client.host
    host.give(asked("first", "name"))
    (question,) = client.questions(first)
    host.held = True
    client.respond(question, ACCEPTED)
    second = result_of(client)
    host.give(ExchangeClosed(first))
    while host.asked:
        host.answer_next()
    assert client.questions(second) == []
    assert client.statuses(second)[-1] == "working"


def test_leg8_who_cannot_be_asked_is_passed_over() -> None:
    host = make_dual()
    client = opened(host)
    created(client)
    mute = opened(host, session=OTHER_SESSION, capabilities={})
    silent = result_of(mute)
    host.give(asked("first", "name"))
    assert mute.questions(silent) == []
    assert mute.statuses(silent) == ["working", "input_required"]
    assert len(client.questions(result_of(client))) == 1


def test_leg8_a_question_that_is_withdrawn_is_taken_back() -> None:
    client, exchange, question = questioned()
    client.host.give(WorkWithdrewInput(task_id=TASK, token="w", ask="first"))
    assert client.read(exchange)[-1]["params"]["requestId"] == question["id"]
    client.respond(question, ACCEPTED)
    assert get(client)["status"] == "working"
    client.host.give(asked("second", "city"))
    assert len(client.questions(exchange)) == 2


def test_trap20_what_is_on_show_when_the_task_ends_is_taken_back() -> None:
    client, exchange, question = questioned()
    client.ask("tasks/cancel", {"taskId": TASK})
    told = client.read(exchange)
    assert told[-1]["method"] == "notifications/cancelled"
    assert told[-1]["params"]["requestId"] == question["id"]
    client.error(exchange)


def test_leg8_an_elicitation_that_fails_or_does_not_fit_counts_as_cancelled() -> None:
    outcomes: list[dict[str, Any]] = [
        {"error": {"code": -1, "message": "no"}},
        {"result": {"action": "accept", "content": 3}},
    ]
    for outcome in outcomes:
        client, exchange = waiting()
        client.host.give(asked("first", "name"))
        client.respond(client.questions(exchange)[0], **outcome)
        assert get(client)["status"] == "working"


def test_leg8_any_other_error_of_the_client_is_that_of_the_task() -> None:
    client, exchange = waiting()
    client.host.give(asked("first", thought=SAMPLE))
    client.respond(client.questions(exchange)[0], error={"code": -1, "message": "User rejected"})
    client.read(exchange)
    assert client.error(exchange) == {"code": -1, "message": "User rejected"}
    assert client.statuses(exchange) == ["working", "input_required"]
    assert client.host.of(RequestCancel) == [RequestCancel(TASK, CancelReason.ENDED)]
    assert (get(client)["status"], get(client)["statusMessage"]) == ("failed", "User rejected")


def test_leg8_what_fails_a_task_is_not_asked_again_of_who_has_not_heard_yet() -> None:
    client, exchange = waiting()
    client.read(exchange)
    client.host.give(asked("first", thought=SAMPLE))
    question = client.host.of(Send)[-1].message
    client.respond(question, error={"code": -1, "message": "User rejected"})
    assert client.host.of(Send)[-1].message == question
    assert client.questions(exchange) == [question]
    assert client.error(exchange)["message"] == "User rejected"


def test_leg8_any_other_answer_that_does_not_fit_fails_the_task() -> None:
    client, exchange = waiting()
    client.host.give(asked("first", thought=SAMPLE))
    client.respond(client.questions(exchange)[0], {"role": "nobody"})
    client.read(exchange)
    assert client.error(exchange)["code"] == -32602


def test_leg8_an_answer_that_cannot_be_kept_is_asked_for_again() -> None:
    client, exchange, question = questioned()
    host = client.host
    host.held = True
    first = client.respond(question, ACCEPTED)
    host.answer_next()
    (save,) = host.asked
    host.asked.clear()
    host.held = False
    host.give(SaveFailed(save.token))
    again = client.questions(exchange)
    assert len(again) == 2
    assert client.reply(first).http_status == 202, "it is asked for again, here"
    client.respond(again[1], ACCEPTED)
    assert get(client)["status"] == "working"


@pytest.mark.parametrize("decline", [False, True], ids=["an answer", "one that ends the task"])
def test_leg8_life4_an_answer_is_taken_once_it_is_kept(decline: bool) -> None:
    """HTTP 202 tells the client that it need not come again, whatever becomes of this process."""
    client, _, question = questioned()
    host = client.host
    host.held = True
    refusal = {"error": {"code": -1, "message": "User rejected"}}
    taken = client.respond(question, **(refusal if decline else {"result": ACCEPTED}))
    while host.asked:
        assert client.replies(taken) == []
        host.answer_next()
    assert client.reply(taken).http_status == 202
    assert client.reply(taken).message is None


def test_leg8_an_answer_to_nothing_is_taken_at_once() -> None:
    client, _, question = questioned()
    for _ in range(2):
        assert client.reply(client.respond(question, ACCEPTED)).http_status == 202


def test_leg8_nothing_is_left_of_an_answer_that_was_taken() -> None:
    """Its exchange is over, and another may have that name."""
    client, _, question = questioned()
    taken = client.respond(question, ACCEPTED)
    before = len(client.replies(taken))
    ping = {"jsonrpc": "2.0", "id": "again", "method": "ping"}
    client.host.give(MessageReceived(exchange=taken, message=ping, http=client.head()))
    assert [reply.http_status for reply in client.replies(taken)[before:]] == [200]


def test_leg8_an_answer_counts_though_its_connection_is_gone_before_it_is_kept() -> None:
    client, _, question = questioned()
    host = client.host
    host.held = True
    taken = client.respond(question, ACCEPTED)
    before = len(host.effects)
    host.give(StreamReady(taken))
    assert len(host.effects) == before
    host.give(ExchangeClosed(taken))
    while host.asked:
        host.answer_next()
    host.held = False
    assert client.replies(taken) == []
    assert get(client)["status"] == "working"


def test_leg9_a_modern_client_may_answer_what_a_legacy_one_was_asked() -> None:
    client, exchange, question = questioned()
    update(client.host, {"name": ACCEPTED})
    assert client.read(exchange)[-1]["params"]["requestId"] == question["id"]


# -- tasks/cancel ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("parked", [False, True])
def test_leg5_a_task_is_cancelled_before_the_answer(parked: bool) -> None:
    client = opened(make_dual())
    created(client)
    if parked:
        client.host.give(asked("first", "name"))
    shown = client.ask("tasks/cancel", {"taskId": TASK})
    assert (shown["status"], shown["taskId"]) == ("cancelled", TASK)
    assert shown["statusMessage"] == "The task was cancelled by request."
    assert shown == get(client)
    assert client.host.of(RequestCancel) == [RequestCancel(TASK, CancelReason.ENDED)]
    completed(client)
    assert get(client) == shown


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_leg5_a_task_that_has_ended_is_not_cancelled(end: str) -> None:
    client = opened(make_dual())
    created(client)
    completed(client) if end == "completed" else client.ask("tasks/cancel", {"taskId": TASK})
    if end == "failed":
        created(client, OTHER)
        completed(client, {"isError": True}, OTHER)
    task_id = OTHER if end == "failed" else TASK
    before = get(client, task_id)
    refused = client.refused("tasks/cancel", {"taskId": task_id})
    assert refused["code"] == -32602
    assert end in refused["message"]
    assert get(client, task_id) == before


def test_leg5_a_cancellation_that_comes_second_is_refused() -> None:
    for end, message in ((DONE, "completed"), (None, "not found")):
        client = opened(make_dual())
        created(client)
        host = client.host
        host.held = True
        exchange = client.request("tasks/cancel", {"taskId": TASK})
        host.answer_next()
        host.held = False
        if end is None:
            del host.store.records[TASK]
        else:
            completed(client)
        while host.asked:
            host.answer_next()
        assert message in client.error(exchange)["message"]


def test_leg5_each_of_several_cancellations_is_answered_with_its_own_task() -> None:
    client = opened(make_dual())
    host = client.host
    for task_id in (TASK, OTHER):
        created(client, task_id)
    host.held = True
    exchanges = {task_id: client.request("tasks/cancel", {"taskId": task_id}) for task_id in (TASK, OTHER)}
    while host.asked:
        host.answer_next()
    for task_id, exchange in exchanges.items():
        assert (client.result(exchange)["taskId"], client.result(exchange)["status"]) == (
            task_id,
            "cancelled",
        )


def test_leg5_who_leaves_before_the_answer_has_cancelled_all_the_same() -> None:
    client = opened(make_dual())
    created(client)
    host = client.host
    host.held = True
    exchange = client.request("tasks/cancel", {"taskId": TASK})
    host.answer_next()
    host.give(ExchangeClosed(exchange))
    host.held = False
    while host.asked:
        host.answer_next()
    assert client.replies(exchange) == []
    assert get(client)["status"] == "cancelled"


def test_leg5_the_host_can_end_a_task_at_once() -> None:
    host = make_dual()
    working(host)
    host.give(TaskEnded(task_id=TASK, token="first", status_message="No more"))
    assert (view(host)["status"], view(host)["statusMessage"]) == ("cancelled", "No more")
    host.give(TaskEnded(task_id=TASK, token="second", error=BOOM))
    host.give(TaskEnded(task_id=NEVER, token="third"))
    assert [one.token for one in host.of(RejectReport)] == ["second", "third"]


def test_leg5_the_host_can_fail_a_task_at_once() -> None:
    host = make_dual(Limits(result_bytes=100))
    working(host)
    host.give(TaskEnded(task_id=TASK, token="t", error=BOOM, status_message="Enough"))
    assert (view(host)["error"], view(host)["statusMessage"]) == (BOOM.to_wire(), "Enough")
    assert host.store.records[TASK].payload_bytes == json_size(BOOM.to_wire())
    working(host, OTHER)
    host.give(TaskEnded(task_id=OTHER, token="t", error=ErrorObject(1, "x" * 100)))
    assert view(host, OTHER)["error"]["data"] == {"reason": "result_bytes"}


def test_leg5_a_task_that_the_host_fails_says_why_whatever_it_said_last() -> None:
    host = make_dual()
    working(host)
    host.give(WorkProgressed(task_id=TASK, token="p", status_message="Half way"))
    host.give(TaskEnded(task_id=TASK, token="t", error=BOOM))
    assert view(host)["statusMessage"] == "Boom"


# -- tasks/list --------------------------------------------------------------------------------------------


def ids(host: ServerHost, count: int) -> list[str]:
    """Make tasks of ann's, and return their ids, in order."""
    made = [f"task-{number:02}-0123456789abcdefgh" for number in range(count)]
    for task_id in reversed(made):
        working(host, task_id, principal="ann")
    return made


def test_leg7_a_callers_tasks_are_listed_in_pages() -> None:
    host = make_dual(page_size=2)
    made = ids(host, 5)
    working(host, OTHER, principal="bob")
    ann = opened(host, principal="ann")
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    for _ in range(3):
        page = ann.ask("tasks/list", cursor)
        found += page["tasks"]
        cursor = {"cursor": page.get("nextCursor")}
    assert [task["taskId"] for task in found] == made
    assert cursor == {"cursor": None}
    assert found[0] == get(ann, made[0])


def test_leg7_expired_tasks_are_not_listed() -> None:
    host = make_dual()
    ids(host, 2)
    host.now += 3_600_000
    assert opened(host, principal="ann").ask("tasks/list") == {"tasks": []}


def test_leg7_a_cursor_is_good_for_its_caller_alone() -> None:
    host = make_dual(page_size=1)
    ids(host, 2)
    working(host, OTHER, principal="bob")
    working(host, TASK, principal="bob")
    ann, bob = opened(host, principal="ann"), opened(host, session=OTHER_SESSION, principal="bob")
    cursor = ann.ask("tasks/list")["nextCursor"]
    exchange = call(ann)
    host.give(CallAskedInput(started(host).exchange, {"name": form()}))
    assert len(ann.questions(exchange)) == 1
    for refused in (
        bob.refused("tasks/list", {"cursor": cursor}),
        ann.refused("tasks/list", {"cursor": cursor + "x"}),
        ann.refused("tasks/list", {"cursor": ""}),
        ann.refused("tasks/list", {"cursor": None}),
        ann.refused("tasks/list", {"cursor": 7}),
        ann.refused("tasks/list", {"cursor": host.engine.settings.sealer.seal(b'{"after":"x"}')}),
    ):
        assert refused["code"] == -32602


def test_leg7_a_request_state_is_no_cursor_however_deeply_it_is_nested() -> None:
    """It is sealed under the same keys, and deeper than a message may be."""
    host = make_dual()
    ann = opened(host, principal="ann")
    state: Any = {"tasks/list": "ann", "after": "task"}
    for _ in range(host.engine.settings.limits.message_depth):
        state = [state]
    exchange = host.send(request("tools/call", {"name": "optional"}, capabilities=FORMS), principal="ann")
    host.give(CallAskedInput(exchange, {"name": form()}, state=state))
    token = result(host.reply_to(exchange))["requestState"]
    assert ann.refused("tasks/list", {"cursor": token})["code"] == -32602


def test_leg7_a_store_that_cannot_list_is_an_error() -> None:
    host = make_dual()
    ann = opened(host, principal="ann")
    host.held = True
    first, second = ann.request("tasks/list"), ann.request("tasks/list")
    for effect in host.asked:
        assert isinstance(effect, ListTasks)
    host.give(ExchangeClosed(second))
    for effect in host.asked:
        host.give(LoadFailed(effect.token))
    assert ann.error(first)["data"] == {"reason": "store_unavailable"}
    assert ann.replies(second) == []


def test_leg7_a_page_that_is_under_way_comes_from_a_stopping_server_too() -> None:
    host = make_dual()
    (task_id,) = ids(host, 1)
    ann = opened(host, principal="ann")
    host.held = True
    exchange = ann.request("tasks/list")
    host.give(ShutdownStarted())
    assert ann.replies(exchange) == []
    while host.asked:
        host.answer_next()
    assert [task["taskId"] for task in ann.result(exchange)["tasks"]] == [task_id]


class StringSealer(HmacSealer):
    """A sealer of an application's own, which takes strings alone."""

    def open(self, token: str) -> bytes | None:
        assert type(token) is str
        return super().open(token)


@pytest.mark.parametrize("cursor", [None, 7, [], {}], ids=str)
def test_leg7_no_sealer_is_given_a_cursor_that_is_no_text(cursor: Any) -> None:
    ann = opened(make_dual(sealer=StringSealer([b"k" * 32])), principal="ann")
    assert ann.refused("tasks/list", {"cursor": cursor})["code"] == -32602


def test_leg7_a_page_with_more_after_it_has_a_last_record() -> None:
    host = make_dual()
    ann = opened(host, principal="ann")
    host.held = True
    exchange = ann.request("tasks/list")
    (listing,) = host.asked
    with pytest.raises(LocalProtocolError, match="TasksListed"):
        host.give(TasksListed(listing.token, (), more=True))
    with pytest.raises(LocalProtocolError, match="TasksListed: an entry is a TaskRecord"):
        host.give(TasksListed(listing.token, [cast(Any, {"taskId": TASK})], more=False))
    host.give(TasksListed(listing.token, (), more=False))
    assert ann.result(exchange) == {"tasks": []}


def test_sec1_what_a_store_lists_of_somebody_else_is_not_shown() -> None:
    host = make_dual()
    ids(host, 1)
    working(host, OTHER, principal="bob")
    ann = opened(host, principal="ann")
    host.held = True
    exchange = ann.request("tasks/list")
    (listing,) = host.asked
    host.give(TasksListed(listing.token, tuple(host.store.records.values()), more=False))
    assert [task["taskId"] for task in ann.result(exchange)["tasks"]] == ["task-00-0123456789abcdefgh"]


# -- both eras -----------------------------------------------------------------------------------------------


def test_leg9_a_task_of_the_modern_era_is_reached_from_the_legacy_one() -> None:
    client = opened(make_dual())
    working(client.host)
    assert get(client)["status"] == "working"
    exchange = result_of(client)
    assert client.ask("tasks/cancel", {"taskId": TASK})["status"] == "cancelled"
    client.read(exchange)
    assert client.error(exchange)["code"] == -32602
    assert error(client.host.ask("tasks/get", {"taskId": NEVER}))["code"] == -32602


def test_ttl1_a_task_that_another_node_removed_is_unknown_when_its_time_has_come() -> None:
    client, exchange = waiting()
    del client.host.store.records[TASK]
    client.host.give(RecordRemoved(TASK))
    client.host.advance(3_600_000)
    assert client.error(exchange) == UNKNOWN


@pytest.mark.parametrize("extensions", [[1], 5, "x", None, True])
def test_leg1_extensions_that_are_none_disturb_nobody(extensions: object) -> None:
    client = opened(make_dual(), capabilities={"extensions": extensions})
    assert created(client)["status"] == "working"
    completed(client)
    assert client.ask("tasks/get", {"taskId": TASK})["status"] == "completed"
