"""One HTTP/1.1 connection of a client, without I/O: shared by every loop that speaks h11.

A connection carries one request at a time. What comes back becomes facts for a requester engine: the
notifications of an event stream as they come (and a legacy server's requests), and in the end one
``ResponseReceived`` or ``RequestFailed``.
Redirects are not followed, and nothing that a server sends makes this raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from re import compile as pattern
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import h11
from attrs import evolve, frozen

from mcp_tasks_proto.errors import LimitExceeded, LocalProtocolError, RemoteProtocolError
from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked, StreamOpened
from mcp_tasks_proto.legacy.vocabulary import (
    LAST_EVENT_ID_HEADER,
    PROTOCOL_VERSION_HEADER,
    SESSION_HEADER,
)
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import (
    HttpReply,
    NotificationReceived,
    RequestFailed,
    ResponseReceived,
)
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import method_headers, params_headers
from mcp_tasks_proto.wire.jsonrpc import Notification, Request, decode, encode, parse_message
from mcp_tasks_proto.wire.sse import EventDecoder

if TYPE_CHECKING:
    from mcp_tasks_adapters.client.loop import Outgoing

__all__ = [
    "Fact",
    "Headers",
    "HttpAddress",
    "HttpExchange",
    "RequestWriter",
    "check_headers",
    "retry_after_ms",
    "taken_up_at",
]

Fact = ResponseReceived | NotificationReceived | ServerAsked | StreamOpened | RequestFailed

Headers = Sequence[tuple[str, str]]
"""Names and values."""

SKIPPED_BYTES: Final = 64 * 1024
"""How much of a body that is no message is read, for the sake of the connection."""

USER_AGENT: Final = ("User-Agent", "mcp-tasks-proto")

_ASKED: Final = {
    verb: h11.Request(method=verb, target="/", headers=[("Host", "")]) for verb in ("POST", "GET", "DELETE")
}
"""All that h11 must know of a request to read the response; headers that would matter are no caller's."""

END: Final = h11.EndOfMessage()


# -- where to ----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class HttpAddress:
    """Where an MCP endpoint is."""

    host: str
    """A name, or an address without brackets."""
    port: int
    secure: bool
    """Whether to speak TLS."""
    authority: str
    """For the ``Host`` header."""
    target: str
    """Path and query, for the request line."""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an ``http`` or ``https`` URL. Raises ``ValueError`` for anything else."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("an endpoint is an http:// or https:// URL")
        if parts.username is not None or parts.password is not None:
            raise ValueError("a URL must not hold credentials: send an Authorization header")
        if not (url.isascii() and url.isprintable()) or " " in url:
            raise ValueError("a URL is printable ASCII without spaces")
        target = parts.path or "/"
        return cls(
            host=parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            secure=parts.scheme == "https",
            authority=parts.netloc,
            target=f"{target}?{parts.query}" if parts.query else target,
        )


_PORTS: Final = {"http": 80, "https": 443}


# -- headers -----------------------------------------------------------------------------------------------


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Raise ``ValueError`` for a header that a caller may not add: one that the protocol itself sets, or that
    HTTP cannot carry. A value is not told, nor what is no name: it may be a secret (SEC.2)."""
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError("that is no name of a header")
        if not (value.isascii() and value.replace("\t", " ").isprintable()):
            raise ValueError(f"the value of the header {name} is not one line of ASCII")
        lowered = name.lower()
        if lowered in _OWN_HEADERS or lowered.startswith(("mcp-", "mcp_")):
            raise ValueError(f"the header {name} is set by the protocol")


_HEADER_NAME: Final = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110, section 5.6.2."""
_OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def retry_after_ms(value: str, now_ms: int) -> int | None:
    """Return how long ``Retry-After`` asks to wait, be it seconds or a date; ``None``: it says neither."""
    if _SECONDS.fullmatch(value):
        return int(value) * 1000
    try:
        when = parsedate_to_datetime(value)
        return max(0, int(when.timestamp() * 1000) - now_ms)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


