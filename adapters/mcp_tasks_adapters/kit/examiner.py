"""Runs of the kit, from what connects to what closes; a loop module adds its loop."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from mcp_tasks_adapters.client.loop import NetworkLoop
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.kit.carrier import Carrier
from mcp_tasks_adapters.kit.http import HttpCarrier
from mcp_tasks_adapters.kit.stdio import StdioCarrier
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.kit import (
    CHECKS,
    Act,
    Check,
    Close,
    Done,
    Fact,
    Kit,
    KitSettings,
    Next,
    Open,
    Pause,
)

__all__ = ["Examiner", "Progress"]

Progress = Callable[[Kit], None]
"""Is told now and then how far a run has come."""


def _nobody(_: Kit) -> None:
    """Where nobody wants to know."""


class Examiner:
    """Examines servers, on one kind of loop; each loop module has one, and offers what it can do."""

    def __init__(self, open_loop: Callable[[], AbstractAsyncContextManager[NetworkLoop]]) -> None:
        """``open_loop`` gives a loop for the length of a block."""
        self._open_loop = open_loop

    async def examine_http(
        self,
        url: str,
        settings: KitSettings,
        *,
        headers: Mapping[str, str] | None = None,
        other_headers: Mapping[str, str] | None = None,
        progress: Progress = _nobody,
        checks: Sequence[Check] = CHECKS,
    ) -> Kit:
        """Examine the endpoint at ``url``, by these checks, and return the kit with what it found.

        ``headers`` are added to every request; ``other_headers`` are those of another caller, whose tasks
        are not to be seen (SEC.1). Raises ``ValueError`` for a URL that cannot be used.
        """
        limits = Limits()
        address = HttpAddress.parse(url)
        context = ssl.create_default_context() if address.secure else None
        callers = (headers or {}, other_headers or {})

        def carrier_on(loop: NetworkLoop) -> Carrier:
            open_stream = partial(loop.open_stream, address, context, limits.write_timeout_ms / 1000)
            return HttpCarrier(address, open_stream, loop=loop, headers=callers, limits=limits)

        has_other_caller = other_headers is not None
        kit = Kit(settings, speaks_http=True, has_other_caller=has_other_caller, checks=checks)
        return await self._examine(kit, carrier_on, progress)

    async def examine_stdio(
        self,
        command: Sequence[str],
        settings: KitSettings,
        *,
        stderr: Any = None,
        progress: Progress = _nobody,
        checks: Sequence[Check] = CHECKS,
    ) -> Kit:
        """Start a server and examine it by these checks, end it, and return the kit with what it found.

        ``stderr`` is where that of the server goes, as for ``subprocess``.
        """

        def carrier_on(loop: NetworkLoop) -> Carrier:
            start = partial(loop.start_process, command, env=None, cwd=None, stderr=stderr, own_session=True)
            return StdioCarrier(start, loop=loop, limits=Limits())

        return await self._examine(Kit(settings, speaks_http=False, checks=checks), carrier_on, progress)

    async def _examine(
        self, kit: Kit, carrier_on: Callable[[NetworkLoop], Carrier], progress: Progress
    ) -> Kit:
        async with self._open_loop() as loop:
            carrier = carrier_on(loop)
            try:
                act = kit.begin(loop.now_ms())
                while act is not None:
                    progress(kit)
                    fact = await _carry_out(act, carrier, loop)
                    act = kit.take(fact, loop.now_ms())
            finally:
                await loop.finish(None, carrier.finish)
        return kit


async def _carry_out(act: Act, carrier: Carrier, loop: NetworkLoop) -> Fact:
    match act:
        case Open(exchange=exchange, post=post):
            await carrier.open(exchange, post)
        case Next(exchange=exchange, within_ms=within_ms):
            return await carrier.next(exchange, within_ms)
        case Close(exchange=exchange):
            await carrier.close(exchange)
        case Pause(ms=ms):
            await loop.within(ms / 1000, loop.event().wait)
    return Done()
