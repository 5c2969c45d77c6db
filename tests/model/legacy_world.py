"""A server of both eras with clients of 2025-11-25, and the reference model that every step is compared with.

The store answers at once: how saves race is what :mod:`tests.model.server_world` is about. Clients read what
comes on their streams at once. A step that breaks a rule raises ``AssertionError``, which names it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import (
    AcceptReport,
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallReturned,
    DeliverInput,
    Effect,
    ErrorObject,
    ExchangeClosed,
    HmacSealer,
    Input,
    Limits,
    RejectReport,
    Reply,
    ResumeWork,
    Send,
    ServerSettings,
    StartTool,
    StartWork,
    StopCall,
    StreamReady,
    TimePassed,
    WorkAskedInput,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.testing import ServerHost
from mcp_tasks_proto.testing.model import (
    ErrorAnswer,
    LegacyCaller,
    LegacyServerModel,
    ModelCaller,
    ModelTask,
    PeerAnswer,
    ReportAnswer,
    ResultAnswer,
    ServerModel,
    WantedTask,
    answer_fits,
    difference,
    legacy_view,
    may_be_asked,
)
from tests.unit.legacy_world import LegacyClient
from tests.unit.world import DONE, START, TOOLS

__all__ = ["CALLERS", "World", "question", "task_id"]

LIMITS: Final = Limits(ttl_ms=60_007, requested_ttl_ms=90_001, poll_interval_ms=1_000, session_idle_ms=10**9)
RELATED: Final = "io.modelcontextprotocol/related-task"
ALL: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}, "tasks": {}}
FORMS: Final[Mapping[str, Any]] = {"elicitation": {}}
CALLERS: Final = (
    LegacyCaller(principal="ada", capabilities=ALL),
    LegacyCaller(principal="ada", capabilities=FORMS),
    LegacyCaller(principal="bob", capabilities=ALL),
    LegacyCaller(principal="ada", capabilities=ALL, takes_streams=False),
    LegacyCaller(principal=None, capabilities=FORMS),
)
"""The second of them is on stdio, where there is nothing but streams."""
STDIO: Final = 1
ISERROR: Final = {"content": [{"type": "text", "text": "no"}], "isError": True}
BROKE: Final = ErrorObject(-32001, "broke", {"at": 3})
RESULTS: Final[Mapping[str, Any]] = {"completed": DONE, "is error": ISERROR}


def task_id(number: int) -> str:
    """Return the id of one of the tasks."""
    return f"task-{number:020}"


def question(name: str, kind: str = "form") -> dict[str, Any]:
    """Return a request for input that no other name has."""
    if kind == "sampling":
        message = {"role": "user", "content": {"type": "text", "text": name}}
        return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 1}}
    schema = {"type": "object", "properties": {"it": {"type": "string"}}, "required": ["it"]}
    return {"method": "elicitation/create", "params": {"message": name, "requestedSchema": schema}}


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what everybody answers."""
    if request["method"] == "elicitation/create":
        return {"action": "accept", "content": {"it": request["params"]["message"]}}
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}


@define(eq=False)
class Open:
    """A request that is not answered."""

    client: int
    method: str
    id: str = ""
    answer: PeerAnswer | None = None
    """What it must be answered; ``None``: not yet."""
    wanted: WantedTask | None = None
    told: list[dict[str, Any]] = field(factory=list)
    """What was told of its task on its stream."""
    round: dict[str, Any] = field(factory=dict)
    """The questions that a plain call has asked, by name."""
    answers: dict[str, Any] = field(factory=dict)
    """The answers that there are."""


@define(eq=False)
class Asked:
    """A question that is with a client."""

    exchange: Hashable
    task_id: str | None
    """``None``: a plain call asks."""
    key: str
    request: Mapping[str, Any]


