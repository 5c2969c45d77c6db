"""Clients and servers of 2025-11-25: what is on the wire, without I/O and on both loops (LEG.2)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_tasks_adapters.client import Completed, Failed, ObservationLost, TraceEntry, accept
from mcp_tasks_adapters.http_exchange import HttpAddress, HttpExchange, RequestWriter
from mcp_tasks_adapters.stdio_client import StdioDialogue

from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked, StreamOpened
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import HttpReply, NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.wire.jsonrpc import notification_message, request_message, result_message
from tests.adapters.client_harness import LOOPS, QUICK, Reply, ScriptedServer, one_after_the_other, run

ADDRESS: Final = HttpAddress.parse("http://example.com/mcp")
PEER: Final = Path(__file__).with_name("legacy_peer.py")
ASKS: Final = request_message("q", "elicitation/create", {"message": "?"})
PATIENCE_S: Final = 60.0


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# -- HTTP without I/O ------------------------------------------------------------------------------------


def begun(send: SendLegacy) -> tuple[HttpExchange, str, dict[str, str], bytes]:
    """Return a connection on which this was sent, and its request line, headers and body."""
    exchange = HttpExchange(RequestWriter(ADDRESS), Limits())
    head, _, body = exchange.begin(send).partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    return exchange, line, headers, body


def posted(message: dict[str, Any] | None = None) -> HttpExchange:
    """Return a connection on which a request was sent."""
    message = message or request_message(1, "tools/call", {})
    return begun(SendLegacy(request=1, message=message, version="2025-11-25", session="s"))[0]


def events(*parts: bytes) -> bytes:
    """Return the beginning of a response with these on its stream."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(parts)


def test_leg2_a_message_says_its_session_and_its_version_and_nothing_modern() -> None:
    message = request_message(1, "tools/call", {"name": "a"})
    _, line, headers, body = begun(
        SendLegacy(request=1, message=message, version="2025-11-25", session="s-1")
    )
    assert line == "POST /mcp HTTP/1.1"
    assert headers["mcp-protocol-version"] == "2025-11-25"
    assert headers["mcp-session-id"] == "s-1"
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["content-type"] == "application/json"
    assert not [name for name in headers if name in ("mcp-method", "mcp-name")]
    assert json.loads(body) == message


def test_leg2_the_greeting_has_neither() -> None:
    _, _, headers, _ = begun(SendLegacy(request=1, message=request_message(1, "initialize", {})))
    assert not [name for name in headers if name.startswith("mcp-")]


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_leg2_streams_and_farewells_have_no_body(verb: Any) -> None:
    _, line, headers, body = begun(
        SendLegacy(request=1, verb=verb, version="2025-11-25", session="s", last_event_id="e1")
    )
    assert line == f"{verb} /mcp HTTP/1.1"
    assert (headers["last-event-id"], headers["content-length"], body) == ("e1", "0", b"")
    assert "content-type" not in headers
    assert (headers["accept"] == "text/event-stream") is (verb == "GET")


def test_a_session_comes_with_the_reply() -> None:
    exchange = posted()
    body = json.dumps(result_message(1, {})).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-2\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    [fact] = exchange.receive(head.encode() + body, 0)
    assert isinstance(fact, ResponseReceived)
    assert fact.http == HttpReply(status=200, session="s-2")


def test_what_is_taken_has_no_body() -> None:
    exchange = posted(notification_message("notifications/initialized", {}))
    [fact] = exchange.receive(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 0)
    assert fact == ResponseReceived(request=1, message=None, http=HttpReply(status=202))


def test_leg8_requests_on_a_stream_are_passed_on_each_with_an_id_of_its_own() -> None:
    exchange = posted()
    event = b"data: " + json.dumps(ASKS).encode() + b"\n\n"
    facts: list[Any] = list(exchange.receive(events(event, event), 0))
    assert [(type(fact), fact.request, fact.message) for fact in facts] == [(ServerAsked, 1, ASKS)] * 2
    assert len({fact.new_id for fact in facts}) == 2
    assert all(len(fact.new_id) >= 22 for fact in facts)


def test_a_stream_that_breaks_off_says_where() -> None:
    exchange = posted()
    assert exchange.receive(events(b"id: e1\ndata: \n\n", b"retry: 250\nid: e2\ndata: \n\n"), 0) == []
    [fact] = exchange.receive(b"", 0)
    assert isinstance(fact, RequestFailed)
    assert (fact.last_event_id, fact.retry_ms) == ("e2", 250)


@pytest.mark.parametrize("pieces", [1, 2])
def test_nothing_counts_behind_an_event_that_cannot_be_read_however_it_was_cut(pieces: int) -> None:
    broken, behind = b"retry: 250\nid: e1\ndata: m\n\n", b"retry: 0\nid: e2\ndata: \n\n"
    exchange = posted()
    received = [events(broken + behind)] if pieces == 1 else [events(broken), behind]
    [fact] = [fact for piece in received for fact in exchange.receive(piece, 0)]
    assert isinstance(fact, RequestFailed)
    assert (fact.last_event_id, fact.retry_ms) == ("e1", 250)


