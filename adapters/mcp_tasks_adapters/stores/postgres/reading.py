"""Reading: on a connection of its own, all that waits at the same time in one round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from attrs import define, field

from mcp_tasks_adapters.stores.front import Answer, Read
from mcp_tasks_adapters.stores.losses import LOST_SLICE, LostWork, Rounds
from mcp_tasks_adapters.stores.postgres.link import Link
from mcp_tasks_adapters.stores.postgres.place import UnreachableError
from mcp_tasks_adapters.stores.postgres.schema import owner_column
from mcp_tasks_adapters.stores.rows import BrokenRecordError, Rows, owner_of, remains
from mcp_tasks_adapters.storing import News
from mcp_tasks_proto.effects import FindExpired, ListTasks, Load
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    LoadFailed,
    RecordChanged,
    RecordRemoved,
    StoreInput,
    TasksListed,
)
from mcp_tasks_proto.records import TaskRecord

__all__ = ["Reader"]

RECORDS_SLICE: Final = 64
"""How many records are read at once: they may be large."""
CHANGES_SLICE: Final = 4096
"""How many changes are looked at at once."""
LAST_MS: Final = 2**63 - 1

RECORDS: Final = "SELECT task_id, version, record, sealed FROM tasks WHERE task_id = ANY(%s)"
# One more than wanted, expired or not: when that one expires is the other half of the answer.
EXPIRING: Final = """
    SELECT task_id, version, owner, expires_at_ms FROM tasks
    WHERE expires_at_ms IS NOT NULL ORDER BY expires_at_ms LIMIT %s
"""
OWNED: Final = """
    SELECT task_id, version, record, sealed FROM tasks
    WHERE owner = %s AND task_id > %s ORDER BY task_id LIMIT %s
"""
LAST_CHANGE: Final = "SELECT change FROM totals"
CHANGED: Final = """
    (SELECT change, writer, task_id FROM tasks WHERE change > %s ORDER BY change LIMIT %s)
    UNION ALL
    (SELECT change, writer, task_id FROM removals WHERE change > %s ORDER BY change LIMIT %s)
    ORDER BY change LIMIT %s
"""
# Not those that are in the middle of a write: that one must be over before anything is said of them.
GONE: Final = """
    SELECT node FROM nodes WHERE lease_until <= clock_timestamp() AND NOT settled AND writer <> %s
    FOR UPDATE SKIP LOCKED
"""
LOST: Final = """
    SELECT task_id, task_id FROM tasks WHERE node = %s AND task_id > %s ORDER BY task_id LIMIT %s
