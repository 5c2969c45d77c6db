"""``mcp-tasks serve``: a server object, running until it is told to stop."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

from attrs import evolve, field, frozen

from mcp_tasks_adapters.cli.stopping import GRACE_MS, HangUps, StopSignals
from mcp_tasks_adapters.cli.store import ChosenStore
from mcp_tasks_adapters.collector import relax_collector
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit import Server

__all__ = [
    "LOOPS",
    "Endpoint",
    "ServeError",
    "from_loop_module",
    "prepare",
    "run_channel",
    "run_endpoint",
    "run_http",
    "run_stdio",
]

LOOPS: Final = ("trio", "asyncio")

Serve = Callable[[], Awaitable[None]]


class ServeError(Exception):
    """The server cannot run here; the message says why and what to do."""


@frozen(kw_only=True)
class Endpoint:
    """Where to listen, and for whom."""

    host: str = "127.0.0.1"
    port: int = 0
    path: str = "/mcp"
    allowed_hosts: Sequence[str] = field(default=())
    """More ``Host`` values than those of the loopback addresses and of ``host``; ``*`` for any."""
    allowed_origins: Sequence[str] = field(default=())
    """More ``Origin`` values than those of the loopback addresses; ``*`` for any."""


def prepare(server: Server, *, ttl_ms: int | None, max_tasks: int | None, legacy: str | None = None) -> None:
    """Put what the command line says, where it says something, in place of the server's own settings.

    Raises :class:`ServeError` when no engine could be made with them.
    """
    if legacy is not None:
        server.legacy = legacy
    limits = server.limits
    if ttl_ms is not None:
        limits = evolve(limits, ttl_ms=ttl_ms)
    if max_tasks is not None:
        limits = evolve(limits, tasks=max_tasks)
        if server.principal is None:  # then all callers are one, and the bound of one is that of all
            limits = evolve(limits, tasks_per_principal=max_tasks)
    server.limits = evolve(limits, shutdown_grace_ms=min(limits.shutdown_grace_ms, GRACE_MS))
    try:
        server.settings()
    except (TypeError, ValueError) as error:
        raise ServeError(f"The server is not set up right: {error}.") from error


def run_http(server: Server, endpoint: Endpoint, *, loop: str, chosen: ChosenStore) -> None:
    """Serve over HTTP until SIGTERM or SIGINT. Raises :class:`ServeError`."""
    serve_http = from_loop_module(loop, "serve_http")
    run_endpoint(partial(serve_http, server, store=chosen.store), endpoint, loop=loop, notice=chosen.notice)


def run_endpoint(
    serve_http: Callable[..., Awaitable[None]],
    endpoint: Endpoint,
    *,
    loop: str,
    notice: str | None,
    hang_ups: HangUps | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; say a notice once it listens. Raises :class:`ServeError`.

    What ``hang_ups`` is about is done on the loop's thread, on SIGHUP.
    """
    listening = False

    def ready(url: str) -> None:
        nonlocal listening
        listening = True
        print(f"listening on {url}", file=sys.stderr, flush=True)
        _say(notice)

    async def serve() -> None:
        await serve_http(
            host=endpoint.host,
            port=endpoint.port,
            path=endpoint.path,
            allowed_hosts=endpoint.allowed_hosts,
            allowed_origins=endpoint.allowed_origins,
            ready=ready,
        )

    try:
        _run(serve, StopSignals(), loop=loop, hang_ups=hang_ups)
    except (OSError, UnicodeError) as error:  # the latter for what cannot be the name of a host
        if listening:
            raise
        where = f"{endpoint.host} port {endpoint.port}"
        raise ServeError(f"Cannot listen on {where}: {_reason(error)}.") from error


def run_stdio(server: Server, *, loop: str, chosen: ChosenStore) -> None:
    """Serve over stdin and stdout until stdin ends, SIGTERM or SIGINT. Raises :class:`ServeError`."""
    serve_stdio = from_loop_module(loop, "serve_stdio")
    run_channel(partial(serve_stdio, server, store=chosen.store), loop=loop, notice=chosen.notice)


def run_channel(serve_stdio: Callable[..., Awaitable[None]], *, loop: str, notice: str | None) -> None:
    """Say a notice, and serve over stdin and stdout until stdin ends, SIGTERM or SIGINT.

    Raises :class:`ServeError`.
    """
    _say(notice)
    signals = StopSignals()
    _run(lambda: serve_stdio(on_end=signals.ending), signals, loop=loop)


def _say(notice: str | None) -> None:
    if notice is not None:
        print(notice, file=sys.stderr, flush=True)


def _reason(error: OSError | UnicodeError) -> str:
    """Say it in the system's own words: those of asyncio repeat the address."""
    if isinstance(error, UnicodeError):
        return "this cannot be the name of a host"
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def from_loop_module(loop: str, name: str) -> Any:
    """Import what is only there with the loop's extra."""
    try:
        return getattr(import_module(f"mcp_tasks_adapters.{loop}_h11"), name)
    except ModuleNotFoundError as error:
        if error.name not in {"trio", "h11"}:
            raise
        raise ServeError(
            f"--loop {loop} needs {error.name}, which is not installed: pip install 'mcp-tasks-proto[{loop}]'"
        ) from error


def _run(serve: Serve, signals: StopSignals, *, loop: str, hang_ups: HangUps | None = None) -> None:
    relax_collector()
    problem: BaseException | None = None
    try:
        if loop == "trio":
            _run_on_trio(serve, signals, hang_ups)
        else:
            _run_on_asyncio(serve, signals, hang_ups)
    except* StoreError as errors:
        problem = errors
    # trio wraps what is raised in a nursery.
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    if problem is not None:
        raise ServeError(str(problem))


def _run_on_trio(serve: Serve, signals: StopSignals, hang_ups: HangUps | None) -> None:
    import trio

    async def main() -> None:
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:
            signals.on_stop(lambda: token.run_sync_soon(scope.cancel))
            if hang_ups is not None:
                hang_ups.deliver(token.run_sync_soon)
            await serve()

    trio.run(main)


def _run_on_asyncio(serve: Serve, signals: StopSignals, hang_ups: HangUps | None) -> None:
    import asyncio

    async def main() -> None:
        loop, serving = asyncio.get_running_loop(), asyncio.ensure_future(serve())
        signals.on_stop(lambda: loop.call_soon_threadsafe(serving.cancel))
        if hang_ups is not None:
            hang_ups.deliver(loop.call_soon_threadsafe)
        try:
            await serving
        except asyncio.CancelledError:
            if not signals.requested:
                raise

    asyncio.run(main())
