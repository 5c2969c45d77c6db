"""The clocks of running servers and clients."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Final

from attrs import define, field

__all__ = ["LONGEST_NAP_MS", "SteadyClock", "unix_ms"]

LONGEST_NAP_MS: Final = 86_400_000
"""A deadline may be further away than an alarm can be set: now and then it is looked at again."""


STEP_MS: Final = 1_000
"""A system's clock that differs by more from what has passed was set; by less, it is being corrected."""


def unix_ms() -> int:
    """Return the time as Unix milliseconds."""
    return time_ns() // 1_000_000


def _passed_ms() -> int:
    return monotonic_ns() // 1_000_000


@define(eq=False)
class SteadyClock:
    """Unix milliseconds, that go on when the system's clock is set back.

    An engine never lets its time go back: until the system's clock had made up for that, no deadline would
    come. When the system's clock goes ahead, for a machine has slept, say, this one does too.
    """

    _unix_ms: Callable[[], int] = unix_ms
    _passed_ms: Callable[[], int] = _passed_ms
    _ahead_ms: int = field(init=False, default=0)
    """By how much it is ahead of the system's clock."""
    _last_ms: int = field(init=False)
    _last_passed_ms: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._last_ms, self._last_passed_ms = self._unix_ms(), self._passed_ms()

    def now_ms(self) -> int:
        """Return the time."""
        system_ms, passed_ms = self._unix_ms(), self._passed_ms()
        expected_ms = self._last_ms + passed_ms - self._last_passed_ms
        if abs(system_ms + self._ahead_ms - expected_ms) > STEP_MS:
            self._ahead_ms = max(0, expected_ms - system_ms)
        self._last_ms, self._last_passed_ms = system_ms + self._ahead_ms, passed_ms
        return self._last_ms
