"""Records in this process's memory: gone with it, seen by nobody else."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect
from mcp_tasks_proto.effects import Delete, FindExpired, ListTasks, Load, Quota, Save
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    RecordChanged,
    RecordRemoved,
    SaveConflict,
    Saved,
    SaveRefused,
    StoreInput,
    TasksListed,
)
from mcp_tasks_proto.records import TaskRecord

__all__ = ["MemoryStore"]

_HEAP_SLACK = 64
"""Stale expiry entries that are always tolerated; beyond, as many as there are live ones."""


class MemoryStore:
    """A :class:`~mcp_tasks_adapters.storing.Store` that answers within :meth:`submit`.

    What an operation costs does not grow with the number of records, but for the logarithm in keeping
    expiries in order. Records are kept as they come, without a copy. Several drivers on one loop may share
    one, and are told of each other's changes.
    """

    node = None

    def __init__(self) -> None:
        self._records: dict[str, TaskRecord] = {}
        self._per_principal: dict[str | None, int] = {}
        # The ids of each principal's records, in order. Of records without one there is never a list.
        self._owned: dict[str, list[str]] = {}
        self._bytes = 0
        # (expiry, task id) of every record that has one, and stale entries of removed or changed records.
        self._expiries: list[tuple[int, str]] = []
        self._expiring = 0
        self._watchers: dict[object, tuple[Callable[[str], bool], Callable[[News], None]]] = {}
        self._actions: dict[type, Callable[..., StoreInput]] = {
            Load: self._load,
            Save: self._save,
            Delete: self._delete,
            FindExpired: self._find_expired,
            ListTasks: self._list,
        }

    def __len__(self) -> int:
        """Return how many records there are, expired ones that nobody removed yet included."""
        return len(self._records)

    @property
    def payload_bytes(self) -> int:
        """The sum of the records' ``payload_bytes``."""
        return self._bytes

    async def open(self, loop: LoopThread) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do: the records are there until this object is gone."""

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        """Carry out ``effect`` and call ``answer`` before returning."""
        outcome = self._actions[type(effect)](effect)
        answer(outcome)
        if len(self._watchers) > 1 and isinstance(outcome, Saved):
            match effect:
                case Save(record=record):
                    self._tell(record.task_id, RecordChanged(record))
                case Delete(task_id=task_id):
                    self._tell(task_id, RecordRemoved(task_id))

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> Callable[[], None]:
        """Tell ``hear`` of changes, once somebody else watches too: who is alone needs no news."""
        key = object()
        self._watchers[key] = concerns, hear

        def unwatch() -> None:
            self._watchers.pop(key, None)

        return unwatch

    def _tell(self, task_id: str, news: News) -> None:
        for concerns, hear in list(self._watchers.values()):
            if concerns(task_id):
                hear(news)

    def _load(self, load: Load) -> Loaded:
        return Loaded(load.token, self._records.get(load.task_id))

    def _save(self, save: Save) -> StoreInput:
        record = save.record
        current = self._records.get(record.task_id)
        if (None if current is None else current.version) != save.expected_version:
            return SaveConflict(save.token, current)
        if save.quota is not None and (limit := self._exceeded(save.quota, record, current)):
            return SaveRefused(save.token, limit)
        if current is None:
            self._add(record)
        else:
            self._records[record.task_id] = record  # of the same owner, who never changes
            self._bytes += record.payload_bytes - current.payload_bytes
            if current.ttl_ms == record.ttl_ms:  # counted from the same moment
                return Saved(save.token)
            self._expiring += (record.ttl_ms is not None) - (current.ttl_ms is not None)
        self._plan_expiry(record)
        return Saved(save.token)

    def _exceeded(self, quota: Quota, record: TaskRecord, current: TaskRecord | None) -> str | None:
        """Return the name of the bound that ``record`` in place of ``current`` would break."""
        tasks, owned, size = len(self._records), self._per_principal.get(record.principal, 0), self._bytes
        if current is not None:
            tasks, owned, size = tasks - 1, owned - 1, size - current.payload_bytes
        if tasks + 1 > quota.tasks:
            return "tasks"
        if owned + 1 > quota.tasks_per_principal:
            return "tasks_per_principal"
        if size + record.payload_bytes > quota.task_bytes:
            return "task_bytes"
        return None

    def _delete(self, delete: Delete) -> StoreInput:
        current = self._records.get(delete.task_id)
        if current is None or current.version != delete.expected_version:
            return SaveConflict(delete.token, current)
        self._forget(current)
        if current.principal is not None:
            self._disown(current.principal, current.task_id)
        return Saved(delete.token)

    def _disown(self, principal: str, task_id: str) -> None:
        owned = self._owned[principal]
        del owned[bisect_left(owned, task_id)]
        if not owned:
            del self._owned[principal]

    def _list(self, wanted: ListTasks) -> TasksListed:
        owned = self._owned.get(wanted.principal, [])
        start = 0 if wanted.after is None else bisect_right(owned, wanted.after)
        end = start + wanted.limit
        return TasksListed(
            wanted.token, [self._records[task_id] for task_id in owned[start:end]], len(owned) > end
        )

    # -- sums ----------------------------------------------------------------------------------------------

    def _add(self, record: TaskRecord) -> None:
        principal = record.principal
        self._records[record.task_id] = record
        self._per_principal[principal] = self._per_principal.get(principal, 0) + 1
        self._bytes += record.payload_bytes
        self._expiring += record.ttl_ms is not None
        if principal is not None:
            insort(self._owned.setdefault(principal, []), record.task_id)

    def _forget(self, record: TaskRecord) -> None:
        del self._records[record.task_id]
        self._bytes -= record.payload_bytes
        self._expiring -= record.ttl_ms is not None
        owned = self._per_principal[record.principal] - 1
        if owned:
            self._per_principal[record.principal] = owned
        else:
            del self._per_principal[record.principal]

    # -- expiry --------------------------------------------------------------------------------------------

    def _plan_expiry(self, record: TaskRecord) -> None:
        """Note when ``record`` expires; when most notes are stale by then, write them all anew."""
        expiry = record.expires_at_ms
        if expiry is not None:
            heappush(self._expiries, (expiry, record.task_id))
        if len(self._expiries) > 2 * self._expiring + _HEAP_SLACK:
            self._expiries = [
                (record.expires_at_ms, task_id)
                for task_id, record in self._records.items()
                if record.expires_at_ms is not None
            ]
            heapify(self._expiries)

    def _next_to_expire(self) -> TaskRecord | None:
        """Return the record of the first entry, once stale entries before it are gone."""
        while self._expiries:
            expiry, task_id = self._expiries[0]
            record = self._records.get(task_id)
            if record is not None and record.expires_at_ms == expiry:
                return record
            heappop(self._expiries)
        return None

    def _find_expired(self, find: FindExpired) -> ExpiredFound:
        found: dict[str, TaskRecord] = {}
        first = self._next_to_expire()
        while first is not None and first.expired(find.now_ms) and len(found) < find.limit:
            # Taken off for the moment, so that the next one comes to the front.
            heappop(self._expiries)
            found[first.task_id] = first
            first = self._next_to_expire()
        while first is not None and first.task_id in found:
            # A second entry of the same record: its lifetime was changed and changed back.
            heappop(self._expiries)
            first = self._next_to_expire()
        next_expiry_ms = None if first is None else first.expires_at_ms
        for record in found.values():
            heappush(self._expiries, (record.expires_at_ms or 0, record.task_id))
        return ExpiredFound(find.token, tuple(found.values()), next_expiry_ms)
