"""What durability costs: each store against its bare database, and many tasks kept against few.

*Creations* are saves of new tasks by 32 clients on an asyncio loop, each of which makes its next when the
last is on disk. The other side is a bare loop of SQLite transactions on the same schema, with as many rows
in each as ours had on average; for PostgreSQL, of ``INSERT … RETURNING`` through the same driver, which sends
as many in one pipeline. Records here and rows there are made beforehand. *Get* is a ``tasks/get``
through driver, engine and store, one after another. *Sweep* is a driver that finds a file of expired tasks,
and is polled until they are gone.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, closing
from itertools import cycle
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import psycopg
from attrs import evolve
from mcp_tasks_adapters.asyncio_h11 import open_driver
from mcp_tasks_adapters.asyncio_h11.loop import AsyncioThread
from mcp_tasks_adapters.driver import Driver, RequestFacts
from mcp_tasks_adapters.stores import SqliteStore
from mcp_tasks_adapters.stores.rows import Rows
from mcp_tasks_adapters.stores.sqlite.schema import connect, prepare
from mcp_tasks_adapters.storing import Store
from mcp_tasks_adapters.toolkit import Limits, Server

from bench.harness import Comparison, Figure, Options, alternate, main
from bench.messages import TOOL, get_body
from mcp_tasks_proto.effects import Quota, Save
from mcp_tasks_proto.inputs import Saved, StoreInput
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.wire.jsonrpc import decode, encode
from tests.adapters.postgres_server import PostgresServer, Schema, find_binaries

__all__ = ["measure"]

CLIENTS: Final = 32
CREATE_TARGET: Final = 0.5
ROWS_A_SECOND: Final = 80_000
"""How many records either side has ready for each second; it must not run out of them."""

FEW, MANY = 1_000, 1_000_000
GROWTH_TARGET: Final = 1.15
STALL_TARGET_MS: Final = 250.0
"""The longest that a request may wait while expired tasks are removed."""

WARM_UP_SECONDS: Final = 0.5
POLL_PAUSE_SECONDS: Final = 0.01

PLENTY: Final = 10**12
DAY_MS: Final = 86_400_000


def measure(options: Options) -> Sequence[Figure]:
    """Return what durable creations reach, how the cost of a get grows, and how long a sweep holds one up."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            measure_creations(folder, options),
            *measure_postgres_creations(options),
            measure_growth(folder, options),
            *measure_sweep(folder, options),
        ]


# -- creations ----------------------------------------------------------------------------------------------


def measure_creations(folder: Path, options: Options) -> Figure:
    """Return how many tasks a second are made durably, by what bare SQLite does with the same grouping."""
    files = (folder / f"creations-{number}.db" for number in range(10**6))

    async def ours(seconds: float) -> Made:
        path = next(files)
        return await make_tasks(SqliteStore(path), seconds, lambda: sqlite_groups(path))

    return compare_creations(
        "SQLite", options, ours, lambda group: insert_rows(next(files), options.seconds, group)
    )


def measure_postgres_creations(options: Options) -> Sequence[Figure]:
    """Return the same for PostgreSQL, on a server of its own; nothing, and a word, where there is none."""
    binaries = find_binaries()
    if binaries is None:
        print("There are no server programs of PostgreSQL here: it is not measured.", file=sys.stderr)
        return []
    server = PostgresServer(binaries, {"fsync": "on"})
    try:
        server.start()
        schema = server.new_schema()

        async def ours(seconds: float) -> Made:
            store = schema.store(lease_ms=60_000)
            return await make_tasks(store, seconds, lambda: postgres_groups(schema))

        return [
            compare_creations(
                "PostgreSQL", options, ours, lambda group: insert_returning(schema, options.seconds, group)
            )
        ]
    finally:
        server.remove()


def compare_creations(
    database: str,
    options: Options,
    make: Callable[[float], Coroutine[Any, Any, Made]],
    bare: Callable[[int], float],
) -> Figure:
    """Return what creations reach of what the bare database does with groups of the same size."""
    groups = [asyncio.run(make(0.5)).group]

    def ours() -> float:
        made = asyncio.run(make(options.seconds))
        groups.append(made.group)
        return made.rate

    compared = alternate({"ours": ours, "bare": lambda: bare(round(groups[-1]))}, options.runs)
    rates = f"{compared.median('ours'):,.0f}/s / {compared.median('bare'):,.0f}/s"
    return Figure(
        benchmark="store",
        subject=f"durable creations, 32 clients / bare {database}",
        value=compared.ratio("ours", "bare"),
        unit="x",
        at_least=CREATE_TARGET,
        detail=f"{rates}, {sum(groups) / len(groups):.0f} a transaction",
    )


