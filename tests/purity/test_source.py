"""Layer one of purity: what the core's source may say. Read as text, nothing is imported.

The core does no I/O, has no clock and no randomness, and keeps nothing between calls but in the engines that
a host made. The tables below are exact in both directions: an import that is not listed fails, and
so does a listing that nothing imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from mcp_tasks_proto.errors import STOPPING, STORE_UNAVAILABLE, WORKER_LOST
from mcp_tasks_proto.proxy.errors import Trouble

ROOT: Final = Path(__file__).parents[2]
CORE: Final = ROOT / "mcp_tasks_proto"

COMMON: Final = frozenset({"__future__", "attrs", "collections.abc", "enum", "mcp_tasks_proto", "typing"})
"""What any module of the core may import."""

MORE: Final[Mapping[str, frozenset[str]]] = {
    "input_requests": frozenset({"itertools"}),
    "input_requests.formats": frozenset({"datetime", "re"}),
    "input_requests.shapes": frozenset({"math"}),
    "exchanges": frozenset({"abc"}),
    "legacy.proxy.engine": frozenset({"functools"}),
    "legacy.proxy.listing": frozenset({"functools"}),
    "legacy.proxy.requests": frozenset({"functools"}),
    "legacy.proxy.upstreams": frozenset({"collections"}),
    "legacy.server.calls": frozenset({"functools"}),
    "legacy.server.door": frozenset({"abc"}),
    "legacy.server.events": frozenset({"collections", "itertools", "re"}),
    "legacy.server.inner": frozenset({"collections", "itertools"}),
    "legacy.server.registry": frozenset({"functools", "itertools"}),
    "legacy.server.requests": frozenset({"functools"}),
    "legacy.server.sessions": frozenset({"itertools"}),
    "legacy.server.tasks": frozenset({"functools"}),
    "legacy.translation": frozenset({"datetime"}),
    "legacy.server.waiting": frozenset({"functools"}),
    "legacy.requester.engine": frozenset({"collections", "hashlib"}),
    "legacy.requester.asked": frozenset({"functools"}),
    "legacy.requester.calls": frozenset({"functools"}),
    "legacy.requester.channel": frozenset({"functools"}),
    "legacy.requester.legacy_server": frozenset({"functools"}),
    "legacy.requester.questions": frozenset({"functools", "hashlib"}),
    "legacy.requester.tasks": frozenset({"functools", "itertools", "re"}),
    "legacy.requester.tools": frozenset({"functools"}),
    "proxy.advertise": frozenset({"functools"}),
    "proxy.asking": frozenset({"functools", "itertools"}),
    "proxy.calls": frozenset({"functools"}),
    "proxy.collapsing": frozenset({"functools"}),
    "proxy.desk": frozenset({"functools"}),
    "proxy.decision": frozenset({"functools"}),
    "proxy.engine": frozenset({"itertools"}),
    "proxy.fetching": frozenset({"functools"}),
    "proxy.handles": frozenset({"json", "re"}),
    "proxy.listening": frozenset({"functools"}),
    "proxy.promoting": frozenset({"functools"}),
    "proxy.results": frozenset({"hashlib"}),
    "proxy.rewriting": frozenset({"re"}),
    "proxy.settings": frozenset({"re"}),
    "proxy.tasks": frozenset({"functools"}),
    "proxy.upstreams": frozenset({"itertools"}),
    "request_state": frozenset({"hashlib", "hmac", "json", "re"}),
    "requester.cache": frozenset({"json"}),
    "requester.engine": frozenset({"itertools"}),
    "requester.listening": frozenset({"itertools"}),
    "server.operations.base": frozenset({"abc"}),
    "server.operations.peers": frozenset({"abc"}),
    "server.operations.workers": frozenset({"abc"}),
    "server.reports": frozenset({"json", "re"}),
    "server.tasks": frozenset({"itertools"}),
    "testing.client": frozenset({"functools"}),
    "testing.host": frozenset({"itertools"}),
    "testing.model.received": frozenset({"datetime"}),
    "testing.model.tasks": frozenset({"datetime"}),
    "testing.kit.desk": frozenset({"collections", "itertools"}),
    "testing.kit.heads": frozenset({"base64"}),
    "testing.kit.life": frozenset({"re"}),
    "testing.network": frozenset({"functools", "heapq", "itertools"}),
    "testing.promises": frozenset({"collections"}),
    "testing.pair": frozenset({"functools", "heapq", "itertools"}),
    "testing.proxy_host": frozenset({"itertools"}),
    "testing.recordings.differences": frozenset({"collections", "itertools", "json"}),
    "testing.recordings.recorder": frozenset({"json"}),
    "testing.recordings.replayer": frozenset({"json"}),
    "testing.recordings.sealing": frozenset({"hashlib"}),
    "testing.recordings.values": frozenset({"collections", "functools", "json"}),
    "testing.requester_host": frozenset({"itertools"}),
    "testing.requester_side": frozenset({"abc", "functools"}),
    "testing.strategies": frozenset({"hypothesis", "hypothesis.strategies"}),
    "testing.strategies_for_requesters": frozenset({"hypothesis", "hypothesis.strategies"}),
    "testing.traces.effects": frozenset({"datetime"}),
    "testing.traces.player": frozenset({"re"}),
    "testing.traces.proxy": frozenset({"itertools", "re"}),
    "testing.traces.words": frozenset({"itertools", "json", "re"}),
    "timers": frozenset({"heapq", "itertools"}),
    "wire.base64url": frozenset({"base64"}),
    "wire.http": frozenset({"base64", "binascii", "re"}),
    "wire.jsonrpc": frozenset({"json", "math", "re"}),
    "wire.reading": frozenset({"datetime"}),
    "wire.schema": frozenset({"cattrs", "cattrs.gen", "datetime", "functools"}),
}
"""What one module may import beside that."""

FORBIDDEN_NAMES: Final = frozenset(
    {
        "__import__",
        "breakpoint",
        "compile",
        "eval",
        "exec",
        "exit",
        "globals",
        "input",
        "locals",
        "open",
        "print",
        "quit",
    }
)
"""Builtins that read, write or reach around what an engine was given."""

UNSTABLE_NAMES: Final = frozenset({"hash", "id"})
"""Builtins whose value differs from run to run."""

MUTABLE_CALLS: Final = frozenset(
    {"Counter", "OrderedDict", "bytearray", "defaultdict", "deque", "dict", "list", "set"}
)

READ_ONLY_TYPES: Final = re.compile(r"(Final|Mapping|Sequence|Set|ClassVar\[Mapping)\b")


def modules() -> list[Path]:
    return sorted(CORE.rglob("*.py"))


def name_of(path: Path) -> str:
    """``mcp_tasks_proto/wire/http.py`` -> ``wire.http``; a package is called by its folder."""
    parts = path.relative_to(CORE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@pytest.fixture(params=modules(), ids=lambda path: name_of(path) or "mcp_tasks_proto")
def module(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what is imported"
            assert node.module is not None
            yield node.module


def family(name: str) -> str:
    """The core's own modules count as one."""
    return "mcp_tasks_proto" if name.split(".")[0] == "mcp_tasks_proto" else name


