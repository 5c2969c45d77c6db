"""Finding out a server's era before anything depends on it.

Over HTTP the first request is sent as a modern one, and its answer shows; where it does not, the server is
asked to ``server/discover``. A tool call is not sent so, for a legacy server might carry it out, nor is a
listen request, whose answer is its end: there, and on stdio, ``server/discover`` goes ahead. What is wanted
meanwhile is held.

A client of the modern era alone finds it out to fail clearly (versioning, "Compatibility Matrix").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.legacy.messages import DualEraEffect, Era
from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.detection import Sign, names_modern_version, read_sign
from mcp_tasks_proto.requester.effects import SendRequest, StopRequest
from mcp_tasks_proto.requester.inputs import RequesterInput, RequestFailed, ResponseReceived
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from mcp_tasks_proto.wire.jsonrpc import Response, error_message, parse_message, request_message

__all__ = ["EraFinder"]

DISCOVER: Final = "server/discover"

PROBE: Final = ("probe",)
"""Timer key: the probe has been left without an answer for long enough."""

NOT_TRIED: Final = frozenset({"subscriptions/listen", "tools/call"})

Fact = ResponseReceived | RequestFailed


@define(eq=False, repr=False, kw_only=True)
class EraFinder:
    """What is known of a server's era, until it is certain."""

    settings: RequesterSettings
    http: bool
    modern_only: bool
    """Whether no legacy session is ever tried."""
    names: Iterator[int]
    out: list[DualEraEffect]
    timers: Timers
    give: Callable[[RequesterInput], None]
    decide: Callable[[Era, list[SendRequest]], None]
    """Is told what it is, and what has waited for that."""
    now: int = 0
    channel: Channel = field(init=False)
    """Where a legacy session is tried; it tells of its failure by :meth:`greeting_failed`."""
    _attempt: SendRequest | None = field(init=False, default=None)
    """The request that was sent as a modern one."""
    _attempted: Fact | None = field(init=False, default=None)
    """How it was answered, while a legacy session is being tried."""
    _probe: int | None = field(init=False, default=None)
    _greeting: bool = field(init=False, default=False)
    _held: list[SendRequest] = field(init=False, factory=list)

    @property
    def idle(self) -> bool:
        """Whether nothing has been sent yet that would show it."""
        return self._attempt is None and self._probe is None and not self._greeting

    # -- what is wanted ------------------------------------------------------------------------------------

    def send(self, send: SendRequest) -> None:
        """Send a request of the engine's, or hold it."""
        method = send.message["method"]
        shows = method not in NOT_TRIED if self.http else self.modern_only and method == DISCOVER
        if not self.idle:
            self._held.append(send)
        elif shows:
            self._attempt = send
            self.out.append(send)
        else:
            self._held.append(send)
            self._send_probe()

    def _send_probe(self) -> None:
        self._probe = next(self.names)
        meta = {
            PROTOCOL_VERSION: self.settings.versions[0],
            CLIENT_INFO: {"name": self.settings.name, "version": self.settings.version},
            CLIENT_CAPABILITIES: self.settings.declared(),
        }
        message = request_message(self._probe, DISCOVER, {"_meta": meta})
        self.out.append(SendRequest(request=self._probe, message=message))
        limits = self.settings.limits
        patience_ms = limits.request_timeout_ms if self.modern_only else limits.probe_timeout_ms
        self.timers.set(PROBE, self.now + patience_ms)

    def stop(self, request: int) -> bool:
        """The engine gives a request up; whether it is one that was kept here."""
        if self._attempt is not None and self._attempt.request == request:
            self._attempt = None
            if self._attempted is None:
                self.out.append(StopRequest(request))
                self._go_on()
            return True
        kept = len(self._held)
        self._held[:] = [send for send in self._held if send.request != request]
        return len(self._held) != kept

    # -- what shows ----------------------------------------------------------------------------------------

    def received(self, fact: Fact) -> bool:
        """Read the answer to what was sent; whether it was sent from here."""
        if fact.request == self._probe:
            self._probe = None
            self.timers.clear(PROBE)
            self._probed(fact)
        elif self._attempt is not None and self._attempted is None and fact.request == self._attempt.request:
            self._tried(fact)
        else:
            return False
        return True

    def timer(self, timer: Hashable) -> bool:
        """The time for an answer to the probe may be over; whether it is."""
        if timer != PROBE:
            return False
        assert self._probe is not None
        self.out.append(StopRequest(self._probe))
        self._probe = None
        if self.modern_only:
            self._give_attempted()
            self._answer_all(RequestFailed(0, f"the server did not answer {DISCOVER} in time"))
        else:
            self._greet()
        return True

    def _tried(self, fact: Fact) -> None:
        sign = self._sign(fact)
        if sign is Sign.MODERN:
            self._attempt = None
            self.give(fact)
            self._decide_modern()
        elif sign is Sign.NONE:
            self._attempt = None
            self.give(fact)
            self._go_on()
        elif sign is Sign.LEGACY:
            self._shown_legacy(fact)
        else:
            self._attempted = fact
            self._send_probe()

    def _probed(self, fact: Fact) -> None:
        sign = self._sign(fact)
        if sign is Sign.MODERN:
            self._give_attempted()
            self._decide_modern()
        elif sign is Sign.NONE:
            self._give_attempted()
            self._answer_all(fact)
        else:
            self._shown_legacy(fact)

    def _sign(self, fact: Fact) -> Sign:
        """Read what an answer says; where no session is tried, a server that died says nothing."""
        if self.modern_only and isinstance(fact, RequestFailed):
            return Sign.NONE
        sign = read_sign(fact, self.settings.versions, http=self.http)
        return Sign.LEGACY if sign is Sign.UNSURE and not self.http else sign

    def _shown_legacy(self, fact: Fact) -> None:
        if not self.modern_only:
            if self._attempt is not None and self._attempted is None:
                self._attempted = fact
            self._greet()
        else:
            assert isinstance(fact, ResponseReceived)
            self._answer_all(_refusal(fact, self.settings.versions))

    def _give_attempted(self) -> None:
        """Let the engine have the answer to what was sent as a modern request."""
        attempt, self._attempt = self._attempt, None
        attempted, self._attempted = self._attempted, None
        if attempt is not None:  # nobody has given it up meanwhile
            assert attempted is not None
            self.give(attempted)

    def _go_on(self) -> None:
        """Nothing has shown: the next request may tell."""
        held, self._held[:] = list(self._held), []
        for send in held:
            self.send(send)

    # -- a legacy session, tried ---------------------------------------------------------------------------

    def _greet(self) -> None:
        self._greeting = True
        self.channel.when_ready(self._greeted, fail=_told_already)

    def _greeted(self) -> None:
        self._greeting = False
        self.decide("legacy", self._take_all())

    def greeting_failed(self, answer: Answer) -> bool:
        """A legacy session cannot be opened; whether it was this one's wish."""
        if not self._greeting:
            return False
        self._greeting = False
        self.channel.drop_held()
        attempted = self._attempted
        self._give_attempted()
        error = None if answer.response is None else answer.response.error
        unsure = attempted is not None and (
            read_sign(attempted, self.settings.versions, http=True) is Sign.UNSURE
        )
        if unsure or (error is not None and names_modern_version(error, self.settings.versions)):
            self._decide_modern()
        else:
            self._answer_all(answer.fact)
        return True

    # -- ends ----------------------------------------------------------------------------------------------

    def _take_all(self) -> list[SendRequest]:
        held, self._held[:] = list(self._held), []
        attempt, self._attempt, self._attempted = self._attempt, None, None
        return held if attempt is None else [attempt, *held]

    def _decide_modern(self) -> None:
        self.decide("modern", self._take_all())

    def _answer_all(self, fact: Fact) -> None:
        """What was held fares as what was sent for it."""
        for send in self._take_all():
            if isinstance(fact, RequestFailed):
                self.give(evolve(fact, request=send.request, sent=False))
            else:
                self.give(evolve(fact, request=send.request, message=_as_answer(send.request, fact.message)))


def _refusal(fact: ResponseReceived, versions: Sequence[str]) -> ResponseReceived:
    """Return what a modern server would have said that speaks other versions; one that did is quoted."""
    response = parse_message(fact.message)
    error = response.error if isinstance(response, Response) else None
    if error is not None and error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        return fact
    said = "an answer of another era" if error is None else f"{error.message} ({error.code})"
    message = f"the server does not speak {', '.join(versions)}: it answered with {said}"
    refusal = ErrorObject(ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, message)
    return evolve(fact, message=error_message(None, refusal))


def _told_already(_: Fact) -> None:
    """:meth:`EraFinder.greeting_failed` is told first."""


def _as_answer(request: int, message: Any) -> dict[str, Any] | None:
    """Return an error as the answer to another request; ``None``: it is none."""
    response = parse_message(message)
    if isinstance(response, Response) and response.error is not None:
        return error_message(request, response.error)
    return None
