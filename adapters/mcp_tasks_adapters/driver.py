"""The synchronous heart of every adapter: an engine, its store, its tools, on somebody's loop.

The driver feeds inputs to the engine and carries out the effects. It does no I/O and never waits; a loop
module gives it a :class:`Loop` to start coroutines on and one :class:`Channel` for each exchange.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from mcp_tasks_adapters.admission import Admission, Arrival
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.storing import Event, LoopThread, Questions, Store, StoreEffect
from mcp_tasks_adapters.toolkit.calls import InputRequired, Request, TaskOffer, ToolCall
from mcp_tasks_adapters.toolkit.outcomes import (
    Ending,
    Outcome,
    describe,
    handler_as_work,
    run_request,
    run_tool,
    run_work,
)
from mcp_tasks_adapters.toolkit.server import Server
from mcp_tasks_adapters.toolkit.tasks import Report, TaskContext
from mcp_tasks_adapters.toolkit.tools import Tool
from mcp_tasks_proto.effects import (
    AcceptReport,
    CancelReason,
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
from mcp_tasks_proto.errors import ErrorObject, internal_error, invalid_params, limit_reached
from mcp_tasks_proto.inputs import (
    KEEP,
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
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
from mcp_tasks_proto.wire.jsonrpc import Notification, Response, error_message, parse_message
from mcp_tasks_proto.wire.pages import PageHead

__all__ = [
    "LAST_WORDS_SECONDS",
    "Channel",
    "Driver",
    "Event",
    "Job",
    "Loop",
    "RequestFacts",
    "Service",
    "Store",
    "StoreEffect",
]

LAST_WORDS_SECONDS: Final = 0.5
"""How long the answers of :meth:`Driver.stop_calls` may take to leave."""

UNKEPT: Final = internal_error("the worker's result cannot be kept")

_log = logging.getLogger("mcp_tasks_adapters")


@frozen(kw_only=True)
class RequestFacts:
    """What a ``principal=`` or ``enabled=`` function may look at."""

    transport: str
    """``"http"`` or ``"stdio"``."""
    headers: Mapping[str, str]
    """HTTP headers, names in lower case; empty on stdio."""
    peer: str | None = None
    """The peer's address, where there is one."""


class Job(Protocol):
    """A coroutine that was started."""

    def cancel(self) -> None:
        """Cancel it, the loop's own way. Harmless once it has ended; may be called twice."""


class Loop(LoopThread, Protocol):
    """What the driver needs of an event loop."""

    @property
    def cancelled(self) -> type[BaseException]:
        """What is raised in a job that is cancelled."""

    def now_ms(self) -> int:
        """Unix milliseconds."""

    def spawn(self, run: Callable[[], Awaitable[None]]) -> Job:
        """Start ``run`` soon, in the caller's nursery or task group. ``run`` handles its own errors."""

    def wake_at(self, deadline_ms: int | None) -> None:
        """Call ``driver.wake()`` at that time; replaces what was asked for before; ``None``: never.

        A time in the past means soon: never from within this call.
        """

    async def checkpoint(self) -> None:
        """Let others run once: ``trio.lowlevel.checkpoint()``, ``asyncio.sleep(0)``."""


class Channel(Protocol):
    """The way back to the peer for one exchange. Neither method waits or raises."""

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        """Send the last message; ``None``: none, as for a notification, or a request that was cancelled.

        ``headers`` are HTTP headers to add, names in lower case (``www-authenticate`` beside a 401); a
        transport that has no status and headers leaves both out. ``event_id`` is that of its server-sent
        event, for clients of 2025-11-25.
        """

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """Send a message on the stream; call ``driver.ready(exchange)`` when it has left."""

    def open(self) -> None:
        """Make the response a stream before there is a message to send (2025-11-25, HTTP)."""


class Pages(Protocol):
    """What answers requests that are no messages, below a path of its own."""

    @property
    def prefix(self) -> str:
        """What the paths of these requests begin with."""

    def receive(
        self, head: PageHead, body: bytes | bytearray, channel: Channel, facts: RequestFacts | None
    ) -> None:
        """Take in a complete request; it is answered on its channel, now or later."""


