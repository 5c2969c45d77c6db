"""The server of the demo as a process: started, killed without warning, started again, told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from mcp_tasks_adapters.cli.demo.client import UnexpectedError

__all__ = ["ServerProcess", "running_server"]

READY: Final = "listening on "
STOP_S: Final = 5.0
TARGET: Final = "mcp_tasks_adapters.cli.demo.farm:server"


class ServerProcess:
    """``mcp-tasks serve`` over a file that outlives it."""

    def __init__(self, loop: str, file: Path) -> None:
        """Start it on a free port. Raises :class:`UnexpectedError` when it does not start."""
        self._options = ["--loop", loop, "--store", f"sqlite:{file}", "--legacy", "serve"]
        self.url = self._start(port=0)
        """Where it listens."""

    def kill(self) -> None:
        """SIGKILL: the process is gone at once, and has no chance to put anything in order."""
        self._process.kill()
        self._reap()

    def start_again(self) -> None:
        """Start a process like the one before: same file, same port. Raises :class:`UnexpectedError`."""
        self._start(port=urlsplit(self.url).port or 0)

    def end(self) -> None:
        """Tell it to end, which must be clean. Raises :class:`UnexpectedError` when it is not."""
        self._process.send_signal(signal.SIGTERM)
        try:
            _, said = self._process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            raise UnexpectedError(f"the server did not end within {STOP_S:g} s") from None
        if self._process.returncode != 0 or said:
            raise UnexpectedError(f"the server ended with exit code {self._process.returncode}:\n{said}")

    def _start(self, port: int) -> str:
        command = [sys.executable, "-m", "mcp_tasks_adapters.cli", "serve", TARGET, *self._options]
        self._process = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        if not said.startswith(READY):
            said += self._reap()
            raise UnexpectedError(f"the server did not start:\n{said}")
        return said.removeprefix(READY).strip()

    def _reap(self) -> str:
        """Wait until the process is gone, and return what it said last."""
        _, said = self._process.communicate()
        return said


@contextmanager
def running_server(loop: str) -> Iterator[ServerProcess]:
    """Run a server over a file in a temporary folder, and end it at the end of the block.

    Raises :class:`UnexpectedError` when it does not start, or not end with exit code 0.
    """
    with TemporaryDirectory(prefix="mcp-tasks-demo-") as folder:
        server = ServerProcess(loop, Path(folder) / "tasks.db")
        try:
            yield server
            server.end()
        finally:
            server.kill()
