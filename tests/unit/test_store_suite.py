"""The checks for other people's stores: a right store passes them all, and each mistake is caught by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import define, evolve, field

from mcp_tasks_proto import (
    Delete,
    FindExpired,
    ListTasks,
    Load,
    RecordChanged,
    RecordRemoved,
    Save,
    TaskRecord,
    WorkLost,
)
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    LoadFailed,
    SaveConflict,
    Saved,
    SaveRefused,
    StoreInput,
    TasksListed,
)
from mcp_tasks_proto.testing import DictStore
from mcp_tasks_proto.testing.store_suite import (
    NODE_CHECKS,
    STORE_CHECKS,
    Ask,
    BrokenPromise,
    Check,
    Nodes,
    StoreEffect,
    compare,
)
from mcp_tasks_proto.testing.store_suite.one_node import NOW, record_of

Wrong = Callable[[DictStore, Any], StoreInput]
"""A store's answer to one effect."""


def asking(answer: Wrong) -> Ask:
    store = DictStore()
    return lambda effects: [answer(store, effect) for effect in effects]


def right(store: DictStore, effect: StoreEffect) -> StoreInput:
    return store.answer(effect)


# -- mistakes ----------------------------------------------------------------------------------------


def answers_nothing(store: DictStore, effect: Any) -> StoreInput:
    return store.fail(effect)


def mixes_tokens_up(store: DictStore, effect: Any) -> StoreInput:
    return store.answer(evolve(effect, token=str(effect.token)))


def folds_case(store: DictStore, effect: Any) -> StoreInput:
    return store.answer(
        evolve(effect, task_id=effect.task_id.lower()) if isinstance(effect, Load) else effect
    )


def forgets_a_field(store: DictStore, effect: Any) -> StoreInput:
    return store.answer(
        evolve(effect, record=evolve(effect.record, extra={})) if isinstance(effect, Save) else effect
    )


def overwrites(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Save) and effect.expected_version is None:
        store.records.pop(effect.record.task_id, None)
    return store.answer(effect)


def compares_only_upwards(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Save) and effect.expected_version is not None:
        current = store.records.get(effect.record.task_id)
        if current is not None and effect.expected_version >= current.version:
            effect = evolve(effect, expected_version=current.version)
    return store.answer(effect)


def resurrects(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Save) and effect.record.task_id not in store.records:
        effect = evolve(effect, expected_version=None)
    return store.answer(effect)


def deletes_whatever_is_there(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Delete) and effect.task_id in store.records:
        effect = evolve(effect, expected_version=store.records[effect.task_id].version)
    return store.answer(effect)


