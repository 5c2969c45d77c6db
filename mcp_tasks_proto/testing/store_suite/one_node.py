"""What every store promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Quota, Save
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import ExpiredFound, Loaded, SaveConflict, Saved, SaveRefused, StoreInput
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import InputEntry, TaskRecord
from mcp_tasks_proto.testing.store_suite.asking import Ask, Asker, Check, StoreEffect, expect

__all__ = ["NOW", "ROOMY", "STORE_CHECKS", "record_of", "saves"]

NOW: Final = 1_700_000_000_000
ROOMY: Final = Quota(tasks=1000, tasks_per_principal=1000, task_bytes=1_000_000)


def record_of(task_id: str = "a", **changes: Any) -> TaskRecord:
    """Return a plain record with these changes."""
    plain = TaskRecord(
        task_id=task_id,
        version=1,
        principal=None,
        tool="render",
        arguments={"frames": 3},
        client_capabilities={},
        status=Status.WORKING,
        created_at_ms=NOW,
        last_updated_at_ms=NOW,
        ttl_ms=1000,
        payload_bytes=10,
    )
    return evolve(plain, **changes)


def saves(count: int, quota: Quota | None = None) -> list[Save]:
    """Return so many creating saves, whose tokens are their numbers."""
    return [Save(record_of(f"task-{number}"), None, number, quota) for number in range(count)]


def _outcomes(answers: Sequence[StoreInput], kind: type) -> int:
    return sum(isinstance(answer, kind) for answer in answers)


_FULL: Final = record_of(
    version=7,
    principal="zoë@example.org",
    arguments={
        "deep": [{"list": [[], {}, None, True, 0.1, -0.0, 1e300, 2**70]}],
        "": "",
        "\x00": "\x7f\u2028",
    },
    client_capabilities={"elicitation": {}, "extensions": {"example.org/x": {"y": [1]}}},
    status=Status.INPUT_REQUIRED,
    status_message='Quotes " and \\ and \u4e2d\u6587 and \U0001f600\nand lines',
    last_updated_at_ms=NOW + 5,
    ttl_ms=2**53,
    poll_interval_ms=1,
    node="node-1",
    inputs=(
        InputEntry(key="a", name="a", ask="1", request={"method": "elicitation/create", "params": {}}),
        InputEntry(key="a.2", name="a", ask="2", request={}, response={"action": "accept"}, withdrawn=True),
    ),
    cancel_requested_at_ms=NOW + 4,
    payload_bytes=123,
    extra={"later": [1, None, {"x": "y"}]},
)
_COMPLETED: Final = record_of(
    "b", status=Status.COMPLETED, arguments=None, ttl_ms=None, result={"content": [], "isError": False}
)
_FAILED: Final = record_of(
    "c", status=Status.FAILED, arguments=None, principal="", error=ErrorObject(-1, "no", {"why": None})
)
_LARGE: Final = record_of("d", status=Status.COMPLETED, result={"content": ["\u00e9" * 700_000]})


def _check(run: Callable[[Asker], None]) -> Check[Ask]:
    promise = run.__doc__ or ""
    return Check(run.__name__, promise, lambda ask: run(Asker(ask, promise)))


# -- answers, and what is in them ---------------------------------------------------------------------


@_check
def unknown_records_load_as_none(store: Asker) -> None:
    """Rule 1: there is no record where none was saved."""
    store.load("a", None)
    store.save(record_of("a"))
    store.load("b", None)
    store.load("A", None)


@_check
def records_come_back_equal(store: Asker) -> None:
    """Rules 1 and 7: what was saved is what is loaded, field by field."""
    for record in (_FULL, _COMPLETED, _FAILED, _LARGE):
        store.save(record)
    for record in (_LARGE, _FAILED, _COMPLETED, _FULL):
        store.load(record.task_id, record)


@_check
def any_token_comes_back(store: Asker) -> None:
    """The token in the answer is the one in the question, be it anything that can be hashed."""
    tokens: list[Any] = [None, 0, "text", ("a", 1), frozenset({1}), object()]
    store.all([Load("a", token) for token in tokens])
    store.all([Save(record_of(str(number)), None, token) for number, token in enumerate(tokens)])
    store.all([FindExpired(NOW, 1, token) for token in tokens])
    store.all([Delete("nothing", 1, token) for token in tokens])


@_check
def many_questions_at_once_are_all_answered(store: Asker) -> None:
    """Each question is answered exactly once, however many wait."""
    expect(store.promise, [Saved(number) for number in range(300)], store.all(saves(300)))
    loads = [Load(f"task-{number}", number) for number in range(300)]
    wanted = [Loaded(number, record_of(f"task-{number}")) for number in range(300)]
    expect(store.promise, wanted, store.all(loads))


@_check
def a_new_record_never_replaces_one(store: Asker) -> None:
    """Rule 2: with no version expected, there must be no record."""
    store.save(record_of())
    store.conflict(record_of(tool="other"), None, record_of())
    store.load("a", record_of())


@_check
def a_stale_save_changes_nothing(store: Asker) -> None:
    """Rule 2: a save succeeds only where the stored version is the expected one."""
    first, second = record_of(version=2, status_message="one"), record_of(version=2, status_message="two")
    store.save(record_of())
    store.save(first, 1)
    store.conflict(second, 1, first)
    store.conflict(record_of(version=4), 3, first)
    store.load("a", first)


@_check
def a_record_that_is_gone_is_not_saved_again(store: Asker) -> None:
    """Rule 2: a save with a version expected is a conflict where there is none."""
    store.conflict(record_of(version=2), 1, None)
    store.save(record_of())
    store.delete("a", 1)
    store.conflict(record_of(version=2), 1, None)
    store.load("a", None)


@_check
def a_delete_compares_versions(store: Asker) -> None:
    """Rule 2: a delete succeeds only where the stored version is the expected one."""
    current = record_of(version=2)
    store.save(record_of())
    store.save(current, 1)
    store.expect(Delete("a", 1, "stale"), SaveConflict("stale", current))
    store.load("a", current)
    store.delete("a", 2)
    store.load("a", None)
    store.expect(Delete("a", 2, "gone"), SaveConflict("gone", None))
    store.save(record_of())


@_check
def one_of_many_creations_succeeds(store: Asker) -> None:
    """Rule 2: of any number of saves against the same version exactly one succeeds."""
    rivals = [record_of(status_message=str(number)) for number in range(20)]
    answers = store.all([Save(rival, None, number) for number, rival in enumerate(rivals)])
    expect(store.promise, (1, 19), (_outcomes(answers, Saved), _outcomes(answers, SaveConflict)))
    (winner,) = (rivals[number] for number, answer in enumerate(answers) if isinstance(answer, Saved))
    store.load("a", winner)


@_check
def one_of_many_changes_succeeds(store: Asker) -> None:
    """Rule 2: of any number of saves and deletes against the same version exactly one succeeds."""
    store.save(record_of())
    changes: list[StoreEffect] = [
        Save(record_of(version=2, status_message=str(number)), 1, number) for number in range(10)
    ]
    answers = store.all([*changes, *(Delete("a", 1, number) for number in range(10, 20))])
    expect(store.promise, (1, 19), (_outcomes(answers, Saved), _outcomes(answers, SaveConflict)))


@_check
def a_conflict_undoes_nothing_else(store: Asker) -> None:
    """Rule 3: each save stands or falls alone, whatever is asked at the same time."""
    store.save(record_of("a"))
    asked = [Save(record_of(task_id), None, task_id, ROOMY) for task_id in ("b", "a", "c", "a", "d")]
    conflict = SaveConflict("a", record_of("a"))
    wanted = [Saved("b"), conflict, Saved("c"), conflict, Saved("d")]
    expect(store.promise, wanted, store.all(asked))
    for task_id in ("b", "c", "d"):
        store.load(task_id, record_of(task_id))


@_check
def the_bound_that_is_hit_is_named(store: Asker) -> None:
    """Rule 4: a save is refused with the name of the first bound that it would break."""
    store.save(record_of("a", principal="ann"), quota=ROOMY)
    store.save(record_of("b", principal="ann"), quota=ROOMY)
    for bounds, limit in (
        ({"tasks": 2}, "tasks"),
        ({"tasks_per_principal": 2}, "tasks_per_principal"),
        ({"task_bytes": 29}, "task_bytes"),
        ({"tasks": 2, "tasks_per_principal": 2, "task_bytes": 29}, "tasks"),
        ({"tasks_per_principal": 2, "task_bytes": 29}, "tasks_per_principal"),
    ):
        store.refused(record_of("c", principal="ann"), evolve(ROOMY, **bounds), limit)
        store.load("c", None)
    store.save(record_of("c", principal="ann"), quota=Quota(tasks=3, tasks_per_principal=3, task_bytes=30))


@_check
def principals_are_counted_apart(store: Asker) -> None:
    """Rule 4: one at its bound disturbs no other; having no principal counts as one more."""
    quota = evolve(ROOMY, tasks_per_principal=1)
    for principal in ("ann", "Ann", "", None, "None"):
        store.save(record_of(f"first {principal!r}", principal=principal), quota=quota)
    for principal in ("ann", "Ann", "", None, "None"):
        second = record_of(f"second {principal!r}", principal=principal)
        store.refused(second, quota, "tasks_per_principal")


@_check
def what_is_deleted_makes_room(store: Asker) -> None:
    """Rule 4: only records that are there count."""
    quota = Quota(tasks=1, tasks_per_principal=1, task_bytes=10)
    for _ in range(3):
        store.save(record_of("a"), quota=quota)
        store.refused(record_of("b"), quota, "tasks")
        store.delete("a", 1)


@_check
def a_record_counts_as_it_is_now(store: Asker) -> None:
    """Rule 4: the sum is of the payloads as they were saved last."""
    store.save(record_of(payload_bytes=10))
    store.save(record_of(payload_bytes=70, version=2), 1)
    store.refused(record_of("b"), evolve(ROOMY, task_bytes=79), "task_bytes")
    store.save(record_of(payload_bytes=5, version=3), 2)
    store.save(record_of("b"), quota=evolve(ROOMY, task_bytes=15))


@_check
def a_change_takes_the_place_it_has(store: Asker) -> None:
    """Rule 4: a record that is replaced does not count beside the one that replaces it."""
    quota = Quota(tasks=1, tasks_per_principal=1, task_bytes=20)
    store.save(record_of(), quota=quota)
    store.save(record_of(version=2, payload_bytes=20), 1, quota)
    store.refused(record_of(version=3, payload_bytes=21), quota, "task_bytes", 2)
    store.load("a", record_of(version=2, payload_bytes=20))


@_check
def a_conflict_comes_before_the_quota(store: Asker) -> None:
    """Rule 4: a conflict is a conflict, whatever the quota says."""
    store.save(record_of())
    none_left = Quota(tasks=1, tasks_per_principal=1, task_bytes=1)
    store.expect(Save(record_of(), None, "save", none_left), SaveConflict("save", record_of()))


@_check
def two_cannot_have_the_last_place(store: Asker) -> None:
    """Rule 4: check and write are one step."""
    answers = store.all(saves(40, evolve(ROOMY, tasks=7)))
    expect(store.promise, (7, 33), (_outcomes(answers, Saved), _outcomes(answers, SaveRefused)))


@_check
def nothing_is_dropped_to_make_room(store: Asker) -> None:
    """Rule 5: also not what has expired long ago."""
    old = record_of("a", created_at_ms=0, ttl_ms=1)
    store.save(old)
    store.refused(record_of("b"), evolve(ROOMY, tasks=1), "tasks")
    store.load("a", old)


@_check
def a_record_expires_at_its_millisecond(store: Asker) -> None:
    """Rule 6: found at its expiry, and not before."""
    store.find(NOW, 10, [], None)
    store.save(record_of(ttl_ms=1000))
    store.find(NOW + 999, 10, [], NOW + 1000)
    store.find(NOW + 1000, 10, ["a"], None)


@_check
def the_earliest_come_first_in_slices(store: Asker) -> None:
    """Rule 6: at most so many, the earliest first, and they stay until they are deleted."""
    for task_id, ttl_ms in (("late", 40), ("first", 10), ("third", 30), ("second", 20)):
        store.save(record_of(task_id, ttl_ms=ttl_ms))
    for _ in range(2):
        store.find(NOW + 35, 2, ["first", "second"], NOW + 30)
    store.delete("first", 1)
    store.delete("second", 1)
    store.find(NOW + 35, 2, ["third"], NOW + 40)
    store.find(NOW + 35, 1, ["third"], NOW + 40)
    store.find(NOW + 40, 1, ["third"], NOW + 40)


@_check
def what_is_found_says_when_it_expired(store: Asker) -> None:
    """Rule 6: id, version and expiry of what is found are right, whatever else is left out."""
    store.save(record_of("a", version=3, ttl_ms=5))
    answer = store.one(FindExpired(NOW + 9, 5, "find"))
    found = answer.records if isinstance(answer, ExpiredFound) else ()
    got = [(one.task_id, one.version, one.expires_at_ms, one.expired(NOW + 9)) for one in found]
    expect(store.promise, [("a", 3, NOW + 5, True)], got)


@_check
def some_never_expire(store: Asker) -> None:
    """Rule 6: with an unlimited lifetime, never; with a huge one, late."""
    store.save(record_of("a", ttl_ms=None))
    store.find(2**53, 10, [], None)
    store.save(record_of("b", ttl_ms=2**53))
    store.find(NOW, 10, [], NOW + 2**53)


@_check
def a_changed_lifetime_counts(store: Asker) -> None:
    """Rule 6: a record expires as it was saved last, and is found once."""
    for version, ttl_ms in enumerate((1000, 10, 500, None, 1000, 10, 1000), start=1):
        store.save(record_of(ttl_ms=ttl_ms, version=version), version - 1 or None)
        store.find(NOW, 10, [], None if ttl_ms is None else NOW + ttl_ms)
    store.find(NOW + 999, 10, [], NOW + 1000)
    store.save(record_of("b", ttl_ms=1001))
    store.find(NOW + 1000, 10, ["a"], NOW + 1001)
    store.find(NOW + 1001, 1, ["a"], NOW + 1001)
    store.delete("a", 7)
    store.find(NOW + 2000, 10, ["b"], None)


# -- lists of a principal's tasks -----------------------------------------------------------------------


def _owned(task_id: str, principal: str | None = "ann", **changes: Any) -> TaskRecord:
    return record_of(task_id, principal=principal, **changes)


@_check
def only_the_principals_own_are_listed(store: Asker) -> None:
    """Rule 13: records of one principal, compared exactly, and never of nobody."""
    for task_id, principal in (("a", "ann"), ("b", None), ("c", "Ann"), ("d", ""), ("e", "ann")):
        store.save(_owned(task_id, principal))
    store.list_tasks("ann", None, 10, [_owned("a"), _owned("e")], more=False)
    store.list_tasks("Ann", None, 10, [_owned("c", "Ann")], more=False)
    store.list_tasks("", None, 10, [_owned("d", "")], more=False)
    store.list_tasks("None", None, 10, [], more=False)
    store.list_tasks("zoe", None, 10, [], more=False)


@_check
def a_list_comes_in_pages(store: Asker) -> None:
    """Rule 13: in order of the ids, each once, whether there are more or not."""
    records = [_owned(task_id) for task_id in ("-3", "A", "B", "Z", "_", "a", "b", "~")]
    for record in [*records[4:], *records[:4]]:
        store.save(record)
    store.list_tasks("ann", None, 8, records, more=False)
    store.list_tasks("ann", None, 7, records[:7], more=True)
    for start in range(0, 8, 3):
        after = records[start - 1].task_id if start else None
        store.list_tasks("ann", after, 3, records[start : start + 3], more=start + 3 < 8)
    store.list_tasks("ann", "~", 3, [], more=False)


@_check
def a_page_begins_after_what_is_gone(store: Asker) -> None:
    """Rule 13: the id that a page begins after need not exist."""
    for task_id in ("a", "c", "e"):
        store.save(_owned(task_id))
    store.list_tasks("ann", "b", 1, [_owned("c")], more=True)
    store.delete("c", 1)
    store.list_tasks("ann", "c", 1, [_owned("e")], more=False)
    store.delete("a", 1)
    store.delete("e", 1)
    store.list_tasks("ann", None, 1, [], more=False)


@_check
def a_list_shows_records_as_they_are_now(store: Asker) -> None:
    """Rule 13: as they were saved last, ended and expired ones included."""
    second = _owned("a", version=2, status=Status.COMPLETED, arguments=None, result={"content": []})
    store.save(_owned("a"))
    store.save(_owned("b", ttl_ms=1))
    store.save(second, 1)
    store.list_tasks("ann", None, 10, [second, _owned("b", ttl_ms=1)], more=False)


STORE_CHECKS: Final[Sequence[Check[Ask]]] = (
    unknown_records_load_as_none,
    records_come_back_equal,
    any_token_comes_back,
    many_questions_at_once_are_all_answered,
    a_new_record_never_replaces_one,
    a_stale_save_changes_nothing,
    a_record_that_is_gone_is_not_saved_again,
    a_delete_compares_versions,
    one_of_many_creations_succeeds,
    one_of_many_changes_succeeds,
    a_conflict_undoes_nothing_else,
    the_bound_that_is_hit_is_named,
    principals_are_counted_apart,
    what_is_deleted_makes_room,
    a_record_counts_as_it_is_now,
    a_change_takes_the_place_it_has,
    a_conflict_comes_before_the_quota,
    two_cannot_have_the_last_place,
    nothing_is_dropped_to_make_room,
    a_record_expires_at_its_millisecond,
    the_earliest_come_first_in_slices,
    what_is_found_says_when_it_expired,
    some_never_expire,
    a_changed_lifetime_counts,
    only_the_principals_own_are_listed,
    a_list_comes_in_pages,
    a_page_begins_after_what_is_gone,
    a_list_shows_records_as_they_are_now,
)
"""What every store promises; each check wants an empty one."""
