"""Requests that a handler answers: plain calls with their rounds of questions, and calls that want a task.

In the modern era a round of questions ends a call, and its answers begin it anew (INP.4). Here the call stays
open: each question goes out as a request of the server's on the call's own stream, and once all are answered
the call is begun anew inside, with nobody noticing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.errors import ErrorObject, invalid_params, invalid_request
from mcp_tasks_proto.inputs import DEFAULT
from mcp_tasks_proto.legacy.server.inner import Inner, OwedTask
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.server.waiting import answer_of
from mcp_tasks_proto.legacy.translation import created_task
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import Response

__all__ = ["Calls", "wanted_task"]

NOT_OF_THIS_ERA: Final = frozenset({"inputResponses", "requestState", "task"})
"""Params that only the modern era gives a meaning, and the one that is read before a call begins."""


@define(eq=False, repr=False)
class _Round:
    """The questions of one round, and what is known of their answers."""

    asked: Mapping[str, Mapping[str, Any]]
    state: str
    answers: dict[str, Any] = field(factory=dict)


@frozen
class _Call:
    """What is asked of the engine, again and again."""

    request: ClientRequest
    params: Mapping[str, Any]
    owed: OwedTask | None = None
    """The task that its caller wants."""


@define(eq=False, repr=False, kw_only=True)
class Calls:
    """Begins calls and sees them through."""

    inner: Inner
    answer: Callable[[ClientRequest, Mapping[str, Any], int], None] = ClientRequest.answer
    """Answers a call that is over, but for one that has become a task."""

    def begin(self, request: ClientRequest) -> None:
        """Begin a call, or a request of another method that the host answers."""
        self._go(_Call(request, _own_params(request)), {})

    def begin_task(self, request: ClientRequest, owed: OwedTask) -> None:
        """Begin a call whose caller wants a task (LEG.3)."""
        self._go(_Call(request, _own_params(request), owed), {})

    def _go(self, call: _Call, more: Mapping[str, Any]) -> None:
        request = call.request
        request.survives = True
        request.ended = partial(self._stop, request)
        request.inner = self.inner.request(
            request.request.method,
            {**call.params, **more},
            caller=request.caller,
            declares_tasks=call.owed is not None,
            owed=call.owed,
            replied=partial(self._replied, call),
            sent=partial(self._notified, request),
        )

    def _stop(self, request: ClientRequest) -> None:
        if request.inner is not None:
            self.inner.close(request.inner)

    def _notified(self, request: ClientRequest, message: dict[str, Any]) -> None:
        """Pass a notification on; where nobody takes it, there is room for the next at once."""
        if not (request.outlet.can_stream and request.outlet.send(message)) and request.inner is not None:
            self.inner.ready(request.inner)

    def _replied(self, call: _Call, message: Mapping[str, Any], http_status: int) -> None:
        match message:
            case {"result": {"resultType": "input_required"} as result}:
                self._ask(call, result)
            case {"result": {"resultType": "task"} as result}:
                call.request.succeed(created_task(result))
            case _:
                self.answer(call.request, message, http_status)

    # -- rounds of questions -----------------------------------------------------------------------------

    def _ask(self, call: _Call, result: Mapping[str, Any]) -> None:
        request = call.request
        request.inner = None
        if not request.outlet.can_stream:
            request.fail(invalid_request("this call asks for input on its stream; accept text/event-stream"))
            return
        asked = _Round(result["inputRequests"], result["requestState"])
        for name, wanted in asked.asked.items():
            request.ask(name, wanted, partial(self._answered, call, asked, name))

    def _answered(
        self, call: _Call, asked: _Round, name: str, response: Response, taken: Callable[[], None]
    ) -> None:
        request = call.request
        del request.asks[name]
        taken()  # there is nothing to be kept: the call itself ends with its process
        answer = answer_of(asked.asked[name], response)
        if isinstance(answer, ErrorObject):
            request.fail(answer)
            return
        asked.answers[name] = answer
        if not request.asks:
            self._go(call, {"inputResponses": asked.answers, "requestState": asked.state})


def _own_params(request: ClientRequest) -> dict[str, Any]:
    """Return what a client of this era says to the handler."""
    params = request.request.params
    return {name: value for name, value in params.items() if name not in NOT_OF_THIS_ERA}


def wanted_task(task: Any, limits: Limits) -> OwedTask | ErrorObject:
    """Read ``params.task`` (LEG.3); a lifetime is cut to ``Limits.requested_ttl_ms``."""
    if not isinstance(task, dict):
        return invalid_params("task must be an object")
    ttl = task.get("ttl", DEFAULT)
    if ttl is DEFAULT:
        return OwedTask()
    if ttl is None:
        return OwedTask(limits.requested_ttl_ms)
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl >= 1:
        return invalid_params("task.ttl must be a positive number of milliseconds, or null")
    return OwedTask(int(min(ttl, limits.requested_ttl_ms)))
