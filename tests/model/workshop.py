"""Both sides of a pair to test with: a server whose tool follows a plan, and somebody who answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto import (
    CallBecameTask,
    CallReturned,
    DeliverInput,
    Effect,
    ErrorObject,
    HmacSealer,
    Input,
    Limits,
    RequestCancel,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    StopCall,
    TaskSupport,
    TimePassed,
    ToolDeclaration,
    WorkAskedInput,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Prompt,
    RequesterEngine,
    RequesterLimits,
    RequesterSettings,
)
from mcp_tasks_proto.testing import Pair, Passage, RequesterHost, ServerHost

START: Final = 1_700_000_000_000
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
ERRED: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "out of colour"}], "isError": True}
BROKE: Final = ErrorObject(-32001, "broke", {"at": 3})
ANSWER: Final[dict[str, Any]] = {"action": "accept", "content": {"name": "Ada"}}
FORM: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {
        "message": "Your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


def question(message: str) -> dict[str, Any]:
    """Return a question that says this."""
    return {**FORM, "params": {**FORM["params"], "message": message}}


@frozen(kw_only=True)
class Plan:
    """What the worker of a task does: so many steps, each after a while, and then an end."""

    steps: tuple[tuple[int, str], ...] = ()
    """Milliseconds, and ``"progress"``, ``"ask"`` or ``"ask twice"``, which waits for the answers."""
    last_ms: int = 1_000
    """From the last step to the end."""
    end: str = "complete"
    """``"complete"``, ``"err"`` (as a tool errs), ``"fail"``, ``"stop"``, or ``"never"`` unless told to."""
    obeys: bool = True
    """Whether it stops when it is told to; otherwise it goes on."""
    poll_interval_ms: int = 1_000
    ttl_ms: int | None = None


@define(eq=False)
class Workshop:
    """Runs one plan for each task, and notes what the workers were told."""

    plan: Plan
    answers: dict[str, dict[str, Any]] = field(factory=dict)
    """Of each task, what was delivered under which key; a second time is an error."""
    told: dict[str, int] = field(factory=dict)
    """How often the worker of each task was told to stop."""
    _ids: count[int] = field(factory=lambda: count(1))
    _left: dict[str, Iterator[tuple[int, Input]]] = field(factory=dict)
    _waiting: dict[str, int] = field(factory=dict)

    def work(self, effect: Effect) -> Iterable[tuple[int, Input]]:
        """Carry out one effect."""
        match effect:
            case StartTool(exchange=exchange, can_create_task=True):
                task_id = f"task-{next(self._ids):020}"
                became = CallBecameTask(
                    exchange=exchange,
                    task_id=task_id,
                    ttl_ms=self.plan.ttl_ms,
                    poll_interval_ms=self.plan.poll_interval_ms,
                )
                return [(10, became)]
            case StartTool(exchange=exchange):
                return [(10, CallReturned(exchange, DONE))]
            case StartWork(task_id=task_id):
                self.answers[task_id] = {}
                self._left[task_id] = self._steps(task_id)
                return self._go_on(task_id)
            case DeliverInput(task_id=task_id, answers=answers):
                for answer in answers:
                    assert answer.key not in self.answers[task_id], "an answer is delivered once (UPD.5)"
                    self.answers[task_id][answer.key] = answer.response
                self._waiting[task_id] -= len(answers)
                return [] if self._waiting[task_id] else self._go_on(task_id)
            case RequestCancel(task_id=task_id):
                self.told[task_id] = self.told.get(task_id, 0) + 1
                return [(20, WorkStopped(task_id=task_id, token=None))] if self.plan.obeys else []
            case StopCall():
                return []
            case _:
                return []

    def _go_on(self, task_id: str) -> list[tuple[int, Input]]:
        """Return what comes next, up to a question."""
        after, facts = 0, []
        for delay_ms, fact in self._left[task_id]:
            after += delay_ms
            facts.append((after, fact))
            if isinstance(fact, WorkAskedInput):
                self._waiting[task_id] = len(fact.requests)
                break
        return facts

    def _steps(self, task_id: str) -> Iterator[tuple[int, Input]]:
        for number, (delay_ms, kind) in enumerate(self.plan.steps):
            if kind == "progress":
                message = f"step {number}"
                yield delay_ms, WorkProgressed(task_id=task_id, token=None, status_message=message)
            else:
                names = ("a", "b") if kind == "ask twice" else ("a",)
                requests = {name: question(f"{number}{name}?") for name in names}
                yield (
                    delay_ms,
                    WorkAskedInput(task_id=task_id, token=None, ask=f"ask {number}", requests=requests),
                )
        ends: dict[str, Input] = {
            "complete": WorkCompleted(task_id=task_id, token=None, result=DONE),
            "err": WorkCompleted(task_id=task_id, token=None, result=ERRED),
            "fail": WorkFailed(task_id=task_id, token=None, error=BROKE),
            "stop": WorkStopped(task_id=task_id, token=None),
        }
        if self.plan.end in ends:
            yield self.plan.last_ms, ends[self.plan.end]

    @property
    def questions(self) -> int:
        """How many questions the plan asks in all."""
        return sum({"ask": 1, "ask twice": 2}.get(kind, 0) for _, kind in self.plan.steps)


def make_requester(*, listen: bool = True, limits: RequesterLimits | None = None) -> RequesterHost:
    """Return a requester that can be asked forms."""
    return RequesterHost(
        engine=RequesterEngine(
            settings=RequesterSettings(
                name="test",
                version="1",
                endpoint="https://example.com/mcp",
                capabilities={"elicitation": {}},
                listen=listen,
                limits=limits or RequesterLimits(),
            )
        )
    )


def make_pair(
    workshop: Workshop,
    *,
    passages: Iterable[Passage] = (),
    listen: bool = True,
    answer_ms: int | None = 500,
    limits: RequesterLimits | None = None,
    skew_ms: int = 0,
) -> Pair:
    """Return a requester and a server on one network; questions are answered after a while."""
    server = ServerEngine(
        settings=ServerSettings(
            name="test", version="1", sealer=HmacSealer([b"k" * 32]), limits=Limits(cancel_grace_ms=60_000)
        ),
        tools=[
            ToolDeclaration(
                name="render",
                definition={"name": "render", "inputSchema": {"type": "object"}},
                task=TaskSupport.OPTIONAL,
            )
        ],
    )

    def answer(_: Prompt) -> tuple[int, dict[str, Any]] | None:
        return None if answer_ms is None else (answer_ms, ANSWER)

    pair = Pair(
        requester=make_requester(listen=listen, limits=limits),
        server=ServerHost(engine=server),
        work=workshop.work,
        answer=answer,
        passages=passages,
        now=START,
        skew_ms=skew_ms,
    )
    pair.tell_server(TimePassed())
    return pair


def restart(pair: Pair, reference: dict[str, Any], *, listen: bool = True) -> int:
    """End the requester's process, go on with the task in another, and return the call there."""
    pair.crash(make_requester(listen=listen))
    return pair.resume(json.loads(json.dumps(reference)))


def outcome(pair: Pair, key: int) -> Outcome:
    """Return how a call ended, which it must have."""
    return pair.requester.outcomes[key]


def fits(end: str, found: Outcome) -> bool:
    """Whether an outcome is the one that such an end has."""
    match end:
        case "complete":
            return isinstance(found, Completed) and found.result["content"] == DONE["content"]
        case "err":
            return isinstance(found, Completed) and ERRED.items() <= found.result.items()
        case "fail":
            return isinstance(found, Failed) and (found.code, found.data) == (BROKE.code, BROKE.data)
        case _:
            return isinstance(found, Cancelled)
