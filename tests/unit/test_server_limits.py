"""Bounds, each a named error to that caller that disturbs nobody else: TTL.2, LIM.3."""

from __future__ import annotations

import pytest

from mcp_tasks_proto import (
    CallBecameTask,
    CallReturned,
    DeliverInput,
    ErrorCode,
    ExchangeClosed,
    Limits,
    SaveFailed,
    StartTool,
    StartWork,
    WorkCompleted,
)
from mcp_tasks_proto.errors import limit_reached
from mcp_tasks_proto.testing import ServerHost, request
from mcp_tasks_proto.wire.jsonrpc import error_message
from tests.unit.world import (
    DONE,
    NEVER,
    OTHER,
    TASK,
    THIRD,
    call,
    error,
    listen,
    make_host,
    parked,
    result,
    update,
    view,
    working,
)


def reason(host: ServerHost, exchange: int) -> str:
    """Return which limit the reply names."""
    found = error(host.reply_to(exchange))
    assert found["code"] == ErrorCode.INTERNAL_ERROR
    assert found["data"]["reason"] in found["message"]
    return str(found["data"]["reason"])


def become(host: ServerHost, task_id: str, principal: str | None = None, arguments: object = None) -> int:
    exchange = call(host, principal=principal, arguments=arguments)
    host.give(CallBecameTask(exchange=exchange, task_id=task_id))
    return exchange


# -- tasks (TTL.2) ---------------------------------------------------------------------------------


def test_ttl2_only_so_many_tasks() -> None:
    host = make_host(Limits(tasks=2))
    working(host, TASK, principal="alice")
    working(host, OTHER, principal="bob")
    assert reason(host, become(host, THIRD, "carol")) == "tasks"
    assert [started.task_id for started in host.of(StartWork)] == [TASK, OTHER], "no work started"
    assert view(host, TASK, principal="alice")["status"] == "working"


def test_ttl2_only_so_many_tasks_of_one_principal() -> None:
    host = make_host(Limits(tasks_per_principal=1))
    working(host, TASK, principal="alice")
    assert reason(host, become(host, OTHER, "alice")) == "tasks_per_principal"
    assert "result" in host.reply_to(become(host, OTHER, "bob")), "nobody else is disturbed"
    assert "result" in host.reply_to(become(host, THIRD, None))
    assert reason(host, become(host, NEVER, None)) == "tasks_per_principal"


def test_ttl2_only_so_many_bytes() -> None:
    host = make_host(Limits(task_bytes=100))
    become(host, TASK, arguments={"x": "y" * 60})
    assert reason(host, become(host, OTHER, arguments={"x": "y" * 60})) == "task_bytes"
    assert "result" in host.reply_to(become(host, OTHER, arguments={}))
    host.give(WorkCompleted(task_id=TASK, token=1, result={"content": []}))
    assert "result" in host.reply_to(become(host, THIRD, arguments={"x": "y" * 60})), "ended, so smaller"


def test_ttl2_answers_are_bytes_as_well() -> None:
    """A peer could pile up as much as it likes in tasks that cost it nothing to make."""
    host = make_host(Limits(task_bytes=1000))
    parked(host, "name", "again")
    parked(host, "name", task_id=OTHER, principal="bob")
    before = view(host)
    answer = {"action": "accept", "content": {"name": "Ann", "more": "x" * 1000}}
    refused = error(update(host, {"name": answer}))
    assert (refused["code"], refused["data"]) == (ErrorCode.INTERNAL_ERROR, {"reason": "task_bytes"})
    assert view(host) == before, "nothing of it is taken"
    assert not host.of(DeliverInput)
    assert "result" in update(host, {"name": {"action": "decline"}})
    assert "result" in update(host, {"name": {"action": "decline"}}, OTHER, principal="bob")


def test_ttl2_answers_are_taken_where_there_are_too_many_tasks() -> None:
    """A server that was started anew with a lower bound lets those that are there go on."""
    many = make_host()
    parked(many, "name")
    working(many, OTHER)
    few = make_host(Limits(tasks=1, tasks_per_principal=1))
    few.store.records = many.store.records
    assert "result" in update(few, {"name": {"action": "decline"}})
    assert view(few)["status"] == "working"


