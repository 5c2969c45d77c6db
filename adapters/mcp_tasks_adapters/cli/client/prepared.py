"""Answers that a script gives beforehand: ``--answer KEY=JSON`` and ``--answers FILE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from mcp_tasks_adapters.cli.client.arguments import InputError, read_json, read_object
from mcp_tasks_adapters.cli.client.fields import ABSENT, form_fields
from mcp_tasks_proto.input_requests import check_response

__all__ = ["PreparedAnswers", "response_from"]

ANY: Final = "*"
"""Stands for every key without an answer of its own."""
ACTIONS: Final = ("accept", "decline", "cancel")


@define(eq=False)
class PreparedAnswers:
    """Answers by the keys of their questions; that of ``*`` is for all others."""

    _answers: Mapping[str, Any]
    _used: set[str] = field(init=False, factory=set)

    @classmethod
    def read(cls, pairs: Sequence[str], file: str | None) -> PreparedAnswers:
        """Read the options; an answer on the command line goes before one in the file.

        Raises :class:`InputError`.
        """
        answers = {} if file is None else read_object(f"@{file}", "The answers")
        typed: dict[str, Any] = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals or not key:
                raise InputError(
                    f"--answer {pair!r}: write KEY=JSON, or KEY= and one of {', '.join(ACTIONS)}."
                )
            if key in typed:
                raise InputError(f"--answer {key!r} is given twice.")
            typed[key] = value if value in ACTIONS else read_json(value, f"The answer to {key!r}")
        return cls({**answers, **typed})

    def take(self, key: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the response to a question, if one was prepared for it.

        Raises :class:`InputError` for one that does not fit the question.
        """
        name = key if key in self._answers else ANY
        if name not in self._answers:
            return None
        response: Mapping[str, Any] = response_from(self._answers[name], request)
        if problem := check_response(request, response):
            raise InputError(f"The prepared answer to {key!r} does not fit: {problem}.")
        self._used.add(name)
        return response

    @property
    def unused(self) -> Sequence[str]:
        """The keys that nobody asked for."""
        return [key for key in self._answers if key not in self._used and key != ANY]


def response_from(answer: Any, request: Mapping[str, Any]) -> Any:
    """Return the response that an answer stands for.

    It is one already, or one of the three actions by its name (to accept a form means to send its defaults),
    or the content of an accepted form.
    """
    form = request["method"] == "elicitation/create" and request["params"].get("mode") != "url"
    if answer == "accept" and form:
        defaults = {one.name: one.default for one in form_fields(request) if one.default is not ABSENT}
        return {"action": "accept", "content": defaults}
    if isinstance(answer, str) and answer in ACTIONS:
        return {"action": answer}
    if form and not _is_response(answer):
        return {"action": "accept", "content": answer}
    return answer


def _is_response(answer: Any) -> bool:
    return (
        isinstance(answer, dict) and answer.get("action") in ACTIONS and set(answer) <= {"action", "content"}
    )
