"""Names of tools, and patterns for them: ``*`` stands for any characters, or none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["ANY", "matches", "may_begin_with"]

ANY: Final = "*"


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns describes the name; in time linear in both, whoever wrote them."""
    return any(_match(pattern, name) for pattern in patterns)


def may_begin_with(pattern: str, lead: str) -> bool:
    """Whether a name that the pattern describes may begin with ``lead``, and go on."""
    fixed, star, _ = pattern.partition(ANY)
    if star:
        return fixed.startswith(lead) or lead.startswith(fixed)
    return fixed.startswith(lead) and fixed != lead


def _match(pattern: str, name: str) -> bool:
    first, *rest = pattern.split(ANY)
    if not rest:
        return pattern == name
    *middle, last = rest
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    # What stands between two stars is looked for from the left: the leftmost place leaves the most room.
    place, end = len(first), len(name) - len(last)
    for part in middle:
        place = name.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True
