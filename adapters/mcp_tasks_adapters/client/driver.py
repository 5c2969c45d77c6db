"""The synchronous heart of every client: an engine, its calls, its questions, on somebody's loop.

The driver feeds facts to the engine and carries out the effects. It does no I/O and never waits; a loop
module gives it a :class:`~mcp_tasks_adapters.client.loop.ClientLoop` and a :class:`Transport`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import frozen

from mcp_tasks_adapters.client.answers import AnswerFunction, InputRequest, ask
from mcp_tasks_adapters.client.calls import Call, NotificationFunction, ReferenceFunction
from mcp_tasks_adapters.client.loop import ClientLoop, Unasked
from mcp_tasks_adapters.client.results import OutputSchemas
from mcp_tasks_adapters.driver import Event
from mcp_tasks_adapters.feeding import Feeder, recorded
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.legacy.messages import (
    Closing,
    ConnectionLost,
    DualEraInput,
    Era,
    SendLegacy,
    ServerAsked,
    StreamOpened,
)
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    CancelWanted,
    Completed,
    Failed,
    Fault,
    KeepReference,
    NotificationReceived,
    ObservationLost,
    Outcome,
    PassOn,
    Prompt,
    RequesterEngine,
    RequesterSettings,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WaitAbandoned,
    WithdrawPrompt,
)
from mcp_tasks_proto.vocabulary import PROGRESS_TOKEN

if TYPE_CHECKING:
    from mcp_tasks_adapters.toolkit.server import RecordFunction
    from mcp_tasks_proto.legacy.requester import DualEraRequester

__all__ = ["ClientDriver", "TraceEntry", "TraceFunction", "Transport"]

Fact = ResponseReceived | NotificationReceived | ServerAsked | StreamOpened | RequestFailed

CLOSING_SECONDS: Final = 5.0
"""How long a client that is closed waits for a server to take note of cancellations."""

_log = logging.getLogger("mcp_tasks_adapters")


class Transport(Protocol):
    """The way to the server."""

    @property
    def speaks_http(self) -> bool:
        """Whether it is Streamable HTTP; else stdio."""

    def unasked(self, report: Callable[[Unasked], None]) -> None:
        """Report from now on what the server says that belongs to no request, and that it has ended."""

    async def open(self) -> None:
        """Begin; only then may be sent. Raises ``OSError`` where there is no beginning."""

    def send(self, request: SendRequest | SendLegacy, report: Callable[[Fact], None]) -> None:
        """Send a message; report what comes on its stream, and then how it was answered, or failed.

        Never waits.
        """

    def stop(self, request: int) -> Mapping[str, Any] | None:
        """End a request, and report no more of it; return the message that tells the server, if one does."""

    async def close(self) -> None:
        """End. No request is in flight any more."""


@frozen(kw_only=True)
class TraceEntry:
    """One thing that happened on the wire. It holds payloads, but no HTTP headers: no credentials."""

    at_ms: int
    """Unix milliseconds."""
    event: str
    """``"sent"``, ``"received"``, ``"failed"`` (no answer will come), ``"stopped"`` (none is wanted)."""
    request: int
    """The id of the request that it belongs to."""
    message: Any = None
    """The message: a request, a notification or a response; of what was received, ``None`` also stands for a
    body that was no JSON."""
    verb: str | None = None
    """``"GET"`` or ``"DELETE"`` where no message was sent: a stream, or the end of a 2025-11-25 session."""
    http_status: int | None = None
    reason: str | None = None
    """Why it failed."""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as one JSON object."""
        entry: dict[str, Any] = {"atMs": self.at_ms, "event": self.event, "request": self.request}
        more = {
            "message": self.message,
            "verb": self.verb,
            "httpStatus": self.http_status,
            "reason": self.reason,
        }
        return entry | {name: value for name, value in more.items() if value is not None}


TraceFunction = Callable[[TraceEntry], None]
"""Is told of everything on the wire, as it happens."""


