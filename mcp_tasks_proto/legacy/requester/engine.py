"""The requester role toward servers of both eras: :class:`DualEraRequester` around the modern engine.

It has the engine's interface, and passes everything through once the server is known to be modern. Which era
a server is of shows in how it answers the first request, or a probe (versioning, "Backward Compatibility");
that is remembered in ``era``. For a legacy server, each of the engine's requests becomes what 2025-11-25 has
for it, and what comes back becomes what a modern server would have said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.legacy.messages import (
    Closing,
    ConnectionLost,
    DualEraEffect,
    DualEraInput,
    DualEraStep,
    Era,
    ServerAsked,
    StreamOpened,
)
from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.detection import names_modern_version
from mcp_tasks_proto.legacy.requester.era import EraFinder
from mcp_tasks_proto.legacy.requester.legacy_server import LegacyServer
from mcp_tasks_proto.legacy.requester.reading import at
from mcp_tasks_proto.requester.effects import (
    KeepReference,
    RequesterEffect,
    RequesterStep,
    SendRequest,
    Settle,
    StopRequest,
)
from mcp_tasks_proto.requester.engine import RequesterEngine
from mcp_tasks_proto.requester.inputs import (
    AnswerGiven,
    NotificationReceived,
    RequesterInput,
    RequestFailed,
    ResponseReceived,
    ResumeWanted,
)
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.timers import LAST_MS, Timers

__all__ = ["DualEraRequester"]

_OWN_INPUTS: Final = frozenset({ServerAsked, StreamOpened, ConnectionLost, Closing})
"""What the engine does not know."""


@define(eq=False, repr=False)
class _Names(Iterator[int]):
    """What requests are called, which is their id as well: rising numbers."""

    _next: int = 1

    def __next__(self) -> int:
        name, self._next = self._next, self._next + 1
        return name

    def go_on_from(self, number: int) -> None:
        """Call nothing by a lower number from here on."""
        self._next = max(self._next, number)


@define(eq=False, repr=False, kw_only=True)
class DualEraRequester:
    """One requester of both eras, as a state machine."""

    settings: RequesterSettings
    http: bool
    """Whether it speaks Streamable HTTP; else stdio."""
    era: Era | None = None
    """The server's; ``None``: it has yet to show."""
    modern_only: bool = False
    """Whether 2025-11-25 is not spoken: a server of that era is found out likewise, and what was wanted of it
    fails with -32022. Over HTTP a ``RequesterEngine`` does without finding out."""
    _names: _Names = field(init=False, factory=_Names)
    _timers: Timers = field(init=False, factory=Timers)
    _out: list[DualEraEffect] = field(init=False, factory=list)
    _inbox: deque[RequesterInput] = field(init=False, factory=deque)
    """Facts for the engine."""
    _engine: RequesterEngine = field(init=False)
    _channel: Channel = field(init=False)
    _legacy: LegacyServer = field(init=False)
    _finder: EraFinder = field(init=False)
    _assumed: bool = field(init=False, default=False)
    """Whether only a saved reference says that the server is legacy: it may have changed since."""
    _now: int = field(init=False, default=0)
    _engine_deadline: int | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._engine = RequesterEngine(settings=self.settings, names=self._names)
        self._finder = EraFinder(
            settings=self.settings,
            http=self.http,
            modern_only=self.modern_only,
            names=self._names,
            out=self._out,
            timers=self._timers,
            give=self._inbox.append,
            decide=self._decide,
        )
        self._channel = Channel(
            settings=self.settings,
            http=self.http,
            names=self._names,
            out=self._out,
            timers=self._timers,
            give=self._inbox.append,
            failed=self._no_session,
            lost=lambda: self._legacy.session_lost(),
        )
        self._legacy = LegacyServer(self._channel, self._engine)
        self._finder.channel = self._channel

    def handle(self, input: DualEraInput, *, now: int) -> DualEraStep | RequesterStep:  # noqa: A002
        """Take in one fact; return what to do about it, as ``RequesterEngine.handle`` does.

        Raises :class:`LocalProtocolError` as that does.
        """
        if self.era == "modern" and type(input) not in _OWN_INPUTS:
            step = self._engine.handle(input, now=now)  # type: ignore[arg-type]  # it refuses what is not its own
            self._engine_deadline = step.deadline
            return step
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        before = self._now
        self._out.clear()
        self._tell_time(max(now, before))
        try:
            self._take(input)
        except LocalProtocolError:
            self._tell_time(before)
            raise
        while self._inbox:
            self._run(self._inbox.popleft())
        deadlines = [when for when in (self._engine_deadline, self._timers.next) if when is not None]
        return DualEraStep(tuple(self._out), min(deadlines, default=None))

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition that the server last gave of a tool, if it did."""
        return self._engine.tool(name)

    def next_poll(self, call: Hashable) -> int | None:
        """Return when the task of a call will be polled next, in Unix milliseconds, if that is planned."""
        return self._engine.next_poll(call)

    def _tell_time(self, now: int) -> None:
        self._now = self._finder.now = now
        self._legacy.tell_time(now)

    # -- inputs ----------------------------------------------------------------------------------------------

    def _take(self, fact: DualEraInput) -> None:
        handler = _HANDLERS.get(type(fact))
        if handler is None:
            self._run(fact)  # type: ignore[arg-type]  # the engine refuses what it does not know
        else:
            handler(self, fact)

    def _run(self, fact: RequesterInput) -> None:
        """Have the engine take in a fact, and do what it says."""
        step = self._engine.handle(fact, now=self._now)
        self._engine_deadline = step.deadline
        for effect in step.effects:
            self._carry_out(effect)

    def _network(self, fact: ResponseReceived | RequestFailed) -> None:
        if not self._finder.received(fact):
            self._channel.received(fact)

    def _heard(self, heard: NotificationReceived) -> None:
        if self.era == "legacy":
            self._legacy.heard(heard)
        else:
            self._run(heard)

    def _asked(self, asked: ServerAsked) -> None:
        if self.era == "legacy":
            self._legacy.asked(asked)

    def _answer_given(self, given: AnswerGiven) -> None:
        """The engine takes it first, for it tells what is no answer."""
        self._run(given)
        self._legacy.answer_given(given)

    def _opened(self, _: StreamOpened) -> None:
        if self.era == "legacy":
            self._legacy.opened()

    def _connection_lost(self, _: ConnectionLost) -> None:
        if not self.http:
            self._channel.forget_session()

    def _closing(self, _: Closing) -> None:
        if self.era == "legacy":
            self._legacy.close()

    def _resume(self, wanted: ResumeWanted) -> None:
        """Go on in the session in which the task was made, where its server is one of those."""
        if self.modern_only:
            self._run(wanted)
            return
        step = self._engine.handle(wanted, now=self._now)
        self._engine_deadline = step.deadline
        settled = any(isinstance(effect, Settle) for effect in step.effects)
        if not settled and at(wanted.reference, "era") == "legacy" and self._finder.idle and self.era is None:
            self.era, self._assumed = "legacy", True
        if not settled:
            self._adopt_session(wanted.reference)
            self._legacy.follow(wanted.call, wanted.reference)
        for effect in step.effects:
            self._carry_out(effect)

    def _adopt_session(self, reference: Any) -> None:
        """Go on in the session of who saved this, where it has an id and there is none here.

        No id of a request may come twice in a session (2025-11-25, Base Protocol: Requests). Whoever opened
        this one counted from one. Who came to it later may be in it still, and counts from a number far away.
        """
        session_id, initialized = at(reference, "session", "id"), at(reference, "session", "initialized")
        if self.http and isinstance(session_id, str) and isinstance(initialized, Mapping):
            self._channel.adopt(session_id, initialized)
            self._names.go_on_from(_distant_number(reference["taskId"], self._now))

    def _time_passed(self, passed: TimePassed) -> None:
        while (timer := self._timers.pop(self._now)) is not None:
            if not self._finder.timer(timer):
                self._legacy.timer(timer)
        self._inbox.append(passed)  # after what these have led to

    # -- effects ---------------------------------------------------------------------------------------------

    def _carry_out(self, effect: RequesterEffect) -> None:
        if self.era == "modern":
            self._out.append(effect)
            return
        match effect:
            case SendRequest() if self.era is None:
                self._finder.send(effect)
            case SendRequest():
                self._legacy.begin(effect)
            case StopRequest(request=request):
                if not self._finder.stop(request):
                    self._legacy.stop(request)
            case KeepReference(call=call, reference=reference):
                self._out.append(evolve(effect, reference=self._legacy.follow(call, reference)))
            case Settle(call=call, outcome=outcome):
                self._legacy.settled(call, outcome)
                self._out.append(effect)
            case _:
                self._out.append(effect)

    def _no_session(self, answer: Answer) -> bool:
        """No legacy session is to be had; whether that was to be expected. An assumption may be wrong."""
        if self._finder.greeting_failed(answer):
            return True
        error = None if answer.response is None else answer.response.error
        if self._assumed and error is not None and names_modern_version(error, self.settings.versions):
            self.era = "modern"  # what waits for a session fails, and polls come again
        return False

    def _decide(self, era: Era, held: list[SendRequest]) -> None:
        """The server's era is known; ``held`` are the requests that waited for that."""
        self.era = era
        for send in held:
            self._carry_out(send)


def _distant_number(task_id: str, now: int) -> int:
    """Return a number of 48 bits that is far from those of other tasks, and of the same at other times."""
    made_of = f"{now} {task_id}".encode(errors="backslashreplace")  # a host's parser may take more than JSON
    return int.from_bytes(sha256(made_of).digest()[:6])


_HANDLERS: Final[Mapping[type, Callable[[DualEraRequester, Any], None]]] = {
    ResponseReceived: DualEraRequester._network,
    RequestFailed: DualEraRequester._network,
    NotificationReceived: DualEraRequester._heard,
    AnswerGiven: DualEraRequester._answer_given,
    ServerAsked: DualEraRequester._asked,
    StreamOpened: DualEraRequester._opened,
    ConnectionLost: DualEraRequester._connection_lost,
    Closing: DualEraRequester._closing,
    ResumeWanted: DualEraRequester._resume,
    TimePassed: DualEraRequester._time_passed,
}
