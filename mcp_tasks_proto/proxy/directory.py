"""Who belongs where: projects, their members with a role in each, programs with an API key (HIS.3, PRX.7).

A host that knows its people by a list, and asks nobody else, has all answers here: what a caller may do in a
project (:meth:`Directory.access`, :meth:`Directory.program_access`) and what somebody may see of one on a
dashboard (:meth:`Directory.viewer`). Nothing here is a credential: who a caller is, the host has found out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.history import Viewer
from mcp_tasks_proto.proxy.settings import DEFAULT_PROFILE, Access, Upstream

__all__ = ["Directory", "Member", "Program", "Project", "Role"]


class Role(Enum):
    """What somebody is in a project (HIS.3).

    There is no role of an owner: a task belongs to whoever started it, and no role changes that.
    """

    TEAM = "team"
    """A member of its team: reads metadata and timelines, and assigns tasks."""
    DIRECT = "direct"
    """A direct member of the project: reads them."""

    __hash__ = object.__hash__


@frozen(kw_only=True)
class Project:
    """What the calls of one project may reach."""

    label: str | None = None
    """What people call it; its name, if there is none."""
    profile: str = DEFAULT_PROFILE
    """The :class:`~mcp_tasks_proto.proxy.ToolProfile` of callers who have none of their own."""
    upstreams: frozenset[str] | None = None
    """Names of the upstreams that exist for it; ``None``: all of them."""
    authorizations: Mapping[str, str] = field(factory=dict)
    """Upstream -> the name of the project's authorization there; elsewhere it is the proxy's own."""


@frozen(kw_only=True)
class Member:
    """A person."""

    label: str | None = None
    """What the ledger calls them; their principal, if there is none."""
    roles: Mapping[str, Role] = field(factory=dict)
    """Project -> the role in it."""
    authorizations: Mapping[str, str] = field(factory=dict)
    """Upstream -> the name of their own authorization there; elsewhere it is the project's."""


@frozen(kw_only=True)
class Program:
    """Something that calls with an API key, and is nobody in person."""

    label: str | None = None
    project: str | None = None
    """``None``: its tasks are in no project; nobody can look at them."""
    profile: str | None = None
    """``None``: that of the project."""


@frozen(kw_only=True)
class Directory:
    """Everybody, by principal. One without projects gives all its members all upstreams, each for themselves.

    Raises ``ValueError`` where a member and a program have the same principal: the one could use the other's
    tasks (SEC.1).
    """

    projects: Mapping[str, Project] = field(factory=dict)
    members: Mapping[str, Member] = field(factory=dict)
    programs: Mapping[str, Program] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for principal in self.programs:
            if principal in self.members:
                raise ValueError(f"{principal!r} is both a member and a program")

    def role(self, principal: str, project: str) -> Role | None:
        """Return what somebody is in a project; ``None``: nothing, or there is no such project."""
        member = self.members.get(principal)
        return None if member is None or project not in self.projects else member.roles.get(project)

    def projects_of(self, principal: str) -> Sequence[str]:
        """Return the projects that somebody may look at, in the order of the directory."""
        return [project for project in self.projects if self.role(principal, project) is not None]

    def shown_projects(self, principal: str) -> list[dict[str, Any]]:
        """Return the projects that somebody may look at, as JSON, each with what they are there (HIS.3)."""
        return [self._shown(name, self.projects[name], principal) for name in self.projects_of(principal)]

    def shown_project(self, principal: str, project: str) -> dict[str, Any] | None:
        """Return one of these with its members, to whom tasks can be assigned (HIS.2); ``None``: there is no
        such project, or somebody has no role there."""
        if self.role(principal, project) is None:
            return None
        members = [
            {"principal": name, "label": member.label or name, "role": role.value}
            for name, member in self.members.items()
            if (role := self.role(name, project)) is not None
        ]
        return {**self._shown(project, self.projects[project], principal), "members": members}

    def _shown(self, name: str, project: Project, principal: str) -> dict[str, Any]:
        role = self.members[principal].roles[name]
        return {"project": name, "label": project.label or name, "role": role.value}

    def access(
        self,
        principal: str,
        project: str | None,
        upstreams: Sequence[Upstream],
        *,
        profile: str | None = None,
        label: str | None = None,
    ) -> Access | None:
        """Return what a member may do in a project of theirs; ``None``: they have no role there.

        Without a project, a member may use every upstream where the directory has no projects, and nothing
        otherwise. ``profile`` and ``label`` take the place of the project's and the member's.
        """
        member = self.members.get(principal)
        if member is None:
            return None
        if project is None:
            found = None if self.projects else Project()
        else:
            found = None if self.role(principal, project) is None else self.projects[project]
        if found is None:
            return None
        return Access(
            project=project,
            profile=profile or found.profile,
            authorizations=_authorizations(found, member.authorizations, upstreams),
            caller=label or member.label or principal,
        )

    def program_access(self, principal: str, upstreams: Sequence[Upstream]) -> Access | None:
        """Return what a program may do; ``None``: there is none, or its project is gone."""
        program = self.programs.get(principal)
        if program is None:
            return None
        if program.project is None:
            found = None if self.projects else Project()
        else:
            found = self.projects.get(program.project)
        if found is None:
            return None
        return Access(
            project=program.project,
            profile=program.profile or found.profile,
            authorizations=_authorizations(found, {}, upstreams),
            api_key=True,
            caller=program.label or principal,
        )

    def viewer(self, principal: str, project: str, upstreams: Sequence[Upstream]) -> Viewer:
        """Return somebody as they look at one project: for :func:`~mcp_tasks_proto.history.decide_access`.

        Whoever has no role in it is a viewer too, of nothing. A program looks at nothing.
        """
        role = self.role(principal, project)
        access = self.access(principal, project, upstreams)
        authorized = {} if access is None else access.authorizations or {}
        return Viewer(
            principal=principal,
            teams=frozenset({project} if role is Role.TEAM else ()),
            direct=frozenset({project} if role is Role.DIRECT else ()),
            upstreams=frozenset(one.shown_label for one in upstreams if one.name in authorized),
        )


def _authorizations(
    project: Project, own: Mapping[str, str], upstreams: Sequence[Upstream]
) -> Mapping[str, str]:
    """Return the authorization at each upstream that the project has: a member's, its own, the proxy's."""
    return {
        upstream.name: own.get(upstream.name, project.authorizations.get(upstream.name, ""))
        for upstream in upstreams
        if project.upstreams is None or upstream.name in project.upstreams
    }
