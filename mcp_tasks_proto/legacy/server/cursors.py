"""The cursors of ``tasks/list``: opaque, and each of use to one caller only (LEG.7)."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.errors import RemoteProtocolError, invalid_params
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.request_state import Sealer
from mcp_tasks_proto.wire.jsonrpc import decode, encode

__all__ = ["BAD_CURSOR", "Cursors"]

BAD_CURSOR: Final = invalid_params("cursor is not one that this server gave to this caller")


@frozen
class Cursors:
    """Makes and reads them."""

    sealer: Sealer
    limits: Limits

    def sealed(self, task_id: str, principal: str) -> str:
        """Return the cursor of what comes after a task, for one caller."""
        return self.sealer.seal(encode({"tasks/list": principal, "after": task_id}))

    def opened(self, cursor: Any, principal: str) -> str | None:
        """Return the task that a cursor points to; ``None``: it is none of ours, or another caller's."""
        payload = self.sealer.open(cursor) if isinstance(cursor, str) else None
        if payload is None:
            return None
        try:
            contents = decode(payload, self.limits)
        except RemoteProtocolError:  # a requestState is sealed with the same keys, and may be nested deeper
            return None
        match contents:
            case {"tasks/list": owner, "after": str() as after} if owner == principal:
                return after
        return None