_SECONDS: Final = pattern(r"[0-9]{1,9}")


# -- requests ----------------------------------------------------------------------------------------------

_BAD_HEADER: Final = "the request's headers cannot be sent: HTTP cannot carry a name or a value of them"

BEGINNINGS: Final = 64
"""How many beginnings of requests are remembered, and how many bytes one of them may have."""
BEGINNING_BYTES: Final = 4096


class RequestWriter:
    """Writes requests to one endpoint, for all connections to it; ``encode`` writes their messages.

    What comes from outside, and recurs, h11 checks and writes: the request line and most headers. That
    beginning is remembered. The other headers are safe as they are made.
    """

    def __init__(self, address: HttpAddress, encode: Callable[[Mapping[str, Any]], bytes] = encode) -> None:
        self._address = address
        self._encode = encode
        self._beginnings: dict[object, bytes] = {}

    def write(self, request: Outgoing, more: Headers = ()) -> bytes:
        """Return the bytes of a request. ``more`` are headers of the caller's.

        Raises :class:`LocalProtocolError` for a request that HTTP cannot carry.
        """
        body = b"" if request.message is None else self._encode(request.message)
        try:
            if isinstance(request, SendLegacy):
                recurring = request.verb, request.version, request.session, request.last_event_id, *more
                beginning, fields = self._beginning(recurring, request, more), ""
            else:
                method, params = request.message["method"], request.message["params"]
                recurring = method, params["_meta"][PROTOCOL_VERSION], *more
                beginning = self._beginning(recurring, request, more)
                said = params_headers(method, params, request.parameters)
                fields = "".join([f"{name}: {value}\r\n" for name, value in said])
        except h11.LocalProtocolError:  # which says what the header is, and that may be a secret (SEC.2)
            raise LocalProtocolError(_BAD_HEADER) from None
        except (ValueError, TypeError, AttributeError) as error:
            raise LocalProtocolError(f"the request's headers cannot be sent: {error}") from None
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (beginning, fields.encode("ascii"), len(body), body)

    def _beginning(self, recurring: object, request: Outgoing, more: Headers) -> bytes:
        """Return the beginning of a request; ``recurring`` is all that it depends on."""
        beginning = self._beginnings.get(recurring)
        if beginning is None:
            beginning = self._new_beginning(request, more)
            if len(beginning) <= BEGINNING_BYTES:
                if len(self._beginnings) == BEGINNINGS:
                    self._beginnings.clear()
                self._beginnings[recurring] = beginning
        return beginning

    def _new_beginning(self, request: Outgoing, more: Headers) -> bytes:
        check_headers(more)
        verb = request.verb if isinstance(request, SendLegacy) else "POST"
        headers = [("Host", self._address.authority), *_recurring_headers(request), *more]
        if not any(name.lower() == "user-agent" for name, _ in more):
            headers.append(USER_AGENT)
        head = h11.Request(method=verb, target=self._address.target, headers=headers)
        return h11.Connection(h11.CLIENT).send(head).removesuffix(b"\r\n")


# -- one connection ----------------------------------------------------------------------------------------


class _Body(Enum):
    """What the body of a response is."""

    MESSAGE = auto()
    EVENTS = auto()
    OTHER = auto()


