"""Requests over Streamable HTTP, on somebody's loop: connections kept and shared, and what may be sent twice.

The loop opens connections (:class:`~mcp_tasks_adapters.client.loop.Stream`);
:class:`~mcp_tasks_adapters.http_exchange.HttpExchange` knows what is said on one.
"""

from __future__ import annotations

import inspect
import logging
import os
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from re import compile as pattern
from typing import Any, Final

from attrs import define, evolve, field, frozen, validators

from mcp_tasks_adapters.client.loop import ClientLoop, Stream, Unasked
from mcp_tasks_adapters.client.turns import Turn, pieces
from mcp_tasks_adapters.driver import Event
from mcp_tasks_adapters.http_exchange import (
    Fact,
    Headers,
    HttpAddress,
    HttpExchange,
    check_headers,
    remembering_heads,
)
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked, StreamOpened
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import Fault, NotificationReceived, RequestFailed, SendRequest

__all__ = ["ConnectionLimits", "HeadersFunction", "HttpTransport"]

HeadersFunction = Callable[[], "Mapping[str, str] | Awaitable[Mapping[str, str]]"]
"""Returns headers to add to the request that is about to be sent, an ``Authorization`` above all."""

REPEATABLE: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "subscriptions/listen",
        "initialize",
        "tasks/result",
    }
)
"""Methods that do no more when they are sent twice than when they are sent once."""

FRESH_MS: Final = 1000
"""Servers close idle connections, and what was sent at that moment may or may not have arrived. A request
that must not be sent twice goes only on a connection that was in use within this time, or on a new one.
"""

_log = logging.getLogger("mcp_tasks_adapters")


def _positive(default: int) -> int:
    return field(default=default, validator=[validators.instance_of(int), validators.gt(0)])


@frozen(kw_only=True)
class ConnectionLimits:
    """Bounds of a client's connections to one server, as positive integers."""

    connections: int = _positive(100)
    """Open at once; further requests wait for one to be free. At most half of them are for listen streams."""
    idle_connections: int = _positive(16)
    """Kept for the next request."""
    idle_ms: int = _positive(30_000)
    """How long they are kept."""
    connect_timeout_ms: int = _positive(10_000)
    """For a connection to stand, TLS included."""


@define(eq=False)
class _Connection:
    stream: Stream
    exchange: HttpExchange
    idle_since_ms: int = 0


