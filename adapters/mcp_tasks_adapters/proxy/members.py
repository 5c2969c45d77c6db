"""Who belongs to a project, as a dashboard asks for it: a configuration knows, or a program of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from mcp_tasks_adapters.proxy.callers import Caller
from mcp_tasks_proto.history import Viewer
from mcp_tasks_proto.proxy import Access

__all__ = ["KnowsProjects", "Members"]


class Members(Protocol):
    """Says who somebody is in a project, at this moment: it is asked on each request, and never waits."""

    def viewer(self, caller: Caller, project: str) -> Viewer | None:
        """Return a caller as somebody who looks at a project; ``None``: it is nobody in person.

        Whoever has no part in the project, be it there or not, is a viewer to whom nothing is shown (HIS.3).
        """

    def access(self, caller: Caller, project: str) -> Access | None:
        """Return what a caller may do with their own tasks in a project; ``None``: nothing (PRX.7)."""


@runtime_checkable
class KnowsProjects(Protocol):
    """What :class:`Members` may know beside that: which projects there are, and who belongs to them."""

    def projects(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Return the projects that a caller may look at, as JSON."""

    def project(self, caller: Caller, project: str) -> Mapping[str, Any] | None:
        """Return one that the caller may look at, with its members; ``None``: there is nothing to tell."""
