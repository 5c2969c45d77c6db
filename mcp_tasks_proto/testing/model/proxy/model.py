"""The model itself: one method for each thing that can happen at a proxy, or that must be decided there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.testing.model.answers import (
    ACKNOWLEDGED,
    SOME_TEXT,
    UNDECLARED,
    UNKNOWN,
    ErrorAnswer,
    PeerAnswer,
    ResultAnswer,
)
from mcp_tasks_proto.testing.model.forms import answer_fits
from mcp_tasks_proto.testing.model.proxy.calls import Path, in_the_way, kind_of, kinds_of, row_of
from mcp_tasks_proto.testing.model.proxy.ledger import ModelEntry, ModelLedger
from mcp_tasks_proto.testing.model.proxy.parts import (
    ModelBinding,
    ModelDiscovery,
    ModelEnd,
    ProxyCaller,
    Said,
)
from mcp_tasks_proto.testing.model.proxy.views import (
    Clamps,
    clamped_ttl,
    is_view,
    renamed,
    shown_task,
    shown_view,
)
from mcp_tasks_proto.testing.model.tasks import WORKING

__all__ = ["ProxyModel", "complete"]

SEPARATOR: Final = "__"


def complete(view: Mapping[str, Any]) -> ResultAnswer:
    """Return a view as the answer to ``tasks/get``; no answer of a model says ``lastUpdatedAt``."""
    shown = {name: value for name, value in view.items() if name != "lastUpdatedAt"}
    return ResultAnswer({"resultType": "complete", **shown})


@define(eq=False, kw_only=True)
class ProxyModel:
    """A proxy, as its callers, its upstreams and those who look at its ledger see it."""

    upstreams: dict[str, bool]
    """Name -> whether its feature gate is open."""
    gate_open: bool = True
    """The feature gate of the task path as a whole."""
    kinds: frozenset[str] = frozenset({"form"})
    """The kinds of input that upstreams may ask for (PRX.10)."""
    promotes: bool = False
    collapses: bool = False
    bridges: bool = False
    keep_ms: int = 7 * 86_400_000
    poll_floor_ms: int = 500
    payload_ms: int = 86_400_000
    ledger: ModelLedger = field(factory=lambda: ModelLedger(metadata_ms=90 * 86_400_000))
    bindings: dict[str, ModelBinding] = field(factory=dict)
    ends: dict[str, ModelEnd] = field(factory=dict)
    known: dict[tuple[str, str], ModelDiscovery] = field(factory=dict)
    """What each upstream last said of itself to each authorization (PRX.2)."""

    @property
    def clamps(self) -> Clamps:
        """The bounds of the times that callers are told."""
        return self.keep_ms, self.poll_floor_ms

    # -- calls ---------------------------------------------------------------------------------------------

    def place_of(self, name: str, caller: ProxyCaller) -> tuple[str, str] | ErrorAnswer:
        """Return upstream and tool of a call (PRX.15): unknown, withdrawn and out of reach are one."""
        upstream, separator, tool = name.partition(SEPARATOR)
        if len(self.upstreams) == 1:
            upstream, separator, tool = next(iter(self.upstreams)), SEPARATOR, name
        reached = separator and upstream in self.upstreams and upstream in caller.authorizations
        return (upstream, tool) if reached and caller.may_call(name) else unknown_tool(name)

    def fresh(self, upstream: str, authorization: str, now: int) -> ModelDiscovery | None:
        """Return what need not be asked again (PRX.2)."""
        found = self.known.get((upstream, authorization))
        return found if found is not None and now < found.until_ms else None

    def called(
        self, name: str, caller: ProxyCaller, found: ModelDiscovery, *, legacy: bool = False
    ) -> Path | ErrorAnswer:
        """Decide on a call, once it is known what its upstream is: THE table."""
        place = self.place_of(name, caller)
        if isinstance(place, ErrorAnswer):
            return place
        upstream, tool = place
        if tool not in found.tools:
            return unknown_tool(name)
        may_use = caller.declares_tasks and caller.tasks_enabled
        row = row_of(
            legacy_caller=legacy,
            declares=may_use,
            profile_allows=caller.may_have_tasks(name),
            gate_open=self.gate_open and self.upstreams[upstream] and caller.tasks_enabled,
            legacy_upstream=found.legacy,
            upstream_tasks=found.tasks,
            tool=found.tools[tool],
            promotes=self.promotes,
            collapses=self.collapses,
            bridges=self.bridges,
        )
        needs_one = found.tools[tool] == "required" and not may_use
        if needs_one and row != "collapse":
            return UNDECLARED
        return Path(
            row=row,
            upstream=upstream,
            authorization=caller.authorizations[upstream],
            tool=tool,
            declares=needs_one or row in ("relay", "translate", "bridge"),
            kinds=kinds_of(caller.capabilities) & self.kinds,
        )

    def made(
        self,
        handle: str,
        name: str,
        path: Path,
        caller: ProxyCaller,
        result: Mapping[str, Any],
        now: int,
        *,
        since_ms: int | None = None,
    ) -> PeerAnswer:
        """An upstream's new task has this handle, and that is durable (PRX.6, PRX.8, LIFE.3).

        It counts from ``since_ms``, when the upstream had answered, or else from now.
        """
        assert is_view(result), "a task that can be bound"
        binding = ModelBinding(
            handle=handle,
            upstream=path.upstream,
            task_id=result["taskId"],
            authorization=path.authorization,
            owner=caller.principal,
            project=caller.project,
            tool=name,
            kinds=path.kinds,
            created_at=result["createdAt"],
            bound_at_ms=now if since_ms is None else since_ms,
            ttl_ms=clamped_ttl(result.get("ttlMs"), self.keep_ms),
            hidden=path.row == "collapse",
        )
        self._bind(binding, caller, result["status"], now)
        return _created(shown_task(result, binding, self.clamps))

    def promoted(
        self,
        handle: str,
        name: str,
        path: Path,
        caller: ProxyCaller,
        node: str,
        now: int,
        *,
        since_ms: int | None = None,
    ) -> PeerAnswer:
        """A call that takes long has become a task of the proxy's own, and that is durable (PRX.16).

        It counts from ``since_ms``, when it was to become one, or else from now.
        """
        binding = ModelBinding(
            handle=handle,
            upstream=path.upstream,
            task_id=None,
            authorization=path.authorization,
            owner=caller.principal,
            project=caller.project,
            tool=name,
            created_at=SOME_TEXT,
            bound_at_ms=now if since_ms is None else since_ms,
            ttl_ms=min(self.keep_ms, self.payload_ms),
            node=node,
        )
        self._bind(binding, caller, WORKING, now)
        return _created(self.own_view(binding))

    def _bind(self, binding: ModelBinding, caller: ProxyCaller, status: str, now: int) -> None:
        self.bindings[binding.handle] = binding
        self.ledger.entries[binding.handle] = ModelEntry(
            handle=binding.handle,
            project=binding.project,
            owner=binding.owner,
            api_key=caller.api_key,
            upstream=binding.upstream,
            tool=binding.tool,
            created_at_ms=now,
        )
        self.ledger.seen(binding.handle, status)

    def dropped(self, handle: str) -> None:
        """A handle that nobody has got is given up (PRX.6)."""
        del self.bindings[handle], self.ledger.entries[handle]

    # -- who may use a task --------------------------------------------------------------------------------

    def refused(self, caller: ProxyCaller) -> ErrorAnswer | None:
        """NEG.6, NEG.7: the extension is off for this request, or not declared by it."""
        if not caller.tasks_enabled:
            return ErrorAnswer(code=-32601)
        return None if caller.declares_tasks else self._or_unknown_method(UNDECLARED, caller)

    def find(
        self, handle: Any, caller: ProxyCaller, now: int, *, purpose: str = "read"
    ) -> ModelBinding | ErrorAnswer:
        """Find a task for who may use it now (PRX.7); ``purpose`` is ``read``, ``cancel`` or ``round``.

        Forged, expired, foreign, denied and unknown are one.
        """
        binding = self.bindings.get(handle) if isinstance(handle, str) else None
        if binding is None or self._denied(binding, caller, purpose):
            return self._or_unknown_method(UNKNOWN, caller)
        expired = now >= binding.bound_at_ms + self.keep_ms
        over = binding.task_id is None and handle in self.ends  # its end is nowhere else
        if (expired or over) and self.end_of(binding.handle, now) is None:
            return self._or_unknown_method(UNKNOWN, caller)
        return binding

    def _denied(self, binding: ModelBinding, caller: ProxyCaller, purpose: str) -> bool:
        if binding.owner != caller.principal or binding.upstream not in self.upstreams:
            return True
        if binding.hidden is not (purpose == "round"):
            return True
        return purpose != "cancel" and (
            binding.project != caller.project
            or binding.authorization != caller.authorizations.get(binding.upstream)
            or not caller.may_call(binding.tool)
        )

    def _or_unknown_method(self, answer: ErrorAnswer, caller: ProxyCaller) -> ErrorAnswer:
        """Where a caller is advertised no tasks, as last heard, their methods are unknown (NEG.7)."""
        seen = [name for name in self.upstreams if name in caller.authorizations]
        heard = {name: self.known.get((name, caller.authorizations[name])) for name in seen}
        if not seen or None in heard.values() or self.promotes:
            return answer
        served = [found is not None and found.tasks and self.upstreams[name] for name, found in heard.items()]
        return answer if self.gate_open and any(served) else ErrorAnswer(code=-32601)

    # -- how a task stands ---------------------------------------------------------------------------------

    def end_of(self, handle: str, now: int) -> Mapping[str, Any] | None:
        """Return the end of a task, if it is kept and may still be served (PRX.13, HIS.4)."""
        end = self.ends.get(handle)
        return None if end is None or now >= end.stored_at_ms + self.payload_ms else end.view

    def view(self, binding: ModelBinding, said: Said, now: int) -> dict[str, Any] | ErrorAnswer:
        """What its upstream says now of a task whose end is not kept, as its caller is told; or why not.

        An upstream that knows no such task does not undo an end that was kept meanwhile (PRX.13).
        """
        if said.result is not None:
            return shown_view(said.result, binding, self.clamps)
        if said.error is not None and said.error["code"] == -32602:
            kept = self.end_of(binding.handle, now)
            if kept is not None:
                return dict(kept)
        return self.not_told(binding, said, now)

    def not_told(self, binding: ModelBinding, said: Said, now: int) -> ErrorAnswer:
        """What a proven owner is told whose upstream does not tell (the table of errors)."""
        code = None if said.error is None else said.error["code"]
        if code is None:
            return in_the_way(f"upstream_{said.problem}")
        if code == -32602:
            if now >= binding.bound_at_ms + binding.ttl_ms:
                return UNKNOWN
            return in_the_way("upstream_lost_task")
        faults = (-32601, -32021, -32700, -32600, -32020, -32022)
        return in_the_way("upstream_refused" if code in faults else "upstream_unavailable")

    def keep(self, handle: str, view: Mapping[str, Any], now: int, *, polled: bool = False) -> ModelEnd:
        """An end is offered to the store; the first one stands (PRX.13), and is noted once (HIS.1)."""
        end = self.ends.setdefault(handle, ModelEnd(view=view, stored_at_ms=now))
        self.ledger.seen(handle, end.view["status"], polled=polled)
        return end

    def answers(
        self,
        requests: Mapping[str, Mapping[str, Any]],
        responses: Mapping[str, Any],
        caller: ProxyCaller,
    ) -> dict[str, Any] | ErrorAnswer:
        """Which answers of an update go up, verbatim; or why none does (PRX.10, UPD.4)."""
        going_up = {key: responses[key] for key in requests if key in responses}
        if any(kind_of(requests[key]) not in kinds_of(caller.capabilities) for key in going_up):
            return ErrorAnswer(code=-32021)
        for key, response in going_up.items():
            if not answer_fits(requests[key], response):
                return ErrorAnswer(code=-32602, names=key)
        return going_up

    def acknowledged(self, binding: ModelBinding, said: Said, now: int, *, answers: bool) -> PeerAnswer:
        """What is told of an update (``answers``) or a cancellation that went up (PRX.11)."""
        if said.result is not None:
            return ACKNOWLEDGED
        if answers and said.error is not None and said.error["code"] == -32602:
            error = renamed(said.error, binding)  # the task was there: it is about the answers
            return ErrorAnswer(code=-32602, data=error.get("data"), names=error["message"])
        return self.not_told(binding, said, now)

    # -- tasks of the proxy's own --------------------------------------------------------------------------

    def own_view(self, binding: ModelBinding) -> dict[str, Any]:
        """How a promoted call stands whose end is not kept: it runs, here or elsewhere (PRX.16)."""
        return {
            "taskId": binding.handle,
            "status": WORKING,
            "createdAt": binding.created_at,
            "ttlMs": binding.ttl_ms,
            "pollIntervalMs": self.poll_floor_ms,
        }

    def own_end(
        self, binding: ModelBinding, said: Said | None, *, failed: ErrorAnswer | None = None
    ) -> dict[str, Any]:
        """How it ends with the upstream's result, with an error, or, with neither, cancelled."""
        view = self.own_view(binding)
        if failed is not None:
            error = {"code": failed.code, "message": SOME_TEXT}
            if failed.data is not None:
                error["data"] = failed.data
            return {**view, "status": "failed", "statusMessage": SOME_TEXT, "error": error}
        if said is None or said.result is None:
            return {**view, "status": "cancelled"}
        return {**view, "status": "completed", "result": {**said.result, "resultType": "complete"}}

    def lost(self, handle: str, node: str) -> dict[str, Any] | None:
        """A node has gone: how the promoted call that ran there has honestly ended, if one did."""
        binding = self.bindings.get(handle)
        if binding is None or binding.node != node:
            return None
        return self.own_end(binding, None, failed=in_the_way("worker_lost"))

    # -- time ----------------------------------------------------------------------------------------------

    def purge(self, now: int) -> None:
        """Remove what is past its time (HIS.4)."""
        for handle in list(self.ends):
            if self.end_of(handle, now) is None:
                del self.ends[handle]
                if handle in self.bindings and self.bindings[handle].task_id is None:
                    del self.bindings[handle]
        for handle, binding in list(self.bindings.items()):
            if handle not in self.ends and now >= binding.bound_at_ms + self.keep_ms:
                del self.bindings[handle]
        self.ledger.purge(now)


def unknown_tool(name: str) -> ErrorAnswer:
    """Return what is said of a tool that a caller cannot call, whatever the reason."""
    return ErrorAnswer(code=-32602, names=f"unknown tool: {name}")


def _created(view: Mapping[str, Any]) -> ResultAnswer:
    shown = {name: value for name, value in view.items() if name != "lastUpdatedAt"}
    return ResultAnswer({"resultType": "task", **shown})
