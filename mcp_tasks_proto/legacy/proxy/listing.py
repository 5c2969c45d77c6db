"""``tasks/list`` of a legacy caller before a proxy (LEG.7).

The store says which handles are the caller's; how each task stands is asked as ``tasks/get`` asks it, with
all of its checks (PRX.7), for what was seen earlier is never told as what is (PRX.13). A task that cannot be
told of now - another project's, or one whose upstream does not answer - is left out of its page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import method_not_found
from mcp_tasks_proto.legacy.proxy.inner import ProxyInner
from mcp_tasks_proto.legacy.proxy.messages import HandlesListed
from mcp_tasks_proto.legacy.server.cursors import BAD_CURSOR, Cursors
from mcp_tasks_proto.legacy.server.inner import InnerExchange
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.translation import legacy_task
from mcp_tasks_proto.proxy.errors import Trouble, trouble

__all__ = ["list_tasks"]


def list_tasks(inner: ProxyInner, request: ClientRequest, cursors: Cursors, page: int) -> None:
    """Answer with a page of at most so many of the caller's tasks."""
    principal, after = request.caller.principal, None
    if principal is None:
        request.fail(method_not_found("tasks/list: callers cannot be told apart here"))
        return
    if "cursor" in request.request.params:
        after = cursors.opened(request.request.params["cursor"], principal)
        if after is None:
            request.fail(BAD_CURSOR)
            return
    listed = partial(_listed, inner, request, cursors, principal)
    inner.list_handles(principal, after, page, listed)


def _listed(
    inner: ProxyInner, request: ClientRequest, cursors: Cursors, principal: str, page: HandlesListed | None
) -> None:
    if request.over:
        return
    if page is None:
        request.fail(trouble(Trouble.STORE))
        return
    cursor = cursors.sealed(page.handles[-1], principal) if page.more else None
    _Page(inner=inner, request=request, handles=page.handles, cursor=cursor).begin()


@define(eq=False, repr=False, kw_only=True)
class _Page:
    """A page whose tasks are being asked for."""

    inner: ProxyInner
    request: ClientRequest
    handles: Sequence[str]
    cursor: str | None
    _asked: dict[str, InnerExchange] = field(init=False, factory=dict)
    _found: dict[str, Mapping[str, Any]] = field(init=False, factory=dict)

    def begin(self) -> None:
        """Ask for all of them at once."""
        self.request.ended = self._give_up
        for handle in self.handles:
            self._asked[handle] = self.inner.request(
                "tasks/get",
                {"taskId": handle},
                caller=self.request.caller,
                declares_tasks=True,
                replied=partial(self._replied, handle),
            )
        self._finish()

    def _replied(self, handle: str, message: Mapping[str, Any], _: int) -> None:
        del self._asked[handle]
        if "result" in message:
            self._found[handle] = legacy_task(message["result"])
        self._finish()

    def _finish(self) -> None:
        if self._asked:
            return
        result: dict[str, Any] = {"tasks": [self._found[one] for one in self.handles if one in self._found]}
        if self.cursor is not None:
            result["nextCursor"] = self.cursor
        self.request.succeed(result)

    def _give_up(self) -> None:
        """Nobody waits any more."""
        for exchange in self._asked.values():
            self.inner.close(exchange)
        self._asked.clear()
