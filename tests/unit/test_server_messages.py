"""Messages in and replies out: WIRE.1 to WIRE.5, CAN.7, SEC.2 ("a peer cannot raise")."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto import (
    CallReturned,
    ErrorCode,
    ExchangeClosed,
    Forward,
    HttpHead,
    LocalProtocolError,
    MessageReceived,
    Reply,
    Send,
    StartTool,
    StopCall,
)
from mcp_tasks_proto.negotiation import OWNED_METHODS
from mcp_tasks_proto.testing import ServerHost, request
from tests.unit.world import (
    DONE,
    FORMS,
    TASK,
    call,
    error,
    head,
    listen,
    make_host,
    parked,
    refused,
    result,
    update,
)

SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1"}}


def cancelled(request_id: Any) -> dict[str, Any]:
    """Return the notification that cancels a request."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


# -- envelopes (WIRE.1) ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        ([], None),
        ([request("tools/list")], None),
        (None, None),
        (5, None),
        ("tools/list", None),
        ({}, None),
        ({"jsonrpc": "1.0", "id": 7, "method": "tools/list"}, 7),
        ({"id": "a", "method": "tools/list"}, "a"),
        ({"jsonrpc": "2.0", "id": 7}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": None}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": []}, 7),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "tools/list"}, None),
        ({"jsonrpc": "2.0", "id": 1.0, "method": "tools/list"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "tools/list"}, None),
    ],
    ids=repr,
)
def test_wire1_what_is_no_message_is_an_invalid_request(message: Any, request_id: Any) -> None:
    host = make_host()
    host.send(message)
    (reply,) = host.of(Reply)
    assert reply.message is not None
    assert reply.message["error"]["code"] == ErrorCode.INVALID_REQUEST
    assert reply.http_status == 400
    assert reply.message.get("id") == request_id
    assert ("id" in reply.message) is (request_id is not None)


def test_wire1_a_server_takes_no_responses() -> None:
    host = make_host()
    host.send({"jsonrpc": "2.0", "id": 1, "result": {}})
    (reply,) = host.of(Reply)
    assert reply.message is not None
    assert error(reply.message)["code"] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("said", [{"id": 1, "result": {}}, {"error": {"code": -32600, "message": "what?"}}])
def test_wire1_a_response_on_a_shared_channel_gets_no_answer(said: dict[str, Any]) -> None:
    """The answer would be a response again: two such peers would keep each other busy for ever."""
    host = make_host()
    exchange = host.send({"jsonrpc": "2.0", **said}, connection="stdio")
    assert host.of(Reply) == [Reply(exchange, None, 202)]


# -- ids (WIRE.3) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("request_id", [1, "1", "", 0, -5, 2**63])
def test_wire3_an_id_comes_back_with_its_type(request_id: Any) -> None:
    host = make_host()
    (reply,) = (host.ask("tools/list", id=request_id),)
    assert type(reply["id"]) is type(request_id)
    assert reply["id"] == request_id


def test_wire3_a_refusal_has_the_id_of_what_is_refused() -> None:
    host = make_host()
    for method, params in (("tasks/result", {}), ("tools/list", {"_meta": {}}), ("tools/call", {"name": 5})):
        reply = host.reply_to(host.send({"jsonrpc": "2.0", "id": "mine", "method": method, "params": params}))
        assert "error" in reply
        assert reply["id"] == "mine"


def test_wire3_an_id_in_flight_on_a_shared_channel_is_refused() -> None:
    """STDIO. The first exchange is untouched, and the id is free again once it has its reply."""
    host = make_host()
    first = call(host, connection="stdio", id=1)
    refusal = host.ask("tools/list", id=1, connection="stdio")
    assert error(refusal)["code"] == ErrorCode.INVALID_REQUEST
    assert refusal["id"] == 1
    host.give(CallReturned(first, DONE))
    assert result(host.reply_to(first))["content"] == DONE["content"]
    assert "result" in host.ask("tools/list", id=1, connection="stdio")


def test_wire3_a_number_and_a_string_are_two_ids() -> None:
    host = make_host()
    call(host, connection="stdio", id=1)
    assert "result" in host.ask("tools/list", id="1", connection="stdio")


def test_wire3_other_connections_have_ids_of_their_own() -> None:
    host = make_host()
    call(host, connection="one", id=1)
    assert "result" in host.ask("tools/list", id=1, connection="two")


