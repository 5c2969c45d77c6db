"""Persist before send, conflicts, and a store that fails: LIFE.4, UPD.5, CAN.6, CAN.7, TRAPS 2 to 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    CancelReason,
    Delete,
    DeliverInput,
    Effect,
    ErrorCode,
    ErrorObject,
    ExchangeClosed,
    FindExpired,
    Input,
    Limits,
    Load,
    LocalProtocolError,
    RejectReport,
    Reply,
    RequestCancel,
    Save,
    SaveConflict,
    StartWork,
    StopCall,
    TimePassed,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing import ServerHost, request
from tests.unit.test_server_messages import cancelled
from tests.unit.world import (
    ACCEPTED,
    DECLINED,
    DONE,
    NEVER,
    OTHER,
    TASK,
    asked,
    call,
    cancel,
    error,
    listen,
    make_host,
    parked,
    result,
    update,
    view,
    working,
)

UNAVAILABLE = {"reason": "store_unavailable"}
DOWN = "Internal error: the task store did not answer"


def held(host: ServerHost) -> ServerHost:
    """From now on the store answers only when the test says so."""
    host.held = True
    return host


def send(host: ServerHost, method: str, **params: Any) -> int:
    return host.send(request(method, {"taskId": TASK, **params}))


def answer_all(host: ServerHost) -> None:
    while host.asked:
        host.answer_next()


def fail_next(host: ServerHost) -> list[Effect]:
    """The store cannot do the oldest thing it was asked."""
    return host.give(host.store.fail(host.asked.pop(0)))


def replied(host: ServerHost, exchange: int) -> bool:
    return any(reply.exchange == exchange for reply in host.of(Reply))


# -- persist before send ---------------------------------------------------------------------------


def test_life4_no_handle_before_its_record_is_durable() -> None:
    host = held(make_host())
    exchange = call(host)
    assert host.give(CallBecameTask(exchange=exchange, task_id=TASK)) == []
    (save,) = host.asked
    assert isinstance(save, Save)
    assert (save.expected_version, save.record.version, save.quota is not None) == (None, 1, True)
    assert [type(effect) for effect in host.answer_next()] == [Reply, StartWork]
    assert result(host.reply_to(exchange))["taskId"] == TASK


def test_life4_a_get_at_once_succeeds_on_any_node() -> None:
    host = make_host()
    working(host)
    other = make_host(store=host.store)
    assert view(other) == view(host)


def test_upd3_no_acknowledgement_before_the_answers_are_durable() -> None:
    host = make_host()
    parked(host)
    held(host)
    exchange = send(host, "tasks/update", inputResponses={"confirm": ACCEPTED})
    assert [type(effect) for effect in host.asked] == [Load]
    assert host.answer_next() == []
    assert [type(effect) for effect in host.asked] == [Save]
    assert [type(effect) for effect in host.answer_next()] == [DeliverInput, Reply]
    assert replied(host, exchange)


def test_can6_no_acknowledgement_before_the_cancel_is_durable() -> None:
    host = make_host()
    working(host)
    held(host)
    exchange = send(host, "tasks/cancel")
    assert host.answer_next() == []
    assert not replied(host, exchange)
    assert [type(effect) for effect in host.answer_next()] == [RequestCancel, Reply]


def test_reports_are_accepted_once_they_are_durable() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    held(host)
    sent = len(host.sent_on(stream))
    assert host.give(WorkCompleted(task_id=TASK, token="end", result=DONE)) == []
    assert len(host.sent_on(stream)) == sent, "nobody hears of it before"
    assert AcceptReport("end") in host.answer_next()


def test_get1_a_read_saves_nothing() -> None:
    host = make_host()
    working(host)
    held(host)
    send(host, "tasks/get")
    assert [type(effect) for effect in host.answer_next()] == [Reply]
    assert host.asked == []


# -- conflicts -------------------------------------------------------------------------------------


def test_upd5_two_updates_at_the_same_moment_keep_both_answers() -> None:
    """TRAP 3."""
    host = make_host()
    parked(host, "a", "b")
    held(host)
    first = send(host, "tasks/update", inputResponses={"a": ACCEPTED})
    second = send(host, "tasks/update", inputResponses={"b": DECLINED})
    host.answer_next()
    host.answer_next()
    assert [effect.expected_version for effect in host.asked if isinstance(effect, Save)] == [2, 2]
    answer_all(host)
    assert replied(host, first)
    assert replied(host, second)
    delivered = [answer for one in host.of(DeliverInput) for answer in one.answers]
    assert {(answer.key, answer.response["action"]) for answer in delivered} == {
        ("a", "accept"),
        ("b", "decline"),
    }
    assert len(delivered) == 2, "each answer once"
    host.held = False
    assert view(host)["status"] == "working"


def test_upd5_two_answers_to_one_key_the_first_to_be_saved_wins() -> None:
    host = make_host()
    parked(host)
    held(host)
    send(host, "tasks/update", inputResponses={"confirm": ACCEPTED})
    send(host, "tasks/update", inputResponses={"confirm": DECLINED})
    answer_all(host)
    assert len([reply for reply in host.of(Reply) if reply.message and "result" in reply.message]) == 3
    (delivered,) = host.of(DeliverInput)
    assert [answer.response for answer in delivered.answers] == [ACCEPTED]


@pytest.mark.parametrize("first", ["cancel", "complete"])
def test_can6_cancel_against_complete(first: str) -> None:
    host = make_host()
    working(host)
    held(host)
    acts: dict[str, Callable[[], object]] = {
        "cancel": lambda: send(host, "tasks/cancel"),
        "complete": lambda: host.give(WorkCompleted(task_id=TASK, token="end", result=DONE)),
    }
    acts.pop(first)()
    acts.popitem()[1]()
    answer_all(host)
    host.held = False
    assert view(host)["status"] == "completed"
    assert host.of(AcceptReport) == [AcceptReport("end")]
    assert len(host.of(Reply)) == 3, "the handle, the acknowledgement, the view"


def test_can6_cancel_against_answer() -> None:
    """TRAP 4: whichever is saved first, the answer is acknowledged and delivered at most once."""
    host = make_host()
    parked(host)
    held(host)
    send(host, "tasks/cancel")
    send(host, "tasks/update", inputResponses={"confirm": ACCEPTED})
    answer_all(host)
    host.held = False
    assert host.of(RequestCancel) == [RequestCancel(TASK, CancelReason.REQUESTED)]
    assert not host.of(DeliverInput), "cancelled first"
    assert view(host)["status"] == "input_required"


def test_a_question_against_a_cancel_is_decided_again() -> None:
    host = make_host()
    working(host)
    held(host)
    send(host, "tasks/cancel")
    host.answer_next()
    host.give(asked("first", "confirm", token="q"))
    answer_all(host)
    assert [type(effect) for effect in host.effects[-3:]] == [RequestCancel, Reply, RejectReport]


def test_inp1_two_questions_at_the_same_moment_get_two_keys() -> None:
    host = make_host()
    working(host)
    held(host)
    host.give(asked("first", "confirm", token=1))
    host.give(asked("second", "confirm", token=2))
    answer_all(host)
    host.held = False
    assert list(view(host)["inputRequests"]) == ["confirm", "confirm.2"]


def test_an_answer_against_a_withdrawal_is_taken_or_superseded() -> None:
    host = make_host()
    parked(host)
    held(host)
    host.give(WorkWithdrewInput(task_id=TASK, token="w", ask="first"))
    exchange = send(host, "tasks/update", inputResponses={"confirm": ACCEPTED})
    answer_all(host)
    assert replied(host, exchange)
    assert not host.of(DeliverInput)


def test_the_record_may_be_gone_by_the_time_of_the_save() -> None:
    host = make_host()
    parked(host)
    held(host)
    exchange = send(host, "tasks/update", inputResponses={"confirm": ACCEPTED})
    host.answer_next()
    del host.store.records[TASK]
    answer_all(host)
    assert error(host.reply_to(exchange))["message"] == "Task not found"


def test_a_conflict_that_never_ends_is_an_error_to_the_peer() -> None:
    """LIM.3: ``save_attempts``. A worker's report is tried again later instead."""
    host = make_host(Limits(save_attempts=3))
    working(host)
    record = host.store.records[TASK]
    held(host)
    exchange = send(host, "tasks/cancel")
    host.give(WorkProgressed(task_id=TASK, token="p", status_message="busy"))
    host.answer_next()
    saves = 0
    while any(isinstance(effect, Save) for effect in host.asked):
        host.give(SaveConflict(host.asked.pop(0).token, record))
        saves += 1
    assert saves == 6
    assert error(host.reply_to(exchange))["data"] == UNAVAILABLE
    assert not host.of(AcceptReport)
    host.held = False
    host.advance(60_000)
    assert host.of(AcceptReport) == [AcceptReport("p")]


