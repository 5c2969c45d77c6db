"""Which of the nodes over one file are alive.

Each holds a lock, on a file of its own beside the database, for as long as its process lives. The system
gives the lock back when the process ends, however it ends: nobody has to wait for a lease to run out, and a
node that is merely slow, stopped or suspended is never taken for gone. The lock is SQLite's own, on a
database that stays empty, which makes it work wherever SQLite works.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import token_hex

__all__ = ["NodeLock", "is_gone", "new_name"]


def new_name() -> str:
    """Return a name that no node has had."""
    return token_hex(8)


class NodeLock:
    """Holds the lock of a node. Raises :class:`sqlite3.Error` where it cannot be had."""

    def __init__(self, path: Path, node: str) -> None:
        self._path = lock_path(path, node)
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except BaseException:
            self._connection.close()
            raise

    def release(self) -> None:
        """Give it back, as the end of the process would."""
        self._connection.close()

    def remove(self) -> None:
        """Give it back, and leave nothing of it behind: nobody will ask for this node any more."""
        self.release()
        self._path.unlink(missing_ok=True)


def lock_path(path: Path, node: str) -> Path:
    """Return the file whose lock a node holds."""
    return path.with_name(f"{path.name}-node-{node}")


def is_gone(path: Path, node: str) -> bool:
    """Whether the process of this node has ended; where that cannot be told, it has not."""
    lock = lock_path(path, node)
    try:
        with closing(
            sqlite3.connect(f"{lock.absolute().as_uri()}?mode=rw", uri=True, timeout=0)
        ) as connection:
            connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        return not lock.exists()
    return True
