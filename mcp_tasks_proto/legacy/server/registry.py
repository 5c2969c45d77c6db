"""The sessions that are open, and which exchange belongs to which (LEG.2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import OpenStream, Reply, Send, StopCall
from mcp_tasks_proto.errors import ErrorObject, internal_error, invalid_request
from mcp_tasks_proto.legacy.server.events import EventLog, KeptEvents, Place, event_id
from mcp_tasks_proto.legacy.server.inner import Caller, Inner
from mcp_tasks_proto.legacy.server.sessions import ClientRequest, Outlet, OwnStream, Session
from mcp_tasks_proto.legacy.translation import modern_capabilities
from mcp_tasks_proto.legacy.vocabulary import TOOLS_CHANGED
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.wire.jsonrpc import Request, notification_message

__all__ = ["Registry"]

SESSION_ENDED: Final = invalid_request("the session ended before this request was answered")
CALL_ENDED: Final = internal_error("the session ended before this call did: it may have been carried out")


@define(eq=False, repr=False, kw_only=True)
class Registry:
    """Opens sessions, requests and streams, and ends them."""

    limits: Limits
    inner: Inner
    timers: Timers
    out: list[Any]
    _sessions: dict[Hashable, Session] = field(init=False, factory=dict)
    _per_principal: dict[str | None, int] = field(init=False, factory=dict)
    _exchanges: dict[Hashable, ClientRequest | OwnStream] = field(init=False, factory=dict)
    _accepting: set[Hashable] = field(init=False, factory=set)
    """Exchanges of the client's answers that are not kept yet."""
    _questions: count[int] = field(init=False, factory=lambda: count(1))
    """Ids of questions to come: what answers one of a session that has ended answers none of the next."""
    _all_lost: dict[ClientRequest, None] = field(init=False, factory=dict)
    """Requests of all sessions that go on without a connection, in the order of its loss."""
    _events: KeptEvents = field(init=False)
    requests: int = field(init=False, default=0)
    """How many requests are open, those that lost their connection included."""

    def __attrs_post_init__(self) -> None:
        self._events = KeptEvents(self.limits)

    def find(self, key: Hashable, principal: str | None) -> Session | None:
        """Return the session; ``None``: there is none, or it is somebody else's (SEC.1)."""
        session = self._sessions.get(key)
        return session if session is not None and session.principal == principal else None

    def holds(self, exchange: Hashable) -> bool:
        """Whether this exchange belongs to a session."""
        return exchange in self._exchanges or exchange in self._accepting

    def owner(self, exchange: Hashable) -> ClientRequest | OwnStream | None:
        """Return what an exchange of a session is for; ``None``: for an answer of the client's."""
        return self._exchanges.get(exchange)

    # -- sessions --------------------------------------------------------------------------------------

    def full(self, principal: str | None) -> str | None:
        """Return the bound that a new session would break, if it would break one."""
        if len(self._sessions) >= self.limits.sessions:
            return "sessions"
        if self._per_principal.get(principal, 0) >= self.limits.sessions_per_principal:
            return "sessions_per_principal"
        return None

    def open(
        self,
        key: Hashable,
        *,
        principal: str | None,
        capabilities: Mapping[str, Any],
        resumable: bool,
    ) -> None:
        """Open a session; ``resumable``: it is one over HTTP."""
        session = Session(
            key=key,
            principal=principal,
            capabilities=modern_capabilities(capabilities),
            log=EventLog(self._events) if resumable else None,
            used_ms=self.inner.now,
            left=self._left,
            questions_to_come=self._questions,
        )
        self._sessions[key] = session
        self._per_principal[principal] = self._per_principal.get(principal, 0) + 1
        if resumable:
            self.timers.set(session, self.inner.now + self.limits.session_idle_ms)

    def end(self, session: Session) -> None:
        """End a session: its requests fail with it. Its tasks go on."""
        session.ended = True
        if session.log is not None:
            session.log.close()
        for request in list(session.requests.values()):
            if request.survives:  # with 404 it would be sent once more, in the next session
                request.fail(CALL_ENDED)
            else:
                request.fail(SESSION_ENDED, 404)
        self.close_own_stream(session)
        self.timers.clear(session)
        del self._sessions[session.key]
        left = self._per_principal[session.principal] - 1
        if left:
            self._per_principal[session.principal] = left
        else:
            del self._per_principal[session.principal]

    def end_all(self) -> None:
        """End every session: there are to be none any more."""
        for session in list(self._sessions.values()):
            self.end(session)

    def end_connection(self, connection: Hashable) -> None:
        """End the session of a connection, if it has one."""
        session = self._sessions.get(connection)
        if session is not None:
            self.end(session)

    def time_passed(self, session: Session) -> None:
        """End a session that has been idle for long enough."""
        idle_since = self.inner.now if session.busy else session.used_ms
        due = idle_since + self.limits.session_idle_ms
        if due > self.inner.now:
            self.timers.set(session, due)
        else:
            self.end(session)

    def shut_down(self, error: ErrorObject) -> None:
        """End streams without a request, and fail the calls that wait for an answer of their client's.

        Those could not go on: the engine takes no more requests.
        """
        for session in self._sessions.values():
            self.close_own_stream(session)
            for request in [one for one in session.requests.values() if one.inner is None and one.asks]:
                request.fail(error, 503)

    # -- requests --------------------------------------------------------------------------------------

    def begin(
        self, session: Session, request: Request, exchange: Hashable, *, can_stream: bool, caller: Caller
    ) -> ClientRequest:
        """Take in a request of a session."""
        outlet = Outlet(
            number=session.next_stream(),
            exchange=exchange,
            can_stream=can_stream,
            log=session.log,
            out=self.out,
        )
        begun = ClientRequest(session=session, request=request, outlet=outlet, caller=caller)
        session.requests[request.id] = begun
        self.requests += 1
        self._exchanges[exchange] = begun
        return begun

    def cancel(self, request: ClientRequest) -> None:
        """End a request without an answer."""
        request.drop()
        if request.outlet.exchange is not None:
            self.out.append(StopCall(request.outlet.exchange))

    def _left(self, request: ClientRequest) -> None:
        self.requests -= 1
        self._all_lost.pop(request, None)
        self._exchanges.pop(request.outlet.exchange, None)

    # -- exchanges -------------------------------------------------------------------------------------

    def closed(self, exchange: Hashable) -> None:
        """The connection of an exchange is gone. Over HTTP that does not cancel a call."""
        if exchange in self._accepting:
            self._accepting.discard(exchange)
            return
        owner = self._exchanges.pop(exchange)
        if isinstance(owner, OwnStream):
            owner.end()
            return
        owner.outlet.exchange = None
        if owner.survives and owner.session.log is not None:
            self._lost(owner)
        else:
            owner.drop()

    def _lost(self, request: ClientRequest) -> None:
        """Let a request go on without a connection, and the oldest of too many not (LIM.3)."""
        if request.inner is not None:
            self.inner.ready(request.inner)
        lost = request.session.lost
        lost[request] = self._all_lost[request] = None
        if len(lost) > self.limits.session_lost_requests:
            self.cancel(next(iter(lost)))

    def make_room(self) -> bool:
        """Return whether another request may begin; one whose client has left gives way to it (LIM.3)."""
        if self.requests >= self.limits.exchanges and self._all_lost:
            self.cancel(next(iter(self._all_lost)))
        return self.requests < self.limits.exchanges

    def accept(self, exchange: Hashable) -> Callable[[], None]:
        """Return what says that an answer of the client's is taken: only once it is kept."""
        self._accepting.add(exchange)
        return partial(self._accepted, exchange)

    def _accepted(self, exchange: Hashable) -> None:
        if exchange in self._accepting:
            self._accepting.discard(exchange)
            self.out.append(Reply(exchange, None, 202))

    def ready(self, exchange: Hashable) -> None:
        """There is room for more on an exchange."""
        owner = self._exchanges.get(exchange)
        if isinstance(owner, OwnStream):
            self.out.extend(owner.outbox.ready())
        elif owner is not None and owner.inner is not None:
            self.inner.ready(owner.inner)

    # -- streams without a request of their own ----------------------------------------------------------

    def open_own_stream(self, session: Session, exchange: Hashable) -> None:
        """Tell the client on this exchange, from now on, what belongs to no request: the tools changed."""
        self.close_own_stream(session)
        session.own = self._exchanges[exchange] = OwnStream(session, Outbox(exchange))

    def tools_changed(self) -> None:
        """Tell every client that can be told."""
        for session in self._sessions.values():
            self.tell_tools_changed(session)

    def tell_tools_changed(self, session: Session) -> None:
        """Tell one client, if it can be told."""
        if session.own is not None:
            news = partial(notification_message, TOOLS_CHANGED, {})
            self.out.extend(session.own.outbox.put(TOOLS_CHANGED, news))

    def close_own_stream(self, session: Session) -> None:
        """End that stream, if there is one."""
        own = session.own
        if own is not None:
            own.end()
            del self._exchanges[own.exchange]
            self.out.append(Reply(own.exchange, None, 200))

    def resume(self, session: Session, exchange: Hashable, place: Place) -> None:
        """Take up a request's stream behind an event of it: what was missed, then what is still to come."""
        self.out.append(OpenStream(exchange))
        for event in session.log.after(place) if session.log is not None else ():
            name = event_id(event.place)
            if event.last:
                self.out.append(Reply(exchange, event.message, 200, event_id=name))
                return
            self.out.append(Send(exchange, event.message, name))
        request = session.stream(place.stream)
        if request is None:
            self.out.append(Reply(exchange, None, 200))
            return
        if request.outlet.exchange is not None:  # its old connection is dead, and nobody has noticed yet
            self._exchanges.pop(request.outlet.exchange)
            self.out.append(Reply(request.outlet.exchange, None, 200))
        session.lost.pop(request, None)
        self._all_lost.pop(request, None)
        request.outlet.exchange = exchange
        self._exchanges[exchange] = request
