"""Params, views and stored records: WIRE.5, LIFE.3, LIFE.5, LIFE.7, GET.1, SEC.2, TRAPS 13 to 16 and 30."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve, fields
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import InputEntry, TaskRecord
from mcp_tasks_proto.wire.schema import (
    ABSENT,
    CallToolParams,
    CancelledParams,
    ListenParams,
    ParamsError,
    SubscriptionFilter,
    TaskIdParams,
    TaskView,
    UpdateTaskParams,
    create_result,
    record_from_json,
    record_to_json,
    structure,
    task_view,
    unstructure,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
OBJECT_MAPS = st.dictionaries(TEXTS, OBJECTS, max_size=3)
STRINGS = st.lists(TEXTS, max_size=3)
ERRORS = st.fixed_dictionaries(
    {"code": st.integers(), "message": TEXTS}, optional={"data": VALUES, "more": VALUES}
)

# For each class: its members in JSON, the required ones and the others, with values that fit.
SHAPES: dict[type[Any], tuple[dict[str, Any], dict[str, Any]]] = {
    CallToolParams: (
        {"name": TEXTS},
        {"arguments": OBJECTS, "inputResponses": OBJECT_MAPS, "requestState": TEXTS},
    ),
    TaskIdParams: ({"taskId": TEXTS}, {}),
    UpdateTaskParams: ({"taskId": TEXTS, "inputResponses": OBJECT_MAPS}, {}),
    SubscriptionFilter: (
        {},
        {
            "toolsListChanged": st.booleans(),
            "promptsListChanged": st.booleans(),
            "resourcesListChanged": st.booleans(),
            "resourceSubscriptions": STRINGS,
            "taskIds": STRINGS,
        },
    ),
    ListenParams: (
        {"notifications": st.fixed_dictionaries({}, optional={"taskIds": STRINGS, "x": VALUES})},
        {},
    ),
    CancelledParams: ({"requestId": TEXTS | st.integers()}, {"reason": TEXTS}),
    TaskView: (
        {
            "taskId": TEXTS,
            "status": st.sampled_from([status.value for status in Status]),
            "createdAt": TEXTS,
            "lastUpdatedAt": TEXTS,
        },
        {
            "ttlMs": st.none() | st.integers(),
            "statusMessage": TEXTS,
            "pollIntervalMs": st.integers(),
            "inputRequests": OBJECT_MAPS,
            "result": OBJECTS,
            "error": ERRORS,
        },
    ),
}


@st.composite
def wire_objects(draw: st.DrawFn) -> tuple[type[Any], dict[str, Any]]:
    """Draw a class and JSON that fits it, with members that it does not know."""
    cls = draw(st.sampled_from(list(SHAPES)))
    required, optional = SHAPES[cls]
    known = draw(st.fixed_dictionaries(required, optional=optional))
    others = draw(
        st.dictionaries(TEXTS | st.sampled_from(["_meta", "extra", "task_id", "name "]), VALUES, max_size=3)
    )
    return cls, {
        **{name: value for name, value in others.items() if name not in {**required, **optional}},
        **known,
    }


# -- params ------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(wire_objects())
def test_parse_then_serialise_is_the_identity(drawn: tuple[type[Any], dict[str, Any]]) -> None:
    """WIRE.5: unknown members survive, absent and null stay apart, and so do absent and empty."""
    cls, wire = drawn
    before = json.dumps(wire)
    instance = structure(cls, wire)
    written = unstructure(instance)
    assert written == wire
    assert json.loads(json.dumps(written)) == json.loads(before)
    assert json.dumps(wire) == before
    assert structure(cls, written) == instance


def test_the_params_of_a_call() -> None:
    wire = {
        "name": "render",
        "arguments": {"frames": 3},
        "inputResponses": {"a": {"action": "accept"}},
        "requestState": "sealed",
        "_meta": {"progressToken": 1},
        "task": {"ttl": 60},
    }
    assert structure(CallToolParams, wire) == CallToolParams(
        name="render",
        arguments={"frames": 3},
        input_responses={"a": {"action": "accept"}},
        request_state="sealed",
        extra={"_meta": {"progressToken": 1}, "task": {"ttl": 60}},
    )
    assert structure(CallToolParams, {"name": "render"}) == CallToolParams(name="render")


def test_a_filter_that_asks_for_no_tasks_is_not_one_that_does_not_ask() -> None:
    """NEG.6."""
    assert structure(ListenParams, {"notifications": {}}).notifications.task_ids is None
    assert structure(ListenParams, {"notifications": {"taskIds": []}}).notifications.task_ids == ()


def test_what_is_built_here_is_written_without_what_is_absent() -> None:
    agreed = SubscriptionFilter(tools_list_changed=True, task_ids=("a", "b"))
    assert unstructure(ListenParams(notifications=agreed)) == {
        "notifications": {"toolsListChanged": True, "taskIds": ["a", "b"]}
    }
    assert unstructure(CancelledParams(request_id=1)) == {"requestId": 1}


def test_a_changed_member_is_written_as_changed() -> None:
    wanted = structure(SubscriptionFilter, {"toolsListChanged": False, "resourceSubscriptions": []})
    changed = evolve(wanted, tools_list_changed=True, resource_subscriptions=("file:///a",))
    assert unstructure(changed) == {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}


@pytest.mark.parametrize("request_id", [1, "1"])
def test_ids_keep_their_type(request_id: str | int) -> None:
    """WIRE.3."""
    assert type(structure(CancelledParams, {"requestId": request_id}).request_id) is type(request_id)


VIEW = {"taskId": "t", "status": "working", "createdAt": "c", "lastUpdatedAt": "l", "ttlMs": None}


@pytest.mark.parametrize(
    ("cls", "wire", "text"),
    [
        (CallToolParams, None, "params must be an object"),
        (CallToolParams, [], "params must be an object"),
        (CallToolParams, {}, "name is missing"),
        (CallToolParams, {"name": 5}, "name must be a string"),
        (CallToolParams, {"name": None}, "name must be a string"),
        (CallToolParams, {"name": "a", "arguments": None}, "arguments must be an object"),
        (CallToolParams, {"name": "a", "arguments": []}, "arguments must be an object"),
        (CallToolParams, {"name": "a", "inputResponses": None}, "inputResponses must be an object"),
        (CallToolParams, {"name": "a", "requestState": 1}, "requestState must be a string"),
        (TaskIdParams, {"task_id": "a"}, "taskId is missing"),
        (TaskIdParams, {"taskId": ["a"]}, "taskId must be a string"),
        (UpdateTaskParams, {"taskId": "a"}, "inputResponses is missing"),
        (ListenParams, {}, "notifications is missing"),
        (ListenParams, {"notifications": True}, "notifications must be an object"),
        (
            ListenParams,
            {"notifications": {"taskIds": "a"}},
            "notifications.taskIds must be an array",
        ),
        (
            ListenParams,
            {"notifications": {"taskIds": None}},
            "notifications.taskIds must be an array",
        ),
        (
            ListenParams,
            {"notifications": {"taskIds": ["a", 1]}},
            "notifications.taskIds.1 must be a string",
        ),
        (
            ListenParams,
            {"notifications": {"toolsListChanged": 1}},
            "notifications.toolsListChanged must be true or false",
        ),
        (
            ListenParams,
            {"notifications": {"toolsListChanged": 0}},
            "notifications.toolsListChanged must be true or false",
        ),
        (CancelledParams, {"requestId": True}, "requestId must be a string or an integer"),
        (CancelledParams, {"requestId": 1.0}, "requestId must be a string or an integer"),
        (CancelledParams, {"requestId": None}, "requestId must be a string or an integer"),
        (CancelledParams, {"requestId": 1, "reason": None}, "reason must be a string"),
        (TaskView, {**VIEW, "status": "paused"}, "status is not the status of a task"),
        (TaskView, {**VIEW, "status": ["working"]}, "status is not the status of a task"),
        (TaskView, {**VIEW, "ttlMs": "60"}, "ttlMs must be an integer or null"),
        (TaskView, {**VIEW, "ttlMs": True}, "ttlMs must be an integer or null"),
        (TaskView, {**VIEW, "ttlMs": 60.0}, "ttlMs must be an integer or null"),
        (TaskView, {**VIEW, "pollIntervalMs": "60"}, "pollIntervalMs must be an integer"),
        (TaskView, {**VIEW, "pollIntervalMs": True}, "pollIntervalMs must be an integer"),
        (TaskView, {**VIEW, "pollIntervalMs": None}, "pollIntervalMs must be an integer"),
        (TaskView, {**VIEW, "createdAt": 5}, "createdAt must be a string"),
        (TaskView, {**VIEW, "result": []}, "result must be an object"),
        (TaskView, {**VIEW, "error": {"code": "1", "message": "m"}}, "error must be a JSON-RPC error"),
        (TaskView, {**VIEW, "inputRequests": []}, "inputRequests must be an object"),
    ],
)
def test_what_does_not_fit_is_named(cls: type[Any], wire: Any, text: str) -> None:
    """Nothing is converted: ``"60"`` is not 60 and ``true`` is not 1."""
    with pytest.raises(ParamsError) as caught:
        structure(cls, wire)
    assert str(caught.value) == text


@settings(deadline=None)
@given(st.sampled_from(list(SHAPES)), OBJECTS | VALUES)
def test_any_value_fits_or_is_refused(cls: type[Any], value: Any) -> None:
    try:
        instance = structure(cls, value)
    except ParamsError:
        return
    assert unstructure(instance) == value


def test_refusals_do_not_repeat_values() -> None:
    """SEC.2."""
    with pytest.raises(ParamsError) as caught:
        structure(TaskView, {**VIEW, "status": "hunter2", "ttlMs": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


# -- views as a requester reads them -----------------------------------------------------------------


def test_a_ttl_may_be_absent_null_or_huge() -> None:
    """TRAPS 15."""
    without = {name: value for name, value in VIEW.items() if name != "ttlMs"}
    assert structure(TaskView, without).ttl_ms is ABSENT
    assert "ttlMs" not in unstructure(structure(TaskView, without))
    assert structure(TaskView, VIEW).ttl_ms is None
    assert unstructure(structure(TaskView, VIEW))["ttlMs"] is None
    assert structure(TaskView, {**VIEW, "ttlMs": 2**53}).ttl_ms == 2**53


@pytest.mark.parametrize("hint", [0, -5, 2**40])
def test_senseless_poll_hints_are_read(hint: int) -> None:
    """TRAPS 16: what to make of them is for the requester."""
    assert structure(TaskView, {**VIEW, "pollIntervalMs": hint}).poll_interval_ms == hint


def test_a_view_of_our_own_is_read() -> None:
    view = structure(
        TaskView, task_view(evolve(RECORD, status=Status.FAILED, error=ErrorObject(-1, "no", {"a": 1})))
    )
    assert view.status is Status.FAILED
    assert view.error == ErrorObject(-1, "no", {"a": 1})
    assert view.extra == {}


# -- views as an owner sees them ---------------------------------------------------------------------


RECORD = TaskRecord(
    task_id="t-1",
    version=3,
    principal="ann",
    tool="render",
    arguments={"secret": 1},
    client_capabilities={"elicitation": {}},
    status=Status.WORKING,
    created_at_ms=1_753_660_800_000,
    last_updated_at_ms=1_753_660_801_234,
    ttl_ms=600_000,
)
COMMON = {
    "taskId": "t-1",
    "createdAt": "2025-07-28T00:00:00.000Z",
    "lastUpdatedAt": "2025-07-28T00:00:01.234Z",
    "ttlMs": 600_000,
}
ASKED = {"method": "elicitation/create", "params": {"message": "Publish?"}}


def entry(key: str, **more: Any) -> InputEntry:
    return InputEntry(key=key, name=key, ask="1", request=ASKED, **more)


def test_a_working_task() -> None:
    """GET.1: exactly the members of its status, and nothing of what is not the peer's."""
    assert task_view(RECORD) == {**COMMON, "status": "working"}


