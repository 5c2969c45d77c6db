"""From what a handler or a worker says to what is done about it: pure translations, with the host's errors.

Results, errors and requests that a host hands in are checked and copied here. A call's arguments and
capabilities are kept as they came in its message; a tool's handler has a copy of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import loads
from re import compile as pattern
from typing import Any, Final, TypeGuard, TypeVar

from attrs import evolve

from mcp_tasks_proto.effects import RejectReport, ResumeWork
from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError, limit_reached
from mcp_tasks_proto.input_requests import check_requests
from mcp_tasks_proto.inputs import (
    DEFAULT,
    KEEP,
    CallBecameTask,
    Keep,
    TaskEnded,
    TtlChanged,
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkFailed,
    WorkInput,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.lifecycle import Status, Trigger
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.records import Resumption, TaskRecord
from mcp_tasks_proto.server.exchange import Exchange
from mcp_tasks_proto.server.operations import (
    AskInput,
    Checkpoint,
    EndTask,
    EndWork,
    Operation,
    Progress,
    WithdrawInput,
)
from mcp_tasks_proto.wire.jsonrpc import SCALARS, encode, encode_checked, json_size

__all__ = [
    "check_result",
    "check_text",
    "copied",
    "error_on_wire",
    "is_task_id",
    "new_record",
    "operation_of",
    "resumed_work",
]

TASK_ID: Final = pattern(r"[A-Za-z0-9._~-]{21,256}")
"""A task id: header-safe, and long enough for 122 random bits at 6 bits a character (LIFE.6)."""


SMALL: Final = 64
"""So many containers at most has a value that is copied by hand: no deep recursion, and no long loop."""


def is_task_id(value: Any) -> TypeGuard[str]:
    """Whether a task can have this id: nothing else is ever looked up (GET.2)."""
    return isinstance(value, str) and TASK_ID.fullmatch(value) is not None


def check_result(result: Any) -> None:
    """Refuse, as :class:`LocalProtocolError`, what is no final result (LIFE.7)."""
    if not isinstance(result, Mapping):
        raise LocalProtocolError("a result is an object")
    if result.get("resultType") in ("task", "input_required"):
        raise LocalProtocolError("a task or a question is a fact of its own, not a result")
    if "_meta" in result and not isinstance(result["_meta"], Mapping):
        raise LocalProtocolError("a result's _meta is an object")


def check_text(what: str, text: Any) -> None:
    """Refuse, as :class:`LocalProtocolError`, what is no string, or none that can be written."""
    if not isinstance(text, str):
        raise LocalProtocolError(f"{what} is a string")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError(f"{what} has no lone surrogates") from None


def error_on_wire(error: Any) -> dict[str, Any]:
    """Return an error as an object, with data that may be anything. Raises :class:`LocalProtocolError`."""
    if not isinstance(error, ErrorObject):
        raise LocalProtocolError("an error is an ErrorObject")
    if not isinstance(error.code, int) or not isinstance(error.message, str):
        raise LocalProtocolError("an error has a code, an integer, and a message, a string")
    if not isinstance(error.extra, Mapping | None):
        raise LocalProtocolError("an error's extra members are an object, or None")
    return error.to_wire()


def copied(value: Any) -> tuple[Any, int]:
    """Return a copy that shares nothing with ``value``, and its size in bytes as JSON.

    Raises :class:`LocalProtocolError` when it is not JSON.
    """
    if value == {}:
        return {}, len(b"{}")
    data = encode_checked(value)
    if data.count(b"{") + data.count(b"[") > SMALL:
        return loads(encode(value)), len(data)
    return _copy(value), len(data)


def _copy(value: Any) -> Any:
    """Copy a small value that was written as JSON before: its plain parts by hand, which is faster."""
    if value.__class__ is list:
        return [member if member.__class__ in SCALARS else _copy(member) for member in value]
    if value.__class__ is not dict:
        return loads(encode(value))
    copy = {}
    for name, member in value.items():
        if name.__class__ is not str:
            return loads(encode(value))  # which refuses a name that is no string at all
        copy[name] = member if member.__class__ in SCALARS else _copy(member)
    return copy


def new_record(
    became: CallBecameTask, exchange: Exchange, limits: Limits, now: int, node: str | None
) -> TaskRecord:
    """Return the record of a call that goes on as a task on ``node``. Raises :class:`LocalProtocolError`."""
    if not is_task_id(became.task_id):
        raise LocalProtocolError(f"a task id matches {TASK_ID.pattern} (LIFE.6)")
    params = exchange.request.params
    poll_ms, ttl_ms, resumption = became.poll_interval_ms, became.ttl_ms, exchange.resumption
    return TaskRecord(
        task_id=became.task_id,
        version=1,
        principal=exchange.principal,
        tool=params["name"],
        arguments=params.get("arguments", {}),
        client_capabilities=exchange.capabilities,
        status=Status.WORKING,
        status_message=_cut(became.status_message, limits),
        created_at_ms=now,
        last_updated_at_ms=now,
        ttl_ms=_lifetime(limits.ttl_ms if ttl_ms is DEFAULT else ttl_ms, limits),
        poll_interval_ms=limits.poll_interval_ms
        if poll_ms is DEFAULT
        else _milliseconds("poll_interval_ms", poll_ms),
        node=node,
        resumption=resumption,
        payload_bytes=exchange.arguments_bytes + (0 if resumption is None else _given_bytes(resumption)),
    )


def _given_bytes(resumption: Resumption) -> int:
    if not resumption.answers and resumption.state is None:
        return 0
    return json_size([resumption.answers, resumption.state])


def resumed_work(record: TaskRecord) -> ResumeWork:
    """Return what tells the host to run the work of this record again. It shares nothing with the record."""
    resumption = record.resumption or Resumption()
    (arguments, checkpoint, answers, state), _ = copied(
        [record.arguments, resumption.checkpoint, resumption.answers, resumption.state]
    )
    return ResumeWork(
        task_id=record.task_id,
        resumption=resumption.times,
        tool=record.tool,
        arguments=arguments,
        client_capabilities=record.client_capabilities,
        principal=record.principal,
        checkpoint=checkpoint,
        answers=answers,
        state=state,
    )


def operation_of(fact: WorkInput, limits: Limits) -> Operation | RejectReport:
    """Return what a worker's report asks for, or why it is not taken. Raises :class:`LocalProtocolError`."""
    return _TRANSLATIONS[type(fact)](fact, limits)


