"""The clock of the running servers."""

from __future__ import annotations

from time import time_ns
from typing import Final

__all__ = ["LONGEST_NAP_MS", "unix_ms"]

LONGEST_NAP_MS: Final = 86_400_000
"""A deadline may be further away than an alarm can be set: now and then it is looked at again."""


def unix_ms() -> int:
    """Return the time as Unix milliseconds."""
    return time_ns() // 1_000_000