def test_what_is_known_beside_the_status() -> None:
    record = evolve(RECORD, status_message="Frame 3/100", poll_interval_ms=500, ttl_ms=None)
    assert task_view(record) == {
        **COMMON,
        "status": "working",
        "statusMessage": "Frame 3/100",
        "pollIntervalMs": 500,
        "ttlMs": None,
    }


def test_a_task_that_waits_for_input_shows_what_is_outstanding() -> None:
    """INP.1."""
    inputs = (entry("a"), entry("b", response={"action": "accept"}), entry("c", withdrawn=True), entry("a.2"))
    view = task_view(evolve(RECORD, status=Status.INPUT_REQUIRED, inputs=inputs))
    assert view == {**COMMON, "status": "input_required", "inputRequests": {"a": ASKED, "a.2": ASKED}}


def test_a_completed_task_carries_its_result() -> None:
    """LIFE.7: the inner result says that it is complete."""
    result = {"content": [], "isError": True}
    view = task_view(evolve(RECORD, status=Status.COMPLETED, result=result))
    assert view == {**COMMON, "status": "completed", "result": {"resultType": "complete", **result}}
    assert result == {"content": [], "isError": True}


def test_a_result_that_says_what_it_is_keeps_saying_it() -> None:
    record = evolve(RECORD, status=Status.COMPLETED, result={"resultType": "other"})
    assert task_view(record)["result"] == {"resultType": "other"}


