"""``python -m tests.mutants MODULE…``: mutmut over modules of the core, with a record of each.

Stopped and started again, it goes on where it was: what a test has found is kept in ``.mutants`` for as long
as the function is the same; what none has found runs again, because there may be other tests.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.mutants.record import Record, again, mutants, parsed, reasons, recorded, rendered
from tests.mutants.workspace import CORE, REPOSITORY, TESTS, WORKSPACE, prepare

RECORDS: Final = Path(__file__).parent / "records"


def chosen_modules(names: list[str]) -> list[str]:
    """Return the modules that were asked for, folders opened, all of the core if none; whole paths."""
    found: list[str] = []
    for name in names or [CORE]:
        path = REPOSITORY / name
        if not path.exists():
            raise SystemExit(f"There is no {name}: say a module or a folder, as in {CORE}/lifecycle.py")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found += [str(file.relative_to(REPOSITORY)) for file in files]
    return list(dict.fromkeys(found))


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


def mutate(modules: list[str], tests: list[str], workers: int, memory_mib: int) -> int:
    """Run mutmut on ``modules`` and return its exit code. Every process of it has ``memory_mib`` at most."""
    prepare(modules, tests)
    for module in modules:
        again(WORKSPACE / "mutants" / module)

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_mib * 2**20,) * 2)

    # The workspace has all that is to be imported; a path to the repository would find what is not mutated.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(workers)]
    # A terminal's Ctrl-C reaches mutmut as well, which then stops by itself: wait for it.
    running = subprocess.Popen(command, cwd=WORKSPACE, env=environment, preexec_fn=bound)
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
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="default: %(default)s")
    parser.add_argument("--memory-mib", type=int, default=3072, help="of a process (default: %(default)s)")
    parser.add_argument("--record-only", action="store_true", help="write down what was found so far")
    chosen = parser.parse_args()
    modules = chosen_modules(chosen.modules)
    code = 0
    if not chosen.record_only:
        code = mutate(modules, chosen.tests, chosen.workers, chosen.memory_mib)
    complete = True
    for module in modules:
        found = mutants(WORKSPACE / "mutants" / module)
        if not found:
            continue
        path = record_path(module)
        record = recorded(module, commit(), " ".join(chosen.tests), found, reasons(path))
        path.write_text(rendered(record))
        print(summary(record))
        complete &= parsed(path.read_text()).justified
    return code or int(not complete)


def summary(record: Record) -> str:
    """Return one line about a module."""
    kinds = ", ".join(f"{number} {verdict}" for verdict, number in sorted(record.counts.items()))
    return f"{record.module}: {record.percent_killed:.1f} % found ({kinds})"


if __name__ == "__main__":
    raise SystemExit(main())
