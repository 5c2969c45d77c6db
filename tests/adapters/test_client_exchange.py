"""One connection of a client, without I/O: requests to bytes, and bytes to facts (HTTP)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import h11
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_tasks_adapters.http_exchange import (
    Fact,
    HttpAddress,
    HttpExchange,
    RequestWriter,
    check_headers,
    retry_after_ms,
)

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.legacy.messages import SendLegacy
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import (
    HttpReply,
    NotificationReceived,
    RequestFailed,
    ResponseReceived,
    SendRequest,
)
from mcp_tasks_proto.wire.http import HeaderParameter, decode_header_value
from mcp_tasks_proto.wire.jsonrpc import request_message

ADDRESS = HttpAddress.parse("http://example.com:8080/mcp?x=1")
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "ü"}}
NOW_MS = 1_700_000_000_000


def request(method: str = "server/discover", number: int = 1, /, **params: Any) -> SendRequest:
    return SendRequest(request=number, message=request_message(number, method, {**params, "_meta": META}))


def exchange(limits: Limits | None = None) -> HttpExchange:
    """Return a connection on which a request has been sent."""
    begun = HttpExchange(RequestWriter(ADDRESS), limits or Limits())
    begun.begin(request())
    return begun


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def message(value: Any) -> bytes:
    return response(json.dumps(value).encode(), "Content-Type: application/json")


def stream(*values: Any) -> bytes:
    events = b"".join(
        b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n" for value in values
    )
    return response(events, "Content-Type: text/event-stream")


@pytest.mark.parametrize(
    "header", [("Authorization", "Bearer s3cret\r\nX: 1"), ("X s3cret", "1"), ("X", "s3cret ü€")]
)
def test_sec2_a_header_that_cannot_be_sent_is_not_told(header: tuple[str, str]) -> None:
    with pytest.raises(LocalProtocolError) as refused:
        HttpExchange(RequestWriter(ADDRESS), Limits()).begin(request(), [header])
    assert "header" in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


# -- requests ------------------------------------------------------------------------------------------------


def test_a_request_is_a_post_with_its_headers_and_its_length() -> None:
    data = HttpExchange(RequestWriter(ADDRESS), Limits()).begin(request("prompts/get", 7, name="t"))
    head, _, body = data.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    assert line == "POST /mcp?x=1 HTTP/1.1"
    assert sorted(name.partition(":")[0].lower() for name in headers) == [
        "accept",
        "content-length",
        "content-type",
        "host",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "user-agent",
    ]
    assert "Host: example.com:8080" in headers
    assert json.loads(body)["id"] == 7


@pytest.mark.parametrize(
    "more", [[("Host", "x")], [("mcp-name", "x")], [("X", "a\nb")], [("X", "ü")], [("a b", "x")], [("X", 7)]]
)
def test_what_cannot_be_sent_changes_nothing(more: Any) -> None:
    one = HttpExchange(RequestWriter(ADDRESS), Limits())
    with pytest.raises(LocalProtocolError, match="headers"):
        one.begin(request(), more)
    assert one.begin(request(), [("Authorization", "Bearer x")])


def as_a_server_reads(data: bytes) -> tuple[dict[str, str], Any]:
    """Return the headers and the message of a request, read by h11."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(data)
    head, body, end = server.next_event(), server.next_event(), server.next_event()
    assert isinstance(head, h11.Request)
    assert isinstance(body, h11.Data)
    assert isinstance(end, h11.EndOfMessage)
    assert server.trailing_data == (b"", False)
    return {name.decode(): value.decode() for name, value in head.headers}, json.loads(body.data)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(deadline=None)
@given(sent=st.lists(st.tuples(st.sampled_from(["tools/call", "prompts/get"]), NAMES, NAMES), min_size=2))
def test_http2_each_request_of_a_writer_says_what_is_in_it(sent: list[tuple[str, str, str]]) -> None:
    writer = RequestWriter(ADDRESS)
    region = HeaderParameter(header="Mcp-Param-Region", path=("region",), type="string")
    for number, (method, name, argument) in enumerate(sent):
        asked = request(method, number, name=name, arguments={"region": argument})
        headers, body = as_a_server_reads(writer.write(evolve(asked, parameters=(region,))))
        assert headers["mcp-method"] == method
        assert decode_header_value(headers["mcp-name"]) == name
        assert decode_header_value(headers["mcp-param-region"]) == argument
        assert body == asked.message