class Made:
    """Tasks made by clients, each of which waits for one before it makes the next."""

    def __init__(self, store: Store, records: list[TaskRecord], seconds: float) -> None:
        self._store = store
        self._start = time.perf_counter()
        self._end = self._start + seconds
        self._busy = CLIENTS
        self._records = records
        self._made = 0
        self._quota = Quota(tasks=PLENTY, tasks_per_principal=PLENTY, task_bytes=PLENTY)
        self.over = asyncio.Event()
        self.rate = 0.0
        self.group = 0.0
        """Tasks in a transaction, on average."""

    def make(self) -> None:
        """Make a task, unless time is up."""
        if time.perf_counter() < self._end:
            self._store.submit(Save(self._records.pop(), None, 0, self._quota), self._answered)
            return
        self._busy -= 1
        if not self._busy:
            self.rate = self._made / (time.perf_counter() - self._start)
            self.over.set()

    def count(self, transactions: int) -> None:
        """Note how many transactions it took."""
        self.group = self._made / transactions

    def _answered(self, answer: StoreInput) -> None:
        if not isinstance(answer, Saved):
            raise RuntimeError(f"not saved: {answer}")
        self._made += 1
        self.make()


async def make_tasks(store: Store, seconds: float, groups: Callable[[], int]) -> Made:
    """Let the clients make tasks for a while; ``groups`` tells how many transactions it took."""
    await store.open(AsyncioThread())
    made = Made(store, new_records(seconds), seconds)
    for _ in range(CLIENTS):
        made.make()
    await made.over.wait()
    made.count(groups())
    await store.close()
    return made


def sqlite_groups(path: Path) -> int:
    """Return how many transactions the only node over a file made."""
    with closing(sqlite3.connect(path)) as connection:
        groups: int = connection.execute("SELECT writes FROM nodes").fetchone()[0]
    return groups


def postgres_groups(schema: Schema) -> int:
    """Return how many statements the only node over a schema made."""
    groups: int = schema.run("SELECT writes FROM nodes")[0][0]
    return groups


def insert_rows(path: Path, seconds: float, group: int) -> float:
    """Return how many ready rows a second go into the same table, so many a transaction."""
    prepare(path)
    rows = [(*Rows(None).row(record), 1) for record in new_records(seconds)]
    done, start = 0, time.perf_counter()
    with closing(connect(path)) as connection:
        while time.perf_counter() < start + seconds and done + group <= len(rows):
            connection.execute("BEGIN IMMEDIATE")
            for row in rows[done : done + group]:
                connection.execute(INSERT, row)
            connection.execute("COMMIT")
            done += group
        return done / (time.perf_counter() - start)


INSERT: Final = """
    INSERT INTO tasks (task_id, version, owner, node, expires_at_ms, payload_bytes, record, writer)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


def insert_returning(schema: Schema, seconds: float, group: int) -> float:
    """Return how many ready rows a second go into the same table, so many a transaction and pipeline."""
    schema.run("TRUNCATE tasks")
    rows = [(*Rows(None).row(record), 1) for record in new_records(seconds / 4)]
    done, start = 0, time.perf_counter()
    with psycopg.connect(schema.dsn, options=f"-c search_path={schema.name}") as connection:
        cursor = connection.cursor()
        while time.perf_counter() < start + seconds and done + group <= len(rows):
            cursor.executemany(INSERT_RETURNING, rows[done : done + group], returning=True)
            connection.commit()
            done += group
        return done / (time.perf_counter() - start)


INSERT_RETURNING: Final = """
    INSERT INTO tasks (task_id, version, owner, node, expires_at_ms, payload_bytes, record, writer)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING version
