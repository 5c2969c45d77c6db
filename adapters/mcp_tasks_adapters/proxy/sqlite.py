"""A proxy's store in an SQLite file: one proxy at a time, one thread, bindings and ends sealed.

A group of effects is one transaction; their answers come when it is on the disk (PRX.6). As long as the store
is open nobody else can open its file: so whatever ran under another node's name, when it is opened, is gone.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final, NamedTuple

from attrs import evolve

from mcp_tasks_adapters.proxy.storing import (
    LEDGER_FACTOR,
    Answer,
    AssignTask,
    EntriesRead,
    ProxyStoreEffect,
    ProxyStoreFact,
    ReadEntries,
    ReadEntry,
    failed,
)
from mcp_tasks_adapters.stores.rows import KEY_CHECK, owner_of
from mcp_tasks_adapters.stores.sealing import RecordKeys, UnsealError
from mcp_tasks_adapters.stores.sqlite.schema import cannot_be_used
from mcp_tasks_adapters.stores.threads import StoreThread, opened_on_a_thread
from mcp_tasks_adapters.storing import LoopThread, StoreError
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.history import (
    Observation,
    Place,
    TaskEntry,
    assign,
    entry_from_json,
    entry_to_json,
    observe,
)
from mcp_tasks_proto.inputs import Saved, SaveFailed, SaveRefused, WorkLost
from mcp_tasks_proto.legacy.proxy import HandlesListed, ListHandles
from mcp_tasks_proto.proxy import (
    Binding,
    DropTask,
    LoadTask,
    Note,
    Purge,
    SaveBinding,
    SaveSnapshot,
    Snapshot,
    SnapshotKept,
    TaskLoaded,
    TaskQuota,
    binding_from_json,
    binding_to_json,
    first_of,
    snapshot_from_json,
    snapshot_to_json,
)

__all__ = ["SqliteProxyStore"]

APPLICATION_ID: Final = 0x4D435058
"""``MCPX``, in the head of the file: not another program's database, nor one of a server."""
VERSION: Final = 1
MOST_WAITING: Final = 16_384
"""Effects that may wait for the thread; further ones fail at once."""
_LAST_MS: Final = 2**63 - 1
LOST_AT_ONCE: Final = 256
"""Promoted calls of nodes that are gone, told with one purge."""

_log = logging.getLogger("mcp_tasks_adapters")

_OF_PROJECT: Final = "SELECT handle FROM entries WHERE json_extract(entry, '$.project') = ?"

_BY_OWNER: Final = "CREATE INDEX IF NOT EXISTS bindings_by_owner ON bindings (owner, handle)"
"""Files of before have none; to whoever does not look for it, it makes no difference."""

