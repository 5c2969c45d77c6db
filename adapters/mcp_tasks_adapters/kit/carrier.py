"""What carries the posts of the kit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from mcp_tasks_adapters.client.loop import ClientLoop
from mcp_tasks_proto.testing.kit import Fact, Post

__all__ = ["Carrier", "in_time"]


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
