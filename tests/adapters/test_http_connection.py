"""The connection without a loop: what it says to the driver, what it wants of the loop, and when."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import inf
from sys import getrefcount
from typing import Any, cast

import h11
import pytest
from attrs import define, evolve, field
from mcp_tasks_adapters.driver import Channel, Driver, RequestFacts
from mcp_tasks_adapters.http_connection import (
    LINGER_SECONDS,
    READ_BYTES,
    WRITE_BYTES,
    HttpConnection,
)
from mcp_tasks_adapters.http_endpoint import HttpEndpoint

from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import EndpointPolicy
from tests.adapters.http_harness import mcp_headers, message, post, raw

NOTIFICATION = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
REPLY = {"jsonrpc": "2.0", "id": 1, "result": {}}
LIMITS = Limits(
    idle_timeout_ms=1_000,
    header_timeout_ms=2_000,
    body_timeout_ms=3_000,
    write_timeout_ms=4_000,
    keep_alive_ms=5_000,
)


@define(eq=False)
class Recorder:
    """Stands where the driver does, remembers what it is told, and answers when the test says so."""

    asks_who_calls = True
    pages = None

    on_receive: Callable[[Channel], None] = lambda channel: None
    received: list[tuple[Any, RequestFacts, HttpHead]] = field(factory=list)
    channels: list[Channel] = field(factory=list)
    is_ready: list[int] = field(factory=list)
    is_closed: list[int] = field(factory=list)
    on_ready: Callable[[int], None] = lambda exchange: None
    _exchanges: Any = field(factory=lambda: count(1))

    def receive(self, value: Any, channel: Channel, *, facts: RequestFacts, http: HttpHead) -> int:
        self.received.append((value, facts, http))
        self.channels.append(channel)
        self.on_receive(channel)
        return cast(int, next(self._exchanges))

    def ready(self, exchange: int) -> None:
        self.is_ready.append(exchange)
        self.on_ready(exchange)

    def closed(self, exchange: int) -> None:
        self.is_closed.append(exchange)


@define(eq=False)
class Peer:
    """A connection, its driver, and the client's own h11."""

    limits: Limits = LIMITS
    now: float = 100.0
    driver: Recorder = field(factory=Recorder)
    announced: int = 0
    beside: Peer | None = None
    """Another one of the same server."""
    endpoint: HttpEndpoint = field(init=False)
    connection: HttpConnection = field(init=False)
    client: h11.Connection = field(init=False, factory=lambda: h11.Connection(h11.CLIENT))

    def __attrs_post_init__(self) -> None:
        self.endpoint = HttpEndpoint(
            driver=cast(Driver, self.driver),
            policy=EndpointPolicy(),
            limits=self.limits,
            now_ms=lambda: 1_000_000_000_000,
        )
        if self.beside is not None:
            self.endpoint, self.driver = self.beside.endpoint, self.beside.driver
        self.connection = HttpConnection(
            self.endpoint, peer="192.0.2.1", now=self.now, output_ready=self._announce
        )

    def _announce(self) -> None:
        self.announced += 1

    def send(self, data: bytes) -> None:
        self.connection.receive(data, self.now)

    def take(self) -> bytes:
        """Take the output, which is then on its way."""
        return self.connection.take_output(self.now)

    def deliver(self) -> bytes:
        """Let all output leave; return it."""
        out = b""
        while data := self.take():
            out += data
            self.connection.written(self.now)
        return out

    def pass_time(self) -> None:
        """Let the time come that the connection waits for."""
        self.now = self.connection.deadline
        self.connection.time_passed(self.now)

    def ask(self) -> Channel:
        """Send a request; return its channel."""
        self.send(post(message("server/discover")))
        return self.driver.channels[-1]


@pytest.fixture
def peer() -> Peer:
    return Peer()


# -- what the driver is told -----------------------------------------------------------------------------


