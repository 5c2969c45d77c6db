"""Which database, and how to connect to it. What may be secret in that is shown to nobody (SEC.2)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

import psycopg
from attrs import field, frozen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mcp_tasks_adapters.storing import StoreError

__all__ = ["SCHEMA_BYTES", "Place", "UnreachableError", "what_is_wrong"]

SCHEMA_BYTES: Final = 63
"""The longest name that PostgreSQL does not cut."""

DEFAULTS: Final[Mapping[str, str]] = {
    "application_name": "mcp-tasks",
    "connect_timeout": "5",
    # Of several hosts the one that takes writes: a standby may be behind (rule 1).
    "target_session_attrs": "read-write",
    # A machine that is gone without a word is noticed within seconds.
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""What is so unless the DSN says otherwise."""


_PORTS: Final = re.compile(r"[0-9,]*")


class UnreachableError(Exception):
    """There is no connection at the moment; the message says why."""


@frozen
class Place:
    """A schema in a database."""

    _parameters: Mapping[str, str] = field(repr=False)
    schema: str
    timeout_s: float
    """How long one statement may take."""

    @classmethod
    def parse(cls, dsn: str, schema: str, timeout_s: float) -> Place:
        """Take a URI or a connection string apart. Raises :class:`~mcp_tasks_adapters.storing.StoreError`."""
        try:
            parameters = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
            # What is left of a password with a special character in it, that would be shown in an error.
            misread = "@" in parameters.get("host", "") or not _PORTS.fullmatch(parameters.get("port", ""))
        except psycopg.Error:
            misread = True
        if misread:
            raise StoreError(
                "The DSN of the PostgreSQL store cannot be read (it is not shown here, for it may hold a "
                "password): write postgresql://USER@HOST/DATABASE, or 'host=HOST dbname=DATABASE user=USER'."
            ) from None
        if not schema or len(schema.encode()) > SCHEMA_BYTES or "\0" in schema:
            raise StoreError(f"A schema has a name of 1 to {SCHEMA_BYTES} bytes.")
        return cls({**DEFAULTS, **parameters, "client_encoding": "UTF8"}, schema, timeout_s)

    def __str__(self) -> str:
        """Return where it is, for a person: no password, and nothing else that a DSN may hold."""
        database = self._parameters.get("dbname") or os.environ.get("PGDATABASE") or "of the default name"
        host = self._parameters.get("host") or os.environ.get("PGHOST") or "this machine"
        return f"the PostgreSQL database {database} at {host}"

    def connect(self) -> psycopg.Connection:
        """Connect; every statement is a transaction of its own. Raises :class:`psycopg.Error`."""
        return psycopg.connect(make_conninfo(**self._parameters), autocommit=True)

    def set_up(self, connection: psycopg.Connection) -> None:
        """See to it that statements mean what they should, however the server is configured."""
        milliseconds = str(round(self.timeout_s * 1000))
        connection.execute(SET_UP, (self._quoted_schema(), milliseconds, milliseconds))

    def _quoted_schema(self) -> str:
        return '"' + self.schema.replace('"', '""') + '"'


# Saved means saved (rule 1): a server that commits without a sync is asked for one. Others know better.
# Tables are not read as a whole (rule 8), not even while the server still believes that they are small. What
# that makes look expensive, as the one row of sums, must not be compiled for it.
SET_UP: Final = """
    SELECT
        set_config('search_path', %s, false),
        set_config('statement_timeout', %s, false),
        set_config('idle_in_transaction_session_timeout', %s, false),
        set_config('enable_seqscan', 'off', false),
        set_config('enable_bitmapscan', 'off', false),
        set_config('enable_sort', 'off', false),
        set_config('jit', 'off', false),
        set_config('default_transaction_isolation', 'read committed', false),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""


OURS: Final[Mapping[str, str]] = {
    "MT001": "the schema was migrated by a later version of this package: "
    "restart this process with that version",
    "MT002": "the lease of this node ran out: nothing is saved until it is renewed",
}
"""What it means when ``write_tasks`` ends with one of these as SQLSTATE."""


def what_is_wrong(error: Exception) -> str:
    """Return it without anything of a record (SEC.2).

    Of what happens to a connection the server's or the library's own words are told: they name hosts and
    accounts, no secrets. Of what happens to a statement, which may quote values, only the kind.
    """
    if isinstance(error, UnreachableError):
        return str(error)
    if not isinstance(error, psycopg.Error):
        return type(error).__name__
    if ours := OURS.get(error.sqlstate or ""):
        return ours
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        return " ".join(str(error).split())
    kind = f"{type(error).__name__} ({error.sqlstate})"
    about_the_server = (error.sqlstate or "")[:2] in {"08", "28", "3D", "53", "57"}
    about_a_right = isinstance(error, psycopg.errors.InsufficientPrivilege)  # it names a table, or a schema
    return f"{kind}: {error.diag.message_primary}" if about_the_server or about_a_right else kind
