"""What engines of servers and proxies promise alike of exchanges, for the hosts that hold them to it."""

from __future__ import annotations

from collections.abc import Hashable

from attrs import define, field

from mcp_tasks_proto.effects import OpenStream, Reply, Send, StopCall
from mcp_tasks_proto.inputs import ExchangeClosed, MessageReceived, SessionEnded, StreamRequested

__all__ = ["OpenExchanges"]


@define(eq=False)
class OpenExchanges:
    """Those that go on. Nothing is sent on another, and a reply ends one: there is one reply at most."""

    _open: set[Hashable] = field(init=False, factory=set)

    def note(self, fact: object) -> None:
        """Note what an engine was told: it owes an answer to that, or no longer."""
        match fact:
            case (
                MessageReceived(exchange=exchange)
                | StreamRequested(exchange=exchange)
                | SessionEnded(exchange=exchange)
            ):
                self._open.add(exchange)
            case ExchangeClosed(exchange=exchange):
                self._open.discard(exchange)

    def check(self, effect: object) -> None:
        """See that what an engine says is on an exchange that goes on, and whether it goes on after it.

        ``AssertionError``: it is not.
        """
        match effect:
            case Reply(exchange=exchange) | Send(exchange=exchange) | OpenStream(exchange=exchange):
                assert exchange in self._open, f"not on an exchange that goes on: {effect}"
                if isinstance(effect, Reply):
                    self._open.remove(exchange)
            case StopCall(exchange=exchange):
                self._open.discard(exchange)
