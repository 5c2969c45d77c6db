"""The clocks of running servers and clients."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Final

from attrs import define, field

__all__ = ["LONGEST_NAP_MS", "SteadyClock", "unix_ms"]

LONGEST_NAP_MS: Final = 86_400_000
"""A deadline may be further away than an alarm can be set: now and then it is looked at again."""


STEP_NS: Final = 1_000_000_000
"""A system's clock that differs by more from what has passed was set; by less, it is being corrected."""


def unix_ms() -> int:
    """Return the time as Unix milliseconds."""
    return time_ns() // 1_000_000


@define(eq=False)
class SteadyClock:
    """Unix milliseconds, that go on when the system's clock is set back.

    An engine never lets its time go back: until the system's clock had made up for that, no deadline would
    come. When the system's clock goes ahead, for a machine has slept, say, this one does too.
    """

    _unix_ns: Callable[[], int] = time_ns
    _passed_ns: Callable[[], int] = monotonic_ns
    _ahead_ns: int = field(init=False, default=0)
    """By how much it is ahead of the system's clock."""
    _last_ns: int = field(init=False)
    _last_passed_ns: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._last_ns, self._last_passed_ns = self._unix_ns(), self._passed_ns()

    def now_ms(self) -> int:
        """Return the time."""
        system_ns, passed_ns = self._unix_ns(), self._passed_ns()
        expected_ns = self._last_ns + passed_ns - self._last_passed_ns
        if abs(system_ns + self._ahead_ns - expected_ns) > STEP_NS:
            self._ahead_ns = max(0, expected_ns - system_ns)
        self._last_ns, self._last_passed_ns = system_ns + self._ahead_ns, passed_ns
        return self._last_ns // 1_000_000
