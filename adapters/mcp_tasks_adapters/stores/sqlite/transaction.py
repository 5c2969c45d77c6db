"""One transaction: requests in, outcomes out. Every request is one statement that compares and sets.

Nobody else writes meanwhile: what a quota bounds is read once for many new tasks, and counted on from there.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from attrs import define, field

from mcp_tasks_adapters.stores.rows import BrokenRecordError, Row, Rows
from mcp_tasks_adapters.stores.sqlite.schema import STEPS, version_of
from mcp_tasks_proto.effects import Delete, Quota, Save
from mcp_tasks_proto.inputs import SaveConflict, Saved, SaveFailed, SaveRefused

__all__ = ["FencedError", "Outcome", "Request", "Transaction"]

Request = tuple[Save | Delete, Row | None]
"""What is asked for, with the row that it wants; a save without one cannot be written."""
Outcome = Saved | SaveConflict | SaveRefused | SaveFailed

REMOVALS_KEPT: Final = 20_000
"""How many removals a watcher may be behind. Who is further behind finds the tasks gone when it asks."""

# A new task has no number among the changes: nobody can be waiting for news of it.
INSERT: Final = """
    INSERT INTO tasks (task_id, version, owner, node, expires_at_ms, payload_bytes, record, writer)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (task_id) DO NOTHING
"""
UPDATE: Final = """
    UPDATE tasks SET version = ?, node = ?, expires_at_ms = ?, payload_bytes = ?, record = ?,
        writer = ?, change = ?
    WHERE task_id = ? AND version = ?
        AND (SELECT tasks FROM totals) <= ?
        AND coalesce((SELECT tasks FROM owners WHERE owner = ?), 0) <= ?
        AND (SELECT payload_bytes FROM totals) - payload_bytes + ? <= ?