@define(eq=False, kw_only=True)
class World:
    """Says things to the server and to the model, and compares them."""

    policy: LegacyPolicy = LegacyPolicy.SERVE
    host: ServerHost = field(init=False)
    model: LegacyServerModel = field(init=False)
    clients: dict[int, LegacyClient] = field(init=False, factory=dict)
    """Those whose session is open."""
    open: dict[Hashable, Open] = field(init=False, factory=dict)
    questions: dict[int, Asked] = field(init=False, factory=dict)
    """What is with clients, by the id of the server's request."""
    handlers: dict[Hashable, Hashable] = field(init=False, factory=dict)
    """Handlers of calls that run, and whose calls they are."""
    begun: set[str] = field(init=False, factory=set)
    """The tasks whose work was begun."""
    delivered: set[tuple[str, str]] = field(init=False, factory=set)
    """Task and key of the answers that reached a worker."""
    reports: dict[Hashable, ReportAnswer] = field(init=False, factory=dict)
    """What reports must be answered."""
    made: int = field(init=False, default=0)
    _ids_asked: set[int] = field(init=False, factory=set)
    _seen: int = field(init=False, default=0)
    _sessions: count[int] = field(init=False, factory=lambda: count(1))
    _tokens: count[int] = field(init=False, factory=lambda: count(1))
    _unknown: Any = field(init=False, default=None)
    """The one answer to all who ask for what is not theirs, or not there (GET.2)."""
    _calling: Hashable = field(init=False, default=None)
    _stranger: LegacyClient = field(init=False)
    _latest: int = field(init=False, default=START)

    def __attrs_post_init__(self) -> None:
        settings = ServerSettings(
            name="world", version="1", sealer=HmacSealer([b"k" * 32]), limits=LIMITS, page_size=2
        )
        engine = DualEraServer(settings=settings, tools=TOOLS, policy=self.policy)
        self.host = ServerHost(engine=engine, now=START)
        self.model = LegacyServerModel(
            tasks=ServerModel(cancel_grace_ms=LIMITS.cancel_grace_ms),
            serves_tasks=self.policy is LegacyPolicy.SERVE,
            requested_ttl_ms=LIMITS.requested_ttl_ms,
        )
        self._stranger = LegacyClient(self.host, principal="eve")
        self._give(TimePassed())

    @property
    def now(self) -> int:
        """The time, which does not go back, whatever the clock says."""
        self._latest = max(self._latest, self.host.now)
        return self._latest

    # -- sessions ------------------------------------------------------------------------------------------

    def join(self, number: int) -> None:
        """Begin a session, in place of the one that there is."""
        if number in self.clients:
            self.leave(number)
        caller = CALLERS[number]
        client = LegacyClient(
            self.host,
            session=f"session-{next(self._sessions):020}",
            principal=caller.principal,
            connection=f"stdio {number}" if number == STDIO else None,
            capabilities=caller.capabilities,
            accepts_stream=caller.takes_streams,
        )
        result = client.initialize()
        assert result["capabilities"].get("tasks") == self.model.capability(caller), "LEG.2"
        assert "extensions" not in result["capabilities"], "LEG.1, LEG.9"
        self.clients[number] = client
        self._look()

    def leave(self, number: int) -> None:
        """End a session: whoever waits in it is told so; its tasks go on (LEG.2)."""
        client = self.clients.pop(number)
        for exchange, asked in self.open.items():
            if asked.client == number:
                asked.answer = ErrorAnswer(code=-32603 if asked.method == "tools/call" else -32600)
                if exchange in self.model.waiters:
                    self.model.left(exchange)
        self.questions = {
            at: one for at, one in self.questions.items() if self.open[one.exchange].client != number
        }
        if number == STDIO:
            client.hang_up()
        else:
            client.delete()
        self._look()

    # -- requests ------------------------------------------------------------------------------------------

    def call(self, client: int, tool: str, task: Any = None) -> None:
        """Call a tool that is called after its task support, plainly or with ``params.task``."""
        params: dict[str, Any] = {"name": tool, "arguments": {}}
        if task is not None:
            params["task"] = task
        wanted = self.model.called(tool, params, CALLERS[client])
        begun = Open(client, "tools/call", answer=wanted if isinstance(wanted, ErrorAnswer) else None)
        begun.wanted = wanted if isinstance(wanted, WantedTask) else None
        before = len(self.handlers)
        self._request(begun, params)
        assert (len(self.handlers) > before) == (begun.answer is None), "NEG.5: refused before it runs"

    def end_call(self, exchange: Hashable, how: str) -> None:
        """The handler of a plain call returns, or fails; one that owes a task makes it."""
        handler = next(name for name, whose in self.handlers.items() if whose == exchange)
        del self.handlers[handler]
        begun = self.open[exchange]
        if begun.wanted is not None:
            self._create(handler, begun)
        elif how == "failed":
            begun.answer = ErrorAnswer(code=BROKE.code, data=BROKE.data)
            self._give(CallFailed(handler, BROKE))
        else:
            begun.answer = ResultAnswer(RESULTS[how])
            self._give(CallReturned(handler, RESULTS[how]))

    def ask_in_call(self, exchange: Hashable, *names: str, kind: str = "form") -> None:
        """The handler of a plain call asks its client, and begins anew with the answers (INP.4)."""
        handler = next(name for name, whose in self.handlers.items() if whose == exchange)
        begun = self.open[exchange]
        caller = CALLERS[begun.client]
        requests = {name: question(f"{name} {next(self._tokens)}", kind) for name in names}
        del self.handlers[handler]
        if not all(may_be_asked(request, caller.capabilities) for request in requests.values()):
            begun.answer = ErrorAnswer(code=-32602)
        elif not caller.takes_streams:
            begun.answer = ErrorAnswer(code=-32600)
        else:
            begun.round, begun.answers = requests, {}
        self._give(CallAskedInput(handler, requests, state="s"))
        with_client = [one for one in self.questions.values() if one.exchange == exchange]
        assert exchange not in self.open or len(with_client) == len(names), "INP.4: all of them are asked"

    def _create(self, handler: Hashable, begun: Open) -> None:
        assert begun.wanted is not None
        caller = CALLERS[begun.client]
        new = ModelTask(
            task_id=task_id(self.made),
            owner=caller.principal,
            capabilities={name: it for name, it in caller.capabilities.items() if name != "tasks"},
            created_at_ms=self.now,
            ttl_ms=LIMITS.ttl_ms if begun.wanted.ttl_ms is None else begun.wanted.ttl_ms,
            poll_interval_ms=LIMITS.poll_interval_ms,
        )
        self.made += 1
        begun.answer = self.model.created(new)
        self._give(CallBecameTask(exchange=handler, task_id=new.task_id))

    def get(self, client: int, number: int) -> None:
        """``tasks/get``."""
        answer = self.model.get(task_id(number), CALLERS[client], self.now)
        self._request(Open(client, "tasks/get", answer=answer), {"taskId": task_id(number)})

    def cancel(self, client: int, number: int) -> None:
        """``tasks/cancel``."""
        answer = self.model.cancel(task_id(number), CALLERS[client], self.now)
        self._request(Open(client, "tasks/cancel", answer=answer), {"taskId": task_id(number)})

    def result(self, client: int, number: int) -> None:
        """``tasks/result``, which may wait."""
        exchange = self._next_exchange(client)
        answer = self.model.awaited(exchange, task_id(number), CALLERS[client], self.now)
        self._request(Open(client, "tasks/result", answer=answer), {"taskId": task_id(number)})

    def list(self, client: int) -> None:
        """``tasks/list``, to its end; and a cursor that nobody gave out."""
        wanted = self.model.listed(CALLERS[client], self.now)
        if isinstance(wanted, ErrorAnswer):
            self._request(Open(client, "tasks/list", answer=wanted), {})
            return
        found: list[Any] = []
        cursor: dict[str, Any] = {}
        while len(found) <= len(wanted):
            page = self.clients[client].ask("tasks/list", cursor)
            found += page["tasks"]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert found == wanted, "LEG.7: the caller's tasks, each once"
        self._request(Open(client, "tasks/list", answer=ErrorAnswer(code=-32602)), {"cursor": "made up"})

    def modern_get(self, principal: str | None, number: int, *, declares: bool) -> None:
        """LEG.9: tasks made under either era are one."""
        caller = ModelCaller(principal=principal, declares_tasks=declares)
        answer = self.model.tasks.get(task_id(number), caller, self.now)
        reply = self.host.ask("tasks/get", {"taskId": task_id(number)}, principal=principal, tasks=declares)
        self._compare(answer, reply)
        self._look()

    def _request(self, begun: Open, params: Mapping[str, Any]) -> None:
        """Send a request; what it must be answered is known."""
        client, exchange = self.clients[begun.client], self._next_exchange(begun.client)
        self.open[exchange], self._calling = begun, exchange
        begun.id = f"w{next(self._tokens)}"
        assert client.request(begun.method, params, id=begun.id) == exchange
        self._look()

    def _next_exchange(self, number: int) -> str:
        """Return what the next exchange of a client will be called."""
        client = self.clients[number]
        made = repr(client._exchanges).removeprefix("count(").removesuffix(")")
        return f"{client.session}/{client.principal}/{made}"

    # -- answers, and what ends requests -------------------------------------------------------------------

    def answer(self, number: int, how: str = "fits") -> None:
        """Answer a question of the server's: so that it ``fits``, not, or with an ``error``."""
        asked = self.questions.pop(number)
        begun = self.open[asked.exchange]
        error = {"code": -1, "message": "nobody there"} if how == "error" else None
        result = answer_to(asked.request) if how == "fits" else {"action": "maybe"}
        given = None if error is not None else result
        if asked.task_id is None:
            self._answer_call(asked, begun, given)
        else:
            self.model.answered(asked.task_id, asked.key, given, error, self.now)
        self.clients[begun.client].respond({"id": number}, result=given, error=error)
        self._look()

    def _answer_call(self, asked: Asked, begun: Open, given: Mapping[str, Any] | None) -> None:
        """What a client did not answer was cancelled, or fails the call; so does a wrong answer (UPD.4)."""
        if given is None and asked.request["method"] == "elicitation/create":
            given = {"action": "cancel"}
        if given is None:
            begun.answer = ErrorAnswer(code=-1)
        else:
            begun.answers[asked.key] = given
            fits = all(answer_fits(begun.round[key], one) for key, one in begun.answers.items())
            if begun.answers.keys() == begun.round.keys() and not fits:
                begun.answer = ErrorAnswer(code=-32602)
        if begun.answer is not None:
            self._drop_questions(asked.exchange)
        self._calling = asked.exchange

    def _drop_questions(self, exchange: Hashable) -> None:
        """A request is over, and with it what was asked on its stream."""
        self.questions = {at: one for at, one in self.questions.items() if one.exchange != exchange}

    def answer_nothing(self, client: int, number: int) -> None:
        """Answer a question that is not with this client, or was never asked."""
        asked = self.questions.get(number)
        if asked is None or self.open[asked.exchange].client != client:
            self.clients[client].respond({"id": number}, result={"action": "accept", "content": {"it": "x"}})
            self._look()

    def give_up(self, exchange: Hashable, *, politely: bool) -> None:
        """A client no longer waits for the result of a task, and says so, or hangs up (CAN.7)."""
        begun = self.open[exchange]
        client = self.clients[begun.client]
        self.model.left(exchange)
        self._drop_questions(exchange)
        del self.open[exchange]
        if politely or client.connection is not None:
            client.notify("notifications/cancelled", {"requestId": begun.id})
        else:
            self._give(ExchangeClosed(exchange))
        self._look()

    def repeat(self, exchange: Hashable) -> None:
        """Send a request with the id of one that is in flight (WIRE.3)."""
        begun = self.open[exchange]
        again = self.clients[begun.client].request("ping", {}, id=begun.id)
        (reply,) = [one for one in self.host.of(Reply) if one.exchange == again]
        assert reply.message is not None
        assert reply.message["error"]["code"] == -32600
        self._look()

    def intrude(self, client: int, message: Any) -> None:
        """Say something in somebody's session under another name (SEC.1, LEG.2)."""
        own = self.clients[client]
        stranger = self._stranger
        stranger.session = own.session
        before = dict(self.host.store.records)
        exchange = stranger.send(message)
        (reply,) = [one for one in self.host.of(Reply) if one.exchange == exchange]
        assert reply.http_status == 404
        assert self.host.store.records == before
        self._look()

    def look_at_the_clock(self) -> None:
        """Tell the server the time."""
        self._give(TimePassed())

    def say(self, client: int, message: Any) -> None:
        """Send anything: it raises nothing, and changes no task."""
        before = dict(self.host.store.records)
        new = None if client == STDIO else f"session-{next(self._sessions):020}"
        exchange = self.clients[client].send(message, new_session=new)
        replies = [one for one in self.host.of(Reply) if one.exchange == exchange]
        assert len(replies) <= 1
        assert self.host.store.records == before
        self._look()

    # -- workers -------------------------------------------------------------------------------------------

    def progress(self, number: int, message: str) -> None:
        """The worker says something."""
        token = next(self._tokens)
        self.reports[token] = self.model.tasks.progressed(task_id(number), self.now, message=message)
        self._give(WorkProgressed(task_id=task_id(number), token=token, status_message=message))

    def ask(self, number: int, name: str, kind: str = "form") -> None:
        """The worker asks something."""
        ask, requests = f"ask {next(self._tokens)}", {}
        requests[name] = question(ask, kind)
        token = next(self._tokens)
        self.reports[token] = self.model.tasks.asked(task_id(number), self.now, ask, requests)
        self._give(WorkAskedInput(task_id=task_id(number), token=token, ask=ask, requests=requests))

    def end(self, number: int, how: str) -> None:
        """The worker ends: ``completed``, with ``is error``, ``failed`` or ``cancelled``."""
        wanted, token = task_id(number), next(self._tokens)
        fact: Input
        if how == "failed":
            changes: dict[str, Any] = {"error": BROKE.to_wire(), "message": "broke"}
            fact = WorkFailed(task_id=wanted, token=token, error=BROKE)
        elif how == "cancelled":
            changes, fact = {}, WorkStopped(task_id=wanted, token=token)
        else:
            changes = {"result": RESULTS[how]}
            fact = WorkCompleted(task_id=wanted, token=token, result=RESULTS[how])
        status = "completed" if how == "is error" else how
        self.reports[token] = self.model.tasks.ended(wanted, self.now, status, **changes)
        self._give(fact)

    # -- time ----------------------------------------------------------------------------------------------

    def wait(self, milliseconds: int) -> None:
        """Let time pass, with all deadlines on the way; sessions that are busy do not end by that."""
        until = self.host.now + milliseconds
        while self.host.deadline is not None and self.host.deadline <= until:
            self.host.now = max(self.host.now, self.host.deadline)
            self._give(TimePassed())
            assert self.host.deadline is None or self.host.deadline > self.now, "never met again and again"
        self.host.now = until
        self._look()

    # -- comparing -----------------------------------------------------------------------------------------

    def _give(self, fact: Input) -> None:
        self.host.give(fact)
        self._look()

    def _look(self) -> None:
        """See to everything that the server said."""
        for exchange, answer in self.model.due(self.now).items():
            self.open[exchange].answer = answer
            self._drop_questions(exchange)
        for place in self.model.moot(self.now):
            del self.model.asked[place]
            self.questions = {
                at: one for at, one in self.questions.items() if (one.task_id, one.key) != place
            }
        while self._seen < len(self.host.effects):
            effect = self.host.effects[self._seen]
            self._seen += 1
            self._see_to(effect)
            if isinstance(effect, Send):
                self.host.give(StreamReady(effect.exchange))
        self._check_rest()

    def _see_to(self, effect: Effect) -> None:
        match effect:
            case StartTool(exchange=handler, answers=answers):
                self.handlers[handler] = self._calling
                assert answers == self.open[self._calling].answers, "INP.4: each answer, once"
                owes = self.open[self._calling].wanted is not None
                assert effect.must_create_task == owes, "LEG.3"
            case StopCall(exchange=handler):
                self.handlers.pop(handler, None)
            case StartWork(task_id=wanted) | ResumeWork(task_id=wanted):
                assert wanted not in self.begun, "two workers of one task"
                self.begun.add(wanted)
            case Reply(exchange=exchange, message=message) if exchange in self.open:
                begun = self.open.pop(exchange)
                assert begun.answer is not None, f"{begun.method}: answered before its time (LEG.4)"
                assert message is not None
                self._compare(begun.answer, message)
                if begun.method == "tasks/result" and "result" in message:
                    assert RELATED in message["result"]["_meta"], "LEG.4"
            case Send(exchange=exchange, message=message) if exchange in self.open:
                self._heard(exchange, message)
            case DeliverInput(task_id=wanted, answers=answers):
                for one in answers:
                    assert (wanted, one.key) not in self.delivered, "UPD.5: an answer is delivered once"
                    self.delivered.add((wanted, one.key))
            case AcceptReport(token=token) if token in self.reports:
                assert self.reports.pop(token).refused is None
            case RejectReport(token=token, reason=reason) if token in self.reports:
                refused = self.reports.pop(token).refused
                assert refused is not None, reason
                assert refused in reason
            case _:
                pass

    def _heard(self, exchange: Hashable, message: dict[str, Any]) -> None:
        begun = self.open[exchange]
        if message["method"] == "notifications/tasks/status":
            assert begun.method == "tasks/result"
            assert RELATED not in message["params"].get("_meta", {}), "LEG.6"
            begun.told.append(message["params"])
        elif message["method"] == "notifications/cancelled":
            number = message["params"]["requestId"]
            assert number in self._ids_asked
            assert number not in self.questions, "withdrawn, although somebody waits for the answer"
        else:
            self._asked(exchange, message)

    def _asked(self, exchange: Hashable, message: dict[str, Any]) -> None:
        number, params = message["id"], dict(message["params"])
        assert number not in self._ids_asked, "the id of a question is used once"
        self._ids_asked.add(number)
        wanted = params.pop("_meta", {}).get(RELATED, {}).get("taskId")
        request = {"method": message["method"], "params": params}
        if wanted is None:
            self._asked_by_call(exchange, number, request)
            return
        task = self.model.tasks.tasks[wanted]
        keys = [key for key, one in task.outstanding.items() if one.request == request]
        assert keys, "INP.1: only what is outstanding is asked"
        place = wanted, keys[0]
        assert self.model.waiters[exchange].task_id == wanted
        assert place not in self.model.asked, "LEG.8: a question is with one client at a time"
        assert self.model.can_be_asked(exchange, keys[0], self.now), "INP.2: of whom it may be asked"
        self.model.asked[place] = exchange
        self.questions[number] = Asked(exchange, wanted, keys[0], request)

    def _asked_by_call(self, exchange: Hashable, number: int, request: dict[str, Any]) -> None:
        assert self.open[exchange].method == "tools/call", "LEG.8: what a task asks says so"
        keys = [name for name, one in self.open[exchange].round.items() if one == request]
        assert keys, "INP.4: only what the handler asked"
        self.questions[number] = Asked(exchange, None, keys[0], request)

    def _compare(self, answer: PeerAnswer, message: Mapping[str, Any]) -> None:
        problem = difference(answer, message)
        assert problem is None, problem
        if isinstance(answer, ErrorAnswer) and answer.unknown_task:
            self._unknown = self._unknown or message["error"]
            assert message["error"] == self._unknown, "GET.2: one answer for all"

    # -- at rest -------------------------------------------------------------------------------------------

    def _check_rest(self) -> None:
        """What must be so after each step."""
        assert not list(self.model.unasked(self.now)), "INP.1: every question is with somebody who can answer"
        assert not self.reports, "each report has its answer"
        for exchange, begun in self.open.items():
            assert begun.answer is None, f"{begun.method}: not answered with {begun.answer}"
            if exchange in self.model.waiters and CALLERS[begun.client].takes_streams:
                task = self.model.tasks.tasks[self.model.waiters[exchange].task_id]
                told = {name: it for name, it in begun.told[-1].items() if name != "lastUpdatedAt"}
                assert told == legacy_view(task), "LEG.6: a client that waits knows how its task stands"
        self._check_records()
        self._check_bounds()

    def _check_records(self) -> None:
        """The store has what the model has; an end stays what it was (LIFE.1)."""
        for wanted, task in self.model.tasks.tasks.items():
            record = self.host.store.records.get(wanted)
            if record is None:
                assert task.expired(self.now), "TTL.1: removed too early"
            elif not task.expired(self.now):
                assert record.status.value == task.status, (record.status, task.status)
                answers = {one.key: one.response for one in record.inputs if one.response is not None}
                told = {key: one.answer for key, one in task.questions.items() if one.answer is not None}
                assert answers == told, "UPD.5"

    def _check_bounds(self) -> None:
        """LIM.3: the server holds what is under way, and no more."""
        engine: Any = self.host.engine
        assert engine._registry.requests == len(self.open)
        assert set(engine._registry._sessions) == {
            client.connection or client.session for client in self.clients.values()
        }
        waiting = engine._waiting
        assert sum(map(len, waiting._by_task.values())) == len(self.model.waiters)
        assert set(waiting._asked) == set(self.model.asked)
        assert set(waiting._done) <= {one.task_id for one in self.model.waiters.values()}
        inside = sum(len(session.questions) for session in engine._registry._sessions.values())
        assert inside == len(self.questions)

    def bring_to_an_end(self) -> None:
        """Everybody leaves, and nothing may be left of them."""
        for number in list(self.clients):
            self.leave(number)
        assert not self.open
        engine: Any = self.host.engine
        assert not engine._registry._exchanges
        assert not engine._inner._open
        assert not engine._inner._reports
