"""The workers of a server: what runs the work of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping
from functools import partial
from typing import Any

from attrs import define

from mcp_tasks_adapters.driver.calls import Call, stopping
from mcp_tasks_adapters.driver.interfaces import Loop
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.outcomes import Ending, handler_as_work, run_work
from mcp_tasks_adapters.toolkit.server import Server
from mcp_tasks_adapters.toolkit.tasks import Report, TaskContext
from mcp_tasks_proto.effects import (
    AcceptReport,
    CancelReason,
    DeliverInput,
    RejectReport,
    RequestCancel,
    ResumeWork,
    StartTool,
)
from mcp_tasks_proto.errors import ErrorObject, internal_error, limit_reached
from mcp_tasks_proto.inputs import KEEP, Input, WorkCompleted, WorkFailed, WorkStopped

__all__ = ["Workers", "accept_report", "reject_report"]


@define(eq=False)
class _Worker:
    """One run of the work of a task."""

    task_id: str
    context: TaskContext
    resumption: int = 0
    may_be_handed_on: bool = False
    """Whether another process goes on with the task when this one ends."""
    handed_on: bool = False
    """Whether it does, and this run is to end without a word."""
    errand: Errand[Any] | None = None
    """That of its call, or one of its own."""


class Workers:
    """Runs the work of tasks and tells the engine what comes of it."""

    def __init__(
        self, server: Server, loop: Loop, *, feed: Callable[[Input], None], keeps_for_others: bool
    ) -> None:
        """``keeps_for_others``: whether other nodes reach the tasks, and go on with those of a node that is
        gone."""
        self._tools = server.tools
        self._limits = server.limits
        self._loop = loop
        self._feed = feed
        self._keeps_for_others = keeps_for_others
        self._workers: dict[str, _Worker] = {}
        self._stopping = False

    def refusal(self) -> ErrorObject | None:
        """Return why no work can begin at present, if that is so."""
        if self._stopping:
            return stopping()
        return limit_reached("workers") if len(self._workers) >= self._limits.workers else None

    # -- beginnings ----------------------------------------------------------------------------------------

    def start(self, task_id: str, call: Call | None) -> None:
        """Start the work of a task that a call has become."""
        tool = None if call is None else call.tool
        may_be_handed_on = tool is not None and self._keeps_for_others and tool.declaration.resumable
        if call is None or tool is None or call.offer is None or self._stopping:
            # The caller has just gone away, and the offer with it; or the server has no more time.
            if not may_be_handed_on:
                self._stopped(task_id, 0)
            return
        context = TaskContext(task_id, call.arguments, feed=self._feed, loop=self._loop)
        worker = _Worker(task_id, context, may_be_handed_on=may_be_handed_on)
        run = partial(run_work, tool, call.offer.run, context, self._loop.cancelled)
        self._run(worker, run, call.errand)

    def resume(self, resume: ResumeWork) -> None:
        """Go on with the work of a task whose node is gone."""
        if self._stopping:
            return  # this node is about to be gone as well, and the next one resumes it
        tool = self._tools.get(resume.tool)
        if tool is None:  # withdrawn since the engine looked
            failed = internal_error("the work cannot be resumed: there is no such tool any more")
            gone = WorkFailed(task_id=resume.task_id, token=None, error=failed, resumption=resume.resumption)
            self._feed(gone)
            return
        work = handler_as_work(tool, _first_call(resume), self._unheard, resumed=True)
        context = TaskContext(
            resume.task_id,
            resume.arguments,
            feed=self._feed,
            loop=self._loop,
            resumption=resume.resumption,
            checkpointed=resume.checkpoint,
        )
        worker = _Worker(resume.task_id, context, resumption=resume.resumption, may_be_handed_on=True)
        self._run(worker, partial(run_work, tool, work, context, self._loop.cancelled))

    async def _unheard(self, exchange: Hashable, method: str, params: Mapping[str, Any]) -> None:
        """What resumed work notifies of: its caller had an answer long ago."""
        await self._loop.checkpoint()

    def _run(
        self,
        worker: _Worker,
        run: Callable[[], Coroutine[Any, Any, Ending]],
        errand: Errand[Any] | None = None,
    ) -> None:
        """Start work: in the errand of the call that it came from, if that still runs."""
        self._workers[worker.task_id] = worker
        ended = partial(self._ended, worker)
        if errand is not None and errand.goes_on(run, ended):
            worker.errand = errand
        else:
            worker.errand = Errand(self._loop, run, ended)

    # -- on the way ----------------------------------------------------------------------------------------

    def deliver_input(self, deliver: DeliverInput) -> None:
        """Give a worker the answers to what it asked."""
        worker = self._workers.get(deliver.task_id)
        if worker is not None:
            worker.context.take_answers(deliver.answers)

    def request_cancel(self, request: RequestCancel) -> None:
        """Cancel a worker."""
        worker = self._workers.get(request.task_id)
        if worker is not None:
            self._stop(worker, record_gone=request.reason is not CancelReason.REQUESTED)

    # -- ends ----------------------------------------------------------------------------------------------

    def start_no_more(self) -> None:
        """From now on the server stops."""
        self._stopping = True

    def stop(self) -> None:
        """Cancel every worker; one that will be resumed elsewhere ends without a word."""
        for worker in list(self._workers.values()):
            worker.handed_on = worker.may_be_handed_on and not worker.context.cancelled
            self._stop(worker, record_gone=worker.handed_on)

    def _stop(self, worker: _Worker, *, record_gone: bool) -> None:
        worker.context.told_to_stop(record_gone=record_gone)
        if worker.errand is not None:
            worker.errand.cancel()

    def _ended(self, worker: _Worker, ending: Ending | None) -> None:
        task_id, resumption = worker.task_id, worker.resumption
        if self._workers.get(task_id) is worker:
            del self._workers[task_id]
        worker.context.over()
        worker.errand = None  # they know each other, and would wait for the garbage collector
        if ending is None:
            if not worker.handed_on:
                self._stopped(task_id, resumption)
        elif isinstance(ending, ErrorObject):
            self._feed(WorkFailed(task_id=task_id, token=None, error=ending, resumption=resumption))
        else:
            self._feed(WorkCompleted(task_id=task_id, token=None, result=ending, resumption=resumption))

    def _stopped(self, task_id: str, resumption: int) -> None:
        message = "The server stopped before the work was done." if self._stopping else KEEP
        self._feed(WorkStopped(task_id=task_id, token=None, status_message=message, resumption=resumption))


def accept_report(accept: AcceptReport) -> None:
    """Tell a worker that what it reported counts."""
    if isinstance(accept.token, Report):
        accept.token.settle(None)


def reject_report(reject: RejectReport) -> None:
    """Tell a worker that what it reported does not count, and why."""
    if isinstance(reject.token, Report):
        reject.token.settle(reject.reason)


def _first_call(resume: ResumeWork) -> StartTool:
    """Return the call that became the task, as far as it is known; nobody waits for its outcome."""
    return StartTool(
        exchange=None,
        tool=resume.tool,
        arguments=resume.arguments,
        can_create_task=True,
        client_capabilities=resume.client_capabilities,
        principal=resume.principal,
        answers=resume.answers,
        state=resume.state,
        params={"name": resume.tool, "arguments": resume.arguments},
    )
