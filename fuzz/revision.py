"""Which state of the project is fuzzed."""

from __future__ import annotations

import subprocess
from typing import Final

from fuzz.paths import PROJECT

__all__ = ["commit_now"]

_COMMIT_CHARS: Final = 8


def commit_now() -> str:
    """Return the commit that is here, with a ``+`` where what is fuzzed differs from it."""
    commit = _git("rev-parse", "HEAD")[:_COMMIT_CHARS] or "unknown"
    changed = _git("status", "--porcelain", "--", "mcp_tasks_proto", "adapters", "fuzz/targets")
    return f"{commit[:-1]}+" if changed else commit


def _git(*words: str) -> str:
    try:
        said = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip()