def test_wire3_over_http_equal_ids_do_not_meet() -> None:
    host = make_host()
    first, second = call(host, id=1), call(host, id=1)
    host.give(CallReturned(second, {"content": [], "n": 2}))
    host.give(CallReturned(first, {"content": [], "n": 1}))
    assert result(host.reply_to(first))["n"] == 1
    assert result(host.reply_to(second))["n"] == 2


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/anything"},
        {"jsonrpc": "2.0", "method": "tools/list", "params": {}},
        cancelled(99),
        cancelled(None),
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("connection", [None, "stdio"])
def test_wire3_a_notification_is_accepted_and_never_answered(message: Any, connection: str | None) -> None:
    host = make_host()
    exchange = host.send(message, connection=connection)
    assert host.effects == [Reply(exchange, None, 202)]


# -- results (WIRE.4, WIRE.5) ----------------------------------------------------------------------


def every_result(host: ServerHost) -> list[dict[str, Any]]:
    """Return a result of each kind that a modern server gives."""
    parked(host)
    plain = call(host, "forbidden")
    host.give(CallReturned(plain, DONE))
    stream = listen(host, toolsListChanged=True)
    assert host.sent_on(stream)
    replies = [
        host.reply_to(1),
        host.reply_to(plain),
        host.ask("server/discover"),
        host.ask("tools/list"),
        host.ask("tasks/get", {"taskId": TASK}),
        update(host, {}),
        host.ask("tasks/cancel", {"taskId": TASK}),
    ]
    return [result(reply) for reply in replies]


def test_wire4_every_result_says_what_it_is_and_who_gave_it() -> None:
    results = every_result(make_host())
    assert [one["resultType"] for one in results] == ["task"] + ["complete"] * 6
    assert all(one["_meta"] == SERVER_INFO for one in results)


def test_http5_every_result_goes_with_200() -> None:
    host = make_host()
    every_result(host)
    assert {reply.http_status for reply in host.of(Reply)} == {200}


def test_wire4_a_server_may_stay_unnamed() -> None:
    assert all("_meta" not in one for one in every_result(make_host(identify=False)))


def test_wire4_a_handlers_own_meta_is_kept() -> None:
    host = make_host()
    exchange = call(host)
    host.give(CallReturned(exchange, {"content": [], "_meta": {"vendor/key": 1}}))
    assert result(host.reply_to(exchange))["_meta"] == {"vendor/key": 1, **SERVER_INFO}


def test_wire5_unknown_fields_of_a_result_pass_through() -> None:
    host = make_host()
    exchange = call(host)
    odd: dict[str, Any] = {
        "content": [],
        "resultType": "complete",
        "x-vendor": {"deep": [None, 1.5]},
        "structuredContent": None,
    }
    host.give(CallReturned(exchange, odd))
    assert result(host.reply_to(exchange)) == {**odd, "_meta": SERVER_INFO}


# -- cancelling a request (CAN.7) ------------------------------------------------------------------


def test_can7_a_cancelled_request_stops_and_gets_no_reply() -> None:
    host = make_host()
    exchange = call(host, connection="stdio", id="a")
    note = host.send(cancelled("a"), connection="stdio")
    assert host.effects[-2:] == [StopCall(exchange), Reply(note, None, 202)]
    host.give(CallReturned(exchange, DONE))  # it was on its way already
    assert len(host.of(Reply)) == 1


@pytest.mark.parametrize(
    ("request_id", "connection"),
    [("1", "stdio"), (True, "stdio"), (1.0, "stdio"), ([1], "stdio"), (2, "stdio"), (1, "other"), (1, None)],
    ids=repr,
)
def test_can7_only_the_named_request_on_the_same_channel_is_cancelled(
    request_id: Any, connection: str | None
) -> None:
    """WIRE.3: an id keeps its type, and ``true`` is no id."""
    host = make_host()
    exchange = call(host, connection="stdio", id=1)
    host.send(cancelled(request_id), connection=connection)
    assert not host.of(StopCall)
    host.give(CallReturned(exchange, DONE))
    assert "result" in host.reply_to(exchange)


def test_can7_no_other_notification_cancels() -> None:
    host = make_host()
    exchange = call(host, connection="stdio", id=1)
    host.send({**cancelled(1), "method": "notifications/progress"}, connection="stdio")
    assert not host.of(StopCall)
    host.give(CallReturned(exchange, DONE))
    assert "result" in host.reply_to(exchange)


