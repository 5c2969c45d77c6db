"""What a watching client tells its benchmark: how much processor time it has used, whenever it is asked.

It needs nothing but the standard library: the peer's environment has nothing of this project's.
"""

from __future__ import annotations

import os
import sys
import threading
import time

__all__ = ["answer_parent"]


def answer_parent() -> None:
    """Answer each line on standard input with this process's processor time; end with its end."""
    print("watching", flush=True)
    threading.Thread(target=_answer, daemon=True).start()


def _answer() -> None:
    for _ in sys.stdin:
        print(time.process_time(), flush=True)
    os._exit(0)