def test_a_new_task_meets_a_conflict_that_is_gone_again() -> None:
    """The record that stood in the way expired meanwhile: the new one is offered again."""
    host = held(make_host())
    exchange = call(host)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    host.give(SaveConflict(host.asked.pop(0).token, None))
    assert [type(effect) for effect in host.answer_next()] == [Reply, StartWork]
    assert "result" in host.reply_to(exchange)


# -- failures (a peer learns at once) --------------------------------------------------------------


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_peer_learns_that_the_store_cannot_tell(method: str) -> None:
    host = make_host()
    parked(host)
    held(host)
    exchange = send(host, method, inputResponses={"confirm": ACCEPTED})
    assert [type(effect) for effect in fail_next(host)] == [Reply]
    refusal = error(host.reply_to(exchange))
    assert (refusal["code"], refusal["data"]) == (ErrorCode.INTERNAL_ERROR, UNAVAILABLE)
    assert refusal["message"] == DOWN
    assert host.asked == []


@pytest.mark.parametrize("method", ["tasks/update", "tasks/cancel"])
def test_a_peer_learns_that_nothing_was_written(method: str) -> None:
    host = make_host()
    parked(host)
    held(host)
    exchange = send(host, method, inputResponses={"confirm": ACCEPTED})
    host.answer_next()
    assert [type(effect) for effect in fail_next(host)] == [Reply]
    refusal = error(host.reply_to(exchange))
    assert (refusal["data"], refusal["message"]) == (UNAVAILABLE, DOWN)
    assert not host.of(DeliverInput)
    assert not host.of(RequestCancel)
    host.held = False
    assert update(host, {"confirm": ACCEPTED})["result"]
    assert len(host.of(DeliverInput)) == 1, "the peer's second try is the first that counts"


