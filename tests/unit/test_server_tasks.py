"""The life of a task as its owner sees it: LIFE.1 to LIFE.7, GET, CAN.6, SEC.1, TRAPS 1, 4, 5, 15, 30."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import pytest

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    CancelReason,
    DeliverInput,
    ErrorCode,
    ErrorObject,
    FindExpired,
    Limits,
    LocalProtocolError,
    Reply,
    RequestCancel,
    StartTool,
    StartWork,
    TimePassed,
    TtlChanged,
    WorkCompleted,
    WorkFailed,
    WorkInput,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.errors import limit_reached
from mcp_tasks_proto.testing import ServerHost, request
from mcp_tasks_proto.wire.jsonrpc import json_size
from tests.unit.world import (
    ACCEPTED,
    DONE,
    FORMS,
    NEVER,
    OTHER,
    START,
    START_TEXT,
    TASK,
    asked,
    call,
    cancel,
    error,
    form,
    listen,
    make_engine,
    make_host,
    parked,
    refused,
    result,
    update,
    view,
    working,
)

SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1"}}


def completed(host: ServerHost, task_id: str = TASK, **more: Any) -> None:
    host.give(WorkCompleted(task_id=task_id, token="completed", result=DONE, **more))


def failed(host: ServerHost, error: ErrorObject, **more: Any) -> None:
    host.give(WorkFailed(task_id=TASK, token="failed", error=error, **more))


def stopped(host: ServerHost, **more: Any) -> None:
    host.give(WorkStopped(task_id=TASK, token="stopped", **more))


# -- creation (LIFE.3, LIFE.5, LIFE.6) -------------------------------------------------------------


def test_life3_a_create_result_is_flat() -> None:
    host = make_host()
    exchange = call(host)
    became = CallBecameTask(
        exchange=exchange, task_id=TASK, status_message="Queued", ttl_ms=60_000, poll_interval_ms=500
    )
    effects = host.give(became)
    assert result(host.reply_to(exchange)) == {
        "resultType": "task",
        "taskId": TASK,
        "status": "working",
        "statusMessage": "Queued",
        "createdAt": f"{START_TEXT}.000Z",
        "lastUpdatedAt": f"{START_TEXT}.000Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 500,
        "_meta": SERVER_INFO,
    }
    assert [type(effect) for effect in effects] == [Reply, StartWork], "work starts once the handle is out"
    assert host.of(StartWork) == [StartWork(exchange, TASK)]


def test_life3_what_the_handler_leaves_out_comes_from_the_limits() -> None:
    host = make_host(Limits(ttl_ms=1_234, poll_interval_ms=56))
    created = result(host.create_task("optional", task_id=TASK))
    assert (created["ttlMs"], created["pollIntervalMs"]) == (1_234, 56)
    assert "statusMessage" not in created


def test_life5_no_lifetime_and_no_hint() -> None:
    """TRAP 15: the key stays, with null."""
    host = make_host()
    exchange = call(host)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK, ttl_ms=None, poll_interval_ms=None))
    for shown in (result(host.reply_to(exchange)), view(host)):
        assert shown["ttlMs"] is None
        assert "pollIntervalMs" not in shown


@pytest.mark.parametrize("ttl_ms", [1, 25 * 86_400_000, 2**53, 10**30])
def test_life5_a_huge_lifetime_is_only_a_number(ttl_ms: int) -> None:
    """TRAP 15."""
    host = make_host()
    assert result(host.create_task("optional", task_id=TASK, ttl_ms=ttl_ms))["ttlMs"] == ttl_ms


def test_arguments_that_were_left_out_are_none_at_all() -> None:
    host = make_host()
    exchange = host.send(request("tools/call", {"name": "optional"}))
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    assert host.store.records[TASK].arguments == {}


@pytest.mark.parametrize("value", [0, -1, 1.5, "60", True])
def test_life5_a_lifetime_is_a_positive_integer(value: Any) -> None:
    """TRAP 30: what is not in whole milliseconds never reaches a peer."""
    host = make_host()
    exchange = call(host)
    odd: list[dict[str, Any]] = [{"ttl_ms": value}, {"poll_interval_ms": value}]
    rules = [f"{name} is a positive integer, in milliseconds, or None" for one in odd for name in one]
    offers = [CallBecameTask(exchange=exchange, task_id=TASK, **changed) for changed in odd]
    assert [refused(host, offer) for offer in offers] == [f"CallBecameTask: {rule}" for rule in rules]
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    reports = [WorkProgressed(task_id=TASK, token=1, **changed) for changed in odd]
    assert [refused(host, report) for report in reports] == [f"WorkProgressed: {rule}" for rule in rules]
    assert refused(host, TtlChanged(task_id=TASK, ttl_ms=value, token=1)) == f"TtlChanged: {rules[0]}"


@pytest.mark.parametrize(
    "task_id",
    ["", "short", "x" * 20, "x" * 257, "with space 0123456789abc", "ümlaut-0123456789abcdef", "a/b" * 9],
)
def test_life6_a_task_id_is_long_enough_and_safe_in_a_header(task_id: str) -> None:
    host = make_host()
    exchange = call(host)
    assert "LIFE.6" in refused(host, CallBecameTask(exchange=exchange, task_id=task_id))
    host.give(CallBecameTask(exchange=exchange, task_id="x" * 21))
    assert "result" in host.reply_to(exchange)


def test_a_task_id_is_used_once() -> None:
    host = make_host()
    working(host)
    before = view(host)
    exchange = call(host, arguments={"another": "call"})
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    assert error(host.reply_to(exchange))["data"] == {"reason": "task_id_conflict"}
    assert len(host.of(StartWork)) == 1
    assert view(host) == before


def test_a_long_status_message_is_cut() -> None:
    host = make_host(Limits(status_message_chars=5))
    host.give(CallBecameTask(exchange=call(host), task_id=TASK, status_message="12345678"))
    assert view(host)["statusMessage"] == "12345"
    host.give(WorkProgressed(task_id=TASK, token=1, status_message="abcdefgh"))
    assert view(host)["statusMessage"] == "abcde"
    failed(host, ErrorObject(1, "A long story"))
    assert view(host)["statusMessage"] == "A lon"
    assert view(host)["error"]["message"] == "A long story"


# -- the view (LIFE.5, LIFE.7, GET.1) --------------------------------------------------------------


def test_get1_each_status_has_exactly_its_members() -> None:
    common = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
    host = make_host()
    working(host)
    assert set(view(host)) == common
    host.give(asked("first", "confirm"))
    assert set(view(host)) == common | {"inputRequests"}
    update(host, {"confirm": ACCEPTED})
    assert set(view(host)) == common
    completed(host)
    assert set(view(host)) == common | {"result"}

    host = make_host()
    parked(host)
    failed(host, ErrorObject(-32_603, "Out of paint"))
    assert set(view(host)) == common | {"error", "statusMessage"}

    host = make_host()
    parked(host)
    stopped(host)
    assert set(view(host)) == common


def test_get1_reading_changes_nothing() -> None:
    host = make_host()
    parked(host)
    stored = host.store.records[TASK]
    host.now += 5_000
    assert view(host) == view(host)
    assert host.store.records[TASK] is stored


def test_life5_times_are_utc_with_milliseconds() -> None:
    """TRAP 30."""
    host = make_host()
    host.now += 1
    working(host)
    host.now += 1_000
    host.give(WorkProgressed(task_id=TASK, token=1, status_message="busy"))
    shown = view(host)
    assert shown["createdAt"] == f"{START_TEXT}.001Z"
    assert datetime.fromisoformat(shown["lastUpdatedAt"]) == datetime.fromtimestamp(
        (START + 1_001) / 1000, tz=UTC
    )


CHANGES: dict[str, tuple[WorkInput, bool]] = {
    "a message": (WorkProgressed(task_id=TASK, token=1, status_message="busy"), True),
    "the same message": (WorkProgressed(task_id=TASK, token=1, status_message="Queued"), False),
    "no message": (WorkProgressed(task_id=TASK, token=1, status_message=None), True),
    "nothing": (WorkProgressed(task_id=TASK, token=1), False),
    "a lifetime": (WorkProgressed(task_id=TASK, token=1, ttl_ms=99_999), True),
    "the same lifetime": (WorkProgressed(task_id=TASK, token=1, ttl_ms=60_000), False),
    "no lifetime": (WorkProgressed(task_id=TASK, token=1, ttl_ms=None), True),
    "a hint": (WorkProgressed(task_id=TASK, token=1, poll_interval_ms=7), True),
    "no hint": (WorkProgressed(task_id=TASK, token=1, poll_interval_ms=None), True),
    "the host's lifetime": (TtlChanged(task_id=TASK, token=1, ttl_ms=99_999), True),
    "a question": (asked("first", "confirm"), True),
    "nothing to withdraw": (WorkWithdrewInput(task_id=TASK, token=1, ask="no such"), False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_life5_last_updated_moves_exactly_when_the_view_changes(name: str) -> None:
    change, moves = CHANGES[name]
    host = make_host()
    exchange = call(host, capabilities=FORMS)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK, status_message="Queued", ttl_ms=60_000))
    before = view(host)
    host.now += 250
    host.give(change)
    after = view(host)
    assert host.of(AcceptReport) == [AcceptReport(change.token)]
    assert (after["lastUpdatedAt"] != before["lastUpdatedAt"]) is moves
    assert (after != before) is moves
    if moves:
        assert after["lastUpdatedAt"] == f"{START_TEXT}.250Z"


def test_life5_a_cancel_request_is_no_change_of_the_view() -> None:
    host = make_host()
    parked(host)
    before = view(host)
    host.now += 250
    cancel(host)
    assert view(host) == before


def test_life5_last_updated_never_goes_back() -> None:
    """Neither with the clock, nor within a millisecond."""
    host = make_host()
    working(host)
    seen = [view(host)["lastUpdatedAt"]]
    for number, now in enumerate((START, START, START - 10**9, 0, START + 1)):
        host.now = now
        host.give(WorkProgressed(task_id=TASK, token=number, status_message=str(number)))
        seen.append(view(host)["lastUpdatedAt"])
    assert seen == sorted(set(seen))


# -- endings (LIFE.1, LIFE.2, LIFE.7) --------------------------------------------------------------


@pytest.mark.parametrize("is_error", [False, True])
def test_life2_a_result_completes_a_task_be_it_an_error_of_the_tool(is_error: bool) -> None:
    host = make_host()
    working(host)
    given = {**DONE, "isError": is_error, "x-vendor": 1}
    host.give(WorkCompleted(task_id=TASK, token="end", result=given, status_message="Rendered"))
    shown = view(host)
    assert shown["status"] == "completed"
    assert shown["result"] == {"resultType": "complete", **given}
    assert shown["statusMessage"] == "Rendered"
    assert host.of(AcceptReport) == [AcceptReport("end")]


def test_life2_nobody_is_told_of_an_ending_that_nobody_waits_for() -> None:
    host = make_host()
    working(host)
    host.give(WorkCompleted(task_id=TASK, token=None, result=DONE))
    assert view(host)["status"] == "completed"
    assert host.of(AcceptReport) == []
    host.give(WorkCompleted(task_id=TASK, token=None, result=DONE))
    assert host.of(AcceptReport) == []


def test_life7_a_result_that_says_what_it_is_says_it_once() -> None:
    host = make_host()
    working(host)
    host.give(WorkCompleted(task_id=TASK, token="end", result={"resultType": "complete", **DONE}))
    assert view(host)["result"] == {"resultType": "complete", **DONE}


@pytest.mark.parametrize(
    "given", [{"resultType": "task"}, {"resultType": "input_required"}, {"content": [], "_meta": 5}], ids=repr
)
def test_life7_a_task_does_not_end_with_another_task_or_question(given: dict[str, Any]) -> None:
    host = make_host()
    working(host)
    complaint = refused(host, WorkCompleted(task_id=TASK, token="end", result=given))
    assert complaint.startswith("WorkCompleted: a")
    assert view(host)["status"] == "working"
    completed(host)
    assert view(host)["status"] == "completed"


def test_life2_a_protocol_error_fails_a_task_with_exactly_that_error() -> None:
    host = make_host()
    working(host)
    failed(host, ErrorObject(-31_999, "Out of paint", {"left": [0]}, {"x": None}))
    shown = view(host)
    assert shown["status"] == "failed"
    assert shown["error"] == {"code": -31_999, "message": "Out of paint", "data": {"left": [0]}, "x": None}
    assert shown["statusMessage"] == "Out of paint"
    assert host.store.records[TASK].payload_bytes == json_size(shown["error"])


def test_an_error_does_not_change_with_the_object_it_came_in() -> None:
    host = make_host()
    working(host)
    data = {"left": [0]}
    failed(host, ErrorObject(-31_999, "Out of paint", data))
    data["left"].append(1)
    assert view(host)["error"]["data"] == {"left": [0]}


def test_life2_a_failure_may_say_more() -> None:
    host = make_host()
    working(host)
    failed(host, ErrorObject(1, "Out of paint"), status_message="Frame 3 of 7")
    assert view(host)["statusMessage"] == "Frame 3 of 7"


@pytest.mark.parametrize("message", ["Gave up", None])
def test_a_worker_may_stop_without_being_told(message: str | None) -> None:
    host = make_host()
    host.give(CallBecameTask(exchange=call(host), task_id=TASK, status_message="Queued"))
    stopped(host, status_message=message)
    assert view(host)["status"] == "cancelled"
    assert view(host).get("statusMessage") == message


def test_endings_keep_the_last_message_unless_they_bring_one() -> None:
    host = make_host()
    host.give(CallBecameTask(exchange=call(host), task_id=TASK, status_message="Frame 3"))
    stopped(host)
    assert view(host)["statusMessage"] == "Frame 3"


LATE: list[WorkInput] = [
    WorkProgressed(task_id=TASK, token="late", status_message="still here", poll_interval_ms=1),
    WorkWithdrewInput(task_id=TASK, token="late", ask="first"),
    WorkCompleted(task_id=TASK, token="late", result={"content": [], "late": True}),
    WorkFailed(task_id=TASK, token="late", error=ErrorObject(1, "late")),
    WorkStopped(task_id=TASK, token="late", status_message="late"),
]


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_life1_terminal_never_changes_in_any_field(ending: str) -> None:
    """TRAP 5: byte for byte the same view, whatever comes later."""
    host = make_host()
    parked(host, ttl_ms=None)
    match ending:
        case "completed":
            completed(host)
        case "failed":
            failed(host, ErrorObject(1, "Out of paint"))
        case _:
            stopped(host)
    before = json.dumps(view(host))
    assert view(host)["status"] == ending
    for late in LATE:
        host.now += 1_000
        host.give(late)
        assert host.of(AcceptReport)[-1] == AcceptReport("late"), "too late to matter"
    assert result(cancel(host)) == {"resultType": "complete", "_meta": SERVER_INFO}
    assert result(update(host, {"confirm": ACCEPTED})) == {"resultType": "complete", "_meta": SERVER_INFO}
    host.advance(10**9)
    assert json.dumps(view(host)) == before
    assert not host.of(DeliverInput)


def test_a_question_after_the_end_is_refused() -> None:
    host = make_host()
    working(host)
    completed(host)
    (rejected,) = host.give(asked("late", "confirm", token="q"))
    assert "ended" in str(rejected)
    assert view(host)["status"] == "completed"


def test_an_ended_task_keeps_only_what_its_view_needs() -> None:
    host = make_host()
    parked(host)
    completed(host)
    record = host.store.records[TASK]
    assert (record.arguments, record.inputs) == (None, ())
    assert record.payload_bytes == len(json.dumps(DONE, separators=(",", ":")))


@pytest.mark.parametrize("end", ["stopped", "the grace is over"])
def test_a_task_without_a_result_takes_no_room(end: str) -> None:
    host = make_host(Limits(cancel_grace_ms=500))
    parked(host)
    if end == "stopped":
        stopped(host)
    else:
        cancel(host)
        host.advance(500)
    assert host.store.records[TASK].payload_bytes == 0


def test_a_result_does_not_change_with_the_object_it_came_in() -> None:
    host = make_host()
    working(host)
    given: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}
    host.give(WorkCompleted(task_id=TASK, token="end", result=given))
    given["content"].append("more")
    assert view(host)["result"]["content"] == DONE["content"]


@pytest.mark.parametrize("odd", [{1: 2}, {"x": {3}}, {"x": float("nan")}, {"x": "\ud800"}], ids=repr)
def test_a_result_is_json(odd: Any) -> None:
    host = make_host()
    working(host)
    assert "not JSON" in refused(host, WorkCompleted(task_id=TASK, token="end", result=odd))
    assert "not JSON" in refused(host, WorkFailed(task_id=TASK, token="end", error=ErrorObject(1, "x", odd)))
    assert view(host)["status"] == "working"


@pytest.mark.parametrize("over", [0, 1])
def test_a_result_over_the_limit_fails_the_task(over: int) -> None:
    host = make_host(Limits(result_bytes=len('{"content":[],"x":""}') + 80))
    working(host)
    host.give(WorkCompleted(task_id=TASK, token="end", result={"content": [], "x": "y" * (80 + over)}))
    shown = view(host)
    if not over:
        assert shown["status"] == "completed"
        return
    assert shown["status"] == "failed"
    assert shown["error"]["data"] == {"reason": "result_bytes"}
    assert host.of(AcceptReport) == [AcceptReport("end")]


def test_lim3_a_result_over_the_limit_says_which_limit() -> None:
    host = make_host(Limits(result_bytes=500))
    working(host)
    host.give(WorkCompleted(task_id=TASK, token="end", result={"content": [], "x": "y" * 500}))
    assert view(host)["error"] == limit_reached("result_bytes").to_wire()


@pytest.mark.parametrize("over", [0, 1])
def test_an_error_over_the_limit_is_replaced(over: int) -> None:
    error = ErrorObject(7, "odd", "y" * (200 + over))
    host = make_host(Limits(result_bytes=json_size(ErrorObject(7, "odd", "y" * 200).to_wire())))
    working(host)
    host.give(WorkFailed(task_id=TASK, token="end", error=error))
    shown = view(host)
    assert shown["status"] == "failed"
    assert shown["error"] == (limit_reached("result_bytes") if over else error).to_wire()


def test_reports_of_a_task_that_is_not_there_are_too_late() -> None:
    host = make_host()
    for late in [*LATE, TtlChanged(task_id=TASK, token="late", ttl_ms=5)]:
        assert host.give(late) == [AcceptReport("late")]
    assert "gone" in str(host.give(asked("first", "confirm")))
    assert host.store.records == {}


def test_a_host_may_not_care_whether_a_report_is_durable() -> None:
    host = make_host()
    working(host)
    assert host.give(WorkProgressed(task_id=TASK, token=None, status_message="busy")) == []
    assert view(host)["statusMessage"] == "busy"


# -- one text for all (GET.2, SEC.1) ---------------------------------------------------------------

UNREACHABLE: dict[str, Any] = {
    "unknown": NEVER,
    "expired": OTHER,
    "foreign": TASK,
    "too short": "x",
    "empty": "",
    "too long": "x" * 10_000,
    "with a NUL": "nul\x00-0123456789abcdef0123",
    "not ASCII": "ümlaut-0123456789abcdef",
    "a lone surrogate": "\ud800",
    "a number": 5,
    "null": None,
    "a list": [TASK],
    "an object": {"taskId": TASK},
}


def strangers_view(method: str, task_id: Any) -> str:
    """Return the whole reply that bob gets, as text, where alice has a task and another one has expired."""
    host = make_host()
    working(host, OTHER, principal="bob", ttl_ms=10)
    host.now += 10
    parked(host, principal="alice")
    reply = host.ask(method, {"taskId": task_id, "inputResponses": {"confirm": ACCEPTED}}, principal="bob")
    assert not host.of(DeliverInput)
    assert not [told for told in host.of(RequestCancel) if told.task_id == TASK]
    return json.dumps([reply, host.of(Reply)[-1].http_status])


@pytest.mark.parametrize("task_id", UNREACHABLE.values(), ids=UNREACHABLE)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_get2_one_answer_for_every_task_that_cannot_be_reached(method: str, task_id: Any) -> None:
    assert strangers_view(method, task_id) == json.dumps(
        [
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {"code": ErrorCode.INVALID_PARAMS, "message": "Task not found"},
            },
            200,
        ]
    )


def test_get2_an_id_that_no_task_can_have_is_not_looked_up() -> None:
    """A store may not even be able to write it: it is never asked."""
    host = make_host(held=True)
    for task_id in ("x", "nul\x00-0123456789abcdef0123", "\ud800" * 30, "x" * 10_000):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert "error" in host.ask(method, {"taskId": task_id, "inputResponses": {}})
        listen(host, task_id)
    assert host.asked == []


@pytest.mark.parametrize(
    ("owner", "caller", "reaches"),
    [
        ("alice", "alice", True),
        ("alice", "bob", False),
        ("alice", "Alice", False),
        ("alice", None, False),
        (None, "alice", False),
        (None, "", False),
        ("", None, False),
        (None, None, True),
    ],
)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_sec1_a_task_is_its_owners(method: str, owner: str | None, caller: str | None, reaches: bool) -> None:
    host = make_host()
    parked(host, principal=owner)
    reply = host.ask(method, {"taskId": TASK, "inputResponses": {"confirm": ACCEPTED}}, principal=caller)
    assert ("result" in reply) is reaches
    assert bool(host.of(DeliverInput)) is (reaches and method == "tasks/update")
    assert bool(host.of(RequestCancel)) is (reaches and method == "tasks/cancel")


# -- cancelling a task (CAN.6) ---------------------------------------------------------------------


def test_can6_the_worker_is_told_once_and_the_status_waits_for_it() -> None:
    host = make_host()
    working(host)
    assert result(cancel(host)) == {"resultType": "complete", "_meta": SERVER_INFO}
    assert result(cancel(host)) == {"resultType": "complete", "_meta": SERVER_INFO}
    assert host.of(RequestCancel) == [RequestCancel(TASK, CancelReason.REQUESTED)]
    assert view(host)["status"] == "working"
    stopped(host, status_message="Stopped at frame 3")
    assert view(host)["status"] == "cancelled"
    assert view(host)["statusMessage"] == "Stopped at frame 3"
    host.advance(10**6)
    assert len(host.of(RequestCancel)) == 1


def test_can6_a_worker_that_finishes_first_wins() -> None:
    host = make_host()
    working(host)
    cancel(host)
    completed(host)
    assert view(host)["status"] == "completed"
    host.advance(60_000)
    assert view(host)["status"] == "completed"


def test_can6_a_failure_may_win_too() -> None:
    host = make_host()
    working(host)
    cancel(host)
    failed(host, ErrorObject(1, "Out of paint"))
    assert view(host)["status"] == "failed"


@pytest.mark.parametrize("early", [1, 0])
def test_can6_a_worker_that_does_not_stop_is_cancelled_by_deadline(early: int) -> None:
    host = make_host(Limits(cancel_grace_ms=500))
    working(host)
    host.now += 100
    cancel(host)
    assert host.deadline == START + 600
    host.now = START + 600 - early
    host.give(TimePassed())
    assert view(host)["status"] == ("working" if early else "cancelled")
    if not early:
        assert view(host)["lastUpdatedAt"] == f"{START_TEXT}.600Z"
        assert len(host.of(RequestCancel)) == 1, "it was told already"


def test_can6_a_second_cancel_does_not_prolong_the_grace() -> None:
    host = make_host(Limits(cancel_grace_ms=500))
    working(host)
    cancel(host)
    host.now += 400
    cancel(host)
    host.advance(100)
    assert view(host)["status"] == "cancelled"


@pytest.mark.parametrize("end", ["completed", "stopped", "removed"])
def test_can6_a_grace_ends_with_the_task(end: str) -> None:
    """Nothing is left to wake up for."""
    host = make_host(Limits(cancel_grace_ms=500))
    working(host, ttl_ms=100 if end == "removed" else None)
    cancel(host)
    if end == "completed":
        completed(host)
    elif end == "stopped":
        stopped(host)
    else:
        host.advance(100)
    assert host.deadline is None


def test_can6_a_late_result_of_a_cancelled_worker_changes_nothing() -> None:
    host = make_host(Limits(cancel_grace_ms=500))
    working(host)
    cancel(host)
    host.advance(500)
    before = view(host)
    completed(host)
    assert view(host) == before


def test_can6_a_parked_task_wakes_and_cancels() -> None:
    """TRAP 4: and an answer that comes later revives nothing."""
    host = make_host(Limits(cancel_grace_ms=500))
    parked(host)
    cancel(host)
    assert host.of(RequestCancel) == [RequestCancel(TASK, CancelReason.REQUESTED)]
    assert "result" in update(host, {"confirm": ACCEPTED})
    assert "result" in update(host, {"confirm": {"not": "an answer"}})
    assert not host.of(DeliverInput)
    host.advance(500)
    assert view(host)["status"] == "cancelled"
    assert "result" in update(host, {"confirm": ACCEPTED})
    assert view(host)["status"] == "cancelled"


def test_can6_a_cancelled_worker_asks_in_vain() -> None:
    host = make_host()
    working(host)
    cancel(host)
    (rejected,) = host.give(asked("first", "confirm", token="q"))
    assert "cancellation was requested" in str(rejected)
    assert view(host)["status"] == "working"


def test_can6_a_cancelled_worker_may_give_up_what_it_asked() -> None:
    host = make_host()
    parked(host)
    cancel(host)
    host.give(WorkWithdrewInput(task_id=TASK, token="w", ask="first"))
    assert view(host)["status"] == "working"


def test_a_cancelled_worker_may_still_report() -> None:
    host = make_host()
    working(host)
    cancel(host)
    host.give(WorkProgressed(task_id=TASK, token=1, status_message="Cleaning up"))
    assert view(host)["statusMessage"] == "Cleaning up"
    assert len(host.of(RequestCancel)) == 1


# -- TRAP 1 ----------------------------------------------------------------------------------------


def test_upd3_an_empty_update_runs_nothing_again() -> None:
    host = make_host()
    working(host)
    before = view(host)
    assert result(update(host, {})) == {"resultType": "complete", "_meta": SERVER_INFO}
    assert (len(host.of(StartWork)), len(host.of(StartTool))) == (1, 1)
    assert not host.of(DeliverInput)
    assert view(host) == before


# -- the clock -------------------------------------------------------------------------------------


@pytest.mark.parametrize("now", [0, 253_402_300_799_999])
def test_time_may_be_any_that_can_be_written(now: int) -> None:
    (effect,) = make_engine().handle(TimePassed(), now=now).effects
    assert isinstance(effect, FindExpired)


@pytest.mark.parametrize("now", [-1, 253_402_300_800_000])
def test_time_is_unix_milliseconds(now: int) -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError, match="milliseconds"):
        host.engine.handle(TimePassed(), now=now)


def test_the_engine_keeps_its_time_when_the_clock_goes_back() -> None:
    host = make_host()
    host.now = START + 5_000
    host.give(TimePassed())
    host.now = START - 10**9
    working(host)
    assert view(host)["createdAt"] == f"{START_TEXT[:-2]}25.000Z"


def test_what_is_no_input_is_refused() -> None:
    host = make_host()
    with pytest.raises(LocalProtocolError, match="not an input"):
        host.engine.handle({"jsonrpc": "2.0"}, now=host.now)  # type: ignore[arg-type]


def test_form_requests_are_shown_as_they_were_asked() -> None:
    host = make_host()
    working(host)
    odd = form("Go on?", **{"x-vendor": [1, None]})
    host.give(asked("first", confirm=odd))
    assert view(host)["inputRequests"] == {"confirm": odd}


class Colour(str):
    """A string, and more."""


class Level(IntEnum):
    LOW = 1


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"a": [1, 2.5, None, True, "x"]}, {"a": [1, 2.5, None, True, "x"]}),
        ({"a": (1, [2])}, {"a": [1, [2]]}),
        ({Colour("a"): Colour("red"), "b": {Colour("c"): Level.LOW}}, {"a": "red", "b": {"c": 1}}),
        ({"a": OrderedDict(b=[{}])}, {"a": {"b": [{}]}}),
        ({"a": nested(500)}, {"a": nested(500)}),
        ({"a": [(number,) for number in range(100)]}, {"a": [[number] for number in range(100)]}),
    ],
    ids=["plain", "tuple", "subclasses", "ordered", "deep", "long"],
)
def test_a_result_is_kept_as_its_reader_will_see_it(given: Any, stored: Any) -> None:
    """In types of JSON's own, none of them shared with whoever gave it."""
    host = make_host()
    working(host)
    host.give(WorkCompleted(task_id=TASK, token="end", result=given))
    kept = host.store.records[TASK].result
    assert kept == stored
    assert kept is not None
    assert {type(name) for name in kept} == {str}
    assert type(kept["a"]) is type(stored["a"])
    assert kept["a"] is not given["a"]


@pytest.mark.parametrize("names", [{1: 2}, {"a": {1: 2}}, {"a": [{None: 2}]}, {"a": [{1: 2}] * 100}])
def test_names_that_are_no_strings_are_refused(names: Any) -> None:
    host = make_host()
    working(host)
    refused(host, WorkCompleted(task_id=TASK, token="end", result=names))