def test_ttl2_a_call_at_the_cap_may_still_be_answered_at_once() -> None:
    host = make_host(Limits(tasks=1))
    working(host)
    exchange = call(host)
    host.give(CallReturned(exchange, DONE))
    assert "result" in host.reply_to(exchange)


# -- workers ---------------------------------------------------------------------------------------


def test_lim3_only_so_many_workers() -> None:
    host = make_host(Limits(workers=1))
    working(host, TASK)
    assert reason(host, become(host, OTHER)) == "workers"
    assert OTHER not in host.store.records
    host.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    assert "result" in host.reply_to(become(host, OTHER))


def test_lim3_a_worker_counts_while_its_task_is_being_written() -> None:
    host = make_host(Limits(workers=1), held=True)
    become(host, TASK)
    assert reason(host, become(host, OTHER)) == "workers"
    host.answer_next()
    assert reason(host, become(host, THIRD)) == "workers"
    assert [started.task_id for started in host.of(StartWork)] == [TASK]


@pytest.mark.parametrize("end", ["failed", "abandoned", "refused", "in use"])
def test_lim3_a_task_that_was_never_made_takes_no_worker(end: str) -> None:
    host = make_host(Limits(workers=1, tasks=1), held=True)
    if end in ("refused", "in use"):
        other = make_host(store=host.store)
        working(other, TASK if end == "in use" else OTHER)
    exchange = become(host, TASK)
    if end == "failed":
        host.give(SaveFailed(host.asked.pop().token))
    elif end == "abandoned":
        host.give(ExchangeClosed(exchange))
    host.held = False
    while host.asked:
        host.answer_next()
    host.store.records.clear()
    assert "result" in host.reply_to(become(host, THIRD))


# -- requests and streams --------------------------------------------------------------------------


def test_lim3_only_so_many_requests_at_once() -> None:
    host = make_host(Limits(exchanges=2))
    first = call(host)
    stream = listen(host, toolsListChanged=True)
    refused = host.send(request("tools/list", id="mine"))
    assert host.reply_to(refused) == error_message("mine", limit_reached("exchanges"))
    host.give(CallReturned(first, DONE))
    assert "result" in host.ask("tools/list")
    assert host.sent_on(stream), "nobody else is disturbed"


def test_lim3_only_so_many_streams() -> None:
    host = make_host(Limits(streams=2))
    first, second = listen(host, principal="alice"), listen(host, principal="bob")
    assert reason(host, listen(host, principal="carol")) == "streams"
    host.give(ExchangeClosed(first))
    assert host.sent_on(listen(host, principal="carol"))
    assert host.sent_on(second)


def test_lim3_only_so_many_streams_of_one_principal() -> None:
    host = make_host(Limits(streams_per_principal=2))
    first, second = listen(host, principal="alice"), listen(host, principal="alice")
    assert reason(host, listen(host, principal="alice")) == "streams_per_principal"
    assert host.sent_on(listen(host, principal="bob"))
    for closed in (first, second):
        host.give(ExchangeClosed(closed))
        assert host.sent_on(listen(host, principal="alice"))
    assert reason(host, listen(host, principal="alice")) == "streams_per_principal"


def test_lim3_callers_without_a_name_are_not_one_principal() -> None:
    host = make_host(Limits(streams=3, streams_per_principal=1))
    for _ in range(3):
        assert host.sent_on(listen(host))
    assert reason(host, listen(host)) == "streams"


def test_lim3_a_principal_whose_streams_have_all_ended_starts_anew() -> None:
    host = make_host(Limits(streams_per_principal=1))
    for _ in range(3):
        stream = listen(host, principal="alice")
        assert host.sent_on(stream)
        host.give(ExchangeClosed(stream))


def test_lim3_only_so_many_tasks_on_one_stream() -> None:
    host = make_host(Limits(stream_tasks=2))
    assert reason(host, listen(host, TASK, OTHER, THIRD)) == "stream_tasks"
    assert host.sent_on(listen(host, TASK, OTHER, TASK, OTHER)), "an id that is repeated counts once"


def test_lim3_a_call_that_waits_holds_no_more_than_its_place() -> None:
    host = make_host(Limits(exchanges=5))
    for _ in range(3):
        exchanges = [call(host) for _ in range(5)]
        for exchange in exchanges:
            host.give(CallReturned(exchange, DONE))
    assert len(host.of(StartTool)) == 15
    assert result(host.ask("tools/list"))["tools"]
