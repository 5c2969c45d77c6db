"""What is in the file, and how a file becomes one of ours.

Everything that is asked often is answered from an index or a counter: nothing reads all tasks (rule 8). The
counters are kept by triggers, so that whoever deletes a row by hand does not upset them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from mcp_tasks_adapters.stores.rows import KEY_CHECK, Rows
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit.outcomes import describe

__all__ = [
    "STEPS",
    "cannot_be_used",
    "check_keys",
    "connect",
    "is_locked",
    "prepare",
    "version_of",
    "what_is_wrong",
]

APPLICATION_ID: Final = 0x4D435054
"""``MCPT``, in the head of the file: not another program's database."""

LOCK_NAP_S: Final = 0.1
"""How long SQLite itself waits for a lock; who wants to wait longer asks again."""
PREPARE_PATIENCE_S: Final = 10.0
"""How long to wait for another process that makes or migrates the same file."""
ROOM_BYTES: Final = 64 * 1024
"""Less is no room at all: the index of the write-ahead log alone takes half of it."""
WAL_BYTES: Final = 64 * 1024 * 1024
"""What is left of the write-ahead log after it was larger."""

STEPS: Sequence[Sequence[str]] = [
    [
        # ``node`` is NULL once the task has ended. ``change`` counts the changes of all tasks, ``writer`` is
        # who made this one; a new task has no number, since nobody can be waiting for it. ``record`` is JSON
        # text, or a blob where it is sealed.
        """
        CREATE TABLE tasks (
            id INTEGER PRIMARY KEY,
            task_id TEXT NOT NULL UNIQUE,
            version INTEGER NOT NULL,
            owner TEXT NOT NULL,
            node TEXT,
            expires_at_ms INTEGER,
            payload_bytes INTEGER NOT NULL,
            change INTEGER,
            writer INTEGER NOT NULL,
            record NOT NULL
        )
        """,
        "CREATE INDEX tasks_by_expiry ON tasks (expires_at_ms) WHERE expires_at_ms IS NOT NULL",
        "CREATE INDEX tasks_by_change ON tasks (change, writer, task_id) WHERE change IS NOT NULL",
        "CREATE INDEX tasks_by_node ON tasks (node) WHERE node IS NOT NULL",
        # The last removals, for those who watch.
        """
        CREATE TABLE removals (
            change INTEGER PRIMARY KEY,
            writer INTEGER NOT NULL,
            task_id TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE totals (
            tasks INTEGER NOT NULL,
            payload_bytes INTEGER NOT NULL,
            change INTEGER NOT NULL
        )
        """,
        "INSERT INTO totals VALUES (0, 0, 0)",
        "CREATE TABLE owners (owner TEXT PRIMARY KEY, tasks INTEGER NOT NULL) WITHOUT ROWID",
        """
        CREATE TRIGGER task_inserted AFTER INSERT ON tasks BEGIN
            UPDATE totals SET tasks = tasks + 1, payload_bytes = payload_bytes + new.payload_bytes;
            INSERT INTO owners VALUES (new.owner, 1) ON CONFLICT (owner) DO UPDATE SET tasks = tasks + 1;
        END
        """,
        """
        CREATE TRIGGER task_resized AFTER UPDATE OF payload_bytes ON tasks
        WHEN new.payload_bytes <> old.payload_bytes BEGIN
            UPDATE totals SET payload_bytes = payload_bytes + new.payload_bytes - old.payload_bytes;
        END
        """,
        """
        CREATE TRIGGER task_deleted AFTER DELETE ON tasks BEGIN
            UPDATE totals SET tasks = tasks - 1, payload_bytes = payload_bytes - old.payload_bytes;
            UPDATE owners SET tasks = tasks - 1 WHERE owner = old.owner;
            DELETE FROM owners WHERE owner = old.owner AND tasks = 0;
        END
        """,
        # Who works through this file, or did when its process ended without a word; and how often it wrote.
        """
        CREATE TABLE nodes (
            writer INTEGER PRIMARY KEY AUTOINCREMENT,
            node TEXT NOT NULL UNIQUE,
            writes INTEGER NOT NULL DEFAULT 0
        )
        """,
        # What shows whether the keys given are those that records are sealed with.
        "CREATE TABLE seals (place TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID",
    ],
    [
        # To list the tasks of a principal; those of nobody are never listed.
        "CREATE INDEX tasks_by_owner ON tasks (owner, task_id) WHERE owner <> ''",
    ],
]
"""How the schema came about: step ``n`` takes a file from version ``n`` to ``n + 1``. None is ever edited."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, which is there already. Raises :class:`sqlite3.Error`."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=LOCK_NAP_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(path: Path) -> None:
    """Make the file one of this version: a new one, or one brought forward.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError` for a file of a later version, of another program
    or of none, and where the file cannot be written.
    """
    patience = monotonic() + PREPARE_PATIENCE_S
    while True:
        try:
            _make(path)
            with closing(connect(path)) as connection:
                _check(connection, path)
                _log_ahead(connection, path)
                _migrate(connection, path)
            return
        except sqlite3.Error as error:
            if not is_locked(error) or monotonic() > patience:
                raise cannot_be_used(path, error) from error
            sleep(LOCK_NAP_S)


def _make(path: Path) -> None:
    """Make an empty file if there is none. Nobody else may read it, or what comes to lie beside it."""
    try:
        os.close(os.open(path, os.O_CREAT, 0o600))
    except OSError as error:
        raise cannot_be_used(path, error) from error


def cannot_be_used(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Return the error for a person. What SQLite says of a place is vague: so the place is looked at.

    The system says itself when there is no room; some places never have any, such as what can only be read.
    """
    why = f"{path} cannot be used: {error.strerror if isinstance(error, OSError) else error}."
    with suppress(OSError):
        if not isinstance(error, OSError) and shutil.disk_usage(path.parent).free < ROOM_BYTES:
            why += " There is no room left on its disk."
        elif not os.access(path.parent, os.W_OK):
            why += f" {path.parent} cannot be written, and SQLite keeps files beside it there."
    return StoreError(why)


def check_keys(path: Path, rows: Rows) -> None:
    """See to it that the keys are those of this file, or become so if it has none yet.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError`, or :class:`sqlite3.Error`.
    """
    with closing(connect(path)) as connection:
        found = connection.execute("SELECT sealed FROM seals WHERE place = ?", (KEY_CHECK,)).fetchone()
        sealed = rows.check_keys(found[0] if found else None, str(path))
        if sealed is not None:
            connection.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (KEY_CHECK, sealed))


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the schema in the file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def is_locked(error: Exception) -> bool:
    """Whether somebody else has the file at the moment."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def what_is_wrong(error: Exception) -> str:
    """Return it without anything of a record (SEC.2): SQLite never quotes one, of others nobody knows."""
    return str(error) if isinstance(error, sqlite3.Error) else describe(error)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = version_of(connection)
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if application_id != APPLICATION_ID and not (application_id == version == 0 and is_empty):
        raise StoreError(f"{path} is the database of another program.")
    if version > len(STEPS):
        raise StoreError(
            f"{path} was written by a later version of this package: its schema is {version}, "
            f"and this version knows those up to {len(STEPS)}."
        )


def _log_ahead(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path} cannot be used: SQLite cannot keep a write-ahead log beside it.")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Take the steps that are still to be taken, all or none of them."""
    if version_of(connection) == len(STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check(connection, path)  # another process may have been faster, and newer
        for statement in [one for step in STEPS[version_of(connection) :] for one in step]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
