"""The ``mcp-tasks`` command. Needs the extra ``cli``."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from mcp_tasks_adapters.cli.reports import reporting

__all__ = ["main"]


def main() -> None:
    """Run the command line. A bare install, which has the command but not what it needs, is told so."""
    _write_every_character()
    try:
        from mcp_tasks_adapters.cli.commands import mcp_tasks

        with reporting(unwritten=1, what="the output"):
            mcp_tasks(prog_name="mcp-tasks")
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if absent not in {"click", "rich"}:
            raise
        sys.exit(f"mcp-tasks needs {absent}, which is not installed: pip install 'mcp-tasks-proto[cli]'")


def _write_every_character() -> None:
    """Have escapes written of what the encoding of stdout lacks: a report is not to end at an arrow."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
