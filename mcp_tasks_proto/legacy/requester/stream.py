"""The stream on which a legacy server says what belongs to no request of its client's (HTTP GET)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define, field

from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.requester.inputs import RequestFailed, ResponseReceived
from mcp_tasks_proto.requester.requests import backoff

__all__ = ["OPENING", "STREAM", "ServerStream"]

STREAM: Final = ("stream",)
"""Timer key: time to open it again."""
OPENING: Final = ("opening",)
"""Timer key: calls have waited for it for long enough."""


@define(eq=False, repr=False)
class ServerStream:
    """It is opened with the first call or task of a session, where the server has such a stream."""

    channel: Channel
    _request: int | None = field(init=False, default=None)
    """The request that it is the answer to; ``None``: it is not open."""
    _waiting: dict[int, Callable[[], None]] = field(init=False, factory=dict)
    """What waits for it to be open, by the engine's request: a question that is sent before is lost."""
    _refused: bool = field(init=False, default=False)
    _failures: int = field(init=False, default=0)
    _last_event_id: str | None = field(init=False, default=None)
    """Where it broke off."""
    _retry_ms: int = field(init=False, default=0)
    """How long it last asked to be left alone before it is opened again."""

    def want(self) -> None:
        """Have it open, unless it is, or will soon be again, or the server does not have it."""
        channel = self.channel
        idle = self._request is None and channel.timers.get(STREAM) is None
        if channel.http and idle and not self._refused:
            self._request = channel.open_stream(self._ended, self._last_event_id)
            channel.timers.set(OPENING, channel.now + channel.settings.limits.stream_wait_ms)

    def before(self, inner: int, go: Callable[[], None]) -> None:
        """Have it open, and then do something; at once, where it is open or there is none."""
        self.want()
        if self.channel.timers.get(OPENING) is None:
            go()
        else:
            self._waiting[inner] = go

    def stop(self, inner: int) -> None:
        """The engine gives a request up."""
        self._waiting.pop(inner, None)

    def opened(self) -> None:
        """It is open, or not worth waiting for any more."""
        self.channel.timers.clear(OPENING)
        waiting, self._waiting = self._waiting, {}
        for go in waiting.values():
            go()

    def lose(self) -> None:
        """The session is gone, and its stream with it; the next one may have another."""
        self._refused, self._failures = False, 0
        self._last_event_id, self._retry_ms = None, 0
        self.channel.timers.clear(STREAM)
        self.end()
        self.opened()

    def end(self) -> None:
        """Nobody listens any more."""
        if self._request is not None:
            self.channel.stop(self._request)
            self._request = None

    def _ended(self, answer: Answer) -> None:
        self._request = None
        self.opened()
        fact = answer.fact
        if isinstance(fact, ResponseReceived) and fact.http is not None and 400 <= fact.http.status < 500:
            self._refused = True
            return
        if isinstance(fact, RequestFailed) and fact.last_event_id is not None:
            news = fact.last_event_id != self._last_event_id
            self._last_event_id = fact.last_event_id
            self._retry_ms = self._retry_ms if fact.retry_ms is None else fact.retry_ms
            self._failures = 0 if news else self._failures
        self._failures += 1
        wait_ms = max(backoff(self.channel.settings, self._failures), self._retry_ms)
        self.channel.timers.set(STREAM, self.channel.now + wait_ms)
