"""The upstreams that a configuration declares."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from mcp_tasks_adapters.http_exchange import HttpAddress, check_headers
from mcp_tasks_adapters.proxy.config_secrets import NAMED, Secrets
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, StdioUpstream
from mcp_tasks_adapters.proxy.toml_tables import Table
from mcp_tasks_adapters.trust import trusting

__all__ = ["has_credentials", "read_upstreams", "with_environment"]

ERAS: Final = ("modern", "legacy")
SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""Headers that hold a credential, so that their value does not stand in a configuration."""

Declared = HttpUpstream | StdioUpstream


def read_upstreams(top: Table, secrets: Secrets) -> tuple[Declared, ...]:
    """Read ``[upstreams.NAME]``; those with a mistake are left out, and there is one at least."""
    declared: list[Declared] = []
    labels: dict[str, str] = {}
    for name, table in top.tables("upstreams"):
        upstream = _read_upstream(name, table, secrets)
        table.close()
        if upstream is None:
            continue
        try:
            label = upstream.settings.shown_label
        except ValueError as error:
            table.note(str(error))
            continue
        if label in labels:
            table.note(f"has the label of {labels[label]}: nobody could tell them apart")
        labels[label] = name
        declared.append(upstream)
    if not top.content.get("upstreams"):
        top.note("there is no upstream: add [upstreams.NAME] with a url or a command", "upstreams")
    return tuple(declared)


def _read_upstream(name: str, table: Table, secrets: Secrets) -> Declared | None:
    common: dict[str, Any] = {
        "name": name,
        "label": table.text("label"),
        "tasks": table.flag("tasks", default=True),
        "listen": table.flag("listen", default=True),
        "era": table.choice("era", ERAS, "era"),
    }
    if ("url" in table) is ("command" in table):
        table.note("has either a url, or the command that starts it")
        table.skip(*table.content)
        return None
    if "url" in table:
        return _read_http(table, common, secrets)
    return _read_stdio(table, common, secrets)


def _read_http(table: Table, common: dict[str, Any], secrets: Secrets) -> HttpUpstream | None:
    url, ca_file = table.text("url"), table.text("ca_file")
    headers = _read_headers(table, secrets)
    authorizations = {}
    for name, more in table.tables("authorizations"):
        authorizations[name] = _read_headers(more, secrets)
        more.close()
    context = None if ca_file is None else _trusting(table, secrets.path(ca_file))
    if url is None:
        return None
    if has_credentials(url):
        table.note(f"a credential is not written here: say bearer = {NAMED}", "url")
        return None
    try:
        HttpAddress.parse(url)
    except ValueError as error:
        table.note(str(error), "url")
        return None
    return HttpUpstream(
        url=url, headers=headers, authorizations=authorizations, ssl_context=context, **common
    )


def _trusting(table: Table, path: Path) -> ssl.SSLContext | None:
    try:
        return trusting(path)
    except ValueError as error:
        table.note(str(error), "ca_file")
        return None


def has_credentials(url: str) -> bool:
    """Whether a URL holds a user's name or password, so that it must not be quoted."""
    return "@" in url.partition("//")[2].partition("/")[0]


def _read_headers(table: Table, secrets: Secrets) -> Mapping[str, str]:
    """Read ``headers``, and ``bearer``, which is short for one of them."""
    headers: dict[str, str] = {}
    if "bearer" in table and (token := secrets.read(table, "bearer")) is not None:
        headers["Authorization"] = f"Bearer {token}"
    given = table.table("headers")
    for name, said in given.content.items():
        value = secrets.read(given, name) if isinstance(said, dict) else given.text(name)
        if problem := _problem(name, said, headers):
            given.note(problem, name)
        elif value is not None:
            headers[name] = value
    return headers


def _problem(name: str, said: Any, others: Mapping[str, str]) -> str | None:
    """Return what is wrong with a header, if anything is."""
    if name.lower() in {other.lower() for other in others}:
        return "is there twice: bearer sets Authorization"
    if isinstance(said, str):
        if name.lower() in SECRET_HEADERS:
            return f"a credential is not written here: say {NAMED}"
        if not (said.isascii() and said.isprintable()):
            return "is not printable ASCII"
    try:
        check_headers([(name, "")])
    except ValueError as error:
        return str(error)
    return None


def _read_stdio(table: Table, common: dict[str, Any], secrets: Secrets) -> StdioUpstream | None:
    command: Sequence[str] | None = table.texts("command")
    folder_name = table.text("folder")
    folder = None if folder_name is None else secrets.path(folder_name)
    own = table.table("environment")
    more = {}
    for name, said in own.content.items():
        if not name or "=" in name or "\0" in name:
            own.note("is no name of a variable", name)
            own.skip(name)
            continue
        value = secrets.read(own, name) if isinstance(said, dict) else own.text(name)
        if value is not None:
            more[name] = value
    if folder is not None and not folder.is_dir():
        table.note("there is no such folder", "folder")
    if not command:
        if command is not None and not table.content["command"]:
            table.note("is empty: write the program and its arguments", "command")
        return None
    cwd = None if folder is None else str(folder)
    return StdioUpstream(command=tuple(command), env=more, cwd=cwd, **common)


def with_environment(upstream: Declared, secrets: Secrets) -> Declared:
    """Give a server that is started here this process's environment, beside what is its own.

    What is a secret of the proxy's is left out: it is known when all else has been read.
    """
    if isinstance(upstream, HttpUpstream):
        return upstream
    return evolve(upstream, env={**secrets.environment, **(upstream.env or {})})
