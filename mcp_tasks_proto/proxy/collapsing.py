"""Collapse: a task for a caller who takes none, as rounds of input of one call (PRX.17).

The task is bound as any other, but its handle is hidden in the ``requestState`` of the rounds. A round ends
when the task asks for input, when it ends, or, with nothing to ask, when it has taken a while: then the
caller comes again with the state alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from attrs import define

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy.adopting import Adoptions
from mcp_tasks_proto.proxy.bindings import Binding, Purpose
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.desk import Desk, KnownTask, Lookup
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.fetching import Fetching, seen_of
from mcp_tasks_proto.proxy.rounds import STALE_STATE, Round, Rounds
from mcp_tasks_proto.proxy.views import Seen
from mcp_tasks_proto.wire.jsonrpc import parse_error_object

__all__ = ["Collapsing", "Watch"]


@define(eq=False, repr=False, kw_only=True)
class Watch:
    """One round under way."""

    exchange: Exchange
    binding: Binding
    until_ms: int
    first: bool
    """Whether the caller has no state yet to come back with."""


@define(eq=False, repr=False, kw_only=True)
class Collapsing:
    """Runs the rounds of collapsed calls."""

    desk: Desk
    fetching: Fetching
    rounds: Rounds
    adoptions: Adoptions

    def begin(self, exchange: Exchange, binding: Binding) -> None:
        """Run the first round of a call that has become a task."""
        self._watch(exchange, binding, first=True)

    def resume(self, exchange: Exchange, round_: Round) -> None:
        """Run the next round, with the answers of the last one."""

        def found(task: Lookup) -> None:
            if not exchange.open:
                return
            if isinstance(task, KnownTask):
                self._go_on(exchange, task, round_)
            else:
                self.desk.callers.fail(exchange, trouble(task) if task else STALE_STATE)

        self.desk.look_up(
            round_.handle,
            principal=exchange.principal,
            access=exchange.access,
            purpose=Purpose.ROUND,
            then=found,
        )

    def _go_on(self, exchange: Exchange, task: KnownTask, round_: Round) -> None:
        if task.snapshot is not None:
            return self._conclude(exchange, seen_of(task.snapshot))
        if not round_.answers:
            return self._watch(exchange, task.binding, first=False)

        def answered(error: ErrorObject | None) -> None:
            if not exchange.open:
                return
            if error is not None:
                self.desk.callers.fail(exchange, error)
            else:
                self._watch(exchange, task.binding, first=False)

        return self.fetching.answer(task.binding, round_.answers, exchange.capabilities, answered)

    def _watch(self, exchange: Exchange, binding: Binding, *, first: bool) -> None:
        shared = self.desk.shared
        watch = Watch(
            exchange=exchange,
            binding=binding,
            until_ms=shared.now + shared.limits.collapse_ms,
            first=first,
        )
        exchange.abandoned = partial(self._left, watch)
        self.due(watch)

    def due(self, watch: Watch) -> None:
        """Ask how the task stands."""
        self.fetching.fetch(watch.binding, partial(self._seen, watch), polled=False)

    def _seen(self, watch: Watch, seen: Seen | ErrorObject) -> None:
        exchange, shared = watch.exchange, self.desk.shared
        if not exchange.open:
            return None
        interval_ms = shared.limits.poll_floor_ms
        if isinstance(seen, Seen):
            if seen.status is not Status.WORKING:
                return self._tell(watch, seen)
            interval_ms = seen.poll_interval_ms
        elif seen not in _PASSING:
            return self.desk.callers.fail(exchange, seen)
        if shared.now >= watch.until_ms:
            return self.rounds.ask(exchange, {}, handle=watch.binding.handle)
        return shared.timers.set(watch, min(watch.until_ms, shared.now + interval_ms))

    def _tell(self, watch: Watch, seen: Seen) -> None:
        if seen.status is Status.INPUT_REQUIRED:
            requests = seen.view["inputRequests"]
            return self.rounds.ask(watch.exchange, requests, handle=watch.binding.handle)
        return self._conclude(watch.exchange, seen)

    def _conclude(self, exchange: Exchange, seen: Seen) -> None:
        """End the call as its task has ended."""
        outcome: Any = trouble(Trouble.COLLAPSED_CANCELLED)
        if seen.status is Status.COMPLETED:
            outcome = seen.view["result"]
        elif seen.status is Status.FAILED:
            outcome = parse_error_object(seen.view["error"])
        self.desk.callers.settle(exchange, outcome)

    def _left(self, watch: Watch) -> None:
        """The caller has gone; one that has no state can never come back to this task."""
        self.desk.shared.timers.clear(watch)
        if watch.first:
            self.adoptions.discard(watch.binding)


_PASSING: Final = tuple(trouble(one) for one in (Trouble.UNAVAILABLE, Trouble.ELSEWHERE))
"""What may be better the next time that is looked."""