class HttpTransport:
    """The way to one HTTP endpoint.

    ``open_stream`` opens a connection to it, and raises ``OSError`` or ``ValueError`` where it cannot. Raises
    ``ValueError`` for headers that the protocol itself sets.
    """

    def __init__(
        self,
        address: HttpAddress,
        *,
        loop: ClientLoop,
        open_stream: Callable[[], Awaitable[Stream]],
        headers: Mapping[str, str] | HeadersFunction | None = None,
        limits: Limits,
        connection_limits: ConnectionLimits,
    ) -> None:
        if isinstance(headers, Mapping):
            check_headers(headers.items())
        self._address = address
        self._new_head = remembering_heads()
        self._loop = loop
        self._open_stream = open_stream
        self._headers = headers
        self._limits = limits
        self._connection_limits = connection_limits
        self._places = _Places(loop, connection_limits.connections)
        self._idle: list[_Connection] = []  # the last was used last
        self._closed = False
        self._errands: dict[int, Errand[Fact]] = {}

    # -- for the driver ------------------------------------------------------------------------------------

    speaks_http: Final = True

    def unasked(self, report: Callable[[Unasked], None]) -> None:
        """Do nothing: here all that a server says comes on the stream of some request."""

    async def open(self) -> None:
        """Do nothing: connections are opened when they are needed."""

    def send(
        self, request: SendRequest | SendLegacy, report: Callable[[Fact], None], *, once: bool = False
    ) -> None:
        """Send a request, and report what comes of it. ``once``: never twice, whatever its method."""
        run = partial(self._ask, request, report, repeatable=not once and _repeatable(request))
        ended = partial(self._ended, request.request, report)
        self._errands[request.request] = Errand(self._loop, run, ended)

    def stop(self, request: int) -> dict[str, Any] | None:
        """Close the connection of a request, which cancels it; no message says so (HTTP.4)."""
        errand = self._errands.pop(request, None)
        if errand is not None:
            errand.cancel()
        return None

    async def close(self) -> None:
        """Close the connections that are kept, and keep none any more."""
        self._closed = True
        while self._idle:
            await self._idle.pop().stream.close()

    def _ended(self, request: int, report: Callable[[Fact], None], fact: Fact | None) -> None:
        if self._errands.pop(request, None) is not None and fact is not None:
            report(fact)

    # -- one request ---------------------------------------------------------------------------------------

    async def _ask(
        self, request: SendRequest | SendLegacy, report: Callable[[Fact], None], *, repeatable: bool
    ) -> Fact:
        """Have a request answered; report the notifications on the way, and return the last fact."""
        name = request.request
        try:
            more = tuple((await self._more_headers()).items())
        except Exception as error:
            _log.error("a headers= function failed: %s", describe(error))
            return RequestFailed(name, "the headers= function failed", sent=False, fault=Fault.CALLER)
        await self._places.take()
        try:
            return await self._ask_on_some(request, more, report, repeatable=repeatable)
        except LocalProtocolError as error:
            return RequestFailed(name, str(error), sent=False, fault=Fault.CALLER)
        except Exception as error:
            _log.error("a request failed within this client: %s", describe(error))
            return RequestFailed(name, "an error within this client", fault=Fault.CALLER)
        finally:
            self._places.give_back()

    async def _more_headers(self) -> Mapping[str, str]:
        if self._headers is None or isinstance(self._headers, Mapping):
            return self._headers or {}
        more = self._headers()
        return await more if inspect.isawaitable(more) else more

    async def _ask_on_some(
        self,
        request: SendRequest | SendLegacy,
        more: Headers,
        report: Callable[[Fact], None],
        *,
        repeatable: bool,
    ) -> Fact:
        """Ask on a kept connection if there is one, and on a new one if there is not or it turns out dead."""
        name = request.request
        connection = await self._kept_connection(None if repeatable else FRESH_MS)
        if connection is not None:
            fact = await self._converse(connection, request, more, report)
            if not (repeatable and isinstance(fact, RequestFailed) and connection.exchange.silent):
                return fact
        try:
            stream = await self._opened()
        except (OSError, ValueError) as error:
            return RequestFailed(name, f"no connection to the server: {_why(error)}", sent=False)
        connection = _Connection(stream, HttpExchange(self._address, self._limits, self._new_head))
        return await self._converse(connection, request, more, report)

    async def _opened(self) -> Stream:
        """Open a connection in time. Raises ``OSError`` or ``ValueError``."""
        opened: list[Stream] = []

        async def open_stream() -> None:
            opened.append(await self._open_stream())

        seconds = self._connection_limits.connect_timeout_ms / 1000
        if not await self._loop.within(seconds, open_stream):
            raise TimeoutError("it took too long")
        return opened[0]

    async def _converse(
        self,
        connection: _Connection,
        request: SendRequest | SendLegacy,
        more: Headers,
        report: Callable[[Fact], None],
    ) -> Fact:
        """Write a request and read to its last fact; keep the connection, or close it.

        Raises :class:`LocalProtocolError` before anything is written.
        """
        kept = False
        try:
            data = connection.exchange.begin(request, more)
            fact = await self._to_last_fact(connection.stream, connection.exchange, data, report)
            kept = connection.exchange.reusable and not self._closed
            if kept:
                await self._keep(connection)
            return fact
        finally:
            if not kept:
                await connection.stream.close()

    async def _to_last_fact(
        self, stream: Stream, exchange: HttpExchange, data: bytes, report: Callable[[Fact], None]
    ) -> Fact:
        broken: OSError | None = None
        try:
            await stream.send(data)
        except OSError as error:
            if isinstance(error, TimeoutError) and stream.idle():
                return RequestFailed(exchange.request, _told(error))
            broken = error  # but the server may have answered all the same, before it stopped to read
        while True:
            try:
                received = await stream.receive()
            except OSError as error:
                broken, received = broken or error, b""
            fact = await self._taken_in(exchange, received, report)
            if broken is not None and isinstance(fact, RequestFailed):
                return evolve(fact, reason=f"{fact.reason} ({_told(broken)})")
            if fact is not None:
                return fact

    async def _taken_in(
        self, exchange: HttpExchange, received: bytes, report: Callable[[Fact], None]
    ) -> Fact | None:
        """Take in what came, and report what it says; return the last fact, if it is among that."""
        turn, last = Turn(self._loop), None
        for piece in pieces(received):
            for fact in exchange.receive(piece, self._loop.now_ms()):
                if isinstance(fact, NotificationReceived | ServerAsked | StreamOpened):
                    report(fact)
                else:
                    last = fact
            await turn.share()
        return last

    # -- connections ---------------------------------------------------------------------------------------

    async def _kept_connection(self, used_within_ms: int | None) -> _Connection | None:
        """Take a connection that was kept and still stands, or ``None``."""
        now_ms = self._loop.now_ms()
        await self._let_go_of_old(now_ms)
        while self._idle:
            if used_within_ms is not None and now_ms - self._idle[-1].idle_since_ms > used_within_ms:
                return None
            connection = self._idle.pop()
            if connection.stream.idle():
                return connection
            await connection.stream.close()
        return None

    async def _keep(self, connection: _Connection) -> None:
        connection.idle_since_ms = now_ms = self._loop.now_ms()
        self._idle.append(connection)
        await self._let_go_of_old(now_ms)

    async def _let_go_of_old(self, now_ms: int) -> None:
        """Close the connections that were kept for too long, and the oldest of too many."""
        limits = self._connection_limits
        oldest_ms = now_ms - limits.idle_ms
        while self._idle and (
            len(self._idle) > limits.idle_connections or self._idle[0].idle_since_ms < oldest_ms
        ):
            await self._idle.pop(0).stream.close()


