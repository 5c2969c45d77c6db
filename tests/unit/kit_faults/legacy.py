"""Faults of what clients of 2025-11-25 get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.testing.kit import Ended, Post
from tests.unit.kit_faults.ways import Planting, answers, legacy_results, without
from tests.unit.kit_world import Fault

plant: Final = Planting()

# -- LEG ---------------------------------------------------------------------------------------------------

plant(
    "tasks that are not declared",
    legacy_results(lambda post, result: {"task": {}} if "task" in post.params else None),
    legacy=LegacyPolicy.IGNORE,
)


def _declares(**more: Any) -> Fault:
    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        if post.method != "initialize":
            return None
        capabilities = result["capabilities"]
        return {**result, "capabilities": {**capabilities, "tasks": {**capabilities["tasks"], **more}}}

    return legacy_results(change)


def _tasks(**more: Any) -> Fault:
    return legacy_results(
        lambda _, result: {"task": {**result["task"], **more}} if "task" in result else None
    )


plant("the capability", _declares(list=True))
plant("a call with a task", _tasks(status="completed"))
plant("a call with a task", _tasks(ttlMs=1))
plant(
    "a call with a task",
    legacy_results(lambda _, result: {"task": without("ttl")(result["task"])} if "task" in result else None),
)
plant("a call with a task", legacy_results(lambda _, result: result.get("task")))
plant(
    "a plain call of a task tool",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"content": []}}
            if post.era == "legacy" and post.method == "tools/call" and "error" in message
            else None
        )
    ),
)
plant(
    "a task of a plain tool",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"content": []}}
            if post.era == "legacy" and post.method == "tools/call" and "error" in message
            else None
        )
    ),
)
plant(
    "the result of a task",
    legacy_results(lambda post, result: without("_meta")(result) if post.method == "tasks/result" else None),
)
plant(
    "the result of a task",
    legacy_results(
        lambda post, result: without("content")(result) if post.method == "tasks/result" else None
    ),
)
plant(
    "the result of a task",
    legacy_results(
        lambda post, result: {**result, "status": "working"} if post.method == "tasks/get" else None
    ),
)
plant(
    "a task is cancelled",
    legacy_results(
        lambda post, result: {**result, "status": "working"} if post.method == "tasks/cancel" else None
    ),
)
plant(
    "a tool error",
    legacy_results(
        lambda post, result: without("isError")(result) if post.method == "tasks/result" else None
    ),
)
plant(
    "a tool error",
    legacy_results(
        lambda post, result: {**result, "status": "completed"} if post.method == "tasks/get" else None
    ),
)
plant(
    "unknown tasks",
    answers(
        lambda post, message: (
            {**message, "error": {"code": -32002}} if post.era == "legacy" and "error" in message else None
        )
    ),
)
plant(
    "tasks are listed",
    legacy_results(lambda post, result: {"tasks": []} if post.method == "tasks/list" else None),
)
plant("tasks are listed", legacy_results(lambda post, result: {} if post.method == "tasks/list" else None))


def _questions(alter: Callable[[dict[str, Any]], Any]) -> Fault:
    return answers(
        lambda post, message: (
            alter(message) if post.era == "legacy" and "method" in message and "id" in message else None
        )
    )


plant(
    "a task asks",
    Fault(says=lambda post, fact: Ended("it hung up") if post.method == "tasks/result" else fact),
)
plant("a task asks", _questions(lambda message: {**message, "params": without("_meta")(message["params"])}))
plant(
    "a task asks",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"content": []}}
            if post.era == "legacy" and "method" in message and "id" in message
            else None
        )
    ),
)
plant(
    "a task asks",
    answers(
        lambda post, message: (
            {"id": 1, "error": {"code": 1}} if post.method == "tasks/result" and "result" in message else None
        )
    ),
)


def _two_worlds() -> Fault:
    made: set[Any] = set()

    def change(post: Post, message: dict[str, Any]) -> Any:
        task = message.get("result", {}).get("task") if post.era == "legacy" else None
        if isinstance(task, dict):
            made.add(task["taskId"])
        if post.era == "modern" and post.params.get("taskId") in made:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "unknown"}}
        return None

    return answers(change)


plant("a task in both eras", _two_worlds())
