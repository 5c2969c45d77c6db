"""Processes over one file, and what is left of them when they are killed: LIFE.4, and rules 1, 11 and 12."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_tasks_adapters.stores.sqlite.nodes import NodeLock

from mcp_tasks_proto.inputs import RecordChanged, RecordRemoved, WorkLost
from tests.adapters.clerks import check, clerk, kill_and_account, kill_at_a_random_moment
from tests.adapters.store_harness import Bench, File, opened, record, sqlite_store

KILLS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


def test_life4_nothing_acknowledged_is_lost_when_the_process_is_killed(path: Path) -> None:
    file = File(path)
    kill_and_account(file, KILLS, path)
    assert file.run("PRAGMA integrity_check") == [("ok",)]
    assert [found.name for found in path.parent.iterdir()] == [path.name], "no lock is left behind"


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
