"""Running servers: those that others wrote each under the interpreter that has what it needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

__all__ = ["ROOT", "Elsewhere", "needed", "serving"]

ROOT: Final = Path(__file__).resolve().parents[2]
START_SECONDS: Final = 180.0
STOP_SECONDS: Final = 20.0


def needed(variable: str, what: str) -> str:
    """Return what an environment variable says. Fails the test where it says nothing."""
    value = os.environ.get(variable)
    if not value:
        pytest.fail(
            f"These tests need {what}. `make test` installs it and runs them; or set {variable} to where it "
            "is.",
            pytrace=False,
        )
    return value


@frozen(kw_only=True)
class Elsewhere:
    """A server that runs in an environment of its own."""

    module: str
    python_variable: str
    """The environment variable that says where the interpreter is."""
    needs: str
    """What that interpreter must have."""

    def command(self, transport: str) -> list[str]:
        """Return what runs the server. Fails the test where nobody said how."""
        python = os.environ.get(self.python_variable)
        if not python:
            pytest.fail(
                f"These tests need {self.needs}. `make test` installs it and runs them; or set "
                f"{self.python_variable} to a Python interpreter that has it.",
                pytrace=False,
            )
        return [python, "-m", self.module, transport]

    @contextmanager
    def serving(self, log: Path) -> Iterator[str]:
        """Serve over HTTP for the length of the block; give the URL. What the server says goes to ``log``."""
        with serving(self.command("http"), log) as url:
            yield url


@contextmanager
def serving(command: Sequence[str], log: Path) -> Iterator[str]:
    """Run a server for the length of the block; give the URL that it says it listens on."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,  # some are started by another program, which ends without them
        )
    try:
        yield _announced(process, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _announced(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if ready := re.search(r"listening on (\S+)\n", log.read_text()):
            return ready[1]
        time.sleep(0.05)
    raise RuntimeError(f"the server was never ready:\n{log.read_text()}")
