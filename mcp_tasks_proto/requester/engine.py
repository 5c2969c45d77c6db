"""The requester role: one server, many calls, each from its request to its outcome.

:meth:`RequesterEngine.handle` takes one input and returns one step. A call is a request until its reply; that
reply ends it, asks for input and has it sent again (MRTR), or hands out a task, which is then watched
(:mod:`mcp_tasks_proto.requester.watching`) until it settles. Whatever happens, a call settles once.

An engine speaks for one authorization: what it caches was said to that one (core, "Caching").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError
from mcp_tasks_proto.input_requests import check_requests, check_response, missing_capabilities
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester.calls import Call, Purpose, Sent, Watch
from mcp_tasks_proto.requester.effects import (
    PassOn,
    Prompt,
    RequesterEffect,
    RequesterStep,
    SendRequest,
    Settle,
    StopRequest,
    WithdrawPrompt,
)
from mcp_tasks_proto.requester.inputs import (
    AnswerGiven,
    CallWanted,
    CancelWanted,
    NotificationReceived,
    RequesterInput,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    WaitAbandoned,
)
from mcp_tasks_proto.requester.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Fault,
    ObservationLost,
    Outcome,
    fault_of,
)
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.requester.tools import ToolList
from mcp_tasks_proto.requester.watching import Watcher, backoff, read_view
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.vocabulary import (
    CACHEABLE_METHODS,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
)
from mcp_tasks_proto.wire.http import HeaderParameter
from mcp_tasks_proto.wire.jsonrpc import Notification, Response, encode, parse_message, request_message
from mcp_tasks_proto.wire.schema import ParamsError

__all__ = ["RequesterEngine"]

INPUT_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods that a server may answer with ``input_required``."""

STALE_MISSING_CAPABILITY: Final = -32003
"""What drafts of the specification had in place of -32021."""

PASSED_ON: Final = frozenset({"notifications/progress", "notifications/message"})


