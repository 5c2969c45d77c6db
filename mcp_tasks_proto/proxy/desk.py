"""Where the parts of a proxy engine meet, and what all of them do with a task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, frozen

from mcp_tasks_proto.history import Observation, opened
from mcp_tasks_proto.inputs import LoadFailed, Saved, SaveFailed, SaveRefused
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy.asking import Asking
from mcp_tasks_proto.proxy.bindings import Binding, Purpose, check_binding, with_handle
from mcp_tasks_proto.proxy.callers import Callers
from mcp_tasks_proto.proxy.discovering import Discoveries
from mcp_tasks_proto.proxy.effects import Note
from mcp_tasks_proto.proxy.errors import Trouble
from mcp_tasks_proto.proxy.inputs import TaskLoaded
from mcp_tasks_proto.proxy.rewriting import Rewriter
from mcp_tasks_proto.proxy.settings import Access
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.proxy.snapshots import Snapshot, is_readable
from mcp_tasks_proto.proxy.upstreams import UpstreamRequests
from mcp_tasks_proto.proxy.views import make_rewriter

__all__ = ["Desk", "KnownTask", "Lookup"]


@frozen
class KnownTask:
    """A task that its caller may use."""

    binding: Binding
    snapshot: Snapshot | None
    """Its end, if it has ended and that is still kept."""


Lookup = KnownTask | Trouble | None
"""``None``: the caller may use no such task, and is told no more than that (GET.2)."""


@define(eq=False, repr=False, kw_only=True)
class Desk:
    """The parts of one engine that deal with the world, and what is common to those that decide."""

    shared: Shared
    callers: Callers
    asking: Asking
    upstreams: UpstreamRequests
    discoveries: Discoveries

    def rewriter(self, binding: Binding | None = None) -> Rewriter:
        """Return what rewrites the messages about a task, or about none."""
        shared = self.shared
        if binding is None:
            return make_rewriter(shared.settings, shared.server_info)
        return make_rewriter(shared.settings, shared.server_info, binding.upstream_task_id, binding.handle)

    def note(self, binding: Binding, status: Status, *, polled: bool) -> None:
        """Note in the ledger how a task stands (HIS.1)."""
        self.shared.out.append(Note(binding.handle, self.observation(status, polled=polled)))

    def observation(self, status: Status, *, polled: bool) -> Observation:
        """Return what is seen now."""
        return Observation(status=status, at_ms=self.shared.now, polled=polled)

    # -- finding a task ----------------------------------------------------------------------------------

    def look_up(
        self,
        handle: Any,
        *,
        principal: str | None,
        access: Access,
        purpose: Purpose,
        then: Callable[[Lookup], None],
    ) -> None:
        """Find the task behind a handle, if the caller may use it now (PRX.7).

        What is wrong with a handle makes no difference: not in the answer, and not in how long it takes. All
        that has the form of a stored handle is looked up; a sealed one is, once it opens for this caller.
        """
        codec = self.shared.codec
        if not isinstance(handle, str) or not codec.well_formed(handle):
            return then(None)
        sealed = codec.open(handle)

        def allowed(binding: Binding) -> bool:
            denial = check_binding(
                binding,
                principal=principal,
                access=access,
                settings=self.shared.settings,
                purpose=purpose,
            )
            return denial is None

        if not codec.stored and (sealed is None or not allowed(sealed)):
            return then(None)
        return self.asking.load(handle, partial(self._loaded, sealed, allowed, then))

    def _loaded(
        self,
        sealed: Binding | None,
        allowed: Callable[[Binding], bool],
        then: Callable[[Lookup], None],
        loaded: TaskLoaded | LoadFailed,
    ) -> None:
        if isinstance(loaded, LoadFailed):
            return then(Trouble.STORE)
        binding = sealed or loaded.binding
        if binding is None or not allowed(binding):
            return then(None)
        shared = self.shared
        kept = loaded.snapshot
        readable = is_readable(kept, shared.settings.retention, shared.now)
        # A task of the proxy's own goes with its end, which nobody else has: it does not work again (LIFE.1).
        removed = loaded.binding is None and not self._may_be_elsewhere(binding)
        over = binding.promoted and (removed or (kept is not None and not readable))
        if over or (not readable and shared.now >= binding.expires_at_ms):
            return then(None)
        return then(KnownTask(binding, kept if readable else None))

    def _may_be_elsewhere(self, binding: Binding) -> bool:
        """Whether a promoted task of which only its sealed handle tells may go on at another proxy (TTL.1).

        It may for as long as its end cannot have been kept for its time and removed.
        """
        settings = self.shared.settings
        deleted = binding.project in settings.deleted_projects
        return not deleted and settings.retention.has_payload(binding.bound_at_ms, self.shared.now)

    # -- remembering a task ------------------------------------------------------------------------------

    def bind(
        self,
        binding: Binding,
        *,
        access: Access,
        status: Status,
        then: Callable[[Binding | Trouble | str], None],
    ) -> None:
        """Give a task a handle and make it durable; ``then`` gets the binding with its handle (PRX.5, PRX.6).

        Or what went wrong: a trouble, or the name of a bound of ``ProxyLimits``.
        """
        self.asking.random(partial(self._drawn, binding, access, status, then))

    def _drawn(
        self,
        binding: Binding,
        access: Access,
        status: Status,
        then: Callable[[Binding | Trouble | str], None],
        random: bytes,
    ) -> None:
        shared = self.shared
        handle = shared.codec.issue(binding, random)
        if len(handle) > shared.limits.handle_chars:
            return then("handle_chars")
        bound = with_handle(binding, handle)
        upstream = shared.settings.upstream(binding.upstream)
        entry = opened(
            handle=handle,
            project=access.project,
            owner=binding.principal,
            caller=access.caller,
            api_key=access.api_key,
            upstream=binding.upstream if upstream is None else upstream.shown_label,
            tool=binding.tool,
            status=status,
            now=shared.now,
        )
        # A promoted call is found by its node when that is lost, so that it is kept whatever the handles.
        kept = bound if shared.codec.stored or bound.promoted else None
        return self.asking.save_binding(kept, entry, lambda answer: then(_outcome(bound, answer)))


def _outcome(bound: Binding, answer: Saved | SaveFailed | SaveRefused) -> Binding | Trouble | str:
    match answer:
        case Saved():
            return bound
        case SaveRefused(limit=limit):
            return limit
    return Trouble.NOT_STORED
