"""The servers of the demo as processes: started, killed without warning, started again, told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from mcp_tasks_adapters.cli.demo.client import UnexpectedError

__all__ = ["ListeningProcess", "ServerProcess", "running_proxy", "running_server"]

READY: Final = "listening on "
STOP_S: Final = 5.0
TARGET: Final = "mcp_tasks_adapters.cli.demo.farm:server"


class ListeningProcess:
    """A command of ``mcp-tasks`` that listens, as a process."""

    def __init__(self, what: str, *command: str) -> None:
        """Start it on a free port. Raises :class:`UnexpectedError` when it does not start.

        ``what`` it is: "the server".
        """
        self._what = what
        self.url = self._start(command, port=0)
        """Where it listens."""

    def kill(self) -> None:
        """SIGKILL: the process is gone at once, and has no chance to put anything in order."""
        self._process.kill()
        self._reap()

    def end(self) -> None:
        """Tell it to end, which must be clean. Raises :class:`UnexpectedError` when it is not."""
        self._process.send_signal(signal.SIGTERM)
        try:
            _, said = self._process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            raise UnexpectedError(f"{self._what} did not end within {STOP_S:g} s") from None
        if self._process.returncode != 0 or said:
            raise UnexpectedError(f"{self._what} ended with exit code {self._process.returncode}:\n{said}")

    def _start(self, command: Sequence[str], port: int) -> str:
        command = [sys.executable, "-m", "mcp_tasks_adapters.cli", *command, "--port", str(port)]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        if not said.startswith(READY):
            said += self._reap()
            raise UnexpectedError(f"{self._what} did not start:\n{said}")
        return said.removeprefix(READY).strip()

    def _reap(self) -> str:
        """Wait until the process is gone, and return what it said last."""
        _, said = self._process.communicate()
        return said


class ServerProcess(ListeningProcess):
    """``mcp-tasks serve`` over a file that outlives it."""

    def __init__(self, loop: str, file: Path) -> None:
        """Start it on a free port. Raises :class:`UnexpectedError` when it does not start."""
        self._loop = loop
        self.file = file
        super().__init__("the server", *self._command())

    def start_again(self, file: Path | None = None) -> None:
        """Start a process like the one before, on the same port, over the same file or another one.

        Raises :class:`UnexpectedError`.
        """
        self.file = file or self.file
        self._start(self._command(), port=urlsplit(self.url).port or 0)

    def _command(self) -> Sequence[str]:
        return ("serve", TARGET, "--loop", self._loop, "--store", f"sqlite:{self.file}", "--legacy", "serve")


@contextmanager
def running_server(loop: str) -> Iterator[ServerProcess]:
    """Run a server over a file in a temporary folder, and end it at the end of the block.

    Raises :class:`UnexpectedError` when it does not start, or not end with exit code 0.
    """
    with TemporaryDirectory(prefix="mcp-tasks-demo-") as folder:
        server = ServerProcess(loop, Path(folder) / "tasks.db")
        with ended(server):
            yield server


@contextmanager
def running_proxy(loop: str, server: ServerProcess, callers: str) -> Iterator[ListeningProcess]:
    """Run a proxy before a server, for the callers in a file with this text, and end it at the end of the
    block.

    Raises :class:`UnexpectedError` when it does not start, or not end with exit code 0.
    """
    with TemporaryDirectory(prefix="mcp-tasks-demo-") as folder:
        file = Path(folder) / "callers.toml"
        file.write_text(callers, encoding="utf-8")
        options = ("--upstream", server.url, "--callers", str(file), "--store", "memory:", "--loop", loop)
        proxy = ListeningProcess("the proxy", "proxy", *options)
        with ended(proxy):
            yield proxy


@contextmanager
def ended(process: ListeningProcess) -> Iterator[None]:
    """End a process at the end of the block, which must be clean unless the block has failed."""
    try:
        yield
        process.end()
    finally:
        process.kill()
