"""The fuzzer's command line: ``python -m fuzz --help``."""

from __future__ import annotations

import argparse
import logging
import platform
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite
from os import cpu_count
from pathlib import Path
from typing import Final

from fuzz.desk import minimise_file, replay_files, run_campaigns
from fuzz.ledger import cpu_minutes
from fuzz.paths import seeds
from fuzz.targets import TARGETS

NO_FUZZER: Final = """\
There is no atheris here, which is what fuzzes (this is Python {version} on {machine}). It comes for Linux on
x86-64, with Python 3.11, 3.12 and 3.13:

    pip install 'mcp-tasks-proto[fuzz]'         in an environment of such a Python
    make fuzz TARGET=... PYTHON=python3.13      or have make do that; `make clean` first if .venv is there

`python -m fuzz --replay` does without: it gives every seed and every earlier finding to its target.
"""


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 1 where something was found, 2 where nothing could be done."""
    parser = _parser()
    arguments = parser.parse_args(words)
    target, files = arguments.target, [Path(file) for file in arguments.files]
    if target is not None and target not in TARGETS:
        parser.error(f"there is no target {target}; these are: {', '.join(TARGETS)}")
    if files and not (arguments.replay or arguments.minimise):
        parser.error("a FILE is replayed or minimised: say --replay or --minimise")
    if arguments.minimise:
        if len(files) != 1:
            parser.error("--minimise takes a target and one file")
        return minimise_file(target, files[0])
    if target is not None and arguments.all:
        parser.error(f"--all fuzzes all targets: leave it out, or {target}")
    if arguments.replay:
        return replay_files({one: files or seeds(one) for one in ([target] if target else TARGETS)})
    if target is None and not arguments.all:
        _list()
        return 0
    if find_spec("atheris") is None:
        sys.stderr.write(NO_FUZZER.format(version=platform.python_version(), machine=platform.machine()))
        return 0 if arguments.where_possible else 2
    seconds = arguments.seconds or round(arguments.minutes * 60)
    chosen = [target] if target else list(TARGETS)
    return run_campaigns(
        chosen, seconds, arguments.jobs, arguments.record, arguments.luck, arguments.from_seeds
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz",
        description="Lists the targets, or fuzzes them. `make fuzz TARGET=... MINUTES=...` brings what it "
        "needs, and records the campaign; fuzz/README.md has the rest.",
    )
    parser.add_argument("target", nargs="?", metavar="TARGET", help="which to fuzz, or to replay")
    parser.add_argument("files", nargs="*", metavar="FILE", help="what to replay, in place of all seeds")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=_minutes, default=1.0, help="for how long (1)")
    length.add_argument("--seconds", type=_positive, help="the same in seconds")
    parser.add_argument("--all", action="store_true", help="fuzz all targets, each for that long")
    parser.add_argument(
        "--jobs", type=_positive, default=cpu_count() or 1, help="how many at a time (one a CPU)"
    )
    parser.add_argument(
        "--luck",
        type=int,
        default=0,
        help="a seed: campaigns with the same one draw the same (0: as it comes)",
    )
    parser.add_argument(
        "--from-seeds",
        action="store_true",
        help="begin without the inputs that earlier campaigns have kept: another way may lead elsewhere",
    )
    parser.add_argument(
        "--where-possible",
        action="store_true",
        help="exit with 0, and fuzz nothing, on a Python without a fuzzer",
    )
    parser.add_argument("--record", action="store_true", help="write a line into fuzz/campaigns")
    parser.add_argument("--replay", action="store_true", help="replay seeds and findings; needs no fuzzer")
    parser.add_argument("--minimise", action="store_true", help="shorten the input in FILE")
    return parser


def _positive(word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise argparse.ArgumentTypeError(f"{word} is no number from 1 on")
    return int(word)


def _minutes(word: str) -> float:
    try:
        minutes = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word} is no number") from None
    if not isfinite(minutes) or round(minutes * 60) < 1:
        raise argparse.ArgumentTypeError(f"{word} is less than a second, or no time at all")
    return minutes


def _list() -> None:
    print(f"{'target':24} {'seeds':>5} {'CPU minutes so far':>19}")
    for target, summary in TARGETS.items():
        print(f"{target:24} {len(seeds(target)):>5} {cpu_minutes(target):>19.1f}  {summary}")


if __name__ == "__main__":
    logging.disable()
    # Whoever ends this process means its workers as well, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
