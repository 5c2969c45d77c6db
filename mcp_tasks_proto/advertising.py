"""What ``server/discover`` and ``tools/list`` answer, of a server or a proxy (NEG.9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mcp_tasks_proto.errors import ErrorObject, invalid_params
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION

__all__ = ["Advertised", "discover", "list_tools"]


class Advertised(Protocol):
    """What is to be said of a server or a proxy."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Protocol versions served."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Capabilities beside ``tools`` and the Tasks extension."""

    @property
    def instructions(self) -> str | None:
        """For the client's model."""

    @property
    def discovery_ttl_ms(self) -> int:
        """How long clients may keep what is said here."""

    @property
    def cache_scope(self) -> str:
        """For whom they may keep it."""

    @property
    def page_size(self) -> int:
        """Tools on one page."""


def discover(settings: Advertised, *, tasks_enabled: bool) -> dict[str, Any]:
    """Return the result of ``server/discover`` (NEG.9)."""
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}, **settings.capabilities}
    if tasks_enabled:
        capabilities["extensions"] = {**capabilities.get("extensions", {}), TASKS_EXTENSION: {}}
    result: dict[str, Any] = {
        "supportedVersions": list(settings.versions),
        "capabilities": capabilities,
        "ttlMs": settings.discovery_ttl_ms,
        "cacheScope": settings.cache_scope,
    }
    if settings.instructions is not None:
        result["instructions"] = settings.instructions
    return result


def list_tools(
    settings: Advertised, definitions: Mapping[str, Mapping[str, Any]], params: Mapping[str, Any]
) -> dict[str, Any] | ErrorObject:
    """Return one page of ``tools/list``. A cursor is the name of the tool before the page."""
    names = list(definitions)
    start = 0
    cursor = params.get("cursor")
    if cursor is not None:
        if cursor not in names:
            return invalid_params("cursor is not one that this server gave out, or its tool is gone")
        start = names.index(cursor) + 1
    page = names[start : start + settings.page_size]
    result: dict[str, Any] = {
        "tools": [dict(definitions[name]) for name in page],
        "ttlMs": settings.discovery_ttl_ms,
        "cacheScope": settings.cache_scope,
    }
    if start + len(page) < len(names):
        result["nextCursor"] = page[-1]
    return result
