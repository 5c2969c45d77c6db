"""Listen streams, from their acknowledgement to their end: SUB.1 to SUB.4, NEG.6, SEC.1, GET.1."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto import (
    CallBecameTask,
    ErrorObject,
    ExchangeClosed,
    HttpHead,
    RecordChanged,
    Reply,
    Send,
    ShutdownStarted,
    StopCall,
    StreamReady,
    TimePassed,
    ToolsChanged,
    TtlChanged,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.subscriptions import Stream, Streams
from mcp_tasks_proto.testing import DictStore, ServerHost, request
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from tests.unit.test_server_messages import cancelled
from tests.unit.world import (
    ACCEPTED,
    DONE,
    NEVER,
    OTHER,
    TASK,
    THIRD,
    TOOLS,
    asked,
    call,
    cancel,
    error,
    head,
    listen,
    make_engine,
    make_host,
    parked,
    read,
    result,
    update,
    view,
    working,
)


def statuses(messages: list[dict[str, Any]], task_id: str = TASK) -> list[str]:
    """Return the statuses of one task that were notified."""
    return [one["params"]["status"] for one in messages if one["params"].get("taskId") == task_id]


def progressed(host: ServerHost, message: str, task_id: str = TASK) -> None:
    host.give(WorkProgressed(task_id=task_id, token="p", status_message=message))


def completed(host: ServerHost, task_id: str = TASK) -> None:
    host.give(WorkCompleted(task_id=task_id, token="end", result=DONE))


# -- the acknowledgement (SUB.1) -------------------------------------------------------------------


@pytest.mark.parametrize("request_id", ["stream", 7, "7"])
def test_sub1_the_acknowledgement_comes_first_and_every_message_names_its_subscription(
    request_id: Any,
) -> None:
    host = make_host()
    working(host)
    wanted = {"taskIds": [TASK], "toolsListChanged": True}
    stream = host.send(request("subscriptions/listen", {"notifications": wanted}, id=request_id))
    host.give(ToolsChanged(TOOLS))
    progressed(host, "busy")
    messages = read(host, stream)
    assert [one["method"] for one in messages] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
        "notifications/tools/list_changed",
    ]
    assert messages[0]["params"]["notifications"] == {"toolsListChanged": True, "taskIds": [TASK]}
    for one in messages:
        assert one["params"]["_meta"] == {SUBSCRIPTION_ID: request_id}
        assert type(one["params"]["_meta"][SUBSCRIPTION_ID]) is type(request_id)
        assert "id" not in one


def test_sub1_it_lists_only_what_the_caller_owns_and_what_exists() -> None:
    """SEC.1: the others are left out without a hint."""
    host = make_host()
    working(host, TASK, principal="alice")
    working(host, OTHER, principal="bob")
    working(host, THIRD, principal="alice", ttl_ms=10)
    host.now += 10
    stream = listen(host, NEVER, OTHER, TASK, THIRD, "malformed", TASK, principal="alice")
    messages = read(host, stream)
    assert messages[0]["params"]["notifications"] == {"taskIds": [TASK]}
    progressed(host, "busy", OTHER)
    completed(host, OTHER)
    assert [one["params"]["taskId"] for one in read(host, stream)[1:]] == [TASK]


def test_sub1_asking_for_none_that_exist_is_agreed_to() -> None:
    host = make_host()
    stream = listen(host, NEVER, "malformed")
    assert [one["params"]["notifications"] for one in read(host, stream)] == [{"taskIds": []}]


def test_sub1_asking_for_no_ids_waits_for_nothing() -> None:
    host = make_host(held=True)
    stream = listen(host, taskIds=[])
    assert [one["params"]["notifications"] for one in read(host, stream)] == [{"taskIds": []}]
    assert host.asked == []


def test_sub1_unsupported_filters_are_left_out() -> None:
    host = make_host()
    stream = listen(
        host, promptsListChanged=True, resourceSubscriptions=["file:///x"], toolsListChanged=False, x=1
    )
    assert [one["params"]["notifications"] for one in read(host, stream)] == [{}]
    host.give(ToolsChanged(TOOLS))
    assert len(read(host, stream)) == 1


def test_sub1_it_waits_for_every_look_up() -> None:
    host = make_host()
    working(host, TASK)
    working(host, OTHER)
    host.held = True
    stream = listen(host, TASK, OTHER)
    assert host.answer_next() == []
    host.give(ToolsChanged(TOOLS))
    assert host.sent_on(stream) == [], "nothing comes before the acknowledgement"
    assert [type(effect) for effect in host.answer_next()] == [Send]


@pytest.mark.parametrize(
    "wanted",
    [None, [], "x", {"taskIds": TASK}, {"taskIds": [5]}, {"taskIds": None}, {"toolsListChanged": 1}],
    ids=repr,
)
def test_a_filter_has_its_types(wanted: Any) -> None:
    host = make_host()
    refused = error(host.ask("subscriptions/listen", {"notifications": wanted}))
    assert refused["code"] == -32602
    assert "notifications" in refused["message"]
    refused = error(host.ask("subscriptions/listen"))
    assert (refused["code"], refused["message"]) == (-32602, "Invalid params: notifications is missing")


def test_a_listener_takes_a_stream() -> None:
    host = make_host()
    message = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    exchange = host.send(message, http=HttpHead(headers=head(message).headers, accepts_stream=False))
    assert error(host.reply_to(exchange))["code"] == -32600
    assert host.reply_to(exchange)["id"] == message["id"]
    assert host.of(Reply)[-1].http_status == 406
    assert host.sent_on(host.send(message, http=head(message)))


# -- notifications (SUB.2, SUB.3) ------------------------------------------------------------------


def test_sub2_a_snapshot_then_one_notification_for_each_change() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    read(host, stream)
    changes: list[Callable[[], object]] = [
        lambda: progressed(host, "busy"),
        lambda: host.give(asked("first", "a", "b")),
        lambda: update(host, {"a": ACCEPTED}),
        lambda: host.give(TtlChanged(task_id=TASK, ttl_ms=99_999, token=1)),
        lambda: update(host, {"b": ACCEPTED}),
        lambda: completed(host),
    ]
    for number, change in enumerate(changes, start=3):
        change()
        assert len(read(host, stream)) == number
    assert statuses(read(host, stream)) == [
        "working",
        "working",
        "input_required",
        "input_required",
        "input_required",
        "working",
        "completed",
    ]


def test_sub2_a_reader_that_keeps_up_is_told_at_once() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    assert statuses(read(host, stream)) == ["working"]
    completed(host)
    assert statuses(host.sent_on(stream)) == ["working", "completed"]


def test_sub2_time_may_begin_with_the_task() -> None:
    host = ServerHost(engine=make_engine(), store=DictStore(), now=0)
    host.give(TimePassed())
    working(host)
    assert [one["params"].get("lastUpdatedAt") for one in read(host, listen(host, TASK))] == [
        None,
        "1970-01-01T00:00:00.000Z",
    ]


def test_sub2_what_changes_nothing_is_not_notified() -> None:
    host = make_host()
    parked(host)
    stream = listen(host, TASK)
    read(host, stream)
    progressed(host, "busy")
    before = len(read(host, stream))
    progressed(host, "busy")
    update(host, {"unknown": {}})
    cancel(host)
    assert len(read(host, stream)) == before


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_sub2_after_the_terminal_view_nothing_more(end: str) -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    read(host, stream)
    match end:
        case "completed":
            completed(host)
        case "failed":
            host.give(WorkFailed(task_id=TASK, token=1, error=ErrorObject(1, "x")))
        case _:
            host.give(WorkStopped(task_id=TASK, token=1))
    host.give(TtlChanged(task_id=TASK, ttl_ms=99_999, token=1))
    progressed(host, "too late")
    assert statuses(read(host, stream)) == ["working", end]


def test_sub2_a_task_that_has_ended_already_is_told_once() -> None:
    host = make_host()
    working(host)
    completed(host)
    stream = listen(host, TASK)
    assert statuses(read(host, stream)) == ["completed"]
    host.give(TtlChanged(task_id=TASK, ttl_ms=99_999, token=1))
    assert statuses(read(host, stream)) == ["completed"]


def test_sub2_no_race_between_the_look_up_and_the_end() -> None:
    """The task ends between the look-up and the acknowledgement: the snapshot is of its end."""
    host = make_host()
    working(host, TASK)
    working(host, OTHER)
    host.held = True
    stream = listen(host, TASK, OTHER)
    host.answer_next()
    completed(host, TASK)
    second_look_up = host.asked.pop(0)
    while host.asked:
        host.answer_next()
    host.give(host.store.answer(second_look_up))
    assert statuses(read(host, stream)) == ["completed"]
    assert statuses(read(host, stream), OTHER) == ["working"]


def test_sub2_news_of_a_strangers_task_does_not_reach_a_stream_that_asked_for_it() -> None:
    host = make_host()
    working(host, TASK, principal="alice")
    host.held = True
    stream = listen(host, TASK, principal="bob")
    host.give(RecordChanged(host.store.records[TASK]))
    host.answer_next()
    assert [one["params"]["notifications"] for one in read(host, stream)] == [{"taskIds": []}]


def test_sub2_an_old_look_up_does_not_undo_newer_news() -> None:
    host = make_host()
    working(host)
    host.held = True
    stream = listen(host, TASK)
    answer = host.store.answer(host.asked.pop())
    progressed(host, "busy")
    while host.asked:
        host.answer_next()
    host.give(answer)
    _, snapshot = read(host, stream)
    assert snapshot["params"]["statusMessage"] == "busy"


def test_get1_sub3_a_notification_equals_a_get_at_that_moment() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    read(host, stream)
    changes: list[Callable[[], object]] = [
        lambda: progressed(host, "busy"),
        lambda: host.give(asked("first", "a", "b")),
        lambda: update(host, {"a": ACCEPTED}),
        lambda: completed(host),
    ]
    for change in changes:
        host.now += 10
        change()
        message = read(host, stream)[-1]
        assert message["method"] == "notifications/tasks"
        params = {name: value for name, value in message["params"].items() if name != "_meta"}
        assert json.dumps(params) == json.dumps(view(host))


def test_sub2_a_slow_reader_gets_the_latest_view_and_the_terminal_one() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    for frame in range(100):
        progressed(host, f"Frame {frame}")
    assert len(host.sent_on(stream)) == 1, "one message at a time is with the host"
    host.give(StreamReady(stream))
    assert host.sent_on(stream)[-1]["params"]["statusMessage"] == "Frame 99"
    progressed(host, "almost")
    completed(host)
    assert statuses(read(host, stream)) == ["working", "completed"]


def test_sub2_a_slow_reader_of_many_tasks_misses_no_end() -> None:
    host = make_host()
    for task_id in (TASK, OTHER, THIRD):
        working(host, task_id)
    stream = listen(host, TASK, OTHER, THIRD, toolsListChanged=True)
    for _ in range(3):
        host.give(ToolsChanged(TOOLS))
        for task_id in (THIRD, OTHER, TASK):
            progressed(host, "busy", task_id)
    for task_id in (OTHER, TASK, THIRD):
        completed(host, task_id)
    messages = read(host, stream)[1:]
    assert len(messages) == 4
    for task_id in (TASK, OTHER, THIRD):
        assert statuses(messages, task_id) == ["completed"]


def test_sub2_the_terminal_view_outlives_the_record() -> None:
    """It waits for a slow reader while the task's time runs out."""
    host = make_host()
    working(host, ttl_ms=1_000)
    stream = listen(host, TASK)
    completed(host)
    host.advance(1_000)
    assert host.store.records == {}
    assert statuses(read(host, stream)) == ["completed"]


