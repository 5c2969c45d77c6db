"""The requester role: one server, many calls, each from its request to its outcome.

:meth:`RequesterEngine.handle` takes one input and returns one step. A call is a request until its reply; that
reply ends it, asks for input and has it sent again (MRTR), or hands out a task, which is then watched
(:mod:`mcp_tasks_proto.requester.watching`) until it settles. Whatever happens, a call settles once.

An engine speaks for one authorization: what it caches was said to that one (core, "Caching").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError
from mcp_tasks_proto.input_requests import check_response
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester.cache import ResultCache
from mcp_tasks_proto.requester.calls import (
    Call,
    Sent,
    SentCall,
    SentCancel,
    SentListen,
    SentPoll,
    SentToolList,
    SentUpdate,
)
from mcp_tasks_proto.requester.cancellations import Cancellations
from mcp_tasks_proto.requester.effects import (
    PassOn,
    Prompt,
    RequesterEffect,
    RequesterStep,
    Settle,
    StopRequest,
    WithdrawPrompt,
)
from mcp_tasks_proto.requester.inputs import (
    AnswerGiven,
    CallWanted,
    CancelWanted,
    HttpReply,
    NotificationReceived,
    RequesterInput,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    WaitAbandoned,
)
from mcp_tasks_proto.requester.listening import Listener
from mcp_tasks_proto.requester.outcomes import (
    DENIED,
    Cancelled,
    Completed,
    Failed,
    Fault,
    ObservationLost,
    Outcome,
    failure,
    fault_of,
)
from mcp_tasks_proto.requester.questions import Questions
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.requests import Requests, backoff
from mcp_tasks_proto.requester.rounds import (
    CANCELLED_ANSWER,
    answerable,
    read_round,
)
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.requester.tools import ToolList, usable_tools
from mcp_tasks_proto.requester.watching import Watcher
from mcp_tasks_proto.timers import LAST_MS, Timers
from mcp_tasks_proto.vocabulary import INPUT_METHODS
from mcp_tasks_proto.wire.jsonrpc import Notification, Response, parse_message
from mcp_tasks_proto.wire.reading import modern, read_view
from mcp_tasks_proto.wire.schema import ABSENT, ParamsError, TaskView

__all__ = ["RequesterEngine"]

PASSED_ON: Final = frozenset({"notifications/progress", "notifications/message"})

TRY_LATER: Final = frozenset({408, 425, 429})
"""HTTP statuses below 500 that do not find fault with the request itself."""


@define(eq=False, kw_only=True)
class RequesterEngine:
    """One requester, as a state machine."""

    settings: RequesterSettings
    names: Iterator[int] = field(factory=lambda: count(1))
    """What requests are called, rising numbers. Who sends others beside this engine's shares them."""
    _timers: Timers = field(init=False, factory=Timers)
    _out: list[RequesterEffect] = field(init=False, factory=list)
    _calls: dict[Hashable, Call] = field(init=False, factory=dict)
    _cache: ResultCache = field(init=False)
    _tools: ToolList = field(init=False)
    _requests: Requests = field(init=False)
    _listing: int | None = field(init=False, default=None)
    """The request for a page of tools that is in flight."""
    _waiting_for_tools: dict[Hashable, Call] = field(init=False, factory=dict)
    _listener: Listener = field(init=False)
    _cancellations: Cancellations = field(init=False)
    _questions: Questions = field(init=False)
    _watcher: Watcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        limits = self.settings.limits
        self._cache = ResultCache(limits.cached_results)
        self._tools = ToolList(limits.tool_pages)
        self._requests = Requests(
            settings=self.settings,
            timers=self._timers,
            out=self._out,
            tools=self._tools,
            names=self.names,
        )
        self._listener = Listener(self._requests)
        self._cancellations = Cancellations(self._requests)
        self._questions = Questions(requests=self._requests, settle=self._settle)
        self._watcher = Watcher(
            requests=self._requests,
            listener=self._listener,
            questions=self._questions,
            cancellations=self._cancellations,
            settle=self._settle,
        )

    def handle(self, input: RequesterInput, *, now: int) -> RequesterStep:  # noqa: A002 - as ServerEngine's
        """Take in one fact; return what to do about it, in order.

        ``now`` is Unix milliseconds; where it is earlier than before, the engine keeps its own time.

        Raises :class:`LocalProtocolError` when the host breaks a rule of this interface, and only then. The
        engine is as it was before such a call.
        """
        handler = _HANDLERS.get(type(input))
        if handler is None:
            raise LocalProtocolError(f"{type(input).__name__} is not an input of a requester engine")
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        before = self._requests.now
        self._requests.now = max(now, before)
        self._out.clear()
        try:
            handler(self, input)
        except LocalProtocolError:
            self._requests.now = before
            raise
        return RequesterStep(tuple(self._out), self._timers.next)

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition that the server last gave of a tool, if it did."""
        return self._tools.definition(name)

    def next_poll(self, call: Hashable) -> int | None:
        """Return when the task of a call will be polled next, in Unix milliseconds, if that is planned."""
        known = self._calls.get(call)
        if known is None or known.watch is None:
            return None
        return self._timers.get(("poll", known.watch.task_id))

    def call_of(self, request: int) -> Hashable | None:
        """Return the call that a request in flight carries, if it carries one."""
        sent = self._requests.get(request)
        return sent.call.key if isinstance(sent, SentCall) else None

    def shows(self, call: Hashable, key: str) -> bool:
        """Whether this prompt of a call waits for its answer."""
        known = self._calls.get(call)
        return known is not None and _on_show(known, key) is not None

    # -- wishes ----------------------------------------------------------------------------------------

    def _call_wanted(self, wanted: CallWanted) -> None:
        params = {"name": wanted.tool, "arguments": wanted.arguments}
        call = Call(key=wanted.call, method="tools/call", params=params, meta=wanted.meta)
        if not self._open(call, wanted.deadline_ms):
            return
        if self.settings.mirror_arguments and not self._tools.knows(wanted.tool):
            self._wait_for_tools(call)
        else:
            self._send_call(call)

    def _request_wanted(self, wanted: RequestWanted) -> None:
        if wanted.method == "tools/call":
            raise LocalProtocolError("RequestWanted: a tool call is a CallWanted")
        known = self._cache.get(wanted.method, wanted.params, self._requests.now)
        call = Call(key=wanted.call, method=wanted.method, params=wanted.params, meta=wanted.meta)
        if not self._open(call, wanted.deadline_ms):
            return
        if known is None:
            self._send_call(call)
        else:
            self._settle(call, Completed(known))

    def _resume_wanted(self, wanted: ResumeWanted) -> None:
        call = Call(key=wanted.call, method="tools/call", params={})
        if not self._open(call, wanted.deadline_ms):
            return None
        try:
            reference = TaskReference.from_json(wanted.reference)
        except ValueError as error:
            return self._fail(call, str(error), Fault.CALLER)
        if reference.endpoint != self.settings.endpoint:
            return self._fail(call, "the reference is to a task of another server", Fault.CALLER)
        if reference.task_id in self._watcher:
            return self._fail(call, "the task is being watched already", Fault.CALLER)
        return self._watcher.resume(call, reference)

    def _open(self, call: Call, deadline_ms: int | None) -> bool:
        """Take a call in, if there is room for one more."""
        if call.key in self._calls:
            raise LocalProtocolError("this call is under way already")
        if len(self._calls) + len(self._cancellations) >= self.settings.limits.calls:
            message = "too many calls are under way (RequesterLimits.calls)"
            self._out.append(Settle(call.key, Failed(code=None, message=message, fault=Fault.CALLER)))
            return False
        self._calls[call.key] = call
        if deadline_ms is not None:
            self._timers.set(("deadline", call.key), deadline_ms)
        return True

    def _cancel_wanted(self, wanted: CancelWanted) -> None:
        call = self._calls.get(wanted.call)
        if call is None:
            return
        if call.watch is not None:
            self._watcher.cancel(call.watch, wait=wanted.wait)
        if call.watch is None or not wanted.wait:
            self._settle(call, Cancelled(view=_view_of(call)))

    def _wait_abandoned(self, abandoned: WaitAbandoned) -> None:
        call = self._calls.get(abandoned.call)
        if call is not None:
            self._lose(call, "the caller stopped waiting")

    def _answer_given(self, given: AnswerGiven) -> None:
        call = self._calls.get(given.call)
        request = None if call is None else _on_show(call, given.key)
        if call is None or request is None:
            return
        if problem := check_response(request, given.response):
            raise LocalProtocolError(f"AnswerGiven: {problem}")
        if call.watch is not None:
            self._questions.answer(call.watch, given.key, given.response)
            return
        call.answers[given.key] = given.response
        if not call.asked:
            self._send_call(call)

    # -- sending -----------------------------------------------------------------------------------------

    def _send_call(self, call: Call) -> None:
        """Send the request that the call is, with what its present round of input has brought."""
        if self.settings.mirror_arguments and call.tool and (fault := self._tools.fault(call.tool)):
            return self._fail(call, f"the tool's definition is wrong: {fault}", Fault.SERVER)
        params = dict(call.params)
        if call.round is not None and call.round.requests:
            params["inputResponses"] = dict(call.answers)
        if call.round is not None and call.round.state is not None:
            params["requestState"] = call.round.state
        try:
            self._requests.check(call.method, params)
        except LocalProtocolError as error:
            return self._fail(call, str(error), Fault.CALLER)
        call.request = self._requests.send(SentCall(call=call), call.method, params, meta=call.meta)
        return None

    # -- ends ----------------------------------------------------------------------------------------------

    def _settle(self, call: Call, outcome: Outcome) -> None:
        """End a call: nothing of it is left, on this side or on the screen."""
        del self._calls[call.key]
        self._timers.clear(("deadline", call.key))
        self._timers.clear(("again", call.key))
        self._leave_tools(call)
        if call.request is not None:
            self._requests.stop(call.request)
        for key in call.asked:
            self._out.append(WithdrawPrompt(call.key, key))
        if call.watch is not None:
            self._watcher.end(call.watch, outcome)
        self._out.append(Settle(call.key, outcome))

    def _lose(self, call: Call, reason: str) -> None:
        if call.watch is not None and call.watch.trouble is not None:
            reason = f"{reason}; the last poll failed: {call.watch.trouble}"
        self._settle(call, ObservationLost(reason=reason, view=_view_of(call)))

    def _fail(self, call: Call, message: str, fault: Fault, http_status: int | None = None) -> None:
        self._settle(call, Failed(code=None, message=message, fault=fault, http_status=http_status))

    # -- the network ---------------------------------------------------------------------------------------

    def _response_received(self, received: ResponseReceived) -> None:
        sent = self._requests.end(received.request)
        if sent is None:
            return
        message, http = parse_message(received.message), received.http
        status = _failing_status(http)
        answers = isinstance(message, Response) and message.id in (received.request, None)
        if isinstance(message, Response) and answers and message.error is None:
            self._answered(sent, message.result or {})
        elif status in DENIED and isinstance(sent, SentPoll | SentUpdate):
            self._watcher.denied(sent, status)
        elif isinstance(message, Response) and answers and message.error is not None:
            self._refused(sent, modern(message.error), http)
        elif status is not None:
            fault = Fault.SERVER if status >= 500 or status in TRY_LATER else Fault.CALLER
            # An error that is not for this request, as some servers' own, still tells why.
            told = message.error if isinstance(message, Response) else None
            why = " without a message" if told is None else f": {told.message}"
            self._unanswered(sent, f"the server answered HTTP {status}{why}", fault, http)
        else:
            self._unanswered(sent, "the server's answer is not a response to this request", Fault.SERVER)

    def _request_failed(self, failed: RequestFailed) -> None:
        sent = self._requests.end(failed.request)
        if isinstance(sent, SentCall) and failed.sent:
            sent.call.request = None
            self._lose(sent.call, failed.reason)
        elif sent is not None:
            self._unanswered(sent, failed.reason, failed.fault)

    def _notification_received(self, received: NotificationReceived) -> None:
        sent = self._requests.get(received.request)
        message = parse_message(received.message)
        if sent is None or not isinstance(message, Notification):
            return
        self._requests.keep_alive(received.request)
        match sent, message.method:
            case SentListen(), "notifications/subscriptions/acknowledged":
                self._watcher.acknowledged(sent, message.params)
            case SentListen(), "notifications/tasks":
                self._watcher.notified(sent, message.params)
            case SentListen(), "notifications/cancelled" if message.params.get("requestId") == sent.name:
                self._requests.stop(sent.name)
                self._watcher.stream_ended(sent)
            case SentCall(call=call), method if method in PASSED_ON:
                self._out.append(PassOn(call.key, method, message.params))

    def _time_passed(self, _: TimePassed) -> None:
        while (timer := self._timers.pop(self._requests.now)) is not None:
            match timer:
                case "poll", str() as task_id:
                    self._watcher.poll_due(task_id)
                case "timeout", int() as name:
                    self._timed_out(name)
                case "update", str() as task_id:
                    self._watcher.update_due(task_id)
                case "expiry", str() as task_id:
                    self._watcher.expiry_due(task_id)
                case "deadline", key:
                    self._lose(self._calls[key], "the deadline has passed")
                case "again", key:
                    self._send_call(self._calls[key])
                case "cancel", SentCancel() as sent:
                    self._cancellations.send(sent)
                case _:
                    self._watcher.listen_due()

    def _timed_out(self, name: int) -> None:
        self._out.append(StopRequest(name))
        self._request_failed(RequestFailed(name, "the server did not answer in time"))

    # -- what an answer means --------------------------------------------------------------------------------

    def _answered(self, sent: Sent, result: Mapping[str, Any]) -> None:
        if not isinstance(sent, SentCall) and result.get("resultType", "complete") != "complete":
            reason = "the server's answer is of a type that it may not be"
            return self._unanswered(sent, reason, Fault.SERVER)
        match sent:
            case SentCall(call=call):
                call.request = None
                self._call_answered(call, result)
            case SentToolList():
                self._tools_listed(sent, result)
            case SentPoll(watch=watch):
                self._watcher.poll_answered(watch, result)
            case SentUpdate(watch=watch):
                self._questions.acknowledged(watch)
            case SentListen():
                self._watcher.stream_ended(sent)
            case _:
                self._cancellations.known(sent)
        return None

    def _refused(self, sent: Sent, error: ErrorObject, http: HttpReply | None) -> None:
        """An error. One that the caller has to mend would come again; others may not."""
        if isinstance(sent, SentCall):
            sent.call.request = None
            self._call_refused(sent, error, http)
        elif fault_of(error.code) is Fault.CALLER and not self._speaks_otherwise(sent, error):
            self._refused_for_good(sent, error)
        else:
            self._unanswered(sent, error.message, Fault.SERVER, http)

    def _refused_for_good(self, sent: Sent, error: ErrorObject) -> None:
        match sent:
            case SentPoll(watch=watch):
                self._watcher.poll_refused(watch, error)
            case SentUpdate(watch=watch):
                self._questions.refused(watch, error)
            case SentListen():
                self._watcher.stream_ended(sent, refused=True)
            case SentCancel():
                self._cancellations.known(sent)
            case _:
                self._release_calls()

    def _unanswered(self, sent: Sent, reason: str, fault: Fault, http: HttpReply | None = None) -> None:
        """There is no answer, or none that means anything."""
        pause_ms, status = 0 if http is None else http.retry_after_ms or 0, _failing_status(http)
        match sent:
            case SentCall(call=call):
                call.request = None
                self._fail(call, reason, fault, status)
            case SentPoll(watch=watch):
                self._watcher.poll_failed(watch, reason, pause_ms)
            case SentUpdate(watch=watch):
                self._questions.failed(watch, pause_ms)
            case SentListen():
                if status is not None and fault is Fault.CALLER:
                    # It may not do this, or somebody may have answered in its place, or for today only.
                    pause_ms = max(pause_ms, self.settings.limits.listen_again_ms)
                self._watcher.stream_ended(sent, pause_ms=pause_ms)
            case SentCancel():
                self._cancellations.failed(sent, pause_ms)
            case _:
                # Without the list the call goes out plain; a server that needs the headers will say so.
                self._release_calls()

    def _speaks_otherwise(self, sent: Sent, error: ErrorObject) -> bool:
        """Whether an error is about the version, and there is another that both sides speak (NEG.2)."""
        return self._version_in_common(error) not in (None, sent.version)

    def _version_in_common(self, error: ErrorObject) -> str | None:
        """Speak the best version that an error says the server knows; return it, if there is one (NEG.2)."""
        if error.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION or not isinstance(error.data, dict):
            return None
        return self._requests.adopt_version(error.data.get("supported"))

    # -- calls -----------------------------------------------------------------------------------------------

    def _call_answered(self, call: Call, result: Mapping[str, Any]) -> None:
        """A result: final, a round of input, or a task (REQ.1)."""
        kind = result.get("resultType", "complete")
        if kind == "complete":
            self._call_completed(call, result)
        elif kind == "input_required" and call.method in INPUT_METHODS:
            self._input_required(call, result)
        elif kind == "task" and call.method == "tools/call" and self.settings.tasks:
            self._became_task(call, result)
        else:
            message = f"the server answered {call.method} with a result of a type that it may not be"
            self._fail(call, message, Fault.SERVER)

    def _call_completed(self, call: Call, result: Mapping[str, Any]) -> None:
        if call.method == "tools/list":
            self._tools.add_page(result, first=call.params.get("cursor") is None)
            result = usable_tools(result)
        elif call.method == "server/discover":
            self._requests.adopt_version(result.get("supportedVersions"))
        if not call.rounds:
            self._cache.put(call.method, call.params, result, self._requests.now)
        self._settle(call, Completed(result))

    def _input_required(self, call: Call, result: Mapping[str, Any]) -> None:
        try:
            if call.rounds >= self.settings.limits.input_rounds:
                raise ValueError("it asks for input again and again (RequesterLimits.input_rounds)")
            call.round = read_round(result, self.settings)
        except ValueError as error:
            return self._fail(call, f"the server's input_required result is wrong: {error}", Fault.SERVER)
        call.rounds += 1
        call.answers = {}
        for key, request in call.round.requests.items():
            if answerable(request, self.settings):
                self._out.append(Prompt(call=call.key, key=key, request=request))
            else:
                call.answers[key] = CANCELLED_ANSWER
        if not call.asked:
            again_ms = self._requests.now + backoff(self.settings, call.rounds)
            self._timers.set(("again", call.key), again_ms)
        return None

    def _became_task(self, call: Call, result: Mapping[str, Any]) -> None:
        try:
            view = read_view(result)
        except ParamsError as error:
            return self._fail(call, f"the server's task handle is wrong: {error}", Fault.SERVER)
        if view.task_id in self._watcher:
            return self._fail(call, "the server gave the task of another call", Fault.SERVER)
        reference = TaskReference(
            endpoint=self.settings.endpoint,
            task_id=view.task_id,
            tool=call.params["name"],
            capabilities=self._requests.declared,
            created_ms=self._requests.now,
            ttl_ms=None if view.ttl_ms is ABSENT else view.ttl_ms,
            poll_interval_ms=view.poll_interval_ms,
        )
        return self._watcher.begin(call, reference, view)

    def _call_refused(self, sent: SentCall, error: ErrorObject, http: HttpReply | None) -> None:
        """An error: something to put right and send again, once for each kind, or the end."""
        call = sent.call
        if error.code not in call.mended:
            if self._version_in_common(error) is not None:
                # Perhaps the very one that was refused: who names it all the same is asked again, once.
                call.mended.add(error.code)
                return self._send_call(call)
            if error.code == ErrorCode.HEADER_MISMATCH and call.tool and self.settings.mirror_arguments:
                # The tool's definition may have changed since it was listed (HTTP.3).
                call.mended.add(error.code)
                return self._wait_for_tools(call)
        return self._settle(call, failure(error, _failing_status(http)))

    # -- tools -----------------------------------------------------------------------------------------------

    def _wait_for_tools(self, call: Call) -> None:
        """Learn which arguments are mirrored before the call is sent."""
        self._waiting_for_tools[call.key] = call
        if self._listing is None:
            self._listing = self._requests.send(SentToolList(first=True), "tools/list", {})

    def _tools_listed(self, sent: SentToolList, result: Mapping[str, Any]) -> None:
        cursor = self._tools.add_page(result, first=sent.first)
        if cursor is None:
            self._release_calls()
        else:
            self._listing = self._requests.send(SentToolList(first=False), "tools/list", {"cursor": cursor})

    def _release_calls(self) -> None:
        waiting, self._waiting_for_tools, self._listing = self._waiting_for_tools, {}, None
        for call in waiting.values():
            self._send_call(call)

    def _leave_tools(self, call: Call) -> None:
        """A call ends; the list of tools is not read on for nobody."""
        self._waiting_for_tools.pop(call.key, None)
        if self._listing is not None and not self._waiting_for_tools:
            self._requests.stop(self._listing)
            self._listing = None


def _view_of(call: Call) -> TaskView | None:
    return None if call.watch is None else call.watch.view


def _on_show(call: Call, key: str) -> Mapping[str, Any] | None:
    """Return the request that is on show under a key at present, if one is."""
    if call.watch is None:
        return call.asked.get(key)
    entry = call.watch.reference.ledger.get(key)
    return None if entry is None else entry.on_show


def _failing_status(http: HttpReply | None) -> int | None:
    """Return the status of a reply that is none of success."""
    return None if http is None or 200 <= http.status < 300 else http.status


_HANDLERS: Final[Mapping[type, Callable[[RequesterEngine, Any], None]]] = {
    CallWanted: RequesterEngine._call_wanted,
    RequestWanted: RequesterEngine._request_wanted,
    ResumeWanted: RequesterEngine._resume_wanted,
    CancelWanted: RequesterEngine._cancel_wanted,
    WaitAbandoned: RequesterEngine._wait_abandoned,
    AnswerGiven: RequesterEngine._answer_given,
    ResponseReceived: RequesterEngine._response_received,
    NotificationReceived: RequesterEngine._notification_received,
    RequestFailed: RequesterEngine._request_failed,
    TimePassed: RequesterEngine._time_passed,
}