def test_a_failed_task_carries_its_error_and_a_status_message() -> None:
    """LIFE.2."""
    error = ErrorObject(ErrorCode.INTERNAL_ERROR, "disk full", {"free": 0}, {"more": 1})
    wire = {"code": -32603, "message": "disk full", "data": {"free": 0}, "more": 1}
    record = evolve(RECORD, status=Status.FAILED, error=error)
    assert task_view(record) == {**COMMON, "status": "failed", "statusMessage": "disk full", "error": wire}
    told = evolve(record, status_message="Rendering failed")
    assert task_view(told)["statusMessage"] == "Rendering failed"
    json.dumps(task_view(told))


def test_a_record_that_lacks_its_outcome_still_makes_a_whole_view() -> None:
    """GET.1: a peer may rely on ``result`` and ``error``, whatever a store has done."""
    assert task_view(evolve(RECORD, status=Status.COMPLETED))["result"] == {"resultType": "complete"}
    failed = task_view(evolve(RECORD, status=Status.FAILED))
    assert failed["error"]["code"] == ErrorCode.INTERNAL_ERROR
    assert failed["statusMessage"] == failed["error"]["message"]


def test_a_cancelled_task() -> None:
    assert task_view(evolve(RECORD, status=Status.CANCELLED)) == {**COMMON, "status": "cancelled"}


