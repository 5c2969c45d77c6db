"""Params of requests, and views of tasks (WIRE.5, LIFE.5). The input is any JSON, read as each of them.

* Only ``ParamsError`` is raised; it names a member and a problem out of a fixed set, never a value (SEC.2).
* What was read is written again as it came: absent, null and a spelled-out default are three things.
* A view orders itself before or after another, whatever its times look like.
"""

from __future__ import annotations

from typing import Any, Final

from fuzz.comparing import canonical, read_json, same
from mcp_tasks_proto.wire import schema
from mcp_tasks_proto.wire.reading import is_older, read_view
from mcp_tasks_proto.wire.schema import ParamsError

KINDS: Final = (
    schema.CallToolParams,
    schema.TaskIdParams,
    schema.UpdateTaskParams,
    schema.ListenParams,
    schema.CancelledParams,
    schema.TaskView,
)
PROBLEMS: Final = (
    "must be a string",
    "must be an integer",
    "must be true or false",
    "must be an object",
    "must be an array",
    "must be a string or an integer",
    "must be an integer or null",
    "must be a JSON-RPC error",
    "is not the status of a task",
    "is missing",
)


def check(data: bytes) -> None:
    """Read as everything that it might be."""
    value = read_json(data)
    before = canonical(value)
    for kind in KINDS:
        _check_kind(kind, value)
    if isinstance(value, dict):
        _check_view(value)
    assert canonical(value) == before, "a reader changed what it read"


def _check_kind(kind: type[Any], value: Any) -> None:
    try:
        read = schema.structure(kind, value)
    except ParamsError as error:
        assert str(error).endswith(PROBLEMS), "SEC.2: a text that is not one of the usual"
        return
    written = schema.unstructure(read)
    assert same(written, value), f"WIRE.5: a loss in {kind.__name__}"
    assert schema.structure(kind, written) == read


def _check_view(value: dict[str, Any]) -> None:
    try:
        view = read_view(value)
    except ParamsError:
        return
    assert view.ttl_ms is schema.ABSENT or "ttlMs" in value
    newer, older = (is_older(*pair) for pair in _both_ways(view.created_at, view.last_updated_at))
    assert not (newer and older), "LIFE.5: each is older than the other"


def _both_ways(one: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one, other), (other, one)