def test_ttl1_a_task_that_expires_is_not_spoken_of_any_more() -> None:
    host = make_host()
    working(host, ttl_ms=1_000)
    working(host, OTHER)
    stream = listen(host, TASK, OTHER)
    progressed(host, "a view that waits")
    host.advance(1_000)
    progressed(host, "still here", OTHER)
    messages = read(host, stream)
    assert statuses(messages) == []
    assert statuses(messages, OTHER) == ["working"]


def test_ttl1_a_task_may_expire_before_the_acknowledgement() -> None:
    host = make_host()
    working(host, TASK, ttl_ms=1_000)
    working(host, OTHER)
    host.held = True
    stream = listen(host, TASK, OTHER)
    host.answer_next()
    look_up = host.asked.pop()
    host.held = False
    host.advance(1_000)
    host.give(host.store.answer(look_up))
    messages = read(host, stream)
    assert messages[0]["params"]["notifications"] == {"taskIds": [OTHER]}
    assert statuses(messages) == []


def listening(exchange: int) -> Stream:
    return Stream(
        exchange=exchange, request_id=exchange, principal=None, tools_list_changed=False, task_ids=(TASK,)
    )


def test_nothing_is_kept_of_a_task_that_is_not_spoken_of_any_more() -> None:
    host = make_host()
    working(host)
    streams, stream = Streams(), listening(1)
    streams.open(stream)
    streams.looked_up(1, TASK, host.store.records[TASK])
    assert stream.sent
    streams.removed(TASK)
    assert not stream.sent
    assert not streams.listened_to(TASK)


