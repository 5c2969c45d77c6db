"""The tasks extension, written on the official Python SDK's own extension interface.

The SDK knows no tasks. It lets an extension claim a ``resultType``, finish such results by itself, and watch
notifications: all that tasks need, so this shows that our handles and views fit what the SDK expects there.
"""

# mypy: disable-error-code="import-not-found, misc"
# The SDK is not installed where this is checked.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientRequestContext
from pydantic import BaseModel, ConfigDict

__all__ = ["ListenRequest", "Tasks", "about", "ended_view", "wire"]


def wire(model: BaseModel) -> dict[str, Any]:
    """Return a model as it stands on the wire."""
    dumped: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


class CreateTaskResult(types.Result):
    """What a call answers that became a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"]
    task_id: str
    poll_interval_ms: int


class TaskView(types.Result):
    """What ``tasks/get`` and ``notifications/tasks`` show."""

    model_config = ConfigDict(extra="allow")
    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    ttl_ms: int | None
    input_requests: dict[str, types.InputRequest] | None = None
    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the task."""
        return self.status in ("completed", "failed", "cancelled")


class TaskRequest(types.Request[dict[str, Any], str]):
    """A request about one task; the SDK puts its id into the ``Mcp-Name`` header."""

    name_param = "taskId"


class ListenRequest(types.Request[dict[str, Any], Literal["subscriptions/listen"]]):
    """A listen request for tasks, for which the SDK's own one has no place."""


class Tasks(ClientExtension):
    """Waits for tasks by polling, and answers their questions with the client's own callbacks."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.created: list[CreateTaskResult] = []
        self.seen: list[TaskView] = []
        self.notified: list[TaskView] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim the handles of tasks."""
        return [ResultClaim(result_type="task", model=CreateTaskResult, resolve=self.resolve)]

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """Take the notifications about tasks."""
        return [NotificationBinding(method="notifications/tasks", params_type=TaskView, handler=self.notice)]

    async def notice(self, view: TaskView) -> None:
        """Keep a notification."""
        self.notified.append(view)

    async def resolve(self, created: CreateTaskResult, context: ClaimContext) -> types.CallToolResult:
        """Finish a call that became a task."""
        self.created.append(created)
        view = await ended_view(context.session, created, self.seen)
        if view.error is not None:
            raise MCPError.from_error_data(view.error)
        return types.CallToolResult.model_validate(view.result)


async def about(session: Any, method: str, task_id: str, **params: Any) -> Any:
    """Send one request about a task."""
    answer = TaskView if method == "tasks/get" else types.EmptyResult
    return await session.send_request(
        TaskRequest(method=method, params={"taskId": task_id, **params}), answer
    )


async def ended_view(session: Any, created: CreateTaskResult, seen: list[TaskView]) -> TaskView:
    """Poll until the task has ended, and answer what it asks; keep the views."""
    while True:
        view: TaskView = await about(session, "tasks/get", created.task_id)
        seen.append(view)
        if view.ended:
            return view
        if view.input_requests:
            answers = await _answers(session, view.input_requests)
            await about(session, "tasks/update", created.task_id, inputResponses=answers)
        await anyio.sleep(created.poll_interval_ms / 1000)


async def _answers(session: Any, requests: Mapping[str, types.InputRequest]) -> dict[str, Any]:
    """Have the client's callbacks answer a task's questions."""
    answers = {}
    for key, request in requests.items():
        context = ClientRequestContext(session=session, request_id=key)
        answers[key] = wire(await session.dispatch_input_request(context, request))
    return answers
