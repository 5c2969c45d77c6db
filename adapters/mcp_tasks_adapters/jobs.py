"""Coroutines on somebody's loop, and how the driver hears of their end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from mcp_tasks_adapters.driver import Loop

__all__ = ["Errand"]

_Outcome = TypeVar("_Outcome")


class Errand(Generic[_Outcome]):
    """A job whose end is always told, once: ``ended(outcome)``, or ``ended(None)`` where it was cancelled.

    A ``finally`` in the coroutine would not do: asyncio never enters a coroutine that is cancelled before its
    first step. ``run`` raises nothing but its loop's cancellation.
    """

    __slots__ = ("_ended", "_job", "_over", "_run", "_running")

    def __init__(
        self,
        loop: Loop,
        run: Callable[[], Awaitable[_Outcome]],
        ended: Callable[[_Outcome | None], None],
    ) -> None:
        self._run = run
        self._ended = ended
        self._running = False
        self._over = False
        self._job = loop.spawn(self._go)

    async def _go(self) -> None:
        if self._over:
            return
        self._running = True
        outcome: _Outcome | None = None
        try:
            outcome = await self._run()
        finally:
            self._over = True
            self._ended(outcome)

    def cancel(self) -> None:
        """Cancel it, the loop's own way; harmless once it has ended."""
        if self._over:
            return
        if not self._running:
            self._over = True
            self._ended(None)
        self._job.cancel()
