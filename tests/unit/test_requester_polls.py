"""Polls and their end: REQ.2, REQ.3, REQ.5, REQ.6; traps 15, 16, 17, 18, 19."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    HttpReply,
    KeepReference,
    ObservationLost,
    RequesterLimits,
    SendRequest,
    ShowView,
)
from mcp_tasks_proto.testing import RequesterHost
from mcp_tasks_proto.wire.http import request_headers
from tests.unit.requester_world import (
    ACCEPTED,
    DONE,
    HINT,
    OTHER,
    START,
    TASK,
    acknowledge,
    asking,
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
    stamp,
    task,
    until_poll,
    working,
)


def poll_times(host: RequesterHost, until_ms: int, result: Any, *, task_id: str = TASK) -> list[int]:
    """Answer every poll of a task at once until then; return when they came, in ms after the start."""
    times = []
    while host.deadline is not None and host.deadline <= START + until_ms:
        host.advance(host.deadline - host.now)
        for number in host.waiting("tasks/get"):
            if host.params_of(number)["taskId"] == task_id:
                times.append(host.now - START)
            host.reply(number, result)
    return times


# -- the schedule (REQ.2) ----------------------------------------------------------------------------


def test_req2_the_first_poll_honours_the_hint() -> None:
    host = make_host()
    working(host, pollIntervalMs=5_000)
    assert poll_times(host, 12_000, got(at=1)) == [5_000, 10_000]


def test_req2_without_a_hint_the_requesters_own_interval_counts() -> None:
    host = make_host(RequesterLimits(poll_interval_ms=700))
    working(host, pollIntervalMs=None)
    assert poll_times(host, 1_500, got(at=1, pollIntervalMs=None)) == [700, 1_400]


@pytest.mark.parametrize("hint", [0, -1, -(2**53), -(10**400)])
def test_trap16_a_hint_that_is_not_positive_makes_no_hot_loop(hint: int) -> None:
    host = make_host()
    working(host, pollIntervalMs=hint)
    assert poll_times(host, 3_500, got(at=1, pollIntervalMs=hint)) == [1_000, 2_000, 3_000]


def test_req2_a_tiny_hint_is_held_to_the_floor() -> None:
    host = make_host(RequesterLimits(poll_floor_ms=250))
    working(host, pollIntervalMs=1)
    assert poll_times(host, 1_000, got(at=1, pollIntervalMs=1)) == [250, 500, 750, 1_000]


def test_req2_a_changed_hint_is_in_force_with_the_answer_that_brings_it() -> None:
    host = make_host()
    working(host, pollIntervalMs=1_000)
    polled(host, got(at=1, pollIntervalMs=30_000))
    assert until_poll(host) == 30_000
    polled(host, got(at=2, pollIntervalMs=2_000))
    assert until_poll(host) == 2_000


def test_req2_a_view_without_a_hint_leaves_the_last_one_in_force() -> None:
    host = make_host()
    working(host, pollIntervalMs=7_000)
    polled(host, got(at=1, pollIntervalMs=None))
    assert until_poll(host) == 7_000


@pytest.mark.parametrize("hint", [2**53, 10**400])
def test_req2_a_huge_hint_is_honoured_and_is_no_number_that_a_host_cannot_bear(hint: int) -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 86_400_000)
    host.reply("tools/call", handle(pollIntervalMs=hint))
    assert host.deadline == START + 86_400_000
    host.advance(86_400_000)
    assert isinstance(outcome(host, call), ObservationLost)
    other = make_host()
    working(other, pollIntervalMs=hint)
    assert other.deadline == 253_402_300_799_999
    assert not other.sent("tasks/get")


def test_trap17_each_task_has_its_own_schedule() -> None:
    host = make_host()
    working(host, pollIntervalMs=500)
    working(host, pollIntervalMs=30_000, task_id=OTHER)
    times: dict[str, list[int]] = {TASK: [], OTHER: []}
    while host.deadline is not None and host.deadline <= START + 60_000:
        host.advance(host.deadline - host.now)
        for number in host.waiting("tasks/get"):
            task_id = host.params_of(number)["taskId"]
            times[task_id].append(host.now - START)
            hint = 500 if task_id == TASK else 30_000
            host.reply(number, got(at=1, task_id=task_id, pollIntervalMs=hint))
    assert times[TASK] == list(range(500, 60_001, 500))
    assert times[OTHER] == [30_000, 60_000]


def test_req2_a_slow_server_has_one_poll_of_a_task_at_a_time() -> None:
    host = make_host(RequesterLimits(request_timeout_ms=60_000))
    working(host, pollIntervalMs=100)
    host.advance(50_000)
    assert len(host.sent("tasks/get")) == 1


def test_req2_when_the_next_poll_comes_can_be_told() -> None:
    host = make_host()
    assert host.engine.next_poll(1) is None
    call = host.call()
    assert host.engine.next_poll(call) is None
    host.reply("tools/call", handle())
    assert host.engine.next_poll(call) == START + HINT
    host.advance(HINT)
    assert host.engine.next_poll(call) is None


# -- failures (REQ.3) --------------------------------------------------------------------------------


def fail_by_reset(host: RequesterHost) -> None:
    host.fail("tasks/get", "reset")


def fail_unsent(host: RequesterHost) -> None:
    host.fail("tasks/get", "no route", sent=False)


def fail_by_error(host: RequesterHost) -> None:
    host.refuse("tasks/get", -32603, "busy")


def fail_by_unknown_error(host: RequesterHost) -> None:
    host.refuse("tasks/get", -32000, "odd")


def fail_by_status(host: RequesterHost) -> None:
    host.answer_http("tasks/get", 502)


def fail_by_client_status(host: RequesterHost) -> None:
    host.answer_http("tasks/get", 404)


def fail_by_redirect(host: RequesterHost) -> None:
    host.answer_http("tasks/get", 307)


def fail_by_garbage(host: RequesterHost) -> None:
    host.answer_http("tasks/get", 200, body="<html>")


def fail_by_silence(host: RequesterHost) -> None:
    host.advance(30_000)


def fail_by_wrong_task(host: RequesterHost) -> None:
    host.reply("tasks/get", completed(at=1, task_id=OTHER))


def fail_by_unknown_status(host: RequesterHost) -> None:
    host.reply("tasks/get", got("running", at=1))


def fail_by_unknown_type(host: RequesterHost) -> None:
    host.reply("tasks/get", {**completed(at=1), "resultType": "partial"})


def fail_by_handle(host: RequesterHost) -> None:
    host.reply("tasks/get", {**completed(at=1), "resultType": "task"})


def fail_by_question(host: RequesterHost) -> None:
    host.reply("tasks/get", {**completed(at=1), "resultType": "input_required"})


def fail_by_bad_requests(host: RequesterHost) -> None:
    host.reply("tasks/get", got("input_required", at=1, inputRequests={"k": "what?"}))


def fail_by_emptiness(host: RequesterHost) -> None:
    host.reply("tasks/get", {})


FAILURES = [value for name, value in sorted(globals().items()) if name.startswith("fail_by_")] + [fail_unsent]


@pytest.mark.parametrize("fail", FAILURES, ids=lambda fail: fail.__name__)
def test_trap18_a_failed_poll_is_not_the_end_of_the_task(fail: Any) -> None:
    """Among the failures: an answer for another task (REQ.5), and answers that are none."""
    host = make_host()
    call = working(host)
    host.advance(HINT)
    fail(host)
    assert call not in host.outcomes
    polled(host, completed(at=2))
    assert outcome(host, call) == Completed({"resultType": "complete", **DONE})
    at_rest(host)


def test_req3_failed_polls_back_off_and_recovery_ends_that() -> None:
    host = make_host(RequesterLimits(first_backoff_ms=2_000, last_backoff_ms=16_000))
    working(host, pollIntervalMs=1_000)
    waits = []
    for _ in range(6):
        waits.append(until_poll(host))
        host.advance(until_poll(host))
        fail_by_error(host)
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 16_000]
    polled(host, got(at=1, pollIntervalMs=1_000))
    assert until_poll(host) == 1_000


def test_req3_a_pause_is_doubled_until_it_is_the_longest_however_short_the_first() -> None:
    host = make_host(RequesterLimits(first_backoff_ms=1, last_backoff_ms=1_000_000, poll_floor_ms=1))
    working(host, pollIntervalMs=1)
    waits = []
    for _ in range(23):
        host.advance(until_poll(host))
        fail_by_error(host)
        waits.append(until_poll(host))
    assert waits == [*(2**doublings for doublings in range(20)), 1_000_000, 1_000_000, 1_000_000]


def test_req3_a_thousand_failures_do_not_overflow() -> None:
    host = make_host(RequesterLimits(last_backoff_ms=1_000, first_backoff_ms=1_000))
    call = working(host, pollIntervalMs=1_000)
    for _ in range(1_000):
        host.advance(until_poll(host))
        fail_by_reset(host)
    assert until_poll(host) == 1_000
    polled(host, completed(at=1))
    assert isinstance(outcome(host, call), Completed)


@pytest.mark.parametrize("status", [429, 503])
def test_req2_retry_after_is_honoured(status: int) -> None:
    host = make_host()
    working(host)
    host.advance(HINT)
    host.answer_http("tasks/get", status, retry_after_ms=120_000)
    assert until_poll(host) == 120_000


@pytest.mark.parametrize("pause", [0, -5_000, None])
def test_req2_a_retry_after_that_is_over_makes_no_hot_loop(pause: int | None) -> None:
    host = make_host()
    working(host)
    host.advance(HINT)
    host.answer_http("tasks/get", 429, retry_after_ms=pause)
    assert until_poll(host) == HINT


@pytest.mark.parametrize(
    "fail", [fail_by_reset, fail_by_status, fail_by_emptiness], ids=lambda it: it.__name__
)
def test_trap9_news_that_come_as_a_poll_fails_are_fetched_without_a_pause(fail: Any) -> None:
    """They say that the task is there, and not how it stands; the hint was waited for before."""
    host = make_host(listen=True)
    listening(host)
    host.advance(2 * HINT)
    fail(host)
    news(host, "input_required", at=1)
    assert until_poll(host) == 0


def test_req2_retry_after_comes_with_an_error_as_well() -> None:
    host = make_host()
    working(host)
    host.advance(HINT)
    error = {"jsonrpc": "2.0", "id": host.number_of("tasks/get"), "error": {"code": -32603, "message": "no"}}
    host.answer_http("tasks/get", 429, retry_after_ms=60_000, body=error)
    assert until_poll(host) == 60_000


def test_req2_the_end_of_a_stream_does_not_cut_retry_after_short() -> None:
    host = make_host(listen=True)
    listening(host)
    host.advance(30_000)
    host.answer_http("tasks/get", 429, retry_after_ms=120_000)
    host.fail("subscriptions/listen")
    before = len(host.sent("tasks/get"))
    host.advance(119_999)
    assert len(host.sent("tasks/get")) == before
    host.advance(1)
    assert len(host.sent("tasks/get")) == before + 1


def test_req3_the_deadline_ends_the_wait_with_what_is_known() -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 12_000)
    host.reply("tools/call", handle())
    polled(host, got(at=1, statusMessage="half"))
    host.advance(HINT)
    fail_by_error(host)
    host.advance(2_000)
    found = outcome(host, call)
    assert isinstance(found, ObservationLost)
    assert found.view is not None
    assert found.view.status_message == "half"
    assert found.reason == "the deadline has passed; the last poll failed: busy"
    at_rest(host)


TROUBLES: dict[str, tuple[Any, str]] = {
    "a type that it may not be": (fail_by_question, "the server's answer is of a type that it may not be"),
    "denied": (lambda host: host.answer_http("tasks/get", 401), "the server denies access (HTTP 401)"),
    "another task": (fail_by_wrong_task, "the server answered for another task"),
}


@pytest.mark.parametrize(("fail", "told"), TROUBLES.values(), ids=TROUBLES)
def test_req3_the_end_of_the_wait_says_why_the_last_poll_failed(fail: Any, told: str) -> None:
    host = make_host()
    call = working(host)
    host.advance(HINT)
    fail(host)
    host.abandon(call)
    reason = f"the caller stopped waiting; the last poll failed: {told}"
    assert outcome(host, call) == ObservationLost(reason, host.of(ShowView)[-1].view)


def test_req3_the_deadline_stops_the_poll_in_flight() -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 6_000)
    host.reply("tools/call", handle())
    host.advance(6_000)
    assert outcome(host, call) == ObservationLost("the deadline has passed", host.of(ShowView)[-1].view)
    at_rest(host)


@pytest.mark.parametrize("code", [-32601, -32021, -32022, -32600, -32700, -32020])
def test_req3_errors_that_would_come_again_end_the_observation(code: int) -> None:
    host = make_host()
    call = working(host)
    host.advance(HINT)
    host.refuse("tasks/get", code, "never")
    reason = f"the server no longer tells: never ({code})"
    assert outcome(host, call) == ObservationLost(reason, host.of(ShowView)[-1].view)
    at_rest(host)


# -- the end (REQ.5, REQ.6) --------------------------------------------------------------------------


DENIALS: dict[str, Any] = {
    "a status alone": lambda host, request: host.answer_http(request, 401),
    "with an error": lambda host, request: host.refuse(request, -32001, http=HttpReply(status=403)),
    "with an error that means something else": lambda host, request: host.refuse(
        request, -32602, http=HttpReply(status=401)
    ),
}


@pytest.mark.parametrize("deny", DENIALS.values(), ids=DENIALS)
def test_req3_a_poll_that_is_denied_twice_needs_the_caller(deny: Any) -> None:
    """Waiting brings no other credentials; whoever adds them has had the chance to renew them, once."""
    host = make_host()
    call = working(host)
    host.advance(HINT)
    deny(host, "tasks/get")
    host.advance(HINT)
    deny(host, "tasks/get")
    lost = outcome(host, call)
    assert isinstance(lost, ObservationLost)
    assert (lost.fault, lost.view) == (Fault.CALLER, host.of(ShowView)[-1].view)
    assert lost.http_status in (401, 403)
    assert str(lost.http_status) in lost.reason
    at_rest(host)


def test_req3_a_poll_that_is_let_in_again_starts_anew() -> None:
    host = make_host()
    call = working(host)
    for second in range(1, 10):
        host.advance(HINT)
        host.answer_http("tasks/get", 401)
        polled(host, got(at=second))
    assert call not in host.outcomes


def test_req3_an_answer_that_is_denied_twice_is_kept_for_who_resumes() -> None:
    host = make_host()
    call = parked(host)
    host.answer(call, "confirm", ACCEPTED)
    host.answer_http("tasks/update", 403)
    host.advance(500)
    host.answer_http("tasks/update", 403)
    lost = outcome(host, call)
    assert isinstance(lost, ObservationLost)
    assert (lost.fault, lost.http_status) == (Fault.CALLER, 403)
    saved = host.of(KeepReference)[-1].reference
    host = make_host()
    host.resume(saved)
    host.reply("tasks/get", asking("confirm", at=1))
    assert host.params_of("tasks/update")["inputResponses"] == {"confirm": ACCEPTED}


def test_req4_an_answer_that_is_let_in_again_starts_anew() -> None:
    host = make_host()
    call = parked(host, "first", "second")
    for key in ("first", "second"):
        host.answer(call, key, ACCEPTED)
        host.answer_http("tasks/update", 401)
        host.advance(500)
        host.reply("tasks/update", {"resultType": "complete"})
    assert call not in host.outcomes


def test_req6_an_unknown_task_is_expired() -> None:
    host = make_host()
    call = working(host)
    host.advance(HINT)
    host.refuse("tasks/get", -32602, "Task not found")
    assert outcome(host, call) == Expired(view=host.of(ShowView)[-1].view)
    at_rest(host)


def test_req6_a_failed_task_is_failed_with_its_error() -> None:
    host = make_host()
    call = working(host)
    polled(host, got("failed", at=1, error={"code": -32001, "message": "broke", "data": [1]}))
    assert outcome(host, call) == Failed(code=-32001, message="broke", data=[1], fault=Fault.SERVER)
    at_rest(host)


def test_req6_a_failed_task_says_who_has_to_act() -> None:
    host = make_host()
    call = working(host)
    polled(host, got("failed", at=1, error={"code": -32602, "message": "bad arguments"}))
    assert outcome(host, call) == Failed(code=-32602, message="bad arguments", fault=Fault.CALLER)


@pytest.mark.parametrize(("message", "told"), [("out of paper", "out of paper"), (None, "does not say why")])
def test_life2_a_failed_task_without_an_error_has_no_made_up_code(message: str | None, told: str) -> None:
    host = make_host()
    call = working(host)
    polled(host, got("failed", at=1, statusMessage=message))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert (found.code, found.fault) == (None, Fault.SERVER)
    assert told in found.message


@pytest.mark.parametrize(
    "result", [None, {"resultType": "task", "taskId": "x"}, {"resultType": ["complete"]}], ids=repr
)
def test_trap9_a_completed_task_without_a_final_result_is_no_empty_success(result: Any) -> None:
    host = make_host()
    call = working(host)
    polled(host, got("completed", at=1, result=result))
    found = outcome(host, call)
    assert isinstance(found, Failed)
    assert (found.code, found.fault) == (None, Fault.SERVER)
    assert found.message == "the task is said to be completed, without a final result"
    at_rest(host)


def test_life7_an_inner_result_is_read_with_or_without_its_type() -> None:
    for result in (DONE, {**DONE, "resultType": "complete"}):
        host = make_host()
        call = working(host)
        polled(host, got("completed", at=1, result=result))
        assert outcome(host, call) == Completed(result)


def test_req6_a_cancelled_task_is_cancelled() -> None:
    host = make_host()
    call = working(host)
    polled(host, got("cancelled", at=1))
    found = outcome(host, call)
    assert isinstance(found, Cancelled)
    assert found.view is not None


def test_req5_views_are_shown_when_they_differ() -> None:
    host = make_host()
    call = working(host)
    polled(host, got(at=0))
    polled(host, got(at=1, statusMessage="half"))
    polled(host, completed(at=2))
    shown = [effect.view for effect in host.of(ShowView) if effect.call == call]
    assert [view.last_updated_at for view in shown] == [stamp(0), stamp(1), stamp(2)]


def test_wire5_unknown_members_of_a_view_survive() -> None:
    host = make_host()
    working(host, shade={"deep": [1, None]})
    assert host.of(ShowView)[0].view.extra == {"shade": {"deep": [1, None]}}


def test_trap19_completion_by_notification_and_poll_at_once_is_one_outcome() -> None:
    host = make_host(listen=True)
    call = listening(host)
    host.advance(30_000)
    poll = host.number_of("tasks/get")
    news(host, "completed", at=1, result=DONE)
    assert host.reply(poll, completed({"content": []}, at=1)) == []
    assert outcome(host, call) == Completed(DONE)
    at_rest(host)


def test_trap19_the_other_way_round() -> None:
    host = make_host(listen=True)
    call = listening(host)
    stream = host.number_of("subscriptions/listen")
    host.advance(30_000)
    host.reply("tasks/get", completed(at=1))
    assert host.notify(stream, "notifications/tasks", task("completed", at=1, result={})) == []
    assert outcome(host, call) == Completed({"resultType": "complete", **DONE})
    at_rest(host)


def test_req5_a_view_older_than_the_last_does_not_replace_it() -> None:
    """The poll was answered before the stream brought newer news, and arrives after it."""
    host = make_host(listen=True)
    call = listening(host)
    host.advance(HINT)
    news(host, at=9, statusMessage="newer", pollIntervalMs=9_000)
    host.reply("tasks/get", got(at=4, statusMessage="older"))
    assert [one.view.status_message for one in host.of(ShowView)] == [None, "newer"]
    assert host.references[call]["pollIntervalMs"] == 9_000


def test_req5_the_next_answer_is_the_newest_again() -> None:
    """Only the poll that was in flight may have been overtaken, whatever the server's clock says."""
    host = make_host(listen=True)
    listening(host, pollIntervalMs=1_000)
    host.advance(1_000)
    news(host, at=9, pollIntervalMs=1_000)
    host.reply("tasks/get", got(at=4, pollIntervalMs=1_000))
    polled(host, got(at=5, pollIntervalMs=1_000, statusMessage="from another node"))
    assert host.of(ShowView)[-1].view.status_message == "from another node"


