"""The file of an SQLite store: whose it is, which version it has, what to do when it makes trouble."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from errno import EROFS
from pathlib import Path
from threading import Event

import pytest
from mcp_tasks_adapters.stores.rows import BROKEN_SAID
from mcp_tasks_adapters.stores.sqlite import SqliteStore, reading, schema, writing
from mcp_tasks_adapters.stores.sqlite.schema import cannot_be_used
from mcp_tasks_adapters.storing import StoreEffect, StoreError

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.inputs import Loaded, LoadFailed, RecordChanged, Saved, SaveFailed
from tests.adapters.driver_harness import logged
from tests.adapters.store_harness import NOW, Bench, opened, record, sqlite_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


def run(path: Path, *statements: str) -> None:
    """What somebody does to the file with another program."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def refusal(path: Path) -> str:
    """Try to open the file; return why that is refused."""
    with pytest.raises(StoreError) as refused, opened(sqlite_store(path)):
        pass
    assert str(path) in str(refused.value)
    return str(refused.value)


# -- whose file, and which version -------------------------------------------------------------------------


def test_a_later_schema_is_refused_and_left_alone(path: Path) -> None:
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())
    run(path, "PRAGMA user_version = 999")
    before = path.read_bytes()
    assert "later version" in refusal(path)
    assert "999" in refusal(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    assert "not a database" in refusal(path)
    assert path.read_text() == "Dear diary, " * 1000


@pytest.mark.parametrize(
    "mark", ["PRAGMA user_version = 1", "CREATE TABLE tasks (task_id)", "PRAGMA application_id = 7"]
)
def test_the_database_of_another_program_is_refused_and_left_alone(path: Path, mark: str) -> None:
    run(path, mark)
    before = path.read_bytes()
    assert "another program" in refusal(path)
    assert path.read_bytes() == before


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be used" in refusal(tmp_path / "nowhere" / "tasks.db")
    assert "cannot be used" in refusal(tmp_path)


def test_where_there_is_no_room_or_no_right_that_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says "disk I/O error" of a full disk, and "unable to open" of what cannot be written."""
    error = sqlite3.OperationalError("disk I/O error")
    assert str(cannot_be_used(path, error)) == f"{path} cannot be used: disk I/O error."
    with monkeypatch.context() as without_rights:
        without_rights.setattr(os, "access", lambda folder, mode: False)
        assert f"{path.parent} cannot be written" in str(cannot_be_used(path, error))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(9, 9, 0))
    assert "no room left" in str(cannot_be_used(path, error))
    denied = OSError(EROFS, "Read-only file system")
    assert str(cannot_be_used(path, denied)) == f"{path} cannot be used: Read-only file system."


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())


def test_a_file_with_an_odd_name_is_the_one_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "what? 100% #1.db"
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())
    assert path.is_file()
    with opened(SqliteStore(str(path))) as bench:
        assert bench.load() == record()


def test_an_older_schema_is_brought_forward_with_its_records(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())
    later = [*schema.STEPS, ["ALTER TABLE nodes ADD COLUMN note TEXT", "UPDATE totals SET change = 41"]]
    monkeypatch.setattr(schema, "STEPS", later)
    with opened(sqlite_store(path)) as bench:
        assert bench.load() == record()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
        assert connection.execute(
            "SELECT change, (SELECT count(note) FROM nodes) FROM totals"
        ).fetchone() == (41, 0)


def test_a_step_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())
    with monkeypatch.context() as later:
        later.setattr(schema, "STEPS", [*schema.STEPS, ["CREATE TABLE half (done)", "SELECT * FROM nothing"]])
        assert "nothing" in refusal(path)
    with opened(sqlite_store(path)) as bench:
        assert bench.load() == record()


def test_a_later_version_that_was_faster_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_ahead = schema._log_ahead

    def outrun(connection: sqlite3.Connection, path: Path) -> None:
        log_ahead(connection, path)
        run(path, f"PRAGMA application_id = {schema.APPLICATION_ID}", "PRAGMA user_version = 999")

    monkeypatch.setattr(schema, "_log_ahead", outrun)
    assert "later version" in refusal(path)


def test_a_node_whose_file_was_migrated_by_a_later_version_writes_no_more(path: Path) -> None:
    with opened(sqlite_store(path)) as bench, logged() as lines:
        bench.saved(record())
        run(path, "PRAGMA user_version = 999")
        assert bench.save(record("b")) == SaveFailed("save")
        assert bench.load("a") == record()
    assert [line for line in lines if "later version" in line]


def test_a_node_that_the_others_gave_up_writes_no_more(path: Path) -> None:
    with opened(sqlite_store(path)) as bench, logged() as lines:
        run(path, "DELETE FROM nodes")
        assert bench.save(record()) == SaveFailed("save")
        assert bench.load() is None
    assert [line for line in lines if "taken for gone" in line]


# -- a commit that fails (rule 3) --------------------------------------------------------------------------


class Doubtful:
    """A connection whose commits fail, when it is told to, before or after they have gone through."""

    def __init__(self, connection: sqlite3.Connection, fault: list[str]) -> None:
        self._connection = connection
        self._fault = fault

    def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        fault = self._fault.pop() if sql == "COMMIT" and self._fault else None
        if fault == "before":
            self._connection.execute("ROLLBACK")
        cursor = self._connection.execute(sql if fault != "before" else "SELECT 1", values)
        if fault is not None:
            raise sqlite3.OperationalError("disk I/O error")
        return cursor

    def close(self) -> None:
        self._connection.close()


@pytest.mark.parametrize(
    ("faults", "saved"),
    [(["after"], True), (["before"], True), (["before", "before", "before"], False)],
    ids=["it went through", "the second attempt goes through", "nothing goes through"],
)
def test_nobody_is_told_before_it_is_known_what_became_of_a_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch, faults: list[str], saved: bool
) -> None:
    pending: list[str] = []
    connect = schema.connect
    monkeypatch.setattr(writing, "connect", lambda path: Doubtful(connect(path), pending))
    with opened(sqlite_store(path)) as bench, logged():
        bench.saved(record("first"))
        pending.extend(faults)
        answers = bench.ask([Save(record("a"), None, 1), Delete("first", 1, 2)])
        assert answers == ([Saved(1), Saved(2)] if saved else [SaveFailed(1), SaveFailed(2)])
        assert (bench.load("a") is not None) == saved
        assert (bench.load("first") is None) == saved
        bench.saved(record("later"))
        pending.append("after")
        bench.saved(record("last"))


@pytest.mark.parametrize("ends", ["comes back", "is closed"])
def test_as_long_as_that_cannot_be_found_out_nobody_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    faults: list[str] = []
    unreachable = Event()
    connect = schema.connect

    def sometimes(path: Path) -> Doubtful:
        if unreachable.is_set():
            raise sqlite3.OperationalError("disk I/O error")
        return Doubtful(connect(path), faults)

    monkeypatch.setattr(writing, "connect", sometimes)
    with opened(sqlite_store(path)) as bench, logged() as lines:
        faults.append("after")
        unreachable.set()
        answers = bench.start([Save(record(), None, 1)])
        bench.until(lambda: bool(lines))
        assert bench.load() == record(), "others see it already"
        assert answers == []
        if ends == "comes back":
            unreachable.clear()
            bench.until(lambda: bool(answers))
            assert answers == [Saved(1)]
        else:
            bench.close()
            assert answers == []


def test_every_commit_is_synced_to_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 1. What SQLite makes of it no test can see without pulling the plug."""
    made: list[sqlite3.Connection] = []
    connect = schema.connect

    def noted(path: Path) -> sqlite3.Connection:
        made.append(connect(path))
        return made[-1]

    monkeypatch.setattr(writing, "connect", noted)
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())
        full, log = (
            made[-1].execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
        )
    assert (full, log) == (2, "wal")


