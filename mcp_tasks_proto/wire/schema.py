"""Params, views and stored records, as values with their types checked; the one module that uses cattrs.

Reading is strict: ``"60"`` is not 60 and ``true`` is not 1. It loses nothing: members that a class does not
know are in its ``extra``, so :func:`unstructure` of what :func:`structure` read gives the same JSON again
(WIRE.5).

:func:`task_view` is the one place where a record becomes what a peer sees; get, notifications and the create
result are all built from it (GET.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Final, TypeVar, get_args, get_origin

from attrs import Attribute, field, fields, frozen, has, resolve_types
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError, internal_error
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.wire.jsonrpc import parse_error_object

__all__ = [
    "ABSENT",
    "Absent",
    "CallToolParams",
    "CancelledParams",
    "ListenParams",
    "ParamsError",
    "SubscriptionFilter",
    "TaskIdParams",
    "TaskView",
    "UpdateTaskParams",
    "create_result",
    "from_stored",
    "record_from_json",
    "record_to_json",
    "structure",
    "task_view",
    "timestamp",
    "to_stored",
    "unstructure",
]

Object = Mapping[str, Any]
_T = TypeVar("_T")


class ParamsError(ValueError):
    """JSON that does not fit a class; the text names the member and what is wrong, never its value."""


class Absent(Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The member is not there, where ``None`` says that it is there and null."""


# -- params ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class CallToolParams:
    """Of ``tools/call``. ``None`` is for a member that is not there; none of them may be null."""

    name: str
    arguments: Object | None = None
    input_responses: Object | None = None
    request_state: str | None = None
    extra: Object = field(factory=dict)


@frozen(kw_only=True)
class TaskIdParams:
    """Of ``tasks/get`` and ``tasks/cancel``."""

    task_id: str
    extra: Object = field(factory=dict)


@frozen(kw_only=True)
class UpdateTaskParams:
    """Of ``tasks/update``."""

    task_id: str
    input_responses: Object
    """What stands under a key that is not outstanding may be anything (UPD.3)."""
    extra: Object = field(factory=dict)


