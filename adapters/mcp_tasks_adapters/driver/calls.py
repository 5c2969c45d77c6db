"""The calls of a server: its handlers at work, and the offers of theirs that become tasks."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Coroutine, Hashable, Mapping
from functools import partial
from os import urandom
from typing import Any

from attrs import define, field

from mcp_tasks_adapters.driver.interfaces import Loop
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.calls import InputRequired, Request, TaskOffer, ToolCall
from mcp_tasks_adapters.toolkit.outcomes import Outcome, handler_as_work, run_request, run_tool
from mcp_tasks_adapters.toolkit.server import Server
from mcp_tasks_adapters.toolkit.tools import Tool
from mcp_tasks_proto.effects import Forward, StartTool
from mcp_tasks_proto.errors import ErrorObject, internal_error, invalid_params
from mcp_tasks_proto.inputs import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    Input,
)

__all__ = ["Call", "Calls", "stopping"]


@define(eq=False)
class Call:
    """A handler at work, or the offer it made, which waits until the task is durable."""

    tool: Tool | None = None
    arguments: Mapping[str, Any] = field(factory=dict)
    errand: Errand[Outcome] | None = None
    offer: TaskOffer | None = None


class Calls:
    """Runs handlers, one for each exchange that awaits one, and tells the engine what comes of them."""

    def __init__(
        self,
        server: Server,
        loop: Loop,
        *,
        feed: Callable[[Input], None],
        no_work: Callable[[], ErrorObject | None],
    ) -> None:
        """``no_work`` tells why no work can begin at present, if that is so."""
        self._tools = server.tools
        self._handlers = dict(server.handlers)
        self._loop = loop
        self._feed = feed
        self._no_work = no_work
        self._calls: dict[Hashable, Call] = {}
        self._stopping = False

    def start_tool(self, start: StartTool) -> None:
        """Call a tool's handler."""
        tool = self._tools.get(start.tool)
        if tool is None:  # withdrawn since the engine looked
            self._feed(CallFailed(start.exchange, invalid_params(f"unknown tool: {start.tool}")))
            return
        if start.must_create_task:
            self._start_owed(tool, start)
            return
        call = ToolCall(start, self._notify)
        run = partial(run_tool, tool, call, self._loop.cancelled)
        self._start(start.exchange, Call(tool, call.arguments), run)

    def _start_owed(self, tool: Tool, start: StartTool) -> None:
        """Make the task first; the handler is its work (LEG.3)."""
        error = self._no_work()
        if error is not None:
            self._feed(CallFailed(start.exchange, error))
            return
        offer = TaskOffer(run=handler_as_work(tool, start, self._notify))
        self._calls[start.exchange] = Call(tool, start.arguments, offer=offer)
        self._feed(_became_task(start.exchange, offer))

    def forward(self, forward: Forward) -> None:
        """Call a handler of ``on_request``."""
        request = Request(forward, self._notify)
        handler, method = self._handlers[forward.method], forward.method
        run = partial(run_request, handler, request, method, self._loop.cancelled)
        self._start(forward.exchange, Call(), run)

    def _start(self, exchange: Hashable, call: Call, run: Callable[[], Coroutine[Any, Any, Outcome]]) -> None:
        self._calls[exchange] = call
        if self._stopping:
            self._ended(exchange, stopping())
        else:
            call.errand = Errand(self._loop, run, partial(self._ended, exchange))

    async def _notify(self, exchange: Hashable, method: str, params: Mapping[str, Any]) -> None:
        call = self._calls.get(exchange)
        if call is not None and call.offer is None:
            self._feed(CallNotified(exchange, method, params))
        await self._loop.checkpoint()

    def _ended(self, exchange: Hashable, outcome: Outcome | None) -> None:
        call = self._calls.get(exchange)
        if call is None:
            return  # nobody waits for it any more
        if isinstance(outcome, TaskOffer):
            # The engine counts live tasks; work that outstays its cancellation takes a place as well.
            error = self._no_work()
            if error is None:
                call.offer = outcome
                self._feed(_became_task(exchange, outcome))
                return
            outcome = error
        self.drop(exchange)
        if outcome is None:
            outcome = internal_error("the handler stopped without an answer")
        if isinstance(outcome, ErrorObject):
            self._feed(CallFailed(exchange, outcome))
        elif isinstance(outcome, InputRequired):
            self._feed(CallAskedInput(exchange, outcome.requests, outcome.state))
        else:
            self._feed(CallReturned(exchange, outcome))

    def take(self, exchange: Hashable) -> Call | None:
        """Hand over a call whose offer has become a task; ``None``: its caller has just gone away."""
        return self._calls.pop(exchange, None)

    def drop(self, exchange: Hashable) -> None:
        """Cancel and forget a call; harmless where there is none."""
        call = self._calls.pop(exchange, None)
        if call is not None and call.errand is not None:
            call.errand.cancel()

    def stop(self) -> None:
        """Cancel every handler, and call none any more; whoever waits for one is told."""
        self._stopping = True
        for exchange, call in list(self._calls.items()):
            if call.offer is None:
                self._ended(exchange, stopping())


def stopping() -> ErrorObject:
    """Return what is answered to those for whom there is no more time."""
    return internal_error("the server is stopping", reason="shutting_down")


def _became_task(exchange: Hashable, offer: TaskOffer) -> CallBecameTask:
    return CallBecameTask(
        exchange=exchange,
        task_id=urlsafe_b64encode(urandom(24)).decode(),  # 192 random bits (LIFE.6)
        status_message=offer.status_message,
        ttl_ms=offer.ttl_ms,
        poll_interval_ms=offer.poll_interval_ms,
    )
