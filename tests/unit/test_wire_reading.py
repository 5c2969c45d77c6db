"""What is checked without being read is what would be read (WIRE.5)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_tasks_proto import Status
from mcp_tasks_proto.wire.reading import CALL_MEMBERS, VIEW_MEMBERS, is_view, misfit, read_view
from mcp_tasks_proto.wire.schema import CallToolParams, ParamsError, structure

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "text", [], {}, {"key": {}}, {"key": 1}, {"code": 1, "message": "no"}]
    + [status.value for status in Status]
    + [OrderedDict(key=OrderedDict())]
)
VIEW: dict[str, Any] = {"taskId": "id", "status": "working", "createdAt": "then", "lastUpdatedAt": "now"}


@pytest.mark.parametrize(
    ("changed", "readable"),
    [
        ({}, True),
        ({"result": OrderedDict(key=1)}, True),
        ({"error": {"code": 1, "message": "no"}}, True),
        ({"error": {"key": 1}}, False),
        ({"inputRequests": {"key": {}}}, True),
        ({"inputRequests": {"key": 1}}, False),
    ],
)
def test_wire5_a_view_is_told_from_what_is_none(changed: dict[str, Any], readable: bool) -> None:
    assert is_view({**VIEW, **changed}) is readable


def test_wire5_the_first_member_of_a_wrong_type_is_named() -> None:
    for good in ({"key": 1}, OrderedDict(key=1)):
        assert misfit({"result": good}, VIEW_MEMBERS) is None
        assert misfit({"result": good, "taskId": "id", "error": 5, "status": 1}, VIEW_MEMBERS) == "error"
    assert misfit({"taskId": {}}, VIEW_MEMBERS) == "taskId"
    assert misfit({"taskId": OrderedDict()}, VIEW_MEMBERS) == "taskId"


def members(kinds: Any) -> st.SearchStrategy[dict[str, Any]]:
    names = [*kinds, "_meta", "resultType", "unknown"]
    return st.dictionaries(st.sampled_from(names), VALUES, max_size=3)


@example({"error": {"key": 1}}, set())
@example({"result": OrderedDict(key=1), "inputRequests": {"key": OrderedDict()}}, set())
@given(members(VIEW_MEMBERS), st.sets(st.sampled_from([*VIEW]), max_size=1))
def test_wire5_a_view_passes_if_it_can_be_read(changed: dict[str, Any], missing: set[str]) -> None:
    view = {name: value for name, value in {**VIEW, **changed}.items() if name not in missing}
    try:
        read_view(view)
        readable = True
    except ParamsError:
        readable = False
    assert is_view(view) is readable


@given(members(CALL_MEMBERS))
def test_wire5_the_params_of_a_call_pass_if_they_can_be_read(changed: dict[str, Any]) -> None:
    params = {"name": "tool", **changed}
    wrong = misfit(params, CALL_MEMBERS)
    if wrong is None:
        structure(CallToolParams, params)
    else:
        with pytest.raises(ParamsError, match=wrong):
            structure(CallToolParams, {wrong: params[wrong], "name": params["name"]})
