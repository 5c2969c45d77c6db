"""Results and input requests in the specification's shapes, and the answers that come back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

__all__ = ["Answer", "elicit", "elicit_url", "error_text", "list_roots", "sample", "structured", "text"]


# -- results ---------------------------------------------------------------------------------------------


def text(*parts: str) -> dict[str, Any]:
    """Return a tool result of text blocks, one for each part."""
    return {"content": [{"type": "text", "text": part} for part in parts]}


def error_text(*parts: str) -> dict[str, Any]:
    """Return a tool result that says the tool could not do it (``isError``)."""
    return {**text(*parts), "isError": True}


def structured(value: Any, *parts: str) -> dict[str, Any]:
    """Return a tool result of structured content; its text is ``parts``, or else ``value`` as JSON."""
    return {**text(*(parts or (json.dumps(value, ensure_ascii=False),))), "structuredContent": value}


# -- input requests -----------------------------------------------------------------------------------------


def elicit(*, message: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a request that shows the user a form.

    ``schema`` is a flat object schema of primitive fields. Without one the form has no fields: the answer
    is whether the user accepts.
    """
    requested = {"type": "object", "properties": {}} if schema is None else dict(schema)
    params = {"mode": "form", "message": message, "requestedSchema": requested}
    return {"method": "elicitation/create", "params": params}


def elicit_url(*, message: str, url: str) -> dict[str, Any]:
    """Return a request that sends the user to ``url``, for what must not pass through the client."""
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


def sample(messages: str | Sequence[Mapping[str, Any]], *, max_tokens: int, **params: Any) -> dict[str, Any]:
    """Return a request that has the client's model write something.

    ``messages`` may be one user message, as a string. More ``params`` go by their names in the
    specification: ``systemPrompt=``, ``temperature=``, ``tools=``.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    return {
        "method": "sampling/createMessage",
        "params": {"messages": list(messages), "maxTokens": max_tokens, **params},
    }


def list_roots() -> dict[str, Any]:
    """Return a request for the client's roots; they come in ``answer.response["roots"]``."""
    return {"method": "roots/list", "params": {}}


@frozen
class Answer:
    """What came back for one input request."""

    response: Mapping[str, Any]
    """The client's result, as it came."""

    @property
    def accepted(self) -> bool:
        """Whether the user said yes. Answers other than to an elicitation always count as yes."""
        return bool(self.response.get("action", "accept") == "accept")

    @property
    def declined(self) -> bool:
        """Whether the user said no."""
        return bool(self.response.get("action") == "decline")

    @property
    def cancelled(self) -> bool:
        """Whether the user left the question without an answer."""
        return bool(self.response.get("action") == "cancel")

    @property
    def content(self) -> Any:
        """The filled-in form, or the model's message content; ``None`` where there is neither."""
        return self.response.get("content")
