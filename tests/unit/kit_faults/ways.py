"""Ways to be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.testing.kit import Begun, Came, Fact, Post
from mcp_tasks_proto.wire.http import request_headers
from mcp_tasks_proto.wire.jsonrpc import encode
from tests.unit.kit_world import Fault, KitServer

DISCOVER: Final = "server/discover"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
META: Final = "io.modelcontextprotocol/"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

Planted = tuple[str, Callable[[], KitServer]]
"""The check that has to fail, and a server with the fault."""


# -- ways to be wrong --------------------------------------------------------------------------------------


class Planting:
    """Notes faults, each with the check that has to see it."""

    def __init__(self) -> None:
        self.planted: list[Planted] = []

    def __call__(self, check: str, fault: Fault | None = None, **server: Any) -> None:
        self.planted.append((check, lambda: KitServer(fault=fault or Fault(), **server)))


def message_of(fact: Fact) -> Any:
    """Return the message that came; an empty one for anything else."""
    return fact.message if isinstance(fact, Came) and isinstance(fact.message, dict) else {}


def answers(alter: Callable[[Post, dict[str, Any]], Any]) -> Fault:
    """Change every message that comes: ``alter`` returns another, or ``None``, which leaves it as it is."""

    def says(post: Post, fact: Fact) -> Fact | None:
        if not isinstance(fact, Came):
            return fact
        changed = alter(post, json.loads(json.dumps(fact.message)))
        return fact if changed is None else Came(changed)

    return Fault(says=says)


def results(alter: Callable[[Post, dict[str, Any]], dict[str, Any] | None]) -> Fault:
    """Change the results of modern requests."""

    def change(post: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if post.era != "modern" or not isinstance(result, dict):
            return None
        changed = alter(post, result)
        return None if changed is None else {**message, "result": changed}

    return answers(change)


def views(alter: Callable[[dict[str, Any]], dict[str, Any] | None], *methods: str) -> Fault:
    """Change tasks as tasks/get shows them, and what other ``methods`` give."""

    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        shown = post.method in ("tasks/get", *methods) and "taskId" in result
        return alter(result) if shown else None

    return results(change)


def legacy_results(alter: Callable[[Post, dict[str, Any]], dict[str, Any] | None]) -> Fault:
    """Change the results of requests of 2025-11-25."""

    def change(post: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if post.era != "legacy" or not isinstance(result, dict):
            return None
        changed = alter(post, result)
        return None if changed is None else {**message, "result": changed}

    return answers(change)


def errors(code: int, other: int) -> Fault:
    """Give another code to an error."""

    def change(_: Post, message: dict[str, Any]) -> Any:
        if message.get("error", {}).get("code") != code:
            return None
        return {**message, "error": {**message["error"], "code": other}}

    return answers(change)


def statuses(status: int, other: int) -> Fault:
    """Give another HTTP status to a response."""

    def says(_: Post, fact: Fact) -> Fact | None:
        return evolve(fact, status=other) if isinstance(fact, Begun) and fact.status == status else fact

    return Fault(says=says)


def headers(**changed: str) -> Fault:
    """Give other headers to every response."""
    values = {name.replace("_", "-"): value for name, value in changed.items()}

    def says(_: Post, fact: Fact) -> Fact | None:
        return evolve(fact, headers={**fact.headers, **values}) if isinstance(fact, Begun) else fact

    return Fault(says=says)


def misreads(sent: bytes, taken: bytes) -> Fault:
    """Take some bytes for others."""
    return reads(lambda post: evolve(post, body=post.body.replace(sent, taken, 1)))


def reads(change: Callable[[Post], Post]) -> Fault:
    """Take what is sent for something else."""
    return Fault(reads=change)


def rewritten(post: Post, message: Any) -> Post:
    """Return a post with another message, and with the headers that go with that."""
    params = message.get("params", {})
    if post.era == "modern" and isinstance(params, dict) and isinstance(message.get("method"), str):
        fresh = dict(request_headers(message["method"], params, "2026-07-28"))
        kept = [one for one in post.headers if one[0] not in fresh]
        post = evolve(post, headers=(*kept, *fresh.items()))
    return evolve(post, message=message, body=encode(message))


def only_once(post: Post, message: Any) -> Post:
    """Return a post with another message, in the clothes that it has."""
    return evolve(post, message=message, body=encode(message))


def leniently(post: Post) -> Post:
    """Read a modern message whatever its headers say."""
    if isinstance(post.message, Mapping) and post.era == "modern" and "_meta" in post.params:
        return rewritten(post, post.message)
    return post


def params(change: Callable[[str | None, dict[str, Any]], dict[str, Any]]) -> Fault:
    """Read other params than those that were sent with modern requests."""

    def read(post: Post) -> Post:
        if post.era != "modern" or not isinstance(post.message, Mapping):
            return post
        if not isinstance(post.message.get("params"), Mapping):
            return post
        changed = change(post.method, json.loads(json.dumps(dict(post.params))))
        return only_once(post, {**post.message, "params": changed})

    return reads(read)


def declaring(*kinds: str, methods: tuple[str, ...]) -> Fault:
    """Take it that requests declare what they do not."""

    def change(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
        meta = given.get("_meta", {})
        declared = meta.get(f"{META}clientCapabilities")
        if method in methods and isinstance(declared, dict):
            for kind in kinds:
                if kind == EXTENSION:
                    declared.setdefault("extensions", {}).setdefault(EXTENSION, {})
                else:
                    declared.setdefault(kind, {})
        return given

    return params(change)


def instead(method: str, other: str) -> Fault:
    """Read requests of one method as those of another."""
    return reads(
        lambda post: rewritten(post, {**post.message, "method": other}) if post.method == method else post
    )


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what leaves members out."""
    return lambda given: {name: value for name, value in given.items() if name not in names}


def ended(result: dict[str, Any]) -> bool:
    """Whether a task has ended."""
    return result.get("status") in ("completed", "failed", "cancelled")


EVERY_TASK_METHOD: Final = ("tasks/get", "tasks/update", "tasks/cancel")