# -- trouble while it is open -----------------------------------------------------------------------------


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Let writes beyond that fail, as they do on a full disk: at a commit, or in the middle of one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


LARGE = {"content": ["x" * 300_000]}


def kinds(answers: Sequence[object]) -> list[type]:
    return [type(answer) for answer in answers]


def test_a_full_disk_fails_what_does_not_fit_and_no_more(path: Path) -> None:
    with opened(sqlite_store(path)) as bench:
        bench.saved(record("before"))
        with files_no_larger_than(200_000), logged() as lines:
            asked = [Save(record(str(number), result=LARGE), None, number) for number in range(3)]
            answers = bench.ask([*asked, Save(record("small"), None, 3)])
            assert answers == [SaveFailed(0), SaveFailed(1), SaveFailed(2), Saved(3)]
            assert bench.load("before") == record("before")
            assert bench.load("small") == record("small")
        assert [bench.load(str(number)) for number in range(3)] == [None] * 3
        assert bench.ask([*asked]) == [Saved(0), Saved(1), Saved(2)], "it recovers by itself"
        assert bench.load("2") == record("2", result=LARGE)
        assert len(lines) < 4, "said once, not for each request"
    with opened(sqlite_store(path)) as bench:
        assert bench.load("2") == record("2", result=LARGE), "what was acknowledged is there"


