"""``mcp-tasks proxy``: a proxy as a file or the command line has it."""

from __future__ import annotations

import json
import os
import re
import shlex
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from mcp_tasks_adapters.cli.proxy_check import describe_config, render_config
from mcp_tasks_adapters.cli.reloading import Reloading
from mcp_tasks_adapters.cli.serve import Endpoint, ServeError, run_channel, run_endpoint
from mcp_tasks_adapters.cli.stopping import GRACE_MS, HangUps
from mcp_tasks_adapters.cli.store import HANDLE_KEYS_VARIABLE, KEYS_VARIABLE, sqlite_path
from mcp_tasks_adapters.proxy import (
    Credentials,
    CredentialsError,
    HttpUpstream,
    MemoryProxyStore,
    ProxyStore,
    SqliteProxyStore,
    StdioUpstream,
)
from mcp_tasks_adapters.proxy.config import ProxyConfig, bounds_of_one
from mcp_tasks_adapters.proxy.config_file import ConfigError, read_config
from mcp_tasks_adapters.proxy.config_upstreams import has_credentials
from mcp_tasks_adapters.proxy.encryption import HandleKeys
from mcp_tasks_adapters.proxy.proxy import legacy_policies
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit.server import RecordFunction
from mcp_tasks_adapters.trust import trusting
from mcp_tasks_proto.proxy import InputKind, ProxyLimits

__all__ = [
    "ChosenProxyStore",
    "check_proxy",
    "choose_proxy_store",
    "load_config",
    "make_config",
    "run_proxy",
    "with_options",
]

_NAMED: Final = re.compile(r"(?P<name>[^=:/?#]*)=(?P<url>.*)")
_NAMED_COMMAND: Final = re.compile(r"(?P<name>[A-Za-z0-9_-]*)=(?P<command>.*)", re.DOTALL)
ONLY: Final = "upstream"
"""The name of an upstream that is the only one, and was given none: callers never see it."""

Declared = HttpUpstream | StdioUpstream


@frozen
class ChosenProxyStore:
    """A store, and what has to be said about it."""

    store: ProxyStore
    notice: str | None = None


def load_config(path: str) -> ProxyConfig:
    """Read a configuration file. Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError`."""
    try:
        return read_config(path)
    except ConfigError as error:
        raise ServeError(f"the configuration cannot be used.\n{error}") from error


def make_config(
    upstreams: Sequence[str],
    callers: str | None = None,
    kinds: Sequence[str] = (InputKind.FORM.value,),
    *,
    stdio: Sequence[str] = (),
    ca_file: str | None = None,
) -> ProxyConfig:
    """Return what a command line without a file stands for: a proxy before ``[NAME=]URL`` upstreams and
    ``[NAME=]COMMAND`` ones, for the callers in a file, or for everybody.

    ``kinds`` of input may be asked for (:class:`~mcp_tasks_proto.proxy.InputKind`). ``ca_file`` has the
    authorities that are trusted for ``https``, in place of the system's.

    Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError`.
    """
    only = len(upstreams) + len(stdio) == 1
    try:
        context = None if ca_file is None else trusting(ca_file)
    except ValueError as error:
        raise ServeError(f"--ca-file: {error}.") from error
    declared: list[Declared] = [_http(text, only=only, context=context) for text in upstreams]
    declared += [_stdio(text, only=only) for text in stdio]
    try:
        credentials = None if callers is None else Credentials.from_file(callers)
    except CredentialsError as error:
        raise ServeError(str(error)) from error
    config = ProxyConfig(
        upstreams=tuple(declared),
        callers=None if credentials is None else credentials.callers,
        handle_keys=HandleKeys.from_environment(),
        proxy_limits=bounds_of_one(ProxyLimits()) if credentials is None else ProxyLimits(),
        policies={"input_kinds": frozenset(InputKind(kind) for kind in kinds)},
    )
    try:
        if declared:  # there are none where all that is wanted is to forget a project
            config.proxy()
    except ValueError as error:
        raise ServeError(f"These upstreams cannot be served: {error}.") from error
    return config


def _http(text: str, *, only: bool, context: ssl.SSLContext | None) -> HttpUpstream:
    named = _NAMED.fullmatch(text)
    url = text if named is None else named["url"]
    if has_credentials(url):  # which is said without them (SEC.2)
        raise ServeError(
            "--upstream: a URL must not hold credentials: a CONFIG has a place for them, "
            "[upstreams.NAME] bearer = { variable = … }."
        )
    name = _name(None if named is None else named["name"], f"--upstream NAME={text}", only=only)
    try:
        upstream = HttpUpstream(name=name, url=url, ssl_context=context)
        _ = upstream.settings  # which checks the name
    except ValueError as error:
        raise ServeError(f"--upstream {text}: {error}.") from error
    return upstream