def test_ttl1_a_late_look_up_of_a_removed_task_takes_it_from_no_other_stream() -> None:
    streams = Streams()
    streams.open(listening(1))
    streams.removed(TASK)
    streams.open(listening(2))
    (acknowledgement,) = streams.looked_up(1, TASK, None)
    assert acknowledgement.message["params"]["notifications"] == {"taskIds": []}
    assert streams.listened_to(TASK)


def test_many_streams_may_listen_to_one_task() -> None:
    host = make_host()
    working(host, principal="alice")
    streams = [listen(host, TASK, principal="alice") for _ in range(3)]
    host.give(ExchangeClosed(streams[1]))
    completed(host)
    ends = [statuses(read(host, stream)) for stream in streams]
    assert ends[0] == ends[2] == ["completed"]
    assert ends[1] == []


def test_sub3_a_task_sends_neither_progress_nor_log_messages() -> None:
    """Whatever happens to it, a listen stream carries three methods."""
    host = make_host()
    parked(host)
    stream = listen(host, TASK, toolsListChanged=True)
    progressed(host, "busy")
    update(host, {"confirm": ACCEPTED})
    host.give(ToolsChanged(TOOLS))
    completed(host)
    assert {one["method"] for one in read(host, stream)} == {
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
        "notifications/tools/list_changed",
    }


