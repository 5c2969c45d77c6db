"""A task as its caller sees it: the upstream's view, with everything in it that the proxy answers for (PRX.8,
PRX.10, PRX.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.clamping import clamp_poll_interval, clamp_ttl
from mcp_tasks_proto.proxy.errors import Trouble
from mcp_tasks_proto.proxy.input_gate import is_shown
from mcp_tasks_proto.proxy.rewriting import Rewriter
from mcp_tasks_proto.proxy.settings import ProxySettings
from mcp_tasks_proto.wire.schema import TaskView, timestamp

__all__ = ["Seen", "created", "make_rewriter", "own_view", "show"]


@frozen(kw_only=True)
class Seen:
    """How a task stands, and how that is told to its caller."""

    status: Status
    view: Mapping[str, Any]
    """As it stands in a result of ``tasks/get`` or in a notification."""
    requests: Mapping[str, Mapping[str, Any]]
    """The input requests that are outstanding."""
    last_updated_at: str

    @property
    def poll_interval_ms(self) -> int:
        """When the caller may ask again."""
        hint: int = self.view["pollIntervalMs"]
        return hint


def make_rewriter(
    settings: ProxySettings,
    server_info: Mapping[str, Any],
    upstream_task_id: str | None = None,
    handle: str | None = None,
) -> Rewriter:
    """Return what rewrites messages of one task, or of none."""
    return Rewriter(
        server_info=server_info,
        upstream_task_id=upstream_task_id,
        handle=handle,
        most_bytes=settings.limits.meta_bytes,
        depth=settings.limits.meta_depth,
    )


def created(view: TaskView, binding: Binding, rewriter: Rewriter, settings: ProxySettings) -> dict[str, Any]:
    """Return the result of a call that became a task: without any payload, whatever came with it (LIFE.3)."""
    return {"resultType": "task", **_task(view, binding, rewriter, settings)}


def show(view: TaskView, binding: Binding, rewriter: Rewriter, settings: ProxySettings) -> Seen | Trouble:
    """Return how a task stands, as its caller sees it: exactly the members of its status (GET.1)."""
    shown = _task(view, binding, rewriter, settings)
    requests: Mapping[str, Mapping[str, Any]] = {}
    match view.status:
        case Status.INPUT_REQUIRED:
            if view.input_requests is None:
                return Trouble.INVALID
            if view.input_requests and not is_shown(
                view.input_requests, binding.declared, settings.limits.input_keys
            ):
                return Trouble.UNDECLARED_INPUT
            requests = view.input_requests
            shown["inputRequests"] = rewriter.requests(requests)
        case Status.COMPLETED:
            if view.result is None or view.result.get("resultType", "complete") != "complete":
                return Trouble.INVALID
            shown["result"] = rewriter.inner_result(view.result)
        case Status.FAILED:
            if view.error is None:
                return Trouble.INVALID
            error = rewriter.error(view.error)
            shown.setdefault("statusMessage", error.message)
            shown["error"] = error.to_wire()
    return Seen(status=view.status, view=shown, requests=requests, last_updated_at=view.last_updated_at)


def own_view(
    binding: Binding,
    status: Status,
    updated_at_ms: int,
    *,
    result: Mapping[str, Any] | None = None,
    error: ErrorObject | None = None,
) -> dict[str, Any]:
    """Return the view of a promoted call, whose task is the proxy's own (PRX.16)."""
    view: dict[str, Any] = {
        "taskId": binding.handle,
        "status": status.value,
        "createdAt": binding.created_at,
        "lastUpdatedAt": timestamp(updated_at_ms),
        "ttlMs": binding.ttl_ms,
        "pollIntervalMs": binding.poll_interval_ms,
    }
    if result is not None:
        view["result"] = {**result, "resultType": "complete"}
    if error is not None:
        view |= {"statusMessage": error.message, "error": error.to_wire()}
    return view


def _task(view: TaskView, binding: Binding, rewriter: Rewriter, settings: ProxySettings) -> dict[str, Any]:
    floor_ms = settings.limits.poll_floor_ms
    task = {
        **{name: value for name, value in rewriter.extra(view.extra).items() if name not in _RESERVED},
        "taskId": binding.handle,
        "status": view.status.value,
        "createdAt": view.created_at,
        "lastUpdatedAt": view.last_updated_at,
        "ttlMs": clamp_ttl(view.ttl_ms, binding.keep_ms),
        "pollIntervalMs": clamp_poll_interval(view.poll_interval_ms, floor_ms),
    }
    if view.status_message is not None:
        task["statusMessage"] = rewriter.text(view.status_message)
    return task


_RESERVED: Final = frozenset({"requestState"})
"""What no view may carry, however unknown it is to its class (LIFE.3)."""