def test_headers_of_a_caller_are_those_of_its_request_alone() -> None:
    writer = RequestWriter(ADDRESS)
    for number in range(1000):
        more = [("Authorization", f"Bearer {number // 2}")]
        assert as_a_server_reads(writer.write(request(), more))[0]["authorization"] == more[0][1]
        assert "authorization" not in as_a_server_reads(writer.write(request()))[0]


def test_leg2_each_request_of_a_writer_says_its_own_session_and_place() -> None:
    writer = RequestWriter(ADDRESS)
    sent = SendLegacy(request=1, message=request_message(1, "tools/list", {}), version="2025-11-25")
    for session in (None, "s-1", "s-2"):
        for last_event_id in ("e1", None):
            data = writer.write(evolve(sent, session=session, last_event_id=last_event_id))
            headers, _ = as_a_server_reads(data)
            assert headers.get("mcp-session-id") == session
            assert headers.get("last-event-id") == last_event_id


def test_a_method_that_is_no_header_value_cannot_be_sent() -> None:
    with pytest.raises(LocalProtocolError, match="method"):
        HttpExchange(RequestWriter(ADDRESS), Limits()).begin(request("x\ny"))


def test_headers_that_the_protocol_sets_are_not_a_callers() -> None:
    check_headers([("Authorization", "x"), ("Cookie", "x"), ("X-Mcp", "x"), ("User-Agent", "x")])
    for name in ("ACCEPT", "Content-Type", "MCP-Protocol-Version", "Mcp-Param-X", "Transfer-Encoding"):
        with pytest.raises(ValueError, match=name):
            check_headers([(name, "x")])


# -- responses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_borders_of_chunks_mean_nothing(size: int) -> None:
    data = stream(NOTE, {"jsonrpc": "2.0", "id": 5, "method": "ping"}, NOTE, RESULT, NOTE)
    one, facts = exchange(), []
    for at in range(0, len(data), size):
        facts += one.receive(data[at : at + size], NOW_MS)
    assert [type(fact) for fact in facts] == [NotificationReceived, NotificationReceived, ResponseReceived]
    assert facts[0] == NotificationReceived(1, NOTE)
    assert facts[2] == ResponseReceived(request=1, message=RESULT, http=HttpReply(status=200))
    assert one.over
    assert one.reusable


def test_one_request_after_the_other() -> None:
    one = exchange()
    for number in range(2, 5):
        assert one.receive(message(RESULT), NOW_MS)[0].request == number - 1
        assert one.reusable
        one.begin(request("server/discover", number))
        assert not one.over
        assert one.silent


@pytest.mark.parametrize(
    "data",
    [
        message(RESULT) + b"x",
        response(b"", "Connection: close"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 100000\r\n\r\n" + b"x" * 70_000,
    ],
)
def test_after_these_there_is_no_next_request(data: bytes) -> None:
    one = exchange()
    [fact] = one.receive(data, NOW_MS)
    assert isinstance(fact, ResponseReceived)
    assert one.over
    assert not one.reusable


def test_a_response_on_a_stream_is_the_last_that_counts_though_the_stream_goes_on() -> None:
    one = exchange()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    event = b"data: " + json.dumps(RESULT).encode() + b"\n\n"
    facts = one.receive(head + b"%x\r\n%s\r\n" % (len(event), event), NOW_MS)
    assert [type(fact) for fact in facts] == [ResponseReceived]
    assert one.over
    assert not one.reusable
    assert one.receive(b"0\r\n\r\n", NOW_MS) == []
    assert one.reusable


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (message(RESULT), RESULT),
        (response(json.dumps(RESULT).encode(), "content-type: Application/JSON; charset=utf-8"), RESULT),
        (response(b"{nonsense", "Content-Type: application/json"), None),
        (response(b"[NaN]", "Content-Type: application/json"), None),
        (response(json.dumps(RESULT).encode(), "Content-Type: text/plain"), None),
        (response(b""), None),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", None),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", None),
    ],
)
def test_a_body_is_a_message_or_none(data: bytes, body: Any) -> None:
    [fact] = exchange().receive(data, NOW_MS)
    assert isinstance(fact, ResponseReceived)
    assert fact.message == body
    assert fact.http is not None
    assert 200 <= fact.http.status < 300