@pytest.mark.parametrize("status", list(Status))
def test_members_of_other_statuses_stay_inside(status: Status) -> None:
    """GET.1, for records that hold more than they should."""
    record = evolve(RECORD, status=status, inputs=(entry("a"),), result={}, error=ErrorObject(1, "m"))
    own = {Status.INPUT_REQUIRED: "inputRequests", Status.COMPLETED: "result", Status.FAILED: "error"}
    members = set(task_view(record)) - {*COMMON, "status", "statusMessage"}
    assert members == ({own[status]} if status in own else set())


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (Status.WORKING, {}),
        (Status.COMPLETED, {"result": {"content": []}}),
        (Status.FAILED, {"error": ErrorObject(1, "m"), "status_message": "m"}),
    ],
)
def test_a_create_result_is_flat_and_carries_no_outcome(status: Status, more: dict[str, Any]) -> None:
    """LIFE.3."""
    record = evolve(RECORD, status=status, poll_interval_ms=5, **more)
    assert create_result(record) == {
        **COMMON,
        "resultType": "task",
        "status": status.value,
        "pollIntervalMs": 5,
        **({"statusMessage": "m"} if "status_message" in more else {}),
    }


def test_a_view_is_a_fresh_object() -> None:
    task_view(RECORD)["_meta"] = {}
    assert "_meta" not in task_view(RECORD)