def test_the_driver_is_told_who_asks_what(peer: Peer) -> None:
    body = message("server/discover")
    peer.send(post(body, ("X-Name", "J\xfcrgen"), ("X-Name", "again")))
    value, facts, head = peer.driver.received[0]
    assert value == body
    assert (facts.transport, facts.peer) == ("http", "192.0.2.1")
    assert facts.headers["x-name"] == "J\xfcrgen, again"
    assert "x-name" in head.repeated
    assert head.headers["mcp-method"] == "server/discover"


def test_an_equal_head_is_read_once_and_any_other_anew(peer: Peer) -> None:
    peer.driver.on_receive = lambda channel: channel.reply(REPLY, 200)
    usual = post(message("server/discover"))
    for data, answer in (
        (usual, b" 200 "),
        (usual, b" 200 "),
        (post(message("server/discover"), ("Origin", "https://elsewhere.example")), b" 403 "),
        (post(message("server/discover"), ("X-Name", "another")), b" 200 "),
        (usual.replace(b" /mcp ", b" /other "), b" 404 "),
        (usual, b" 200 "),
    ):
        peer.send(data)
        assert answer in peer.deliver()[:16]
    heads = [head for _, _, head in peer.driver.received]
    assert [head.headers.get("x-name") for head in heads] == [None, None, "another", None]
    assert heads[0] is heads[1]


@pytest.mark.parametrize(
    ("headers", "version", "stays"),
    [
        ((), "1.1", True),
        ((("Connection", "Keep-Alive"),), "1.1", True),
        ((("Connection", "keep-alive, close"),), "1.1", False),
        ((("Connection", "Upgrade"), ("Upgrade", "h2c")), "1.1", False),
        ((), "1.0", False),
    ],
)
def test_how_long_a_connection_lasts_has_nothing_to_do_with_how_a_request_is_cut(
    headers: tuple[tuple[str, str], ...], version: str, stays: bool
) -> None:
    request = post(message("server/discover"), *headers, version=version)
    seen = []
    for pieces in (
        [request * 2],
        [request[:-1], request[-1:] + request],
        [request[:9], request[9:], request],
    ):
        peer = Peer()
        peer.driver.on_receive = lambda channel: channel.reply(REPLY, 200)
        out = b""
        for piece in pieces:
            peer.send(piece)
            out += peer.deliver()
        seen.append((out, len(peer.driver.received)))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1] == (2 if stays else 1)
    assert (b"\r\nconnection: close\r\n" in seen[0][0]) is not stays


def test_a_reply_within_the_request_is_not_announced(peer: Peer) -> None:
    peer.driver.on_receive = lambda channel: channel.reply(REPLY, 200)
    peer.ask()
    assert peer.announced == 0
    assert peer.connection.has_output


def test_a_later_reply_is_announced(peer: Peer) -> None:
    channel = peer.ask()
    assert not peer.connection.has_output
    channel.reply(REPLY, 200)
    assert peer.announced == 1
    assert peer.deliver().startswith(b"HTTP/1.1 200 OK\r\ndate: Sun, 09 Sep 2001 01:46:40 GMT\r\n")


def test_the_driver_hears_that_a_notification_has_left_only_when_it_has(peer: Peer) -> None:
    """SUB.2 stands on it."""
    channel = peer.ask()
    channel.send(NOTIFICATION)
    assert peer.take()
    assert peer.driver.is_ready == []
    peer.connection.written(peer.now)
    assert peer.driver.is_ready == [1]
    peer.deliver()
    assert peer.driver.is_ready == [1]


def test_the_driver_hears_once_of_notifications_that_leave_together(peer: Peer) -> None:
    channel = peer.ask()
    channel.send(NOTIFICATION)
    first = peer.take()
    channel.send(NOTIFICATION)
    assert peer.take() == b""
    peer.connection.written(peer.now)
    assert peer.driver.is_ready == []
    assert first
    peer.deliver()
    assert peer.driver.is_ready == [1]


def test_notifications_that_were_sent_within_the_request_are_reported_too(peer: Peer) -> None:
    peer.driver.on_receive = lambda channel: channel.send(NOTIFICATION)
    peer.ask()
    peer.deliver()
    assert peer.driver.is_ready == [1]


