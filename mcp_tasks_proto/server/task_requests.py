"""The methods of the Tasks extension: ``tasks/get``, ``tasks/update`` and ``tasks/cancel``."""

from __future__ import annotations

from attrs import define

from mcp_tasks_proto.errors import LocalProtocolError, invalid_params, invalid_request, unknown_task
from mcp_tasks_proto.server.exchange import Exchange
from mcp_tasks_proto.server.exchanges import Exchanges
from mcp_tasks_proto.server.operations import AnswerTask, CancelTask, ReadTask
from mcp_tasks_proto.server.reports import copied, is_task_id
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.settings import InputVisibility, ServerSettings
from mcp_tasks_proto.wire.schema import ParamsError, UpdateTaskParams, structure

__all__ = ["TaskRequests"]


@define(eq=False, repr=False, kw_only=True)
class TaskRequests:
    """Begins the operation on a task that a request asks for; the engine tells how it went."""

    settings: ServerSettings
    exchanges: Exchanges
    tasks: Tasks

    def _named_task(self, exchange: Exchange) -> str | None:
        """Return the task id in a request; ``None``: no task can have it, and that is answered (GET.2)."""
        task_id = exchange.request.params.get("taskId")
        if is_task_id(task_id):
            return task_id
        self.exchanges.fail(exchange, unknown_task())
        return None

    def get(self, exchange: Exchange) -> None:
        """Begin ``tasks/get``."""
        task_id = self._named_task(exchange)
        if task_id is None:
            return
        strict = self.settings.input_visibility is InputVisibility.STRICT
        self.tasks.begin(
            ReadTask(
                task_id=task_id,
                exchange=exchange.key,
                principal=exchange.principal,
                hidden_without=exchange.capabilities if strict else None,
            )
        )

    def update(self, exchange: Exchange) -> None:
        """Begin ``tasks/update``."""
        task_id = self._named_task(exchange)
        if task_id is None:
            return None
        try:
            params = structure(UpdateTaskParams, exchange.request.params)
            responses, _ = copied(params.input_responses)
        except ParamsError as problem:
            return self.exchanges.fail(exchange, invalid_params(str(problem)))
        except LocalProtocolError as problem:
            return self.exchanges.fail(exchange, invalid_request(str(problem)))
        self.tasks.begin(
            AnswerTask(
                task_id=task_id,
                exchange=exchange.key,
                principal=exchange.principal,
                responses=responses,
            )
        )
        return None

    def cancel(self, exchange: Exchange) -> None:
        """Begin ``tasks/cancel``."""
        task_id = self._named_task(exchange)
        if task_id is not None:
            wish = CancelTask(task_id=task_id, exchange=exchange.key, principal=exchange.principal)
            self.tasks.begin(wish)