SCHEMA: Final = (
    # A handle that carries its binding has a row without one, for the counts.
    """
    CREATE TABLE bindings (
        handle TEXT PRIMARY KEY, owner TEXT NOT NULL, expires_at_ms INTEGER, node TEXT, binding BLOB
    ) WITHOUT ROWID
    """,
    "CREATE INDEX bindings_by_expiry ON bindings (expires_at_ms)",
    "CREATE INDEX bindings_by_node ON bindings (node) WHERE node IS NOT NULL",
    """
    CREATE TABLE snapshots (
        handle TEXT PRIMARY KEY, stored_at_ms INTEGER NOT NULL, snapshot BLOB NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX snapshots_by_age ON snapshots (stored_at_ms)",
    """
    CREATE TABLE entries (
        handle TEXT PRIMARY KEY, created_at_ms INTEGER NOT NULL, entry TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX entries_by_age ON entries (created_at_ms)",
    """
    CREATE INDEX entries_by_project ON entries (json_extract(entry, '$.project'), created_at_ms DESC, handle)
    """,
    "CREATE TABLE owners (owner TEXT PRIMARY KEY, tasks INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE totals (bindings INTEGER NOT NULL, entries INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0)",
    """
    CREATE TRIGGER binding_inserted AFTER INSERT ON bindings BEGIN
        UPDATE totals SET bindings = bindings + 1;
        INSERT INTO owners VALUES (new.owner, 1) ON CONFLICT (owner) DO UPDATE SET tasks = tasks + 1;
    END
    """,
    """
    CREATE TRIGGER binding_deleted AFTER DELETE ON bindings BEGIN
        UPDATE totals SET bindings = bindings - 1;
        UPDATE owners SET tasks = tasks - 1 WHERE owner = old.owner;
        DELETE FROM owners WHERE owner = old.owner AND tasks = 0;
    END
    """,
    """
    CREATE TRIGGER entry_inserted AFTER INSERT ON entries BEGIN
        UPDATE totals SET entries = entries + 1;
    END
    """,
    """
    CREATE TRIGGER entry_deleted AFTER DELETE ON entries BEGIN
        UPDATE totals SET entries = entries - 1;
    END
    """,
    "CREATE TABLE seals (place TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID",
)


class SqliteProxyStore:
    """A :class:`~mcp_tasks_adapters.proxy.storing.ProxyStore`; ``keys`` seal bindings and ends.

    The file is made if it is not there, for its owner alone to read.
    """

    def __init__(self, path: str | os.PathLike[str], *, keys: RecordKeys) -> None:
        self._path = Path(path)
        self._keys = keys
        self._session: _Session | None = None

    @property
    def node(self) -> str | None:
        """The name of this node while the store is open, a new one each time."""
        return None if self._session is None else self._session.node

    async def open(self, loop: LoopThread) -> None:
        """Open the file. Raises :class:`~mcp_tasks_adapters.storing.StoreError` where that cannot be done,

        for a file of another program or a later version of this package, for one that was sealed with other
        keys, and for one that another proxy has open.
        """
        if self._session is not None:
            raise StoreError(f"{self._path} is open already.")
        connection = await opened_on_a_thread(
            loop, partial(_open_file, self._path, self._keys), sqlite3.Connection.close
        )
        self._session = _Session(connection, self._keys, loop)

    async def close(self) -> None:
        """Close the file, when what was asked before is done."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def submit(self, effect: ProxyStoreEffect, answer: Answer) -> None:
        """Carry out ``effect`` on the thread. Raises :class:`StoreError` when the store is not open."""
        if self._session is None:
            raise StoreError(f"{self._path} is not open.")
        self._session.submit(effect, answer)


class _Job(NamedTuple):
    effect: ProxyStoreEffect
    answer: Answer


class _Session:
    """The store while it is open."""

    def __init__(self, connection: sqlite3.Connection, keys: RecordKeys, loop: LoopThread) -> None:
        self.node = token_urlsafe(12)
        self._tables = _Tables(connection, keys, self.node)
        self._connection = connection
        self._loop = loop
        self._ended = loop.event()
        self._waiting = 0
        self._closed = False
        self._trouble: str | None = None  # what was said of it last in the log
        self._thread = StoreThread[_Job]("mcp-tasks-proxy-store", self._carry_out, self._thread_ended)
        self._thread.start()

    # -- on the loop's thread ------------------------------------------------------------------------------

    def submit(self, effect: ProxyStoreEffect, answer: Answer) -> None:
        """Hand an effect to the thread."""
        if self._waiting >= MOST_WAITING:
            refusal = failed(effect)
            if refusal is not None:
                answer(refusal)
            return
        self._waiting += 1
        self._thread.put(_Job(effect, answer))

    async def close(self) -> None:
        """End the thread; no answer comes after this."""
        self._thread.stop()
        await self._ended.wait()
        self._closed = True

    def _answer(self, done: int, answers: Sequence[tuple[Answer, ProxyStoreFact]]) -> None:
        self._waiting -= done
        if self._closed:
            return
        for answer, fact in answers:
            answer(fact)

    # -- on the thread -------------------------------------------------------------------------------------

    def _carry_out(self, jobs: Sequence[_Job]) -> None:
        if jobs:
            self._loop.post(partial(self._answer, len(jobs), self._transact(jobs)))

    def _transact(self, jobs: Sequence[_Job]) -> Sequence[tuple[Answer, ProxyStoreFact]]:
        """Carry out all of this at once; where that fails, one by one: what others ask may yet be done."""
        before = self._connection.total_changes
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            answers = [(job.answer, fact) for job in jobs for fact in self._tables.carry_out(job.effect)]
            self._connection.execute("COMMIT")
        except Exception as error:
            self._report(error)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if len(jobs) > 1:
                return [answer for job in jobs for answer in self._transact([job])]
            fact = failed(jobs[0].effect)
            return [] if fact is None else [(jobs[0].answer, fact)]
        if self._connection.total_changes != before:  # on a full disk, reading still goes well
            self._trouble = None
        return answers

    def _report(self, error: Exception) -> None:
        """Log what is wrong; once, however often it is met."""
        trouble = _what_is_wrong(error)
        if trouble != self._trouble:
            self._trouble = trouble
            _log.error("the proxy's store failed: %s", trouble)

    def _thread_ended(self) -> None:
        self._connection.close()
        self._loop.post(self._ended.set)


class _Tables:
    """What is done within a transaction."""

    def __init__(self, connection: sqlite3.Connection, keys: RecordKeys, node: str) -> None:
        self._execute = connection.execute
        self._keys = keys
        self._node = node

    def carry_out(self, effect: ProxyStoreEffect) -> Sequence[ProxyStoreFact]:
        """Carry out one effect; return what to answer. Raises :class:`sqlite3.Error`."""
        try:
            match effect:
                case LoadTask():
                    return [self._load(effect)]
                case SaveBinding():
                    return [self._bind(effect)]
                case SaveSnapshot():
                    return [self._keep(effect)]
                case DropTask(handle=handle):
                    self._execute("DELETE FROM bindings WHERE handle = ?", (handle,))
                    self._execute("DELETE FROM entries WHERE handle = ?", (handle,))
                    return ()
                case Note(handle=handle, observation=observation):
                    self._observe(handle, observation)
                    return ()
                case Purge():
                    return self._purge(effect)
                case ListHandles():
                    return [self._owned(effect)]
                case ReadEntries():
                    return [self._stretch(effect)]
                case ReadEntry(handle=handle, token=token):
                    return [EntriesRead(token, self._found(handle))]
                case AssignTask():
                    return [self._assign(effect)]
        except (ValueError, TypeError, RecursionError) as error:
            _log.error("what a proxy's store keeps cannot be read or written: %s", type(error).__name__)
            fact = failed(effect)
            return () if fact is None else (fact,)

    def _load(self, load: LoadTask) -> ProxyStoreFact:
        return TaskLoaded(load.token, self._binding(load.handle), self._snapshot(load.handle))

    def _binding(self, handle: str) -> Binding | None:
        found = self._execute("SELECT binding FROM bindings WHERE handle = ?", (handle,)).fetchone()
        if found is None or found[0] is None:
            return None
        return binding_from_json(self._unsealed(found[0], _binding_place(handle)))

    def _snapshot(self, handle: str) -> Snapshot | None:
        found = self._execute("SELECT snapshot FROM snapshots WHERE handle = ?", (handle,)).fetchone()
        if found is None:
            return None
        return snapshot_from_json(self._unsealed(found[0], _snapshot_place(handle)))

    def _bind(self, effect: SaveBinding) -> ProxyStoreFact:
        binding, handle, owner = effect.binding, effect.entry.handle, owner_of(effect.entry.owner)
        full = self._full(effect.quota, owner)
        if full is not None:
            return SaveRefused(effect.token, full)
        taken = "SELECT 1 FROM bindings WHERE handle = ? UNION ALL SELECT 1 FROM entries WHERE handle = ?"
        if self._execute(taken, (handle, handle)).fetchone() is not None:
            return SaveFailed(effect.token)
        sealed = None
        if binding is not None:
            sealed = self._keys.seal(json.dumps(binding_to_json(binding)), _binding_place(handle))
        entry = json.dumps(entry_to_json(effect.entry))
        expires_at_ms, node = (None, None) if binding is None else (binding.expires_at_ms, binding.node)
        self._execute(
            "INSERT INTO bindings VALUES (?, ?, ?, ?, ?)", (handle, owner, expires_at_ms, node, sealed)
        )
        self._execute("INSERT INTO entries VALUES (?, ?, ?)", (handle, effect.entry.created_at_ms, entry))
        return Saved(effect.token)

    def _full(self, quota: TaskQuota, owner: str) -> str | None:
        """Return the quota that is full (LIM.3)."""
        bindings, entries = self._execute("SELECT bindings, entries FROM totals").fetchone()
        if bindings >= quota.tasks or entries >= quota.tasks * LEDGER_FACTOR:
            return "tasks"
        owned = self._execute("SELECT tasks FROM owners WHERE owner = ?", (owner,)).fetchone()
        return "tasks_per_principal" if owned and owned[0] >= quota.tasks_per_principal else None

    def _keep(self, effect: SaveSnapshot) -> ProxyStoreFact:
        offered = effect.snapshot
        found = self._snapshot(offered.handle)
        kept = first_of(found, offered)
        if found is None:
            sealed = self._keys.seal(json.dumps(snapshot_to_json(kept)), _snapshot_place(kept.handle))
            self._execute("INSERT INTO snapshots VALUES (?, ?, ?)", (kept.handle, kept.stored_at_ms, sealed))
        self._observe(kept.handle, evolve(effect.observation, status=kept.status))
        return SnapshotKept(effect.token, kept)

    def _observe(self, handle: str, observation: Observation) -> None:
        for entry in self._found(handle):
            self._put(observe(entry, observation))

    def _assign(self, effect: AssignTask) -> ProxyStoreFact:
        for entry in self._found(effect.handle):
            self._put(assign(entry, actor=effect.actor, assignee=effect.assignee, now=effect.now_ms))
        return EntriesRead(effect.token, self._found(effect.handle))

    def _found(self, handle: str) -> tuple[TaskEntry, ...]:
        """Return the entry of a handle, if there is one."""
        found = self._execute("SELECT entry FROM entries WHERE handle = ?", (handle,)).fetchone()
        return () if found is None else (_read_entry(found[0]),)

    def _put(self, entry: TaskEntry) -> None:
        changed = json.dumps(entry_to_json(entry))
        self._execute("UPDATE entries SET entry = ? WHERE handle = ?", (changed, entry.handle))

    def _owned(self, wanted: ListHandles) -> ProxyStoreFact:
        rows = self._execute(
            "SELECT handle FROM bindings WHERE owner = ? AND handle > ? ORDER BY handle LIMIT ?",
            (owner_of(wanted.principal), wanted.after or "", wanted.limit + 1),
        )
        handles = [handle for (handle,) in rows]
        return HandlesListed(wanted.token, handles[: wanted.limit], len(handles) > wanted.limit)

    def _stretch(self, wanted: ReadEntries) -> ProxyStoreFact:
        after = Place(-_LAST_MS, "") if wanted.after is None else wanted.after
        created_at_ms = -after.newest_first
        rows = self._execute(
            "SELECT entry FROM entries WHERE json_extract(entry, '$.project') = ? AND created_at_ms <= ? "
            "AND NOT (created_at_ms = ? AND handle <= ?) ORDER BY created_at_ms DESC, handle LIMIT ?",
            (wanted.project, created_at_ms, created_at_ms, after.handle, wanted.most),
        )
        return EntriesRead(wanted.token, tuple(_read_entry(entry) for (entry,) in rows))

    def _remove(self, projects: frozenset[str]) -> None:
        """Remove all there is of projects (HIS.4)."""
        unlisted = self._unlisted(projects)
        for handle in unlisted:
            self._execute("DELETE FROM snapshots WHERE handle = ?", (handle,))
            self._execute("DELETE FROM bindings WHERE handle = ?", (handle,))
        removed = len(unlisted)
        for project in projects:
            for table in ("snapshots", "bindings"):
                self._execute(f"DELETE FROM {table} WHERE handle IN ({_OF_PROJECT})", (project,))
            gone = self._execute(f"DELETE FROM entries WHERE handle IN ({_OF_PROJECT})", (project,))
            removed += gone.rowcount
        if removed:
            _log.warning("what was kept of deleted projects is removed: %d tasks", removed)

    def _unlisted(self, projects: frozenset[str]) -> Sequence[str]:
        """Return the handles of projects that only their bindings know: their entries are past their time."""
        found = self._execute(
            "SELECT handle FROM bindings "
            "WHERE binding IS NOT NULL AND handle NOT IN (SELECT handle FROM entries)"
        ).fetchall()
        return [handle for (handle,) in found if self._project(handle) in projects]

    def _project(self, handle: str) -> str | None:
        """Return the project of a binding; ``None`` also for one that cannot be read, which nobody can."""
        try:
            binding = self._binding(handle)
        except ValueError:
            return None
        return None if binding is None else binding.project

    def _purge(self, purge: Purge) -> Sequence[ProxyStoreFact]:
        if purge.projects:
            self._remove(purge.projects)
        # Calls that were promoted have a node.
        self._execute(
            "DELETE FROM bindings WHERE node IS NOT NULL "
            "AND handle IN (SELECT handle FROM snapshots WHERE stored_at_ms < ?)",
            (purge.payloads_before_ms,),
        )
        self._execute("DELETE FROM snapshots WHERE stored_at_ms < ?", (purge.payloads_before_ms,))
        self._execute("DELETE FROM entries WHERE created_at_ms < ?", (purge.metadata_before_ms,))
        self._execute(
            "DELETE FROM bindings WHERE expires_at_ms <= ? AND handle NOT IN (SELECT handle FROM snapshots)",
            (purge.now_ms,),
        )
        self._execute(
            "DELETE FROM bindings WHERE expires_at_ms IS NULL AND handle NOT IN (SELECT handle FROM entries)"
        )
        lost = self._execute(
            "SELECT handle, node FROM bindings WHERE node IS NOT NULL AND node <> ? "
            "AND handle NOT IN (SELECT handle FROM snapshots) LIMIT ?",
            (self._node, LOST_AT_ONCE),
        )
        return [WorkLost(handle, node) for handle, node in lost]

    def _unsealed(self, sealed: bytes, place: str) -> Any:
        return json.loads(self._keys.unseal(sealed, place))


def _read_entry(text: str) -> TaskEntry:
    return entry_from_json(json.loads(text))


def _binding_place(handle: str) -> str:
    return f"binding {handle}"


def _snapshot_place(handle: str) -> str:
    return f"snapshot {handle}"


def _what_is_wrong(error: Exception) -> str:
    """Return it without anything that is kept (SEC.2)."""
    return str(error) if isinstance(error, sqlite3.Error) else describe(error)


# -- the file ------------------------------------------------------------------------------------------------


def _open_file(path: Path, keys: RecordKeys) -> sqlite3.Connection:
    """Open the file and make it one of ours. Raises :class:`StoreError`."""
    try:
        os.close(os.open(path, os.O_CREAT, 0o600))
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise cannot_be_used(path, error) from error
    try:
        _claim(connection, path)
        _check_keys(connection, path, keys)
    except sqlite3.Error as error:
        connection.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError(f"{path} is in use: another proxy has it open.") from error
        raise cannot_be_used(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _claim(connection: sqlite3.Connection, path: Path) -> None:
    """Take the file for this process alone, and make what is missing."""
    ask: Callable[[str], Any] = lambda pragma: connection.execute(pragma).fetchone()[0]  # noqa: E731
    ask("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    application, version = ask("PRAGMA application_id"), ask("PRAGMA user_version")
    is_empty = ask("SELECT count(*) FROM sqlite_schema") == 0
    if application != APPLICATION_ID and not (application == version == 0 and is_empty):
        raise StoreError(f"{path} is the database of another program, or of a server.")
    if version > VERSION:
        raise StoreError(f"{path} was written by a later version of this package (schema {version}).")
    if is_empty:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    connection.execute(_BY_OWNER)
    if ask("PRAGMA journal_mode = WAL") != "wal":
        raise StoreError(f"{path} cannot be used: SQLite cannot keep a write-ahead log beside it.")
    connection.execute("PRAGMA synchronous = FULL")


def _check_keys(connection: sqlite3.Connection, path: Path, keys: RecordKeys) -> None:
    """See to it that the keys are those of this file, or become so if it is new."""
    found = connection.execute("SELECT sealed FROM seals WHERE place = ?", (KEY_CHECK,)).fetchone()
    if found is not None:
        try:
            keys.unseal(found[0], KEY_CHECK)
        except UnsealError:
            raise StoreError(f"{path} was sealed with other keys than those given.") from None
    connection.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (KEY_CHECK, keys.seal("", KEY_CHECK)))
