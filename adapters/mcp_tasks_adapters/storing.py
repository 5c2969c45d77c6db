"""A store, as adapters see it, and the driver's way to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.effects import FindExpired, ListTasks, Load, StoreEffect
from mcp_tasks_proto.inputs import (
    Input,
    LoadFailed,
    RecordChanged,
    RecordRemoved,
    SaveFailed,
    StoreInput,
    WorkLost,
)

__all__ = [
    "SETTLE_MS",
    "Event",
    "LoopThread",
    "News",
    "Openable",
    "Questions",
    "Store",
    "StoreEffect",
    "StoreError",
]

News = RecordChanged | RecordRemoved | WorkLost
"""What a store tells by itself."""

SETTLE_MS = 1_000
"""How long a driver that ends waits for the store to write down what its workers said last."""

_log = logging.getLogger("mcp_tasks_adapters")


class StoreError(Exception):
    """A store cannot be opened; the message says why and what to do."""


class Event(Protocol):
    """A one-shot flag: ``trio.Event`` and ``asyncio.Event`` both are one."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    async def wait(self) -> Any: ...


class LoopThread(Protocol):
    """The thread of an event loop, and the way to it from other threads."""

    def event(self) -> Event:
        """Return a new event. It is set and waited for on the loop's thread."""

    def post(self, call: Callable[[], object]) -> None:
        """Make ``call`` soon, on the loop's thread. This method itself may be called on any thread.

        Once the loop has ended, nothing happens. ``call`` raises nothing.
        """


class Openable(Protocol):
    """A store, whatever it keeps, before and after its work."""

    async def open(self, loop: LoopThread) -> None:
        """Get ready to serve ``loop``; before anything else is called. Raises :class:`StoreError`."""

    async def close(self) -> None:
        """Let go of everything. What was not answered by now is not answered any more."""


class Store(Openable, Protocol):
    """Where records are kept. What a store promises is in ``mcp_tasks_adapters/stores/contract.md``."""

    @property
    def node(self) -> str | None:
        """The name of whoever works through this store while it is open.

        Nobody else has it, or ever had. ``None``: nobody else can reach these records, now or later.
        """

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        """Carry out ``effect`` and call ``answer`` exactly once, now or later, on the loop's thread."""

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> Callable[[], None]:
        """Tell ``hear``, on the loop's thread, what others did, until the function returned is called.

        Of changed and removed records only those are told whose task id ``concerns``; it is asked on the
        loop's thread too.
        """


class Questions:
    """What a driver has asked its store and not heard back on."""

    def __init__(self, store: Store, loop: LoopThread, feed: Callable[[Input], None]) -> None:
        self._store = store
        self._loop = loop
        self._feed = feed
        self._unanswered = 0
        self._settled: Event | None = None

    def ask(self, effect: StoreEffect) -> None:
        """Put an effect to the store; the answer is fed to the engine."""
        self._unanswered += 1
        try:
            self._store.submit(effect, self._answered)
        except Exception as error:
            _log.error("the store raised on %s: %s", type(effect).__name__, describe(error))
            failed = LoadFailed if isinstance(effect, Load | FindExpired | ListTasks) else SaveFailed
            self._answered(failed(effect.token))

    async def settled(self) -> None:
        """Return once the store owes no answer, nor one to what is asked because of its answers."""
        while self._unanswered:
            self._settled = self._loop.event()
            await self._settled.wait()

    def _answered(self, answer: StoreInput) -> None:
        self._unanswered -= 1
        self._feed(answer)
        if self._settled is not None and not self._unanswered:
            self._settled.set()
