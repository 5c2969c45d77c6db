"""What the client commands need of an event loop; :mod:`.on_trio` and :mod:`.on_asyncio` have it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, Protocol, TypeVar, Unpack

from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.client import Client
from mcp_tasks_adapters.client.options import HttpOptions, StdioOptions
from mcp_tasks_adapters.driver import Event

__all__ = ["Job", "Loop", "run"]

T = TypeVar("T")

Job = Callable[[], Awaitable[T]]


class Loop(Protocol):
    """An event loop."""

    def connect(self, url: str, **options: Unpack[HttpOptions]) -> AbstractAsyncContextManager[Client]:
        """Return the client of a server over HTTP."""

    def connect_stdio(
        self, command: Sequence[str], **options: Unpack[StdioOptions]
    ) -> AbstractAsyncContextManager[Client]:
        """Return the client of a server that it starts."""

    def event(self) -> Event:
        """Return a new event."""

    def lock(self) -> AbstractAsyncContextManager[Any]:
        """Return a lock, to be held by one block at a time; the others wait in line."""

    def run_soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Run a function on the loop's thread; may be called from any."""

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""

    async def gather(self, jobs: Sequence[Job[T]]) -> list[T]:
        """Run jobs at the same time, and return what they return, in their order."""

    def alongside(self, job: Job[None]) -> AbstractAsyncContextManager[None]:
        """Run a job for the length of a block; it is cancelled at the end."""


def run(name: str, main: Callable[[Loop], Awaitable[T]], stop: StopSignal) -> T | None:
    """Run ``main`` on the loop of this name; ``None``: it was stopped."""
    module = import_module(f"mcp_tasks_adapters.cli.client.on_{name}")
    try:
        result: T | None = module.run(main, stop)
    except BaseExceptionGroup as group:
        raise _alone(group) from None
    return result


def _alone(error: BaseException) -> BaseException:
    """Return what is in a group of one: nurseries and task groups wrap whatever passes through them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
