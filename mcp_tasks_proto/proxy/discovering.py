"""Asking upstreams what they are; whoever needs it at the same time waits for the same answer (PRX.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.proxy.discovery import Discovery, DiscoveryCache, read_discovery
from mcp_tasks_proto.proxy.errors import Trouble
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.proxy.upstreams import Answer, Target, UpstreamRequests

__all__ = ["Discoveries", "Found"]

Found = Discovery | Trouble
"""What an upstream is, or why nobody knows."""


@define(eq=False, repr=False, kw_only=True)
class _Asked:
    """One discovery under way."""

    target: Target
    asked_at_ms: int
    waiting: list[Callable[[Found], None]]
    discovered: Mapping[str, Any] = field(factory=dict)
    pages: list[Mapping[str, Any]] = field(factory=list)
    outdated: bool = False
    """Whether it was contradicted, or the settings changed, while it was under way."""


@define(eq=False, repr=False, kw_only=True)
class Discoveries:
    """What is known of the upstreams, and what is being asked."""

    shared: Shared
    upstreams: UpstreamRequests
    _cache: DiscoveryCache = field(init=False)
    _under_way: dict[Target, _Asked] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._cache = DiscoveryCache(self.shared.limits.discoveries)

    def known(self, target: Target) -> Discovery | None:
        """Return what an upstream is, if that is known."""
        return self._cache.get(target.upstream, target.authorization, self.shared.now)

    def want(self, target: Target, then: Callable[[Found], None]) -> None:
        """Call ``then`` with what an upstream is: at once, if that is known."""
        known = self.known(target)
        if known is not None:
            return then(known)
        asked = self._under_way.get(target)
        if asked is not None and not asked.outdated:
            asked.waiting.append(then)
            return None
        asked = _Asked(target=target, asked_at_ms=self.shared.now, waiting=[then])
        self._under_way[target] = asked
        return self._send(asked, "server/discover", {}, self._discovered)

    def last(self, target: Target) -> Discovery | None:
        """Return what an upstream was when it was last asked, however long ago; ``None``: nobody knows."""
        return self._cache.last(target.upstream, target.authorization)

    def drop(self, target: Target) -> None:
        """Forget what the upstream has contradicted."""
        self._cache.drop(target.upstream, target.authorization)
        asked = self._under_way.get(target)
        if asked is not None:
            asked.outdated = True

    def drop_all(self, upstream: str | None = None) -> None:
        """Forget what is known of an upstream, or of all of them."""
        self._cache.drop_all(upstream)
        for asked in self._under_way.values():
            asked.outdated |= upstream in (None, asked.target.upstream)

    def settings_changed(self) -> None:
        """Forget everything: other settings are in force, and another bound may be."""
        self.drop_all()
        self._cache = DiscoveryCache(self.shared.limits.discoveries)

    def _send(
        self,
        asked: _Asked,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[_Asked, Mapping[str, Any]], None],
    ) -> None:
        def answered(answer: Answer) -> None:
            if answer.result is not None:
                return then(asked, answer.result)
            return self._conclude(asked, answer.trouble or Trouble.REFUSED)

        self.upstreams.send_again(asked.target, method, params, answered, capabilities={})

    def _discovered(self, asked: _Asked, result: Mapping[str, Any]) -> None:
        asked.discovered = result
        capabilities = result.get("capabilities")
        if isinstance(capabilities, Mapping) and "tools" in capabilities:
            return self._send(asked, "tools/list", {}, self._listed)
        return self._read(asked)

    def _listed(self, asked: _Asked, page: Mapping[str, Any]) -> None:
        asked.pages.append(page)
        cursor = page.get("nextCursor")
        if isinstance(cursor, str) and len(asked.pages) < self.shared.limits.tool_pages:
            return self._send(asked, "tools/list", {"cursor": cursor}, self._listed)
        return self._read(asked)

    def _read(self, asked: _Asked) -> None:
        shared = self.shared
        found = read_discovery(
            asked.discovered,
            asked.pages,
            version=shared.settings.versions[0],
            most_tools=shared.limits.tools,
        )
        if found is not None and not asked.outdated:
            target = asked.target
            self._cache.put(target.upstream, target.authorization, found, asked.asked_at_ms)
        self._conclude(asked, Trouble.INVALID if found is None else found)

    def _conclude(self, asked: _Asked, found: Found) -> None:
        if self._under_way.get(asked.target) is asked:  # and not a newer one, since this is outdated
            del self._under_way[asked.target]
        for then in asked.waiting:
            then(found)
