"""A requester toward a server of 2025-11-25, and the reference model that every step is compared with.

The server is played by hand, and may say what it likes in any order. A step that breaks a rule raises
``AssertionError``, which names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import TimePassed
from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    HttpReply,
    Outcome,
    Prompt,
    RequesterLimits,
    Settle,
    WithdrawPrompt,
)
from mcp_tasks_proto.testing.model import (
    LegacyRequesterModel,
    ModelOutcome,
    PeerAnswer,
    PutQuestion,
    difference,
    is_no_end,
    legacy_outcome,
)
from tests.unit.legacy_requester_world import (
    CAPABILITIES,
    RELATED,
    LegacyHost,
    legacy_task,
    make_dual,
    named,
    tools,
)

__all__ = ["World", "form", "sampling"]

ANSWERABLE: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}}
LIMITS: Final = RequesterLimits(
    received_ttl_ms=50_021, last_backoff_ms=4_000, request_timeout_ms=5_003, call_timeout_ms=45_007
)
HINT_MS: Final = 1_000
TTL_MS: Final = 60_000
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
BROKE: Final[dict[str, Any]] = {"code": -32050, "message": "broke", "data": {"at": 3}}
GONE: Final[dict[str, Any]] = {"code": -32602, "message": "no such task"}
PAYLOADS: Final[Mapping[str, dict[str, Any]]] = {
    "done": {"result": {**DONE, "_meta": {RELATED: {"taskId": "any"}}}},
    "empty": {"result": {}},
    "broke": {"error": BROKE},
}
TASKS: Final = {"render": "optional", "draw": "required", "greet": None}


def form(message: str) -> dict[str, Any]:
    """Return the params of a request for a form that no other has."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def sampling(message: str) -> dict[str, Any]:
    """Return the params of a request for a model's words."""
    return {
        "messages": [{"role": "user", "content": {"type": "text", "text": message}}],
        "maxTokens": 10,
    }


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what somebody here answers."""
    if request["method"] == "elicitation/create":
        return {"action": "accept", "content": {"name": request["params"]["message"]}}
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}


@define(eq=False)
class Followed:
    """A task of the server's, as it was told of here."""

    call: Hashable
    last_poll_ms: int | None
    """``None``: it was resumed, and the first poll goes out at once."""
    created_ms: int
    statuses: set[str] = field(factory=set)
    """Terminal ones that polls told."""
    payloads: list[dict[str, Any]] = field(factory=list)
    """What ``tasks/result`` was answered with."""
    waits: bool = False
    """Whether it was ever said to wait, or to have ended: only then there is something to be had."""
    unknown: bool = False
    confirmed: list[PutQuestion] = field(factory=list)
    """The questions that came before it was last seen to wait."""
    cancelled: bool = False
    reference: Any = None
    """What it was resumed from."""


