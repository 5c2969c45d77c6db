"""What the proxy answers when something is in the way: the error table of the contract, in one place.

No text names an upstream, an id or an address. A refusal that must not tell one cause from another has one
text for all of them: :func:`~mcp_tasks_proto.errors.unknown_task`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from mcp_tasks_proto.errors import STORE_UNAVAILABLE, WORKER_LOST, ErrorCode, ErrorObject

__all__ = ["TROUBLE_TABLE", "Trouble", "trouble"]


class Trouble(Enum):
    """``data.reason`` of a -32603, stable for programs."""

    UNAVAILABLE = "upstream_unavailable"
    """Down, slow, or broken for the moment; it is safe to try again."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """The call was sent, and nobody knows what came of it (PRX.4)."""
    TASK_LOST = "upstream_lost_task"
    """The upstream no longer knows a task that should still be there."""
    REFUSED = "upstream_refused"
    """The upstream will not have the proxy's request, which the caller cannot mend."""
    INVALID = "upstream_invalid"
    """The upstream's answer is not what the protocol allows."""
    UNASKED_TASK = "upstream_unasked_task"
    """The upstream answered with a task that nobody asked for."""
    UNDECLARED_INPUT = "upstream_undeclared_input"
    """The upstream asks for input of a kind that nobody declared (PRX.10)."""
    NOT_STORED = "binding_not_stored"
    """The proxy could not remember the task; the upstream is told to stop it (PRX.6)."""
    STORE = STORE_UNAVAILABLE
    """The proxy's own store did not answer."""
    ELSEWHERE = "asked_elsewhere"
    """What a task asks, or what is answered, another process of the proxy may have been asked (UPD.3)."""
    LOST = WORKER_LOST
    """The proxy that ran a promoted call is gone (PRX.16)."""
    PROMOTED_INPUT = "input_after_promotion"
    """A promoted call asks for input, which it no longer can (PRX.16)."""
    TOO_LONG = "response_too_long"
    """The result is longer than the proxy passes on, and cannot be cut (PRX.3)."""
    COLLAPSED_CANCELLED = "task_cancelled"
    """A collapsed task was cancelled (PRX.17)."""


TROUBLE_TABLE: Final[Mapping[Trouble, tuple[str, bool | None]]] = {
    Trouble.UNAVAILABLE: ("the server behind this proxy did not answer; try again", True),
    Trouble.OUTCOME_UNKNOWN: ("the call was sent, and it is not known what came of it", False),
    Trouble.TASK_LOST: ("the server behind this proxy no longer knows the task", None),
    Trouble.REFUSED: ("the server behind this proxy refused the request", None),
    Trouble.INVALID: ("the server behind this proxy gave an invalid answer", None),
    Trouble.UNASKED_TASK: ("the server behind this proxy made a task that nobody asked for", None),
    Trouble.UNDECLARED_INPUT: (
        "the server behind this proxy asks for input that the call did not declare",
        None,
    ),
    Trouble.NOT_STORED: ("the proxy could not keep the task, which was cancelled", None),
    Trouble.STORE: ("the proxy's store did not answer; try again", True),
    Trouble.ELSEWHERE: (
        "this process of the proxy was not asked for this input, but another one may have been; try again",
        True,
    ),
    Trouble.LOST: ("the proxy that ran the call is gone, and what came of it is not known", None),
    Trouble.PROMOTED_INPUT: ("the call asked for input when it had become a task of the proxy's", None),
    Trouble.TOO_LONG: ("the result is longer than this proxy passes on", None),
    Trouble.COLLAPSED_CANCELLED: ("the task of this call was cancelled", None),
}
"""Trouble -> its text, and whether the same request may be sent again (``None``: nothing is said of it)."""


def trouble(reason: Trouble) -> ErrorObject:
    """Return the -32603 for a trouble."""
    text, retryable = TROUBLE_TABLE[reason]
    data: dict[str, object] = {"reason": reason.value}
    if retryable is not None:
        data["retryable"] = retryable
    return ErrorObject(ErrorCode.INTERNAL_ERROR, f"Internal error: {text}", data)
