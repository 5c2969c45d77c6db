"""What people and scripts type where JSON is wanted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcp_tasks_proto.errors import RemoteProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import decode

__all__ = ["InputError", "read_arguments", "read_json", "read_object"]

STANDARD_INPUT: Final = "-"


class InputError(Exception):
    """Something typed, or a file, is not what it should be; the message is a sentence for who typed it."""


def read_json(text: str | bytes, what: str) -> Any:
    """Read JSON, strictly; ``what`` names it in the message of an :class:`InputError`."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        return decode(data, Limits())
    except RemoteProtocolError as error:
        raise InputError(f"{what}: {error}.") from None


def read_object(source: str, what: str) -> dict[str, Any]:
    """Read a JSON object that is typed in place, in a file (``@file``), or on stdin (``-``).

    Raises :class:`InputError`.
    """
    if source == STANDARD_INPUT:
        value, where = read_json(sys.stdin.buffer.read(), f"{what} on stdin"), f"{what} on stdin"
    elif source.startswith("@"):
        where = f"{what} in {source[1:]}"
        value = read_json(_read_file(Path(source[1:]), what), where)
    else:
        value, where = read_json(source, what), what
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a JSON object.")
    return value


def read_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Read the arguments of a tool: one JSON object, or ``name=text`` and ``name:=json`` one by one.

    Raises :class:`InputError`.
    """
    if len(words) == 1 and (words[0] == STANDARD_INPUT or words[0].lstrip().startswith(("{", "@"))):
        return read_object(words[0], "ARGS")
    arguments: dict[str, Any] = {}
    for word in words:
        name, value = _read_pair(word)
        if name in arguments:
            raise InputError(f"The argument {name!r} is given twice.")
        arguments[name] = value
    return arguments


def _read_pair(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or name in {"", ":"}:
        raise InputError(
            f"{word!r} is no argument: write name=text or name:=json, one JSON object, @file, or - for stdin."
        )
    if name.endswith(":"):
        name = name[:-1]
        try:
            return name, read_json(value, f"The argument {name!r}")
        except InputError as error:
            raise InputError(f"{error} A text is written {name}=text, without the colon.") from None
    return name, value


def _read_file(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{what}: cannot read {path}: {error.strerror}.") from None
