"""2025-11-25 as a server has it: sessions, methods, both eras side by side (LEG.1, LEG.2, LEG.9)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CallFailed,
    CallReturned,
    ErrorObject,
    ExchangeClosed,
    Forward,
    HttpHead,
    Limits,
    LocalProtocolError,
    MessageReceived,
    Reply,
    ShutdownStarted,
    StartTool,
    StopCall,
    ToolDeclaration,
    ToolsChanged,
)
from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.testing import request
from mcp_tasks_proto.timers import LAST_MS
from tests.unit.legacy_world import OTHER_SESSION, LegacyClient, call, created, make_dual, opened, started
from tests.unit.world import (
    ACCEPTED,
    DONE,
    OTHER,
    START,
    TASK,
    cancel,
    error,
    form,
    head,
    listen,
    result,
    view,
    working,
)

SERVED: Final[dict[str, Any]] = {"cancel": {}, "requests": {"tools": {"call": {}}}}


# -- initialize ------------------------------------------------------------------------------------------


def test_leg2_initialize_answers_with_the_session_and_what_is_served() -> None:
    host = make_dual(
        instructions="Be kind.",
        info={"title": "Test"},
        capabilities={"prompts": {}, "logging": {}, "extensions": {"example.org/x": {}}},
    )
    client = LegacyClient(host)
    assert client.initialize() == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "tasks": SERVED},
        "serverInfo": {"name": "test", "version": "1", "title": "Test"},
        "instructions": "Be kind.",
    }
    assert host.of(Reply)[-1].session == client.session


def test_leg2_tasks_can_be_listed_only_where_callers_can_be_told_apart() -> None:
    named = LegacyClient(make_dual(), principal="ann").initialize()
    nameless = LegacyClient(make_dual()).initialize()
    assert named["capabilities"]["tasks"] == {"list": {}, **SERVED}
    assert nameless["capabilities"]["tasks"] == SERVED


def test_leg1_under_ignore_a_client_sees_no_tasks() -> None:
    client = LegacyClient(make_dual(policy=LegacyPolicy.IGNORE), principal="ann")
    assert client.initialize()["capabilities"] == {"tools": {"listChanged": True}}


def test_neg7_where_tasks_are_off_a_client_sees_none() -> None:
    client = LegacyClient(make_dual(), tasks_enabled=False)
    assert client.initialize()["capabilities"] == {"tools": {"listChanged": True}}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2026-07-28", "2099-01-01", ""])
def test_leg2_whatever_version_is_asked_for_the_one_that_is_served_is_answered(version: str) -> None:
    """The client that cannot speak it disconnects."""
    assert LegacyClient(make_dual()).initialize(protocolVersion=version)["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    "params",
    [{"protocolVersion": 1}, {"protocolVersion": None}, {"capabilities": []}, {"capabilities": None}],
    ids=str,
)
def test_leg2_an_initialize_without_what_it_needs_is_refused(params: dict[str, Any]) -> None:
    client = LegacyClient(make_dual())
    wanted = {"protocolVersion": "2025-11-25", "capabilities": {}, **params}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": wanted}
    exchange = client.send(message, new_session=client.session)
    assert client.error(exchange)["code"] == -32602
    assert client.reply(exchange).http_status == 400


def test_leg2_a_host_must_bring_an_id_for_a_session_over_http() -> None:
    host = make_dual()
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "x"}}
    with pytest.raises(LocalProtocolError, match="new_session"):
        host.send(message, http=HttpHead(headers={}))


def test_leg2_initialize_on_stdio_opens_no_session_id() -> None:
    host = make_dual()
    client = LegacyClient(host, connection="stdio")
    client.initialize()
    assert host.of(Reply)[-1].session is None
    assert client.ask("ping") == {}


def test_leg2_a_second_initialize_begins_anew() -> None:
    client = opened(make_dual(), connection="stdio")
    waiting = call(client)
    inner = started(client.host).exchange
    client.initialize()
    assert "session ended" in client.error(waiting)["message"]
    assert StopCall(inner) in client.host.effects
    assert client.ask("ping") == {}


def test_leg2_an_answer_to_the_session_before_answers_nothing_of_the_new_one() -> None:
    client = opened(make_dual(), connection="stdio")
    asked = []
    for _ in range(2):
        client.initialize()
        exchange = call(client)
        client.host.give(CallAskedInput(started(client.host).exchange, {"name": form()}))
        asked.append(client.questions(exchange)[-1])
    client.respond(asked[0], ACCEPTED)
    assert started(client.host).answers == {}
    client.respond(asked[1], ACCEPTED)
    assert started(client.host).answers == {"name": ACCEPTED}


# -- who may do what -------------------------------------------------------------------------------------


def test_leg2_a_request_without_a_session_is_told_what_to_do() -> None:
    client = LegacyClient(make_dual())
    exchange = client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}, mcp_session_id=None)
    assert client.reply(exchange).http_status == 400
    assert "initialize" in client.error(exchange)["message"]


def test_leg2_a_session_that_is_named_twice_is_none() -> None:
    client = opened(make_dual())
    http = HttpHead(headers={"mcp-session-id": client.session}, repeated=frozenset({"mcp-session-id"}))
    exchange = client.host.send({"jsonrpc": "2.0", "id": 7, "method": "ping"}, http=http)
    assert error(client.host.reply_to(exchange))["code"] == -32600


def test_leg2_an_unknown_session_is_404() -> None:
    client = LegacyClient(make_dual())
    for message in ({"jsonrpc": "2.0", "id": 7, "method": "ping"}, {"jsonrpc": "2.0", "method": "x"}, 7):
        assert client.reply(client.send(message)).http_status == 404


def test_sec1_another_principal_does_not_find_the_session() -> None:
    ann = opened(make_dual(), principal="ann")
    bob = LegacyClient(ann.host, principal="bob")
    assert bob.reply(bob.request("ping")).http_status == 404
    assert bob.reply(bob.get()).http_status == 404
    assert bob.delete().http_status == 404
    assert ann.ask("ping") == {}


@pytest.mark.parametrize("version", ["2025-06-18", "2024-11-05", "nonsense"])
def test_leg2_requests_of_another_revision_are_refused_naming_what_is_served(version: str) -> None:
    client = opened(make_dual())
    message = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    for exchange in (
        client.send(message, mcp_protocol_version=version),
        client.get(mcp_protocol_version=version),
    ):
        assert client.reply(exchange).http_status == 400
        assert client.error(exchange)["data"] == {"supported": ["2026-07-28", "2025-11-25"]}
        assert "this server speaks 2026-07-28, 2025-11-25" in client.error(exchange)["message"]


def test_leg2_a_session_says_its_version_itself() -> None:
    client = opened(make_dual(), headers={})
    assert client.ask("ping") == {}


def test_leg2_delete_ends_the_session() -> None:
    """What asks for something and has no answer may be sent again in the next: with 404 clients do so. A call
    may have been carried out."""
    client = opened(make_dual())
    created(client)
    waiting, asking = call(client), client.request("tasks/result", {"taskId": TASK})
    inner = started(client.host).exchange
    ended = client.delete()
    assert (ended.message, ended.http_status) == (None, 200)
    assert StopCall(inner) in client.host.effects
    assert client.error(waiting)["code"] == -32603, "nothing was wrong with it"
    assert "may have been carried out" in client.error(waiting)["message"]
    assert client.reply(waiting).http_status == 200
    assert client.error(asking)["code"] == -32600
    assert "session ended" in client.error(asking)["message"]
    assert client.reply(asking).http_status == 404
    assert client.reply(client.request("ping")).http_status == 404
    again = client.delete()
    assert again.http_status == 404
    assert again.message is not None
    assert "there is no such session" in again.message["error"]["message"]


def test_leg2_a_session_of_stdio_is_none_over_http() -> None:
    """Whatever a client writes in its header, and the host calls its connections."""
    on_stdio = opened(make_dual(), connection="stdio")
    over_http = LegacyClient(on_stdio.host, session="stdio")
    exchanges = over_http.request("ping"), over_http.get(), over_http.get(last_event_id="1-0")
    assert [over_http.reply(exchange).http_status for exchange in exchanges] == [404, 404, 404]
    assert over_http.delete().http_status == 404
    assert on_stdio.ask("ping") == {}


def test_leg2_tasks_outlive_their_session() -> None:
    client = opened(make_dual())
    created(client)
    client.delete()
    again = opened(client.host, session=OTHER_SESSION)
    assert again.ask("tasks/get", {"taskId": TASK})["status"] == "working"


def test_leg2_a_connection_ends_its_session() -> None:
    client = opened(make_dual(), connection="stdio")
    waiting = call(client)
    client.host.give(ExchangeClosed(waiting))
    assert client.host.of(StopCall)[-1].exchange == started(client.host).exchange
    client.hang_up()
    client.hang_up()
    assert client.error(client.request("ping"))["code"] == -32602


def test_leg2_an_idle_session_ends() -> None:
    client = opened(make_dual(Limits(session_idle_ms=1000)))
    client.host.advance(900)
    assert client.ask("ping") == {}
    client.host.advance(999)
    assert client.ask("ping") == {}
    client.host.advance(1000)
    assert client.reply(client.request("ping")).http_status == 404


def test_leg2_a_session_with_an_open_stream_is_not_idle() -> None:
    client = opened(make_dual(Limits(session_idle_ms=1000)))
    stream = client.get()
    client.host.advance(5000)
    assert client.ask("ping") == {}
    client.host.give(ExchangeClosed(stream))
    exchange = call(client)
    client.host.advance(5000)
    assert client.ask("ping") == {}
    client.host.give(ExchangeClosed(exchange))
    client.host.advance(2000)
    assert client.reply(client.request("ping")).http_status == 404


@pytest.mark.parametrize("place", [None, "1-0"], ids=["its own", "one that is over"])
def test_leg2_a_session_that_asks_for_a_stream_is_not_idle(place: str | None) -> None:
    client = opened(make_dual(Limits(session_idle_ms=1000)))
    client.host.advance(900)
    client.host.give(ExchangeClosed(client.get(last_event_id=place)))
    client.host.advance(999)
    assert client.ask("ping") == {}


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(sessions=2), "sessions"),
        (Limits(sessions_per_principal=1), "sessions_per_principal"),
    ],
    ids=["sessions", "sessions_per_principal"],
)
def test_lim3_sessions_are_bounded(limits: Limits, reason: str) -> None:
    host = make_dual(limits)
    first = opened(host, session="one")
    opened(host, session="two", principal="ann")
    third = LegacyClient(host, session="three")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    exchange = third.send(message, new_session="three")
    assert third.reply(exchange).http_status == 503
    assert third.error(exchange)["data"] == {"reason": reason}
    first.delete()
    third.initialize()
    assert third.ask("ping") == {}


@pytest.mark.parametrize("principal", [None, "ann"])
def test_lim3_the_sessions_of_each_caller_are_counted(principal: str | None) -> None:
    host = make_dual(Limits(sessions_per_principal=2))
    first, _ = (opened(host, session=name, principal=principal) for name in ("one", "two"))
    first.delete()
    opened(host, session="three", principal=principal)
    fourth = LegacyClient(host, session="four", principal=principal)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    exchange = fourth.send(message, new_session="four")
    assert fourth.error(exchange)["data"] == {"reason": "sessions_per_principal"}
    opened(host, session="five", principal="bob")


def test_lim3_requests_of_all_sessions_are_counted() -> None:
    host = make_dual(Limits(exchanges=3))
    client = opened(host)
    for _ in range(3):
        call(client)
    client.notify("notifications/cancelled", {"requestId": "r1"})
    assert client.ask("ping") == {}
    call(client)
    refused = client.request("ping")
    assert client.error(refused)["data"] == {"reason": "exchanges"}
    assert client.reply(refused).http_status == 200


def test_lim3_requests_of_all_sessions_are_bounded() -> None:
    host = make_dual(Limits(exchanges=2))
    client, other = opened(host), opened(host, session=OTHER_SESSION)
    first, _ = call(client), call(other)
    assert other.refused("ping")["data"] == {"reason": "exchanges"}
    client.notify("notifications/cancelled", {"requestId": "r1"})
    assert StopCall(first) in host.effects
    assert other.ask("ping") == {}


def test_a_stopping_server_opens_no_session_and_ends_what_waits() -> None:
    client = opened(make_dual())
    stream = client.get()
    client.host.give(ShutdownStarted())
    assert client.reply(stream).message is None
    again = LegacyClient(client.host, session=OTHER_SESSION)
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    exchange = again.send({**message, "params": params}, new_session=OTHER_SESSION)
    assert again.error(exchange)["data"] == {"reason": "shutting_down"}
    refused = client.get()
    assert client.error(refused)["data"] == {"reason": "shutting_down"}
    assert client.reply(refused).http_status == 503


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "tasks/get", "tasks/cancel", "tasks/result"])
def test_a_stopping_server_takes_no_more_requests(method: str) -> None:
    client = opened(make_dual())
    created(client)
    client.host.give(ShutdownStarted())
    exchange = client.request(method, {"name": "optional", "taskId": TASK})
    assert client.error(exchange)["data"] == {"reason": "shutting_down"}
    assert client.reply(exchange).http_status == 503


# -- messages of a session -------------------------------------------------------------------------------


def test_wire1_malformed_messages_of_a_session_are_refused() -> None:
    client = opened(make_dual())
    messages: list[Any] = [[], 7, {"jsonrpc": "1.0", "id": 3}, {"jsonrpc": "2.0", "method": 3, "id": 3}]
    for message in messages:
        exchange = client.send(message)
        assert client.error(exchange)["code"] == -32600
        assert client.reply(exchange).http_status == 400


def test_wire3_an_id_in_flight_is_not_taken_twice() -> None:
    client = opened(make_dual())
    first = client.request("tools/call", {"name": "optional"}, id=5)
    second = client.request("ping", id=5)
    assert client.error(second)["code"] == -32600
    assert client.reply(second).http_status == 200
    assert not client.replies(first)
    assert client.result(client.request("ping", id="5")) == {}


def test_notifications_and_responses_are_accepted() -> None:
    client = opened(make_dual())
    for exchange in (
        client.notify("notifications/progress"),
        client.notify("notifications/initialized"),
        client.notify("notifications/cancelled", {"requestId": "nothing"}),
        client.notify("notifications/cancelled", {"requestId": True}),
        client.respond({"id": 99}, {"action": "accept"}),
        client.respond({"id": "x"}, error={"code": 1, "message": "no"}),
    ):
        assert (client.reply(exchange).message, client.reply(exchange).http_status) == (None, 202)


def test_an_open_exchange_is_not_opened_again() -> None:
    client = opened(make_dual())
    exchange = call(client)
    message = {"jsonrpc": "2.0", "id": 8, "method": "ping"}
    with pytest.raises(LocalProtocolError, match="open already"):
        client.host.give(MessageReceived(exchange=exchange, message=message, http=client.head()))


@pytest.mark.parametrize("now", [0, LAST_MS])
def test_wire_a_session_may_be_open_at_any_time(now: int) -> None:
    received = MessageReceived(exchange="first", message={"jsonrpc": "2.0"}, connection="stdio")
    (reply,) = make_dual().engine.handle(received, now=now).effects
    assert isinstance(reply, Reply)


def test_the_next_deadline_is_said_whoever_was_heard_last() -> None:
    host = make_dual(Limits(session_idle_ms=300, cancel_grace_ms=500))
    working(host)
    cancel(host)
    assert host.deadline == START + 500
    client = opened(host)
    assert host.deadline == START + 300
    host.ask("server/discover")
    assert host.deadline == START + 300
    client.delete()
    assert host.deadline == START + 500


@pytest.mark.parametrize("now", [-1, 10**15])
def test_the_host_says_a_time_that_can_be(now: int) -> None:
    host = make_dual()
    with pytest.raises(LocalProtocolError, match="milliseconds"):
        host.engine.handle(ShutdownStarted(), now=now)


def test_the_host_says_what_can_be() -> None:
    host = make_dual()
    with pytest.raises(LocalProtocolError):
        host.give(object())  # type: ignore[arg-type]
    client = opened(host)
    call(client)
    with pytest.raises(LocalProtocolError):
        host.give(object())  # type: ignore[arg-type]
    assert client.ask("ping") == {}


# -- methods ---------------------------------------------------------------------------------------------


def test_leg3_tools_say_whether_they_may_become_tasks() -> None:
    listed = opened(make_dual()).ask("tools/list")
    assert listed == {
        "tools": [
            {
                "name": support,
                "inputSchema": {"type": "object"},
                "execution": {"taskSupport": support},
            }
            for support in ("optional", "required", "forbidden")
        ]
    }


@pytest.mark.parametrize("facts", [{"policy": LegacyPolicy.IGNORE}, {}], ids=["ignore", "off"])
def test_leg1_tools_say_nothing_of_tasks_that_are_not_served(facts: dict[str, Any]) -> None:
    client = opened(make_dual(**facts), tasks_enabled=not facts)
    client.tasks_enabled = bool(facts)
    assert all("execution" not in tool for tool in client.ask("tools/list")["tools"])


def test_tools_are_listed_in_pages() -> None:
    client = opened(make_dual(page_size=2))
    first = client.ask("tools/list")
    second = client.ask("tools/list", {"cursor": first["nextCursor"]})
    assert [tool["name"] for tool in first["tools"] + second["tools"]] == [
        "optional",
        "required",
        "forbidden",
    ]
    assert "nextCursor" not in second
    assert client.refused("tools/list", {"cursor": "nothing"})["code"] == -32602


def test_tools_that_changed_are_listed_as_they_are_now() -> None:
    client = opened(make_dual())
    tool = ToolDeclaration(name="new", definition={"name": "new", "execution": {"x": 1}, "inputSchema": {}})
    client.host.give(ToolsChanged([tool]))
    (listed,) = client.ask("tools/list")["tools"]
    assert listed["execution"] == {"x": 1, "taskSupport": "optional"}
    assert client.refused("tools/call", {"name": "optional"})["code"] == -32602


@pytest.mark.parametrize(
    "method", ["logging/setLevel", "server/discover", "subscriptions/listen", "tasks/update", "x/y"]
)
def test_what_is_not_of_this_era_is_unknown(method: str) -> None:
    exchange = (client := opened(make_dual())).request(method)
    assert client.error(exchange)["code"] == -32601
    assert client.error(exchange)["message"].endswith(method)
    assert client.reply(exchange).http_status == 200


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"])
@pytest.mark.parametrize("facts", [{"policy": LegacyPolicy.IGNORE}, {}], ids=["ignore", "off"])
def test_leg1_tasks_that_are_not_served_are_unknown(method: str, facts: dict[str, Any]) -> None:
    client = opened(make_dual(**facts), principal="ann")
    client.tasks_enabled = bool(facts)
    assert client.refused(method, {"taskId": TASK})["code"] == -32601


def test_leg2_tasks_are_not_listed_to_nobody() -> None:
    assert opened(make_dual()).refused("tasks/list")["code"] == -32601


def test_wire5_methods_of_the_host_are_forwarded() -> None:
    client = opened(make_dual(methods=frozenset({"prompts/list"})))
    exchange = client.request("prompts/list", {"cursor": "x"})
    (forward,) = client.host.of(Forward)
    assert forward.params["cursor"] == "x"
    client.host.give(CallReturned(forward.exchange, {"prompts": []}))
    assert client.result(exchange) == {"prompts": []}


# -- both eras at once -----------------------------------------------------------------------------------


def test_leg9_modern_messages_are_served_as_ever_on_the_same_endpoint() -> None:
    host = make_dual()
    opened(host)
    message = request("server/discover")
    exchange = host.send(message, http=head(message, mcp_session_id="nonsense"))
    discovered = result(host.reply_to(exchange))
    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert "tasks" not in discovered["capabilities"]
    working(host)
    assert view(host)["status"] == "working"


def test_leg9_a_modern_initialize_is_unknown() -> None:
    host = make_dual()
    refused = error(host.ask("initialize", {"protocolVersion": "2026-07-28"}))
    assert refused["code"] == -32601


def test_leg9_a_message_of_no_era_is_told_what_a_modern_one_has() -> None:
    host = make_dual()
    for connection, http in ((None, HttpHead(headers={})), ("stdio", None), (None, None)):
        exchange = host.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, connection=connection, http=http)
        assert "_meta" in error(host.reply_to(exchange))["message"]


def test_leg9_who_names_the_modern_version_is_held_to_it() -> None:
    client = opened(make_dual())
    exchange = client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_protocol_version="2026-07-28")
    assert client.error(exchange)["code"] == -32602


def test_leg9_both_eras_on_one_connection() -> None:
    host = make_dual()
    client = opened(host, connection="stdio")
    exchange = host.send(request("tools/call", {"name": "optional"}, id="modern"), connection="stdio")
    assert client.ask("ping") == {}
    client.notify("notifications/cancelled", {"requestId": "modern"})
    assert StopCall(exchange) in host.effects


def test_leg9_a_modern_client_on_stdio_needs_no_session() -> None:
    assert "tools" in result(make_dual().ask("tools/list", connection="stdio"))


@pytest.mark.parametrize("principal", [None, "ann"])
def test_wire3_an_id_in_flight_is_taken_in_both_eras(principal: str | None) -> None:
    client = opened(make_dual(), connection="stdio", principal=principal)
    legacy = call(client)
    modern = client.send(request("tools/call", {"name": "optional", "arguments": {"frames": 3}}, id=9))
    for taken in (request("tools/list", id="r1"), {"jsonrpc": "2.0", "id": 9, "method": "ping"}):
        assert client.error(client.send(taken))["code"] == -32600
    again = {"protocolVersion": "2025-11-25", "capabilities": {}}
    for taken_id in (9, "r1"):
        refused = {"jsonrpc": "2.0", "id": taken_id, "method": "initialize", "params": again}
        exchange = client.send(refused)
        assert client.error(exchange)["code"] == -32600
        assert client.reply(exchange).http_status == 200
    for start in client.host.of(StartTool):
        client.host.give(CallReturned(start.exchange, DONE))
    assert client.result(legacy) == DONE
    assert client.result(modern)["resultType"] == "complete"
    assert "tools" in client.result(client.send(request("tools/list", id="r1")))


def test_leg9_a_task_is_the_same_in_both_eras() -> None:
    host = make_dual()
    client = opened(host)
    waiting = call(client)
    created(client)
    assert view(host)["status"] == "working"
    assert working(host, OTHER)["taskId"] == OTHER
    assert client.replies(waiting) == []
    assert view(host)["ttlMs"] == client.ask("tasks/get", {"taskId": TASK})["ttl"]
    stream = listen(host, TASK)
    assert [one["method"] for one in host.sent_on(stream)] == ["notifications/subscriptions/acknowledged"]


def test_leg9_a_task_is_of_the_node_that_runs_it() -> None:
    host = make_dual(node="node-1")
    created(opened(host))
    assert host.store.records[TASK].node == "node-1"


def test_leg1_the_extension_declared_under_2025_11_25_counts_for_nothing() -> None:
    extensions: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}, "example.org/x": {}}
    client = opened(make_dual(), capabilities={"extensions": extensions, "tasks": {"list": {}}})
    call(client)
    start = started(client.host)
    assert not start.can_create_task
    assert start.client_capabilities == {"extensions": {"example.org/x": {}}}


def test_neg5_a_legacy_caller_of_a_modern_engine_never_hears_its_words() -> None:
    client = opened(make_dual())
    exchange = call(client)
    client.host.give(CallReturned(started(client.host).exchange, {**DONE, "_meta": {"a": 1}}))
    assert client.result(exchange) == {**DONE, "_meta": {"a": 1}}
    exchange = call(client)
    client.host.give(CallFailed(started(client.host).exchange, ErrorObject(-1, "no", {"x": 1})))
    assert client.error(exchange) == {"code": -1, "message": "no", "data": {"x": 1}}
    assert client.reply(exchange).http_status == 200


def test_time_goes_on_whoever_is_heard() -> None:
    """A modern message tells the time to sessions as well; a clock that goes back does not."""
    host = make_dual(Limits(session_idle_ms=1000))
    client = opened(host)
    host.now += 999
    assert "result" in host.ask("server/discover")
    host.now -= 500
    assert client.ask("ping") == {}
    host.now += 1000
    host.advance(0)
    assert client.ask("ping") == {}
    host.advance(1000)
    assert client.reply(client.request("ping")).http_status == 404
