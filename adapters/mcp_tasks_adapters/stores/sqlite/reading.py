"""Reading: on a connection of its own, which sees what was committed last and waits for no writer."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import define, field

from mcp_tasks_adapters.stores.losses import LOST_SLICE, LostWork, Rounds
from mcp_tasks_adapters.stores.rows import BrokenRecordError, Rows, owner_of, remains
from mcp_tasks_adapters.stores.sqlite.nodes import is_gone
from mcp_tasks_adapters.stores.sqlite.schema import connect, what_is_wrong
from mcp_tasks_adapters.storing import News
from mcp_tasks_proto.effects import FindExpired, ListTasks, Load
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    LoadFailed,
    RecordChanged,
    RecordRemoved,
    TasksListed,
)
from mcp_tasks_proto.records import TaskRecord

__all__ = ["Reader"]

CHANGES_SLICE: Final = 4096
"""How many changes are looked at at once."""

RECORD: Final = "SELECT version, record FROM tasks WHERE task_id = ?"
EXPIRED: Final = """
    SELECT task_id, version, owner, expires_at_ms FROM tasks
    WHERE expires_at_ms <= ? ORDER BY expires_at_ms, id LIMIT ?
"""
NEXT_EXPIRY: Final = """
    SELECT expires_at_ms FROM tasks
    WHERE expires_at_ms IS NOT NULL ORDER BY expires_at_ms, id LIMIT 1 OFFSET ?
"""
OWNED: Final = """
    SELECT task_id, version, record FROM tasks
    WHERE owner = ? AND task_id > ? ORDER BY task_id LIMIT ?
"""
LAST_CHANGE: Final = "SELECT change FROM totals"
CHANGED: Final = """
    SELECT change, task_id FROM tasks WHERE change > ? AND writer <> ?
    UNION ALL SELECT change, task_id FROM removals WHERE change > ? AND writer <> ?
    ORDER BY change LIMIT ?
"""
NODES: Final = "SELECT node FROM nodes"
OTHER_NODES: Final = "SELECT node FROM nodes WHERE node <> ?"
LOST: Final = "SELECT id, task_id FROM tasks WHERE node = ? AND id > ? ORDER BY id LIMIT ?"

_log = logging.getLogger("mcp_tasks_adapters")


@define(eq=False, kw_only=True)
class Reader:
    """Reads on a connection of its own, which it opens anew after any trouble. For one thread.

    ``node`` and ``writer`` are who writes from here.
    """

    path: Path
    rows: Rows
    node: str
    writer: int
    _connection: sqlite3.Connection | None = field(init=False, default=None)
    _last_change: int | None = field(init=False, default=None)
    """The last change that was followed; ``None``: those until now are no news."""
    _data_version: int | None = field(init=False, default=None)
    """What SQLite said then. It says something else once anybody else has written."""
    _rounds: Rounds[int] = field(init=False, factory=lambda: Rounds(0))
    _trouble: str | None = field(init=False, default=None)

    def close(self) -> None:
        """Let go of the connection; the next read opens another."""
        connection, self._connection = self._connection, None
        self._data_version = None  # which each connection counts by itself
        if connection is not None:
            connection.close()

    def load(self, load: Load) -> Loaded | LoadFailed:
        """Answer with the newest record."""
        try:
            return Loaded(load.token, self._record(load.task_id))
        except Exception as error:
            self._report(error)
            return LoadFailed(load.token)

    def find_expired(self, find: FindExpired) -> ExpiredFound | LoadFailed:
        """Answer with a slice of what may go."""
        try:
            with self._snapshot() as connection:
                found = connection.execute(EXPIRED, (find.now_ms, find.limit)).fetchall()
                later = connection.execute(NEXT_EXPIRY, (len(found),)).fetchone()
        except Exception as error:
            self._report(error)
            return LoadFailed(find.token)
        return ExpiredFound(find.token, [remains(*row) for row in found], later[0] if later else None)

    def list_tasks(self, wanted: ListTasks) -> TasksListed | LoadFailed:
        """Answer with the next tasks of one principal; there are more if one more is found."""
        try:
            owner, after = owner_of(wanted.principal), wanted.after or ""
            found = self._connected().execute(OWNED, (owner, after, wanted.limit + 1)).fetchall()
            records = [self.rows.record(*row) for row in found[: wanted.limit]]
        except Exception as error:
            self._report(error)
            return LoadFailed(wanted.token)
        return TasksListed(wanted.token, records, len(found) > wanted.limit)

    # -- what others did -----------------------------------------------------------------------------------

    def follow(self) -> Sequence[str]:
        """Return the tasks that others changed or removed since the last time; at first, none."""
        try:
            data_version = self._connected().execute("PRAGMA data_version").fetchone()[0]
            if data_version == self._data_version:
                return ()
            with self._snapshot() as connection:
                (last,) = connection.execute(LAST_CHANGE).fetchone()
                since = last if self._last_change is None else self._last_change
                news = since, self.writer
                changed = connection.execute(CHANGED, (*news, *news, CHANGES_SLICE)).fetchall()
        except Exception as error:
            self._report(error)
            return ()
        if len(changed) < CHANGES_SLICE:
            self._last_change, self._data_version = last, data_version
        else:
            self._last_change = changed[-1][0]
        return list(dict.fromkeys(task_id for _, task_id in changed))

    def news(self, task_ids: Iterable[str]) -> tuple[Sequence[News], Sequence[str]]:
        """Return how these tasks stand now, and those of which that cannot be told at the moment."""
        news: list[News] = []
        untold: list[str] = []
        for task_id in task_ids:
            try:
                record = self._record(task_id)
            except Exception as error:
                self._report(error)
                # Who cannot be read now may be readable later; what is broken stays so, until it is changed.
                if isinstance(error, sqlite3.Error):
                    untold.append(task_id)
            else:
                news.append(RecordRemoved(task_id) if record is None else RecordChanged(record))
        return news, untold

    def nodes(self) -> Collection[str]:
        """Return the names of all nodes that are known, dead ones included. Raises :class:`sqlite3.Error`."""
        return {node for (node,) in self._connected().execute(NODES).fetchall()}

    def lost_work(self) -> LostWork:
        """Return what runs nowhere, as far as it was not told in this round; then a new round begins."""
        try:
            connection = self._connected()
            nodes = [node for (node,) in connection.execute(OTHER_NODES, (self.node,)).fetchall()]
            gone = [node for node in nodes if self._rounds.under_way(node) or is_gone(self.path, node)]
            return self._rounds.tell(
                gone, lambda node, since: connection.execute(LOST, (node, since, LOST_SLICE)).fetchall()
            )
        except Exception as error:
            self._report(error)
            return LostWork((), False, ())

    # -- the connection ------------------------------------------------------------------------------------

    def _record(self, task_id: str) -> TaskRecord | None:
        found = self._connected().execute(RECORD, (task_id,)).fetchone()
        self._trouble = None
        return None if found is None else self.rows.record(task_id, *found)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self.path)
        return self._connection

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Let several statements see the same state of the file."""
        connection = self._connected()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")

    def _report(self, error: Exception) -> None:
        """Start afresh, and log what is wrong; once, however often it is met."""
        if isinstance(error, BrokenRecordError):
            return
        if isinstance(error, sqlite3.Error):
            self.close()
        trouble = what_is_wrong(error)
        if trouble != self._trouble:
            self._trouble = trouble
            _log.error("the store cannot read: %s", trouble)
