"""How a dashboard answers: one text for each kind of refusal, whatever is behind it (SEC.2)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from attrs import frozen

from mcp_tasks_adapters.driver import Channel
from mcp_tasks_proto.errors import STOPPING, ErrorCode, ErrorObject, unknown_task
from mcp_tasks_proto.proxy.errors import TROUBLE_TABLE

__all__ = [
    "CANNOT_BE_READ",
    "ENDED",
    "FAILED",
    "NOBODY_LIKE_THAT",
    "NOT_ALLOWED",
    "NOT_FOUND",
    "PAYLOAD_GONE",
    "STORE_UNAVAILABLE",
    "Answer",
    "of_engine",
    "refusal",
]

Headers = tuple[tuple[str, str], ...]

PRIVATE: Final[Headers] = (("cache-control", "no-store"), ("x-content-type-options", "nosniff"))
"""What is shown is for one person at one moment."""


@frozen
class Answer:
    """A status and a JSON object."""

    status: int
    body: Mapping[str, Any]
    headers: Headers = ()

    def send(self, channel: Channel) -> None:
        """Send it."""
        channel.reply(dict(self.body), int(self.status), (*PRIVATE, *self.headers))


def refusal(status: int, reason: str, message: str, headers: Headers = ()) -> Answer:
    """Return an error; ``reason`` is for programs, and stable."""
    return Answer(status, {"error": {"reason": reason, "message": message}}, headers)


NOT_FOUND: Final = refusal(HTTPStatus.NOT_FOUND, "not_found", "There is no such project or task here.")
"""For all that somebody may not know of: a project, a task, that is there or not."""
NOT_ALLOWED: Final = refusal(
    HTTPStatus.FORBIDDEN, "not_allowed", "You may see this task, and may not do this with it."
)
"""For somebody who may read the task's metadata."""
ENDED: Final = refusal(HTTPStatus.CONFLICT, "ended", "The task has ended: there is nothing left to control.")
PAYLOAD_GONE: Final = refusal(
    HTTPStatus.NOT_FOUND,
    "payload_gone",
    "What the task holds is not kept any more, or its tool is not yours to use any more.",
)
"""For the original user, who knows that the task was there."""
NOBODY_LIKE_THAT: Final = refusal(
    HTTPStatus.BAD_REQUEST, "no_such_member", "An assignee is somebody who may look at the project."
)
STORE_UNAVAILABLE: Final = refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "store_unavailable", "The proxy's store did not answer; try again."
)
FAILED: Final = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "failed", "The request could not be handled.")
CANNOT_BE_READ: Final = refusal(HTTPStatus.BAD_REQUEST, "bad_request", "The request's body cannot be read.")

_BUSY: Final = frozenset(
    {STOPPING, "exchanges", *(one.value for one, (_, retryable) in TROUBLE_TABLE.items() if retryable)}
)
"""Reasons that pass by themselves."""


def of_engine(error: ErrorObject) -> Answer:
    """Return what the proxy's engine answered to the original user as an answer of the dashboard's."""
    if error == unknown_task():
        return PAYLOAD_GONE
    if error.code == ErrorCode.INVALID_PARAMS:
        return refusal(HTTPStatus.BAD_REQUEST, "invalid_answer", error.message)
    reason = error.data.get("reason") if isinstance(error.data, Mapping) else None
    if not isinstance(reason, str):
        return FAILED
    status = HTTPStatus.SERVICE_UNAVAILABLE if reason in _BUSY else HTTPStatus.BAD_GATEWAY
    return refusal(status, reason, error.message)
