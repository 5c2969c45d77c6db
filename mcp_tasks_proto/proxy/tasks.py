"""``tasks/get``, ``tasks/update`` and ``tasks/cancel`` of callers (PRX.7, PRX.10, PRX.11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define

from mcp_tasks_proto.errors import ErrorObject, invalid_params, unknown_task
from mcp_tasks_proto.proxy.advertise import Advertisements
from mcp_tasks_proto.proxy.bindings import Purpose
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.desk import Desk, KnownTask, Lookup
from mcp_tasks_proto.proxy.errors import trouble
from mcp_tasks_proto.proxy.fetching import Fetching
from mcp_tasks_proto.proxy.promoting import Promotions
from mcp_tasks_proto.proxy.upstreams import Answer
from mcp_tasks_proto.proxy.views import Seen
from mcp_tasks_proto.wire.schema import ParamsError, UpdateTaskParams, structure

__all__ = ["TaskRequests"]


@define(eq=False, repr=False, kw_only=True)
class TaskRequests:
    """What callers ask about their tasks."""

    desk: Desk
    fetching: Fetching
    promotions: Promotions
    advertisements: Advertisements

    def get(self, exchange: Exchange) -> None:
        """Tell how a task stands: its end if that is kept, else what the upstream says now (PRX.13)."""
        self._find(exchange, Purpose.READ, self._get)

    def update(self, exchange: Exchange) -> None:
        """Carry answers up (PRX.10)."""
        try:
            responses = structure(UpdateTaskParams, exchange.request.params).input_responses
        except ParamsError as problem:
            # An id that is no string is as unknown as any other (GET.2).
            named = isinstance(exchange.request.params.get("taskId"), str)
            error = invalid_params(str(problem)) if named else unknown_task()
            return self.advertisements.refuse(exchange, error)
        return self._find(exchange, Purpose.READ, partial(self._update, responses))

    def cancel(self, exchange: Exchange) -> None:
        """Pass a wish to cancel on. It is acknowledged, and no status is made up (PRX.11)."""
        self._find(exchange, Purpose.CANCEL, self._cancel)

    def _find(
        self, exchange: Exchange, purpose: Purpose, then: Callable[[Exchange, KnownTask], None]
    ) -> None:
        def found(task: Lookup) -> None:
            if not exchange.open:
                return
            if isinstance(task, KnownTask):
                then(exchange, task)
            elif task is None:
                self.advertisements.refuse(exchange, unknown_task())
            else:
                self.desk.callers.fail(exchange, trouble(task))

        self.desk.look_up(
            exchange.request.params.get("taskId"),
            principal=exchange.principal,
            access=exchange.access,
            purpose=purpose,
            then=found,
        )

    def _settle(self, exchange: Exchange, outcome: Seen | ErrorObject | Mapping[str, Any]) -> None:
        if exchange.open:
            told = outcome.view if isinstance(outcome, Seen) else outcome
            self.desk.callers.settle(exchange, told)

    def _get(self, exchange: Exchange, task: KnownTask) -> None:
        if task.snapshot is not None:
            self.desk.note(task.binding, task.snapshot.status, polled=True)
            return self._settle(exchange, task.snapshot.view)
        if task.binding.promoted:
            return self._settle(exchange, self.promotions.poll(task.binding))
        # In 2025-11-25 questions are requests of their own, and no view has them.
        settle = partial(self._settle, exchange)
        return self.fetching.fetch(task.binding, settle, polled=True, needs_requests=not exchange.legacy)

    def _update(self, responses: Mapping[str, Any], exchange: Exchange, task: KnownTask) -> None:
        if task.snapshot is not None or task.binding.promoted or not responses:
            return self._settle(exchange, {})  # there is nothing that any of them could answer
        return self.fetching.answer(
            task.binding,
            responses,
            exchange.capabilities,
            lambda error: self._settle(exchange, error or {}),
        )

    def _cancel(self, exchange: Exchange, task: KnownTask) -> None:
        if task.snapshot is not None:
            return self._settle(exchange, {})
        if task.binding.promoted:
            return self.promotions.cancel(task.binding, lambda error: self._settle(exchange, error or {}))

        def answered(answer: Answer) -> None:
            if answer.result is None:
                self._settle(exchange, self.fetching.refusal(task.binding, answer))
            else:
                self._settle(exchange, {})

        return self.fetching.request(task.binding, "tasks/cancel", {}, answered)
