"""Shapes of JSON values, put together from small checks.

A :data:`Check` says what is wrong with a value as the rest of a sentence that begins with the value's name:
``" must be a string"`` of the value itself, ``".name must be a string"`` or ``"[3] must be a string"`` of
what is in it. It never repeats the value (SEC.2), and looks no deeper than it was put together to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final

__all__ = [
    "AMOUNT",
    "BOOLEAN",
    "NUMBER",
    "OBJECT",
    "STRING",
    "STRINGS",
    "Check",
    "array_of",
    "by_tag",
    "choice",
    "is_array",
    "is_integer",
    "is_number",
    "members",
    "some",
    "value",
]

Check = Callable[[Any], str | None]
"""What is wrong with a value, if anything; see the module."""


def is_array(candidate: Any) -> bool:
    """Whether this is written to JSON as an array."""
    return isinstance(candidate, (list, tuple))


def is_number(candidate: Any) -> bool:
    """Whether this is a JSON number: no boolean, no NaN, no infinity."""
    if isinstance(candidate, float):
        return isfinite(candidate)
    return isinstance(candidate, int) and not isinstance(candidate, bool)


def is_integer(candidate: Any) -> bool:
    """Whether this is an integer as JSON Schema has it: ``3.0`` is one, ``true`` is none."""
    if isinstance(candidate, float):
        return candidate.is_integer()
    return is_number(candidate)


# -- putting checks together ---------------------------------------------------------------------------


def value(test: Callable[[Any], bool], wanted: str) -> Check:
    """Accept what passes ``test``; ``wanted`` says what that is, as in "a string"."""
    return lambda candidate: None if test(candidate) else f" must be {wanted}"


def choice(*words: str) -> Check:
    """Accept one of these words."""
    quoted = ", ".join(map(repr, words))
    return value(lambda candidate: candidate in words, quoted if len(words) == 1 else f"one of {quoted}")


def array_of(check: Check) -> Check:
    """Accept an array, each item of which passes ``check``."""

    def each(candidate: Any) -> str | None:
        if not is_array(candidate):
            return " must be an array"
        return _first((f"[{index}]", check(item)) for index, item in enumerate(candidate))

    return each


def some(check: Check) -> Check:
    """Accept what passes ``check`` and is not empty."""
    return lambda candidate: check(candidate) or (None if candidate else " must not be empty")


def members(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Accept an object with these members; others may stand beside them."""
    known = {**required, **(optional or {})}

    def each(candidate: Any) -> str | None:
        if not isinstance(candidate, Mapping):
            return " must be an object"
        for name in required:
            if name not in candidate:
                return f" lacks {name!r}"
        present = ((f".{name}", check(candidate[name])) for name, check in known.items() if name in candidate)
        return _first(present)

    return each


def by_tag(tag: str, kinds: Mapping[str, Check]) -> Check:
    """Accept an object that passes the check which its member ``tag`` names."""
    tagged = members({tag: choice(*kinds)})
    return lambda candidate: tagged(candidate) or kinds[candidate[tag]](candidate)


def _first(found: Iterable[tuple[str, str | None]]) -> str | None:
    return next((f"{where}{problem}" for where, problem in found if problem), None)


# -- the common ones -----------------------------------------------------------------------------------

STRING: Final = value(lambda candidate: isinstance(candidate, str), "a string")
STRINGS: Final = array_of(STRING)
BOOLEAN: Final = value(lambda candidate: isinstance(candidate, bool), "true or false")
OBJECT: Final = value(lambda candidate: isinstance(candidate, Mapping), "an object")
NUMBER: Final = value(is_number, "a number")
AMOUNT: Final = value(
    lambda candidate: is_integer(candidate) and candidate >= 0, "a whole number that is not negative"
)
