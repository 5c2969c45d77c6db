"""How a server's process is started and ended, on any loop."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from typing import Final

from mcp_tasks_adapters.client.loop import ClientLoop, Process

__all__ = ["HAS_SESSIONS", "kill_left", "look_after", "see_off", "signal_session", "starting"]

HAS_SESSIONS: Final = hasattr(os, "killpg")
"""Whether a process can have a session of its own here."""

_running: Final[set[Process]] = set()
"""Those that were not seen off yet."""


def look_after(process: Process) -> None:
    """Note that a process runs, until it is seen off."""
    _running.add(process)


def kill_left() -> None:
    """Kill what was not seen off: this process is about to end at once, and nothing of it shall be left.

    May be called on any thread.
    """
    for process in list(_running):
        process.kill()


@contextmanager
def starting() -> Iterator[None]:
    """Raise ``OSError`` for whatever a process is not started for.

    A NUL within a command, or an odd name of a variable, is a ``ValueError`` to Python.
    """
    try:
        yield
    except ValueError as error:
        raise OSError(EINVAL, str(error)) from error


def signal_session(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process that was given a session of its own, and to what it has started in there.

    Harmless when all of them have ended, and of use when only the first has.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


async def see_off(process: Process, loop: ClientLoop, grace_seconds: float) -> int | None:
    """End a process, the kindest way first; return its exit code, ``None`` when it outlived even a kill.

    Its stdin is closed, then it is told to end, then killed; each time it has ``grace_seconds``. What is left
    of a session of its own is killed.
    """
    code: list[int] = []

    async def read_on() -> None:
        try:
            while await process.receive():
                pass  # a server that is not read may not be able to end
        except OSError:
            pass
        code.append(await process.wait())

    async def wait() -> None:
        code.append(await process.wait())

    try:
        await process.close_input()
        if not await loop.within(grace_seconds, read_on):
            process.terminate()
            if not await loop.within(grace_seconds, wait):
                process.kill()
                await loop.within(grace_seconds, wait)
    finally:
        process.kill()
        _running.discard(process)
        await process.close()
    return code[0] if code else None
