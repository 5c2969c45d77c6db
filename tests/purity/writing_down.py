"""All that an engine does on a busy day, as text; and, for once, collections whose order hangs on hashes."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any

from attrs import fields, has
from attrs.exceptions import FrozenInstanceError

from mcp_tasks_proto.testing import Recorder

__all__ = ["Begin", "beginning"]

Begin = Callable[[Any], None]
"""Has all written down that the engine of a host does; to be called before the host tells it anything."""


def beginning(lines: list[str], *, by_hash: bool) -> Begin:
    """Return what has each step come to ``lines``, store and deadlines and all.

    With ``by_hash``, a fault is planted: whatever an engine keeps by name, it goes through in the order of
    hashes, as through a set.
    """

    def begin(host: Any) -> None:
        host.engine = Recorder(host.engine, lines.append)
        if by_hash:
            _plant(host.engine.engine, {})

    return begin


class _ByHash(UserDict[Hashable, Any]):
    """A dictionary in the order in which a set of its keys might be, if they were all texts."""

    def __iter__(self) -> Iterator[Hashable]:
        return iter(sorted(self.data, key=_hash))


def _hash(key: Hashable) -> int:
    return hash(str(key)) if isinstance(key, str | int | tuple) else 0


def _plant(thing: Any, seen: dict[int, tuple[Any, Any]]) -> None:
    """Put others in the place of all empty dictionaries that can be reached; one that is shared stays so."""
    if id(thing) in seen or not has(type(thing)):
        return
    seen[id(thing)] = thing, thing  # the first of them keeps its id from becoming another's
    for known in fields(type(thing)):
        value = getattr(thing, known.name)
        if type(value) is dict and not value:
            _, other = seen.setdefault(id(value), (value, _ByHash()))
            with suppress(FrozenInstanceError):  # settings are values, which nothing is put into
                setattr(thing, known.name, other)
        else:
            _plant(value, seen)
