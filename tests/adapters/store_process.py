"""A process of its own that works on a store: ``python -m tests.adapters.store_process STORE PREFIX``.

The store is an SQLite file, or the schema of a PostgreSQL database: ``postgres:DSN SCHEMA``.

It makes tasks, changes them, ends some and removes some, as fast as it can, many at a time; and says on
stdout, a line for each, what was acknowledged: the id and the version, 0 for removed. Until it is killed.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from itertools import count
from pathlib import Path

from mcp_tasks_adapters.stores import SqliteStore
from mcp_tasks_adapters.stores.postgres import PostgresStore
from mcp_tasks_adapters.storing import Store

from mcp_tasks_proto.effects import Delete, Save
from mcp_tasks_proto.inputs import Saved, StoreInput
from mcp_tasks_proto.lifecycle import Status
from tests.adapters.store_harness import Bench, record

AT_ONCE = 20


class Clerk:
    """Has a number of tasks under way."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._bench = Bench(store)
        self._bench.open()
        self._names = (f"{prefix}-{number}" for number in count())

    def work(self) -> None:
        """Never return."""
        for _ in range(AT_ONCE):
            self._create()
        self._bench.until(lambda: False)

    def _create(self) -> None:
        name = next(self._names)
        fresh = record(name, node=self._bench.store.node, ttl_ms=None)
        self._bench.store.submit(Save(fresh, None, 1), partial(self._acknowledged, name, 1))

    def _acknowledged(self, name: str, version: int, answer: StoreInput) -> None:
        assert isinstance(answer, Saved), answer
        os.write(1, f"{name} {version}\n".encode())  # a line at once, or not at all
        number = int(name.rpartition("-")[2])
        store = self._bench.store
        if version == 0 or (version == 3 and number % 3):
            self._create()
        elif version == 3:
            store.submit(Delete(name, 3, 0), partial(self._acknowledged, name, 0))
        else:
            ended = {"status": Status.COMPLETED, "node": None} if version == 2 else {"node": store.node}
            after = record(name, version=version + 1, ttl_ms=None, **ended)
            store.submit(Save(after, version, 1), partial(self._acknowledged, name, version + 1))


def _store(place: str, schema: str = "") -> Store:
    if schema:
        return PostgresStore(place.removeprefix("postgres:"), schema=schema, lease_ms=1_500)
    return SqliteStore(Path(place))


if __name__ == "__main__":
    Clerk(_store(*sys.argv[1:-1]), sys.argv[-1]).work()
