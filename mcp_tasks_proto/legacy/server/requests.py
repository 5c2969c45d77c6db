"""Which method of 2025-11-25 is answered how (LEG.1, LEG.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import ErrorObject, method_not_found, unknown_task
from mcp_tasks_proto.legacy.server.calls import Calls, wanted_task
from mcp_tasks_proto.legacy.server.inner import Inner
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.server.tasks import TaskRequests
from mcp_tasks_proto.legacy.server.waiting import Waiting
from mcp_tasks_proto.legacy.translation import listed_tools
from mcp_tasks_proto.server.reports import is_task_id
from mcp_tasks_proto.settings import ServerSettings, TaskSupport
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, MODERN_VERSION

__all__ = ["Requests"]

ASK_FOR_ONE: Final = "it runs only as one"
NONE_TO_BE_HAD: Final = (
    f"it runs only as one, and clients of {LEGACY_VERSION} have none here; those of {MODERN_VERSION} may"
)


@define(eq=False, repr=False, kw_only=True)
class Requests:
    """Begins what a client asks for."""

    settings: ServerSettings
    inner: Inner
    waiting: Waiting
    support: Mapping[str, TaskSupport]
    """The tools by name, and whether their calls may become tasks."""
    _calls: Calls = field(init=False)
    _tasks: TaskRequests = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._calls = Calls(inner=self.inner)
        self._tasks = TaskRequests(inner=self.inner, settings=self.settings)

    def begin(self, request: ClientRequest) -> None:
        """Begin to answer a request."""
        method = request.request.method
        if method in _METHODS:
            _METHODS[method](self, request)
        elif method in _TASK_METHODS and request.caller.tasks:
            _TASK_METHODS[method](self, request)
        elif method in self.settings.methods:
            self._calls.begin(request)
        else:
            request.fail(method_not_found(method))

    def _ping(self, request: ClientRequest) -> None:
        request.succeed({})

    def _list_tools(self, request: ClientRequest) -> None:
        self.inner.request(
            "tools/list",
            request.request.params,
            caller=request.caller,
            replied=partial(self._tools_listed, request),
        )

    def _tools_listed(self, request: ClientRequest, message: Mapping[str, Any], http_status: int) -> None:
        if "error" in message:
            request.answer(message, http_status)
        else:
            request.succeed(listed_tools(message["result"], self.support if request.caller.tasks else {}))

    def _call_tool(self, request: ClientRequest) -> None:
        """Plain, or as a task; a tool may refuse either (LEG.3)."""
        name, task = (request.request.params.get(member) for member in ("name", "task"))
        support = self.support.get(name) if isinstance(name, str) else None
        if task is None or not request.caller.tasks:
            if support is TaskSupport.REQUIRED:
                why = ASK_FOR_ONE if request.caller.tasks else NONE_TO_BE_HAD
                request.fail(method_not_found(f"tools/call of {name} without a task: {why}"))
            else:
                self._calls.begin(request)
            return
        owed = wanted_task(task, self.settings.limits)
        if support is TaskSupport.FORBIDDEN:
            request.fail(method_not_found(f"tools/call of {name} as a task: it never runs as one"))
        elif isinstance(owed, ErrorObject):
            request.fail(owed)
        else:
            self._calls.begin_task(request, owed)

    def _list_tasks(self, request: ClientRequest) -> None:
        """Only where callers can be told apart (LEG.2)."""
        principal = request.caller.principal
        if principal is None:
            request.fail(method_not_found("tasks/list: callers cannot be told apart here"))
        else:
            self._tasks.list(request, principal)

    def _get_task(self, request: ClientRequest) -> None:
        self._of_task(request, self._tasks.get)

    def _cancel_task(self, request: ClientRequest) -> None:
        self._of_task(request, self._tasks.cancel)

    def _await_result(self, request: ClientRequest) -> None:
        self._of_task(request, self.waiting.begin)

    def _of_task(self, request: ClientRequest, begin: Callable[[ClientRequest, str], None]) -> None:
        """Begin what names a task; what no task can be called gets the same answer as what none is."""
        task_id = request.request.params.get("taskId")
        if is_task_id(task_id):
            begin(request, task_id)
        else:
            request.fail(unknown_task())


_METHODS: Final[Mapping[str, Callable[[Requests, ClientRequest], None]]] = {
    "ping": Requests._ping,
    "tools/list": Requests._list_tools,
    "tools/call": Requests._call_tool,
}

_TASK_METHODS: Final[Mapping[str, Callable[[Requests, ClientRequest], None]]] = {
    "tasks/get": Requests._get_task,
    "tasks/result": Requests._await_result,
    "tasks/list": Requests._list_tasks,
    "tasks/cancel": Requests._cancel_task,
}
