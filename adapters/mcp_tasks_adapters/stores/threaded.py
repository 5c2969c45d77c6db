"""A store whose work is done on threads: what is open between ``open`` and ``close``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from mcp_tasks_adapters.stores.threads import opened_on_a_thread
from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect, StoreError
from mcp_tasks_proto.inputs import StoreInput

__all__ = ["Session", "ThreadedStore"]


class Session(Protocol):
    """A store that is open. Made on any thread; then used on the loop's."""

    @property
    def node(self) -> str:
        """The name of this node."""

    def start(self) -> None:
        """Begin to answer."""

    def discard(self) -> None:
        """Let go of everything, on any thread; instead of :meth:`start`."""

    async def close(self) -> None:
        """Let go of everything; no answer comes after this, and no news."""

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        """Have ``effect`` carried out."""

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> None:
        """Tell ``hear`` what other nodes did."""

    def unwatch(self) -> None:
        """Tell nobody."""


class ThreadedStore(ABC):
    """A :class:`~mcp_tasks_adapters.storing.Store`; ``name`` is what its records are in, for a person."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._session: Session | None = None

    @abstractmethod
    def _new_session(self, loop: LoopThread) -> Session:
        """Open it, on a thread where this may take its time. Raises :class:`StoreError`."""

    @property
    def node(self) -> str | None:
        """The name of this node while the store is open, a new one each time."""
        return None if self._session is None else self._session.node

    async def open(self, loop: LoopThread) -> None:
        """Open it, make what is missing, or bring an older version forward.

        Raises :class:`~mcp_tasks_adapters.storing.StoreError` when that cannot be done, when what is there
        is of a later version of this package or of another program, when records are sealed under other keys,
        and when this store is open already.
        """
        if self._session is not None:
            raise StoreError(f"{self._name} is open already; to share it, make another store.")
        self._session = await opened_on_a_thread(
            loop, lambda: self._new_session(loop), lambda session: session.discard()
        )
        self._session.start()

    async def close(self) -> None:
        """Close it. What was asked before is still carried out where nothing stands in its way."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        """Carry out ``effect`` on a thread; ``answer`` is called on the loop's.

        Raises :class:`~mcp_tasks_adapters.storing.StoreError` when the store is not open.
        """
        self._opened().submit(effect, answer)

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> Callable[[], None]:
        """Tell ``hear`` what other nodes did; there is one watcher at a time.

        Raises :class:`~mcp_tasks_adapters.storing.StoreError` when the store is not open.
        """
        session = self._opened()
        session.watch(concerns, hear)
        return session.unwatch

    def _opened(self) -> Session:
        if self._session is None:
            raise StoreError(f"{self._name} is not open.")
        return self._session