class Service(Protocol):
    """What an endpoint hands messages to: the driver of a server, or of a proxy. See :class:`Driver`."""

    @property
    def asks_who_calls(self) -> bool:
        """Whether a function looks at requests, who then must come with their facts."""

    @property
    def pages(self) -> Pages | None:
        """What is served beside the MCP endpoint, on the same port."""

    def receive(
        self,
        message: Any,
        channel: Channel,
        *,
        facts: RequestFacts | None,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
    ) -> int:
        """Take in a parsed JSON value; return the exchange it opened."""

    def receive_head(self, channel: Channel, *, facts: RequestFacts | None, http: HttpHead) -> int:
        """Take in a request without a message; return the exchange it opened."""

    def closed(self, exchange: int) -> None:
        """The peer of this exchange is gone."""

    def ready(self, exchange: int) -> None:
        """What was sent on this exchange's stream has been written."""

    def shutdown(self) -> None:
        """End the listen streams gracefully and refuse new requests."""

    def stop_calls(self) -> None:
        """Answer whoever still waits."""


@define(eq=False)
class _Call:
    """A handler at work, or the offer it made, which waits until the task is durable."""

    tool: Tool | None = None
    arguments: Mapping[str, Any] = field(factory=dict)
    errand: Errand[Outcome] | None = None
    offer: TaskOffer | None = None


@define(eq=False)
class _Worker:
    """One run of the work of a task."""

    context: TaskContext
    resumption: int = 0
    may_be_handed_on: bool = False
    """Whether another process goes on with the task when this one ends."""
    handed_on: bool = False
    """Whether it does, and this run is to end without a word."""
    errand: Errand[Any] | None = None
    """That of its call, or one of its own."""


