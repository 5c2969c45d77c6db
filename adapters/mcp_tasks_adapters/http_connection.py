"""One HTTP/1.1 connection of a server, without I/O: shared by every loop that speaks h11.

A loop module owns the socket and the timers. It says what happened, then does what the connection wants:

====================== ===========================================================================
the loop says          when
====================== ===========================================================================
``receive(data, now)`` bytes came, or ``b""``: the peer sends no more
``take_output(now)``   it can write; ``written(now)`` follows when all it got has left
``time_passed(now)``   ``deadline`` has come
``stop(now)``          the server ends: this connection takes no further request
``lost()``             the socket is gone, or is about to be closed
====================== ===========================================================================

After any of these, ``has_output``, ``wants_input``, ``half_closed``, ``closed`` and ``deadline`` may have
changed; ``output_ready`` is called when there is output at any other time. ``now`` is the loop's own clock,
in seconds.

::

    READING ---> ANSWERING ---> WRITING ---> READING ...
       |                           |
       '--- broken, too late ------+-------> LINGERING ---> CLOSED

Requests are taken one at a time; pipelined ones wait as bytes, a bounded number of them, and are answered
in order. Each is read by an ``h11.Connection`` of its own, which also writes a response that streams; other
responses have heads that recur, and these h11 writes once. A peer that ends its side while a request is being
answered is gone: on HTTP a client cancels by closing its stream (CAN.7), and a half-closed stream looks the
same as a closed one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from enum import Enum, auto
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from math import inf
from typing import Any, Final

import h11

from mcp_tasks_adapters.http_endpoint import Headers, HttpEndpoint, over_limit, response_parts
from mcp_tasks_proto.errors import ErrorObject, invalid_request, limit_reached
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.wire.http import STREAM_HEADERS, Refusal
from mcp_tasks_proto.wire.jsonrpc import encode, error_message, message_too_large
from mcp_tasks_proto.wire.pages import PageHead
from mcp_tasks_proto.wire.sse import KEEP_ALIVE, encode_event

__all__ = ["LINGER_SECONDS", "READ_BYTES", "HttpConnection", "busy_response"]

READ_BYTES: Final = 64 * 1024
"""How much a loop should read at a time, and how much of pipelined requests is kept before it stops."""

LINGER_SECONDS: Final = 2.0
"""How long what still comes is read and dropped after an answer that did not wait for the whole request.

