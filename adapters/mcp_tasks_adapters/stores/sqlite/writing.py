"""Writing: what waits goes into one transaction, and is answered when that is on disk.

A transaction costs a sync of the disk however much is in it. While one is under way, what is asked for
meanwhile gathers, and makes up the next (group commit): durability costs little more for many callers than
for one, and a single caller waits for nothing but its own.

Each request stands or falls alone (rule 3). That needs no savepoints: a request changes one row, by one
statement, and SQLite carries out a statement whole or not at all. If a transaction fails as such - a full
disk, say - its requests are done over one by one, so that only those fail that cannot be done.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Final

from attrs import define, field

from mcp_tasks_adapters.stores.rows import Rows
from mcp_tasks_adapters.stores.sqlite.schema import connect, is_locked, what_is_wrong
from mcp_tasks_adapters.stores.sqlite.transaction import FencedError, Outcome, Request, Transaction
from mcp_tasks_proto.effects import Delete, Save
from mcp_tasks_proto.inputs import Saved, SaveFailed

__all__ = ["Writer"]

FIND_OUT_S: Final = 0.2
"""Between attempts to find out whether a transaction went through."""

REGISTER: Final = "INSERT INTO nodes (node) VALUES (?)"
WRITES: Final = "SELECT writes FROM nodes WHERE writer = ?"
FORGET: Final = "DELETE FROM nodes WHERE node = ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE node = ?)"

_log = logging.getLogger("mcp_tasks_adapters")


class _DoubtError(Exception):
    """A commit failed, and nobody knows whether it went through all the same."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes
        """What came of the requests if it did."""


@define(eq=False, kw_only=True)
class Writer:
    """Writes on a connection of its own, which it opens anew after any trouble. For one thread.

    ``lock_s`` is how long other processes may keep everybody from writing until that is a failure; no longer
    than until ``closing`` is set.
    """

    path: Path
    rows: Rows
    lock_s: float
    closing: Event
    number: int = field(init=False, default=0)
    """The number of this writer in the file."""
    _writes: int = field(init=False, default=0)
    """How many of its transactions went through."""
    _connection: sqlite3.Connection | None = field(init=False, default=None)
    _trouble: str | None = field(init=False, default=None)
    """What was said of it last in the log."""

    def register(self, node: str) -> None:
        """Write down that there is this node, which writes through this object alone.

        Raises :class:`sqlite3.Error`.
        """
        connection = self._begin()
        self.number = connection.execute(REGISTER, (node,)).lastrowid or 0
        connection.execute("COMMIT")

    def forget(self, node: str) -> bool:
        """Forget a node that is gone, unless a task names it still; whether it is forgotten."""
        try:
            connection = self._begin()
            forgotten = connection.execute(FORGET, (node, node)).rowcount == 1
            connection.execute("COMMIT")
        except sqlite3.Error:
            self.close()
            return False
        return forgotten

    def close(self) -> None:
        """Let go of the connection; the next write opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()  # which rolls back

    def carry_out(self, effects: Sequence[Save | Delete]) -> Sequence[Outcome]:
        """Do all of this, as far as it can be done; return what came of each, once it is on disk."""
        # Before the transaction begins: other processes need not wait for this.
        return self._attempt([self._request(effect) for effect in effects])

    def _request(self, effect: Save | Delete) -> Request:
        if isinstance(effect, Delete):
            return effect, None
        try:
            return effect, self.rows.row(effect.record)
        except (TypeError, ValueError, RecursionError) as error:
            _log.error("a record cannot be written as JSON: %s", type(error).__name__)
            return effect, None

    def _attempt(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        try:
            return self._transact(requests)
        except _DoubtError as doubt:
            if self._went_through():
                return doubt.outcomes
            one_by_one = True
        except Exception as error:
            self._report(error)
            one_by_one = not isinstance(error, FencedError) and not is_locked(error)
        if one_by_one and len(requests) > 1:
            return [outcome for request in requests for outcome in self._attempt([request])]
        return [SaveFailed(effect.token) for effect, _ in requests]

    def _transact(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        connection = self._begin()
        try:
            transaction = Transaction(connection, self.rows, self.number)
            outcomes = [transaction.take(request) for request in requests]
            if not any(isinstance(outcome, Saved) for outcome in outcomes):
                connection.execute("ROLLBACK")
                return outcomes
            transaction.finish()
        except BaseException:
            self.close()
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._report(error)
            self.close()
            raise _DoubtError(outcomes) from error
        self._writes += 1
        self._trouble = None
        return outcomes

    def _report(self, error: Exception) -> None:
        """Log what is wrong; once, however often it is met."""
        trouble = str(error) if isinstance(error, FencedError) else what_is_wrong(error)
        if trouble != self._trouble:
            self._trouble = trouble
            _log.error("the store cannot write: %s", trouble)

    def _begin(self) -> sqlite3.Connection:
        """Begin a transaction, as soon as no other process is in one. Raises :class:`sqlite3.Error`."""
        patience = monotonic() + self.lock_s
        while True:
            try:
                if self._connection is None:
                    self._connection = connect(self.path)
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if not is_locked(error):
                    self.close()
                elif not self.closing.is_set() and monotonic() < patience:
                    continue
                raise
            return self._connection

    def _went_through(self) -> bool:
        """Find out whether the last transaction is in the file; nobody is told anything before (rule 3)."""
        while True:
            try:
                found = self._begin().execute(WRITES, (self.number,)).fetchone()
            except sqlite3.Error:
                found = None
            self.close()
            if found is not None:
                went_through: bool = found[0] > self._writes
                self._writes = found[0]
                return went_through
            if self.closing.wait(FIND_OUT_S):
                return False
