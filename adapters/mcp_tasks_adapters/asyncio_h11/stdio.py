"""A server on stdin and stdout, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress

from mcp_tasks_adapters.asyncio_h11.loop import open_driver
from mcp_tasks_adapters.driver import LAST_WORDS_SECONDS, Service, Store
from mcp_tasks_adapters.stdio import StdioPump, claimed_stdio
from mcp_tasks_adapters.toolkit import Server
from mcp_tasks_proto.limits import Limits

__all__ = ["serve_lines", "serve_stdio"]


async def serve_stdio(
    server: Server,
    *,
    store: Store | None = None,
    files: tuple[int, int] | None = None,
    on_end: Callable[[], object] = lambda: None,
) -> None:
    """Serve one client until it closes stdin, or until cancelled.

    What has been asked by then may still be answered, for ``Limits.shutdown_grace_ms``; then handlers and
    workers are cancelled (STD.1). ``files`` are the file descriptors to read and write; without them it is
    stdin and stdout, which are kept clear of everything else, printing included. ``on_end`` is called when
    it begins to end. A second cancellation cuts the waiting short.
    """
    await serve_lines(open_driver(server, store), server.limits, files=files, on_end=on_end)


async def serve_lines(
    opening: AbstractAsyncContextManager[Service],
    limits: Limits,
    *,
    files: tuple[int, int] | None,
    on_end: Callable[[], object],
) -> None:
    """Serve one client what ``opening`` opens, as :func:`serve_stdio` serves a server."""
    cancelled: asyncio.CancelledError | None = None
    with claimed_stdio() if files is None else nullcontext(files) as (stdin, stdout):
        async with opening as driver:
            ending, settled = asyncio.Event(), asyncio.Event()
            with StdioPump(
                driver,
                limits,
                stdin=stdin,
                stdout=stdout,
                run_on_loop=asyncio.get_running_loop().call_soon_threadsafe,
                input_ended=ending.set,
                settled=settled.set,
            ) as pump:
                try:
                    await ending.wait()
                except asyncio.CancelledError as error:
                    cancelled = error
                on_end()
                driver.shutdown()
                pump.end_input()
                with suppress(TimeoutError):
                    async with asyncio.timeout(limits.shutdown_grace_ms / 1000):
                        await settled.wait()
                driver.stop_calls()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_WORDS_SECONDS):
                        await settled.wait()
    if cancelled is not None:
        raise cancelled
