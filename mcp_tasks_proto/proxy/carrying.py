"""What of a caller's request goes up to the upstream (PRX.1, PRX.8)."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.proxy.rewriting import bounded, passing_meta
from mcp_tasks_proto.proxy.rounds import Round
from mcp_tasks_proto.proxy.settings import ProxyLimits
from mcp_tasks_proto.wire.jsonrpc import Request

__all__ = ["meta_for_upstream", "params_for_upstream"]


def params_for_upstream(
    request: Request, tool: str | None, round_: Round, limits: ProxyLimits
) -> dict[str, Any]:
    """Return params without their ``_meta``: the upstream's own name of the ``tool`` and its own state,
    verbatim answers, and of what is unknown as much as the bounds allow (PRX.8)."""
    params = request.params
    carried: dict[str, Any] = {name: params[name] for name in _KNOWN if name in params}
    if not _TAKEN.issuperset(params):
        others = {name: value for name, value in params.items() if name not in _TAKEN}
        carried |= bounded(others, most_bytes=limits.meta_bytes, depth=limits.meta_depth)
    if tool is not None:
        carried["name"] = tool
    if round_.answers:
        carried["inputResponses"] = dict(round_.answers)
    if round_.upstream_state is not None:
        carried["requestState"] = round_.upstream_state
    return carried


def meta_for_upstream(request: Request, limits: ProxyLimits) -> dict[str, Any]:
    """Return what passes of a request's ``_meta``; the proxy adds what it says for itself (PRX.1)."""
    return passing_meta(request.params["_meta"], most_bytes=limits.meta_bytes, depth=limits.meta_depth)


_KNOWN: Final = ("name", "arguments", "uri", "ref", "argument", "context", "cursor")
"""Params that the methods have, and that are taken as they come."""
_TAKEN: Final = frozenset({*_KNOWN, "_meta", "inputResponses", "requestState"})
"""These, and those of one hop only."""