def test_what_follows_when_the_driver_hears_it_leaves_as_well(peer: Peer) -> None:
    """However much there is, and without a call within a call."""
    channel = peer.ask()
    left = iter(range(5_000))

    def send_more(exchange: int) -> None:
        if next(left, None) is None:
            channel.reply(REPLY, 200)
        else:
            channel.send(NOTIFICATION)

    peer.driver.on_ready = send_more
    channel.send(NOTIFICATION)
    assert peer.deliver().count(b"data: ") == 5_002


def test_the_end_of_a_connection_ends_its_exchange_once(peer: Peer) -> None:
    peer.ask()
    peer.send(b"")
    assert peer.connection.closed
    peer.connection.lost()
    assert peer.driver.is_closed == [1]


def test_the_end_of_a_connection_between_requests_is_not_reported(peer: Peer) -> None:
    peer.ask().reply(REPLY, 200)
    peer.deliver()
    peer.connection.lost()
    assert peer.driver.is_closed == []


def test_a_client_that_has_gone_is_not_asked_about_its_next_request(peer: Peer) -> None:
    """Its first answer was on its way when it left; nobody will read a second one that takes time."""
    channel = peer.ask()
    peer.send(post(message("server/discover", id=2)))
    channel.reply(REPLY, 200)
    peer.send(b"")
    assert peer.deliver().count(b"HTTP/1.1 200") == 1
    assert peer.driver.is_closed == [2]
    assert peer.connection.closed


def test_what_comes_after_the_reply_is_dropped(peer: Peer) -> None:
    channel = peer.ask()
    channel.reply(REPLY, 200)
    channel.reply(REPLY, 200)
    channel.send(NOTIFICATION)
    assert peer.deliver().count(b"HTTP/1.1") == 1
    peer.ask()
    channel.reply(REPLY, 200)
    assert not peer.connection.has_output


def test_what_comes_after_the_client_has_gone_is_dropped(peer: Peer) -> None:
    channel = peer.ask()
    peer.connection.lost()
    channel.send(NOTIFICATION)
    channel.reply(REPLY, 200)
    assert not peer.connection.has_output


def test_status_and_headers_of_a_reply_are_passed_on(peer: Peer) -> None:
    peer.ask().reply(REPLY, 401, [("www-authenticate", "Bearer")])
    out = peer.deliver()
    assert out.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    assert b"\r\nwww-authenticate: Bearer\r\n" in out
    assert b"\r\ncontent-type: application/json\r\n" in out


def test_sec2_what_headers_say_is_not_kept(peer: Peer) -> None:
    session = "-".join(["session"] * 9)
    before = getrefcount(session)
    peer.ask().reply(REPLY, 200, [("mcp-session-id", session)])
    assert session.encode() in peer.deliver()
    assert getrefcount(session) == before


def test_a_reply_without_a_message_has_no_body(peer: Peer) -> None:
    peer.ask().reply(None, 403)
    out = peer.deliver()
    assert out.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"content-type" not in out
    assert out.endswith(b"content-length: 0\r\n\r\n")


def test_a_stream_may_end_without_a_message(peer: Peer) -> None:
    channel = peer.ask()
    channel.send(NOTIFICATION)
    channel.reply(None, 202)
    assert peer.deliver().endswith(b"\r\n0\r\n\r\n")


def test_the_time_of_a_comment_may_come_while_the_end_of_a_stream_is_written(peer: Peer) -> None:
    """Nothing follows a response but the next one: a client would take it for that."""
    channel = peer.ask()
    channel.send(NOTIFICATION)
    peer.deliver()
    assert peer.connection.deadline == peer.now + 5  # the comment's
    channel.reply({"jsonrpc": "2.0", "id": 1, "result": {"text": "x" * 2 * WRITE_BYTES}}, 200)
    assert peer.take()
    peer.now += 3.9
    peer.connection.written(peer.now)
    assert peer.take()
    peer.now += 3.9
    peer.connection.written(peer.now)
    peer.connection.time_passed(peer.now)
    assert peer.deliver().endswith(b"\r\n0\r\n\r\n")
    assert not peer.connection.closed


# -- what the loop is asked to do ------------------------------------------------------------------------


