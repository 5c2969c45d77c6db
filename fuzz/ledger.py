"""The campaigns that were run: one small file for each target, a line for each campaign."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Final

from fuzz.campaign import Campaign
from fuzz.paths import CAMPAIGNS, PROJECT

__all__ = ["cpu_minutes", "record"]

_HEADER: Final = "commit    python  executions  edges  corpus  findings  CPU minutes\n"
_COMMIT_CHARS: Final = 8


def record(campaign: Campaign) -> Path:
    """Note a campaign that is over; return the file."""
    path, progress = _file(campaign.target), campaign.progress
    line = (
        f"{_commit():8}  {platform.python_version():6}  {progress.executions:>10}  {progress.edges:>5}  "
        f"{progress.corpus:>6}  {int(campaign.finding is not None):>8}  {campaign.cpu_seconds / 60:>11.1f}\n"
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


def _commit() -> str:
    """Return the commit that is fuzzed, with a ``+`` where what is fuzzed differs from it."""
    commit = _git("rev-parse", "HEAD")[:_COMMIT_CHARS] or "unknown"
    changed = _git("status", "--porcelain", "--", "mcp_tasks_proto", "adapters", "fuzz/targets")
    return f"{commit[:-1]}+" if changed else commit


def _git(*words: str) -> str:
    try:
        said = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip()