@settings(deadline=None)
@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)))
def test_timestamps_are_rfc_3339_in_utc_with_milliseconds(moment: datetime) -> None:
    """LIFE.5."""
    unix_ms = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    text = task_view(evolve(RECORD, created_at_ms=unix_ms))["createdAt"]
    assert len(text) == len("2025-07-28T00:00:00.000Z")
    assert text.endswith("Z")
    read = datetime.fromisoformat(text)
    assert read.utcoffset() == timedelta(0)
    assert (read - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) == unix_ms


@pytest.mark.parametrize("unix_ms", [10**15, -(10**15), 10**30, -(10**30)])
def test_times_out_of_range_are_the_hosts_error(unix_ms: int) -> None:
    """TRAPS 30: such a time was not in milliseconds."""
    with pytest.raises(LocalProtocolError, match="milliseconds"):
        task_view(evolve(RECORD, last_updated_at_ms=unix_ms))


# -- stored records ----------------------------------------------------------------------------------


ENTRIES = st.builds(
    InputEntry,
    key=TEXTS,
    name=TEXTS,
    ask=TEXTS,
    request=OBJECTS,
    response=st.none() | OBJECTS,
    withdrawn=st.booleans(),
)
KNOWN = {known.name for known in fields(TaskRecord)} - {"extra"} | {"schema"}
RECORDS = st.builds(
    TaskRecord,
    task_id=TEXTS,
    version=st.integers(1),
    principal=st.none() | TEXTS,
    tool=TEXTS,
    arguments=st.none() | OBJECTS,
    client_capabilities=OBJECTS,
    status=st.sampled_from(Status),
    status_message=st.none() | TEXTS,
    created_at_ms=st.integers(),
    last_updated_at_ms=st.integers(),
    ttl_ms=st.none() | st.integers(),
    poll_interval_ms=st.none() | st.integers(),
    inputs=st.lists(ENTRIES, max_size=3).map(tuple),
    cancel_requested_at_ms=st.none() | st.integers(),
    result=st.none() | OBJECTS,
    error=st.none() | st.builds(ErrorObject, st.integers(), TEXTS, st.none() | VALUES),
    payload_bytes=st.integers(),
    extra=st.dictionaries(TEXTS.filter(lambda name: name not in KNOWN), VALUES, max_size=2),
)


@settings(deadline=None)
@given(RECORDS)
def test_a_stored_record_comes_back_equal(record: TaskRecord) -> None:
    """Through JSON text, as a store would keep it."""
    assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record


def test_a_record_with_every_code_of_ours_is_plain_json() -> None:
    record = evolve(RECORD, status=Status.FAILED, error=ErrorObject(ErrorCode.INVALID_PARAMS, "no"))
    stored = record_to_json(record)
    assert stored["schema"] == 1
    assert stored["status"] == "failed"
    assert stored["error"] == {"code": -32602, "message": "no"}
    assert record_from_json(stored) == record


def test_members_of_a_later_version_are_carried_along() -> None:
    stored = {**record_to_json(RECORD), "priority": {"level": 3}, "extra": None}
    record = record_from_json(stored)
    assert record.extra == {"priority": {"level": 3}, "extra": None}
    assert record_to_json(record.changed(0, status=Status.WORKING)) == {**stored, "version": 4}


