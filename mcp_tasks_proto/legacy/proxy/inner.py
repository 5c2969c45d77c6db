"""How the translator before legacy callers talks to a proxy's engine: as one more caller."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from attrs import define, frozen

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import MessageReceived
from mcp_tasks_proto.legacy.server.inner import Caller, Inner
from mcp_tasks_proto.proxy.inputs import MessageAdmitted
from mcp_tasks_proto.proxy.settings import Access

__all__ = ["ProxyCaller", "ProxyInner"]


@frozen(kw_only=True)
class ProxyCaller(Caller):
    """A legacy caller, and what it may do."""

    access: Access

    def arrival(self, exchange: Hashable, message: dict[str, Any]) -> MessageReceived:
        """Return a message of its, as the engine is told of it."""
        return MessageAdmitted(
            exchange=exchange,
            message=message,
            principal=self.principal,
            tasks_enabled=self.tasks,
            access=self.access,
            legacy=True,
        )


@define(eq=False, kw_only=True)
class ProxyInner(Inner):
    """The engine, and the translator's exchanges with it."""

    def fail_task(self, task_id: str, caller: Caller, error: ErrorObject, ended: Callable[[], None]) -> None:
        """A proxy ends no task: the upstream is told that it is not wanted, for it gets no answer."""
        self.request(
            "tasks/cancel",
            {"taskId": task_id},
            caller=caller,
            declares_tasks=True,
            replied=lambda *_: ended(),
        )
