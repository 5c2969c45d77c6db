"""Who is around several nodes: tools that follow a plan wherever they run, and customers who ask any node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    CancelReason,
    DeliverInput,
    Effect,
    HmacSealer,
    Input,
    Limits,
    RejectReport,
    RequestCancel,
    ResumeWork,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    ToolDeclaration,
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.testing import Network
from tests.model.workshop import question

TERMINAL: Final = ("completed", "failed", "cancelled")
CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {}}
PATIENCE_MS: Final = 30_000
"""After which customers take a request for lost."""
LIMITS: Final = Limits(resumptions=10_000, cancel_grace_ms=20_000)


def make_engine(name: str, *, resumable: bool = True, limits: Limits = LIMITS) -> ServerEngine:
    """Return the engine of a process."""
    tool = ToolDeclaration(
        name="grind", definition={"name": "grind", "inputSchema": {"type": "object"}}, resumable=resumable
    )
    settings = ServerSettings(name="mill", version="1", sealer=HmacSealer([b"k" * 32]), limits=limits)
    return ServerEngine(settings=settings, tools=[tool], node=name)


def answer_to(key: str) -> dict[str, Any]:
    """Return the one answer that customers give to a key."""
    return {"action": "accept", "content": {"name": key}}


@define(eq=False, kw_only=True)
class _Run:
    """One run of a task's work."""

    task_id: str
    resumption: int
    at: int
    """The step under way."""
    open: set[str] = field(factory=set)
    """Names of the question under way that have no answer yet."""
    accepted: bool = False
    received: list[str] = field(factory=list)
    """Questions whose answers it has."""
    delivered: set[str] = field(factory=set)
    over: bool = False


@frozen(kw_only=True)
class Grinding:
    """What the work of every task does."""

    steps: tuple[tuple[int, str], ...] = ()
    """After how many milliseconds: ``"progress"``, ``"ask"``, ``"ask twice"`` or ``"checkpoint"``."""

    def names(self, at: int) -> list[str]:
        """Return the names of the questions of one step. They are the same at every step that asks."""
        return {"ask": ["q"], "ask twice": ["q", "r"]}.get(self.steps[at][1], [])

    def key(self, at: int, name: str) -> str:
        """Return the key that the question of this name at this step has, in every run (INP.1)."""
        before = sum(name in self.names(step) for step in range(at))
        return f"{name}.{before + 1}" if before else name

    def keys(self) -> set[str]:
        """Return the keys of all questions."""
        return {self.key(at, name) for at in range(len(self.steps)) for name in self.names(at)}


@define(eq=False)
class Mill:
    """The tools and workers of all nodes; each worker waits until what it reported is durable."""

    plan: Grinding
    starts: Counter[tuple[str, int]] = field(factory=Counter)
    """How often each run of each task was started."""
    runs: dict[tuple[str, str], _Run] = field(factory=dict)
    """The last run of a task at a node."""
    answers: dict[tuple[str, int], set[str]] = field(factory=dict)
    """The keys whose answers each run of each task has had."""
    _ids: count[int] = field(factory=lambda: count(1))

    def work(self, node: str, effect: Effect) -> Iterable[tuple[int, Input]]:
        """Carry out one effect of a node."""
        match effect:
            case StartTool(exchange=exchange):
                task_id = f"task-{next(self._ids):020}"
                return [(1, CallBecameTask(exchange=exchange, task_id=task_id, ttl_ms=None))]
            case StartWork(task_id=task_id):
                return self._start(node, _Run(task_id=task_id, resumption=0, at=0))
            case ResumeWork(task_id=task_id, resumption=resumption, checkpoint=checkpoint):
                return self._start(node, _Run(task_id=task_id, resumption=resumption, at=checkpoint or 0))
            case DeliverInput(task_id=task_id, answers=answers):
                run = self.runs[node, task_id]
                for answer in answers:
                    assert answer.key not in run.delivered, "an answer is delivered once (UPD.5)"
                    assert answer.response == answer_to(answer.key), "and it is the right one"
                    assert answer.ask == f"ask {run.at}"
                    assert answer.key == self.plan.key(run.at, answer.name)
                    run.delivered.add(answer.key)
                    run.open.discard(answer.name)
                return self._go_on(run)
            case AcceptReport(token=(_Run() as run, int() as at)) if not run.over and run.at == at:
                run.accepted = True
                return self._go_on(run)
            case RejectReport(token=(_Run() as run, int())):
                return self._stop(run)
            case RequestCancel(task_id=task_id, reason=reason):
                assert isinstance(reason, CancelReason)
                return self._stop(self.runs[node, task_id])
            case _:
                return []

    def _start(self, node: str, run: _Run) -> list[tuple[int, Input]]:
        self.starts[run.task_id, run.resumption] += 1
        self.runs[node, run.task_id] = run
        self.answers[run.task_id, run.resumption] = run.delivered
        return self._step(run)

    def _go_on(self, run: _Run) -> list[tuple[int, Input]]:
        """Take the next step once this one is durable and has its answers."""
        if run.over or run.open or not run.accepted:
            return []
        if self.plan.names(run.at):
            run.received.append(f"ask {run.at}")
        run.at += 1
        run.accepted = False
        return self._step(run)

    def _step(self, run: _Run) -> list[tuple[int, Input]]:
        facts: dict[str, Any] = {"task_id": run.task_id, "resumption": run.resumption}
        if run.at >= len(self.plan.steps):
            run.over = True
            result = {"content": [{"type": "text", "text": f"run {run.resumption}"}]}
            return [(50, WorkCompleted(token=None, result=result, **facts))]
        token = run, run.at
        delay_ms, kind = self.plan.steps[run.at]
        run.open = set(self.plan.names(run.at))
        match kind:
            case "progress":
                message = f"run {run.resumption} step {run.at}"
                return [(delay_ms, WorkProgressed(token=token, status_message=message, **facts))]
            case "checkpoint":
                received = tuple(run.received)
                return [
                    (delay_ms, WorkCheckpointed(token=token, value=run.at + 1, received=received, **facts))
                ]
            case _:
                requests = {name: question(self.plan.key(run.at, name)) for name in self.plan.names(run.at)}
                asked = WorkAskedInput(token=token, ask=f"ask {run.at}", requests=requests, **facts)
                return [(delay_ms, asked)]

    def _stop(self, run: _Run) -> list[tuple[int, Input]]:
        if run.over:
            return []
        run.over = True
        return [(20, WorkStopped(task_id=run.task_id, token=None, resumption=run.resumption))]


