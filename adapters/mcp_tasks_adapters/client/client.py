"""What a caller touches: one server, its tools, and the tasks that calling them makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_adapters.client.calls import Call, NotificationFunction, ReferenceFunction
from mcp_tasks_adapters.client.driver import ClientDriver
from mcp_tasks_adapters.toolkit.values import check_text, wire_value
from mcp_tasks_proto.legacy.messages import Era
from mcp_tasks_proto.requester import Completed, Failed, Fault, Outcome, TaskReference
from mcp_tasks_proto.wire.reading import read_view
from mcp_tasks_proto.wire.schema import ParamsError, TaskView

__all__ = ["Client", "NoResultError"]

EVERY_CAPABILITY: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"context": {}, "tools": {}},
    "roots": {},
}
"""What the call that made somebody else's task may have declared: no question is answered in its name."""


class NoResultError(Exception):
    """A request has no result; ``outcome`` says why, and ``outcome.fault``, if it failed, who has to act."""

    def __init__(self, outcome: Outcome) -> None:
        text = getattr(outcome, "message", None) or getattr(outcome, "reason", None)
        super().__init__(text or type(outcome).__name__.lower())
        self.outcome = outcome


class Client:
    """A client of one server, within the ``async with`` of a loop module's ``connect``.

    Nothing is sent before it is asked for. Its methods and those of its calls belong on its loop's thread.
    Timeouts are in seconds. Once the block is left, calls are abandoned: their tasks go on, and can be
    resumed from their references.
    """

    def __init__(self, driver: ClientDriver) -> None:
        self._driver = driver

    @property
    def endpoint(self) -> str:
        """The server's address, as it stands in references."""
        return self._driver.settings.endpoint

    @property
    def era(self) -> Era | None:
        """``"modern"`` (2026-07-28) or ``"legacy"`` (2025-11-25); ``None``: the server has not shown it yet.

        To remember it saves the next client of the same server from finding out.
        """
        return self._driver.era

    # -- calls ---------------------------------------------------------------------------------------------

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_reference: ReferenceFunction | None = None,
        on_notification: NotificationFunction | None = None,
    ) -> Call:
        """Call a tool; return when the server has answered, be it with the result or with a task.

        Being cancelled before that cancels the call. ``timeout`` is for the whole of it: after that its
        outcome is ``ObservationLost``, and a task goes on. ``meta`` are members for the request's ``_meta``.

        ``on_reference`` is called with each new :meth:`Call.reference`, before anything is sent that depends
        on it: a process that is killed can then go on where it was. ``on_notification`` is told of progress
        and log messages on the way to the server's first answer. Neither may take long.

        A failure is an outcome, not an exception. Raises ``ValueError`` for arguments that are not JSON, and
        what the caller's own functions have raised.
        """
        check_text("name", name)
        call = self._driver.call_tool(
            name,
            wire_value(arguments or {}),
            meta=wire_value(meta or {}),
            deadline_ms=self._deadline_ms(timeout),
            on_reference=on_reference,
            on_notification=on_notification,
        )
        try:
            await call._until_known()
        except BaseException:
            self._driver.cancel(call._key, wait=False)
            raise
        return call

    def resume(
        self,
        reference: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_reference: ReferenceFunction | None = None,
    ) -> Call:
        """Go on with a task from its reference, in this process or another (REQ.6).

        Questions that were answered are not asked again. A task that is gone has the outcome ``Expired``; a
        reference that cannot be read, or is to another server, ``Failed``.
        """
        return self._driver.resume(
            reference, deadline_ms=self._deadline_ms(timeout), on_reference=on_reference
        )

    def watch(self, task_id: str, *, timeout: float | None = None) -> Call:
        """Watch a task of which only the id is known.

        Its questions are put to ``answer``, if this client has one, and else left to whom they concern.
        """
        check_text("task_id", task_id)
        reference = TaskReference(
            endpoint=self.endpoint,
            task_id=task_id,
            tool="",
            capabilities=EVERY_CAPABILITY,
            created_ms=self._driver.loop.now_ms(),
            ttl_ms=None,
            poll_interval_ms=None,
        )
        return self.resume(reference.to_json(), timeout=timeout)

    # -- single requests -----------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Mapping[str, Any]:
        """Send any request but ``tools/call`` and return its result; questions on the way are answered.

        A result that its server lets be cached may be one from before. Raises :class:`NoResultError`, and
        ``ValueError`` for params that are not JSON.
        """
        if method == "tools/call":
            raise ValueError("a tool is called with call_tool()")
        check_text("method", method)
        call = self._driver.request(
            method,
            wire_value(params or {}),
            meta=wire_value(meta or {}),
            deadline_ms=self._deadline_ms(timeout),
        )
        try:
            outcome = await call.settle()
        except BaseException:
            self._driver.cancel(call._key, wait=False)
            raise
        if not isinstance(outcome, Completed):
            raise NoResultError(outcome)
        return outcome.result

    async def discover(self) -> Mapping[str, Any]:
        """Return what the server says of itself: ``server/discover``. Raises :class:`NoResultError`."""
        return await self.request("server/discover")

    async def list_tools(self) -> list[Mapping[str, Any]]:
        """Return the definitions of the server's tools, over all pages, those left out that must not be used
        (HTTP.3). Raises :class:`NoResultError`.
        """
        tools: list[Mapping[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(self._driver.settings.limits.tool_pages):
            page = await self.request("tools/list", params)
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise _server_fault("the server's answer to tools/list has no tools")
            tools += listed
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                self._driver.learn_tools(tools)
                return tools
            params = {"cursor": cursor}
        raise _server_fault("the server's list of tools has no end (RequesterLimits.tool_pages)")

    async def get_task(self, task_id: str) -> TaskView:
        """Return how a task stands. Raises :class:`NoResultError`."""
        result = await self.request("tasks/get", {"taskId": task_id})
        try:
            view = read_view(result)
        except ParamsError as error:
            raise _server_fault(f"the server's answer is no task: {error}") from None
        if view.task_id != task_id:
            raise _server_fault("the server answered for another task")
        return view

    async def update_task(self, task_id: str, responses: Mapping[str, Any]) -> None:
        """Give answers to a task's questions, key -> response. Raises :class:`NoResultError`."""
        await self.request("tasks/update", {"taskId": task_id, "inputResponses": responses})

    async def cancel_task(self, task_id: str) -> None:
        """Tell the server that a task's result is not wanted any more. Raises :class:`NoResultError`."""
        await self.request("tasks/cancel", {"taskId": task_id})

    def _deadline_ms(self, timeout: float | None) -> int | None:
        return None if timeout is None else self._driver.loop.now_ms() + int(timeout * 1000)


def _server_fault(message: str) -> NoResultError:
    return NoResultError(Failed(code=None, message=message, fault=Fault.SERVER))
