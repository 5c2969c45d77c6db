"""trio, as the driver and the servers of this package need it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from math import inf
from typing import Any, TypeVar

import trio

from mcp_tasks_adapters.clock import LONGEST_NAP_MS, unix_ms
from mcp_tasks_adapters.driver import Driver, Job, Store
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.storing import SETTLE_MS, Openable
from mcp_tasks_adapters.toolkit import Server

__all__ = ["Alarm", "TrioLoop", "TrioThread", "file_of", "open_driver", "opened", "told_when_cancelled"]

_Store = TypeVar("_Store", bound=Openable)


class Alarm:
    """Calls ``ring`` at a time that can be moved as often as one likes.

    ``ring`` returns when it wants to be called next. Moving the time to later costs nothing:
    the alarm wakes at the earlier time, ``ring`` finds nothing due, and says when it will be.
    """

    def __init__(self, ring: Callable[[], float]) -> None:
        self._ring = ring
        self._nap = trio.CancelScope()

    def move(self, when: float) -> None:
        """Ring at ``when``, or earlier (trio time; infinity: never)."""
        if when < self._nap.deadline:
            self._nap.deadline = when

    async def run(self) -> None:
        """Ring, until cancelled."""
        while True:
            with self._nap:
                await trio.sleep_forever()
            self._nap = trio.CancelScope()
            self.move(self._ring())


class TrioThread:
    """The :class:`~mcp_tasks_adapters.storing.LoopThread` of the trio that runs now."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()

    def event(self) -> trio.Event:
        """Return a new event."""
        return trio.Event()

    def post(self, call: Callable[[], object]) -> None:
        """Make ``call`` soon; from any thread."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(call)


class TrioLoop(TrioThread):
    """The driver's :class:`~mcp_tasks_adapters.driver.Loop` in a nursery of the caller's."""

    cancelled = trio.Cancelled

    def __init__(self, nursery: trio.Nursery, now_ms: Callable[[], int]) -> None:
        super().__init__()
        self.now_ms = now_ms
        self._nursery = nursery
        self._due_ms: int | None = None
        self._wake: Callable[[], None] = lambda: None
        self._alarm = Alarm(self._ring)

    def start(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` at the times given to :meth:`wake_at`, as long as the nursery lives."""
        self._wake = wake
        self._nursery.start_soon(self._alarm.run)

    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> Job:
        """Start ``run`` soon, in the nursery."""
        scope = trio.CancelScope()
        self._nursery.start_soon(_run_in, scope, run)
        return scope

    def checkpoint(self) -> Coroutine[Any, Any, None]:
        """Let others run once."""
        return trio.lowlevel.checkpoint()

    def wake_at(self, deadline_ms: int | None) -> None:
        """Wake the driver at that Unix time; replaces what was asked for before."""
        before_ms, self._due_ms = self._due_ms, deadline_ms
        # An alarm that comes too early finds nothing due, and is set again then.
        if deadline_ms is not None and (before_ms is None or deadline_ms < before_ms):
            self._alarm.move(self._next())

    def _ring(self) -> float:
        if self._due_ms is not None and self.now_ms() >= self._due_ms:
            self._due_ms = None
            self._wake()
        return self._next()

    def _next(self) -> float:
        if self._due_ms is None:
            return inf
        return trio.current_time() + min(max(0, self._due_ms - self.now_ms()), LONGEST_NAP_MS) / 1000


async def _run_in(scope: trio.CancelScope, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with scope:
        try:
            await run()
        except trio.Cancelled:
            # One that nobody asked for, kept from somewhere else, would end the whole server without a word.
            if trio.current_effective_deadline() == -inf:
                raise


@asynccontextmanager
async def open_driver(
    server: Server, store: Store | None, now_ms: Callable[[], int] = unix_ms
) -> AsyncIterator[Driver]:
    """Run a driver for the length of the block; its handlers and workers are cancelled at the end.

    The store is open around it, long enough to take in what they say then. Raises
    :class:`~mcp_tasks_adapters.storing.StoreError` when it cannot be opened.
    """
    async with AsyncExitStack() as stack:
        open_store = await stack.enter_async_context(opened(MemoryStore() if store is None else store))
        async with trio.open_nursery() as nursery:
            loop = TrioLoop(nursery, now_ms)
            driver = Driver(server, store=open_store, loop=loop)
            stack.push_async_callback(_settle, driver)
            loop.start(driver.wake)
            try:
                yield driver
            finally:
                driver.stop_work()
                nursery.cancel_scope.cancel()


async def _settle(driver: Driver) -> None:
    with trio.move_on_after(SETTLE_MS / 1000, shield=True):
        await driver.settled()


@asynccontextmanager
async def opened(store: _Store) -> AsyncIterator[_Store]:
    """Open a store for the length of the block."""
    await store.open(TrioThread())
    try:
        yield store
    finally:
        with trio.CancelScope(shield=True):
            await store.close()


@asynccontextmanager
async def told_when_cancelled() -> AsyncIterator[trio.Event]:
    """Tell the block of a cancellation by an event, so that it can end in good order.

    The cancellation takes effect at the end of the block.
    """
    async with trio.open_nursery() as nursery:
        cancelled = trio.Event()
        nursery.start_soon(_set_when_cancelled, cancelled)
        with trio.CancelScope(shield=True):
            yield cancelled
        nursery.cancel_scope.cancel()


async def _set_when_cancelled(event: trio.Event) -> None:
    try:
        await trio.sleep_forever()
    finally:
        event.set()


def file_of(stream: trio.abc.Stream) -> int | None:
    """Return the descriptor of a socket that can be written to as a file without waiting, else ``None``."""
    if isinstance(stream, trio.SocketStream) and os.name == "posix":
        return stream.socket.fileno()
    return None
