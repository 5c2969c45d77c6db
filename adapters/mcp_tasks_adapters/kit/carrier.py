"""What a carrier is, and a run of the kit over one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from mcp_tasks_adapters.client.loop import ClientLoop
from mcp_tasks_proto.testing.kit import Act, Close, Done, Fact, Kit, Next, Open, Pause, Post

__all__ = ["Carrier", "Progress", "examine", "in_time"]

Progress = Callable[[Kit], None]
"""Is told now and then how far a run has come."""


class Carrier(Protocol):
    """A way to one server. Nothing of it raises but its loop's cancellation."""

    async def open(self, exchange: int, post: Post) -> None:
        """Send a post. That it could not be sent is told by what comes next."""

    async def next(self, exchange: int, within_ms: int) -> Fact:
        """Return what comes next on an exchange."""

    async def close(self, exchange: int) -> None:
        """Let go of an exchange."""

    async def finish(self) -> None:
        """Let go of the server."""


async def examine(kit: Kit, carrier: Carrier, loop: ClientLoop, progress: Progress) -> None:
    """Go through a run; its findings are the kit's."""
    try:
        act = kit.begin(loop.now_ms())
        while act is not None:
            progress(kit)
            fact = await _carry_out(act, carrier, loop)
            act = kit.take(fact, loop.now_ms())
    finally:
        await carrier.finish()


async def _carry_out(act: Act, carrier: Carrier, loop: ClientLoop) -> Fact:
    match act:
        case Open(exchange=exchange, post=post):
            await carrier.open(exchange, post)
        case Next(exchange=exchange, within_ms=within_ms):
            return await carrier.next(exchange, within_ms)
        case Close(exchange=exchange):
            await carrier.close(exchange)
        case Pause(ms=ms):
            await loop.within(ms / 1000, loop.event().wait)
    return Done()


async def in_time(
    loop: ClientLoop, within_ms: int, receive: Callable[[], Awaitable[bytes]]
) -> bytes | OSError | None:
    """Return what is received within a time; ``b""``: the end; ``None``: nothing came."""
    received: list[bytes | OSError] = []

    async def run() -> None:
        try:
            received.append(await receive())
        except OSError as error:
            received.append(error)

    await loop.within(within_ms / 1000, run)
    return received[0] if received else None
