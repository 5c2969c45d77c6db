"""Lines from a person at a terminal, without keeping the event loop, and for as long as anybody waits."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Final

from mcp_tasks_adapters.cli.client.loops import Loop

try:
    import termios
except ImportError:  # a system without POSIX terminals
    termios = None  # type: ignore[assignment]

__all__ = ["discard_typed", "read_line", "somebody_is_there"]

READ_BYTES: Final = 4096


def somebody_is_there() -> bool:
    """Whether there is a person who can be shown something, and whose answer can be waited for."""
    return termios is not None and sys.stdin.isatty() and sys.stderr.isatty()


def discard_typed() -> None:
    """Forget what was typed and not read yet."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_line(loop: Loop) -> str | None:
    """Return the next line that is typed, without its end; ``None``: the end of input (Ctrl-D).

    When it is cancelled it leaves the terminal at once, and reads nothing more of it.
    """
    lines: list[str | None] = []
    typed = loop.event()
    woken, wake = os.pipe()

    def deliver(line: bytes | None) -> None:
        lines.append(None if line is None else line.decode("utf-8", "replace"))
        typed.set()

    def tell(line: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.run_soon(deliver, line)

    # A thread is the one way to wait for a terminal without changing it for the processes that share it.
    thread = Thread(target=_read, args=(sys.stdin.fileno(), woken, tell), daemon=True)
    thread.start()
    try:
        await typed.wait()
        return lines[0]
    finally:
        os.close(wake)  # which wakes the thread
        thread.join()
        os.close(woken)


def _read(terminal: int, woken: int, tell: Callable[[bytes | None], None]) -> None:
    """Read a line of a terminal, which edits lines itself, unless woken."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([terminal, woken], [], [])
        if woken in ready:
            return
        try:
            data = os.read(terminal, READ_BYTES)
        except OSError:
            data = b""  # it has been hung up
        if not data:
            tell(line or None)
            return
        line += data
    tell(line.rstrip(b"\r\n"))
