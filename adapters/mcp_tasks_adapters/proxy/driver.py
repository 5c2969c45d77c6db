"""The synchronous heart of every running proxy: an engine, its store, its upstreams, on somebody's loop.

As the driver of a server it feeds inputs to the engine and carries out the effects, does no I/O and never
waits. A loop module gives it a :class:`~mcp_tasks_adapters.client.loop.ClientLoop` and the ways to its
upstreams.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence, Set
from functools import partial
from itertools import count
from secrets import token_bytes
from typing import Any, Protocol

from attrs import evolve, frozen

from mcp_tasks_adapters.admission import Admission, Arrival, ChangingDoor
from mcp_tasks_adapters.client.loop import ClientLoop, Outgoing, Unasked
from mcp_tasks_adapters.dashboard import Dashboard
from mcp_tasks_adapters.driver import Channel, Event, RequestFacts, session_for
from mcp_tasks_adapters.feeding import Feeder, recorded
from mcp_tasks_adapters.proxy.callers import checked_caller
from mcp_tasks_adapters.proxy.proxy import Proxy
from mcp_tasks_adapters.proxy.storing import ProxyStore, ProxyStoreEffect, ProxyStoreFact, failed
from mcp_tasks_adapters.proxy.troubles import Troubles, Way
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.effects import OpenStream, Reply, Send, StopCall
from mcp_tasks_proto.errors import ErrorObject, internal_error
from mcp_tasks_proto.exchanges import refusal_of
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
from mcp_tasks_proto.legacy.messages import ConnectionLost
from mcp_tasks_proto.legacy.proxy import (
    DualEraProxy,
    DualEraProxyInput,
    ListHandles,
    SendLegacyUpstream,
    UpstreamFact,
    UpstreamSaid,
    UpstreamsClosing,
)
from mcp_tasks_proto.proxy import (
    MOST_RANDOM_BYTES,
    Access,
    AccessChanged,
    DrawRandom,
    DropTask,
    LoadTask,
    MessageAdmitted,
    Note,
    Purge,
    RandomDrawn,
    SaveBinding,
    SaveSnapshot,
    SendUpstream,
    SettingsChanged,
    StopUpstream,
)
from mcp_tasks_proto.proxy.callers import SHUTTING_DOWN
from mcp_tasks_proto.requester import RequestFailed, ResponseReceived

__all__ = ["ProxyDriver", "Reconfigure", "UpstreamTransport", "Ways"]

Reconfigure = Callable[[Proxy], None]
"""Puts another declaration in force: :meth:`ProxyDriver.reconfigure`."""

_log = logging.getLogger("mcp_tasks_adapters")

_STREAMS = frozenset({"subscriptions/listen", "GET"})
"""They may end at any time, which is no fault."""


class UpstreamTransport(Protocol):
    """The way to an upstream, under one authorization."""

    def send(self, request: Outgoing, report: Callable[[Any], None], *, once: bool) -> None:
        """Send a request; report what comes on its stream, and then how it was answered, or failed.

        ``once``: whether it is never sent a second time. Never waits.
        """

    def stop(self, request: int) -> object:
        """End a request, and report no more of it."""

    def unasked(self, report: Callable[[Unasked], None]) -> None:
        """Report from now on what the server says that belongs to no request, and that it has ended."""


class Ways(Protocol):
    """The ways to all upstreams."""

    def find(self, upstream: str, authorization: str, streams: bool) -> UpstreamTransport | None:
        """Return the way to an upstream, under one authorization, for a listen stream or other requests;
        ``None``: there is none."""

    def change(self, proxy: Proxy) -> Set[tuple[str, str]]:
        """Lead to the upstreams of another declaration from now on; return the upstreams and authorizations
        with another way to the same server, on which nothing has been agreed yet."""

    @property
    def old(self) -> Sequence[UpstreamTransport]:
        """Those that no new request goes to."""

    async def end(self, transport: UpstreamTransport) -> None:
        """End an old one, on which nothing is in flight any more."""


@frozen
class _Owed:
    """An exchange whose reply is owed."""

    channel: Channel
    received: Arrival
    facts: RequestFacts | None
    """Who asks, for as long as the reply is owed: it may be looked at again."""


class ProxyDriver:
    """Runs one proxy on one loop; everything here happens on the loop's thread."""

    def __init__(self, proxy: Proxy, *, store: ProxyStore, loop: ClientLoop, ways: Ways) -> None:
        """Make an engine. ``store`` is open, and it and ``loop`` may be used at once."""
        self._loop = loop
        self._store = store
        self._ways = ways
        self._door = ChangingDoor(principal=proxy.authenticate, limits=proxy.settings.limits)
        self._admission = Admission(self._door, loop, admit=self.feed, refuse=self._refuse, named=_named)
        self._rechecks = Admission(
            self._door, loop, admit=self._known_again, refuse=self._not_known, named=_named
        )
        self._dashboard = Dashboard(proxy, engine=self, loop=loop)
        self._exchanges = count(1)
        self._owed: dict[Hashable, _Owed] = {}
        self._in_flight: dict[int, tuple[UpstreamTransport, str, Way]] = {}
        """Requests to upstreams, with the method of each."""
        self._troubles = Troubles()
        self._ending: set[int] = set()
        self._unanswered = 0
        self._landed: Event | None = None
        actions: dict[type, Callable[[Any], None]] = {
            Reply: self._reply,
            Send: self._send,
            OpenStream: self._open_stream,
            StopCall: self._stop_call,
            SendUpstream: self._send_upstream,
            SendLegacyUpstream: self._send_legacy,
            StopUpstream: self._stop_upstream,
            DrawRandom: self._draw_random,
            LoadTask: self._ask_store,
            SaveBinding: self._ask_store,
            ListHandles: self._ask_store,
            SaveSnapshot: self._ask_store,
            DropTask: self._tell_store,
            Note: self._tell_store,
            Purge: self._tell_store,
        }
        engine = DualEraProxy(
            settings=proxy.settings, codec=proxy.codec, node=store.node, limits=proxy.limits
        )
        _, fed = recorded(engine, proxy.record)
        self._feeder: Feeder[DualEraProxyInput] = Feeder(fed, loop, actions=actions, not_taken=self._contain)
        # Nothing is due yet, but the engine wants to look for what is past its time.
        self.feed(TimePassed())

    # -- for the loop module -------------------------------------------------------------------------------

    @property
    def asks_who_calls(self) -> bool:
        """Whether there is an ``authenticate=`` function, which looks at requests."""
        return self._door.principal is not None

    @property
    def pages(self) -> Dashboard | None:
        """What is served beside the MCP endpoint, if there is anybody to look at it."""
        return self._dashboard if self._dashboard.has_viewers else None

    def receive(
        self,
        message: Any,
        channel: Channel,
        *,
        facts: RequestFacts | None,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
    ) -> int:
        """Take in a parsed JSON value; return the exchange it opened. The reply may come before that."""
        exchange = next(self._exchanges)
        received = MessageReceived(
            exchange=exchange,
            message=message,
            connection=connection,
            http=http,
            new_session=None if http is None else session_for(message),
        )
        self._owed[exchange] = _Owed(channel, received, facts)
        self._let_in(received, facts)
        return exchange

    def receive_head(self, channel: Channel, *, facts: RequestFacts | None, http: HttpHead) -> int:
        """Take in a request without a message, GET or DELETE (LEG.2); return the exchange it opened."""
        exchange = next(self._exchanges)
        arrival = StreamRequested if http.method == "GET" else SessionEnded
        received = arrival(exchange=exchange, http=http)
        self._owed[exchange] = _Owed(channel, received, facts)
        self._let_in(received, facts)
        return exchange

    def receive_from(self, message: Any, channel: Channel, *, principal: str | None, access: Access) -> int:
        """Take in the message of a caller who is known already; return the exchange it opened."""
        exchange = next(self._exchanges)
        admitted = MessageAdmitted(exchange=exchange, message=message, principal=principal, access=access)
        self._owed[exchange] = _Owed(channel, admitted, None)
        self.feed(admitted)
        return exchange

    def connection_closed(self, connection: Hashable) -> None:
        """A shared channel has ended; every exchange on it was closed before, or answered."""
        self.feed(ConnectionClosed(connection))

    def _let_in(self, received: Arrival, facts: RequestFacts | None) -> None:
        if self._door.principal is None:
            self.feed(received)
        else:
            self._admission.ask(received, facts)

    def closed(self, exchange: int) -> None:
        """The caller of this exchange is gone. Harmless after its reply."""
        if self._owed.pop(exchange, None) is None:
            return
        self._rechecks.cancel(exchange)
        if not self._admission.cancel(exchange):
            self.feed(ExchangeClosed(exchange))

    def ready(self, exchange: int) -> None:
        """What was sent on this exchange's stream has been written. Harmless after its reply."""
        if exchange in self._owed:
            self.feed(StreamReady(exchange))

    def reconfigure(self, proxy: Proxy) -> None:
        """Go on as another declaration has it; streams and calls that it still allows go on too (PRX.2).

        Its ``limits``, its codec and its ``record`` are without effect: those the proxy began with stay.
        Whoever waits is authenticated anew, and a stream ends where that fails (PRX.7).
        """
        other_ways = self._ways.change(proxy)
        self._door.principal, self._door.limits = proxy.authenticate, proxy.settings.limits
        self._dashboard.change(proxy)
        for upstream, authorization in sorted(other_ways):
            # A session of 2025-11-25 was with the process as it was, or under credentials that were others.
            ended = UpstreamSaid(upstream=upstream, authorization=authorization, fact=ConnectionLost())
            self.feed(ended)
        self.feed(SettingsChanged(proxy.settings))
        for exchange, owed in list(self._owed.items()):
            self._rechecks.cancel(exchange)
            if self._admission.cancel(exchange):  # nobody has said yet who that is: ask whoever says it now
                self._let_in(owed.received, owed.facts)
            elif not self.asks_who_calls:
                self.feed(AccessChanged(exchange=exchange, principal=None, access=proxy.settings.access))
            elif owed.facts is None:  # it came when nobody was asked for a name
                self.feed(AccessChanged(exchange=exchange, principal=None, access=None))
            else:
                self._rechecks.ask(owed.received, owed.facts)
        self._end_old_ways()
        self._troubles.forget()

    def wake(self) -> None:
        """The time asked for by ``Loop.wake_at`` has come."""
        self._feeder.wake()

    def shutdown(self) -> None:
        """End the listen streams gracefully and refuse new requests."""
        self.feed(ShutdownStarted())

    def stop_calls(self) -> None:
        """Tell whoever still waits that the proxy stops: the end of the time that :meth:`shutdown` leaves."""
        self._dashboard.stop()
        for exchange, owed in list(self._owed.items()):
            if self._owed.pop(exchange, None) is None:
                continue
            owed.channel.reply(refusal_of(owed.received, SHUTTING_DOWN), 503)
            self._rechecks.cancel(exchange)
            if not self._admission.cancel(exchange):
                self.feed(ExchangeClosed(exchange))

    async def settled(self) -> None:
        """Return once the store owes no answer, and what ends tasks and sessions has reached the upstreams.

        For the end; how long that may take is for the caller to bound.
        """
        await self._landed_all("tasks/cancel", "notifications/cancelled")
        self.feed(UpstreamsClosing())
        await self._landed_all("DELETE")

    async def _landed_all(self, *methods: str) -> None:
        while self._unanswered or any(method in methods for _, method, _ in self._in_flight.values()):
            self._landed = self._loop.event()
            await self._landed.wait()

    def close(self) -> None:
        """Give up what is in flight, and take in nothing any more."""
        self._feeder.close()
        for request, (transport, _, _) in list(self._in_flight.items()):
            transport.stop(request)
        self._in_flight.clear()

    # -- the engine ----------------------------------------------------------------------------------------

    def feed(self, fact: Any) -> None:
        """Hand a fact to the engine, now or when it is done with those before, and do what it says."""
        self._feeder.feed(fact)

    def _contain(self, fact: DualEraProxyInput) -> None:
        """The engine did not take ``fact``, which is an error of this package: nobody shall wait in vain."""
        if isinstance(fact, MessageReceived | StreamRequested | SessionEnded):
            unhandled = internal_error("the request could not be handled")
            self._refuse(fact, unhandled, unhandled.http_status)
            self.feed(ExchangeClosed(fact.exchange))

    # -- to callers ----------------------------------------------------------------------------------------

    def _reply(self, reply: Reply) -> None:
        owed = self._owed.pop(reply.exchange, None)
        if owed is not None:
            headers = () if reply.session is None else (("mcp-session-id", reply.session),)
            owed.channel.reply(reply.message, reply.http_status, headers, reply.event_id)

    def _send(self, send: Send) -> None:
        owed = self._owed.get(send.exchange)
        if owed is not None:
            owed.channel.send(send.message, send.event_id)

    def _open_stream(self, opening: OpenStream) -> None:
        owed = self._owed.get(opening.exchange)
        if owed is not None:
            owed.channel.open()

    def _stop_call(self, stop: StopCall) -> None:
        """A request was cancelled on a channel that goes on: it is over without a word."""
        owed = self._owed.pop(stop.exchange, None)
        if owed is not None:
            owed.channel.reply(None, 202)

    def _refuse(
        self,
        received: Arrival,
        error: ErrorObject,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Answer a message that the engine has not seen, or could not handle."""
        owed = self._owed.pop(received.exchange, None)
        if owed is not None:
            owed.channel.reply(refusal_of(received, error), http_status, headers)

    # -- to who is authenticated anew ----------------------------------------------------------------------

    def _known_again(self, admitted: Any) -> None:
        """What came without a message says nothing of rights; the session's own requests do."""
        if isinstance(admitted, MessageAdmitted):
            self.feed(
                AccessChanged(
                    exchange=admitted.exchange, principal=admitted.principal, access=admitted.access
                )
            )

    def _not_known(
        self, received: Arrival, error: ErrorObject, http_status: int, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.feed(AccessChanged(exchange=received.exchange, principal=None, access=None))

    # -- to upstreams --------------------------------------------------------------------------------------

    def _send_upstream(self, send: SendUpstream) -> None:
        name = send.request
        transport = self._ways.find(send.upstream, send.authorization, send.streams)
        if transport is None:  # the configuration names an authorization that the upstream does not have
            _log.error("there is no authorization of that name for an upstream")
            self.feed(RequestFailed(name, "there is no such authorization", sent=False))
            return
        self._in_flight[name] = transport, send.message["method"], (send.upstream, send.authorization)
        transport.send(send, self._heard, once=send.task_path)

    def _stop_upstream(self, stop: StopUpstream) -> None:
        found = self._in_flight.pop(stop.request, None)
        if found is not None:
            found[0].stop(stop.request)
            self._note_landing()

    def _send_legacy(self, effect: SendLegacyUpstream) -> None:
        send = effect.send
        transport = self._ways.find(effect.upstream, effect.authorization, effect.streams)
        if transport is None:  # the configuration is another one by now
            self.feed(RequestFailed(send.request, "there is no such upstream any more", sent=False))
            return
        message = send.message or {}
        if message.get("method") == "initialize":
            transport.unasked(partial(self._said, effect.upstream, effect.authorization))
        method = message.get("method") or send.verb
        self._in_flight[send.request] = transport, method, (effect.upstream, effect.authorization)
        transport.send(send, self._heard, once=False)

    def _said(self, upstream: str, authorization: str, fact: Unasked) -> None:
        self.feed(UpstreamSaid(upstream=upstream, authorization=authorization, fact=fact))

    def _heard(self, fact: UpstreamFact) -> None:
        if not isinstance(fact, (ResponseReceived, RequestFailed)):
            self.feed(fact)
            return
        asked = self._in_flight.pop(fact.request, None)
        if asked is not None and asked[1] not in _STREAMS:
            self._troubles.note(asked[2], asked[1], fact)
        self.feed(fact)
        self._note_landing()

    # -- to the store, and to the source of randomness -----------------------------------------------------

    def _draw_random(self, draw: DrawRandom) -> None:
        self.feed(RandomDrawn(draw.token, token_bytes(MOST_RANDOM_BYTES)))

    def _ask_store(self, effect: ProxyStoreEffect) -> None:
        self._unanswered += 1
        self.submit(effect, self._answered)

    def _tell_store(self, effect: ProxyStoreEffect) -> None:
        self.submit(effect, self.feed)

    def submit(self, effect: ProxyStoreEffect, answer: Callable[[ProxyStoreFact], None]) -> None:
        """Put an effect to the store, and have its answer, be it that it failed."""
        try:
            self._store.submit(effect, answer)
        except Exception as error:
            _log.error("the store raised on %s: %s", type(effect).__name__, describe(error))
            fact = failed(effect)
            if fact is not None:
                answer(fact)

    def _answered(self, fact: ProxyStoreFact) -> None:
        self._unanswered -= 1
        self.feed(fact)
        self._note_landing()

    def _note_landing(self) -> None:
        if self._landed is not None:
            self._landed.set()
        if self._ways.old:
            self._end_old_ways()

    def _end_old_ways(self) -> None:
        """End the transports of upstreams as they were, once nothing is in flight on them."""
        used = {id(transport) for transport, _, _ in self._in_flight.values()}
        for transport in self._ways.old:
            if id(transport) not in used and id(transport) not in self._ending:
                self._ending.add(id(transport))
                self._loop.spawn(partial(self._end_way, transport))

    async def _end_way(self, transport: UpstreamTransport) -> None:
        try:
            await self._ways.end(transport)
        except Exception as error:
            _log.error("the way to an upstream did not end well: %s", describe(error))
        finally:
            self._ending.discard(id(transport))


def _named(received: Arrival, named: Any, _: Any) -> Arrival:
    """Return a message with its caller. Raises ``TypeError`` where there is none."""
    caller = checked_caller(named)
    if not isinstance(received, MessageReceived):
        return evolve(received, principal=caller.principal)
    return MessageAdmitted(
        exchange=received.exchange,
        message=received.message,
        connection=received.connection,
        http=received.http,
        new_session=received.new_session,
        principal=caller.principal,
        access=caller.access,
    )
