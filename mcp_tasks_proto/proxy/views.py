"""A task as its caller sees it: the upstream's view, with everything in it that the proxy answers for (PRX.8,
PRX.10, PRX.12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from mcp_tasks_proto.wire.jsonrpc import parse_error_object
from mcp_tasks_proto.wire.reading import VIEW_MEMBERS
from mcp_tasks_proto.wire.schema import timestamp

__all__ = ["STATUSES", "Seen", "View", "created", "make_rewriter", "own_view", "show"]

View = Mapping[str, Any]
"""What an upstream says of a task, checked by :func:`~mcp_tasks_proto.wire.reading.is_view`."""


@frozen(kw_only=True)
class Seen:
    """How a task stands, and how that is told to its caller."""

    status: Status
    view: Mapping[str, Any]
    """As it stands in a result of ``tasks/get`` or in a notification."""
    requests: Mapping[str, Mapping[str, Any]]
    """The input requests that are outstanding."""
    last_updated_at: str
    kept_at_ms: int | None = None
    """When it was stored, where it is an end that is kept: from then on counts how long it may be read."""

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


def created(
    view: View, binding: Binding, rewriter: Callable[[], Rewriter], settings: ProxySettings
) -> dict[str, Any]:
    """Return the result of a call that became a task: without any payload, whatever came with it (LIFE.3)."""
    return {"resultType": "task", **_task(view, binding, rewriter, settings)}


def show(
    view: View, binding: Binding, rewriter: Callable[[], Rewriter], settings: ProxySettings
) -> Seen | Trouble:
    """Return how a task stands, as its caller sees it: exactly the members of its status (GET.1).

    ``rewriter`` makes what rewrites its texts and parts; most views have none.
    """
    shown = _task(view, binding, rewriter, settings)
    status = STATUSES[view["status"]]
    requests: Mapping[str, Mapping[str, Any]] = {}
    if status is Status.INPUT_REQUIRED:
        if "inputRequests" not in view:
            return Trouble.INVALID
        requests = view["inputRequests"]
        if requests and not is_shown(requests, binding.declared, settings.limits.input_keys):
            return Trouble.UNDECLARED_INPUT
        shown["inputRequests"] = rewriter().requests(requests)
    elif status is Status.COMPLETED:
        if "result" not in view or view["result"].get("resultType", "complete") != "complete":
            return Trouble.INVALID
        shown["result"] = rewriter().inner_result(view["result"])
    elif status is Status.FAILED:
        read = parse_error_object(view.get("error"))
        if read is None:
            return Trouble.INVALID
        error = rewriter().error(read)
        shown.setdefault("statusMessage", error.message)
        shown["error"] = error.to_wire()
    return Seen(status=status, view=shown, requests=requests, last_updated_at=view["lastUpdatedAt"])


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


def _task(
    view: View, binding: Binding, rewriter: Callable[[], Rewriter], settings: ProxySettings
) -> dict[str, Any]:
    task: dict[str, Any] = {}
    if not _KNOWN.issuperset(view):
        task = rewriter().extra({name: value for name, value in view.items() if name not in _KNOWN})
    task |= {
        "taskId": binding.handle,
        "status": view["status"],
        "createdAt": view["createdAt"],
        "lastUpdatedAt": view["lastUpdatedAt"],
        "ttlMs": clamp_ttl(view.get("ttlMs"), binding.keep_ms),
        "pollIntervalMs": clamp_poll_interval(view.get("pollIntervalMs"), settings.limits.poll_floor_ms),
    }
    if "statusMessage" in view:
        task["statusMessage"] = rewriter().text(view["statusMessage"])
    return task


STATUSES: Final[Mapping[str, Status]] = {status.value: status for status in Status}

_KNOWN: Final = frozenset({*VIEW_MEMBERS, "_meta", "resultType", "requestState"})
"""What is not passed on as it came: members of a view and of its envelope, and what no view may carry,
however unknown it is to its class (LIFE.3)."""
