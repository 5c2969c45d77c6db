"""Processes that work on a store (``store_process``), and what must be left of them when they are killed."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Final

from attrs import evolve

from mcp_tasks_proto.effects import Save
from mcp_tasks_proto.inputs import Saved, WorkLost
from mcp_tasks_proto.lifecycle import Status
from tests.adapters.store_harness import Bench, Place, opened

__all__ = ["check", "clerk", "kill_and_account", "kill_at_a_random_moment"]

PROJECT: Final = Path(__file__).parents[2]


@contextmanager
def clerk(*store_and_prefix: object) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process work on the store; it is killed at the end, if it was not before."""
    command = [sys.executable, "-m", "tests.adapters.store_process", *map(str, store_and_prefix)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def acknowledged(said: bytes) -> dict[str, int]:
    """Return what was acknowledged last of each task; 0 stands for removed."""
    *lines, _unfinished = said.decode().split("\n")
    return {name: int(version) for name, version in (line.split() for line in lines)}


def kill_at_a_random_moment(process: subprocess.Popen[bytes]) -> dict[str, int]:
    assert process.stdout is not None
    first = process.stdout.readline()
    sleep(random.uniform(0, 0.15))
    process.kill()
    return acknowledged(first + process.stdout.read())


def check(bench: Bench, promised: Mapping[str, int]) -> None:
    """Everything that was acknowledged is there, or the step that was under way after it."""
    for name, version in promised.items():
        found = bench.load(name)
        if version == 0:
            assert found is None, name
        elif found is None:
            assert version == 3, f"{name} was acknowledged and is lost"
        else:
            assert found.version in (version, version + 1), name


def kill_and_account(place: Place, kills: int, *store: object) -> None:
    """Kill so many processes at work, one after the other, and miss nothing that they said (LIFE.4).

    ``store`` is what they are told about ``place``.
    """
    promised: dict[str, int] = {}
    for kill in range(kills):
        with clerk(*store, f"kill{kill}") as process:
            before = len(promised)
            promised |= kill_at_a_random_moment(process)
            assert len(promised) > before
    with opened(place.store()) as bench:
        check(bench, promised)
        assert place.run("SELECT tasks, payload_bytes FROM totals") == place.run(
            "SELECT count(*), CAST(sum(payload_bytes) AS bigint) FROM tasks"
        )
        bench.watch()
        _end_what_was_lost(bench, place)
    assert place.run("SELECT count(*) FROM tasks WHERE node IS NOT NULL") == [(0,)]
    assert place.nodes() == []


def _end_what_was_lost(bench: Bench, place: Place) -> None:
    """Do what an engine does: end each task whose node is gone, until nobody waits for a node that is."""
    ended: set[str] = set()
    while place.nodes() != [bench.store.node]:
        bench.until(lambda: bool(bench.heard) or place.nodes() == [bench.store.node])
        for news in list(bench.heard):
            if isinstance(news, WorkLost) and news.task_id not in ended:
                current = bench.load(news.task_id)
                assert current is not None
                assert current.node == news.node
                after = evolve(current, version=current.version + 1, node=None, status=Status.FAILED)
                assert bench.ask([Save(after, current.version, 1)]) == [Saved(1)]
                ended.add(news.task_id)
        bench.heard.clear()