def test_a_task_made_later_is_not_on_the_stream() -> None:
    host = make_host()
    stream = listen(host, TASK)
    working(host)
    completed(host)
    assert len(read(host, stream)) == 1


def test_tools_changed_goes_to_who_asked_for_it() -> None:
    host = make_host()
    working(host)
    wants, does_not = listen(host, toolsListChanged=True), listen(host, TASK)
    host.give(ToolsChanged(TOOLS))
    host.give(ToolsChanged(()))
    assert [one["method"] for one in read(host, wants)[1:]] == ["notifications/tools/list_changed"]
    assert len(read(host, does_not)) == 2


# -- the end (SUB.4, CAN.7) ------------------------------------------------------------------------


def test_sub4_a_closed_stream_is_forgotten() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK, toolsListChanged=True)
    before = read(host, stream)
    assert host.give(ExchangeClosed(stream)) == [], "there is no handler to stop"
    completed(host)
    host.give(ToolsChanged(TOOLS))
    assert host.give(StreamReady(stream)) == []
    assert host.sent_on(stream) == before
    assert view(host)["status"] == "completed"


def test_sub4_on_a_shared_channel_the_client_cancels_it() -> None:
    host = make_host()
    working(host)
    wanted = {"notifications": {"taskIds": [TASK]}}
    stream = host.send(request("subscriptions/listen", wanted, id=5), connection="stdio")
    host.send(cancelled(5), connection="stdio")
    assert host.of(StopCall) == [StopCall(stream)]
    completed(host)
    assert len(host.sent_on(stream)) == 1
    assert not any(reply.exchange == stream for reply in host.of(Reply))
    assert "result" in host.ask("tools/list", id=5, connection="stdio")


