"""What the PostgreSQL store has to see to beside what ``test_stores.py`` asks of every store."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest

from mcp_tasks_proto.effects import Delete, Save
from mcp_tasks_proto.inputs import RecordChanged, Saved, SaveFailed, WorkLost
from tests.adapters.driver_harness import logged
from tests.adapters.postgres_server import PostgresServer, Schema
from tests.adapters.store_harness import opened, record

KILL_KEEPERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE query LIKE '%SET lease_until%' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def schema(postgres: PostgresServer) -> Schema:
    return postgres.new_schema()


def test_what_the_server_has_no_words_for_fails_alone(schema: Schema) -> None:
    """Rule 3: what is saved at the same time does not suffer."""
    unfit = [record("zero", principal="\0"), record("zero\0"), record("surrogate \ud800")]
    with opened(schema.store()) as bench, logged():
        answers = bench.ask([Save(one, None, one.task_id) for one in (record("a"), *unfit, record("b"))])
        assert answers == [Saved("a"), *(SaveFailed(one.task_id) for one in unfit), Saved("b")]
        assert bench.load("b") == record("b")
        assert [bench.load(one.task_id) for one in unfit] == [None] * len(unfit)
        assert bench.ask([Delete("zero\0", 1, 1), Delete("b", 1, 2)])[1] == Saved(2)


def test_sec2_what_is_told_aloud_names_no_task(schema: Schema) -> None:
    """Whoever may connect to the database may listen."""
    with opened(schema.store()) as bench, schema.listening() as heard:
        bench.saved(record("a", arguments={"a": "secret"}))
        bench.saved(record("a", version=2), 1)
        bench.delete("a", 2)
        assert heard(2) == ["1", "2"]


def test_a_node_is_gone_when_its_lease_has_run_out_and_not_before(schema: Schema) -> None:
    """Rule 12."""
    with opened(schema.store()) as slow, opened(schema.store()) as gone, opened(schema.store()) as there:
        slow.saved(record("slow", node=slow.store.node))
        gone.saved(record("gone", node=gone.store.node))
        there.watch()
        gone.store._session._keeper.stop()
        there.until(lambda: len(there.heard) >= 5)
        assert set(there.heard) == {WorkLost("gone", gone.store.node)}
        with logged() as lines:
            for _ in range(5):
                assert gone.save(record("gone", version=2), 1) == SaveFailed("save"), "and writes no more"
        assert [line for line in lines if "ran out" in line] == lines[:1], "said once"
        assert there.load("gone") == record("gone", node=gone.store.node)


def test_a_node_listens_again_though_it_got_the_same_process_of_the_server(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 11: the numbers of processes come again, most of all where the server has been started anew."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 4711)
    with (
        opened(schema.store(lease_ms=600_000)) as here,
        opened(schema.store(lease_ms=600_000)) as there,
        logged(),
    ):
        there.watch()
        here.saved(record())
        here.saved(record(version=2), 1)
        there.until(lambda: RecordChanged(record(version=2)) in there.heard)
        schema.run(KILL_KEEPERS)
        there.until(lambda: there.store._session._keeper.link.number == 2)
        for changed in [record(version=version) for version in (3, 4, 5)]:
            here.saved(changed, changed.version - 1)
            there.until(partial(there.heard.__contains__, RecordChanged(changed)))
