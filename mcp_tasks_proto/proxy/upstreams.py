"""The upstreams' side: requests in flight, what each carries, and how its answer reads (PRX.1, PRX.4).

Whoever sends says what is to be done with the answer. Each request is answered once: by the upstream, by the
transport that failed, or by its timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError
from mcp_tasks_proto.proxy.effects import SendUpstream, StopUpstream
from mcp_tasks_proto.proxy.errors import Trouble
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
)
from mcp_tasks_proto.wire.http import HeaderParameter
from mcp_tasks_proto.wire.jsonrpc import Notification, Response, parse_message, request_message
from mcp_tasks_proto.wire.reading import modern

__all__ = ["Answer", "Sent", "Target", "UpstreamRequests"]

TRY_LATER: Final = frozenset({408, 425, 429})
"""HTTP statuses below 500 that do not find fault with the request itself."""

PROXYS_FAULT: Final = frozenset(
    {
        ErrorCode.PARSE_ERROR,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Errors that find fault with how the proxy speaks, which no caller can mend."""


class Target(NamedTuple):
    """One upstream under one authorization."""

    upstream: str
    authorization: str
    identity: str
    """That of the server which is meant: under its name there may be another one by now (PRX.7)."""


@define(eq=False, repr=False, kw_only=True)
class Answer:
    """What came of a request: a result, an error, or a trouble."""

    result: Mapping[str, Any] | None = None
    error: ErrorObject | None = None
    trouble: Trouble | None = None
    """There was no answer, or one that cannot be read, or one that is the proxy's own fault."""
    sent: bool = True
    """Whether it may have reached the upstream (PRX.4)."""
    final: bool = False
    """Whether there is no use in sending it again."""


@define(eq=False, repr=False, kw_only=True)
class Sent:
    """A request in flight; its own timer key."""

    name: int
    target: Target
    since_ms: int
    slow: bool
    """Whether it may take its time, as long as there are signs of life."""
    then: Callable[[Answer], None]
    heard: Callable[[Notification], None] | None


