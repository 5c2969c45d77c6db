"""When to look for expired records: by deadline, one slice at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from attrs import define, field

from mcp_tasks_proto.timers import Timers

__all__ = ["SWEEP", "Sweeping"]

SWEEP: Final = ("sweep",)
"""Key of the sweeping deadline."""


@define(eq=False, repr=False)
class Sweeping:
    """The next look for expired records, and what came of the last one (TTL.2).

    ``timers`` has the deadline while nothing is under way. From a look until everything it found has been
    removed there is none: a slow store is not asked for what it is removing already, nor for more than it
    can remove.
    """

    timers: Timers
    _looking: Hashable = field(init=False, default=None)
    """Token of the look that is under way."""
    _removals: int = field(init=False, default=0)
    """Records it found that are still to be removed."""
    _planned: int | None = field(init=False, default=None)
    """When to look next; while a look is under way, afterwards."""
    _not_before: int = field(init=False, default=0)

    def plan(self, when: int | None) -> None:
        """Look at ``when``, or earlier if that is planned already; ``None``: no wish."""
        if when is None or (self._planned is not None and self._planned <= when):
            return
        self._planned = when
        self._go_on()

    def begin(self, token: Hashable) -> None:
        """The deadline has come, and the store is asked under ``token``."""
        self._looking = token
        self._planned = None
        self._not_before = 0

    def looks(self, token: Hashable) -> bool:
        """Whether ``token`` is that of the look under way."""
        return token is not None and token == self._looking

    def found(self, records: int, next_look: int | None) -> None:
        """So many are to be removed now; after that, look again at ``next_look``."""
        self.plan(next_look)
        self._looking = None
        self._removals = records
        self._go_on()

    def failed(self, next_look: int) -> None:
        """The store could not tell: look again at ``next_look``, and not before."""
        self.pause(next_look)
        self.found(0, None)

    def removed(self) -> None:
        """One of them is gone, or will be found again."""
        self._removals -= 1
        self._go_on()

    def pause(self, until: int) -> None:
        """The store fails to remove: look again at ``until``, and not before."""
        self._not_before = until
        self.plan(until)

    @property
    def _busy(self) -> bool:
        return self._looking is not None or self._removals > 0

    def _go_on(self) -> None:
        if self._planned is not None and not self._busy:
            self.timers.set(SWEEP, max(self._planned, self._not_before))
