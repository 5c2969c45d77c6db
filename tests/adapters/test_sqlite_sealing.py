"""Records sealed at rest (SEC.2): what is in the file, under which key, and who can read it."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_tasks_adapters.stores.sealing import RecordKeys, UnsealError
from mcp_tasks_adapters.storing import StoreError

from mcp_tasks_proto.effects import Load
from mcp_tasks_proto.inputs import LoadFailed, Saved
from mcp_tasks_proto.testing.store_suite import NODE_CHECKS, STORE_CHECKS, Ask, Check, Nodes
from tests.adapters.driver_harness import logged
from tests.adapters.store_harness import NOW, StoreNodes, opened, record, sqlite_store

OLD, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))
SECRET = "the code word is heron"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


def sealed_store(path: Path, *keys: bytes) -> Any:
    return sqlite_store(path, keys=RecordKeys(keys) if keys else None)


def on_disk(path: Path) -> bytes:
    return b"".join(part.read_bytes() for part in path.parent.iterdir())


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_every_store(path: Path, check: Check[Ask]) -> None:
    with opened(sealed_store(path, NEW, OLD)) as bench:
        check(bench.ask)


@pytest.mark.parametrize("check", NODE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_nodes(path: Path, check: Check[Nodes]) -> None:
    nodes = StoreNodes(lambda: sealed_store(path, NEW))
    try:
        check(nodes)
    finally:
        nodes.close()


@pytest.mark.parametrize("keys", [(), (NEW,)])
def test_sec2_nothing_of_a_record_is_in_the_file(path: Path, keys: Sequence[bytes]) -> None:
    with opened(sealed_store(path, *keys)) as bench:
        bench.saved(record(arguments={"a": SECRET}))
        bench.saved(record(arguments=None, result={"b": SECRET}, version=2), 1)
        assert (SECRET.encode() in on_disk(path)) == (not keys), "the log beside the file included"
    assert (SECRET.encode() in on_disk(path)) == (not keys)


def test_the_same_record_never_looks_the_same(path: Path) -> None:
    keys = RecordKeys([NEW])
    assert len({keys.seal(SECRET, "a 1") for _ in range(100)}) == 100


# -- rotation ----------------------------------------------------------------------------------------------


def test_all_keys_open_and_the_first_one_seals(path: Path) -> None:
    with opened(sealed_store(path, OLD)) as bench:
        bench.saved(record("stays"))
        bench.saved(record("changes"))
    with opened(sealed_store(path, NEW, OLD)) as bench:
        assert bench.load("stays") == record("stays")
        bench.saved(record("changes", version=2), 1)
    with opened(sealed_store(path, NEW)) as bench, logged() as lines:
        assert bench.load("changes") == record("changes", version=2)
        assert bench.ask([Load("stays", 1)]) == [LoadFailed(1)]
        assert bench.find(NOW + 1000)[0] == ["stays", "changes"], "what nobody can read can be removed"
        assert bench.delete("stays", 1) == Saved("delete")
    assert len(lines) == 1


def test_processes_rotate_one_after_another(path: Path) -> None:
    """First all of them get the new key as one that opens; then it may seal."""
    with opened(sealed_store(path, OLD, NEW)) as here, opened(sealed_store(path, NEW, OLD)) as there:
        here.saved(record())
        there.saved(record(version=2), 1)
        assert here.load() == record(version=2)
        here.saved(record(version=3), 2)
        assert there.load() == record(version=3)


def test_sealing_may_begin_with_records_that_are_not_sealed(path: Path) -> None:
    with opened(sealed_store(path)) as bench:
        bench.saved(record("a", arguments={"a": SECRET}))
    with opened(sealed_store(path, NEW)) as bench:
        assert bench.load("a") == record("a", arguments={"a": SECRET})
        bench.saved(record("a", arguments={"a": SECRET}, version=2), 1)
    assert b'"schema"' not in _stored(path)


def _stored(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        stored: bytes = connection.execute("SELECT CAST(record AS BLOB) FROM tasks").fetchone()[0]
    return stored


def test_the_keys_must_be_those_of_the_file(path: Path) -> None:
    with opened(sealed_store(path, OLD)) as bench:
        bench.saved(record())
    for keys, why in [((), "no keys"), ((NEW,), "not given"), ((NEW, OTHER), "not given")]:
        with pytest.raises(StoreError, match=why), opened(sealed_store(path, *keys)):
            pass
    with opened(sealed_store(path, NEW, OLD)) as bench:
        assert bench.load() == record()
    with pytest.raises(StoreError, match="not given"), opened(sealed_store(path, OLD)):
        pass


def test_a_record_that_was_tampered_with_or_moved_is_not_read(path: Path) -> None:
    changes = {
        "moved": "record = (SELECT record FROM tasks WHERE task_id = 'b')",
        "set back": "version = 7",
        "cut": "record = substr(record, 1, 20)",
        "emptied": "record = x''",
        "of another form": "record = x'02' || substr(record, 2)",
        "flipped": "record = substr(record, 1, length(record) - 1)"
        " || iif(substr(record, -1) = x'00', x'01', x'00')",
    }
    for number, (change, setting) in enumerate(changes.items()):
        file = path.with_name(str(number))
        with opened(sealed_store(file, NEW)) as bench, logged():
            bench.saved(record("a"))
            bench.saved(record("b"))
            with closing(sqlite3.connect(file)) as connection, connection:
                connection.execute(f"UPDATE tasks SET {setting} WHERE task_id = 'a'")
            assert bench.ask([Load("a", 1)]) == [LoadFailed(1)], change
            assert bench.load("b") == record("b"), change


# -- where keys come from -----------------------------------------------------------------------------------


def text(*keys: bytes) -> str:
    return "\n".join(base64.b64encode(key).decode() for key in keys) + "\n"


def opens(keys: RecordKeys | None, key: bytes) -> bool:
    assert keys is not None
    try:
        return keys.unseal(RecordKeys([key]).seal(SECRET, "a 1"), "a 1") == SECRET
    except UnsealError:
        return False


def test_keys_come_from_a_file(path: Path) -> None:
    path.write_text(text(NEW, OLD))
    keys = RecordKeys.from_file(path)
    assert [opens(keys, key) for key in (NEW, OLD, OTHER)] == [True, True, False]
    assert RecordKeys([NEW]).unseal(keys.seal(SECRET, "a 1"), "a 1") == SECRET


def test_keys_come_from_a_variable() -> None:
    keys = RecordKeys.from_environment("KEYS", {"KEYS": text(NEW, OLD)})
    assert [opens(keys, key) for key in (NEW, OLD, OTHER)] == [True, True, False]
    assert RecordKeys.from_environment("KEYS", {"KEYS": " "}) is None
    assert RecordKeys.from_environment("KEYS", {}) is None
    with pytest.raises(StoreError, match="Base64"):
        RecordKeys.from_environment("KEYS", {"KEYS": "ñ"})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no key"),
        (b"AAAA", "32 bytes"),
        (base64.b64encode(bytes(33)), "32 bytes"),
        (b"not base 64!", "Base64"),
        (b"\xff\xfe", "Base64"),
    ],
)
def test_keys_that_are_none_are_refused(path: Path, content: bytes, why: str) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=why) as refused:
        RecordKeys.from_file(path)
    assert "AAAA" not in str(refused.value), "SEC.2"


def test_a_file_of_keys_that_is_not_there_is_said_so(path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        RecordKeys.from_file(path)


def test_without_cryptography_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(StoreError, match="pip install"):
        RecordKeys([NEW])
