"""What was sent on the streams of a session, for a client that lost one (LEG.2).

An event's id names its stream and its place on it: ``3-7`` is the seventh event of stream 3. Whoever comes
back with it gets what came after it on that stream, as far as it is still kept.
"""

from __future__ import annotations

from collections import deque
from re import compile as pattern
from typing import Any, Final, NamedTuple

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import json_size

__all__ = ["Event", "EventLog", "Place", "event_id", "read_event_id"]


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


@define(eq=False)
class EventLog:
    """The last events of one session; the oldest give way (LIM.3)."""

    limits: Limits
    _events: deque[Event] = field(init=False, factory=deque)
    _bytes: int = field(init=False, default=0)

    def add(self, place: Place, message: dict[str, Any], *, last: bool) -> None:
        """Keep an event, unless it is too large, or no JSON, which is for whoever sends it to find out."""
        try:
            size = json_size(message)
        except LocalProtocolError:
            return
        self._events.append(Event(place, message, size, last))
        self._bytes += size
        limits = self.limits
        while len(self._events) > limits.session_events or self._bytes > limits.session_event_bytes:
            self._bytes -= self._events.popleft().size

    def after(self, place: Place) -> list[Event]:
        """Return what came after ``place`` on its stream, oldest first."""
        return [
            event
            for event in self._events
            if event.place.stream == place.stream and event.place.number > place.number
        ]
