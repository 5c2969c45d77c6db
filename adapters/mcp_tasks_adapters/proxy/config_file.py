"""From a file to the :class:`~mcp_tasks_adapters.proxy.config.ProxyConfig` that it stands for.

What is wrong is found all at once: each mistake with its line, and what to do. Files that are named in it are
looked for from its own folder. Credentials do not stand in it: those for upstreams come from files or
variables, those of callers as digests, or from variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from re import compile as pattern
from typing import Final

from attrs import fields

from mcp_tasks_adapters.origins import host_problem, origin_problem
from mcp_tasks_adapters.proxy.config import Listen, ProxyConfig, StorePlace, bounds_of_one
from mcp_tasks_adapters.proxy.config_people import People
from mcp_tasks_adapters.proxy.config_secrets import Secrets
from mcp_tasks_adapters.proxy.config_upstreams import read_upstreams, with_environment
from mcp_tasks_adapters.proxy.encryption import HandleKeys
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, Policies, StdioUpstream, legacy_policies
from mcp_tasks_adapters.proxy.toml_tables import MOST, ConfigError, Document, Table, listed
from mcp_tasks_adapters.stores.sealing import KEYS_VARIABLE, RecordKeys
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit.server import LEGACY_POLICIES
from mcp_tasks_proto.history import DAY_MS, LONGEST_METADATA_MS, LONGEST_PAYLOAD_MS, Retention
from mcp_tasks_proto.limits import DEEPEST_MESSAGE, Limits
from mcp_tasks_proto.proxy import InputKind, ProxyLimits, ToolProfile
from mcp_tasks_proto.proxy.patterns import may_begin_with
from mcp_tasks_proto.proxy.settings import DEFAULT_PROFILE, SEPARATOR

__all__ = ["ConfigError", "read_config"]

HOUR_MS: Final = 3_600_000

_PATH: Final = pattern(r"/[^\x00-\x20#?\x7f-\U0010ffff]*")

CONNECTION_LIMITS: Final = (
    "message_bytes",
    "message_depth",
    "connections",
    "arriving_bytes",
    "header_bytes",
    "header_timeout_ms",
    "body_timeout_ms",
    "idle_timeout_ms",
    "write_timeout_ms",
    "keep_alive_ms",
    "shutdown_grace_ms",
)
"""Those of ``Limits`` that a proxy has; all others are a server's."""


def read_config(path: str | os.PathLike[str], environment: Mapping[str, str] = os.environ) -> ProxyConfig:
    """Read a file, and what it names. Raises :class:`ConfigError`, which tells all that is wrong with it."""
    return _Reader(Document.read(Path(path)), environment).read()


