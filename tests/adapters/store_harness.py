"""Stores, asked from a plain test: no event loop, no thread but the store's own."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Protocol

from attrs import define, evolve, field, frozen
from mcp_tasks_adapters.stores import SqliteStore
from mcp_tasks_adapters.storing import News, Store, StoreEffect

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Quota, Save
from mcp_tasks_proto.inputs import ExpiredFound, Loaded, RecordChanged, Saved, StoreInput, WorkLost
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import TaskRecord

NOW: Final = 1_700_000_000_000
ROOMY: Final = Quota(tasks=1000, tasks_per_principal=1000, task_bytes=1_000_000)
PATIENCE_S: Final = 60.0
"""For whatever should not take long, on a machine that is busy."""


def record(task_id: str = "a", **changes: Any) -> TaskRecord:
    plain = TaskRecord(
        task_id=task_id,
        version=1,
        principal=None,
        tool="render",
        arguments={"frames": 3},
        client_capabilities={},
        status=Status.WORKING,
        created_at_ms=NOW,
        last_updated_at_ms=NOW,
        ttl_ms=1000,
        payload_bytes=10,
    )
    return evolve(plain, **changes)


@define(eq=False)
class _Flag:
    """An event of the loop below: who waits for it makes the loop turn."""

    turn: Callable[[], None]
    up: bool = False

    def set(self) -> None:
        self.up = True

    def is_set(self) -> bool:
        return self.up

    async def wait(self) -> None:
        while not self.up:
            self.turn()


class _GivenUpError(Exception):
    """Stands for a loop's cancellation."""


def _give_up() -> None:
    raise _GivenUpError


