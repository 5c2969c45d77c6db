"""Promotion: an upstream call that takes long becomes a task of the proxy's own (PRX.16).

The task has no upstream id: the call itself goes on under this engine, and its answer is the end of the task.
The binding is durable before the caller hears of it. It names the node, so that the host can tell, with
``WorkLost``, that the call has gone with its node; then the task is honestly failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import LoadFailed, WorkLost
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.fetching import Fetching
from mcp_tasks_proto.proxy.inputs import TaskLoaded
from mcp_tasks_proto.proxy.orphans import backoff
from mcp_tasks_proto.proxy.views import Seen, own_view

__all__ = ["Ending", "Promotions"]


@define(eq=False, repr=False, kw_only=True)
class Ending:
    """How a promoted call ended, on its way to the store: tried until it is there, for it was earned."""

    binding: Binding
    seen: Seen
    failures: int = 0


@define(eq=False, repr=False)
class Promotions:
    """The promoted calls that run here."""

    desk: Desk
    fetching: Fetching
    binding: int = field(init=False, default=0)
    """Calls whose binding is being saved."""
    _running: dict[str, int | None] = field(init=False, factory=dict)
    """Upstream requests, by handle."""
    _ending: set[str] = field(init=False, factory=set)
    """Handles of those whose end is not kept yet."""

    def __len__(self) -> int:
        """How many there are."""
        return self.binding + len(self._running) + len(self._ending)

    def started(self, binding: Binding, request: int | None) -> None:
        """A call goes on as this task."""
        self._running[binding.handle] = request

    def poll(self, binding: Binding) -> Mapping[str, Any]:
        """Return the view of a task whose end is not kept: it is working, here or on another node."""
        self.desk.note(binding, Status.WORKING, polled=True)
        return self.seen(binding).view

    def seen(self, binding: Binding) -> Seen:
        """Return how a task stands whose end is not kept."""
        view = own_view(binding, Status.WORKING, binding.bound_at_ms)
        return Seen(status=Status.WORKING, view=view, requests={}, last_updated_at=view["lastUpdatedAt"])

    def completed(self, binding: Binding, result: Mapping[str, Any]) -> None:
        """The call was answered."""
        self._end(binding, Status.COMPLETED, result=self.desk.rewriter().inner_result(result))

    def failed(self, binding: Binding, error: ErrorObject) -> None:
        """The call came to nothing."""
        self._end(binding, Status.FAILED, error=error)

    def cancel(self, binding: Binding, then: Callable[[ErrorObject | None], None]) -> None:
        """Stop a call: its task is cancelled, unless it has ended already.

        On another node the call goes on, and what comes of it is too late: the first end stands.
        """
        handle = binding.handle
        if handle in self._ending:
            return then(None)
        here = handle in self._running
        self.desk.upstreams.stop(self._running.pop(handle, None))
        ending = Ending(binding=binding, seen=self._ended(binding, Status.CANCELLED))
        if here:
            self._ending.add(handle)

        def kept(seen: Seen | None) -> None:
            if here:
                self._kept(ending, seen)
            then(None if seen is not None else trouble(Trouble.STORE))

        return self.fetching.keep(binding, ending.seen, kept)

    def lost(self, fact: WorkLost) -> None:
        """A node has gone: what ran there has failed. If the store fails now, the host will tell again."""
        self.desk.asking.load(fact.task_id, partial(self._found_lost, fact))

    def _found_lost(self, fact: WorkLost, loaded: TaskLoaded | LoadFailed) -> None:
        binding = None if isinstance(loaded, LoadFailed) else loaded.binding
        if binding is None or binding.node != fact.node or not binding.promoted:
            return
        if fact.task_id in self._running or fact.task_id in self._ending:
            return
        seen = self._ended(binding, Status.FAILED, error=trouble(Trouble.LOST))
        self.fetching.keep(binding, seen, lambda _: None)

    def due(self, ending: Ending) -> None:
        """Try to keep an end, or try again."""
        self.fetching.keep(ending.binding, ending.seen, partial(self._kept, ending))

    def _end(self, binding: Binding, status: Status, **payload: Any) -> None:
        del self._running[binding.handle]
        ending = Ending(binding=binding, seen=self._ended(binding, status, **payload))
        self._ending.add(binding.handle)
        self.due(ending)

    def _kept(self, ending: Ending, seen: Seen | None) -> None:
        shared = self.desk.shared
        if seen is not None:
            self._ending.remove(ending.binding.handle)
        else:
            ending.failures += 1
            shared.timers.set(ending, shared.now + backoff(shared, ending.failures))

    def _ended(self, binding: Binding, status: Status, **payload: Any) -> Seen:
        # Later than any view of it that was told.
        updated_at_ms = max(self.desk.shared.now, binding.bound_at_ms + 1)
        view = own_view(binding, status, updated_at_ms, **payload)
        return Seen(status=status, view=view, requests={}, last_updated_at=view["lastUpdatedAt"])
