"""Children of a process that has collected the tests: each runs some of them with one mutant."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Callable
from select import select
from time import monotonic, process_time
from typing import Final, NoReturn

from attrs import define
from mutmut.mutation import trampoline

from tests.mutants.verdicts import KILLED, Verdicts
from tests.mutants.workspace import WORKSPACE

__all__ = ["BROKEN", "Fork", "end", "fork", "outcome", "reap"]

TEMPORARY: Final = WORKSPACE / "temporary"
BROKEN: Final = 70
"""Exit code of a fork in which it is not a test that failed."""
LOOKS_SECONDS: Final = 1.0


@define(eq=False)
class Fork:
    """A child of this process, which runs tests."""

    pid: int
    said: int
    """Where it says what it has to say: a file descriptor."""
    ends: float
    """When it is killed."""
    mutant: str


def fork(mutant: str, cpu_seconds: int, run: Callable[[], tuple[str, int]]) -> Fork:
    """Have a child of this process run something with a mutant, and say and end with what that returns."""
    theirs, ours = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(theirs)
        try:
            _leave_alone(cpu_seconds)
            _turn_to(mutant)
            said, code = run()
        except BaseException as error:
            said, code = f"{type(error).__name__}: {error}", BROKEN
        _say(ours, said, code)
    os.close(ours)
    return Fork(pid, theirs, monotonic() + 60 + 20 * cpu_seconds, mutant)


def outcome(one: Fork) -> tuple[str, int]:
    """Wait for a fork; return what it has said, and its exit code."""
    with os.fdopen(one.said, "rb") as file:
        said = file.read().decode(errors="replace")
    _, status = os.waitpid(one.pid, 0)
    shutil.rmtree(TEMPORARY / str(one.pid), ignore_errors=True)
    return said, os.waitstatus_to_exitcode(status)


def reap(running: list[Fork], verdicts: Verdicts, note: Callable[[str, str], None]) -> int:
    """Wait until some end; note what became of their mutants, and which test found one. Return how many."""
    ready, _, _ = select([one.said for one in running], [], [], LOOKS_SECONDS)
    for late in [one for one in running if one.ends < monotonic()]:
        os.kill(late.pid, signal.SIGKILL)
    ended = [one for one in running if one.said in ready]
    for one in ended:
        running.remove(one)
        said, code = outcome(one)
        if code == BROKEN:
            print(f"{one.mutant} could not be run: {said}", flush=True)
            continue
        if code == KILLED:
            note(one.mutant, said)
        verdicts.note(one.mutant, code)
    return len(ended)


def end(running: list[Fork]) -> None:
    """End forks before their time."""
    for one in running:
        os.kill(one.pid, signal.SIGKILL)
        os.waitpid(one.pid, 0)


def _leave_alone(cpu_seconds: int) -> None:
    """Have this child disturb nobody: it says nothing, ends in time, and has a place of its own for files."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    place = TEMPORARY / str(os.getpid())
    place.mkdir(parents=True)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)
    limit = int(process_time()) + cpu_seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))


def _turn_to(mutant: str) -> None:
    """Have each mutated function be this mutant of it, if it is one of it."""
    trampoline.set_mutant_under_test(mutant)
    # Asked at every call: answered without the environment.
    trampoline.get_mutant_under_test = lambda: mutant


def _say(said_to: int, said: str, code: int) -> NoReturn:
    data = said.encode()
    while data:
        data = data[os.write(said_to, data) :]
    os._exit(code)
