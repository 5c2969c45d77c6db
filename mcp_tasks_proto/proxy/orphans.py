"""Upstream tasks that nobody has a handle of: they are told to stop, as best one can (PRX.6, trap 26)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, evolve, frozen

from mcp_tasks_proto.proxy.errors import Trouble
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.proxy.upstreams import Answer, Target, UpstreamRequests
from mcp_tasks_proto.timers import exponential_backoff
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION

__all__ = ["TASKS_DECLARED", "Orphan", "Orphans", "backoff"]

TASKS_DECLARED: Final[Mapping[str, Any]] = {"extensions": {TASKS_EXTENSION: {}}}
"""Client capabilities that declare tasks and nothing else."""


def backoff(shared: Shared, failures: int) -> int:
    """Return how long to wait after this many failures in a row, in milliseconds."""
    limits = shared.limits
    return exponential_backoff(failures, limits.first_backoff_ms, limits.last_backoff_ms)


@frozen
class Orphan:
    """One of them, and how often its upstream could not be told."""

    target: Target
    upstream_task_id: str
    failures: int = 0


@define(eq=False, repr=False, kw_only=True)
class Orphans:
    """Cancels what nobody waits for, ``ProxyLimits.attempts`` times at most.

    What is not told by then, or when the proxy stops, ends with its own time to live.
    """

    shared: Shared
    upstreams: UpstreamRequests

    def cancel(self, target: Target, upstream_task_id: Any) -> None:
        """Tell an upstream that a task is not wanted. What cannot be the id of one is left alone."""
        longest = self.shared.limits.upstream_id_chars
        if isinstance(upstream_task_id, str) and 0 < len(upstream_task_id) <= longest:
            self.due(Orphan(target, upstream_task_id))

    def due(self, orphan: Orphan) -> None:
        """Tell it, or tell it again."""

        def answered(answer: Answer) -> None:
            failures = orphan.failures + 1
            if answer.trouble is Trouble.UNAVAILABLE and failures < self.shared.limits.attempts:
                again = evolve(orphan, failures=failures)
                self.shared.timers.set(again, self.shared.now + backoff(self.shared, failures))

        params = {"taskId": orphan.upstream_task_id}
        self.upstreams.send(
            orphan.target, "tasks/cancel", params, answered, capabilities=TASKS_DECLARED, task_path=True
        )
