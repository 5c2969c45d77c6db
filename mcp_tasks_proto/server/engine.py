"""The server role: requests in, replies out, and no task kept in between.

:meth:`ServerEngine.handle` takes one input and returns one step. From one input to the next the engine holds
the exchanges whose reply is owed, the workers started here, with their tasks as last seen, and the listen
streams open here, each bounded by ``Limits``. How tasks stand only the store knows:
:mod:`mcp_tasks_proto.server.tasks` tells how it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import define, field

from mcp_tasks_proto.advertising import discover, list_tools
from mcp_tasks_proto.effects import AcceptReport, Effect, RejectReport, StartWork, Step, StopCall
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    ExchangeClosed,
    ExpiredFound,
    Input,
    Loaded,
    LoadFailed,
    MessageReceived,
    RecordChanged,
    RecordRemoved,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    ShutdownStarted,
    StreamReady,
    TaskEnded,
    TimePassed,
    ToolsChanged,
    TtlChanged,
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkFailed,
    WorkInput,
    WorkLost,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.server.calls import Calls
from mcp_tasks_proto.server.exchange import Exchange
from mcp_tasks_proto.server.exchanges import SHUTTING_DOWN, Exchanges
from mcp_tasks_proto.server.listening import Listening
from mcp_tasks_proto.server.operations import (
    CreateTask,
    Decision,
    LookUp,
    LoseWork,
    Operation,
    Refresh,
    Remove,
)
from mcp_tasks_proto.server.reports import operation_of, resumed_work
from mcp_tasks_proto.server.task_requests import TaskRequests
from mcp_tasks_proto.server.tasks import Tasks, check_record
from mcp_tasks_proto.server.tools import Tools
from mcp_tasks_proto.settings import ServerSettings, ToolDeclaration
from mcp_tasks_proto.subscriptions import Streams
from mcp_tasks_proto.timers import LAST_MS

__all__ = ["SHUTTING_DOWN", "ServerEngine"]


@define(eq=False, repr=False, kw_only=True)
class ServerEngine:
    """One server, as a state machine.

    ``settings`` say what it serves; ``tools`` are its first tools, in the order ``tools/list`` shows them.
    """

    settings: ServerSettings
    tools: Sequence[ToolDeclaration] = ()
    node: str | None = None
    """A name that no other engine over the same store has, or ever had: with it, the work that runs here can
    be told from that of other nodes, and theirs can be taken over (``WorkLost``)."""
    _tools: Tools = field(init=False)
    _streams: Streams = field(init=False, factory=Streams)
    _out: list[Effect] = field(init=False, factory=list)
    _exchanges: Exchanges = field(init=False)
    _tasks: Tasks = field(init=False)
    _listening: Listening = field(init=False)
    _handlers: Mapping[type, Callable[[Any], None]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        settings, streams, out = self.settings, self._streams, self._out
        self._tools = Tools(self.tools)
        self._exchanges = Exchanges(settings=settings, tools=self._tools, streams=streams, out=out)
        self._tasks = Tasks(limits=settings.limits, streams=streams, out=out, conclude=self._conclude)
        self._listening = Listening(
            settings=settings, exchanges=self._exchanges, streams=streams, tasks=self._tasks, out=out
        )
        calls = Calls(
            settings=settings,
            node=self.node,
            tools=self._tools,
            exchanges=self._exchanges,
            tasks=self._tasks,
            out=out,
        )
        requests = TaskRequests(settings=settings, exchanges=self._exchanges, tasks=self._tasks)
        self._exchanges.serve(
            {
                "server/discover": self._discover,
                "tools/list": self._list_tools,
                "tools/call": calls.call_tool,
                "tasks/get": requests.get,
                "tasks/update": requests.update,
                "tasks/cancel": requests.cancel,
                "subscriptions/listen": self._listening.open,
            },
            other=calls.forward,
        )
        self._handlers = self._make_handlers(calls)

    def _make_handlers(self, calls: Calls) -> Mapping[type, Callable[[Any], None]]:
        """Return who takes each input, at first hand: nothing stands in between."""
        return {
            MessageReceived: self._exchanges.received,
            ExchangeClosed: self._exchanges.closed,
            StreamReady: self._exchanges.stream_ready,
            CallReturned: calls.returned,
            CallFailed: calls.failed,
            CallNotified: calls.notified,
            CallAskedInput: calls.asked_input,
            CallBecameTask: calls.became_task,
            WorkProgressed: self._work_reported,
            WorkCheckpointed: self._work_reported,
            WorkAskedInput: self._work_reported,
            WorkWithdrewInput: self._work_reported,
            WorkCompleted: self._work_reported,
            WorkFailed: self._work_reported,
            WorkStopped: self._work_reported,
            TtlChanged: self._work_reported,
            TaskEnded: self._work_reported,
            Loaded: self._tasks.loaded,
            LoadFailed: self._tasks.load_failed,
            Saved: self._tasks.saved,
            SaveConflict: self._tasks.conflicted,
            SaveFailed: self._tasks.save_failed,
            SaveRefused: self._tasks.refused,
            ExpiredFound: self._tasks.expired_found,
            RecordChanged: self._record_changed,
            RecordRemoved: self._record_removed,
            WorkLost: self._work_lost,
            TimePassed: self._time_passed,
            ToolsChanged: self._tools_changed,
            ShutdownStarted: self._shutdown_started,
        }

    def handle(self, input: Input, *, now: int) -> Step:  # noqa: A002 - the word of the whole package
        """Take in one fact; return what to do about it, in order.

        ``now`` is Unix milliseconds; where it is earlier than before, the engine keeps its own time.

        Raises :class:`LocalProtocolError` when the host breaks a rule of this interface, and only then. The
        engine is as it was before such a call.
        """
        handler = self._handlers.get(type(input))
        if handler is None:
            raise LocalProtocolError(f"{type(input).__name__} is not an input of a server engine")
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        tasks, out = self._tasks, self._out
        before = tasks.now
        if now > before:
            tasks.now = now
        out.clear()
        try:
            handler(input)
        except LocalProtocolError as error:
            tasks.now = before
            raise LocalProtocolError(f"{type(input).__name__}: {error}") from error
        return Step(tuple(out), tasks.timers.next)

    def concerns(self, task_id: str) -> bool:
        """Whether news of this task would be of use here: its work runs here, or somebody listens to it.

        The host may leave out ``RecordChanged`` and ``RecordRemoved`` of all other tasks.
        """
        return self._tasks.concern(task_id)

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its answer on this shared channel (WIRE.3)."""
        return self._exchanges.in_flight(connection, request_id)

    # -- what the server says of itself ----------------------------------------------------------------

    def _discover(self, exchange: Exchange) -> None:
        self._exchanges.reply(exchange, discover(self.settings, tasks_enabled=exchange.tasks_enabled))

    def _list_tools(self, exchange: Exchange) -> None:
        definitions = {name: tool.definition for name, tool in self._tools.by_name.items()}
        self._exchanges.settle(exchange, list_tools(self.settings, definitions, exchange.request.params))

    # -- work ----------------------------------------------------------------------------------------

    def _work_reported(self, fact: WorkInput) -> None:
        operation = operation_of(fact, self.settings.limits)
        if isinstance(operation, RejectReport):
            self._out.append(operation)
        else:
            self._tasks.report(operation)

    # -- outcomes ------------------------------------------------------------------------------------

    def _conclude(self, operation: Operation, decision: Decision) -> None:
        """Tell whoever waits for an operation how it went; what it promises is durable by now."""
        if operation.report is not None:
            if decision.rejection is None:
                self._out.append(AcceptReport(operation.report))
            else:
                self._out.append(RejectReport(operation.report, decision.rejection))
        if decision.resumes and decision.after is not None:
            if self._tasks.work_started(decision.after):
                self._out.append(resumed_work(decision.after))
                # An answer or a wish to cancel may have come since the save, and concerned nobody here.
                self._tasks.begin(Refresh(task_id=operation.task_id))
        elif isinstance(operation, Refresh) and decision.found is not None:
            self._tasks.news(decision.found)
        if operation.exchange is None:
            return
        exchanges = self._exchanges
        exchange = exchanges.by_key.get(operation.exchange)
        if exchange is None:
            if isinstance(operation, CreateTask) and decision.error is None:
                # The caller went away before it got the handle (CAN.7): nobody will ever ask for this task.
                self._tasks.begin(Remove(task_id=operation.task_id, orphaned=True))
        elif decision.error is not None:
            exchanges.fail(exchange, decision.error)
        elif isinstance(operation, LookUp):
            self._out.extend(self._streams.looked_up(exchange.key, operation.task_id, decision.found))
        else:
            exchanges.reply(exchange, decision.result or {})
            if isinstance(operation, CreateTask):
                if self._tasks.work_started(operation.record):
                    self._out.append(StartWork(exchange.key, operation.task_id))
                else:
                    self._out.append(StopCall(exchange.key))

    # -- store, time, operation ------------------------------------------------------------------------

    def _record_changed(self, changed: RecordChanged) -> None:
        check_record(changed.record)
        self._tasks.news(changed.record)

    def _record_removed(self, removed: RecordRemoved) -> None:
        self._tasks.removed(removed.task_id)

    def _work_lost(self, lost: WorkLost) -> None:
        if self._exchanges.stopping:
            return  # whoever stays sees to it, or who comes next
        self._tasks.begin(
            LoseWork(
                task_id=lost.task_id,
                node=lost.node,
                successor=self.node,
                resumable=self._tools.resumable,
                resumptions=self.settings.limits.resumptions,
            )
        )

    def _time_passed(self, _: TimePassed) -> None:
        self._tasks.time_passed()

    def _tools_changed(self, changed: ToolsChanged) -> None:
        self._tools.change(changed.tools)
        self._out.extend(self._streams.tools_changed())

    def _shutdown_started(self, _: ShutdownStarted) -> None:
        self._exchanges.stopping = True
        self._listening.shut_down()