@define(eq=False)
class Bench:
    """A store that is open, and the loop that it serves: this thread, while it is in here."""

    store: Any
    heard: list[News] = field(factory=list)
    _calls: SimpleQueue[Callable[[], object]] = field(init=False, factory=SimpleQueue)

    # -- the loop ------------------------------------------------------------------------------------------

    def post(self, call: Callable[[], object]) -> None:
        self._calls.put(call)

    def event(self) -> _Flag:
        return _Flag(self.turn)

    def turn(self, patience_s: float = PATIENCE_S) -> None:
        """Make the next call that is posted."""
        self._calls.get(timeout=patience_s)()

    def until(self, reached: Callable[[], bool]) -> None:
        """Let the loop turn until it is so, be it something that nobody tells the loop of."""
        patience = monotonic() + PATIENCE_S
        while not reached():
            assert monotonic() < patience, "it never came about"
            with suppress(Empty):
                self.turn(0.01)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that waits for nothing but this loop's events."""
        try:
            coroutine.send(None)
        except StopIteration:
            return
        raise AssertionError("it waits for something else")

    # -- the store -----------------------------------------------------------------------------------------

    def open(self) -> None:
        self.run(self.store.open(self))

    def give_up_opening(self) -> None:
        """Begin to open it, have the waiting cancelled at once, and return when no thread is at it."""
        before = set(threading.enumerate())
        self.post(_give_up)
        with suppress(_GivenUpError):
            self.open()
            raise AssertionError("it was not waited for")
        for thread in set(threading.enumerate()) - before:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def close(self) -> None:
        self.run(self.store.close())

    def watch(self, concerns: Callable[[str], bool] = lambda _: True) -> Callable[[], None]:
        unwatch: Callable[[], None] = self.store.watch(concerns, self.heard.append)
        return unwatch

    def start(self, effects: Sequence[StoreEffect]) -> list[StoreInput]:
        """Put these to the store; the list fills as the loop turns, in the order of the answers."""
        answers: list[StoreInput] = []
        for effect in effects:
            self.store.submit(effect, answers.append)
        return answers

    def ask(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        """Put these to the store, and return the answers in their order (``store_suite.Ask``)."""
        answers: dict[int, StoreInput] = {}

        def answered(number: int, answer: StoreInput) -> None:
            assert number not in answers, "a store answers each effect exactly once"
            answers[number] = answer

        for number, effect in enumerate(effects):
            self.store.submit(effect, lambda answer, number=number: answered(number, answer))
        self.until(lambda: len(answers) == len(effects))
        return [answers[number] for number in range(len(effects))]

    def save(self, saved: TaskRecord, expected: int | None = None, quota: Quota | None = None) -> StoreInput:
        return self.ask([Save(saved, expected, "save", quota)])[0]

    def saved(self, saved: TaskRecord, expected: int | None = None) -> None:
        assert self.save(saved, expected) == Saved("save")

    def load(self, task_id: str = "a") -> TaskRecord | None:
        answer = self.ask([Load(task_id, "load")])[0]
        assert isinstance(answer, Loaded), answer
        return answer.record

    def delete(self, task_id: str, expected: int) -> StoreInput:
        return self.ask([Delete(task_id, expected, "delete")])[0]

    def find(self, now: int = NOW, limit: int = 100) -> tuple[list[str], int | None]:
        answer = self.ask([FindExpired(now, limit, "find")])[0]
        assert isinstance(answer, ExpiredFound), answer
        return [found.task_id for found in answer.records], answer.next_expiry_ms


@contextmanager
def opened(store: Store) -> Iterator[Bench]:
    """Open a store for the length of the block."""
    bench = Bench(store)
    bench.open()
    try:
        yield bench
    finally:
        bench.close()


class Place(Protocol):
    """Where several nodes may keep tasks; there need not be anything yet."""

    @property
    def option(self) -> str:
        """What ``--store`` calls it."""

    def store(self, **options: Any) -> Store:
        """Return a node's own object for the store."""

    def run(self, *statements: str) -> Sequence[tuple[Any, ...]]:
        """Do something to it, as another program would; return what the last statement found."""

    def nodes(self) -> list[str]:
        """Return the nodes that may have left something, and those that are there."""


def sqlite_store(path: Path, **options: Any) -> SqliteStore:
    """Return a store that looks around often, so that nobody waits long."""
    return SqliteStore(path, **{"poll_ms": 5, **options})


@frozen
class File:
    """An SQLite file (:class:`Place`)."""

    path: Path

    @property
    def option(self) -> str:
        return f"sqlite:{self.path}"

    def store(self, **options: Any) -> SqliteStore:
        return sqlite_store(self.path, **options)

    def run(self, *statements: str) -> Sequence[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall()

    def nodes(self) -> list[str]:
        return [node for (node,) in self.run("SELECT node FROM nodes")]


class StoreNodes:
    """Two nodes over one store (``store_suite.Nodes``), and a third that helps to know what has been heard.

    ``store`` makes a node's own object for it.
    """

    def __init__(self, store: Callable[[], Store]) -> None:
        self._here, self._there, self._clerk = (Bench(store()) for _ in range(3))
        for bench in (self._here, self._there, self._clerk):
            bench.open()
        self._there.watch()
        self.here_name = self._here.store.node
        self.here = self._here.ask
        self.there = self._there.ask
        self._markers = 0
        self._lost = False

    def heard(self) -> Sequence[News]:
        if self._lost:
            # Told again in every round: after the second time, a whole round has been made since now.
            for _ in range(2):
                self._await(WorkLost("sentinel", self._sentinel_node))
        else:
            # Changes are told in order: when the marker's is, those before it have been.
            self._markers += 1
            marker = record(f"marker-{self._markers}")
            self._clerk.saved(marker)
            self._clerk.saved(evolve(marker, version=2), 1)
            self._await(RecordChanged(evolve(marker, version=2)))
            self._clerk.delete(marker.task_id, 2)
        told = [news for news in self._there.heard if not _of_this_harness(news)]
        self._there.heard.clear()
        return told

    def lose(self) -> None:
        """Closing is no different from a crash where tasks still name the node."""
        self._sentinel_node = self._clerk.store.node
        self._clerk.saved(record("sentinel", node=self._sentinel_node))
        self._lost = True
        self._clerk.close()
        self._here.close()

    def close(self) -> None:
        for bench in (self._here, self._there, self._clerk):
            bench.close()

    def _await(self, news: News) -> None:
        seen = self._there.heard.count(news)
        self._there.until(lambda: self._there.heard.count(news) > seen)


def _of_this_harness(news: News) -> bool:
    task_id = news.record.task_id if isinstance(news, RecordChanged) else news.task_id
    return task_id.startswith(("marker", "sentinel"))
