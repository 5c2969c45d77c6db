"""What a server must say: answers to its callers and to its workers, and how they differ from real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

__all__ = [
    "ACKNOWLEDGED",
    "SOME_TEXT",
    "TAKEN",
    "UNDECLARED",
    "UNKNOWN",
    "ErrorAnswer",
    "PeerAnswer",
    "ReportAnswer",
    "ResultAnswer",
    "difference",
]


@frozen(eq=False)
class _SomeText:
    """Equal to every text: the model does not say which."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str | _SomeText)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "some text"


SOME_TEXT: Final = _SomeText()
"""A text that is the server's own to choose."""

UNSPOKEN: Final = ("_meta", "lastUpdatedAt")
"""Members of a result of which the model says nothing."""


# -- answers -----------------------------------------------------------------------------------------------


@frozen
class ResultAnswer:
    """A result with exactly these members, beside ``_meta`` and ``lastUpdatedAt``."""

    result: Mapping[str, Any]


@frozen(kw_only=True)
class ErrorAnswer:
    """An error with this code."""

    code: int
    data: Mapping[str, Any] | None = None
    """``None``: any, or none."""
    names: str = ""
    """What the text must contain."""
    unknown_task: bool = False
    """It is one of those that must not differ in anything (GET.2)."""


@frozen
class ReportAnswer:
    """What a worker is told of its report."""

    refused: str | None = None
    """``None``: it was taken, or was too late to matter; otherwise a word that the reason must contain."""


PeerAnswer = ResultAnswer | ErrorAnswer
"""What a caller is told."""
TAKEN: Final = ReportAnswer()
ACKNOWLEDGED: Final = ResultAnswer({"resultType": "complete"})
UNDECLARED: Final = ErrorAnswer(
    code=-32021, data={"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
)
UNKNOWN: Final = ErrorAnswer(code=-32602, unknown_task=True)


# -- comparing ---------------------------------------------------------------------------------------------


def difference(answer: PeerAnswer, reply: Any) -> str | None:
    """Say how a JSON-RPC reply differs from what it must be; ``None``: not at all.

    Values are compared as JSON: ``1``, ``1.0`` and ``true`` are three. No reply makes this raise.
    """
    reply = reply if isinstance(reply, Mapping) else {}
    if isinstance(answer, ResultAnswer):
        return _other_result(answer.result, reply)
    error = reply.get("error")
    if not isinstance(error, Mapping):
        return f"wanted the error {answer.code}, got {_got(reply)}"
    if not _same(answer.code, error.get("code")):
        return f"wanted the error {answer.code}, got {_got(reply)}"
    text = error.get("message")
    if not isinstance(text, str) or answer.names not in text:
        naming = f" that names {answer.names!r}" if answer.names else ""
        return f"wanted a message{naming}, got {_got(reply)}"
    if answer.data is not None and not _same(answer.data, error.get("data")):
        return f"wanted the data {dict(answer.data)}, got {error.get('data')}"
    return None


def _other_result(wanted: Mapping[str, Any], reply: Mapping[str, Any]) -> str | None:
    result = reply.get("result")
    if not isinstance(result, Mapping):
        return f"wanted the result {dict(wanted)}, got {_got(reply)}"
    got = {name: value for name, value in result.items() if name not in UNSPOKEN}
    others = [name for name in dict.fromkeys([*wanted, *got]) if not _same_member(name, wanted, got)]
    if not others:
        return None
    return "; ".join(f"{name}: wanted {_shown(wanted, name)}, got {_shown(got, name)}" for name in others)


def _same_member(name: str, wanted: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    return name in wanted and name in got and _same(wanted[name], got[name])


def _shown(values: Mapping[str, Any], name: str) -> str:
    return repr(values[name]) if name in values else "nothing"


def _got(reply: Mapping[str, Any]) -> str:
    for kind in ("error", "result"):
        if kind in reply:
            return f"the {kind} {reply[kind]!r}"
    return "no JSON-RPC response"


def _same(wanted: Any, got: Any) -> bool:
    """Whether two values are the same JSON."""
    match wanted, got:
        case Mapping(), Mapping():
            return wanted.keys() == got.keys() and all(_same(wanted[name], got[name]) for name in wanted)
        case list() | tuple(), list() | tuple():
            return len(wanted) == len(got) and all(map(_same, wanted, got))
        case _SomeText(), _:
            return isinstance(got, str)
    return type(wanted) is type(got) and bool(wanted == got)