def test_a_task_that_could_not_be_written_is_none() -> None:
    host = held(make_host())
    exchange = call(host)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    assert [type(effect) for effect in fail_next(host)] == [Reply]
    assert error(host.reply_to(exchange))["data"] == UNAVAILABLE
    host.held = False
    assert host.store.records == {}
    assert error(host.ask("tasks/get", {"taskId": TASK}))["message"] == "Task not found"


def test_a_listener_learns_that_the_store_cannot_tell() -> None:
    host = held(make_host())
    exchange = listen(host, TASK, NEVER)
    fail_next(host)
    assert error(host.reply_to(exchange))["data"] == UNAVAILABLE
    answer_all(host)
    assert host.sent_on(exchange) == []
    assert len(host.of(Reply)) == 1


# -- failures (a report is kept until it lands) ----------------------------------------------------

REPORTS: dict[str, tuple[Input, str]] = {
    "progress": (WorkProgressed(task_id=TASK, token="r", status_message="busy"), "working"),
    "question": (asked("first", "confirm", token="r"), "input_required"),
    "result": (WorkCompleted(task_id=TASK, token="r", result=DONE), "completed"),
    "failure": (WorkFailed(task_id=TASK, token="r", error=ErrorObject(1, "x")), "failed"),
    "stop": (WorkStopped(task_id=TASK, token="r"), "cancelled"),
}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("at", ["load", "save"])
def test_a_report_is_tried_again_by_deadline_until_it_lands(name: str, at: str) -> None:
    report, status = REPORTS[name]
    host = make_host()
    working(host)
    held(host)
    host.give(report)
    pauses = []
    for _ in range(12):
        if at == "save" and isinstance(host.asked[0], Load):
            host.answer_next()
        before = host.now
        assert fail_next(host) == [], "nobody is told; it is not lost"
        assert host.asked == []
        assert host.deadline is not None
        pauses.append(host.deadline - before)
        host.now = host.deadline
        host.give(TimePassed())
    answer_all(host)
    assert pauses[:8] == [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000], "soon, then ever later"
    assert set(pauses[7:]) == {30_000}, "up to a bound"
    assert host.of(AcceptReport) == [AcceptReport("r")]
    host.held = False
    assert view(host)["status"] == status


