"""Layer three of purity: the same inputs have the same outputs, in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.purity.scenario import DAYS

ROOT: Final = Path(__file__).parents[2]
SCENARIO: Final = Path(__file__).with_name("scenario.py")
SEEDS: Final = ("0", "1", "4711")

AT_ONCE: Final[Mapping[str, Mapping[str, int]]] = {
    "server": {
        "StartTool": 1,
        "StartWork": 1,
        "DeliverInput": 1,
        "RequestCancel": 1,
        "Reply": 9,
        "Load": 12,
        "Send": 9,
        "Delete": 12,
    },
    "server-of-both-eras": {
        "OpenStream": 1,
        "ListTasks": 1,
        "DeliverInput": 1,
        "Reply": 9,
        "Send": 8,
        "Delete": 6,
    },
    "requester": {
        "KeepReference": 1,
        "ShowView": 1,
        "SendRequest": 10,
        "StopRequest": 6,
        "Prompt": 4,
        "WithdrawPrompt": 3,
    },
    "requester-of-both-eras": {
        "Settle": 1,
        "SendLegacy": 6,
        "StopRequest": 2,
        "Prompt": 4,
        "WithdrawPrompt": 4,
    },
    "proxy": {
        "Note": 1,
        "Purge": 1,
        "SaveSnapshot": 1,
        "Reply": 9,
        "SendUpstream": 36,
        "StopUpstream": 18,
        "LoadTask": 12,
        "Send": 9,
    },
    "proxy-of-both-eras": {
        "ListHandles": 1,
        "SendUpstream": 6,
        "SendLegacyUpstream": 12,
        "LoadTask": 18,
        "Reply": 9,
        "Send": 7,
        "StopUpstream": 3,
    },
}
"""What each engine has to do on its day, and how often at least after one and the same input."""


@cache
def days_under(hash_seed: str, *how: str) -> Mapping[str, list[str]]:
    """Run the scenario in a process of its own; return what each engine was told and did, as text."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, str(SCENARIO), *how],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    days: dict[str, list[str]] = {name: [] for name in DAYS}
    for line in ran.stdout.splitlines():
        name, _, text = line.partition(" ")
        days[name].append(text)
    return days


def steps(day: list[str]) -> list[Counter[str]]:
    """Return how often each input of a day led to each kind of effect."""
    lines: list[Any] = [json.loads(line) for line in day]
    return [Counter(effect["$type"] for effect in line["effects"]) for line in lines[1:]]


@pytest.mark.parametrize("name", DAYS)
def test_effects_do_not_depend_on_the_hash_seed(name: str) -> None:
    first, *others = (days_under(seed)[name] for seed in SEEDS)
    assert all(day == first for day in others)


@pytest.mark.parametrize("name", DAYS)
def test_the_scenario_goes_where_order_could_leak(name: str) -> None:
    """All of a day was written down, and much of it happened at the same moment."""
    most: Counter[str] = Counter()
    for step in steps(days_under(SEEDS[0])[name]):
        most |= step
    assert most >= Counter(AT_ONCE[name]), most


@pytest.mark.parametrize("name", DAYS)
def test_an_order_that_hangs_on_hashes_is_noticed(name: str) -> None:
    """A fault is planted: whatever an engine keeps by name, it goes through as through a set of names."""
    one, other = (days_under(seed, "by-hash")[name] for seed in SEEDS[:2])
    assert one[0] == other[0], "it was made in the same way"
    assert one[1:] != other[1:]
