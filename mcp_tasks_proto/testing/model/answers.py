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


def difference(answer: PeerAnswer, reply: Mapping[str, Any]) -> str | None:
    """Say how a JSON-RPC reply differs from what it must be; ``None``: not at all."""
    if isinstance(answer, ResultAnswer):
        if "result" not in reply:
            return f"wanted the result {dict(answer.result)}, got the error {reply.get('error')}"
        got = {name: value for name, value in reply["result"].items() if name not in UNSPOKEN}
        return None if got == answer.result else f"wanted the result {dict(answer.result)}, got {got}"
    if "error" not in reply:
        return f"wanted the error {answer.code}, got the result {reply.get('result')}"
    error = reply["error"]
    if error["code"] != answer.code or answer.names not in error["message"]:
        return f"wanted the error {answer.code} naming {answer.names!r}, got {error}"
    if answer.data is not None and error.get("data") != answer.data:
        return f"wanted the data {dict(answer.data)}, got {error.get('data')}"
    return None