def _progress(fact: WorkProgressed, limits: Limits) -> Operation:
    changes: dict[str, Any] = {}
    if fact.status_message is not KEEP:
        changes["status_message"] = _cut(fact.status_message, limits)
    if fact.ttl_ms is not KEEP:
        changes["ttl_ms"] = _lifetime(fact.ttl_ms, limits)
    if fact.poll_interval_ms is not KEEP:
        changes["poll_interval_ms"] = _milliseconds("poll_interval_ms", fact.poll_interval_ms)
    return Progress(task_id=fact.task_id, report=fact.token, resumption=fact.resumption, changes=changes)


def _ttl(fact: TtlChanged, limits: Limits) -> Operation:
    changes = {"ttl_ms": _lifetime(fact.ttl_ms, limits)}
    return Progress(task_id=fact.task_id, report=fact.token, trigger=Trigger.TTL_CHANGED, changes=changes)


def _checkpointed(fact: WorkCheckpointed, limits: Limits) -> Operation | RejectReport:
    value, size = (None, 0) if fact.value is None else copied(fact.value)
    if size > limits.checkpoint_bytes:
        return RejectReport(fact.token, "the checkpoint is too large (Limits.checkpoint_bytes)")
    return Checkpoint(
        task_id=fact.task_id,
        report=fact.token,
        resumption=fact.resumption,
        value=value,
        value_bytes=size,
        received=frozenset(fact.received),
    )


def _asked(fact: WorkAskedInput, limits: Limits) -> Operation | RejectReport:
    check_text("ask", fact.ask)
    if problem := check_requests(fact.requests):
        return RejectReport(fact.token, problem)
    requests, size = copied(fact.requests)
    if size > limits.result_bytes:
        return RejectReport(fact.token, "the requests are too large (Limits.result_bytes)")
    return AskInput(
        task_id=fact.task_id,
        report=fact.token,
        resumption=fact.resumption,
        ask=fact.ask,
        requests=requests,
        request_bytes=size,
        limits=limits,
    )


