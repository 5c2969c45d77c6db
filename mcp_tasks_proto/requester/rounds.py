"""Rounds of input before a result: what an ``input_required`` result asks for (REQ.1, core "MRTR")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.input_requests import check_requests, missing_capabilities
from mcp_tasks_proto.requester.settings import RequesterSettings

__all__ = ["CANCELLED_ANSWER", "Round", "answerable", "is_elicitation", "read_round"]

CANCELLED_ANSWER: Final[Mapping[str, Any]] = {"action": "cancel"}
"""To an elicitation that nobody will be shown."""


@frozen
class Round:
    """One round of questions."""

    requests: Mapping[str, Mapping[str, Any]]
    """The input requests, by key; it may be that there are none."""
    state: str | None
    """What the server wants back with the answers."""


def is_elicitation(request: Mapping[str, Any]) -> bool:
    """Whether a person is asked, who can always cancel."""
    return bool(request.get("method") == "elicitation/create")


def answerable(request: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bool:
    """Whether somebody here can be asked: it is a proper request, of a kind that is declared."""
    asked = {"request": request}
    return check_requests(asked, from_peer=True) is None and missing_capabilities(asked, capabilities) is None


def read_round(result: Mapping[str, Any], settings: RequesterSettings) -> Round:
    """Read an ``input_required`` result. Raises ``ValueError``, saying what is wrong with it.

    It is wrong to ask for what was not declared, but for an elicitation: that one can be cancelled.
    """
    requests, state = result.get("inputRequests", {}), result.get("requestState")
    if not isinstance(requests, dict):
        raise ValueError("inputRequests must be an object")
    if state is not None and not isinstance(state, str):
        raise ValueError("requestState must be a string")
    if not requests and state is None:
        raise ValueError("it asks for input without saying which")
    if len(requests) > settings.limits.ledger_keys:
        raise ValueError("it makes too many input requests (RequesterLimits.ledger_keys)")
    if requests and (problem := check_requests(requests, from_peer=True)):
        raise ValueError(problem)
    others = {key: request for key, request in requests.items() if not is_elicitation(request)}
    if missing := missing_capabilities(others, settings.capabilities):
        raise ValueError(f"it asks for input that was not declared: {', '.join(sorted(missing))}")
    return Round(requests, state)
