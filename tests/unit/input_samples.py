"""Input requests to test with, and short ways to ask what is wrong with them or with an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_tasks_proto.input_requests import check_requests, check_response


def form(properties: Mapping[str, Any], required: Sequence[str] = (), **params: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema, **params}}


def url(**params: Any) -> dict[str, Any]:
    goes = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", **params}
    return {"method": "elicitation/create", "params": goes}


def sample(*messages: Any, **params: Any) -> dict[str, Any]:
    asked = messages or (said("user", text("Hello?")),)
    return {
        "method": "sampling/createMessage",
        "params": {"messages": list(asked), "maxTokens": 10, **params},
    }


def said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": blocks[0] if len(blocks) == 1 else list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def used(name: str, *content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": name, "content": list(content), **more}


ROOTS: Final[dict[str, Any]] = {"method": "roots/list"}
EMPTY_FORM: Final = form({})


def problem_of(request: Any, *, from_peer: bool = False) -> str | None:
    """What is wrong with one request; the sentence must begin with where it stands."""
    problem = check_requests({"confirm": request}, from_peer=from_peer)
    if problem is None:
        return None
    assert problem.startswith("requests['confirm']")
    return problem.removeprefix("requests['confirm']")


def schema_problem(schema: Any, *, from_peer: bool = False) -> str | None:
    params = {"message": "?", "requestedSchema": schema}
    problem = problem_of({"method": "elicitation/create", "params": params}, from_peer=from_peer)
    if problem is None:
        return None
    assert problem.startswith(".params.requestedSchema")
    return problem.removeprefix(".params.requestedSchema")


def field_problem(field: Any, *, from_peer: bool = False) -> str | None:
    problem = schema_problem({"type": "object", "properties": {"x": field}}, from_peer=from_peer)
    if problem is None:
        return None
    assert problem.startswith(".properties['x']")
    return problem.removeprefix(".properties['x']")


def accept(request: Mapping[str, Any], content: Any) -> str | None:
    return check_response(request, {"action": "accept", "content": content})


def filled(field: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with ``value`` in a form of one field."""
    problem = accept(form({"x": field}), {"x": value})
    if problem is None:
        return None
    assert problem.startswith("answer.content['x']")
    return problem.removeprefix("answer.content['x']")


# -- what requests are made of --------------------------------------------------------------------------

OPTIONS: Final = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]

FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "string": {
        "type": "string",
        "title": "T",
        "description": "D",
        "minLength": 1,
        "maxLength": 9,
        "default": "d",
    },
    "email": {"type": "string", "format": "email", "default": "user@example.com"},
    "uri": {"type": "string", "format": "uri"},
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
    "number": {"type": "number", "minimum": 0.5, "maximum": 1e300, "default": 50},
    "integer": {"type": "integer", "minimum": -3, "maximum": 3, "default": 0},
    "boolean": {"type": "boolean", "default": False},
    "enum": {"type": "string", "enum": ["r", "g"], "default": "g"},
    "legacy enum": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
    "titled enum": {"type": "string", "oneOf": OPTIONS, "default": "r"},
    "choice of several": {
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
        "items": {"type": "string", "enum": ["r", "g"]},
        "default": ["g", "r"],
    },
    "titled choice of several": {"type": "array", "items": {"anyOf": OPTIONS}, "default": []},
}

IMAGE: Final = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
AUDIO: Final = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
LINK: Final = {"type": "resource_link", "uri": "file:///x", "name": "x"}
RESOURCE: Final = {"type": "resource", "resource": {"uri": "file:///x", "text": "…"}}
