"""Values in recordings: nothing is lost on the way to JSON and back, and it reads well."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final, get_args, get_origin, get_type_hints

import pytest
from attrs import Factory, fields, has
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import (
    DEFAULT,
    KEEP,
    CallBecameTask,
    ErrorCode,
    ErrorObject,
    HmacSealer,
    InputEntry,
    Limits,
    Loaded,
    Status,
    TaskRecord,
    ToolDeclaration,
    WorkProgressed,
)
from mcp_tasks_proto.inputs import Default, Keep
from mcp_tasks_proto.legacy.server.inner import InnerExchange
from mcp_tasks_proto.proxy import ProxySettings, RandomDrawn, Upstream
from mcp_tasks_proto.request_state import Sealer
from mcp_tasks_proto.testing.recordings.kinds import ENUMS, VALUES, Name
from mcp_tasks_proto.testing.recordings.values import (
    DEPTH,
    NAMES,
    UnreadableError,
    ValueWriter,
    check_depth,
    read_value,
)
from mcp_tasks_proto.testing.strategies import records
from tests.unit.proxy_world import make_binding

RECORD: Final = TaskRecord(
    task_id="t" * 24,
    version=3,
    principal=None,
    tool="render",
    arguments={"frames": 3, "$type": "mine"},
    client_capabilities={},
    status=Status.INPUT_REQUIRED,
    created_at_ms=1,
    last_updated_at_ms=2,
    ttl_ms=None,
    inputs=(InputEntry(key="k", name="n", ask=None, request={"method": "roots/list"}),),
    extra={"later": [1, {"x": None}]},
)

MIRRORED: Final = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
PAIR: Final = {"$type": "tuple", "items": ["b"]}
RANDOM_TEXT: Final = {"$type": "bytes", "text": "a" * 32}


def written(value: Any, **how: Any) -> Any:
    """Return the JSON of a value, as it is after it was text."""
    return json.loads(json.dumps(ValueWriter().write(value, **how)))


@pytest.mark.parametrize(
    ("value", "json_value"),
    [
        ({"a": [1, 1.5, True, None, "\ud800"]}, {"a": [1, 1.5, True, None, "\ud800"]}),
        ({"$type": "bytes"}, {"$type": "mapping", "items": [["$type", "bytes"]]}),
        ({1: "a", ("b",): 2}, {"$type": "mapping", "items": [[1, "a"], [PAIR, 2]]}),
        (b"plain {}", {"$type": "bytes", "text": "plain {}"}),
        (b"\x00\xff", {"$type": "bytes", "base64url": "AP8"}),
        (b"", {"$type": "bytes", "text": ""}),
        ({3, 1}, {"$type": "set", "items": [1, 3]}),
        (frozenset({"b", "a"}), {"$type": "frozenset", "items": ["a", "b"]}),
        (float("-inf"), {"$type": "float", "value": "-inf"}),
        (Status.WORKING, {"$type": "Status", "value": "working"}),
        (InnerExchange(7), {"$type": "InnerExchange", "number": 7}),
        (RandomDrawn(1, b"a" * 32), {"$type": "RandomDrawn", "token": 1, "random": RANDOM_TEXT}),
        (Loaded(3, None), {"$type": "Loaded", "token": 3, "record": None}),
    ],
)
def test_a_value_and_its_json(value: Any, json_value: Any) -> None:
    assert written(value) == json_value
    back = read_value(json_value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        RECORD,
        make_binding(extra={"later": 1}),
        CallBecameTask(exchange=("a", 1), task_id="t", ttl_ms=DEFAULT, poll_interval_ms=None),
        WorkProgressed(task_id="t", token=frozenset({1}), status_message=KEEP, ttl_ms=None),
        ErrorObject(-32602, "no", {"a": 1}, {"b": 2}),
        ToolDeclaration(name="t", definition={"name": "t", "inputSchema": MIRRORED}),
        Upstream(name="a"),
        Limits(tasks=3, ttl_ceiling_ms=None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_this_package_come_back_as_they_were(value: Any) -> None:
    for whole in (False, True):
        assert read_value(written(value, whole=whole)) == value


def test_a_field_with_its_default_is_left_out_and_one_that_looks_like_it_is_not() -> None:
    """0 and False are equal to Python; a recording tells them apart."""
    assert written(ErrorObject(1, "m")) == {"$type": "ErrorObject", "code": 1, "message": "m"}
    whole = {"$type": "ErrorObject", "code": 1, "message": "m", "data": None, "extra": None}
    assert written(ErrorObject(1, "m"), whole=True) == whole
    odd: Any = WorkProgressed(task_id="t", token=1, resumption=False)
    assert read_value(written(odd)).resumption is False


def test_what_is_derived_from_plain_values_is_plain() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Level(IntEnum):
        HIGH = 3

    class Metres(float): ...

    read = written([Colour.RED, Level.HIGH, Metres(2.5), Metres("nan"), ErrorCode.INVALID_PARAMS])
    assert read == ["red", 3, 2.5, {"$type": "float", "value": "nan"}, -32602]
    assert written(MappingProxyType({"a": (1,)})) == {"a": {"$type": "tuple", "items": [1]}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.just("$type") | st.integers(), inner, max_size=3)
        | st.sets(st.integers() | st.text(), max_size=3)
        | st.frozensets(st.binary(), max_size=3)
    ),
    max_leaves=10,
)


def shape(value: Any) -> Any:
    """Return a value such that 1, 1.0 and True, or a list and a tuple, are not taken for the same."""
    if isinstance(value, Mapping):
        return [(shape(name), shape(member)) for name, member in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [shape(item) for item in value]
    return type(value), value


@settings(max_examples=50)
@given(json_values)
def test_anything_that_is_written_comes_back_as_it_was(value: Any) -> None:
    there = written(value)
    check_depth(there)
    assert shape(read_value(there)) == shape(value)


@settings(max_examples=25)
@given(records())
def test_records_come_back_as_they_were(record: TaskRecord) -> None:
    assert read_value(written(record)) == record


def test_a_name_stays_the_same_for_as_long_as_it_is_used() -> None:
    writer, first, second = ValueWriter(), object(), object()
    assert writer.write([first, second, first]) == [
        {"$type": "Name", "of": "object", "number": number} for number in (1, 2, 1)
    ]
    assert read_value(writer.write(second)) == Name("object", 2)
    for _ in range(NAMES - 1):
        writer.write(object())
    assert writer.write(second)["number"] == 2
    assert writer.write(first)["number"] == NAMES + 2, "it was used longest ago"


def test_lim3_a_value_may_be_nested_so_deep() -> None:
    value: Any = {}
    for _ in range(DEPTH - 1):
        value = {1: value}
    there = written(value)
    check_depth(there)
    assert read_value(there) == value


ANYTHING: Final[list[Any]] = [None, True, -1, 10**400, 1.5, "", "\ud800", [], [[]], {}, {"$type": "Absent"}]


def test_whatever_stands_for_a_value_is_one_or_is_said_to_be_none() -> None:
    """No other exception leaves: a class checks its fields in its own way, and a file may say anything."""
    members = {cls: tuple(known.alias or known.name for known in fields(VALUES[cls])) for cls in VALUES}
    members |= dict.fromkeys(ENUMS, ("value",))
    members |= dict.fromkeys(("tuple", "set", "frozenset", "mapping"), ("items",))
    members |= {"float": ("value",), "bytes": ("text", "base64url")}
    refused = 0
    for name, of_class in members.items():
        for anything in ANYTHING:
            for there in ({}, *({one: anything} for one in of_class), dict.fromkeys(of_class, anything)):
                try:
                    read_value({"$type": name, **there})
                except UnreadableError:
                    refused += 1
    assert refused


# -- everything that can come is known ---------------------------------------------------------------------


def parts(kind: Any) -> set[type]:
    """Return the classes in an annotation."""
    if get_origin(kind) is not None:
        return {cls for argument in get_args(kind) for cls in parts(argument)}
    return {kind} if isinstance(kind, type) else set()


def test_whatever_inputs_and_effects_are_made_of_has_a_name() -> None:
    """A class that another one of a recording has as a field is in one of the tables."""
    unknown = {
        (cls.__name__, part.__name__)
        for cls in VALUES.values()
        for part in set().union(*(parts(kind) for kind in get_type_hints(cls).values()))
        if (has(part) or issubclass(part, Enum)) and part not in {*VALUES.values(), *ENUMS.values()}
    }
    assert not unknown


def test_no_class_has_anothers_name_and_none_holds_a_key() -> None:
    assert all(cls.__name__ == name for name, cls in {**VALUES, **ENUMS}.items())
    assert not VALUES.keys() & ENUMS.keys()
    assert HmacSealer not in VALUES.values()
    assert {cls for cls in VALUES.values() if Sealer in get_type_hints(cls).values()} == {
        VALUES["ServerSettings"],
        ProxySettings,
    }
    assert {Default, Keep} <= set(ENUMS.values())


def test_no_default_depends_on_other_fields() -> None:
    """A recording leaves out fields that have their default, which is one value."""
    for cls in VALUES.values():
        for known in fields(cls):
            default: Any = known.default
            if known.init and isinstance(default, Factory):  # type: ignore[arg-type]
                assert not default.takes_self, (cls, known.name)