def test_a_report_is_saved_without_a_look_up() -> None:
    """Each on top of the one before, and of what a peer did."""
    host = make_host()
    parked(host)
    update(host, {"confirm": ACCEPTED})
    held(host)
    for version, (report, _) in enumerate([REPORTS["progress"], REPORTS["result"]], start=3):
        host.give(report)
        (save,) = host.asked
        assert isinstance(save, Save)
        assert (save.expected_version, save.quota) == (version, None), "TTL.2: reports have no cap"
        host.answer_next()
    assert host.of(AcceptReport)[1:] == [AcceptReport("r"), AcceptReport("r")]


def test_a_report_that_changes_nothing_is_checked_against_the_store() -> None:
    host = make_host()
    working(host)
    host.give(REPORTS["progress"][0])
    held(host)
    host.give(REPORTS["progress"][0])
    assert [type(effect) for effect in host.asked] == [Load]
    assert host.answer_next() == [AcceptReport("r")]
    assert host.asked == []


def test_a_report_that_is_tried_again_meets_what_happened_meanwhile() -> None:
    host = make_host(Limits(cancel_grace_ms=100))
    working(host)
    cancel(host)
    held(host)
    host.give(WorkCompleted(task_id=TASK, token="end", result=DONE))
    fail_next(host)
    host.held = False
    host.advance(60_000)
    assert host.of(AcceptReport) == [AcceptReport("end")]
    assert view(host)["status"] == "cancelled", "the grace was over before the store came back"


def test_the_end_of_a_grace_is_tried_again_too() -> None:
    host = make_host(Limits(cancel_grace_ms=100))
    working(host)
    cancel(host)
    held(host)
    host.now += 100
    host.give(TimePassed())
    fail_next(host)
    host.held = False
    host.advance(1_000)
    assert view(host)["status"] == "cancelled"


# -- the client goes away while its task is made (CAN.7) -------------------------------------------


def gone_during_creation(**facts: Any) -> tuple[ServerHost, int]:
    host = held(make_host())
    exchange = call(host, **facts)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    return host, exchange


def test_can7_a_task_that_nobody_was_told_of_is_removed_and_never_runs() -> None:
    host, exchange = gone_during_creation()
    assert host.give(ExchangeClosed(exchange)) == []
    answer_all(host)
    assert host.store.records == {}
    assert not host.of(StartWork)
    assert not host.of(Reply)


def test_can7_on_a_shared_channel_too() -> None:
    host, exchange = gone_during_creation(connection="stdio", id=5)
    host.send(cancelled(5), connection="stdio")
    assert host.of(StopCall) == [StopCall(exchange)]
    answer_all(host)
    assert host.store.records == {}
    assert not host.of(StartWork)


def test_can7_a_task_that_was_not_written_need_not_be_removed() -> None:
    host, exchange = gone_during_creation()
    host.give(ExchangeClosed(exchange))
    assert fail_next(host) == []
    assert host.asked == []


def test_can7_the_removal_is_tried_again() -> None:
    host, exchange = gone_during_creation()
    host.give(ExchangeClosed(exchange))
    host.answer_next()
    host.answer_next()
    assert [type(effect) for effect in host.asked] == [Delete]
    fail_next(host)
    assert list(host.store.records) == [TASK]
    host.held = False
    host.advance(60_000)
    assert host.store.records == {}


def test_can7_a_task_handed_out_lives_on_without_its_client() -> None:
    host = make_host()
    exchange = call(host)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    assert host.give(ExchangeClosed(exchange)) == []
    host.advance(60_000)
    assert view(host)["status"] == "working"
    assert not host.of(RequestCancel)


def test_one_question_has_one_answer() -> None:
    """A second one is the host's mistake, and the first stands."""
    host = held(make_host(Limits(tasks=1)))
    for task_id in (TASK, OTHER):
        host.give(CallBecameTask(exchange=call(host), task_id=task_id))
    send(host, "tasks/get")
    send(host, "tasks/cancel")
    host.now += 3_600_000
    seen: list[Any] = []
    while host.asked or not any(isinstance(effect, FindExpired) for effect in seen):
        if not host.asked:
            host.give(TimePassed())
        effect = host.asked.pop(0)
        answer = host.store.answer(effect)
        host.give(answer)
        seen.append(effect)
        with pytest.raises(LocalProtocolError, match="outstanding"):
            host.give(answer)
    assert {type(effect) for effect in seen} == {Save, Load, Delete, FindExpired}
