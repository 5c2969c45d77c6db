"""The ``mcp-tasks`` command. Needs the extra ``cli``."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from mcp_tasks_adapters.cli.reports import reporting

__all__ = ["main"]


def main() -> None:
    """Run the command line. A bare install, which has the command but not what it needs, is told so."""
    _open_what_is_closed()
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


def _open_what_is_closed() -> None:
    """Put the empty device in place of a standard stream that whoever started this has closed.

    ``sys`` has ``None`` there, and ``print`` takes that for stdout. Besides, the next file to be opened would
    have the number of that stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free, which is this stream's
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace"))


def _write_every_character() -> None:
    """Have escapes written of what the encoding of stdout lacks: a report is not to end at an arrow."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
