"""What may be asked of a client, and which answers fit: as plainly as the reference model needs it.

A form's schema is flat, and of its keywords only ``type``, ``enum``, ``required`` are looked at: give the
model no answers that another keyword decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["answer_fits", "may_be_asked"]

TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
}


def may_be_asked(request: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bool:
    """Whether a client that declared these capabilities may be asked this (INP.2)."""
    params = request.get("params", {})
    if request["method"] == "elicitation/create":
        declared = capabilities.get("elicitation")
        mode = params.get("mode", "form")
        if not isinstance(declared, dict):
            return False
        return isinstance(declared.get(mode), dict) or (declared == {} and mode == "form")
    name = {"sampling/createMessage": "sampling", "roots/list": "roots"}[request["method"]]
    declared = capabilities.get(name)
    uses_tools = "tools" in params or "toolChoice" in params
    uses_context = params.get("includeContext", "none") != "none"
    return (
        isinstance(declared, dict)
        and (not uses_tools or isinstance(declared.get("tools"), dict))
        and (not uses_context or isinstance(declared.get("context"), dict))
    )


def answer_fits(request: Mapping[str, Any], answer: Any) -> bool:
    """Whether this is an answer to that request (UPD.4)."""
    if not isinstance(answer, dict):
        return False
    if request["method"] == "roots/list":
        roots = answer.get("roots")
        return isinstance(roots, list) and all(
            isinstance(root, dict) and str(root.get("uri")).startswith("file://") for root in roots
        )
    if request["method"] == "sampling/createMessage":
        return (
            answer.get("role") in ("user", "assistant")
            and isinstance(answer.get("model"), str)
            and isinstance(answer.get("content"), dict | list)
        )
    if answer.get("action") not in ("accept", "decline", "cancel"):
        return False
    if answer["action"] != "accept" or request["params"].get("mode") == "url":
        return True
    return _content_fits(request["params"]["requestedSchema"], answer.get("content", {}))


def _content_fits(schema: Mapping[str, Any], content: Any) -> bool:
    """Whether what was filled in is what the form asks for."""
    if not isinstance(content, dict) or not all(name in content for name in schema.get("required", ())):
        return False
    fields = schema.get("properties", {})
    return all(_value_fits(fields[name], value) for name, value in content.items() if name in fields)


def _value_fits(wanted: Mapping[str, Any], value: Any) -> bool:
    if isinstance(value, bool) and wanted["type"] != "boolean":
        return False
    return isinstance(value, TYPES[wanted["type"]]) and value in wanted.get("enum", (value,))