@define(eq=False, kw_only=True)
class RequesterEngine:
    """One requester, as a state machine."""

    settings: RequesterSettings
    _now: int = field(init=False, default=0)
    _timers: Timers = field(init=False, factory=Timers)
    _out: list[RequesterEffect] = field(init=False, factory=list)
    _calls: dict[Hashable, Call] = field(init=False, factory=dict)
    _sent: dict[int, Sent] = field(init=False, factory=dict)
    _names: count[int] = field(init=False, factory=lambda: count(1))
    _version: str = field(init=False)
    _declared: dict[str, Any] = field(init=False)
    _cache: dict[tuple[str, bytes], tuple[int, Mapping[str, Any]]] = field(init=False, factory=dict)
    _tools: ToolList = field(init=False)
    _waiting_for_tools: dict[Hashable, Call] = field(init=False, factory=dict)
    _watcher: Watcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._version = self.settings.versions[0]
        self._declared = self.settings.declared()
        self._tools = ToolList(self.settings.limits.tool_pages)
        self._watcher = Watcher(
            settings=self.settings,
            timers=self._timers,
            out=self._out,
            sent=self._sent,
            send=self._send,
            stop=self._stop,
            settle=self._settle,
        )

    def handle(self, input: RequesterInput, *, now: int) -> RequesterStep:  # noqa: A002 - as ServerEngine's
        """Take in one fact; return what to do about it, in order. ``now`` is Unix milliseconds.

        Raises :class:`LocalProtocolError` when the host breaks a rule of this interface, and only then.
        """
        handler = _HANDLERS.get(type(input))
        if handler is None:
            raise LocalProtocolError(f"{type(input).__name__} is not an input of a requester engine")
        self._now = self._watcher.now = max(now, self._now)
        self._out.clear()
        handler(self, input)
        return RequesterStep(tuple(self._out), self._timers.next)

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition that the server last gave of a tool, if it did."""
        return self._tools.definition(name)

    # -- wishes ----------------------------------------------------------------------------------------

    def _call_wanted(self, wanted: CallWanted) -> None:
        params = {"name": wanted.tool, "arguments": wanted.arguments}
        call = self._open(Call(key=wanted.call, method="tools/call", params=params, meta=wanted.meta))
        if call is None:
            return
        self._set_deadline(call, wanted.deadline_ms)
        if not self.settings.mirror_arguments or self._tools.known:
            self._send_call(call)
        else:
            self._wait_for_tools(call)

    def _request_wanted(self, wanted: RequestWanted) -> None:
        if wanted.method == "tools/call":
            raise LocalProtocolError("RequestWanted: a tool call is a CallWanted")
        call = self._open(Call(key=wanted.call, method=wanted.method, params=wanted.params, meta=wanted.meta))
        if call is None:
            return
        known = self._cached(call)
        if known is not None:
            self._settle(call, Completed(known))
            return
        self._set_deadline(call, wanted.deadline_ms)
        self._send_call(call)

    def _resume_wanted(self, wanted: ResumeWanted) -> None:
        try:
            reference = TaskReference.from_json(wanted.reference)
        except ValueError as error:
            self._out.append(Settle(wanted.call, Failed(code=None, message=str(error), fault=Fault.CALLER)))
            return
        params = {"name": reference.tool, "arguments": {}}
        call = self._open(Call(key=wanted.call, method="tools/call", params=params))
        if call is not None:
            self._set_deadline(call, wanted.deadline_ms)
            self._watcher.watch(call, Watch(reference=reference), poll_at_once=True)

    def _open(self, call: Call) -> Call | None:
        if call.key in self._calls:
            raise LocalProtocolError("this call is under way already")
        if len(self._calls) >= self.settings.limits.calls:
            message = "too many calls are under way (RequesterLimits.calls)"
            self._out.append(Settle(call.key, Failed(code=None, message=message, fault=Fault.CALLER)))
            return None
        self._calls[call.key] = call
        return call

    def _set_deadline(self, call: Call, deadline_ms: int | None) -> None:
        if deadline_ms is not None:
            self._timers.set(("deadline", call.key), deadline_ms)

    def _cancel_wanted(self, wanted: CancelWanted) -> None:
        call = self._calls.get(wanted.call)
        if call is None:
            return None
        watch = call.watch
        if watch is None:
            return self._settle(call, Cancelled())
        if not watch.cancelling:
            waiting = call if wanted.wait else None
            sent = Sent(Purpose.CANCEL, waiting, task_id=watch.task_id)
            self._send(sent, "tasks/cancel", {"taskId": watch.task_id})
        if not wanted.wait:
            return self._settle(call, Cancelled(view=watch.view))
        watch.cancelling = True
        return self._watcher.withdraw_prompts(call, watch)

    def _wait_abandoned(self, abandoned: WaitAbandoned) -> None:
        call = self._calls.get(abandoned.call)
        if call is not None:
            self._lose(call, "the caller stopped waiting")

    def _answer_given(self, given: AnswerGiven) -> None:
        call = self._calls.get(given.call)
        if call is None:
            return
        request = self._asked_of(call, given.key)
        if request is None:
            return
        if problem := check_response(request, given.response):
            raise LocalProtocolError(f"AnswerGiven: {problem}")
        if call.watch is not None:
            self._watcher.answer(call, call.watch, given.key, given.response)
            return
        call.answers[given.key] = given.response
        del call.asked[given.key]
        if not call.asked:
            self._send_call(call)

    def _asked_of(self, call: Call, key: str) -> Mapping[str, Any] | None:
        """Return the request that this key asks at present, if it does."""
        if call.watch is None:
            return call.asked.get(key)
        view = call.watch.view
        return None if view is None else (view.input_requests or {}).get(key)

    # -- sending -----------------------------------------------------------------------------------------

    def _send_call(self, call: Call) -> None:
        """Send the request that the call is, with what its present round of input has brought."""
        params = dict(call.params)
        if call.rounds:
            params["inputResponses"] = call.answers
            if call.state is not None:
                params["requestState"] = call.state
        call.request = self._send(Sent(Purpose.CALL, call), call.method, params, meta=call.meta)

    def _send(
        self, sent: Sent, method: str, params: Mapping[str, Any], *, meta: Mapping[str, Any] | None = None
    ) -> int:
        name = next(self._names)
        carried = {
            **(meta or {}),
            PROTOCOL_VERSION: self._version,
            CLIENT_INFO: {"name": self.settings.name, "version": self.settings.version},
            CLIENT_CAPABILITIES: self._declared,
        }
        parameters: tuple[HeaderParameter, ...] = ()
        if method == "tools/call" and self.settings.mirror_arguments:
            parameters = self._tools.parameters(params["name"])
        self._sent[name] = sent
        self._out.append(
            SendRequest(
                request=name,
                message=request_message(name, method, {**params, "_meta": carried}),
                parameters=parameters,
                streams=sent.purpose is Purpose.LISTEN,
            )
        )
        self._expect(name, sent)
        return name

    def _expect(self, name: int, sent: Sent) -> None:
        """Set the time by which the answer, or some sign of life, must have come."""
        limits = self.settings.limits
        if sent.purpose is Purpose.CALL:
            self._timers.set(("timeout", name), self._now + limits.call_timeout_ms)
        elif sent.purpose is not Purpose.LISTEN or not sent.acknowledged:
            self._timers.set(("timeout", name), self._now + limits.request_timeout_ms)
        else:
            self._timers.clear(("timeout", name))

    def _stop(self, name: int) -> None:
        self._forget_request(name)
        self._out.append(StopRequest(name))

    def _forget_request(self, name: int) -> Sent | None:
        self._timers.clear(("timeout", name))
        return self._sent.pop(name, None)

    # -- ends ----------------------------------------------------------------------------------------------

    def _settle(self, call: Call, outcome: Outcome) -> None:
        """End a call: nothing of it is left, on this side or on the screen."""
        del self._calls[call.key]
        self._waiting_for_tools.pop(call.key, None)
        self._timers.clear(("deadline", call.key))
        self._timers.clear(("again", call.key))
        if call.request is not None:
            self._stop(call.request)
        for key in call.asked:
            self._out.append(WithdrawPrompt(call.key, key))
        self._watcher.forget(call)
        self._out.append(Settle(call.key, outcome))

    def _lose(self, call: Call, reason: str) -> None:
        view = None if call.watch is None else call.watch.view
        self._settle(call, ObservationLost(reason=reason, view=view))

    def _fail(self, call: Call, message: str, fault: Fault) -> None:
        self._settle(call, Failed(code=None, message=message, fault=fault))

    # -- the network ---------------------------------------------------------------------------------------

    def _response_received(self, received: ResponseReceived) -> None:
        sent = self._forget_request(received.request)
        if sent is None:
            return
        response = parse_message(received.message)
        pause_ms = 0 if received.http is None else received.http.retry_after_ms or 0
        if isinstance(response, Response) and response.id in (received.request, None):
            if response.error is not None:
                self._refused(received.request, sent, _modern(response.error), pause_ms)
            else:
                self._answered(received.request, sent, response.result or {})
        elif received.http is not None and not 200 <= received.http.status < 300:
            status = received.http.status
            fault = Fault.SERVER if status >= 500 else Fault.CALLER
            self._unanswered(sent, f"the server answered HTTP {status} without a message", fault, pause_ms)
        else:
            self._unanswered(sent, "the server's answer is not a response to this request", Fault.SERVER)

    def _request_failed(self, failed: RequestFailed) -> None:
        sent = self._forget_request(failed.request)
        if sent is None:
            return None
        if sent.purpose is Purpose.CALL and failed.sent and sent.call is not None:
            sent.call.request = None
            return self._lose(sent.call, failed.reason)
        return self._unanswered(sent, failed.reason, Fault.NETWORK)

    def _notification_received(self, received: NotificationReceived) -> None:
        sent = self._sent.get(received.request)
        message = parse_message(received.message)
        if sent is None or not isinstance(message, Notification):
            return
        if sent.purpose is Purpose.LISTEN:
            self._watcher.notified(received.request, sent, message.method, message.params)
        elif sent.purpose is Purpose.CALL and sent.call is not None and message.method in PASSED_ON:
            self._out.append(PassOn(sent.call.key, message.method, message.params))
        if received.request in self._sent:
            self._expect(received.request, sent)

    def _time_passed(self, _: TimePassed) -> None:
        for timer in self._timers.due(self._now):
            match timer:
                case ("poll", key):
                    self._watcher.poll_due(key)
                case ("timeout", int() as name):
                    self._timed_out(name)
                case ("update", key):
                    self._watcher.update_due(key)
                case ("expiry", key):
                    self._watcher.expiry_due(key)
                case ("deadline", key):
                    self._lose(self._calls[key], "the deadline has passed")
                case ("again", key):
                    self._send_call(self._calls[key])
                case ("cancel", Sent() as sent):
                    self._send(sent, "tasks/cancel", {"taskId": sent.task_id})
                case _:
                    self._watcher.listen_due()

    def _timed_out(self, name: int) -> None:
        self._out.append(StopRequest(name))
        self._request_failed(RequestFailed(name, "the server did not answer in time"))

    # -- what an answer means --------------------------------------------------------------------------------

    def _answered(self, name: int, sent: Sent, result: Mapping[str, Any]) -> None:
        call = sent.call
        watch = None if call is None else call.watch
        match sent.purpose:
            case Purpose.CALL if call is not None:
                call.request = None
                self._call_answered(call, result)
            case Purpose.LIST_TOOLS:
                self._tools_listed(result)
            case Purpose.POLL if call is not None and watch is not None:
                if result.get("resultType", "complete") == "complete":
                    self._watcher.poll_answered(call, watch, result)
                else:
                    self._watcher.poll_failed(call, watch, "the server's answer is no task")
            case Purpose.UPDATE if call is not None and watch is not None:
                self._watcher.update_settled(call, watch)
            case Purpose.LISTEN:
                self._watcher.stream_ended(sent, None)
            case _:
                pass  # a cancellation was acknowledged; what comes of it, the polls tell

    def _refused(self, name: int, sent: Sent, error: ErrorObject, pause_ms: int) -> None:
        call = sent.call
        watch = None if call is None else call.watch
        match sent.purpose:
            case Purpose.CALL if call is not None:
                call.request = None
                self._call_refused(call, error)
            case Purpose.LIST_TOOLS:
                self._tools_unknown()
            case Purpose.POLL if call is not None and watch is not None:
                self._watcher.poll_refused(call, watch, error, pause_ms)
            case Purpose.UPDATE if call is not None and watch is not None:
                if error.code == ErrorCode.INTERNAL_ERROR:
                    self._watcher.update_failed(call, watch, pause_ms)
                else:
                    self._watcher.update_settled(call, watch)
            case Purpose.LISTEN:
                self._watcher.stream_ended(sent, error)
            case _:
                if error.code == ErrorCode.INTERNAL_ERROR:
                    self._repeat_cancel(sent)

    def _unanswered(self, sent: Sent, reason: str, fault: Fault, pause_ms: int = 0) -> None:
        call = sent.call
        watch = None if call is None else call.watch
        match sent.purpose:
            case Purpose.CALL if call is not None:
                call.request = None
                self._fail(call, reason, fault)
            case Purpose.LIST_TOOLS:
                self._tools_unknown()
            case Purpose.POLL if call is not None and watch is not None:
                self._watcher.poll_failed(call, watch, reason, pause_ms)
            case Purpose.UPDATE if call is not None and watch is not None:
                self._watcher.update_failed(call, watch, pause_ms)
            case Purpose.LISTEN:
                self._watcher.stream_ended(sent, None)
            case _:
                self._repeat_cancel(sent)

    def _repeat_cancel(self, sent: Sent) -> None:
        sent.attempts += 1
        if sent.attempts < self.settings.limits.cancel_attempts:
            self._timers.set(("cancel", sent), self._now + backoff(self.settings, sent.attempts))

    # -- calls -----------------------------------------------------------------------------------------------

    def _call_answered(self, call: Call, result: Mapping[str, Any]) -> None:
        """A result: final, a round of input, or a task (REQ.1)."""
        kind = result.get("resultType", "complete")
        if kind == "complete":
            self._remember(call, result)
            return self._settle(call, Completed(self._tools.filtered(call.method, result)))
        if kind == "input_required" and call.method in INPUT_METHODS:
            return self._input_required(call, result)
        if kind == "task" and call.method == "tools/call" and self.settings.tasks:
            return self._became_task(call, result)
        return self._fail(call, f"the server answered {call.method} with resultType {kind!r}", Fault.SERVER)

    def _input_required(self, call: Call, result: Mapping[str, Any]) -> None:
        requests, state = result.get("inputRequests", {}), result.get("requestState")
        limits = self.settings.limits
        problem = None
        if not isinstance(requests, dict) or not all(isinstance(one, dict) for one in requests.values()):
            problem = "inputRequests are not objects"
        elif state is not None and not isinstance(state, str):
            problem = "requestState is not a string"
        elif not requests and state is None:
            problem = "it asks for input without saying which"
        elif requests and (fault := check_requests(requests)):
            problem = fault
        elif requests and (missing := missing_capabilities(requests, self.settings.capabilities)):
            problem = f"it asks for input that was not declared: {', '.join(sorted(missing))}"
        elif call.rounds >= limits.input_rounds:
            problem = "it asks for input again and again (RequesterLimits.input_rounds)"
        if problem is not None:
            return self._fail(call, f"the server's input_required result is wrong: {problem}", Fault.SERVER)
        call.rounds += 1
        call.asked, call.answers, call.state = dict(requests), {}, state
        for key, request in requests.items():
            self._out.append(Prompt(call=call.key, key=key, request=request))
        if not requests:
            self._timers.set(("again", call.key), self._now + backoff(self.settings, call.rounds))
        return None

    def _became_task(self, call: Call, result: Mapping[str, Any]) -> None:
        try:
            view = read_view(result)
        except ParamsError as error:
            return self._fail(call, f"the server's task handle is wrong: {error}", Fault.SERVER)
        watch = Watch(
            reference=TaskReference(
                endpoint=self.settings.endpoint,
                task_id=view.task_id,
                tool=call.params["name"],
                capabilities=self._declared,
                created_ms=self._now,
                ttl_ms=view.ttl_ms if isinstance(view.ttl_ms, int) else None,
                poll_interval_ms=view.poll_interval_ms,
            )
        )
        self._watcher.keep(call, watch)
        if view.status.terminal:
            # A handle carries no payload, so the end must be fetched.
            return self._watcher.watch(call, watch, poll_at_once=True)
        self._watcher.watch(call, watch, poll_at_once=False)
        return self._watcher.view_received(call, watch, view)

    def _call_refused(self, call: Call, error: ErrorObject) -> None:
        """An error: something to put right and send again, once, or the end."""
        if not call.retried:
            if error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION and self._choose_version(error):
                call.retried = True
                return self._send_call(call)
            if error.code == ErrorCode.HEADER_MISMATCH and call.tool and self.settings.mirror_arguments:
                # The tool's definition may have changed since it was listed (HTTP.3).
                call.retried = True
                return self._wait_for_tools(call)
        failed = Failed(code=error.code, message=error.message, data=error.data, fault=fault_of(error.code))
        return self._settle(call, failed)

    def _choose_version(self, error: ErrorObject) -> bool:
        """Take the best version that both sides speak (NEG.2); whether it is another than before."""
        offered = error.data.get("supported") if isinstance(error.data, dict) else None
        served = offered if isinstance(offered, list) else []
        for version in self.settings.versions:
            if version in served and version != self._version:
                self._version = version
                return True
        return False

    # -- tools and caching -----------------------------------------------------------------------------------

    def _wait_for_tools(self, call: Call) -> None:
        """Learn which arguments are mirrored before the call is sent."""
        if not self._waiting_for_tools:
            self._tools.begin()
            self._send(Sent(Purpose.LIST_TOOLS, None), "tools/list", {})
        self._waiting_for_tools[call.key] = call

    def _tools_listed(self, result: Mapping[str, Any]) -> None:
        cursor = self._tools.add_page(result)
        if cursor is not None and self._waiting_for_tools:
            self._send(Sent(Purpose.LIST_TOOLS, None), "tools/list", {"cursor": cursor})
        else:
            self._tools.known = True
            self._release_calls()

    def _tools_unknown(self) -> None:
        """Without the list the call goes out plain; a server that needs the headers will say so."""
        self._release_calls()

    def _release_calls(self) -> None:
        waiting, self._waiting_for_tools = self._waiting_for_tools, {}
        for call in waiting.values():
            if problem := self._tools.fault(call.params["name"]):
                self._fail(call, f"the tool's definition is wrong: {problem}", Fault.SERVER)
            else:
                self._send_call(call)

    def _cached(self, call: Call) -> Mapping[str, Any] | None:
        until, result = self._cache.get(_cache_key(call), (0, None))
        return result if self._now < until else None

    def _remember(self, call: Call, result: Mapping[str, Any]) -> None:
        """Keep a result for as long as its server allows (core, "Caching")."""
        ttl_ms = result.get("ttlMs")
        if call.method not in CACHEABLE_METHODS or call.rounds or type(ttl_ms) is not int or ttl_ms <= 0:
            return
        if len(self._cache) >= self.settings.limits.cached_results:
            del self._cache[next(iter(self._cache))]
        self._cache[_cache_key(call)] = (self._now + ttl_ms, self._tools.filtered(call.method, result))


def _cache_key(call: Call) -> tuple[str, bytes]:
    return call.method, encode(dict(sorted(call.params.items())))


def _modern(error: ErrorObject) -> ErrorObject:
    """Read the code of a draft as what became of it."""
    if (
        error.code == STALE_MISSING_CAPABILITY
        and isinstance(error.data, dict)
        and "requiredCapabilities" in error.data
    ):
        return evolve(error, code=int(ErrorCode.MISSING_CLIENT_CAPABILITY))
    return error


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