def test_req5_an_end_is_the_end_however_old() -> None:
    host = make_host(listen=True)
    call = listening(host)
    host.advance(HINT)
    news(host, at=9)
    host.reply("tasks/get", completed(at=4))
    assert isinstance(outcome(host, call), Completed)


def test_req5_a_servers_clock_that_goes_back_hides_nothing() -> None:
    """An answer to a poll that was sent after the last news is newer, whatever it says."""
    host = make_host()
    call = working(host, at=50)
    polled(host, got(at=3, statusMessage="another node"))
    assert host.of(ShowView)[-1].view.status_message == "another node"
    polled(host, got("input_required", at=2, inputRequests={}))
    polled(host, completed(at=1))
    assert isinstance(outcome(host, call), Completed)


@pytest.mark.parametrize("when", ["yesterday", "", "2023-11-14", "9999-99-99T00:00:00Z"], ids=repr)
def test_req5_times_that_cannot_be_compared_hide_nothing(when: str) -> None:
    host = make_host(listen=True)
    listening(host)
    news(host, lastUpdatedAt=when, statusMessage="one")
    news(host, at=2, statusMessage="two")
    news(host, lastUpdatedAt=when, statusMessage="three")
    assert [one.view.status_message for one in host.of(ShowView)][1:] == ["one", "two", "three"]


