"""Children of a process that has collected the tests: each runs some of them with one mutant."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Callable
from select import select
from time import monotonic, process_time
from typing import Final, NoReturn, Self

from attrs import define, field
from mutmut.mutation import trampoline

from tests.mutants.verdicts import KILLED, Verdicts
from tests.mutants.workspace import WORKSPACE

__all__ = ["BROKEN", "TEMPORARY", "Forks", "Run", "fork", "outcome"]

TEMPORARY: Final = WORKSPACE / "temporary"
BROKEN: Final = 70
"""Exit code of a fork in which it is not a test that failed."""
LOOKS_SECONDS: Final = 1.0

Run = Callable[[], tuple[str, int]]
"""What a fork does; returns what it has to say, and its exit code."""


@define(eq=False)
class Fork:
    """A child of this process, which runs tests."""

    pid: int
    said: int
    """Where it says what it has to say: a file descriptor."""
    ends: float
    """When it is killed."""
    mutant: str


def fork(mutant: str, cpu_seconds: int, run: Run) -> Fork:
    """Have a child of this process do something with a mutant."""
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


@define(eq=False)
class Forks:
    """So many forks at a time, one for each mutant, and what becomes of them. To be used as a context."""

    most: int
    verdicts: Verdicts
    found: Callable[[str, str], None] = lambda mutant, test: None
    """Told which test has found a mutant."""
    done: int = field(init=False, default=0)
    """How many have ended."""
    _running: list[Fork] = field(init=False, factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End those that have not ended, and write the verdicts."""
        for one in self._running:
            os.kill(one.pid, signal.SIGKILL)
            os.waitpid(one.pid, 0)
        self.verdicts.save()
        print(self.verdicts.summary(), flush=True)

    def add(self, mutant: str, cpu_seconds: int, run: Run) -> None:
        """Have one more begin, as soon as there is room."""
        while len(self._running) >= self.most:
            self._reap()
        self._running.append(fork(mutant, cpu_seconds, run))

    def finish(self) -> None:
        """Wait for all."""
        while self._running:
            self._reap()

    def _reap(self) -> None:
        """Wait until some end, or a while."""
        ready, _, _ = select([one.said for one in self._running], [], [], LOOKS_SECONDS)
        for late in [one for one in self._running if one.ends < monotonic()]:
            os.kill(late.pid, signal.SIGKILL)
        for one in [one for one in self._running if one.said in ready]:
            self._running.remove(one)
            self._take(one.mutant, *outcome(one))

    def _take(self, mutant: str, said: str, code: int) -> None:
        self.done += 1
        if code == BROKEN:
            print(f"{mutant} could not be run: {said}", flush=True)
            return
        if code == KILLED:
            self.found(mutant, said)
        self.verdicts.note(mutant, code)


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
