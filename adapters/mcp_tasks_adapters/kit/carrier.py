"""What carries the posts of the kit."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Protocol

from attrs import define, field

from mcp_tasks_adapters.client.loop import ClientLoop
from mcp_tasks_proto.testing.kit import Came, Ended, Fact, Post

__all__ = ["Carrier", "Unfetched", "in_time"]

MOST_FACTS: Final = 10_000
MOST_BYTES: Final = 16 * 1024 * 1024
"""How much a server may say on an exchange before it is looked at."""


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


@define(eq=False)
class Unfetched:
    """What has come on an exchange and was not fetched yet; when it is too much, that is the end of it."""

    too_many: bool = field(init=False, default=False)
    _facts: deque[Fact] = field(init=False, factory=deque)
    _bytes: int = field(init=False, default=0)

    def __iadd__(self, facts: Iterable[Fact]) -> Unfetched:
        for fact in facts:
            self._add(fact)
        return self

    def __len__(self) -> int:
        return len(self._facts)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def _add(self, fact: Fact) -> None:
        if self.too_many:
            return
        self._bytes += fact.size_bytes if isinstance(fact, Came) else 0
        self.too_many = len(self._facts) >= MOST_FACTS or self._bytes > MOST_BYTES
        if self.too_many:
            fact = Ended("the server says more than anybody can listen to", over_limit=True)
        self._facts.append(fact)

    def popleft(self) -> Fact:
        """Return what came first."""
        fact = self._facts.popleft()
        self._bytes -= fact.size_bytes if isinstance(fact, Came) else 0
        return fact


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
