"""What a store promises when several nodes share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import evolve

from mcp_tasks_proto.effects import Delete, Save
from mcp_tasks_proto.inputs import RecordChanged, RecordRemoved, WorkLost
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.testing.store_suite.asking import Asker, Check, News, Nodes, expect
from mcp_tasks_proto.testing.store_suite.one_node import NOW, ROOMY, record_of, saves

__all__ = ["NODE_CHECKS"]

Run = Callable[[Nodes, Asker, Asker], None]
"""A check of two nodes, which it asks through the two others."""


def _check(run: Run) -> Check[Nodes]:
    name, promise = run.__name__, run.__doc__ or ""
    return Check(
        name, promise, lambda nodes: run(nodes, Asker(nodes.here, promise), Asker(nodes.there, promise))
    )


@_check
def any_node_reads_what_another_saved(nodes: Nodes, here: Asker, there: Asker) -> None:
    """Rule 1: once it is saved, every node loads it."""
    for version in range(1, 20):
        writer, reader = (here, there) if version % 2 else (there, here)
        writer.save(record_of(version=version), version - 1 or None)
        reader.load("a", record_of(version=version))
    here.delete("a", 19)
    there.load("a", None)


@_check
def nodes_compare_versions_with_each_other(nodes: Nodes, here: Asker, there: Asker) -> None:
    """Rules 2 and 4: versions and quotas are those of all nodes together."""
    here.save(record_of("a"))
    there.conflict(record_of("a"), None, record_of("a"))
    there.refused(record_of("b"), evolve(ROOMY, tasks=1), "tasks")
    there.delete("a", 1)
    here.conflict(record_of("a", version=2), 1, None)
    here.save(record_of("b"), quota=evolve(ROOMY, tasks=1))
    there.find(NOW + 1000, 5, ["b"], None)


@_check
def changes_elsewhere_are_told(nodes: Nodes, here: Asker, there: Asker) -> None:
    """Rule 11: whoever watches a record hears of its newest version."""
    here.save(record_of("a"))
    here.save(record_of("b"))
    nodes.heard()
    here.save(record_of("a", version=2), 1)
    expect(here.promise, RecordChanged(record_of("a", version=2)), _last_heard(nodes, "a"))
    here.save(record_of("a", version=3), 2)
    here.save(record_of("a", version=4), 3)
    expect(here.promise, RecordChanged(record_of("a", version=4)), _last_heard(nodes, "a"))


@_check
def removals_elsewhere_are_told(nodes: Nodes, here: Asker, there: Asker) -> None:
    """Rule 11: whoever watches a record hears when it is gone."""
    here.save(record_of("a"))
    nodes.heard()
    here.save(record_of("a", version=2), 1)
    here.delete("a", 2)
    expect(here.promise, RecordRemoved("a"), _last_heard(nodes, "a"))


@_check
def many_changes_are_all_told(nodes: Nodes, here: Asker, there: Asker) -> None:
    """Rule 11: of every record that changed, however many did."""
    here.all(saves(500))
    nodes.heard()
    here.all([Save(record_of(f"task-{number}", version=2), 1, number) for number in range(250)])
    here.all([Delete(f"task-{number}", 1, number) for number in range(250, 500)])
    newest = {_about(news): type(news) for news in nodes.heard()}
    changed = {f"task-{number}": RecordChanged for number in range(250)}
    removed = {f"task-{number}": RecordRemoved for number in range(250, 500)}
    expect(here.promise, {**changed, **removed}, newest)


@_check
def the_work_of_a_lost_node_is_told(nodes: Nodes, here: Asker, there: Asker) -> None:
    """Rule 12: when a node is gone, the others hear of each record that names it, until it does not."""
    name = nodes.here_name
    for task_id in ("a", "b"):
        here.save(record_of(task_id, node=name))
    here.save(record_of("ended", status=Status.COMPLETED))
    here.save(record_of("unnamed"))
    expect(here.promise, set(), _lost(nodes))
    nodes.lose()
    expect(here.promise, {WorkLost("a", name), WorkLost("b", name)}, _lost(nodes))
    there.save(record_of("a", version=2, status=Status.FAILED), 1)
    _lost(nodes)
    expect(here.promise, {WorkLost("b", name)}, _lost(nodes))
    there.save(record_of("b", version=2, status=Status.FAILED), 1)
    _lost(nodes)
    expect(here.promise, set(), _lost(nodes))


def _lost(nodes: Nodes) -> set[WorkLost]:
    return {news for news in nodes.heard() if isinstance(news, WorkLost)}


def _last_heard(nodes: Nodes, task_id: str) -> News | None:
    heard = [news for news in nodes.heard() if _about(news) == task_id]
    return heard[-1] if heard else None


def _about(news: News) -> str:
    return news.record.task_id if isinstance(news, RecordChanged) else news.task_id


NODE_CHECKS: Final[Sequence[Check[Nodes]]] = (
    any_node_reads_what_another_saved,
    nodes_compare_versions_with_each_other,
    changes_elsewhere_are_told,
    removals_elsewhere_are_told,
    many_changes_are_all_told,
    the_work_of_a_lost_node_is_told,
)
"""What a store promises beside the others when several nodes share it."""
