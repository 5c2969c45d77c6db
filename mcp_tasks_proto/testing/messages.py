"""Modern messages as a well-behaved client would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
)

__all__ = ["request"]


def request(
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    id: str | int = 1,  # noqa: A002 - the wire's own word
    tasks: bool = True,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a request with the ``_meta`` that the core demands.

    ``tasks`` declares the Tasks extension beside ``capabilities``; ``meta`` adds keys to ``_meta``.
    """
    declared = dict(capabilities or {})
    if tasks:
        declared["extensions"] = {**declared.get("extensions", {}), TASKS_EXTENSION: {}}
    carried = {
        PROTOCOL_VERSION: MODERN_VERSION,
        CLIENT_INFO: {"name": "test", "version": "1"},
        CLIENT_CAPABILITIES: declared,
        **(meta or {}),
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": carried}}