class _Places:
    """A number of places, given out in the order in which they are asked for."""

    def __init__(self, loop: ClientLoop, places: int) -> None:
        self._loop = loop
        self._free = places
        self._queue: deque[Event] = deque()

    async def take(self) -> None:
        """Wait for a place."""
        if self._free:
            self._free -= 1
            return
        called = self._loop.event()
        self._queue.append(called)
        try:
            await called.wait()
        except BaseException:
            if called.is_set():
                self.give_back()
            else:
                self._queue.remove(called)
            raise

    def give_back(self) -> None:
        """Let the next one have the place."""
        if self._queue:
            self._queue.popleft().set()
        else:
            self._free += 1


def _why(error: Exception) -> str:
    """Return why there is no connection, in words that are the same on every loop."""
    for cause in _causes(error):
        match cause:
            case ConnectionRefusedError():
                return "connection refused"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not accepted: {cause.verify_message}"
            case ssl.SSLError():
                return f"TLS failed, perhaps it speaks plain HTTP: {cause.reason or _told(cause)}"
            case OSError(strerror=str() as words, errno=int()) if words:
                return words[0].lower() + words[1:]
    if len(numbers := set(_ERROR_NUMBERS.findall(str(error)))) == 1:  # the same at each of its addresses
        return os.strerror(int(*numbers)).lower()
    return _told(error)


_ERROR_NUMBERS: Final = pattern(r"\[Errno ([0-9]+)\]")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an exception and those that led to it, the innermost first."""
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    yield error


def _repeatable(request: SendRequest | SendLegacy) -> bool:
    """Whether to send it twice does no more than to send it once; so it is with all that is no request."""
    if isinstance(request, SendLegacy) and not request.awaits_response:
        return True
    return request.message is not None and request.message["method"] in REPEATABLE


def _told(error: Exception) -> str:
    """Return what an exception says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
