"""Strict JSON and the kinds of messages: WIRE.1, WIRE.2, WIRE.3, SEC.2."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.errors import (
    ErrorCode,
    ErrorObject,
    LimitExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    invalid_request,
)
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
    error_message,
    json_size,
    message_too_large,
    notification_message,
    parse_error_object,
    parse_message,
    request_message,
    result_message,
)

LIMITS = Limits()

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)


def refused(data: bytes, limits: Limits = LIMITS) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        decode(data, limits)
    return caught.value


# -- decode ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind: Any) -> None:
    assert decode(kind(b'{"a": [1, 2.5, "\xc3\xa9", true, null]}'), LIMITS) == {
        "a": [1, 2.5, "é", True, None]
    }


def test_whitespace_around_a_value_is_allowed() -> None:
    assert decode(b' \t\r\n{"a":1} \t\r\n', LIMITS) == {"a": 1}


@settings(deadline=None)
@given(VALUES)
def test_what_json_writes_is_read(value: Any) -> None:
    assert decode(json.dumps(value).encode(), LIMITS) == value
    assert decode(json.dumps(value, ensure_ascii=False, indent=1).encode(), LIMITS) == value


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0e-+.\\ud8a tfn\n', max_size=40).map(str.encode))
def test_garbage_is_a_value_or_a_clean_error(data: bytes) -> None:
    """WIRE.2: whatever the bytes, one of the two documented outcomes; what is read is plain JSON."""
    try:
        value = decode(data, LIMITS)
    except RemoteProtocolError:
        assert refused(data).error.code in (ErrorCode.PARSE_ERROR, ErrorCode.INVALID_REQUEST)
    else:
        assert decode(encode({"value": value}), LIMITS) == {"value": value}


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"", "not JSON at character 0"),
        (b"  ", "not JSON at character 2"),
        (b"{", "not JSON at character 1"),
        (b'{"jsonrpc":"2.0","id":1,"meth', "not JSON at character 24"),
        (b'{"a":1,}', "not JSON at character"),
        (b"[1 2]", "not JSON at character 3"),
        (b"{'a':1}", "not JSON at character 1"),
        (b"tru", "not JSON at character 0"),
        (b"01", "the second at character 1"),
        (b"{}{}", "the second at character 2"),
        (b"{}\x0c", "the second at character 2"),
        ("{}\xa0".encode(), "the second at character 2"),
        (b'{"a":1} x', "the second at character 7"),
        (b'"\n"', "not JSON at character 1"),
        (b'"\\x"', "not JSON at character 1"),
        (b'"\\u12"', "not JSON at character"),
        (b"\xef\xbb\xbf{}", "not JSON at character 0"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b'"\xed\xa0\x80"', "not UTF-8 at byte 1"),
        (b'"\xc0\xaf"', "not UTF-8 at byte 1"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8 at byte 0"),
        (b'"\xe2\x82', "not UTF-8 at byte 1"),
    ],
)
def test_what_is_not_json_is_a_parse_error_that_says_where(data: bytes, where: str) -> None:
    """WIRE.1: -32700, without an id."""
    error = refused(data)
    assert error.error.code == ErrorCode.PARSE_ERROR
    assert where in error.error.message
    assert error.request_id is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "Infinity"),
        (b"1e999", "out of range"),
        (b"[-1E400]", "out of range"),
        (b"1" * 400 + b".0", "out of range"),
        (b"9" * 100_000, "too many digits"),
        (b'{"a":1,"a":1}', "two members of the same name"),
        (b'{"a":1,"\\u0061":2}', "two members of the same name"),
        (b'[{"b":{"a":1,"c":2,"a":3}}]', "two members of the same name"),
    ],
)
def test_json_that_python_would_take_and_we_do_not(data: bytes, why: str) -> None:
    """WIRE.2."""
    error = refused(data)
    assert error.error.code == ErrorCode.PARSE_ERROR
    assert why in error.error.message


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (r'"\ud800"', 1),
        (r'"\uDFFF"', 1),
        (r'"ab\udc00\ud800"', 3),
        (r'"\ud83d\u0041"', 1),
        (r'"\ud83dx\ude00"', 1),
        (r'"\ud83d\ude00\ude00"', 13),
        (r'"\\\ud800"', 3),
        (r'["é", "\ud800"]', 7),
        (r'{"\ud800":1}', 2),
        ('"é\\n\\"\\ud800"', 6),
    ],
)
def test_lone_surrogates_are_refused(text: str, where: int) -> None:
    """WIRE.2."""
    error = refused(text.encode())
    assert error.error.code == ErrorCode.PARSE_ERROR
    assert error.error.message.endswith(f"a lone surrogate at character {where}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\uD83D\uDE00\uD83D\uDE00"', "\U0001f600\U0001f600"),
        (r'"\\ud800"', "\\ud800"),
        (r'"\\\\ud800 \\\u00e9"', "\\\\ud800 \\é"),
        (r'"\u4e2d\ud7ff\ue000"', "\u4e2d\ud7ff\ue000"),
        (r'"a\nb\"\u0000"', 'a\nb"\0'),
    ],
)
def test_other_escapes_are_read(text: str, value: str) -> None:
    assert decode(text.encode(), LIMITS) == value


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\\", r"\n", r"\u0041", "u", "d800", "é"]), max_size=8)
)
def test_a_string_is_refused_exactly_when_utf8_cannot_write_it(parts: list[str]) -> None:
    text = '"' + "".join(parts) + '"'
    try:
        json.loads(text).encode()
    except UnicodeEncodeError:
        assert "lone surrogate" in refused(text.encode()).error.message
    else:
        assert decode(text.encode(), LIMITS) == json.loads(text)


def nested(opening: str, closing: str, depth: int) -> bytes:
    return (opening * depth + "1" + closing * depth).encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_is_bounded(opening: str, closing: str) -> None:
    """WIRE.2, LIM.3."""
    levels = 2 if opening.startswith("[{") else 1
    limits = Limits(message_depth=6)
    decode(nested(opening, closing, 6 // levels), limits)
    error = refused(nested(opening, closing, 6 // levels + 1), limits)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "message_depth"
    assert error.error == ErrorObject(
        ErrorCode.INVALID_REQUEST,
        "Invalid request: a message may be nested 6 levels deep",
        {"reason": "message_depth"},
    )


def test_a_wide_message_is_not_a_deep_one() -> None:
    assert len(decode(b"[" + b",".join([b'{"a":[]}'] * 1000) + b"]", LIMITS)) == 1000


def test_brackets_in_strings_are_no_depth() -> None:
    assert decode(json.dumps(["[{" * 500]).encode(), LIMITS) == ["[{" * 500]


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, nested("[", "]", 100_000)])
def test_bottomless_nesting_is_a_clean_error(data: bytes) -> None:
    """WIRE.2: never a crash."""
    error = refused(data)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "message_depth"


def test_size_is_bounded_in_bytes() -> None:
    """WIRE.2, LIM.3."""
    limits = Limits(message_bytes=6)
    assert decode('"éé"'.encode(), limits) == "éé"
    error = refused('"ééa"'.encode(), limits)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "message_bytes"
    assert error.error == message_too_large(limits).error
    assert error.error == ErrorObject(
        ErrorCode.INVALID_REQUEST,
        "Invalid request: a message may have 6 bytes",
        {"reason": "message_bytes"},
    )


@pytest.mark.parametrize(
    "data",
    [
        b'{"hunter2":1,"hunter2":2}',
        b'{"password":"hunter2',
        b"hunter2",
        b'"hunter2\\q"',
        b'"hunter2\\ud800"',
        b'"hunter2\xff"',
        b'"hunter2" "hunter2"',
        b'{"hunter2":NaN}',
        b'{"hunter2":1e999}',
        b'["hunter2",' * 100,
    ],
)
def test_error_texts_do_not_repeat_the_payload(data: bytes) -> None:
    """SEC.2."""
    error = refused(data)
    assert "hunter2" not in f"{error} {error.error}"


# -- encode ------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(OBJECTS)
def test_what_is_written_is_read_again(message: dict[str, Any]) -> None:
    data = encode(message)
    assert json.loads(data) == message
    assert decode(data, LIMITS) == message
    assert b"\n" not in data
    assert b"\r" not in data
    assert json_size(message) == len(data)


def test_the_form_is_compact_utf8() -> None:
    message = {"a": [1, "é\n", None], "b": {}, "c": True}
    assert encode(message) == b'{"a":[1,"\xc3\xa9\\n",null],"b":{},"c":true}'


def test_json_size_takes_any_value() -> None:
    assert json_size("é") == 4
    assert json_size([]) == 2
    assert json_size(None) == 4


def test_python_values_with_a_plain_meaning_are_written() -> None:
    class Code(IntEnum):
        ONE = 1

    class Name(StrEnum):
        A = "a"

    value: dict[str, Any] = OrderedDict({Name.A: (Code.ONE, [True])})
    assert encode(value) == b'{"a":[1,[true]]}'


def circular() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["again"] = [ring]
    return ring


def deep(levels: int) -> Any:
    value: Any = []
    for level in range(levels - 1):
        value = (value,) if level % 2 else [value]
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({1: "a"}, "a member name that is not a string"),
        ({"a": {None: 1}}, "a member name that is not a string"),
        ({"a": [({True: 1},)]}, "a member name that is not a string"),
        ({"a": {1.5: 1}}, "a member name that is not a string"),
        ({("a",): 1}, "a member name that is not a string"),
        ({"a": {1, 2}}, "a value of type set"),
        ({"a": b"bytes"}, "a value of type bytes"),
        ({"a": object}, "a value of type type"),
        ({"a": MappingProxyType({})}, "a value of type mappingproxy"),
        ({"a": float("nan")}, "Out of range float"),
        ({"a": [float("-inf")]}, "Out of range float"),
        ({"a": "\ud800"}, "a lone surrogate"),
        ({"\udfff": 1}, "a lone surrogate"),
        ({"a": 10**5000}, "limit"),
        (circular(), "a container inside itself"),
        ({"a": deep(512)}, "nested more than 512 levels deep"),
        ({"a": deep(1_500)}, "nested more than 512 levels deep"),
        ({"a": deep(100_000)}, "nested more than 512 levels deep"),
    ],
)
def test_what_json_cannot_say_is_the_hosts_error(value: dict[Any, Any], problem: str) -> None:
    with pytest.raises(LocalProtocolError, match=r"^not JSON: ") as caught:
        encode(value)
    assert problem in str(caught.value)
    with pytest.raises(LocalProtocolError) as sized:
        json_size(value)
    assert str(sized.value) == str(caught.value)


def test_what_is_nested_just_deep_enough_is_written_by_every_interpreter() -> None:
    """Room on the stack is not the same in all of them; 512 levels are."""
    value = {"a": deep(511)}
    assert encode(value) == b'{"a":' + b"[" * 511 + b"]" * 511 + b"}"
    assert json_size(value) == 1_028


def test_many_containers_beside_each_other_are_not_deep() -> None:
    value: dict[str, Any] = {"a": [[]] * 600}
    assert json_size(value) == len(encode(value)) == 1_807


# -- parse_message -----------------------------------------------------------------------------------


@pytest.mark.parametrize("request_id", [1, 0, -7, 2**80, "1", "", "a b"])
def test_a_request_keeps_the_type_of_its_id(request_id: str | int) -> None:
    """WIRE.3."""
    parsed = parse_message({"jsonrpc": "2.0", "id": request_id, "method": "tasks/get", "params": {"a": 1}})
    assert parsed == Request(request_id, "tasks/get", {"a": 1})
    assert isinstance(parsed, Request)
    assert type(parsed.id) is type(request_id)


def test_absent_params_are_empty() -> None:
    assert parse_message({"jsonrpc": "2.0", "id": 1, "method": "ping"}) == Request(1, "ping", {})
    assert parse_message({"jsonrpc": "2.0", "method": "n"}) == Notification("n", {})


def test_a_message_without_an_id_is_a_notification() -> None:
    parsed = parse_message(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    )
    assert parsed == Notification("notifications/cancelled", {"requestId": 1})


def test_other_members_of_the_envelope_are_tolerated() -> None:
    """WIRE.5."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "m", "trace": 1, "result": {}, "error": None}
    assert parse_message(message) == Request(1, "m", {})


