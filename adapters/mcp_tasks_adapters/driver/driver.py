"""The driver itself: who waits for what, and what the engine and the peers say to each other."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any, Final

from mcp_tasks_adapters.admission import Admission, Arrival
from mcp_tasks_adapters.driver.calls import Calls
from mcp_tasks_adapters.driver.interfaces import Channel, Loop, RequestFacts
from mcp_tasks_adapters.driver.workers import Workers, accept_report, reject_report
from mcp_tasks_adapters.feeding import Feeder, recorded
from mcp_tasks_adapters.storing import Questions, Store
from mcp_tasks_adapters.toolkit.server import Server
from mcp_tasks_adapters.toolkit.tasks import Report
from mcp_tasks_proto.effects import (
    AcceptReport,
    Delete,
    DeliverInput,
    FindExpired,
    Forward,
    ListTasks,
    Load,
    OpenStream,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Save,
    Send,
    StartTool,
    StartWork,
    StopCall,
)
from mcp_tasks_proto.errors import ErrorObject, internal_error
from mcp_tasks_proto.exchanges import refusal_of
from mcp_tasks_proto.inputs import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallReturned,
    ConnectionClosed,
    ExchangeClosed,
    ExpiredFound,
    HttpHead,
    Input,
    LegacyInput,
    Loaded,
    LoadFailed,
    MessageReceived,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    SessionEnded,
    ShutdownStarted,
    StreamReady,
    StreamRequested,
    TasksListed,
    TimePassed,
    ToolsChanged,
    WorkCompleted,
    WorkFailed,
    WorkStopped,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.wire.jsonrpc import error_message

__all__ = ["LAST_WORDS_SECONDS", "Driver", "session_for"]

LAST_WORDS_SECONDS: Final = 0.5
"""How long the answers of :meth:`Driver.stop_calls` may take to leave."""

UNKEPT: Final = internal_error("the worker's result cannot be kept")


class Driver:
    """Runs one server on one loop.

    Everything here happens on the loop's thread. A store may answer, a channel report and a handler start
    within the very call that set it off: the :class:`~mcp_tasks_adapters.feeding.Feeder` has the engine take
    one input at a time.

    What goes wrong in a tool, a handler or a store is contained: logged without payloads (SEC.2) and answered
    to those whom it concerns (LIM.3).
    """

    pages: Final = None
    """A server has its MCP endpoint, and nothing beside it."""

    def __init__(self, server: Server, *, store: Store, loop: Loop) -> None:
        """Make an engine for ``server`` as it is declared now.

        ``store`` is open, and it and ``loop`` may be used at once.
        """
        engine, fed = recorded(_make_engine(server, store.node), server.record)
        self._dual_era = isinstance(engine, DualEraServer)
        actions: dict[type, Callable[[Any], None]] = {}
        self._feeder: Feeder[Input | LegacyInput] = Feeder(
            fed, loop, actions=actions, not_taken=self._contain
        )
        feed = self._feeder.feed
        self._questions = Questions(store, loop, feed)
        self._admission: Admission | None = None
        if server.principal is not None or server.enabled is not None:
            self._admission = Admission(server, loop, admit=feed, refuse=self._refuse)
        self._exchanges = count(1)
        self._channels: dict[Hashable, Channel] = {}
        self._workers = Workers(server, loop, feed=feed, keeps_for_others=store.node is not None)
        self._calls = Calls(server, loop, feed=feed, no_work=self._workers.refusal)
        actions |= {
            Reply: self._reply,
            Send: self._send,
            OpenStream: self._open_stream,
            StartTool: self._calls.start_tool,
            Forward: self._calls.forward,
            StopCall: self._stop_call,
            StartWork: self._start_work,
            ResumeWork: self._workers.resume,
            DeliverInput: self._workers.deliver_input,
            RequestCancel: self._workers.request_cancel,
            AcceptReport: accept_report,
            RejectReport: reject_report,
            Load: self._questions.ask,
            Save: self._questions.ask,
            Delete: self._questions.ask,
            FindExpired: self._questions.ask,
            ListTasks: self._questions.ask,
        }
        self._unwatch_store = store.watch(engine.concerns, feed)
        self._unwatch_tools = server.watch_tools(lambda: feed(ToolsChanged(server.declarations())))
        # Nothing is due yet, but the engine wants to look for what expired while nobody was there.
        feed(TimePassed())

    # -- for the loop module -------------------------------------------------------------------------------

    @property
    def asks_who_calls(self) -> bool:
        """Whether the server has a ``principal=`` or ``enabled=`` function, which looks at requests."""
        return self._admission is not None

    def receive(
        self,
        message: Any,
        channel: Channel,
        *,
        facts: RequestFacts | None,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
    ) -> int:
        """Take in a parsed JSON value; return the exchange it opened.

        The reply may come before this returns. ``connection`` names the shared channel of stdio; over HTTP it
        is ``None`` and ``http`` is given. ``facts`` may be ``None`` unless :attr:`asks_who_calls`: then
        nobody is let in without them.
        """
        exchange = next(self._exchanges)
        self._channels[exchange] = channel
        received = MessageReceived(
            exchange=exchange,
            message=message,
            connection=connection,
            http=http,
            new_session=session_for(message) if http is not None and self._dual_era else None,
        )
        self._let_in(received, facts)
        return exchange

    def receive_head(self, channel: Channel, *, facts: RequestFacts | None, http: HttpHead) -> int:
        """Take in a request without a message, GET or DELETE (LEG.2); return the exchange it opened."""
        exchange = next(self._exchanges)
        self._channels[exchange] = channel
        arrival = StreamRequested if http.method == "GET" else SessionEnded
        self._let_in(arrival(exchange=exchange, http=http), facts)
        return exchange

    def _let_in(self, received: Arrival, facts: RequestFacts | None) -> None:
        if self._admission is None:
            self._feeder.feed(received)
        else:
            self._admission.ask(received, facts)

    def closed(self, exchange: int) -> None:
        """The peer of this exchange is gone. Harmless after its reply."""
        if self._channels.pop(exchange, None) is None:
            return
        if self._admission is not None and self._admission.cancel(exchange):
            return
        self._calls.drop(exchange)
        self.feed(ExchangeClosed(exchange))

    def connection_closed(self, connection: Hashable) -> None:
        """A shared channel has ended; every exchange on it was closed before, or answered."""
        if self._dual_era:
            self.feed(ConnectionClosed(connection))

    def ready(self, exchange: int) -> None:
        """What was sent on this exchange's stream has been written. Harmless after its reply."""
        if exchange in self._channels:
            self.feed(StreamReady(exchange))

    def wake(self) -> None:
        """The time asked for by ``Loop.wake_at`` has come."""
        self._feeder.wake()

    def shutdown(self) -> None:
        """End the listen streams gracefully and refuse new requests."""
        self.feed(ShutdownStarted())

    def stop_calls(self) -> None:
        """Cancel every handler; whoever waits for one is told that the server stops.

        For the end of the time that :meth:`shutdown` leaves them, while they still can be told.
        """
        self._workers.start_no_more()
        if self._admission is not None:
            self._admission.cancel_all()
        self._calls.stop()

    def stop_work(self) -> None:
        """Cancel every handler and worker; called when the loop is about to end.

        Work that can be resumed, and that a store keeps which others can reach, ends without a word: whoever
        comes next finds that its node is gone, and goes on with it.
        """
        self.stop_calls()
        self._unwatch_tools()
        self._workers.stop()

    async def settled(self) -> None:
        """Return once all that was reported is in the store, or failed to get there; hear of no more news.

        For the end, after :meth:`stop_work`, when everything has stopped. How long that may take is for the
        caller to bound.
        """
        self._unwatch_store()
        await self._questions.settled()

    def feed(self, fact: Input | LegacyInput) -> None:
        """Hand a fact to the engine, now or when it is done with those before, and do what it says.

        For facts that no other method tells: news from a store, or ``TtlChanged``.
        """
        self._feeder.feed(fact)

    def _contain(self, fact: Input | LegacyInput) -> None:
        """The engine did not take ``fact``; nobody shall wait in vain for what comes of it."""
        match fact:
            case MessageReceived() | StreamRequested() | SessionEnded():
                failed = internal_error("the request could not be handled")
                self._refuse(fact, failed, failed.http_status)
                self.feed(ExchangeClosed(fact.exchange))
            case CallFailed() | StreamReady():
                self._give_up(fact.exchange)
            case CallReturned() | CallAskedInput() | CallBecameTask():
                self._calls.drop(fact.exchange)
                failed = internal_error("the handler's answer cannot be sent")
                self.feed(CallFailed(fact.exchange, failed))
            case WorkCompleted() | WorkFailed() | WorkStopped() if getattr(fact, "error", None) != UNKEPT:
                self.feed(
                    WorkFailed(
                        task_id=fact.task_id, token=fact.token, error=UNKEPT, resumption=fact.resumption
                    )
                )
            case Loaded() | ExpiredFound() | TasksListed():
                self.feed(LoadFailed(fact.token))
            case Saved() | SaveConflict() | SaveRefused():
                self.feed(SaveFailed(fact.token))
            case _ if isinstance(report := getattr(fact, "token", None), Report):
                report.settle("the engine cannot take it")

    def _give_up(self, exchange: Hashable) -> None:
        """End an exchange that the engine can make nothing of any more."""
        self._calls.drop(exchange)
        channel = self._channels.pop(exchange, None)
        if channel is not None:
            failed = internal_error("the request could not be handled")
            channel.reply(error_message(None, failed), failed.http_status)
        self.feed(ExchangeClosed(exchange))

    # -- to the peer ---------------------------------------------------------------------------------------

    def _reply(self, reply: Reply) -> None:
        channel = self._channels.pop(reply.exchange, None)
        if channel is not None:
            if reply.session is None and reply.event_id is None:
                channel.reply(reply.message, reply.http_status)
            else:
                headers = () if reply.session is None else (("mcp-session-id", reply.session),)
                channel.reply(reply.message, reply.http_status, headers, reply.event_id)
        # An offer outlives the reply that carries the handle, but not an error: then there will be no task.
        if reply.message is not None and "error" in reply.message:
            self._calls.drop(reply.exchange)

    def _send(self, send: Send) -> None:
        channel = self._channels.get(send.exchange)
        if channel is not None:
            if send.event_id is None:
                channel.send(send.message)
            else:
                channel.send(send.message, send.event_id)

    def _open_stream(self, opening: OpenStream) -> None:
        channel = self._channels.get(opening.exchange)
        if channel is not None:
            channel.open()

    def _refuse(
        self,
        received: Arrival,
        error: ErrorObject,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Answer a message that the engine has not seen, or could not handle."""
        channel = self._channels.pop(received.exchange, None)
        if channel is not None:
            channel.reply(refusal_of(received, error), http_status, headers)

    # -- to handlers and workers ---------------------------------------------------------------------------

    def _stop_call(self, stop: StopCall) -> None:
        channel = self._channels.pop(stop.exchange, None)
        if channel is not None:  # cancelled on a channel that goes on: the exchange is over without a word
            channel.reply(None, 202)
        self._calls.drop(stop.exchange)

    def _start_work(self, start: StartWork) -> None:
        self._workers.start(start.task_id, self._calls.take(start.exchange))


def _make_engine(server: Server, node: str | None) -> ServerEngine | DualEraServer:
    settings, tools = server.settings(), server.declarations()
    if not server.serves_sessions:
        return ServerEngine(settings=settings, tools=tools, node=node)
    return DualEraServer(settings=settings, tools=tools, node=node, policy=LegacyPolicy(server.legacy))


def session_for(message: Any) -> str | None:
    """Return an id that nobody can guess, should the message open a session (LEG.2)."""
    opens = isinstance(message, dict) and message.get("method") == "initialize"
    return secrets.token_urlsafe(24) if opens else None
