"""``mcp-tasks demo``: a server of its own, a client of its own, and every message between them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mcp_tasks_adapters.cli.demo.client import Client, UnexpectedError
from mcp_tasks_adapters.cli.demo.screen import JsonScreen, RichScreen
from mcp_tasks_adapters.cli.demo.story import tell

__all__ = ["run_demo"]

READY: Final = "listening on "
STOP_S: Final = 5.0


def run_demo(*, loop: str, as_json: bool) -> int:
    """Run the demo; return the exit code: 0 when every message was as expected, else 1."""
    screen = JsonScreen() if as_json else RichScreen()
    try:
        with running_server(loop) as url, Client(url, screen) as client:
            screen.opening(url, loop)
            tell(client, screen)
        screen.closing()
    except UnexpectedError as surprise:
        screen.failed(str(surprise))
        return 1
    return 0


@contextmanager
def running_server(loop: str) -> Iterator[str]:
    """Run ``mcp-tasks serve`` in a process of its own; yield its URL; then end it, which must be clean.

    Raises :class:`UnexpectedError` when it does not start, or not end with exit code 0.
    """
    target = "mcp_tasks_adapters.cli.demo.farm:server"
    serve = [sys.executable, "-m", "mcp_tasks_adapters.cli", "serve", target]
    command = [*serve, "--loop", loop, "--store", "memory:"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            if not said.startswith(READY):
                raise UnexpectedError(f"the server did not start:\n{said}{process.stderr.read()}")
            yield said.removeprefix(READY).strip()
            _end(process)
        finally:
            process.kill()


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        _, said = process.communicate(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        raise UnexpectedError(f"the server did not end within {STOP_S:g} s") from None
    if process.returncode != 0 or said:
        raise UnexpectedError(f"the server ended with exit code {process.returncode}:\n{said}")
