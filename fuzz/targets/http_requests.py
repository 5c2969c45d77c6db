"""What a server reads on an HTTP connection (HTTP.1 to HTTP.5, LIM.3). The input is what a client sent.

* It makes no difference how the bytes were cut, neither to the driver nor to the client.
* What comes back is well-formed: one response for each request, with a status that is documented; those of
  the driver's are in order, and after a response that closes the connection nothing more is handed on.
* Nobody gets past the checks of Host and Origin, nor with two ways to tell where a body ends (SEC, HTTP.1).
* Messages in the plainest kind of request are handed on as they stand between head and length.
* Bodies over the bound are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import Any, Final

import h11
from attrs import define, field, frozen
from mcp_tasks_adapters.driver import Channel, RequestFacts
from mcp_tasks_adapters.http_connection import HttpConnection
from mcp_tasks_adapters.http_endpoint import HttpEndpoint

from fuzz.comparing import canonical, same
from fuzz.pieces import ways_to_cut
from mcp_tasks_proto.errors import RemoteProtocolError
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import EndpointPolicy
from mcp_tasks_proto.wire.jsonrpc import decode, notification_message, result_message
from mcp_tasks_proto.wire.pages import PageHead

LIMITS: Final = Limits(message_bytes=600)
POLICY: Final = EndpointPolicy(sessions=True)
NOW: Final = 100.0
NUMBER: Final = "x-number"
"""A header of the driver's responses: they are numbered."""
LOOPBACK: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.IGNORECASE)
OWN_STATUSES: Final = frozenset({400, 403, 404, 405, 406, 413, 415, 431, 501})
"""What the connection may answer without the driver."""


def check(data: bytes) -> None:
    """Serve the client in every way."""
    whole, *others = [_served(pieces) for pieces in ways_to_cut(data)]
    for other in others:
        assert other == whole, "the borders of the chunks can be told"
    _check_responses(whole)
    for expected, message in zip(_plainly_read(data), whole.messages, strict=False):
        assert same(expected, message), "a message that is not what was sent"
    assert len(whole.messages) >= len(list(_plainly_read(data))), "a message is missing"


