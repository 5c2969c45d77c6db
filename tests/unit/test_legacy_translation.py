"""Views of the modern era in the words of 2025-11-25, for any task there can be (LEG.3, LEG.4, LEG.6)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto import ErrorObject, Status, TaskRecord, TaskSupport
from mcp_tasks_proto.legacy.translation import (
    created_task,
    expiry_ms,
    final_answer,
    legacy_error,
    legacy_task,
    listed_tools,
    modern_capabilities,
    modern_params,
    plain_result,
)
from mcp_tasks_proto.wire.schema import create_result, task_view
from tests.unit.world import START, TASK

MODERN_NAMES: Final = {"ttlMs", "pollIntervalMs", "resultType", "result", "error", "inputRequests"}

results = st.fixed_dictionaries(
    {"content": st.just([])},
    optional={"isError": st.booleans(), "structuredContent": st.just({}), "resultType": st.just("complete")},
)
records = st.builds(
    TaskRecord,
    task_id=st.just(TASK),
    version=st.just(1),
    principal=st.none(),
    tool=st.just("render"),
    arguments=st.none(),
    client_capabilities=st.just({}),
    status=st.sampled_from(Status),
    status_message=st.none() | st.text(max_size=5),
    created_at_ms=st.integers(0, START * 2),
    last_updated_at_ms=st.integers(0, START * 2),
    ttl_ms=st.none() | st.integers(1, 2**53),
    poll_interval_ms=st.none() | st.integers(1, 10_000),
    result=results,
    error=st.builds(ErrorObject, st.integers(-40_000, 40_000), st.text(max_size=5)),
)


@given(records)
def test_leg6_any_task_is_told_in_the_words_of_its_era(record: TaskRecord) -> None:
    task = legacy_task(task_view(record))
    assert not MODERN_NAMES & set(task)
    assert {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl"} <= set(task)
    assert task["ttl"] == record.ttl_ms
    assert task.get("pollInterval") == record.poll_interval_ms
    failed = record.status is Status.COMPLETED and (record.result or {}).get("isError") is True
    assert task["status"] == ("failed" if failed else record.status.value)
    assert task["status"] != "failed" or task["statusMessage"] is not None


@given(records)
def test_leg4_what_came_of_a_task_survives(record: TaskRecord) -> None:
    if not record.status.terminal:
        return
    answer = final_answer(task_view(record))
    if record.status is Status.COMPLETED:
        assert isinstance(answer, dict)
        kept = {name: value for name, value in answer.items() if name != "_meta"}
        assert kept == {name: it for name, it in (record.result or {}).items() if name != "resultType"}
    elif record.status is Status.FAILED:
        assert answer == record.error
    else:
        assert isinstance(answer, ErrorObject)


@given(records)
def test_leg7_the_time_of_expiry_is_read_from_the_view(record: TaskRecord) -> None:
    assert expiry_ms(task_view(record)) == record.expires_at_ms


@given(records)
def test_leg3_a_task_is_nested_where_it_is_made(record: TaskRecord) -> None:
    made = evolve(record, status=Status.WORKING)
    assert created_task(create_result(made)) == {"task": legacy_task(task_view(made))}


def test_a_result_loses_what_is_modern_and_nothing_else() -> None:
    given = {"resultType": "complete", "ttlMs": 1, "cacheScope": "x", "a": 1}
    assert plain_result(given) == {"a": 1}
    info = "io.modelcontextprotocol/serverInfo"
    assert plain_result({"a": 1, "_meta": {info: {}}}) == {"a": 1}
    assert plain_result({"_meta": {info: {}, "mine": 1}}) == {"_meta": {"mine": 1}}


def test_an_error_that_names_a_capability_has_a_code_of_its_era() -> None:
    assert legacy_error({"code": -32021, "message": "m"}) == {"code": -32602, "message": "m"}
    assert legacy_error({"code": -32601, "message": "m"}) == {"code": -32601, "message": "m"}


def test_a_tool_keeps_its_own_words_on_execution() -> None:
    listed = listed_tools(
        {"tools": [{"name": "a", "execution": {"x": 1}}, {"name": "b"}]}, {"a": TaskSupport.REQUIRED}
    )
    assert listed == {
        "tools": [{"name": "a", "execution": {"x": 1, "taskSupport": "required"}}, {"name": "b"}]
    }


@pytest.mark.parametrize(
    ("extensions", "others"),
    [
        ({}, {"extensions": {}}),
        ({"io.modelcontextprotocol/tasks": {}}, {"extensions": {}}),
        ({"io.modelcontextprotocol/tasks": {}, "e": {"x": 1}}, {"extensions": {"e": {"x": 1}}}),
        (None, {}),
        (7, {}),
    ],
)
def test_leg1_nothing_declares_the_extension(extensions: Any, others: dict[str, Any]) -> None:
    declared = {"tasks": {}, "roots": {}, "extensions": extensions}
    assert modern_capabilities(declared) == {"roots": {}, **others}


def test_a_request_carries_what_a_modern_one_must() -> None:
    params = {"x": 1, "_meta": {"progressToken": 3, "io.modelcontextprotocol/logLevel": "debug"}}
    tasks: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
    assert modern_params(params, {"roots": {}, "extensions": {"e": {}}}, tasks=True) == {
        "x": 1,
        "_meta": {
            "progressToken": 3,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "extensions": {"e": {}, **tasks}},
        },
    }
    alone = modern_params({}, {}, tasks=True)["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert alone == {"extensions": tasks}
    oddities: list[Any] = [7, None, []]
    for odd in oddities:
        assert set(modern_params({"_meta": odd}, {}, tasks=False)["_meta"]) == {
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientCapabilities",
        }