Closing at once would reset the connection, and the peer might never see the answer.
"""

WRITE_BYTES: Final = 256 * 1024
"""How much is written at a time; a slow peer has ``Limits.write_timeout_ms`` for each such piece."""

END: Final = h11.EndOfMessage()


class Phase(Enum):
    """Where a connection stands. Within ``READING``, ``_head`` tells whether the head is there."""

    READING = auto()
    ANSWERING = auto()
    WRITING = auto()
    LINGERING = auto()
    CLOSED = auto()


# Before Python 3.12 each ``Phase.READING`` is a call.
READING, ANSWERING, WRITING, LINGERING, CLOSED = Phase


class HttpConnection:
    """What happens between one client's bytes and the driver."""

    half_closed = False
    """Whether to end this side of the connection once the output has left."""
    closed = False
    """Whether to close the connection now, whatever has not left."""

    def __init__(
        self, endpoint: HttpEndpoint, *, peer: str | None, now: float, output_ready: Callable[[], None]
    ) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self._peer = peer
        self._output_ready = output_ready
        self._h11 = self._reader()
        self._phase = READING
        self._phase_deadline = now + self._limits.idle_timeout_ms / 1000
        self._stopping = False
        self._busy = False  # in a method that the loop called, and after which it looks for output
        # input
        self._given = 0  # bytes that h11 was given of the request, and of those after it
        self._ahead = b""  # what came of those after it, once it has ended
        self._head_started = False
        self._message_ended = False
        self._keeps_alive = False  # whether it lets another one follow; known when it has ended
        self._input_ended = False
        self._is_head_request = False
        self._head: HttpHead | PageHead | Refusal | None = None
        # A client that polls says the same again and again: what came of a head is good for an equal one.
        self._said_before: tuple[Any, ...] = ()
        self._head_before: HttpHead | None = None
        self._length: int | None = None
        self._length_before: int | None = None
        self._body = bytearray()
        # the exchange
        self._channel: _Channel | None = None
        self._exchange: int | None = None
        self._streaming = False
        self._ready_is_due = False
        # output
        self._output: deque[bytes] = deque()
        self._writing = False
        self._write_deadline = inf

    # -- what the loop looks at ------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        """Whether ``take_output`` would give something."""
        return bool(self._output) and not self._writing

    @property
    def wants_input(self) -> bool:
        """Whether to read. As long as that is so, a peer that goes away is noticed at once."""
        if self._input_ended:
            return False
        return len(self._ahead) <= READ_BYTES or self._phase is LINGERING

    @property
    def deadline(self) -> float:
        """When to call ``time_passed``; infinity: never."""
        return self._write_deadline if self._writing else self._phase_deadline

    # -- what the loop says ----------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        """Take in bytes from the peer; none at all: it will send no more."""
        self._busy = True
        if not data:
            self._end_input(now)
        elif self._phase is READING:
            self._give(data)
            self._read(now)
        elif self._phase is not LINGERING and self._phase is not CLOSED:
            self._ahead += data
        self._busy = False

    def take_output(self, now: float) -> bytes:
        """Return what to write next; empty: nothing, or what was taken before is still on its way."""
        if self._writing or not self._output:
            return b""
        self._writing = True
        self._write_deadline = now + self._limits.write_timeout_ms / 1000
        data = self._output.popleft()
        while self._output and len(data) + len(self._output[0]) <= WRITE_BYTES:
            data += self._output.popleft()
        return data

    def written(self, now: float) -> None:
        """Note that what ``take_output`` gave has left."""
        self._writing = False
        if self._output or self._phase is CLOSED:
            return
        self._busy = True
        if self._phase is WRITING:
            self._begin_next(now)
        elif self._streaming:
            self._phase_deadline = now + self._limits.keep_alive_ms / 1000
            if self._ready_is_due and self._exchange is not None:
                self._ready_is_due = False
                self._endpoint.driver.ready(self._exchange)
        self._busy = False

    def time_passed(self, now: float) -> None:
        """Do what is due at ``deadline``; harmless before it."""
        if now < self.deadline:
            return
        if self._writing or self._phase is LINGERING:
            self.lost()
        elif self._phase is ANSWERING:
            self._phase_deadline = inf  # until the comment has left
            self._put(self._h11.send(h11.Data(data=KEEP_ALIVE)))
        elif self._head is not None:
            self._fail(HTTPStatus.REQUEST_TIMEOUT, over_limit("body_timeout_ms"))
        elif self._head_started:
            self._fail(HTTPStatus.REQUEST_TIMEOUT, over_limit("header_timeout_ms"))
        else:
            self.lost()

    def stop(self, now: float) -> None:
        """Take no further request; close at once if none has begun."""
        self._stopping = True
        if self._phase is READING and not self._head_started and not self._writing:
            self.lost()

    def lost(self) -> None:
        """Give the connection up. The request under way, if there is one, loses its client."""
        self._phase = CLOSED
        self.half_closed, self.closed = False, True
        self._phase_deadline = inf
        self._give_body()
        self._output.clear()  # what is written to a lost socket is at best a warning in the log
        self._channel = None
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._endpoint.driver.closed(exchange)

    # -- reading ---------------------------------------------------------------------------------------

    def _reader(self) -> h11.Connection:
        return h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.header_bytes)

    def _end_input(self, now: float) -> None:
        self._input_ended = True
        if self._phase is ANSWERING or self._phase is LINGERING:
            self.lost()
        elif self._phase is READING:
            self._h11.receive_data(b"")
            self._read(now)

    def _give(self, data: bytes) -> None:
        self._given += len(data)
        self._h11.receive_data(data)

    def _read(self, now: float) -> None:
        """Read on in the request, until it is complete or more bytes are needed."""
        try:
            while self._phase is READING:
                event = self._h11.next_event()
                if type(event) is h11.Request:
                    self._take_head(event, now)
                    if self._length is not None:
                        self._take_at_once(self._length)
                elif type(event) is h11.Data:
                    self._take_body(event.data)
                elif type(event) is h11.EndOfMessage:
                    self._take_end()
                elif event is h11.NEED_DATA:
                    self._await_more(now)
                    return
                else:
                    self.lost()
        except h11.RemoteProtocolError as error:
            self._refuse_broken(error.error_status_hint)

    def _await_more(self, now: float) -> None:
        if self._head is not None:
            if self._h11.they_are_waiting_for_100_continue:
                self._put(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])))
        elif self._given and not self._head_started:
            self._head_started = True
            self._phase_deadline = now + self._limits.header_timeout_ms / 1000

    def _take_head(self, request: h11.Request, now: float) -> None:
        self._head_started = True
        self._is_head_request = request.method == b"HEAD"
        self._phase_deadline = now + self._limits.body_timeout_ms / 1000
        most = self._limits.header_bytes
        if self._given > most and self._given - len(self._h11.trailing_data[0]) > most:
            self._refuse_broken(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        headers = request.headers.raw_items()
        said = request.method, request.target, request.http_version, headers
        if said == self._said_before:
            self._head, self._length = self._head_before, self._length_before
            return
        names = {name.lower() for name, _ in headers}
        if b"transfer-encoding" in names and (b"content-length" in names or request.http_version < b"1.1"):
            # Two ways to read where the body ends is how requests are smuggled.
            self._refuse_broken(HTTPStatus.BAD_REQUEST)
        elif not request.http_version.startswith(b"1."):  # such as what opens a connection of HTTP/2
            self._refuse_broken(HTTPStatus.BAD_REQUEST)
        else:
            self._head = self._endpoint.check(request.method, request.target, headers)
            if isinstance(self._head, HttpHead):
                self._length = _length_alone(request, self._head)
                self._said_before, self._head_before, self._length_before = said, self._head, self._length
            elif isinstance(self._head, Refusal) and (
                self._head.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                or self._h11.they_are_waiting_for_100_continue
            ):
                self._refuse(self._head)  # and never see the body

    def _take_at_once(self, length: int) -> None:
        """Take in the body, if all of it has come: as almost always, and h11 has no more to say of it."""
        rest = self._h11.trailing_data[0]
        if len(rest) >= length:
            self._keeps_alive = True
            self._hand_in(rest[:length], ahead=rest[length:])

    def _take_body(self, data: bytes) -> None:
        self._body += data
        full = self._endpoint.arrived(len(data))
        if len(self._body) > self._limits.message_bytes:
            self._refuse_body(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message_too_large(self._limits).error)
        elif full is not None:
            self._refuse_body(HTTPStatus.SERVICE_UNAVAILABLE, full)

    def _take_end(self) -> None:
        self._keeps_alive = self._h11.their_state is h11.DONE
        self._hand_in(self._give_body(), ahead=self._h11.trailing_data[0])

    def _give_body(self) -> bytearray:
        """Return what has come of a body; nothing of it is kept here."""
        body, self._body = self._body, bytearray()
        self._endpoint.arrived(-len(body))
        return body

    def _hand_in(self, body: bytes | bytearray, *, ahead: bytes) -> None:
        self._ahead = ahead
        self._message_ended = True
        head = self._head
        if isinstance(head, Refusal):
            self._refuse(head)
            return
        assert head is not None  # a message ends after its head
        self._phase = ANSWERING
        self._phase_deadline = inf
        self._channel = channel = _Channel(self)
        exchange = self._endpoint.receive(head, body, channel, self._peer)
        if self._channel is channel:
            self._exchange = exchange
            if self._input_ended:
                self.lost()

    def _begin_next(self, now: float) -> None:
        """After an answer: on to the next request, or to the end."""
        if self._keeps_alive and not self._stopping:
            self._h11 = self._reader()
            self._head = self._length = None
            self._head_started = self._message_ended = self._keeps_alive = self._is_head_request = False
            self._streaming = self._ready_is_due = False
            self._phase = READING
            self._phase_deadline = now + self._limits.idle_timeout_ms / 1000
            ahead, self._ahead, self._given = self._ahead, b"", 0
            if ahead:
                self._give(ahead)
            if self._input_ended:
                self._h11.receive_data(b"")
            if ahead or self._input_ended:
                self._read(now)
        elif self._input_ended or (self._message_ended and not self._ahead):
            self.lost()
        else:
            self._phase = LINGERING
            self.half_closed = True
            self._phase_deadline = now + LINGER_SECONDS

    # -- answering -------------------------------------------------------------------------------------

    def _reply(
        self, message: dict[str, Any] | None, http_status: int, headers: Headers, event_id: str | None
    ) -> None:
        self._channel = self._exchange = None
        if self._streaming:
            if message is not None:
                self._put(self._h11.send(h11.Data(data=encode_event(encode(message), event_id))))
            self._put(self._h11.send(END))
            self._phase = WRITING
            self._phase_deadline = inf  # no comment is due any more
        else:
            self._answer(http_status, message, headers)
        self._announce_output()

    def _open(self) -> None:
        if not self._streaming:
            self._streaming = True
            self._put(self._h11.send(_response(HTTPStatus.OK, STREAM_HEADERS, *self._circumstances())))
        self._announce_output()

    def _send(self, message: dict[str, Any], event_id: str | None) -> None:
        self._open()
        self._ready_is_due = True
        self._put(self._h11.send(h11.Data(data=encode_event(encode(message), event_id))))
        self._announce_output()

    def _announce_output(self) -> None:
        if not self._busy:
            self._output_ready()

    def _refuse(self, refusal: Refusal) -> None:
        message = None if refusal.error is None else error_message(None, refusal.error)
        self._answer(refusal.status, message, refusal.headers)

    def _refuse_body(self, status: int, error: ErrorObject) -> None:
        """Answer without waiting for the end of a body that is too long."""
        if isinstance(self._head, Refusal):
            self._refuse(self._head)
        else:
            self._fail(status, error)

    def _refuse_broken(self, status: int) -> None:
        """Answer what is not a request, or not one that can be read."""
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE and self._head is None:
            self._fail(status, over_limit("header_bytes"))
        elif status == HTTPStatus.NOT_IMPLEMENTED:
            self._fail(status, invalid_request("the only transfer coding served is chunked"))
        else:
            self._fail(HTTPStatus.BAD_REQUEST, invalid_request("this is not well-formed HTTP/1.1"))

    def _fail(self, status: int, error: ErrorObject) -> None:
        """Answer with an error of the transport's own."""
        self._answer(status, error_message(None, error), ())

    def _answer(self, status: int, message: Mapping[str, Any] | None, more: Headers) -> None:
        """Send a whole response."""
        headers, body = response_parts(message, more)
        # One with headers of its own does not recur, and may name a session, which is nothing to be kept.
        write = _new_head_of_whole if more else _head_of_whole
        head = write(status, headers, len(body), *self._circumstances())
        self._put(head if self._is_head_request else head + body)
        self._give_body()
        self._phase = WRITING
        self._phase_deadline = inf

    def _circumstances(self) -> tuple[bool, int]:
        """Return whether the response is the last one here, and the time of it, in Unix seconds."""
        return self._stopping or not self._keeps_alive, self._endpoint.now_ms() // 1000

    def _put(self, data: bytes) -> None:
        if len(data) <= WRITE_BYTES:
            self._output.append(data)
        else:
            self._output.extend(data[at : at + WRITE_BYTES] for at in range(0, len(data), WRITE_BYTES))


def _length_alone(request: h11.Request, head: HttpHead) -> int | None:
    """Return the length of a body, where it alone tells what comes next: the body, then another request.

    ``None``: there is something else in the head that h11 heeds as well.
    """
    fields = head.headers
    plain = head.method == "POST" and request.http_version == b"1.1" and _HEEDED.isdisjoint(fields)
    if not plain or fields.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return int(fields.get("content-length", "0"))


_HEEDED: Final = frozenset({"transfer-encoding", "upgrade"})


def _new_head_of_whole(status: int, headers: Headers, length: int, is_last: bool, second: int) -> bytes:
    """Return the head of a response whose body has ``length`` bytes."""
    response = _response(status, (*headers, ("content-length", str(length))), is_last, second)
    return h11.Connection(h11.SERVER).send(response)


_head_of_whole: Final = lru_cache(maxsize=256)(_new_head_of_whole)


def _response(status: int, headers: Headers, is_last: bool, second: int) -> h11.Response:
    fields = [("date", formatdate(second, usegmt=True)), *headers]
    if is_last:
        fields.append(("connection", "close"))
    return h11.Response(status_code=status, reason=responses.get(status, ""), headers=fields)


def busy_response(now_ms: int) -> bytes:
    """Return what a client is told when there are too many connections (LIM.3)."""
    headers, body = response_parts(error_message(None, limit_reached("connections")))
    return _head_of_whole(HTTPStatus.SERVICE_UNAVAILABLE, headers, len(body), True, now_ms // 1000) + body


class _Channel:
    """The way back for one exchange; what comes when the exchange is over is dropped."""

    __slots__ = ("_connection",)

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        """Send the last message."""
        if self._connection._channel is self:
            self._connection._reply(message, http_status, tuple(headers), event_id)

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """Send a message on the way; the first one makes the response a stream."""
        if self._connection._channel is self:
            self._connection._send(message, event_id)

    def open(self) -> None:
        """Make the response a stream now."""
        if self._connection._channel is self:
            self._connection._open()