@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        (None, None),
        ("text", None),
        (1, None),
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "m"}], None),
        ({}, None),
        ({"id": 5}, 5),
        ({"id": 5, "method": "m"}, 5),
        ({"jsonrpc": 2.0, "id": 5, "method": "m"}, 5),
        ({"jsonrpc": "1.0", "id": "x", "method": "m"}, "x"),
        ({"jsonrpc": "2.0", "id": 5}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": None}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": ["m"]}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": "m", "params": []}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": "m", "params": None}, 5),
        ({"jsonrpc": "2.0", "id": None, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": 1.0, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": [1], "method": "m"}, None),
        ({"jsonrpc": "2.0", "method": 7}, None),
        ({"jsonrpc": "2.0", "id": 5, "result": {}, "error": {"code": 1, "message": "m"}}, 5),
        ({"jsonrpc": "2.0", "id": 5, "result": "text"}, 5),
        ({"jsonrpc": "2.0", "id": None, "result": {}}, None),
        ({"jsonrpc": "2.0", "result": {}}, None),
        ({"jsonrpc": "2.0", "id": False, "result": {}}, None),
        ({"jsonrpc": "2.0", "id": 5, "error": "text"}, 5),
        ({"jsonrpc": "2.0", "id": 5, "error": {"code": "1", "message": "m"}}, 5),
        ({"jsonrpc": "2.0", "id": 5, "error": {"code": True, "message": "m"}}, 5),
        ({"jsonrpc": "2.0", "id": 5, "error": {"code": 1}}, 5),
        ({"jsonrpc": "2.0", "id": 1.5, "error": {"code": 1, "message": "m"}}, None),
    ],
)
def test_what_is_no_message_is_malformed(message: Any, request_id: str | int | None) -> None:
    """WIRE.1: -32600, with the id where it could be read."""
    parsed = parse_message(message)
    assert isinstance(parsed, Malformed)
    assert parsed.error.code == ErrorCode.INVALID_REQUEST
    assert parsed.id == request_id
    assert type(parsed.id) is type(request_id)