def test_times_follow_the_phases_of_a_request(peer: Peer) -> None:
    request = post(message("server/discover"))
    head, end, body = request.partition(b"\r\n\r\n")
    started = peer.now
    assert peer.connection.deadline == started + 1  # idle
    peer.now += 0.5
    peer.send(head[:1])
    assert peer.connection.deadline == started + 0.5 + 2  # head
    peer.now += 1
    peer.send(head[1:])
    assert peer.connection.deadline == started + 0.5 + 2  # from the first byte, not the last
    peer.send(end)
    assert peer.connection.deadline == peer.now + 3  # body
    headed = peer.now
    peer.now += 1
    peer.send(body[:1])
    assert peer.connection.deadline == headed + 3
    peer.send(body[1:])
    assert peer.connection.deadline == inf  # tools take as long as they take
    peer.driver.channels[0].reply(REPLY, 200)
    peer.take()
    assert peer.connection.deadline == peer.now + 4  # write
    peer.now += 1
    peer.connection.written(peer.now)
    assert peer.connection.deadline == peer.now + 1  # idle again


def test_time_that_has_not_come_changes_nothing(peer: Peer) -> None:
    peer.connection.time_passed(peer.now)
    assert not peer.connection.closed
    assert not peer.connection.has_output


def test_an_idle_connection_is_closed_without_a_word(peer: Peer) -> None:
    peer.pass_time()
    assert peer.connection.closed
    assert not peer.connection.has_output


def test_a_peer_that_takes_nothing_is_given_up(peer: Peer) -> None:
    channel = peer.ask()
    channel.send(NOTIFICATION)
    peer.take()
    peer.pass_time()
    assert peer.connection.closed
    assert peer.driver.is_closed == [1]


def test_nothing_is_written_to_a_client_that_has_gone(peer: Peer) -> None:
    channel = peer.ask()
    channel.send({**NOTIFICATION, "params": {"data": "x" * 3 * WRITE_BYTES}})
    peer.take()
    peer.connection.written(peer.now)
    assert peer.connection.has_output
    peer.connection.lost()
    assert not peer.connection.has_output
    assert peer.take() == b""


def test_comments_come_only_on_silence(peer: Peer) -> None:
    channel = peer.ask()
    channel.send(NOTIFICATION)
    peer.deliver()
    peer.now += 4.9
    channel.send(NOTIFICATION)
    peer.deliver()
    assert peer.connection.deadline == peer.now + 5
    for _ in range(3):
        peer.pass_time()
        assert peer.deliver() == b"3\r\n:\n\n\r\n"
    assert peer.driver.is_ready == [1, 1]


def test_an_answer_in_one_piece_gets_no_comments(peer: Peer) -> None:
    peer.ask()
    assert peer.connection.deadline == inf


def test_large_output_is_taken_in_pieces_with_time_for_each(peer: Peer) -> None:
    words = "x" * 1_000_000
    peer.ask().reply({**REPLY, "result": {"words": words}}, 200)
    pieces = []
    while data := peer.take():
        assert peer.connection.deadline == peer.now + 4
        pieces.append(data)
        peer.now += 3.9
        peer.connection.written(peer.now)
    assert len(pieces) > 3
    assert words.encode() in b"".join(pieces)


LONG = post(message("server/discover", {"padding": "x" * 1000}))


def test_lim3_what_has_come_of_all_requests_is_bounded() -> None:
    """Whoever has the last straw is refused; who says all at once needs no room."""
    slow = Peer(limits=evolve(LIMITS, arriving_bytes=1500))
    other, third = Peer(beside=slow), Peer(beside=slow)
    slow.send(LONG[:-1])
    other.send(LONG[:-1])
    refusal = other.deliver()
    assert refusal.startswith(b"HTTP/1.1 503 ")
    assert b'"data":{"reason":"arriving_bytes"}' in refusal
    third.send(LONG)
    assert len(slow.driver.received) == 1
    slow.send(LONG[-1:])
    assert len(slow.driver.received) == 2


