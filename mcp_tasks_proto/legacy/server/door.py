"""The sessions of 2025-11-25 before an engine of the modern era, be it a server's or a proxy's.

::

    host --- modern message ------------------------------> engine
         --- message of a session ---> translation -------> engine
         <-- reply, as its era has it <--------------------

The engine inside knows one era only. A request of a session is asked of it as a modern one, on an exchange of
the translator's own, and its answer is put into the words of 2025-11-25 (LEG.9). So a task is one record,
whoever made it, and every status changes in one table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Generic, TypeVar

from attrs import define, evolve, field, frozen

from mcp_tasks_proto.effects import OpenStream, Reply
from mcp_tasks_proto.errors import (
    ErrorObject,
    LocalProtocolError,
    invalid_params,
    invalid_request,
    limit_reached,
)
from mcp_tasks_proto.inputs import (
    ConnectionClosed,
    ExchangeClosed,
    HttpHead,
    MessageReceived,
    SessionEnded,
    ShutdownStarted,
    StreamReady,
    StreamRequested,
    TimePassed,
)
from mcp_tasks_proto.legacy.server.events import read_event_id
from mcp_tasks_proto.legacy.server.inner import Caller, Inner
from mcp_tasks_proto.legacy.server.registry import Registry
from mcp_tasks_proto.legacy.server.sessions import ClientRequest, Session
from mcp_tasks_proto.legacy.server.waiting import Waiter, Waiting
from mcp_tasks_proto.legacy.vocabulary import (
    CANCELLED,
    INITIALIZE,
    INITIALIZED,
    LAST_EVENT_ID_HEADER,
    PROTOCOL_VERSION_HEADER,
    SESSION_HEADER,
)
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.timers import LAST_MS, Timers
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, MODERN_VERSION, PROTOCOL_VERSION
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    error_message,
    is_id,
    parse_message,
    result_message,
)

__all__ = ["LegacyDoor", "session_key"]

NO_SESSION: Final = invalid_request(
    f"this is no message of {LEGACY_VERSION}: that begins with initialize, and every later request names its "
    "session in Mcp-Session-Id"
)
IN_FLIGHT: Final = invalid_request("a request with this id is in flight")
UNKNOWN_SESSION: Final = invalid_request(
    "there is no such session: it has ended; begin another with initialize, without Mcp-Session-Id"
)


_Step = TypeVar("_Step")


@define(eq=False, repr=False, kw_only=True)
class LegacyDoor(ABC, Generic[_Step]):
    """The engine's interface, with :data:`~mcp_tasks_proto.inputs.LegacyInput` beside its inputs.

    Messages of the modern era go straight through. Sessions are kept here, in this process: over HTTP a
    client's requests must all reach the same one. What differs from role to role its subclasses say.
    """

    _step: Callable[[Any, int | None], _Step] = field(init=False)
    """The type of what :meth:`handle` returns: of effects and a deadline."""
    _shutting_down: ErrorObject = field(init=False)
    _handlers: Mapping[type, Callable[[Any, Any], None]] = field(init=False)
    """What is done with inputs that may concern a session; those that are not here are the engine's."""
    _out: list[Any] = field(init=False, factory=list)
    _timers: Timers = field(init=False, factory=Timers)
    _own_deadline: int | None = field(init=False, default=None)
    """The next of them: they change only where a session is concerned."""
    _quiet: bool = field(init=False, default=True)
    """Whether no question of the translator's is open; that changes likewise."""
    _inner: Inner = field(init=False)
    _waiting: Waiting = field(init=False)
    _registry: Registry = field(init=False)
    _stopping: bool = field(init=False, default=False)

    def _set_up(
        self,
        inner: Inner,
        limits: Limits,
        *,
        step: Callable[[Any, int | None], _Step],
        shutting_down: ErrorObject,
        handlers: Mapping[type, Callable[[Any, Any], None]],
    ) -> None:
        """Take what the role brings along; ``handlers`` are those that it adds, or has in place of others."""
        self._step = step
        self._shutting_down = shutting_down
        self._handlers = {**_HANDLERS, **handlers}
        self._inner = inner
        self._waiting = Waiting(inner=inner, timers=self._timers, shutting_down=shutting_down)
        self._registry = Registry(limits=limits, inner=inner, timers=self._timers, out=self._out)

    # -- what differs --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _versions(self) -> tuple[str, ...]:
        """Modern versions that are served."""

    @abstractmethod
    def _greet(self, received: MessageReceived, request: Request, capabilities: Mapping[str, Any]) -> None:
        """Answer an ``initialize`` that is well formed, by :meth:`_open` or with an error."""

    @abstractmethod
    def _caller(self, received: MessageReceived, capabilities: Mapping[str, Any]) -> Caller:
        """Return on whose behalf the engine is asked what a message asks."""

    @abstractmethod
    def _begin(self, request: ClientRequest) -> None:
        """Begin to answer a request of a session."""

    # -- inputs --------------------------------------------------------------------------------------------

    def handle(self, input: Any, *, now: int) -> _Step:  # noqa: A002 - as for the engine
        """Take in one fact; return what to do about it, in order.

        As the engine's own ``handle``, which raises what this raises.
        """
        inner = self._inner
        if (self._quiet and type(input) not in self._handlers) or self._is_the_engines(input):
            # By far the most of what comes; it must cost next to nothing that there are two eras.
            step: Any = inner.engine.handle(input, now=now)
            inner.deadline = step.deadline
            if now > inner.now:
                inner.now = now
            own = self._own_deadline
            if own is None or (step.deadline is not None and step.deadline <= own):
                result: _Step = step
                return result
            return self._step(step.effects, own)
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        before = inner.now
        inner.now = max(before, now)
        self._out.clear()
        self._quiet = False  # until it is known: should this fail, what comes next is looked at
        try:
            handle: Callable[[Any, Any], None] = self._handlers.get(type(input), LegacyDoor._take)
            handle(self, input)
        except LocalProtocolError:
            inner.now = before
            raise
        inner.drain()
        self._quiet = inner.quiet
        self._own_deadline = self._timers.next
        return self._step(tuple(self._out), _earliest(inner.deadline, self._own_deadline))

    def _is_the_engines(self, fact: Any) -> bool:
        """Whether a fact concerns no session, and nothing that is asked of the engine for one."""
        kind = type(fact)
        if kind not in self._handlers:
            return self._quiet
        if isinstance(fact, MessageReceived):
            return _is_modern(fact.message) and (fact.connection is None or self._leaves_id_free(fact))
        return kind in _OF_AN_EXCHANGE and not self._holds(fact.exchange)

    def _holds(self, exchange: Hashable) -> bool:
        """Whether this exchange belongs to a session, or is about to."""
        return self._registry.holds(exchange)

    def _greets(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether an ``initialize`` with this id awaits its answer on a shared channel."""
        return False

    def _leaves_id_free(self, received: MessageReceived) -> bool:
        """Whether no request of this era on the same channel has the id of a modern message (WIRE.3)."""
        request_id = received.message.get("id")
        return not is_id(request_id) or not self._in_flight_here(received, request_id)

    def _in_flight_here(self, received: MessageReceived, request_id: str | int) -> bool:
        """Whether a request of this era with this id awaits its answer on a message's channel."""
        session = self._registry.find(received.connection, received.principal)
        asked = session is not None and request_id in session.requests
        return asked or self._greets(received.connection, request_id)

    def _in_flight(self, received: MessageReceived, request: Request) -> bool:
        """Whether a request with this id awaits its answer on the same channel, in whichever era (WIRE.3).

        That goes for an ``initialize`` as well, be it this request or the one in flight.
        """
        connection = received.connection
        if connection is None:  # over HTTP its session says so, once it is found
            return False
        engine = self._inner.engine
        return self._in_flight_here(received, request.id) or engine.in_flight(connection, request.id)

    def _take(self, fact: Any) -> None:
        self._inner.take(fact)

    # -- messages --------------------------------------------------------------------------------------

    def _message_received(self, received: MessageReceived) -> None:
        """Find out whose message it is, once it does not say so itself."""
        http = received.http
        if self._holds(received.exchange):
            raise LocalProtocolError(f"{type(received).__name__}: this exchange is open already")
        parsed = parse_message(received.message)
        if isinstance(parsed, Request) and self._in_flight(received, parsed):
            self._out.append(Reply(received.exchange, error_message(parsed.id, IN_FLIGHT), 200))
        elif isinstance(parsed, Request) and parsed.method == INITIALIZE:
            self._initialize(received, parsed)
        elif http is None:
            session = self._registry.find(received.connection, received.principal)
            if session is None or received.connection is None:
                self._inner.take(received)
            else:
                self._message_of(session, received, parsed)
        elif http.headers.get(PROTOCOL_VERSION_HEADER) == MODERN_VERSION or not _of_this_era(http):
            self._inner.take(received)
        else:
            found = self._session_of(http, received.principal)
            if isinstance(found, Session):
                self._message_of(found, received, parsed)
            else:
                self._out.append(Reply(received.exchange, _refused(parsed, found.error), found.http_status))

    def _session_of(self, http: HttpHead, principal: str | None) -> Session | _Refusal:
        """Return the session that a request over HTTP belongs to, or why it is not let in (LEG.2)."""
        key = http.headers.get(SESSION_HEADER)
        if key is None or SESSION_HEADER in http.repeated:
            return _Refusal(NO_SESSION, 400)
        session = self._registry.find(key, principal)
        if session is None or session.log is None:  # one of stdio is of no use here, whatever its key is
            return _Refusal(UNKNOWN_SESSION, 404)
        if http.headers.get(PROTOCOL_VERSION_HEADER, LEGACY_VERSION) != LEGACY_VERSION:
            return _Refusal(self._other_version(), 400)
        return session

    def _other_version(self) -> ErrorObject:
        served = [*self._versions, LEGACY_VERSION]
        detail = f"MCP-Protocol-Version is not the session's; this server speaks {', '.join(served)}"
        return evolve(invalid_request(detail), data={"supported": served})

    def _initialize(self, received: MessageReceived, request: Request) -> None:
        """Open a session (LEG.2). Whatever version is asked for, this is the one there is."""
        params, exchange = request.params, received.exchange
        session_key(received)  # a host that gives none is told so
        capabilities = params.get("capabilities")
        if not isinstance(params.get("protocolVersion"), str) or not isinstance(capabilities, dict):
            error = invalid_params("initialize needs protocolVersion, a string, and capabilities, an object")
            self._out.append(Reply(exchange, error_message(request.id, error), 400))
            return
        self._greet(received, request, capabilities)

    def _open(
        self,
        received: MessageReceived,
        request: Request,
        capabilities: Mapping[str, Any],
        result: Mapping[str, Any],
    ) -> None:
        """Open a session, if there may be another, and answer its ``initialize`` with ``result``."""
        key, principal, exchange = session_key(received), received.principal, received.exchange
        self._registry.end_connection(key)
        limit = self._registry.full(principal)
        if limit is not None or self._stopping:
            error = self._shutting_down if limit is None else limit_reached(limit)
            self._out.append(Reply(exchange, error_message(request.id, error), 503))
            return
        self._registry.open(
            key,
            principal=principal,
            capabilities=capabilities,
            resumable=received.connection is None,
        )
        self._out.append(
            Reply(exchange, result_message(request.id, result), 200, session=received.new_session)
        )

    def _message_of(self, session: Session, received: MessageReceived, message: Message) -> None:
        session.used_ms = self._inner.now
        if isinstance(message, Request):
            self._request_of(session, received, message)
        elif isinstance(message, Notification):
            self._notification_of(session, received, message)
        elif isinstance(message, Response):
            session.take_answer(message, self._registry.accept(received.exchange))
        else:
            self._out.append(Reply(received.exchange, _refused(message, message.error), 400))

    def _request_of(self, session: Session, received: MessageReceived, request: Request) -> None:
        error = None
        if request.id in session.requests:
            error = IN_FLIGHT
        elif not self._registry.make_room():
            error = limit_reached("exchanges")
        if error is not None:
            self._out.append(Reply(received.exchange, error_message(request.id, error), 200))
            return
        session.caller = self._caller(received, session.capabilities)
        begun = self._registry.begin(
            session,
            request,
            received.exchange,
            can_stream=received.http is None or received.http.accepts_stream,
            caller=session.caller,
        )
        self._begin(begun)

    def _notification_of(
        self, session: Session, received: MessageReceived, notification: Notification
    ) -> None:
        on_stdio = received.connection is not None
        if notification.method == CANCELLED:
            request_id = notification.params.get("requestId")
            request = session.requests.get(request_id) if is_id(request_id) else None
            if request is not None:
                self._registry.cancel(request)
            elif on_stdio:
                self._inner.take(received)  # it may be for a modern request on the same connection
                return
        elif notification.method == INITIALIZED and on_stdio and session.own is None:
            self._open_own_stream(session, received.exchange)
            return
        self._out.append(Reply(received.exchange, None, 202))

    # -- other arrivals --------------------------------------------------------------------------------

    def _stream_requested(self, requested: StreamRequested) -> None:
        exchange, http = requested.exchange, requested.http
        session = self._session_of(http, requested.principal)
        place = None
        if LAST_EVENT_ID_HEADER in http.headers:
            place = read_event_id(http.headers[LAST_EVENT_ID_HEADER])
            if place is None and isinstance(session, Session):
                session = _Refusal(invalid_request("Last-Event-ID is not one that this server gave"), 400)
        if isinstance(session, _Refusal):
            self._out.append(Reply(exchange, error_message(None, session.error), session.http_status))
        elif self._stopping:
            self._out.append(Reply(exchange, error_message(None, self._shutting_down), 503))
        elif place is not None:
            session.used_ms = self._inner.now
            self._registry.resume(session, exchange, place)
        else:
            session.used_ms = self._inner.now
            self._out.append(OpenStream(exchange))
            self._open_own_stream(session, exchange)

    def _open_own_stream(self, session: Session, exchange: Hashable) -> None:
        self._registry.open_own_stream(session, exchange)

    def _session_ended(self, ended: SessionEnded) -> None:
        session = self._session_of(ended.http, ended.principal)
        if isinstance(session, _Refusal):
            self._out.append(Reply(ended.exchange, error_message(None, session.error), session.http_status))
        else:
            self._registry.end(session)
            self._out.append(Reply(ended.exchange, None, 200))

    def _connection_closed(self, closed: ConnectionClosed) -> None:
        self._registry.end_connection(closed.connection)

    def _exchange_closed(self, closed: ExchangeClosed) -> None:
        self._registry.closed(closed.exchange)

    def _stream_ready(self, ready: StreamReady) -> None:
        self._registry.ready(ready.exchange)

    # -- time, operation -------------------------------------------------------------------------------

    def _time_passed(self, passed: TimePassed) -> None:
        self._inner.take(passed)
        for key in self._timers.due(self._inner.now):
            owner: Any = key
            self._due(owner)

    def _due(self, owner: Any) -> None:
        if isinstance(owner, Waiter):
            self._waiting.time_passed(owner)
        else:
            self._registry.time_passed(owner)

    def _shutdown_started(self, started: ShutdownStarted) -> None:
        self._stopping = True
        self._inner.take(started)
        self._registry.shut_down(self._shutting_down)


def session_key(received: MessageReceived) -> Hashable:
    """Return what a session is found by: its connection, or over HTTP its id."""
    key = received.new_session if received.connection is None else received.connection
    if key is None:
        raise LocalProtocolError("MessageReceived: an initialize over HTTP needs new_session (LEG.2)")
    return key


@frozen
class _Refusal:
    """Why a request over HTTP is not let in."""

    error: ErrorObject
    http_status: int


def _is_modern(message: Any) -> bool:
    """Whether a message carries the metadata of the modern era; then it is, whatever else it carries."""
    try:  # the shortest way through the messages that are well formed
        return PROTOCOL_VERSION in message["params"]["_meta"]
    except (LookupError, TypeError):
        return False


def _of_this_era(http: HttpHead) -> bool:
    """Whether the head of a request says anything that a modern one would not."""
    return SESSION_HEADER in http.headers or PROTOCOL_VERSION_HEADER in http.headers


def _refused(message: Message, error: ErrorObject) -> dict[str, Any] | None:
    """Return what is said to a message that is not let in."""
    request_id = message.id if isinstance(message, Request | Malformed) else None
    return error_message(request_id, error)


def _earliest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


_OF_AN_EXCHANGE: Final = frozenset({ExchangeClosed, StreamReady})

_HANDLERS: Final[Mapping[type, Callable[[LegacyDoor[Any], Any], None]]] = {
    MessageReceived: LegacyDoor._message_received,
    StreamRequested: LegacyDoor._stream_requested,
    SessionEnded: LegacyDoor._session_ended,
    ConnectionClosed: LegacyDoor._connection_closed,
    ExchangeClosed: LegacyDoor._exchange_closed,
    StreamReady: LegacyDoor._stream_ready,
    TimePassed: LegacyDoor._time_passed,
    ShutdownStarted: LegacyDoor._shutdown_started,
}