def _stdio(text: str, *, only: bool) -> StdioUpstream:
    named = _NAMED_COMMAND.fullmatch(text)
    command = text if named is None else named["command"]
    option = f"--upstream-stdio {shlex.quote(f'NAME={text}')}"
    name = _name(None if named is None else named["name"], option, only=only)
    try:
        words = tuple(shlex.split(command))
        if not words:
            raise ValueError("there is no command")
        # The keys of the store, and those of handles, are nobody else's.
        own = (KEYS_VARIABLE, HANDLE_KEYS_VARIABLE)
        env = {name: value for name, value in os.environ.items() if name not in own}
        upstream = StdioUpstream(name=name, command=words, env=env)
        _ = upstream.settings
    except ValueError as error:
        raise ServeError(f"--upstream-stdio {shlex.quote(text)}: {error}.") from error
    return upstream


def _name(name: str | None, option: str, *, only: bool) -> str:
    if name is None and not only:
        raise ServeError(f"Of several upstreams each needs a name: {option}")
    return ONLY if name is None else name


def choose_proxy_store(
    wanted: str | None, key_file: str | os.PathLike[str] | None, environment: Mapping[str, str] = os.environ
) -> ChosenProxyStore:
    """Return the store that is asked for; by default memory.

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


def with_options(
    config: ProxyConfig,
    *,
    endpoint: Mapping[str, Any],
    store: str | None,
    key_file: str | None,
    handle_key_file: str | None = None,
    legacy: str | None = None,
) -> ProxyConfig:
    """Put what the command line gives in place of what the configuration says.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError` for keys that cannot be used.
    """
    place = config.store
    if store is not None:
        place = evolve(place, place=store)
    if key_file is not None:
        place = evolve(place, key_file=Path(key_file))
    keys = config.handle_keys
    if handle_key_file is not None:
        keys = HandleKeys.from_file(handle_key_file)
    policies = config.policies if legacy is None else config.policies | legacy_policies(legacy)
    return evolve(
        config,
        listen=evolve(config.listen, **endpoint),
        store=place,
        handle_keys=keys,
        policies=policies,
    )


def check_proxy(read: Callable[[], ProxyConfig], *, as_json: bool) -> int:
    """Print what each caller would see, or as JSON the mistakes in the way of it; return the exit code.

    Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError` and
    :class:`~mcp_tasks_adapters.storing.StoreError`.
    """
    try:
        config = read()
    except ServeError as error:
        if not as_json or not isinstance(error.__cause__, ConfigError):
            raise
        mistakes = [{"line": one.line or None, "text": one.text} for one in error.__cause__.mistakes]
        print(json.dumps({"mistakes": mistakes}, indent=2))
        return 1
    choose_proxy_store(config.store.place, config.store.key_file)
    described = describe_config(config)
    shown = f"{json.dumps(described, indent=2)}\n" if as_json else render_config(described)
    print(shown, end="")
    return 0


def run_proxy(
    config: ProxyConfig,
    *,
    read: Callable[[], ProxyConfig] | None,
    serve_proxy: Callable[..., Awaitable[None]],
    loop: str,
    on_stdio: bool = False,
    record: RecordFunction | None = None,
) -> None:
    """Run until SIGTERM or SIGINT, on ``loop``, by its ``serve_proxy``; a configuration that can be ``read``
    anew is, on SIGHUP. ``on_stdio``: ``serve_proxy`` is for one caller on stdin and stdout, whose end is the
    proxy's.

    Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError` and
    :class:`~mcp_tasks_adapters.storing.StoreError`.
    """
    chosen = choose_proxy_store(config.store.place, config.store.key_file)
    if chosen.notice is not None and config.handle_keys is not None:
        chosen = evolve(chosen, notice="keeping ends of tasks and the ledger in memory only; see --store")
    listen = config.listen
    limits = evolve(config.limits, shutdown_grace_ms=min(config.limits.shutdown_grace_ms, GRACE_MS))
    proxy = evolve(config, limits=limits).proxy()
    proxy.record = record
    if on_stdio:
        if config.callers is not None:
            raise ServeError(
                "Over stdin nobody can say who calls: --stdio is for a proxy without members and API keys."
            )
        run_channel(partial(serve_proxy, proxy, store=chosen.store), loop=loop, notice=chosen.notice)
        return
    reloading = None if read is None else Reloading(read, config, proxy.settings.sealer)
    running = None if reloading is None else reloading.running
    run_endpoint(
        partial(serve_proxy, proxy, store=chosen.store, running=running),
        Endpoint(
            host=listen.host,
            port=listen.port,
            path=listen.path,
            allowed_hosts=listen.allowed_hosts,
            allowed_origins=listen.allowed_origins,
        ),
        loop=loop,
        notice=chosen.notice,
        hang_ups=None if reloading is None else HangUps(reloading.reload),
    )
