"""The schema of a PostgreSQL store: whose it is, which version it has, what is in it, who may use it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_adapters.stores.postgres import schema as schema_module
from mcp_tasks_adapters.stores.postgres.place import Place
from mcp_tasks_adapters.stores.postgres.schema import prepare
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.storing import StoreError

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.inputs import LoadFailed, Saved, SaveFailed, WorkLost
from mcp_tasks_proto.testing.store_suite import STORE_CHECKS, Ask, Check
from tests.adapters.driver_harness import logged
from tests.adapters.postgres_server import PostgresServer, Schema
from tests.adapters.store_harness import NOW, opened, record

OLD, NEW = (bytes([number]) * 32 for number in (1, 2))
AT_ONCE = 6
SECRET = "the code word is heron"


@pytest.fixture
def schema(postgres: PostgresServer) -> Schema:
    return postgres.new_schema()


def refusal(schema: Schema) -> str:
    """Try to open it; return why that is refused."""
    with pytest.raises(StoreError) as refused, opened(schema.store()):
        pass
    return str(refused.value)


@pytest.mark.parametrize(("hours", "words"), [(1, "seconds ahead of"), (-1, "seconds behind")])
def test_ttl1_a_node_whose_clock_is_wrong_is_refused(
    schema: Schema, monkeypatch: pytest.MonkeyPatch, hours: int, words: str
) -> None:
    monkeypatch.setattr(schema_module, "unix_ms", lambda: unix_ms() + hours * 3_600_000)
    assert words in refusal(schema)


# -- whose schema, and which version ---------------------------------------------------------------------


def test_a_later_schema_is_refused_and_left_alone(schema: Schema) -> None:
    with opened(schema.store()) as bench:
        bench.saved(record())
    schema.run("UPDATE schema_version SET version = 999", "DROP TABLE seals")
    assert "later version" in refusal(schema)
    assert "999" in refusal(schema)
    assert schema.run("SELECT task_id FROM tasks") == [("a",)]


def test_the_schema_of_another_program_is_refused_and_left_alone(schema: Schema) -> None:
    schema.run(f"CREATE SCHEMA {schema.name}", "CREATE TABLE diary (day date)")
    assert "another program" in refusal(schema)
    assert schema.run("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace") == [
        ("diary",)
    ]


def test_servers_that_start_at_once_make_it_together(postgres: PostgresServer) -> None:
    """None takes what another is just making for that of another program."""
    for schema in [postgres.new_schema() for _ in range(10)]:
        place, together = Place.parse(schema.dsn, schema.name, timeout_s=30.0), Barrier(AT_ONCE)

        def start(place: Place = place, together: Barrier = together) -> None:
            together.wait()
            prepare(place)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for started in [pool.submit(start) for _ in range(AT_ONCE)]:
                started.result()


def test_a_name_that_has_to_be_quoted_is_the_one_that_is_meant(schema: Schema) -> None:
    odd = Schema(schema.dsn, f'{schema.name} "Zoë"; \'$$ %s')
    with opened(odd.store()) as here, opened(odd.store()) as there:
        there.watch()
        here.saved(record())
        here.saved(record(version=2), 1)
        there.until(lambda: bool(there.heard))
    with opened(odd.store()) as bench:
        assert bench.load() == record(version=2)
    assert odd.run("SELECT task_id FROM tasks") == [("a",)]


@pytest.mark.parametrize("name", ["", "x" * 64, "x\0"])
def test_a_name_that_no_schema_has_is_refused(schema: Schema, name: str) -> None:
    with pytest.raises(StoreError, match="name of 1 to 63 bytes"):
        Schema(schema.dsn, name).store()


def test_a_database_that_holds_no_unicode_is_refused(postgres: PostgresServer) -> None:
    Schema(postgres.dsn(), "public").run(
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    )
    assert "LATIN1" in refusal(Schema(postgres.dsn("latin"), "tasks"))


def test_a_database_that_is_not_there_is_said_so(postgres: PostgresServer) -> None:
    assert '"nothing" does not exist' in refusal(Schema(postgres.dsn("nothing"), "tasks"))


def test_several_may_begin_at_the_same_time(schema: Schema) -> None:
    """Each makes the schema if it is the first, and waits for who is."""
    stores = [schema.store() for _ in range(5)]
    with opened(stores[0]) as one, opened(stores[1]), opened(stores[2]), opened(stores[3]):
        one.saved(record())
    assert schema.run("SELECT version FROM schema_version") == [(len(schema_module.STEPS),)]


def test_an_older_schema_is_brought_forward_with_its_records(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(schema.store()) as bench:
        bench.saved(record())
    later = [
        *schema_module.STEPS,
        ["ALTER TABLE nodes ADD COLUMN note text", "UPDATE totals SET change = 41"],
    ]
    with monkeypatch.context() as patched:
        patched.setattr(schema_module, "STEPS", later)
        with opened(schema.store()) as bench:
            assert bench.load() == record()
    assert schema.run("SELECT version FROM schema_version") == [(len(later),)]
    assert schema.run("SELECT change, (SELECT count(note) FROM nodes) FROM totals") == [(41, 0)]
    assert "later version" in refusal(schema)


def test_a_step_that_fails_leaves_the_schema_as_it_was(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(schema.store()) as bench:
        bench.saved(record())
    with monkeypatch.context() as patched:
        failing = [*schema_module.STEPS, ["CREATE TABLE half (done text)", "SELECT * FROM nothing"]]
        patched.setattr(schema_module, "STEPS", failing)
        assert "UndefinedTable" in refusal(schema)
    assert schema.run("SELECT to_regclass('half')") == [(None,)]
    with opened(schema.store()) as bench:
        assert bench.load() == record()


def test_a_node_whose_schema_was_migrated_by_a_later_version_writes_no_more(schema: Schema) -> None:
    with opened(schema.store()) as bench, logged() as lines:
        bench.saved(record())
        schema.run("UPDATE schema_version SET version = 999")
        assert bench.save(record("b")) == SaveFailed("save")
        assert bench.load("a") == record()
    assert [line for line in lines if "later version" in line]


def test_a_role_that_may_make_nothing_may_use_what_is_there(postgres: PostgresServer, schema: Schema) -> None:
    with opened(schema.store()):
        pass
    schema.run(
        "CREATE ROLE clerk LOGIN",
        f"GRANT USAGE ON SCHEMA {schema.name} TO clerk",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema.name} TO clerk",
    )
    clerk = Schema(f"{schema.dsn} user=clerk", schema.name)
    with opened(clerk.store()) as bench:
        bench.saved(record())
        assert bench.load() == record()
        assert bench.delete("a", 1) == Saved("delete")
    elsewhere = refusal(Schema(clerk.dsn, "elsewhere"))
    assert "permission denied for database" in elsewhere
    assert "The first start takes CREATE on the database" in elsewhere
    schema.run(f"REVOKE USAGE ON SCHEMA {schema.name} FROM clerk")
    assert f"no USAGE on the schema {schema.name}" in refusal(clerk)


# -- the server's settings -------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [("off", "on"), ("local", "local"), ("on", "on")])
def test_every_commit_is_synced_to_disk(schema: Schema, before: str, after: str) -> None:
    """Rule 1. What the server makes of it no test can see without pulling the plug."""
    with opened(schema.store(f"{schema.dsn} options='-c synchronous_commit={before}'")) as bench:
        link = bench.store._session._links[0]
        assert link.run("SHOW synchronous_commit") == [(after,)]


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_its_promises_whatever_the_servers_settings(schema: Schema, check: Check[Ask]) -> None:
    options = "-c default_transaction_isolation=serializable -c datestyle=German -c search_path=nowhere"
    with opened(schema.store(f"{schema.dsn} options='{options}'")) as bench:
        check(bench.ask)


def test_no_request_reads_all_tasks(schema: Schema) -> None:
    """Rule 8: not even while the server believes that there are few."""
    with opened(schema.store()) as here, opened(schema.store()) as there:
        for number in range(10):
            here.saved(record(f"first-{number}", node=here.store.node))
        schema.run(
            "ANALYZE",
            """
            INSERT INTO tasks SELECT 'more-' || number, 1, '', CASE number % 3 WHEN 0 THEN 'elsewhere' END,
                number, 0, number, 0, '{}', NULL FROM generate_series(1, 30000) AS number
            """,
            "UPDATE totals SET tasks = tasks + 30000, change = 30000",
        )
        there.watch(lambda task_id: not task_id.startswith("more"))
        for number in range(20):
            here.saved(record(f"second-{number}"))
            here.saved(record(f"second-{number}", version=2), 1)
            assert there.load(f"second-{number}") == record(f"second-{number}", version=2)
            assert len(there.find(NOW, 10)[0]) == 10
            here.delete(f"second-{number}", 2)
        there.until(lambda: len(there.heard) >= 20)
        here.close()
        there.heard.clear()
        there.until(lambda: any(isinstance(news, WorkLost) for news in there.heard))
    gone = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mcp-tasks'"
    there.until(lambda: schema.run(gone) == [(0,)])
    read = "SELECT coalesce(sum(seq_tup_read), 0)::int FROM pg_stat_user_tables WHERE relname = 'tasks'"
    assert schema.run(f"{read} AND schemaname = current_schema()") == [(0,)]


# -- trouble ---------------------------------------------------------------------------------------------


def test_a_broken_record_fails_what_needs_it_and_can_be_swept(schema: Schema) -> None:
    """Rule 6: what cannot be read any more can at least be removed."""
    with opened(schema.store()) as bench, logged() as lines:
        bench.saved(record("a"))
        bench.saved(record("b"))
        schema.run("UPDATE tasks SET record = '{\"secret\": ' WHERE task_id = 'a'")
        assert bench.ask([Load("a", 1)]) == [LoadFailed(1)]
        assert bench.ask([Save(record("a"), None, 1), Delete("a", 7, 2)]) == [SaveFailed(1), SaveFailed(2)]
        assert bench.load("b") == record("b")
        assert bench.ask([FindExpired(2**70, 1, 1)]) != [LoadFailed(1)]
        assert bench.find(NOW + 1000) == (["a", "b"], None)
        assert bench.delete("a", 1) == Saved("delete")
        assert bench.find(NOW + 1000) == (["b"], None)
    assert lines
    assert "secret" not in "".join(lines), "SEC.2"


def test_sec2_what_the_server_quotes_is_not_logged(schema: Schema) -> None:
    with opened(schema.store()) as bench, logged() as lines:
        schema.run("ALTER TABLE tasks ADD CHECK (record NOT LIKE '%heron%')")
        assert bench.save(record("id-of-a-task", arguments={"a": SECRET})) == SaveFailed("save")
        bench.saved(record("b"))
    assert lines
    assert not [line for line in lines if "heron" in line or "id-of-a-task" in line]


def test_a_table_that_is_gone_for_a_while_fails_requests_and_no_more(schema: Schema) -> None:
    with opened(schema.store()) as bench, logged():
        bench.saved(record())
        schema.run("ALTER TABLE tasks RENAME TO hidden")
        assert bench.ask([Load("a", 1), Save(record("b"), None, 2)]) == [LoadFailed(1), SaveFailed(2)]
        schema.run("ALTER TABLE hidden RENAME TO tasks")
        bench.saved(record("b"))
        assert bench.load() == record()


# -- sealed records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_its_promises_sealed(schema: Schema, check: Check[Ask]) -> None:
    with opened(schema.store(keys=RecordKeys([NEW, OLD]))) as bench:
        check(bench.ask)


@pytest.mark.parametrize("keys", [(), (NEW,)])
def test_sec2_nothing_of_a_record_is_in_the_database(schema: Schema, keys: Sequence[bytes]) -> None:
    with opened(schema.store(keys=RecordKeys(keys) if keys else None)) as bench:
        bench.saved(record(arguments={"a": SECRET}))
        bench.saved(record(arguments=None, result={"b": SECRET}, version=2), 1)
    ((row,),) = schema.run("SELECT tasks::text || encode(coalesce(sealed, ''), 'escape') FROM tasks")
    assert (SECRET in row) == (not keys)


def test_all_keys_open_and_the_first_one_seals(schema: Schema) -> None:
    with opened(schema.store(keys=RecordKeys([OLD]))) as bench:
        bench.saved(record("stays"))
        bench.saved(record("changes"))
    with opened(schema.store(keys=RecordKeys([NEW, OLD]))) as bench:
        assert bench.load("stays") == record("stays")
        bench.saved(record("changes", version=2), 1)
    with opened(schema.store(keys=RecordKeys([NEW]))) as bench, logged():
        assert bench.load("changes") == record("changes", version=2)
        assert bench.ask([Load("stays", 1)]) == [LoadFailed(1)]
    assert "no keys" in refusal(schema)
    with pytest.raises(StoreError, match="not given"), opened(schema.store(keys=RecordKeys([OLD]))):
        pass
