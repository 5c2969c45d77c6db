"""``python -m tests.mutants.running``, in the workspace: makes the mutants, and has tests look for them.

mutmut makes them. Running them is done here, since there are thousands: the tests are collected once, and
each mutant is a fork of the process that has them, in which only tests run that reach the mutated function.
Those that have found a neighbour come first, then the quick ones, until one fails or the mutant's seconds are
over.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from pathlib import Path
from select import select
from time import monotonic, process_time
from typing import Final, NoReturn

import pytest
from attrs import define, field
from hypothesis import Phase, settings
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
from mutmut.mutation import trampoline
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd, walk_mutatable_files

from tests.mutants.choosing import Chooser, Reach
from tests.mutants.workspace import WORKSPACE

MUTANTS: Final = WORKSPACE / "mutants"
"""What mutmut makes of the workspace."""
REACH: Final = WORKSPACE / "reach.json"
"""Which tests reach which function, and what each costs."""
TEMPORARY: Final = WORKSPACE / "temporary"

MOST_LEFT_OUT: Final = 10
"""Tests that may fail without a mutant: calls are deeper where all can be mutated, as some can tell."""

STATS: Final = "stats"
FAIL: Final = "fail"
"""What mutmut takes for a mutant: all functions tell that they were called, or raise."""

SURVIVED: Final = 0
KILLED: Final = 1
UNREACHED: Final = 33
BROKEN: Final = 70
"""Exit code of a fork in which it is not a test that failed."""

PYTEST: Final = (
    "--rootdir=.",
    "--quiet",
    "--capture=no",
    "--assert=plain",
    "--tb=no",
    "-p",
    "no:cacheprovider",
)
LEFT_OUT: Final = (
    "--ignore=tests/unit/test_docs.py",
    "--deselect=tests/unit/test_recordings.py::test_the_version_in_a_recording_is_that_of_the_package",
)
"""Look at files of the repository that the workspace is without; no behaviour of the core."""
LEEWAY: Final = 5
"""A mutant that takes this many times what its tests cost, and this many seconds more, counts as endless."""
LOOKS_SECONDS: Final = 1.0
TOLD_SECONDS: Final = 15.0


@define(eq=False)
class Fork:
    """A child of this process, which runs tests."""

    pid: int
    said: int
    """Where it says what it has to say: a file descriptor."""
    ends: float
    """When it is killed."""
    mutant: str


@define(eq=False)
class MutantRunner:
    """A plugin of pytest that runs tests in forks, once for each mutant."""

    modules: Sequence[Path]
    """What is mutated."""
    workers: int
    seconds: float
    """How much of tests a mutant is given."""
    failed: list[str] = field(init=False, factory=list)
    """The tests that failed in this process."""
    complete: bool = field(init=False, default=False)
    _reached: dict[str, list[str]] = field(init=False, factory=dict)
    """By test of this process: the functions it reaches."""
    _seconds: dict[str, float] = field(init=False, factory=dict)
    _items: dict[str, pytest.Item] = field(init=False, factory=dict)

    # -- hooks -------------------------------------------------------------------------------------------

    def pytest_configure(self) -> None:
        """Let no failing example be made shorter: it is enough that there is one."""
        settings.register_profile(
            "mutants", settings.get_profile("steady"), phases=[Phase.explicit, Phase.generate], database=None
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember failures."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants in place of the tests."""
        if session.testsfailed:
            raise pytest.UsageError("the tests cannot be collected")
        self._items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()
        reach = self._known_reach() or self._find_reach()
        self._verify(reach)
        self._run_mutants(reach)
        self.complete = True
        return True

    # -- what tests reach --------------------------------------------------------------------------------

    def _known_reach(self) -> Reach | None:
        if not REACH.exists():
            return None
        reach = Reach(**json.loads(REACH.read_text()))
        return reach if reach.digest == self._digest() else None

    def _digest(self) -> str:
        """Return a digest of the mutants and the tests, and of which of them there are."""
        digest = sha256(repr((self.modules, sorted(self._items))).encode())
        for path in sorted(MUTANTS.rglob("*")):
            if path.suffix in (".py", ".txt", ".json") and path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()

    def _find_reach(self) -> Reach:
        """Run all tests once, each worker its share of the files."""
        shares: list[list[str]] = [[] for _ in range(self.workers)]
        files = dict.fromkeys(name.partition("::")[0] for name in self._items)
        place = {file: index % self.workers for index, file in enumerate(sorted(files, key=len))}
        for name in self._items:
            shares[place[name.partition("::")[0]]].append(name)
        _tell(f"running {len(self._items)} tests once, to see what they reach")
        forks = [self._fork(share, STATS, 24 * 3600, self._tell_reach) for share in shares if share]
        tests: dict[str, list[str]] = {}
        seconds: dict[str, float] = {}
        failed: list[str] = []
        for fork in forks:
            said = _read_all(fork.said)
            _, status = os.waitpid(fork.pid, 0)
            if status or not said:
                raise SystemExit("The tests could not be run.")
            share_of = json.loads(said)
            failed += share_of["failed"]
            seconds |= share_of["seconds"]
            for test, functions in share_of["reached"].items():
                for function in functions:
                    tests.setdefault(function, []).append(test)
        if failed:
            _tell(f"left out, for without a mutant they fail in here: {', '.join(failed)}")
        if len(failed) > MOST_LEFT_OUT:
            raise SystemExit("So many tests fail without a mutant that it would tell nothing.")
        tests = {name: [test for test in reaching if test not in failed] for name, reaching in tests.items()}
        reach = Reach(tests, seconds, self._digest())
        REACH.write_text(json.dumps({"tests": reach.tests, "seconds": seconds, "digest": reach.digest}))
        return reach

    def _tell_reach(self) -> str:
        return json.dumps({"failed": self.failed, "seconds": self._seconds, "reached": self._reached})

    def _tell_failure(self) -> str:
        return self.failed[0] if self.failed else ""

    def _verify(self, reach: Reach) -> None:
        """See that a fault would be found at all: with each function failing, a test must fail."""
        names = sorted(min(reach.tests.items())[1], key=lambda name: reach.seconds[name])
        fork = self._fork(names[:5], FAIL, 600, self._tell_failure)
        _read_all(fork.said)
        _, status = os.waitpid(fork.pid, 0)
        if os.waitstatus_to_exitcode(status) != KILLED:
            raise SystemExit("With each function failing no test fails: mutants are not being run.")

    # -- mutants -----------------------------------------------------------------------------------------

    def _run_mutants(self, reach: Reach) -> None:
        verdicts, chooser = Verdicts.read(self.modules), Chooser(reach, self.seconds)
        running: list[Fork] = []
        told, begun, done = monotonic(), monotonic(), 0
        try:
            for name in [name for name, code in verdicts.codes.items() if code is None]:
                tests = chooser.tests_for(name)
                if not tests:
                    verdicts.note(name, UNREACHED)
                    continue
                while len(running) >= self.workers:
                    done += self._reap(running, verdicts, chooser)
                cost = sum(reach.seconds[test] for test in tests)
                running.append(self._fork(tests, name, int(cost * LEEWAY + LEEWAY), self._tell_failure))
                if monotonic() - told > TOLD_SECONDS:
                    told = monotonic()
                    _tell(f"{verdicts.summary()}, {done / (told - begun):.1f} a second: {name}")
            while running:
                self._reap(running, verdicts, chooser)
        finally:
            for fork in running:
                os.kill(fork.pid, signal.SIGKILL)
                os.waitpid(fork.pid, 0)
            verdicts.save()
            _tell(verdicts.summary())

    def _reap(self, running: list[Fork], verdicts: Verdicts, chooser: Chooser) -> int:
        """Wait for forks, and note what they found; return how many have ended."""
        ready, _, _ = select([fork.said for fork in running], [], [], LOOKS_SECONDS)
        for late in [fork for fork in running if fork.ends < monotonic()]:
            os.kill(late.pid, signal.SIGKILL)
        ended = [fork for fork in running if fork.said in ready]
        for fork in ended:
            running.remove(fork)
            said = _read_all(fork.said)
            _, status = os.waitpid(fork.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            if code == BROKEN:
                _tell(f"{fork.mutant} could not be run: {said}")
                continue
            if code == KILLED:
                chooser.note(fork.mutant, said)
            shutil.rmtree(TEMPORARY / str(fork.pid), ignore_errors=True)
            verdicts.note(fork.mutant, code)
        return len(ended)

    # -- forks -------------------------------------------------------------------------------------------

    def _fork(self, names: Sequence[str], mutant: str, cpu_seconds: int, tell: Callable[[], str]) -> Fork:
        """Run tests in a child with a mutant, up to the first failure; all of them to see what they reach."""
        theirs, ours = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(theirs)
            try:
                _leave_alone(cpu_seconds)
                _turn_to(mutant)
                self._run([self._items[name] for name in names], all_of_them=mutant == STATS)
                said, code = tell(), KILLED if self.failed and mutant != STATS else SURVIVED
            except BaseException as error:
                said, code = f"{type(error).__name__}: {error}", BROKEN
            _end(ours, said, code)
        os.close(ours)
        return Fork(pid, theirs, monotonic() + 60 + 20 * cpu_seconds, mutant)

    def _run(self, items: Sequence[pytest.Item], all_of_them: bool) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            began = process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._seconds[item.nodeid] = process_time() - began
            self._reached[item.nodeid] = sorted(state()._stats)
            state()._stats.clear()
            if self.failed and not all_of_them:
                return


@define(eq=False)
class Verdicts:
    """The exit codes that mutmut keeps beside each module."""

    codes: dict[str, int | None]
    _files: dict[str, Path]
    """By module: where they are kept; not for those that have no mutants."""
    _saved: float = field(init=False, factory=monotonic)

    @classmethod
    def read(cls, modules: Iterable[Path]) -> Verdicts:
        """Return the verdicts so far, of all mutants that there are."""
        codes: dict[str, int | None] = {}
        files = {}
        for path in modules:
            file = MUTANTS / f"{path}.meta"
            if file.exists():
                kept = json.loads(file.read_text())["exit_code_by_key"]
                codes |= kept
                files[str(path)] = file
        return cls(codes, files)

    def note(self, name: str, code: int) -> None:
        """Note a verdict, and save them now and then."""
        self.codes[name] = code
        if monotonic() - self._saved > TOLD_SECONDS:
            self.save()

    def save(self) -> None:
        """Write them to where mutmut has them."""
        self._saved = monotonic()
        for file in self._files.values():
            kept = json.loads(file.read_text())
            codes = kept["exit_code_by_key"]
            kept["exit_code_by_key"] = {name: self.codes[name] for name in codes}
            if kept["exit_code_by_key"] != codes:
                file.with_suffix(".new").write_text(json.dumps(kept))
                file.with_suffix(".new").replace(file)

    def summary(self) -> str:
        """Return how far this has come."""
        run = [code for code in self.codes.values() if code is not None]
        missed = sum(code in (SURVIVED, UNREACHED) for code in run)
        return f"{len(run)} of {len(self.codes)} mutants, {missed} not found"


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


def _end(said_to: int, said: str, code: int) -> NoReturn:
    data = said.encode()
    while data:
        data = data[os.write(said_to, data) :]
    os._exit(code)


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as file:
        return file.read().decode(errors="replace")


def _tell(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """Return 1 if not all has run."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("tests", nargs="+")
    chosen = parser.parse_args()
    with redirect_stdout(StringIO()):
        copy_src_dir()
        copy_also_copy_files()
    setup_source_paths()
    _tell("making mutants")
    with redirect_stdout(StringIO()):
        create_mutants(chosen.workers)
    runner = MutantRunner(sorted(walk_mutatable_files()), chosen.workers, chosen.seconds)
    shutil.rmtree(TEMPORARY, ignore_errors=True)
    with change_cwd(MUTANTS):
        pytest.main([*PYTEST, *LEFT_OUT, *chosen.tests], plugins=[runner])
    return int(not runner.complete)


if __name__ == "__main__":
    sys.exit(main())
