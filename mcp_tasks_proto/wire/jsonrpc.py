"""Messages: strict JSON in UTF-8, and what kind of JSON-RPC 2.0 message a value is (WIRE.1 to WIRE.3).

Two steps that can be used apart. :func:`decode` and :func:`encode` are for a host without a JSON parser of
its own; :func:`parse_message` takes any JSON value and says what it is. Neither repeats a peer's payload in
an error text (SEC.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from math import isfinite
from re import compile as pattern
from typing import Any, Final, NoReturn, TypeGuard

from attrs import evolve, frozen

from mcp_tasks_proto.errors import (
    ErrorObject,
    LimitExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    invalid_request,
    parse_error,
)
from mcp_tasks_proto.limits import Limits

__all__ = [
    "SCALARS",
    "Malformed",
    "Message",
    "Notification",
    "Request",
    "Response",
    "decode",
    "deeper_than",
    "encode",
    "encode_checked",
    "error_message",
    "is_id",
    "json_size",
    "message_too_large",
    "notification_message",
    "parse_error_object",
    "parse_message",
    "request_message",
    "result_message",
]


# -- bytes to values ---------------------------------------------------------------------------------


def decode(data: bytes | bytearray | memoryview, limits: Limits) -> Any:
    """Read one JSON value (WIRE.2).

    Stricter than :func:`json.loads`: UTF-8 only and without a byte order mark, no NaN or Infinity, no number
    that overflows to one, no member twice in an object, no lone surrogate.

    Raises :class:`LimitExceeded` for ``Limits.message_bytes`` and ``Limits.message_depth``, and
    :class:`RemoteProtocolError` with -32700 for everything else; the text says where reading failed, where
    that is known.
    """
    if len(data) > limits.message_bytes:
        raise message_too_large(limits)
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(f"not UTF-8 at byte {error.start}") from None
    try:
        value, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_WHITESPACE)))
    except JSONDecodeError as error:
        raise _unreadable(f"not JSON at character {error.pos}") from None
    except RecursionError:
        raise _too_deep(limits) from None
    except ValueError:
        # The interpreter's own bound on digits, which keeps the conversion from taking quadratic time.
        raise _unreadable("an integer has too many digits") from None
    if end != len(text) and text[end:].strip(_WHITESPACE):
        raise _unreadable(f"more than one JSON value, the second at character {end}")
    # No text is nested deeper than it has opening brackets: most messages need no closer look.
    if text.count("{") + text.count("[") > limits.message_depth and deeper_than(value, limits.message_depth):
        raise _too_deep(limits)
    if "\\u" in text:
        for escape in _ESCAPE.finditer(text):
            if escape["lone"]:
                raise _unreadable(f"a lone surrogate at character {escape.start()}")
    return value


def message_too_large(limits: Limits) -> LimitExceeded:
    """Return the error for a message over ``Limits.message_bytes``, in whatever framing it came."""
    return _limit_exceeded("message_bytes", f"a message may have {limits.message_bytes} bytes")


def _too_deep(limits: Limits) -> LimitExceeded:
    return _limit_exceeded("message_depth", f"a message may be nested {limits.message_depth} levels deep")


def _limit_exceeded(limit: str, detail: str) -> LimitExceeded:
    return LimitExceeded(evolve(invalid_request(detail), data={"reason": limit}), limit)


def _unreadable(detail: str) -> RemoteProtocolError:
    return RemoteProtocolError(parse_error(detail))


def _read_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(members)
    if len(read) != len(members):
        raise _unreadable("an object has two members of the same name")
    return read


def _read_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise _unreadable("a number is out of range")
    return number


def _refuse_constant(_: str) -> NoReturn:
    raise _unreadable("NaN and Infinity are not JSON")


def deeper_than(value: Any, depth: int) -> bool:
    """Whether arrays and objects in ``value``, a JSON value, are nested more than ``depth`` levels."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(depth):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, _CONTAINERS)
        ]
        if not level:
            return False
    return True


