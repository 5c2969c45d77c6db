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
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from pathlib import Path
from time import monotonic, process_time
from typing import Final

import pytest
from attrs import asdict, define, field
from hypothesis import Phase, settings
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd, walk_mutatable_files

from tests.mutants.choosing import Chooser, Reach
from tests.mutants.forks import BROKEN, TEMPORARY, Forks, Run, fork, outcome
from tests.mutants.verdicts import KILLED, SURVIVED, UNREACHED, Verdicts
from tests.mutants.workspace import MUTANTS, WORKSPACE

REACH: Final = WORKSPACE / "reach.json"
"""Which tests reach which function, and what each costs."""
MOST_LEFT_OUT: Final = 10
"""Tests that may fail without a mutant: calls are deeper where all can be mutated, as some can tell."""

STATS: Final = "stats"
FAIL: Final = "fail"
"""What mutmut takes for a mutant: all functions tell that they were called, or raise."""

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
LEEWAY_SECONDS: Final = 2.0
"""A test that takes this many times what it costs, and this many seconds more, has met an endless mutant."""
DAY: Final = 24 * 3600
TOLD_SECONDS: Final = 15.0


class Steady:
    """A plugin of pytest for all of them."""

    def pytest_configure(self) -> None:
        """Let no failing example be made shorter: it is enough that there is one."""
        settings.register_profile(
            "mutants", settings.get_profile("steady"), phases=[Phase.explicit, Phase.generate], database=None
        )
        settings.load_profile("mutants")


STEADY: Final = Steady()


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
        kept = json.loads(REACH.read_text())
        return Reach(**kept) if kept["digest"] == self._digest() else None

    def _digest(self) -> str:
        """Return a digest of the mutants and the tests, and of which of them there are."""
        digest = sha256(repr((self.modules, sorted(self._items))).encode())
        for path in sorted(MUTANTS.rglob("*")):
            told = path.suffix in (".py", ".txt", ".json") and path.is_file()
            if told and "mutants" not in path.relative_to(MUTANTS).parts:
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
        forks = [fork(STATS, DAY, self._run(share, {}, looks=True)) for share in shares if share]
        tests: dict[str, list[str]] = {}
        seconds: dict[str, float] = {}
        failed: list[str] = []
        for one in forks:
            said, code = outcome(one)
            if code:
                raise SystemExit(f"The tests could not be run: {said}")
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
        reach = Reach(tests, seconds, failed, self._digest())
        REACH.write_text(json.dumps(asdict(reach)))
        return reach

    def _tell_reach(self) -> str:
        return json.dumps({"failed": self.failed, "seconds": self._seconds, "reached": self._reached})

    def _verify(self, reach: Reach) -> None:
        """See that a fault would be found at all: with each function failing, a test must fail."""
        if not reach.tests:  # what there is runs at import alone
            return
        names = sorted(min(reach.tests.items())[1], key=lambda name: reach.seconds[name])
        _, code = outcome(fork(FAIL, DAY, self._run(names[:5], {})))
        if code != KILLED:
            raise SystemExit("With each function failing no test fails: mutants are not being run.")

    # -- mutants -----------------------------------------------------------------------------------------

    def _run_mutants(self, reach: Reach) -> None:
        verdicts, chooser = Verdicts.read(self.modules), Chooser(reach, self.seconds)
        told = begun = monotonic()
        with Forks(self.workers, verdicts, chooser.note) as forks:
            for name in [name for name, code in verdicts.codes.items() if code is None]:
                tests = chooser.tests_for(name)
                if not tests:
                    verdicts.note(name, UNREACHED)
                    continue
                cost = sum(reach.seconds[test] for test in tests)
                forks.add(name, int(60 + LEEWAY * cost), self._run(tests, reach.seconds))
                if monotonic() - told > TOLD_SECONDS:
                    told = monotonic()
                    _tell(f"{verdicts.summary()}, {forks.done / (told - begun):.1f} a second: {name}")
            forks.finish()

    # -- tests -------------------------------------------------------------------------------------------

    def _run(self, names: Sequence[str], seconds: Mapping[str, float], *, looks: bool = False) -> Run:
        """Return what a fork does: run tests up to the first failure, or all of them to look what they reach.

        ``seconds`` is what each of them costs, if that is known.
        """

        def run() -> tuple[str, int]:
            items = [self._items[name] for name in names]
            for item, following in zip(items, [*items[1:], None], strict=True):
                if seconds:
                    limit = LEEWAY * seconds[item.nodeid] + LEEWAY_SECONDS
                    signal.setitimer(signal.ITIMER_PROF, limit)
                self._run_one(item, following)
                if self.failed and not looks:
                    return self.failed[0], KILLED
            return self._tell_reach() if looks else "", SURVIVED

        return run

    def _run_one(self, item: pytest.Item, following: pytest.Item | None) -> None:
        began = process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self._seconds[item.nodeid] = process_time() - began
        self._reached[item.nodeid] = sorted(state()._stats)
        state()._stats.clear()


