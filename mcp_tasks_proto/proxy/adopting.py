"""An upstream's new task gets a handle, or is cancelled: the one place that decides it (PRX.6, trap 25)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define

from mcp_tasks_proto.errors import limit_reached
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.clamping import clamp_poll_interval, clamp_ttl
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.effects import DropTask
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.orphans import Orphans
from mcp_tasks_proto.proxy.settings import Upstream
from mcp_tasks_proto.proxy.upstreams import Target
from mcp_tasks_proto.proxy.views import STATUSES, View
from mcp_tasks_proto.wire.reading import is_view

__all__ = ["Adoptions"]


@define(eq=False, repr=False)
class Adoptions:
    """Takes tasks over from upstreams."""

    desk: Desk
    orphans: Orphans

    def adopt(
        self,
        exchange: Exchange,
        upstream: Upstream,
        target: Target,
        result: Mapping[str, Any],
        *,
        tool: str,
        declared: Mapping[str, Any],
        collapsed: bool,
        then: Callable[[Binding, View], None],
    ) -> None:
        """Bind the task of a create result; ``then`` is called once that is durable, its caller still there.

        In all other cases the upstream is told to cancel it, and the caller, if there is one, gets an error.
        ``upstream`` is the one that was called, as it was then, be it another one by now (PRX.7).
        """
        view = self._read(result)
        if view is None:
            return self._reject(exchange, target, result.get("taskId"), Trouble.INVALID)
        binding = self._binding(
            exchange, upstream, target, view, tool=tool, declared=declared, collapsed=collapsed
        )

        def bound(outcome: Binding | Trouble | str) -> None:
            if isinstance(outcome, Binding) and exchange.open:
                return then(outcome, view)
            if isinstance(outcome, Binding):
                self.discard(outcome)
                return None
            return self._reject(exchange, target, view["taskId"], outcome)

        return self.desk.bind(binding, access=exchange.access, status=STATUSES[view["status"]], then=bound)

    def discard(self, binding: Binding) -> None:
        """Give up a task whose handle nobody has got."""
        self.desk.shared.out.append(DropTask(binding.handle))
        self.orphans.cancel(
            Target(binding.upstream, binding.authorization, binding.identity), binding.upstream_task_id
        )

    def _read(self, result: Mapping[str, Any]) -> View | None:
        """Read a create result; a payload that it must not have is not looked at (LIFE.3)."""
        if not _PAYLOAD.isdisjoint(result):
            result = {name: value for name, value in result.items() if name not in _PAYLOAD}
        if not is_view(result):
            return None
        return result if 0 < len(result["taskId"]) <= self.desk.shared.limits.upstream_id_chars else None

    def _binding(
        self,
        exchange: Exchange,
        upstream: Upstream,
        target: Target,
        view: View,
        *,
        tool: str,
        declared: Mapping[str, Any],
        collapsed: bool,
    ) -> Binding:
        shared = self.desk.shared
        limits = shared.limits
        return Binding(
            handle="",
            upstream=target.upstream,
            identity=upstream.identity,
            upstream_task_id=view["taskId"],
            authorization=target.authorization,
            principal=exchange.principal,
            project=exchange.access.project,
            tool=tool,
            declared=declared,
            created_at=view["createdAt"],
            bound_at_ms=shared.now,
            ttl_ms=clamp_ttl(view.get("ttlMs"), limits.keep_ms),
            keep_ms=limits.keep_ms,
            poll_interval_ms=clamp_poll_interval(view.get("pollIntervalMs"), limits.poll_floor_ms),
            collapsed=collapsed,
        )

    def _reject(
        self, exchange: Exchange, target: Target, upstream_task_id: Any, problem: Trouble | str
    ) -> None:
        self.orphans.cancel(target, upstream_task_id)
        if exchange.open:
            error = trouble(problem) if isinstance(problem, Trouble) else limit_reached(problem)
            self.desk.callers.fail(exchange, error)


_PAYLOAD: Final = frozenset({"result", "error", "inputRequests", "requestState"})
