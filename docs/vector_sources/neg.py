"""NEG: from one request's own metadata to one decision."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, table, tasks_spec

INDEX: Final = spec("basic/index", "_meta")
VERSIONS: Final = spec("basic/versioning", "protocol-version-negotiation")
NEGOTIATION: Final = tasks_spec("capability-negotiation")
METHODS: Final = tasks_spec("supported-methods")
HTTP: Final = spec("basic/transports/streamable-http", "server-validation")

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
MODERN: Final = "2026-07-28"
DECLARED: Final[dict[str, Any]] = {"extensions": {EXTENSION: {}}}
ANY: Final[dict[str, Any]] = {"$any": "value"}

SERVER: Final[dict[str, Any]] = {
    "versions": [MODERN],
    "methods": ["resources/read"],
    "tools": [
        {"name": "optional", "task": "optional"},
        {"name": "required", "task": "required"},
        {"name": "forbidden", "task": "forbidden"},
    ],
}
"""Two of each three rows are about this server."""


def meta(**changes: Any) -> dict[str, Any]:
    """Return a good ``_meta`` that declares tasks, with other values where given; ``...``: missing."""
    members = {VERSION: changes.get("version", MODERN), CAPABILITIES: changes.get("declared", DECLARED)}
    return {name: value for name, value in members.items() if value is not ...}


def ask(method: str = "server/discover", carried: Any = None, **params: Any) -> dict[str, Any]:
    """Return a request."""
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, **({} if carried is ... else {"_meta": meta() if carried is None else carried})},
    }


def given(
    message: dict[str, Any], *, headers: list[list[str]] | None = None, on: bool = True
) -> dict[str, Any]:
    """Return all that the decision depends on; without ``headers`` it did not come over HTTP."""
    return {
        "server": SERVER,
        "tasks_enabled": on,
        "message": message,
        **({} if headers is None else {"headers": headers}),
    }


def go(*, tasks: bool = True) -> dict[str, Any]:
    """Return that a request goes on, and whether it may be given tasks."""
    return {"accepted": True, "tasks": tasks}


def refused(code: int, status: int, check: str, data: Any = None) -> dict[str, Any]:
    """Return a refusal: code, HTTP status, the check that refused, and ``data`` where it is said."""
    return {"code": code, "http_status": status, "check": check, "data": data}


METADATA: Final = refused(-32602, 400, "metadata", ANY)
NEEDS_TASKS: Final = refused(-32021, 400, "capability", {"requiredCapabilities": DECLARED})
UNKNOWN: Final = refused(-32601, 404, "method", ANY)
MISMATCH: Final = refused(-32020, 400, "headers", ANY)


def call(tool: str = "optional", **changes: Any) -> dict[str, Any]:
    """Return a call."""
    return ask("tools/call", meta(**changes), name=tool)


def task(verb: str, **changes: Any) -> dict[str, Any]:
    """Return a request about a task."""
    extra: dict[str, Any] = {"inputResponses": {}} if verb == "update" else {}
    return ask(f"tasks/{verb}", meta(**changes), taskId="t-1", **extra)


NEG1: Final = [
    ("good", "both are there", given(ask()), go()),
    (
        "no-params",
        "no params at all",
        given({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}),
        METADATA,
    ),
    ("no-meta", "no _meta", given(ask(carried=...)), METADATA),
    *(
        (f"meta-{word}", "_meta is an object", given(ask(carried=value)), METADATA)
        for word, value in (("string", "x"), ("array", []), ("number", 7))
    ),
    ("no-version", "no version", given(ask(carried=meta(version=...))), METADATA),
    *(
        (f"version-{word}", "a version is a string", given(ask(carried=meta(version=value))), METADATA)
        for word, value in (("number", 2026), ("null", None), ("array", [MODERN]))
    ),
    ("no-capabilities", "no capabilities", given(ask(carried=meta(declared=...))), METADATA),
    *(
        (
            f"capabilities-{word}",
            "capabilities are an object",
            given(ask(carried=meta(declared=value))),
            METADATA,
        )
        for word, value in (("null", None), ("true", True), ("array", []), ("string", "tasks"))
    ),
    (
        "capabilities-empty",
        "an empty object is enough",
        given(ask(carried=meta(declared={}))),
        go(tasks=False),
    ),
    ("any-method", "every method, unknown ones too", given(ask("nobody/knows", ...)), METADATA),
    ("client-info", "who the client is need not be said", given(ask(carried=meta())), go()),
]

NEG2: Final = [
    (
        word,
        "a version that is not served, with those that are",
        given(ask(carried=meta(version=version))),
        refused(-32022, 400, "version", {"supported": [MODERN], "requested": version}),
    )
    for word, version in (
        ("older", "2025-11-25"),
        ("newer", "2099-01-01"),
        ("nonsense", "next"),
        ("empty", ""),
        ("padded", "2026-07-28 "),
    )
]

ORDER: Final = [
    (
        "version-before-method",
        "the version is looked at before the method",
        given(ask("nobody/knows", meta(version="2099-01-01"))),
        refused(-32022, 400, "version", ANY),
    ),
    (
        "version-before-capability",
        "and before capabilities",
        given(task("get", version="2099-01-01", declared={})),
        refused(-32022, 400, "version", ANY),
    ),
    (
        "metadata-before-version",
        "metadata before the version",
        given(ask(carried=meta(version="2099-01-01", declared=...))),
        METADATA,
    ),
    (
        "version-header-before-version",
        "what the header says before whether it is served",
        given(
            ask(carried=meta(version="2099-01-01")),
            headers=[["MCP-Protocol-Version", MODERN], ["Mcp-Method", "server/discover"]],
        ),
        MISMATCH,
    ),
    (
        "version-before-other-headers",
        "whether the version is served before the other headers",
        given(ask(carried=meta(version="2099-01-01")), headers=[["MCP-Protocol-Version", "2099-01-01"]]),
        refused(-32022, 400, "version", ANY),
    ),
    (
        "method-before-headers",
        "whether the method is known before its headers",
        given(ask("nobody/knows"), headers=[["MCP-Protocol-Version", MODERN]]),
        UNKNOWN,
    ),
    (
        "headers-before-capability",
        "headers before capabilities",
        given(
            task("get", declared={}), headers=[["MCP-Protocol-Version", MODERN], ["Mcp-Method", "tasks/get"]]
        ),
        MISMATCH,
    ),
    (
        "metadata-before-headers",
        "metadata before headers",
        given(ask(carried=...), headers=[]),
        METADATA,
    ),
    (
        "capability-before-params",
        "capabilities before params",
        given(ask("tasks/get", meta(declared={}))),
        NEEDS_TASKS,
    ),
]

NEG4: Final = [
    ("object", "an empty object declares", given(call()), go()),
    (
        "settings",
        "settings that nobody knows declare as well",
        given(call(declared={"extensions": {EXTENSION: {"x": 1, "version": "9"}}})),
        go(),
    ),
    (
        "others-beside",
        "beside other extensions",
        given(call(declared={"extensions": {"a/b": {}, EXTENSION: {}}})),
        go(),
    ),
    *(
        (
            f"value-{word}",
            "only an object declares",
            given(call(declared={"extensions": {EXTENSION: value}})),
            go(tasks=False),
        )
        for word, value in (("true", True), ("null", None), ("string", "yes"), ("array", []), ("number", 1))
    ),
    *(
        (
            f"extensions-{word}",
            "only an object declares",
            given(call(declared={"extensions": value})),
            go(tasks=False),
        )
        for word, value in (("array", [EXTENSION]), ("null", None), ("string", EXTENSION))
    ),
    (
        "legacy-slot",
        "trap 14: the slot of 2025-11-25 counts for nothing",
        given(call(declared={"tasks": {"requests": {"tools": {"call": {}}}}})),
        go(tasks=False),
    ),
    (
        "experimental",
        "nor does the experimental slot",
        given(call(declared={"experimental": {EXTENSION: {}}})),
        go(tasks=False),
    ),
    ("top-level", "nor the name in another place", given(call(declared={EXTENSION: {}})), go(tasks=False)),
    (
        "other-case",
        "nor in another case",
        given(call(declared={"extensions": {EXTENSION.upper(): {}}})),
        go(tasks=False),
    ),
    (
        "wrong-meta-key",
        "trap 13: capabilities under another key are none",
        given(
            ask(
                "tools/call",
                {VERSION: MODERN, "clientCapabilities": DECLARED, CAPABILITIES: {}},
                name="optional",
            )
        ),
        go(tasks=False),
    ),
    (
        "only-wrong-meta-key",
        "trap 13: and those that every request needs are missing",
        given(
            ask(
                "tools/call",
                {VERSION: MODERN, "io.modelcontextprotocol/capabilities": DECLARED},
                name="optional",
            )
        ),
        METADATA,
    ),
]

NEG5: Final = [
    (
        "required",
        "a tool that needs tasks, and a caller who takes none",
        given(call("required", declared={})),
        NEEDS_TASKS,
    ),
    ("required-declared", "and one who does", given(call("required")), go()),
    (
        "required-legacy",
        "trap 14: the slot of 2025-11-25 is no help",
        given(call("required", declared={"tasks": {}})),
        NEEDS_TASKS,
    ),
    ("optional", "a tool that can do without", given(call("optional", declared={})), go(tasks=False)),
    ("forbidden", "a tool that never makes one", given(call("forbidden", declared={})), go(tasks=False)),
    ("forbidden-declared", "declaring does no harm", given(call("forbidden")), go()),
    (
        "required-params",
        "whatever else the params say",
        given(ask("tools/call", meta(declared={}), name="required", task={"ttl": 1})),
        NEEDS_TASKS,
    ),
]

NEG6: Final = [
    *(
        (
            f"{verb}",
            f"tasks/{verb} from a caller who takes no tasks",
            given(task(verb, declared={})),
            NEEDS_TASKS,
        )
        for verb in ("get", "update", "cancel")
    ),
    *(
        (
            f"{verb}-legacy",
            "trap 14: with the slot of 2025-11-25",
            given(task(verb, declared={"tasks": {}})),
            NEEDS_TASKS,
        )
        for verb in ("get", "update", "cancel")
    ),
    *(
        (f"{verb}-declared", f"tasks/{verb} from one who does", given(task(verb)), go())
        for verb in ("get", "update", "cancel")
    ),
    (
        "listen",
        "listening to tasks without declaring them",
        given(ask("subscriptions/listen", meta(declared={}), notifications={"taskIds": ["t-1"]})),
        NEEDS_TASKS,
    ),
    (
        "listen-none",
        "even to none",
        given(ask("subscriptions/listen", meta(declared={}), notifications={"taskIds": []})),
        NEEDS_TASKS,
    ),
    (
        "listen-tools",
        "listening to anything else",
        given(ask("subscriptions/listen", meta(declared={}), notifications={"toolsListChanged": True})),
        go(tasks=False),
    ),
]

NEG7: Final = [
    *(
        (f"{verb}", "there is no such method", given(task(verb), on=False), UNKNOWN)
        for verb in ("get", "update", "cancel")
    ),
    *(
        (
            f"{verb}-undeclared",
            "nor for who does not declare",
            given(task(verb, declared={}), on=False),
            UNKNOWN,
        )
        for verb in ("get", "update", "cancel")
    ),
    ("call", "no handles", given(call(), on=False), go(tasks=False)),
    (
        "listen",
        "taskIds are one more filter that is not served",
        given(ask("subscriptions/listen", notifications={"taskIds": ["t-1"]}), on=False),
        go(tasks=False),
    ),
]

NEG8: Final = [
    *(
        (
            method,
            f"tasks/{method} is not of this version",
            given(ask(f"tasks/{method}", taskId="t-1")),
            UNKNOWN,
        )
        for method in ("result", "list", "delete", "status", "Get", "")
    ),
    ("undeclared", "whoever asks", given(ask("tasks/list", meta(declared={}))), UNKNOWN),
    (
        "task-param",
        "params.task is one more unknown field",
        given(ask("tools/call", None, name="optional", task={"ttl": 5})),
        go(),
    ),
]

NEG9: Final = [
    ("discover", "discovery always works", given(ask(carried=meta(declared={}))), go(tasks=False)),
    ("discover-off", "also where the extension is off", given(ask(), on=False), go(tasks=False)),
    (
        "initialize",
        "the versions served are all the help there is",
        given(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
            }
        ),
        refused(-32022, 400, "era", {"supported": [MODERN], "requested": "2025-11-25"}),
    ),
    (
        "initialize-modern",
        "a modern request for it is for a method that is not served",
        given(ask("initialize", protocolVersion=MODERN)),
        refused(-32601, 404, "method", {"supported": [MODERN]}),
    ),
]

NEG10: Final = [
    ("unknown", "an unknown method", given(ask("nobody/knows")), UNKNOWN),
    ("ping", "not of this version", given(ask("ping")), UNKNOWN),
    ("logging", "not of this version", given(ask("logging/setLevel", level="info")), UNKNOWN),
    ("case", "methods are exact", given(ask("Tools/List")), UNKNOWN),
    ("empty", "an empty method is none", given(ask("")), UNKNOWN),
    ("hosts", "a method that the host serves", given(ask("resources/read", uri="file:///a")), go()),
]


def http(*names: str, method: str = "tools/call") -> list[list[str]]:
    """Return headers with these names of the tool."""
    return [["MCP-Protocol-Version", MODERN], ["Mcp-Method", method], *(["Mcp-Name", name] for name in names)]


HEADERS: Final = [
    ("call", "all as they should be", given(call(), headers=http("optional")), go()),
    (
        "unknown-tool",
        "also for a tool that is not there: params are looked at later",
        given(call("nobody"), headers=http("nobody")),
        go(),
    ),
    ("none", "none at all", given(call(), headers=[]), MISMATCH),
    ("name", "trap 11: another name", given(call(), headers=http("required")), MISMATCH),
    ("not-http", "on stdio there are none", given(call()), go()),
]


OTHER_TYPES: Final = [
    *("meta-string", "meta-array", "meta-number"),
    *("version-number", "version-null", "version-array"),
    *("capabilities-null", "capabilities-true", "capabilities-array", "capabilities-string"),
]
"""The specification says how a request without its metadata is refused, and not one with other metadata."""


def vectors() -> list[Vector]:
    """Return all of them."""
    name = "negotiate"
    return [
        *table(name, "NEG.1", INDEX, NEG1, ours=OTHER_TYPES),
        *table(name, "NEG.2", VERSIONS, _of("version", NEG2)),
        *table(name, "NEG.3", decided("NEG.3"), ORDER),
        *table(name, "NEG.3 HTTP.2", HTTP, _of("headers", HEADERS)),
        *table(name, "NEG.4", NEGOTIATION, NEG4),
        *table(name, "NEG.5", NEGOTIATION, NEG5),
        *table(name, "NEG.6", METHODS, NEG6),
        *table(name, "NEG.7", NEGOTIATION, NEG7),
        *table(name, "NEG.8", METHODS, _named(NEG8)),
        *table(
            name,
            "NEG.9",
            spec("basic/versioning", "backward-compatibility-with-initialization-based-versions"),
            NEG9,
            ours=["initialize", "initialize-modern"],
        ),
        *table(name, "NEG.10", spec("basic/index", "error-codes"), NEG10),
    ]


def _of(kind: str, rows: list[Any]) -> list[Any]:
    return [(f"{kind}-{word}", *rest) for word, *rest in rows]


def _named(rows: list[Any]) -> list[Any]:
    return [(word or "empty", *rest) for word, *rest in rows]