_CONTAINERS: Final = (dict, list, tuple)
_WHITESPACE: Final = " \t\n\r"
_ESCAPE: Final = pattern(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|(?P<lone>u[dD][89a-fA-F])|.)")
"""What follows a backslash in a JSON text: a pair of surrogates, half of one, or anything else."""

_DECODER: Final = JSONDecoder(
    object_pairs_hook=_read_object, parse_float=_read_float, parse_constant=_refuse_constant
)


# -- values to bytes ---------------------------------------------------------------------------------


def encode(message: Mapping[str, Any]) -> bytes:
    """Write a message as compact UTF-8 JSON, on one line.

    Raises :class:`LocalProtocolError`, naming the problem, for what JSON cannot say: a name that is not a
    string, a value of another type than JSON's, NaN, a lone surrogate, a container inside itself, more than
    512 levels of containers.
    """
    return _encode(message)


def encode_checked(message: Mapping[str, Any]) -> bytes:
    """Do as :func:`encode` for a message whose member names are known to be strings, which is faster.

    Known are those of messages that an engine made of checked values. Any other name would become a string.
    """
    return _written(message)


def json_size(value: Any) -> int:
    """Return how many bytes ``value`` takes in a message. Raises as :func:`encode` does."""
    return len(_encode(value))


def _encode(value: Any) -> bytes:
    data = _written(value)
    _refuse_other_names(value)
    return data


def _written(value: Any) -> bytes:
    try:
        text = _ENCODER.encode(value)
        data = text.encode()
    except UnicodeEncodeError:
        raise _not_json("a string with a lone surrogate") from None
    except RecursionError:
        raise _not_json(_DEPTH_PROBLEM) from None
    except TypeError:
        raise _not_json(_NAME_PROBLEM) from None
    except ValueError as error:
        raise _not_json(str(error)) from None
    if text.count("{") + text.count("[") > _WRITTEN_DEPTH and deeper_than(value, _WRITTEN_DEPTH):
        raise _not_json(_DEPTH_PROBLEM)
    return data


def _refuse_other_names(value: Any) -> None:
    """Refuse member names that are not strings, which the encoder would turn into strings silently.

    ``value`` was encoded before: it has an end.
    """
    containers = [value]
    for container in containers:
        if isinstance(container, dict):
            for name, child in container.items():
                if name.__class__ is not str and not isinstance(name, str):
                    raise _not_json(_NAME_PROBLEM)
                if child.__class__ not in SCALARS:
                    containers.append(child)
        elif isinstance(container, (list, tuple)):
            containers.extend(child for child in container if child.__class__ not in SCALARS)


def _refuse_type(value: Any) -> NoReturn:
    raise _not_json(f"a value of type {type(value).__name__}")


def _not_json(problem: str) -> LocalProtocolError:
    return LocalProtocolError(f"not JSON: {problem}")


_WRITTEN_DEPTH: Final = 512
"""How deep a value may be nested that is written: no more than any interpreter has room for on its stack."""
_DEPTH_PROBLEM: Final = f"a container inside itself, or nested more than {_WRITTEN_DEPTH} levels deep"
_NAME_PROBLEM: Final = "a member name that is not a string"
SCALARS: Final = frozenset({str, int, bool, float, type(None)})
"""Types of JSON values that hold no others."""
_ENCODER: Final = JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False, default=_refuse_type
)


# -- kinds of messages ----------------------------------------------------------------------------------


@frozen
class Request:
    """A message that is owed a reply. ``id`` keeps its JSON type: ``1`` and ``"1"`` differ (WIRE.3)."""

    id: str | int
    method: str
    params: Mapping[str, Any]
    """Empty when the message has none."""


@frozen
class Notification:
    """A message that is owed nothing."""

    method: str
    params: Mapping[str, Any]
    """Empty when the message has none."""


