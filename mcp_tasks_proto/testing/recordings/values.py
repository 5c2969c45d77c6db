"""Values as JSON that a person can read, and back without loss.

What is JSON stands as it is. A value of a class of this package is an object with its class under
``"$type"`` and its fields beside, those left out that have their default::

    {"$type": "Loaded", "token": 3, "record": null}

What else Python has and JSON has not is written likewise: ``{"$type": "bytes", "base64url": "AAE"}``, or
``"text"`` where the bytes are ASCII; ``tuple``, ``set`` and ``frozenset`` with their ``items``; ``float``
with its ``value``, if it is not finite; ``mapping`` with its ``items``, an object whose members are no
strings or have the name ``"$type"``. A field that is declared as a tuple, a sequence or a set is a plain
array.

Whatever else a host uses as a name is a :class:`~mcp_tasks_proto.testing.recordings.kinds.Name`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from json import dumps
from typing import Any, Final, Literal

from attrs import NOTHING, Attribute, Factory, define, field, fields, frozen

from mcp_tasks_proto.testing.recordings.kinds import ENUMS, VALUES, Name
from mcp_tasks_proto.wire.base64url import to_bytes, to_text

__all__ = [
    "DEPTH",
    "NAMES",
    "TYPE",
    "UnreadableError",
    "UnwritableError",
    "ValueWriter",
    "check_depth",
    "read_value",
]

TYPE: Final = "$type"
"""The member that names a class."""

DEPTH: Final = 100
"""How deep a value may be nested; a message may be 64 deep by default (WIRE.2)."""

WRITTEN_DEPTH: Final = 4 * DEPTH
"""How deep JSON may be nested that stands for a value: each level may have become three."""

NAMES: Final = 16_384
"""Names of a host's that are remembered; then the one that was used longest ago is forgotten."""


class UnwritableError(ValueError):
    """A value cannot be written; the text says of which class it is, and nothing of what is in it."""


class UnreadableError(ValueError):
    """JSON is no value that this version knows; the text says why."""


# -- classes -------------------------------------------------------------------------------------------------


@frozen
class _Field:
    """One field of a class, as it is written."""

    attribute: str
    name: str
    """As the class is called with it."""
    array: Literal["tuple", "frozenset"] | None
    """Of what a plain array stands for."""
    default: Any
    """``NOTHING``: there is none."""

    def has_default(self, value: Any) -> bool:
        """Whether this need not be written."""
        return type(value) is type(self.default) and bool(value == self.default)


@cache
def _fields_of(cls: Any) -> tuple[_Field, ...]:
    return tuple(
        _Field(known.name, known.alias or known.name, _array_of(known), _default_of(known))
        for known in fields(cls)
        if known.init
    )


def _array_of(known: Attribute[Any]) -> Literal["tuple", "frozenset"] | None:
    """Return what an array in place of this field is. Annotations are text, until somebody resolves them."""
    declared = str(known.type).removeprefix("collections.abc.")
    if declared.startswith(("tuple[", "Sequence[")):
        return "tuple"
    return "frozenset" if declared.startswith("frozenset[") else None


def _default_of(known: Attribute[Any]) -> Any:
    default: Any = known.default
    if isinstance(default, Factory):  # type: ignore[arg-type]  # a class, whatever its stub says
        return NOTHING if default.takes_self else default.factory()
    return default


# -- writing -------------------------------------------------------------------------------------------------


@define(eq=False)
class ValueWriter:
    """Writes the values of one recording, in which a name stays the same."""

    _names: OrderedDict[Any, Name] = field(init=False, factory=OrderedDict)
    """Those used longest ago first."""
    _named: int = field(init=False, default=0)

    def write(self, value: Any, *, whole: bool = False) -> Any:
        """Return JSON; with ``whole``, fields that have their default are written too.

        Raises :class:`UnwritableError`.
        """
        return self._write(value, whole, DEPTH)

    def _write(self, value: Any, whole: bool, depth: int) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if depth == 0:
            raise UnwritableError(f"it is nested more than {DEPTH} deep")
        depth -= 1
        if kind is list:
            return [self._write(item, whole, depth) for item in value]
        if kind is dict:
            return self._mapping(value, whole, depth)
        if VALUES.get(kind.__name__) is kind:
            return self._value(value, whole, depth)
        if ENUMS.get(kind.__name__) is kind:
            return {TYPE: kind.__name__, "value": value.value}
        if kind in _WRITERS:
            return _WRITERS[kind](self, value, whole, depth)
        if isinstance(value, Mapping):
            return self._mapping(value, whole, depth)
        return self._other(value, kind)

    def _mapping(self, value: Mapping[Any, Any], whole: bool, depth: int) -> Any:
        if TYPE not in value and all(type(name) is str for name in value):
            return {name: self._write(member, whole, depth) for name, member in value.items()}
        return {TYPE: "mapping", "items": self._items(value.items(), whole, depth)}

    def _items(self, pairs: Iterable[tuple[Any, Any]], whole: bool, depth: int) -> list[Any]:
        return [[self._write(name, whole, depth), self._write(item, whole, depth)] for name, item in pairs]

    def _value(self, value: Any, whole: bool, depth: int) -> dict[str, Any]:
        cls: Any = type(value)
        written: dict[str, Any] = {TYPE: cls.__name__}
        for known in _fields_of(cls):
            member = getattr(value, known.attribute)
            if whole or not known.has_default(member):
                written[known.name] = self._member(known, member, whole, depth)
        return written

    def _member(self, known: _Field, member: Any, whole: bool, depth: int) -> Any:
        if known.array == "tuple" and isinstance(member, tuple | list):
            return [self._write(item, whole, depth) for item in member]
        if known.array == "frozenset" and isinstance(member, frozenset):
            return self._in_order(member, whole, depth)
        return self._write(member, whole, depth)

    def _in_order(self, items: Iterable[Any], whole: bool, depth: int) -> list[Any]:
        """Write a set: the same one is always the same text, in every process."""
        return sorted((self._write(item, whole, depth) for item in items), key=_text)

    def _tuple(self, value: tuple[Any, ...], whole: bool, depth: int) -> dict[str, Any]:
        return {TYPE: "tuple", "items": [self._write(item, whole, depth) for item in value]}

    def _set(self, value: Iterable[Any], whole: bool, depth: int) -> dict[str, Any]:
        return {TYPE: type(value).__name__, "items": self._in_order(value, whole, depth)}

    def _bytes(self, value: bytes, _: bool, __: int) -> dict[str, Any]:
        if value.isascii():
            return {TYPE: "bytes", "text": value.decode("ascii")}
        return {TYPE: "bytes", "base64url": to_text(value)}

    def _float(self, value: float, _: bool, __: int) -> Any:
        written = repr(value)
        return {TYPE: "float", "value": written} if written in _NOT_FINITE else value

    def _other(self, value: Any, kind: type) -> Any:
        for base, plain in _BASES:
            if isinstance(value, base):
                return self._write(plain(value), False, 1)
        try:
            return self._value(self._name(value, kind), False, 1)
        except TypeError:  # it cannot be hashed
            raise UnwritableError(f"a {kind.__name__} is neither JSON nor the name of anything") from None

    def _name(self, value: Any, kind: type) -> Name:
        """Return what an object is called, which is then the one that was used last."""
        name = self._names.get(value)
        if name is None:
            self._named += 1
            name = self._names[value] = Name(kind.__name__, self._named)
            if len(self._names) > NAMES:
                self._names.popitem(last=False)
        else:
            self._names.move_to_end(value)
        return name


