"""What is known of the upstreams, for how long, and for whom (PRX.2).

A discovery is what ``server/discover`` and all pages of ``tools/list`` said under one authorization. It is
kept for its ``ttlMs``; where the upstream says that all see the same, it serves all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from mcp_tasks_proto.proxy.decision import Era
from mcp_tasks_proto.settings import TaskSupport
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.wire.http import HeaderParameter, header_parameters

__all__ = ["Discovery", "DiscoveryCache", "UpstreamTool", "read_discovery", "read_tools"]


@frozen(kw_only=True)
class UpstreamTool:
    """One tool, as its upstream lists it."""

    name: str
    definition: Mapping[str, Any]
    support: TaskSupport
    """What a legacy upstream says of tasks; of a modern one, optional."""
    parameters: tuple[HeaderParameter, ...] = ()
    """Its arguments that are mirrored into headers (HTTP.3)."""


@frozen(kw_only=True)
class Discovery:
    """What one upstream is, as one authorization sees it."""

    era: Era
    tasks: bool
    """Whether it advertises tasks, of its own era."""
    capabilities: Mapping[str, Any]
    tools: Mapping[str, UpstreamTool]
    ttl_ms: int
    """How long it may be kept, from when it was asked for."""
    public: bool
    """Whether every authorization sees the same."""


def read_discovery(
    discovered: Mapping[str, Any], pages: list[Mapping[str, Any]], *, version: str, most_tools: int
) -> Discovery | None:
    """Read the result of ``server/discover`` and the pages of ``tools/list``; ``None``: they make no sense.

    The upstream is modern if it serves ``version``, and legacy if all it serves is legacy; then its tasks are
    the legacy capability, and each tool says whether it takes them.
    """
    versions, capabilities = discovered.get("supportedVersions"), discovered.get("capabilities")
    if not isinstance(versions, list) or not isinstance(capabilities, Mapping):
        return None
    if version in versions:
        era, tasks = Era.MODERN, _advertises(capabilities)
    elif LEGACY_VERSION in versions:
        era, tasks = Era.LEGACY, _advertises_legacy(capabilities)
    else:
        return None
    tools: dict[str, UpstreamTool] = {}
    for page in pages:
        tools |= {tool.name: tool for tool in read_tools(page, era)}
    if len(tools) > most_tools:
        return None
    parts = [discovered, *pages]
    return Discovery(
        era=era,
        tasks=tasks,
        capabilities=capabilities,
        tools=tools,
        ttl_ms=min(_ttl(part) for part in parts),
        public=all(part.get("cacheScope") == "public" for part in parts),
    )


def read_tools(page: Mapping[str, Any], era: Era) -> list[UpstreamTool]:
    """Return the usable tools of a page: named, and with header annotations that are allowed (HTTP.3)."""
    listed = page.get("tools")
    tools = []
    for definition in listed if isinstance(listed, list) else ():
        if not isinstance(definition, Mapping) or not isinstance(definition.get("name"), str):
            continue
        try:
            parameters = header_parameters(definition.get("inputSchema"))
        except ValueError:
            continue
        support = TaskSupport.OPTIONAL if era is Era.MODERN else _support(definition)
        tools.append(
            UpstreamTool(
                name=definition["name"], definition=definition, support=support, parameters=parameters
            )
        )
    return tools


def _advertises(capabilities: Mapping[str, Any]) -> bool:
    extensions = capabilities.get("extensions")
    return isinstance(extensions, Mapping) and isinstance(extensions.get(TASKS_EXTENSION), Mapping)


def _advertises_legacy(capabilities: Mapping[str, Any]) -> bool:
    value: Any = capabilities
    for name in ("tasks", "requests", "tools", "call"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return isinstance(value, Mapping)


def _support(definition: Mapping[str, Any]) -> TaskSupport:
    """Return what a legacy tool says; one that says nothing forbids tasks."""
    execution = definition.get("execution")
    said = execution.get("taskSupport") if isinstance(execution, Mapping) else None
    return next((support for support in TaskSupport if support.value == said), TaskSupport.FORBIDDEN)


def _ttl(part: Mapping[str, Any]) -> int:
    ttl_ms = part.get("ttlMs")
    return max(0, ttl_ms) if type(ttl_ms) is int else 0


@define(eq=False, repr=False)
class DiscoveryCache:
    """Discoveries by upstream and authorization; the oldest makes room for a new one."""

    _most: int
    _kept: dict[tuple[str, str | None], tuple[int, Discovery]] = field(init=False, factory=dict)
    """With ``None`` for an authorization: what is the same for all of them."""

    def get(self, upstream: str, authorization: str, now: int) -> Discovery | None:
        """Return what is known and still fresh."""
        for key in ((upstream, authorization), (upstream, None)):
            until, discovery = self._kept.get(key, (now, None))
            if now < until:
                return discovery
        return None

    def last(self, upstream: str, authorization: str) -> Discovery | None:
        """Return what was last known, be it stale."""
        keys = ((upstream, authorization), (upstream, None))
        found = [self._kept[key] for key in keys if key in self._kept]
        return max(found, key=lambda kept: kept[0])[1] if found else None

    def put(self, upstream: str, authorization: str, discovery: Discovery, asked_at_ms: int) -> None:
        """Keep a discovery, fresh for its time, counted from when it was asked for."""
        key = (upstream, None if discovery.public else authorization)
        self._kept.pop(key, None)
        if len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (asked_at_ms + discovery.ttl_ms, discovery)

    def drop(self, upstream: str, authorization: str) -> None:
        """Forget what the upstream itself has contradicted."""
        self._kept.pop((upstream, authorization), None)
        self._kept.pop((upstream, None), None)

    def drop_all(self, upstream: str | None = None) -> None:
        """Forget what is known of an upstream, or of all of them."""
        for key in [key for key in self._kept if upstream in (None, key[0])]:
            del self._kept[key]
