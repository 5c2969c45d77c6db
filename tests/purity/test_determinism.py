"""Layer three of purity: the same inputs have the same outputs, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROXYS = ("SendUpstream(", "StopUpstream(", "Note(", "Purge(")
SCENARIO = Path(__file__).with_name("scenario.py")


def effects_under(hash_seed: str) -> list[str]:
    """Run the scenario in a process of its own; return its effects as text."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, str(SCENARIO)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_effects_do_not_depend_on_the_hash_seed() -> None:
    first, *others = (effects_under(seed) for seed in ("0", "1", "4711"))
    assert all(effects == first for effects in others)


def test_the_scenario_goes_where_order_could_leak() -> None:
    effects = effects_under("random")
    for kind in ("StartTool(", "StartWork(", "DeliverInput(", "RequestCancel(", "Send(", "Reply(", *PROXYS):
        assert any(effect.startswith(kind) for effect in effects), kind
