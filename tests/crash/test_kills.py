"""A real server, killed under load: nothing acknowledged is lost. LIFE.1, LIFE.4, UPD.5, CAN.6, TTL.1."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.crash.kinds import KINDS
from tests.crash.run import Plan, run

KILLS = 20


def test_life4_nothing_acknowledged_is_lost_however_often_the_server_is_killed(tmp_path: Path) -> None:
    """``make crash`` does the same for longer, and with any store."""
    path = tmp_path / "tasks.db"
    plan = Plan(
        store=f"sqlite:{path}",
        kills=KILLS,
        seed=random.getrandbits(32),
        loops=["trio", "asyncio"],
        folder=tmp_path,
    )
    print(f"python -m tests.crash --kills {KILLS} --seed {plan.seed}")
    verdict = run(plan)
    assert not verdict.faults
    counts = verdict.counts
    assert counts["kills"] == KILLS
    assert counts["creations acknowledged"] > len(KINDS) * KILLS, "or there was hardly any load"
    for what in ("answers acknowledged", "answers delivered", "cancellations acknowledged", "resumptions"):
        assert counts[what] > 0
    for end in ("completed", "failed", "cancelled", "lost"):
        assert counts[f"ended: {end}"] > 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    # Whatever still goes on when the last server ends is named by that one, and left for the next.
    assert len(list(tmp_path.glob("*-node-*"))) <= 1, "locks of the dead are removed"
