"""Writing: what waits goes to the server in one statement, and is answered when that is committed.

A statement costs a round trip and a sync of the server's disk, however much is in it. While one is under way,
what is asked for meanwhile gathers, and makes up the next.

When the connection is lost in the middle of that, nobody knows what came of it until the server is back. Then
the node begins a new session: the old one, should it still be under way, either ends before that, and what it
did is in the node's row; or it comes to nothing (rule 3). Until then, whatever else is asked fails at once.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from attrs import define, field, frozen

from mcp_tasks_adapters.stores.front import Answer, Write
from mcp_tasks_adapters.stores.postgres.link import Link
from mcp_tasks_adapters.stores.postgres.place import UnreachableError
from mcp_tasks_adapters.stores.postgres.schema import REMOVALS_KEPT, STEPS, owner_column
from mcp_tasks_adapters.stores.rows import BrokenRecordError, Row, Rows
from mcp_tasks_proto.effects import Delete, Quota, Save
from mcp_tasks_proto.inputs import SaveConflict, Saved, SaveFailed, SaveRefused, StoreInput

__all__ = ["Writer"]

Answers = list[tuple[Answer, StoreInput]]

GROUP_CHARACTERS: Final = 4 * 1024 * 1024
"""How much is sent in one statement, unless a single record is larger."""
RETRY_S: Final = 0.2
"""Between attempts to find out what became of a group, when the server can be reached."""

NO_QUOTA: Final = Quota(tasks=2**62, tasks_per_principal=2**62, task_bytes=2**62)

REGISTER: Final = """
    INSERT INTO nodes (node, lease_until) VALUES (%s, clock_timestamp() + %s * interval '1 ms')
    RETURNING writer
"""
FORGET_OLD: Final = "DELETE FROM nodes WHERE settled AND lease_until < clock_timestamp() - interval '7 days'"
BEGIN_SESSION: Final = """
    UPDATE nodes SET session = session + 1 WHERE writer = %s RETURNING session, writes, refused, reasons
"""
WRITE: Final = "SELECT refused, reasons FROM write_tasks(%s, %s, %s, %s, %s)"
CURRENT: Final = "SELECT task_id, version, record, sealed FROM tasks WHERE task_id = ANY(%s)"
LEAVE: Final = """
    DELETE FROM nodes WHERE writer = %s AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.node = nodes.node)
    RETURNING writer