def test_can7_the_id_of_a_cancelled_request_is_free_again() -> None:
    host = make_host()
    call(host, connection="stdio", id=1)
    host.send(cancelled(1), connection="stdio")
    assert "result" in host.ask("tools/list", id=1, connection="stdio")


def test_can7_a_closed_stream_cancels_its_request_only() -> None:
    host = make_host()
    gone, other = call(host), call(host)
    host.give(ExchangeClosed(gone))
    assert host.of(StopCall) == [StopCall(gone)]
    host.give(CallReturned(other, DONE))
    assert [reply.exchange for reply in host.of(Reply)] == [other]


def test_can7_closing_after_the_reply_means_nothing() -> None:
    host = make_host()
    exchange = call(host)
    host.give(CallReturned(exchange, DONE))
    assert host.give(ExchangeClosed(exchange)) == []
    assert host.give(ExchangeClosed("never opened")) == []


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_can7_a_client_may_leave_while_the_store_is_asked(method: str) -> None:
    host = make_host()
    parked(host)
    host.held = True
    exchange = host.send(request(method, {"taskId": TASK, "inputResponses": {}}))
    assert host.give(ExchangeClosed(exchange)) == []
    while host.asked:
        host.answer_next()
    assert not any(reply.exchange == exchange for reply in host.of(Reply))


# -- what a peer cannot do -------------------------------------------------------------------------

LONE = "\ud800"
"""A lone surrogate: the standard library's parser lets it through, and no JSON text may hold it."""


@pytest.mark.parametrize("odd", [LONE, float("nan"), float("inf")], ids=repr)
@pytest.mark.parametrize(
    ("method", "where"),
    [("tools/call", "arguments"), ("prompts/get", "arguments"), ("tasks/update", "answer")],
)
def test_a_lenient_parser_cannot_make_the_engine_raise(method: str, where: str, odd: Any) -> None:
    """WIRE.2. A host with a parser of its own may let through what is not JSON; the peer is told."""
    host = make_host(methods=frozenset({"prompts/get"}))
    parked(host)
    params = {
        "name": "optional",
        "arguments": {"x": [odd]} if where == "arguments" else {},
        "taskId": TASK,
        "inputResponses": {"confirm": {"x": odd}} if where == "answer" else {},
    }
    refusal = host.ask(method, params, connection="stdio", id=9)
    assert error(refusal)["code"] == ErrorCode.INVALID_REQUEST
    assert error(refusal)["message"].startswith("Invalid request: not JSON: ")
    assert refusal["id"] == 9
    assert "result" in host.ask("tools/list", connection="stdio", id=9), "the exchange is closed"


@pytest.mark.parametrize("name", [None, "x"], ids=["arrays", "objects"])
def test_a_lenient_parser_cannot_make_the_engine_recurse(name: str | None) -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep] if name is None else {name: deep}
    host = make_host()
    refusal = host.ask("tools/call", {"name": "optional", "arguments": {"x": deep}})
    assert error(refusal)["code"] == ErrorCode.INVALID_REQUEST


def test_what_a_handler_does_to_its_arguments_stays_with_it() -> None:
    host = make_host()
    exchange = host.send(
        request("tools/call", {"name": "optional", "arguments": {"x": [1]}}, capabilities=FORMS)
    )
    (started,) = host.of(StartTool)
    started.arguments["x"].append(2)
    started.client_capabilities["elicitation"]["form"] = {}
    host.give(CallReturned(exchange, DONE))
    again = host.send(
        request("tools/call", {"name": "optional", "arguments": {"x": [1]}}, capabilities=FORMS)
    )
    host.give(CallReturned(again, DONE))
    assert host.of(StartTool)[-1].arguments == {"x": [1]}


def test_sec2_an_error_never_repeats_what_was_sent() -> None:
    secret = "s3cr3t-0123456789abcdefg"
    host = make_host()
    parked(host)
    replies = [
        host.ask("tasks/get", {"taskId": secret}),
        host.ask("tasks/update", {"taskId": TASK, "inputResponses": {"confirm": {"action": secret}}}),
        host.ask("tasks/update", {"taskId": TASK, "inputResponses": secret}),
        host.ask("tools/call", {"name": "optional", "arguments": secret}),
        host.ask("tools/call", {"name": "optional", "requestState": secret}),
        host.ask("tools/list", {"cursor": secret}),
        host.ask("subscriptions/listen", {"notifications": secret}),
    ]
    for reply in replies:
        assert secret not in json.dumps(error(reply))