"""
DELETE: Final = "DELETE FROM tasks WHERE task_id = ? AND version = ?"
NOTE_REMOVAL: Final = "INSERT INTO removals (change, writer, task_id) VALUES (?, ?, ?)"
TRIM_REMOVALS: Final = "DELETE FROM removals WHERE change <= ?"
CURRENT: Final = "SELECT version, record FROM tasks WHERE task_id = ?"
USED: Final = "SELECT totals.tasks, coalesce(owners.tasks, 0) FROM totals LEFT JOIN owners ON owner = ?"
TOTALS: Final = "SELECT tasks, payload_bytes FROM totals"
OWNED: Final = "SELECT tasks FROM owners WHERE owner = ?"
LAST_CHANGE: Final = "SELECT change FROM totals"
NOTE_CHANGE: Final = "UPDATE totals SET change = ?"
NOTE_WRITE: Final = "UPDATE nodes SET writes = writes + 1 WHERE writer = ?"

NO_QUOTA: Final = Quota(tasks=2**62, tasks_per_principal=2**62, task_bytes=2**62)


class FencedError(Exception):
    """This node must not write to this file any more; the message says why."""


@define(eq=False)
class _Used:
    """What there is of that which a quota bounds."""

    tasks: int
    payload_bytes: int
    owned: dict[str, int] = field(factory=dict)
    """How many tasks an owner has, of those that were asked about."""

    def leaves(self, quota: Quota, row: Row) -> bool:
        """Whether there is room for a new task."""
        return (
            self.tasks < quota.tasks
            and self.owned[row.owner] < quota.tasks_per_principal
            and self.payload_bytes + row.payload_bytes <= quota.task_bytes
        )

    def add(self, row: Row) -> None:
        """Count a new task."""
        self.tasks += 1
        self.owned[row.owner] += 1
        self.payload_bytes += row.payload_bytes


@define(eq=False)
class Transaction:
    """A transaction that was begun on ``connection``. Whatever it raises, it has to be rolled back.

    Raises :class:`sqlite3.Error`, and :class:`FencedError` when it is made.
    """

    connection: sqlite3.Connection
    rows: Rows
    writer: int
    _last_change: int = field(init=False, default=0)
    _change: int = field(init=False, default=0)
    _removed: bool = field(init=False, default=False)
    _used: _Used | None = field(init=False, default=None)
    """Known while there are only new tasks."""

    def __attrs_post_init__(self) -> None:
        if version_of(self.connection) != len(STEPS):
            raise FencedError(
                "the file was migrated by a later version of this package: "
                "restart this process with that version"
            )
        (self._last_change,) = self.connection.execute(LAST_CHANGE).fetchone()
        self._change = self._last_change

    def take(self, request: Request) -> Outcome:
        """Carry out one request."""
        effect, row = request
        if isinstance(effect, Delete):
            return self._delete(effect)
        if row is None:
            return SaveFailed(effect.token)
        saved = self._create(effect, row) if effect.expected_version is None else self._update(effect, row)
        return Saved(effect.token) if saved else self._not_saved(effect, row)

    def finish(self) -> None:
        """Write down what the transaction was, before it is committed."""
        if self.connection.execute(NOTE_WRITE, (self.writer,)).rowcount != 1:
            raise FencedError("this node was taken for gone by the others: restart this process")
        if self._change != self._last_change:
            self.connection.execute(NOTE_CHANGE, (self._change,))
        if self._removed:
            self.connection.execute(TRIM_REMOVALS, (self._change - REMOVALS_KEPT,))

    def _create(self, save: Save, row: Row) -> bool:
        used = self._used_for(row.owner)
        if save.quota is not None and not used.leaves(save.quota, row):
            return False
        if not self.connection.execute(INSERT, (*row, self.writer)).rowcount:
            return False
        used.add(row)
        return True

    def _update(self, save: Save, row: Row) -> bool:
        quota = save.quota or NO_QUOTA
        written = row.version, row.node, row.expires_at_ms, row.payload_bytes, row.record
        noted, which = (self.writer, self._change + 1), (row.task_id, save.expected_version)
        bounds = quota.tasks, row.owner, quota.tasks_per_principal, row.payload_bytes, quota.task_bytes
        updated = self.connection.execute(UPDATE, (*written, *noted, *which, *bounds)).rowcount
        self._change += updated
        self._used = None
        return bool(updated)

    def _delete(self, delete: Delete) -> Outcome:
        cursor = self.connection.execute(DELETE, (delete.task_id, delete.expected_version))
        if not cursor.rowcount:
            return self._conflict(delete, delete.task_id, self._current(delete.task_id))
        self._change += 1
        self._removed = True
        self._used = None
        self.connection.execute(NOTE_REMOVAL, (self._change, self.writer, delete.task_id))
        return Saved(delete.token)

    def _used_for(self, owner: str) -> _Used:
        """Return what there is now, of this owner too."""
        if self._used is None:
            self._used = _Used(*self.connection.execute(TOTALS).fetchone())
        if owner not in self._used.owned:
            found = self.connection.execute(OWNED, (owner,)).fetchone()
            self._used.owned[owner] = found[0] if found else 0
        return self._used

    # -- why not -------------------------------------------------------------------------------------------

    def _not_saved(self, save: Save, row: Row) -> Outcome:
        current = self._current(row.task_id)
        if (None if current is None else current[0]) != save.expected_version:
            return self._conflict(save, row.task_id, current)
        tasks, owned = self.connection.execute(USED, (row.owner,)).fetchone()
        quota = save.quota or NO_QUOTA
        more = int(current is None)
        if tasks + more > quota.tasks:
            return SaveRefused(save.token, "tasks")
        if owned + more > quota.tasks_per_principal:
            return SaveRefused(save.token, "tasks_per_principal")
        return SaveRefused(save.token, "task_bytes")

    def _conflict(
        self, effect: Save | Delete, task_id: str, current: tuple[int, str | bytes] | None
    ) -> Outcome:
        if current is None:
            return SaveConflict(effect.token, None)
        try:
            return SaveConflict(effect.token, self.rows.record(task_id, *current))
        except BrokenRecordError:
            return SaveFailed(effect.token)

    def _current(self, task_id: str) -> tuple[int, str | bytes] | None:
        """Return the version and the record that a task has now."""
        found: tuple[int, str | bytes] | None
        found = self.connection.execute(CURRENT, (task_id,)).fetchone()
        return found
