"""What the command line does, and how it shows it."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from fuzz.campaign import Campaign
from fuzz.findings import Finding, minimise, replay
from fuzz.ledger import record
from fuzz.paths import SEEDS, WORK, shown, trouble_with
from fuzz.targets import Check, load

__all__ = ["minimise_file", "replay_files", "run_campaigns"]

LOOKS_SECONDS: Final = 0.5
TOLD_SECONDS: Final = 10.0
"""Between two lines of progress, where it is not shown on a terminal."""
CLEAR_LINE: Final = "\r\x1b[K"
MOST_PRINTED: Final = 3000
"""Bytes of an input that are printed for another machine, which may be all that is left of it."""


# -- campaigns -----------------------------------------------------------------------------------------------


def run_campaigns(
    targets: Sequence[str], seconds: int, jobs: int, recorded: bool, luck: int = 0, from_seeds: bool = False
) -> int:
    """Fuzz each target for so long, ``jobs`` at a time; return 1 where one found something or broke down."""
    waiting, running, failures = list(targets), list[Campaign](), list[str]()
    screen = _Screen()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                target = waiting.pop(0)
                try:
                    running.append(Campaign(target, seconds, luck, from_seeds))
                except OSError as error:
                    screen.clear()
                    failures.append(f"{target}: DID NOT BEGIN: {trouble_with(error)}")
                    print(failures[-1], flush=True)
            sleep(LOOKS_SECONDS)
            for campaign in running:
                campaign.look()
            screen.show(running)
            for campaign in [one for one in running if one.over]:
                running.remove(campaign)
                screen.clear()
                failures += _tell(campaign, recorded)
    except KeyboardInterrupt:
        failures.append("ended before its time")
        screen.clear()
        for campaign in running:
            campaign.stop()
            while not campaign.over:
                sleep(LOOKS_SECONDS)
                campaign.look()
            failures += _tell(campaign, recorded)
    finally:
        for campaign in running:
            if not campaign.over:
                campaign.stop()
    if failures:
        print("\nTo be looked at:", *failures, sep="\n  ", flush=True)
    return int(bool(failures))


class _Screen:
    """Moving progress: one line that changes on a terminal, or a line now and then."""

    def __init__(self) -> None:
        self._moves = sys.stdout.isatty()
        self._told = monotonic()

    def show(self, running: Sequence[Campaign]) -> None:
        """Show how far each campaign has come."""
        if self._moves:
            print(CLEAR_LINE + "   ".join(_line(one) for one in running)[:160], end="", flush=True)
        elif monotonic() - self._told >= TOLD_SECONDS:
            self._told = monotonic()
            print("\n".join(_line(one) for one in running), flush=True)

    def clear(self) -> None:
        """Make room for something that stays."""
        if self._moves:
            print(CLEAR_LINE, end="")


def _line(campaign: Campaign) -> str:
    progress = campaign.progress
    if not progress.edges:
        return f"{campaign.target}: beginning"
    return (
        f"{campaign.target}: {progress.seconds:.0f}/{campaign.seconds} s, {progress.executions} executions "
        f"({progress.executions_per_second}/s), {progress.edges} edges, corpus {progress.corpus}, "
        f"{_number(int(campaign.finding is not None), 'finding')}"
    )


def _tell(campaign: Campaign, recorded: bool) -> list[str]:
    """Say how a campaign ended; return what there is to be done something about, each in a line."""
    progress, failures = campaign.progress, list[str]()
    print(
        f"{campaign.target}: {progress.executions} executions, {progress.edges} edges, "
        f"corpus {progress.corpus}, {campaign.cpu_seconds / 60:.1f} CPU minutes",
        flush=True,
    )
    if recorded and campaign.trouble is None:
        try:
            print(f"  recorded in {shown(record(campaign))}")
        except OSError as error:
            failures.append(f"NOT RECORDED: {trouble_with(error)}")
    if campaign.trouble is not None:
        failures.append(f"BROKE DOWN: {campaign.trouble}")
    for failure in failures:
        print(f"  {failure}")
    if campaign.finding is not None:
        failures += _tell_finding(campaign.target, *campaign.finding)
    return [f"{campaign.target}: {failure}" for failure in failures]


def _tell_finding(target: str, path: Path, finding: Finding) -> list[str]:
    print(f"  FOUND: {finding.problem}\n  at {finding.place}", flush=True)
    shortest = path
    if finding.report and minimise_file(target, path) == 1:
        shortest = _shortest(target, path)
    data = shortest.read_bytes()
    told = [f"FOUND: {finding.problem} at {finding.place}"]
    if len(data) <= MOST_PRINTED:
        told.append(f"echo {b64encode(data).decode()} | base64 -d > fuzz/corpus/{target}/WHAT-IT-SHOWS")
    return told


def _shortest(target: str, path: Path) -> Path:
    """Return where the input in ``path`` is kept when it has been made as short as it gets."""
    return WORK / target / f"{path.name.removesuffix('.shortest')}.shortest"


# -- single inputs -------------------------------------------------------------------------------------------


def minimise_file(target: str, path: Path) -> int:
    """Shorten an input and say where it is; return 2 where it cannot be read, or nothing is wrong with it."""
    check = _loaded(target)
    if check is None:
        return 2
    try:
        data, found = path.read_bytes(), replay(check, [path])
    except OSError as error:
        print(f"{target}: not minimised: {trouble_with(error)}")
        return 2
    if not found:
        print(f"{target} has nothing to object to in {shown(path)}")
        return 2
    screen = sys.stdout.isatty()
    shortest = minimise(
        check,
        data,
        lambda size: print(f"{CLEAR_LINE}  {size} bytes", end="", flush=True) if screen else None,
    )
    kept = _shortest(target, path)
    print(f"{CLEAR_LINE if screen else ''}  from {len(data)} bytes to {len(shortest)}: {shortest[:100]!r}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(shortest)
    except OSError as error:
        print(f"  not kept: {trouble_with(error)}")
        return 2
    print(
        f"  replay: python -m fuzz --replay {target} {shown(kept)}\n"
        f"  keep:   cp {shown(kept)} fuzz/corpus/{target}/WHAT-IT-SHOWS   (make test replays it from then on)"
    )
    return 1


def _loaded(target: str) -> Check | None:
    """Return the function of a target; ``None``: a package is missing, and it is said which."""
    try:
        return load(target)
    except ModuleNotFoundError as missing:
        print(f"{target}: not replayed, for it needs {missing.name}: pip install 'mcp-tasks-proto[fuzz]'")
        return None


def _replayed(check: Check, paths: Sequence[Path]) -> tuple[dict[Path, Finding], list[str]]:
    """Give files to a target; return what it objects to, by file, and why others cannot be read."""
    found: dict[Path, Finding] = {}
    troubles: list[str] = []
    for path in paths:
        try:
            found |= replay(check, [path])
        except OSError as error:
            troubles.append(trouble_with(error))
    return found, troubles


def replay_files(files: Mapping[str, Sequence[Path]]) -> int:
    """Give files to their targets; return 1 where one objects, 2 where one cannot be loaded, or read."""
    worst = 0
    for target, paths in files.items():
        check = _loaded(target)
        if check is None:
            worst = 2
            continue
        found, troubles = _replayed(check, paths)
        replayed = _number(len(paths) - len(troubles), "input")
        print(f"{target}: {replayed}, {_number(len(found), 'finding')}", flush=True)
        for trouble in troubles if paths else [f"there is nothing in {shown(SEEDS / target)}"]:
            worst = 2
            print(f"  not replayed: {trouble}")
        told: list[Finding] = []
        for path, finding in found.items():
            worst = max(worst, 1)
            print(f"  {shown(path)}: {finding.problem}\n  at {finding.place}")
            if not any(finding.is_like(other) for other in told):
                print(finding.report)
            told.append(finding)
    return worst


def _number(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"
