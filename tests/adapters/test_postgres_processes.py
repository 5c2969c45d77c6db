"""Processes over one PostgreSQL schema, and what is left of them when they are killed: LIFE.4, rule 12."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from attrs import evolve

from mcp_tasks_proto.effects import Save
from mcp_tasks_proto.inputs import RecordChanged, Saved, WorkLost
from mcp_tasks_proto.lifecycle import Status
from tests.adapters.postgres_server import PostgresServer, Schema
from tests.adapters.store_harness import Bench, opened
from tests.adapters.test_cli_store import YES, farm, parked, serving, until
from tests.adapters.test_sqlite_processes import check, clerk, kill_at_a_random_moment

__all__ = ["farm"]

KILLS = 10


@pytest.fixture
def schema(postgres: PostgresServer) -> Schema:
    return postgres.new_schema()


def test_life4_nothing_acknowledged_is_lost_when_the_process_is_killed(schema: Schema) -> None:
    promised: dict[str, int] = {}
    for kill in range(KILLS):
        with clerk(f"postgres:{schema.dsn}", schema.name, f"kill{kill}") as process:
            before = len(promised)
            promised |= kill_at_a_random_moment(process)
            assert len(promised) > before
    with opened(schema.store()) as bench:
        check(bench, promised)
        assert schema.run("SELECT tasks, payload_bytes FROM totals") == schema.run(
            "SELECT count(*), sum(payload_bytes)::bigint FROM tasks"
        )
        bench.watch()
        _end_what_was_lost(bench, schema)
    assert schema.run("SELECT count(*) FROM tasks WHERE node IS NOT NULL") == [(0,)]
    assert schema.run("SELECT count(*) FROM nodes WHERE NOT settled") == [(0,)]


def _end_what_was_lost(bench: Bench, schema: Schema) -> None:
    """Do what an engine does: end each task whose node is gone, until all nodes that are gone are settled."""
    ended: set[str] = set()
    while _others(schema):
        bench.until(lambda: bool(bench.heard) or not _others(schema))
        for news in list(bench.heard):
            if isinstance(news, WorkLost) and news.task_id not in ended:
                current = bench.load(news.task_id)
                assert current is not None
                assert current.node == news.node
                after = evolve(current, version=current.version + 1, node=None, status=Status.FAILED)
                assert bench.ask([Save(after, current.version, 1)]) == [Saved(1)]
                ended.add(news.task_id)
        bench.heard.clear()


def _others(schema: Schema) -> bool:
    return bool(schema.run("SELECT 1 FROM nodes WHERE NOT settled OFFSET 1"))


def stop_at_work(process: subprocess.Popen[bytes], schema: Schema) -> None:
    """Stop a process at a moment when one of its tasks is under way."""
    while True:
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)  # what it has sent arrives
        if any('"status":"working"' in str(row) for row in schema.run("SELECT * FROM tasks")):
            return
        process.send_signal(signal.SIGCONT)
        time.sleep(0.01)


def test_a_process_is_gone_when_its_lease_has_run_out_and_comes_back_if_it_lives(schema: Schema) -> None:
    """Stopped, it is taken for gone, and writes nothing until it has noticed that."""
    with opened(schema.store()) as bench, clerk(f"postgres:{schema.dsn}", schema.name, "ann") as ann:
        bench.watch()
        bench.until(lambda: any(isinstance(news, RecordChanged) for news in bench.heard))
        assert not [news for news in bench.heard if isinstance(news, WorkLost)]
        stop_at_work(ann, schema)
        bench.until(lambda: any(isinstance(news, WorkLost) for news in bench.heard))
        ((change,),) = schema.run("SELECT change FROM totals")
        lost = next(news for news in bench.heard if isinstance(news, WorkLost))
        assert schema.run("SELECT change FROM totals") == [(change,)]
        ann.send_signal(signal.SIGCONT)
        assert bench.load(lost.task_id) is not None


def test_two_servers_on_one_database_work_as_one(farm: Path, schema: Schema) -> None:
    store = ["--store", f"postgres:{schema.dsn}"]
    with serving(farm, *store, "--loop", "trio") as home, serving(farm, *store, "--loop", "asyncio") as away:
        task_id = parked(home)
        assert until(away, task_id, "input_required")
        away.ask("tasks/update", {"taskId": task_id, **YES})
        assert until(away, task_id, "completed") == until(home, task_id, "completed")
        cancelled = parked(away)
        home.ask("tasks/cancel", {"taskId": cancelled})
        until(home, cancelled, "cancelled")
        lost = parked(home)
        home.process.kill()
        until(away, lost, "failed")
