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

from mcp_tasks_adapters.client.loop import ClientLoop, Outgoing, Stream, Unasked
from mcp_tasks_adapters.driver import Event
from mcp_tasks_adapters.http_exchange import (
    Fact,
    Headers,
    HttpAddress,
    HttpExchange,
    RequestWriter,
    check_headers,
    taken_up_at,
)
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.legacy.messages import SendLegacy
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import Fault, RequestFailed, ResponseReceived
from mcp_tasks_proto.wire.jsonrpc import encode

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


class HttpTransport:
    """The way to one HTTP endpoint.

    ``open_stream`` opens a connection to it, and raises ``OSError`` or ``ValueError`` where it cannot;
    ``encode`` writes messages. Raises ``ValueError`` for headers that the protocol itself sets.
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
        encode: Callable[[Mapping[str, Any]], bytes] = encode,
    ) -> None:
        self._ask_for_headers = headers if callable(headers) else None
        self._headers: Headers = () if headers is None or callable(headers) else tuple(headers.items())
        check_headers(self._headers)
        self._writer = RequestWriter(address, encode)
        self._loop = loop
        self._open_stream = open_stream
        self._limits = limits
        self._connection_limits = connection_limits
        self._places = _Places(loop, connection_limits.connections)
        self._idle: list[_Connection] = []  # the last was used last
        self._closed = False
        self._orders: dict[int, _Order] = {}

    # -- for the driver ------------------------------------------------------------------------------------

    speaks_http: Final = True

    def unasked(self, report: Callable[[Unasked], None]) -> None:
        """Do nothing: here all that a server says comes on the stream of some request."""

    async def open(self) -> None:
        """Do nothing: connections are opened when they are needed."""

    def send(self, request: Outgoing, report: Callable[[Fact], None], *, once: bool = False) -> None:
        """Send a request, and report what comes of it. ``once``: never twice, whatever its method."""
        repeatable = not once and _repeatable(request)
        order = _Order(request, report, repeatable=repeatable, headers=self._headers)
        self._orders[request.request] = order
        connection = None
        if self._ask_for_headers is None and self._places.take_free():
            order.has_place = True
            connection = self._kept_connection(order)
        if connection is None:
            self._prepare_soon(order)
        else:  # as almost always: there is nothing to wait for
            connection.ask(order)

    def stop(self, request: int) -> dict[str, Any] | None:
        """Close the connection of a request, which cancels it; no message says so (HTTP.4)."""
        order = self._orders.get(request)
        if order is not None:
            self._forget(order)
            if order.connection is not None:
                order.connection.close()
            elif order.errand is not None:
                order.errand.cancel()
        return None

    async def close(self) -> None:
        """Close the connections that are kept, and keep none any more."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        await self._loop.checkpoint()  # the time that asyncio takes to close what was let go of

    # -- one request ---------------------------------------------------------------------------------------

    def _prepare_soon(self, order: _Order) -> None:
        order.errand = Errand(self._loop, partial(self._prepare, order), partial(self._prepared, order))

    async def _prepare(self, order: _Order) -> _Connection | RequestFailed:
        """Wait for what a request needs: its headers, a place, a connection. Or return why it gets none."""
        name = order.request.request
        if self._ask_for_headers is not None:
            try:
                more = self._ask_for_headers()
                order.headers = tuple((await more if inspect.isawaitable(more) else more).items())
            except Exception as error:
                _log.error("a headers= function failed: %s", describe(error))
                return RequestFailed(name, "the headers= function failed", sent=False, fault=Fault.CALLER)
        if not order.has_place:
            await self._places.take()
            order.has_place = True
        kept = None if order.needs_new else self._kept_connection(order)
        if kept is not None:
            return kept
        try:
            stream = await self._opened()
        except (OSError, ValueError) as error:
            reason = f"no connection to the server: {_why(error)}"
            return RequestFailed(name, reason, sent=False, last_event_id=taken_up_at(order.request))
        except Exception as error:
            _log.error("a connection was not opened: %s", describe(error))
            return RequestFailed(name, _OWN_ERROR, sent=False, fault=Fault.CALLER)
        return _Connection(self, stream, HttpExchange(self._writer, self._limits))

    async def _opened(self) -> Stream:
        """Open a connection in time. Raises ``OSError`` or ``ValueError``."""
        opened: list[Stream] = []

        async def open_stream() -> None:
            opened.append(await self._open_stream())

        seconds = self._connection_limits.connect_timeout_ms / 1000
        if not await self._loop.within(seconds, open_stream):
            raise TimeoutError("it took too long")
        return opened[0]

    def _prepared(self, order: _Order, ready: _Connection | RequestFailed | None) -> None:
        """Go on with a request, unless it was stopped: what it has got all the same is given back."""
        order.errand = None
        if self._orders.get(order.request.request) is not order:
            self._leave_place(order)
            if isinstance(ready, _Connection):
                ready.close()
        elif isinstance(ready, RequestFailed):
            self._end(order, ready)
        elif ready is not None:
            ready.ask(order)

    def _answered(
        self, order: _Order, connection: _Connection, answer: ResponseReceived, now_ms: int
    ) -> None:
        self._keep_or_close(connection, now_ms)
        self._end(order, answer)

    def _failed(self, order: _Order, connection: _Connection, failure: RequestFailed, now_ms: int) -> None:
        """What goes out on a connection that was kept, and is dead by then, nobody has heard: it may go out
        once more."""
        again = order.repeatable and connection.was_kept and connection.exchange.silent
        self._keep_or_close(connection, now_ms)
        if again:
            order.needs_new, order.connection = True, None
            self._prepare_soon(order)
        else:
            self._end(order, failure)

    def _end(self, order: _Order, fact: Fact) -> None:
        self._forget(order)
        order.report(fact)

    def _forget(self, order: _Order) -> None:
        del self._orders[order.request.request]
        self._leave_place(order)

    def _leave_place(self, order: _Order) -> None:
        if order.has_place:
            order.has_place = False
            self._places.give_back()

    # -- connections ---------------------------------------------------------------------------------------

    def _kept_connection(self, order: _Order) -> _Connection | None:
        """Take a connection that was kept and still stands, or ``None``."""
        now_ms = self._loop.now_ms()
        while self._idle:
            idle_ms = now_ms - self._idle[-1].idle_since_ms
            if idle_ms > FRESH_MS and not order.repeatable:
                return None
            connection = self._idle.pop()
            if idle_ms <= self._connection_limits.idle_ms and connection.stream.idle():
                return connection
            connection.close()
        return None

    def _keep_or_close(self, connection: _Connection, now_ms: int) -> None:
        """Keep a connection for the next request, if it is fit for one. Close those that were kept for too
        long, and the oldest of too many."""
        if self._closed or not connection.exchange.reusable:
            connection.close()
            return
        connection.was_kept = True
        connection.idle_since_ms = now_ms
        self._idle.append(connection)
        limits = self._connection_limits
        oldest_ms = now_ms - limits.idle_ms
        while self._idle and (
            len(self._idle) > limits.idle_connections or self._idle[0].idle_since_ms < oldest_ms
        ):
            self._idle.pop(0).close()

    def _dead(self, connection: _Connection) -> None:
        """A connection that is kept has ended, or something came on it that nobody asked for."""
        connection.close()
        self._idle.remove(connection)


