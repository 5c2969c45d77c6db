"""asyncio, as the driver and the servers of this package need it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from math import inf
from typing import Any, TypeVar

from mcp_tasks_adapters.clock import LONGEST_NAP_MS, unix_ms
from mcp_tasks_adapters.driver import Driver, Job, Store
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.storing import SETTLE_MS, Openable
from mcp_tasks_adapters.toolkit import Server
from mcp_tasks_adapters.toolkit.outcomes import describe

__all__ = ["Alarm", "AsyncioLoop", "AsyncioThread", "open_driver", "opened"]

_Store = TypeVar("_Store", bound=Openable)

logger = logging.getLogger("mcp_tasks_adapters")


class Alarm:
    """Calls ``ring`` at a time that can be moved as often as one likes.

    ``ring`` returns when it wants to be called next. Moving the time to later costs nothing:
    the timer fires at the earlier time, ``ring`` finds nothing due, and says when it will be.
    """

    def __init__(self, ring: Callable[[], float]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._when = inf
        self._timer: asyncio.TimerHandle | None = None

    def move(self, when: float) -> None:
        """Ring at ``when``, or earlier (the loop's time; infinity: never)."""
        if when < self._when:
            self.close()
            self._when = when
            self._timer = self._loop.call_at(when, self._due)

    def close(self) -> None:
        """Ring no more, until moved."""
        self._when = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self.close()
        self.move(self._ring())


class AsyncioThread:
    """The :class:`~mcp_tasks_adapters.storing.LoopThread` of the loop that runs now."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def event(self) -> asyncio.Event:
        """Return a new event."""
        return asyncio.Event()

    def post(self, call: Callable[[], object]) -> None:
        """Make ``call`` soon; from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)


class AsyncioLoop(AsyncioThread):
    """The driver's :class:`~mcp_tasks_adapters.driver.Loop` in a task group of the caller's."""

    cancelled = asyncio.CancelledError

    def __init__(self, group: asyncio.TaskGroup, now_ms: Callable[[], int]) -> None:
        super().__init__()
        self.now_ms = now_ms
        self._group = group
        self._time = self._loop.time
        self._due_ms: int | None = None
        self._wake: Callable[[], None] = lambda: None
        self._alarm = Alarm(self._ring)

    def start(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` at the times given to :meth:`wake_at`, until :meth:`close`."""
        self._wake = wake

    def close(self) -> None:
        """Wake the driver no more."""
        self._alarm.close()

    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> Job:
        """Start ``run`` soon, in the task group."""
        return self._group.create_task(run())

    def checkpoint(self) -> Coroutine[Any, Any, None]:
        """Let others run once."""
        return asyncio.sleep(0)

    def wake_at(self, deadline_ms: int | None) -> None:
        """Wake the driver at that Unix time; replaces what was asked for before."""
        before_ms, self._due_ms = self._due_ms, deadline_ms
        # An alarm that comes too early finds nothing due, and is set again then.
        if deadline_ms is not None and (before_ms is None or deadline_ms < before_ms):
            self._alarm.move(self._next())

    def _ring(self) -> float:
        if self._due_ms is not None and self.now_ms() >= self._due_ms:
            self._due_ms = None
            try:
                self._wake()
            except Exception as error:
                # asyncio would log it with its message, which may hold what a peer sent.
                logger.error("what was due could not be done: %s", describe(error))
        return self._next()

    def _next(self) -> float:
        if self._due_ms is None:
            return inf
        return self._time() + min(max(0, self._due_ms - self.now_ms()), LONGEST_NAP_MS) / 1000


@asynccontextmanager
async def open_driver(
    server: Server, store: Store | None, now_ms: Callable[[], int] = unix_ms
) -> AsyncIterator[Driver]:
    """Run a driver for the length of the block; its handlers and workers are cancelled at the end.

    The store is open around it, long enough to take in what they say then. Raises
    :class:`~mcp_tasks_adapters.storing.StoreError` when it cannot be opened.

    A caller that is cancelled keeps that to itself until it has left the block: an exception out of the block
    cancels the workers a second time.
    """
    async with AsyncExitStack() as stack:
        open_store = await stack.enter_async_context(opened(MemoryStore() if store is None else store))
        async with asyncio.TaskGroup() as group:
            loop = AsyncioLoop(group, now_ms)
            driver = Driver(server, store=open_store, loop=loop)
            stack.push_async_callback(_settle, driver, loop)
            loop.start(driver.wake)
            try:
                yield driver
            finally:
                driver.stop_work()


async def _settle(driver: Driver, loop: AsyncioLoop) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_MS / 1000):
            await driver.settled()
    loop.close()


@asynccontextmanager
async def opened(store: _Store) -> AsyncIterator[_Store]:
    """Open a store for the length of the block."""
    await store.open(AsyncioThread())
    try:
        yield store
    finally:
        await store.close()
