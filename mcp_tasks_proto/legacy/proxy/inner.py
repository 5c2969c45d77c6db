"""How the translator before legacy callers talks to a proxy's engine: as one more caller."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import LoadFailed, MessageReceived
from mcp_tasks_proto.legacy.proxy.messages import HandlesListed, ListHandles
from mcp_tasks_proto.legacy.server.inner import Caller, Inner, InnerToken, check_page
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.inputs import MessageAdmitted
from mcp_tasks_proto.proxy.settings import Access

__all__ = ["ProxyCaller", "ProxyInner"]

_LOST: Final = trouble(Trouble.TASK_LOST).to_wire()


@frozen(kw_only=True)
class ProxyCaller(Caller):
    """A legacy caller, and what it may do."""

    access: Access

    @property
    def rights(self) -> object:
        """What says which tasks it may read (PRX.7)."""
        return self.principal, self.access

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


@define(eq=False, repr=False, kw_only=True)
class ProxyInner(Inner):
    """The engine, and the translator's exchanges with it."""

    _handles: dict[Hashable, Callable[[HandlesListed | None], None]] = field(init=False, factory=dict)
    """Who waits for a page of handles."""

    def list_handles(
        self, principal: str, after: str | None, limit: int, listed: Callable[[HandlesListed | None], None]
    ) -> None:
        """Ask the store for handles of one principal; ``listed`` gets ``None`` where it could not tell."""
        token = InnerToken(next(self._numbers))
        self._handles[token] = listed
        self.out.append(ListHandles(principal=principal, after=after, limit=limit, token=token))

    @property
    def quiet(self) -> bool:
        """Whether nothing of the translator's is open."""
        return not self._handles and super().quiet

    def is_gone(self, error: Mapping[str, Any]) -> bool:
        """Whether there is no such task, here or at its upstream."""
        return Inner.is_gone(self, error) or error == _LOST

    def take(self, fact: Any) -> None:
        """Take in a fact of the host's. Raises :class:`LocalProtocolError`; nothing has happened then."""
        if isinstance(fact, HandlesListed | LoadFailed) and fact.token in self._handles:
            if isinstance(fact, HandlesListed):
                check_page(fact, fact.handles, str)
            self._handles.pop(fact.token)(fact if isinstance(fact, HandlesListed) else None)
        else:
            Inner.take(self, fact)

    def fail_task(self, task_id: str, caller: Caller, error: ErrorObject, ended: Callable[[], None]) -> None:
        """A proxy ends no task: the upstream is told that it is not wanted, for it gets no answer."""
        self.request(
            "tasks/cancel",
            {"taskId": task_id},
            caller=caller,
            declares_tasks=True,
            replied=lambda *_: ended(),
        )
