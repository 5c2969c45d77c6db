"""What every runner of the vectors has to do, in Python without a library; README.md explains the format.

``load`` gives the vectors, ``problem_of`` says of one what is wrong. What is tested comes in as a function
for each name of a pure function, and for each role as something that takes the steps of a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

START_MS: Final = 1_700_000_000_000
"""The moment from which ``at_ms`` counts, in Unix milliseconds."""
ADDRESS: Final = ("exchange", "of", "call", "upstream")
"""Members that say where an output goes. Outputs of one type to one place keep their order."""
KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "integer or null": (int, type(None)),
    "value": object,
}


MATCHERS: Final = ("$any", "$has", "$time", "$pattern", "$without", "$other_than", "$unordered")


class Subject(Protocol):
    """One side of a conversation, under test."""

    def step(self, at_ms: int, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Let time pass until then, tell of the fact, and return all outputs of both, oldest first."""


def load(folder: Path = Path(__file__).parent) -> Iterator[dict[str, Any]]:
    """Yield every vector of the files in a folder."""
    for path in sorted(folder.glob("*.json")):
        if path.name != "schema.json":
            yield from json.loads(path.read_text(encoding="utf-8"))["vectors"]


def problem_of(
    vector: Mapping[str, Any],
    functions: Mapping[str, Callable[[Any], Any]],
    roles: Mapping[str, Callable[[Mapping[str, Any]], Subject]],
) -> str | None:
    """Run one vector; return what is wrong, ``None`` if nothing is.

    Whatever is tested may raise, and answer anything: both are wrong, and no reason to end a run. Raises
    ``KeyError`` for a function or a role that is not among those given.
    """
    bound: dict[str, Any] = {}
    if vector["kind"] == "function":
        function = functions[vector["function"]]
        try:
            answer = function(vector["given"])
        except Exception as error:
            return _raised(error)
        return difference(vector["expect"], answer, bound)
    role = roles[vector["role"]]
    ignored = vector["setup"].get("ignored_notifications", [])
    now = 0
    try:
        subject = role(vector["setup"])
    except Exception as error:
        return f"setup {_raised(error)}"
    for number, step in enumerate(vector["steps"]):
        now = step.get("at_ms", now)
        try:
            told = subject.step(now, filled(step["given"], bound))
        except Exception as error:
            return f"step {number} {_raised(error)}"
        if not isinstance(told, list) or not all(isinstance(one, dict) and "type" in one for one in told):
            return f"step {number} gives no outputs, objects with a type each, but {told!r}"
        outputs = [one for one in told if _method(one) not in ignored]
        if problem := _unlike(step["expect"], outputs, bound):
            return f"step {number} {problem}"
    return None


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"


def _method(output: Mapping[str, Any]) -> Any:
    message = output.get("message")
    return message.get("method") if isinstance(message, dict) else None


def _unlike(expected: list[Any], outputs: list[dict[str, Any]], bound: dict[str, Any]) -> str | None:
    left = list(outputs)
    for wanted in expected:
        named = {name: wanted[name] for name in ADDRESS if name in wanted}
        place = {
            name: filled(value, bound)
            for name, value in named.items()
            if not _is_placeholder(value) or value in bound
        }
        found = [
            one
            for one in left
            if one["type"] == wanted["type"] and all(one.get(name) == place[name] for name in place)
        ]
        if not found:
            return f"lacks {wanted} among {left}"
        left.remove(found[0])
        for name, value in wanted.items():
            if name not in found[0]:
                return f"{wanted['type']} lacks {name}"
            if problem := difference(value, found[0][name], bound, f"{wanted['type']}.{name}"):
                return problem
    return f"has, beside what is expected, {left}" if left else None


def filled(value: Any, bound: Mapping[str, Any]) -> Any:
    """Return an input with its placeholders replaced by what they are bound to."""
    if isinstance(value, dict):
        return {name: filled(member, bound) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(item, bound) for item in value]
    if isinstance(value, str) and value.startswith("$"):
        return value[1:] if value.startswith("$$") else bound[value]
    return value


def difference(expected: Any, actual: Any, bound: dict[str, Any], where: str = "it") -> str | None:
    """Say how a value differs from what is expected, and bind the placeholders that are met first here."""
    if _is_placeholder(expected):
        if type(actual) not in (str, int) or not _is(bound.setdefault(expected, actual), actual):
            return f"{where}: {actual!r} is not {expected}, {bound.get(expected, 'which is not bound')!r}"
        return None
    if isinstance(expected, dict):
        matcher = next((name for name in MATCHERS if name in expected), None)
        if matcher is None:
            return _members(expected, actual, bound, where, closed=True)
        return _unmatched(matcher, expected, actual, bound, where)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{where}: {actual!r} is not an array of {len(expected)}"
        pairs = zip(expected, actual, strict=True)
        told = (difference(one, other, bound, f"{where}[{at}]") for at, (one, other) in enumerate(pairs))
        return next((problem for problem in told if problem), None)
    literal = expected[1:] if isinstance(expected, str) and expected.startswith("$") else expected
    return None if _is(literal, actual) else f"{where}: {actual!r} is not {literal!r}"


def _is_placeholder(expected: Any) -> bool:
    return isinstance(expected, str) and expected.startswith("$") and not expected.startswith("$$")


def _unmatched(
    matcher: str, expected: dict[str, Any], actual: Any, bound: dict[str, Any], where: str
) -> str | None:
    wanted = expected[matcher]
    match matcher:
        case "$any":
            exact = wanted == "boolean" or not isinstance(actual, bool) or wanted == "value"
            fits = exact and isinstance(actual, KINDS[wanted])
        case "$has":
            unwanted = [
                name for name in expected.get("$lacks", []) if isinstance(actual, dict) and name in actual
            ]
            if unwanted:
                return f"{where}: has {unwanted}"
            return _members(wanted, actual, bound, where, closed=False)
        case "$time":
            fits = isinstance(actual, str) and _unix_ms(actual) == START_MS + wanted
        case "$pattern":
            fits = isinstance(actual, str) and re.fullmatch(wanted, actual) is not None
        case "$without":
            fits = isinstance(actual, str) and wanted not in actual
        case "$other_than":
            fits = not _is(bound[wanted], actual)
        case _:
            fits = isinstance(actual, list) and sorted(map(repr, filled(wanted, bound))) == sorted(
                map(repr, actual)
            )
    return None if fits else f"{where}: {actual!r} is not {matcher} {wanted!r}"


def _members(
    expected: dict[str, Any], actual: Any, bound: dict[str, Any], where: str, *, closed: bool
) -> str | None:
    if not isinstance(actual, dict):
        return f"{where}: {actual!r} is not an object"
    if missing := [name for name in expected if name not in actual]:
        return f"{where}: lacks {missing}"
    if closed and (more := [name for name in actual if name not in expected]):
        return f"{where}: has {more}"
    told = (difference(value, actual[name], bound, f"{where}.{name}") for name, value in expected.items())
    return next((problem for problem in told if problem), None)


def _is(one: Any, other: Any) -> bool:
    """Whether two scalars are the same JSON: ``1`` is not ``true`` and not ``"1"``."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _unix_ms(text: str) -> int | None:
    """Return the instant of an RFC 3339 time in UTC with milliseconds; ``None``: it is none."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|\+00:00)", text):
        return None
    try:
        since = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:  # the 31st of February
        return None
    return round(since.timestamp() * 1000)