def test_members_that_have_their_default_are_not_written() -> None:
    """Nor must they be there: an earlier version may have written the record, before they were added."""
    stored = record_to_json(RECORD)
    unsaid = {known.name for known in fields(TaskRecord) if getattr(RECORD, known.name) == known.default}
    assert unsaid >= {"payload_bytes", "cancel_requested_at_ms", "inputs", "result", "error"}
    assert set(stored) == KNOWN - unsaid
    assert record_from_json(stored) == RECORD


def test_defaults_may_be_written_all_the_same() -> None:
    """As an earlier version did."""
    spelled: dict[str, Any] = {
        "status_message": None,
        "inputs": [],
        "resumption": None,
        "payload_bytes": 0,
        "result": None,
    }
    assert record_from_json({**record_to_json(RECORD), **spelled}) == RECORD


def test_a_later_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 2, of a later version"):
        record_from_json({**record_to_json(RECORD), "schema": 2})


@pytest.mark.parametrize("value", [None, [], "text", {}, {"schema": "1"}, {"schema": True}, {"schema": 0}])
def test_what_is_no_stored_record_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not a stored task record"):
        record_from_json(value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"task_id": 5}, "task_id must be a string"),
        ({"version": "3"}, "version must be an integer"),
        ({"version": True}, "version must be an integer"),
        ({"created_at_ms": 1.0}, "created_at_ms must be an integer"),
        ({"status": "paused"}, "status is not the status of a task"),
        ({"ttl_ms": "60"}, "ttl_ms must be an integer"),
        ({"arguments": []}, "arguments must be an object"),
        ({"inputs": None}, "inputs must be an array"),
        ({"inputs": {}}, "inputs must be an array"),
        ({"inputs": [None]}, "inputs.0 must be an object"),
        ({"inputs": [{"key": "a"}]}, "inputs.0.name is missing"),
        (
            {"inputs": [{"key": "a", "name": "a", "ask": "1", "request": {}, "withdrawn": 1}]},
            "inputs.0.withdrawn must be true or false",
        ),
        (
            {"inputs": [{"key": "a", "name": "a", "ask": "1", "request": {}, "later": 1}]},
            "inputs.0 has members that are not known",
        ),
        ({"error": {}}, "error must be a JSON-RPC error"),
    ],
)
def test_a_damaged_record_is_refused_by_name(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"^stored task record: ") as caught:
        record_from_json({**record_to_json(RECORD), **changes})
    assert str(caught.value).endswith(text)


@settings(deadline=None)
@given(st.sampled_from(sorted(KNOWN)), VALUES)
def test_whatever_the_damage_it_is_a_value_error_or_kept(name: str, value: Any) -> None:
    stored = {**record_to_json(evolve(RECORD, inputs=(entry("a"),))), name: value}
    try:
        record = record_from_json(stored)
    except ValueError:
        return
    written = record_to_json(record)
    assert record_from_json(written) == record
    assert keeps(written, stored)


def keeps(written: Any, stored: Any) -> bool:
    """Whether all that is ``stored`` is ``written`` too; a default need not be."""
    if isinstance(stored, dict) and isinstance(written, dict):
        return all(
            keeps(written[name], member) if name in written else not member for name, member in stored.items()
        )
    if isinstance(stored, list) and isinstance(written, list):
        return len(written) == len(stored) and all(map(keeps, written, stored))
    return type(written) is type(stored) and bool(written == stored)


def test_a_record_that_lacks_a_member_is_refused() -> None:
    stored = record_to_json(RECORD)
    del stored["tool"]
    with pytest.raises(ValueError, match="tool is missing"):
        record_from_json(stored)


@pytest.mark.parametrize("status", [status for status in Status if status.terminal])
def test_the_view_of_a_stored_record_is_the_same(status: Status) -> None:
    """LIFE.1: an ended task reads the same on every node."""
    record = evolve(RECORD, status=status, result={"content": []}, error=ErrorObject(1, "m"))
    assert task_view(record_from_json(json.loads(json.dumps(record_to_json(record))))) == task_view(record)
