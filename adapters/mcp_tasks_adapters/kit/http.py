"""Posts over HTTP: each on a connection of its own, so that none has to do with another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import h11
from attrs import define, field

from mcp_tasks_adapters.client.loop import ClientLoop, Stream
from mcp_tasks_adapters.driver import Event
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.kit.carrier import Unfetched
from mcp_tasks_proto.errors import LimitExceeded, RemoteProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.kit import Begun, Came, Ended, Fact, Post, Silent, Unreadable
from mcp_tasks_proto.wire.jsonrpc import decode
from mcp_tasks_proto.wire.sse import EventDecoder

__all__ = ["HttpCarrier", "Response"]

CONNECT_MS: Final = 10_000
"""For a connection to stand, and a request to be written."""


USER_AGENT: Final = ("User-Agent", "mcp-tasks-kit")


class HttpCarrier:
    """The way to an endpoint. ``headers`` are those of the first caller, and of the other one."""

    def __init__(
        self,
        address: HttpAddress,
        open_stream: Callable[[], Awaitable[Stream]],
        *,
        loop: ClientLoop,
        headers: tuple[Mapping[str, str], ...],
        limits: Limits,
    ) -> None:
        self._address = address
        self._open_stream = open_stream
        self._loop = loop
        self._headers = headers
        self._limits = limits
        self._exchanges: dict[int, _Exchange] = {}

    async def open(self, exchange: int, post: Post) -> None:
        """Connect, and send."""
        opened = self._exchanges[exchange] = _Exchange(Response(self._limits))

        async def connect_and_send() -> None:
            try:
                data = opened.response.begin(post, self._address, self._headers[post.caller])
                opened.stream = await self._open_stream()
                opened.stream.start(opened.heard)
                opened.stream.write(data)
            except (OSError, ValueError, h11.LocalProtocolError) as error:
                trouble = f"no connection to the server: {error or type(error).__name__}"
                opened.facts += [Ended(trouble, unsent=True)]

        if not await self._loop.within(CONNECT_MS / 1000, connect_and_send):
            opened.facts += [Ended("no connection to the server: it took too long", unsent=True)]

    async def next(self, exchange: int, within_ms: int) -> Fact:
        """Read until there is something to tell."""
        opened = self._exchanges[exchange]
        until_ms = self._loop.now_ms() + within_ms
        while not opened.facts and opened.stream is not None:
            left_ms = max(0, until_ms - self._loop.now_ms())
            opened.news = self._loop.event()
            if not await self._loop.within(left_ms / 1000, opened.news.wait):
                return Silent()
        return opened.facts.popleft() if opened.facts else Ended()

    async def close(self, exchange: int) -> None:
        """Close the connection."""
        stream = self._exchanges.pop(exchange).stream
        if stream is not None:
            stream.close()
            await self._loop.checkpoint()

    async def finish(self) -> None:
        """Close every connection."""
        for exchange in list(self._exchanges):
            await self.close(exchange)


@define(eq=False)
class _Exchange:
    response: Response
    stream: Stream | None = None
    facts: Unfetched = field(factory=Unfetched)
    news: Event | None = None

    def heard(self, data: bytes) -> None:
        """Take in what the server says; from one who says too much, no more."""
        self.facts += self.response.receive(data)
        if self.stream is not None and self.facts.too_many:
            self.stream.close()
        if self.news is not None:
            self.news.set()


class Response:
    """Reads one response, without I/O."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.header_bytes)
        self._events: EventDecoder | None = None
        self._has_head = False
        self._is_json = False
        self._body = bytearray()
        self._over = False

    def begin(self, post: Post, address: HttpAddress, more: Mapping[str, str]) -> bytes:
        """Return the bytes of a request."""
        headers = [("Host", address.authority), USER_AGENT, *more.items(), *post.headers]
        if post.verb == "POST":
            headers.append(("Content-Length", str(len(post.body))))
        # The head is written by hand: h11 would not write all that a server has to cope with. It is told of a
        # request all the same, or it would not read the response.
        self._h11.send(h11.Request(method=post.verb, target=address.target, headers=headers[:1]))
        self._h11.send(h11.EndOfMessage())
        lines = [f"{post.verb} {address.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + post.body

    def receive(self, data: bytes) -> list[Fact]:
        """Take in bytes, or ``b""``: no more come. Return what they say."""
        if self._over:
            return [Ended()]
        facts: list[Fact] = []
        try:
            self._h11.receive_data(data)
            while not self._over and self._read(facts):
                pass
        except h11.RemoteProtocolError as error:
            self._end(facts, f"what came is not HTTP: {error}" if data else self._ended_early())
        except LimitExceeded as overrun:
            self._end(facts, f"the answer is over a limit of this side ({overrun.limit})", over_limit=True)
        except RemoteProtocolError as error:
            facts.append(Unreadable(f"an event that is not JSON: {error}"))
            self._end(facts, None)
        return facts

    def _read(self, facts: list[Fact]) -> bool:
        """Read one event of the connection; return whether there was one."""
        match self._h11.next_event():
            case h11.Response() as response:
                self._take_head(response, facts)
            case h11.Data(data=data):
                self._take_body(bytes(data), facts)
            case h11.EndOfMessage():
                if self._events is None:
                    self._take_whole_body(facts)
                self._end(facts, None)
            case h11.InformationalResponse():
                pass
            case _:
                return False
        return True

    def _ended_early(self) -> str:
        """Say what the end of a connection means that came before the end of the response."""
        within = "within its answer" if self._has_head else "without an answer"
        return f"the server closed the connection {within}"

    def _take_head(self, response: h11.Response, facts: list[Fact]) -> None:
        headers = {str(name, "latin-1"): str(value, "latin-1") for name, value in response.headers}
        self._has_head = True
        facts.append(Begun(response.status_code, headers))
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._is_json = media_type == "application/json"
        if media_type == "text/event-stream":
            self._events = EventDecoder(self._limits)

    def _take_body(self, data: bytes, facts: list[Fact]) -> None:
        if self._events is None:
            self._body += data
            if len(self._body) > self._limits.message_bytes:
                self._end(facts, "the answer is over a limit of this side (message_bytes)", over_limit=True)
            return
        for event in self._events.feed(data):
            if event.event == "message" and event.data:
                facts.append(Came(decode(event.data, self._limits), len(event.data)))
        self._events.feed(b"")  # raises what it still owes: there may be no other bytes to wait for

    def _take_whole_body(self, facts: list[Fact]) -> None:
        if not self._body:
            return
        try:
            message = decode(self._body, self._limits)
        except LimitExceeded:
            raise
        except RemoteProtocolError as error:
            if self._is_json:
                facts.append(Unreadable(f"a body that is not JSON: {error}"))
            return
        facts.append(Came(message, len(self._body)))

    def _end(self, facts: list[Fact], trouble: str | None, *, over_limit: bool = False) -> None:
        self._over = True
        facts.append(Ended(trouble, over_limit))
