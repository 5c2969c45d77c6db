"""Who calls, what an upstream says, and what is remembered of a task, as the reference model has them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.testing.model.tasks import ENDED, ModelCaller

__all__ = ["ModelBinding", "ModelDiscovery", "ModelEnd", "ProxyCaller", "Said"]


@frozen(kw_only=True)
class ProxyCaller(ModelCaller):
    """Who asks, what the request says of itself, and what its caller may use at this moment (PRX.7)."""

    project: str | None = None
    authorizations: Mapping[str, str] = field(factory=dict)
    """Upstream -> the name of the caller's authorization there; one that is missing does not exist for it."""
    tools: Set[str] | None = None
    """Those that may be called, as callers name them; ``None``: all."""
    task_tools: Set[str] | None = None
    """Those whose calls may become tasks; ``None``: all."""
    api_key: bool = False

    def may_call(self, tool: str) -> bool:
        """Whether the caller's profile has this tool."""
        return self.tools is None or tool in self.tools

    def may_have_tasks(self, tool: str) -> bool:
        """Whether it lets the tool's calls become tasks."""
        return self.task_tools is None or tool in self.task_tools


@frozen(kw_only=True)
class ModelDiscovery:
    """What an upstream said of itself to one authorization."""

    tasks: bool = True
    """Whether it advertises tasks, of its own era."""
    tools: Mapping[str, str] = field(factory=dict)
    """Its tools, by its own names -> ``required``, ``optional`` or ``forbidden``."""
    legacy: bool = False
    until_ms: int
    """Known until then (PRX.2)."""


@frozen(kw_only=True)
class Said:
    """What came of a request to an upstream: a result, an error, or a problem."""

    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    """``code``, ``message``, and perhaps ``data``."""
    problem: str = ""
    """``unavailable``: there is no answer. ``invalid``: it cannot be read. ``refused``: an HTTP status alone
    finds fault with the request."""
    sent: bool = True
    """Whether the request may have reached the upstream (PRX.4)."""


@frozen(kw_only=True)
class ModelBinding:
    """One handle, and what stands behind it."""

    handle: str
    upstream: str
    task_id: str | None
    """The upstream's own; ``None``: the task is the proxy's (PRX.16)."""
    authorization: str
    owner: str | None
    project: str | None
    tool: str
    """As its caller names it."""
    kinds: Set[str] = frozenset()
    """The kinds of input that its upstream heard of (PRX.10)."""
    created_at: Any
    bound_at_ms: int
    ttl_ms: int
    """What its caller was told first."""
    node: str | None = None
    """Where the call runs whose task is the proxy's."""
    hidden: bool = False
    """Whether it is the task of a call in rounds (PRX.17)."""


@frozen(kw_only=True)
class ModelEnd:
    """The end of a task, as it is kept."""

    view: Mapping[str, Any]
    stored_at_ms: int

    def __attrs_post_init__(self) -> None:
        assert self.view["status"] in ENDED, "only ends are kept (PRX.13)"
