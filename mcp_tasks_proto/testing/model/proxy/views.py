"""A task as its caller sees it, made from what its upstream says of it (PRX.8, PRX.10, PRX.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.testing.model.answers import ErrorAnswer
from mcp_tasks_proto.testing.model.proxy.calls import in_the_way, kind_of
from mcp_tasks_proto.testing.model.proxy.parts import ModelBinding
from mcp_tasks_proto.testing.model.tasks import ENDED, INPUT_REQUIRED, WORKING

__all__ = ["Clamps", "is_view", "renamed", "shown_task", "shown_view"]

Clamps = tuple[int, int]
"""How long the proxy keeps a task at most, and how often it may be polled, in milliseconds (PRX.12)."""
PAYLOAD: Final = ("result", "error", "inputRequests", "requestState")
ENVELOPE: Final = ("_meta", "resultType")
WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def is_view(members: Mapping[str, Any]) -> bool:
    """Whether an upstream's words are a view at all."""
    texts = all(isinstance(members.get(name), str) for name in ("taskId", "createdAt", "lastUpdatedAt"))
    return texts and members.get("status") in (WORKING, INPUT_REQUIRED, *ENDED)


def clamped_ttl(ttl_ms: int | None, keep_ms: int) -> int:
    """Never longer than the proxy keeps a task, and for ever is as long as that."""
    return keep_ms if ttl_ms is None else max(1, min(ttl_ms, keep_ms))


def shown_task(members: Mapping[str, Any], binding: ModelBinding, clamps: Clamps) -> dict[str, Any]:
    """What a create result says, and what each view begins with: no payload (LIFE.3)."""
    keep_ms, floor_ms = clamps
    passing = {name: value for name, value in members.items() if name not in (*PAYLOAD, *ENVELOPE)}
    shown: dict[str, Any] = renamed(passing, binding)
    return {
        **shown,
        "taskId": binding.handle,
        "ttlMs": clamped_ttl(members.get("ttlMs"), keep_ms),
        "pollIntervalMs": max(floor_ms, members.get("pollIntervalMs", floor_ms)),
    }


def shown_view(
    members: Mapping[str, Any], binding: ModelBinding, clamps: Clamps
) -> dict[str, Any] | ErrorAnswer:
    """The view, or why there is none: it is no view, of another task, or asks for what nobody declared."""
    if not is_view(members) or members["taskId"] != binding.task_id:
        return in_the_way("upstream_invalid")
    shown = shown_task(members, binding, clamps)
    needed = {INPUT_REQUIRED: "inputRequests", "completed": "result", "failed": "error"}
    payload = needed.get(members["status"])
    if payload is None:
        return shown
    if not isinstance(members.get(payload), dict):
        return in_the_way("upstream_invalid")
    if payload == "inputRequests":
        if any(kind_of(request) not in binding.kinds for request in members[payload].values()):
            return in_the_way("upstream_undeclared_input")
        return {**shown, payload: members[payload]}
    if payload == "result":
        if members[payload].get("resultType", "complete") != "complete":
            return in_the_way("upstream_invalid")
        return {**shown, payload: {**members[payload], "resultType": "complete"}}
    error = renamed(members[payload], binding)
    return {"statusMessage": error["message"], **shown, payload: error}


def renamed(value: Any, binding: ModelBinding) -> Any:
    """Put the handle in the place of the upstream's id, wherever it stands as a word of its own (PRX.8)."""
    match value:
        case str():
            return _renamed_text(value, str(binding.task_id), binding.handle)
        case dict():
            return {renamed(name, binding): renamed(member, binding) for name, member in value.items()}
        case list():
            return [renamed(item, binding) for item in value]
    return value


def _renamed_text(text: str, task_id: str, handle: str) -> str:
    written, at = "", 0
    while at < len(text):
        end = at + len(task_id)
        stands = text.startswith(task_id, at)
        alone = text[at - 1 : at] not in WORD and text[end : end + 1] not in WORD
        written += handle if stands and alone else text[at]
        at = end if stands and alone else at + 1
    return written
