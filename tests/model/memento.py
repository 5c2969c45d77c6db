"""The state of a world, kept so that the same objects can be put back into it, as often as one likes."""

from __future__ import annotations

from functools import cache
from itertools import count
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

from attrs import define, field, fields, frozen, has

__all__ = ["Memento"]

UNCHANGING: Final = (str, int, float, type(None), FunctionType, MethodType, BuiltinFunctionType, type)


@define(eq=False)
class Memento:
    """What there is in an object and in every changeable object that can be reached from it.

    Frozen values are left alone, and so is what is in them, but for those named in ``through``. An object
    that another is made of is taken to be so for good, but for attributes that are ``replaced``. A dictionary
    in a ``shallow`` attribute holds nothing that changes itself.
    """

    root: Any
    through: tuple[type, ...] = ()
    replaced: frozenset[str] = frozenset()
    shallow: frozenset[str] = frozenset()
    _objects: list[tuple[Any, list[tuple[str, Any]]]] = field(init=False, factory=list)
    _dicts: list[tuple[dict[Any, Any], dict[Any, Any]]] = field(init=False, factory=list)
    _lists: list[tuple[list[Any], list[Any]]] = field(init=False, factory=list)
    _sets: list[tuple[set[Any], set[Any]]] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._keep(self.root, set())

    def restore(self) -> None:
        """Put everything back."""
        for thing, members in self._objects:
            for name, value in members:
                setattr(thing, name, count(value.at) if type(value) is _Count else value)
        for mapping, entries in self._dicts:
            mapping.clear()
            mapping.update(entries)
        for sequence, items in self._lists:
            sequence[:] = items
        for group, elements in self._sets:
            group.clear()
            group.update(elements)

    def _keep(self, value: Any, seen: set[int]) -> None:
        cls: Any = type(value)
        if cls in UNCHANGING or id(value) in seen:
            return
        if cls is tuple:
            for item in value:
                self._keep(item, seen)
            return
        members = _members(cls, cls in self.through)
        if members is None:
            return
        seen.add(id(value))
        if cls is dict:
            self._keep_dict(value, seen)
        elif cls is list:
            self._lists.append((value, list(value)))
            for item in value:
                self._keep(item, seen)
        elif cls is set:
            self._sets.append((value, set(value)))
        else:
            self._keep_object(value, members, seen)

    def _keep_dict(self, mapping: dict[Any, Any], seen: set[int]) -> None:
        if any(type(value) is MethodType for value in mapping.values()):
            return  # who does what is settled once
        self._dicts.append((mapping, dict(mapping)))
        for key, value in mapping.items():
            self._keep(key, seen)
            self._keep(value, seen)

    def _keep_object(self, thing: Any, members: tuple[str, ...], seen: set[int]) -> None:
        kept: list[tuple[str, Any]] = []
        for name in members:
            value = getattr(thing, name)
            cls: Any = type(value)
            if cls is count:
                kept.append((name, _Count(_at(value))))
                continue
            if cls is dict and name in self.shallow:
                self._dicts.append((value, dict(value)))
            else:
                self._keep(value, seen)
            if thing is self.root or name in self.replaced or not _is_part(cls):
                kept.append((name, value))
        if kept and type(thing) not in self.through:
            self._objects.append((thing, kept))


@frozen
class _Count:
    """Where an ``itertools.count`` is."""

    at: int


def _at(numbers: count[int]) -> int:
    return int(repr(numbers).removeprefix("count(").removesuffix(")"))


@cache
def _members(cls: type, wanted: bool) -> tuple[str, ...] | None:
    """Return the attributes of a changeable class, none for a collection; ``None``: nothing can change."""
    if cls in (dict, list, set):
        return ()
    if not has(cls) or (not wanted and "_frozen" in cls.__setattr__.__qualname__):
        return None
    return tuple(known.name for known in fields(cls))


@cache
def _is_part(cls: type) -> bool:
    """Whether values of this class are what an object is made of, once and for all: only they change."""
    return (
        cls is MethodType
        or cls.__name__ == "ServerSettings"
        or (has(cls) and _members(cls, False) is not None)
    )