@frozen
class Response:
    """What came back for one request."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@frozen
class Served:
    """What was handed on, and what came back."""

    messages: list[Any]
    """Messages; for what carries none, its method and its body."""
    heads: list[str]
    responses: list[Response]


@define(eq=False)
class FakeDriver:
    """Answers every message, once the connection has returned; a request to listen gets a stream."""

    asks_who_calls = False
    messages: list[Any] = field(factory=list)
    heads: list[str] = field(factory=list)
    waiting: list[tuple[int, Channel]] = field(factory=list)
    _numbers: count[int] = field(factory=lambda: count(1))

    @property
    def pages(self) -> FakePages:
        """What is served beside it."""
        return FakePages(self)

    def receive(
        self,
        message: Any,
        channel: Channel,
        *,
        facts: RequestFacts | None,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
    ) -> int:
        """Take in a message."""
        assert http is not None
        return self.take(message, channel, http.headers, [sorted(http.repeated), http.accepts_stream])

    def receive_head(self, channel: Channel, *, facts: RequestFacts | None, http: HttpHead) -> int:
        """Take in a request of 2025-11-25 that has no message."""
        return self.take([http.method], channel, http.headers, sorted(http.repeated))

    def take(self, message: Any, channel: Channel, headers: Mapping[str, str], more: Any) -> int:
        """Take in a request of any kind."""
        number = next(self._numbers)
        self.messages.append(message)
        self.heads.append(canonical([dict(headers), more]))
        self.waiting.append((number, channel))
        both = {"transfer-encoding", "content-length"} <= set(headers)
        assert not both, "two ways to tell where a body ends"
        assert LOOPBACK.fullmatch(headers.get("origin", "http://localhost")), "HTTP.1: another's page"
        return number

    def answer(self) -> None:
        """Answer what waits."""
        waiting, self.waiting = self.waiting, []
        for number, channel in waiting:
            message = self.messages[number - 1]
            if isinstance(message, dict) and message.get("method") == "subscriptions/listen":
                channel.send(notification_message("notifications/tasks", {"number": number}))
            channel.reply(result_message(number, {}), 200, ((NUMBER, str(number)),))
            channel.reply(result_message(number, {"twice": True}), 200)  # which is too late

    def ready(self, exchange: int) -> None:
        """A notification has left."""

    def closed(self, exchange: int) -> None:
        """The client has gone."""

    def connection_closed(self, connection: Hashable) -> None:
        """There are no shared channels."""

    def shutdown(self) -> None:
        """It goes on."""

    def stop_calls(self) -> None:
        """Nobody waits."""


@frozen
class FakePages:
    """What is served beside the endpoint."""

    driver: FakeDriver
    prefix: str = "/pages/"

    def receive(
        self, head: PageHead, body: bytes | bytearray, channel: Channel, facts: RequestFacts | None
    ) -> None:
        """Take in a request."""
        asked = [head.method, head.path, head.query, str(body, "latin-1")]
        self.driver.take(asked, channel, head.headers, [])


def _served(pieces: list[bytes]) -> Served:
    driver = FakeDriver()
    endpoint = HttpEndpoint(driver=driver, policy=POLICY, limits=LIMITS, now_ms=lambda: 1_000_000_000_000)
    connection = HttpConnection(endpoint, peer=None, now=NOW, output_ready=lambda: None)
    output: list[tuple[bytes, bool]] = []
    for piece in [*pieces, b""]:
        if not connection.closed:
            assert connection.wants_input
            connection.receive(piece, NOW)
            bound = LIMITS.message_bytes + len(piece)
            assert len(connection._body) <= bound, "LIM.3: more of a body is kept than may be"
            output += _delivered(connection, driver)
    assert connection.closed, "a connection whose client has gone is not closed"
    return Served(driver.messages, driver.heads, _responses(output))


def _delivered(connection: HttpConnection, driver: FakeDriver) -> list[tuple[bytes, bool]]:
    """Have everything answered that can be. Return all output, each part with whether it answers a HEAD."""
    output: list[tuple[bytes, bool]] = []
    while True:
        driver.answer()
        data = connection.take_output(NOW)
        if not data:
            return output
        output.append((data, connection._is_head_request))
        connection.written(NOW)


def _responses(output: list[tuple[bytes, bool]]) -> list[Response]:
    """Read all output as a client does, interim responses left out. Raises what h11 raises."""
    found: list[Response] = []
    to_head = {sum(len(part) for part, _ in output[:at]): head for at, (_, head) in enumerate(output)}
    data = b"".join(part for part, _ in output)
    at = 0
    while at < len(data):
        response, at = _response(data, at, b"HEAD" if to_head[at] else b"GET")
        found.append(response)
    return found


def _response(data: bytes, at: int, method: bytes) -> tuple[Response, int]:
    """Read the response that begins at a place; return it, and where the next one begins."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target=b"/", headers=[(b"host", b"a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data[at:])
    client.receive_data(b"")
    status, body = 0, b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    while not isinstance(event := client.next_event(), h11.EndOfMessage):
        match event:
            case h11.Response():
                status, headers = event.status_code, tuple(event.headers)
            case h11.Data():
                body += event.data
            case _:
                assert isinstance(event, h11.InformationalResponse)
    return Response(status, headers, body), len(data) - len(client.trailing_data[0])


def _check_responses(served: Served) -> None:
    numbers = [dict(one.headers).get(NUMBER.encode()) for one in served.responses]
    for at, response in enumerate(served.responses):
        streams = (b"content-type", b"text/event-stream") in response.headers
        own = numbers[at] is None and not streams
        assert not own or response.status in OWN_STATUSES, f"HTTP.5: the status {response.status}"
        closes = (b"connection", b"close") in response.headers
        assert not closes or at == len(served.responses) - 1, "handed on after the connection was to close"
    given = [int(number) for number in numbers if number is not None]
    assert given == sorted(given), "HTTP.4: answered out of order"
    by_driver = sum(1 for one in served.responses if _is_from_driver(one))
    assert by_driver == len(served.messages), "HTTP.4: one response for each request"


def _is_from_driver(response: Response) -> bool:
    names = dict(response.headers)
    return NUMBER.encode() in names or names.get(b"content-type") == b"text/event-stream"


# -- the same, in the plainest way ---------------------------------------------------------------------------

_PLAIN_HEAD: Final = re.compile(
    rb"POST /mcp HTTP/1\.1\r\n"
    rb"Host: localhost\r\n"
    rb"Content-Type: application/json\r\n"
    rb"Content-Length: (?P<length>[0-9]{1,3})\r\n"
    rb"(?:Mcp-[A-Z][a-z]{1,10}: [a-z/]{1,20}\r\n){0,4}"
    rb"\r\n"
)


def _plainly_read(data: bytes) -> Iterator[Any]:
    """Yield the messages in those requests that come first and are of the plainest kind."""
    at = 0
    while head := _PLAIN_HEAD.match(data, at):
        at = head.end() + int(head["length"])
        body = data[head.end() : at]
        if at > len(data) or len(body) > LIMITS.message_bytes:
            return
        try:
            yield decode(body, LIMITS)
        except RemoteProtocolError:
            continue
