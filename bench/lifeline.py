"""A server that is started for a benchmark ends when the benchmark does, whatever ended that."""

from __future__ import annotations

import os
import sys
import threading

__all__ = ["end_with_parent"]


def end_with_parent() -> None:
    """End this process when its standard input ends: the parent holds the other side of that pipe."""
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
