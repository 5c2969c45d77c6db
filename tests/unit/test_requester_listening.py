"""Listen streams: SUB.1 to SUB.4 and REQ.2 as a requester sees them; trap 19."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.requester import (
    Completed,
    NotificationReceived,
    RequesterLimits,
    ShowView,
    StopRequest,
)
from mcp_tasks_proto.testing import RequesterHost
from tests.unit.requester_world import (
    ACKNOWLEDGED,
    DONE,
    HINT,
    OTHER,
    TASK,
    TASKS,
    acknowledge,
    at_rest,
    completed,
    form,
    got,
    listening,
    make_host,
    news,
    outcome,
    polled,
    task,
    until_poll,
    working,
)

LISTEN = "subscriptions/listen"


def polls(host: RequesterHost) -> int:
    """Return how many polls were sent so far."""
    return len(host.sent("tasks/get"))


# -- opening -----------------------------------------------------------------------------------------


def test_sub1_a_stream_is_asked_for_by_the_tasks_ids() -> None:
    host = make_host(listen=True)
    working(host)
    working(host, task_id=OTHER)
    assert not host.waiting(LISTEN)
    host.advance(20)
    assert host.params_of(LISTEN)["notifications"] == {"taskIds": [TASK, OTHER]}
    assert host.in_flight[host.number_of(LISTEN)].streams


def test_sub1_only_a_stream_says_that_it_streams() -> None:
    host = make_host(listen=True)
    working(host)
    host.advance(HINT)
    streams = {sent.message["method"]: sent.streams for sent in host.in_flight.values()}
    assert streams == {LISTEN: True, "tasks/get": False}


def test_lim3_a_stream_has_a_bounded_number_of_tasks() -> None:
    host = make_host(RequesterLimits(stream_tasks=2), listen=True)
    for number in range(5):
        working(host, task_id=f"t{number}")
    host.advance(20)
    asked = [host.params_of(number)["notifications"]["taskIds"] for number in host.waiting(LISTEN)]
    assert asked == [["t0", "t1"], ["t2", "t3"], ["t4"]]


def test_sub1_a_task_that_ends_before_its_stream_is_opened_has_none() -> None:
    host = make_host(listen=True)
    call = working(host)
    host.cancel(call)
    host.reply("tasks/cancel", {"resultType": "complete"})
    at_rest(host)
    host.advance(60_000)
    assert not host.sent(LISTEN)


def test_sub1_the_other_tasks_still_get_theirs() -> None:
    host = make_host(listen=True)
    host.cancel(working(host))
    working(host, task_id=OTHER)
    host.advance(20)
    assert host.params_of(LISTEN)["notifications"] == {"taskIds": [OTHER]}


def test_sub1_a_task_that_no_longer_waits_for_a_stream_leaves_the_others_theirs() -> None:
    host = make_host(listen=True)
    first, second = working(host), working(host, task_id=OTHER)
    host.abandon(first)
    host.advance(20)
    assert host.params_of(LISTEN)["notifications"] == {"taskIds": [OTHER]}
    host.abandon(second)
    at_rest(host)


def test_sub1_a_task_that_comes_later_puts_off_no_stream() -> None:
    host = make_host(listen=True)
    working(host)
    host.advance(15)
    working(host, task_id=OTHER)
    host.advance(5)
    assert host.params_of(LISTEN)["notifications"] == {"taskIds": [TASK, OTHER]}


def test_req2_a_requester_may_do_without() -> None:
    host = make_host(listen=False)
    working(host)
    host.advance(HINT)
    assert not host.sent(LISTEN)


# -- news (SUB.2, SUB.3) -----------------------------------------------------------------------------


def test_sub2_news_take_the_place_of_polls() -> None:
    host = make_host(RequesterLimits(listening_poll_ms=60_000), listen=True)
    call = listening(host, pollIntervalMs=1_000)
    for second in range(1, 30):
        news(host, at=second, pollIntervalMs=1_000)
        host.advance(999)
    assert polls(host) == 0
    news(host, "completed", at=30, result=DONE)
    assert outcome(host, call) == Completed(DONE)
    at_rest(host)


def test_sub2_a_silent_stream_is_checked_by_rare_polls() -> None:
    host = make_host(RequesterLimits(listening_poll_ms=30_000), listen=True)
    listening(host, pollIntervalMs=1_000)
    news(host, pollIntervalMs=1_000)
    waits = []
    for _ in range(3):
        waits.append(until_poll(host))
        polled(host, got(at=1, pollIntervalMs=1_000))
    assert waits == [30_000] * 3


def test_req2_a_hint_that_is_longer_counts_while_listening_too() -> None:
    host = make_host(listen=True)
    listening(host, pollIntervalMs=90_000)
    news(host, pollIntervalMs=90_000)
    assert until_poll(host) == 90_000


def test_sub2_before_anything_came_the_first_poll_honours_the_hint() -> None:
    """A server need not send a snapshot after the acknowledgement; the poll closes that gap."""
    host = make_host(listen=True)
    listening(host)
    assert until_poll(host) == HINT - 20


def test_req2_a_hint_that_comes_by_stream_is_in_force() -> None:
    host = make_host(listen=True)
    listening(host, pollIntervalMs=1_000)
    host.advance(960)
    news(host, at=1, pollIntervalMs=300_000)
    assert until_poll(host) == 300_000


def test_sub1_nothing_counts_before_the_acknowledgement() -> None:
    host = make_host(listen=True)
    call = working(host)
    host.advance(20)
    news(host, "completed", at=1, result=DONE)
    assert call not in host.outcomes
    acknowledge(host, TASK)
    news(host, "completed", at=1, result=DONE)
    assert outcome(host, call) == Completed(DONE)


@pytest.mark.parametrize(
    "params",
    [
        {},
        task("completed", at=1, task_id=OTHER, result=DONE),
        {**task("completed", at=1, result=DONE), "taskId": 5},
        {**task("completed", at=1, result=DONE), "taskId": ["task-one"]},
        {**task("completed", at=1, result=DONE), "taskId": {"task-one": 1}},
        task("done", at=1, result=DONE),
        task("completed", at=1, result=[]),
        {"taskId": TASK, "status": "completed", "result": DONE},
    ],
    ids=lambda params: str(params)[:70],
)
def test_req5_news_that_are_none_of_a_task_here_change_nothing(params: dict[str, Any]) -> None:
    host = make_host(listen=True)
    call = listening(host)
    deadline = host.deadline
    assert host.notify(LISTEN, TASKS, params) == []
    assert (call in host.outcomes, host.deadline) == (False, deadline)


def test_sub3_other_notifications_on_a_stream_are_ignored() -> None:
    host = make_host(listen=True)
    listening(host)
    for method in ("notifications/progress", "notifications/message", "notifications/tools/list_changed"):
        assert host.notify(LISTEN, method, task("completed", at=1, result=DONE)) == []


def test_req5_stale_news_change_nothing_and_put_no_poll_off() -> None:
    host = make_host(listen=True)
    listening(host, at=9)
    deadline = host.deadline
    assert host.notify(LISTEN, TASKS, task(at=3)) == []
    assert host.deadline == deadline


@pytest.mark.parametrize(
    ("bare", "whole"),
    [
        (task("completed", at=1), completed(at=1)),
        (task("failed", at=1), got("failed", at=1, error={"code": 7, "message": "no"})),
        (
            task("input_required", at=1),
            got("input_required", at=1, inputRequests={"k": form()}),
        ),
    ],
    ids=["completed", "failed", "input_required"],
)
def test_trap9_news_without_their_payload_are_fetched(bare: dict[str, Any], whole: dict[str, Any]) -> None:
    """A notification may say no more than that there is news; its poll comes as soon as the hint allows."""
    host = make_host(listen=True)
    call = listening(host)
    host.advance(1_000)
    assert host.notify(LISTEN, TASKS, bare) == []
    assert until_poll(host) == HINT - 1_020
    host.advance(until_poll(host))
    effects = host.reply("tasks/get", whole)
    assert any(isinstance(effect, ShowView) for effect in effects)
    if whole["status"] != "input_required":
        assert call in host.outcomes
        at_rest(host)


def test_trap9_news_without_their_payload_while_a_poll_is_in_flight_are_fetched_by_another() -> None:
    host = make_host(listen=True)
    listening(host)
    host.advance(HINT)
    host.notify(LISTEN, TASKS, task("completed", at=5))
    host.reply("tasks/get", got(at=4))
    assert until_poll(host) == HINT
    polled(host, completed(at=5))
    at_rest(host)


def test_sub2_once_they_are_fetched_polls_are_rare_again() -> None:
    host = make_host(listen=True)
    listening(host, pollIntervalMs=1_000)
    host.notify(LISTEN, TASKS, task("input_required", at=1, pollIntervalMs=1_000))
    polled(host, got(at=2, pollIntervalMs=1_000))
    assert until_poll(host) == 30_000


# -- acknowledgements (SUB.1) ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {}},
        {"notifications": {"taskIds": None}},
        {"notifications": {"taskIds": TASK}},
        {"notifications": {"taskIds": {TASK: True}}},
        {"notifications": {"taskIds": [[TASK], {"a": 1}, 5, None]}},
        {"notifications": {"taskIds": [OTHER]}},
    ],
    ids=repr,
)
def test_sub1_without_our_ids_the_stream_is_given_up_and_polls_go_on(params: dict[str, Any]) -> None:
    host = make_host(listen=True)
    working(host)
    host.advance(20)
    assert host.notify(LISTEN, ACKNOWLEDGED, params) == [StopRequest(2)]
    times = []
    for second in range(1, 4):
        times.append(until_poll(host))
        polled(host, got(at=second))
    assert times == [HINT - 20, HINT, HINT]
    assert len(host.sent(LISTEN)) == 1


def test_sub1_of_some_tasks_the_stream_brings_news_the_others_are_polled() -> None:
    host = make_host(RequesterLimits(listening_poll_ms=600_000), listen=True)
    working(host)
    working(host, task_id=OTHER)
    host.advance(20)
    acknowledge(host, OTHER)
    news(host, task_id=OTHER)
    news(host, "completed", at=1, result=DONE)
    for second in range(1, 4):
        host.advance(HINT)
        assert [host.params_of(number)["taskId"] for number in host.waiting("tasks/get")] == [TASK]
        host.reply("tasks/get", got(at=second))
    assert host.waiting(LISTEN)
    news(host, "completed", task_id=OTHER, at=1, result=DONE)
    assert not host.waiting(LISTEN)


def test_sub1_a_second_acknowledgement_that_takes_a_task_back_has_it_polled_again() -> None:
    host = make_host(listen=True)
    listening(host, pollIntervalMs=1_000)
    news(host, pollIntervalMs=1_000)
    host.advance(10_000)
    acknowledge(host)
    assert until_poll(host) == 0


def test_sub1_a_stream_that_is_not_acknowledged_is_given_up_and_tried_again() -> None:
    host = make_host(RequesterLimits(request_timeout_ms=3_000, first_backoff_ms=500), listen=True)
    working(host, pollIntervalMs=60_000)
    host.advance(20)
    first = host.number_of(LISTEN)
    host.notify(LISTEN, "notifications/message", {"data": "any sign of life"})
    effects = host.advance(3_000)
    assert effects == [StopRequest(first)]
    host.advance(500)
    assert host.number_of(LISTEN) > first


def test_sub4_an_acknowledged_stream_may_be_silent_for_as_long_as_it_likes() -> None:
    host = make_host(listen=True)
    listening(host)
    stream = host.number_of(LISTEN)
    for second in range(1, 100):
        host.advance(until_poll(host))
        host.reply("tasks/get", got(at=second))
    assert host.number_of(LISTEN) == stream


# -- ends (SUB.4) ------------------------------------------------------------------------------------

ENDS: dict[str, Any] = {
    "gracefully": lambda host: host.reply(LISTEN, {"resultType": "complete"}),
    "by reset": lambda host: host.fail(LISTEN),
    "by error": lambda host: host.refuse(LISTEN, -32603),
    "by a status": lambda host: host.answer_http(LISTEN, 502),
    "by garbage": lambda host: host.answer_http(LISTEN, 200, body="eof"),
    "by a result of no type": lambda host: host.reply(LISTEN, {"resultType": "partial"}),
    "by notice": lambda host: host.notify(LISTEN, "notifications/cancelled", {"requestId": 2}),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_sub4_when_a_stream_ends_polls_take_over_and_another_is_opened(end: Any) -> None:
    host = make_host(RequesterLimits(first_backoff_ms=700), listen=True)
    call = listening(host, pollIntervalMs=1_000)
    news(host, pollIntervalMs=1_000)
    host.advance(10_000)
    end(host)
    assert until_poll(host) == 0, "what was lost with the stream is fetched"
    polled(host, got(at=1, pollIntervalMs=1_000))
    host.advance(699)
    assert not host.waiting(LISTEN)
    host.advance(1)
    acknowledge(host, TASK)
    news(host, "completed", at=2, result=DONE)
    assert outcome(host, call) == Completed(DONE)
    at_rest(host)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_sub4_the_end_of_a_stream_puts_off_no_other_that_is_due(end: Any) -> None:
    host = make_host(listen=True)
    listening(host)
    working(host, task_id=OTHER)
    host.now += 20
    end(host)
    assert host.deadline == host.now
    host.advance(0)
    assert listened(host) == [[OTHER, TASK]]


def test_sub4_a_result_after_the_notice_is_ignored() -> None:
    """On stdio a server sends both (Cancellation, "Subscriptions")."""
    host = make_host(listen=True)
    listening(host)
    host.notify(2, "notifications/cancelled", {"requestId": 2})
    assert host.reply(2, {"resultType": "complete"}) == []
    assert len(host.sent(LISTEN)) == 1


@pytest.mark.parametrize("params", [{}, {"requestId": 7}, {"requestId": "2"}, {"requestId": [2]}], ids=repr)
def test_sub4_a_notice_about_another_request_ends_nothing(params: dict[str, Any]) -> None:
    host = make_host(listen=True)
    listening(host)
    assert host.notify(LISTEN, "notifications/cancelled", params) == []
    assert host.waiting(LISTEN)


def test_can7_a_notice_ends_streams_only() -> None:
    host = make_host()
    call = host.call()
    assert host.notify("tools/call", "notifications/cancelled", {"requestId": 1}) == []
    assert host.waiting("tools/call")
    assert call not in host.outcomes


def test_sub4_a_stream_that_dies_with_a_poll_in_flight_sends_no_second_one() -> None:
    host = make_host(listen=True)
    listening(host)
    host.advance(HINT)
    host.fail(LISTEN)
    assert len(host.waiting("tasks/get")) == 1
    host.reply("tasks/get", got(at=1))
    assert host.engine.next_poll(1) == host.now + HINT


def test_req2_the_end_of_a_stream_brings_no_poll_before_the_hint_allows_it() -> None:
    host = make_host(listen=True)
    listening(host)
    host.advance(HINT)
    host.reply("tasks/get", got(at=1))
    host.advance(1_000)
    host.fail(LISTEN)
    assert host.engine.next_poll(1) == host.now - 1_000 - 20 + HINT


def test_sub4_streams_that_die_at_once_are_opened_ever_more_slowly() -> None:
    """An acknowledgement proves nothing: only a stream that lasted does."""
    host = make_host(RequesterLimits(first_backoff_ms=1_000, last_backoff_ms=8_000), listen=True)
    working(host, pollIntervalMs=10_000_000)
    waits = []
    for _ in range(6):
        waits.append(until_poll(host))
        host.advance(until_poll(host))
        acknowledge(host, TASK)
        host.reply(LISTEN, {"resultType": "complete"})
    assert waits == [20, 1_000, 2_000, 4_000, 8_000, 8_000]
    host.advance(8_000)
    acknowledge(host, TASK)
    host.advance(8_000)
    host.fail(LISTEN)
    assert until_poll(host) == 1_000


def test_req2_a_refused_stream_honours_retry_after() -> None:
    host = make_host(listen=True)
    working(host, pollIntervalMs=600_000)
    host.advance(20)
    host.answer_http(LISTEN, 429, retry_after_ms=45_000)
    working(host, task_id=OTHER, pollIntervalMs=600_000)
    host.advance(44_999)
    assert not host.waiting(LISTEN)
    host.advance(1)
    assert host.params_of(LISTEN)["notifications"]["taskIds"] == [TASK, OTHER]


REFUSALS: dict[str, Any] = {
    "method not found": lambda host: host.refuse(LISTEN, -32601),
    "invalid params": lambda host: host.refuse(LISTEN, -32602),
    "missing capability": lambda host: host.refuse(LISTEN, -32021),
    "a draft's missing capability": lambda host: host.refuse(
        LISTEN, -32003, data={"requiredCapabilities": {}}
    ),
}


@pytest.mark.parametrize("refuse", REFUSALS.values(), ids=REFUSALS)
def test_sub1_a_server_that_refuses_to_listen_is_not_asked_again(refuse: Any) -> None:
    host = make_host(RequesterLimits(stream_tasks=1), listen=True)
    working(host)
    host.advance(20)
    working(host, task_id=OTHER)
    refuse(host)
    for second in range(1, 20):
        host.advance(HINT)
        for number in host.waiting("tasks/get"):
            host.reply(number, got(at=second, task_id=host.params_of(number)["taskId"]))
    assert len(host.sent(LISTEN)) == 1


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 405])
def test_sub1_a_status_alone_turns_listening_down_for_a_while(status: int) -> None:
    """The server may not do this; or a gateway answered, or somebody whose credentials have expired."""
    host = make_host(RequesterLimits(stream_tasks=1, listen_again_ms=60_000), listen=True)
    working(host, pollIntervalMs=100_000)
    host.advance(20)
    working(host, task_id=OTHER, pollIntervalMs=100_000)
    host.answer_http(LISTEN, status)
    host.advance(59_000)
    assert len(host.sent(LISTEN)) == 1
    host.advance(1_000)
    assert len(host.waiting(LISTEN)) == 2


def test_sub1_a_refusal_leaves_nothing_to_be_done_for_tasks_that_wait() -> None:
    host = make_host(listen=True)
    first = working(host)
    host.advance(20)
    second = working(host, task_id=OTHER)
    host.refuse(LISTEN, -32601)
    host.abandon(first)
    host.abandon(second)
    at_rest(host)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_sub4_a_stream_that_ends_before_it_has_begun_was_not_refused(end: Any) -> None:
    host = make_host(listen=True)
    working(host)
    host.advance(20)
    end(host)
    host.advance(1_000)
    assert host.waiting(LISTEN)


def test_sub1_a_stream_that_was_refused_after_it_had_begun_is_opened_again() -> None:
    host = make_host(listen=True)
    listening(host)
    host.refuse(LISTEN, -32602)
    host.advance(1_000)
    assert host.waiting(LISTEN)


def test_neg2_a_stream_finds_the_version_too() -> None:
    host = make_host(listen=True, versions=("2027-01-01", "2026-07-28"))
    working(host)
    host.advance(20)
    host.refuse(LISTEN, -32022, data={"supported": ["2026-07-28"]})
    host.advance(1_000)
    meta = host.params_of(LISTEN)["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_sub4_the_last_task_of_a_stream_closes_it() -> None:
    host = make_host(listen=True)
    first, second = working(host), working(host, task_id=OTHER)
    host.advance(20)
    acknowledge(host, TASK, OTHER)
    stream = host.number_of(LISTEN)
    host.abandon(first)
    assert host.waiting(LISTEN)
    assert StopRequest(stream) in host.abandon(second)
    at_rest(host)


def listened(host: RequesterHost) -> list[list[str]]:
    """Return the tasks of each stream that is open."""
    return [host.params_of(number)["notifications"]["taskIds"] for number in host.waiting(LISTEN)]


def test_lim3_tasks_that_come_one_by_one_share_few_streams() -> None:
    """A stream keeps a connection busy: with one for each task none would be left for polls."""
    host = make_host(RequesterLimits(listen_streams=4), listen=True)
    for number in range(100):
        working(host, task_id=f"task-{number}", pollIntervalMs=1_000_000)
        host.advance(20)
        assert len(host.waiting(LISTEN)) <= 4
    watched = [task_id for stream in listened(host) for task_id in stream]
    assert sorted(watched) == sorted(f"task-{number}" for number in range(100))
    assert len(host.sent(LISTEN)) == 100
    changes = sum(len(params["notifications"]["taskIds"]) for params in host.sent(LISTEN))
    assert changes < 1_000


def test_lim3_a_task_that_changes_streams_is_polled_once_at_its_hint() -> None:
    """What the server says between two streams would be lost else."""
    host = make_host(RequesterLimits(listen_streams=1), listen=True)
    listening(host)
    news(host, at=1)
    host.advance(1_000)
    working(host, task_id=OTHER, pollIntervalMs=1_000_000)
    host.advance(20)
    assert listened(host) == [[TASK, OTHER]]
    acknowledge(host, TASK, OTHER)
    host.advance(HINT)
    assert host.params_of("tasks/get")["taskId"] == TASK
    host.reply("tasks/get", got(at=2))
    host.advance(2 * HINT)
    assert not host.waiting("tasks/get")


def test_lim3_a_task_that_changes_streams_while_it_is_polled_is_polled_no_more_for_that() -> None:
    host = make_host(RequesterLimits(listen_streams=1), listen=True)
    working(host)
    host.advance(HINT)
    working(host, task_id=OTHER)
    host.advance(20)
    assert listened(host) == [[TASK, OTHER]]
    assert len(host.waiting("tasks/get")) == 1


def test_lim3_tasks_beyond_all_streams_are_polled_until_there_is_room() -> None:
    host = make_host(RequesterLimits(listen_streams=2, stream_tasks=1), listen=True)
    first = working(host)
    host.advance(20)
    working(host, task_id=OTHER)
    host.advance(20)
    working(host, task_id="task-three")
    host.advance(20)
    assert listened(host) == [[TASK], [OTHER]]
    host.abandon(first)
    host.advance(20)
    assert listened(host) == [[OTHER], ["task-three"]]


def one_task_each(streams: int, tasks: int) -> tuple[RequesterHost, list[int]]:
    """Return a host that may have this many streams of this many tasks, and the call that each has."""
    host = make_host(RequesterLimits(listen_streams=streams, stream_tasks=tasks), listen=True)
    calls = []
    for number in range(streams):
        calls.append(working(host, task_id=f"t{number}"))
        host.advance(20)
    return host, calls


def test_lim3_two_streams_make_room_for_one_more() -> None:
    host, _ = one_task_each(3, 128)
    working(host, task_id="new")
    host.advance(20)
    assert listened(host) == [["t2"], ["t0", "t1", "new"]]


@pytest.mark.parametrize("streams", [1, 2])
def test_lim3_two_streams_that_would_fill_one_make_no_room(streams: int) -> None:
    host, _ = one_task_each(streams, streams)
    working(host, task_id="new")
    host.advance(20)
    assert listened(host) == [[f"t{number}"] for number in range(streams)]


def test_lim3_however_many_tasks_come_at_once_each_is_on_one_stream() -> None:
    """On two, it would stay on one of them beyond its end, and what that one brings would end it again."""
    host, calls = one_task_each(4, 3)
    for number in range(4, 14):
        working(host, task_id=f"t{number}")
    host.advance(20)
    tasks = [task_id for stream in listened(host) for task_id in stream]
    assert sorted(tasks) == sorted(set(tasks))
    assert len(tasks) == 12
    streams = host.waiting(LISTEN)
    for stream in streams:
        host.notify(stream, ACKNOWLEDGED, {"notifications": host.params_of(stream)["notifications"]})
    host.abandon(calls[0])
    for stream in streams:
        assert host.notify(stream, TASKS, task("completed", at=1, result=DONE, task_id="t0")) == []


def test_lim3_however_many_tasks_change_streams_at_once_each_is_polled_at_its_hint() -> None:
    host, calls = one_task_each(4, 3)
    for number, stream in enumerate(host.waiting(LISTEN)):
        host.notify(stream, ACKNOWLEDGED, {"notifications": {"taskIds": [f"t{number}"]}})
        host.notify(stream, TASKS, task(at=1, task_id=f"t{number}"))
    assert [host.engine.next_poll(call) for call in calls] == [host.now + 30_000] * 4
    for number in range(4, 14):
        working(host, task_id=f"t{number}")
    host.advance(20)
    assert [host.engine.next_poll(call) for call in calls] == [host.now + HINT] * 4


def test_req2_a_stream_saves_nearly_all_polls() -> None:
    """The same task of 20 polls, with and without."""
    sent = {}
    for listen in (True, False):
        host = make_host(listen=listen)
        working(host, pollIntervalMs=1_000)
        if listen:
            host.advance(20)
            acknowledge(host, TASK)
            news(host, pollIntervalMs=1_000)
        for second in range(1, 21):
            if listen:
                host.advance(1_000)
                news(host, at=second, pollIntervalMs=1_000)
            else:
                polled(host, got(at=second, pollIntervalMs=1_000))
        sent[listen] = polls(host)
    assert sent == {True: 0, False: 20}


def test_what_comes_on_a_stream_that_is_over_is_ignored() -> None:
    host = make_host(listen=True)
    listening(host)
    host.fail(2)
    message = {"jsonrpc": "2.0", "method": TASKS, "params": task("completed", at=1, result=DONE)}
    assert host.give(NotificationReceived(2, message)) == []
