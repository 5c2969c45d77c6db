"""What the proxy says of itself and of the tools behind it (PRX.2, PRX.15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from attrs import define, frozen

from mcp_tasks_proto.advertising import discover, list_tools
from mcp_tasks_proto.errors import ErrorObject, method_not_found
from mcp_tasks_proto.proxy.bindings import exposed_name
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.decision import Circumstances, Era, Row, decide
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.discovering import Found
from mcp_tasks_proto.proxy.discovery import Discovery, UpstreamTool
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.settings import ProxySettings, Upstream
from mcp_tasks_proto.proxy.upstreams import Target

__all__ = ["Advertisements"]

_PASSED_ON: Final = {
    "completions": "completion/complete",
    "prompts": "prompts/get",
    "resources": "resources/read",
}
"""Capabilities of an only upstream, and a method without which they are not the proxy's."""


@frozen(kw_only=True)
class _Advertised:
    """What is to be said, for :mod:`mcp_tasks_proto.advertising`."""

    versions: tuple[str, ...]
    capabilities: Mapping[str, Any]
    instructions: str | None
    discovery_ttl_ms: int
    page_size: int
    cache_scope: str = "private"


@define(eq=False, repr=False)
class Advertisements:
    """Answers for all the upstreams that a caller can see; one that is down is left out (PRX.15)."""

    desk: Desk

    def discover(self, exchange: Exchange) -> None:
        """Say what the proxy can do for this caller."""
        self._gather(exchange, self._discover)

    def list_tools(self, exchange: Exchange) -> None:
        """List the tools that this caller may call."""
        self._gather(exchange, self._list_tools)

    def refuse(self, exchange: Exchange, error: ErrorObject) -> None:
        """Refuse a request about a task with ``error``; where the caller is advertised no tasks, its method
        is as unknown as any other (NEG.7).

        No upstream is asked, so that a guess costs what it always costs: what was last heard of all of them
        counts, and one that nothing was heard of may have tasks.
        """
        last = {target.upstream: self.desk.discoveries.last(target) for target in self._targets(exchange)}
        known = {name: one for name, one in last.items() if one is not None}
        if known and len(known) == len(last) and not self._serves_tasks(exchange, known):
            error = method_not_found(exchange.request.method)
        self.desk.callers.fail(exchange, error)

    def _targets(self, exchange: Exchange) -> list[Target]:
        """Return the upstreams that a caller sees."""
        return [
            Target(upstream.name, authorization, upstream.identity)
            for upstream in self.desk.shared.settings.upstreams
            if (authorization := exchange.access.authorization(upstream.name)) is not None
        ]

    def _gather(self, exchange: Exchange, then: Callable[[Exchange, Mapping[str, Found]], None]) -> None:
        """Find out what the upstreams are, and call ``then`` once that is known of all of them."""
        targets = self._targets(exchange)
        found: dict[str, Found] = {}

        def take(target: Target, one: Found) -> None:
            found[target.upstream] = one
            if len(found) == len(targets) and exchange.open:
                then(exchange, {known.upstream: found[known.upstream] for known in targets})

        for target in targets:
            self.desk.discoveries.want(target, partial(take, target))
        if not targets:
            then(exchange, {})

    def _discover(self, exchange: Exchange, found: Mapping[str, Found]) -> None:
        settings = self.desk.shared.settings
        capabilities: dict[str, Any] = {}
        for one in found.values():
            if settings.single and isinstance(one, Discovery):
                capabilities = {
                    name: one.capabilities[name]
                    for name, method in _PASSED_ON.items()
                    if name in one.capabilities and method in settings.methods
                }
        tasks = exchange.tasks_enabled and self._serves_tasks(exchange, found)
        advertised = _advertised(settings, found, capabilities)
        self.desk.callers.reply(exchange, discover(advertised, tasks_enabled=tasks))

    def _serves_tasks(self, exchange: Exchange, found: Mapping[str, Found]) -> bool:
        """Whether some upstream that the caller sees, or promotion, can serve tasks."""
        settings = self.desk.shared.settings
        if exchange.legacy and not settings.bridging:
            return False
        upstreams = {upstream.name: upstream for upstream in settings.upstreams}
        relayed = settings.tasks and any(
            isinstance(one, Discovery) and one.tasks and upstreams[name].tasks
            for name, one in found.items()
            if name in upstreams
        )
        promoted = settings.promote_after_ms is not None and bool(found) and not exchange.legacy
        return relayed or promoted

    def _list_tools(self, exchange: Exchange, found: Mapping[str, Found]) -> None:
        settings = self.desk.shared.settings
        troubles = [one for one in found.values() if isinstance(one, Trouble)]
        if troubles and len(troubles) == len(found):
            return self.desk.callers.fail(exchange, trouble(troubles[0]))
        profile = settings.profile(exchange.access)
        definitions: dict[str, Mapping[str, Any]] = {}
        for upstream in settings.upstreams:
            for name, tool, definition in _tools(settings, upstream, found.get(upstream.name)):
                if profile.allows(name):
                    definitions[name] = definition
                    if exchange.legacy and self._bridges(
                        exchange, found[upstream.name], upstream, name, tool
                    ):
                        definitions[name] = {**definition, "execution": {"taskSupport": tool.support.value}}
        listed = list_tools(_advertised(settings, found, {}), definitions, exchange.request.params)
        return self.desk.callers.settle(exchange, listed)

    def _bridges(
        self, exchange: Exchange, found: Found, upstream: Upstream, name: str, tool: UpstreamTool
    ) -> bool:
        """Whether a legacy caller may have a tool called as a task, which that era's list says of each."""
        settings = self.desk.shared.settings
        assert isinstance(found, Discovery)
        circumstances = Circumstances(
            caller=Era.LEGACY,
            declares=True,
            profile_allows=settings.profile(exchange.access).allows_tasks(name),
            gate_open=settings.tasks and upstream.tasks and exchange.tasks_enabled,
            upstream=found.era,
            upstream_tasks=found.tasks,
            tool=tool.support,
            bridging=settings.bridging,
        )
        return decide(circumstances).row is Row.BRIDGE


def _tools(
    settings: ProxySettings, upstream: Upstream, found: Found | None
) -> list[tuple[str, UpstreamTool, Mapping[str, Any]]]:
    if not isinstance(found, Discovery):
        return []
    tools: list[tuple[str, UpstreamTool, Mapping[str, Any]]] = []
    for tool in found.tools.values():
        name = exposed_name(settings, upstream, tool.name)
        definition = {**tool.definition, "name": name}
        if found.era is Era.LEGACY:
            definition.pop("execution", None)  # a word of that era's; to callers the proxy speaks this one
        tools.append((name, tool, definition))
    return tools


def _advertised(
    settings: ProxySettings, found: Mapping[str, Found], capabilities: Mapping[str, Any]
) -> _Advertised:
    """Return what is to be said; where an upstream is down it may be kept for no time at all."""
    known = [one.ttl_ms if isinstance(one, Discovery) else 0 for one in found.values()]
    return _Advertised(
        versions=settings.versions,
        capabilities=capabilities,
        instructions=settings.instructions,
        discovery_ttl_ms=min([settings.discovery_ttl_ms, *known]),
        page_size=settings.page_size,
    )
