"""One requester engine, and the reference model that every step is compared with.

:class:`RequesterHost` holds the engine to what every host relies on. This world tells the model of each fact,
and then compares: what callers were told, what was sent and when, what is still awaited, and what is saved. A
step that breaks a rule raises ``AssertionError``, which names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, Final

from attrs import asdict, define, field

from mcp_tasks_proto import LocalProtocolError, TimePassed
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    Cancelled,
    CancelWanted,
    Completed,
    Expired,
    Failed,
    HttpReply,
    KeepReference,
    NotificationReceived,
    ObservationLost,
    Outcome,
    PassOn,
    Prompt,
    RequesterEffect,
    RequesterEngine,
    RequesterInput,
    RequesterLimits,
    RequesterSettings,
    RequestFailed,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WaitAbandoned,
    WithdrawPrompt,
)
from mcp_tasks_proto.testing import RequesterHost
from mcp_tasks_proto.testing.model import (
    Ended,
    ModelBounds,
    ModelOutcome,
    RequesterModel,
    SavedTask,
    Shown,
    Told,
    Viewed,
    Withdrawn,
    answer_fits,
)
from mcp_tasks_proto.wire.schema import unstructure

__all__ = ["BOUNDS", "FORM", "ROOTS", "SAMPLING", "START", "World", "answer_to", "handle", "view"]

START: Final = 1_700_000_000_000
BOUNDS: Final = ModelBounds(
    listening_poll_ms=6_000,
    last_backoff_ms=4_000,
    request_timeout_ms=5_003,
    call_timeout_ms=20_011,
    cancel_attempts=3,
    input_rounds=3,
    ledger_keys=4,
)
ENDPOINT: Final = "https://example.com/mcp"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
FORMS: Final[dict[str, Any]] = {"elicitation": {}}
FORM: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {
        "message": "Which?",
        "requestedSchema": {
            "type": "object",
            "properties": {"it": {"type": "string"}},
            "required": ["it"],
        },
    },
}
ROOTS: Final[dict[str, Any]] = {"method": "roots/list"}
SAMPLING: Final[dict[str, Any]] = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 1},
}
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}


def answer_to(key: str) -> dict[str, Any]:
    """Return what everybody answers under a key."""
    return {"action": "accept", "content": {"it": key}}


def view(status: str = "working", task_id: str = "one", *, at: int = 0, **more: Any) -> dict[str, Any]:
    """Return a task as it stands ``at`` that second; ``keys`` are those of its questions."""
    keys = more.pop("keys", ())
    members: dict[str, Any] = {
        "taskId": task_id,
        "status": status,
        "createdAt": "2023-11-14T22:13:00.000Z",
        "lastUpdatedAt": f"2023-11-14T22:13:{at:02}.000Z",
        "ttlMs": None,
        "pollIntervalMs": 1_000,
    }
    payloads: dict[str, Any] = {
        "input_required": {"inputRequests": dict.fromkeys(keys, FORM)},
        "completed": {"result": {"resultType": "complete", **DONE}},
        "failed": {"error": {"code": -32050, "message": "broke", "data": {"at": 3}}},
    }
    return {**members, **payloads.get(status, {}), **more}


def handle(task_id: str = "one", **more: Any) -> dict[str, Any]:
    """Return the result of a call that becomes a task."""
    return {"resultType": "task", **view(task_id=task_id, **more)}


@define(eq=False, kw_only=True)
class World:
    """Says things to the engine and to the model, and compares them."""

    listen: bool = False
    bounds: ModelBounds = BOUNDS
    capabilities: Mapping[str, Any] = field(factory=lambda: FORMS)
    host: RequesterHost = field(init=False)
    model: RequesterModel = field(init=False)
    streams: dict[int, set[str]] = field(init=False, factory=dict)
    """The tasks on each listen stream that is open."""
    agreed: dict[int, set[str]] = field(init=False, factory=dict)
    """Those of which a stream that has begun brings news."""
    saved: dict[Hashable, tuple[SavedTask, Any]] = field(init=False, factory=dict)
    """What is saved of each task, whether its call is over or not, in the model and as JSON."""
    resumed: dict[Hashable, SavedTask] = field(init=False, factory=dict)
    """What calls went on from."""
    outcomes: dict[Hashable, ModelOutcome] = field(init=False, factory=dict)
    processes: int = field(init=False, default=0)
    _calls: count[int] = field(init=False, factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        self._begin(START)

    def _begin(self, now: int) -> None:
        """Begin a process."""
        self.processes += 1
        settings = RequesterSettings(
            name="world",
            version="1",
            endpoint=ENDPOINT,
            capabilities=self.capabilities,
            listen=self.listen,
            limits=RequesterLimits(**asdict(self.bounds)),
        )
        self.host = RequesterHost(engine=RequesterEngine(settings=settings), now=now)
        self.model = RequesterModel(bounds=self.bounds, capabilities=self.capabilities)
        self.streams, self.agreed = {}, {}

    # -- the caller ------------------------------------------------------------------------------------------

    def call(self, arguments: Mapping[str, Any] | None = None, *, life_ms: int | None = None) -> int:
        """Call a tool, for so long at most; return the call."""
        call, given = next(self._calls), arguments or {"x": 1}
        deadline_ms = None if life_ms is None else self.host.now + life_ms
        self._give(
            CallWanted(call=call, tool="render", arguments=given, deadline_ms=deadline_ms),
            lambda: self.model.called(call, "render", given, deadline_ms=deadline_ms),
        )
        return call

    def resume(self, of: Hashable, *, life_ms: int | None = None) -> int:
        """Go on from what is saved of a call's task; return the new call."""
        call, (saved, reference) = next(self._calls), self.saved[of]
        deadline_ms = None if life_ms is None else self.host.now + life_ms
        self.resumed[call] = saved
        self._give(
            ResumeWanted(call=call, reference=reference, deadline_ms=deadline_ms),
            lambda: self.model.resumed(call, saved, deadline_ms=deadline_ms),
        )
        return call

    def cancel(self, call: Hashable, *, wait: bool) -> None:
        """Cancel a call, be it over or not."""
        self._give(CancelWanted(call, wait), lambda: self.model.cancelled(call, wait=wait))

    def abandon(self, call: Hashable) -> None:
        """Stop watching."""
        self._give(WaitAbandoned(call), lambda: self.model.abandoned(call))

    def answer(self, call: Hashable, key: str, response: Mapping[str, Any] | None = None) -> None:
        """Answer under a key, be something on show there or not; one that does not fit is refused (UPD.4)."""
        given = answer_to(key) if response is None else response
        prompt = self.host.on_show.get((call, key))
        if prompt is not None and not answer_fits(prompt.request, given):
            try:
                self.host.engine.handle(AnswerGiven(call, key, given), now=self.host.now)
            except LocalProtocolError:
                return
            raise AssertionError("UPD.4: an answer that does not fit is not sent")
        self._give(AnswerGiven(call, key, given), lambda: self.model.answered(call, key, given))

    def restart(self, *, capabilities: Mapping[str, Any] | None = None, resumes: bool = True) -> None:
        """End the process, and go on in another with what was saved, now or later."""
        self.capabilities = self.capabilities if capabilities is None else capabilities
        alive = [call for call in self.model.calls if call in self.saved]
        self._begin(self.host.now)
        for call in alive if resumes else ():
            self.resume(call)

    # -- the network -----------------------------------------------------------------------------------------

    def receive(self, request: int, message: Any, *, status: int = 200, retry_after_ms: int = 0) -> None:
        """Answer a request with any message, or over HTTP with none."""
        http = HttpReply(status=status, retry_after_ms=retry_after_ms or None)
        self._leave_stream(request, message)
        self._give(
            ResponseReceived(request=request, message=message, http=http),
            lambda: self.model.received(request, message, http_status=status, retry_after_ms=retry_after_ms),
        )

    def reply(self, request: int | str, result: Any) -> None:
        """Answer a request, by its number or the oldest of a method, with a result."""
        number = self.host.number_of(request)
        self.receive(number, {"jsonrpc": "2.0", "id": number, "result": result})

    def refuse(self, request: int | str, code: int, data: Any = None, **http: int) -> None:
        """Answer with an error."""
        number = self.host.number_of(request)
        error = {"code": code, "message": "no", "data": data}
        self.receive(number, {"jsonrpc": "2.0", "id": number, "error": error}, **http)

    def fail(self, request: int | str, *, sent: bool = True) -> None:
        """Break the connection of a request, or lose it."""
        number = self.host.number_of(request)
        self._leave_stream(number, None)
        self._give(RequestFailed(number, "reset", sent), lambda: self.model.broke(number, sent=sent))

    def _leave_stream(self, number: int, message: Any) -> None:
        """Whatever ends a listen stream, its tasks are without it."""
        task_ids = self.streams.pop(number, None)
        self.agreed.pop(number, None)
        if task_ids is not None:
            self.model.at(self.host.now)
            self.model.deaf(task_ids)

    def agree(self, stream: int, task_ids: set[str]) -> None:
        """Begin a listen stream that brings news of some of the tasks that it was asked about (SUB.1)."""
        agreed = self.streams[stream] & task_ids
        message = {
            "jsonrpc": "2.0",
            "method": ACKNOWLEDGED,
            "params": {"notifications": {"taskIds": sorted(task_ids)}},
        }

        def tell() -> None:
            self.model.deaf(self.streams[stream] - task_ids)
            self.model.listening(agreed)
            self.streams[stream] = self.agreed[stream] = set(agreed)

        self._give(NotificationReceived(stream, message), tell)

    def notify(self, request: int, params: Mapping[str, Any], method: str = "notifications/tasks") -> None:
        """Say something on a stream, or on the way to an answer."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        task_id = params.get("taskId")
        heard = request in self.agreed and isinstance(task_id, str) and task_id in self.agreed[request]

        def tell() -> None:
            self.model.alive(request)
            if heard and method == "notifications/tasks":
                self.model.told(task_id, params)

        self._give(NotificationReceived(request, message), tell)

    # -- time ------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Tell the engine the time."""
        self._give(TimePassed(), self._pass)
        assert not self.model.overdue(), f"not sent: {self.model.overdue()}"

    def _pass(self) -> None:
        self.model.passed(self.host.now)

    def wait(self, milliseconds: int) -> None:
        """Let time pass, with all deadlines on the way."""
        until = self.host.now + milliseconds
        while self.host.deadline is not None and self.host.deadline <= until:
            self.host.now = max(self.host.now, self.host.deadline)
            self.wake()
        self.host.now = until

    # -- comparing -------------------------------------------------------------------------------------------

    def _give(self, fact: RequesterInput, tell: Callable[[], None]) -> None:
        """Hand a fact to both of them, and compare what comes of it."""
        self.model.at(self.host.now)
        polls = self._polls() if isinstance(fact, TimePassed) else None
        tell()
        self._compare(self.host.give(fact), polls)
        self._check_rest()

    def _polls(self) -> dict[int, str]:
        """Return the polls under way, and of which task each is."""
        return {
            request: self.model.task_of(flight.owner).saved.task_id
            for request, flight in self.model.flights.items()
            if flight.kind == "poll"
        }

    def _compare(self, effects: list[RequesterEffect], polls: Mapping[int, str] | None) -> None:
        """Compare what was done; ``polls``: those that were under way before time passed, if it did.

        Listen streams that do not begin are given up then: when, the engine says by stopping them. A stream
        and a poll may have run out at the same time. Which was first, the order of their ends says: a poll
        that was still awaited then is what there is to do about the stream's end.
        """
        stopped = [effect.request for effect in effects if isinstance(effect, StopRequest)]
        for at, request in enumerate(stopped):
            if request not in self.streams:
                continue
            task_ids = self.streams.pop(request)
            if self.agreed.pop(request, None) is None and polls is not None:
                self.model.deaf(task_ids - {polls[one] for one in stopped[at:] if one in polls})
        told: list[Told] = []
        for effect in effects:
            match effect:
                case SendRequest():
                    if effect.request not in stopped:
                        self._check_request(effect)
                case KeepReference(call=call, reference=reference):
                    kept = json.loads(json.dumps(reference))
                    task = self.model.saved(call)
                    self.saved[call] = (task or _read(kept), kept)
                case Prompt(call=call, key=key, request=asked, again=again):
                    known = call in self.resumed and key in self.resumed[call].answers
                    assert again == known, "REQ.4: what another process had on show says so"
                    told.append(Shown(call=call, key=key, request=asked))
                case WithdrawPrompt(call=call, key=key):
                    told.append(Withdrawn(call, key))
                case ShowView(call=call, view=seen):
                    told.append(Viewed(call, unstructure(seen)))
                case Settle(call=call, outcome=outcome):
                    self.outcomes[call] = _outcome(outcome)
                    told.append(Ended(call, self.outcomes[call]))
                case PassOn() | StopRequest():
                    pass
        wanted = self.model.news()
        assert sorted(map(_line, told)) == sorted(map(_line, wanted)), (told, wanted)

    def _check_request(self, send: SendRequest) -> None:
        method, params = send.message["method"], dict(send.message["params"])
        declared = params.pop("_meta")["io.modelcontextprotocol/clientCapabilities"]
        tasks: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
        assert declared == {**self.capabilities, "extensions": tasks}, "NEG.4: each request declares anew"
        if method == LISTEN:
            self._check_listen(send.request, params)
            return
        problem = self.model.sent(send.request, method, params)
        assert problem is None, problem
        if method == "tasks/update":
            call = self.model.watcher_of(params["taskId"])
            _, reference = self.saved[call]
            for key, response in params["inputResponses"].items():
                assert reference["keys"][key].get("response") == response, "REQ.4: saved before it is sent"

    def _check_listen(self, request: int, params: Mapping[str, Any]) -> None:
        assert self.listen
        task_ids = set(params["notifications"]["taskIds"])
        others = set().union(*self.streams.values())
        watched = {task.saved.task_id for task in self.model.watched()}
        assert task_ids <= watched - others, "a stream for tasks that are watched, and have none"
        self.streams[request] = task_ids

    def _check_rest(self) -> None:
        """What must be so after each step."""
        model, host = self.model, self.host
        if not (host.deadline is not None and host.deadline <= model.now):  # else it comes in no time
            assert not model.overdue(), f"not sent: {model.overdue()}"
        awaited = set(host.in_flight) - set(self.streams)
        assert awaited == set(model.flights), "REQ.7: what nobody waits for is stopped, and nothing else"
        for task_ids in [*self.streams.values(), *self.agreed.values()]:
            task_ids &= {task.saved.task_id for task in model.watched()}
        on_show = {
            (key, name)
            for key, call in model.calls.items()
            for name in (call.asked if call.task is None else call.task.on_show)
        }
        assert set(host.on_show) == on_show, "REQ.4: what waits for somebody is on show"
        self._check_deadline()
        self._check_saved()
        self._check_bounds()

    def _check_deadline(self) -> None:
        due, deadline = self.model.next_ms(), self.host.deadline
        if self.listen:
            assert due is None or (deadline is not None and deadline <= due), "nothing is slept through"
        else:
            assert deadline == due, f"REQ.2: wakes at {deadline}, for {due}"

    def _check_saved(self) -> None:
        """REQ.6: what is saved is all there is to know, at any time."""
        for call in self.model.calls:
            task = self.model.saved(call)
            if task is not None and (call in self.saved or call not in self.resumed):
                assert _read(self.saved[call][1]) == task, "saved and restored = not restarted"
                self.saved[call] = (task, self.saved[call][1])
            elif task is not None:
                assert task == self.resumed[call], "what changes is saved"
                of = next(one for one, (saved, _) in self.saved.items() if saved is self.resumed[call])
                self.saved[call] = self.saved[of]

    def _check_bounds(self) -> None:
        """LIM.3: the engine holds what is under way, and no more."""
        engine = self.host.engine
        assert set(engine._calls.by_key) == set(self.model.calls)
        assert set(engine._watcher._watched) == {task.saved.task_id for task in self.model.watched()}
        assert set(engine._requests._in_flight) == set(self.host.in_flight)
        unheard = [one for one in self.model.cancellations.values() if one.call is None]
        assert len(engine._cancellations) == len(unheard)
        timers = len(engine._timers._when)
        assert timers <= 4 * len(self.model.calls) + len(unheard) + len(self.host.in_flight) + 1

    # -- the end ---------------------------------------------------------------------------------------------

    def bring_to_an_end(self) -> None:
        """Nobody waits any more; nothing may be left."""
        for call in list(self.model.calls):
            self.abandon(call)
        for _ in range(2 * self.bounds.cancel_attempts):
            for request in list(self.host.in_flight):
                self.fail(request)
            self.wait(self.bounds.last_backoff_ms)
        assert not self.host.in_flight
        assert self.host.deadline is None, "nobody is woken for nothing"


def _line(told: Told) -> str:
    """Write down what a caller was told, whatever the order of members."""
    return f"{type(told).__name__} {json.dumps(asdict(told), sort_keys=True)}"


def _outcome(outcome: Outcome) -> ModelOutcome:
    match outcome:
        case Completed(result=result):
            return ModelOutcome(kind="completed", result=result)
        case Failed(code=code, data=data):
            return ModelOutcome(kind="failed", code=code, data=data)
        case Cancelled():
            return ModelOutcome(kind="cancelled")
        case Expired():
            return ModelOutcome(kind="expired")
        case ObservationLost():
            return ModelOutcome(kind="observation_lost")


def _read(reference: Mapping[str, Any]) -> SavedTask:
    """Read a reference as it stands in a file."""
    keys = reference["keys"]
    return SavedTask(
        task_id=reference["taskId"],
        tool=reference["tool"],
        capabilities={
            name: value for name, value in reference["capabilities"].items() if name != "extensions"
        },
        created_ms=reference["createdMs"],
        ttl_ms=reference["ttlMs"],
        hint_ms=reference["pollIntervalMs"],
        answers={key: entry.get("response") for key, entry in keys.items()},
        sent=frozenset(key for key, entry in keys.items() if entry["state"] == "sent"),
    )
