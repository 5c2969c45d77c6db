"""The clock of the running servers."""

from __future__ import annotations

from time import time_ns

__all__ = ["unix_ms"]


def unix_ms() -> int:
    """Return the time as Unix milliseconds."""
    return time_ns() // 1_000_000