@define(eq=False, kw_only=True)
class Customer:
    """Makes one task, answers what it asks, and remembers what was acknowledged; each time elsewhere."""

    network: Network
    number: int
    cancels_after_ms: int | None = None
    task_id: str | None = None
    """Once the handle has arrived."""
    acknowledged: set[str] = field(factory=set)
    """Keys whose answers were."""
    wants_cancel: bool = False
    told_to_cancel: bool = False
    """Whether a wish to cancel was sent; it may have arrived without an acknowledgement."""
    view: dict[str, Any] | None = None
    """The last one."""
    seen: set[str] = field(factory=set)
    """Every key ever shown."""
    listens_at: str | None = None
    broken: bool = False
    """Whether the stream ended."""
    heard: list[dict[str, Any]] = field(factory=list)

    def begin(self) -> None:
        """Call the tool."""
        params = {"name": "grind", "arguments": {}}
        self._ask("tools/call", params, self._made)

    def _ask(
        self, method: str, params: dict[str, Any], answered: Callable[[dict[str, Any] | None], None]
    ) -> None:
        self.number += 1
        nodes = self.network.nodes
        if not nodes:  # all of them have just crashed
            self.network.later(100, partial(self._ask, method, params, answered))
            return
        node = nodes[self.number % len(nodes)]
        replies: list[dict[str, Any] | None] = []

        def answer(reply: dict[str, Any] | None) -> None:
            replies.append(reply)
            answered(reply)

        def lose_patience() -> None:
            if not replies:
                self.network.close(request)
                answered(None)

        request = self.network.ask(node, method, params, answer, capabilities=CAPABILITIES)
        self.network.later(PATIENCE_MS, lose_patience)

    def _made(self, reply: dict[str, Any] | None) -> None:
        if reply is None or "error" in reply:
            return  # nobody knows whether there is a task
        self.task_id = reply["result"]["taskId"]
        if self.cancels_after_ms is not None:
            self.network.later(self.cancels_after_ms, self._want_cancel)
        self._poll()
        if self.network.nodes:
            self.listens_at = self.network.nodes[-1]
            wanted = {"notifications": {"taskIds": [self.task_id]}}
            self.network.ask(
                self.listens_at,
                "subscriptions/listen",
                wanted,
                self._unheard,
                self._hear,
                capabilities=CAPABILITIES,
            )

    def _unheard(self, _: dict[str, Any] | None) -> None:
        self.broken = True

    def _hear(self, message: dict[str, Any]) -> None:
        self.heard.append(message)

    def _want_cancel(self) -> None:
        self.wants_cancel = True

    def _poll(self) -> None:
        self._ask("tasks/get", {"taskId": self.task_id}, self._polled)

    def _polled(self, reply: dict[str, Any] | None) -> None:
        again = partial(self.network.later, 700, self._poll)
        if reply is None or "error" in reply:
            assert reply is None or reply["error"]["code"] == -32603, "LIFE.4: it is never unknown"
            again()
            return
        view = reply["result"]
        if self.view is not None and self.view["status"] in TERMINAL:
            assert view == self.view, "LIFE.1: a terminal view never changes"
            return
        self.view = view
        asked = view.get("inputRequests", {})
        self.seen |= set(asked)
        if not self.told_to_cancel:  # after which no answer is taken any more
            assert not self.acknowledged & set(asked), "INP.1: what was answered is not asked again"
        if self.wants_cancel and view["status"] not in TERMINAL:
            self.told_to_cancel = True
            self._ask("tasks/cancel", {"taskId": self.task_id}, self._cancelled)
        elif asked and not self.told_to_cancel:
            key = sorted(asked)[self.number % len(asked)]
            params = {"taskId": self.task_id, "inputResponses": {key: answer_to(key)}}
            self._ask("tasks/update", params, partial(self._answered, key))
        else:
            again()

    def _answered(self, key: str, reply: dict[str, Any] | None) -> None:
        if reply is not None and "result" in reply:
            self.acknowledged.add(key)
        self.network.later(300, self._poll)

    def _cancelled(self, reply: dict[str, Any] | None) -> None:
        if reply is not None and "result" in reply:
            self.wants_cancel = False
        self.network.later(300, self._poll)