def test_what_breaks_off_before_its_stream_knows_nothing_of_the_one_before() -> None:
    """There a connection was kept after a stream; what is asked on it next is no part of that."""
    exchange = posted()
    body = b"id: e1\ndata: \n\ndata: " + json.dumps(result_message(1, {})).encode() + b"\n\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    exchange.receive(head.encode() + body, 0)
    assert exchange.reusable
    exchange.begin(SendLegacy(request=2, message=request_message(2, "tools/call", {}), session="s"))
    [fact] = exchange.receive(b"", 0)
    assert isinstance(fact, RequestFailed)
    assert fact.last_event_id is None


@pytest.mark.parametrize(
    "came",
    [b"", events(), events(b"data: \n\n", b": alive\n\n")],
    ids=["nothing", "a head", "events without ids"],
)
def test_one_that_was_taken_up_breaks_off_where_it_was_taken_up_until_there_is_something_new(
    came: bytes,
) -> None:
    taken_up = SendLegacy(request=1, verb="GET", version="2025-11-25", session="s", last_event_id="e1")
    exchange = begun(taken_up)[0]
    facts = [fact for data in (came, b"") for fact in exchange.receive(data, 0)]
    assert [fact.last_event_id for fact in facts if isinstance(fact, RequestFailed)] == ["e1"]


def test_once_there_is_something_new_it_breaks_off_there() -> None:
    exchange = begun(SendLegacy(request=1, verb="GET", session="s", last_event_id="e1"))[0]
    exchange.receive(events(b"id: e2\ndata: \n\n"), 0)
    [fact] = exchange.receive(b"", 0)
    assert isinstance(fact, RequestFailed)
    assert fact.last_event_id == "e2"


def test_a_stream_that_was_asked_for_says_that_it_is_open() -> None:
    exchange = begun(SendLegacy(request=4, verb="GET", session="s"))[0]
    assert exchange.receive(events(), 0) == [StreamOpened(4)]


def test_one_without_ids_does_not() -> None:
    exchange = posted()
    exchange.receive(events(), 0)
    [fact] = exchange.receive(b"", 0)
    assert isinstance(fact, RequestFailed)
    assert fact.last_event_id is None


# -- stdio without I/O -----------------------------------------------------------------------------------


def test_what_is_owed_no_response_is_over_once_it_was_written() -> None:
    dialogue = StdioDialogue(Limits())
    dialogue.ask(SendLegacy(request=1, message=notification_message("notifications/initialized", {})))
    dialogue.ask(SendLegacy(request=2, message=result_message("q", {"action": "cancel"})))
    assert dialogue.sent() == []
    dialogue.take_output()
    assert dialogue.sent() == [ResponseReceived(request=1, message=None)]
    assert json.loads(dialogue.take_output())["id"] == "q"
    assert dialogue.sent() == [ResponseReceived(request=2, message=None)]
    assert not dialogue.has_output


def test_nobody_is_told_that_it_is_given_up() -> None:
    dialogue = StdioDialogue(Limits())
    dialogue.ask(SendLegacy(request=1, message=notification_message("notifications/initialized", {})))
    dialogue.take_output()
    assert dialogue.drop(1) is None
    assert not dialogue.has_output


def test_what_was_said_in_a_session_goes_with_its_process() -> None:
    dialogue = StdioDialogue(Limits())
    for name in (1, 2):
        dialogue.ask(SendLegacy(request=name, message=request_message(name, "tasks/get", {})))
    dialogue.take_output()
    assert dialogue.lost("it ended") == [
        RequestFailed(1, "it ended", sent=True),
        RequestFailed(2, "it ended", sent=False),
    ]
    assert not dialogue.has_output


def test_a_request_of_the_server_s_is_passed_on() -> None:
    [fact] = StdioDialogue(Limits()).receive(json.dumps(ASKS).encode() + b"\n")
    assert isinstance(fact, ServerAsked)
    assert (fact.request, fact.message) == (0, ASKS)


def test_tools_that_change_are_everybody_s() -> None:
    note = notification_message("notifications/tools/list_changed", {})
    [fact] = StdioDialogue(Limits()).receive(json.dumps(note).encode() + b"\n")
    assert fact == NotificationReceived(0, note)


# -- on both loops -----------------------------------------------------------------------------------------


def words(outcome: Any) -> str:
    """Return the text of a result."""
    assert isinstance(outcome, Completed), outcome
    text: str = outcome.result["content"][0]["text"]
    return text


def test_on_stdio_the_same_calls_are_made_as_with_a_modern_server(loop: str) -> None:
    async def scenario(on: Any) -> None:
        entries: list[TraceEntry] = []
        async with on.connect_stdio(
            [sys.executable, str(PEER)],
            answer=lambda _: accept({"name": "Ada"}),
            on_trace=entries.append,
        ) as client:
            assert client.era is None
            call = await client.call_tool("greet")
            assert call.task_id == "t1"
            assert words(await call.settle(PATIENCE_S)) == "Hello, Ada!"
            assert client.era == "legacy"
            welcome = await client.call_tool("welcome")
            assert words(await welcome.settle(PATIENCE_S)) == "Welcome, Ada!"
        sent = [entry.message.get("method") for entry in entries if entry.event == "sent"]
        assert sent[:3] == ["server/discover", "initialize", "notifications/initialized"]

    run(loop, scenario)


