"""Ends that this side wants: REQ.3, REQ.7, CAN.6, CAN.7; trap 20."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    KeepReference,
    ObservationLost,
    Prompt,
    RequesterLimits,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WithdrawPrompt,
)
from mcp_tasks_proto.testing import RequesterHost
from tests.unit.requester_world import (
    ACCEPTED,
    DONE,
    HINT,
    START,
    TASK,
    asking,
    asks,
    at_rest,
    completed,
    got,
    handle,
    listening,
    make_host,
    news,
    outcome,
    parked,
    polled,
    task,
    working,
)

ACK = {"resultType": "complete"}
STATE = "opaque"


# -- every phase -------------------------------------------------------------------------------------


def waiting_for_tools(host: RequesterHost) -> int:
    return host.call(deadline_ms=START + 3_600_000)


def in_flight(host: RequesterHost) -> int:
    call = waiting_for_tools(host)
    host.reply("tools/list", {"tools": []})
    return call


def on_show(host: RequesterHost) -> int:
    call = in_flight(host)
    host.reply("tools/call", asks("a", state=STATE))
    return call


def about_to_go_back(host: RequesterHost) -> int:
    call = in_flight(host)
    host.reply("tools/call", asks(state=STATE))
    return call


def between_polls(host: RequesterHost) -> int:
    call = in_flight(host)
    host.reply("tools/call", handle())
    return call


def polling(host: RequesterHost) -> int:
    call = between_polls(host)
    host.advance(HINT)
    return call


def ended_handle(host: RequesterHost) -> int:
    call = in_flight(host)
    host.reply("tools/call", handle("completed"))
    return call


def asked(host: RequesterHost) -> int:
    call = polling(host)
    host.reply("tasks/get", asking("a", "b", at=1))
    return call


def updating(host: RequesterHost) -> int:
    call = asked(host)
    host.answer(call, "a", ACCEPTED)
    return call


def about_to_update_again(host: RequesterHost) -> int:
    call = updating(host)
    host.fail("tasks/update")
    return call


def opening_stream(host: RequesterHost) -> int:
    call = between_polls(host)
    host.advance(20)
    return call


def on_stream(host: RequesterHost) -> int:
    call = opening_stream(host)
    host.notify(
        "subscriptions/listen",
        "notifications/subscriptions/acknowledged",
        {"notifications": {"taskIds": [TASK]}},
    )
    return call


def backing_off(host: RequesterHost) -> int:
    call = polling(host)
    host.fail("tasks/get")
    return call


BEFORE_A_TASK = [waiting_for_tools, in_flight, on_show, about_to_go_back]
WITH_A_TASK = [
    between_polls,
    polling,
    ended_handle,
    asked,
    updating,
    about_to_update_again,
    opening_stream,
    on_stream,
    backing_off,
]
PHASES = [*BEFORE_A_TASK, *WITH_A_TASK]


def begun(phase: Any) -> tuple[RequesterHost, int]:
    """Return a host with a call in one phase of its life."""
    host = make_host(mirror_arguments=True, listen=True)
    return host, phase(host)


def kinds(effects: Any) -> list[str]:
    return [type(effect).__name__ for effect in effects]


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
def test_req7_a_call_can_be_cancelled_in_every_phase(phase: Any) -> None:
    host, call = begun(phase)
    effects = host.cancel(call)
    assert effects[-1] == Settle(call, outcome(host, call))
    assert isinstance(outcome(host, call), Cancelled)
    told = host.sent("tasks/cancel")
    assert [params["taskId"] for params in told] == ([TASK] if phase in WITH_A_TASK else [])
    if told:
        assert list(host.in_flight) == host.waiting("tasks/cancel"), "nothing else is left"
        host.reply("tasks/cancel", ACK)
    at_rest(host)


@pytest.mark.parametrize("phase", BEFORE_A_TASK, ids=lambda phase: phase.__name__)
def test_req7_before_there_is_a_task_there_is_nothing_to_wait_for(phase: Any) -> None:
    """The request is stopped, which tells the server as much."""
    host, call = begun(phase)
    host.cancel(call, wait=True)
    assert isinstance(outcome(host, call), Cancelled)
    at_rest(host)


@pytest.mark.parametrize("phase", WITH_A_TASK, ids=lambda phase: phase.__name__)
def test_req7_the_end_of_a_cancelled_task_can_be_waited_for(phase: Any) -> None:
    host, call = begun(phase)
    host.cancel(call, wait=True)
    assert not host.on_show
    assert host.params_of("tasks/cancel")["taskId"] == TASK
    host.reply("tasks/cancel", ACK)
    host.advance(0)
    while call not in host.outcomes:
        if host.waiting("tasks/get"):
            host.reply("tasks/get", got("cancelled", at=9))
        else:
            host.advance(1_000)
    assert isinstance(outcome(host, call), Cancelled)
    assert len(host.sent("tasks/cancel")) == 1
    at_rest(host)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
def test_req7_an_abandoned_wait_cancels_no_task(phase: Any) -> None:
    host, call = begun(phase)
    host.abandon(call)
    found = outcome(host, call)
    assert isinstance(found, ObservationLost)
    assert found.reason.startswith("the caller stopped waiting")
    assert not host.sent("tasks/cancel")
    at_rest(host)
    if phase in WITH_A_TASK:
        again = host.resume(host.references[call])
        host.reply("tasks/get", completed(at=9))
        assert isinstance(outcome(host, again), Completed)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
def test_req3_the_deadline_ends_every_phase(phase: Any) -> None:
    host = make_host(
        RequesterLimits(request_timeout_ms=10_000_000, call_timeout_ms=10_000_000),
        mirror_arguments=True,
        listen=True,
    )
    call = phase(host)
    while call not in host.outcomes:
        assert host.deadline is not None
        host.advance(max(host.deadline - host.now, 0))
        for number in host.waiting("tools/call"):
            if host.now < START + 3_600_000 and host.params_of(number).get("requestState"):
                host.reply(number, asks("z"))
    assert host.now == START + 3_600_000
    assert isinstance(outcome(host, call), ObservationLost)
    at_rest(host)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
@pytest.mark.parametrize("wait", [False, True])
def test_req7_what_is_wanted_of_a_call_that_is_over_does_nothing(phase: Any, wait: bool) -> None:
    host, call = begun(phase)
    host.abandon(call)
    assert host.cancel(call, wait=wait) == []
    assert host.abandon(call) == []
    assert host.cancel("never heard of", wait=wait) == []
    assert host.abandon("never heard of") == []


# -- trap 20 -----------------------------------------------------------------------------------------


def test_trap20_a_cancel_withdraws_the_question_and_a_late_completion_does_not_undo_it() -> None:
    host = make_host()
    call = parked(host, "confirm")
    host.advance(HINT)
    poll = host.number_of("tasks/get")
    effects = host.cancel(call)
    assert kinds(effects) == ["SendRequest", "WithdrawPrompt", "StopRequest", "Settle"]
    assert host.reply(poll, completed(at=2)) == []
    found = outcome(host, call)
    assert isinstance(found, Cancelled)
    assert found.view == host.of(ShowView)[-1].view


def test_trap20_by_stream() -> None:
    host = make_host(listen=True)
    call = listening(host)
    stream = host.number_of("subscriptions/listen")
    host.cancel(call)
    assert host.notify(stream, "notifications/tasks", task("completed", at=2, result=DONE)) == []
    assert isinstance(outcome(host, call), Cancelled)


def test_req7_who_waits_learns_that_the_work_was_done_first() -> None:
    host = make_host()
    call = parked(host, "confirm")
    host.cancel(call, wait=True)
    assert host.of(WithdrawPrompt)
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)


def test_req7_nobody_is_asked_once_the_caller_has_cancelled() -> None:
    host = make_host()
    call = working(host)
    host.cancel(call, wait=True)
    host.reply("tasks/cancel", ACK)
    polled(host, asking("a", at=1, ttlMs=5_000_000))
    polled(host, asking("a", at=2, ttlMs=5_000_000))
    assert not host.of(Prompt)
    assert [kept.reference["ttlMs"] for kept in host.of(KeepReference)] == [None, 5_000_000]
    assert host.references[call]["keys"] == {}


def test_req7_what_a_cancelled_task_asks_is_no_reason_to_stop_waiting() -> None:
    """Neither too many questions, nor an answer that was refused meanwhile."""
    host = make_host(RequesterLimits(ledger_keys=2))
    call = parked(host, "a", "b")
    host.answer(call, "a", ACCEPTED)
    host.cancel(call, wait=True)
    host.refuse("tasks/update", -32602)
    polled(host, asking("a", "b", "c", at=2))
    assert call not in host.outcomes
    polled(host, got("cancelled", at=3))
    assert isinstance(outcome(host, call), Cancelled)


# -- cancellations that get lost ---------------------------------------------------------------------

FAILURES: dict[str, Any] = {
    "reset": lambda host: host.fail("tasks/cancel"),
    "unsent": lambda host: host.fail("tasks/cancel", sent=False),
    "internal": lambda host: host.refuse("tasks/cancel", -32603),
    "unknown code": lambda host: host.refuse("tasks/cancel", -32000),
    "status": lambda host: host.answer_http("tasks/cancel", 503),
    "garbage": lambda host: host.answer_http("tasks/cancel", 200),
    "unknown type": lambda host: host.reply("tasks/cancel", {"resultType": "partial"}),
    "silence": lambda host: host.advance(30_000),
}


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_req7_a_cancellation_nobody_waits_for_is_tried_a_few_times(fail: Any) -> None:
    host = make_host(RequesterLimits(cancel_attempts=3))
    call = working(host)
    host.cancel(call)
    for _ in range(3):
        assert len(host.waiting("tasks/cancel")) == 1
        fail(host)
        if host.deadline is not None:
            host.advance(host.deadline - host.now)
    assert len(host.sent("tasks/cancel")) == 3
    at_rest(host)
    assert [type(effect) for effect in host.effects].count(Settle) == 1


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_req7_a_cancellation_that_is_waited_for_is_tried_until_the_server_knows(fail: Any) -> None:
    host = make_host(RequesterLimits(cancel_attempts=1, last_backoff_ms=1_000))
    call = working(host, pollIntervalMs=10_000_000)
    host.cancel(call, wait=True)
    for _ in range(8):
        fail(host)
        host.advance(1_000)
        assert len(host.waiting("tasks/cancel")) == 1
    host.reply("tasks/cancel", ACK)
    host.advance(60_000)
    assert len(host.sent("tasks/cancel")) == 9
    assert host.cancel(call, wait=True) == [], "the server knows"
    assert len(host.sent("tasks/cancel")) == 9


@pytest.mark.parametrize("code", [-32602, -32601, -32021])
@pytest.mark.parametrize("wait", [False, True])
def test_req7_a_cancellation_that_is_refused_is_not_repeated(code: int, wait: bool) -> None:
    host = make_host()
    call = working(host)
    host.cancel(call, wait=wait)
    assert host.refuse("tasks/cancel", code) == []
    if wait:
        host.advance(HINT)
        host.refuse("tasks/get", -32602)
        assert isinstance(outcome(host, call), Expired)
    at_rest(host)
    assert len(host.sent("tasks/cancel")) == 1


@pytest.mark.parametrize("know", [True, False], ids=["acknowledged", "refused"])
@pytest.mark.parametrize("wait", [False, True])
def test_lim3_a_cancellation_that_the_server_knows_of_takes_no_place(know: bool, wait: bool) -> None:
    host = make_host(RequesterLimits(calls=1))
    call = working(host)
    host.cancel(call, wait=wait)
    if know:
        host.reply("tasks/cancel", ACK)
    else:
        host.refuse("tasks/cancel", -32602)
    host.abandon(call)
    host.call()
    assert host.waiting("tools/call")


def test_lim3_a_cancellation_that_is_given_up_takes_no_place() -> None:
    host = make_host(RequesterLimits(calls=1, cancel_attempts=1))
    host.cancel(working(host))
    host.fail("tasks/cancel")
    host.call()
    assert host.waiting("tools/call")


def test_req2_a_cancellation_honours_retry_after() -> None:
    host = make_host()
    host.cancel(working(host))
    host.answer_http("tasks/cancel", 429, retry_after_ms=70_000)
    assert host.deadline == START + 70_000
    host.advance(70_000)
    host.reply("tasks/cancel", ACK)
    at_rest(host)


def test_neg2_a_cancellation_finds_the_version_too() -> None:
    host = make_host(versions=("2027-01-01", "2026-07-28"))
    host.cancel(working(host))
    host.refuse("tasks/cancel", -32022, data={"supported": ["2026-07-28"]})
    host.advance(1_000)
    meta = host.params_of("tasks/cancel")["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_req7_who_waited_may_stop_waiting() -> None:
    """The cancellation goes on, in flight or about to be repeated."""
    for failed_before in (False, True):
        host = make_host()
        call = working(host)
        host.cancel(call, wait=True)
        if failed_before:
            host.fail("tasks/cancel")
        effects = host.cancel(call)
        assert kinds(effects) == ["Settle"]
        assert isinstance(outcome(host, call), Cancelled)
        host.advance(1_000)
        assert len(host.waiting("tasks/cancel")) == 1
        host.reply("tasks/cancel", ACK)
        at_rest(host)


def test_req7_a_wait_that_is_given_up_leaves_the_cancellation_on_its_way() -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 10_000)
    host.reply("tools/call", handle())
    host.cancel(call, wait=True)
    host.fail("tasks/cancel")
    host.advance(499)
    host.abandon(call)
    assert isinstance(outcome(host, call), ObservationLost)
    host.advance(1)
    host.reply("tasks/cancel", ACK)
    at_rest(host)


@pytest.mark.parametrize("failed_before", [False, True])
def test_req7_the_end_of_the_task_ends_its_cancellation(failed_before: bool) -> None:
    host = make_host(RequesterLimits(first_backoff_ms=20_000))
    call = working(host)
    host.cancel(call, wait=True)
    if failed_before:
        host.fail("tasks/cancel")
    host.advance(HINT)
    effects = host.reply("tasks/get", got("cancelled", at=1))
    assert kinds(effects) == ["ShowView", *([] if failed_before else ["StopRequest"]), "Settle"]
    at_rest(host)


def test_req7_a_cancelled_task_can_be_watched_again() -> None:
    host = make_host()
    call = working(host)
    host.cancel(call)
    again = host.resume(host.references[call])
    host.reply("tasks/get", got("cancelled", at=1))
    assert isinstance(outcome(host, again), Cancelled)
    assert len(host.waiting("tasks/cancel")) == 1


def test_can7_giving_up_a_plain_call_stops_its_request_and_nothing_else() -> None:
    host = make_host()
    call = host.call()
    assert host.cancel(call) == [StopRequest(1), Settle(call, Cancelled())]
    assert host.reply(1, handle()) == []
    assert host.of(SendRequest)[1:] == []
    at_rest(host)


def test_sub4_a_cancelled_task_leaves_its_stream() -> None:
    host = make_host(listen=True)
    call = listening(host)
    host.cancel(call, wait=True)
    host.reply("tasks/cancel", ACK)
    news(host, "cancelled", at=1)
    assert isinstance(outcome(host, call), Cancelled)
    at_rest(host)
