"""A PostgreSQL server of the tests' own: in a temporary folder, on a socket that nobody else sees."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any, Final

import psycopg
from attrs import frozen
from mcp_tasks_adapters.stores.postgres import PostgresStore
from psycopg import sql

__all__ = ["PostgresServer", "Schema", "find_binaries"]

DEBIAN: Final = Path("/usr/lib/postgresql")
ACCOUNTS: Final = ("postgres", "nobody")
"""Whom the server runs as where the tests run as root, which it refuses: the first that there is."""
USER: Final = "tests"
START_S: Final = 60.0

SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # Tests kill servers, and never a machine: without this the disk decides how long they take.
    "fsync": "off",
    "log_min_messages": "fatal",
}


def find_binaries() -> Path | None:
    """Return the folder of ``initdb`` and ``postgres``: in POSTGRES_BIN, or where they usually are."""
    named = os.environ.get("POSTGRES_BIN")
    debian = sorted(DEBIAN.glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    folders = [Path(named)] if named else [*debian, *([Path(on_path).parent] if on_path else [])]
    return next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)


@frozen
class Schema:
    """A schema in a database (``store_harness.Place``)."""

    dsn: str
    name: str

    @property
    def option(self) -> str:
        """What ``--store`` calls its database."""
        return f"postgres:{self.dsn}"

    def store(self, dsn: str | None = None, **options: Any) -> PostgresStore:
        """Return a store whose nodes are soon taken for gone."""
        return PostgresStore(dsn or self.dsn, schema=self.name, **{"lease_ms": 1_500, **options})

    def run(self, *statements: str) -> Sequence[tuple[Any, ...]]:
        """Do something to it, as another program would; return what the last statement found."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(self.name)))
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def nodes(self) -> list[str]:
        """Return the nodes that may have left something, and those that are there."""
        return [node for (node,) in self.run("SELECT node FROM nodes WHERE NOT settled")]

    @contextmanager
    def listening(self) -> Iterator[Callable[[int], list[str]]]:
        """Listen to what nodes tell each other; the function waits for so many messages."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self.name)))
            yield lambda count: [
                one.payload for one in connection.notifies(timeout=START_S, stop_after=count)
            ][:count]

    @contextmanager
    def locked(self) -> Iterator[Callable[[], int]]:
        """Let another program be in a transaction that stops all writes; the function counts who waits."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(self.name)))
            connection.execute("SELECT FROM totals FOR UPDATE")
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            yield lambda: len(self.run(waiting))


class PostgresServer:
    """Runs from :meth:`start` to :meth:`stop`, as often as one likes; :meth:`remove` leaves nothing."""

    def __init__(self, binaries: Path, settings: dict[str, str] | None = None) -> None:
        self._binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        # Short, because the name of a socket must be.
        self.folder = Path(tempfile.mkdtemp(prefix="mcp-pg-"))
        if os.getuid() == 0:
            account = _account()
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self._data = self.folder / "data"
        self._call(["initdb", "-D", str(self._data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"])

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {**self._settings, "unix_socket_directories": str(self.folder)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [str(self._binaries / "postgres"), "-D", str(self._data), *options],
            preexec_fn=_become_nobody_special,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what is typed at the terminal is meant for the tests
        )
        self._call(["pg_isready", "-q", "-h", str(self.folder), "-t", "1"], tries=int(START_S * 10))

    def stop(self, *, crash: bool = False) -> None:
        """End it at once: every connection is cut. In a crash it does not even write down that it ended."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            process.wait(START_S)

    def remove(self) -> None:
        """Stop it for good."""
        self.stop(crash=True)
        shutil.rmtree(self.folder)

    def dsn(self, database: str = "postgres", host: Path | None = None) -> str:
        """Return how to connect to a database; by ``host``, the folder of another socket, if need be."""
        return f"host={host or self.folder} user={USER} dbname={database}"

    def new_schema(self) -> Schema:
        """Return one that is not there yet."""
        return Schema(self.dsn(), f"schema_{next(self._numbers)}")

    def _call(self, command: Sequence[str], tries: int = 1) -> None:
        for _ in range(tries):
            done = subprocess.run(
                [str(self._binaries / command[0]), *command[1:]],
                preexec_fn=_become_nobody_special,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                return
            if tries > 1:
                sleep(0.1)
        raise RuntimeError(f"{command[0]} failed: {done.stderr or done.stdout or 'no answer'}")


def _account() -> pwd.struct_passwd:
    names = {one.pw_name for one in pwd.getpwall()}
    return pwd.getpwnam(next(one for one in ACCOUNTS if one in names))


def _become_nobody_special() -> None:
    if os.getuid() == 0:
        account = _account()
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    os.chdir("/")
