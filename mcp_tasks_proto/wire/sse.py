"""Server-sent events: one event for each message of a stream (HTTP.4)."""

from __future__ import annotations

from typing import Final

from attrs import define, field, frozen

from mcp_tasks_proto.errors import LimitExceeded
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import message_too_large

__all__ = ["KEEP_ALIVE", "Event", "EventDecoder", "encode_event"]

KEEP_ALIVE: Final = b":\n\n"
"""A comment, which no reader takes for a message; sent on a silent stream (SUB.4)."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FIELD_BYTES: Final = len(b"data: ")


def encode_event(data: bytes, event_id: str | None = None) -> bytes:
    """Return one event with this data. Line ends in it, of any kind, reach the reader as newlines.

    ``event_id`` is ASCII on one line; without it the event has none.
    """
    if event_id is not None:
        return b"id: " + event_id.encode("ascii") + b"\n" + encode_event(data)
    if b"\n" in data or b"\r" in data:
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
    return b"data: " + data + b"\n\n"


@frozen(kw_only=True)
class Event:
    """One event as it came."""

    data: bytes
    """The data lines, with newlines between them; not yet known to be UTF-8."""
    event: str = "message"
    """The event's type."""
    last_event_id: str = ""
    """The latest ``id`` on the stream so far."""
    retry_ms: int | None = None
    """The latest ``retry`` on the stream so far."""


@define(eq=False, repr=False)
class EventDecoder:
    """Finds the events in chunks of bytes, whatever the chunks' borders.

    Follows the event stream grammar: lines end with CR, LF or CRLF, a byte order mark may come first,
    comments and unknown fields are left out. It holds at most one unfinished event, of at most
    ``Limits.message_bytes``.
    """

    limits: Limits
    retry_ms: int | None = field(init=False, default=None)
    """The latest ``retry`` that has come: how long to wait before connecting again. It may stand behind
    events that a reader of :meth:`feed` has yet to look at."""

    _held: bytearray = field(init=False, factory=bytearray)
    _data: list[bytes] = field(init=False, factory=list)
    _data_bytes: int = field(init=False, default=0)
    _event: bytes = field(init=False, default=b"")
    _last_event_id: bytes = field(init=False, default=b"")
    _after_return: bool = field(init=False, default=False)
    _at_start: bool = field(init=False, default=True)
    _overrun: LimitExceeded | None = field(init=False, default=None)

    def feed(self, chunk: bytes) -> list[Event]:
        """Take in the next bytes; return the events they complete.

        Raises :class:`LimitExceeded` once an event is too large, on this call or, when this one completed
        events before, on the next. The stream cannot be read any further then.
        """
        if self._overrun is not None:
            raise self._overrun
        found: list[Event] = []
        try:
            self._read(chunk, found)
        except LimitExceeded as overrun:
            self._overrun = overrun
            self._held.clear()
            self._data.clear()
            if not found:
                raise
        return found

    def close(self) -> bool:
        """Note the end of the stream; return whether it came in the middle of an event, which is lost.

        Raises :class:`LimitExceeded` if :meth:`feed` still owes it.
        """
        if self._overrun is not None:
            raise self._overrun
        return bool(self._held or self._data)

    def _read(self, chunk: bytes, found: list[Event]) -> None:
        if self._after_return and chunk:
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        for part in chunk.splitlines(keepends=True):
            line = part.rstrip(b"\r\n")
            self._held += line
            if len(self._held) > self.limits.message_bytes + _FIELD_BYTES:
                raise message_too_large(self.limits)
            self._after_return = part.endswith(b"\r")
            if len(line) != len(part):
                self._end_line(found)

    def _end_line(self, found: list[Event]) -> None:
        line = bytes(self._held)
        self._held.clear()
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if line:
            self._take_field(line)
        elif self._data:
            found.append(self._end_event())
        else:
            self._event = b""

    def _end_event(self) -> Event:
        event = Event(
            data=b"\n".join(self._data),
            event=self._event.decode(errors="replace") or "message",
            last_event_id=self._last_event_id.decode(errors="replace"),
            retry_ms=self.retry_ms,
        )
        self._data.clear()
        self._data_bytes = 0
        self._event = b""
        return event

    def _take_data(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1
        if self._data_bytes > self.limits.message_bytes + 1:
            raise message_too_large(self.limits)

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._take_data(value)
            case b"event":
                self._event = value
            case b"id" if b"\0" not in value:
                self._last_event_id = value
            case b"retry" if value.isdigit() and len(value) < 16:
                self.retry_ms = int(value)