def _withdrawn(fact: WorkWithdrewInput, limits: Limits) -> Operation:
    return WithdrawInput(task_id=fact.task_id, report=fact.token, resumption=fact.resumption, ask=fact.ask)


def _completed(fact: WorkCompleted, limits: Limits) -> Operation:
    check_result(fact.result)
    result, size = copied(fact.result)
    if size > limits.result_bytes:
        error = limit_reached("result_bytes")
        return _failed(
            WorkFailed(task_id=fact.task_id, token=fact.token, error=error, resumption=fact.resumption),
            limits,
        )
    return EndWork(
        task_id=fact.task_id,
        report=fact.token,
        resumption=fact.resumption,
        trigger=Trigger.WORK_COMPLETED,
        result=result,
        result_bytes=size,
        status_message=_cut(fact.status_message, limits),
    )


def _failed(fact: WorkFailed, limits: Limits) -> Operation:
    error, size = _copied_error(fact.error, limits)
    message = error.message if fact.status_message is None else fact.status_message
    return EndWork(
        task_id=fact.task_id,
        report=fact.token,
        resumption=fact.resumption,
        trigger=Trigger.WORK_FAILED,
        error=error,
        result_bytes=size,
        status_message=_cut(message, limits),
    )


def _copied_error(error: ErrorObject, limits: Limits) -> tuple[ErrorObject, int]:
    """Return an error of the host's own, or what is said in place of one that is too large, and its size."""
    wire, size = copied(error_on_wire(error))
    if size > limits.result_bytes:
        return limit_reached("result_bytes"), limits.result_bytes
    return evolve(error, data=wire.get("data")), size


def _ended(fact: TaskEnded, limits: Limits) -> Operation:
    if fact.error is None:
        return EndTask(
            task_id=fact.task_id,
            report=fact.token,
            trigger=Trigger.HOST_CANCELLED,
            status_message=_cut(fact.status_message, limits),
        )
    error, size = _copied_error(fact.error, limits)
    message = error.message if fact.status_message is None else fact.status_message
    return EndTask(
        task_id=fact.task_id,
        report=fact.token,
        trigger=Trigger.HOST_FAILED,
        error=error,
        error_bytes=size,
        status_message=_cut(message, limits),
    )


def _stopped(fact: WorkStopped, limits: Limits) -> Operation:
    return EndWork(
        task_id=fact.task_id,
        report=fact.token,
        resumption=fact.resumption,
        trigger=Trigger.WORK_STOPPED,
        status_message=_cut(fact.status_message, limits),
    )


_TRANSLATIONS: Final[Mapping[type, Callable[[Any, Limits], Operation | RejectReport]]] = {
    WorkProgressed: _progress,
    WorkCheckpointed: _checkpointed,
    TtlChanged: _ttl,
    WorkAskedInput: _asked,
    WorkWithdrewInput: _withdrawn,
    WorkCompleted: _completed,
    WorkFailed: _failed,
    WorkStopped: _stopped,
    TaskEnded: _ended,
}


def _lifetime(ttl_ms: int | None, limits: Limits) -> int | None:
    """Return a lifetime within the ceiling."""
    _milliseconds("ttl_ms", ttl_ms)
    ceiling = limits.ttl_ceiling_ms
    if ceiling is None:
        return ttl_ms
    return ceiling if ttl_ms is None else min(ttl_ms, ceiling)


def _milliseconds(what: str, value: int | None) -> int | None:
    """Return a number of milliseconds, or ``None``, as it is (LIFE.5)."""
    if value is not None and (type(value) is not int or value <= 0):
        raise LocalProtocolError(f"{what} is a positive integer, in milliseconds, or None")
    return value


_Message = TypeVar("_Message", str | None, str | Keep | None)


def _cut(message: _Message, limits: Limits) -> _Message:
    """Return a status message that is not too long. Raises :class:`LocalProtocolError` for what is none."""
    if message is None or message is KEEP:
        return message
    check_text("status_message", message)
    return message[: limits.status_message_chars]