class Driver:
    """Runs one server on one loop.

    Everything here happens on the loop's thread. A store may answer, a channel report and a handler start
    within the very call that set it off: what they say waits in an inbox, so that the engine takes one input
    at a time.

    What goes wrong in a tool, a handler or a store is contained: logged without payloads (SEC.2) and answered
    to those whom it concerns (LIM.3).
    """

    pages: Final = None
    """A server has its MCP endpoint, and nothing beside it."""

    def __init__(self, server: Server, *, store: Store, loop: Loop) -> None:
        """Make an engine for ``server`` as it is declared now.

        ``store`` is open, and it and ``loop`` may be used at once.
        """
        self._limits = server.limits
        self._keeps_for_others = store.node is not None
        self._tools = dict(server.tools)
        self._handlers = dict(server.handlers)
        self._loop = loop
        self._engine = _make_engine(server, store.node)
        self._dual_era = isinstance(self._engine, DualEraServer)
        self._questions = Questions(store, loop, self.feed)
        self._admission: Admission | None = None
        if server.principal is not None or server.enabled is not None:
            self._admission = Admission(server, loop, admit=self.feed, refuse=self._refuse)
        self._exchanges = count(1)
        self._channels: dict[Hashable, Channel] = {}
        self._calls: dict[Hashable, _Call] = {}
        self._workers: dict[str, _Worker] = {}
        self._stopping = False
        self._inbox: deque[Input | LegacyInput] = deque()
        self._feeding = False
        self._deadline: int | None = None
        self._actions: dict[type, Callable[[Any], None]] = {
            Reply: self._reply,
            Send: self._send,
            OpenStream: self._open_stream,
            StartTool: self._start_tool,
            Forward: self._forward,
            StopCall: self._stop_call,
            StartWork: self._start_work,
            ResumeWork: self._resume_work,
            DeliverInput: self._deliver_input,
            RequestCancel: self._request_cancel,
            AcceptReport: self._accept_report,
            RejectReport: self._reject_report,
            Load: self._questions.ask,
            Save: self._questions.ask,
            Delete: self._questions.ask,
            FindExpired: self._questions.ask,
            ListTasks: self._questions.ask,
        }
        self._unwatch_store = store.watch(self._engine.concerns, self.feed)
        self._unwatch_tools = server.watch_tools(lambda: self._tools_changed(server))
        # Nothing is due yet, but the engine wants to look for what expired while nobody was there.
        self.feed(TimePassed())

    def _tools_changed(self, server: Server) -> None:
        self._tools = dict(server.tools)
        self.feed(ToolsChanged(server.declarations()))

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
            new_session=_session_for(message) if http is not None and self._dual_era else None,
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
            self.feed(received)
        else:
            self._admission.ask(received, facts)

    def closed(self, exchange: int) -> None:
        """The peer of this exchange is gone. Harmless after its reply."""
        if self._channels.pop(exchange, None) is None:
            return
        if self._admission is not None and self._admission.cancel(exchange):
            return
        self._drop_call(exchange)
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
        self._deadline = None
        self.feed(TimePassed())

    def shutdown(self) -> None:
        """End the listen streams gracefully and refuse new requests."""
        self.feed(ShutdownStarted())

    def stop_calls(self) -> None:
        """Cancel every handler; whoever waits for one is told that the server stops.

        For the end of the time that :meth:`shutdown` leaves them, while they still can be told.
        """
        self._stopping = True
        if self._admission is not None:
            self._admission.cancel_all()
        for exchange, call in list(self._calls.items()):
            if call.offer is None:
                self._call_ended(exchange, _stopping())

    def stop_work(self) -> None:
        """Cancel every handler and worker; called when the loop is about to end.

        Work that can be resumed, and that a store keeps which others can reach, ends without a word: whoever
        comes next finds that its node is gone, and goes on with it.
        """
        self.stop_calls()
        self._unwatch_tools()
        for worker in list(self._workers.values()):
            worker.handed_on = worker.may_be_handed_on and not worker.context.cancelled
            self._stop_worker(worker, record_gone=worker.handed_on)

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
        inbox = self._inbox
        inbox.append(fact)
        if self._feeding:
            return
        self._feeding = True
        try:
            while inbox:
                self._step(inbox.popleft())
        finally:
            self._feeding = False

    def _step(self, fact: Any) -> None:
        try:
            step = self._engine.handle(fact, now=self._loop.now_ms())
        except Exception as error:
            self._contain(fact, error)
            return
        for effect in step.effects:
            self._actions[type(effect)](effect)
        if step.deadline != self._deadline:
            self._deadline = step.deadline
            self._loop.wake_at(step.deadline)

    def _contain(self, fact: Input | LegacyInput, error: Exception) -> None:
        """The engine did not take ``fact``; nobody shall wait in vain for what comes of it."""
        _log.error("the engine did not take %s: %s", type(fact).__name__, describe(error))
        match fact:
            case MessageReceived() | StreamRequested() | SessionEnded():
                failed = internal_error("the request could not be handled")
                self._refuse(fact, failed, failed.http_status)
                self.feed(ExchangeClosed(fact.exchange))
            case CallFailed() | StreamReady():
                self._give_up(fact.exchange)
            case CallReturned() | CallAskedInput() | CallBecameTask():
                self._drop_call(fact.exchange)
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
        self._drop_call(exchange)
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
        if self._calls and reply.message is not None and "error" in reply.message:
            self._drop_call(reply.exchange)

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
        if channel is None:
            return
        message = parse_message(received.message) if isinstance(received, MessageReceived) else None
        shared = isinstance(received, MessageReceived) and received.connection is not None
        if isinstance(message, Notification) or (shared and isinstance(message, Response)):
            channel.reply(None, http_status, headers)
        else:
            request_id = None if message is None or isinstance(message, Response) else message.id
            channel.reply(error_message(request_id, error), http_status, headers)

    # -- to handlers ---------------------------------------------------------------------------------------

    def _start_tool(self, start: StartTool) -> None:
        tool = self._tools.get(start.tool)
        if tool is None:  # withdrawn since the engine looked
            self.feed(CallFailed(start.exchange, invalid_params(f"unknown tool: {start.tool}")))
            return
        if start.must_create_task:
            self._start_owed(tool, start)
            return
        call = ToolCall(start, self._notify)
        run = partial(run_tool, tool, call, self._loop.cancelled)
        self._start_call(start.exchange, _Call(tool, call.arguments), run)

    def _start_owed(self, tool: Tool, start: StartTool) -> None:
        """Make the task first; the handler is its work (LEG.3)."""
        if self._stopping or len(self._workers) >= self._limits.workers:
            error = _stopping() if self._stopping else limit_reached("workers")
            self.feed(CallFailed(start.exchange, error))
            return
        offer = TaskOffer(run=handler_as_work(tool, start, self._notify))
        self._calls[start.exchange] = _Call(tool, start.arguments, offer=offer)
        self.feed(_became_task(start.exchange, offer))

    def _forward(self, forward: Forward) -> None:
        request = Request(forward, self._notify)
        handler, method = self._handlers[forward.method], forward.method
        run = partial(run_request, handler, request, method, self._loop.cancelled)
        self._start_call(forward.exchange, _Call(), run)

    def _start_call(self, exchange: Hashable, call: _Call, run: Callable[[], Awaitable[Outcome]]) -> None:
        self._calls[exchange] = call
        if self._stopping:
            self._call_ended(exchange, _stopping())
        else:
            call.errand = Errand(self._loop, run, partial(self._call_ended, exchange))

    async def _notify(self, exchange: Hashable, method: str, params: Mapping[str, Any]) -> None:
        call = self._calls.get(exchange)
        if call is not None and call.offer is None:
            self.feed(CallNotified(exchange, method, params))
        await self._loop.checkpoint()

    def _call_ended(self, exchange: Hashable, outcome: Outcome | None) -> None:
        call = self._calls.get(exchange)
        if call is None:
            return  # nobody waits for it any more
        if isinstance(outcome, TaskOffer) and len(self._workers) >= self._limits.workers:
            # The engine counts live tasks; work that outstays its cancellation takes a place as well.
            outcome = limit_reached("workers")
        if isinstance(outcome, TaskOffer):
            call.offer = outcome
            self.feed(_became_task(exchange, outcome))
            return
        self._drop_call(exchange)
        if outcome is None:
            outcome = internal_error("the handler stopped without an answer")
        if isinstance(outcome, ErrorObject):
            self.feed(CallFailed(exchange, outcome))
        elif isinstance(outcome, InputRequired):
            self.feed(CallAskedInput(exchange, outcome.requests, outcome.state))
        else:
            self.feed(CallReturned(exchange, outcome))

    def _stop_call(self, stop: StopCall) -> None:
        channel = self._channels.pop(stop.exchange, None)
        if channel is not None:  # cancelled on a channel that goes on: the exchange is over without a word
            channel.reply(None, 202)
        self._drop_call(stop.exchange)

    def _drop_call(self, exchange: Hashable) -> None:
        call = self._calls.pop(exchange, None)
        if call is not None and call.errand is not None:
            call.errand.cancel()

    # -- to workers ----------------------------------------------------------------------------------------

    def _start_work(self, start: StartWork) -> None:
        call = self._calls.pop(start.exchange, None)
        if call is None or call.tool is None or call.offer is None or self._stopping:
            # The caller has just gone away, and the offer with it; or the server has no more time.
            if call is None or call.tool is None or not self._may_hand_on(call.tool):
                self._work_stopped(start.task_id, 0)
            return
        context = TaskContext(start.task_id, call.arguments, feed=self.feed, loop=self._loop)
        worker = _Worker(context, may_be_handed_on=self._may_hand_on(call.tool))
        run = partial(run_work, call.tool, call.offer.run, context, self._loop.cancelled)
        self._work(worker, run, call.errand)

    def _resume_work(self, resume: ResumeWork) -> None:
        if self._stopping:
            return  # this node is about to be gone as well, and the next one resumes it
        tool = self._tools.get(resume.tool)
        if tool is None:  # withdrawn since the engine looked
            failed = internal_error("the work cannot be resumed: there is no such tool any more")
            gone = WorkFailed(
                task_id=resume.task_id, token=Report(), error=failed, resumption=resume.resumption
            )
            self.feed(gone)
            return
        work = handler_as_work(tool, _first_call(resume), self._notify, resumed=True)
        context = TaskContext(
            resume.task_id,
            resume.arguments,
            feed=self.feed,
            loop=self._loop,
            resumption=resume.resumption,
            checkpointed=resume.checkpoint,
        )
        worker = _Worker(context, resumption=resume.resumption, may_be_handed_on=True)
        self._work(worker, partial(run_work, tool, work, context, self._loop.cancelled))

    def _work(
        self, worker: _Worker, run: Callable[[], Awaitable[Ending]], errand: Errand[Any] | None = None
    ) -> None:
        """Start work: in the errand of the call that it came from, if that still runs."""
        self._workers[worker.context.task_id] = worker
        ended = partial(self._work_ended, worker)
        if errand is not None and errand.goes_on(run, ended):
            worker.errand = errand
        else:
            worker.errand = Errand(self._loop, run, ended)

    def _work_ended(self, worker: _Worker, ending: Ending | None) -> None:
        task_id, resumption = worker.context.task_id, worker.resumption
        if self._workers.get(task_id) is worker:
            del self._workers[task_id]
        worker.context.over()
        worker.errand = None  # they know each other, and would wait for the garbage collector
        if ending is None:
            if not worker.handed_on:
                self._work_stopped(task_id, resumption)
        elif isinstance(ending, ErrorObject):
            self.feed(WorkFailed(task_id=task_id, token=Report(), error=ending, resumption=resumption))
        else:
            self.feed(WorkCompleted(task_id=task_id, token=Report(), result=ending, resumption=resumption))

    def _may_hand_on(self, tool: Tool) -> bool:
        return self._keeps_for_others and tool.declaration.resumable

    def _work_stopped(self, task_id: str, resumption: int) -> None:
        message = "The server stopped before the work was done." if self._stopping else KEEP
        self.feed(WorkStopped(task_id=task_id, token=Report(), status_message=message, resumption=resumption))

    def _deliver_input(self, deliver: DeliverInput) -> None:
        worker = self._workers.get(deliver.task_id)
        if worker is not None:
            worker.context.take_answers(deliver.answers)

    def _request_cancel(self, request: RequestCancel) -> None:
        worker = self._workers.get(request.task_id)
        if worker is not None:
            self._stop_worker(worker, record_gone=request.reason is not CancelReason.REQUESTED)

    def _stop_worker(self, worker: _Worker, *, record_gone: bool) -> None:
        worker.context.told_to_stop(record_gone=record_gone)
        if worker.errand is not None:
            worker.errand.cancel()

    def _accept_report(self, accept: AcceptReport) -> None:
        if isinstance(accept.token, Report):
            accept.token.settle(None)

    def _reject_report(self, reject: RejectReport) -> None:
        if isinstance(reject.token, Report):
            reject.token.settle(reject.reason)


