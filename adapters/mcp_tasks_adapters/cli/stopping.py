"""How a served process hears that it has to end, in good order and within five seconds in any case, or to
look at its configuration again."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from time import sleep
from types import FrameType
from typing import Final

__all__ = ["GRACE_MS", "HangUps", "StopSignals"]

GRACE_MS: Final = 3_000
"""For streams and requests to end by themselves; the rest of the five seconds is for workers to stop."""
LAST_RESORT_S: Final = 4.5


class StopSignals:
    """Listens for the signals that ask a process to end, from the moment it is made.

    The first one calls what was given to :meth:`on_stop`. A process that is still there 4.5 seconds later, or
    as long after :meth:`ending`, is held by a tool that does not heed cancellation, or by a server that it
    started; it is ended without that tool, with exit code 1, and such servers are killed.
    """

    def __init__(self) -> None:
        self._asked = Event()
        self._ending = Event()
        self._stop: Callable[[], object] = lambda: None
        # It runs from the start: to start a thread in a signal handler may wait for the code interrupted.
        Thread(target=self._last_resort, daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._received)

    @property
    def requested(self) -> bool:
        """Whether such a signal has come."""
        return self._asked.is_set()

    def on_stop(self, stop: Callable[[], object]) -> None:
        """Call ``stop``, which must be safe within a signal handler, when asked to end, or now if we were."""
        self._stop = stop
        if self.requested:
            stop()

    def ending(self) -> None:
        """Note that the process is about to end for another reason."""
        self._ending.set()

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            return
        self._asked.set()
        self._ending.set()
        with suppress(RuntimeError):  # the loop has ended already
            self._stop()

    def _last_resort(self) -> None:
        self._ending.wait()
        sleep(LAST_RESORT_S)
        print("A tool did not stop when told to; ending without it.", file=sys.stderr, flush=True)
        from mcp_tasks_adapters.client.processes import kill_left

        try:
            kill_left()  # servers on stdio, which were being waited for
        finally:
            os._exit(1)


class HangUps:
    """Listens for SIGHUP from the moment it is made, where there is such a signal.

    ``act`` is called for each one, by what was given to :meth:`deliver`.
    """

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._missed = False
        self._deliver: Callable[[Callable[[], object]], object] | None = None
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._received)

    def deliver(self, deliver: Callable[[Callable[[], object]], object]) -> None:
        """Take what has a function called on the loop's thread, and is safe within a signal handler."""
        self._deliver = deliver
        if self._missed:
            deliver(self._act)

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self._deliver is None:
            self._missed = True
            return
        with suppress(RuntimeError):  # the loop has ended already
            self._deliver(self._act)
