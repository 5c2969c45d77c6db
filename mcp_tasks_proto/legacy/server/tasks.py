"""``tasks/get``, ``tasks/cancel`` and ``tasks/list`` as 2025-11-25 has them (LEG.5, LEG.7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import define

from mcp_tasks_proto.errors import STORE_UNAVAILABLE, internal_error, invalid_params
from mcp_tasks_proto.inputs import TasksListed
from mcp_tasks_proto.legacy.server.cursors import BAD_CURSOR, Cursors
from mcp_tasks_proto.legacy.server.inner import Inner, Replied
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.server.waiting import ENDED
from mcp_tasks_proto.legacy.translation import legacy_task
from mcp_tasks_proto.settings import ServerSettings
from mcp_tasks_proto.wire.schema import task_view

__all__ = ["TaskRequests"]

CANCELLED_BY_REQUEST: Final = "The task was cancelled by request."


@define(eq=False, repr=False, kw_only=True)
class TaskRequests:
    """Answers what a client asks about its tasks, but for their results."""

    inner: Inner
    settings: ServerSettings

    def get(self, request: ClientRequest, task_id: str) -> None:
        """Answer with the task (LEG.6)."""
        self._look(request, task_id, partial(self._found, request))

    def cancel(self, request: ClientRequest, task_id: str) -> None:
        """End the task, then answer with it (LEG.5)."""
        self._look(request, task_id, partial(self._found_to_cancel, request))

    def list(self, request: ClientRequest, principal: str) -> None:
        """Answer with a page of the caller's tasks (LEG.7)."""
        after = None
        if "cursor" in request.request.params:
            after = self._cursors.opened(request.request.params["cursor"], principal)
            if after is None:
                request.fail(BAD_CURSOR)
                return
        page = self.settings.page_size
        self.inner.list_tasks(principal, after, page, partial(self._listed, request, principal))

    def _look(self, request: ClientRequest, task_id: str, replied: Replied) -> None:
        request.inner = self.inner.request(
            "tasks/get", {"taskId": task_id}, caller=request.caller, declares_tasks=True, replied=replied
        )

    def _found(self, request: ClientRequest, message: Mapping[str, Any], http_status: int) -> None:
        if "result" in message:
            request.succeed(legacy_task(message["result"]))
        else:
            request.answer(message, http_status)

    # -- cancelling ------------------------------------------------------------------------------------

    def _found_to_cancel(self, request: ClientRequest, message: Mapping[str, Any], http_status: int) -> None:
        if "result" not in message or message["result"]["status"] in ENDED:
            self._refuse_cancel(request, message, http_status)
            return
        task_id = message["result"]["taskId"]
        self.inner.end_task(
            partial(self._cancelled, request, task_id),
            task_id=task_id,
            status_message=CANCELLED_BY_REQUEST,
        )

    def _cancelled(self, request: ClientRequest, task_id: str, rejection: str | None) -> None:
        """It is durable, or something else was faster."""
        if not request.over:
            replied = self._found if rejection is None else self._refuse_cancel
            self._look(request, task_id, partial(replied, request))

    def _refuse_cancel(self, request: ClientRequest, message: Mapping[str, Any], http_status: int) -> None:
        if "result" not in message:
            request.answer(message, http_status)
            return
        status = legacy_task(message["result"])["status"]
        request.fail(invalid_params(f"the task cannot be cancelled: it is {status}"))

    # -- listing ---------------------------------------------------------------------------------------

    def _listed(self, request: ClientRequest, principal: str, page: TasksListed | None) -> None:
        if request.over:
            return
        if page is None:
            request.fail(internal_error("the task store did not answer", reason=STORE_UNAVAILABLE))
            return
        now = self.inner.now
        own = [one for one in page.records if one.principal == principal and not one.expired(now)]
        result: dict[str, Any] = {"tasks": [legacy_task(task_view(record)) for record in own]}
        if page.more:
            result["nextCursor"] = self._cursors.sealed(page.records[-1].task_id, principal)
        request.succeed(result)

    @property
    def _cursors(self) -> Cursors:
        return Cursors(self.settings.sealer, self.settings.limits)
