"""A store that is open: one thread that writes, one that reads and watches, and the way back to the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from attrs import frozen

from mcp_tasks_adapters.stores.front import Answer, Front, Look, Read, Write
from mcp_tasks_adapters.stores.rows import Rows
from mcp_tasks_adapters.stores.sqlite.nodes import NodeLock, lock_path, new_name, remove_orphans
from mcp_tasks_adapters.stores.sqlite.reading import Reader
from mcp_tasks_adapters.stores.sqlite.schema import check_keys, prepare
from mcp_tasks_adapters.stores.sqlite.writing import Writer
from mcp_tasks_adapters.stores.threads import StoreThread
from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect
from mcp_tasks_proto.effects import FindExpired, ListTasks, Load
from mcp_tasks_proto.inputs import StoreInput

__all__ = ["Session"]

NODES_POLLS: Final = 20
"""Polls for changes from one look whether the other nodes are alive to the next."""


@frozen
class _Forget:
    """A node that is gone, and that no task names any more."""

    node: str


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
        check_keys(path, rows)
        self.node = new_name()
        self._path = path
        self._loop = loop
        self._front = Front(loop, most_waiting)
        self._poll_s = poll_s
        # Held before anybody can read this node's name.
        self._lock = NodeLock(path, self.node)
        self._writing = StoreThread[Write | _Forget]("mcp-tasks-writer", self._write, self._writer_ended)
        self._reading = StoreThread[Read | Look](
            "mcp-tasks-reader", self._read, self._reader_ended, self._until_poll
        )
        self._writer = Writer(path=path, rows=rows, lock_s=lock_s, closing=self._writing.closing)
        self._writer.register(self.node)
        self._reader = Reader(path=path, rows=rows, node=self.node, writer=self._writer.number)
        self._reader.follow()
        remove_orphans(path, self._reader.nodes())
        self._next_poll = monotonic()
        self._polls_until_nodes = 0
        self._untold: list[str] = []
        """Tasks that somebody here wants to know about, and that could not be read when that was tried."""

    # -- on the loop's thread ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to answer."""
        self._ended = self._loop.event(), self._loop.event()
        self._writing.start()
        self._reading.start()

    def discard(self) -> None:
        """Let go of everything, on any thread; instead of :meth:`start`."""
        self._leave()
        self._reader.close()

    async def close(self) -> None:
        """End the threads; no answer comes after this, and no news."""
        self._front.close()
        self._writing.stop()
        self._reading.stop()
        for ended in self._ended:
            await ended.wait()

    def submit(self, effect: StoreEffect, answer: Answer) -> None:
        """Have ``effect`` carried out on the thread that it is for."""
        self._front.submit(effect, answer, read=self._reading.put, write=self._writing.put)

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> None:
        """Tell ``hear`` what other nodes did."""
        self._front.watch(concerns, hear)
        self._reading.put(Look(()))  # or the thread would not know that there is something to wait for

    def unwatch(self) -> None:
        """Tell nobody."""
        self._front.unwatch()

    # -- on the writer's -----------------------------------------------------------------------------------

    def _write(self, jobs: Sequence[Write | _Forget]) -> None:
        writes = [job for job in jobs if isinstance(job, Write)]
        if writes:
            outcomes = self._writer.carry_out([write.effect for write in writes])
            self._front.answer(
                [(write.answer, outcome) for write, outcome in zip(writes, outcomes, strict=True)]
            )
        for job in jobs:
            if isinstance(job, _Forget) and self._writer.forget(job.node):
                with suppress(OSError):
                    lock_path(self._path, job.node).unlink(missing_ok=True)

    def _writer_ended(self) -> None:
        self._leave()
        self._loop.post(self._ended[0].set)

    def _leave(self) -> None:
        """Forget this node, unless a task names it."""
        if self._writer.forget(self.node):
            self._lock.remove()
        else:
            self._lock.release()  # somebody must see to the tasks that are left
        self._writer.close()

    # -- on the reader's -----------------------------------------------------------------------------------

    def _read(self, jobs: Sequence[Read | Look]) -> None:
        answers: list[tuple[Answer, StoreInput]] = []
        looks: list[str] = []
        for job in jobs:
            match job:
                case Read(effect=Load() as load, answer=answer):
                    answers.append((answer, self._reader.load(load)))
                case Read(effect=FindExpired() as find, answer=answer):
                    answers.append((answer, self._reader.find_expired(find)))
                case Read(effect=ListTasks() as wanted, answer=answer):
                    answers.append((answer, self._reader.list_tasks(wanted)))
                case Look(task_ids=task_ids):
                    looks.extend(task_ids)
        self._front.answer(answers)
        if looks:
            self._look(looks)
        if self._front.watched and monotonic() >= self._next_poll:
            self._poll()

    def _look(self, task_ids: Sequence[str]) -> None:
        news, untold = self._reader.news(task_ids)
        self._untold.extend(untold)
        self._front.tell(news)

    def _poll(self) -> None:
        """See what others did, and now and then whether they are still there."""
        self._next_poll = monotonic() + self._poll_s
        if self._untold:
            untold, self._untold = list(dict.fromkeys(self._untold)), []
            self._look(untold)
        self._front.sift(self._reader.follow(), self._reading.put)
        self._polls_until_nodes -= 1
        if self._polls_until_nodes < 0:
            lost = self._reader.lost_work()
            self._front.tell(lost.work)
            for node in lost.forgettable:
                self._writing.put(_Forget(node))
            self._polls_until_nodes = 0 if lost.more else NODES_POLLS

    def _until_poll(self) -> float | None:
        return max(0.0, self._next_poll - monotonic()) if self._front.watched else None

    def _reader_ended(self) -> None:
        self._reader.close()
        self._loop.post(self._ended[1].set)
