"""All benchmarks, each in a process of its own, and one table at the end: ``python -m bench``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import PROJECT, Figure, print_table

BENCHMARKS = ("core", "http", "proxy", "peers", "client", "memory", "store")


def main() -> None:
    """Run them in turn; exit with 1 when one of them missed a target."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--report-only", action="store_true", help="exit with 0 also when a target is missed")
    parser.add_argument("--brief", action="store_true", help="measure less, to see that it can be measured")
    parser.add_argument(
        "benchmarks", nargs="*", metavar="BENCHMARK", help=f"some of: {', '.join(BENCHMARKS)}"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.benchmarks) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    figures: list[Figure] = []
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for benchmark in arguments.benchmarks or BENCHMARKS:
            print(f"-- {benchmark}", flush=True)
            results = Path(folder) / f"{benchmark}.json"
            command = [sys.executable, "-m", f"bench.{benchmark}", "--report-only", "--json", str(results)]
            command += ["--brief"] if arguments.brief else []
            if subprocess.run(command, cwd=PROJECT).returncode:
                broken.append(benchmark)
            else:
                figures += [Figure(**figure) for figure in json.loads(results.read_text())]
    print("\n== summary")
    print_table(figures)
    if broken:
        sys.exit(f"did not run to the end: {', '.join(broken)}")
    sys.exit(0 if arguments.report_only or all(figure.met for figure in figures) else 1)


if __name__ == "__main__":
    main()
