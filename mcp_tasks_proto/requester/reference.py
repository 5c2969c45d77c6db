"""A saved task: what a new process needs to go on where the last one ended (REQ.6).

It is plain JSON with a schema number, so that it can be kept in a file or a database. It holds no
credentials, but whoever has it and the owner's credentials can read the task; and an answer that was given is
in it until the server has acknowledged it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from attrs import define, field

__all__ = ["KeyState", "LedgerEntry", "TaskReference"]

SCHEMA: Final = 1


class KeyState(Enum):
    """How far an input request has come on this side."""

    SHOWN = "shown"
    """Somebody was prompted."""
    ANSWERED = "answered"
    """An answer was given, and the server may not have it yet."""
    SENT = "sent"
    """The server acknowledged the answer."""

    __hash__ = object.__hash__


@define(eq=False, repr=False)
class LedgerEntry:
    """One key of a task's input requests."""

    state: KeyState
    response: Mapping[str, Any] | None = None
    """The answer, while the server may not have it."""
    prompted: bool = False
    """Whether *this* process has shown it; never saved."""
    on_show: Mapping[str, Any] | None = None
    """The request that this process has on show at present; never saved."""


@define(eq=False, repr=False, kw_only=True)
class TaskReference:
    """One task, as its requester knows it."""

    endpoint: str
    task_id: str
    tool: str
    capabilities: Mapping[str, Any]
    """What the creating call declared."""
    created_ms: int
    """When the handle arrived, by this side's clock."""
    ttl_ms: int | None
    poll_interval_ms: int | None
    ledger: dict[str, LedgerEntry] = field(factory=dict)

    @property
    def lifetime_ms(self) -> int | None:
        """For how long the task is kept after its creation, where the server gave a time that makes sense."""
        return self.ttl_ms if self.ttl_ms is not None and self.ttl_ms > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that :meth:`from_json` reads."""
        return {
            "schema": SCHEMA,
            "endpoint": self.endpoint,
            "taskId": self.task_id,
            "tool": self.tool,
            "capabilities": dict(self.capabilities),
            "createdMs": self.created_ms,
            "ttlMs": self.ttl_ms,
            "pollIntervalMs": self.poll_interval_ms,
            "keys": {key: _entry_to_json(entry) for key, entry in self.ledger.items()},
        }

    @classmethod
    def from_json(cls, value: Any) -> TaskReference:
        """Read a reference. Raises ``ValueError``, naming what is wrong, for anything else."""
        if not isinstance(value, dict):
            raise ValueError("a task reference is a JSON object")
        schema = value.get("schema")
        if type(schema) is not int:
            raise ValueError("a task reference has an integer schema")
        if not 1 <= schema <= SCHEMA:
            raise ValueError(f"the reference has schema {schema}; this version reads 1 to {SCHEMA}")
        for name, kinds in _FIELDS.items():
            if type(value.get(name)) not in kinds:
                raise ValueError(f"the reference's {name} is missing or of the wrong type")
        return cls(
            endpoint=value["endpoint"],
            task_id=value["taskId"],
            tool=value["tool"],
            capabilities=value["capabilities"],
            created_ms=value["createdMs"],
            ttl_ms=value.get("ttlMs"),
            poll_interval_ms=value.get("pollIntervalMs"),
            ledger={key: _entry_from_json(key, entry) for key, entry in value["keys"].items()},
        )


_NOTHING: Final = type(None)
_FIELDS: Final[Mapping[str, tuple[type, ...]]] = {
    "endpoint": (str,),
    "taskId": (str,),
    "tool": (str,),
    "capabilities": (dict,),
    "createdMs": (int,),
    "ttlMs": (int, _NOTHING),
    "pollIntervalMs": (int, _NOTHING),
    "keys": (dict,),
}


def _entry_to_json(entry: LedgerEntry) -> dict[str, Any]:
    saved: dict[str, Any] = {"state": entry.state.value}
    if entry.response is not None:
        saved["response"] = dict(entry.response)
    return saved


def _entry_from_json(key: str, value: Any) -> LedgerEntry:
    if not isinstance(value, dict) or value.get("state") not in [one.value for one in KeyState]:
        raise ValueError(f"the reference's key {key!r} has no state that this version knows")
    state, response = value["state"], value.get("response")
    if (state == KeyState.ANSWERED.value) is not isinstance(response, dict):
        raise ValueError(f"the reference's key {key!r} has a response exactly when it is answered")
    return LedgerEntry(KeyState(state), response)
