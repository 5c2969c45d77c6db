"""Processes over one PostgreSQL schema, and what is left of them when they are killed: LIFE.4, rule 12."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from mcp_tasks_proto.inputs import RecordChanged, WorkLost
from tests.adapters.clerks import clerk, kill_and_account
from tests.adapters.postgres_server import PostgresServer, Schema
from tests.adapters.store_harness import opened

KILLS = 10


@pytest.fixture
def schema(postgres: PostgresServer) -> Schema:
    return postgres.new_schema()


def test_life4_nothing_acknowledged_is_lost_when_the_process_is_killed(schema: Schema) -> None:
    kill_and_account(schema, KILLS, schema.option, schema.name)


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
    with opened(schema.store()) as bench, clerk(schema.option, schema.name, "ann") as ann:
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
