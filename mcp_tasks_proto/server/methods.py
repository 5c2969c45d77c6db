"""What a request brings to the handler that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError, invalid_params, invalid_request
from mcp_tasks_proto.input_requests import check_response
from mcp_tasks_proto.request_state import open_state
from mcp_tasks_proto.server.reports import copied
from mcp_tasks_proto.settings import ServerSettings
from mcp_tasks_proto.wire.jsonrpc import Request

__all__ = ["GivenInput", "read_input"]


@define(eq=False, repr=False)
class GivenInput:
    """What a request brings to its handler: its params, and of an earlier round, answers and own state."""

    params: Mapping[str, Any]
    answers: Mapping[str, Any] = field(factory=dict)
    state: Any = None
    arguments_bytes: int = len("{}")
    """The size of the arguments as JSON; those that are not there count as empty ones."""


def read_input(
    settings: ServerSettings, request: Request, principal: str | None, now: int
) -> GivenInput | ErrorObject:
    """Open ``requestState`` and check ``inputResponses`` against what was asked (INP.4).

    The handler gets a copy of the arguments: what it does to them must not reach a task's record. Where the
    host's parser takes more than JSON, that copy cannot be made, and the peer is told so.

    Answers to what was not asked are left out; missing ones are for the handler to ask again. Without a
    ``requestState`` nothing says what was asked, so the answers are only known to be objects.
    """
    params = dict(request.params)
    size = len("{}")
    if "arguments" in params:
        try:
            params["arguments"], size = copied(params["arguments"])
        except LocalProtocolError as error:
            return invalid_request(str(error))
    responses = params.get("inputResponses", {})
    if not isinstance(responses, dict):
        return invalid_params("inputResponses must be an object")
    if "requestState" not in params:
        for name, response in responses.items():
            if not isinstance(response, dict):
                return invalid_params(f"inputResponses[{name!r}] must be an object")
        return GivenInput(params, responses, arguments_bytes=size)
    sealed = open_state(
        settings.sealer,
        params["requestState"],
        principal=principal,
        method=request.method,
        params=params,
        now=now,
    )
    if sealed is None:
        return invalid_params("requestState is not one that this server gave for this request, or is too old")
    answers = {name: responses[name] for name in sealed.asked if name in responses}
    for name, response in answers.items():
        if problem := check_response(sealed.asked[name], response):
            return invalid_params(f"inputResponses[{name!r}]: {problem}")
    return GivenInput(params, answers, sealed.state, size)
