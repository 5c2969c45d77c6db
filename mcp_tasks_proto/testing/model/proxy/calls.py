"""Is this call on the task path? The table of the contract, row by row, and what a failed call is told."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.testing.model.answers import ErrorAnswer
from mcp_tasks_proto.testing.model.forms import may_be_asked
from mcp_tasks_proto.testing.model.proxy.parts import Said

__all__ = ["ASKED", "Path", "call_failed", "in_the_way", "kind_of", "kinds_of", "row_of"]


@frozen(kw_only=True)
class Path:
    """Where a call goes."""

    row: str
    """The row of the table."""
    upstream: str
    authorization: str
    tool: str
    """The upstream's own name of it."""
    declares: bool
    """Whether the upstream hears that tasks are understood."""
    kinds: Set[str]
    """The kinds of input that it hears of (PRX.1, PRX.10)."""


def row_of(
    *,
    legacy_caller: bool = False,
    declares: bool,
    profile_allows: bool = True,
    gate_open: bool = True,
    legacy_upstream: bool = False,
    upstream_tasks: bool = True,
    tool: str = "optional",
    promotes: bool = False,
    collapses: bool = False,
    bridges: bool = False,
) -> str:
    """Return the row that applies. ``declares``: of a legacy caller, that it sends ``params.task``."""
    to_be_had = gate_open and upstream_tasks and tool != "forbidden"
    if legacy_caller:
        return "bridge" if declares and bridges and profile_allows and to_be_had else "hidden"
    if not declares:
        return "collapse" if collapses and profile_allows and to_be_had else "undeclared"
    if not profile_allows:
        return "ordinary"
    if to_be_had:
        return "translate" if legacy_upstream else "relay"
    return "promote" if promotes else "ordinary"


# -- kinds of input ----------------------------------------------------------------------------------------

_FORM: Final[Mapping[str, Any]] = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
ASKED: Final[Mapping[str, Mapping[str, Any]]] = {
    "form": {"method": "elicitation/create", "params": _FORM},
    "url": {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://a.b"}},
    "sampling": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    "roots": {"method": "roots/list"},
}
"""One request of each kind."""


def kinds_of(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """Return the kinds of input that these client capabilities declare."""
    return frozenset(kind for kind, request in ASKED.items() if may_be_asked(request, capabilities))


def kind_of(request: Mapping[str, Any]) -> str:
    """Return the kind of an input request."""
    if request["method"] == "elicitation/create":
        return "url" if request["params"].get("mode") == "url" else "form"
    return "roots" if request["method"] == "roots/list" else "sampling"


# -- what is told where there is no answer -----------------------------------------------------------------

RETRYABLE: Final[Mapping[str, bool]] = {
    "upstream_unavailable": True,
    "store_unavailable": True,
    "outcome_unknown": False,
}
PROXYS_FAULT: Final = (-32700, -32600, -32020, -32022)
"""Errors that find fault with how the proxy speaks, which no caller can mend."""


def in_the_way(reason: str) -> ErrorAnswer:
    """Return the -32603 with a reason of the proxy's."""
    data: dict[str, Any] = {"reason": reason}
    if reason in RETRYABLE:
        data["retryable"] = RETRYABLE[reason]
    return ErrorAnswer(code=-32603, data=data)


def call_failed(said: Said) -> ErrorAnswer:
    """What the caller of a tool is told whose upstream did not give a result (PRX.4)."""
    if said.error is not None:
        if said.error["code"] in (*PROXYS_FAULT, -32601):
            return in_the_way("upstream_refused")
        return ErrorAnswer(
            code=said.error["code"], data=said.error.get("data"), names=str(said.error["message"])
        )
    if said.problem == "refused":
        return in_the_way("upstream_refused")
    return in_the_way("outcome_unknown" if said.sent else "upstream_unavailable")