@pytest.mark.parametrize("end", ["a refusal", "a complete request", "a lost connection", "a time that is up"])
def test_lim3_what_has_come_makes_room_when_it_is_over(end: str) -> None:
    peer = Peer(limits=evolve(LIMITS, arriving_bytes=1500))
    head, _, body = LONG.partition(b"\r\n\r\n")
    match end:
        case "a refusal":
            headers = [*mcp_headers(message("server/discover")), ("Transfer-Encoding", "chunked")]
            peer.send(raw(b"3e8\r\n" + b"x" * 1000 + b"\r\nno number\r\n", headers))
            assert peer.deliver().startswith(b"HTTP/1.1 400 ")
        case "a complete request":
            peer.send(head + b"\r\n\r\n")
            for at in range(0, len(body), 100):
                peer.send(body[at : at + 100])
            assert len(peer.driver.received) == 1
        case "a lost connection":
            peer.send(LONG[:-1])
            peer.connection.lost()
        case _:
            peer.send(LONG[:-1])
            peer.pass_time()
            assert peer.deliver().startswith(b"HTTP/1.1 408 ")
    other = Peer(beside=peer)
    other.send(LONG[:-1])
    other.send(LONG[-1:])
    assert not other.deliver()
    assert peer.driver.received[-1][0]["method"] == "server/discover"


def test_reading_stops_while_too_much_waits(peer: Peer) -> None:
    channel = peer.ask()
    assert peer.connection.wants_input
    request = post(message("server/discover", {"x": "y" * 1000}))
    sent = 0
    while peer.connection.wants_input:
        peer.send(request)
        sent += 1
    assert READ_BYTES < sent * len(request) < READ_BYTES + 2 * len(request)
    channel.reply(REPLY, 200)
    peer.deliver()
    answered = 1
    while len(peer.driver.channels) > answered:
        peer.driver.channels[answered].reply(REPLY, 200)
        peer.deliver()
        answered += 1
    assert answered == sent + 1
    assert peer.connection.wants_input


def test_the_rest_of_a_refused_request_is_read_for_a_while(peer: Peer) -> None:
    """So that the client sees the answer before the connection goes."""
    peer.send(b"nonsense\r\n\r\n")
    assert not peer.connection.half_closed
    assert peer.deliver().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert peer.connection.half_closed
    assert not peer.connection.closed
    peer.send(b"more of it" * 100_000)
    assert peer.connection.wants_input
    assert peer.connection.deadline == peer.now + LINGER_SECONDS
    peer.pass_time()
    assert peer.connection.closed
    peer.send(b"too late")
    assert not peer.connection.has_output


def test_a_client_that_ends_as_well_is_let_go_at_once(peer: Peer) -> None:
    peer.send(b"nonsense\r\n\r\n")
    peer.deliver()
    peer.send(b"")
    assert peer.connection.closed


# -- the end of the server -------------------------------------------------------------------------------


def test_an_idle_connection_is_closed_at_the_end(peer: Peer) -> None:
    peer.connection.stop(peer.now)
    assert peer.connection.closed


def test_a_request_under_way_is_answered_at_the_end_and_says_so(peer: Peer) -> None:
    channel = peer.ask()
    peer.connection.stop(peer.now)
    assert not peer.connection.closed
    channel.reply(REPLY, 200)
    assert b"\r\nconnection: close\r\n" in peer.deliver()
    assert peer.connection.closed


def test_a_request_that_has_begun_may_come_to_its_end(peer: Peer) -> None:
    request = post(message("server/discover"))
    peer.send(request[:10])
    peer.connection.stop(peer.now)
    assert not peer.connection.closed
    peer.send(request[10:])
    peer.driver.channels[0].reply(REPLY, 200)
    assert b"\r\nconnection: close\r\n" in peer.deliver()
    assert peer.connection.closed


def test_requests_in_the_pipeline_are_not_taken_any_more(peer: Peer) -> None:
    channel = peer.ask()
    peer.send(post(message("server/discover", id=2)))
    peer.connection.stop(peer.now)
    channel.reply(REPLY, 200)
    peer.deliver()
    assert len(peer.driver.received) == 1
    assert peer.connection.half_closed
