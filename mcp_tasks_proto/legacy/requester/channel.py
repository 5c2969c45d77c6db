"""The legacy side of a requester: its session, what was sent in it, and what waits for it to stand.

A request of the engine's may take several of the server's: each of these is *pending*, and knows which one of
the engine's it serves. A request whose session turns out to be gone is sent once more in the next, and what
is asked while there is none waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field, frozen

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.legacy.messages import DualEraEffect, SendLegacy
from mcp_tasks_proto.legacy.requester.reading import at, initialize_params
from mcp_tasks_proto.legacy.vocabulary import INITIALIZE, INITIALIZED
from mcp_tasks_proto.requester.effects import StopRequest
from mcp_tasks_proto.requester.inputs import HttpReply, RequesterInput, RequestFailed, ResponseReceived
from mcp_tasks_proto.requester.outcomes import DENIED, Fault
from mcp_tasks_proto.requester.requests import backoff
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.vocabulary import LEGACY_VERSION
from mcp_tasks_proto.wire.jsonrpc import (
    Response,
    error_message,
    notification_message,
    parse_message,
    request_message,
    result_message,
)

__all__ = ["Answer", "Channel", "Session"]

Fact = ResponseReceived | RequestFailed


@frozen(kw_only=True)
class Session:
    """What a server said when it was greeted."""

    session_id: str | None
    """What it wants to hear with every message; ``None``: nothing, or the connection is the session."""
    initialized: Mapping[str, Any]
    """The result of ``initialize``, as far as it is known."""
    opened_here: bool = True
    """Whether no other process has opened it: that one may have left tasks in it, which others follow."""

    def offers(self, *names: str) -> bool:
        """Whether a capability is declared."""
        return at(self.initialized, "capabilities", *names) is not None


@frozen
class Answer:
    """What became of a pending message."""

    fact: Fact
    response: Response | None
    """``None``: there is none, and ``fact`` says why."""

    @property
    def http(self) -> HttpReply | None:
        """What HTTP said beside it."""
        return None if isinstance(self.fact, RequestFailed) else self.fact.http

    @property
    def taken(self) -> bool:
        """Whether the server took a message that is owed no response."""
        return not isinstance(self.fact, RequestFailed) and (self.http is None or self.http.status < 300)


Answered = Callable[[Answer], None]


@define(eq=False, repr=False, kw_only=True)
class _Pending:
    """A message that was sent."""

    sent: SendLegacy
    answered: Answered
    inner: int | None = None
    """The engine's request that it serves."""
    only_once: bool = False
    """Whether it may not be sent once more: it was, or this side has ended its session, and it with that."""
    broken: RequestFailed | None = None
    """How its stream last broke off, where it is to be taken up again."""
    fruitless: int = 0
    """How often that brought nothing new, in a row."""
    retry_ms: int = 0
    """How long its stream last asked to be left alone before it is taken up."""
    in_flight: bool = False
    """Whether something of it is with the transport."""

    @property
    def can_be_repeated(self) -> bool:
        """Whether it may be sent once more in another session: it was not carried out in the last one."""
        return self.sent.awaits_response and not self.only_once and self.broken is None


@frozen
class _Held:
    """What is to be done once a session stands."""

    inner: int | None
    go: Callable[[], None]
    fail: Callable[[Fact], None]