ID_PROBLEM = '"id" must be a string or an integer'


@pytest.mark.parametrize(
    ("message", "malformed"),
    [
        (None, Malformed(invalid_request("not an object"))),
        ("text", Malformed(invalid_request("not an object"))),
        ([], Malformed(invalid_request("batches are not served"))),
        ([{"jsonrpc": "2.0", "id": 1, "method": "m"}], Malformed(invalid_request("batches are not served"))),
        ({"id": 5, "method": "m"}, Malformed(invalid_request('"jsonrpc" must be "2.0"'), 5)),
        (
            {"jsonrpc": "2.0", "id": 5},
            Malformed(invalid_request('needs a "method", or one of "result" and "error"'), 5),
        ),
        (
            {"jsonrpc": "2.0", "id": 5, "method": 1},
            Malformed(invalid_request('"method" must be a string'), 5),
        ),
        (
            {"jsonrpc": "2.0", "id": 5, "method": "m", "params": []},
            Malformed(invalid_request('"params" must be an object'), 5),
        ),
        ({"jsonrpc": "2.0", "id": True, "method": "m"}, Malformed(invalid_request(ID_PROBLEM))),
        ({"jsonrpc": "2.0", "id": [], "result": {}}, Malformed(invalid_request(ID_PROBLEM))),
        (
            {"jsonrpc": "2.0", "id": 5, "result": []},
            Malformed(invalid_request('"result" must be an object'), 5),
        ),
        (
            {"jsonrpc": "2.0", "id": 5, "error": {}},
            Malformed(invalid_request('"error" must have an integer "code" and a string "message"'), 5),
        ),
    ],
)
def test_the_refusal_of_a_message_says_what_is_wrong(message: Any, malformed: Malformed) -> None:
    """WIRE.1."""
    assert parse_message(message) == malformed


