"""A PostgreSQL server of the tests' own: in a temporary folder, on a socket that nobody else sees."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import psycopg

__all__ = ["PostgresServer", "find_binaries"]

DEBIAN: Final = Path("/usr/lib/postgresql")
ACCOUNT: Final = "postgres"
"""Whom the server runs as where the tests run as root, which it refuses."""
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
            account = pwd.getpwnam(ACCOUNT)
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

    def dsn(self, database: str) -> str:
        """Return how to connect to a database."""
        return f"host={self.folder} user={USER} dbname={database}"

    def new_database(self, options: str = "") -> str:
        """Make an empty database; return how to connect to it."""
        name = f"db{next(self._numbers)}"
        self.run("postgres", f"CREATE DATABASE {name} {options}")
        return self.dsn(name)

    def run(self, database: str, *statements: str) -> Sequence[tuple[object, ...]]:
        """Do something to a database, as another program would; return what the last statement found."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

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
                _nap()
        raise RuntimeError(f"{command[0]} failed: {done.stderr or done.stdout or 'no answer'}")


def _become_nobody_special() -> None:
    if os.getuid() == 0:
        account = pwd.getpwnam(ACCOUNT)
        os.initgroups(ACCOUNT, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    os.chdir("/")


def _nap() -> None:
    __import__("time").sleep(0.1)


_Statement = Callable[[], None]
