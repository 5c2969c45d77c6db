"""The store itself."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from mcp_tasks_adapters.stores.rows import Rows
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.stores.sqlite.schema import cannot_be_used
from mcp_tasks_adapters.stores.sqlite.session import Session
from mcp_tasks_adapters.stores.threaded import ThreadedStore
from mcp_tasks_adapters.storing import LoopThread

__all__ = ["SqliteStore"]


class SqliteStore(ThreadedStore):
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
        super().__init__(str(path))
        self._path = Path(path)
        self._rows = Rows(keys)
        self._poll_s = poll_ms / 1000
        self._lock_s = lock_ms / 1000
        self._waiting = waiting

    def _new_session(self, loop: LoopThread) -> Session:
        try:
            return Session(
                self._path,
                self._rows,
                loop=loop,
                poll_s=self._poll_s,
                lock_s=self._lock_s,
                most_waiting=self._waiting,
            )
        except (sqlite3.Error, OSError) as error:
            raise cannot_be_used(self._path, error) from error
