"""Where ``mcp-tasks serve`` keeps tasks: what ``--store`` says, or a file of the server's own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from attrs import frozen

from mcp_tasks_adapters.stores import MemoryStore, SqliteStore
from mcp_tasks_adapters.stores.sealing import HANDLE_KEYS_VARIABLE, KEYS_VARIABLE, RecordKeys
from mcp_tasks_adapters.storing import Store, StoreError
from mcp_tasks_adapters.toolkit import Server

__all__ = [
    "HANDLE_KEYS_VARIABLE",
    "KEYS_VARIABLE",
    "PROXY_STORE_VARIABLE",
    "STORE_VARIABLE",
    "ChosenStore",
    "choose_store",
    "default_path",
    "sqlite_path",
]

STORE_VARIABLE: Final = "MCP_TASKS_STORE"
PROXY_STORE_VARIABLE: Final = "MCP_TASKS_PROXY_STORE"


@frozen
class ChosenStore:
    """A store, and what has to be said about it."""

    store: Store
    notice: str | None = None
    """A line for whoever did not choose."""


def choose_store(
    wanted: str | None,
    key_file: str | None,
    *,
    target: str,
    server: Server,
    environment: Mapping[str, str] = os.environ,
) -> ChosenStore:
    """Return the store that the command line asks for; where it asks for none, a file of this server's.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError`.
    """
    if key_file is None:
        keys = RecordKeys.from_environment(KEYS_VARIABLE, environment)
    else:
        keys = RecordKeys.from_file(key_file)
    if wanted is not None:
        return ChosenStore(_named(wanted, keys))
    path = default_path(target, server, environment)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return _nowhere(path, error.strerror)
    if not os.access(path.parent, os.W_OK):
        return _nowhere(path, "it cannot be written")
    return ChosenStore(SqliteStore(path, keys=keys), f"keeping tasks in {path}")


def default_path(target: str, server: Server, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file for a server that was loaded from ``target``: the same one each time."""
    folder = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    place, _, attribute = target.rpartition(":")
    module = None if place.endswith(".py") else sys.modules.get(place)
    source = Path(place if module is None or module.__file__ is None else module.__file__).resolve()
    digest = sha256(f"{source}:{attribute}".encode()).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", server.name)[:40]
    return Path(folder) / "mcp-tasks" / f"{name}-{digest}.db"


def sqlite_path(place: str) -> Path:
    """Return the file that ``sqlite:`` was given, ``~`` being whose home it is.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError` for a URL, of which nobody knows what it means.
    """
    if place.startswith(("//", "file:")):
        raise StoreError(
            "After sqlite: stands the path of a file, and no URL: sqlite:tasks.db or sqlite:/var/tasks.db."
        )
    with suppress(RuntimeError):  # there is no such person
        return Path(place).expanduser()
    return Path(place)


def _named(wanted: str, keys: RecordKeys | None) -> Store:
    kind, colon, place = wanted.partition(":")
    if kind == "memory" and colon and not place:
        return MemoryStore()
    if kind == "sqlite" and place:
        return SqliteStore(sqlite_path(place), keys=keys)
    if (kind == "postgres" and colon) or (kind == "postgresql" and place):
        return _postgres(wanted if place.startswith("//") else place, keys)
    if kind == "sqlite" and colon:
        raise StoreError("After sqlite: stands the path of a file: sqlite:tasks.db or sqlite:/var/tasks.db.")
    # What stands after the colon, or before an @, may be secret.
    shown = f" {kind!r}" if re.fullmatch(r"[A-Za-z0-9._/-]*", kind) else ""
    raise StoreError(
        f"There is no store{shown}: there are sqlite:FILE, postgres:DSN and memory: (with the colon)."
    )


def _postgres(dsn: str, keys: RecordKeys | None) -> Store:
    try:
        from mcp_tasks_adapters.stores.postgres import PostgresStore
    except ImportError as error:
        raise StoreError(
            "Keeping tasks in PostgreSQL needs psycopg, which is not installed: "
            "pip install 'mcp-tasks-proto[postgres]'"
        ) from error
    return PostgresStore(dsn, keys=keys)


def _nowhere(path: Path, why: str | None) -> ChosenStore:
    notice = f"keeping tasks in memory only: no file can be made in {path.parent} ({why}); see --store"
    return ChosenStore(MemoryStore(), notice)