def tells_no_current_record(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    return SaveConflict(answer.token, None) if isinstance(answer, SaveConflict) else answer


def knows_no_quota(store: DictStore, effect: Any) -> StoreInput:
    return store.answer(evolve(effect, quota=None) if isinstance(effect, Save) else effect)


def names_another_bound(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    return evolve(answer, limit="task_bytes") if isinstance(answer, SaveRefused) else answer


def counts_no_principal_as_all(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Save) and effect.record.principal is None and effect.quota is not None:
        effect = evolve(effect, quota=evolve(effect.quota, tasks_per_principal=10**6))
    return store.answer(effect)


def counts_a_change_twice(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Save) and effect.quota is not None and effect.expected_version is not None:
        tasks = max(1, effect.quota.tasks - 1)
        effect = evolve(effect, quota=evolve(effect.quota, tasks=tasks))
        if len(store.records) >= tasks:
            return SaveRefused(effect.token, "tasks")
    return store.answer(effect)


def refuses_before_it_compares(store: DictStore, effect: Any) -> StoreInput:
    if isinstance(effect, Save) and effect.quota is not None and len(store.records) >= effect.quota.tasks:
        return SaveRefused(effect.token, "tasks")
    return store.answer(effect)


def counts_what_was(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, Saved) and isinstance(effect, Save) and effect.expected_version is not None:
        first = store.records[effect.record.task_id]
        store.records[effect.record.task_id] = evolve(first, payload_bytes=10)
    return answer


def drops_the_oldest(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, SaveRefused):
        for task_id in [one.task_id for one in store.records.values() if one.created_at_ms < NOW]:
            del store.records[task_id]
    return store.answer(effect) if isinstance(answer, SaveRefused) else answer


def expires_late(store: DictStore, effect: Any) -> StoreInput:
    return store.answer(
        evolve(effect, now_ms=effect.now_ms - 1) if isinstance(effect, FindExpired) else effect
    )


def removes_what_it_finds(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, ExpiredFound):
        for found in answer.records:
            del store.records[found.task_id]
    return answer


def ignores_the_limit(store: DictStore, effect: Any) -> StoreInput:
    return store.answer(evolve(effect, limit=100) if isinstance(effect, FindExpired) else effect)


def finds_the_latest_first(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    return evolve(answer, records=answer.records[::-1]) if isinstance(answer, ExpiredFound) else answer


def tells_no_next_expiry(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    return evolve(answer, next_expiry_ms=None) if isinstance(answer, ExpiredFound) else answer


def leaves_out_too_much(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, ExpiredFound):
        return evolve(answer, records=[evolve(one, version=1) for one in answer.records])
    return answer


def finds_nothing(store: DictStore, effect: Any) -> StoreInput:
    return LoadFailed(effect.token) if isinstance(effect, FindExpired) else store.answer(effect)


def takes_two_creations(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    lost = (
        isinstance(answer, SaveConflict) and isinstance(effect, Save) and effect.record.status_message == "1"
    )
    return Saved(effect.token) if lost else answer


def lists_everybodys(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, TasksListed) and isinstance(effect, ListTasks):
        return evolve(answer, records=sorted(store.records.values(), key=lambda one: one.task_id))
    return answer


def says_there_is_no_more(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    return evolve(answer, more=False) if isinstance(answer, TasksListed) else answer


def begins_a_page_again(store: DictStore, effect: Any) -> StoreInput:
    gone = isinstance(effect, ListTasks) and effect.after not in store.records
    return store.answer(evolve(effect, after=None) if gone else effect)


def lists_what_works(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, TasksListed):
        return evolve(answer, records=[one for one in answer.records if not one.status.terminal])
    return answer


def lists_nothing(store: DictStore, effect: Any) -> StoreInput:
    return LoadFailed(effect.token) if isinstance(effect, ListTasks) else store.answer(effect)


MISTAKES: dict[Wrong, str] = {
    answers_nothing: "unknown_records_load_as_none",
    mixes_tokens_up: "any_token_comes_back",
    folds_case: "unknown_records_load_as_none",
    forgets_a_field: "records_come_back_equal",
    overwrites: "a_new_record_never_replaces_one",
    compares_only_upwards: "a_stale_save_changes_nothing",
    resurrects: "a_record_that_is_gone_is_not_saved_again",
    deletes_whatever_is_there: "a_delete_compares_versions",
    tells_no_current_record: "a_conflict_undoes_nothing_else",
    takes_two_creations: "one_of_many_creations_succeeds",
    knows_no_quota: "two_cannot_have_the_last_place",
    names_another_bound: "the_bound_that_is_hit_is_named",
    counts_no_principal_as_all: "principals_are_counted_apart",
    counts_a_change_twice: "a_change_takes_the_place_it_has",
    counts_what_was: "a_record_counts_as_it_is_now",
    refuses_before_it_compares: "a_conflict_comes_before_the_quota",
    drops_the_oldest: "nothing_is_dropped_to_make_room",
    expires_late: "a_record_expires_at_its_millisecond",
    removes_what_it_finds: "the_earliest_come_first_in_slices",
    ignores_the_limit: "the_earliest_come_first_in_slices",
    finds_the_latest_first: "the_earliest_come_first_in_slices",
    tells_no_next_expiry: "a_changed_lifetime_counts",
    leaves_out_too_much: "what_is_found_says_when_it_expired",
    finds_nothing: "some_never_expire",
    lists_everybodys: "only_the_principals_own_are_listed",
    lists_nothing: "only_the_principals_own_are_listed",
    says_there_is_no_more: "a_list_comes_in_pages",
    begins_a_page_again: "a_page_begins_after_what_is_gone",
    lists_what_works: "a_list_shows_records_as_they_are_now",
}


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_a_right_store_passes(check: Check[Ask]) -> None:
    check(asking(right))
    assert check.promise.startswith(("Rule", "The token", "Each question")), "it says what it is about"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_caught(mistake: Wrong) -> None:
    (check,) = (check for check in STORE_CHECKS if check.name == MISTAKES[mistake])
    with pytest.raises(BrokenPromise, match="expected"):
        check(asking(mistake))


def test_who_takes_effects_one_by_one_is_told_that_they_come_in_a_list() -> None:
    with pytest.raises(BrokenPromise, match="Asked a list of effects"):
        STORE_CHECKS[0](lambda *effects: [None for _ in effects])


# -- any effects beside the obvious store --------------------------------------------------------------

SEQUENCE: Sequence[StoreEffect] = [
    Save(record_of("a", ttl_ms=5), None, 1),
    Save(record_of("b", ttl_ms=5), None, 2),
    Load("a", 3),
    FindExpired(NOW + 5, 2, 4),
    Delete("a", 1, 5),
    FindExpired(NOW + 5, 2, 6),
    Save(record_of("o", principal="ann"), None, 7),
    Save(record_of("p", principal="ann"), None, 8),
    ListTasks(principal="ann", after=None, limit=1, token=9),
]


def test_a_right_store_compares_well() -> None:
    compare(asking(right), SEQUENCE)


def test_which_of_two_that_expire_together_comes_first_is_open() -> None:
    compare(asking(finds_the_latest_first), SEQUENCE)


def finds_one_twice(store: DictStore, effect: Any) -> StoreInput:
    answer = store.answer(effect)
    if isinstance(answer, ExpiredFound):
        return evolve(answer, records=[answer.records[0]] * len(answer.records))
    return answer


def loads_another(store: DictStore, effect: Any) -> StoreInput:
    return Loaded(effect.token, record_of("x")) if isinstance(effect, Load) else store.answer(effect)


@pytest.mark.parametrize(
    "mistake",
    [
        finds_one_twice,
        loads_another,
        leaves_out_too_much,
        tells_no_next_expiry,
        says_there_is_no_more,
        lists_nothing,
    ],
)
def test_a_wrong_store_does_not(mistake: Wrong) -> None:
    sequence = [*SEQUENCE, Save(record_of("c", version=3, ttl_ms=9), None, 7), FindExpired(NOW + 9, 1, 8)]
    sequence.append(FindExpired(NOW + 9, 9, 9))
    with pytest.raises(BrokenPromise):
        compare(asking(mistake), sequence)


# -- several nodes -------------------------------------------------------------------------------------


@define(eq=False)
class DictNodes:
    """Two nodes over one dictionary, or over two, as may be."""

    store: DictStore = field(factory=DictStore)
    other: DictStore | None = None
    deaf_to: tuple[type, ...] = ()
    here_name: str = "here"
    lost: bool = False
    news: list[Any] = field(factory=list)

    def here(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        answers = [self.store.answer(effect) for effect in effects]
        for effect, answer in zip(effects, answers, strict=True):
            if isinstance(answer, Saved):
                match effect:
                    case Save(record=record):
                        self.news.append(RecordChanged(record))
                    case Delete(task_id=task_id):
                        self.news.append(RecordRemoved(task_id))
        return answers

    def there(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        return [(self.other or self.store).answer(effect) for effect in effects]

    def heard(self) -> Sequence[Any]:
        if self.lost:
            self.news += [WorkLost(one.task_id, "here") for one in self._named()]
        told, self.news = [one for one in self.news if not isinstance(one, self.deaf_to)], []
        return told

    def lose(self) -> None:
        self.lost = True

    def _named(self) -> list[TaskRecord]:
        return [one for one in self.store.records.values() if one.node == "here"]


@pytest.mark.parametrize("check", NODE_CHECKS, ids=str)
def test_right_nodes_pass(check: Check[Nodes]) -> None:
    check(DictNodes())


@pytest.mark.parametrize(
    ("nodes", "caught"),
    [
        (
            lambda: DictNodes(other=DictStore(), deaf_to=(RecordChanged,)),
            {
                "any_node_reads_what_another_saved",
                "nodes_compare_versions_with_each_other",
                "changes_elsewhere_are_told",
                "many_changes_are_all_told",
                "the_work_of_a_lost_node_is_told",
            },
        ),
        (
            lambda: DictNodes(deaf_to=(RecordRemoved,)),
            {"removals_elsewhere_are_told", "many_changes_are_all_told"},
        ),
        (lambda: DictNodes(deaf_to=(WorkLost,)), {"the_work_of_a_lost_node_is_told"}),
    ],
)
def test_wrong_nodes_are_caught(nodes: Callable[[], Nodes], caught: set[str]) -> None:
    broken = set()
    for check in NODE_CHECKS:
        try:
            check(nodes())
        except BrokenPromise:
            broken.add(check.name)
    assert broken == caught
