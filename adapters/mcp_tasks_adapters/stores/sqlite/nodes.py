"""Which of the nodes over one file are alive.

Each holds a lock, on a file of its own beside the database, for as long as its process lives. The system
gives the lock back when the process ends, however it ends: nobody has to wait for a lease to run out, and a
node that is merely slow, stopped or suspended is never taken for gone. The lock is SQLite's own, on a
database that stays empty, which makes it work wherever SQLite works.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing, suppress
from glob import escape
from pathlib import Path
from secrets import token_hex

__all__ = ["NodeLock", "is_gone", "lock_path", "new_name", "remove_orphans"]


def new_name() -> str:
    """Return a name that no node has had."""
    return token_hex(8)


class NodeLock:
    """Holds the lock of a node. Raises :class:`sqlite3.Error` where it cannot be had."""

    def __init__(self, path: Path, node: str) -> None:
        self._path = lock_path(path, node)
        self._connection = _locked(self._path)
        while not self._path.exists():  # somebody took it for an orphan, before it was locked
            self._connection.close()
            self._connection = _locked(self._path)

    def release(self) -> None:
        """Give it back, as the end of the process would."""
        self._connection.close()

    def remove(self) -> None:
        """Give it back, and leave nothing of it behind: nobody will ask for this node any more."""
        self.release()
        self._path.unlink(missing_ok=True)


def _locked(lock: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(lock, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except BaseException:
        connection.close()
        raise
    return connection


def remove_orphans(path: Path, nodes: Collection[str]) -> None:
    """Remove the files of nodes that ended before anybody knew them, or after they were forgotten.

    ``nodes`` are those that are known. A file that is locked belongs to a process that is just starting.
    """
    for lock in path.parent.glob(f"{escape(path.name)}-node-*"):
        node = lock.name.removeprefix(f"{path.name}-node-")
        if node.isalnum() and node not in nodes:  # SQLite's own files beside it have longer names
            with suppress(sqlite3.Error, OSError), closing(_existing(lock)) as connection:
                connection.execute("BEGIN EXCLUSIVE")
                lock.unlink()  # while it is locked: who wants to lock it waits, and then sees that it is gone


def _existing(lock: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{lock.absolute().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)


def lock_path(path: Path, node: str) -> Path:
    """Return the file whose lock a node holds."""
    return path.with_name(f"{path.name}-node-{node}")


def is_gone(path: Path, node: str) -> bool:
    """Whether the process of this node has ended; where that cannot be told, it has not."""
    lock = lock_path(path, node)
    try:
        with closing(_existing(lock)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        return not lock.exists()
    return True