"""
GIVE_UP_LEASE: Final = "UPDATE nodes SET lease_until = clock_timestamp() WHERE writer = %s"

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_log = logging.getLogger("mcp_tasks_adapters")


@frozen
class _Request:
    """What is asked for, and the text of it that goes to the server."""

    write: Write
    text: str

    @property
    def task_id(self) -> str:
        effect = self.write.effect
        return effect.task_id if isinstance(effect, Delete) else effect.record.task_id


@frozen
class _Doubt:
    """A group of which nobody knows what came of it."""

    group: Sequence[_Request]
    again: bool
    """Whether it may be tried once more, should nothing have come of it."""


@define(eq=False, kw_only=True)
class Writer:
    """Writes through ``link``, as a node that it registers. For one thread."""

    link: Link
    rows: Rows
    writer: int = field(init=False, default=0)
    """The number of this node in the schema."""
    _session: int = field(init=False, default=0)
    _session_on: int = field(init=False, default=0)
    """Which connection may write."""
    _writes: int = field(init=False, default=0)
    """How many groups of this node went through."""
    _doubt: _Doubt | None = field(init=False, default=None)

    def register(self, node: str, lease_ms: int) -> None:
        """Write down that there is this node, which writes through this object alone.

        Raises as :meth:`Link.run` does.
        """
        self.link.run(FORGET_OLD)
        ((self.writer,),) = self.link.run(REGISTER, (node, lease_ms))

    def leave(self) -> None:
        """Forget this node; if a task names it still, let the others see to that without waiting."""
        try:
            if not self.link.run(LEAVE, (self.writer,)):
                self.link.run(GIVE_UP_LEASE, (self.writer,))
        except (UnreachableError, psycopg.Error):
            pass  # its lease runs out
        self.link.close()

    def idle_s(self) -> float | None:
        """How long until it wants to be called again, even if there is nothing new to write."""
        return None if self._doubt is None else max(RETRY_S, self.link.retry_s)

    def carry_out(self, writes: Sequence[Write]) -> Answers:
        """Do all of this, as far as it can be done; return the answers that there are by now."""
        answers = self._find_out()
        requests = []
        for write in writes:
            text = self._text(write)
            if text is None:
                answers.append((write.answer, SaveFailed(write.effect.token)))
            else:
                requests.append(_Request(write, text))
        for group in _groups(requests):
            answers.extend(self._attempt(group, again=True))
        return answers

    # -- a group -------------------------------------------------------------------------------------------

    def _attempt(self, group: Sequence[_Request], *, again: bool) -> Answers:
        if self._doubt is not None:
            return _all_failed(group)
        try:
            self._begin_session()
        except (UnreachableError, psycopg.Error):
            return _all_failed(group)
        try:
            ((refused, reasons),) = self.link.run(WRITE, self._values(group))
        except (psycopg.Error, ValueError) as error:
            return self._failed(group, error, again=again)
        if len(refused) < len(group):
            self._writes += 1
        return self._outcomes(group, dict(zip(refused, reasons, strict=True)))

    def _values(self, group: Sequence[_Request]) -> Sequence[Any]:
        requests = ",".join([request.text for request in group])
        return self.writer, self._session, len(STEPS), f"[{requests}]", REMOVALS_KEPT

    def _failed(self, group: Sequence[_Request], error: Exception, *, again: bool) -> Answers:
        if not self.link.connected:
            self._doubt = _Doubt(group, again)
            return self._find_out()
        # One that cannot be stored must not keep the others from it.
        one_of_them = isinstance(error, psycopg.DataError | psycopg.IntegrityError | ValueError)
        if not one_of_them or len(group) == 1:
            return _all_failed(group)
        half = len(group) // 2
        return self._attempt(group[:half], again=again) + self._attempt(group[half:], again=again)

    def _begin_session(self) -> None:
        """See to it that this connection is there, and the only one that writes for this node."""
        with suppress(psycopg.Error):
            self.link.listen()  # a write on a connection that has ended meanwhile would be in doubt
        self.link.connection()
        if self._session_on != self.link.number:
            self._writes, _, _ = self._new_session()

    def _new_session(self) -> tuple[int, Sequence[int], Sequence[str]]:
        """Return how often the sessions before wrote, and what came of the last time."""
        found = self.link.run(BEGIN_SESSION, (self.writer,))
        if not found:
            error = UnreachableError("the others have forgotten this node: restart this process")
            self.link.report(error)
            raise error
        ((self._session, writes, refused, reasons),) = found
        self._session_on = self.link.number
        return writes, refused, reasons

    def _find_out(self) -> Answers:
        """Return what became of the group that is in doubt, if there is one and that can be found out."""
        if self._doubt is None:
            return []
        try:
            writes, refused, reasons = self._new_session()
        except (UnreachableError, psycopg.Error):
            return []
        doubt, self._doubt = self._doubt, None
        if writes > self._writes:
            self._writes = writes
            return self._outcomes(doubt.group, dict(zip(refused, reasons, strict=True)))
        return self._attempt(doubt.group, again=False) if doubt.again else _all_failed(doubt.group)

    # -- what came of it -----------------------------------------------------------------------------------

    def _outcomes(self, group: Sequence[_Request], refused: dict[int, str]) -> Answers:
        conflicts = [number for number, reason in refused.items() if reason == "conflict"]
        current = self._current([group[number].task_id for number in conflicts])
        answers: Answers = []
        for number, request in enumerate(group):
            token = request.write.effect.token
            outcome: StoreInput = Saved(token)
            if number in refused and refused[number] != "conflict":
                outcome = SaveRefused(token, refused[number])
            elif number in refused:
                outcome = SaveFailed(token) if current is None else self._conflict(request, current)
            answers.append((request.write.answer, outcome))
        return answers

    def _current(self, task_ids: Sequence[str]) -> dict[str, tuple[int, str | bytes]] | None:
        """Return versions and records of these tasks as they are now; ``None``: nobody knows."""
        if not task_ids:
            return {}
        try:
            found = self.link.run(CURRENT, (task_ids,))
        except (UnreachableError, psycopg.Error, ValueError):
            return None
        return {task_id: (version, record or sealed) for task_id, version, record, sealed in found}

    def _conflict(self, request: _Request, current: dict[str, tuple[int, str | bytes]]) -> StoreInput:
        token, task_id = request.write.effect.token, request.task_id
        if task_id not in current:
            return SaveConflict(token, None)
        try:
            return SaveConflict(token, self.rows.record(task_id, *current[task_id]))
        except BrokenRecordError:
            return SaveFailed(token)

    # -- what goes to the server ---------------------------------------------------------------------------

    def _text(self, write: Write) -> str | None:
        """Return a request as JSON; ``None``: it is none."""
        effect = write.effect
        if isinstance(effect, Delete):
            return _encode({"task_id": effect.task_id, "expected": effect.expected_version})
        try:
            return _encode(_members(effect, self.rows.row(effect.record)))
        except (TypeError, ValueError, RecursionError) as error:
            _log.error("a record cannot be written as JSON: %s", type(error).__name__)
            return None


def _members(save: Save, row: Row) -> dict[str, Any]:
    quota = save.quota or NO_QUOTA
    members = {
        "task_id": row.task_id,
        "version": row.version,
        "expected": save.expected_version,
        "owner": owner_column(row.owner),
        "node": row.node,
        "expires_at_ms": row.expires_at_ms,
        "payload_bytes": row.payload_bytes,
        "tasks": quota.tasks,
        "tasks_per_principal": quota.tasks_per_principal,
        "task_bytes": quota.task_bytes,
    }
    if isinstance(row.record, str):
        members["record"] = row.record
    else:
        members["sealed"] = base64.b64encode(row.record).decode()
    return members


def _groups(requests: Sequence[_Request]) -> Iterator[Sequence[_Request]]:
    """Return what fits into a statement, again and again; the order is kept."""
    group: list[_Request] = []
    size = 0
    for request in requests:
        if group and size + len(request.text) > GROUP_CHARACTERS:
            yield group
            group, size = [], 0
        group.append(request)
        size += len(request.text)
    if group:
        yield group


def _all_failed(group: Sequence[_Request]) -> Answers:
    return [(request.write.answer, SaveFailed(request.write.effect.token)) for request in group]
