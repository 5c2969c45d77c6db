"""Ctrl-C and SIGTERM: the command stops watching, and says what becomes of the task."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from mcp_tasks_adapters.client.processes import kill_left

__all__ = ["StopSignal"]

STDERR: Final = 2
SHOW_CURSOR: Final = b"\x1b[?25h\r\n"


class StopSignal:
    """The wish to stop, once :meth:`listen` was called.

    The first signal calls what was given to :meth:`on_stop`; a second ends the process at once.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came."""
        self._stop: Callable[[], object] = lambda: None

    def listen(self) -> None:
        """Take SIGINT and SIGTERM from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._received)

    def on_stop(self, stop: Callable[[], object]) -> None:
        """Call ``stop``, which must be safe within a signal handler, when asked to; now, if we were."""
        self._stop = stop
        if self.number is not None:
            stop()

    def _received(self, number: int, _: FrameType | None) -> None:
        if self.number is not None:
            _end_at_once(128 + number)
        self.number = number
        with suppress(RuntimeError):  # the loop has ended already
            self._stop()


def _end_at_once(code: int) -> NoReturn:
    """End whatever goes on, with nothing but the cursor put right: what was interrupted may hold any lock."""
    if os.isatty(STDERR):
        os.write(STDERR, SHOW_CURSOR)
    try:
        kill_left()  # servers on stdio, which were being waited for
    finally:
        os._exit(code)