def test_on_stdio_each_process_is_greeted(loop: str) -> None:
    async def scenario(on: Any) -> None:
        async with on.connect_stdio([sys.executable, str(PEER)], era="legacy", answer=naming) as client:
            dead = await (await client.call_tool("die")).settle(PATIENCE_S)
            assert isinstance(dead, ObservationLost)
            welcome = await client.call_tool("welcome")
            assert words(await welcome.settle(PATIENCE_S)) == "Welcome, Eve!"

    run(loop, scenario)


def naming(_: Any) -> Any:
    """Answer with a name."""
    return accept({"name": "Eve"})


def test_a_modern_client_of_a_legacy_server_fails_and_says_why(loop: str) -> None:
    async def scenario(on: Any) -> None:
        async with on.connect_stdio([sys.executable, str(PEER)], era="modern") as client:
            assert client.era == "modern"
            failed = await (await client.call_tool("greet")).settle(PATIENCE_S)
            assert isinstance(failed, Failed)
            assert failed.message.startswith("the server does not speak 2026-07-28")

    run(loop, scenario)


def legacy_over_http(asked: list[Mapping[str, str]], farewells: list[Mapping[str, str]]) -> ScriptedServer:
    """Return a server of one session that knows one tool."""

    def greeted(reply: Reply) -> None:
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        reply.json(reply.message(told), "Mcp-Session-Id: s-1")

    def listed(reply: Reply) -> None:
        if "mcp-session-id" not in reply.asked.headers:
            reply.http(status="400 Bad Request")
            return
        asked.append(reply.asked.headers)
        reply.json({"jsonrpc": "2.0", "id": reply.asked.message["id"], "result": {"tools": []}})

    def ended(reply: Reply) -> None:
        farewells.append(reply.asked.headers)
        reply.http()

    return ScriptedServer(
        {
            "initialize": greeted,
            "notifications/initialized": lambda reply: reply.http(status="202 Accepted"),
            "tools/list": listed,
            "DELETE": ended,
        }
    )


def test_a_stream_that_breaks_before_its_first_event_is_taken_up_once_more_where_it_was(loop: str) -> None:
    """The call is carried out once, and its result comes on the third stream that takes up its own."""
    server = legacy_over_http([], [])
    calls: list[Any] = []

    def called(reply: Reply) -> None:
        calls.append(reply.asked.message["id"])
        reply.stream().raw(b"id: e1\ndata: \n\n").close()

    def hung_up(reply: Reply) -> None:
        reply.close()

    def broken(reply: Reply) -> None:
        reply.stream().close()

    def finished(reply: Reply) -> None:
        result = {"content": [{"type": "text", "text": "done"}]}
        reply.stream().event(result_message(calls[0], result)).close()

    take_up = one_after_the_other(hung_up, broken, finished)

    def listening(reply: Reply) -> None:
        if "last-event-id" in reply.asked.headers:
            take_up(reply)
        else:
            reply.http(status="405 Method Not Allowed")

    server.scripts.update({"tools/call": called, "GET": listening})

    async def scenario(on: Any) -> None:
        with server:
            async with on.connect(server.url, era="legacy", requester_limits=QUICK) as client:
                call = await client.call_tool("t")
                assert words(await call.settle(PATIENCE_S)) == "done"

    run(loop, scenario)
    assert len(calls) == 1
    places = [asked.headers.get("last-event-id") for asked in server.all("GET")]
    assert places == [None, "e1", "e1", "e1"]


def test_nor_does_it_matter_that_nobody_listens_when_it_is_taken_up(loop: str) -> None:
    with legacy_over_http([], []) as server:
        url = server.url
    facts: list[Any] = []

    async def main(on: Any) -> None:
        async with on.connect(url) as client:
            taken_up = SendLegacy(request=1, verb="GET", session="s", last_event_id="e1")
            heard = on.event()

            def report(fact: Any) -> None:
                facts.append(fact)
                heard.set()

            client._driver._transport.send(taken_up, report)
            await heard.wait()

    run(loop, main)
    assert [(fact.sent, fact.last_event_id) for fact in facts] == [(False, "e1")]


def test_over_http_a_session_is_opened_where_a_modern_request_is_refused(loop: str) -> None:
    asked: list[Mapping[str, str]] = []
    farewells: list[Mapping[str, str]] = []
    server = legacy_over_http(asked, farewells)

    async def scenario(on: Any) -> None:
        with server:
            async with on.connect(server.url) as client:
                assert await client.list_tools() == []
                assert client.era == "legacy"

    run(loop, scenario)
    [headers] = asked
    assert headers["mcp-session-id"] == "s-1"
    assert headers["mcp-protocol-version"] == "2025-11-25"
    assert [headers["mcp-session-id"] for headers in farewells] == ["s-1"]
