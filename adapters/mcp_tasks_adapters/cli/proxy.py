"""``mcp-tasks proxy``: a proxy before the upstreams that the command line names."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import evolve, frozen

from mcp_tasks_adapters.cli.serve import Endpoint, ServeError, run_endpoint
from mcp_tasks_adapters.cli.stopping import GRACE_MS
from mcp_tasks_adapters.cli.store import KEYS_VARIABLE, sqlite_path
from mcp_tasks_adapters.proxy import (
    Credentials,
    CredentialsError,
    HttpUpstream,
    MemoryProxyStore,
    Proxy,
    ProxyStore,
    SqliteProxyStore,
)
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import InputKind, ProxyLimits

__all__ = ["ChosenProxyStore", "choose_proxy_store", "make_proxy", "run_proxy"]

_NAMED: Final = re.compile(r"(?P<name>[^=:/?#]*)=(?P<url>.*)")
ONLY: Final = "upstream"
"""The name of an upstream that is the only one, and was given none: callers never see it."""


@frozen
class ChosenProxyStore:
    """A store, and what has to be said about it."""

    store: ProxyStore
    notice: str | None = None


def make_proxy(
    upstreams: Sequence[str], callers: str | None, kinds: Sequence[str] = (InputKind.FORM.value,)
) -> Proxy:
    """Return a proxy before ``[NAME=]URL`` upstreams, for the callers in a file, or for everybody.

    ``kinds`` of input may be asked for (:class:`~mcp_tasks_proto.proxy.InputKind`).

    Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError`.
    """
    declared = [_upstream(text, only=len(upstreams) == 1) for text in upstreams]
    limits = Limits()
    proxy_limits = ProxyLimits()
    try:
        credentials = None if callers is None else Credentials.from_file(callers)
    except CredentialsError as error:
        raise ServeError(str(error)) from error
    if credentials is None:  # then all callers are one, and the bound of one is that of all
        proxy_limits = evolve(
            proxy_limits,
            tasks_per_principal=proxy_limits.tasks,
            streams_per_principal=proxy_limits.streams,
        )
    try:
        return Proxy(
            declared,
            authenticate=credentials,
            limits=evolve(limits, shutdown_grace_ms=min(limits.shutdown_grace_ms, GRACE_MS)),
            proxy_limits=proxy_limits,
            input_kinds=frozenset(InputKind(kind) for kind in kinds),
        )
    except ValueError as error:
        raise ServeError(f"These upstreams cannot be served: {error}.") from error


def _upstream(text: str, *, only: bool) -> HttpUpstream:
    named = _NAMED.fullmatch(text)
    url = text if named is None else named["url"]
    if named is None and not only:
        raise ServeError(f"Of several upstreams each needs a name: --upstream NAME={text}")
    try:
        upstream = HttpUpstream(name=ONLY if named is None else named["name"], url=url)
        _ = upstream.settings  # which checks the name
    except ValueError as error:
        raise ServeError(f"--upstream {text}: {error}.") from error
    return upstream


def choose_proxy_store(
    wanted: str | None, key_file: str | None, environment: Mapping[str, str] = os.environ
) -> ChosenProxyStore:
    """Return the store that the command line asks for; by default memory.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError`.
    """
    if key_file is None:
        keys = RecordKeys.from_environment(KEYS_VARIABLE, environment)
    else:
        keys = RecordKeys.from_file(key_file)
    if wanted is None:
        return ChosenProxyStore(MemoryProxyStore(), "keeping handles in memory only; see --store")
    kind, colon, place = wanted.partition(":")
    if kind == "memory" and colon and not place:
        return ChosenProxyStore(MemoryProxyStore())
    if kind != "sqlite" or not place:
        raise StoreError("A proxy keeps its handles in sqlite:FILE or memory: (with the colon).")
    if keys is None:
        raise StoreError(
            "In a file the ids of upstreams and the results of tasks are sealed, which takes a key: "
            f"--store-key-file, or the variable {KEYS_VARIABLE}. openssl rand -base64 32 makes one."
        )
    return ChosenProxyStore(SqliteProxyStore(sqlite_path(place), keys=keys))


def run_proxy(
    proxy: Proxy,
    endpoint: Endpoint,
    *,
    serve_proxy: Callable[..., Awaitable[None]],
    loop: str,
    chosen: ChosenProxyStore,
) -> None:
    """Run until SIGTERM or SIGINT, on ``loop``, by its ``serve_proxy``.

    Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError`.
    """
    run_endpoint(partial(serve_proxy, proxy, store=chosen.store), endpoint, loop=loop, notice=chosen.notice)
