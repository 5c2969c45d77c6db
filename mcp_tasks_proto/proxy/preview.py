"""What a caller would see, as far as that is known without asking any upstream: for whoever sets up a proxy.

It asks the same functions as a call does: of an upstream that is modern, and has or has not tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from mcp_tasks_proto.proxy.bindings import exposed_name
from mcp_tasks_proto.proxy.decision import Circumstances, Decision, Era, decide
from mcp_tasks_proto.proxy.patterns import ANY, may_begin_with
from mcp_tasks_proto.proxy.settings import Access, ProxySettings, Upstream

__all__ = ["UpstreamPreview", "preview"]


@frozen(kw_only=True)
class UpstreamPreview:
    """One upstream, as one caller sees it."""

    upstream: str
    authorization: str
    """Its name; the empty one is the proxy's own."""
    tools: tuple[str, ...]
    """Names and patterns of the tools that may be called, as callers know them. None: it is there in vain."""
    task_tools: tuple[str, ...]
    """Those whose calls may become tasks, as the profile has them."""
    with_tasks: Decision
    """On a call that declares tasks, of one of :attr:`task_tools`, where the upstream advertises tasks."""
    without_tasks: Decision
    """Where it advertises none."""
    undeclared: Decision
    """On a call that does not declare tasks, where the upstream advertises tasks."""


def preview(settings: ProxySettings, access: Access) -> Sequence[UpstreamPreview]:
    """Return the upstreams that exist for a caller, in the order of the settings."""
    return [
        _of(settings, access, upstream, authorization)
        for upstream in settings.upstreams
        if (authorization := access.authorization(upstream.name)) is not None
    ]


def _of(settings: ProxySettings, access: Access, upstream: Upstream, authorization: str) -> UpstreamPreview:
    profile = settings.profile(access)
    tools = _of_upstream(settings, upstream, profile.tools)
    task_tools = _of_upstream(settings, upstream, profile.task_tools)

    def decided(*, declares: bool, upstream_tasks: bool) -> Decision:
        return decide(
            Circumstances(
                caller=Era.MODERN,
                declares=declares,
                profile_allows=bool(task_tools),
                gate_open=settings.tasks and upstream.tasks,
                upstream=Era.MODERN,
                upstream_tasks=upstream_tasks,
                promotion=settings.promote_after_ms is not None,
                collapse=settings.collapse,
            )
        )

    return UpstreamPreview(
        upstream=upstream.name,
        authorization=authorization,
        tools=tools,
        task_tools=task_tools,
        with_tasks=decided(declares=True, upstream_tasks=True),
        without_tasks=decided(declares=True, upstream_tasks=False),
        undeclared=decided(declares=False, upstream_tasks=True),
    )


def _of_upstream(
    settings: ProxySettings, upstream: Upstream, names: frozenset[str] | None
) -> tuple[str, ...]:
    """Return the names and patterns that tools of an upstream may have (PRX.15)."""
    lead = exposed_name(settings, upstream, "")
    if names is None:
        return (f"{lead}{ANY}",)
    return tuple(name for name in sorted(names) if may_begin_with(name, lead))
