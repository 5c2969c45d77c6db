"""What the host's handlers answer: calls of tools, and the methods that are not the engine's own."""

from __future__ import annotations

from collections.abc import Hashable

from attrs import define

from mcp_tasks_proto.effects import Effect, Forward, StartTool
from mcp_tasks_proto.errors import (
    ErrorObject,
    LocalProtocolError,
    invalid_params,
    limit_reached,
    missing_capability,
)
from mcp_tasks_proto.input_requests import check_requests, missing_capabilities
from mcp_tasks_proto.inputs import CallAskedInput, CallBecameTask, CallFailed, CallNotified, CallReturned
from mcp_tasks_proto.records import Resumption
from mcp_tasks_proto.request_state import seal_state
from mcp_tasks_proto.server.exchange import Awaits, Exchange
from mcp_tasks_proto.server.exchanges import Exchanges
from mcp_tasks_proto.server.methods import GivenInput, read_input
from mcp_tasks_proto.server.operations import CreateTask
from mcp_tasks_proto.server.reports import check_result, error_on_wire, new_record
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.server.tools import Tools
from mcp_tasks_proto.settings import ServerSettings, TaskSupport
from mcp_tasks_proto.vocabulary import CACHEABLE_METHODS, INPUT_METHODS
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = ["Calls"]


@define(eq=False, repr=False, kw_only=True)
class Calls:
    """Hands requests to the host's handlers, and takes in what those report."""

    settings: ServerSettings
    node: str | None
    tools: Tools
    exchanges: Exchanges
    tasks: Tasks
    out: list[Effect]

    # -- beginnings ----------------------------------------------------------------------------------

    def call_tool(self, exchange: Exchange) -> None:
        """Begin ``tools/call``."""
        params = exchange.request.params
        name = params.get("name")
        if not isinstance(name, str):
            return self.exchanges.fail(exchange, invalid_params("name must be a string"))
        if not isinstance(params.get("arguments", {}), dict):
            return self.exchanges.fail(exchange, invalid_params("arguments must be an object"))
        tool = self.tools.by_name.get(name)
        if tool is None:
            return self.exchanges.fail(exchange, invalid_params(f"unknown tool: {name}"))
        given = read_input(self.settings, exchange.request, exchange.principal, self.tasks.now)
        if isinstance(given, ErrorObject):
            return self.exchanges.fail(exchange, given)
        exchange.arguments_bytes = given.arguments_bytes
        exchange.can_create_task = exchange.may_use_tasks and tool.task is not TaskSupport.FORBIDDEN
        if tool.resumable:
            exchange.resumption = Resumption(answers=given.answers, state=given.state)
        exchange.awaits = Awaits.CALL
        self.out.append(
            StartTool(
                exchange=exchange.key,
                tool=tool.name,
                arguments=given.params.get("arguments", {}),
                can_create_task=exchange.can_create_task,
                client_capabilities=exchange.capabilities,
                principal=exchange.principal,
                answers=given.answers,
                state=given.state,
                params=given.params,
            )
        )
        return None

    def forward(self, exchange: Exchange) -> None:
        """Begin a method that the engine does not know."""
        request = exchange.request
        given: GivenInput | ErrorObject = GivenInput(request.params)
        if request.method in INPUT_METHODS:
            given = read_input(self.settings, request, exchange.principal, self.tasks.now)
        if isinstance(given, ErrorObject):
            return self.exchanges.fail(exchange, given)
        exchange.awaits = Awaits.CALL
        self.out.append(
            Forward(
                exchange=exchange.key,
                method=request.method,
                params=given.params,
                client_capabilities=exchange.capabilities,
                principal=exchange.principal,
                answers=given.answers,
                state=given.state,
            )
        )
        return None

    # -- what the host reports -----------------------------------------------------------------------

    def _called(self, key: Hashable) -> Exchange | None:
        """Return the exchange of a call; ``None`` when its client went away meanwhile."""
        exchange = self.exchanges.by_key.get(key)
        if exchange is not None and exchange.awaits is not Awaits.CALL:
            raise LocalProtocolError("no call is running in this exchange")
        return exchange

    def returned(self, returned: CallReturned) -> None:
        """The handler has a result."""
        exchange = self._called(returned.exchange)
        if exchange is None:
            return
        check_result(returned.result)
        body = dict(returned.result)
        if exchange.request.method in CACHEABLE_METHODS:
            body.setdefault("ttlMs", 0)
            body.setdefault("cacheScope", "private")
        self.exchanges.reply(exchange, body)

    def failed(self, failed: CallFailed) -> None:
        """The handler has an error."""
        exchange = self._called(failed.exchange)
        if exchange is not None:
            encode(error_on_wire(failed.error))
            self.exchanges.fail(exchange, failed.error)

    def notified(self, notified: CallNotified) -> None:
        """The handler has something to tell before it ends."""
        exchange = self._called(notified.exchange)
        if exchange is not None:
            self.out.extend(exchange.notify(notified))

    def asked_input(self, asked: CallAskedInput) -> None:
        """The handler asks the client, and will be called anew with the answers (INP.4)."""
        exchange = self._called(asked.exchange)
        if exchange is None:
            return None
        request = exchange.request
        if request.method not in INPUT_METHODS:
            raise LocalProtocolError(f"{request.method} cannot ask for input")
        if problem := check_requests(asked.requests):
            raise LocalProtocolError(problem)
        if missing := missing_capabilities(asked.requests, exchange.capabilities):
            return self.exchanges.fail(exchange, missing_capability(missing))
        limits = self.settings.limits
        token = seal_state(
            self.settings.sealer,
            principal=exchange.principal,
            method=request.method,
            params=request.params,
            asked=asked.requests,
            state=asked.state,
            expires_at_ms=self.tasks.now + limits.request_state_ms,
        )
        if len(token) > limits.request_state_bytes:
            return self.exchanges.fail(exchange, limit_reached("request_state_bytes"))
        requests = {name: dict(wanted) for name, wanted in asked.requests.items()}
        body = {"resultType": "input_required", "inputRequests": requests, "requestState": token}
        return self.exchanges.reply(exchange, body)

    def became_task(self, became: CallBecameTask) -> None:
        """The handler offers to go on as a task (LIFE.3)."""
        exchange = self._called(became.exchange)
        if exchange is None:
            return None
        if not exchange.can_create_task:
            raise LocalProtocolError("this call may not become a task (NEG.5)")
        limits = self.settings.limits
        record = new_record(became, exchange, limits, self.tasks.now, self.node)
        if self.tasks.workers >= limits.workers:
            return self.exchanges.fail(exchange, limit_reached("workers"))
        exchange.awaits = Awaits.CREATION
        return self.tasks.begin(CreateTask(task_id=record.task_id, exchange=exchange.key, record=record))
