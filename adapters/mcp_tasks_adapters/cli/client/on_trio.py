"""The client commands on trio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from mcp_tasks_adapters.cli.client.loops import Job, Loop
from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.trio_h11 import connect, connect_stdio

__all__ = ["run"]

T = TypeVar("T")


class _Trio:
    connect: Final = staticmethod(connect)
    connect_stdio: Final = staticmethod(connect_stdio)
    event: Final = trio.Event
    lock: Final = trio.Lock
    sleep: Final = staticmethod(trio.sleep)

    def __init__(self) -> None:
        self.run_soon = trio.lowlevel.current_trio_token().run_sync_soon

    async def gather(self, jobs: Sequence[Job[T]]) -> list[T]:
        results: dict[int, T] = {}

        async def run_one(index: int, job: Job[T]) -> None:
            results[index] = await job()

        async with trio.open_nursery() as nursery:
            for index, job in enumerate(jobs):
                nursery.start_soon(run_one, index, job)
        return [results[index] for index in range(len(jobs))]

    @asynccontextmanager
    async def alongside(self, job: Job[None]) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(job)
            yield
            nursery.cancel_scope.cancel()


def run(main: Callable[[Loop], Awaitable[T]], stop: StopSignal) -> T | None:
    """Run ``main``; ``None``: it was stopped."""

    async def run_main() -> T | None:
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:
            stop.on_stop(lambda: token.run_sync_soon(scope.cancel))
            return await main(_Trio())
        return None

    return trio.run(run_main)
