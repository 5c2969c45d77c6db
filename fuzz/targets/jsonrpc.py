"""JSON and JSON-RPC (WIRE.1 to WIRE.5). The input is what a peer sent.

* :func:`decode` accepts exactly what a plain reading of WIRE.2 accepts, as the same value; all else raises
  ``RemoteProtocolError`` or ``LimitExceeded``, in words that are always the same (SEC.2).
* What was read can be written and is read again as the same; on stdio it is one line.
* :func:`parse_message` never raises, loses nothing, and is malformed exactly when WIRE.1 says so.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from fuzz.comparing import same
from mcp_tasks_proto.errors import LimitExceeded, RemoteProtocolError
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
    notification_message,
    parse_message,
    request_message,
    result_message,
)
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

LIMITS: Final = Limits(message_bytes=1024, message_depth=8)
ROOMY: Final = Limits()
TEXTS: Final = frozenset(
    {
        "Parse error: not UTF-N at byte N",
        "Parse error: not JSON at character N",
        "Parse error: an integer has too many digits",
        "Parse error: more than one JSON value, the second at character N",
        "Parse error: an object has two members of the same name",
        "Parse error: a number is out of range",
        "Parse error: NaN and Infinity are not JSON",
        "Parse error: a lone surrogate at character N",
        "Invalid request: a message may have N bytes",
        "Invalid request: a message may be nested N levels deep",
    }
)
UNREADABLE: Final = object()


def check(data: bytes) -> None:
    """Read, write and read again."""
    expected = _plainly_read(data)
    try:
        value = decode(data, LIMITS)
    except RemoteProtocolError as refusal:
        assert expected is UNREADABLE, "WIRE.2: refused, and nothing is wrong with it"
        _check_refusal(refusal, len(data))
        return
    assert expected is not UNREADABLE, "WIRE.2: accepted, and it should not be"
    assert same(value, expected), "WIRE.2: read as another value"
    _check_writing(value)
    _check_message(value)


def _check_refusal(refusal: RemoteProtocolError, size: int) -> None:
    text = re.sub("[0-9]+", "N", refusal.error.message)
    assert text in TEXTS, "SEC.2: a text that is not one of the usual"
    limit = refusal.limit if isinstance(refusal, LimitExceeded) else None
    assert (limit == "message_bytes") == (size > LIMITS.message_bytes), "WIRE.2: the bound on bytes"
    assert refusal.error.code == (-32700 if limit is None else -32600), "WIRE.1: the code"


def _check_writing(value: Any) -> None:
    message = {"value": value}
    written = encode(message)
    assert same(decode(written, ROOMY), message), "WIRE.5: written and read again, it differs"
    assert json_size(message) == len(written)
    assert LineDecoder(ROOMY).feed(frame(written)) == [written], "STD.1: it is one line"


def _check_message(value: Any) -> None:
    message = parse_message(value)
    rebuilt: dict[str, Any]
    match message:
        case Malformed(error=error, id=found):
            assert not _is_message(value), "WIRE.1: called malformed, and it is not"
            assert error.code == -32600
            wanted = value.get("id") if isinstance(value, dict) else None
            assert same(found, wanted if type(wanted) in (str, int) else None), "WIRE.1: the id"
            return
        case Request(id=name, method=method, params=params):
            rebuilt = request_message(name, method, params)
        case Notification(method=method, params=params):
            rebuilt = notification_message(method, params)
        case Response(id=name, error=None, result=result):
            assert name is not None
            assert result is not None
            rebuilt = result_message(name, result)
        case Response(id=name, error=error):
            assert error is not None
            rebuilt = error_message(name, error)
    assert _is_message(value), "WIRE.1: taken for a message, and it is none"
    if "method" in rebuilt:
        value = {"params": {}, **value}
    known = {name: value[name] for name in rebuilt}
    assert same(rebuilt, known), "WIRE.5: a loss"


# -- the same, in the plainest way ---------------------------------------------------------------------------


def _plainly_read(data: bytes) -> Any:
    """Return the value that the bytes stand for; :data:`UNREADABLE` for all that WIRE.2 excludes."""
    if len(data) > LIMITS.message_bytes:
        return UNREADABLE
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_once_each, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return UNREADABLE
    if not all(_is_plain(leaf) for leaf in _leaves(value)) or _depth(value) > LIMITS.message_depth:
        return UNREADABLE
    return value


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _once_each(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a member is there twice")
    return dict(members)


def _leaves(value: Any) -> list[Any]:
    """Return everything in a value that holds nothing, names of members included."""
    if isinstance(value, dict):
        return [*value, *(leaf for member in value.values() for leaf in _leaves(member))]
    if isinstance(value, list):
        return [leaf for member in value for leaf in _leaves(member)]
    return [value]


def _is_plain(leaf: Any) -> bool:
    if isinstance(leaf, str):
        return not re.search("[\ud800-\udfff]", leaf)
    return not isinstance(leaf, float) or abs(leaf) != float("inf")


def _depth(value: Any) -> int:
    if isinstance(value, (dict, list)):
        members = value.values() if isinstance(value, dict) else value
        return 1 + max((_depth(member) for member in members), default=0)
    return 0


def _is_message(value: Any) -> bool:
    """Whether a value is a request, a notification or a response (WIRE.1)."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    named = type(value.get("id")) in (str, int)
    if "method" in value:
        unnamed = "id" not in value
        return (
            isinstance(value["method"], str)
            and isinstance(value.get("params", {}), dict)
            and (named or unnamed)
        )
    if "result" in value:
        return named and "error" not in value and isinstance(value["result"], dict)
    error = value.get("error")
    return (
        (named or value.get("id") is None)
        and isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
    )
