"""Two processes over one SQLite file; one is killed, held up or restarted: LIFE.2, UPD.5, CAN.6, SUB.2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest
from mcp_tasks_adapters.driver import Driver
from mcp_tasks_adapters.stores.sqlite.nodes import lock_path

from tests.adapters.loop_harness import YES, Loop
from tests.adapters.node_process import lasting_server
from tests.adapters.store_harness import PATIENCE_S, opened, sqlite_store

PROJECT = Path(__file__).parents[2]

both_loops = pytest.mark.parametrize("loop", [Loop("trio"), Loop("asyncio")], ids=["trio", "asyncio"])


class Node:
    """A process, and what it says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._reading = Thread(target=self._read)
        self._reading.start()
        self.until("ready")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.decode().strip())

    def says(self) -> str:
        try:
            return self._lines.get(timeout=PATIENCE_S)
        except Empty:
            raise AssertionError("the process says nothing") from None

    def until(self, line: str) -> list[str]:
        """Return what it says before this."""
        said: list[str] = []
        while (latest := self.says()) != line:
            said.append(latest)
        return said

    def create(self) -> str:
        """Have it make a task, and return the task's id."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"create\n")
        self._process.stdin.flush()
        said = [self.says(), self.says()]
        said.remove("begins at None")
        return said[0]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join()


@contextmanager
def process(path: Path, loop: Loop) -> Iterator[Node]:
    name = "trio" if loop._trio else "asyncio"
    command = [sys.executable, "-m", "tests.adapters.node_process", str(path), name]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        node = Node(started)
        try:
            yield node
        finally:
            node.end()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


def here(loop: Loop, path: Path, said: list[str], act: Callable[[Driver], Any]) -> None:
    """Do something at a node in this process."""

    async def main() -> None:
        async with loop.node(lasting_server(loop, said.append), sqlite_store(path)) as driver:
            await act(driver)

    loop.run(main)


@both_loops
def test_answers_cancels_and_news_travel_between_processes(loop: Loop, path: Path) -> None:
    with process(path, loop) as home:
        task_id = home.create()

        async def act(away: Driver) -> None:
            async with loop.node(lasting_server(loop, print), sqlite_store(path)) as third:
                await loop.until(away, task_id, "input_required")
                listener = loop.start(third, "subscriptions/listen", notifications={"taskIds": [task_id]})
                await loop.when(lambda: len(listener.sent) == 2)
                await loop.ask(away, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
                await loop.when(lambda: listener.sent[-1]["params"].get("status") == "working")
                assert home.until("saved") == ["was told yes"]
                await loop.ask(away, "tasks/cancel", taskId=task_id)
                assert home.says() == "told to stop"
                await loop.when(lambda: listener.sent[-1]["params"].get("status") == "cancelled")

        here(loop, path, [], act)


@both_loops
def test_life2_work_of_a_process_that_is_killed_goes_on_in_another(loop: Loop, path: Path) -> None:
    """INP.1: and its question keeps its key."""
    said: list[str] = []
    with process(path, loop) as home:
        task_id = home.create()

        async def act(away: Driver) -> None:
            await loop.until(away, task_id, "input_required")
            home.signal(signal.SIGKILL)
            await loop.when(lambda: bool(said))
            view = await loop.until(away, task_id, "input_required")
            assert list(view["inputRequests"]) == ["sure"]
            await loop.ask(away, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            await loop.when(lambda: said == ["begins at None", "was told yes", "saved"])

        here(loop, path, said, act)


@both_loops
def test_a_process_that_was_taken_for_gone_wakes_and_changes_nothing(loop: Loop, path: Path) -> None:
    """Nobody takes a suspended process for gone here, unless its lock is removed."""
    said: list[str] = []
    with process(path, loop) as home:
        task_id = home.create()

        async def act(away: Driver) -> None:
            await loop.until(away, task_id, "input_required")
            home.signal(signal.SIGSTOP)
            with opened(sqlite_store(path)) as bench:
                kept = bench.load(task_id)
                assert kept is not None
                assert kept.node is not None
            lock_path(path, kept.node).unlink()
            await loop.when(lambda: bool(said))
            await loop.ask(away, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            await loop.when(lambda: said == ["begins at None", "was told yes", "saved"])
            home.signal(signal.SIGCONT)
            assert home.says() == "told to stop", "and it was not given the answer"
            view = await loop.until(away, task_id, "working")
            await loop.ask(away, "tasks/cancel", taskId=task_id)
            assert (await loop.until(away, task_id, "cancelled"))["createdAt"] == view["createdAt"]
            assert said[-1] == "told to stop"

        here(loop, path, said, act)


@both_loops
def test_life4_a_process_goes_on_after_its_own_restart(loop: Loop, path: Path) -> None:
    """It was killed, so its name is gone; the next one finds its work when it starts."""
    with process(path, loop) as first:
        task_id = first.create()
        first.signal(signal.SIGKILL)
    with process(path, loop) as second:
        assert second.says() == "begins at None"

        async def answer(away: Driver) -> None:
            await loop.until(away, task_id, "input_required")
            await loop.ask(away, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            assert second.until("saved") == ["was told yes"]

        here(loop, path, [], answer)
        second.signal(signal.SIGKILL)
    with process(path, loop) as third:
        assert third.says() == "begins at 1"


@both_loops
def test_life4_a_server_that_ends_in_good_order_hands_its_work_on(loop: Loop, path: Path) -> None:
    said: list[str] = []
    task_ids: list[str] = []

    async def begin(node: Driver) -> None:
        task_ids.append(await loop.create(node, "lasting"))
        await loop.until(node, task_ids[0], "input_required")
        await loop.ask(node, "tasks/update", taskId=task_ids[0], inputResponses={"sure": YES})
        await loop.when(lambda: "saved" in said)

    async def go_on(node: Driver) -> None:
        await loop.when(lambda: said[-1] == "begins at 1")
        await loop.ask(node, "tasks/cancel", taskId=task_ids[0])
        await loop.until(node, task_ids[0], "cancelled")

    here(loop, path, said, begin)
    here(loop, path, said, go_on)