# -- the time to live (REQ.5) ------------------------------------------------------------------------


def fail_until_settled(host: RequesterHost, call: int) -> int:
    """Let every poll fail, and return when the call is given up, in ms after the start."""
    while call not in host.outcomes:
        host.advance(until_poll(host))
        if host.waiting("tasks/get"):
            host.fail("tasks/get")
    return host.now - START


def test_req5_past_its_time_without_news_a_task_is_expired() -> None:
    """The next poll is the last one."""
    host = make_host(RequesterLimits(last_backoff_ms=8_000))
    call = working(host, ttlMs=60_000)
    assert 60_000 <= fail_until_settled(host, call) <= 68_000
    assert outcome(host, call) == Expired(view=host.of(ShowView)[-1].view, unheard=True)
    at_rest(host)


def test_req5_the_first_failure_after_its_time_is_the_end() -> None:
    host = make_host()
    call = working(host, ttlMs=52_000)
    for _ in range(10):
        polled(host, got(at=1, ttlMs=52_000))
    host.advance(2_000)
    assert call not in host.outcomes, "the poll at 55 s decides"
    host.advance(3_000)
    host.fail("tasks/get")
    assert isinstance(outcome(host, call), Expired)
    at_rest(host)


def test_req5_a_poll_in_flight_when_the_time_is_over_decides() -> None:
    for fate in ("result", "failure"):
        host = make_host()
        call = working(host, ttlMs=5_500)
        host.advance(6_000)
        assert call not in host.outcomes
        if fate == "result":
            host.reply("tasks/get", completed(at=1))
            assert isinstance(outcome(host, call), Completed)
        else:
            host.fail("tasks/get")
            assert isinstance(outcome(host, call), Expired)
        at_rest(host)


