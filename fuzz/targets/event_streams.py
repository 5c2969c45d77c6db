"""Server-sent events (HTTP.4). The input is what came on a stream.

* The events do not depend on how the bytes were cut, and are those of a plain reading of the grammar.
* Of an event over the bound nothing is yielded, and nothing after it, however often one asks.
* What is held never exceeds the bound. What is encoded is decoded as it was.
"""

from __future__ import annotations

import re
from typing import Final

from fuzz.pieces import ways_to_cut
from mcp_tasks_proto.errors import LimitExceeded
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.sse import Event, EventDecoder, encode_event

LIMITS: Final = Limits(message_bytes=64)
ROOMY: Final = Limits()
FIELD_BYTES: Final = len(b"data: ")


def check(data: bytes) -> None:
    """Decode in every way, and plainly."""
    whole, *others = [_decoded(pieces) for pieces in ways_to_cut(data)]
    for other in others:
        assert other == whole, "the borders of the chunks can be told"
    events, over, retry_ms = whole
    expected, last_retry_ms = _plainly_read(data)
    assert events == expected[: len(events)], "an event that is not on the stream"
    assert over or (len(events), retry_ms) == (len(expected), last_retry_ms), "an event is missing"
    assert over == _has_long_event(data), "LIM.3: the bound on an event"
    _check_encoding(data)


def _decoded(pieces: list[bytes]) -> tuple[list[Event], bool, int | None]:
    """Return the events, whether the bound was exceeded, and the latest ``retry``."""
    decoder = EventDecoder(LIMITS)
    events: list[Event] = []
    over = False
    for piece in [*pieces, b""]:
        try:
            events += decoder.feed(piece)
            assert not over, "yielded after an error"
        except LimitExceeded:
            over = True
        held = len(decoder._held) + sum(map(len, decoder._data)) + len(decoder._data)
        assert held <= 2 * (LIMITS.message_bytes + FIELD_BYTES) + 1, "LIM.3: more is held than may be"
    return events, over, None if over else decoder.retry_ms


def _check_encoding(data: bytes) -> None:
    name = "id-1" if len(data) % 2 else None
    (event,) = EventDecoder(ROOMY).feed(encode_event(data, name))
    assert event == Event(data=re.sub(b"\r\n|\r", b"\n", data), last_event_id=name or ""), "not as encoded"


# -- the same, in the plainest way ---------------------------------------------------------------------------


def _lines(data: bytes) -> list[bytes]:
    """Return all lines that have ended."""
    return re.split(b"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf"))[:-1]


def _plainly_read(data: bytes) -> tuple[list[Event], int | None]:
    events: list[Event] = []
    lines: list[bytes] = []
    kind, last_id = b"", b""
    retry_ms: int | None = None
    for line in _lines(data):
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if lines:
                found = kind.decode(errors="replace") or "message", last_id.decode(errors="replace")
                data_lines = b"\n".join(lines)
                events.append(
                    Event(data=data_lines, event=found[0], last_event_id=found[1], retry_ms=retry_ms)
                )
            lines, kind = [], b""
        elif name == b"data":
            lines.append(value)
        elif name == b"event":
            kind = value
        elif name == b"id" and b"\0" not in value:
            last_id = value
        elif name == b"retry" and re.fullmatch(b"[0-9]{1,15}", value):
            retry_ms = int(value)
    return events, retry_ms


def _has_long_event(data: bytes) -> bool:
    """Whether a line, or the data of an event, is over the bound."""
    *ended, open_line = re.split(b"\r\n|\r|\n", data)
    if any(len(line) > LIMITS.message_bytes + FIELD_BYTES for line in (*ended, open_line)):
        return True
    size = 0
    for line in _lines(data):
        name, _, value = line.partition(b":")
        if not line:
            size = 0
        elif name == b"data":
            size += len(value.removeprefix(b" ")) + 1
        if size > LIMITS.message_bytes + 1:
            return True
    return False
