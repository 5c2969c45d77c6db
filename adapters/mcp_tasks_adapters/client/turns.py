"""Taking turns: a server that says much must not keep a loop from everybody else (LIM.3, PRX.15)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import define, field

from mcp_tasks_adapters.driver import Loop

__all__ = ["Turn", "pieces"]

PIECE_BYTES: Final = 4096
"""How much is taken in before the time is looked at. A thousand little messages may be in it."""

TURN_MS: Final = 5
"""How long one connection may have the loop for itself."""


def pieces(data: bytes) -> Iterator[bytes]:
    """Return what was received in pieces; one, and be it empty, at least."""
    if len(data) <= PIECE_BYTES:
        yield data
        return
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]


@define(eq=False)
class Turn:
    """The turn of one connection; it begins when something was received."""

    _loop: Loop
    _since_ms: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._since_ms = self._loop.now_ms()

    async def share(self) -> None:
        """Let others run, if they have waited for long enough; then it begins anew."""
        if self._loop.now_ms() - self._since_ms >= TURN_MS:
            await self._loop.checkpoint()
            self._since_ms = self._loop.now_ms()
