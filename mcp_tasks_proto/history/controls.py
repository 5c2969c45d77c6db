"""What an allowed action becomes: a request of the original user's to the proxy's own engine (HIS.3).

A dashboard has no way of its own to a task. The engine checks such a request as it does any other (PRX.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.history.access import Action
from mcp_tasks_proto.history.entries import TaskEntry
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.wire.jsonrpc import request_message

__all__ = ["control_request"]

_REQUEST_ID: Final = 1
"""Each of these requests has a channel to itself."""

_METHODS: Final[Mapping[Action, str]] = {
    Action.READ_PAYLOAD: "tasks/get",
    Action.ANSWER: "tasks/update",
    Action.CANCEL: "tasks/cancel",
}


def control_request(
    entry: TaskEntry, action: Action, *, version: str, responses: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the request that does what the original user wants with a task.

    ``version`` is the protocol version of the request. ``responses`` are for :attr:`Action.ANSWER`, by the
    keys of the input requests. Whether the user may is for
    :func:`~mcp_tasks_proto.history.access.decide_access` to say.

    Raises ``ValueError`` for an action that no request does: reading and assigning are the ledger's own; and
    for responses with another action than to answer, or an answer without.
    """
    if action not in _METHODS:
        raise ValueError(f"{action.name} is no request to the engine")
    if (action is Action.ANSWER) is (responses is None):
        raise ValueError(f"responses belong to {Action.ANSWER.name}, and to no other action")
    params: dict[str, Any] = {
        "taskId": entry.handle,
        "_meta": {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: _declared_by_a_person()},
    }
    if responses is not None:
        params["inputResponses"] = dict(responses)
    return request_message(_REQUEST_ID, _METHODS[action], params)


def _declared_by_a_person() -> dict[str, Any]:
    """A person at a dashboard may answer whatever the call itself has declared (PRX.10)."""
    return {
        "extensions": {TASKS_EXTENSION: {}},
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
    }
