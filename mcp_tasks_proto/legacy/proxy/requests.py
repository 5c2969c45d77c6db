"""What a legacy caller asks a proxy, in its session (LEG.1, LEG.3).

The engine decides whether a call becomes a task, and what of it this caller sees (PRX); here its answers are
put into the words of 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, invalid_params, method_not_found, unknown_task
from mcp_tasks_proto.legacy.proxy.inner import ProxyCaller, ProxyInner
from mcp_tasks_proto.legacy.proxy.listing import list_tasks
from mcp_tasks_proto.legacy.server.calls import Calls, wanted_task
from mcp_tasks_proto.legacy.server.cursors import Cursors
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.server.waiting import ENDED, Waiting
from mcp_tasks_proto.legacy.translation import legacy_task
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy.inputs import AccessChanged
from mcp_tasks_proto.proxy.listening import WITHDRAWN
from mcp_tasks_proto.proxy.settings import ProxyLimits
from mcp_tasks_proto.request_state import Sealer
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION

__all__ = ["Cancelling", "ProxyRequests"]


@define(eq=False, repr=False)
class Cancelling:
    """A ``tasks/cancel`` that waits for its task to end."""

    request: ClientRequest
    task_id: str
    until_ms: int


@define(eq=False, repr=False, kw_only=True)
class ProxyRequests:
    """Begins what a client asks for."""

    inner: ProxyInner
    waiting: Waiting
    timers: Timers
    limits: Limits
    proxy_limits: ProxyLimits
    sealer: Sealer
    """Of cursors."""
    _calls: Calls = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._calls = Calls(inner=self.inner, answer=_answer)

    def begin(self, request: ClientRequest) -> None:
        """Begin to answer a request."""
        method = request.request.method
        if method == "ping":
            request.succeed({})
        elif method == "tools/call":
            self._call_tool(request)
        elif method == "tasks/list" and request.caller.tasks:
            cursors = Cursors(self.sealer, self.limits)
            list_tasks(self.inner, request, cursors, self.proxy_limits.listed_tasks)
        elif method in _TASK_METHODS and request.caller.tasks:
            self._of_task(request, _TASK_METHODS[method])
        elif method.startswith(("tasks/", "server/", "subscriptions/")):
            request.fail(method_not_found(method))
        else:
            self._calls.begin(request)

    def access_changed(self, request: ClientRequest, changed: AccessChanged) -> None:
        """Have what a request still leads to asked for with the rights that its caller has now (PRX.7).

        Who waits for the result of a task is told here that he is not let in any more: all that the engine
        has for that is the end of a stream, as when it stops.
        """
        caller = request.caller
        assert isinstance(caller, ProxyCaller)
        if changed.access is not None and changed.principal == caller.principal:
            request.caller = evolve(caller, access=changed.access)
        elif self.waiting.waits(request):
            request.fail(WITHDRAWN)

    def _call_tool(self, request: ClientRequest) -> None:
        task = request.request.params.get("task")
        if task is None or not request.caller.tasks:
            self._calls.begin(request)
            return
        owed = wanted_task(task, self.limits)
        if isinstance(owed, ErrorObject):
            request.fail(owed)
        else:
            self._calls.begin_task(request, owed)

    def _of_task(
        self, request: ClientRequest, begin: Callable[[ProxyRequests, ClientRequest, str], None]
    ) -> None:
        task_id = request.request.params.get("taskId")
        if isinstance(task_id, str):
            begin(self, request, task_id)
        else:
            request.fail(unknown_task())

    def _await_result(self, request: ClientRequest, task_id: str) -> None:
        self.waiting.begin(request, task_id)

    def _get_task(self, request: ClientRequest, task_id: str) -> None:
        def found(message: Mapping[str, Any], http_status: int) -> None:
            if "result" in message:
                request.succeed(legacy_task(message["result"]))
            else:
                request.answer(message, http_status)

        self._ask(request, "tasks/get", task_id, found)

    def _ask(
        self,
        request: ClientRequest,
        method: str,
        task_id: str,
        replied: Callable[[Mapping[str, Any], int], None],
    ) -> None:
        request.inner = self.inner.request(
            method, {"taskId": task_id}, caller=request.caller, declares_tasks=True, replied=replied
        )

    # -- cancelling ----------------------------------------------------------------------------------------

    def _cancel_task(self, request: ClientRequest, task_id: str) -> None:
        """Pass the wish on, and answer once the task has ended: no status is made up (LEG.5, PRX.11)."""
        until_ms = self.inner.now + self.proxy_limits.request_timeout_ms
        cancelling = Cancelling(request, task_id, until_ms)
        request.ended = partial(self.timers.clear, cancelling)
        self._ask(request, "tasks/get", task_id, partial(self._found, cancelling))

    def _found(self, cancelling: Cancelling, message: Mapping[str, Any], http_status: int) -> None:
        request = cancelling.request
        if "error" in message:
            request.answer(message, http_status)
        elif message["result"]["status"] in ENDED:
            request.fail(_ended_already(message["result"]))
        else:
            wished = partial(self._wished, cancelling)
            self._ask(request, "tasks/cancel", cancelling.task_id, wished)

    def _wished(self, cancelling: Cancelling, message: Mapping[str, Any], http_status: int) -> None:
        if "error" in message:
            cancelling.request.answer(message, http_status)
        elif not cancelling.request.over:
            self.look(cancelling)

    def look(self, cancelling: Cancelling) -> None:
        """See whether the task has ended."""
        looked = partial(self._looked, cancelling)
        self._ask(cancelling.request, "tasks/get", cancelling.task_id, looked)

    def _looked(self, cancelling: Cancelling, message: Mapping[str, Any], http_status: int) -> None:
        request, now = cancelling.request, self.inner.now
        if "error" in message:
            request.answer(message, http_status)
            return
        view = message["result"]
        if view["status"] in ENDED and view["status"] != "cancelled":
            request.fail(_ended_already(view))
        elif view["status"] == "cancelled" or now >= cancelling.until_ms:
            request.succeed(legacy_task(view))
        elif not request.over:
            self.timers.set(cancelling, min(now + view["pollIntervalMs"], cancelling.until_ms))


def _ended_already(view: Mapping[str, Any]) -> ErrorObject:
    status = legacy_task(view)["status"]
    return invalid_params(f"the task cannot be cancelled: it is {status}")


def _answer(request: ClientRequest, message: Mapping[str, Any], http_status: int) -> None:
    """Answer a call as the engine did, but for a tool that runs only as a task (LEG.3)."""
    match message:
        case {
            "error": {
                "code": ErrorCode.MISSING_CLIENT_CAPABILITY,
                "data": {"requiredCapabilities": {"extensions": dict(extensions)}},
            }
        } if TASKS_EXTENSION in extensions:
            request.fail(method_not_found(f"{request.request.method} without a task: it runs only as one"))
        case _:
            request.answer(message, http_status)


_TASK_METHODS: Final[Mapping[str, Callable[[ProxyRequests, ClientRequest, str], None]]] = {
    "tasks/get": ProxyRequests._get_task,
    "tasks/result": ProxyRequests._await_result,
    "tasks/cancel": ProxyRequests._cancel_task,
}
