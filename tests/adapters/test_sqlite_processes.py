"""Processes over one file, and what is left of them when they are killed: LIFE.4, and rules 1, 11 and 12."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep

import pytest
from attrs import evolve
from mcp_tasks_adapters.stores.sqlite.nodes import NodeLock

from mcp_tasks_proto.effects import Save
from mcp_tasks_proto.inputs import RecordChanged, RecordRemoved, Saved, WorkLost
from mcp_tasks_proto.lifecycle import Status
from tests.adapters.store_harness import Bench, opened, record, sqlite_store

PROJECT = Path(__file__).parents[2]
KILLS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@contextmanager
def clerk(*store_and_prefix: object) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process work on the store; it is killed at the end, if it was not before."""
    command = [sys.executable, "-m", "tests.adapters.store_process", *map(str, store_and_prefix)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def acknowledged(said: bytes) -> dict[str, int]:
    """Return what was acknowledged last of each task; 0 stands for removed."""
    *lines, _unfinished = said.decode().split("\n")
    return {name: int(version) for name, version in (line.split() for line in lines)}


def kill_at_a_random_moment(process: subprocess.Popen[bytes]) -> dict[str, int]:
    assert process.stdout is not None
    first = process.stdout.readline()
    sleep(random.uniform(0, 0.15))
    process.kill()
    return acknowledged(first + process.stdout.read())


def check(bench: Bench, promised: Mapping[str, int]) -> None:
    """Everything that was acknowledged is there, or the step that was under way after it."""
    for name, version in promised.items():
        found = bench.load(name)
        if version == 0:
            assert found is None, name
        elif found is None:
            assert version == 3, f"{name} was acknowledged and is lost"
        else:
            assert found.version in (version, version + 1), name


def test_life4_nothing_acknowledged_is_lost_when_the_process_is_killed(path: Path) -> None:
    promised: dict[str, int] = {}
    for kill in range(KILLS):
        with clerk(path, f"kill{kill}") as process:
            before = len(promised)
            promised |= kill_at_a_random_moment(process)
            assert len(promised) > before
    with opened(sqlite_store(path)) as bench:
        check(bench, promised)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            counted = "SELECT count(*), sum(payload_bytes) FROM tasks"
            assert (
                connection.execute(counted).fetchone()
                == connection.execute("SELECT tasks, payload_bytes FROM totals").fetchone()
            )
        bench.watch()
        end_what_was_lost(bench, path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM tasks WHERE node IS NOT NULL").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM nodes").fetchone() == (0,)
    assert [found.name for found in path.parent.iterdir()] == [path.name], "no lock is left behind"


def end_what_was_lost(bench: Bench, path: Path) -> None:
    """Do what an engine does: end each task whose node is gone, until nobody names a node that is."""
    ended: set[str] = set()
    while _others(path, bench.store.node):
        bench.until(lambda: bool(bench.heard) or not _others(path, bench.store.node))
        for news in list(bench.heard):
            if isinstance(news, WorkLost) and news.task_id not in ended:
                current = bench.load(news.task_id)
                assert current is not None
                assert current.node == news.node
                after = evolve(current, version=current.version + 1, node=None, status=Status.FAILED)
                assert bench.ask([Save(after, current.version, 1)]) == [Saved(1)]
                ended.add(news.task_id)
        bench.heard.clear()


def _others(path: Path, node: str) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("SELECT 1 FROM nodes WHERE node <> ?", (node,)).fetchall())


def test_a_lock_that_a_killed_process_left_before_it_was_known_is_removed_by_the_next(path: Path) -> None:
    """And one that is held is not: its process is just starting."""
    NodeLock(path, "dead").release()
    starting = NodeLock(path, "starting")
    with opened(sqlite_store(path)) as bench:
        left = [found.name for found in path.parent.glob("*-node-*") if not found.name.endswith("-journal")]
        assert sorted(left) == sorted(f"tasks.db-node-{node}" for node in ("starting", bench.store.node))
    starting.remove()


def test_two_processes_work_on_one_file_at_once_and_both_are_heard(path: Path) -> None:
    with opened(sqlite_store(path)) as bench:
        bench.watch()
        with clerk(path, "ann") as ann, clerk(path, "bob") as bob:
            bench.until(lambda: {"ann", "bob"} <= {name.partition("-")[0] for name in _heard_of(bench)})
            promised = [kill_at_a_random_moment(process) for process in (ann, bob)]
        for one in promised:
            check(bench, one)
        bench.until(lambda: any(isinstance(news, RecordRemoved) for news in bench.heard))
        bench.until(lambda: any(isinstance(news, WorkLost) for news in bench.heard))


def _heard_of(bench: Bench) -> set[str]:
    return {news.record.task_id for news in bench.heard if isinstance(news, RecordChanged)}


def test_a_process_that_is_alive_is_never_taken_for_gone(path: Path) -> None:
    with opened(sqlite_store(path)) as bench, clerk(path, "ann") as ann:
        bench.watch()
        bench.until(lambda: len(_heard_of(bench)) > 200)
        assert not [news for news in bench.heard if isinstance(news, WorkLost)]
        bench.heard.clear()
        ann.kill()
        bench.until(lambda: any(isinstance(news, WorkLost) for news in bench.heard))


def test_a_node_of_this_process_is_not_gone_only_because_it_is_slow(path: Path) -> None:
    with (
        opened(sqlite_store(path)) as here,
        opened(sqlite_store(path)) as gone,
        opened(sqlite_store(path)) as there,
    ):
        here.saved(record("slow", node=here.store.node))
        lost = WorkLost("gone", gone.store.node)
        gone.saved(record("gone", node=lost.node))
        gone.close()
        there.watch()
        there.until(lambda: len(there.heard) >= 5)
        assert set(there.heard) == {lost}
