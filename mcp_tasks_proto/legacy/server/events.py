"""What was sent on the streams of a session, for a client that lost one (LEG.2).

An event's id names its stream and its place on it: ``3-7`` is the seventh event of stream 3. Whoever comes
back with it gets what came after it on that stream, as far as it is still kept.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import count
from re import compile as pattern
from typing import Any, Final, NamedTuple

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import json_size

__all__ = ["Event", "EventLog", "KeptEvents", "Place", "event_id", "read_event_id"]


class Place(NamedTuple):
    """Where an event stands."""

    stream: int
    number: int


class Event(NamedTuple):
    """One event that was sent."""

    place: Place
    message: dict[str, Any]
    size: int
    """In bytes, as JSON."""
    last: bool
    """Whether the stream ends with it."""


EVENT_ID: Final = pattern(r"(0|[1-9][0-9]{0,15})-(0|[1-9][0-9]{0,15})")


def event_id(place: Place) -> str:
    """Return the id of an event."""
    return f"{place.stream}-{place.number}"


def read_event_id(text: str) -> Place | None:
    """Read an event's id; ``None``: it is none of ours."""
    match = EVENT_ID.fullmatch(text)
    return None if match is None else Place(int(match[1]), int(match[2]))


@define(eq=False, repr=False)
class KeptEvents:
    """The events of all sessions together, oldest first; each is in the log of its session."""

    limits: Limits
    _logs: OrderedDict[int, EventLog] = field(init=False, factory=OrderedDict)
    _bytes: int = field(init=False, default=0)
    _numbers: count[int] = field(init=False, factory=count)

    def take(self, log: EventLog, size: int) -> int:
        """Count an event that ``log`` keeps, and return its number among all."""
        number = next(self._numbers)
        self._logs[number] = log
        self._bytes += size
        return number

    def let_go(self, number: int, size: int) -> None:
        """Count an event no longer."""
        del self._logs[number]
        self._bytes -= size

    def make_room(self) -> None:
        """Let the oldest events of all give way, whose ever they are (LIM.3)."""
        while self._bytes > self.limits.all_session_event_bytes:
            next(iter(self._logs.values())).drop_oldest()


@define(eq=False, repr=False)
class EventLog:
    """The last events of one session; the oldest give way (LIM.3)."""

    kept: KeptEvents
    _events: deque[tuple[int, Event]] = field(init=False, factory=deque)
    _bytes: int = field(init=False, default=0)
    _closed: bool = field(init=False, default=False)

    def add(self, place: Place, message: dict[str, Any], *, last: bool) -> None:
        """Keep an event, unless it is too large, or no JSON, which is for whoever sends it to find out."""
        if self._closed:
            return
        try:
            size = json_size(message)
        except LocalProtocolError:
            return
        self._events.append((self.kept.take(self, size), Event(place, message, size, last)))
        self._bytes += size
        limits = self.kept.limits
        while len(self._events) > limits.session_events or self._bytes > limits.session_event_bytes:
            self.drop_oldest()
        self.kept.make_room()

    def drop_oldest(self) -> None:
        """Keep the oldest event no longer."""
        number, event = self._events.popleft()
        self._bytes -= event.size
        self.kept.let_go(number, event.size)

    def close(self) -> None:
        """Keep nothing any more: the session has ended."""
        self._closed = True
        while self._events:
            self.drop_oldest()

    def after(self, place: Place) -> list[Event]:
        """Return what came after ``place`` on its stream, oldest first."""
        return [
            event
            for _, event in self._events
            if event.place.stream == place.stream and event.place.number > place.number
        ]