"""


def new_records(seconds: float) -> list[TaskRecord]:
    """Return as many tasks as can be made in that time, and more."""
    return [new_record(token_urlsafe(24)) for _ in range(int(seconds * ROWS_A_SECOND))]


def new_record(task_id: str) -> TaskRecord:
    """Return a task as ``tools/call`` makes it."""
    now = time.time_ns() // 1_000_000
    return TaskRecord(
        task_id=task_id,
        version=1,
        principal=None,
        tool=TOOL,
        arguments={},
        client_capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}},
        status=Status.WORKING,
        created_at_ms=now,
        last_updated_at_ms=now,
        ttl_ms=DAY_MS,
        poll_interval_ms=1000,
        payload_bytes=2,
    )


# -- many tasks kept ----------------------------------------------------------------------------------------


def fill(path: Path, tasks: int, *, expired: bool = False) -> None:
    """Put tasks that have completed into a file, faster than they could be made one by one."""
    template = evolve(
        new_record("?"),
        status=Status.COMPLETED,
        arguments=None,
        client_capabilities={},
        result={"content": [{"type": "text", "text": "hello"}]},
    )
    if expired:
        template = evolve(template, created_at_ms=template.created_at_ms - 2 * DAY_MS)
    row = Rows(None).row(template)
    prepare(path)
    with closing(connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            """
            WITH RECURSIVE made (number, task_id) AS (
                VALUES (1, lower(hex(randomblob(16))))
                UNION ALL SELECT number + 1, lower(hex(randomblob(16))) FROM made WHERE number < ?
            )
            INSERT INTO tasks (task_id, version, owner, expires_at_ms, payload_bytes, record, writer)
            SELECT task_id, 1, '', ?, ?, replace(?, '"?"', '"' || task_id || '"'), 1 FROM made
            """,
            (tasks, row.expires_at_ms, row.payload_bytes, row.record),
        )
        connection.execute("COMMIT")


def some_ids(path: Path, *, expired: bool = True) -> list[str]:
    """Return ids from all over the file, in no order that a cache would favour."""
    after = 0 if expired else time.time_ns() // 1_000_000
    with closing(connect(path)) as connection:
        sql = "SELECT task_id FROM tasks WHERE expires_at_ms > ? ORDER BY task_id"
        found = connection.execute(sql, (after,)).fetchall()
    task_ids = [task_id for (task_id,) in found[:: max(1, len(found) // FEW)]]
    random.Random(1).shuffle(task_ids)
    return task_ids


class Poller:
    """Polls tasks at a driver, one after another."""

    def __init__(self, driver: Driver, task_ids: Sequence[str]) -> None:
        self._driver = driver
        self._bodies = cycle([get_body(task_id) for task_id in task_ids])
        self._limits = Limits()
        self._replied: asyncio.Future[dict[str, Any]]

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[Any] = (),
        event_id: str | None = None,
    ) -> None:
        """Take the reply (``driver.Channel``)."""
        assert message is not None
        self._replied.set_result(message)

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """Take a notification; there is none."""

    def open(self) -> None:
        """Become a stream; nobody asks for one."""

    async def poll(self) -> bytes:
        """Poll the next task; return the reply as bytes."""
        self._replied = asyncio.get_running_loop().create_future()
        self._driver.receive(decode(next(self._bodies), self._limits), self, facts=FACTS, connection="bench")
        return encode(await self._replied)

    async def time(self, seconds: float) -> float:
        """Return the microseconds that one poll takes."""
        polls, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            for _ in range(50):
                reply = await self.poll()
            polls += 50
        if b'"completed"' not in reply:
            raise RuntimeError(f"not the reply to be measured: {reply!r}")
        return (time.perf_counter() - start) / polls * 1e6


FACTS: Final = RequestFacts(transport="http", headers={})


def bench_server() -> Server:
    """Return a server that keeps as many tasks as there are."""
    return Server("bench", version="1.0", limits=Limits(tasks=PLENTY, tasks_per_principal=PLENTY))


def measure_growth(folder: Path, options: Options) -> Figure:
    """Return how many times as long a get takes with many tasks kept as with few."""
    many = options.many(MANY)
    compared = asyncio.run(compare_gets(folder, options, many))
    return Figure(
        benchmark="store",
        subject=f"get with {many:,} tasks kept / with {FEW:,}",
        value=compared.ratio("many", "few"),
        unit="x",
        at_most=GROWTH_TARGET,
        detail=f"{compared.median('many'):.0f} µs / {compared.median('few'):.0f} µs",
    )


async def compare_gets(folder: Path, options: Options, many: int) -> Comparison:
    """Time gets on both files in turn."""
    values: dict[str, list[float]] = {"few": [], "many": []}
    async with AsyncExitStack() as stack:
        pollers = {}
        for side, tasks in (("few", FEW), ("many", many)):
            path = folder / f"{side}.db"
            fill(path, tasks)
            driver = await stack.enter_async_context(open_driver(bench_server(), SqliteStore(path)))
            pollers[side] = Poller(driver, some_ids(path))
            await pollers[side].time(WARM_UP_SECONDS)
        for turn in range(options.runs):
            for side in pollers if turn % 2 == 0 else reversed(pollers):
                values[side].append(await pollers[side].time(options.seconds))
    return Comparison(values)


# -- many tasks that have expired ---------------------------------------------------------------------------


def measure_sweep(folder: Path, options: Options) -> Sequence[Figure]:
    """Return how long requests wait at most while a million expired tasks are removed."""
    many = options.many(MANY)
    path = folder / "swept.db"
    fill(path, many, expired=True)
    fill(path, FEW)
    longest, seconds = asyncio.run(poll_while_sweeping(path))
    return [
        Figure(
            benchmark="store",
            subject=f"longest get while {many:,} expired tasks are removed",
            value=longest * 1e3,
            unit="ms",
            at_most=STALL_TARGET_MS,
            detail=f"{seconds:.0f} s, {many / seconds:,.0f} tasks/s",
        )
    ]


async def poll_while_sweeping(path: Path) -> tuple[float, float]:
    """Poll until only what has not expired is left; return the longest poll and all of it, in seconds."""
    task_ids = some_ids(path, expired=False)
    longest, start = 0.0, time.perf_counter()
    async with open_driver(bench_server(), SqliteStore(path)) as driver:
        poller = Poller(driver, task_ids)
        with closing(connect(path)) as connection:
            while connection.execute("SELECT tasks FROM totals").fetchone()[0] > FEW:
                for _ in range(10):
                    before = time.perf_counter()
                    await poller.poll()
                    longest = max(longest, time.perf_counter() - before)
                await asyncio.sleep(POLL_PAUSE_SECONDS)
    return longest, time.perf_counter() - start


if __name__ == "__main__":
    main(measure, __doc__ or "", seconds=1.0)