class HttpExchange:
    """What is said on one connection: requests, one after the other, and their responses.

    ``begin`` a request, write what it returns, and ``receive`` until ``over``. Then ``reusable`` says whether
    another may follow.
    """

    def __init__(self, writer: RequestWriter, limits: Limits) -> None:
        self._writer = writer
        self._limits = limits
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.header_bytes)
        self.request = 0
        """The engine's name for the request."""
        self.over = True
        """Whether the request has got its last fact."""
        self.silent = True
        """Whether nothing has come back for it yet."""
        self._legacy = self._is_get = False
        self._facts: list[Fact] = []
        self._reply = HttpReply(status=0)
        self._kind = _Body.OTHER
        self._body = bytearray()
        self._skipped = 0
        self._events = EventDecoder(limits)
        self._last_event_id = ""
        self._retry_ms: int | None = None

    @property
    def reusable(self) -> bool:
        """Whether the connection is ready for another request."""
        # This side is done as well: h11 knows of no more to send since the request began.
        done = self.over and self._h11.their_state is h11.DONE
        return done and self._h11.trailing_data == (b"", False)

    def begin(self, request: Outgoing, more: Headers = ()) -> bytes:
        """Return the bytes of a request. ``more`` are headers of the caller's.

        Raises :class:`LocalProtocolError` for a request that HTTP cannot carry; the connection is as before.
        """
        data = self._writer.write(request, more)
        legacy = request if isinstance(request, SendLegacy) else None
        verb = "POST" if legacy is None else legacy.verb
        if self._h11.our_state is h11.DONE:
            self._h11.start_next_cycle()
        self.request, self._legacy, self._is_get = request.request, legacy is not None, verb == "GET"
        self.over, self.silent = False, True
        self._last_event_id, self._retry_ms = taken_up_at(request) or "", None
        self._h11.send(_ASKED[verb])
        self._h11.send(END)
        return data

    def receive(self, data: bytes, now_ms: int) -> list[Fact]:
        """Take in bytes from the server, or ``b""``: it sends no more. Return what that says.

        ``now_ms`` is Unix milliseconds.
        """
        self._facts = []
        if data:
            self.silent = False
        try:
            self._h11.receive_data(data)
            self._read(now_ms)
        except h11.RemoteProtocolError as error:
            self._fail(_broken(data, self.silent, error))
        except LimitExceeded as overrun:
            self._fail(_over_limit(overrun.limit))
        except RemoteProtocolError as error:
            self._fail(f"an event of the server's stream cannot be read: {error}")
        return self._facts

    def _read(self, now_ms: int) -> None:
        """Read on, past the last fact as well: the connection may be used again once the response ends."""
        while True:
            event = self._h11.next_event()
            if type(event) is h11.Data:
                self._take_body(event.data)
            elif type(event) is h11.Response:
                self._take_head(event, now_ms)
            elif type(event) is h11.EndOfMessage:
                self._take_end()
                return
            elif type(event) is not h11.InformationalResponse:
                return

    def _take_head(self, response: h11.Response, now_ms: int) -> None:
        headers = {name.lower(): value for name, value in response.headers.raw_items()}
        content_type = headers.get(b"content-type", b"")
        if content_type != _JSON:
            content_type = content_type.partition(b";")[0].strip().lower()
        if content_type == _JSON:
            self._kind = _Body.MESSAGE
        elif content_type == b"text/event-stream" and 200 <= response.status_code < 300:
            self._kind = _Body.EVENTS
            self._events = EventDecoder(self._limits)
            if self._is_get:
                self._facts.append(StreamOpened(self.request))
        else:
            self._kind = _Body.OTHER
        self._reply = _reply(response.status_code, headers, now_ms, legacy=self._legacy)
        self._body, self._skipped = bytearray(), 0

    def _take_body(self, data: bytes) -> None:
        if self.over:
            return
        match self._kind:
            case _Body.MESSAGE:
                self._body += data
                if len(self._body) > self._limits.message_bytes:
                    self._fail(_over_limit("message_bytes"))
            case _Body.EVENTS:
                for event in self._events.feed(data):
                    self._last_event_id = event.last_event_id or self._last_event_id
                    self._retry_ms = event.retry_ms
                    if event.event == "message" and event.data:
                        self._take_message(decode(event.data, self._limits))
                self._retry_ms = self._events.retry_ms
                self._events.feed(b"")  # raises what it still owes: there may be no other bytes to wait for
            case _Body.OTHER:
                self._skipped += len(data)
                if self._skipped > SKIPPED_BYTES:
                    self._answer(None)

    def _take_end(self) -> None:
        if self.over:
            return
        match self._kind:
            case _Body.MESSAGE:
                self._answer(self._decoded_body())
            case _Body.EVENTS:
                self._fail("the server's stream ended without a response")
            case _Body.OTHER:
                self._answer(None)

    def _decoded_body(self) -> Any:
        try:
            return decode(self._body, self._limits)
        except RemoteProtocolError:
            return None

    def _take_message(self, message: Any) -> None:
        """Take one message of a stream: a response is the last that counts."""
        if self.over:
            return
        match parse_message(message):
            case Notification():
                self._facts.append(NotificationReceived(self.request, message))
            case Request() if self._legacy:
                asked = ServerAsked(request=self.request, message=message, new_id=token_urlsafe(24))
                self._facts.append(asked)
            case Request():
                pass  # modern servers must not send any (core, "Streamable HTTP")
            case _:
                self._answer(message)

    def _answer(self, message: Any) -> None:
        self.over = True
        self._facts.append(ResponseReceived(request=self.request, message=message, http=self._reply))

    def _fail(self, reason: str) -> None:
        if self.over:
            return
        self.over = True
        failure = RequestFailed(self.request, reason)
        if self._legacy and self._last_event_id:
            failure = evolve(failure, last_event_id=self._last_event_id, retry_ms=self._retry_ms)
        self._facts.append(failure)


