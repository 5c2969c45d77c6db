"""``python -m tests.mutants MODULE…``: mutmut over modules of the core, with a record of each.

Stopped and started again, it goes on where it was: what a test has found is kept in ``.mutants`` for as long
as the function is the same; what none has found runs again, because there may be other tests. A record is
written once all mutants of its module have run, so that reasons in it outlive a run that was interrupted.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.mutants.record import Mutant, Record, again, mutants, parsed, reasons, recorded, rendered
from tests.mutants.workspace import CORE, MUTANTS, REPOSITORY, TESTS, WORKSPACE, prepare

RECORDS: Final = Path(__file__).parent / "records"


def chosen_modules(names: list[str]) -> list[str]:
    """Return the modules that were asked for, folders opened; whole paths.

    If none were, all that run in production: those in ``testing`` are there for tests, which use them.
    """
    found: list[str] = []
    for name in names or [CORE]:
        path = REPOSITORY / name
        if not path.exists():
            raise SystemExit(f"There is no {name}: say a module or a folder, as in {CORE}/lifecycle.py")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found += [
            str(file.resolve().relative_to(REPOSITORY))
            for file in files
            if _is_of_core(file) and (names or not file.is_relative_to(REPOSITORY / CORE / "testing"))
        ]
        if not any(_is_of_core(file) for file in files):
            raise SystemExit(f"{name} has no module of {CORE}, and only those have mutants")
    return list(dict.fromkeys(found))


def _is_of_core(path: Path) -> bool:
    return path.suffix == ".py" and path.resolve().is_relative_to(REPOSITORY / CORE)


def existing_tests(names: list[str]) -> list[str]:
    """Return the tests that were named. Raises ``SystemExit`` for those that are not there."""
    missing = [name for name in names if not (REPOSITORY / name.partition("::")[0]).exists()]
    if missing:
        raise SystemExit(f"There is no {missing[0]}: say tests of this repository, as in {TESTS[0]}")
    return names


def commit() -> str:
    """Return the commit that is tested, with a word if the files are not those of it."""
    said = ["git", "-C", str(REPOSITORY)]
    head = subprocess.run([*said, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    changes = subprocess.run(
        [*said, "status", "--porcelain", CORE, "tests"], capture_output=True, text=True, check=True
    )
    return head.stdout.strip() + (" and changes" if changes.stdout.strip() else "")


def record_path(module: str) -> Path:
    """Return where the record of a module is: ``wire/http.py`` has ``wire-http.txt``."""
    return RECORDS / (module.removeprefix(f"{CORE}/").removesuffix(".py").replace("/", "-") + ".txt")


def mutate(modules: list[str], tests: list[str], workers: int, seconds: float, memory_mib: int) -> int:
    """Run the mutants of ``modules`` on which there is no verdict; return an exit code.

    Every process has ``memory_mib`` at most.
    """
    if find_spec("mutmut") is None:
        raise SystemExit("There is no mutmut: `make mutants` installs it into .venv")
    prepare(modules)

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_mib * 2**20,) * 2)

    # The workspace has all that tests import; a path to the repository would find what is not mutated.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    how = ["--workers", str(workers), "--seconds", str(seconds)]
    command = [sys.executable, "-m", "tests.mutants.running", *how, *tests]
    # A terminal's Ctrl-C reaches the runner as well, which then stops by itself: wait for it. Whoever ends
    # this process alone means the runner too.
    running = subprocess.Popen(command, cwd=WORKSPACE, env=environment, preexec_fn=bound)
    signal.signal(signal.SIGTERM, lambda *_: running.send_signal(signal.SIGINT))
    while True:
        try:
            return running.wait()
        except KeyboardInterrupt:
            continue


def main() -> int:
    """Return 1 if a mutant survived that is not justified, or one has not run."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="modules or folders (default: all)")
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="default: %(default)s")
    parser.add_argument("--workers", type=_positive, default=os.cpu_count() or 1, help="default: %(default)s")
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="of tests for each mutant, the likely ones first (default: %(default)s)",
    )
    parser.add_argument(
        "--memory-mib", type=_positive, default=3072, help="of a process (default: %(default)s)"
    )
    parser.add_argument("--go-on", action="store_true", help="do not try again what no test has found so far")
    parser.add_argument("--record-only", action="store_true", help="run nothing, and write the records anew")
    chosen = parser.parse_args()
    modules, tests = chosen_modules(chosen.modules), existing_tests(chosen.tests)
    code = 0
    if not (chosen.record_only or chosen.go_on):
        for module in modules:
            again(MUTANTS / module)
    if not chosen.record_only:
        code = mutate(modules, tests, chosen.workers, chosen.seconds, chosen.memory_mib)
    complete = True
    for module in modules:
        found = mutants(MUTANTS / module)
        if found:
            complete &= write_record(module, tests, found, record_path(module))
    return code or int(not complete)


def _positive(word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise argparse.ArgumentTypeError(f"{word} is no number from 1 on")
    return int(word)


def write_record(module: str, tests: list[str], found: list[Mutant], path: Path) -> bool:
    """Write the record of a module, unless some of it has not run; return whether there is nothing to do."""
    record = recorded(module, commit(), " ".join(tests), found, reasons(path))
    print(summary(record))
    if not record.complete:
        print(f"  its record, {path.name}, stays as it was until all have run")
        return False
    path.write_text(rendered(record))
    return parsed(path.read_text()).justified


def summary(record: Record) -> str:
    """Return one line about a module."""
    kinds = ", ".join(f"{number} {verdict}" for verdict, number in sorted(record.counts.items()))
    return f"{record.module}: {record.percent_killed:.1f} % found ({kinds})"


if __name__ == "__main__":
    raise SystemExit(main())
