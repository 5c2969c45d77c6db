"""Calls on their way: results, errors, reports, and what may come of them: LIFE.2, LIFE.8, NEG.5, WIRE.5."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    ErrorCode,
    ErrorObject,
    ExchangeClosed,
    Forward,
    HttpHead,
    Reply,
    Send,
    ServerEngine,
    ShutdownStarted,
    StartTool,
    StopCall,
    StreamReady,
    ToolDeclaration,
    ToolsChanged,
)
from mcp_tasks_proto.testing import ServerHost, request
from mcp_tasks_proto.vocabulary import LOG_LEVEL, PROGRESS_TOKEN
from tests.unit.world import (
    DONE,
    TASK,
    TOOLS,
    call,
    error,
    form,
    forwarded,
    head,
    listen,
    make_engine,
    make_host,
    refused,
    result,
)

# -- tools/list ------------------------------------------------------------------------------------


def test_tools_are_listed_in_their_order() -> None:
    found = result(make_host(discovery_ttl_ms=7).ask("tools/list"))
    assert found["tools"] == [dict(tool.definition) for tool in TOOLS]
    assert (found["ttlMs"], found["cacheScope"]) == (7, "private")
    assert "nextCursor" not in found


def test_long_lists_come_in_pages() -> None:
    host = make_host(page_size=2)
    first = result(host.ask("tools/list"))
    assert [tool["name"] for tool in first["tools"]] == ["optional", "required"]
    second = result(host.ask("tools/list", {"cursor": first["nextCursor"]}))
    assert [tool["name"] for tool in second["tools"]] == ["forbidden"]
    assert "nextCursor" not in second


def test_a_full_last_page_is_the_last_page() -> None:
    assert "nextCursor" not in result(make_host(page_size=3).ask("tools/list"))


@pytest.mark.parametrize("cursor", ["no such tool", "", 1, True, [], {}], ids=repr)
def test_a_foreign_cursor_is_invalid(cursor: Any) -> None:
    assert error(make_host().ask("tools/list", {"cursor": cursor}))["code"] == ErrorCode.INVALID_PARAMS


def test_the_set_of_tools_may_change() -> None:
    host = make_host()
    host.give(ToolsChanged((ToolDeclaration(name="new", definition={"name": "new", "inputSchema": {}}),)))
    assert [tool["name"] for tool in result(host.ask("tools/list"))["tools"]] == ["new"]
    gone = host.ask("tools/call", {"name": "optional"})
    assert error(gone)["code"] == ErrorCode.INVALID_PARAMS
    call(host, "new")


def test_two_tools_of_one_name_are_a_mistake() -> None:
    twice = (TOOLS[0], TOOLS[0])
    host = make_host()
    assert "same name" in refused(host, ToolsChanged(twice))
    assert len(result(host.ask("tools/list"))["tools"]) == 3
    with pytest.raises(Exception, match="same name"):
        ServerEngine(settings=make_engine().settings, tools=twice)


# -- tools/call ------------------------------------------------------------------------------------


def test_a_handler_gets_all_that_came() -> None:
    """WIRE.5: unknown fields of the params, and of ``_meta``, included."""
    host = make_host()
    message = request(
        "tools/call",
        {"name": "optional", "arguments": {"frames": 3}, "x": None},
        capabilities={"roots": {}, "experimental": {"a": 1}},
        meta={"vendor/key": [1]},
    )
    exchange = host.send(message, principal="alice")
    assert host.effects == [
        StartTool(
            exchange=exchange,
            tool="optional",
            arguments={"frames": 3},
            can_create_task=True,
            client_capabilities={
                "roots": {},
                "experimental": {"a": 1},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
            principal="alice",
            params=message["params"],
        )
    ]


def test_arguments_may_be_left_out() -> None:
    host = make_host()
    host.send(request("tools/call", {"name": "optional"}))
    assert host.of(StartTool)[0].arguments == {}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": None},
        {"name": 5},
        {"name": "no such tool"},
        {"name": "optional", "arguments": []},
        {"name": "optional", "arguments": None},
        {"name": "optional", "arguments": "{}"},
    ],
    ids=repr,
)
def test_wrong_params_are_refused_before_anything_runs(params: dict[str, Any]) -> None:
    host = make_host()
    assert error(host.ask("tools/call", params))["code"] == ErrorCode.INVALID_PARAMS
    assert not host.of(StartTool)


def test_life8_a_call_may_be_answered_at_once() -> None:
    """Nothing is minted: no record, no work."""
    host = make_host()
    exchange = call(host, "required")
    effects = host.give(CallReturned(exchange, {**DONE, "isError": True}))
    assert [type(effect) for effect in effects] == [Reply]
    assert result(host.reply_to(exchange))["isError"] is True
    assert host.store.records == {}


def test_life2_a_protocol_error_is_passed_on_exactly() -> None:
    host = make_host()
    exchange = call(host)
    host.give(CallFailed(exchange, ErrorObject(-31_999, "Quota", {"left": 0}, {"x": 1})))
    (reply,) = host.of(Reply)
    assert error(host.reply_to(exchange)) == {
        "code": -31_999,
        "message": "Quota",
        "data": {"left": 0},
        "x": 1,
    }
    assert reply.http_status == 200


def test_http5_an_error_of_the_table_has_its_status() -> None:
    host = make_host(methods=frozenset({"x/y"}))
    exchange = forwarded(host, "x/y")
    host.give(CallFailed(exchange, ErrorObject(ErrorCode.METHOD_NOT_FOUND, "Not today")))
    assert host.of(Reply)[0].http_status == 404


@pytest.mark.parametrize("kind", ["task", "input_required"])
def test_a_result_cannot_be_a_task_in_disguise(kind: str) -> None:
    host = make_host()
    exchange = call(host)
    assert refused(host, CallReturned(exchange, {"resultType": kind})) == (
        "CallReturned: a task or a question is a fact of its own, not a result"
    )
    assert "_meta" in refused(host, CallReturned(exchange, {"content": [], "_meta": []}))
    assert refused(host, CallReturned(exchange, cast(Any, [DONE]))) == "CallReturned: a result is an object"
    host.give(CallReturned(exchange, DONE))
    assert "result" in host.reply_to(exchange)


def test_a_result_of_a_later_kind_passes_through() -> None:
    """WIRE.5: what this engine does not know is not its to change."""
    host = make_host(methods=frozenset({"x/y"}))
    exchange = forwarded(host, "x/y")
    host.give(CallReturned(exchange, {"resultType": "com.example/later"}))
    assert result(host.reply_to(exchange))["resultType"] == "com.example/later"


def test_neg5_only_a_declaring_call_becomes_a_task() -> None:
    host = make_host()
    for exchange in (call(host, tasks=False), call(host, "forbidden")):
        assert "NEG.5" in refused(host, CallBecameTask(exchange=exchange, task_id=TASK))
        host.give(CallReturned(exchange, DONE))
    assert host.store.records == {}


def test_the_outcome_of_a_call_whose_client_left_is_nothing() -> None:
    """CAN.7. It may have been on its way already; no task comes of it either."""
    host = make_host(methods=frozenset({"x/y"}))
    for outcome in (
        lambda exchange: CallReturned(exchange, DONE),
        lambda exchange: CallFailed(exchange, ErrorObject(1, "")),
        lambda exchange: CallNotified(exchange, "notifications/progress", {"progress": 1}),
        lambda exchange: CallAskedInput(exchange, {"confirm": form()}),
        lambda exchange: CallBecameTask(exchange=exchange, task_id=TASK),
    ):
        exchange = call(host)
        assert host.give(ExchangeClosed(exchange)) == [StopCall(exchange)]
        assert host.give(outcome(exchange)) == []
    assert host.store.records == {}


# -- the host's own methods ------------------------------------------------------------------------


def test_a_method_of_the_host_gets_the_params_and_the_caller() -> None:
    host = make_host(methods=frozenset({"completion/complete"}))
    message = request("completion/complete", {"ref": {"a": 1}}, tasks=False, capabilities={"roots": {}})
    exchange = host.send(message, principal="alice")
    assert host.effects == [
        Forward(
            exchange=exchange,
            method="completion/complete",
            params=message["params"],
            client_capabilities={"roots": {}},
            principal="alice",
        )
    ]


@pytest.mark.parametrize(
    "method", ["prompts/list", "resources/list", "resources/templates/list", "resources/read"]
)
def test_results_that_may_be_cached_say_how_long(method: str) -> None:
    host = make_host(methods=frozenset({method}))
    silent, spoken = forwarded(host, method), forwarded(host, method)
    host.give(CallReturned(silent, {}))
    host.give(CallReturned(spoken, {"ttlMs": 9, "cacheScope": "public"}))
    assert (result(host.reply_to(silent))["ttlMs"], result(host.reply_to(silent))["cacheScope"]) == (
        0,
        "private",
    )
    assert (result(host.reply_to(spoken))["ttlMs"], result(host.reply_to(spoken))["cacheScope"]) == (
        9,
        "public",
    )


def test_other_results_do_not() -> None:
    host = make_host(methods=frozenset({"prompts/get"}))
    exchange = forwarded(host, "prompts/get")
    host.give(CallReturned(exchange, {"messages": []}))
    assert set(result(host.reply_to(exchange))) == {"messages", "resultType", "_meta"}


# -- reports on the way: progress and log messages -------------------------------------------------


def progress(exchange: int, done: int) -> CallNotified:
    return CallNotified(exchange, "notifications/progress", {"progress": done})


def logged(exchange: int, text: str, level: str = "info") -> CallNotified:
    return CallNotified(exchange, "notifications/message", {"level": level, "data": text})


def reports(host: ServerHost, exchange: int) -> list[Any]:
    """Return what was reported, without the envelope."""
    return [
        message["params"].get("data", message["params"].get("progress")) for message in host.sent_on(exchange)
    ]


@pytest.mark.parametrize("token", [5, "p", 0, ""], ids=repr)
def test_progress_goes_to_who_asked_for_it(token: Any) -> None:
    host = make_host()
    exchange = call(host, meta={PROGRESS_TOKEN: token})
    host.give(
        CallNotified(exchange, "notifications/progress", {"progress": 1, "total": 2, "progressToken": "?"})
    )
    assert host.sent_on(exchange) == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progress": 1, "total": 2, "progressToken": token},
        }
    ]


@pytest.mark.parametrize(
    "meta", [{}, {PROGRESS_TOKEN: None}, {PROGRESS_TOKEN: True}, {PROGRESS_TOKEN: 1.5}], ids=repr
)
def test_nobody_else_gets_progress(meta: dict[str, Any]) -> None:
    host = make_host()
    assert host.give(progress(call(host, meta=meta), 1)) == []


LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.mark.parametrize("threshold", LEVELS)
def test_log_messages_reach_who_asked_for_their_level(threshold: str) -> None:
    host = make_host()
    exchange = call(host, meta={LOG_LEVEL: threshold})
    for level in LEVELS:
        host.give(logged(exchange, level, level))
        host.give(StreamReady(exchange))
    assert reports(host, exchange) == LEVELS[LEVELS.index(threshold) :]


@pytest.mark.parametrize(
    "meta", [{}, {LOG_LEVEL: None}, {LOG_LEVEL: "loud"}, {LOG_LEVEL: ["info"]}], ids=repr
)
def test_nobody_else_gets_log_messages(meta: dict[str, Any]) -> None:
    host = make_host()
    assert host.give(logged(call(host, meta=meta), "x", "emergency")) == []


@pytest.mark.parametrize("level", ["loud", None])
def test_a_log_message_has_one_of_the_levels(level: Any) -> None:
    host = make_host()
    exchange = call(host, meta={LOG_LEVEL: "info"})
    assert "level" in refused(host, logged(exchange, "x", level))


def test_a_call_sends_no_other_notifications() -> None:
    host = make_host()
    exchange = call(host, meta={LOG_LEVEL: "info"})
    assert "notifications/tasks" in refused(host, CallNotified(exchange, "notifications/tasks", {}))


def test_who_takes_no_stream_gets_no_reports() -> None:
    """HTTP.4: a client that accepts JSON only."""
    host = make_host()
    message = request("tools/call", {"name": "optional"}, meta={PROGRESS_TOKEN: 1, LOG_LEVEL: "debug"})
    exchange = host.send(message, http=HttpHead(headers=head(message).headers, accepts_stream=False))
    assert host.give(progress(exchange, 1)) == []
    assert host.give(logged(exchange, "x")) == []
    host.give(CallReturned(exchange, DONE))
    assert "result" in host.reply_to(exchange)


def test_a_slow_reader_gets_the_latest_progress_and_every_log_message() -> None:
    host = make_host()
    exchange = call(host, meta={PROGRESS_TOKEN: 1, LOG_LEVEL: "debug"})
    for done in range(1, 5):
        host.give(progress(exchange, done))
        host.give(logged(exchange, f"log {done}"))
    assert reports(host, exchange) == [1], "one message at a time"
    for _ in range(8):
        host.give(StreamReady(exchange))
    assert reports(host, exchange) == [1, "log 1", 4, "log 2", "log 3", "log 4"]
    host.give(progress(exchange, 5))
    assert reports(host, exchange)[-1] == 5


def test_what_waits_is_sent_before_the_reply() -> None:
    host = make_host()
    exchange = call(host, meta={PROGRESS_TOKEN: 1})
    host.give(progress(exchange, 1))
    host.give(progress(exchange, 2))
    effects = host.give(CallReturned(exchange, DONE))
    assert [type(effect) for effect in effects] == [Send, Reply]
    assert reports(host, exchange) == [1, 2]


def test_lim3_the_oldest_log_messages_give_way() -> None:
    host = make_host()
    exchange = call(host, meta={LOG_LEVEL: "debug"})
    for number in range(1_000):
        host.give(logged(exchange, str(number)))
    host.give(CallReturned(exchange, DONE))
    assert reports(host, exchange) == ["0", *map(str, range(936, 1_000))]


def test_a_stream_that_is_ready_without_need_gets_nothing() -> None:
    host = make_host()
    exchange = call(host)
    assert host.give(StreamReady(exchange)) == []
    assert host.give(StreamReady("nobody")) == []


# -- the end of the server -------------------------------------------------------------------------


def test_a_server_that_stops_refuses_new_requests_and_finishes_the_others() -> None:
    host = make_host()
    exchange = call(host)
    stream = listen(host, toolsListChanged=True)
    host.give(ShutdownStarted())
    late = host.send(request("tools/list", id="late"))
    assert host.of(Reply)[-1].http_status == 503
    refused = host.reply_to(late)
    assert (refused["id"], error(refused)["data"]) == ("late", {"reason": "shutting_down"})
    assert "result" in host.reply_to(stream)
    host.give(CallReturned(exchange, DONE))
    assert "result" in host.reply_to(exchange)
    assert host.give(ShutdownStarted()) == []
