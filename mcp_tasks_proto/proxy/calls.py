"""Calls: ``tools/call`` and what else is passed on to an upstream, from the decision to the reply (PRX).

A call goes up once. It goes up again only where it is certain that it was not carried out: it was not sent,
or it was refused for want of a capability (PRX.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import (
    ErrorCode,
    ErrorObject,
    invalid_params,
    limit_reached,
    method_not_found,
    missing_capability,
)
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy.adopting import Adoptions
from mcp_tasks_proto.proxy.bindings import Binding, find_tool
from mcp_tasks_proto.proxy.call import Call, failure, needs_tasks
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.carrying import meta_for_upstream, params_for_upstream
from mcp_tasks_proto.proxy.collapsing import Collapsing
from mcp_tasks_proto.proxy.decision import Era, Kind, Row, find_row, judge_answer
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.discovering import Found
from mcp_tasks_proto.proxy.discovery import Discovery, UpstreamTool
from mcp_tasks_proto.proxy.effects import DropTask
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.input_gate import declarable
from mcp_tasks_proto.proxy.orphans import Orphans
from mcp_tasks_proto.proxy.promoting import Promotions
from mcp_tasks_proto.proxy.results import ResultCache, fingerprint, limited
from mcp_tasks_proto.proxy.rounds import Rounds
from mcp_tasks_proto.proxy.settings import Upstream
from mcp_tasks_proto.proxy.upstreams import Answer, Target
from mcp_tasks_proto.proxy.views import View, created, own_view
from mcp_tasks_proto.settings import TaskSupport
from mcp_tasks_proto.vocabulary import PROGRESS_TOKEN, TASKS_EXTENSION
from mcp_tasks_proto.wire.http import check_parameter_headers
from mcp_tasks_proto.wire.jsonrpc import Notification, is_id
from mcp_tasks_proto.wire.reading import CALL_MEMBERS, misfit
from mcp_tasks_proto.wire.schema import CallToolParams, ParamsError, structure, timestamp

__all__ = ["Call", "Calls"]


@define(eq=False, repr=False, kw_only=True)
class Calls:
    """The calls of an engine; each of them is known to whoever it waits for."""

    desk: Desk
    orphans: Orphans
    rounds: Rounds
    adoptions: Adoptions
    collapsing: Collapsing
    promotions: Promotions
    results: ResultCache = field(init=False, factory=ResultCache)

    def forget_results(self) -> None:
        """Other settings are in force: keep nothing that was, nor what is still to come of them (PRX.2)."""
        self.results = ResultCache()

    # -- down to the decision ----------------------------------------------------------------------------

    def call_tool(self, exchange: Exchange) -> None:
        """Take in a ``tools/call``."""
        desk = self.desk
        params = exchange.request.params
        try:
            if "name" not in params or misfit(params, CALL_MEMBERS):
                structure(CallToolParams, params)  # which says what is wrong
        except ParamsError as problem:
            return desk.callers.fail(exchange, invalid_params(str(problem)))
        name = params["name"]
        found = find_tool(desk.shared.settings, exchange.access, name)
        if found is None:
            return desk.callers.fail(exchange, _unknown_tool(name))
        return self._begin(exchange, *found)

    def forward(self, exchange: Exchange) -> None:
        """Take in a request of a method that the only upstream may know."""
        self._begin(exchange, self.desk.shared.settings.upstreams[0], None)

    def _begin(self, exchange: Exchange, upstream: Upstream, tool: str | None) -> None:
        authorization = exchange.access.authorization(upstream.name)
        if authorization is None:
            return self.desk.callers.fail(exchange, method_not_found(exchange.request.method))
        round_ = self.rounds.open(exchange)
        if isinstance(round_, ErrorObject):
            return self.desk.callers.fail(exchange, round_)
        if round_.handle is not None:
            return self.collapsing.resume(exchange, round_)
        call = Call(
            exchange=exchange,
            upstream=upstream,
            target=Target(upstream.name, authorization, upstream.identity),
            round=round_,
            tool=tool,
        )
        found = self.desk.discoveries.known(call.target)
        if found is None:
            return self.desk.discoveries.want(call.target, partial(self._discovered, call))
        return self._decide(call, found)

    def _discovered(self, call: Call, found: Found) -> None:
        """Go on after a while; the settings may be others by now (PRX.7)."""
        exchange, desk = call.exchange, self.desk
        if not exchange.open:
            return None
        if isinstance(found, Trouble):
            return desk.callers.fail(exchange, trouble(found))
        if call.tool is not None:
            name = exchange.request.params["name"]
            if find_tool(desk.shared.settings, exchange.access, name) != (call.upstream, call.tool):
                return desk.callers.fail(exchange, _unknown_tool(name))
        return self._decide(call, found)

    def _decide(self, call: Call, found: Discovery) -> None:
        exchange, desk = call.exchange, self.desk
        call.declared = self._declarable(exchange, found)
        if call.round.answers and not any(kind in call.declared for kind in INPUT_KINDS):
            call.round = evolve(call.round, answers={})  # nothing can have been asked (PRX.10)
        if call.tool is not None:
            name = exchange.request.params["name"]
            call.definition = found.tools.get(call.tool)
            if call.definition is None:
                return desk.callers.fail(exchange, _unknown_tool(name))
            if call.definition.parameters and exchange.http is not None:
                arguments = exchange.request.params.get("arguments")
                mismatch = check_parameter_headers(exchange.http, call.definition.parameters, arguments)
                if mismatch is not None:
                    return desk.callers.fail(exchange, mismatch)
            call.row = self._row(call, call.definition, found)
            if call.definition.support is TaskSupport.REQUIRED and not exchange.may_use_tasks:
                # It would be refused, whatever the upstream's era calls that (NEG.5).
                if call.row is not Row.COLLAPSE:
                    return desk.callers.fail(exchange, missing_capability())
                call.declares = True
        call.declares |= call.row.declares
        fingerprinted = self._fingerprint(call)
        if fingerprinted is not None:
            kept = self.results.get(call.target, fingerprinted, desk.shared.now)
            if kept is not None:
                return desk.callers.reply(exchange, kept)
            call.cached = self.results, fingerprinted
        return self._send(call)

    def _fingerprint(self, call: Call) -> str | None:
        """Return what a result is kept under; on the task path, and in a round of input, none is (PRX.3)."""
        request, shared = call.exchange.request, self.desk.shared
        if call.declares or request.method not in shared.settings.cached_methods:
            return None
        if "inputResponses" in request.params or "requestState" in request.params:
            return None
        params = params_for_upstream(request, call.tool, call.round, shared.limits)
        return fingerprint(request.method, params, meta_for_upstream(request, shared.limits), call.declared)

    def _row(self, call: Call, tool: UpstreamTool, found: Discovery) -> Row:
        settings, exchange = self.desk.shared.settings, call.exchange
        name = exchange.request.params["name"]
        return find_row(
            caller=Era.LEGACY if exchange.legacy else Era.MODERN,
            declares=exchange.may_use_tasks,
            profile_allows=settings.profile(exchange.access).allows_tasks(name),
            gate_open=settings.tasks and call.upstream.tasks and exchange.tasks_enabled,
            upstream=found.era,
            upstream_tasks=found.tasks,
            tool=tool.support,
            promotion=settings.promote_after_ms is not None,
            collapse=settings.collapse,
            bridging=settings.bridging,
        )

    def _declarable(self, exchange: Exchange, found: Discovery) -> dict[str, Any]:
        """Return what the upstream hears beside tasks: caller, proxy and upstream in agreement (PRX.1)."""
        settings = self.desk.shared.settings
        declared = declarable(exchange.capabilities, settings.input_kinds)
        offered, served = exchange.capabilities.get("extensions"), found.capabilities.get("extensions")
        if settings.extensions and isinstance(offered, dict) and isinstance(served, dict):
            common = [name for name in offered if name in settings.extensions and name in served]
            if common:
                declared["extensions"] = {name: offered[name] for name in common}
        return declared

    # -- up ------------------------------------------------------------------------------------------------

    def _send(self, call: Call) -> None:
        exchange, shared = call.exchange, self.desk.shared
        capabilities = dict(call.declared)
        if call.declares:
            capabilities["extensions"] = {**capabilities.get("extensions", {}), TASKS_EXTENSION: {}}
        wanted = exchange.request.params["_meta"].get(PROGRESS_TOKEN)
        call.attempts += 1
        exchange.abandoned = partial(self._left, call)
        call.request = self.desk.upstreams.send(
            call.target,
            exchange.request.method,
            params_for_upstream(exchange.request, call.tool, call.round, shared.limits),
            partial(self._answered, call),
            capabilities=capabilities,
            meta=meta_for_upstream(exchange.request, shared.limits),
            wants_progress=is_id(wanted) and exchange.takes_notifications,
            heard=partial(self._heard, call),
            parameters=() if call.definition is None else call.definition.parameters,
            slow=True,
            task_path=call.declares,
        )
        after_ms = shared.settings.promote_after_ms
        if after_ms is not None and call.row.promotes and exchange.open and call.attempts == 1:
            shared.timers.set(call, shared.now + after_ms)

    def _heard(self, call: Call, notification: Notification) -> None:
        if call.exchange.open:
            params = self.desk.rewriter().params(notification.params)
            self.desk.callers.relay(call.exchange, notification, params)

    def _left(self, call: Call) -> None:
        """The caller has gone: its request goes with it (CAN.7)."""
        self.desk.shared.timers.clear(call)
        self.desk.upstreams.stop(call.request)

    # -- down again ------------------------------------------------------------------------------------------

    def _answered(self, call: Call, answer: Answer) -> None:
        if call.promoted is not None:
            return self._end_promoted(call, call.promoted, answer)
        if call.promoting:
            call.early = answer
            return None
        not_sent = answer.trouble is Trouble.UNAVAILABLE and not answer.sent and not answer.final
        if not_sent and call.attempts < self.desk.shared.limits.attempts:
            return self._send(call)
        return self._settle(call, answer)

    def _settle(self, call: Call, answer: Answer) -> None:
        """Answer the caller."""
        self.desk.shared.timers.clear(call)
        call.exchange.abandoned = _nothing
        if answer.result is not None:
            return self._take_result(call, answer.result)
        if answer.error is None:
            return self.desk.callers.fail(call.exchange, failure(call, answer))
        if call.row is Row.COLLAPSE and not call.declares and needs_tasks(answer.error):
            call.declares = True
            return self._send(call)
        if call.tool is None and answer.error.code == ErrorCode.METHOD_NOT_FOUND:
            return self.desk.callers.fail(call.exchange, method_not_found(call.exchange.request.method))
        return self.desk.callers.fail(call.exchange, self._error(answer.error))

    def _error(self, error: ErrorObject) -> ErrorObject:
        if error.code == ErrorCode.METHOD_NOT_FOUND:
            return trouble(Trouble.REFUSED)
        return self.desk.rewriter().error(error)

    def _take_result(self, call: Call, result: Mapping[str, Any]) -> None:
        exchange, desk = call.exchange, self.desk
        match judge_answer(exchange.request.method, result, declared=call.declares):
            case Kind.TASK:
                collapsed = call.row is Row.COLLAPSE
                self.adoptions.adopt(
                    exchange,
                    call.upstream,
                    call.target,
                    result,
                    tool=exchange.request.params["name"],
                    declared=call.declared,
                    collapsed=collapsed,
                    then=partial(self._collapse if collapsed else self._hand_out, exchange),
                )
            case Kind.COMPLETE:
                self._complete(call, desk.rewriter().result(result))
            case Kind.INPUT_REQUIRED:
                self.rounds.relay(exchange, call.declared, result)
            case Kind.UNASKED_TASK:
                desk.discoveries.drop(call.target)
                self.orphans.cancel(call.target, result.get("taskId"))
                desk.callers.fail(exchange, trouble(Trouble.UNASKED_TASK))
            case _:
                desk.callers.fail(exchange, trouble(Trouble.INVALID))

    def _complete(self, call: Call, result: dict[str, Any]) -> None:
        """Answer with a result: an ordinary one is kept, and must not be too long (PRX.3)."""
        exchange, shared = call.exchange, self.desk.shared
        if call.row is Row.BRIDGE:
            return self._bridge(call, result)
        if not call.declares and shared.settings.response_bytes is not None:
            cut = limited(exchange.request.method, result, shared.settings.response_bytes)
            if cut is None:
                return self.desk.callers.fail(exchange, trouble(Trouble.TOO_LONG))
            result = cut
        if call.cached is not None and not call.declares:
            cache, fingerprinted = call.cached
            cache.put(call.target, fingerprinted, result, shared.now, shared.limits)
        return self.desk.callers.reply(exchange, result)

    def _bridge(self, call: Call, result: dict[str, Any]) -> None:
        """A legacy caller asked for a task, and there is a result at once: it becomes one of the proxy's own,
        which has ended (LEG.3)."""
        exchange, desk = call.exchange, self.desk
        if len(self.promotions) >= desk.shared.limits.promoted:
            return desk.callers.fail(exchange, limit_reached("promoted"))
        self.promotions.binding += 1

        def bound(outcome: Binding | Trouble | str) -> None:
            self.promotions.binding -= 1
            if isinstance(outcome, Binding) and exchange.open:
                self._hand_out_own(exchange, outcome)
                self.promotions.started(outcome, None)
                self.promotions.completed(outcome, result)
            elif isinstance(outcome, Binding):
                desk.shared.out.append(DropTask(outcome.handle))
            elif exchange.open:
                problem = trouble(outcome) if isinstance(outcome, Trouble) else limit_reached(outcome)
                desk.callers.fail(exchange, problem)

        return desk.bind(self._own_binding(call), access=exchange.access, status=Status.WORKING, then=bound)

    def _hand_out_own(self, exchange: Exchange, binding: Binding) -> None:
        view = own_view(binding, Status.WORKING, binding.bound_at_ms)
        self.desk.callers.reply(exchange, {**view, "resultType": "task"})

    def _hand_out(self, exchange: Exchange, binding: Binding, view: View) -> None:
        desk = self.desk
        result = created(view, binding, partial(desk.rewriter, binding), desk.shared.settings)
        desk.callers.reply(exchange, result)

    def _collapse(self, exchange: Exchange, binding: Binding, _: View) -> None:
        self.collapsing.begin(exchange, binding)

    # -- promotion -------------------------------------------------------------------------------------------

    def promotion_due(self, call: Call) -> None:
        """A call has taken long: make it a task of the proxy's own, if there is room for one (PRX.16)."""
        if len(self.promotions) >= self.desk.shared.limits.promoted:
            return
        call.promoting = True
        self.promotions.binding += 1
        bound = partial(self._bound, call)
        binding = self._own_binding(call)
        self.desk.bind(binding, access=call.exchange.access, status=Status.WORKING, then=bound)

    def _own_binding(self, call: Call) -> Binding:
        """Return the binding of a task of the proxy's own, which a call becomes."""
        shared, exchange = self.desk.shared, call.exchange
        return Binding(
            handle="",
            upstream=call.upstream.name,
            identity=call.upstream.identity,
            upstream_task_id=None,
            authorization=call.target.authorization,
            principal=exchange.principal,
            project=exchange.access.project,
            tool=exchange.request.params["name"],
            declared={},
            created_at=timestamp(shared.now),
            bound_at_ms=shared.now,
            ttl_ms=min(shared.limits.keep_ms, shared.settings.retention.payload_ms),
            keep_ms=shared.limits.keep_ms,
            poll_interval_ms=shared.limits.poll_floor_ms,
            node=shared.node,
        )

    def _bound(self, call: Call, outcome: Binding | Trouble | str) -> None:
        call.promoting = False
        self.promotions.binding -= 1
        if not call.exchange.open:
            if isinstance(outcome, Binding):
                self.desk.shared.out.append(DropTask(outcome.handle))
            return
        if isinstance(outcome, Binding) and call.early is None:
            call.promoted = outcome
            self.promotions.started(outcome, call.request)
            self._hand_out_own(call.exchange, outcome)
        elif call.early is not None:
            if isinstance(outcome, Binding):
                self.desk.shared.out.append(DropTask(outcome.handle))
            self._settle(call, call.early)

    def _end_promoted(self, call: Call, binding: Binding, answer: Answer) -> None:
        """The answer to a promoted call is the end of its task."""
        result = answer.result
        if result is None:
            error = failure(call, answer) if answer.error is None else self._error(answer.error)
            return self.promotions.failed(binding, error)
        match judge_answer("tools/call", result, declared=False):
            case Kind.COMPLETE:
                return self.promotions.completed(binding, result)
            case Kind.INPUT_REQUIRED:
                return self.promotions.failed(binding, trouble(Trouble.PROMOTED_INPUT))
            case Kind.UNASKED_TASK:
                self.orphans.cancel(call.target, result.get("taskId"))
                return self.promotions.failed(binding, trouble(Trouble.UNASKED_TASK))
        return self.promotions.failed(binding, trouble(Trouble.INVALID))


def _nothing() -> None:
    """Do nothing: what waits for the store finds out by itself that the caller has gone."""


def _unknown_tool(name: str) -> ErrorObject:
    return invalid_params(f"unknown tool: {name}")


INPUT_KINDS: Final = ("elicitation", "sampling", "roots")
"""Client capabilities that let an upstream ask."""
