"""The server role: requests in, replies out, and no task kept in between.

:meth:`ServerEngine.handle` takes one input and returns one step. From one input to the next the engine holds
the exchanges whose reply is owed, the workers started here, with their tasks as last seen, and the listen
streams open here, each bounded by ``Limits``. How tasks stand only the store knows:
:mod:`mcp_tasks_proto.server.tasks` tells how it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.advertising import discover, list_tools
from mcp_tasks_proto.effects import (
    AcceptReport,
    Effect,
    Forward,
    RejectReport,
    Reply,
    Send,
    StartTool,
    StartWork,
    Step,
    StopCall,
)
from mcp_tasks_proto.errors import (
    ErrorObject,
    LocalProtocolError,
    internal_error,
    invalid_params,
    invalid_request,
    limit_reached,
    missing_capability,
    unknown_task,
)
from mcp_tasks_proto.input_requests import check_requests, missing_capabilities
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
from mcp_tasks_proto.negotiation import Refused, negotiate
from mcp_tasks_proto.records import Resumption
from mcp_tasks_proto.request_state import seal_state
from mcp_tasks_proto.server.exchange import Awaits, Exchange
from mcp_tasks_proto.server.methods import GivenInput, read_input
from mcp_tasks_proto.server.operations import (
    AnswerTask,
    CancelTask,
    CreateTask,
    Decision,
    LookUp,
    LoseWork,
    Operation,
    ReadTask,
    Refresh,
    Remove,
)
from mcp_tasks_proto.server.reports import (
    check_result,
    copied,
    is_task_id,
    new_record,
    operation_of,
    resumed_work,
)
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.settings import InputVisibility, ServerSettings, TaskSupport, ToolDeclaration
from mcp_tasks_proto.subscriptions import Stream, Streams
from mcp_tasks_proto.timers import LAST_MS
from mcp_tasks_proto.vocabulary import CACHEABLE_METHODS, INPUT_METHODS, SERVER_INFO, SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Notification,
    Request,
    error_message,
    is_id,
    parse_message,
    result_message,
)
from mcp_tasks_proto.wire.schema import (
    CallToolParams,
    ListenParams,
    ParamsError,
    UpdateTaskParams,
    structure,
)

__all__ = ["ServerEngine"]

SHUTTING_DOWN: Final = internal_error("the server is shutting down", reason="shutting_down")


@define(eq=False, kw_only=True)
class ServerEngine:
    """One server, as a state machine.

    ``settings`` say what it serves; ``tools`` are its first tools, in the order ``tools/list`` shows them.
    """

    settings: ServerSettings
    tools: Sequence[ToolDeclaration] = ()
    node: str | None = None
    """A name that no other engine over the same store has, or ever had: with it, the work that runs here can
    be told from that of other nodes, and theirs can be taken over (``WorkLost``)."""
    _by_name: dict[str, ToolDeclaration] = field(init=False)
    _resumable: frozenset[str] = field(init=False)
    _exchanges: dict[Hashable, Exchange] = field(init=False, factory=dict)
    _by_request_id: dict[tuple[Hashable, str | int], Exchange] = field(init=False, factory=dict)
    _streams: Streams = field(init=False, factory=Streams)
    _out: list[Effect] = field(init=False, factory=list)
    _tasks: Tasks = field(init=False)
    _info: dict[str, Any] = field(init=False)
    _stopping: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        self._by_name = _by_name(self.tools)
        self._resumable = _resumable(self._by_name)
        self._info = {**settings.info, "name": settings.name, "version": settings.version}
        self._tasks = Tasks(
            limits=settings.limits, streams=self._streams, out=self._out, conclude=self._conclude
        )

    def handle(self, input: Input, *, now: int) -> Step:  # noqa: A002 - the word of the whole package
        """Take in one fact; return what to do about it, in order.

        ``now`` is Unix milliseconds; where it is earlier than before, the engine keeps its own time.

        Raises :class:`LocalProtocolError` when the host breaks a rule of this interface, and only then. The
        engine is as it was before such a call.
        """
        handler = _HANDLERS.get(type(input))
        if handler is None:
            raise LocalProtocolError(f"{type(input).__name__} is not an input of a server engine")
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        tasks, out = self._tasks, self._out
        before = tasks.now
        tasks.now = max(before, now)
        out.clear()
        try:
            handler(self, input)
        except LocalProtocolError:
            tasks.now = before
            raise
        return Step(tuple(out), tasks.timers.next)

    def concerns(self, task_id: str) -> bool:
        """Whether news of this task would be of use here: its work runs here, or somebody listens to it.

        The host may leave out ``RecordChanged`` and ``RecordRemoved`` of all other tasks.
        """
        return self._tasks.concern(task_id)

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its answer on this shared channel (WIRE.3)."""
        return (connection, request_id) in self._by_request_id

    # -- messages ------------------------------------------------------------------------------------

    def _message_received(self, received: MessageReceived) -> None:
        if received.exchange in self._exchanges:
            raise LocalProtocolError("MessageReceived: this exchange is open already")
        message = parse_message(received.message)
        if isinstance(message, Request):
            self._request_received(received, message)
        elif isinstance(message, Notification):
            self._notification_received(received, message)
            self._out.append(Reply(received.exchange, None, 202))
        elif isinstance(message, Malformed):
            self._refuse(received, message.id, message.error)
        elif received.connection is None:
            self._refuse(received, None, invalid_request("a server takes no responses"))
        else:  # two who answer each other's answers never end
            self._out.append(Reply(received.exchange, None, 202))

    def _request_received(self, received: MessageReceived, request: Request) -> None:
        key, limits = received.exchange, self.settings.limits
        if self.in_flight(received.connection, request.id):
            return self._refuse(received, request.id, invalid_request("a request with this id is in flight"))
        if self._stopping:
            return self._refuse(received, request.id, SHUTTING_DOWN, 503)
        if len(self._exchanges) >= limits.exchanges:
            return self._refuse(received, request.id, limit_reached("exchanges"))
        decision = negotiate(
            request,
            http=received.http,
            tasks_enabled=received.tasks_enabled,
            settings=self.settings,
            tools=self._by_name,
        )
        if isinstance(decision, Refused):
            return self._refuse(received, request.id, decision.error, decision.http_status)
        exchange = Exchange(
            key=key,
            request=request,
            capabilities=decision.capabilities,
            may_use_tasks=decision.declares_tasks,
            tasks_enabled=received.tasks_enabled,
            connection=received.connection,
            principal=received.principal,
            takes_notifications=received.http is None or received.http.accepts_stream,
        )
        self._exchanges[key] = exchange
        if received.connection is not None:
            self._by_request_id[received.connection, request.id] = exchange
        _METHODS.get(request.method, ServerEngine._forward)(self, exchange)
        return None

    def _notification_received(self, received: MessageReceived, notification: Notification) -> None:
        """Over HTTP a closed stream is what cancels; a notification that is not understood is ignored."""
        if received.connection is None or notification.method != "notifications/cancelled":
            return
        request_id = notification.params.get("requestId")
        if not is_id(request_id):
            return
        exchange = self._by_request_id.get((received.connection, request_id))
        if exchange is not None:
            self._drop(exchange)
            self._out.append(StopCall(exchange.key))

    def _refuse(
        self,
        received: MessageReceived,
        request_id: str | int | None,
        error: ErrorObject,
        http_status: int | None = None,
    ) -> None:
        status = error.http_status if http_status is None else http_status
        self._out.append(Reply(received.exchange, error_message(request_id, error), status))

    # -- exchanges -----------------------------------------------------------------------------------

    def _reply(self, exchange: Exchange, body: dict[str, Any]) -> None:
        """End an exchange with a result; every one says what it is and who gave it (WIRE.4)."""
        self._finish(exchange, self._result(exchange, body), 200)

    def _result(self, exchange: Exchange, body: dict[str, Any]) -> dict[str, Any]:
        body.setdefault("resultType", "complete")
        if self.settings.identify:
            body["_meta"] = {**body.get("_meta", {}), SERVER_INFO: self._info}
        return result_message(exchange.request.id, body)

    def _fail(self, exchange: Exchange, error: ErrorObject) -> None:
        """End an exchange with an error."""
        self._finish(exchange, error_message(exchange.request.id, error), error.http_status)

    def _finish(self, exchange: Exchange, message: dict[str, Any], http_status: int) -> None:
        if exchange.outbox is not None:
            self._out.extend(exchange.outbox.flush())
        self._out.append(Reply(exchange.key, message, http_status))
        self._drop(exchange)

    def _drop(self, exchange: Exchange) -> None:
        """Forget an exchange: it was answered, or nobody waits for it any more."""
        del self._exchanges[exchange.key]
        if exchange.connection is not None:
            del self._by_request_id[exchange.connection, exchange.request.id]
        if exchange.awaits is Awaits.NEWS:
            self._streams.close(exchange.key)

    def _exchange_closed(self, closed: ExchangeClosed) -> None:
        exchange = self._exchanges.get(closed.exchange)
        if exchange is not None:
            self._drop(exchange)
            if exchange.awaits is Awaits.CALL:
                self._out.append(StopCall(exchange.key))

    def _stream_ready(self, ready: StreamReady) -> None:
        exchange = self._exchanges.get(ready.exchange)
        if exchange is None:
            return
        if exchange.outbox is not None:
            self._out.extend(exchange.outbox.ready())
        self._out.extend(self._streams.ready(ready.exchange))

    # -- methods -------------------------------------------------------------------------------------

    def _discover(self, exchange: Exchange) -> None:
        self._reply(exchange, discover(self.settings, tasks_enabled=exchange.tasks_enabled))

    def _list_tools(self, exchange: Exchange) -> None:
        definitions = {name: tool.definition for name, tool in self._by_name.items()}
        self._settle(exchange, list_tools(self.settings, definitions, exchange.request.params))

    def _settle(self, exchange: Exchange, outcome: dict[str, Any] | ErrorObject) -> None:
        if isinstance(outcome, ErrorObject):
            self._fail(exchange, outcome)
        else:
            self._reply(exchange, outcome)

    def _call_tool(self, exchange: Exchange) -> None:
        try:
            params = structure(CallToolParams, exchange.request.params)
        except ParamsError as problem:
            return self._fail(exchange, invalid_params(str(problem)))
        tool = self._by_name.get(params.name)
        if tool is None:
            return self._fail(exchange, invalid_params(f"unknown tool: {params.name}"))
        given = read_input(self.settings, exchange.request, exchange.principal, self._tasks.now)
        if isinstance(given, ErrorObject):
            return self._fail(exchange, given)
        exchange.arguments_bytes = given.arguments_bytes
        exchange.can_create_task = exchange.may_use_tasks and tool.task is not TaskSupport.FORBIDDEN
        if tool.resumable:
            exchange.resumption = Resumption(answers=given.answers, state=given.state)
        exchange.awaits = Awaits.CALL
        self._out.append(
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

    def _forward(self, exchange: Exchange) -> None:
        request = exchange.request
        given: GivenInput | ErrorObject = GivenInput(request.params)
        if request.method in INPUT_METHODS:
            given = read_input(self.settings, request, exchange.principal, self._tasks.now)
        if isinstance(given, ErrorObject):
            return self._fail(exchange, given)
        exchange.awaits = Awaits.CALL
        self._out.append(
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

    def _named_task(self, exchange: Exchange) -> str | None:
        """Return the task id in a request; ``None``: no task can have it, and that is answered (GET.2)."""
        task_id = exchange.request.params.get("taskId")
        if is_task_id(task_id):
            return task_id
        self._fail(exchange, unknown_task())
        return None

    def _get_task(self, exchange: Exchange) -> None:
        task_id = self._named_task(exchange)
        if task_id is None:
            return
        strict = self.settings.input_visibility is InputVisibility.STRICT
        self._tasks.begin(
            ReadTask(
                task_id=task_id,
                exchange=exchange.key,
                principal=exchange.principal,
                hidden_without=exchange.capabilities if strict else None,
            )
        )

    def _update_task(self, exchange: Exchange) -> None:
        task_id = self._named_task(exchange)
        if task_id is None:
            return None
        try:
            params = structure(UpdateTaskParams, exchange.request.params)
            responses, _ = copied(params.input_responses)
        except ParamsError as problem:
            return self._fail(exchange, invalid_params(str(problem)))
        except LocalProtocolError as problem:
            return self._fail(exchange, invalid_request(str(problem)))
        self._tasks.begin(
            AnswerTask(
                task_id=task_id,
                exchange=exchange.key,
                principal=exchange.principal,
                responses=responses,
            )
        )
        return None

    def _cancel_task(self, exchange: Exchange) -> None:
        task_id = self._named_task(exchange)
        if task_id is not None:
            wish = CancelTask(task_id=task_id, exchange=exchange.key, principal=exchange.principal)
            self._tasks.begin(wish)

    def _listen(self, exchange: Exchange) -> None:
        try:
            wanted = structure(ListenParams, exchange.request.params).notifications
        except ParamsError as problem:
            return self._fail(exchange, invalid_params(str(problem)))
        task_ids = None
        if wanted.task_ids is not None and exchange.tasks_enabled:
            task_ids = tuple(filter(is_task_id, dict.fromkeys(wanted.task_ids)))
        limits, streams = self.settings.limits, self._streams
        if not exchange.takes_notifications:
            error = invalid_request("subscriptions/listen is answered with text/event-stream; accept it")
            return self._finish(exchange, error_message(exchange.request.id, error), 406)
        if len(task_ids or ()) > limits.stream_tasks:
            return self._fail(exchange, limit_reached("stream_tasks"))
        if len(streams) >= limits.streams:
            return self._fail(exchange, limit_reached("streams"))
        principal = exchange.principal
        if principal is not None and streams.of_principal(principal) >= limits.streams_per_principal:
            return self._fail(exchange, limit_reached("streams_per_principal"))
        exchange.awaits = Awaits.NEWS
        stream = Stream(
            exchange=exchange.key,
            request_id=exchange.request.id,
            principal=principal,
            tools_list_changed=wanted.tools_list_changed,
            task_ids=task_ids,
        )
        self._out.extend(streams.open(stream))
        for task_id in task_ids or ():
            self._tasks.begin(LookUp(task_id=task_id, exchange=exchange.key, principal=exchange.principal))
        return None

    # -- calls ---------------------------------------------------------------------------------------

    def _called(self, key: Hashable, fact: str) -> Exchange | None:
        """Return the exchange of a call; ``None`` when its client went away meanwhile."""
        exchange = self._exchanges.get(key)
        if exchange is not None and exchange.awaits is not Awaits.CALL:
            raise LocalProtocolError(f"{fact}: no call is running in this exchange")
        return exchange

    def _call_returned(self, returned: CallReturned) -> None:
        exchange = self._called(returned.exchange, "CallReturned")
        if exchange is None:
            return
        check_result("CallReturned", returned.result)
        body = dict(returned.result)
        if exchange.request.method in CACHEABLE_METHODS:
            body.setdefault("ttlMs", 0)
            body.setdefault("cacheScope", "private")
        self._reply(exchange, body)

    def _call_failed(self, failed: CallFailed) -> None:
        exchange = self._called(failed.exchange, "CallFailed")
        if exchange is not None:
            self._fail(exchange, failed.error)

    def _call_notified(self, notified: CallNotified) -> None:
        exchange = self._called(notified.exchange, "CallNotified")
        if exchange is not None:
            self._out.extend(exchange.notify(notified))

    def _call_asked_input(self, asked: CallAskedInput) -> None:
        exchange = self._called(asked.exchange, "CallAskedInput")
        if exchange is None:
            return None
        request = exchange.request
        if request.method not in INPUT_METHODS:
            raise LocalProtocolError(f"CallAskedInput: {request.method} cannot ask for input")
        if problem := check_requests(asked.requests):
            raise LocalProtocolError(f"CallAskedInput: {problem}")
        if missing := missing_capabilities(asked.requests, exchange.capabilities):
            return self._fail(exchange, missing_capability(missing))
        limits = self.settings.limits
        token = seal_state(
            self.settings.sealer,
            principal=exchange.principal,
            method=request.method,
            params=request.params,
            asked=asked.requests,
            state=asked.state,
            expires_at_ms=self._tasks.now + limits.request_state_ms,
        )
        if len(token) > limits.request_state_bytes:
            return self._fail(exchange, limit_reached("request_state_bytes"))
        requests = {name: dict(wanted) for name, wanted in asked.requests.items()}
        body = {"resultType": "input_required", "inputRequests": requests, "requestState": token}
        return self._reply(exchange, body)

    def _call_became_task(self, became: CallBecameTask) -> None:
        exchange = self._called(became.exchange, "CallBecameTask")
        if exchange is None:
            return None
        if not exchange.can_create_task:
            raise LocalProtocolError("CallBecameTask: this call may not become a task (NEG.5)")
        limits = self.settings.limits
        record = new_record(became, exchange, limits, self._tasks.now, self.node)
        if self._tasks.workers >= limits.workers:
            return self._fail(exchange, limit_reached("workers"))
        exchange.awaits = Awaits.CREATION
        return self._tasks.begin(CreateTask(task_id=record.task_id, exchange=exchange.key, record=record))

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
        exchange = self._exchanges.get(operation.exchange)
        if exchange is None:
            if isinstance(operation, CreateTask) and decision.error is None:
                # The caller went away before it got the handle (CAN.7): nobody will ever ask for this task.
                self._tasks.begin(Remove(task_id=operation.task_id, orphaned=True))
        elif decision.error is not None:
            self._fail(exchange, decision.error)
        elif isinstance(operation, LookUp):
            self._out.extend(self._streams.looked_up(exchange.key, operation.task_id, decision.found))
        else:
            self._reply(exchange, decision.result or {})
            if isinstance(operation, CreateTask):
                if self._tasks.work_started(operation.record):
                    self._out.append(StartWork(exchange.key, operation.task_id))
                else:
                    self._out.append(StopCall(exchange.key))

    # -- store, time, operation ------------------------------------------------------------------------

    def _loaded(self, loaded: Loaded) -> None:
        self._tasks.loaded(loaded.token, loaded.record)

    def _load_failed(self, failed: LoadFailed) -> None:
        self._tasks.load_failed(failed.token)

    def _saved(self, saved: Saved) -> None:
        self._tasks.saved(saved.token)

    def _save_conflict(self, conflict: SaveConflict) -> None:
        self._tasks.conflicted(conflict.token, conflict.current)

    def _save_failed(self, failed: SaveFailed) -> None:
        self._tasks.save_failed(failed.token)

    def _save_refused(self, refused: SaveRefused) -> None:
        self._tasks.refused(refused.token, refused.limit)

    def _expired_found(self, found: ExpiredFound) -> None:
        self._tasks.expired_found(found.token, found.records, found.next_expiry_ms)

    def _record_changed(self, changed: RecordChanged) -> None:
        self._tasks.news(changed.record)

    def _record_removed(self, removed: RecordRemoved) -> None:
        self._tasks.removed(removed.task_id)

    def _work_lost(self, lost: WorkLost) -> None:
        if self._stopping:
            return  # whoever stays sees to it, or who comes next
        self._tasks.begin(
            LoseWork(
                task_id=lost.task_id,
                node=lost.node,
                successor=self.node,
                resumable=self._resumable,
                resumptions=self.settings.limits.resumptions,
            )
        )

    def _time_passed(self, _: TimePassed) -> None:
        self._tasks.time_passed()

    def _tools_changed(self, changed: ToolsChanged) -> None:
        self._by_name = _by_name(changed.tools)
        self._resumable = _resumable(self._by_name)
        self._out.extend(self._streams.tools_changed())

    def _shutdown_started(self, _: ShutdownStarted) -> None:
        self._stopping = True
        for exchange in [one for one in self._exchanges.values() if one.awaits is Awaits.NEWS]:
            if self._streams.acknowledged(exchange.key):
                self._end_stream(exchange)
            else:
                self._fail(exchange, SHUTTING_DOWN)

    def _end_stream(self, exchange: Exchange) -> None:
        """End a listen stream from this side: what waits is sent, then the result (SUB.4)."""
        self._out.extend(self._streams.waiting(exchange.key))
        body = {"_meta": {SUBSCRIPTION_ID: exchange.request.id}}
        if exchange.connection is None:
            return self._reply(exchange, body)
        # The core wants a notification as well on a channel that does not close with the stream. It comes
        # second: a client that reads it first takes the stream for lost.
        self._out.append(Send(exchange.key, self._result(exchange, body)))
        return self._finish(exchange, self._streams.cancelled(exchange.key), 200)


def _by_name(tools: Sequence[ToolDeclaration]) -> dict[str, ToolDeclaration]:
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) < len(tools):
        raise LocalProtocolError("two tools have the same name")
    return by_name


def _resumable(tools: Mapping[str, ToolDeclaration]) -> frozenset[str]:
    return frozenset(name for name, tool in tools.items() if tool.resumable)


_METHODS: Final[Mapping[str, Callable[[ServerEngine, Exchange], None]]] = {
    "server/discover": ServerEngine._discover,
    "tools/list": ServerEngine._list_tools,
    "tools/call": ServerEngine._call_tool,
    "tasks/get": ServerEngine._get_task,
    "tasks/update": ServerEngine._update_task,
    "tasks/cancel": ServerEngine._cancel_task,
    "subscriptions/listen": ServerEngine._listen,
}

_HANDLERS: Final[Mapping[type, Callable[[ServerEngine, Any], None]]] = {
    MessageReceived: ServerEngine._message_received,
    ExchangeClosed: ServerEngine._exchange_closed,
    StreamReady: ServerEngine._stream_ready,
    CallReturned: ServerEngine._call_returned,
    CallFailed: ServerEngine._call_failed,
    CallNotified: ServerEngine._call_notified,
    CallAskedInput: ServerEngine._call_asked_input,
    CallBecameTask: ServerEngine._call_became_task,
    WorkProgressed: ServerEngine._work_reported,
    WorkCheckpointed: ServerEngine._work_reported,
    WorkAskedInput: ServerEngine._work_reported,
    WorkWithdrewInput: ServerEngine._work_reported,
    WorkCompleted: ServerEngine._work_reported,
    WorkFailed: ServerEngine._work_reported,
    WorkStopped: ServerEngine._work_reported,
    TtlChanged: ServerEngine._work_reported,
    TaskEnded: ServerEngine._work_reported,
    Loaded: ServerEngine._loaded,
    LoadFailed: ServerEngine._load_failed,
    Saved: ServerEngine._saved,
    SaveConflict: ServerEngine._save_conflict,
    SaveFailed: ServerEngine._save_failed,
    SaveRefused: ServerEngine._save_refused,
    ExpiredFound: ServerEngine._expired_found,
    RecordChanged: ServerEngine._record_changed,
    RecordRemoved: ServerEngine._record_removed,
    WorkLost: ServerEngine._work_lost,
    TimePassed: ServerEngine._time_passed,
    ToolsChanged: ServerEngine._tools_changed,
    ShutdownStarted: ServerEngine._shutdown_started,
}