# -- what runs when a module is imported ---------------------------------------------------------------------


@define(eq=False)
class Beginning:
    """A plugin of pytest for a mutant that is there from the beginning: the first failure ends it."""

    seconds: float
    """How much of tests it is given, once they are collected."""
    failed: bool = field(init=False, default=False)
    _begun: float | None = field(init=False, default=None)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that cannot be imported."""
        self.failed |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed |= report.failed

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Stop where it has had its seconds."""
        self._begun = self._begun or process_time()
        if process_time() - self._begun > self.seconds:
            item.session.shouldstop = "it has had its seconds"


def run_from_the_beginning(
    modules: Iterable[Path], tests: Sequence[str], workers: int, seconds: float
) -> None:
    """Run mutants again that no test reaches, with all tests: what they change may run at import alone.

    To be called where the core is not yet imported.
    """
    verdicts = Verdicts.read(modules)
    options = [*PYTEST, "--exitfirst", *LEFT_OUT]
    options += [f"--deselect={test}" for test in json.loads(REACH.read_text())["left_out"]]

    def run() -> tuple[str, int]:
        watching = Beginning(seconds)
        code = pytest.main([*options, *tests], plugins=[STEADY, watching])
        if code is pytest.ExitCode.USAGE_ERROR:
            return "the tests cannot be run", BROKEN
        return "", KILLED if watching.failed or code is pytest.ExitCode.INTERNAL_ERROR else SURVIVED

    unreached = [name for name, code in verdicts.codes.items() if code == UNREACHED]
    with Forks(workers, verdicts) as forks:
        for number, name in enumerate(unreached):
            _tell(f"{number} of {len(unreached)} from the beginning: {name}")
            forks.add(name, int(seconds * LEEWAY) + 60, run)
        forks.finish()


def _tell(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """Return 1 if not all has run."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("tests", nargs="+")
    chosen = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs are without
    with redirect_stdout(StringIO()):
        copy_src_dir()
        copy_also_copy_files()
    setup_source_paths()
    _tell("making mutants")
    with redirect_stdout(StringIO()):
        create_mutants(chosen.workers)
    shutil.rmtree(TEMPORARY, ignore_errors=True)
    modules = sorted(walk_mutatable_files())
    with change_cwd(MUTANTS):
        # In a child, since what a process has imported stays as it is.
        pid = os.fork()
        if not pid:
            runner = MutantRunner(modules, chosen.workers, chosen.seconds)
            pytest.main([*PYTEST, *LEFT_OUT, *chosen.tests], plugins=[STEADY, runner])
            os._exit(int(not runner.complete))
        try:
            _, status = os.waitpid(pid, 0)
        except KeyboardInterrupt:
            os.kill(pid, signal.SIGINT)
            _, status = os.waitpid(pid, 0)
        if not status:
            run_from_the_beginning(modules, chosen.tests, chosen.workers, chosen.seconds)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
