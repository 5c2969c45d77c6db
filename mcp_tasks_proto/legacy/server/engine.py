"""One endpoint for both eras: a :class:`~mcp_tasks_proto.server.ServerEngine` and the sessions before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from attrs import define, field

from mcp_tasks_proto.effects import Step
from mcp_tasks_proto.inputs import MessageReceived, ToolsChanged
from mcp_tasks_proto.legacy.server.door import LegacyDoor
from mcp_tasks_proto.legacy.server.inner import Caller, Inner
from mcp_tasks_proto.legacy.server.requests import Requests
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.translation import initialize_result
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.server.engine import SHUTTING_DOWN
from mcp_tasks_proto.settings import ServerSettings, TaskSupport, ToolDeclaration
from mcp_tasks_proto.wire.jsonrpc import Request

__all__ = ["DualEraServer", "LegacyPolicy"]


class LegacyPolicy(Enum):
    """What a client of 2025-11-25 gets (LEG.1)."""

    IGNORE = "ignore"
    """Everything but tasks: it sees no such capability, and every call is a plain one."""
    SERVE = "serve"
    """Tasks as well."""

    __hash__ = object.__hash__


@define(eq=False, repr=False, kw_only=True)
class DualEraServer(LegacyDoor[Step]):
    """A :class:`~mcp_tasks_proto.server.ServerEngine` that serves 2025-11-25 as well.

    It takes the place of the engine: the same inputs and effects, and :data:`LegacyInput` beside them.
    Messages of the modern era go straight through. Sessions are kept here, in this process: over HTTP a
    client's requests must all reach the same one.
    """

    settings: ServerSettings
    tools: Sequence[ToolDeclaration] = ()
    node: str | None = None
    """As for the engine."""
    policy: LegacyPolicy = LegacyPolicy.IGNORE
    _engine: ServerEngine = field(init=False)
    _requests: Requests = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._engine = ServerEngine(settings=self.settings, tools=self.tools, node=self.node)
        self._set_up(
            Inner(engine=self._engine, out=self._out),
            self.settings.limits,
            step=Step,
            shutting_down=SHUTTING_DOWN,
            handlers={ToolsChanged: DualEraServer._tools_changed},
        )
        self._requests = Requests(
            settings=self.settings,
            inner=self._inner,
            waiting=self._waiting,
            support=_support_of(self.tools),
        )

    def concerns(self, task_id: str) -> bool:
        """Whether news of this task would be of use here, as the engine has it."""
        return self._engine.concerns(task_id)

    # -- for the door ----------------------------------------------------------------------------------

    @property
    def _versions(self) -> tuple[str, ...]:
        return self.settings.versions

    def _greet(self, received: MessageReceived, request: Request, capabilities: Mapping[str, Any]) -> None:
        tasks = self._serves_tasks(received)
        list_tasks = tasks and received.principal is not None
        result = initialize_result(self.settings, tasks=tasks, list_tasks=list_tasks)
        self._open(received, request, capabilities, result)

    def _caller(self, received: MessageReceived, capabilities: Mapping[str, Any]) -> Caller:
        tasks = self._serves_tasks(received)
        return Caller(principal=received.principal, capabilities=capabilities, tasks=tasks)

    def _serves_tasks(self, received: MessageReceived) -> bool:
        return self.policy is LegacyPolicy.SERVE and received.tasks_enabled

    def _begin(self, request: ClientRequest) -> None:
        self._requests.begin(request)

    def _tools_changed(self, changed: ToolsChanged) -> None:
        self._inner.take(changed)
        self._requests.support = _support_of(changed.tools)
        self._registry.tools_changed()


def _support_of(tools: Sequence[ToolDeclaration]) -> Mapping[str, TaskSupport]:
    return {tool.name: tool.task for tool in tools}
