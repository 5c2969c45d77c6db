"""A requester and a server engine with a network between them, in virtual time.

What the network does is data: each message takes the next :class:`~mcp_tasks_proto.testing.Passage`, and when
there are none left the weather is fair. So a test can write a storm down, or have one made up, and the same
storm comes again.

A request has a connection of its own, as over HTTP. Messages of one connection never overtake each other;
those of different ones do, where their passages take different times. Where one arrives twice, it is in order
the first time, and comes the second time whenever it does.

Where the server's processes end as well, there is :class:`~mcp_tasks_proto.testing.Client`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from itertools import count

from attrs import define, field

from mcp_tasks_proto.effects import Effect, Reply, Send
from mcp_tasks_proto.inputs import ExchangeClosed, Input, MessageReceived, StreamReady, TimePassed
from mcp_tasks_proto.testing.host import ServerHost
from mcp_tasks_proto.testing.passages import NEVER_MS, moment
from mcp_tasks_proto.testing.requester_side import Connection, RequesterSide

__all__ = ["Pair"]


def _no_work(_: Effect) -> Iterable[tuple[int, Input]]:
    return ()


@define(eq=False, kw_only=True)
class Pair(RequesterSide):
    """Runs both sides for a time, or until a call is over. Raises ``ValueError`` for less than no time."""

    server: ServerHost
    work: Callable[[Effect], Iterable[tuple[int, Input]]] = _no_work
    """The server's tools and workers: what comes of an effect, each thing after so many milliseconds."""
    now: int = 1_700_000_000_000
    """The time by the requester's clock."""
    skew_ms: int = 0
    """By how much the server's clock is ahead of it."""
    _agenda: list[tuple[int, int, Callable[[], None]]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _by_exchange: dict[int, Connection] = field(init=False, factory=dict)

    def tell_server(self, fact: Input) -> None:
        """Hand a fact to the server, and see to what comes of it."""
        for effect in self.server.give(fact):
            match effect:
                case Reply(exchange=int() as exchange) | Send(exchange=int() as exchange):
                    self._bring(self._by_exchange[exchange], effect)
                    if isinstance(effect, Send):
                        self.tell_server(StreamReady(exchange))
                case _:
                    for delay_ms, outcome in self.work(effect):
                        self._after(delay_ms, partial(self.tell_server, outcome))

    def _pass(self, milliseconds: int, done: Callable[[], bool]) -> bool:
        self._check_that_all_is_carried()
        until = moment(self.now, milliseconds)
        while not done():
            when = self._next()
            if when > until:
                self.now = until
                self._set_clocks()
                return False
            self._step(when)
        return True

    def _next(self) -> int:
        times = [self._agenda[0][0]] if self._agenda else []
        if self.requester.deadline is not None:
            times.append(self.requester.deadline)
        if self.server.deadline is not None:
            times.append(self.server.deadline - self.skew_ms)
        return min(times, default=NEVER_MS)

    def _step(self, when: int) -> None:
        """Go to the next moment at which something happens, and let one thing happen."""
        self.now = max(self.now, when)
        self._set_clocks()
        if self._agenda and self._agenda[0][0] <= self.now:
            heappop(self._agenda)[2]()
        elif self.requester.deadline is not None and self.requester.deadline <= self.now:
            self.tell_requester(TimePassed())
        else:
            self.tell_server(TimePassed())

    def _set_clocks(self) -> None:
        super()._set_clocks()
        self.server.now = self.now + self.skew_ms

    def _after(self, milliseconds: int, act: Callable[[], None]) -> None:
        heappush(self._agenda, (moment(self.now, milliseconds), next(self._order), act))

    def _reach(self, connection: Connection, received: Callable[[int], MessageReceived]) -> None:
        connection.exchange = next(self._exchanges)
        self._by_exchange[connection.exchange] = connection
        self.tell_server(received(connection.exchange))

    def _close(self, exchange: int) -> None:
        self.tell_server(ExchangeClosed(exchange))
