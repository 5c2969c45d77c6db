"""The campaigns that were run: one small file for each target, a line for each campaign."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Final

from fuzz.campaign import Campaign
from fuzz.paths import CAMPAIGNS

__all__ = ["cpu_minutes", "record"]

_HEADER: Final = "commit    python  executions  edges  corpus  findings  CPU minutes\n"


def record(campaign: Campaign) -> Path:
    """Note a campaign that is over; return the file."""
    path, progress = _file(campaign.target), campaign.progress
    line = (
        f"{campaign.commit:8}  {platform.python_version():6}  {progress.executions:>10}  "
        f"{progress.edges:>5}  {progress.corpus:>6}  {int(campaign.finding is not None):>8}  "
        f"{campaign.cpu_seconds / 60:>11.1f}\n"
    )
    before = path.read_text(encoding="ascii") if path.exists() else _HEADER
    path.parent.mkdir(exist_ok=True)
    path.write_text(before + line, encoding="ascii")
    return path


def cpu_minutes(target: str) -> float:
    """Return for how long a target was fuzzed, all its campaigns together."""
    path = _file(target)
    if not path.exists():
        return 0.0
    return sum(float(line.split()[-1]) for line in path.read_text(encoding="ascii").splitlines()[1:])


def _file(target: str) -> Path:
    return CAMPAIGNS / f"{target}.txt"