def test_req5_polls_that_still_succeed_keep_the_task_alive() -> None:
    """Only another lifetime without news ends it; a single failure does not (trap 18)."""
    host = make_host()
    call = working(host, ttlMs=20_000)
    for _ in range(10):
        polled(host, got(at=1, ttlMs=20_000))
    assert host.now - START == 50_000
    host.advance(HINT)
    host.fail("tasks/get")
    polled(host, got(at=1, ttlMs=20_000))
    assert call not in host.outcomes
    heard = host.now - START
    assert fail_until_settled(host, call) >= heard + 20_000
    assert isinstance(outcome(host, call), Expired)


def test_req5_news_by_stream_keeps_it_alive_too() -> None:
    host = make_host(listen=True)
    call = listening(host, ttlMs=20_000)
    for second in range(1, 13):
        host.advance(5_000)
        news(host, at=second, ttlMs=20_000)
        if host.waiting("tasks/get"):
            host.fail("tasks/get")
    assert call not in host.outcomes
    news(host, "completed", at=13, result=DONE, ttlMs=20_000)
    assert outcome(host, call) == Completed(DONE)


def test_req5_the_time_to_live_may_change() -> None:
    host = make_host()
    call = working(host, ttlMs=20_000)
    polled(host, got(at=1, ttlMs=600_000))
    assert 600_000 <= fail_until_settled(host, call) <= 630_000
    assert isinstance(outcome(host, call), Expired)


