"""One request awaiting its reply, as the engine remembers it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import Send
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import CallNotified
from mcp_tasks_proto.records import Resumption
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.vocabulary import LOG_LEVEL, PROGRESS_TOKEN
from mcp_tasks_proto.wire.jsonrpc import Request, encode, is_id, notification_message

__all__ = ["LOG_LEVELS", "Awaits", "Exchange"]

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of ``notifications/message``, least severe first."""

LOG_BACKLOG: Final = 64
"""Log messages that may wait on one exchange; the oldest gives way."""


class Awaits(Enum):
    """Whose turn it is."""

    STORE = "store"
    """The store's: an operation is under way."""
    CALL = "call"
    """The host's: its handler runs."""
    CREATION = "creation"
    """The store's: the call is becoming a task."""
    NEWS = "news"
    """Nobody's: it is a listen stream."""

    __hash__ = object.__hash__


@define(eq=False, repr=False, kw_only=True)
class Exchange:
    """A request whose reply is owed."""

    key: Hashable
    request: Request
    capabilities: Mapping[str, Any]
    may_use_tasks: bool
    """Whether the extension is on for this request, and declared by it."""
    tasks_enabled: bool
    connection: Hashable | None
    principal: str | None
    takes_notifications: bool
    can_create_task: bool = False
    resumption: Resumption | None = None
    """What a task made of this call needs to be resumed; ``None``: it will not be."""
    arguments_bytes: int = 0
    """Of a call: the size of its arguments as JSON."""
    awaits: Awaits = Awaits.STORE
    outbox: Outbox | None = None
    _logged: int = field(init=False, default=0)

    def notify(self, report: CallNotified) -> tuple[Send, ...]:
        """Pass on what the handler reports, if the request asked for such reports."""
        if not isinstance(report.params, Mapping):
            raise LocalProtocolError("params is an object")
        encode(dict(report.params))  # which refuses what is not JSON
        if not self.takes_notifications:
            return ()
        meta = self.request.params["_meta"]
        match report.method:
            case "notifications/progress":
                if not is_id(meta.get(PROGRESS_TOKEN)):
                    return ()
                subject: Hashable = "progress"
                params = {**report.params, PROGRESS_TOKEN: meta[PROGRESS_TOKEN]}
            case "notifications/message":
                if not _wants_level(meta.get(LOG_LEVEL), report.params.get("level")):
                    return ()
                self._logged += 1
                subject = self._logged
                params = dict(report.params)
            case _:
                raise LocalProtocolError(f"a call cannot send {report.method}")
        if self.outbox is None:
            self.outbox = Outbox(self.key)
        self.outbox.drop(self._logged - LOG_BACKLOG)
        return self.outbox.put(subject, lambda: notification_message(report.method, params))


def _wants_level(threshold: Any, level: Any) -> bool:
    """Whether a message of ``level`` reaches the threshold that the request set; none set: no."""
    if threshold not in LOG_LEVELS:
        return False
    if level not in LOG_LEVELS:
        raise LocalProtocolError(f"a log message's level is one of {', '.join(LOG_LEVELS)}")
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)