@define(eq=False, repr=False, kw_only=True)
class Channel:
    """The way to a legacy server."""

    settings: RequesterSettings
    http: bool
    names: Iterator[int]
    out: list[DualEraEffect]
    timers: Timers
    give: Callable[[RequesterInput], None]
    """Hands the engine a fact."""
    failed: Callable[[Answer], bool]
    """Is told that there is no session to be had; whether that was to be expected, and nothing has failed."""
    lost: Callable[[], None]
    """Is told that a session is gone."""
    now: int = 0
    session: Session | None = field(init=False, default=None)
    """The session that stands."""
    _unproven: str | None = field(init=False, default=None)
    """The id of another process's, in which nothing has been answered here."""
    _opening: int | None = field(init=False, default=None)
    _pending: dict[int, _Pending] = field(init=False, factory=dict)
    _held: list[_Held] = field(init=False, factory=list)

    @property
    def busy(self) -> bool:
        """Whether anything is under way, what is held among it, beside the stream of what is said unasked."""
        return any(pending.sent.verb != "GET" for pending in self._pending.values())

    # -- the session ---------------------------------------------------------------------------------------

    def when_ready(
        self,
        go: Callable[[], None],
        *,
        inner: int | None = None,
        fail: Callable[[Fact], None],
    ) -> None:
        """Do something in a session, be it one that has yet to be opened. ``inner`` is who it is done for."""
        if self.session is not None:
            go()
            return
        self._held.append(_Held(inner, go, fail))
        if self._opening is None:
            self._open()

    def adopt(self, session_id: str, initialized: Mapping[str, Any]) -> None:
        """Go on in a session that another process has opened, unless there is one here."""
        if self.session is None and self._opening is None:
            self.session = Session(session_id=session_id, initialized=initialized, opened_here=False)
            self._unproven = session_id

    def _open(self) -> None:
        name = self._opening = next(self.names)
        message = request_message(name, INITIALIZE, initialize_params(self.settings))
        self._begin(SendLegacy(request=name, message=message), self._greeted, None)
        self.time_out(name)

    def _greeted(self, answer: Answer) -> None:
        result = None if answer.response is None else answer.response.result
        if result is None:
            self._not_opened(answer)
        elif (version := result.get("protocolVersion")) != LEGACY_VERSION:
            spoken = (
                version if isinstance(version, str) and len(version) < 20 else "no version that has a name"
            )
            ours = ", ".join((*self.settings.versions, LEGACY_VERSION))
            reason = f"the server speaks {spoken}, and this client {ours}"
            failure = RequestFailed(answer.fact.request, reason, fault=Fault.SERVER)
            self._not_opened(Answer(failure, None))
        else:
            session_id = None if answer.http is None else answer.http.session
            opened = Session(session_id=session_id, initialized=result)
            confirmation = notification_message(INITIALIZED, {})
            self._opening = self._post(confirmation, partial(self._confirmed, opened), opened)
            self.time_out(self._opening)

    def _confirmed(self, opened: Session, answer: Answer) -> None:
        if not answer.taken:
            self._not_opened(answer)
            return
        self._opening, self.session = None, opened
        held, self._held[:] = list(self._held), []
        for one in held:
            one.go()

    def _not_opened(self, answer: Answer) -> None:
        self._opening = None
        if self.failed(answer):
            return
        failure = _failure(answer)
        held, self._held[:] = list(self._held), []
        for one in held:
            one.fail(failure)

    def forget_session(self) -> None:
        """The session is gone: the next message opens another."""
        if self.session is not None:
            self.session = None
            self.lost()

    def drop_held(self) -> None:
        """There will be no session: what waits for it is somebody else's now."""
        self._held.clear()

    # -- sending -------------------------------------------------------------------------------------------

    def ask(self, inner: int | None, method: str, params: Mapping[str, Any], answered: Answered) -> int:
        """Send a request, where no session stands in the next one; return its name."""
        name = next(self.names)
        send = SendLegacy(request=name, message=request_message(name, method, params))
        pending = self._pending[name] = _Pending(sent=send, answered=answered, inner=inner)
        if self.session is None:
            self._hold(pending)
        else:
            self._send(pending, self.session)
        return name

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self.time_out(self._post(notification_message(method, params), _ignore, self.session))

    def respond(
        self,
        request_id: str | int,
        answer: Mapping[str, Any] | ErrorObject,
        taken: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """Answer a request of the server's; no more of these at a time than a task may ask.

        ``taken`` hears whether the server took it.
        """
        if len(self._pending) >= self.settings.limits.calls + self.settings.limits.ledger_keys:
            return taken(False)
        if isinstance(answer, ErrorObject):
            message = error_message(request_id, answer)
        else:
            message = result_message(request_id, answer)
        return self.time_out(self._post(message, lambda answered: taken(answered.taken), self.session))

    def open_stream(self, answered: Answered, last_event_id: str | None) -> int:
        """Open a stream for what the server says unasked (HTTP GET), or take it up where it broke off."""
        send = SendLegacy(request=next(self.names), verb="GET", last_event_id=last_event_id)
        return self._begin(send, answered, self.session)

    def end_session(self) -> None:
        """Tell the server that a session of this process's own is not needed any more (HTTP DELETE)."""
        session = self.session
        if session is not None and session.session_id is not None and session.opened_here:
            for pending in self._pending.values():
                pending.only_once = True
            send = SendLegacy(request=next(self.names), verb="DELETE")
            self.time_out(self._begin(send, _ignore, session))

    def _post(self, message: dict[str, Any], answered: Answered, session: Session | None) -> int:
        name = next(self.names)
        return self._begin(SendLegacy(request=name, message=message), answered, session)

    def _begin(self, send: SendLegacy, answered: Answered, session: Session | None) -> int:
        pending = self._pending[send.request] = _Pending(sent=send, answered=answered)
        self._send(pending, session)
        return send.request

    def _send(self, pending: _Pending, session: Session | None) -> None:
        if session is not None:
            pending.sent = evolve(pending.sent, version=LEGACY_VERSION, session=session.session_id)
        pending.in_flight = True
        self.out.append(pending.sent)

    def time_out(self, name: int) -> None:
        """Give something up in time that none of the engine's own requests limits."""
        self.timers.set(("legacy", name), self.now + self.settings.limits.request_timeout_ms)

    # -- answers -------------------------------------------------------------------------------------------

    def received(self, fact: Fact) -> None:
        """Take in what became of something that was sent. What is not pending is of no interest."""
        pending = self._pending.get(fact.request)
        if pending is None or self._takes_up_again(pending, fact):
            return
        pending.in_flight = False
        refused = self._session_was_refused(pending, fact)
        if refused and pending.can_be_repeated:
            pending.only_once = True
            self._hold(pending)
            return
        self._end(fact.request)
        message = fact.message if isinstance(fact, ResponseReceived) else None
        response = parse_message(message)
        answers = isinstance(response, Response) and response.id in (fact.request, None)
        if isinstance(response, Response) and answers and not (refused and _is_of_session(response)):
            pending.answered(Answer(fact, response))
        elif pending.broken is not None:
            pending.answered(Answer(pending.broken, None))
        else:
            pending.answered(Answer(fact, None))

    def _takes_up_again(self, pending: _Pending, fact: Fact) -> bool:
        """Whether the stream of a request broke off and is to be taken up where it did (HTTP GET)."""
        limits = self.settings.limits
        if not isinstance(fact, RequestFailed) or fact.last_event_id is None:
            return False
        if not pending.sent.awaits_response or self.session is None:
            return False
        before = None if pending.broken is None else pending.broken.last_event_id
        pending.fruitless = pending.fruitless + 1 if fact.last_event_id == before else 0
        if pending.fruitless >= limits.stream_attempts:
            return False
        # It was sent, whatever becomes of taking up its stream.
        pending.broken, pending.in_flight = evolve(fact, sent=True), False
        pending.retry_ms = pending.retry_ms if fact.retry_ms is None else fact.retry_ms
        wait_ms = max(pending.retry_ms, backoff(self.settings, pending.fruitless))
        self.timers.set(("resume", pending.sent.request), self.now + wait_ms)
        return True

    def resume(self, name: int) -> None:
        """Time to take up the stream of a request."""
        pending = self._pending[name]
        assert pending.broken is not None
        pending.in_flight = True
        send = SendLegacy(
            request=name,
            verb="GET",
            version=pending.sent.version,
            session=pending.sent.session,
            last_event_id=pending.broken.last_event_id,
        )
        self.out.append(send)

    def _session_was_refused(self, pending: _Pending, fact: Fact) -> bool:
        """Whether the server no longer knows the session of a message; then that one is forgotten."""
        http = fact.http if isinstance(fact, ResponseReceived) else None
        session_id = pending.sent.session
        if http is None or session_id is None or pending.sent.verb != "POST":
            return False
        unproven = session_id == self._unproven
        if unproven and http.status < 300:
            self._unproven = None
        refusing = {400, 404} if unproven else {404}  # 400: a server may have no sessions by now
        if http.status not in refusing:
            return False
        if self.session is not None and self.session.session_id == session_id:
            self.forget_session()
        return True

    def _hold(self, pending: _Pending) -> None:
        """Send a request in the next session: there is none, or the last one knew it, and that is gone."""

        def go() -> None:
            if self._pending.get(pending.sent.request) is pending:
                self._send(pending, self.session)

        def fail(failure: Fact) -> None:
            if self._end(pending.sent.request) is not None:
                pending.answered(Answer(failure, None))

        self.when_ready(go, fail=fail)

    def timed_out(self, name: int) -> None:
        """What a message brings takes too long."""
        if self._pending[name].in_flight:
            self.out.append(StopRequest(name))
        self.received(RequestFailed(name, "the server did not answer in time"))

    def inner_of(self, name: int) -> int | None:
        """Return the engine's request that something pending serves."""
        pending = self._pending.get(name)
        return None if pending is None else pending.inner

    def has(self, name: int) -> bool:
        """Whether the server has something that is pending: it does not wait for the next session."""
        pending = self._pending.get(name)
        return pending is not None and (pending.in_flight or pending.broken is not None)

    def is_heard(self, name: int) -> bool:
        """Whether the server is heard on this stream: not where that is over, or of a session that is gone,
        for ids mean something else by now."""
        if name == 0:
            return True
        pending = self._pending.get(name)
        stands = None if self.session is None else self.session.session_id
        return pending is not None and pending.sent.session in (None, stands)

    def is_nobodys(self, name: int) -> bool:
        """Whether this stream is of no request, but for what the server says unasked."""
        pending = self._pending.get(name)
        return pending is None or pending.sent.verb == "GET"

    def serve(self, name: int, inner: int | None) -> None:
        """Have something pending serve another request of the engine's from now on."""
        self._pending[name].inner = inner

    def relay(self, inner: int, answer: Answer, result: Mapping[str, Any] | None = None) -> None:
        """Tell the engine what became of a request of its own: as it is, but for a ``result``."""
        if answer.response is None:
            fact = answer.fact
            if isinstance(fact, ResponseReceived):
                fact = evolve(fact, message=None)
            self.give(evolve(fact, request=inner))
        elif answer.response.error is not None:
            self.refuse(inner, answer.response.error, answer.http)
        else:
            self.reply(inner, result or {})

    def reply(self, inner: int, result: Mapping[str, Any]) -> None:
        """Answer a request of the engine's with a result."""
        self.give(ResponseReceived(request=inner, message=result_message(inner, result)))

    def refuse(self, inner: int, error: ErrorObject, http: HttpReply | None = None) -> None:
        """Answer a request of the engine's with an error."""
        self.give(ResponseReceived(request=inner, message=error_message(inner, error), http=http))

    # -- ends ----------------------------------------------------------------------------------------------

    def stop(self, name: int) -> None:
        """Give something pending up; over HTTP the server has to be told."""
        pending = self._end(name)
        if pending is None:
            return
        if pending.in_flight:
            self.out.append(StopRequest(name))
        if self.http and pending.sent.awaits_response and self.session is not None:
            self.tell("notifications/cancelled", {"requestId": name})

    def stop_inner(self, inner: int) -> None:
        """The engine gives a request up: so is what serves it."""
        self._held[:] = [held for held in self._held if held.inner != inner]
        for name in [name for name, pending in self._pending.items() if pending.inner == inner]:
            self.stop(name)

    def _end(self, name: int) -> _Pending | None:
        self.timers.clear(("legacy", name))
        self.timers.clear(("resume", name))
        return self._pending.pop(name, None)


def _ignore(_: Answer) -> None:
    """What nobody waits for."""


def _is_of_session(response: Response) -> bool:
    """Whether what came with a 404 is about the session, and so no answer to what was asked in it.

    Some servers answer a request with 404 themselves: there is no such method, or nothing of that name.
    """
    own = (ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS)
    return response.error is not None and response.error.code not in own


def _failure(answer: Answer) -> Fact:
    """Return what becomes of those who wait for a session that could not be opened.

    An HTTP status that says it all is theirs too: what it asks for is the same for every request.
    """
    fact, error, http = answer.fact, None if answer.response is None else answer.response.error, answer.http
    if isinstance(fact, RequestFailed):
        return evolve(fact, reason=f"no session with the server: {fact.reason}", sent=False)
    if http is not None and (http.status in DENIED or (http.status >= 300 and error is None)):
        return evolve(fact, message=None if error is None else error_message(None, error))
    why = "an answer that is none" if http is None else f"HTTP {http.status} without a message that helps"
    if error is not None:
        why = f"{error.message} ({error.code})"
    reason = f"no session with the server: {why}"
    return RequestFailed(fact.request, reason, sent=False, fault=Fault.SERVER)