def test_trap15_an_unlimited_task_never_expires_here() -> None:
    """A view that leaves ``ttlMs`` out changes nothing; null takes the limit away."""
    host = make_host(RequesterLimits(last_backoff_ms=10_000_000))
    call = working(host, ttlMs=60_000)
    bare = got(at=1)
    del bare["ttlMs"]
    polled(host, bare)
    assert host.references[call]["ttlMs"] == 60_000
    polled(host, got(at=2, ttlMs=None))
    assert host.references[call]["ttlMs"] is None
    for _ in range(40):
        host.advance(until_poll(host))
        host.fail("tasks/get")
    assert call not in host.outcomes
    polled(host, completed(at=3))
    assert isinstance(outcome(host, call), Completed)


@pytest.mark.parametrize("ttl", [25 * 86_400_000, 2**53, 10**30, 10**400])
def test_trap15_a_huge_time_to_live_neither_overflows_nor_is_rejected(ttl: int) -> None:
    host = make_host()
    call = working(host, ttlMs=ttl)
    assert host.references[call]["ttlMs"] == ttl
    polled(host, completed(at=1, ttlMs=ttl))
    assert isinstance(outcome(host, call), Completed)
    at_rest(host)


@pytest.mark.parametrize("ttl", [0, -1, -(10**30)])
def test_req5_a_time_to_live_that_makes_no_sense_is_none(ttl: int) -> None:
    host = make_host()
    call = working(host, ttlMs=ttl)
    polled(host, got(at=1, ttlMs=ttl))
    host.advance(HINT)
    host.fail("tasks/get")
    polled(host, completed(at=2))
    assert isinstance(outcome(host, call), Completed)