@define(eq=False, kw_only=True)
class World:
    """Plays the server and the caller, and compares."""

    http: bool = False
    host: LegacyHost = field(init=False)
    model: LegacyRequesterModel = field(init=False)
    tasks: dict[str, Followed] = field(init=False, factory=dict)
    plain: set[Hashable] = field(init=False, factory=set)
    """Calls that are under way and have not become tasks."""
    silent_since: dict[Hashable, int] = field(init=False, factory=dict)
    """Since when only the server is waited for, by call."""
    _with_people: set[Hashable] = field(init=False, factory=set)
    """Calls that had a question on show when last seen."""
    outer: dict[int, Hashable] = field(init=False, factory=dict)
    """Calls by the request that the server has."""
    ends: dict[Hashable, ModelOutcome] = field(init=False, factory=dict)
    """How calls must end that the server has answered."""
    shown: dict[tuple[Hashable, str], PutQuestion] = field(init=False, factory=dict)
    owed: dict[tuple[type, Any], PeerAnswer] = field(init=False, factory=dict)
    """Responses that must be sent, by the type of the id and the id."""
    _answered_ids: set[tuple[type, Any]] = field(init=False, factory=set)
    _numbers: count[int] = field(init=False, factory=lambda: count(1))
    _seen: int = field(init=False, default=0)
    _refusals: int = field(init=False, default=0)
    """Refused cancellations of which it is still to be found out whether there is such a task."""
    _looks: set[int] = field(init=False, factory=set)
    """The requests that find it out."""

    def __attrs_post_init__(self) -> None:
        self._begin(None)

    def _begin(self, now: int | None) -> None:
        self.host = make_dual(
            era="legacy", http=self.http, capabilities=ANSWERABLE, limits=LIMITS, listen=False
        )
        self.host.now = self.host.now if now is None else now
        self.model = LegacyRequesterModel(capabilities=ANSWERABLE, received_ttl_ms=LIMITS.received_ttl_ms)
        self._seen = 0

    def greet(self) -> None:
        """Open the session, where one is wanted."""
        while self.host.waiting("initialize"):
            self.host.greet(CAPABILITIES, session="s-1" if self.http else None)
        if self.host.waiting("tools/list"):
            self.host.reply("tools/list", tools(**TASKS))
        self._look()

    # -- the caller ------------------------------------------------------------------------------------------

    def call(self, tool: str) -> None:
        """Call a tool."""
        before = set(self.host.waiting("tools/call"))
        call = self.host.call(tool)
        self.plain.add(call)
        self.silent_since[call] = self.host.now
        self.greet()
        (request,) = set(self.host.waiting("tools/call")) - before
        self.outer[request] = call
        params = (self.host.legacy(request).message or {})["params"]
        assert ("task" in params) == (TASKS[tool] is not None), (
            "LEG.3: a task is asked for where there is one"
        )

    def answer(self, call: Hashable, key: str) -> None:
        """Answer a prompt."""
        put = self.shown.pop((call, key))
        told = [] if put.moot else self.model.answered(put, answer_to(put.request))
        put.answer = response = answer_to(put.request)
        self._owe(told)
        self._do(lambda: self.host.answer(call, key, response))

    def cancel(self, call: Hashable, *, wait: bool) -> None:
        """Cancel a call."""
        for task in self.tasks.values():
            task.cancelled |= task.call == call
        if call in self.plain or not wait:
            self.ends.setdefault(call, ModelOutcome(kind="cancelled"))
            self._leave(call)
        self._do(lambda: self.host.cancel(call, wait=wait))

    def abandon(self, call: Hashable) -> None:
        """Stop watching."""
        self.ends[call] = ModelOutcome(kind="observation_lost")
        self._leave(call)
        self._do(lambda: self.host.abandon(call))

    def restart(self) -> None:
        """The process ends; the next one goes on with the tasks of which something was saved."""
        saved = {
            task_id: json.loads(json.dumps(self.host.references.get(task.call, task.reference)))
            for task_id, task in self.tasks.items()
            if task.call not in self.host.outcomes
        }
        before = {task_id: self._known(task_id) for task_id in saved}
        self._begin(self.host.now)
        self.plain.clear()
        self.outer.clear()
        self.shown.clear()
        self.owed.clear()
        self.ends.clear()
        self.tasks.clear()
        self.silent_since.clear()
        self._with_people.clear()
        self._answered_ids.clear()
        self._asked_by.clear()
        self._looks.clear()
        self._refusals = 0
        for task_id, reference in saved.items():
            call = self.host.resume(reference)
            self.tasks[task_id] = Followed(call, None, reference["createdMs"], reference=reference)
            self.model.questions += before[task_id]
        self.greet()

    def _known(self, task_id: str) -> list[PutQuestion]:
        """Return the questions that another process has answered: they are not shown again (REQ.4)."""
        known = [put for put in self.model.questions if put.task_id == task_id and put.answer is not None]
        for put in known:
            put.lost, put.moot = False, True
        return known

    # -- the server's answers --------------------------------------------------------------------------------

    def hand_out(self, request: int) -> None:
        """A call becomes a task: what was asked before that is moot."""
        call = self.outer.pop(request)
        self._leave(call)
        task_id = f"task-{next(self._numbers)}"
        self.plain.discard(call)
        self.tasks[task_id] = Followed(call, self.host.now, self.host.now)
        self._do(lambda: self.host.reply(request, {"task": legacy_task(task_id=task_id)}))

    def finish(self, request: int, payload: str) -> None:
        """A call is answered, plainly (trap 22)."""
        call, told = self.outer.pop(request), PAYLOADS[payload]
        outcome = legacy_outcome("completed", told.get("result"), told.get("error"))
        if outcome.result is not None:
            whole = {**told["result"], "resultType": "complete"}
            outcome = ModelOutcome(kind="completed", result=whole)
        self._end_call(call, outcome)
        self._do(lambda: self._answer(request, told))

    def lose_call(self, request: int) -> None:
        """A call is lost."""
        self._end_call(self.outer.pop(request), ModelOutcome(kind="observation_lost"))
        self._do(lambda: self.host.fail(request))

    def _end_call(self, call: Hashable, outcome: ModelOutcome) -> None:
        self.ends[call] = outcome
        self._leave(call)

    def tell(self, request: int, status: str) -> None:
        """``tasks/get`` is answered."""
        task_id = (self.host.legacy(request).message or {})["params"]["taskId"]
        task = self.tasks.get(task_id)
        if task is not None and request not in self._looks:
            task.waits |= status != "working"
            if status in ("completed", "failed", "cancelled"):
                task.statuses.add(status)
            else:
                self._settle_questions(task_id, task, status)
        self._do(lambda: self.host.reply(request, legacy_task(status, task_id=task_id)))

    def _settle_questions(self, task_id: str, task: Followed, status: str) -> None:
        """A task that works again is done with what it had asked when it was last seen to wait.

        If the same is asked after that, it is another question: who said yes has not said yes to that one.
        """
        own = [put for put in self.model.questions if put.task_id == task_id]
        if status == "working":
            for put in task.confirmed:
                put.moot = True
        task.confirmed = own

    def result(self, request: int, payload: str) -> None:
        """``tasks/result`` is answered."""
        task_id, told = (self.host.legacy(request).message or {})["params"]["taskId"], PAYLOADS[payload]
        if task_id in self.tasks:
            self.tasks[task_id].payloads.append(told)
        self._do(lambda: self._answer(request, told))

    def refuse(self, request: int, error: Mapping[str, Any], *, http_status: int = 200) -> None:
        """A request about a task is answered with an error."""
        sent = self.host.legacy(request)
        task = self.tasks.get((sent.message or {})["params"]["taskId"])
        if named(sent) == "tasks/cancel":
            self._refusals += error["code"] == -32602
        elif task is not None and named(sent) == "tasks/result":
            task.payloads.append({"error": error, "http_status": http_status})
        elif task is not None and request not in self._looks:
            task.unknown |= error["code"] == -32602
        self._do(lambda: self._answer(request, {"error": error}, http_status=http_status))

    def lose(self, request: int) -> None:
        """A request about a task is lost, and with it what was asked on its stream."""
        sent = self.host.legacy(request)
        if named(sent) == "tasks/result":
            task_id = (sent.message or {})["params"]["taskId"]
            followed = self.host.engine._legacy._tasks._tasks.get(task_id)
            for put in self.model.questions if followed is not None and followed.result == request else ():
                put.lost |= put.task_id == task_id
        self._do(lambda: self.host.fail(request))

    def _answer(self, request: int, told: Mapping[str, Any], *, http_status: int = 200) -> None:
        if "error" in told:
            error, http = told["error"], HttpReply(status=http_status) if self.http else None
            self.host.refuse(request, error["code"], error["message"], data=error.get("data"), http=http)
        else:
            self.host.reply(request, told["result"])

    # -- what the server asks --------------------------------------------------------------------------------

    def ask(
        self,
        message_id: Any,
        method: str,
        params: Mapping[str, Any],
        *,
        task_id: str | None = None,
        on: int = 0,
    ) -> None:
        """The server asks something."""
        whole = dict(params) if task_id is None else {**params, "_meta": {RELATED: {"taskId": task_id}}}
        under_way = bool(self.outer) or task_id in self.tasks
        if task_id not in self.tasks:
            task_id = None
        new_id = f"received-{next(self._numbers)}"
        parked = self._parked(task_id)
        before = len(self.model.questions)
        self._owe(
            self.model.asked(message_id, method, whole, new_id=new_id, now=self.host.now, under_way=under_way)
        )
        for put in self.model.questions[before:]:
            put.task_id = task_id
            if task_id is None:
                self._asked_by[message_id] = self.outer.get(on) or next(iter(self.outer.values()))
            if parked and task_id is not None:
                self.tasks[task_id].confirmed.append(put)
        self._do(lambda: self.host.ask_client(method, whole, message_id=message_id, on=on, new_id=new_id))

    def _parked(self, task_id: str | None) -> bool:
        followed = self.host.engine._legacy._tasks._tasks.get(task_id)
        return followed is not None and bool(followed.parked)

    def withdraw(self, put: PutQuestion) -> None:
        """The server no longer waits for an answer."""
        self.model.withdrawn(put.ids[-1])
        self._do(lambda: self.host.say("notifications/cancelled", {"requestId": put.ids[-1]}))

    def say(self, fact: ServerAsked) -> None:
        """The server says something that is no request."""
        self._do(lambda: self.host.give_dual(fact))

    # -- time ------------------------------------------------------------------------------------------------

    def wait(self, milliseconds: int) -> None:
        """Let time pass, with all deadlines on the way."""
        until = self.host.now + milliseconds
        while self.host.deadline is not None and self.host.deadline <= until:
            self.host.now = max(self.host.now, self.host.deadline)
            self._do(lambda: self.host.give(TimePassed()))
        self.host.now = until
        self._check_rest()

    def set_back(self, milliseconds: int) -> None:
        """Tell the time by a clock that was set back, for a moment."""
        self.host.now -= milliseconds
        self._do(lambda: self.host.give(TimePassed()) if self.host.deadline is None else None)
        self.host.now += milliseconds

    # -- comparing -------------------------------------------------------------------------------------------

    def _owe(self, told: list[tuple[Any, PeerAnswer]]) -> None:
        for message_id, answer in told:
            self.owed[type(message_id), message_id] = answer

    def _leave(self, call: Hashable) -> None:
        """A call is over: nobody answers its questions any more."""
        for put in self.model.questions:
            if self._caller_of(put) == call:
                self._owe(self.model.over(put))

    def _caller_of(self, put: PutQuestion) -> Hashable:
        if put.task_id is not None:
            return self.tasks[put.task_id].call if put.task_id in self.tasks else None
        return self._asked_by.get(put.ids[0])

    _asked_by: dict[Any, Hashable] = field(init=False, factory=dict)
    """Calls by the questions that are asked on the way to their answers."""

    def _do(self, act: Callable[[], Any]) -> None:
        self._owe(self.model.passed(self.host.now))
        act()
        self.host.take_all()
        self._look()

    def _look(self) -> None:
        """See to everything that the engine said: to responses last, since a call's end owes some."""
        effects: list[Any] = self.host.effects[self._seen :]
        self._seen += len(effects)
        responses = []
        for effect in effects:
            match effect:
                case SendLegacy(message=dict() as message) if "method" in message:
                    self._sent(message)
                case SendLegacy(message=dict() as message):
                    responses.append(message)
                case Prompt():
                    self._shown(effect)
                case WithdrawPrompt(call=call, key=key):
                    del self.shown[call, key]
                case Settle(call=call, outcome=outcome):
                    self._settled(call, outcome)
        for message in responses:
            self._responded(message)
        self._note_silence()
        self._check_rest()

    def _note_silence(self) -> None:
        """A person's time is not the server's silence."""
        with_people = {call for call, _ in self.shown}
        for call in self.plain & (with_people | self._with_people):
            self.silent_since[call] = max(self.host.now, self.silent_since[call])
        self._with_people = with_people

    def _is_overdue(self, call: Hashable) -> bool:
        """Whether the server has had all its time to answer a call that has not become a task."""
        silent_ms = self.host.now - self.silent_since[call]
        return call not in self._with_people and silent_ms >= LIMITS.call_timeout_ms

    def _sent(self, message: Mapping[str, Any]) -> None:
        params = message.get("params", {})
        task = self.tasks.get(params.get("taskId"))
        match message["method"]:
            case "tasks/get" if self._refusals:
                self._refusals -= 1
                self._looks.add(message["id"])
            case "tasks/get":
                assert task is not None, "REQ.7: only of a task that somebody follows"
                assert self._open("tasks/get", params["taskId"]) <= 1, "REQ.2: one poll at a time"
                if task.last_poll_ms is not None:
                    early_ms = HINT_MS - (self.host.now - task.last_poll_ms)
                    assert early_ms <= 0, f"REQ.2: {early_ms} ms too early"
                task.last_poll_ms = self.host.now
            case "tasks/result":
                assert task is not None
                assert task.waits, "LEG.4: asked for while the task works"
                assert self._open("tasks/result", params["taskId"]) <= 1, "trap 24"
            case "tasks/cancel":
                assert task is None or task.cancelled, "REQ.7: only what somebody has cancelled"

    def _open(self, method: str, task_id: str) -> int:
        polls = set(self.host.waiting(method)) - self._looks
        flights = [self.host.legacy(number).message or {} for number in polls]
        return sum(flight["params"]["taskId"] == task_id for flight in flights)

    def _responded(self, message: Mapping[str, Any]) -> None:
        place = type(message["id"]), message["id"]
        assert place not in self._answered_ids, "each request of the server's is answered once"
        self._answered_ids.add(place)
        assert place in self.owed, f"LEG.8: nobody has answered {message}"
        problem = difference(self.owed.pop(place), message)
        assert problem is None, problem

    def _shown(self, prompt: Prompt) -> None:
        waiting = [put for put in self.model.questions if put.request == prompt.request and put.waits]
        assert waiting, f"REQ.4: nobody asks {prompt.request}"
        put = waiting[0]
        assert put not in self.shown.values(), "REQ.4: a question is shown once"
        assert self._caller_of(put) == prompt.call
        self.shown[prompt.call, prompt.key] = put

    def _settled(self, call: Hashable, outcome: Outcome) -> None:
        told = _outcome(outcome)
        if call in self.plain and call not in self.ends and self._is_overdue(call):
            self.ends[call] = ModelOutcome(kind="observation_lost")
        self.plain.discard(call)
        self.outer = {request: one for request, one in self.outer.items() if one != call}
        task_id = next((name for name, task in self.tasks.items() if task.call == call), None)
        if call in self.ends:
            assert told == self.ends[call], (told, self.ends[call])
        else:
            assert task_id is not None, f"REQ.1: {told} without an answer"
            assert told in self._possible(self.tasks[task_id]), f"LEG.4: {told}"
        self._leave(call)
        if task_id is not None:
            del self.tasks[task_id]

    def _possible(self, task: Followed) -> list[ModelOutcome]:
        """Return how a task may have ended, after what was told of it."""
        ended = [
            legacy_outcome(status, told.get("result"), told.get("error"))
            for status in task.statuses - {"cancelled"}
            for told in task.payloads
            if not self._is_asked_again(task, status, told)
        ]
        ended += [ModelOutcome(kind="cancelled")] * ("cancelled" in task.statuses)
        unheard = self.host.now >= task.created_ms + TTL_MS  # REQ.5: perhaps with news since
        return ended + [ModelOutcome(kind="expired")] * (task.unknown or unheard)

    def _is_asked_again(self, task: Followed, status: str, told: Mapping[str, Any]) -> bool:
        """Whether an answer to ``tasks/result`` says nothing yet of a task with this status (REQ.3)."""
        no_ends = sum(_is_no_end(status, one) for one in task.payloads)
        return _is_no_end(status, told) and no_ends < LIMITS.result_attempts

    # -- at rest ---------------------------------------------------------------------------------------------

    def _check_rest(self) -> None:
        """What must be so after each step."""
        assert not self.owed, f"each request of the server's is answered: {self.owed}"
        assert not any(map(self._is_overdue, self.plain)), "REQ.6: who does not answer is not waited for"
        for call, outcome in self.ends.items():
            assert call in self.host.outcomes, f"REQ.6: {outcome} is told"
        assert set(self.host.on_show) == set(self.shown)
        for put in self.shown.values():
            next_view = put.task_id is not None  # takes what is moot off the screen
            assert put.waits or next_view, "REQ.4: what is on show is waited for"
        for task_id, task in self.tasks.items():
            for put in task.confirmed:
                on_show = put in self.shown.values()
                assert on_show or not put.waits or task.cancelled or self._parked(task_id), "LEG.8: shown"
        self._check_bounds()

    def _check_bounds(self) -> None:
        """LIM.3: the requester holds what is under way, and no more."""
        legacy: Any = self.host.engine._legacy
        assert set(legacy._tasks._tasks) == set(self.tasks)
        assert len(legacy._calls) <= len(self.outer) + len(self.plain)
        assert set(legacy._receiver._tasks) == set(self.model.received)

    def bring_to_an_end(self) -> None:
        """Nobody waits any more; nothing may be left."""
        for call in [*self.plain, *(task.call for task in self.tasks.values())]:
            self.abandon(call)
        self.wait(2 * LIMITS.received_ttl_ms)
        for request in [*self.host.waiting("tasks/cancel"), *self.host.waiting("tasks/get")]:
            self.lose(request)
        self.wait(2 * LIMITS.received_ttl_ms)
        assert set(map(named, self.host.in_flight.values())) <= {"GET", "tasks/cancel", "tasks/get"}
        assert not self.host.on_show


def _is_no_end(status: str, told: Mapping[str, Any]) -> bool:
    http_status = told.get("http_status", 200)
    return "error" in told and is_no_end(status, told["error"], http_status=http_status)


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
    return ModelOutcome(kind="observation_lost")
