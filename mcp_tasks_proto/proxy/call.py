"""One call on its way through, and what is to be read in how it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.decision import Row
from mcp_tasks_proto.proxy.discovery import UpstreamTool
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.results import ResultCache
from mcp_tasks_proto.proxy.rounds import Round
from mcp_tasks_proto.proxy.settings import Upstream
from mcp_tasks_proto.proxy.upstreams import Answer, Target
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION

__all__ = ["Call", "failure", "needs_tasks"]


@define(eq=False, repr=False, kw_only=True)
class Call:
    """One request on its way through."""

    exchange: Exchange
    upstream: Upstream
    target: Target
    round: Round
    tool: str | None
    """The upstream's own name of the tool; ``None``: it is not about a tool."""
    row: Row = Row.UNDECLARED
    definition: UpstreamTool | None = None
    declared: Mapping[str, Any] = field(factory=dict)
    """The kinds of input, and other extensions, that the upstream hears of."""
    declares: bool = False
    """Whether the upstream heard of tasks."""
    cached: tuple[ResultCache, str] | None = None
    """Where its result is kept, beside what else was answered under the settings with which it went up, and
    under what; ``None``: nothing is, and nothing was looked for."""
    attempts: int = 0
    request: int | None = None
    promoting: bool = False
    """Whether a binding for it is being saved."""
    promoted: Binding | None = None
    early: Answer | None = None
    """What the upstream answered while that was under way."""


def failure(call: Call, answer: Answer) -> ErrorObject:
    """Return what to tell a caller whose call has no answer; only a tool does what must not be done twice."""
    reason = answer.trouble or Trouble.INVALID
    if call.tool is not None and answer.sent and reason in (Trouble.UNAVAILABLE, Trouble.INVALID):
        return trouble(Trouble.OUTCOME_UNKNOWN)
    return trouble(reason)


def needs_tasks(error: ErrorObject) -> bool:
    """Whether this is the -32021 of a tool that cannot do without a task (NEG.5)."""
    match error:
        case ErrorObject(
            code=ErrorCode.MISSING_CLIENT_CAPABILITY,
            data={"requiredCapabilities": {"extensions": dict(extensions)}},
        ):
            return TASKS_EXTENSION in extensions
    return False
