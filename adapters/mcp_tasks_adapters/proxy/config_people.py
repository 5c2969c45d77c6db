"""Projects, members and programs of a configuration, and the credentials by which they are told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mcp_tasks_adapters.proxy.callers import Caller
from mcp_tasks_adapters.proxy.config_secrets import Secrets
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, StdioUpstream
from mcp_tasks_adapters.proxy.toml_tables import Table, listed
from mcp_tasks_proto.proxy import Directory, Member, Program, Project, Role, Upstream
from mcp_tasks_proto.proxy.settings import DEFAULT_PROFILE

__all__ = ["People"]

IS_DELETED: Final = "this project is deleted: take it out here as well"


class People:
    """Reads them. Who may do what is then for the :class:`~mcp_tasks_proto.proxy.Directory` to say."""

    def __init__(
        self,
        top: Table,
        upstreams: Sequence[HttpUpstream | StdioUpstream],
        profiles: Sequence[str],
        secrets: Secrets,
    ) -> None:
        self._top = top
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._names = list(top.table("upstreams").content)  # those with a mistake among them
        self._settings: Sequence[Upstream] = [upstream.settings for upstream in upstreams]
        self._profiles = profiles
        self._secrets = secrets
        self.deleted: list[str] = []
        """Projects of which nothing is to be kept (HIS.4)."""
        self._declared = False
        """Whether there are projects, be they deleted: then nobody is to have everything."""
        self._callers: dict[str, Caller] = {}
        self._tables: dict[str, Table] = {}
        """Of credentials, by digest."""

    def read(self) -> tuple[Directory, Mapping[str, Caller] | None]:
        """Return everybody, and callers by the digest of their credential; ``None``: everybody is let in."""
        top = self._top
        projects = self._projects()
        member_tables, key_tables = dict(top.tables("members")), dict(top.tables("api_keys"))
        members = {name: self._member(table, projects) for name, table in member_tables.items()}
        programs = {name: self._program(table, projects) for name, table in key_tables.items()}
        for name in programs:
            if name in members:
                key_tables[name].note("a member has this name: the one could use the other's tasks")
        directory = Directory(
            projects=projects,
            members=members,
            programs={name: program for name, program in programs.items() if name not in members},
        )
        for name, table in member_tables.items():
            for row in table.rows("tokens"):
                self._token(row, name, directory)
            table.close()
        for name, table in key_tables.items():
            self._api_key(table, name, directory)
            table.close()
        if self._declared and not members and not programs:
            top.note("nobody is let in: add [members.NAME] or [api_keys.NAME]", "projects")
        return directory, self._callers if members or programs else None

    def _projects(self) -> dict[str, Project]:
        """Read all projects but those that are deleted, of which only the name is left."""
        projects = {}
        for name, table in self._top.tables("projects"):
            self._declared = True
            if table.flag("deleted", default=False):
                self.deleted.append(name)
            else:
                projects[name] = self._project(table)
        return projects

    def _project(self, table: Table) -> Project:
        upstreams = table.choices("upstreams", self._names, "upstream")
        project = Project(
            label=table.text("label"),
            profile=self._profile(table) or DEFAULT_PROFILE,
            upstreams=None if upstreams is None else frozenset(upstreams),
            authorizations=self._authorizations(table),
        )
        table.close()
        return project

    def _member(self, table: Table, projects: Mapping[str, Project]) -> Member:
        known = {role.value: role for role in Role}
        said = table.values("roles", [*projects, *self.deleted], "project")
        for project, role in said.items():
            if project in self.deleted:
                table.note(IS_DELETED, "roles", project)
            if role not in known:
                table.note(f"a role is {listed(list(known), 'or')}", "roles", project)
        if (self._declared or "roles" in table) and not table.content.get("roles"):
            table.note('has no role in a project: write roles = { PROJECT = "team" }, or "direct"')
        return Member(
            label=table.text("label"),
            roles={project: known[role] for project, role in said.items() if role in known},
            authorizations=self._authorizations(table),
        )

    def _program(self, table: Table, projects: Mapping[str, Project]) -> Program:
        project = table.choice("project", [*projects, *self.deleted], "project")
        if project in self.deleted:
            table.note(IS_DELETED, "project")
        if self._declared and "project" not in table:
            names = listed([*projects, *self.deleted])
            table.note(f"is in no project: write project = with one of {names}")
        return Program(label=table.text("label"), project=project, profile=self._profile(table))

    def _token(self, table: Table, principal: str, directory: Directory) -> None:
        roles = list(directory.members[principal].roles)
        project = table.choice("project", roles, "project with a role of this member's")
        profile, label = self._profile(table), table.text("label")
        if "project" not in table:
            project = roles[0] if len(roles) == 1 else None
            if len(roles) > 1:
                table.note("says no project: its calls are made for one of " + listed(roles))
        access = directory.access(principal, project, self._settings, profile=profile, label=label)
        self._credential(table, None if access is None else Caller(principal, access))
        table.close()

    def _api_key(self, table: Table, principal: str, directory: Directory) -> None:
        access = directory.program_access(principal, self._settings)
        self._credential(table, None if access is None else Caller(principal, access))

    def _credential(self, table: Table, caller: Caller | None) -> None:
        """Note whose a credential is; ``None``: there is a mistake elsewhere."""
        digest = self._secrets.read_digest(table)
        if digest is None:
            return
        if digest in self._tables:
            line = table.document.lines.get(self._tables[digest].path, 0)
            table.note(f"has the same credential as what stands in line {line}")
        self._tables.setdefault(digest, table)
        if caller is not None:
            self._callers.setdefault(digest, caller)

    def _profile(self, table: Table) -> str | None:
        return table.choice("profile", self._profiles, "profile")

    def _authorizations(self, table: Table) -> dict[str, str]:
        """Read which authorization somebody has at which upstream."""
        said = table.values("authorizations", self._names, "upstream")
        for name, authorization in said.items():
            upstream = self._upstreams.get(name)
            problem = None
            if isinstance(upstream, StdioUpstream):
                problem = "a server on stdio knows no authorizations"
            elif upstream is not None and authorization not in upstream.authorizations:
                problem = (
                    f"{name} has no authorization {authorization!r}: "
                    f"add [upstreams.{name}.authorizations.{authorization}]"
                )
            if problem is not None:
                table.note(problem, "authorizations", name)
        return dict(said)
