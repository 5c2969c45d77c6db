"""What goes between the parts of :mod:`tests.model.whole`, and what becomes of it on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from attrs import define, field

from mcp_tasks_proto.testing import Network, Passage

__all__ = ["Connection", "Roads"]

CALM: Final = Passage()


@define(eq=False, kw_only=True)
class Connection:
    """What carries one request over one of its ways, and what comes back."""

    stop: Callable[[], None]
    """Tells the end that the request went to, once it has arrived there."""
    fail: Callable[[bool], None]
    """Tells the end that it came from that there will be no answer, and whether it was sent."""
    open: bool = True
    silent: bool = False
    reached: bool = False
    last_event_id: str | None = None
    """Of what was heard on it: only streams of 2025-11-25 have such ids."""
    busy_until: dict[str, int] = field(factory=dict)

    def close(self) -> None:
        """The end that the request came from wants no more of it, and the other one hears so."""
        self.open = False
        self.stop()

    def vanish(self) -> None:
        """The process at the end that it came from has ended."""
        if self.open:
            self.open = False
            if self.reached:
                self.stop()


@define(eq=False)
class Roads:
    """Takes messages along, each on the next passage; when there is none left all is well."""

    network: Network
    """Whose time it is."""
    weather: deque[Passage]
    _silent: list[Connection] = field(init=False, factory=list)

    def carry(
        self,
        connection: Connection,
        direction: str,
        arrive: Callable[[], None],
        *,
        again: Callable[[], None] | None = None,
    ) -> None:
        """Take a message along; ``again``: what a second arrival does, if it may come twice."""
        passage, now = self.weather.popleft() if self.weather else CALM, self.network.now
        if passage.lost and not connection.silent:
            connection.silent = True
            self._silent.append(connection)
        if connection.silent:
            return
        when = max(now + passage.delay_ms, connection.busy_until.get(direction, 0))
        connection.busy_until[direction] = when
        act = partial(self.cut, connection) if passage.cut else arrive
        self.network.later(when - now, lambda: act() if connection.open else None)
        if passage.again_ms is not None and not passage.cut and again is not None:
            self.network.later(when - now + passage.again_ms, again)

    def find_dead(self) -> None:
        """Both ends of a connection on which nothing arrives any more find that out: they keep it alive."""
        for connection in self._silent:
            if connection.open:
                self.cut(connection)
        self._silent.clear()

    def cut(self, connection: Connection) -> None:
        """Break a connection; both of its ends are told."""
        connection.open = False
        if connection.reached:
            connection.stop()
        connection.fail(True)