_PLAIN: Final = frozenset({str, int, bool, type(None)})
_NOT_FINITE: Final = frozenset({"nan", "inf", "-inf"})
_BASES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)
"""What JSON takes a value of a derived class for: a member of ``IntEnum``, for instance."""

_WRITERS: Final[Mapping[type, Callable[[ValueWriter, Any, bool, int], Any]]] = {
    tuple: ValueWriter._tuple,
    set: ValueWriter._set,
    frozenset: ValueWriter._set,
    bytes: ValueWriter._bytes,
    float: ValueWriter._float,
}


def _text(written: Any) -> str:
    return dumps(written, sort_keys=True)


# -- reading -------------------------------------------------------------------------------------------------


def check_depth(written: Any) -> None:
    """Refuse, as :class:`UnreadableError`, JSON that is nested too deep for :func:`read_value`."""
    level = [written]
    for _ in range(WRITTEN_DEPTH):
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
        if not level:
            return
    raise UnreadableError(f"it is nested more than {WRITTEN_DEPTH} deep")


def read_value(written: Any) -> Any:
    """Read what a :class:`ValueWriter` wrote, once :func:`check_depth` let it pass.

    Raises :class:`UnreadableError`.
    """
    if isinstance(written, list):
        return [read_value(item) for item in written]
    if not isinstance(written, dict):
        return written
    name = written.get(TYPE)
    if name is None:
        return {member: read_value(value) for member, value in written.items()}
    members = {member: value for member, value in written.items() if member != TYPE}
    if not isinstance(name, str):
        raise UnreadableError(f"{TYPE} is not the name of a class")
    cls = VALUES.get(name)
    if cls is not None:
        return _read_fields(cls, members)
    read = _read_member if name in ENUMS else _READERS.get(name)
    if read is None:
        raise UnreadableError(f"this version knows no {name}")
    try:
        return read(name, **members)
    except UnreadableError:
        raise
    except Exception:  # whatever it is: what stands there may be anything
        raise UnreadableError(f"this is no {name}") from None


def _read_fields(cls: Any, members: Mapping[str, Any]) -> Any:
    known = {one.name: one for one in _fields_of(cls)}
    read: dict[str, Any] = {}
    for name, member in members.items():
        if name not in known:
            raise UnreadableError(f"{cls.__name__} has no {name} in this version")
        read[name] = read_value(member)
    try:
        return cls(**{name: _READ_ARRAYS[known[name].array](member) for name, member in read.items()})
    except Exception as error:  # likewise: each class checks its fields in its own way
        raise UnreadableError(f"this is no {cls.__name__}: {error}") from None


def _array_as(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: kind(value) if isinstance(value, list) else value


_READ_ARRAYS: Final[Mapping[str | None, Callable[[Any], Any]]] = {
    None: lambda value: value,
    "tuple": _array_as(tuple),
    "frozenset": _array_as(frozenset),
}


def _read_member(name: str, *, value: Any) -> Enum:
    return ENUMS[name](value)


def _read_bytes(_: str, *, text: str | None = None, base64url: str = "") -> bytes:
    read = to_bytes(base64url) if text is None else text.encode("ascii")
    if read is None:
        raise ValueError
    return read


def _read_items(name: str, *, items: list[Any]) -> Any:
    return _COLLECTIONS[name](read_value(items))


def _read_float(_: str, *, value: str) -> float:
    return float(value)


_COLLECTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "mapping": dict,
}

_READERS: Final[Mapping[str, Callable[..., Any]]] = {
    **dict.fromkeys(_COLLECTIONS, _read_items),
    "bytes": _read_bytes,
    "float": _read_float,
}
