"""A caller, a server and a network that do anything, driven by numbers; and what must be true all the same.

:class:`RequesterHost` asserts what every host relies on; :class:`Adversary` adds what takes a longer memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import TimePassed
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    CancelWanted,
    HttpReply,
    KeepReference,
    NotificationReceived,
    RequesterEngine,
    RequesterInput,
    RequesterLimits,
    RequesterSettings,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    TaskReference,
    WaitAbandoned,
)
from mcp_tasks_proto.testing import RequesterHost
from mcp_tasks_proto.wire.jsonrpc import encode

START: Final = 1_700_000_000_000
LIFE: Final = 600_000
"""From the wish to the deadline of every call, in milliseconds."""

LIMITS: Final = RequesterLimits(
    calls=6,
    ledger_keys=5,
    input_rounds=4,
    tool_pages=3,
    cached_results=2,
    stream_tasks=2,
    cancel_attempts=3,
    poll_floor_ms=100,
    request_timeout_ms=5_000,
    call_timeout_ms=20_000,
    longest_call_ms=60_000,
    last_backoff_ms=8_000,
)

TASK_IDS: Final = ("one", "two", "three")
STATUSES: Final = (
    *("working", "input_required", "working", "completed", "input_required"),
    *("working", "failed", "input_required", "working", "cancelled", "asleep"),
)
HINTS: Final = (1_000, 5_000, 250, 0, -7, 1, 2**53, None, 60_000)
LIFETIMES: Final = (None, 60_000, 5_000, 1, 0, -3, 2**60)
CODES: Final = (-32603, -32602, -32601, -32022, -32021, -32020, -32003, -32000, 7)
HTTP: Final = (200, 202, 307, 400, 401, 404, 429, 500, 503)
KEYS: Final = ("a", "b", "c", "d", "e", "f", "g")
GARBAGE: Final[tuple[Any, ...]] = (
    None,
    [],
    {},
    "x",
    5,
    {"jsonrpc": "2.0"},
    {"jsonrpc": "2.0", "id": 1, "result": []},
)

FORM: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
}
QUESTIONS: Final[tuple[Any, ...]] = (
    FORM,
    FORM,
    {"method": "roots/list"},
    {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    {"method": "elicitation/create", "params": 5},
    {},
)
ANSWERS: Final[tuple[dict[str, Any], ...]] = (
    {"action": "accept", "content": {}},
    {"action": "decline"},
    {"roots": []},
)


def pick(options: Any, number: int) -> Any:
    """Return one of some options."""
    return options[number % len(options)]


@define(eq=False)
class Adversary:
    """Everybody around one engine."""

    host: RequesterHost
    facts: list[tuple[int, RequesterInput]] = field(factory=list)
    """All that the engine was told, and when."""
    steps: list[Any] = field(factory=list)
    """All that it said."""
    wakes: int = 0
    """How often time had to be told."""
    _time: int = START
    """The engine's time, which does not go back."""
    _polled: dict[str, int] = field(factory=dict)
    _hints: dict[str, int | None] = field(factory=dict)
    _lives: dict[Any, Any] = field(factory=dict)
    """The life of a task that a call is part of, by the first call that saw it."""
    _life_of: dict[str, Any] = field(factory=dict)
    """The life that a task id stands for at present."""
    _saved: dict[Any, Any] = field(factory=dict)
    """The newest reference of each life."""
    _updates: dict[int, dict[str, Any]] = field(factory=dict)
    _answered: dict[tuple[Any, str], Any] = field(factory=dict)
    _delivered: set[tuple[Any, str]] = field(factory=set)
    _calls: int = 0

    # -- telling ---------------------------------------------------------------------------------------

    def tell(self, fact: RequesterInput) -> None:
        """Hand a fact in, and check what comes of it."""
        self.facts.append((self.host.now, fact))
        self._time = max(self._time, self.host.now)
        if isinstance(fact, ResponseReceived) and fact.request in self.host.in_flight:
            self._note_acknowledgement(self._updates.get(fact.request), fact.message)
        effects = self.host.give(fact)
        self.steps.append((effects, self.host.deadline))
        for effect in effects:
            if isinstance(effect, SendRequest):
                self._check_request(effect)
            if isinstance(effect, KeepReference):
                saved = json.loads(json.dumps(effect.reference))
                assert TaskReference.from_json(saved).to_json() == effect.reference
                self._note_reference(effect)

    def _note_reference(self, keep: KeepReference) -> None:
        task_id = keep.reference["taskId"]
        self._hints[task_id] = keep.reference["pollIntervalMs"]
        if keep.call not in self._lives:
            self._lives[keep.call] = keep.call
            self._polled[task_id] = self._time
        self._life_of[task_id] = life = self._lives[keep.call]
        self._saved[life] = keep.reference

    def _note_acknowledgement(self, params: dict[str, Any] | None, message: Any) -> None:
        result = message.get("result") if isinstance(message, dict) else None
        if (
            params is not None
            and isinstance(result, dict)
            and result.get("resultType", "complete") == "complete"
        ):
            life = self._life_of[params["taskId"]]
            self._delivered |= {(life, key) for key in params["inputResponses"]}

    def _check_request(self, send: SendRequest) -> None:
        encode(send.message)
        method, params = send.message["method"], send.message["params"]
        if method == "tasks/get":
            self._check_poll(params["taskId"], send.request)
        elif method == "tasks/update":
            self._updates[send.request] = params
            for key, response in params["inputResponses"].items():
                name = (self._life_of[params["taskId"]], key)
                assert name not in self._delivered, "an answer that arrived is not sent again (REQ.4)"
                assert self._answered.setdefault(name, response) == response, "a key has one answer (REQ.4)"

    def _check_poll(self, task_id: str, request: int) -> None:
        """Polls keep to the hint in force, and there is one at a time (REQ.2)."""
        others = [
            number
            for number in self.host.waiting("tasks/get")
            if number != request and self.host.params_of(number)["taskId"] == task_id
        ]
        assert not others, "one poll of a task at a time"
        last, self._polled[task_id] = self._polled.get(task_id), self._time
        _, fact = self.facts[-1]
        if isinstance(fact, ResumeWanted):
            return
        if isinstance(fact, ResponseReceived):
            status = fact.message["result"]["status"]
            assert status in ("completed", "failed", "cancelled"), "the end that a handle tells of is fetched"
            return
        assert isinstance(fact, TimePassed)
        assert last is not None
        hint = self._hints[task_id]
        least = max(LIMITS.poll_floor_ms, LIMITS.poll_interval_ms if hint is None or hint <= 0 else hint)
        assert self._time - last >= least, f"{self._time - last} ms after the last, not {least}"

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, telling it whenever the engine wants to know."""
        until = self.host.now + milliseconds
        while self.host.deadline is not None and self.host.deadline <= until:
            self.host.now = max(self.host.now, self.host.deadline)
            self.wakes += 1
            self.tell(TimePassed())
        self.host.now = until

    def begin(self, tasks: int, *, asks: bool) -> None:
        """Start with some tasks under way, on a stream where there is one, and perhaps with a question."""
        for task_id in TASK_IDS[:tasks]:
            self.call_tool(0, 0)
            while self.host.waiting("tools/list"):
                self._reply_to("tools/list", {"tools": self._tools(1)})
            self._reply_to("tools/call", {"resultType": "task", **self._view(0, task_id, status="working")})
        self.pass_time(LIMITS.listen_delay_ms)
        for stream in self.host.waiting("subscriptions/listen"):
            agreed = {"notifications": {"taskIds": list(TASK_IDS)}}
            method = "notifications/subscriptions/acknowledged"
            self.tell(NotificationReceived(stream, {"jsonrpc": "2.0", "method": method, "params": agreed}))
        if asks:
            self.pass_time(HINTS[0])
            for task_id in TASK_IDS[:tasks]:
                self._reply_to("tasks/get", {**self._view(1, task_id, status="input_required")})

    def _reply_to(self, method: str, result: Any) -> None:
        request = self.host.number_of(method)
        message = {"jsonrpc": "2.0", "id": request, "result": result}
        self.tell(ResponseReceived(request=request, message=message))

    def _is_watched(self, task_id: str) -> bool:
        """Whether a call that is not over watches this task."""
        life = self._life_of[task_id]
        return any(of == life and call not in self.host.outcomes for call, of in self._lives.items())

    # -- moves: what anybody does, chosen by two numbers -----------------------------------------------

    def call_tool(self, one: int, two: int) -> None:
        """Somebody wants a tool called."""
        self._calls += 1
        arguments = {"x": pick(("eu", None, ["eu"], 2**60), two)}
        self.tell(
            CallWanted(
                call=self._calls,
                tool=pick(("render", "wrong"), one),
                arguments=arguments,
                deadline_ms=self.host.now + LIFE,
            )
        )

    def ask(self, one: int, two: int) -> None:
        """Somebody wants something else."""
        self._calls += 1
        method = pick(("tools/list", "server/discover", "resources/read", "prompts/get"), one)
        params = pick(({}, {"uri": "a:b"}, {"cursor": "c"}), two)
        self.tell(
            RequestWanted(call=self._calls, method=method, params=params, deadline_ms=self.host.now + LIFE)
        )

    def resume(self, one: int, two: int) -> None:
        """Somebody goes on with a task, or tries to."""
        self._calls += 1
        lives = [*self._saved, None]
        life = pick(lives, one)
        reference = json.loads(json.dumps(self._saved.get(life, {"schema": 1})))
        task_id = reference.get("taskId")
        if task_id is not None and not self._is_watched(task_id):
            self._lives[self._calls] = life
            self._life_of[task_id] = life
            self._hints[task_id] = reference["pollIntervalMs"]
        self.tell(ResumeWanted(call=self._calls, reference=reference, deadline_ms=self.host.now + LIFE))

    def cancel(self, one: int, two: int) -> None:
        """Somebody cancels."""
        self.tell(CancelWanted(one % (self._calls + 1), wait=bool(two % 2)))

    def abandon(self, one: int, two: int) -> None:
        """Somebody goes away."""
        self.tell(WaitAbandoned(one % (self._calls + 1)))

    def answer(self, one: int, two: int) -> None:
        """Somebody answers what is on show, or what is not."""
        if not self.host.on_show:
            self.tell(AnswerGiven(one % (self._calls + 1), pick(KEYS, two), {}))
            return
        (call, key), prompt = pick(list(self.host.on_show.items()), one)
        response = ANSWERS[2] if prompt.request["method"] == "roots/list" else pick(ANSWERS[:2], two)
        self.tell(AnswerGiven(call, key, response))

    def reply(self, one: int, two: int) -> None:
        """The server answers a request as it should."""
        self._answer(one, two, self._good_result)

    def misreply(self, one: int, two: int) -> None:
        """The server answers with any result."""
        self._answer(one, two, lambda method, params, number: self._any_result(number))

    def refuse(self, one: int, two: int) -> None:
        """The server answers with an error."""
        if self.host.in_flight:
            request = pick(list(self.host.in_flight), one)
            error = {
                "code": pick(CODES, two),
                "message": "no",
                "data": {"supported": [pick(("v1", "v2"), two // 9)], "requiredCapabilities": {}},
            }
            message = {"jsonrpc": "2.0", "id": request, "error": error}
            http = HttpReply(status=400, retry_after_ms=pick((None, 0, 3_000), two))
            self.tell(ResponseReceived(request=request, message=message, http=http))

    def misanswer(self, one: int, two: int) -> None:
        """The server answers with no message, or the network with something."""
        if self.host.in_flight:
            request = pick(list(self.host.in_flight), one)
            http = HttpReply(status=pick(HTTP, two), retry_after_ms=pick((None, -5, 9_000), two // 9))
            self.tell(ResponseReceived(request=request, message=pick(GARBAGE, two // 3), http=http))

    def break_connection(self, one: int, two: int) -> None:
        """A connection breaks, or there was none."""
        if self.host.in_flight:
            self.tell(RequestFailed(pick(list(self.host.in_flight), one), "reset", sent=bool(two % 2)))

    def notify(self, one: int, two: int) -> None:
        """The server sends a notification."""
        if self.host.in_flight:
            listening = self.host.waiting("subscriptions/listen") or list(self.host.in_flight)
            request = pick(listening, one)
            agreed = {"notifications": {"taskIds": pick((list(TASK_IDS), ["one"], [], None, [[]]), two)}}
            method, params = pick(
                (
                    ("notifications/tasks", self._view(two)),
                    ("notifications/subscriptions/acknowledged", agreed),
                    ("notifications/tasks", self._view(two // 2)),
                    ("notifications/progress", {}),
                    ("notifications/cancelled", {"requestId": request}),
                ),
                two // 3,
            )
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            self.tell(NotificationReceived(request, message))

    def speak_late(self, one: int, two: int) -> None:
        """The server speaks of a request that is over, or never was."""
        request = one + 1
        if request not in self.host.in_flight:
            message = {"jsonrpc": "2.0", "id": request, "result": self._any_result(two)}
            self.tell(ResponseReceived(request=request, message=message))
            self.tell(NotificationReceived(request, {"jsonrpc": "2.0", "method": "x", "params": {}}))
            self.tell(RequestFailed(request, "late"))

    def wait_a_little(self, one: int, two: int) -> None:
        """Time passes."""
        self.pass_time(one % 3_000)

    def wait(self, one: int, two: int) -> None:
        """More time passes."""
        self.pass_time((one % 60) * 1_000)

    def go_back_in_time(self, one: int, two: int) -> None:
        """The host's clock is set back."""
        self.host.now = max(START, self.host.now - one)
        self.tell(TimePassed()) if self.host.deadline is None else None

    # -- what a server says ----------------------------------------------------------------------------

    def _answer(self, one: int, two: int, result_of: Callable[[str, Any, int], Any]) -> None:
        if self.host.in_flight:
            request = pick(list(self.host.in_flight), one % 3)
            message = self.host.in_flight[request].message
            result = result_of(message["method"], message["params"], two)
            self.tell(
                ResponseReceived(request=request, message={"jsonrpc": "2.0", "id": request, "result": result})
            )

    def _good_result(self, method: str, params: Any, number: int) -> Any:
        match method:
            case "tools/call":
                kinds = [
                    {"resultType": "task", **self._view(number)},
                    self._questions(number),
                    {"content": []},
                ]
                return pick(kinds, number % 4)
            case "tasks/get":
                return {"resultType": "complete", **self._view(number, params["taskId"])}
            case "tools/list":
                return {"tools": self._tools(number), "nextCursor": pick((None, None, "c"), number)}
            case "server/discover":
                return {"supportedVersions": [pick(("v1", "v2"), number)], "ttlMs": pick(LIFETIMES, number)}
            case "resources/read" | "prompts/get":
                return pick([self._questions(number), {"contents": [], "ttlMs": 5_000}], number)
            case _:
                return {"resultType": "complete"}

    def _any_result(self, number: int) -> Any:
        results = [
            {},
            {"resultType": pick((5, None, [], {}, "partial"), number)},
            {"resultType": "task", **self._view(number)},
            self._questions(number),
            self._view(number),
            {"resultType": "task"},
            {"resultType": "input_required"},
            {"tools": pick(GARBAGE, number), "nextCursor": pick(("c", 5, {}), number)},
        ]
        return pick(results, number // 3)

    def _view(self, number: int, task_id: str | None = None, *, status: str | None = None) -> dict[str, Any]:
        wrong = status is None and number % 11 == 10
        status = pick(STATUSES, number) if status is None else status
        view = {
            "taskId": pick(TASK_IDS, number // 2) if task_id is None or wrong else task_id,
            "status": status,
            "createdAt": "2023-11-14T22:13:20.000Z",
            "lastUpdatedAt": f"2023-11-14T22:{number % 60:02}:00.000Z",
            "ttlMs": pick(LIFETIMES, number // 5),
            "pollIntervalMs": pick(HINTS, number // 7),
            "inputRequests": {
                key: pick(QUESTIONS, number + place)
                for place, key in enumerate(KEYS[number % 5 : number % 5 + number % 4])
            },
            "result": {"content": []},
            "error": {"code": -32603, "message": "no"},
        }
        kept = {"completed": "result", "failed": "error", "input_required": "inputRequests"}.get(status)
        payloads = {"result", "error", "inputRequests"} - ({kept} if number % 13 else set())
        return {
            name: value
            for name, value in view.items()
            if name not in payloads and (value is not None or name == "ttlMs")
        }

    def _questions(self, number: int) -> dict[str, Any]:
        requests = {key: pick(QUESTIONS[:3], number + place) for place, key in enumerate(KEYS[: number % 4])}
        state = pick(("opaque", None, 5), number // 4)
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": state}
        return {name: value for name, value in result.items() if value is not None}

    def _tools(self, number: int) -> list[Any]:
        properties = {"x": {"type": "string", "x-mcp-header": "X"}}
        right = {"name": "render", "inputSchema": {"type": "object", "properties": properties}}
        wrong = {"name": "wrong", "inputSchema": {"properties": {"y": {"x-mcp-header": ""}}}}
        return [right, wrong, None, {"name": "other"}][: number % 5]

    # -- the end ---------------------------------------------------------------------------------------

    def bring_to_an_end(self) -> None:
        """Break every connection until nothing is left; every call ends by its deadline."""
        for _ in range(2_000):
            for request in list(self.host.in_flight):
                if request in self.host.in_flight:
                    self.tell(RequestFailed(request, "over", sent=False))
            if self.host.deadline is None:
                break
            self.pass_time(max(self.host.deadline - self.host.now, 0))
        assert set(self.host.outcomes) == set(range(1, self._calls + 1)), "each call has an outcome"
        assert not self.host.in_flight
        assert not self.host.on_show
        assert self.host.deadline is None

    def replay(self, engine: RequesterEngine) -> list[Any]:
        """Tell another engine the same, and return what it says."""
        said = []
        for now, fact in self.facts:
            step = engine.handle(fact, now=now)
            said.append((list(step.effects), step.deadline))
        return said


Move = Callable[[Adversary, int, int], None]

MOVES: Final[tuple[Move, ...]] = (
    Adversary.call_tool,
    Adversary.call_tool,
    Adversary.ask,
    Adversary.resume,
    Adversary.cancel,
    Adversary.abandon,
    Adversary.answer,
    Adversary.answer,
    Adversary.reply,
    Adversary.reply,
    Adversary.reply,
    Adversary.reply,
    Adversary.reply,
    Adversary.misreply,
    Adversary.refuse,
    Adversary.misanswer,
    Adversary.break_connection,
    Adversary.notify,
    Adversary.notify,
    Adversary.notify,
    Adversary.speak_late,
    Adversary.wait_a_little,
    Adversary.wait_a_little,
    Adversary.wait,
    Adversary.wait,
    Adversary.go_back_in_time,
)
"""More of what brings a task further."""


def make_engine(*, listen: bool, mirror_arguments: bool, tasks: bool = True) -> RequesterEngine:
    """Return an engine with small limits."""
    return RequesterEngine(
        settings=RequesterSettings(
            name="test",
            version="1",
            endpoint="https://example.com/mcp",
            capabilities={"elicitation": {}, "roots": {}},
            tasks=tasks,
            listen=listen,
            mirror_arguments=mirror_arguments,
            versions=("v2", "v1"),
            limits=LIMITS,
        )
    )