def test_req5_a_tiny_time_to_live_makes_no_hot_loop() -> None:
    host = make_host()
    call = working(host, ttlMs=1, pollIntervalMs=1_000)
    assert poll_times(host, 10_500, got(at=1, ttlMs=1, pollIntervalMs=1_000)) == list(
        range(1_000, 10_001, 1_000)
    )
    assert len(host.effects) < 40
    host.advance(until_poll(host))
    host.advance(1_000)
    host.fail("tasks/get")
    assert isinstance(outcome(host, call), Expired)


def test_req5_a_poll_that_is_too_far_away_is_not_waited_for() -> None:
    """The server wants no poll for a day, of a task that lives a minute."""
    host = make_host()
    call = working(host, ttlMs=60_000, pollIntervalMs=86_400_000)
    host.advance(59_999)
    assert call not in host.outcomes
    host.advance(1)
    assert outcome(host, call) == Expired(view=host.of(ShowView)[-1].view, unheard=True)
    assert not host.sent("tasks/get")


def test_req5_a_poll_within_another_lifetime_is_waited_for() -> None:
    host = make_host()
    call = working(host, ttlMs=600_000, pollIntervalMs=400_000)
    polled(host, got(at=1, ttlMs=600_000, pollIntervalMs=400_000))
    host.advance(399_999)
    assert call not in host.outcomes, "the time was over at 600 s, the hint allows a poll at 800 s"
    host.advance(1)
    host.reply("tasks/get", completed(at=2))
    assert isinstance(outcome(host, call), Completed)