def test_sub4_a_client_may_leave_before_the_acknowledgement() -> None:
    host = make_host()
    working(host)
    host.held = True
    stream = listen(host, TASK, NEVER)
    host.answer_next()
    host.give(ExchangeClosed(stream))
    assert host.answer_next() == []
    assert host.sent_on(stream) == []


def test_sub4_a_server_ends_a_stream_with_its_result() -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    progressed(host, "busy")
    effects = host.give(ShutdownStarted())
    assert [type(effect) for effect in effects] == [Send, Reply], "what waits goes first"
    assert statuses(host.sent_on(stream)) == ["working"]
    ended = result(host.reply_to(stream))
    assert ended == {
        "resultType": "complete",
        "_meta": {
            SUBSCRIPTION_ID: "stream",
            "io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1"},
        },
    }
    completed(host)
    assert statuses(host.sent_on(stream)) == ["working"]


def test_sub4_on_a_shared_channel_the_result_comes_first_and_then_a_cancellation() -> None:
    """A client that reads the cancellation first takes the stream for lost."""
    host = make_host()
    wanted = {"notifications": {"toolsListChanged": True}}
    stream = host.send(request("subscriptions/listen", wanted, id=5), connection="stdio")
    sent, replied = host.give(ShutdownStarted())
    assert isinstance(sent, Send)
    assert sent.exchange == stream
    assert sent.message["id"] == 5
    assert sent.message["result"]["resultType"] == "complete"
    assert sent.message["result"]["_meta"][SUBSCRIPTION_ID] == 5
    assert isinstance(replied, Reply)
    assert (replied.exchange, replied.http_status) == (stream, 200)
    assert replied.message == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 5, "_meta": {SUBSCRIPTION_ID: 5}},
    }


def test_sub4_a_stream_that_was_not_acknowledged_ends_with_an_error() -> None:
    """SUB.1: nothing may come before the acknowledgement, a graceful result neither."""
    host = make_host()
    working(host)
    host.held = True
    stream = listen(host, TASK)
    host.give(ShutdownStarted())
    assert error(host.reply_to(stream))["data"] == {"reason": "shutting_down"}
    assert host.answer_next() == []


# -- any order of changes and reads ----------------------------------------------------------------


@given(st.lists(st.sampled_from(["read", "progress", "ask", "answer", "tick", "end"]), max_size=30))
def test_sub2_whatever_the_pace_views_come_in_order_and_the_last_is_current(acts: list[str]) -> None:
    host = make_host()
    working(host)
    stream = listen(host, TASK)
    seen = [view(host)]
    for number, act in enumerate(acts):
        match act:
            case "read":
                host.give(StreamReady(stream))
            case "progress":
                progressed(host, str(number))
            case "ask":
                host.give(asked(str(number), "confirm"))
            case "answer":
                update(host, dict.fromkeys(view(host).get("inputRequests", {}), ACCEPTED))
            case "tick":
                host.now += 5
            case _:
                completed(host)
        if view(host) != seen[-1]:
            seen.append(view(host))
    messages = read(host, stream)[1:]
    got = [{key: value for key, value in one["params"].items() if key != "_meta"} for one in messages]
    places = [seen.index(one) for one in got]
    assert places == sorted(set(places)), "never a stale view, never one twice"
    assert got[-1] == view(host), "the last one is how it stands"


def test_a_task_becomes_visible_with_its_record() -> None:
    """While the task is being written, a stream finds nothing: the client has no handle yet either."""
    host = make_host(held=True)
    exchange = call(host)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    stream = listen(host, TASK)
    host.give(host.store.answer(host.asked.pop()))
    while host.asked:
        host.answer_next()
    assert [one["params"]["notifications"] for one in read(host, stream)] == [{"taskIds": []}]
