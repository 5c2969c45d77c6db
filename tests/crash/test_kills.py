"""Real servers, killed under load: nothing acknowledged is lost. LIFE.1, LIFE.4, UPD.5, CAN.6, TTL.1."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.__main__ import shown
from tests.crash.kinds import KINDS
from tests.crash.run import NotStartedError, Plan, run


@pytest.mark.parametrize(("servers", "kills"), [(1, 20), (2, 10)], ids=["alone", "one of two"])
def test_life4_nothing_acknowledged_is_lost_however_often_a_server_is_killed(
    servers: int, kills: int, tmp_path: Path
) -> None:
    """``make crash`` does the same for longer, and with any store."""
    path = tmp_path / "tasks.db"
    plan = Plan(
        store=f"sqlite:{path}",
        kills=kills,
        seed=random.getrandbits(32),
        servers=servers,
        loops=["trio", "asyncio"],
        folder=tmp_path,
    )
    print(f"python -m tests.crash --servers {servers} --kills {kills} --seed {plan.seed}")
    verdict = run(plan)
    assert not verdict.faults
    counts = verdict.counts
    assert counts["kills"] == kills
    assert counts["creations acknowledged"] > len(KINDS) * kills, "or there was hardly any load"
    for what in ("answers acknowledged", "answers delivered", "cancellations acknowledged", "resumptions"):
        assert counts[what] > 0
    for end in ("completed", "failed", "cancelled", "lost"):
        assert counts[f"ended: {end}"] > 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_server_that_does_not_start_ends_it_with_what_was_said(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/nowhere/tasks.db"
    plan = Plan(store=store, kills=1, seed=1, servers=1, loops=["asyncio"], folder=tmp_path)
    with pytest.raises(NotStartedError, match="cannot be used"):
        run(plan)


def test_sec2_a_dsn_is_not_shown() -> None:
    assert shown("sqlite:tasks.db") == "sqlite:tasks.db"
    for store in ("postgres:host=db password=hush", "postgresql://me:hush@db/tasks"):
        assert "hush" not in shown(store)
