"""What is stored: records of tasks, bindings, snapshots, entries of the ledger. The input is JSON as stored.

* Only ``ValueError`` is raised, whatever was stored.
* What was read is written as something that is read as the same, with every member that this version does not
  know; written once more it does not change.
* A record fits into a row and comes back; a broken row is a ``BrokenRecordError``.
* A record that can be read can be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import fields
from mcp_tasks_adapters.stores.rows import BrokenRecordError, Rows

from fuzz.comparing import read_json, same
from mcp_tasks_proto import TaskRecord
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.history.entries import entry_from_json, entry_to_json
from mcp_tasks_proto.proxy.bindings import binding_from_json, binding_to_json
from mcp_tasks_proto.proxy.snapshots import snapshot_from_json, snapshot_to_json
from mcp_tasks_proto.wire.jsonrpc import encode
from mcp_tasks_proto.wire.schema import create_result, record_from_json, record_to_json, task_view

KINDS: Final[tuple[tuple[Callable[[Any], Any], Callable[[Any], dict[str, Any]]], ...]] = (
    (record_from_json, record_to_json),
    (binding_from_json, binding_to_json),
    (snapshot_from_json, snapshot_to_json),
    (entry_from_json, entry_to_json),
)

DEFAULTS: Final = (False, 0, 1, "")
"""Of plain members: what leaving one out may say too."""


def check(data: bytes) -> None:
    """Read as everything that it might be."""
    stored = read_json(data)
    for read, write in KINDS:
        _check_kind(read, write, stored)
    _check_row(data, stored)


def _check_kind(read: Callable[[Any], Any], write: Callable[[Any], dict[str, Any]], stored: Any) -> None:
    try:
        value = read(stored)
    except ValueError:
        return
    written = write(value)
    assert read(written) == value, "WIRE.5: written and read again, it differs"
    assert same(write(read(written)), written), "WIRE.5: it changes each time that it is written"
    known = {attribute.name for attribute in fields(type(value))} | {"schema"}
    for name, member in stored.items():
        plain = isinstance(member, (str, int)) and member not in DEFAULTS
        if plain or name not in known:
            assert name in written, f"WIRE.5: the member {name} is lost"
            assert name == "schema" or same(member, written[name]), f"WIRE.5: the member {name} has changed"
    if isinstance(value, TaskRecord):
        _check_record(value)


def _check_record(record: TaskRecord) -> None:
    row = Rows(None).row(record)
    assert Rows(None).record(row.task_id, row.version, row.record) == record, "a row is another record"
    assert row.expires_at_ms is None or row.expires_at_ms < 2**63, "an expiry that no column holds"
    try:
        view, created = task_view(record), create_result(record)
    except LocalProtocolError:
        return  # of times that are no dates
    encode(view)
    assert "ttlMs" in view, "LIFE.5: a lifetime is always there, though it be null"
    secret = {"result", "error", "inputRequests"} & set(created)
    assert not secret, "LIFE.3: a create result says how the task stands"


def _check_row(data: bytes, stored: Any) -> None:
    """What a file or a database holds may be anything; without keys nothing that is sealed can be read."""
    for row in (data, str(data, "utf-8", errors="replace")):
        try:
            read = Rows(None).record("t", 1, row)
        except BrokenRecordError:
            read = None
        assert read is None or isinstance(row, str), "a sealed record is read without keys"
        if isinstance(row, str) and stored is not None:
            assert read == _read_record(stored), "a row is another record"


def _read_record(stored: Any) -> TaskRecord | None:
    try:
        return record_from_json(stored)
    except ValueError:
        return None
