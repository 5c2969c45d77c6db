"""A store that is open: threads that write, read and keep the node alive, and the way back to the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from secrets import token_hex
from typing import Final

import psycopg

from mcp_tasks_adapters.stores.front import Answer, Front, Look, Read, Write
from mcp_tasks_adapters.stores.postgres.keeping import Keeper
from mcp_tasks_adapters.stores.postgres.link import Link, Watchdog
from mcp_tasks_adapters.stores.postgres.place import Place, UnreachableError
from mcp_tasks_adapters.stores.postgres.reading import Reader
from mcp_tasks_adapters.stores.postgres.schema import check_keys, prepare
from mcp_tasks_adapters.stores.postgres.writing import Writer
from mcp_tasks_adapters.stores.rows import Rows
from mcp_tasks_adapters.stores.threads import StoreThread
from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect

__all__ = ["Session"]

OPEN_S: Final = 30.0
"""How long to wait for the first connection."""
LATER_S: Final = 0.5
"""After that, news that could not be told are tried again."""


class _Task(Enum):
    """What the reader does beside reading."""

    FOLLOW = auto()
    """See what others changed."""
    JUDGE = auto()
    """See what nodes that are gone have left."""


class Session:
    """Made on any thread; then used on the loop's. Raises what opening the database may raise."""

    def __init__(
        self, place: Place, rows: Rows, *, loop: LoopThread, lease_ms: int, most_waiting: int
    ) -> None:
        prepare(place)
        check_keys(place, rows)
        self.node = token_hex(8)
        self._loop = loop
        self._place = place
        self._front = Front(loop, most_waiting)
        self._links = [Link(place, doing) for doing in ("write", "read", "keep its lease")]
        self._watchdog = Watchdog(self._links)
        self._writing = StoreThread[Write](
            "mcp-tasks-writer", self._write, self._writer_ended, self._until_write
        )
        self._reading = StoreThread[Read | Look | _Task](
            "mcp-tasks-reader", self._read, self._reader_ended, self._until_retry
        )
        self._untold: list[str] = []
        self._unfollowed = False
        try:
            self._connect(rows, lease_ms)
        except BaseException:
            for link in self._links:
                link.close()
            raise

    def _connect(self, rows: Rows, lease_ms: int) -> None:
        writing, reading, keeping = self._links
        self._writer = Writer(link=writing, rows=rows)
        writing.connection(OPEN_S)
        self._writer.register(self.node, lease_ms)
        self._reader = Reader(link=reading, rows=rows, writer=self._writer.writer)
        reading.connection(OPEN_S)
        self._reader.follow()
        self._keeper = Keeper(
            link=keeping,
            writer=self._writer.writer,
            lease_ms=lease_ms,
            channel=self._place.schema,
            is_ours=lambda pid: pid == writing.pid,
            changed=lambda: self._reading.put(_Task.FOLLOW),
            judge=lambda: self._reading.put(_Task.JUDGE),
        )

    # -- on the loop's thread ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to answer."""
        self._ended = self._loop.event(), self._loop.event()
        self._watchdog.start()
        self._writing.start()
        self._reading.start()
        self._keeper.start()

    def discard(self) -> None:
        """Let go of everything, on any thread; instead of :meth:`start`."""
        self._writer.leave()
        self._links[1].close()
        self._keeper.close()

    async def close(self) -> None:
        """End the threads; no answer comes after this, and no news."""
        self._front.close()
        self._keeper.stop()
        self._writing.stop()
        self._reading.stop()
        for ended in self._ended:
            await ended.wait()
        self._watchdog.stop()

    def submit(self, effect: StoreEffect, answer: Answer) -> None:
        """Have ``effect`` carried out on the thread that it is for."""
        self._front.submit(effect, answer, read=self._reading.put, write=self._writing.put)

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> None:
        """Tell ``hear`` what other nodes did."""
        self._front.watch(concerns, hear)
        self._reading.put(_Task.FOLLOW)

    def unwatch(self) -> None:
        """Tell nobody."""
        self._front.unwatch()

    # -- on the writer's -----------------------------------------------------------------------------------

    def _write(self, writes: Sequence[Write]) -> None:
        self._front.answer(self._writer.carry_out(writes))

    def _until_write(self) -> float | None:
        return self._writer.idle_s()

    def _writer_ended(self) -> None:
        # Or it would renew the lease that is given up here.
        self._keeper.wait(self._place.timeout_s)
        self._writer.leave()
        self._loop.post(self._ended[0].set)

    # -- on the reader's -----------------------------------------------------------------------------------

    def _read(self, jobs: Sequence[Read | Look | _Task]) -> None:
        self._front.answer(self._reader.carry_out([job for job in jobs if isinstance(job, Read)]))
        for job in jobs:
            if isinstance(job, Look):
                self._untold.extend(job.task_ids)
        if not self._front.watched:
            self._untold.clear()
            return
        if self._untold:
            news, untold = self._reader.news(self._untold)
            self._untold = list(untold)
            self._front.tell(news)
        try:
            if self._unfollowed or _Task.FOLLOW in jobs:
                self._follow()
            if _Task.JUDGE in jobs:
                self._judge()
        except (UnreachableError, psycopg.Error):
            pass  # the log says so; it is done the next time

    def _follow(self) -> None:
        self._unfollowed = True
        task_ids, is_all = self._reader.follow()
        self._unfollowed = False
        self._front.sift(task_ids, self._reading.put)
        if not is_all:
            self._reading.put(_Task.FOLLOW)

    def _judge(self) -> None:
        lost = self._reader.lost_work()
        self._front.tell(lost.work)
        if lost.more:
            self._reading.put(_Task.JUDGE)

    def _until_retry(self) -> float | None:
        return LATER_S if self._untold or self._unfollowed else None

    def _reader_ended(self) -> None:
        self._links[1].close()
        self._loop.post(self._ended[1].set)