class ClientDriver:
    """Runs one requester on one loop.

    Everything here happens on the loop's thread. A transport may report, and a caller's function may call
    back, within the very call that set it off: the :class:`~mcp_tasks_adapters.feeding.Feeder` has the engine
    take one input at a time.
    """

    def __init__(
        self,
        settings: RequesterSettings,
        *,
        loop: ClientLoop,
        transport: Transport,
        answer: AnswerFunction | None,
        on_trace: TraceFunction | None,
        record: RecordFunction | None = None,
        era: Era | None = None,
    ) -> None:
        self.settings = settings
        self.loop = loop
        self._engine: RequesterEngine | DualEraRequester
        self._told = era
        if era == "modern" and transport.speaks_http:
            self._engine = RequesterEngine(settings=settings)
        else:
            self._engine = _dual_era(settings, transport, era)
            transport.unasked(self._heard)
        self._transport = transport
        self._answer = answer
        self._on_trace = on_trace
        self._keys = count(1)
        self._place = token_hex(8)
        """Tells this client's progress tokens from those of others in the same session of 2025-11-25."""
        self._calls: dict[Any, Call] = {}
        self._questions: dict[tuple[Any, str], Errand[Mapping[str, Any] | Exception]] = {}
        self._last_turn: Event | None = None
        """Set once the newest question was put to ``answer``, or is not going to be."""
        self._in_flight: dict[int, str] = {}
        self._landed: Event | None = None
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._schemas = OutputSchemas()
        self._closed = False
        actions: dict[type, Callable[[Any], None]] = {
            SendRequest: self._send,
            SendLegacy: self._send_legacy,
            StopRequest: self._stop,
            Prompt: self._prompt,
            WithdrawPrompt: self._withdraw,
            ShowView: self._show,
            PassOn: self._pass_on,
            KeepReference: self._keep,
            Settle: self._settle,
        }
        self._engine, fed = recorded(self._engine, record)
        self._feeder: Feeder[DualEraInput] = Feeder(fed, loop, actions=actions, not_taken=self._give_up)

    # -- for a client --------------------------------------------------------------------------------------

    def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        deadline_ms: int | None,
        on_reference: ReferenceFunction | None,
        on_notification: NotificationFunction | None,
    ) -> Call:
        """Begin to call a tool."""
        call = self._open(tool, on_reference=on_reference, on_notification=on_notification)
        if on_notification is not None:
            meta = {PROGRESS_TOKEN: f"{self._place}.{call._key}", **meta}
        self.feed(
            CallWanted(call=call._key, tool=tool, arguments=arguments, meta=meta, deadline_ms=deadline_ms)
        )
        return call

    def request(
        self, method: str, params: Mapping[str, Any], *, meta: Mapping[str, Any], deadline_ms: int | None
    ) -> Call:
        """Begin to ask anything else."""
        call = self._open(None)
        self.feed(
            RequestWanted(call=call._key, method=method, params=params, meta=meta, deadline_ms=deadline_ms)
        )
        return call

    def resume(
        self, reference: Any, *, deadline_ms: int | None, on_reference: ReferenceFunction | None
    ) -> Call:
        """Go on with a task."""
        tool = reference.get("tool") if isinstance(reference, Mapping) else None
        call = self._open(tool, on_reference=on_reference)
        call._reference = reference if isinstance(reference, dict) else None
        self.feed(ResumeWanted(call=call._key, reference=reference, deadline_ms=deadline_ms))
        return call

    def cancel(self, key: int, *, wait: bool) -> None:
        """Cancel a call. Harmless once it is over."""
        self.feed(CancelWanted(key, wait))

    def abandon(self, key: int) -> None:
        """Stop watching. Harmless once it is over."""
        self.feed(WaitAbandoned(key))

    @property
    def era(self) -> Era | None:
        """The server's era, where it is known."""
        return self._told if isinstance(self._engine, RequesterEngine) else self._told or self._engine.era

    def next_poll_ms(self, key: int) -> int | None:
        """Return when the task of a call will be polled next."""
        return self._engine.next_poll(key)

    def learn_tools(self, tools: list[Mapping[str, Any]]) -> None:
        """Take note of the tools that a server has listed."""
        self._tools = {tool["name"]: tool for tool in tools}

    def _open(self, tool: Any, **functions: Any) -> Call:
        if self._closed:
            raise RuntimeError("this client is closed")
        call = Call(
            self, self.loop, next(self._keys), tool=tool if isinstance(tool, str) else None, **functions
        )
        self._calls[call._key] = call
        return call

    # -- for the loop module -------------------------------------------------------------------------------

    def wake(self) -> None:
        """The time asked for by ``Loop.wake_at`` has come."""
        self._feeder.wake()

    async def finish(self) -> None:
        """Give up every call, and see to it that cancellations reach the server, if that is soon done."""
        self.abandon_all()
        await self.loop.within(CLOSING_SECONDS, self._farewells_landed)

    async def _farewells_landed(self) -> None:
        await self._landed_all("tasks/cancel")
        if not isinstance(self._engine, RequesterEngine):
            self.feed(Closing())
        await self._landed_all("DELETE", "notifications/cancelled")

    async def _landed_all(self, *methods: str) -> None:
        while any(method in self._in_flight.values() for method in methods):
            self._landed = self.loop.event()
            await self._landed.wait()

    def abandon_all(self) -> None:
        """Stop watching everything; questions are withdrawn."""
        for key in list(self._calls):
            self.abandon(key)

    def close(self) -> None:
        """End. No request is in flight then, and no question on show."""
        self.abandon_all()
        self._closed = True
        self._feeder.close()
        for request in list(self._in_flight):
            self._stop(StopRequest(request))

    # -- the engine ----------------------------------------------------------------------------------------

    def feed(self, fact: DualEraInput) -> None:
        """Hand a fact to the engine, now or when it is done with those before, and do what it says."""
        self._feeder.feed(fact)

    def _give_up(self, _: DualEraInput) -> None:
        """The engine failed, which is an error of this package: nobody shall wait in vain."""
        for key in list(self._calls):
            self._settle(Settle(key, ObservationLost(reason="an error within this client")))

    # -- to the server -------------------------------------------------------------------------------------

    def _send(self, send: SendRequest) -> None:
        method = send.message["method"]
        self._in_flight[send.request] = method
        self._trace("sent", send.request, message=send.message)
        self._transport.send(send, self._report)

    def _send_legacy(self, send: SendLegacy) -> None:
        method = None if send.message is None else send.message.get("method")
        self._in_flight[send.request] = method or send.verb
        verb = send.verb if send.message is None else None
        self._trace("sent", send.request, message=send.message, verb=verb)
        self._transport.send(send, self._report)

    def _heard(self, said: Unasked) -> None:
        """The server says what belongs to no request, or has ended."""
        if not isinstance(said, ConnectionLost):
            self._trace("received", said.request, message=said.message)
        self.feed(said)

    def _stop(self, stop: StopRequest) -> None:
        if self._gone(stop.request):
            message = self._transport.stop(stop.request)
            self._trace("stopped", stop.request, message=message)

    def _report(self, fact: Fact) -> None:
        match fact:
            case ResponseReceived(request=request, message=message, http=http):
                self._gone(request)
                status = None if http is None else http.status
                self._trace("received", request, message=message, http_status=status)
            case (
                NotificationReceived(request=request, message=message)
                | ServerAsked(request=request, message=message)
            ):
                self._trace("received", request, message=message)
            case RequestFailed(request=request, reason=reason):
                self._gone(request)
                self._trace("failed", request, reason=reason)
        self.feed(fact)

    def _gone(self, request: int) -> bool:
        """Note that a request is not in flight any more; return whether it was."""
        was = self._in_flight.pop(request, None) is not None
        if self._landed is not None:
            self._landed.set()
        return was

    def _trace(self, event: str, request: int, **details: Any) -> None:
        if self._on_trace is None:
            return
        try:
            self._on_trace(TraceEntry(at_ms=self.loop.now_ms(), event=event, request=request, **details))
        except Exception as error:
            _log.error("an on_trace= function failed: %s", describe(error))

    # -- to who answers ------------------------------------------------------------------------------------

    def _prompt(self, prompt: Prompt) -> None:
        call = self._calls.get(prompt.call)
        if call is None or self._answer is None:
            return
        request = InputRequest(
            key=prompt.key,
            raw=prompt.request,
            endpoint=self.settings.endpoint,
            tool=call.tool,
            again=prompt.again,
        )
        name, turn, before = (prompt.call, prompt.key), self.loop.event(), self._last_turn
        self._last_turn = turn
        self._questions[name] = Errand(
            self.loop,
            partial(self._ask_in_turn, self._answer, request, turn, before),
            partial(self._answered, name, turn),
        )

    async def _ask_in_turn(
        self, answer: AnswerFunction, request: InputRequest, turn: Event, before: Event | None
    ) -> Mapping[str, Any] | Exception:
        """Ask once every question before this one has been: loops start coroutines in any order."""
        if before is not None:
            await before.wait()
        turn.set()
        return await ask(answer, request)

    def _answered(
        self, name: tuple[Any, str], turn: Event, response: Mapping[str, Any] | Exception | None
    ) -> None:
        turn.set()  # it may have been withdrawn before its turn came
        if self._questions.pop(name, None) is None or response is None:
            return  # it was withdrawn
        key, question = name
        if isinstance(response, Exception):
            self._break(self._calls.get(key), response)
        else:
            self.feed(AnswerGiven(key, question, response))

    def _withdraw(self, withdraw: WithdrawPrompt) -> None:
        errand = self._questions.pop((withdraw.call, withdraw.key), None)
        if errand is not None:
            errand.cancel()

    # -- to the caller -------------------------------------------------------------------------------------

    def _show(self, show: ShowView) -> None:
        if call := self._calls.get(show.call):
            call._show(show.view)

    def _pass_on(self, passed: PassOn) -> None:
        if call := self._calls.get(passed.call):
            self._try(call, call._pass_on, passed.method, passed.params)

    def _keep(self, keep: KeepReference) -> None:
        if call := self._calls.get(keep.call):
            self._try(call, call._keep, keep.reference)

    def _try(self, call: Call, function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            self._break(call, error)

    def _break(self, call: Call | None, error: Exception) -> None:
        """The caller's own code failed: whoever waits for the call shall know, and its task shall go on."""
        if call is not None:
            _log.error("a call was abandoned, because of %s", describe(error))
            call._break(error)
            self.abandon(call._key)

    def _settle(self, settle: Settle) -> None:
        if call := self._calls.pop(settle.call, None):
            call._settle(self._checked(call, settle.outcome))

    def _checked(self, call: Call, outcome: Outcome) -> Outcome:
        """Hold a tool's final result to what the server promised of it (REQ.8)."""
        if call.tool is None or not isinstance(outcome, Completed):
            return outcome
        definition = self._tools.get(call.tool) or self._engine.tool(call.tool)
        problem = None if definition is None else self._schemas.problem(definition, outcome.result)
        if problem is None:
            return outcome
        message = f"the result of {call.tool} does not fit its outputSchema: {problem}"
        return Failed(code=None, message=message, data=dict(outcome.result), fault=Fault.SERVER)


def _dual_era(settings: RequesterSettings, transport: Transport, era: Era | None) -> DualEraRequester:
    """Return an engine that finds out a server's era, unless it is told that this is the legacy one.

    A client over HTTP of the modern era alone does without it, and without the import.
    """
    from mcp_tasks_proto.legacy.requester import DualEraRequester

    only = era == "modern"
    return DualEraRequester(
        settings=settings, http=transport.speaks_http, era=None if only else era, modern_only=only
    )
