"""A record as the columns of a row, and back."""

from __future__ import annotations

import json
import logging
from typing import Final, NamedTuple

from mcp_tasks_adapters.stores.sealing import RecordKeys, UnsealError
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.wire.schema import record_from_json, record_to_json

__all__ = ["KEY_CHECK", "BrokenRecordError", "Row", "Rows", "owner_of", "remains"]

LAST_MS: Final = 2**63 - 1
"""The latest expiry that a column can hold."""
KEY_CHECK: Final = "key check"
"""The place of the seal that shows whether the keys given are those of the store."""

BROKEN_SAID: Final = 256
"""Of how many broken records the log speaks, one line each."""

_log = logging.getLogger("mcp_tasks_adapters")

# What contains itself is found out by its depth; keeping track of every container would cost more.
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
).encode


class BrokenRecordError(ValueError):
    """A stored record cannot be read; the log has said so."""


class Row(NamedTuple):
    """The columns that a record fills."""

    task_id: str
    version: int
    owner: str
    node: str | None
    expires_at_ms: int | None
    payload_bytes: int
    record: str | bytes


class Rows:
    """Writes and reads rows, sealed where there are ``keys``."""

    def __init__(self, keys: RecordKeys | None) -> None:
        self._keys = keys
        self._broken: set[str] = set()

    def row(self, record: TaskRecord) -> Row:
        """Return a record as a row. Raises ``ValueError``, ``TypeError`` or ``RecursionError``: not JSON."""
        text: str | bytes = _encode(record_to_json(record))
        if self._keys is not None:
            text = self._keys.seal(str(text), _place(record.task_id, record.version))
        expires_at_ms = record.expires_at_ms
        if expires_at_ms is not None and expires_at_ms > LAST_MS:
            expires_at_ms = LAST_MS
        owner = owner_of(record.principal)
        return Row(
            record.task_id, record.version, owner, record.node, expires_at_ms, record.payload_bytes, text
        )

    def record(self, task_id: str, version: int, stored: str | bytes) -> TaskRecord:
        """Return the record of a row. Raises :class:`BrokenRecordError`."""
        try:
            if isinstance(stored, bytes):
                if self._keys is None:
                    raise UnsealError("it is sealed, and no keys were given")
                stored = self._keys.unseal(stored, _place(task_id, version))
            return record_from_json(json.loads(stored))
        except UnsealError as error:
            why = str(error)
        except Exception as error:
            why = f"what is stored of it is broken ({type(error).__name__})"
        self._say(task_id, why)
        raise BrokenRecordError(why)

    def _say(self, task_id: str, why: str) -> None:
        """Say in the log, once for each record, that it cannot be read, and not which it is (SEC.2)."""
        if task_id in self._broken or len(self._broken) == BROKEN_SAID:
            return
        self._broken.add(task_id)
        more = "; no more will be said of such records" if len(self._broken) == BROKEN_SAID else ""
        _log.error("a record cannot be read: %s%s", why, more)

    def check_keys(self, found: bytes | None, where: str) -> bytes | None:
        """See to it that the keys are those of this store, or become so if it has none yet.

        ``found`` is the seal that it keeps at :data:`KEY_CHECK`; return the one to keep, under the
        first key, so that the next one who opens it must have that. ``None``: keep what is there. Raises
        :class:`~mcp_tasks_adapters.storing.StoreError`.
        """
        if found is not None:
            self._check(found, where)
        return None if self._keys is None else self._keys.seal("", KEY_CHECK)

    def _check(self, sealed: bytes, where: str) -> None:
        if self._keys is None:
            raise StoreError(f"The records in {where} are sealed, and no keys were given.")
        try:
            self._keys.unseal(sealed, KEY_CHECK)
        except UnsealError:
            raise StoreError(f"The records in {where} are sealed under a key that was not given.") from None


def owner_of(principal: str | None) -> str:
    """Return a principal as its column has it: having none is a principal too, and not the empty one."""
    return "" if principal is None else f"={principal}"


def remains(task_id: str, version: int, owner: str, expires_at_ms: int) -> TaskRecord:
    """Return what is needed to remove an expired record: the rest of it is not even read (rule 6)."""
    return TaskRecord(
        task_id=task_id,
        version=version,
        principal=owner[1:] if owner else None,
        tool="",
        arguments=None,
        client_capabilities={},
        status=Status.FAILED,
        created_at_ms=0,
        last_updated_at_ms=0,
        ttl_ms=expires_at_ms,
    )


def _place(task_id: str, version: int) -> str:
    return f"{task_id} {version}"