class _Reader:
    def __init__(self, document: Document, environment: Mapping[str, str]) -> None:
        self._document = document
        self._secrets = Secrets(document.path.parent, environment)
        self._environment = environment

    def read(self) -> ProxyConfig:
        top = self._document.top
        name, policies = top.text("name", "mcp-tasks-proxy"), Policies()
        if (title := top.text("title")) is not None:
            policies["info"] = {"title": title}
        if (instructions := top.text("instructions")) is not None:
            policies["instructions"] = instructions
        listen, limits = self._listen(top.table("listen")), top.table("limits")
        bounds, proxy_bounds = self._limits(limits)
        self._features(top.table("features"), policies)
        policies["retention"] = self._retention(top.table("retention"))
        upstreams = read_upstreams(top, self._secrets)
        policies["profiles"] = profiles = self._profiles(top, upstreams)
        people = People(top, upstreams, sorted(profiles), self._secrets)
        directory, callers = people.read()
        policies["deleted_projects"] = frozenset(people.deleted)
        store = self._store(top.table("store"))
        handle_keys = self._handle_keys(top.table("handles"))
        top.close()
        self._document.check()
        if callers is None and "tasks_per_principal" not in limits:
            proxy_bounds = bounds_of_one(proxy_bounds)
        config = ProxyConfig(
            name=name or "",
            listen=listen,
            store=store,
            handle_keys=handle_keys,
            limits=bounds,
            proxy_limits=proxy_bounds,
            upstreams=tuple(with_environment(upstream, self._secrets) for upstream in upstreams),
            directory=directory,
            callers=callers,
            policies=policies,
        )
        try:
            config.proxy()
        except ValueError as error:  # what the core does not put up with, and nothing above has found
            top.note(f"this cannot be served: {error}")
            self._document.check()
        return config

    def _listen(self, table: Table) -> Listen:
        path = table.text("path", "/mcp") or ""
        if not _PATH.fullmatch(path):
            table.note("a path begins with /, and has printable ASCII characters other than # and ?", "path")
        listen = Listen(
            host=table.text("host", "127.0.0.1") or "",
            port=table.number("port", least=0, most=65535) or 0,
            path=path,
            allowed_hosts=_checked(table, "allow_hosts", host_problem),
            allowed_origins=_checked(table, "allow_origins", origin_problem),
        )
        table.close()
        return listen

    def _store(self, table: Table) -> StorePlace:
        place, key_name = table.text("place"), table.text("key_file")
        key_file = None if key_name is None else self._secrets.path(key_name)
        table.close()
        if place is None:
            if key_file is not None:
                table.note("is of no use without a place, such as sqlite:proxy.db", "key_file")
            return StorePlace()
        kind, colon, rest = place.partition(":")
        if kind == "sqlite" and rest.startswith(("//", "file:")):
            table.note("after sqlite: stands the path of a file, and no URL", "place")
        elif kind == "sqlite" and rest:
            if self._has_keys(table, key_file):
                place = f"sqlite:{self._secrets.path(rest)}"
        elif kind != "memory" or not colon or rest:
            table.note("is sqlite:FILE or memory: (with the colon)", "place")
        return StorePlace(place=place, key_file=key_file)

    def _has_keys(self, table: Table, key_file: Path | None) -> bool:
        try:
            if key_file is not None:
                return bool(RecordKeys.from_file(key_file))
            if RecordKeys.from_environment(KEYS_VARIABLE, self._environment) is not None:
                return True
        except StoreError as error:
            table.note(str(error).removesuffix("."), *(("key_file",) if key_file is not None else ("place",)))
            return False
        table.note(
            f"in a file, tasks are sealed, which takes a key: name a key_file, or set {KEYS_VARIABLE}; "
            "openssl rand -base64 32 makes one",
            "place",
        )
        return False

    def _handle_keys(self, table: Table) -> HandleKeys | None:
        name = table.text("key_file")
        table.close()
        try:
            if name is not None:
                return HandleKeys.from_file(self._secrets.path(name))
            return HandleKeys.from_environment(self._environment)
        except StoreError as error:
            table.note(str(error).removesuffix("."), "key_file")
            return None

    def _limits(self, table: Table) -> tuple[Limits, ProxyLimits]:
        names = [bound.name for bound in fields(ProxyLimits)]
        most = {"message_depth": DEEPEST_MESSAGE}
        given = {name: table.number(name, most=most.get(name, MOST)) for name in (*names, *CONNECTION_LIMITS)}
        table.close()
        set_here = {name: value for name, value in given.items() if value is not None}
        of_proxy = {name: value for name, value in set_here.items() if name in names}
        others = {name: value for name, value in set_here.items() if name not in names}
        return Limits(**others), ProxyLimits(**of_proxy)

    def _features(self, table: Table, policies: Policies) -> None:
        policies["tasks"] = table.flag("tasks", default=True)
        policies["promote_after_ms"] = table.number("promote_after_ms")
        policies["collapse"] = table.flag("collapse", default=False)
        policies.update(legacy_policies(table.choice("legacy", LEGACY_POLICIES, "choice") or "ignore"))
        kinds = table.choices("input", [kind.value for kind in InputKind], "kind of input")
        if kinds is not None:
            policies["input_kinds"] = frozenset(InputKind(kind) for kind in kinds)
        policies["extensions"] = frozenset(table.texts("extensions") or ())
        table.close()

    def _retention(self, table: Table) -> Retention:
        """Read how long what is kept, in units that people use; the bounds are the core's (HIS.4)."""
        hours = table.number(
            "payload_hours",
            most=LONGEST_PAYLOAD_MS // HOUR_MS,
            why=": results are kept for a day, not longer",
        )
        days = table.number(
            "metadata_days",
            most=LONGEST_METADATA_MS // DAY_MS,
            why=": records of tasks are kept for ninety days, not longer",
        )
        table.close()
        return Retention(
            payload_ms=LONGEST_PAYLOAD_MS if hours is None else hours * HOUR_MS,
            metadata_ms=LONGEST_METADATA_MS if days is None else days * DAY_MS,
        )

    def _profiles(
        self, top: Table, upstreams: Sequence[HttpUpstream | StdioUpstream]
    ) -> dict[str, ToolProfile]:
        profiles = {DEFAULT_PROFILE: ToolProfile()}
        leads = [f"{upstream.name}{SEPARATOR}" for upstream in upstreams]
        for name, table in top.tables("profiles"):
            sets: dict[str, frozenset[str] | None] = {}
            for key in ("tools", "task_tools"):
                names = table.texts(key)
                sets[key] = None if names is None else frozenset(names)
                for number, tool in enumerate(names or ()):
                    if len(leads) > 1 and not any(may_begin_with(tool, lead) for lead in leads):
                        begins = listed(leads, "or")
                        table.note(f"no tool is called {tool!r}: each begins with {begins}", key, number)
            table.close()
            profiles[name] = ToolProfile(tools=sets["tools"], task_tools=sets["task_tools"])
        return profiles


def _checked(table: Table, key: str, problem_of: Callable[[str], str | None]) -> tuple[str, ...]:
    """Read an array of strings, and note what is wrong with any of them."""
    values = tuple(table.texts(key) or ())
    for number, value in enumerate(values):
        if (problem := problem_of(value)) is not None:
            table.note(problem, key, number)
    return values