_JSON: Final = b"application/json"
_SESSION: Final = SESSION_HEADER.encode()
_SUCCESS: Final = HttpReply(status=200)


def _reply(status: int, headers: Mapping[bytes, bytes], now_ms: int, *, legacy: bool) -> HttpReply:
    """Return what an engine must know of a response."""
    wait = headers.get(b"retry-after")
    session = headers.get(_SESSION) if legacy else None
    if status == 200 and wait is None and session is None:
        return _SUCCESS
    return HttpReply(
        status=status,
        retry_after_ms=None if wait is None else retry_after_ms(wait.decode("latin-1").strip(), now_ms),
        session=None if session is None else session.decode("latin-1"),
    )


def taken_up_at(request: Outgoing) -> str | None:
    """Return the event behind which a request has a stream of 2025-11-25 taken up. Until there is something
    new on it, that is where it breaks off (``RequestFailed.last_event_id``)."""
    return request.last_event_id if isinstance(request, SendLegacy) else None


def _recurring_headers(request: Outgoing) -> list[tuple[str, str]]:
    """Return what a message's own era has it say in headers, except of its params."""
    if isinstance(request, SendLegacy):
        return _legacy_headers(request)
    return method_headers(request.message["method"], request.message["params"]["_meta"][PROTOCOL_VERSION])


def _legacy_headers(request: SendLegacy) -> list[tuple[str, str]]:
    """Return the headers of 2025-11-25. A server may be old enough to insist on both kinds of answer."""
    headers = {
        "Accept": "text/event-stream" if request.verb == "GET" else "application/json, text/event-stream",
        "Content-Type": "application/json" if request.verb == "POST" else None,
        PROTOCOL_VERSION_HEADER: request.version,
        SESSION_HEADER: request.session,
        LAST_EVENT_ID_HEADER: request.last_event_id,
    }
    return [(name, value) for name, value in headers.items() if value is not None]


def _over_limit(limit: str) -> str:
    return f"the server's answer is over a limit of this side (Limits.{limit})"


def _broken(data: bytes, silent: bool, error: Exception) -> str:
    """Say what is wrong with a connection on which h11 cannot go on."""
    if data:
        return f"the server's answer is not well-formed HTTP: {error}"
    if silent:
        return "the server closed the connection without an answer"
    return "the server closed the connection in the middle of its answer"