@frozen(kw_only=True)
class SubscriptionFilter:
    """What a listen stream asks for, or agrees to."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: tuple[str, ...] = ()
    task_ids: tuple[str, ...] | None = None
    """``None``: not asked for; that differs from asking for none (NEG.6)."""
    extra: Object = field(factory=dict)


@frozen(kw_only=True)
class ListenParams:
    """Of ``subscriptions/listen`` and of its acknowledgement."""

    notifications: SubscriptionFilter
    extra: Object = field(factory=dict)


@frozen(kw_only=True)
class CancelledParams:
    """Of ``notifications/cancelled``."""

    request_id: str | int
    reason: str | None = None
    extra: Object = field(factory=dict)


@frozen(kw_only=True)
class TaskView:
    """A task as its requester sees it, in whatever message it came.

    Times are kept as they came. ``None`` is for a member that is not there, but for ``ttl_ms``, where null
    means unlimited.
    """

    task_id: str
    status: Status
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int | Absent | None = ABSENT
    poll_interval_ms: int | None = None
    """As the peer says it, sensible or not."""
    input_requests: Mapping[str, Object] | None = None
    result: Object | None = None
    error: ErrorObject | None = None
    extra: Object = field(factory=dict)


# -- reading and writing -----------------------------------------------------------------------------


def structure(cls: type[_T], value: Any) -> _T:
    """Read ``value``, a JSON value, as a ``cls`` of this module. Raises :class:`ParamsError`."""
    try:
        return _WIRE.structure(value, cls)
    except _MismatchError as mismatch:
        raise ParamsError(mismatch.describe("params")) from None


def unstructure(instance: Any) -> dict[str, Any]:
    """Write an instance of a class of this module as JSON; the object is a fresh one."""
    written: dict[str, Any] = _WIRE.unstructure(instance)
    return written


class _MismatchError(Exception):
    """A value does not fit; ``members`` is the way to it, from the outside in."""

    def __init__(self, problem: str, *members: str) -> None:
        self.problem = problem
        self.members = members

    def describe(self, whole: str) -> str:
        """Return a sentence about the member, or about the ``whole`` value."""
        return f"{'.'.join(self.members) or whole} {self.problem}"


Reader = Callable[[Any, Any], Any]
"""A cattrs hook: the value and the type wanted, to the value read."""
Writer = Callable[[Any], Any]


def _exactly(kind: type, problem: str) -> Reader:
    """Return a hook that takes instances of ``kind`` and no others, where cattrs would convert."""

    def read(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise _MismatchError(problem)
        return value

    return read


def _within(member: str, read: Reader) -> Reader:
    """Return ``read``, such that what does not fit is named as part of ``member``."""

    def read_member(value: Any, kind: Any) -> Any:
        try:
            return read(value, kind)
        except _MismatchError as mismatch:
            raise _MismatchError(mismatch.problem, member, *mismatch.members) from None

    return read_member


def _read_object(value: Any, _: Any) -> Any:
    if not isinstance(value, dict):
        raise _MismatchError("must be an object")
    return value


def _read_objects(value: Any, _: Any) -> Any:
    for name, member in _read_object(value, None).items():
        _within(name, _read_object)(member, None)
    return value


def _read_id(value: Any, _: Any) -> Any:
    if type(value) not in (str, int):
        raise _MismatchError("must be a string or an integer")
    return value


def _read_ttl(value: Any, _: Any) -> Any:
    if value is not None and type(value) is not int:
        raise _MismatchError("must be an integer or null")
    return value


def _read_status(value: Any, _: Any) -> Status:
    for status in Status:
        if status.value == value:
            return status
    raise _MismatchError("is not the status of a task")


def _read_error(value: Any, _: Any) -> ErrorObject:
    error = parse_error_object(value)
    if error is None:
        raise _MismatchError("must be a JSON-RPC error")
    return error


def _unchanged(value: Any) -> Any:
    return value


_READERS: Final[Mapping[Any, Reader]] = {
    str: _exactly(str, "must be a string"),
    int: _exactly(int, "must be an integer"),
    bool: _exactly(bool, "must be true or false"),
    str | int: _read_id,
    int | Absent | None: _read_ttl,
    Object: _read_object,
    Mapping[str, Object]: _read_objects,
    Status: _read_status,
    ErrorObject: _read_error,
}

_WRITERS: Final[Mapping[Any, Writer]] = {
    Object: dict,
    Mapping[str, Object]: dict,
    ErrorObject: ErrorObject.to_wire,
    int | Absent | None: _unchanged,
}

_SPELLED: Final[Mapping[Any, Any]] = {False: False, (): []}
"""Defaults that JSON can spell out, and how it does."""


@frozen
class _Hooks:
    """Makes the hooks of compound types for one converter."""

    converter: Converter
    wire_name: Callable[[str], str]
    """An attribute's name to its name in JSON."""
    as_it_came: bool
    """Whether a null, or a default that is spelled out, is another thing than a member that is not there."""

    def register(self) -> None:
        """Set the converter up."""
        converter = self.converter
        converter.register_structure_hook_factory(has, self.class_reader)
        converter.register_unstructure_hook_factory(has, self.class_writer)
        converter.register_structure_hook_factory(_is_array, self.array_reader)
        converter.register_structure_hook_factory(_is_optional, self.optional_reader)
        for kind, read in _READERS.items():
            if isinstance(kind, type):
                converter.register_structure_hook(kind, read)
            else:
                converter.register_structure_hook_func(partial(_same_type, kind), read)
        for kind, write in _WRITERS.items():
            converter.register_unstructure_hook_func(partial(_same_type, kind), write)

    def class_reader(self, cls: type) -> Reader:
        """Return what reads a ``cls``: its own members by name, all others into ``extra``."""
        own = self._members(cls)
        overrides: dict[str, Any] = {}
        spelled: dict[str, Any] = {}
        for name, known in own.items():
            read_known = _within(name, self.converter.get_structure_hook(known.type))
            overrides[known.name] = override(rename=name, struct_hook=read_known)
            if self.as_it_came and known.default in _SPELLED:
                spelled[name] = _SPELLED[known.default]
        read_own: Reader = make_dict_structure_fn(cls, self.converter, **overrides)
        keeps_others = _keeps_others(cls)

        def read(value: Any, _: Any) -> Any:
            # A member that spells out its default goes into extra as well, or omitting it would lose it.
            others = {
                name: member
                for name, member in _read_object(value, None).items()
                if name not in own or (name in spelled and member == spelled[name])
            }
            if others and not keeps_others:
                raise _MismatchError("has members that are not known")
            try:
                return read_own({**value, "extra": others}, cls)
            except KeyError as error:
                raise _MismatchError("is missing", error.args[0]) from None

        return read

    def class_writer(self, cls: type) -> Writer:
        """Return what writes a ``cls``."""
        overrides: dict[str, Any] = {
            known.name: override(rename=name) for name, known in self._members(cls).items()
        }
        write_own: Writer = make_dict_unstructure_fn(
            cls,
            self.converter,
            _cattrs_omit_if_default=True,
            extra=override(omit=True),
            **overrides,
        )
        if not _keeps_others(cls):
            return write_own
        return lambda instance: (
            {**instance.extra, **write_own(instance)} if instance.extra else write_own(instance)
        )

    def array_reader(self, kind: Any) -> Reader:
        """Return what reads an array of one type of items."""
        read_item: Reader = self.converter.get_structure_hook(get_args(kind)[0])

        def read(value: Any, _: Any) -> Any:
            if not isinstance(value, list):
                raise _MismatchError("must be an array")
            return tuple(_within(str(index), read_item)(item, None) for index, item in enumerate(value))

        return read

    def optional_reader(self, kind: Any) -> Reader:
        """Return what reads a value or ``None``."""
        read: Reader = self.converter.get_structure_hook(get_args(kind)[0])
        if self.as_it_came:
            return read  # None is for a member that is not there; a null that is there does not fit
        return lambda value, _: None if value is None else read(value, None)

    def _members(self, cls: type) -> dict[str, Attribute[Any]]:
        """Return the attributes of a class by their names in JSON."""
        resolve_types(cls)
        return {self.wire_name(known.name): known for known in fields(cls) if known.name != "extra"}


