"""The framing of stdio (STD.1). The input is what came on a pipe.

* The lines do not depend on how the bytes were cut, and are those of a plain reading.
* A line over the bound is one error, and the next line is read as if nothing had been.
* What is held never exceeds the bound. What is framed is read as it was.
"""

from __future__ import annotations

from typing import Final

from fuzz.pieces import ways_to_cut
from mcp_tasks_proto.errors import LimitExceeded, LocalProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

LIMITS: Final = Limits(message_bytes=32)
TOO_LONG: Final = None


def check(data: bytes) -> None:
    """Decode in every way, and plainly."""
    expected = _plainly_read(data)
    for pieces in ways_to_cut(data):
        assert _decoded(pieces) == expected, "other lines than there are"
    _check_framing(data)


def _decoded(pieces: list[bytes]) -> tuple[list[bytes | None], bool]:
    """Return the lines, :data:`TOO_LONG` for each that is, and whether the end came inside one."""
    decoder = LineDecoder(LIMITS)
    found: list[bytes | None] = []
    for piece in pieces:
        for line in decoder.feed(piece):
            assert isinstance(line, bytes) or line.limit == "message_bytes"
            found.append(TOO_LONG if isinstance(line, LimitExceeded) else line)
        assert len(decoder._held) <= LIMITS.message_bytes + 1, "LIM.3: more is held than may be"
    return found, decoder.close()


def _plainly_read(data: bytes) -> tuple[list[bytes | None], bool]:
    *lines, open_line = data.split(b"\n")
    read = [_read_line(line) for line in lines]
    found = [line for line in read if line != b""]
    last = _read_line(open_line)
    return (found if last is not TOO_LONG else [*found, TOO_LONG]), last != b""


def _read_line(line: bytes) -> bytes | None:
    return line.strip(b" \t\r") if len(line.removesuffix(b"\r")) <= LIMITS.message_bytes else TOO_LONG


def _check_framing(data: bytes) -> None:
    try:
        framed = frame(data)
    except LocalProtocolError:
        assert b"\n" in data, "a message without a newline can be framed"
        return
    assert b"\n" not in data, "STD.1: no embedded newline"
    message = data.strip(b" \t\r")
    assert LineDecoder(Limits()).feed(framed) == ([message] if message else []), "not as framed"
