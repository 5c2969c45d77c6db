"""Which input requests pass, in which direction, and who may answer them (PRX.10)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from mcp_tasks_proto.errors import ErrorObject, invalid_params, missing_capability
from mcp_tasks_proto.input_requests import check_requests, check_response, missing_capabilities
from mcp_tasks_proto.proxy.settings import InputKind

__all__ = ["check_answers", "declarable", "is_shown"]


def declarable(capabilities: Mapping[str, Any], kinds: Set[InputKind]) -> dict[str, Any]:
    """Return the kinds of input that an upstream hears of: what the caller declares, as far as policy goes.

    ``elicitation: {}`` means forms (INP.2); what a capability says beside its kind passes as it is.
    """
    declared: dict[str, Any] = {}
    elicitation = capabilities.get("elicitation")
    if isinstance(elicitation, dict):
        parts = elicitation or {"form": {}}
        passing = {
            kind.value: parts[kind.value]
            for kind in (InputKind.FORM, InputKind.URL)
            if kind in kinds and isinstance(parts.get(kind.value), dict)
        }
        if passing:
            declared["elicitation"] = passing
    for kind in (InputKind.SAMPLING, InputKind.ROOTS):
        if kind in kinds and isinstance(capabilities.get(kind.value), dict):
            declared[kind.value] = capabilities[kind.value]
    return declared


def is_shown(requests: Any, declared: Mapping[str, Any], most: int) -> bool:
    """Whether a caller may see these input requests: all of them well formed, and of kinds that its call
    declared. If not, that is the upstream's fault, and none of them is shown: never a partial list."""
    if not isinstance(requests, Mapping) or len(requests) > most:
        return False
    return check_requests(requests, from_peer=True) is None and not missing_capabilities(requests, declared)


def check_answers(
    outstanding: Mapping[str, Mapping[str, Any]],
    answers: Mapping[str, Any],
    capabilities: Mapping[str, Any],
) -> ErrorObject | None:
    """Say why answers to these outstanding requests may not go up; ``None``: they may, verbatim.

    -32021 names the kinds that the update, unlike the call, does not declare. -32602 names the key of an
    answer that does not fit its request (UPD.4). Keys that are not outstanding must have been left out.
    """
    answered = {key: outstanding[key] for key in answers}
    if missing := missing_capabilities(answered, capabilities):
        return missing_capability(missing)
    for key, request in answered.items():
        if problem := check_response(request, answers[key]):
            return invalid_params(f"inputResponses[{key!r}]: {problem}")
    return None