def test_req5_a_poll_at_the_end_of_another_lifetime_is_waited_for() -> None:
    host = make_host()
    call = working(host, ttlMs=60_000, pollIntervalMs=120_000)
    host.advance(120_000)
    host.reply("tasks/get", completed(at=1))
    assert isinstance(outcome(host, call), Completed)


def test_req5_expiry_and_deadline_at_the_same_moment_settle_once() -> None:
    host = make_host()
    call = host.call(deadline_ms=START + 60_000)
    host.reply("tools/call", handle(ttlMs=60_000, pollIntervalMs=86_400_000))
    host.advance(60_000)
    assert isinstance(outcome(host, call), (Expired, ObservationLost))
    at_rest(host)


def test_req3_poll_and_deadline_at_the_same_moment_settle_once() -> None:
    host = make_host(RequesterLimits(call_timeout_ms=5_000))
    call = host.call(deadline_ms=START + HINT)
    host.reply("tools/call", handle())
    late = host.call(deadline_ms=START + 5_000)
    host.advance(5_000)
    assert isinstance(outcome(host, call), ObservationLost)
    assert isinstance(outcome(host, late), ObservationLost)
    at_rest(host)


# -- references (REQ.6) ------------------------------------------------------------------------------


def test_req6_a_reference_is_kept_before_anything_else_is_done_with_the_handle() -> None:
    host = make_host()
    call = host.call()
    effects = host.reply("tools/call", handle(ttlMs=60_000))
    assert effects[0] == KeepReference(
        call,
        {
            "schema": 1,
            "endpoint": "https://example.com/mcp",
            "taskId": TASK,
            "tool": "render",
            "capabilities": {
                "elicitation": {},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
            "createdMs": START,
            "ttlMs": 60_000,
            "pollIntervalMs": HINT,
            "keys": {},
        },
    )


def test_req6_a_reference_is_kept_anew_when_its_times_change_and_not_otherwise() -> None:
    host = make_host()
    call = working(host)
    polled(host, got(at=1, statusMessage="half"))
    assert len(host.of(KeepReference)) == 1
    polled(host, got(at=2, ttlMs=9_000_000))
    polled(host, got("input_required", at=3, ttlMs=9_000_000, pollIntervalMs=6_000))
    polled(host, got("input_required", at=4, ttlMs=9_000_000, pollIntervalMs=6_000))
    assert len(host.of(KeepReference)) == 3
    assert host.references[call]["ttlMs"] == 9_000_000
    assert host.references[call]["pollIntervalMs"] == 6_000


def test_trap11_polls_carry_the_name_that_the_header_needs() -> None:
    host = make_host()
    call = working(host, task_id="tâche 1")
    host.advance(HINT)
    host.cancel(call)
    for method in ("tasks/get", "tasks/cancel"):
        (params,) = host.sent(method)
        headers = dict(request_headers(method, params, "2026-07-28"))
        assert headers["Mcp-Name"] == "=?base64?dMOiY2hlIDE=?="


def test_req2_effects_stay_within_the_hint_whatever_the_server_says() -> None:
    host = make_host(listen=True)
    working(host, pollIntervalMs=1_000)
    host.advance(20)
    acknowledge(host)
    poll_times(host, 60_000, got(at=1, pollIntervalMs=1_000))
    assert len(host.of(SendRequest)) <= 62
