"""The store itself."""

from __future__ import annotations

from typing import Final

import psycopg

from mcp_tasks_adapters.stores.postgres.place import Place, UnreachableError, what_is_wrong
from mcp_tasks_adapters.stores.postgres.session import Session
from mcp_tasks_adapters.stores.rows import Rows
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.stores.threaded import ThreadedStore
from mcp_tasks_adapters.storing import LoopThread, StoreError

__all__ = ["SCHEMA", "PostgresStore"]

SCHEMA: Final = "mcp_tasks"


class PostgresStore(ThreadedStore):
    """A :class:`~mcp_tasks_adapters.storing.Store` in a PostgreSQL schema, made if there is none.

    ``dsn`` is a URI or a connection string as libpq takes them; what it leaves open may come from libpq's
    variables, service file and password file. Any number of processes on any number of machines may share the
    schema, with a store object each: every node sees what the others save, and hears of it at once.

    A node holds a lease of ``lease_ms`` by the server's clock, and renews it. One that has not for that long
    is gone to the others, and cannot write until it is back. With ``keys`` records are sealed at rest; ids,
    principals and times are not. ``timeout_ms`` is how long one statement may take. At most ``waiting``
    requests wait at a time; one more fails at once.

    While the server cannot be reached, requests fail, and attempts to reach it are made with growing pauses.
    Only what was being written when the connection was lost waits until it is known what became of it.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = SCHEMA,
        keys: RecordKeys | None = None,
        lease_ms: int = 10_000,
        timeout_ms: int = 5_000,
        waiting: int = 16_384,
    ) -> None:
        """Raises :class:`~mcp_tasks_adapters.storing.StoreError` when ``dsn`` cannot be read."""
        self._place = Place.parse(dsn, schema, timeout_ms / 1000)
        super().__init__(str(self._place))
        self._rows = Rows(keys)
        self._lease_ms = lease_ms
        self._waiting = waiting

    def _new_session(self, loop: LoopThread) -> Session:
        try:
            return Session(
                self._place,
                self._rows,
                loop=loop,
                lease_ms=self._lease_ms,
                most_waiting=self._waiting,
            )
        except UnreachableError as error:
            raise StoreError(f"{self._place} cannot be used: {error}.") from None
        except psycopg.Error as error:
            raise StoreError(f"{self._place} cannot be used: {what_is_wrong(error)}.") from None
