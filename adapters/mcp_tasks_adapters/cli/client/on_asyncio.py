"""The client commands on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from mcp_tasks_adapters.asyncio_h11 import connect, connect_stdio
from mcp_tasks_adapters.cli.client.loops import Job, Loop
from mcp_tasks_adapters.cli.client.signals import StopSignal

__all__ = ["run"]

T = TypeVar("T")


class _Asyncio:
    connect: Final = staticmethod(connect)
    connect_stdio: Final = staticmethod(connect_stdio)
    event: Final = asyncio.Event
    lock: Final = asyncio.Lock
    sleep: Final = staticmethod(asyncio.sleep)

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def run_soon(self, function: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    async def gather(self, jobs: Sequence[Job[T]]) -> list[T]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_await(job)) for job in jobs]
        return [task.result() for task in tasks]

    @asynccontextmanager
    async def alongside(self, job: Job[None]) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_await(job))
            yield
            task.cancel()


async def _await(job: Job[T]) -> T:
    return await job()


def run(main: Callable[[Loop], Awaitable[T]], stop: StopSignal) -> T | None:
    """Run ``main``; ``None``: it was stopped."""

    async def run_main() -> T | None:
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(_run(main))
        stop.on_stop(lambda: loop.call_soon_threadsafe(running.cancel))
        try:
            return await running
        except asyncio.CancelledError:
            if stop.number is None:
                raise
            return None

    return asyncio.run(run_main())


async def _run(main: Callable[[Loop], Awaitable[T]]) -> T:
    return await main(_Asyncio())
