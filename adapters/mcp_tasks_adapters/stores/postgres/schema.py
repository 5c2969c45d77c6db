"""What is in the schema, and how a schema becomes one of ours.

Everything that is asked often is answered from an index or a counter: nothing reads all tasks (rule 8).

All that is written goes through one function, ``write_tasks``, which takes a group of requests in one
statement, and so in one transaction and one round trip. It begins by locking the row of ``totals``: groups
are carried out one after another, whichever node they come from. That makes check and write one step, quotas
included (rule 4), keeps groups from waiting for each other in circles, and numbers changes in the order in
which they become visible, so that a watcher that has seen a change has missed none before it (rule 11).

It ends with the row of the node: a group goes through only while the lease of its node runs (rule 12), and
only for the session that the node began last, so that what a lost connection may still be doing can be ruled
out (rule 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import psycopg
from psycopg import sql

from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_adapters.stores.postgres.place import Place, what_is_wrong
from mcp_tasks_adapters.stores.rows import KEY_CHECK, Rows
from mcp_tasks_adapters.storing import StoreError

__all__ = ["REMOVALS_KEPT", "STEPS", "check_keys", "owner_column", "prepare"]

OLDEST_SERVER: Final = 13_00_00
REMOVALS_KEPT: Final = 20_000
"""How many removals a watcher may be behind. Who is further behind finds the tasks gone when it asks."""
OWNER_CHARACTERS: Final = 600
"""The longest owner that an index certainly holds."""

STEPS: Sequence[Sequence[str]] = [
    [
        # ``node`` is NULL once the task has ended. ``change`` counts the changes of all tasks, ``writer`` is
        # who made this one; a new task has no number, since nobody can be waiting for it. A record is either
        # JSON text or sealed; what is in the text is nobody's business here, so it is not of type json.
        """
        CREATE TABLE tasks (
            task_id text COLLATE "C" PRIMARY KEY,
            version bigint NOT NULL,
            owner text COLLATE "C" NOT NULL,
            node text COLLATE "C",
            expires_at_ms bigint,
            payload_bytes bigint NOT NULL,
            change bigint,
            writer bigint NOT NULL,
            record text,
            sealed bytea,
            CHECK ((record IS NULL) <> (sealed IS NULL))
        )
        """,
        "CREATE INDEX tasks_by_expiry ON tasks (expires_at_ms) WHERE expires_at_ms IS NOT NULL",
        "CREATE INDEX tasks_by_change ON tasks (change) WHERE change IS NOT NULL",
        "CREATE INDEX tasks_by_node ON tasks (node, task_id) WHERE node IS NOT NULL",
        "CREATE INDEX tasks_by_owner ON tasks (owner, task_id)",
        # The last removals, for those who watch.
        """
        CREATE TABLE removals (
            change bigint PRIMARY KEY,
            writer bigint NOT NULL,
            task_id text COLLATE "C" NOT NULL
        )
        """,
        # Rows that change all the time have room for their next versions on the same page.
        """
        CREATE TABLE totals (tasks bigint NOT NULL, payload_bytes bigint NOT NULL, change bigint NOT NULL)
        WITH (fillfactor = 10)
        """,
        "INSERT INTO totals VALUES (0, 0, 0)",
        """
        CREATE TABLE owners (owner text COLLATE "C" PRIMARY KEY, tasks bigint NOT NULL)
        WITH (fillfactor = 50)
        """,
        # Who works on these tasks, or did when its process ended without a word. ``session`` is which of its
        # connections may write, ``writes`` how often it did; ``refused`` and ``reasons`` are what came of the
        # requests of the last time that were not carried out. ``settled``: gone, and no task names it.
        """
        CREATE TABLE nodes (
            writer bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            node text COLLATE "C" NOT NULL UNIQUE,
            lease_until timestamptz NOT NULL,
            settled boolean NOT NULL DEFAULT false,
            session bigint NOT NULL DEFAULT 0,
            writes bigint NOT NULL DEFAULT 0,
            refused integer[] NOT NULL DEFAULT '{}',
            reasons text[] NOT NULL DEFAULT '{}'
        )
        WITH (fillfactor = 50)
        """,
        "CREATE INDEX nodes_by_lease ON nodes (lease_until) WHERE NOT settled",
        # What shows whether the keys given are those that records are sealed with.
        "CREATE TABLE seals (place text PRIMARY KEY, sealed bytea NOT NULL)",
        """
        CREATE FUNCTION note_owner(whose text, counted bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            IF counted = 0 THEN
                DELETE FROM owners WHERE owner = whose;
            ELSE
                INSERT INTO owners VALUES (whose, counted)
                ON CONFLICT (owner) DO UPDATE SET tasks = excluded.tasks;
            END IF;
        END
        $$
        """,
        # Requests are what ``writing.py`` makes of them; without a version a request removes. The numbers of
        # those that were not carried out are returned, beginning with 0, and why: a conflict, or a bound.
        """
        CREATE FUNCTION write_tasks(
            my_writer bigint, my_session bigint, my_schema integer, requests json, removals_kept integer,
            OUT refused integer[], OUT reasons text[]
        )
        LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        DECLARE
            total totals%ROWTYPE;
            request record;
            stored record;
            number integer := -1;
            more integer;
            reason text;
            whose text;
            owned bigint := 0;
            owned_before bigint := 0;
            change_before bigint;
            removed boolean := false;
            wrote boolean := false;
        BEGIN
            refused := '{}';
            reasons := '{}';
            SELECT * INTO STRICT total FROM totals FOR UPDATE;
            IF (SELECT version FROM schema_version) <> my_schema THEN
                RAISE EXCEPTION 'migrated' USING ERRCODE = 'MT001';
            END IF;
            change_before := total.change;
            FOR request IN
                SELECT * FROM json_to_recordset(requests) AS one (
                    task_id text, version bigint, expected bigint, owner text, node text,
                    expires_at_ms bigint, payload_bytes bigint, record text, sealed text,
                    tasks bigint, tasks_per_principal bigint, task_bytes bigint
                )
            LOOP
                number := number + 1;
                reason := NULL;
                SELECT version, owner, payload_bytes INTO stored FROM tasks WHERE task_id = request.task_id;
                IF stored.version IS DISTINCT FROM request.expected THEN
                    refused := refused || number;
                    reasons := reasons || 'conflict'::text;
                    CONTINUE;
                END IF;
                IF coalesce(stored.owner, request.owner) IS DISTINCT FROM whose THEN
                    IF owned <> owned_before THEN
                        PERFORM note_owner(whose, owned);
                    END IF;
                    whose := coalesce(stored.owner, request.owner);
                    SELECT tasks INTO owned FROM owners WHERE owner = whose;
                    owned := coalesce(owned, 0);
                    owned_before := owned;
                END IF;
                IF request.version IS NULL THEN
                    DELETE FROM tasks WHERE task_id = request.task_id AND version = request.expected;
                    total.tasks := total.tasks - 1;
                    total.payload_bytes := total.payload_bytes - stored.payload_bytes;
                    total.change := total.change + 1;
                    owned := owned - 1;
                    INSERT INTO removals VALUES (total.change, my_writer, request.task_id);
                    removed := true;
                    wrote := true;
                    CONTINUE;
                END IF;
                more := CASE WHEN stored.version IS NULL THEN 1 ELSE 0 END;
                IF total.tasks + more > request.tasks THEN
                    reason := 'tasks';
                ELSIF owned + more > request.tasks_per_principal THEN
                    reason := 'tasks_per_principal';
                ELSIF total.payload_bytes - coalesce(stored.payload_bytes, 0) + request.payload_bytes
                        > request.task_bytes THEN
                    reason := 'task_bytes';
                END IF;
                IF reason IS NOT NULL THEN
                    refused := refused || number;
                    reasons := reasons || reason;
                    CONTINUE;
                END IF;
                IF more = 1 THEN
                    INSERT INTO tasks VALUES (
                        request.task_id, request.version, request.owner, request.node, request.expires_at_ms,
                        request.payload_bytes, NULL, my_writer, request.record,
                        decode(request.sealed, 'base64')
                    );
                ELSE
                    total.change := total.change + 1;
                    UPDATE tasks SET
                        version = request.version, node = request.node,
                        expires_at_ms = request.expires_at_ms, payload_bytes = request.payload_bytes,
                        change = total.change, writer = my_writer, record = request.record,
                        sealed = decode(request.sealed, 'base64')
                    WHERE task_id = request.task_id AND version = request.expected;
                END IF;
                total.tasks := total.tasks + more;
                owned := owned + more;
                total.payload_bytes :=
                    total.payload_bytes - coalesce(stored.payload_bytes, 0) + request.payload_bytes;
                wrote := true;
            END LOOP;
            IF NOT wrote THEN
                RETURN;
            END IF;
            IF owned <> owned_before THEN
                PERFORM note_owner(whose, owned);
            END IF;
            UPDATE totals SET
                tasks = total.tasks, payload_bytes = total.payload_bytes, change = total.change;
            IF removed THEN
                DELETE FROM removals WHERE change <= total.change - removals_kept;
            END IF;
            UPDATE nodes SET
                writes = writes + 1, refused = write_tasks.refused, reasons = write_tasks.reasons
            WHERE writer = my_writer AND session = my_session AND lease_until > clock_timestamp();
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the lease ran out' USING ERRCODE = 'MT002';
            END IF;
            IF total.change > change_before THEN
                PERFORM pg_notify(current_schema()::text, total.change::text);
            END IF;
        END
        $$
        """,
    ],
]
"""How the schema came about: step ``n`` takes it from version ``n`` to ``n + 1``. None is ever edited."""

CLOCK: Final = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
CLOCK_DIFFERENCE_MS: Final = 60_000
"""How far the clock of a node may be from the server's: so much earlier may others' tasks seem to expire."""

LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
HAS_VERSION: Final = "SELECT to_regclass('schema_version') IS NOT NULL"
HAS_TABLES: Final = (
    "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(%s)))"
)
MAY_LOOK: Final = "SELECT has_schema_privilege(to_regnamespace(quote_ident(%s)), 'USAGE')"
RIGHTS: Final = (
    "The first start takes CREATE on the database, or on the schema; after that USAGE on the schema, and "
    "SELECT, INSERT, UPDATE and DELETE on its tables, are enough."
)
VERSION: Final = "SELECT version FROM schema_version"
SEAL: Final = "SELECT sealed FROM seals WHERE place = %s"
KEEP_SEAL: Final = """
    INSERT INTO seals VALUES (%s, %s) ON CONFLICT (place) DO UPDATE SET sealed = excluded.sealed
"""


def prepare(place: Place) -> None:
    """Make the schema one of this version: a new one, or one brought forward.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError` for one of a later version or of another program,
    and where the database cannot be used.
    """
    try:
        with place.connect() as connection:
            place.set_up(connection)
            _check_server(connection, place)
            _check_clock(connection, place)
            with connection.transaction():
                _migrate(connection, place)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(f"{place} cannot be used: {what_is_wrong(error)}. {RIGHTS}") from None
    except psycopg.Error as error:
        raise StoreError(f"{place} cannot be used: {what_is_wrong(error)}") from None


def check_keys(place: Place, rows: Rows) -> None:
    """See to it that the keys are those of this store, or become so if it has none yet.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError`, or :class:`psycopg.Error`.
    """
    with place.connect() as connection:
        place.set_up(connection)
        found = connection.execute(SEAL, (KEY_CHECK,)).fetchone()
        sealed = rows.check_keys(found[0] if found else None, str(place))
        if sealed is not None:
            connection.execute(KEEP_SEAL, (KEY_CHECK, sealed))


def owner_column(owner: str) -> str:
    """Return what stands for an owner in the schema: of one that is too long for an index, a digest."""
    if len(owner) <= OWNER_CHARACTERS:
        return owner
    return "#" + sha256(owner.encode(errors="surrogatepass")).hexdigest()


def _check_server(connection: psycopg.Connection, place: Place) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if connection.info.server_version < OLDEST_SERVER:
        raise StoreError(f"{place} cannot be used: it takes PostgreSQL {OLDEST_SERVER // 10_000} or newer.")
    if encoding != "UTF8":
        raise StoreError(f"{place} cannot be used: its encoding is {encoding}, and must be UTF8.")


def _check_clock(connection: psycopg.Connection, place: Place) -> None:
    """Refuse to be a node that would take tasks of the others for expired, or never its own (TTL.1)."""
    asked_ms = unix_ms()
    server_ms: int = _one(connection, CLOCK)
    ahead_ms = asked_ms - server_ms if asked_ms > server_ms else min(0, unix_ms() - server_ms)
    if abs(ahead_ms) > CLOCK_DIFFERENCE_MS:
        where = "ahead of" if ahead_ms > 0 else "behind"
        raise StoreError(
            f"{place} cannot be used: the clock of this machine is {abs(ahead_ms) // 1000} seconds {where} "
            "that of the database, and tasks of other processes would expire too early or too late. Set it."
        )


def _version(connection: psycopg.Connection, place: Place) -> int:
    """Return the version of the schema, 0: there is none yet. Raises :class:`StoreError`."""
    if not _one(connection, HAS_VERSION):
        if _one(connection, HAS_TABLES, place.schema):
            if not _one(connection, MAY_LOOK, place.schema):
                raise StoreError(f"{place} cannot be used: no USAGE on the schema {place.schema}. {RIGHTS}")
            raise StoreError(f"The schema {place.schema} of {place} is that of another program.")
        return 0
    version: int = _one(connection, VERSION)
    if version > len(STEPS):
        raise StoreError(
            f"{place} was written by a later version of this package: its schema is {version}, "
            f"and this version knows those up to {len(STEPS)}."
        )
    return version


def _migrate(connection: psycopg.Connection, place: Place) -> None:
    """Take the steps that are still to be taken; they are taken all or none."""
    connection.execute("SET LOCAL statement_timeout = 0")
    # What is there is only looked at under the lock: another process may be making it at the moment.
    connection.execute(LOCK, (place.schema,))
    version = _version(connection, place)
    if version == len(STEPS):
        return
    if version == 0:
        _make(connection, place)
    for statement in [one for step in STEPS[version:] for one in step]:
        connection.execute(statement.encode())
    connection.execute("UPDATE schema_version SET version = %s", (len(STEPS),))


def _make(connection: psycopg.Connection, place: Place) -> None:
    """Make the schema, unless somebody with the right to do so has made it already."""
    if _one(connection, "SELECT to_regnamespace(quote_ident(%s)) IS NULL", place.schema):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(place.schema)))
    connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
    connection.execute("INSERT INTO schema_version VALUES (0)")


def _one(connection: psycopg.Connection, query: str, *values: object) -> Any:
    found = connection.execute(query.encode(), values).fetchone()
    return None if found is None else found[0]
