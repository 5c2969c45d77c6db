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

from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError
from mcp_tasks_proto.input_requests import check_response
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester.cache import ResultCache
from mcp_tasks_proto.requester.calling import Calls
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
    RequesterEffect,
    RequesterStep,
    StopRequest,
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
    Fault,
    fault_of,
)
from mcp_tasks_proto.requester.questions import Questions
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.requests import Requests
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.requester.tools import ToolList
from mcp_tasks_proto.requester.watching import Watcher
from mcp_tasks_proto.timers import LAST_MS, Timers
from mcp_tasks_proto.wire.jsonrpc import Notification, Response, encode, parse_message
from mcp_tasks_proto.wire.reading import modern

__all__ = ["RequesterEngine"]

PASSED_ON: Final = frozenset({"notifications/progress", "notifications/message"})

TRY_LATER: Final = frozenset({408, 425, 429})
"""HTTP statuses below 500 that do not find fault with the request itself."""


@define(eq=False, repr=False, kw_only=True)
class RequesterEngine:
    """One requester, as a state machine."""

    settings: RequesterSettings
    names: Iterator[int] = field(factory=lambda: count(1))
    """What requests are called, rising numbers. Who sends others beside this engine's shares them."""
    _timers: Timers = field(init=False, factory=Timers)
    _out: list[RequesterEffect] = field(init=False, factory=list)
    _cache: ResultCache = field(init=False)
    _tools: ToolList = field(init=False)
    _requests: Requests = field(init=False)
    _cancellations: Cancellations = field(init=False)
    _calls: Calls = field(init=False)
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
        self._cancellations = Cancellations(self._requests)
        self._calls = Calls(
            requests=self._requests,
            listener=Listener(self._requests),
            cancellations=self._cancellations,
            cache=self._cache,
        )
        self._questions, self._watcher = self._calls.questions, self._calls.watcher

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
        except LocalProtocolError as error:
            self._requests.now = before
            raise LocalProtocolError(f"{type(input).__name__}: {error}") from error
        return RequesterStep(tuple(self._out), self._timers.next)

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition that the server last gave of a tool, if it did."""
        return self._tools.definition(name)

    def next_poll(self, call: Hashable) -> int | None:
        """Return when the task of a call will be polled next, in Unix milliseconds, if that is planned."""
        known = self._calls.by_key.get(call)
        if known is None or known.watch is None:
            return None
        return self._timers.get(("poll", known.watch.task_id))

    def call_of(self, request: int) -> Hashable | None:
        """Return the call that a request in flight carries, if it carries one."""
        sent = self._requests.get(request)
        return sent.call.key if isinstance(sent, SentCall) else None

    def shows(self, call: Hashable, key: str) -> bool:
        """Whether this prompt of a call waits for its answer."""
        known = self._calls.by_key.get(call)
        return known is not None and _on_show(known, key) is not None

    # -- wishes ----------------------------------------------------------------------------------------

    def _call_wanted(self, wanted: CallWanted) -> None:
        _check_wish(wanted.tool, wanted.arguments, wanted.meta)
        params = {"name": wanted.tool, "arguments": wanted.arguments}
        call = Call(key=wanted.call, method="tools/call", params=params, meta=wanted.meta)
        if not self._calls.open(call, wanted.deadline_ms):
            return
        if self.settings.mirror_arguments and not self._tools.knows(wanted.tool):
            self._calls.wait_for_tools(call)
        else:
            self._calls.send(call)

    def _request_wanted(self, wanted: RequestWanted) -> None:
        _check_wish(wanted.method, wanted.params, wanted.meta)
        if wanted.method == "tools/call":
            raise LocalProtocolError("a tool call is a CallWanted")
        known = self._cache.get(wanted.method, wanted.params, self._requests.now)
        call = Call(key=wanted.call, method=wanted.method, params=wanted.params, meta=wanted.meta)
        if not self._calls.open(call, wanted.deadline_ms):
            return
        if known is None:
            self._calls.send(call)
        else:
            self._calls.settle(call, Completed(known))

    def _resume_wanted(self, wanted: ResumeWanted) -> None:
        call = Call(key=wanted.call, method="tools/call", params={})
        if not self._calls.open(call, wanted.deadline_ms):
            return None
        try:
            reference = TaskReference.from_json(wanted.reference)
        except ValueError as error:
            return self._calls.fail(call, str(error), Fault.CALLER)
        if reference.endpoint != self.settings.endpoint:
            return self._calls.fail(call, "the reference is to a task of another server", Fault.CALLER)
        if reference.task_id in self._watcher:
            return self._calls.fail(call, "the task is being watched already", Fault.CALLER)
        return self._watcher.resume(call, reference)

    def _cancel_wanted(self, wanted: CancelWanted) -> None:
        call = self._calls.by_key.get(wanted.call)
        if call is None:
            return
        if call.watch is not None:
            self._watcher.cancel(call.watch, wait=wanted.wait)
        if call.watch is None or not wanted.wait:
            self._calls.settle(call, Cancelled(view=call.view))

    def _wait_abandoned(self, abandoned: WaitAbandoned) -> None:
        call = self._calls.by_key.get(abandoned.call)
        if call is not None:
            self._calls.lose(call, "the caller stopped waiting")

    def _answer_given(self, given: AnswerGiven) -> None:
        call = self._calls.by_key.get(given.call)
        request = None if call is None else _on_show(call, given.key)
        if call is None or request is None:
            return
        if problem := check_response(request, given.response):
            raise LocalProtocolError(problem)
        encode(given.response)  # which refuses what is not JSON: it is sent, and kept in references
        if call.watch is not None:
            self._questions.answer(call.watch, given.key, given.response)
            return
        call.answers[given.key] = given.response
        if not call.asked:
            self._calls.send(call)

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
            self._calls.lose(sent.call, failed.reason)
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
                    self._calls.lose(self._calls.by_key[key], "the deadline has passed")
                case "again", key:
                    self._calls.send(self._calls.by_key[key])
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
                self._calls.answered(call, result)
            case SentToolList():
                self._calls.tools_listed(sent, result)
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
            self._calls.refused(sent.call, error, _failing_status(http))
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
                self._calls.release_waiting()

    def _unanswered(self, sent: Sent, reason: str, fault: Fault, http: HttpReply | None = None) -> None:
        """There is no answer, or none that means anything."""
        pause_ms, status = 0 if http is None else http.retry_after_ms or 0, _failing_status(http)
        match sent:
            case SentCall(call=call):
                call.request = None
                self._calls.fail(call, reason, fault, status)
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
                self._calls.release_waiting()

    def _speaks_otherwise(self, sent: Sent, error: ErrorObject) -> bool:
        """Whether an error is about the version, and there is another that both sides speak (NEG.2)."""
        return self._requests.adopt_offered(error) not in (None, sent.version)


def _check_wish(name: Any, params: Any, meta: Any) -> None:
    """Refuse, as :class:`LocalProtocolError`, what no request can be made of."""
    if not isinstance(name, str):
        raise LocalProtocolError("a tool or a method is named by a string")
    if not isinstance(params, Mapping) or not isinstance(meta, Mapping):
        raise LocalProtocolError("arguments, params and meta are objects")


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