def _keeps_others(cls: type) -> bool:
    """Whether instances of a class carry members that it does not know."""
    return any(known.name == "extra" for known in fields(cls))


def _is_array(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_optional(kind: Any) -> bool:
    return type(None) in get_args(kind)


def _same_type(one: Any, other: Any) -> bool:
    return bool(one == other)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _make_converter(*, wire_name: Callable[[str], str], as_it_came: bool) -> Converter:
    converter = Converter(detailed_validation=False)
    _Hooks(converter, wire_name, as_it_came).register()
    return converter


_WIRE: Final = _make_converter(wire_name=_camel_case, as_it_came=True)
_STORED: Final = _make_converter(wire_name=str, as_it_came=False)


# -- views -------------------------------------------------------------------------------------------


def task_view(record: TaskRecord) -> dict[str, Any]:
    """Return what the owner of a task sees: exactly the members of its status (GET.1, LIFE.5, LIFE.7).

    A fresh object; its members are the record's own. Raises :class:`LocalProtocolError` for times that are
    not in the years 1 to 9999.
    """
    view = _task(record)
    match record.status:
        case Status.INPUT_REQUIRED:
            view["inputRequests"] = {entry.key: entry.request for entry in record.outstanding}
        case Status.COMPLETED:
            view["result"] = {"resultType": "complete", **(record.result or {})}
        case Status.FAILED:
            error = record.error or internal_error("the task failed, and its record does not say why")
            view.setdefault("statusMessage", error.message)
            view["error"] = error.to_wire()
    return view


def create_result(record: TaskRecord) -> dict[str, Any]:
    """Return the result of a call that became this task, be it ended already (LIFE.3)."""
    return {"resultType": "task", **_task(record)}


def _task(record: TaskRecord) -> dict[str, Any]:
    created_ms, updated_ms = record.created_at_ms, record.last_updated_at_ms
    created = timestamp(created_ms)
    task: dict[str, Any] = {
        "taskId": record.task_id,
        "status": _STATUS_WORDS[record.status],
        "createdAt": created,
        "lastUpdatedAt": created if updated_ms == created_ms else timestamp(updated_ms),
        "ttlMs": record.ttl_ms,
    }
    if record.poll_interval_ms is not None:
        task["pollIntervalMs"] = record.poll_interval_ms
    if record.status_message is not None:
        task["statusMessage"] = record.status_message
    return task


_STATUS_WORDS: Final = {status: status.value for status in Status}
"""At hand: to ask a member of an Enum for its value is two calls."""

_EPOCH: Final = datetime(1970, 1, 1)


def timestamp(unix_ms: int) -> str:
    """Return a time as RFC 3339 has it, in UTC with milliseconds."""
    seconds, milliseconds = divmod(unix_ms, 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1024)
def _to_the_second(unix_seconds: int) -> str:
    """Return a time without its fraction; a task that is polled shows the same ones again and again."""
    try:
        return (_EPOCH + timedelta(seconds=unix_seconds)).isoformat(timespec="seconds")
    except OverflowError:
        raise LocalProtocolError("a time is not in Unix milliseconds") from None


# -- stored records ------------------------------------------------------------------------------------

_SCHEMA: Final = 1


def record_to_json(record: TaskRecord) -> dict[str, Any]:
    """Return a record as JSON that a store can keep; :func:`record_from_json` gives it back, equal."""
    return to_stored(record)


def record_from_json(value: Any) -> TaskRecord:
    """Read what :func:`record_to_json` wrote.

    Members that this version does not know are kept in ``extra`` and written back. Raises ``ValueError`` for
    JSON that is no record, or that a later version wrote which this one must not touch.
    """
    return from_stored(TaskRecord, value, "task record")


def to_stored(instance: Any) -> dict[str, Any]:
    """Return a value as JSON that a store can keep; :func:`from_stored` gives it back, equal."""
    stored: dict[str, Any] = _STORED.unstructure(instance)
    stored["schema"] = _SCHEMA
    return stored


def from_stored(cls: type[_T], value: Any, what: str) -> _T:
    """Read what :func:`to_stored` wrote; ``what`` names it in errors.

    Raises ``ValueError`` for JSON that is none, or that a later version wrote.
    """
    schema = value.get("schema") if isinstance(value, dict) else None
    if type(schema) is not int or schema < 1:
        raise ValueError(f"not a stored {what}")
    if schema > _SCHEMA:
        raise ValueError(
            f"the stored {what} has schema {schema}, of a later version of this package; "
            f"this one reads up to {_SCHEMA}"
        )
    members = {name: member for name, member in value.items() if name != "schema"}
    try:
        return _STORED.structure(members, cls)
    except _MismatchError as mismatch:
        raise ValueError(f"stored {what}: {mismatch.describe('it')}") from None
