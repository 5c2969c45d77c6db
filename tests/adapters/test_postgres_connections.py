"""Connections that are lost, stuck or never had, and what is answered meanwhile: rules 3, 9 and 12."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic

import pytest
from attrs import evolve
from mcp_tasks_adapters.storing import StoreEffect, StoreError

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.inputs import (
    Loaded,
    LoadFailed,
    RecordChanged,
    RecordRemoved,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    StoreInput,
    WorkLost,
)
from tests.adapters.driver_harness import logged
from tests.adapters.postgres_proxy import Proxy, proxy
from tests.adapters.postgres_server import PostgresServer, Schema
from tests.adapters.store_harness import NOW, PATIENCE_S, ROOMY, Bench, opened, record

KILL_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mcp-tasks'"


@pytest.fixture
def schema(postgres: PostgresServer) -> Schema:
    return postgres.new_schema()


@pytest.fixture
def way(postgres: PostgresServer) -> Iterator[Proxy]:
    with proxy(postgres.folder) as way:
        yield way


@pytest.fixture
def far(postgres: PostgresServer, schema: Schema, way: Proxy) -> Iterator[Bench]:
    """A store whose way to the server makes trouble when it is told to."""
    with opened(schema.store(postgres.dsn(host=way.folder), lease_ms=60_000)) as far, logged():
        yield far


@pytest.fixture
def near(schema: Schema) -> Iterator[Bench]:
    """Another node over the same tasks, which has none."""
    with opened(schema.store(lease_ms=60_000)) as near:
        yield near


def _more_than(answers: Sequence[StoreInput], count: int) -> bool:
    return len(answers) > count


def eventually(bench: Bench, effect: Save | Load, right: Callable[[StoreInput], bool]) -> StoreInput:
    """Ask again and again, as a caller does whose request failed."""
    patience = monotonic() + PATIENCE_S
    while not right(answer := bench.ask([effect])[0]):
        assert monotonic() < patience, answer
    return answer


# -- connections that are lost -------------------------------------------------------------------------------


def test_connections_that_are_lost_between_requests_are_not_noticed(schema: Schema) -> None:
    with opened(schema.store()) as bench, logged():
        bench.saved(record())
        for version in range(2, 12):
            schema.run(KILL_ALL)
            assert bench.load() == record(version=version - 1)
            assert bench.find(NOW + 1000) == (["a"], None)
            bench.saved(record(version=version), version - 1)


def test_connections_that_are_lost_all_the_time_lose_nothing(schema: Schema) -> None:
    """Rules 1 and 3: what is answered is so, whatever the connections go through."""
    with opened(schema.store(lease_ms=60_000)) as bench, logged():
        answers: list[StoreInput] = []
        for number in range(2000):
            bench.store.submit(Save(record(str(number)), None, number), answers.append)
            if number % 100 == 0:
                bench.until(partial(_more_than, answers, number - 90))
                schema.run(KILL_ALL)
        bench.until(lambda: len(answers) == 2000)
        saved = {answer.token for answer in answers if isinstance(answer, Saved)}
        assert {type(answer) for answer in answers} <= {Saved, SaveFailed}
        assert len(saved) > 1000
        ids = {task_id for (task_id,) in schema.run("SELECT task_id FROM tasks")}
        assert ids == {str(number) for number in saved}


def test_a_server_that_is_away_fails_requests_at_once_and_is_found_again(
    own_postgres: PostgresServer,
) -> None:
    schema = own_postgres.new_schema()
    with opened(schema.store()) as bench, logged() as lines:
        bench.saved(record())
        own_postgres.stop()
        asked: Sequence[StoreEffect]
        asked = [Save(record("b"), None, 1), Load("a", 2), FindExpired(NOW, 1, 3), Delete("a", 1, 4)]
        for number in range(30):
            assert bench.ask(asked) == [SaveFailed(1), LoadFailed(2), LoadFailed(3), SaveFailed(4)], number
        assert 0 < len(lines) < 30, "said once by each, until it changes"
        assert not [line for line in lines if "secret" in line]
        own_postgres.start()
        eventually(bench, Load("a", 1), lambda answer: answer == Loaded(1, record()))
        eventually(bench, Save(record("b"), None, 1), lambda answer: answer == Saved(1))


def test_nobody_is_taken_for_gone_because_the_server_was_away(own_postgres: PostgresServer) -> None:
    """Rule 12: who comes back later than the others has as much time to do so as a lease."""
    schema = own_postgres.new_schema()
    with opened(schema.store()) as here, opened(schema.store()) as there, logged():
        here.saved(record(node=here.store.node))
        there.watch()
        own_postgres.stop(crash=True)
        own_postgres.start()
        schema.run("UPDATE nodes SET lease_until = lease_until - interval '1 hour'")
        eventually(there, Load("a", 1), lambda answer: isinstance(answer, Loaded))
        eventually(
            here, Save(record(version=2, node=here.store.node), 1, 1), lambda answer: answer == Saved(1)
        )
        there.until(lambda: RecordChanged(record(version=2, node=here.store.node)) in there.heard)
        assert not [news for news in there.heard if isinstance(news, WorkLost)]


def test_news_that_came_while_nobody_could_listen_are_made_up_for(
    way: Proxy, far: Bench, near: Bench
) -> None:
    """Rule 11."""
    for task_id in ("changes", "goes"):
        near.saved(record(task_id))
    far.watch()
    way.refusing.set()
    way.cut()
    near.saved(record("changes", version=2), 1)
    near.saved(record("changes", version=3), 2)
    near.delete("goes", 1)
    assert far.ask([Load("changes", 1)]) == [LoadFailed(1)]
    way.refusing.clear()
    far.until(lambda: len(far.heard) >= 2)
    assert set(map(str, far.heard)) >= {
        str(RecordChanged(record("changes", version=3))),
        str(RecordRemoved("goes")),
    }


# -- a write of which nobody knows what came (rule 3) --------------------------------------------------------


GROUP: Sequence[StoreEffect] = [
    Save(record("new"), None, "saved", ROOMY),
    Save(record("old"), None, "conflict", ROOMY),
    Save(record("more"), None, "refused", evolve(ROOMY, tasks=1)),
    Delete("old", 1, "removed"),
]


def test_what_went_through_is_answered_as_it_would_have_been(way: Proxy, far: Bench, near: Bench) -> None:
    """The answer is lost, and what it said is not: each request of the group hears what came of it."""
    far.saved(record("old"))
    way.mute.set()
    answers = far.start(GROUP)
    eventually(near, Load("new", 1), lambda answer: answer == Loaded(1, record("new")))
    assert answers == []
    way.mute.clear()
    way.cut()
    far.until(lambda: len(answers) == 4)
    assert answers == [
        Saved("saved"),
        SaveConflict("conflict", None),
        SaveRefused("refused", "tasks"),
        Saved("removed"),
    ]
    assert near.load("old") is None
    assert near.load("more") is None


def test_what_never_arrived_is_done_once(way: Proxy, far: Bench, near: Bench) -> None:
    far.saved(record("old"))
    way.deaf.set()
    answers = far.start([Save(record("old", version=2), 1, 1), Save(record("new"), None, 2)])
    assert near.load("new") is None
    way.deaf.clear()
    way.cut()
    far.until(lambda: len(answers) == 2)
    assert answers == [Saved(1), Saved(2)]
    assert near.load("old") == record("old", version=2)


def test_as_long_as_that_cannot_be_found_out_nobody_is_told_and_others_fail_at_once(
    way: Proxy, far: Bench, near: Bench
) -> None:
    far.saved(record("before"))
    way.mute.set()
    answers = far.start([Save(record("a"), None, "in doubt")])
    eventually(near, Load("a", 1), lambda answer: answer == Loaded(1, record("a")))
    way.refusing.set()
    way.cut()
    for _ in range(20):
        assert far.ask([Save(record("b"), None, 1)]) == [SaveFailed(1)]
    assert answers == []
    way.mute.clear()
    way.refusing.clear()
    far.until(lambda: bool(answers))
    assert answers == [Saved("in doubt")]
    eventually(far, Save(record("b"), None, 1), lambda answer: answer == Saved(1))


def test_what_a_lost_connection_is_still_doing_comes_to_nothing(
    schema: Schema, way: Proxy, far: Bench, near: Bench
) -> None:
    """It waits for a lock on the server, and must not write when nobody is there any more to be told."""
    far.saved(record("a"))
    with schema.locked() as pids_waiting:
        answers = far.start([Save(record("a", version=2, status_message="once"), 1, 1)])
        far.until(lambda: pids_waiting() == 1)
        way.cut()
        far.until(lambda: pids_waiting() == 2)
    far.until(lambda: bool(answers))
    assert answers == [Saved(1)]
    assert near.load("a") == record("a", version=2, status_message="once")
    assert schema.run("SELECT change FROM totals") == [(1,)], "it was written once"


def test_it_closes_without_waiting_for_what_cannot_be_found_out(way: Proxy, far: Bench, near: Bench) -> None:
    far.saved(record("before"))
    way.mute.set()
    answers = far.start([Save(record("a"), None, "in doubt")])
    eventually(near, Load("a", 1), lambda answer: answer == Loaded(1, record("a")))
    way.refusing.set()
    way.cut()
    far.close()
    assert answers == []


# -- a server that says nothing ------------------------------------------------------------------------------


def test_a_server_that_says_nothing_fails_requests_in_the_end(
    postgres: PostgresServer, schema: Schema, way: Proxy
) -> None:
    with opened(schema.store(postgres.dsn(host=way.folder), timeout_ms=300)) as bench, logged():
        bench.saved(record())
        way.mute.set()
        way.deaf.set()
        answers = bench.start([Save(record("b"), None, 1), Load("a", 2)])
        bench.until(lambda: LoadFailed(2) in answers)
        way.cut()
        way.mute.clear()
        way.deaf.clear()
        bench.until(lambda: Saved(1) in answers)
        eventually(bench, Load("a", 1), lambda answer: answer == Loaded(1, record()))


def test_a_lock_that_nobody_gives_back_fails_writes_and_no_reads(schema: Schema) -> None:
    with opened(schema.store(timeout_ms=300, lease_ms=60_000)) as bench, logged():
        bench.saved(record())
        with schema.locked():
            asked = [Save(record(str(number)), None, number) for number in range(20)]
            assert bench.ask(asked) == [SaveFailed(number) for number in range(20)]
            assert bench.load() == record()
        assert bench.ask(asked) == [Saved(number) for number in range(20)]


# -- leases (rule 12) ----------------------------------------------------------------------------------------


def test_a_node_that_lost_its_lease_writes_again_when_it_has_noticed(schema: Schema) -> None:
    with opened(schema.store()) as bench, logged() as lines:
        bench.saved(record(node=bench.store.node))
        schema.run("UPDATE nodes SET lease_until = clock_timestamp() - interval '1 second', settled = true")
        assert bench.save(record("b")) == SaveFailed("save")
        assert bench.load("b") is None
        eventually(bench, Save(record("b"), None, 1), lambda answer: answer == Saved(1))
        assert schema.run("SELECT settled FROM nodes") == [(False,)]
    assert [line for line in lines if "ran out" in line]


def test_a_node_that_was_forgotten_writes_no_more(schema: Schema) -> None:
    with opened(schema.store()) as bench, logged() as lines:
        bench.saved(record())
        schema.run("DELETE FROM nodes")
        for number in range(5):
            assert bench.save(record(f"b{number}")) == SaveFailed("save")
        bench.until(lambda: any("restart this process" in line for line in lines))
        assert bench.load() == record()


# -- opening -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dsn", ["host=/nowhere password=secret", "postgresql://ann:secret@/db?host=/nowhere"]
)
def test_sec2_a_server_that_is_not_there_is_said_so_without_the_password(schema: Schema, dsn: str) -> None:
    with pytest.raises(StoreError, match="/nowhere cannot be used") as refused, opened(schema.store(dsn)):
        pass
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "dsn",
    ["password=secret nonsense", "postgresql://ann:secret@host:port:secret/", "secret", "passwort=secret"],
)
def test_sec2_a_dsn_that_cannot_be_read_is_refused_and_not_shown(schema: Schema, dsn: str) -> None:
    with pytest.raises(StoreError, match="cannot be read") as refused:
        schema.store(dsn)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
