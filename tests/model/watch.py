"""What an engine of a server or a proxy is held to, at each of its steps.

The world around it hides some faults: a second reply finds nobody any more, and a deadline that has passed
comes a moment later. So each step is looked at here, before anything of it is carried out. A step that breaks
a rule raises ``AssertionError``, which names it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from mcp_tasks_proto import (
    Loaded,
    LoadFailed,
    Reply,
    SaveConflict,
    SaveFailed,
    StartWork,
    Status,
    Step,
)
from mcp_tasks_proto.legacy.proxy import DualEraProxyStep
from mcp_tasks_proto.proxy import ProxyStep
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing import Promises

__all__ = ["Watch"]


@define(eq=False)
class Watch(Promises):
    """One engine of these worlds, where no id is taken twice, and whoever may read a task sees all of it."""

    troubles: int = field(init=False, default=0)
    """How often the store did not do what it was asked."""

    def look(self, fact: object, step: Step | ProxyStep | DualEraProxyStep, now: int) -> None:
        """Look at a step: at what the engine was told, and at what it said to that."""
        at_work = [*self.workers, *(one.task_id for one in step.effects if isinstance(one, StartWork))]
        assert len(set(at_work)) == len(at_work), f"two workers of one task: {at_work}"
        super().look(fact, step, now)
        self.troubles += isinstance(fact, LoadFailed | SaveFailed | SaveConflict)
        if isinstance(fact, Loaded) and fact.record is not None:
            _check_views(fact.record, step.effects)


def _check_views(record: TaskRecord, effects: Sequence[object]) -> None:
    """INP.1, GET.1: who reads a task sees all of what it asks in its record, and nothing else."""
    waits = record.status is Status.INPUT_REQUIRED
    outstanding = {entry.key for entry in record.outstanding} if waits else set()
    for effect in effects:
        match effect:
            case Reply(message={"result": {"resultType": "complete", "status": status} as view}):
                assert status == record.status.value, f"GET.1: {status} for {record.status}"
                asked = view.get("inputRequests", {}).keys()
                assert asked == outstanding, f"INP.1: {asked} for {outstanding}"