@frozen(kw_only=True)
class Response:
    """A reply: exactly one of ``result`` and ``error`` is not ``None``."""

    id: str | int | None
    """``None``: the peer could not read the id of what it answers; with ``error`` only."""
    result: Mapping[str, Any] | None = None
    error: ErrorObject | None = None


@frozen
class Malformed:
    """A JSON value that is no message."""

    error: ErrorObject
    """-32600, to be answered (WIRE.1)."""
    id: str | int | None = None
    """The id, where it could be read."""


Message = Request | Notification | Response | Malformed

_NO_PARAMS: Final[Mapping[str, Any]] = {}
_ID_TYPES: Final = (int, str)
_ID_PROBLEM: Final = '"id" must be a string or an integer'


def parse_message(message: Any) -> Message:
    """Say what kind of message a JSON value is (WIRE.1, WIRE.3).

    Members that JSON-RPC does not know are tolerated. Never raises: a value that is no message is
    :class:`Malformed`.
    """
    if not isinstance(message, dict):
        batch = isinstance(message, list)
        return Malformed(invalid_request("batches are not served" if batch else "not an object"))
    if message.get("jsonrpc") != "2.0":
        return _malformed('"jsonrpc" must be "2.0"', message)
    if "method" not in message:
        return _parse_response(message)
    method = message["method"]
    if not isinstance(method, str):
        return _malformed('"method" must be a string', message)
    params = message.get("params", _NO_PARAMS)
    if not isinstance(params, dict):
        return _malformed('"params" must be an object', message)
    if "id" not in message:
        return Notification(method, params)
    request_id = message["id"]
    if type(request_id) not in _ID_TYPES:
        return _malformed(_ID_PROBLEM, message)
    return Request(request_id, method, params)


def _malformed(problem: str, message: Mapping[str, Any]) -> Malformed:
    return Malformed(invalid_request(problem), _readable_id(message))


def is_id(value: Any) -> TypeGuard[str | int]:
    """Whether this can be a request's id or a progress token: a string or an integer, and no boolean."""
    return type(value) in _ID_TYPES


def _readable_id(message: Mapping[str, Any]) -> str | int | None:
    request_id = message.get("id")
    return request_id if is_id(request_id) else None


def _parse_response(message: Mapping[str, Any]) -> Response | Malformed:
    if ("result" in message) == ("error" in message):
        return _malformed('needs a "method", or one of "result" and "error"', message)
    response_id = _readable_id(message)
    if response_id is None and ("result" in message or message.get("id") is not None):
        return _malformed(_ID_PROBLEM, message)
    if "result" in message:
        result = message["result"]
        if not isinstance(result, dict):
            return _malformed('"result" must be an object', message)
        return Response(id=response_id, result=result)
    error = parse_error_object(message["error"])
    if error is None:
        return _malformed('"error" must have an integer "code" and a string "message"', message)
    return Response(id=response_id, error=error)


def parse_error_object(value: Any) -> ErrorObject | None:
    """Read a JSON-RPC error, without loss: its ``to_wire()`` gives ``value`` again. ``None``: it is none."""
    if not isinstance(value, dict):
        return None
    code, message, data = value.get("code"), value.get("message"), value.get("data")
    if type(code) is not int or not isinstance(message, str):
        return None
    extra = {name: member for name, member in value.items() if name not in _ERROR_MEMBERS}
    if data is None and "data" in value:
        extra["data"] = None
    return ErrorObject(code, message, data, extra or None)


_ERROR_MEMBERS: Final = frozenset({"code", "message", "data"})


# -- messages to send -----------------------------------------------------------------------------------


def request_message(id: str | int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notification_message(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result_message(id: str | int, result: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002
    """Return the reply to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error_message(id: str | int | None, error: ErrorObject) -> dict[str, Any]:  # noqa: A002
    """Return the reply to a request that failed; without an ``id`` member where it could not be read."""
    if id is None:
        return {"jsonrpc": "2.0", "error": error.to_wire()}
    return {"jsonrpc": "2.0", "id": id, "error": error.to_wire()}