@settings(deadline=None)
@given(
    VALUES
    | st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | VALUES,
            "id": st.integers() | VALUES,
            "method": st.just("tasks/get") | VALUES,
            "params": VALUES,
            "result": VALUES,
            "error": st.just({"code": 1, "message": "m"}) | VALUES,
        },
    )
)
def test_every_value_is_some_kind_of_message(value: Any) -> None:
    """A peer cannot raise; and a message that was taken can be built again."""
    match parse_message(value):
        case Request(request_id, method, params):
            assert type(request_id) in (int, str)
            assert {"params": {}, **value}.items() >= request_message(request_id, method, params).items()
        case Notification(method, params):
            assert "id" not in value
            assert value["method"] == method
            assert value.get("params", {}) == params
        case Response(result=result, error=error):
            assert (result is None) != (error is None)
        case Malformed(error):
            assert error.code == ErrorCode.INVALID_REQUEST


def test_responses() -> None:
    assert parse_message(result_message("a", {"x": 1})) == Response(id="a", result={"x": 1})
    error = ErrorObject(-32602, "no", {"x": 1})
    assert parse_message(error_message(7, error)) == Response(id=7, error=error)


@pytest.mark.parametrize("envelope", [{}, {"id": None}])
def test_an_error_may_answer_what_had_no_readable_id(envelope: Mapping[str, Any]) -> None:
    """WIRE.1: such an error comes without an id; the older form, a null id, is read as well."""
    message = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, **envelope}
    assert parse_message(message) == Response(id=None, error=ErrorObject(-32700, "Parse error"))


