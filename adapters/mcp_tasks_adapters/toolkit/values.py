"""JSON values on their way between an author's code and the wire."""

from __future__ import annotations

from collections.abc import Mapping
from json import loads
from typing import Any, Final

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.wire.jsonrpc import deeper_than, encode

__all__ = ["DEPTH", "check_milliseconds", "check_text", "complete_result", "wire_value"]

LONGEST_MS: Final = 2**63 - 1
"""The longest lifetime or interval: beyond, not everybody who reads it can compute with it."""

DEPTH: Final = 256
"""How deep an author's value may be nested.

The interpreter's own bound depends on how much of its stack is in use: what was just within it here might not
be where the value is written into a message.
"""


def wire_value(value: Any) -> Any:
    """Return ``value`` as its reader will see it: a copy that went through JSON.

    The copy keeps what was promised to a peer apart from objects that an author's code may still change.
    Raises ``ValueError`` where ``value`` is not JSON (other types, NaN, lone surrogates, circles), or nested
    more than :data:`DEPTH` levels deep.
    """
    try:
        written = encode(dict(value) if isinstance(value, Mapping) else value)
    except LocalProtocolError as error:
        raise ValueError(str(error)) from None
    # As when a message is read: most values need no closer look.
    copy = loads(written)
    if written.count(b"{") + written.count(b"[") > DEPTH and deeper_than(copy, DEPTH):
        raise ValueError(f"nested more than {DEPTH} levels deep")
    return copy


def complete_result(returned: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as its reader will see it. Raises ``ValueError`` for what cannot be a final result."""
    result: dict[str, Any] = wire_value(returned)
    if result.get("resultType", "complete") != "complete":
        raise ValueError("return call.task(...) or call.input_required(...) for such a resultType")
    if not isinstance(result.get("_meta", {}), dict):
        raise ValueError("the _meta of a result is an object")
    return result


def check_milliseconds(name: str, value: int | None) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``value`` is a positive integer of 64 bits or ``None``."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is an integer of milliseconds, or None")
    if value <= 0:
        raise ValueError(f"{name} must be positive")
    if value > LONGEST_MS:
        raise ValueError(f"{name} must be below 2**63")


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
