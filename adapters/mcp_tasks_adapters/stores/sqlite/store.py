"""The store itself: what is open between :meth:`SqliteStore.open` and :meth:`SqliteStore.close`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.stores.sqlite.rows import Rows
from mcp_tasks_adapters.stores.sqlite.session import Session
from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect, StoreError
from mcp_tasks_proto.inputs import StoreInput

__all__ = ["SqliteStore"]


class SqliteStore:
    """A :class:`~mcp_tasks_adapters.storing.Store` in the file ``path``, made if there is none.

    What it answers as saved has been synced to disk. Any number of processes on one machine may share a file,
    with a store object each: every node sees what the others save, hears of it within about ``poll_ms``, and
    hears when the process of another has ended. A file on a network file system must not be shared.

    With ``keys`` records are sealed at rest; ids, principals and times are not. ``lock_ms`` is how long
    another process may keep everybody from writing until that is a failure. At most ``waiting`` requests wait
    at a time; one more fails at once, so that a disk that is too slow is felt, instead of filling memory.

    A disk that is full, a file that cannot be read or written, a record that is broken: each fails the
    requests that meet it, and the next one tries anew.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        keys: RecordKeys | None = None,
        poll_ms: int = 50,
        lock_ms: int = 5_000,
        waiting: int = 16_384,
    ) -> None:
        self._path = Path(path)
        self._rows = Rows(keys)
        self._poll_s = poll_ms / 1000
        self._lock_s = lock_ms / 1000
        self._waiting = waiting
        self._session: Session | None = None

    @property
    def node(self) -> str | None:
        """The name of this node while the store is open, a new one each time."""
        return None if self._session is None else self._session.node

    async def open(self, loop: LoopThread) -> None:
        """Open the file, or make it, or bring an older one forward.

        Raises :class:`~mcp_tasks_adapters.storing.StoreError` when the file is of a later version of this
        package, of another program or no database, when it cannot be written, when its records are sealed
        under other keys, and when this store is open already.
        """
        if self._session is not None:
            raise StoreError(f"{self._path} is open already; to share the file, make another store.")
        opened, outcome = loop.event(), _Outcome()
        Thread(target=lambda: self._start(loop, outcome, opened.set), daemon=True).start()
        await opened.wait()
        self._session = outcome.session()
        self._session.start()

    async def close(self) -> None:
        """Close the file. What was asked before is still carried out where nothing stands in its way."""
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
            raise StoreError(f"{self._path} is not open.")
        return self._session

    def _start(self, loop: LoopThread, outcome: _Outcome, opened: Callable[[], None]) -> None:
        try:
            outcome.opened = Session(
                self._path,
                self._rows,
                loop=loop,
                poll_s=self._poll_s,
                lock_s=self._lock_s,
                most_waiting=self._waiting,
            )
        except (sqlite3.Error, OSError) as error:
            outcome.error = StoreError(f"{self._path} cannot be used: {error}.")
        except Exception as error:
            outcome.error = error
        loop.post(opened)


class _Outcome:
    """What became of opening the file, on its way from a thread."""

    opened: Session | None = None
    error: Exception | None = None

    def session(self) -> Session:
        """Return it, or raise what went wrong."""
        if self.opened is None:
            raise self.error or StoreError("the store did not open")
        return self.opened
