"""What the proxy remembers of a task that it handed out: the binding of a handle, and who may use it (PRX.7).

A binding never changes. What does change - how the task stands - is the upstream's to say, but for its end,
which is kept beside the binding (:mod:`~mcp_tasks_proto.proxy.snapshots`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from attrs import field, fields, frozen

from mcp_tasks_proto.proxy.settings import SEPARATOR, Access, ProxySettings, Upstream
from mcp_tasks_proto.wire.schema import from_stored, to_stored

__all__ = [
    "Binding",
    "Denial",
    "Purpose",
    "binding_from_json",
    "binding_to_json",
    "check_binding",
    "exposed_name",
    "find_tool",
    "with_handle",
]


@frozen(kw_only=True)
class Binding:
    """One handle, and what stands behind it. As secret as a credential: it names the upstream's task."""

    handle: str
    upstream: str
    """The upstream's name in the settings."""
    identity: str
    """Its :attr:`~mcp_tasks_proto.proxy.settings.Upstream.identity` when the task was made."""
    upstream_task_id: str | None
    """The task's id there; ``None``: a promoted call, whose task is the proxy's own (PRX.16)."""
    authorization: str
    """The name of the authorization under which it was made."""
    principal: str | None
    """Who owns it (SEC.1)."""
    project: str | None
    tool: str
    """As callers see it."""
    declared: Mapping[str, Any]
    """The client capabilities that the upstream heard: what it may ask for (PRX.10)."""
    created_at: str
    """The task's ``createdAt``."""
    bound_at_ms: int
    ttl_ms: int
    """What the caller was told first, counted from :attr:`bound_at_ms`."""
    keep_ms: int
    """How long the handle lives without an end that is kept."""
    poll_interval_ms: int
    """What the caller was told first."""
    node: str | None = None
    """Where a promoted call runs."""
    collapsed: bool = False
    """Whether it is the hidden task of a call in rounds (PRX.17): not for ``tasks/*``."""
    extra: Mapping[str, Any] = field(factory=dict)
    """Fields that a later version of this package wrote; carried along."""

    @property
    def expires_at_ms(self) -> int:
        """From then on the handle reads as unknown, unless an end is kept."""
        return self.bound_at_ms + self.keep_ms

    @property
    def promoted(self) -> bool:
        """Whether the task is the proxy's own."""
        return self.upstream_task_id is None


def with_handle(binding: Binding, handle: str) -> Binding:
    """Return a binding under another handle.

    As ``attrs.evolve`` does, which finds out anew each time what there is to be copied: each task is bound.
    """
    return Binding(**{**{name: getattr(binding, name) for name in _MEMBERS}, "handle": handle})


_MEMBERS: Final = tuple(member.name for member in fields(Binding))


def binding_to_json(binding: Binding) -> dict[str, Any]:
    """Return a binding as JSON; to be encrypted where it is kept."""
    return to_stored(binding)


def binding_from_json(value: Any) -> Binding:
    """Read what :func:`binding_to_json` wrote. Raises ``ValueError`` for anything else."""
    return from_stored(Binding, value, "binding")


# -- who may use it ------------------------------------------------------------------------------------


class Purpose(Enum):
    """What a binding is to be used for."""

    READ = "read"
    """get, update and listen."""
    CANCEL = "cancel"
    """Cancel: it needs less, so that what was started can always be stopped."""
    ROUND = "round"
    """The next round of a call whose task is hidden (PRX.17)."""


class Denial(Enum):
    """Why not; for tests and audits, never for the caller, who reads one text whatever it is."""

    FOREIGN = "another principal's"
    PROJECT = "made for another project"
    UPSTREAM_GONE = "its upstream is not configured any more, or is another server now"
    UPSTREAM_HIDDEN = "the caller has no authorization for its upstream"
    AUTHORIZATION = "the caller has another authorization there now"
    TOOL = "its tool is withdrawn"
    HIDDEN = "it is the hidden task of a call in rounds, which has no handle; or it is not, and has one"


def check_binding(
    binding: Binding, *, principal: str | None, access: Access, settings: ProxySettings, purpose: Purpose
) -> Denial | None:
    """Recheck everything that gives a caller the right to use a task (PRX.7); ``None``: it may.

    Cancel needs ownership and the upstream only.
    """
    upstream = settings.upstream(binding.upstream)
    if binding.principal != principal:
        return Denial.FOREIGN
    if upstream is None or upstream.identity != binding.identity:
        return Denial.UPSTREAM_GONE
    if binding.collapsed is not (purpose is Purpose.ROUND):
        return Denial.HIDDEN
    if purpose is Purpose.CANCEL:
        return None
    if binding.project != access.project:
        return Denial.PROJECT
    authorization = access.authorization(binding.upstream)
    if authorization is None:
        return Denial.UPSTREAM_HIDDEN
    if authorization != binding.authorization:
        return Denial.AUTHORIZATION
    if not settings.profile(access).allows(binding.tool):
        return Denial.TOOL
    return None


# -- names of tools ----------------------------------------------------------------------------------------


def exposed_name(settings: ProxySettings, upstream: Upstream, tool: str) -> str:
    """Return the name by which callers know an upstream's tool (PRX.15)."""
    return tool if settings.single else f"{upstream.name}{SEPARATOR}{tool}"


def find_tool(settings: ProxySettings, access: Access, name: str) -> tuple[Upstream, str] | None:
    """Return the upstream and its own name of a tool that the caller may call; ``None``: there is none."""
    if settings.single:
        upstream, tool = settings.upstreams[0], name
    else:
        first, separator, tool = name.partition(SEPARATOR)
        found = settings.upstream(first) if separator else None
        if found is None:
            return None
        upstream = found
    if access.authorization(upstream.name) is None or not settings.profile(access).allows(name):
        return None
    return upstream, tool