KEYS = st.sampled_from(
    [
        "_meta",
        "arguments",
        "cursor",
        "inputResponses",
        "name",
        "notifications",
        "params",
        "requestId",
        "requestState",
        "taskId",
        "taskIds",
        "toolsListChanged",
        "confirm",
        "action",
        "content",
        "extensions",
        "elicitation",
        "io.modelcontextprotocol/tasks",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/logLevel",
        "progressToken",
        LONE,
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None), max_size=4),
    st.sampled_from([TASK, "optional", "required", "2026-07-28", "2025-11-25", "accept", "confirm", 10**400]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
METHODS = st.sampled_from(
    [*sorted(OWNED_METHODS), "prompts/get", "x/y", "initialize", "notifications/cancelled", "tasks/list"]
)
LOOSE: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={"jsonrpc": st.just("2.0") | VALUES, "id": VALUES, "method": METHODS | VALUES, "params": VALUES},
)
"""Messages that are hardly ever right."""


@st.composite
def nearly_right(draw: st.DrawFn) -> dict[str, Any]:
    """Messages that get past the first checks, with anything in their params and ``_meta``."""
    params = draw(st.dictionaries(KEYS, VALUES, max_size=3))
    params |= draw(st.sampled_from([{}, {"taskId": TASK}, {"name": "optional"}]))
    meta = params.pop("_meta", {})
    message = request(
        draw(METHODS),
        params,
        id=draw(st.integers() | st.text(max_size=2)),
        tasks=draw(st.booleans()),
        capabilities=draw(
            st.dictionaries(KEYS, VALUES, max_size=2).filter(lambda it: "extensions" not in it)
        ),
        meta=meta if isinstance(meta, dict) and draw(st.booleans()) else None,
    )
    if draw(st.booleans()):
        del message["id"]
    return message


HEADERS = st.dictionaries(
    st.sampled_from(["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-param-x"]),
    st.text(max_size=6) | st.sampled_from([TASK, "tools/call", "2026-07-28", "=?base64?AA==?="]),
)


@st.composite
def hostile_heads(draw: st.DrawFn, message: Any) -> HttpHead | None:
    """No head, an arbitrary one, or the right one."""
    if draw(st.booleans()):
        return None
    if isinstance(message, dict) and isinstance(message.get("method"), str) and draw(st.booleans()):
        params = message.get("params")
        named = {**message, "params": params if isinstance(params, dict) else {}}
        try:
            return head(named)
        except LocalProtocolError:
            return None  # no client can say this in a header
    return HttpHead(
        headers=draw(HEADERS),
        repeated=frozenset(draw(st.lists(st.sampled_from(["mcp-name", "mcp-method"]), max_size=1))),
        accepts_stream=draw(st.booleans()),
    )


@given(st.data())
def test_a_peer_cannot_raise_and_gets_one_reply(data: st.DataObject) -> None:
    """Whatever JSON comes, with whatever headers: no exception, and one reply for each request."""
    host = make_host(methods=frozenset({"prompts/get", "x/y"}), held=False)
    parked(host)
    for _ in range(data.draw(st.integers(1, 4))):
        message: Any = data.draw(VALUES | LOOSE | nearly_right())
        http = data.draw(hostile_heads(message))
        connection = None if http is not None else data.draw(st.sampled_from([None, "stdio"]))
        exchange = host.send(message, http=http, connection=connection)
        replies = [reply for reply in host.of(Reply) if reply.exchange == exchange]
        waiting = any(
            isinstance(one, (StartTool, Forward)) and one.exchange == exchange for one in host.effects
        )
        if waiting:
            assert replies == []
            host.give(CallReturned(exchange, {"content": []}))
            replies = [reply for reply in host.of(Reply) if reply.exchange == exchange]
        listens = any(isinstance(one, Send) and one.exchange == exchange for one in host.effects)
        assert len(replies) == (0 if listens else 1)
    assert result(host.ask("tools/list", connection="stdio", id="the end"))["tools"]


def test_an_open_exchange_is_not_opened_again() -> None:
    host = make_host()
    exchange = call(host)
    messages: list[Any] = [request("tools/list"), cancelled(1), [], None]
    for message in messages:
        complaint = refused(host, MessageReceived(exchange=exchange, message=message))
        assert "open already" in complaint
    host.give(CallReturned(exchange, DONE))
    assert len(host.of(Reply)) == 1
