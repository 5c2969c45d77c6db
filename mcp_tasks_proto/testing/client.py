"""A requester whose servers are the processes of a network, which crash, fall asleep and come back.

What goes wrong is data: each of its messages takes the next :class:`~mcp_tasks_proto.testing.Passage`, as in
a :class:`~mcp_tasks_proto.testing.Pair`, and each effect of a server's the next
:class:`~mcp_tasks_proto.testing.Fate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from attrs import define

from mcp_tasks_proto.effects import OpenStream, Reply, Send
from mcp_tasks_proto.inputs import MessageReceived, TimePassed
from mcp_tasks_proto.requester import RequesterEffect
from mcp_tasks_proto.testing.network import Network
from mcp_tasks_proto.testing.passages import Passage
from mcp_tasks_proto.testing.requester_host import RequesterHost
from mcp_tasks_proto.testing.requester_side import Connection, RequesterSide

__all__ = ["Client"]

AT_ONCE: Final = Passage(delay_ms=0)


@define(eq=False, kw_only=True)
class Client(RequesterSide):
    """Carries what a requester says to the processes of a network, to each in its turn, and their news back.

    A request takes a passage of the client's, and none of the network's. What a process says has its fate
    first, and then takes a passage as well. A request has failed when its process ends, and where there is
    none at all it comes to. Time is the network's, which may have several clients: :meth:`settle` lets it
    pass for everybody, as :meth:`Network.run` does.
    """

    network: Network
    skew_ms: int = 0
    """By how many milliseconds its clock is ahead."""

    @property
    def now(self) -> int:
        """The time by the requester's clock."""
        return self.network.now + self.skew_ms

    def see_to(self, effects: Iterable[RequesterEffect]) -> None:
        """Carry out what the requester said, as a pair does, and wake it when it wants to be."""
        super().see_to(effects)
        host = self.requester
        if host.deadline is not None:
            self._after(max(0, host.deadline - self.now), partial(self._wake, host, host.deadline))

    def _wake(self, host: RequesterHost, deadline: int) -> None:
        if host is self.requester and host.deadline == deadline:
            self.tell_requester(TimePassed())

    def _after(self, milliseconds: int, act: Callable[[], None]) -> None:
        self.network.later(milliseconds, act)

    def _pass(self, milliseconds: int, done: Callable[[], bool]) -> bool:
        self._check_that_all_is_carried()
        over = self.network.run(milliseconds, until=done)
        self._set_clocks()
        return over

    def _reach(self, connection: Connection, received: Callable[[int], MessageReceived]) -> None:
        def said(effect: Reply | Send | OpenStream | None) -> None:
            if isinstance(effect, Reply | Send):
                self._bring(connection, effect)
            else:
                self._carry(connection, "back", partial(self._break, connection))

        nodes = self.network.nodes
        if nodes:
            node = nodes[connection.number % len(nodes)]
            connection.exchange = self.network.converse(node, received, said, passage=AT_ONCE)
        else:
            self._carry(connection, "back", partial(self._break, connection, sent=False))

    def _close(self, exchange: int) -> None:
        self.network.close(exchange)
