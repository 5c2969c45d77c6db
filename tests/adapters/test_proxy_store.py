"""What a proxy keeps: the same in memory and in a file, where it is sealed and outlives the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from mcp_tasks_adapters.proxy import MemoryProxyStore, SqliteProxyStore
from mcp_tasks_adapters.proxy.storing import LEDGER_FACTOR, AssignTask, EntriesRead, ReadEntries, ReadEntry
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.storing import StoreError

from mcp_tasks_proto.history import Observation, assign, observe, place_of
from mcp_tasks_proto.inputs import LoadFailed, Saved, SaveFailed, SaveRefused, WorkLost
from mcp_tasks_proto.legacy.proxy import HandlesListed, ListHandles
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy import (
    DropTask,
    LoadTask,
    Note,
    Purge,
    SaveBinding,
    SaveSnapshot,
    SnapshotKept,
    TaskLoaded,
    TaskQuota,
)
from tests.adapters.proxy_harness import NOW, ROOMY, ask, binding, entry, save, snapshot, tell
from tests.adapters.store_harness import Bench

KEYS = RecordKeys([bytes(32)])
OTHER_KEYS = RecordKeys([b"\1" * 32])
LOAD = LoadTask("h1", "load")
SEEN = Observation(status=Status.COMPLETED, at_ms=NOW + 1)
NOTHING = TaskLoaded("load", None, None)


def purge(now_ms: int = NOW, payloads: int = 0, metadata: int = 0) -> Purge:
    return Purge(now_ms=now_ms, payloads_before_ms=payloads, metadata_before_ms=metadata)


def sqlite(folder: Path, keys: RecordKeys = KEYS) -> SqliteProxyStore:
    return SqliteProxyStore(folder / "proxy.db", keys=keys)


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(MemoryProxyStore() if request.param == "memory" else sqlite(tmp_path))
    bench.open()
    yield bench
    bench.close()


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Callable[[], Bench]]:
    """Open the same file again and again, one after the other."""
    benches: list[Bench] = []

    def reopened() -> Bench:
        if benches:
            benches.pop().close()
        benches.append(Bench(sqlite(tmp_path)))
        benches[0].open()
        return benches[0]

    yield reopened
    benches.pop().close()


# -- the ledger, as dashboards read it -------------------------------------------------------------------

FIRST = ReadEntries(project="film", after=None, most=2, token="read")


def handles(answers: Sequence[Any]) -> list[list[str]]:
    return [[one.handle for one in answer.entries] for answer in answers]


def made(handle: str, project: str | None = "film", created_at_ms: int = NOW) -> SaveBinding:
    bound = binding(handle, project=project)
    opened = entry(handle, project=project, now=created_at_ms)
    return SaveBinding(binding=bound, entry=opened, quota=ROOMY, token="save")


def test_his2_a_project_is_read_in_stretches_newest_first(bench: Bench) -> None:
    ages = {"old": NOW - 9, "b": NOW, "a": NOW, "new": NOW + 9}
    ask(bench, *(made(handle, created_at_ms=at_ms) for handle, at_ms in ages.items()))
    ask(bench, made("other", "other"), made("none", None))
    (first,) = ask(bench, FIRST)
    later = evolve(FIRST, after=place_of(first.entries[-1]))
    (second,) = ask(bench, later)
    last = evolve(FIRST, after=place_of(second.entries[-1]))
    assert handles([first, second, *ask(bench, last)]) == [["new", "a"], ["b", "old"], []]
    assert handles(ask(bench, evolve(FIRST, project="none there"))) == [[]]


def test_his4_what_is_dropped_or_outlived_is_not_read(bench: Bench) -> None:
    ask(bench, made("a", created_at_ms=NOW - 9), made("b"), made("c"), made("none", None))
    tell(bench, DropTask("c"), DropTask("none"), DropTask("c"), purge(metadata=NOW))
    assert handles(ask(bench, FIRST, ReadEntry("a", "read"))) == [["b"], []]
    tell(bench, DropTask("b"))
    assert handles(ask(bench, FIRST)) == [[]]


def test_his2_a_task_is_assigned_in_one_step(bench: Bench) -> None:
    assigning = AssignTask(handle="h1", actor="bob", assignee="carol", now_ms=NOW + 5, token="assign")
    none, _, assigned, found = ask(bench, assigning, save(), assigning, ReadEntry("h1", "read"))
    assert none == EntriesRead("assign", ())
    assert (assigned.token, found.token) == ("assign", "read")
    assert assigned.entries == found.entries == (assign(entry(), actor="bob", assignee="carol", now=NOW + 5),)


def test_his1_what_was_noted_is_read_however_it_came(bench: Bench) -> None:
    """Polls may be counted apart for a while; the entry that is read has them all."""
    noted = [
        Observation(status=status, at_ms=NOW + at_ms, polled=polled)
        for at_ms, (status, polled) in enumerate(
            [
                (Status.WORKING, True),
                (Status.WORKING, True),
                (Status.WORKING, False),
                (Status.INPUT_REQUIRED, True),
                (Status.INPUT_REQUIRED, True),
                (Status.COMPLETED, False),
                (Status.COMPLETED, True),
            ]
        )
    ]
    ask(bench, made("a"), made("b"))
    expected = entry("a", project="film", now=NOW)
    for seen in noted:
        tell(bench, Note("a", seen), Note("gone", seen))
        expected = observe(expected, seen)
    (one,), (two,) = (ask(bench, ReadEntry("a", "read")), ask(bench, FIRST))
    assert one.entries == (expected,)
    assert two.entries[0] == expected
    assert (expected.polls, expected.version) == (5, 7)
    tell(bench, Note("b", noted[0]), DropTask("b"))
    (_, again) = ask(bench, made("b"), ReadEntry("b", "read"))
    assert again.entries[0].polls == 0


def test_leg7_handles_of_one_principal_are_listed_page_by_page(bench: Bench) -> None:
    ask(
        bench,
        *(save(handle) for handle in ("b", "é", "a", "c")),
        save("d", owner="bob"),
        save("e", stored=False),
    )
    first = ListHandles(principal="alice", after=None, limit=2, token="list")
    assert ask(bench, first, evolve(first, after="b"), evolve(first, after="c", limit=9)) == [
        HandlesListed("list", ["a", "b"], True),
        HandlesListed("list", ["c", "e"], True),
        HandlesListed("list", ["e", "é"], False),
    ]
    assert ask(bench, evolve(first, principal="carol")) == [HandlesListed("list", [], False)]


def test_leg7_a_file_of_before_lists_its_handles_too(on_disk: Callable[[], Bench], tmp_path: Path) -> None:
    ask(on_disk(), save("a"))
    on_disk().close()
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file, file:
        file.execute("DROP INDEX bindings_by_owner")
    listing = ListHandles(principal="alice", after=None, limit=2, token="list")
    assert ask(on_disk(), listing) == [HandlesListed("list", ["a"], False)]


def deleted(*projects: str) -> Purge:
    return Purge(now_ms=0, payloads_before_ms=0, metadata_before_ms=0, projects=frozenset(projects))


def test_his4_a_deleted_project_takes_all_of_its_tasks_along(bench: Bench) -> None:
    ended = SaveSnapshot(snapshot("a"), SEEN, "keep")
    ask(bench, made("a"), made("b"), ended, made("c", "other"), made("d", None))
    tell(bench, deleted("film", "none there"))
    read = [LoadTask(handle, handle) for handle in "abcd"]
    assert [one.binding is not None for one in ask(bench, *read)] == [False, False, True, True]
    assert ask(bench, LoadTask("a", "a")) == [TaskLoaded("a", None, None)]
    assert handles(ask(bench, FIRST, evolve(FIRST, project="other"), ReadEntry("a", "read"))) == [
        [],
        ["c"],
        [],
    ]
    only = TaskQuota(tasks=3, tasks_per_principal=3)
    assert ask(bench, evolve(made("e"), quota=only)) == [Saved("save")], "the place is free again"


def test_his4_a_deleted_project_is_removed_where_the_ledger_knows_it_no_more(bench: Bench) -> None:
    ask(bench, made("a"), SaveSnapshot(snapshot("a"), SEEN, "keep"), made("b", "other"))
    tell(bench, purge(metadata=NOW + 1), deleted("film"))
    assert ask(bench, LoadTask("a", "a")) == [TaskLoaded("a", None, None)]
    assert ask(bench, LoadTask("b", "b"))[0].binding is not None


def test_his4_a_binding_that_nobody_can_read_keeps_no_other_from_being_removed(
    on_disk: Callable[[], Bench], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ask(on_disk(), made("a"), made("b"))
    on_disk().close()
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file, file:
        file.execute("UPDATE bindings SET binding = x'00' WHERE handle = 'a'")
        file.execute("DELETE FROM entries")
    bench = on_disk()
    tell(bench, deleted("film"))
    assert ask(bench, LoadTask("b", "b")) == [TaskLoaded("b", None, None)]
    assert "what was kept of deleted projects is removed: 1 tasks" in caplog.text


# -- in memory and in a file -----------------------------------------------------------------------------


def test_prx6_a_binding_is_there_once_it_is_saved(bench: Bench) -> None:
    assert ask(bench, LOAD, save(), LOAD) == [NOTHING, Saved("save"), TaskLoaded("load", binding(), None)]


def test_prx6_a_handle_is_given_out_once(bench: Bench) -> None:
    assert ask(bench, save(), save(tool="other"), LOAD) == [
        Saved("save"),
        SaveFailed("save"),
        TaskLoaded("load", binding(), None),
    ]


def test_prx5_a_handle_that_carries_its_binding_has_an_entry_only(bench: Bench) -> None:
    assert ask(bench, save(stored=False), LOAD, save(stored=False)) == [
        Saved("save"),
        NOTHING,
        SaveFailed("save"),
    ]


def test_lim3_quotas_are_of_all_and_of_each(bench: Bench) -> None:
    quota = TaskQuota(tasks=3, tasks_per_principal=2)
    effects = [save(f"h{number}", quota=quota) for number in range(3)]
    others = [save(f"o{number}", quota=quota, owner="bob") for number in range(2)]
    assert ask(bench, *effects, *others) == [
        Saved("save"),
        Saved("save"),
        SaveRefused("save", "tasks_per_principal"),
        Saved("save"),
        SaveRefused("save", "tasks"),
    ]
    tell(bench, DropTask("h0"))
    assert ask(bench, save("h9", quota=quota)) == [Saved("save")]


def test_lim3_the_ledger_that_outlives_bindings_has_a_bound_too(bench: Bench) -> None:
    quota = TaskQuota(tasks=1, tasks_per_principal=1)
    for number in range(LEDGER_FACTOR):
        assert ask(bench, save(f"h{number}", quota=quota)) == [Saved("save")]
        tell(bench, purge(now_ms=NOW + 5000))
    assert ask(bench, save("one more", quota=quota)) == [SaveRefused("save", "tasks")]
    tell(bench, purge(metadata=NOW + 1))
    assert ask(bench, save("one more", quota=quota)) == [Saved("save")]


def test_prx6_what_nobody_was_given_is_dropped(bench: Bench) -> None:
    ask(bench, save())
    tell(bench, DropTask("h1"), DropTask("unknown"))
    assert ask(bench, LOAD, save()) == [NOTHING, Saved("save")]


def test_prx13_the_first_end_stands(bench: Bench) -> None:
    first, second = snapshot(text="first"), snapshot(text="second")
    assert ask(bench, save(), SaveSnapshot(first, SEEN, "one"), SaveSnapshot(second, SEEN, "two"), LOAD) == [
        Saved("save"),
        SnapshotKept("one", first),
        SnapshotKept("two", first),
        TaskLoaded("load", binding(), first),
    ]


def test_his4_payloads_go_when_their_time_is_over(bench: Bench) -> None:
    ask(bench, save(), SaveSnapshot(snapshot(), SEEN, "keep"))
    tell(bench, purge(payloads=NOW))
    assert ask(bench, LOAD) == [TaskLoaded("load", binding(), snapshot())]
    tell(bench, purge(payloads=NOW + 1))
    assert ask(bench, LOAD) == [TaskLoaded("load", binding(), None)]


def test_his4_a_promoted_call_goes_with_its_end(bench: Bench) -> None:
    own: dict[str, Any] = {"upstream_task_id": None, "node": "node"}
    ask(bench, save(**own), save("h2", **own), SaveSnapshot(snapshot(), SEEN, "keep"))
    tell(bench, purge(payloads=NOW))
    assert ask(bench, LOAD) == [TaskLoaded("load", binding(**own), snapshot())]
    tell(bench, purge(payloads=NOW + 1))
    assert ask(bench, LOAD, LoadTask("h2", "load")) == [
        NOTHING,
        TaskLoaded("load", binding("h2", **own), None),
    ]


def test_prx13_a_binding_lives_as_long_as_the_end_that_is_kept(bench: Bench) -> None:
    ask(bench, save(), SaveSnapshot(snapshot(), SEEN, "keep"), save("h2"))
    tell(bench, purge(now_ms=NOW + 5000))
    assert ask(bench, LOAD, LoadTask("h2", "load")) == [TaskLoaded("load", binding(), snapshot()), NOTHING]
    tell(bench, purge(now_ms=NOW + 5000, payloads=NOW + 1))
    assert ask(bench, LOAD) == [NOTHING]


def test_prx5_what_counts_a_carried_binding_goes_with_its_entry(bench: Bench) -> None:
    quota = TaskQuota(tasks=1, tasks_per_principal=1)
    ask(bench, save(stored=False, quota=quota))
    tell(bench, purge(now_ms=NOW + 100_000_000))
    assert ask(bench, save("h2", quota=quota)) == [SaveRefused("save", "tasks")]
    tell(bench, purge(metadata=NOW + 1))
    assert ask(bench, save("h2", quota=quota)) == [Saved("save")]


def test_his1_what_is_not_in_the_ledger_is_not_noted(bench: Bench) -> None:
    tell(bench, Note("h1", SEEN))
    assert ask(bench, SaveSnapshot(snapshot(), SEEN, "keep"), LOAD) == [
        SnapshotKept("keep", snapshot()),
        TaskLoaded("load", None, snapshot()),
    ]


# -- in a file -------------------------------------------------------------------------------------------


def test_prx6_what_was_saved_is_there_after_a_restart(on_disk: Callable[[], Bench]) -> None:
    ask(on_disk(), save(), SaveSnapshot(snapshot(), SEEN, "keep"))
    assert ask(on_disk(), LOAD) == [TaskLoaded("load", binding(), snapshot())]


def test_his1_the_ledger_notes_status_and_polls(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    ask(bench, save())
    tell(bench, *[Note("h1", Observation(status=Status.INPUT_REQUIRED, at_ms=NOW, polled=True))] * 2)
    ask(bench, SaveSnapshot(snapshot(), SEEN, "keep"))
    bench.close()
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file:
        (kept,) = file.execute("SELECT entry FROM entries").fetchone()
    assert '"status": "completed"' in kept
    assert '"polls": 2' in kept
    assert kept.count('"kind"') == 3


def test_where_opening_it_is_given_up_the_file_is_free_again(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.give_up_opening()
    assert bench.store.node is None
    bench.open()
    bench.close()


def test_sec2_bindings_and_ends_are_sealed(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    ask(bench, save(), SaveSnapshot(snapshot(), SEEN, "keep"))
    bench.close()
    contents = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"h1" in contents
    assert b"canary" not in contents


def test_sec2_what_was_sealed_for_one_handle_is_nothing_for_another(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    ask(bench, save(), save("h2"))
    bench.close()
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file:
        file.execute(
            "UPDATE bindings SET binding = (SELECT binding FROM bindings WHERE handle = 'h2') "
            "WHERE handle = 'h1'"
        )
        file.commit()
    bench.open()
    assert ask(bench, LOAD) == [LoadFailed("load")]
    bench.close()


def test_prx16_promoted_calls_of_a_node_that_is_gone_are_told(on_disk: Callable[[], Bench]) -> None:
    bench = on_disk()
    node = bench.store.node
    assert node
    own = {"upstream_task_id": None, "node": node}
    ask(bench, save(**own), save("h2", **own), save("h3"), SaveSnapshot(snapshot("h2"), SEEN, "keep"))
    told = tell(bench, purge())
    ask(bench, LOAD)
    assert not told
    bench = on_disk()
    assert bench.store.node != node
    told = tell(bench, purge())
    ask(bench, LOAD)
    assert told == [WorkLost("h1", node)]


def test_a_store_that_fails_says_so(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    for table in ("bindings", "snapshots"):
        bench.store._session._connection.execute(f"DROP TABLE {table}")
    tell(bench, DropTask("h1"))
    assert ask(bench, LOAD, save(), SaveSnapshot(snapshot(), SEEN, "keep")) == [
        LoadFailed("load"),
        SaveFailed("save"),
        SaveFailed("keep"),
    ]
    bench.close()


def test_lim3_a_full_disk_is_told_once_and_disturbs_nobody_who_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    ask(bench, save())
    found = ask(bench, LOAD)
    execute = bench.store._session._connection.execute

    def long(handle: str) -> SaveBinding:
        return save(handle, upstream_task_id="x" * 100_000)

    execute("PRAGMA max_page_count = 1")  # SQLite takes what the file has for the least
    # So many that some reach the thread together, whatever its pace.
    answers = ask(bench, *(effect for number in range(100) for effect in (long(f"long{number}"), LOAD)))
    assert answers == [SaveFailed("save"), *found] * 100
    execute("PRAGMA max_page_count = 10000")
    assert ask(bench, long("h2")) == [Saved("save")]
    execute("PRAGMA max_page_count = 1")
    assert ask(bench, long("h3")) == [SaveFailed("save")]
    assert caplog.messages == ["the proxy's store failed: database or disk is full"] * 2
    bench.close()


def refusal(store: Any) -> str:
    with pytest.raises(StoreError) as refused:
        Bench(store).open()
    return str(refused.value)


def test_a_file_is_one_proxys_at_a_time(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    assert "another proxy has it open" in refusal(sqlite(tmp_path))
    assert "open already" in refusal(bench.store)
    bench.close()
    bench.open()
    bench.close()


def test_sec2_other_keys_open_nothing(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    bench.close()
    assert "other keys" in refusal(sqlite(tmp_path, OTHER_KEYS))
    rotated = Bench(sqlite(tmp_path, RecordKeys([b"\1" * 32, bytes(32)])))
    rotated.open()
    rotated.close()
    assert "other keys" in refusal(sqlite(tmp_path))


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file:
        file.execute("CREATE TABLE things (thing)")
    assert "another program" in refusal(sqlite(tmp_path))


def test_a_later_versions_file_is_left_alone(tmp_path: Path) -> None:
    bench = Bench(sqlite(tmp_path))
    bench.open()
    bench.close()
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file:
        file.execute("PRAGMA user_version = 99")
    assert "later version" in refusal(sqlite(tmp_path))


def test_what_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "proxy.db").write_bytes(b"not a database, by any means" * 100)
    assert "cannot be used" in refusal(sqlite(tmp_path))
    assert "cannot be used" in refusal(SqliteProxyStore(tmp_path / "no" / "folder.db", keys=KEYS))


def test_a_store_that_is_not_open_refuses(tmp_path: Path) -> None:
    store = sqlite(tmp_path)
    assert store.node is None
    with pytest.raises(StoreError, match="is not open"):
        store.submit(LOAD, lambda _: None)