def test_a_disk_that_takes_nothing_fails_all_writes_and_no_reads(path: Path) -> None:
    with opened(sqlite_store(path)) as bench:
        bench.saved(record())
        with files_no_larger_than(0):
            effects: list[StoreEffect] = [
                Save(record("b"), None, 1),
                Delete("a", 1, 2),
                Save(record(version=2), 1, 3),
            ]
            assert bench.ask(effects) == [SaveFailed(1), SaveFailed(2), SaveFailed(3)]
            assert bench.load() == record()
            assert bench.find(NOW + 1000) == (["a"], None)
        assert bench.ask(effects[:2]) == [Saved(1), Saved(2)]


def test_a_file_that_is_gone_for_a_while_is_not_made_anew(path: Path) -> None:
    with opened(sqlite_store(path)) as bench, logged():
        bench.saved(record())
        with files_no_larger_than(0):  # any trouble makes it open the file anew
            assert bench.save(record("b")) == SaveFailed("save")
        path.rename(path.with_name("elsewhere"))
        assert bench.save(record("b")) == SaveFailed("save")
        assert not path.exists(), "no second file is begun"
        path.with_name("elsewhere").rename(path)
        bench.saved(record("b"))
        assert bench.load() == record()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let another process be in a transaction that does not end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_a_lock_that_nobody_gives_back_fails_writes_and_no_reads(path: Path) -> None:
    with opened(sqlite_store(path, lock_ms=200)) as bench, logged():
        bench.saved(record())
        with locked(path):
            asked = [Save(record(str(number)), None, number) for number in range(20)]
            assert kinds(bench.ask(asked)) == [SaveFailed] * 20
            assert bench.load() == record()
        assert kinds(bench.ask(asked)) == [Saved] * 20


def test_a_lock_that_is_given_back_in_time_fails_nothing(path: Path) -> None:
    with opened(sqlite_store(path)) as bench:
        with locked(path):
            answers = bench.start([Save(record(), None, 1)])
            assert bench.load() is None
            assert answers == []
        bench.until(lambda: bool(answers))
        assert answers == [Saved(1)]


def test_it_closes_without_waiting_for_a_lock(path: Path) -> None:
    with locked_later(path) as bench:
        answers = bench.start([Save(record(), None, 1)])
        bench.close()
        assert answers == []
    with opened(sqlite_store(path)) as bench:
        assert bench.load() is None


@contextmanager
def locked_later(path: Path) -> Iterator[Bench]:
    with opened(sqlite_store(path, lock_ms=3_600_000)) as bench, locked(path):
        yield bench


def test_a_broken_record_fails_what_needs_it_and_can_be_swept(path: Path) -> None:
    """Rule 6: what cannot be read any more can at least be removed."""
    with opened(sqlite_store(path)) as bench, logged() as lines:
        bench.saved(record("a"))
        bench.saved(record("b"))
        run(path, "UPDATE tasks SET record = '{\"secret\": ' WHERE task_id = 'a'")
        assert bench.ask([Load("a", 1)]) == [LoadFailed(1)]
        assert bench.ask([Save(record("a"), None, 1), Delete("a", 7, 2)]) == [SaveFailed(1), SaveFailed(2)]
        assert bench.load("b") == record("b")
        assert bench.ask([FindExpired(2**70, 1, 1)]) == [LoadFailed(1)]
        assert bench.find(NOW + 1000) == (["a", "b"], None)
        assert bench.delete("a", 1) == Saved("delete")
        assert bench.find(NOW + 1000) == (["b"], None)
    (line,) = [line for line in lines if "a record cannot be read" in line]
    assert line.endswith("what is stored of it is broken (JSONDecodeError)")
    assert "secret" not in "".join(lines), "SEC.2"


