"""What every benchmark shares: starting servers, alternating runs, figures and their table.

Figures are ratios of two sides that were measured in turn, in one run, on one machine: absolute rates depend
on the machine and on what else it does, ratios much less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

from attrs import asdict, frozen
from rich.console import Console
from rich.table import Table

__all__ = [
    "PROJECT",
    "Comparison",
    "Figure",
    "Options",
    "ServerProcess",
    "alternate",
    "main",
    "pin_load",
    "print_table",
]

PROJECT: Final = Path(__file__).resolve().parent.parent
LEAST_RUNS: Final = 5
BRIEF_RUNS: Final = 2
BRIEF_SHARE: Final = 0.5
"""Of the usual length of a run."""
BUSY_SHARE: Final = 0.05
STOP_SECONDS: Final = 10.0


# -- options ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Options:
    """How to measure."""

    runs: int
    """Runs of each side."""
    seconds: float
    """How long one run of one side is counted."""
    brief: bool = False
    """Whether to measure less, to see that it can be measured at all."""

    def many(self, number: int) -> int:
        """Return how many there are to be where ``number`` are many: a tenth, in brief."""
        return number // 10 if self.brief else number


@frozen(kw_only=True)
class Figure:
    """One number that a benchmark gave, and what it should be."""

    benchmark: str
    subject: str
    value: float
    unit: str
    """``"x"``: a ratio."""
    at_least: float | None = None
    at_most: float | None = None
    """Neither: for information."""
    detail: str = ""

    @property
    def met(self) -> bool:
        """Whether it is what it should be."""
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def target(self) -> str:
        """What it should be, in words."""
        if self.at_least is not None:
            return f">= {self.at_least:,g} {self.unit}"
        return "" if self.at_most is None else f"<= {self.at_most:,g} {self.unit}"

    @property
    def verdict(self) -> str:
        """Whether it is, in words."""
        return "" if not self.target else "met" if self.met else "MISSED"


def print_table(figures: Sequence[Figure]) -> None:
    """Print ``figures``, one a line."""
    table = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "subject"):
        table.add_column(heading)
    for heading in ("measured", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("medians")
    for figure in figures:
        value = f"{figure.value:,.2f}" if figure.value < 100 else f"{figure.value:,.0f}"
        table.add_row(
            figure.benchmark,
            figure.subject,
            f"{value} {figure.unit}",
            figure.target,
            figure.verdict,
            figure.detail,
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def main(
    measure: Callable[[Options], Sequence[Figure]], about: str, *, seconds: float, runs: int = LEAST_RUNS
) -> None:
    """Run one benchmark as a script, and exit: with 1 when a target is missed, unless ``--report-only``."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--report-only", action="store_true", help="exit with 0 also when a target is missed")
    parser.add_argument("--runs", type=int, default=runs, help="runs of each side (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="length of a run (default: %(default)s)"
    )
    parser.add_argument(
        "--brief",
        action="store_true",
        help="two runs, half as long, and a tenth of the tasks where there are many",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    arguments = parser.parse_args()
    if arguments.runs < LEAST_RUNS:
        parser.error(f"a median of fewer than {LEAST_RUNS} runs says too little")
    os.chdir(PROJECT)
    options = Options(runs=arguments.runs, seconds=arguments.seconds)
    if arguments.brief:
        options = Options(runs=BRIEF_RUNS, seconds=arguments.seconds * BRIEF_SHARE, brief=True)
    figures = measure(options)
    print_table(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")
    sys.exit(0 if arguments.report_only or all(figure.met for figure in figures) else 1)


# -- runs ---------------------------------------------------------------------------------------------------


@frozen
class Comparison:
    """What alternating runs gave for each side."""

    sides: Mapping[str, Sequence[float]]

    def median(self, side: str) -> float:
        """Return the median of one side."""
        return median(self.sides[side])

    def ratio(self, ours: str, theirs: str) -> float:
        """Return the median, over the turns, of one side's value divided by the other's in the same turn.

        Both values of a turn were measured right after one another, so that a machine that slows down for a
        while slows both.
        """
        return median(a / b for a, b in zip(self.sides[ours], self.sides[theirs], strict=True))


def alternate(sides: dict[str, Callable[[], float]], runs: int) -> Comparison:
    """Measure every side ``runs`` times, one after another; every second turn goes the other way round."""
    values: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(runs):
        for side in sides if turn % 2 == 0 else reversed(sides):
            values[side].append(sides[side]())
    return Comparison(values)


# -- processes ----------------------------------------------------------------------------------------------

_CORES: Final = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin_load() -> None:
    """Keep this process, which makes the load, off the core that servers are pinned to."""
    if len(_CORES) > 1:
        os.sched_setaffinity(0, {_CORES[1]})


class ServerProcess:
    """A server in a process of its own, on a core of its own; leave the context to stop it.

    It prints its URL in a line when it accepts connections. Raises ``RuntimeError`` when it does not.
    ``beside_load``: it is not what is measured, and shares the core of the load.
    """

    def __init__(
        self, *arguments: str, python: str | Path = sys.executable, beside_load: bool = False
    ) -> None:
        self._command = [str(python), *arguments]
        self._core = 1 if beside_load else 0

    def __enter__(self) -> ServerProcess:
        self._process = subprocess.Popen(
            self._command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if len(_CORES) > 1:
            os.sched_setaffinity(self._process.pid, {_CORES[self._core]})
        assert self._process.stdout is not None
        url = urlsplit(self._process.stdout.readline().strip())
        if url.port is None:
            self._stop()
            raise RuntimeError(f"did not start: {' '.join(self._command)}")
        self.port = url.port
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        waited = waiting_share(self._process.pid)
        if waited > BUSY_SHARE:
            print(
                f"note: {' '.join(self._command[1:4])} waited {waited:.0%} of its time for a core: "
                "this machine is busy, and the ratios may be off",
                file=sys.stderr,
            )
        self._process.terminate()
        try:
            self._process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    @property
    def resident_bytes(self) -> int:
        """How much memory it holds at the moment."""
        return resident_bytes(self._process.pid)

    def processor_seconds(self) -> float:
        """Return how long its main thread has run on a core; 0: not known."""
        return (_schedule(self._process.pid) or (0, 0))[0] / 1e9


def waiting_share(process_id: int) -> float:
    """Return how much of the time that a process wanted to run it had to wait for a core; 0: not known."""
    ran, waited = _schedule(process_id) or (0, 0)
    return waited / (ran + waited) if ran else 0.0


def _schedule(process_id: int) -> tuple[int, int] | None:
    """Return how long a process has run, and how long it has waited for a core, in nanoseconds."""
    try:
        ran, waited, _ = map(int, Path(f"/proc/{process_id}/schedstat").read_text().split())
    except (OSError, ValueError):
        return None
    return ran, waited


def resident_bytes(process_id: int) -> int:
    """Return the resident set size of a process."""
    status = Path(f"/proc/{process_id}/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    listed = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(process_id)], check=True, capture_output=True, text=True
    )
    return int(listed.stdout) * 1024