def test_an_error_that_streams_is_no_stream() -> None:
    data = stream(RESULT).replace(b"200 OK", b"500 Oops")
    [fact] = exchange().receive(data, NOW_MS)
    assert isinstance(fact, ResponseReceived)
    assert (fact.message, fact.http and fact.http.status) == (None, 500)


@pytest.mark.parametrize(
    ("chunks", "says"),
    [
        ([b""], "without an answer"),
        ([b"HTTP/1.1 2", b""], "in the middle"),
        ([message(RESULT)[:-1], b""], "in the middle"),
        ([stream(NOTE)], "without a response"),
        ([b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {", b""], "without a response"),
        ([b"hello\r\n\r\n"], "not well-formed"),
        ([b"HTTP/1.1 2000 OK\r\n\r\n"], "not well-formed"),
        ([response(b"data: [\n\n", "Content-Type: text/event-stream")], "cannot be read"),
        ([response(b"data: \xff\n\n", "Content-Type: text/event-stream")], "cannot be read"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx"], "not well-formed"),
    ],
)
def test_what_breaks_an_answer(chunks: list[bytes], says: str) -> None:
    one, facts = exchange(), list[Fact]()
    for chunk in chunks:
        facts += one.receive(chunk, NOW_MS)
    failed = facts[-1]
    assert isinstance(failed, RequestFailed)
    assert says in failed.reason
    assert failed.sent
    assert one.over


def test_silence_is_told_from_a_broken_answer() -> None:
    one = exchange()
    assert one.silent
    one.receive(b"HTTP", NOW_MS)
    assert not one.silent


def test_limits() -> None:
    small = Limits(message_bytes=100, header_bytes=1000, message_depth=3)
    for data, limit in [
        (message("x" * 200), "message_bytes"),
        (stream("x" * 200), "message_bytes"),
        (stream([[[[1]]]]), "message_depth"),
    ]:
        [fact] = exchange(small).receive(data, NOW_MS)
        assert isinstance(fact, RequestFailed)
        assert f"Limits.{limit}" in fact.reason
    [fact] = exchange(small).receive(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5000, NOW_MS)
    assert isinstance(fact, RequestFailed)


def test_an_event_over_the_limit_is_told_at_once_though_another_came_before_it() -> None:
    one = exchange(Limits(message_bytes=100))
    note, fact = one.receive(stream(NOTE, "x" * 200), NOW_MS)
    assert isinstance(note, NotificationReceived)
    assert isinstance(fact, RequestFailed)
    assert "Limits.message_bytes" in fact.reason


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("0", 0),
        ("120", 120_000),
        ("999999999", 999_999_999_000),
        ("Tue, 14 Nov 2023 22:13:30 GMT", 10_000),
        ("Tuesday, 14-Nov-23 22:13:30 GMT", 10_000),
        ("Tue, 14 Nov 2023 22:13:10 GMT", 0),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
        ("9" * 5000, None),
        ("Tue, 99 Nov 2023 22:13:10 GMT", None),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
    ],
)
def test_retry_after(value: str, milliseconds: int | None) -> None:
    assert retry_after_ms(value, NOW_MS) == milliseconds


def test_retry_after_is_part_of_the_answer() -> None:
    [fact] = exchange().receive(response(b"", "Retry-After: 7", status="503 Busy"), NOW_MS)
    assert isinstance(fact, ResponseReceived)
    assert (fact.http and fact.http.retry_after_ms) == 7000


# -- addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://h", {"host": "h", "port": 80, "secure": False, "authority": "h", "target": "/"}),
        ("https://H.example/a/b", {"host": "h.example", "port": 443, "secure": True, "target": "/a/b"}),
        (
            "http://[::1]:81/?q=%20#f",
            {"host": "::1", "port": 81, "authority": "[::1]:81", "target": "/?q=%20"},
        ),
    ],
)
def test_addresses(url: str, parts: Mapping[str, Any]) -> None:
    address = HttpAddress.parse(url)
    assert {name: getattr(address, name) for name in parts} == parts
