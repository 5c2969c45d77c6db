"""JSON values on their way between an author's code and the wire."""

from __future__ import annotations

from collections.abc import Mapping
from json import loads
from typing import Any

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = ["check_milliseconds", "check_text", "complete_result", "wire_value"]


def wire_value(value: Any) -> Any:
    """Return ``value`` as its reader will see it: a copy that went through JSON.

    The copy keeps what was promised to a peer apart from objects that an author's code may still change.
    Raises ``ValueError`` where ``value`` is not JSON: other types, NaN, lone surrogates, circles.
    """
    try:
        return loads(encode(dict(value) if isinstance(value, Mapping) else value))
    except LocalProtocolError as error:
        raise ValueError(str(error)) from None


def complete_result(returned: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as its reader will see it. Raises ``ValueError`` for what cannot be a final result."""
    result: dict[str, Any] = wire_value(returned)
    if result.get("resultType", "complete") != "complete":
        raise ValueError("return call.task(...) or call.input_required(...) for such a resultType")
    if not isinstance(result.get("_meta", {}), dict):
        raise ValueError("the _meta of a result is an object")
    return result


def check_milliseconds(name: str, value: int | None) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``value`` is a positive integer or ``None``."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is an integer of milliseconds, or None")
    if value <= 0:
        raise ValueError(f"{name} must be positive")


def check_text(name: str, value: str | None) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``value`` is text that UTF-8 can carry, or ``None``."""
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a lone surrogate") from None
