"""A host for one requester engine: it plays the server by hand, and holds the engine to its promises."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count
from typing import Any, TypeVar

from attrs import define, field

from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    CancelWanted,
    HttpReply,
    KeepReference,
    NotificationReceived,
    Outcome,
    Prompt,
    RequesterEffect,
    RequesterEngine,
    RequesterInput,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    Settle,
    StopRequest,
    WaitAbandoned,
    WithdrawPrompt,
)
from mcp_tasks_proto.testing.recordings import Recorder
from mcp_tasks_proto.wire.jsonrpc import notification_message

__all__ = ["RequesterHost"]

E = TypeVar("E")


@define(eq=False, kw_only=True)
class RequesterHost:
    """Drives an engine step by step.

    A request is named by its number, or by its method: then it is the oldest one in flight. Whatever a test
    does, this host asserts what every host relies on:

    * a request has a name of its own, which is its id, and is stopped only while it is in flight;
    * a prompt is not put on show twice, nor withdrawn when it is not on show, and that of a task comes once
      (REQ.4);
    * a call settles once, with none of its prompts on show, and nothing is heard of it afterwards (REQ.6);
    * once time was told, the next deadline lies ahead.
    """

    engine: RequesterEngine | Recorder[Any]
    now: int = 1_700_000_000_000
    effects: list[RequesterEffect] = field(init=False, factory=list)
    """Every effect so far, oldest first."""
    deadline: int | None = field(init=False, default=None)
    in_flight: dict[int, SendRequest] = field(init=False, factory=dict)
    """Requests that wait for an answer, by number."""
    on_show: dict[tuple[Hashable, str], Prompt] = field(init=False, factory=dict)
    """Prompts that wait for an answer, by call and key."""
    references: dict[Hashable, dict[str, Any]] = field(init=False, factory=dict)
    """The newest reference of each call that became a task."""
    outcomes: dict[Hashable, Outcome] = field(init=False, factory=dict)
    """How calls ended."""
    _open: set[Hashable] = field(init=False, factory=set)
    _tasks: set[Hashable] = field(init=False, factory=set)
    _shown: set[tuple[Hashable, str]] = field(init=False, factory=set)
    _newest: int = field(init=False, default=0)
    _keys: count[int] = field(init=False, factory=lambda: count(1))

    # -- any fact ------------------------------------------------------------------------------------------

    def give(self, fact: RequesterInput) -> list[RequesterEffect]:
        """Hand in a fact; return what it led to."""
        step = self.engine.handle(fact, now=self.now)
        match fact:
            case CallWanted(call=call) | RequestWanted(call=call):
                self._open.add(call)
            case ResumeWanted(call=call):
                self._open.add(call)
                self._tasks.add(call)
            case AnswerGiven(call=call, key=key):
                self.on_show.pop((call, key), None)
            case ResponseReceived(request=request) | RequestFailed(request=request):
                self.in_flight.pop(request, None)
        for effect in step.effects:
            self._take(effect)
        self.deadline = step.deadline
        if isinstance(fact, TimePassed):
            ahead = step.deadline is None or step.deadline > self.now
            assert ahead, f"a deadline that has passed: {step.deadline} at {self.now}"
        return list(step.effects)

    def _take(self, effect: RequesterEffect) -> None:
        self.effects.append(effect)
        match effect:
            case SendRequest(request=request, message=message):
                assert message["id"] == request > self._newest, (
                    f"not a request with a number of its own: {effect}"
                )
                self._newest = request
                self.in_flight[request] = effect
            case StopRequest(request=request):
                assert request in self.in_flight, f"not a request in flight: {effect}"
                del self.in_flight[request]
            case _:
                assert effect.call in self._open, f"not of a call that is under way: {effect}"
                self._take_news(effect)

    def _take_news(self, effect: RequesterEffect) -> None:
        match effect:
            case KeepReference(call=call, reference=reference):
                self.references[call] = reference
                self._tasks.add(call)
            case Prompt(call=call, key=key):
                assert (call, key) not in self.on_show, f"a prompt that is on show already: {effect}"
                assert (call, key) not in self._shown, f"a question of a task that was shown before: {effect}"
                self.on_show[call, key] = effect
                if call in self._tasks:
                    self._shown.add((call, key))
            case WithdrawPrompt(call=call, key=key):
                assert (call, key) in self.on_show, f"not a prompt that is on show: {effect}"
                del self.on_show[call, key]
            case Settle(call=call, outcome=outcome):
                left = [key for owner, key in self.on_show if owner == call]
                assert not left, f"a call of which prompts are on show, {left}: {effect}"
                self._open.remove(call)
                self.outcomes[call] = outcome

    def of(self, kind: type[E]) -> list[E]:
        """Return every effect of one kind so far, oldest first."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def advance(self, milliseconds: int) -> list[RequesterEffect]:
        """Let time pass, waking the engine at each of its deadlines on the way."""
        before = len(self.effects)
        until = self.now + milliseconds
        while self.deadline is not None and self.deadline <= until:
            self.now = max(self.now, self.deadline)
            self.give(TimePassed())
        self.now = until
        return self.effects[before:]

    # -- what the caller wants -------------------------------------------------------------------------------

    def call(
        self,
        tool: str = "render",
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        deadline_ms: int | None = None,
    ) -> int:
        """Call a tool, and return the call."""
        key = next(self._keys)
        self.give(
            CallWanted(
                call=key, tool=tool, arguments=arguments or {}, meta=meta or {}, deadline_ms=deadline_ms
            )
        )
        return key

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, deadline_ms: int | None = None
    ) -> int:
        """Want any other request answered, and return the call."""
        key = next(self._keys)
        self.give(RequestWanted(call=key, method=method, params=params or {}, deadline_ms=deadline_ms))
        return key

    def resume(self, reference: Any, *, deadline_ms: int | None = None) -> int:
        """Go on with a task of which there is a reference, and return the call."""
        key = next(self._keys)
        self.give(ResumeWanted(call=key, reference=reference, deadline_ms=deadline_ms))
        return key

    def cancel(self, call: Hashable, *, wait: bool = False) -> list[RequesterEffect]:
        """Cancel a call."""
        return self.give(CancelWanted(call, wait))

    def abandon(self, call: Hashable) -> list[RequesterEffect]:
        """Stop waiting for a call."""
        return self.give(WaitAbandoned(call))

    def answer(self, call: Hashable, key: str, response: Mapping[str, Any]) -> list[RequesterEffect]:
        """Answer a prompt."""
        return self.give(AnswerGiven(call, key, response))

    # -- what the server does ------------------------------------------------------------------------------

    def number_of(self, request: int | str) -> int:
        """Return the number of a request in flight (``LookupError``: there is none of this method)."""
        if isinstance(request, int):
            return request
        for number, sent in self.in_flight.items():
            if sent.message["method"] == request:
                return number
        raise LookupError(f"no {request} in flight, but {[one.message for one in self.in_flight.values()]}")

    def params_of(self, request: int | str) -> dict[str, Any]:
        """Return the params of a request in flight."""
        params: dict[str, Any] = self.in_flight[self.number_of(request)].message["params"]
        return params

    def waiting(self, method: str) -> list[int]:
        """Return the numbers of the requests of a method that are in flight, oldest first."""
        return [number for number, sent in self.in_flight.items() if sent.message["method"] == method]

    def sent(self, method: str) -> list[dict[str, Any]]:
        """Return the params of every request of a method so far, oldest first."""
        messages = [sent.message for sent in self.of(SendRequest)]
        return [message["params"] for message in messages if message["method"] == method]

    def reply(
        self, request: int | str, result: Mapping[str, Any], *, http: HttpReply | None = None
    ) -> list[RequesterEffect]:
        """Answer a request with a result."""
        number = self.number_of(request)
        message = {"jsonrpc": "2.0", "id": number, "result": result}
        return self.give(ResponseReceived(request=number, message=message, http=http))

    def refuse(
        self,
        request: int | str,
        code: int,
        message: str = "no",
        *,
        data: Any = None,
        http: HttpReply | None = None,
    ) -> list[RequesterEffect]:
        """Answer a request with an error."""
        number = self.number_of(request)
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        answer = {"jsonrpc": "2.0", "id": number, "error": error}
        return self.give(ResponseReceived(request=number, message=answer, http=http))

    def answer_http(
        self, request: int | str, status: int, *, retry_after_ms: int | None = None, body: Any = None
    ) -> list[RequesterEffect]:
        """Answer a request over HTTP with ``body``, any JSON value, or none."""
        http = HttpReply(status=status, retry_after_ms=retry_after_ms)
        return self.give(ResponseReceived(request=self.number_of(request), message=body, http=http))

    def fail(self, request: int | str, reason: str = "reset", *, sent: bool = True) -> list[RequesterEffect]:
        """Break the connection of a request."""
        return self.give(RequestFailed(self.number_of(request), reason, sent))

    def notify(self, request: int | str, method: str, params: Mapping[str, Any]) -> list[RequesterEffect]:
        """Send a notification on the way to the answer of a request."""
        message = notification_message(method, params)
        return self.give(NotificationReceived(self.number_of(request), message))
