"""The kit on asyncio: examine a server over HTTP, or one that is started here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp_tasks_adapters.asyncio_h11.client import AsyncioClientLoop, process_spawner, stream_opener
from mcp_tasks_adapters.clock import SteadyClock
from mcp_tasks_adapters.kit import Carrier, HttpCarrier, Progress, StdioCarrier, examine
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.kit import Kit, KitSettings

__all__ = ["examine_http", "examine_stdio"]


async def examine_http(
    url: str,
    settings: KitSettings,
    *,
    headers: Mapping[str, str] | None = None,
    other_headers: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> Kit:
    """Examine the endpoint at ``url``, and return the kit with what it found.

    ``headers`` are added to every request; ``other_headers`` are those of another caller, whose tasks are
    not to be seen (SEC.1). Raises ``ValueError`` for a URL that cannot be used.
    """
    limits = Limits()
    address, open_stream = stream_opener(url, limits=limits)
    callers = (headers or {}, other_headers or {})

    def carrier(loop: AsyncioClientLoop) -> Carrier:
        return HttpCarrier(address, open_stream, loop=loop, headers=callers, limits=limits)

    kit = Kit(settings, speaks_http=True, has_other_caller=other_headers is not None)
    await _run(kit, carrier, progress)
    return kit


async def examine_stdio(
    command: Sequence[str],
    settings: KitSettings,
    *,
    stderr: Any = None,
    progress: Progress = lambda _: None,
) -> Kit:
    """Start a server and examine it, and return the kit with what it found; then the server is ended.

    ``stderr`` is where that of the server goes, as for ``subprocess``.
    """
    spawn = process_spawner(command, stderr=stderr)
    kit = Kit(settings, speaks_http=False)
    await _run(kit, lambda loop: StdioCarrier(spawn, loop=loop, limits=Limits()), progress)
    return kit


async def _run(kit: Kit, carrier: Callable[[AsyncioClientLoop], Carrier], progress: Progress) -> None:
    async with asyncio.TaskGroup() as group:
        loop = AsyncioClientLoop(group, SteadyClock().now_ms)
        await examine(kit, carrier(loop), loop, progress)