# -- errors and envelopes ----------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.fixed_dictionaries({"code": st.integers(), "message": TEXTS}, optional={"data": VALUES}),
    OBJECTS,
)
def test_an_error_object_survives(wire: dict[str, Any], more: dict[str, Any]) -> None:
    """WIRE.5: unknown members too, and a null ``data`` stays apart from an absent one."""
    unknown = {name: member for name, member in more.items() if name != "data"}
    value = {**unknown, **wire}
    error = parse_error_object(value)
    assert error is not None
    assert error.to_wire() == value


def test_a_null_data_member_is_kept() -> None:
    wire = {"code": 1, "message": "m", "data": None}
    error = parse_error_object(wire)
    assert error is not None
    assert error.to_wire() == wire


@pytest.mark.parametrize("value", [None, [], {"code": 1.0, "message": "m"}, {"code": 1, "message": None}])
def test_what_is_no_error_object(value: Any) -> None:
    assert parse_error_object(value) is None


def test_envelopes() -> None:
    assert request_message("1", "m", {"a": 1}) == {
        "jsonrpc": "2.0",
        "id": "1",
        "method": "m",
        "params": {"a": 1},
    }
    assert notification_message("m", {}) == {"jsonrpc": "2.0", "method": "m", "params": {}}
    assert result_message(1, {}) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    error = ErrorObject(1, "m")
    assert error_message(1, error) == {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}}
    assert "id" not in error_message(None, error)
    assert error_message(0, error)["id"] == 0
