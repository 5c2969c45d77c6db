"""Deadlines as data: what is due, and when the next thing will be."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from attrs import define, field

__all__ = ["LAST_MS", "Timers", "exponential_backoff"]

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last moment RFC 3339 can write."""


def exponential_backoff(failures: int, first_ms: int, last_ms: int) -> int:
    """Return how long to wait after ``failures`` in a row, at least one, in milliseconds: ``first_ms``, then
    twice as long each time, up to ``last_ms``."""
    # More doublings than the longest pause has bits make no difference, but for the size of the number.
    return min(first_ms << min(failures - 1, last_ms.bit_length()), last_ms)


@define(eq=False, repr=False)
class Timers:
    """A set of named deadlines in Unix milliseconds, at most one for each key."""

    next: int | None = field(init=False, default=None)
    """The earliest deadline, or ``None``; to be read only. The first entry of the heap is always its."""
    _when: dict[Hashable, int] = field(init=False, factory=dict)
    _heap: list[tuple[int, int, Hashable]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)

    def set(self, key: Hashable, when: int) -> None:
        """Make ``key`` due at ``when``, in place of what was set for it before."""
        if self._when.get(key) == when:
            return
        self._when[key] = when
        heappush(self._heap, (when, next(self._order), key))
        if len(self._heap) > 2 * len(self._when) + 64:
            self._heap = [(due, next(self._order), name) for name, due in self._when.items()]
            heapify(self._heap)
        self._find_next()

    def get(self, key: Hashable) -> int | None:
        """Return when ``key`` is due, or ``None``."""
        return self._when.get(key)

    def clear(self, key: Hashable) -> None:
        """Forget ``key``. Harmless when nothing is set."""
        if self._when.pop(key, None) is not None:
            self._find_next()

    def _find_next(self) -> None:
        heap, when = self._heap, self._when
        while heap and when.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        self.next = heap[0][0] if heap else None

    def pop(self, now: int) -> Hashable | None:
        """Forget and return the key that was due first, if its time has come; ``None``: nothing is due."""
        when = self.next
        if when is None or when > now:
            return None
        key = heappop(self._heap)[2]
        del self._when[key]
        self._find_next()
        return key

    def due(self, now: int) -> list[Hashable]:
        """Forget and return the keys whose time has come, earliest first."""
        ready = []
        while (key := self.pop(now)) is not None:
            ready.append(key)
        return ready
