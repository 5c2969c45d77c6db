"""Framing on stdio, and on every other stream of bytes that is used so: one message a line (STD.1)."""

from __future__ import annotations

from attrs import define, field

from mcp_tasks_proto.errors import LimitExceeded, LocalProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import message_too_large

__all__ = ["LineDecoder", "frame"]


def frame(message: bytes) -> bytes:
    """Return ``message`` as a line. Raises :class:`LocalProtocolError` if it has a newline inside."""
    if b"\n" in message:
        raise LocalProtocolError("a message on stdio must not contain a newline")
    return message + b"\n"


@define(eq=False, repr=False)
class LineDecoder:
    """Finds the lines in chunks of bytes, whatever the chunks' borders.

    Blank lines are left out, and so is a carriage return before a newline. It holds at most one unfinished
    line, of at most ``Limits.message_bytes``: a longer one is reported once and skipped to its end.
    """

    limits: Limits
    _held: bytearray = field(init=False, factory=bytearray)
    _skipping: bool = field(init=False, default=False)

    def feed(self, chunk: bytes) -> list[bytes | LimitExceeded]:
        """Take in the next bytes; return the messages they complete, and an error for each over-long line."""
        found: list[bytes | LimitExceeded] = []
        *endings, rest = chunk.split(b"\n")
        for ending in endings:
            self._extend(ending, found)
            line = bytes(self._held).strip(b" \t\r")
            if line:
                found.append(line)
            self._held.clear()
            self._skipping = False
        self._extend(rest, found)
        return found

    def close(self) -> bool:
        """Note the end of the stream; return whether it came in the middle of a line, which is lost."""
        return self._skipping or bool(self._held.strip(b" \t\r"))

    def _extend(self, part: bytes, found: list[bytes | LimitExceeded]) -> None:
        """Lengthen the unfinished line, unless it is or becomes too long."""
        if self._skipping:
            return
        self._held += part
        if len(self._held) - self._held.endswith(b"\r") > self.limits.message_bytes:
            self._skipping = True
            self._held.clear()
            found.append(message_too_large(self.limits))
