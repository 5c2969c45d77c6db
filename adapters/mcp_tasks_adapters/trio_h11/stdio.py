"""A server on stdin and stdout, on trio."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import trio

from mcp_tasks_adapters.driver import LAST_WORDS_SECONDS, Store
from mcp_tasks_adapters.stdio import StdioPump, claimed_stdio
from mcp_tasks_adapters.toolkit import Server
from mcp_tasks_adapters.trio_h11.loop import open_driver, told_when_cancelled

__all__ = ["serve_stdio"]


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
    it begins to end.
    """
    with claimed_stdio() if files is None else nullcontext(files) as (stdin, stdout):
        async with told_when_cancelled() as ending, open_driver(server, store) as driver:
            settled = trio.Event()
            with StdioPump(
                driver,
                server.limits,
                stdin=stdin,
                stdout=stdout,
                run_on_loop=trio.lowlevel.current_trio_token().run_sync_soon,
                input_ended=ending.set,
                settled=settled.set,
            ) as pump:
                await ending.wait()
                on_end()
                driver.shutdown()
                pump.end_input()
                with trio.move_on_after(server.limits.shutdown_grace_ms / 1000):
                    await settled.wait()
                driver.stop_calls()
                with trio.move_on_after(LAST_WORDS_SECONDS):
                    await settled.wait()
