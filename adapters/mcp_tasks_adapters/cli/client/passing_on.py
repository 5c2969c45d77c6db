"""What a server that was started here writes to stderr, without spoiling the lines that move there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Final

__all__ = ["lines_passed_on"]

LINE_CHARS: Final = 10_000
"""A longer line comes in parts."""
LAST_WORDS_S: Final = 1.0
"""How long to wait for what somebody still writes who outlives the server."""


@contextmanager
def lines_passed_on(say: Callable[[str], None]) -> Iterator[int]:
    """Give a file for a process to write to; ``say`` gets each line, on a thread of its own."""
    read_end, write_end = os.pipe()

    def pass_on() -> None:
        with open(read_end, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(LINE_CHARS):
                say(line.rstrip("\r\n"))

    thread = Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        yield write_end
    finally:
        os.close(write_end)
        thread.join(LAST_WORDS_S)
