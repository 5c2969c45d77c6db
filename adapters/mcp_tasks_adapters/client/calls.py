"""One thing a caller wants done, from its first request to its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from mcp_tasks_adapters.client.loop import ClientLoop
from mcp_tasks_adapters.driver import Event
from mcp_tasks_proto.requester import Outcome
from mcp_tasks_proto.wire.schema import TaskView

if TYPE_CHECKING:
    from mcp_tasks_adapters.client.driver import ClientDriver

__all__ = ["Call", "NotificationFunction", "ReferenceFunction", "Updates"]

Reference = dict[str, Any]
ReferenceFunction = Callable[[Reference], None]
"""Saves what a new process needs to go on, in place of what it saved before."""
NotificationFunction = Callable[[str, Mapping[str, Any]], None]
"""Is told of what a server says on the way to an answer: method and params."""


class Call:
    """A call of a tool, or a task that is watched.

    It goes on by itself until it has an ``outcome``, or until its client is closed. To wait for it, or not to
    any more, changes nothing about it: only :meth:`cancel` and :meth:`abandon` do.
    """

    def __init__(
        self,
        driver: ClientDriver,
        loop: ClientLoop,
        key: int,
        *,
        tool: str | None,
        on_reference: ReferenceFunction | None = None,
        on_notification: NotificationFunction | None = None,
    ) -> None:
        self._driver = driver
        self._loop = loop
        self._key = key
        self.tool = tool
        """The tool that was called, if one was."""
        self.view: TaskView | None = None
        """The newest view of the task; ``None``: there is no task, or it has not been seen yet."""
        self.outcome: Outcome | None = None
        """How it ended; ``None``: it has not."""
        self._on_reference = on_reference
        self._on_notification = on_notification
        self._reference: Reference | None = None
        self._error: Exception | None = None
        self._known = loop.event()
        self._over = loop.event()
        self._views = 0
        self._news: Event | None = None

    # -- for its caller ------------------------------------------------------------------------------------

    def reference(self) -> Reference | None:
        """Return what a new process needs to go on with the task, as JSON; ``None``: there is no task.

        It changes whenever a question is shown or answered: save it anew, or have ``on_reference=`` do so.
        Whoever has it and the owner's credentials can read the task.
        """
        return self._reference

    @property
    def task_id(self) -> str | None:
        """The task's id; ``None``: there is no task."""
        return None if self._reference is None else self._reference.get("taskId")

    @property
    def next_poll_ms(self) -> int | None:
        """When the task will be polled next, in Unix milliseconds, where that is planned."""
        return self._driver.next_poll_ms(self._key)

    def updates(self) -> Updates:
        """Return the views of the task from here on, the present one first, the last one last.

        A reader that is slower than the task gets the newest view, not all of them. Several may read.
        """
        return Updates(self)

    async def settle(self, timeout: float | None = None) -> Outcome:
        """Wait for the outcome.

        Raises ``TimeoutError`` after ``timeout`` seconds; the call goes on all the same, and can be waited
        for again. Raises what the client's ``answer`` has raised, or this call's ``on_reference`` or
        ``on_notification``: then the call was abandoned, and its task goes on.
        """
        if not await self._loop.within(timeout, self._over.wait):
            raise TimeoutError(f"no outcome within {timeout:g} s")
        if self._error is not None:
            raise self._error
        assert self.outcome is not None
        return self.outcome

    async def cancel(self, *, wait: bool = False, timeout: float | None = None) -> Outcome:
        """Tell the server that the result is not wanted any more (REQ.7).

        With ``wait`` the outcome is how the task ended: work may well be completed before it can be stopped.
        Without, it is ``Cancelled`` at once. ``timeout`` and exceptions are as in :meth:`settle`.
        """
        self._driver.cancel(self._key, wait=wait)
        return await self.settle(timeout)

    def abandon(self) -> None:
        """Stop watching. A task goes on, and can be resumed; the outcome here is ``ObservationLost``."""
        self._driver.abandon(self._key)

    # -- for the driver ------------------------------------------------------------------------------------

    def _show(self, view: TaskView) -> None:
        self.view = view
        self._views += 1
        self._tell()

    def _keep(self, reference: Reference) -> None:
        self._reference = reference
        self._known.set()
        if self._on_reference is not None:
            self._on_reference(reference)

    def _pass_on(self, method: str, params: Mapping[str, Any]) -> None:
        if self._on_notification is not None:
            self._on_notification(method, params)

    def _break(self, error: Exception) -> None:
        """Note what the caller's own code raised."""
        self._error = error

    def _settle(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._known.set()
        self._over.set()
        self._tell()

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    async def _until_known(self) -> None:
        """Wait until the call is over, or known to be a task. Raises as :meth:`settle` does."""
        await self._known.wait()
        if self._error is not None:
            raise self._error

    async def _more_news(self) -> None:
        if self._news is None:
            self._news = self._loop.event()
        await self._news.wait()


class Updates:
    """The views of a task as they come; made by :meth:`Call.updates`.

    Raises what :meth:`Call.settle` would raise of the caller's own code.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._seen = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TaskView:
        call = self._call
        while call._views == self._seen:
            if call.outcome is not None:
                await call._loop.checkpoint()
                if call._error is not None:
                    raise call._error
                raise StopAsyncIteration
            await call._more_news()
        await call._loop.checkpoint()
        self._seen = call._views
        assert call.view is not None
        return call.view