def unlisted_imports(tree: ast.AST, allowed: frozenset[str]) -> set[str]:
    return {family(name) for name in imports(tree)} - allowed


def forbidden_calls(tree: ast.AST) -> list[str]:
    """Calls of forbidden builtins, by line. A parameter may be named ``input``; a call of it is a call."""
    banned = FORBIDDEN_NAMES | UNSTABLE_NAMES
    return [
        f"line {node.lineno}: {node.func.id}()"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned
    ]


def hidden_state(tree: ast.Module) -> list[str]:
    """Module and class level values that a call could change, and everything that rebinds them."""
    found = []
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for statement in body:
            if isinstance(statement, ast.AugAssign):
                found.append(f"line {statement.lineno}: changed in place")
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and is_mutable(statement.value):
                found.extend(complaints(statement))
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found.append(f"line {node.lineno}: global {', '.join(node.names)}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            defaults = [*node.args.defaults, *node.args.kw_defaults]
            found.extend(
                f"line {value.lineno}: mutable default" for value in defaults if value and is_mutable(value)
            )
    return found


def is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp):
        return True
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in MUTABLE_CALLS


def complaints(statement: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """A display at module level is a constant: in capitals, of a type with which mypy forbids a change."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [ast.unparse(target) for target in targets]
    if names == ["__all__"]:
        return
    if not all(re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name) for name in names):
        yield f"line {statement.lineno}: {', '.join(names)} is not named as a constant"
    annotation = ast.unparse(statement.annotation) if isinstance(statement, ast.AnnAssign) else ""
    if not READ_ONLY_TYPES.match(annotation):
        yield f"line {statement.lineno}: {', '.join(names)} is not typed as read-only"


def literals(tree: ast.AST) -> set[str]:
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def reasons(tree: ast.AST) -> set[str]:
    """The words that a module writes out as ``reason``."""
    keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "reason"]
    return set().union(*(literals(keyword.value) for keyword in keywords))


def test_imports_only_what_is_listed(module: Path) -> None:
    allowed = COMMON | MORE.get(name_of(module), frozenset())
    assert not unlisted_imports(tree_of(module), allowed)


def test_lists_only_what_is_imported() -> None:
    imported = {name_of(path): {family(name) for name in imports(tree_of(path))} for path in modules()}
    stale = {name: listed - imported.get(name, set()) for name, listed in MORE.items()}
    assert not {name: rest for name, rest in stale.items() if rest}


def test_calls_no_builtin_that_reaches_outside(module: Path) -> None:
    assert not forbidden_calls(tree_of(module))


def test_keeps_no_state_outside_its_objects(module: Path) -> None:
    assert not hidden_state(tree_of(module))


def test_a_word_that_several_modules_tell_programs_has_one_name() -> None:
    """``data.reason``: who asks for it by name cannot mistype it."""
    sources = {name_of(path): tree_of(path) for path in modules() if not name_of(path).startswith("testing")}
    shared = {STORE_UNAVAILABLE, STOPPING, WORKER_LOST}
    words = shared.union({one.value for one in Trouble}, *map(reasons, sources.values()))
    places = {word: [name for name, tree in sources.items() if word in literals(tree)] for word in words}
    assert not {word: names for word, names in places.items() if len(names) > 1}
    assert all(places[word] == ["errors"] for word in shared)


def test_nothing_waits(module: Path) -> None:
    waiting = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    assert not [node.lineno for node in ast.walk(tree_of(module)) if isinstance(node, waiting)]


# -- the checks themselves can fail --------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["import os", "from time import time", "def f():\n    import socket"])
def test_sees_imports(source: str) -> None:
    assert unlisted_imports(ast.parse(source), COMMON)


@pytest.mark.parametrize("source", ["open('x')", "print(1)", "def f(x):\n    return hash(x)"])
def test_sees_calls(source: str) -> None:
    assert forbidden_calls(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "seen = []",
        "SEEN = []",
        "seen: Final = {}",
        "SEEN: dict[str, int] = {}",
        "SEEN: Final = ()\nSEEN += (1,)",
        "class A:\n    seen = set()",
        "def f(x=[]): ...",
        "def f():\n    global seen",
        "SEEN = defaultdict(list)",
    ],
)
def test_sees_state(source: str) -> None:
    assert hidden_state(ast.parse(source))


@pytest.mark.parametrize(
    "source", ["__all__ = ['a']", "CODES: Final = {1: 2}", "_T: Mapping[str, int] = {}", "NAMES = ('a',)"]
)
def test_allows_constants(source: str) -> None:
    assert not hidden_state(ast.parse(source))