def test_each_broken_record_is_said_once_and_of_too_many_no_more(path: Path) -> None:
    """They are met again and again, in turn with each other and with those that are whole."""
    ids = [f"task-{number}" for number in range(BROKEN_SAID + 3)]
    with opened(sqlite_store(path)) as bench, logged() as lines:
        bench.ask([Save(record(task_id), None, task_id) for task_id in [*ids, "whole"]])
        run(path, "UPDATE tasks SET record = '{' WHERE task_id <> 'whole'")
        for task_id in [ids[0], "whole", ids[1], ids[0], "whole", ids[1]]:
            bench.ask([Load(task_id, 1)])
        assert len(lines) == 2
        bench.ask([Load(task_id, task_id) for task_id in ids])
    assert len(lines) == BROKEN_SAID
    assert [line for line in lines if "no more will be said" in line] == lines[-1:]
    assert "task-" not in "".join(lines), "SEC.2"


def test_a_record_of_a_later_version_is_not_misread(path: Path) -> None:
    with opened(sqlite_store(path)) as bench, logged():
        bench.saved(record())
        run(path, "UPDATE tasks SET record = json_set(record, '$.schema', 99)")
        assert bench.ask([Load("a", 1)]) == [LoadFailed(1)]


def test_broken_pages_fail_what_touches_them(path: Path) -> None:
    with opened(sqlite_store(path)) as bench:
        for number in range(200):
            bench.saved(record(str(number), result={"content": ["x" * 1000]}))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8 * 4096] = b"\xff" * (8 * 4096)
    path.write_bytes(data)
    with opened(sqlite_store(path)) as bench, logged():
        answers = bench.ask([Load(str(number), number) for number in range(200)])
        broken = [number for number, answer in enumerate(answers) if isinstance(answer, LoadFailed)]
        assert 0 < len(broken) < 150
        writes = bench.ask([Save(record(f"new{number}"), None, number) for number in range(20)])
        assert set(kinds(writes)) <= {Saved, SaveFailed}
        for number, answer in enumerate(writes):
            found = bench.ask([Load(f"new{number}", 0)])[0]
            if isinstance(found, Loaded):
                assert (found.record is not None) == isinstance(answer, Saved)


def test_news_that_could_not_be_read_are_told_later(path: Path) -> None:
    with opened(sqlite_store(path)) as here, opened(sqlite_store(path)) as there, logged() as lines:
        here.saved(record())
        there.watch()
        run(
            path,
            "UPDATE tasks SET change = 1",
            "UPDATE totals SET change = 1",
            "ALTER TABLE tasks RENAME COLUMN record TO hidden",
        )
        there.until(lambda: any("cannot read" in line for line in lines))
        assert there.heard == []
        run(path, "ALTER TABLE tasks RENAME COLUMN hidden TO record")
        there.until(lambda: there.heard == [RecordChanged(record())])


def test_news_that_could_not_be_read_are_not_forgotten_over_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reading,
        "RECORD",
        "SELECT version, CASE WHEN EXISTS (SELECT 1 FROM unreadable WHERE unreadable.task_id = tasks.task_id)"
        " THEN json('{') ELSE record END FROM tasks WHERE task_id = ?",
    )
    with opened(sqlite_store(path)) as here, opened(sqlite_store(path)) as there, logged() as lines:
        run(path, "CREATE TABLE unreadable (task_id)", "INSERT INTO unreadable VALUES ('a')")
        here.ask([Save(record("a"), None, 1), Save(record("b"), None, 2)])
        there.watch()
        here.saved(record("a", version=2), 1)
        there.until(lambda: any("cannot read" in line for line in lines))
        here.saved(record("b", version=2), 1)
        there.until(lambda: bool(there.heard))
        assert there.heard == [RecordChanged(record("b", version=2))]
        run(path, "DELETE FROM unreadable")
        there.until(lambda: RecordChanged(record("a", version=2)) in there.heard)
