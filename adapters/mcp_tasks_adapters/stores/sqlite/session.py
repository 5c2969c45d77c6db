"""A store that is open: one thread that writes, one that reads and watches, and the way back to the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from attrs import frozen

from mcp_tasks_adapters.stores.sqlite.nodes import NodeLock, lock_path, new_name, remove_orphans
from mcp_tasks_adapters.stores.sqlite.reading import Reader
from mcp_tasks_adapters.stores.sqlite.rows import Rows
from mcp_tasks_adapters.stores.sqlite.schema import prepare
from mcp_tasks_adapters.stores.sqlite.threads import StoreThread
from mcp_tasks_adapters.stores.sqlite.writing import Writer
from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.inputs import LoadFailed, SaveFailed, StoreInput

__all__ = ["Session"]

NODES_POLLS: Final = 20
"""Polls for changes from one look whether the other nodes are alive to the next."""

Answer = Callable[[StoreInput], None]

_log = logging.getLogger("mcp_tasks_adapters")


@frozen
class _Read:
    effect: Load | FindExpired
    answer: Answer


@frozen
class _Look:
    """Tasks that others changed and somebody here wants to know about."""

    task_ids: Sequence[str]


@frozen
class _Write:
    effect: Save | Delete
    answer: Answer


@frozen
class _Forget:
    """A node that is gone, and that no task names any more."""

    node: str


@frozen
class _Watcher:
    concerns: Callable[[str], bool]
    hear: Callable[[News], None]


class Session:
    """Made on any thread; then used on the loop's. Raises what opening the file may raise."""

    def __init__(
        self,
        path: Path,
        rows: Rows,
        *,
        loop: LoopThread,
        poll_s: float,
        lock_s: float,
        most_waiting: int,
    ) -> None:
        prepare(path)
        rows.check_keys(path)
        self.node = new_name()
        self._path = path
        self._loop = loop
        self._poll_s = poll_s
        self._most_waiting = most_waiting
        self._waiting = 0
        self._watcher: _Watcher | None = None
        self._open = True
        # Held before anybody can read this node's name.
        self._lock = NodeLock(path, self.node)
        self._writing = StoreThread[_Write | _Forget]("mcp-tasks-writer", self._write, self._writer_ended)
        self._reading = StoreThread[_Read | _Look](
            "mcp-tasks-reader", self._read, self._reader_ended, self._until_poll
        )
        self._writer = Writer(path=path, rows=rows, lock_s=lock_s, closing=self._writing.closing)
        self._writer.register(self.node)
        self._reader = Reader(path=path, rows=rows, node=self.node, writer=self._writer.number)
        self._reader.follow()
        remove_orphans(path, self._reader.nodes())
        self._next_poll = monotonic()
        self._polls_until_nodes = 0
        self._untold: Sequence[str] = ()

    # -- on the loop's thread ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to answer."""
        self._ended = self._loop.event(), self._loop.event()
        self._writing.start()
        self._reading.start()

    async def close(self) -> None:
        """End the threads; no answer comes after this, and no news."""
        self._open = False
        self.unwatch()
        self._writing.stop()
        self._reading.stop()
        for ended in self._ended:
            await ended.wait()

    def submit(self, effect: StoreEffect, answer: Answer) -> None:
        """Have ``effect`` carried out on the thread that it is for."""
        reads = isinstance(effect, Load | FindExpired)
        if self._waiting >= self._most_waiting:
            answer(LoadFailed(effect.token) if reads else SaveFailed(effect.token))
            return
        self._waiting += 1
        if isinstance(effect, Load | FindExpired):
            self._reading.put(_Read(effect, answer))
        else:
            self._writing.put(_Write(effect, answer))

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> None:
        """Tell ``hear`` what other nodes did."""
        self._watcher = _Watcher(concerns, hear)
        self._reading.put(_Look(()))  # or the thread would not know that there is something to wait for

    def unwatch(self) -> None:
        """Tell nobody."""
        self._watcher = None

    def _answer(self, answers: Sequence[tuple[Answer, StoreInput]]) -> None:
        self._waiting -= len(answers)
        for answer, outcome in answers:
            if self._open:
                _contained(answer, outcome)

    def _sift(self, task_ids: Sequence[str]) -> None:
        """Have a look at those of these tasks that are of interest here."""
        watcher = self._watcher
        if watcher is not None and (wanted := [one for one in task_ids if watcher.concerns(one)]):
            self._reading.put(_Look(wanted))

    def _tell(self, news: Sequence[News]) -> None:
        for one in news:
            if self._watcher is not None:
                _contained(self._watcher.hear, one)

    # -- on the writer's -----------------------------------------------------------------------------------

    def _write(self, jobs: Sequence[_Write | _Forget]) -> None:
        writes = [job for job in jobs if isinstance(job, _Write)]
        if writes:
            outcomes = self._writer.carry_out([write.effect for write in writes])
            answers = [(write.answer, outcome) for write, outcome in zip(writes, outcomes, strict=True)]
            self._loop.post(partial(self._answer, answers))
        for job in jobs:
            if isinstance(job, _Forget) and self._writer.forget(job.node):
                with suppress(OSError):
                    lock_path(self._path, job.node).unlink(missing_ok=True)

    def _writer_ended(self) -> None:
        if self._writer.forget(self.node):
            self._lock.remove()
        else:
            self._lock.release()  # somebody must see to the tasks that are left
        self._writer.close()
        self._loop.post(self._ended[0].set)

    # -- on the reader's -----------------------------------------------------------------------------------

    def _read(self, jobs: Sequence[_Read | _Look]) -> None:
        answers: list[tuple[Answer, StoreInput]] = []
        looks: list[str] = []
        for job in jobs:
            match job:
                case _Read(effect=Load() as load, answer=answer):
                    answers.append((answer, self._reader.load(load)))
                case _Read(effect=FindExpired() as find, answer=answer):
                    answers.append((answer, self._reader.find_expired(find)))
                case _Look(task_ids=task_ids):
                    looks.extend(task_ids)
        if answers:
            self._loop.post(partial(self._answer, answers))
        if looks:
            self._look(looks)
        if self._watcher is not None and monotonic() >= self._next_poll:
            self._poll()

    def _look(self, task_ids: Sequence[str]) -> None:
        news, self._untold = self._reader.news(task_ids)
        if news:
            self._loop.post(partial(self._tell, news))

    def _poll(self) -> None:
        """See what others did, and now and then whether they are still there."""
        self._next_poll = monotonic() + self._poll_s
        if self._untold:
            self._look(self._untold)
        changed = self._reader.follow()
        if changed:
            self._loop.post(partial(self._sift, changed))
        self._polls_until_nodes -= 1
        if self._polls_until_nodes < 0:
            lost = self._reader.lost_work()
            self._loop.post(partial(self._tell, lost.work))
            for node in lost.forgettable:
                self._writing.put(_Forget(node))
            self._polls_until_nodes = 0 if lost.more else NODES_POLLS

    def _until_poll(self) -> float | None:
        return None if self._watcher is None else max(0.0, self._next_poll - monotonic())

    def _reader_ended(self) -> None:
        self._reader.close()
        self._loop.post(self._ended[1].set)


def _contained(call: Callable[[Any], None], fact: StoreInput) -> None:
    """Make a call that is none of the store's business; the next one must not suffer from it."""
    try:
        call(fact)
    except Exception as error:
        _log.error("an answer of the store met %s", describe(error))