"""
SETTLE: Final = """
    UPDATE nodes SET settled = true WHERE node = %s AND lease_until <= clock_timestamp()
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.node = nodes.node)
"""

Stored = tuple[int, str | bytes]


@define(eq=False, kw_only=True)
class Reader:
    """Reads through ``link``, for the node whose number is ``writer``. For one thread."""

    link: Link
    rows: Rows
    writer: int
    _last_change: int | None = field(init=False, default=None)
    """The last change that was followed; ``None``: those until now are no news."""
    _rounds: Rounds[str] = field(init=False, factory=lambda: Rounds(""))

    def carry_out(self, reads: Sequence[Read]) -> Sequence[tuple[Answer, StoreInput]]:
        """Answer all of this."""
        stored = self._stored([read.effect.task_id for read in reads if isinstance(read.effect, Load)])
        return [(read.answer, self._carry_out(read.effect, stored)) for read in reads]

    def _carry_out(
        self, effect: Load | FindExpired | ListTasks, stored: Mapping[str, Stored | None]
    ) -> StoreInput:
        match effect:
            case Load():
                return self._loaded(effect, stored)
            case FindExpired():
                return self._find_expired(effect)
            case ListTasks():
                return self._list_tasks(effect)

    def _loaded(self, load: Load, stored: Mapping[str, Stored | None]) -> Loaded | LoadFailed:
        if load.task_id not in stored:
            return LoadFailed(load.token)
        try:
            return Loaded(load.token, self._record(load.task_id, stored[load.task_id]))
        except BrokenRecordError:
            return LoadFailed(load.token)

    def _find_expired(self, find: FindExpired) -> ExpiredFound | LoadFailed:
        try:
            rows = self._read(EXPIRING, (find.limit + 1,))
        except (UnreachableError, psycopg.Error):
            return LoadFailed(find.token)
        expired = [row for row in rows[: find.limit] if row[3] <= find.now_ms]
        later = rows[len(expired)][3] if len(rows) > len(expired) else None
        return ExpiredFound(find.token, [remains(*row) for row in expired], later)

    def _list_tasks(self, wanted: ListTasks) -> TasksListed | LoadFailed:
        """Answer with the next tasks of one principal; there are more if one more is found."""
        owner = owner_column(owner_of(wanted.principal))
        try:
            rows = self._read(OWNED, (owner, wanted.after or "", wanted.limit + 1))
            records = [
                self.rows.record(task_id, version, record or sealed)
                for task_id, version, record, sealed in rows[: wanted.limit]
            ]
        except (
            UnreachableError,
            psycopg.Error,
            ValueError,
        ):  # a record is broken, or the question no text
            return LoadFailed(wanted.token)
        return TasksListed(wanted.token, records, len(rows) > wanted.limit)

    # -- what others did -----------------------------------------------------------------------------------

    def follow(self) -> tuple[Sequence[str], bool]:
        """Return the tasks that others changed or removed since the last time, and whether that is all.

        At first there are none. Raises :class:`UnreachableError` and :class:`psycopg.Error`.
        """
        if self._last_change is None:
            ((self._last_change,),) = self._read(LAST_CHANGE)
            return (), True
        since = self._last_change
        rows = self._read(CHANGED, (since, CHANGES_SLICE, since, CHANGES_SLICE, CHANGES_SLICE))
        if rows:
            self._last_change = rows[-1][0]
        others = (task_id for _, writer, task_id in rows if writer != self.writer)
        return list(dict.fromkeys(others)), len(rows) < CHANGES_SLICE

    def news(self, task_ids: Sequence[str]) -> tuple[Sequence[News], Sequence[str]]:
        """Return how these tasks stand now, and those of which that cannot be told at the moment."""
        stored = self._stored(list(dict.fromkeys(task_ids)))
        news: list[News] = []
        for task_id, found in stored.items():
            try:
                record = self._record(task_id, found)
            except BrokenRecordError:
                pass  # it stays so, until it is changed
            else:
                news.append(RecordRemoved(task_id) if record is None else RecordChanged(record))
        return news, [task_id for task_id in task_ids if task_id not in stored]

    def lost_work(self) -> LostWork:
        """Return what runs nowhere, as far as it was not told in this round; then a new round begins.

        Raises :class:`UnreachableError` and :class:`psycopg.Error`.
        """
        gone = [node for (node,) in self._read(GONE, (self.writer,))]
        lost = self._rounds.tell(gone, lambda node, since: self._read(LOST, (node, since, LOST_SLICE)))
        for node in lost.forgettable:
            self._read(SETTLE, (node,))
        return lost

    # -- records -------------------------------------------------------------------------------------------

    def _stored(self, task_ids: Sequence[str]) -> dict[str, Stored | None]:
        """Return what is stored of these tasks; of some it may not be known."""
        stored: dict[str, Stored | None] = {}
        for start in range(0, len(task_ids), RECORDS_SLICE):
            wanted = task_ids[start : start + RECORDS_SLICE]
            try:
                rows = self._read(RECORDS, ([one for one in wanted if _is_text(one)],))
            except (UnreachableError, psycopg.Error):
                continue
            stored |= dict.fromkeys(wanted)
            stored |= {task_id: (version, record or sealed) for task_id, version, record, sealed in rows}
        return stored

    def _record(self, task_id: str, stored: Stored | None) -> TaskRecord | None:
        return None if stored is None else self.rows.record(task_id, *stored)

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Read; once more where the connection was lost, which may have been long ago."""
        try:
            return self.link.run(query, values)
        except psycopg.OperationalError:
            if self.link.connected:
                raise
            return self.link.run(query, values)


def _is_text(task_id: str) -> bool:
    """Whether PostgreSQL has words for it; what it has none for it does not hold either."""
    return "\0" not in task_id and task_id.encode(errors="ignore").decode() == task_id