@define(eq=False)
class _Order:
    """A request on its way: in ``errand`` it waits for what it needs, then ``connection`` has it."""

    request: Outgoing
    report: Callable[[Fact], None]
    repeatable: bool = field(kw_only=True)
    headers: Headers = field(kw_only=True)
    """Those of the caller's own."""
    has_place: bool = False
    needs_new: bool = False
    """Whether it is to go out on a new connection."""
    errand: Errand[_Connection | RequestFailed] | None = None
    connection: _Connection | None = None


@define(eq=False)
class _Connection:
    """A connection, and the request that it has, if it has one."""

    transport: HttpTransport
    stream: Stream
    exchange: HttpExchange
    was_kept: bool = False
    """Whether something was answered on it before."""
    idle_since_ms: int = 0
    _order: _Order | None = None

    def __attrs_post_init__(self) -> None:
        self.stream.start(self._heard)

    def close(self) -> None:
        """Close it, and hear no more."""
        self._order = None
        self.stream.close()

    def ask(self, order: _Order) -> None:
        """Write a request."""
        self._order, order.connection = order, self
        try:
            data = self.exchange.begin(order.request, order.headers)
        except LocalProtocolError as error:
            self._fail(
                order, RequestFailed(order.request.request, str(error), sent=False, fault=Fault.CALLER)
            )
        else:
            self.stream.write(data)

    def _heard(self, data: bytes) -> None:
        order = self._order
        if order is None:
            self.transport._dead(self)
            return
        try:
            self._take(order, data)
        except Exception as error:
            _log.error("a request failed within this client: %s", describe(error))
            if self._order is order:
                self._fail(order, RequestFailed(order.request.request, _OWN_ERROR, fault=Fault.CALLER))

    def _take(self, order: _Order, data: bytes) -> None:
        """Read on, and report what there is on the way; one report may lead to the end of the request."""
        now_ms = self.transport._loop.now_ms()
        for fact in self.exchange.receive(data, now_ms):
            if isinstance(fact, ResponseReceived):
                self._order = None
                self.transport._answered(order, self, fact, now_ms)
                return
            if isinstance(fact, RequestFailed):
                self._order = None
                self.transport._failed(order, self, self._explained(fact), now_ms)
                return
            order.report(fact)
            if self._order is not order:
                return

    def _explained(self, failure: RequestFailed) -> RequestFailed:
        """Return a failure with the reason that the stream has for it."""
        error = self.stream.error
        if error is None:
            return failure
        late = isinstance(error, TimeoutError) and self.exchange.silent
        return evolve(failure, reason=_told(error) if late else f"{failure.reason} ({_told(error)})")

    def _fail(self, order: _Order, failure: RequestFailed) -> None:
        self.close()
        self.transport._end(order, failure)


_OWN_ERROR: Final = "an error within this client"


class _Places:
    """A number of places, given out in the order in which they are asked for."""

    def __init__(self, loop: ClientLoop, places: int) -> None:
        self._loop = loop
        self._free = places
        self._queue: deque[Event] = deque()

    def take_free(self) -> bool:
        """Take a place if there is one."""
        if self._free:
            self._free -= 1
            return True
        return False

    async def take(self) -> None:
        """Wait for a place."""
        if self.take_free():
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


def _repeatable(request: Outgoing) -> bool:
    """Whether to send it twice does no more than to send it once; so it is with all that is no request."""
    if isinstance(request, SendLegacy) and not request.awaits_response:
        return True
    return request.message is not None and request.message["method"] in REPEATABLE


def _told(error: Exception) -> str:
    """Return what an exception says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