@define(eq=False, repr=False, kw_only=True)
class UpstreamRequests:
    """All requests in flight to all upstreams."""

    shared: Shared
    out: Callable[[SendUpstream | StopUpstream], None]
    """Takes what is to be sent, or stopped."""
    names: Iterator[int]
    contradicted: Callable[[Target], None]
    """Called when an error shows that what was discovered no longer holds (PRX.2)."""
    _in_flight: dict[int, Sent] = field(init=False, factory=dict)
    _newest: int = field(init=False, default=0)

    # -- out -------------------------------------------------------------------------------------------

    def send(
        self,
        target: Target,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[Answer], None],
        *,
        capabilities: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        wants_progress: bool = False,
        heard: Callable[[Notification], None] | None = None,
        parameters: tuple[HeaderParameter, ...] = (),
        slow: bool = False,
        streams: bool = False,
        task_path: bool = False,
    ) -> int | None:
        """Send a request; return its name, or ``None`` where it cannot be sent, which ``then`` is told.

        The proxy speaks for itself: its own version, name and ``capabilities`` go up, beside what passes of
        the caller's ``meta`` (PRX.1). Where the server that is meant is not configured any more, nothing goes
        to another one in its place (PRX.7).
        """
        shared = self.shared
        known = shared.settings.upstream(target.upstream)
        gone = known is None or known.identity != target.identity
        if gone or len(self._in_flight) >= shared.limits.upstream_requests:
            then(Answer(trouble=Trouble.UNAVAILABLE, sent=False, final=True))
            return None
        name = self._newest = next(self.names)
        carried = {
            **(meta or {}),
            PROTOCOL_VERSION: shared.settings.versions[0],
            CLIENT_INFO: shared.client_info,
            CLIENT_CAPABILITIES: capabilities,
        }
        if wants_progress:
            carried[PROGRESS_TOKEN] = name
        sent = Sent(
            name=name,
            target=target,
            since_ms=shared.now,
            slow=slow,
            then=then,
            heard=heard,
        )
        self._in_flight[name] = sent
        self._set_timeout(sent)
        self.out(
            SendUpstream(
                request=name,
                upstream=target.upstream,
                authorization=target.authorization,
                message=request_message(name, method, {**params, "_meta": carried}),
                parameters=parameters,
                streams=streams,
                task_path=task_path,
            )
        )
        return name

    def send_again(
        self,
        target: Target,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[Answer], None],
        **how: Any,
    ) -> None:
        """Send a request that may be repeated, until it is answered or ``ProxyLimits.attempts`` are used up.

        One that timed out is not repeated: its caller has waited long enough.
        """
        left = count(self.shared.limits.attempts - 1, -1)

        def answered(answer: Answer) -> None:
            again = answer.trouble is Trouble.UNAVAILABLE and not answer.final
            if again and next(left) > 0:
                self.send(target, method, params, answered, **how)
            else:
                then(answer)

        self.send(target, method, params, answered, **how)

    def stop(self, name: int | None) -> None:
        """Give a request up; nothing is told of it any more. Harmless for one that has been answered."""
        if name in self._in_flight:
            self._end(name)
            self.out(StopUpstream(name))

    def keep_open(self, name: int | None) -> None:
        """Let a listen stream stay open for as long as it likes."""
        self.shared.timers.clear(None if name is None else self._in_flight.get(name))

    # -- in --------------------------------------------------------------------------------------------

    def answered(self, name: int, message: Any, http_status: int | None) -> None:
        """An upstream has answered. One that was given up may still do so."""
        sent = self._known(name)
        if sent is None:
            return
        answer = _read(name, message, http_status)
        code = None if answer.error is None else answer.error.code
        if code in _CONTRADICTING:
            self.contradicted(sent.target)
        if code in PROXYS_FAULT:
            answer = Answer(trouble=Trouble.REFUSED)
        self._end(name)
        sent.then(answer)

    def failed(self, name: int, *, was_sent: bool) -> None:
        """A transport has failed."""
        sent = self._known(name)
        if sent is not None:
            self._end(name)
            sent.then(Answer(trouble=Trouble.UNAVAILABLE, sent=was_sent))

    def notified(self, name: int, message: Any) -> None:
        """An upstream says something on the way. What is no notification is no concern of anybody's."""
        sent = self._known(name)
        notification = parse_message(message)
        if sent is None or not isinstance(notification, Notification):
            return
        if sent.slow:
            self._set_timeout(sent)
        if sent.heard is not None:
            sent.heard(notification)

    def timeout_due(self, sent: Sent) -> None:
        """The time of a request is over."""
        self.stop(sent.name)
        sent.then(Answer(trouble=Trouble.UNAVAILABLE, final=True))

    def _known(self, name: int) -> Sent | None:
        """Return a request in flight; ``None``: it was given up. One that never was is the host's mistake."""
        if type(name) is not int or not 0 < name <= self._newest:
            raise LocalProtocolError("no request has this name")
        return self._in_flight.get(name)

    def _end(self, name: int) -> None:
        self.shared.timers.clear(self._in_flight.pop(name))

    def _set_timeout(self, sent: Sent) -> None:
        shared = self.shared
        limits = shared.limits
        wait_ms = limits.call_timeout_ms if sent.slow else limits.request_timeout_ms
        latest_ms = sent.since_ms + limits.longest_call_ms
        shared.timers.set(sent, min(shared.now + wait_ms, latest_ms))


_CONTRADICTING: Final = frozenset(
    {
        ErrorCode.METHOD_NOT_FOUND,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Errors that do not fit with what the upstream said of itself."""


def _read(name: int, message: Any, http_status: int | None) -> Answer:
    """Read what came back."""
    if message is None:
        client_error = http_status is not None and 400 <= http_status < 500 and http_status not in TRY_LATER
        return Answer(trouble=Trouble.REFUSED if client_error else Trouble.UNAVAILABLE)
    response = parse_message(message)
    if not isinstance(response, Response) or response.id not in (name, None):
        return Answer(trouble=Trouble.INVALID)
    if response.error is not None:
        return Answer(error=modern(response.error))
    return Answer(result=response.result)
