"""Coroutines on somebody's loop, and how the driver hears of their end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from mcp_tasks_adapters.driver import Loop

__all__ = ["Errand"]

_Outcome = TypeVar("_Outcome")
_Later = TypeVar("_Later")


class Errand(Generic[_Outcome]):
    """A job whose end is always told, once: ``ended(outcome)``, or ``ended(None)`` where it was cancelled.

    A ``finally`` in the coroutine would not do: asyncio never enters a coroutine that is cancelled before its
    first step. ``run`` raises nothing but its loop's cancellation.
    """

    __slots__ = ("_cancelled", "_ended", "_job", "_loop", "_over", "_run", "_running", "_stays")

    def __init__(
        self,
        loop: Loop,
        run: Callable[[], Coroutine[Any, Any, _Outcome]],
        ended: Callable[[_Outcome | None], None],
    ) -> None:
        self._loop = loop
        self._run: Callable[[], Coroutine[Any, Any, Any]] = run
        self._ended: Callable[[Any], None] = ended
        self._running = False
        self._cancelled = False
        self._over = False
        self._stays = False
        self._job = loop.spawn(self._go)

    async def _go(self) -> None:
        while not self._over:
            outcome = None
            try:
                if self._running:
                    await self._loop.checkpoint()
                self._running = True
                outcome = await self._run()
                self._stays = not self._cancelled  # it may have an outcome all the same
            finally:
                self._over = True
                self._ended(outcome)
                self._stays = False

    def goes_on(
        self, run: Callable[[], Coroutine[Any, Any, _Later]], ended: Callable[[_Later | None], None]
    ) -> bool:
        """Go on with ``run`` in the same job, after others had their turn; return whether that is possible.

        It is within ``ended``, unless the job was cancelled: then, and later, ``run`` needs an errand of its
        own.
        """
        if not self._stays:
            return False
        self._run, self._ended = run, ended
        self._over = self._stays = False
        return True

    def cancel(self) -> None:
        """Cancel it, the loop's own way; harmless once it has ended."""
        if self._over or self._cancelled:
            return
        self._cancelled = True  # once: on asyncio, a second time would interrupt its cleaning up
        if not self._running:
            self._over = True
            self._ended(None)
        self._job.cancel()
