"""``mcp-tasks proxy --check``: what each caller of a proxy would see. Nothing is asked of any upstream."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mcp_tasks_adapters.proxy import Caller, HttpUpstream, StdioUpstream
from mcp_tasks_adapters.proxy.config import ProxyConfig
from mcp_tasks_adapters.proxy.config_file import HOUR_MS
from mcp_tasks_proto.history import DAY_MS
from mcp_tasks_proto.proxy import Access, Decision, ProxySettings, Row, UpstreamPreview, preview
from mcp_tasks_proto.vocabulary import LEGACY_VERSION

__all__ = ["describe_config", "render_config"]


def describe_config(config: ProxyConfig) -> dict[str, Any]:
    """Return what a configuration amounts to, as JSON. No credential is in it."""
    settings = config.proxy().settings
    listen, retention = config.listen, settings.retention
    everybody = [Caller(None, settings.access)]
    callers = everybody if config.callers is None else list(config.callers.values())
    return {
        "mistakes": [],
        "name": config.name,
        "listen": {"host": listen.host, "port": listen.port, "path": listen.path},
        "store": config.store.place or "memory:",
        "handles": "stored" if config.handle_keys is None else "sealed",
        "legacy": _legacy(settings),
        "retention": {"payloadMs": retention.payload_ms, "metadataMs": retention.metadata_ms},
        "deletedProjects": sorted(settings.deleted_projects),
        "upstreams": [_upstream(upstream) for upstream in config.upstreams],
        "callers": [_caller(config, settings, caller) for caller in callers],
        "lookingOnly": _lookers(config),
    }


def _legacy(settings: ProxySettings) -> str:
    if not settings.legacy_callers:
        return "refuse"
    return "serve" if settings.bridging else "ignore"


_LEGACY: Final = {"ignore": "everything but tasks", "serve": "tasks as well", "refuse": "nothing"}


def _upstream(upstream: HttpUpstream | StdioUpstream) -> dict[str, Any]:
    where: dict[str, Any]
    if isinstance(upstream, HttpUpstream):
        where = {"url": upstream.url.partition("?")[0]}
    else:
        where = {"command": shlex.join(upstream.command), "found": _is_there(upstream)}
    label = upstream.settings.shown_label
    return {"name": upstream.name, "label": label, **where, "tasks": upstream.tasks, "era": upstream.era}


def _is_there(upstream: StdioUpstream) -> bool:
    """Whether the program of a server on stdio could be started here, as far as can be seen."""
    program, path = upstream.command[0], (upstream.env or {}).get("PATH")
    if os.sep in program:
        program = os.path.join(upstream.cwd or "", program)
    return shutil.which(program, path=path) is not None


def _caller(config: ProxyConfig, settings: ProxySettings, caller: Caller) -> dict[str, Any]:
    access = caller.access
    return {
        "principal": caller.principal,
        "credential": _credential(caller),
        "label": access.caller or None,
        "project": access.project,
        "role": _role(config, caller.principal, access.project),
        "profile": access.profile,
        "upstreams": [_seen(settings, access, one) for one in preview(settings, access)],
    }


def _credential(caller: Caller) -> str:
    if caller.principal is None:
        return "none"
    return "api_key" if caller.access.api_key else "token"


def _role(config: ProxyConfig, principal: str | None, project: str | None) -> str | None:
    if principal is None or project is None:
        return None
    role = config.directory.role(principal, project)
    return None if role is None else role.value


def _seen(settings: ProxySettings, access: Access, one: UpstreamPreview) -> dict[str, Any]:
    return {
        "name": one.upstream,
        "authorization": one.authorization or None,
        "tools": list(one.tools),
        "taskTools": list(one.task_tools),
        "tasks": {
            "offered": one.with_tasks.row.declares or one.with_tasks.row.promotes,
            **_decided(one.with_tasks),
        },
        "upstreamWithoutTasks": _decided(one.without_tasks),
        "callerWithoutTasks": _decided(one.undeclared),
    }


def _decided(decision: Decision) -> dict[str, str]:
    return {"row": decision.row.value, "reason": decision.reason.value}


def _lookers(config: ProxyConfig) -> Sequence[dict[str, str]]:
    """Return the roles in projects for which a member has no token; with another one they look at it."""
    called = {(caller.principal, caller.access.project) for caller in (config.callers or {}).values()}
    return [
        {"principal": principal, "project": project, "role": role.value}
        for principal, member in config.directory.members.items()
        for project, role in member.roles.items()
        if (principal, project) not in called
    ]


def render_config(described: dict[str, Any]) -> str:
    """Return it as text for people."""
    return "".join(f"{line}\n" for line in _lines(described))


def _lines(described: dict[str, Any]) -> Iterator[str]:
    listen = described["listen"]
    yield f"{described['name']} on {listen['host']}, port {listen['port'] or 'any'}, path {listen['path']}"
    yield f"keeps tasks in {described['store']}"
    kept = described["retention"]
    hours, days = kept["payloadMs"] // HOUR_MS, kept["metadataMs"] // DAY_MS
    yield f"keeps results for {hours} h, and what happened to tasks for {days} days"
    for project in described["deletedProjects"]:
        yield f"project {project} is deleted: what is kept of it is removed"
    if described["handles"] == "sealed":
        yield "handles carry what they stand for, sealed"
    yield f"callers of {LEGACY_VERSION} get {_LEGACY[described['legacy']]}"
    for upstream in described["upstreams"]:
        yield _upstream_line(upstream)
    for caller in described["callers"]:
        yield ""
        yield _heading(caller)
        if not caller["upstreams"]:
            yield "  sees no upstream"
        for seen in caller["upstreams"]:
            yield from _upstream_lines(caller, seen)
    if described["lookingOnly"]:
        yield ""
    for looker in described["lookingOnly"]:
        yield f"{looker['principal']} ({looker['role']}) has no token to call with for {looker['project']}"


def _upstream_line(upstream: dict[str, Any]) -> str:
    line = f"upstream {upstream['name']}: {upstream.get('url') or upstream['command']}"
    missing = upstream.get("found") is False
    return f"{line} (here there is no such program)" if missing else line


def _heading(caller: dict[str, Any]) -> str:
    if caller["principal"] is None:
        return "everybody, without a name"
    kind = "API key" if caller["credential"] == "api_key" else "token"
    words = [f"{caller['principal']}, {kind}"]
    if caller["label"] != caller["principal"]:
        words.append(f"of {caller['label']}")
    if caller["project"] is not None:
        words.append(f"for {caller['project']}")
    if caller["role"] is not None:
        words.append(f"({caller['role']})")
    return f"{' '.join(words)}, profile {caller['profile']}"


def _upstream_lines(caller: dict[str, Any], seen: dict[str, Any]) -> Iterator[str]:
    under = "" if seen["authorization"] is None else f", under the authorization {seen['authorization']}"
    yield f"  {seen['name']}{under}"
    if not seen["tools"]:
        yield f"    tools: none, by the profile {caller['profile']}"
        return
    yield f"    tools: {' '.join(seen['tools'])}"
    tasks = seen["tasks"]
    named = f"{' '.join(seen['taskTools'])} ({tasks['row']})"
    if tasks["row"] == Row.PROMOTE.value:
        yield f"    tasks: the proxy's own for {named}, as {tasks['reason']}"
    elif tasks["offered"]:
        yield f"    tasks: offered for {named}: {tasks['reason']}"
    else:
        yield f"    tasks: not offered: {tasks['reason']}"
    yield (
        f"    else: {seen['upstreamWithoutTasks']['row']}, where the upstream has no tasks; "
        f"{seen['callerWithoutTasks']['row']}, where a call does not declare them"
    )