def _stopping() -> ErrorObject:
    return internal_error("the server is stopping", reason="shutting_down")


def _first_call(resume: ResumeWork) -> StartTool:
    """Return the call that became the task, as far as it is known; nobody waits for its outcome."""
    return StartTool(
        exchange=None,
        tool=resume.tool,
        arguments=resume.arguments,
        can_create_task=True,
        client_capabilities=resume.client_capabilities,
        principal=resume.principal,
        answers=resume.answers,
        state=resume.state,
        params={"name": resume.tool, "arguments": resume.arguments},
    )


def _make_engine(server: Server, node: str | None) -> ServerEngine | DualEraServer:
    settings, tools = server.settings(), server.declarations()
    if not server.serves_sessions:
        return ServerEngine(settings=settings, tools=tools, node=node)
    return DualEraServer(settings=settings, tools=tools, node=node, policy=LegacyPolicy(server.legacy))


def _session_for(message: Any) -> str | None:
    """Return an id that nobody can guess, should the message open a session (LEG.2)."""
    opens = isinstance(message, dict) and message.get("method") == "initialize"
    return secrets.token_urlsafe(24) if opens else None


def _became_task(exchange: Hashable, offer: TaskOffer) -> CallBecameTask:
    return CallBecameTask(
        exchange=exchange,
        task_id=secrets.token_urlsafe(24),  # 192 random bits (LIFE.6)
        status_message=offer.status_message,
        ttl_ms=offer.ttl_ms,
        poll_interval_ms=offer.poll_interval_ms,
    )
