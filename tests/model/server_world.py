"""One server engine, its store and its workers, and the reference model that every step is compared with.

Nothing is carried out by itself: what the engine asks of the store waits until :meth:`World.serve` comes to
it, so operations overtake each other, meet conflicts, and end in a crash between a decision and its save.
What counts is the store: an operation is told to the model at the moment its save is carried out (or, when it
saves nothing, at the moment it is decided), and from then on the model knows what its answer must be. A step
that breaks an invariant raises ``AssertionError``, which names it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto import (
    AcceptReport,
    CallBecameTask,
    CancelReason,
    Delete,
    DeliverInput,
    Effect,
    ErrorObject,
    ExchangeClosed,
    HmacSealer,
    Input,
    Limits,
    Load,
    MessageReceived,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Save,
    SaveConflict,
    Saved,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    StopCall,
    StoreEffect,
    TaskEnded,
    TaskRecord,
    TimePassed,
    ToolDeclaration,
    TtlChanged,
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkFailed,
    WorkLost,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.server.operations import ElapseGrace, LoseWork
from mcp_tasks_proto.testing import DictStore, request
from mcp_tasks_proto.testing.model import (
    ErrorAnswer,
    ModelCaller,
    ModelTask,
    PeerAnswer,
    ReportAnswer,
    ServerModel,
    difference,
)
from mcp_tasks_proto.wire.schema import task_view

__all__ = ["CALLERS", "FORM", "GRACE_MS", "ROOTS", "World", "task_id"]

START: Final = 1_700_000_000_000
GRACE_MS: Final = 10_000
STORE_RETRY_MS: Final = 30_000
"""How long a store that has not answered is left alone, at most."""
POLL_MS: Final = 1_000
LIMITS: Final = Limits(
    cancel_grace_ms=GRACE_MS, input_keys=6, resumptions=2, poll_interval_ms=POLL_MS, save_attempts=1_000
)
"""``save_attempts``: more than one task has changes at the same time, for the model does not count them."""
CALLERS: Final = ("ada", "bob")
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
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
STORE_DOWN: Final = ErrorAnswer(code=-32603, data={"reason": "store_unavailable"})
SETTINGS: Final = ServerSettings(name="world", version="1", sealer=HmacSealer([b"k" * 32]), limits=LIMITS)
TOOLS: Final = tuple(
    ToolDeclaration(
        name=name, definition={"name": name, "inputSchema": {"type": "object"}}, resumable=name == "steady"
    )
    for name in ("steady", "frail")
)


def task_id(number: int) -> str:
    """Return the id of one of the tasks."""
    return f"task-{number:020}"


def answer_to(key: str) -> dict[str, Any]:
    """Return what everybody answers under a key."""
    return {"action": "accept", "content": {"it": key}}


@define(eq=False)
class Act:
    """What somebody wants of a task, from its message or report until it is answered."""

    name: tuple[Any, ...]
    task_id: str
    apply: Callable[[ServerModel, int], Any]
    """Tells the model, and returns the answer that it gives."""
    for_caller: bool = False
    """Whether a request waits for it; otherwise a report does, or nobody."""
    answer: Any = None
    """What must be said, from the moment that it is true."""


@frozen
class Asked:
    """What the engine asked of the store, and has not been answered."""

    effect: StoreEffect
    act: Act | None
    decided_at: int


@define(eq=False)
class Worker:
    """A worker at the node that is alive."""

    run: int
    delivered: set[str] = field(factory=set)
    told: list[CancelReason] = field(factory=list)
    over: bool = False


@define(eq=False)
class World:
    """Says things to the engine, and checks what comes of them."""

    now: int = START
    store: DictStore = field(factory=DictStore)
    model: ServerModel = field(init=False)
    engine: ServerEngine = field(init=False)
    asked: list[Asked] = field(init=False, factory=list)
    """Oldest first."""
    acts: dict[Hashable, Act] = field(init=False, factory=dict)
    """Who waits for an answer, by exchange or report."""
    workers: dict[str, Worker] = field(init=False, factory=dict)
    deadline: int | None = field(init=False, default=None)
    nodes: int = field(init=False, default=0)
    store_failed: bool = field(init=False, default=False)
    conflicts: int = field(init=False, default=0)
    _numbers: count[int] = field(init=False, factory=lambda: count(1))
    _unknown: Any = field(init=False, default=None)
    """The one answer to all who ask for what is not theirs, or not there (GET.2)."""

    def __attrs_post_init__(self) -> None:
        self.model = ServerModel(
            cancel_grace_ms=GRACE_MS, input_keys=LIMITS.input_keys, resumptions=LIMITS.resumptions
        )
        self._begin()

    def _begin(self) -> None:
        """Begin a process, and let it look for what has expired."""
        self.nodes += 1
        self.engine = self.make_engine()
        self.wake()

    def make_engine(self) -> ServerEngine:
        """Return the engine of a process that begins."""
        return ServerEngine(settings=SETTINGS, tools=TOOLS, node=self.node)

    @property
    def node(self) -> str:
        """The name of the node that is alive."""
        return f"node-{self.nodes}"

    # -- callers -------------------------------------------------------------------------------------------

    def create(
        self,
        number: int,
        caller: str,
        *,
        tool: str = "steady",
        ttl_ms: int | None = None,
        leaves: bool = False,
    ) -> None:
        """Call a tool that goes on as a task; who ``leaves`` is gone when it is durable (CAN.7)."""
        new = ModelTask(
            task_id=task_id(number),
            owner=caller,
            capabilities=FORMS,
            created_at_ms=self.now,
            ttl_ms=ttl_ms,
            poll_interval_ms=POLL_MS,
            resumable=tool == "steady",
            node=self.node,
        )
        act = Act(("create", number), task_id(number), lambda model, _: model.created(new))
        exchange = self._send(act, "tools/call", {"name": tool, "arguments": {}}, caller, capabilities=FORMS)
        self._give(CallBecameTask(exchange=exchange, task_id=new.task_id, ttl_ms=ttl_ms))
        if leaves:
            del self.acts[exchange]
            self._give(ExchangeClosed(exchange))

    def get(self, number: int, caller: str, **facts: Any) -> None:
        """Read a task."""
        asks, wanted = self._caller(caller, facts), task_id(number)
        act = Act(("get", number, caller), wanted, lambda model, now: model.get(wanted, asks, now))
        self._send(act, "tasks/get", {"taskId": wanted}, caller, **facts)

    def answer(self, number: int, caller: str, *keys: str, fits: bool = True, **facts: Any) -> None:
        """Answer under these keys, in one update; or so that none of the answers fits."""
        asks, wanted = self._caller(caller, facts), task_id(number)
        responses: dict[str, Any] = {key: answer_to(key) if fits else {"action": "maybe"} for key in keys}
        act = Act(
            ("answer", number, caller, keys, fits),
            wanted,
            lambda model, now: model.update(wanted, responses, asks, now),
        )
        params = {"taskId": wanted, "inputResponses": responses}
        self._send(act, "tasks/update", params, caller, **facts)

    def cancel(self, number: int, caller: str, **facts: Any) -> None:
        """Ask for cancellation."""
        asks, wanted = self._caller(caller, facts), task_id(number)
        act = Act(("cancel", number, caller), wanted, lambda model, now: model.cancel(wanted, asks, now))
        self._send(act, "tasks/cancel", {"taskId": wanted}, caller, **facts)

    def _caller(self, caller: str, facts: Mapping[str, Any]) -> ModelCaller:
        return ModelCaller(
            principal=caller,
            declares_tasks=facts.get("tasks", True),
            tasks_enabled=facts.get("tasks_enabled", True),
        )

    def _send(self, act: Act, method: str, params: Mapping[str, Any], caller: str, **facts: Any) -> int:
        exchange = next(self._numbers)
        self.acts[exchange], act.for_caller = act, True
        enabled = facts.pop("tasks_enabled", True)
        message = request(method, params, id=exchange, **facts)
        self._give(
            MessageReceived(exchange=exchange, message=message, principal=caller, tasks_enabled=enabled)
        )
        return exchange

    # -- workers -------------------------------------------------------------------------------------------

    def working(self, number: int) -> bool:
        """Whether a worker of this task is at the node, and has not ended."""
        worker = self.workers.get(task_id(number))
        return worker is not None and not worker.over

    def progress(self, number: int, message: str, *, run: int | None = None) -> None:
        """The worker says how far it is; or that of an earlier ``run`` does, which was taken for gone."""
        self._report(number, WorkProgressed, {"status_message": message}, _progressed(message), run)

    def checkpoint(self, number: int, value: Any, *received: str) -> None:
        """The worker saves where it is."""

        def apply(model: ServerModel, wanted: str, now: int, run: int) -> ReportAnswer:
            return model.checkpointed(wanted, now, value, run=run, received=received)

        self._report(number, WorkCheckpointed, {"value": value, "received": received}, apply)

    def ask(self, number: int, ask: str, *names: str, of: Mapping[str, Any] = FORM) -> None:
        """The worker asks under these names."""
        requests = {name: dict(of) for name in names}

        def apply(model: ServerModel, wanted: str, now: int, run: int) -> ReportAnswer:
            return model.asked(wanted, now, ask, requests, run=run)

        self._report(number, WorkAskedInput, {"ask": ask, "requests": requests}, apply)

    def withdraw(self, number: int, ask: str) -> None:
        """The worker no longer waits for what it asked."""

        def apply(model: ServerModel, wanted: str, now: int, run: int) -> ReportAnswer:
            return model.withdrew(wanted, now, ask, run=run)

        self._report(number, WorkWithdrewInput, {"ask": ask}, apply)

    def end(self, number: int, how: str) -> None:
        """The worker is done: ``completed``, ``failed`` or, stopped, ``cancelled``."""
        kind, facts, changes = _ENDS[how]

        def apply(model: ServerModel, wanted: str, now: int, run: int) -> ReportAnswer:
            return model.ended(wanted, now, how, run=run, **changes)

        if self.working(number):
            self.workers[task_id(number)].over = True
        self._report(number, kind, facts, apply)

    def _report(
        self,
        number: int,
        kind: Callable[..., Input],
        facts: Mapping[str, Any],
        apply: Callable[[ServerModel, str, int, int], ReportAnswer],
        of_run: int | None = None,
    ) -> None:
        wanted, token = task_id(number), next(self._numbers)
        assert wanted in self.workers, "work that was begun, or taken over, has a worker"
        run = self.workers[wanted].run if of_run is None else of_run
        name = (kind, number, run, tuple(sorted(map(str, facts.items()))))
        self.acts[token] = Act(name, wanted, lambda model, now: apply(model, wanted, now, run))
        self._give(kind(task_id=wanted, token=token, resumption=run, **facts))

    # -- the host ------------------------------------------------------------------------------------------

    def change_ttl(self, number: int, ttl_ms: int | None) -> None:
        """Give a task another lifetime."""
        wanted, token = task_id(number), next(self._numbers)
        self.acts[token] = Act(
            ("ttl", number, ttl_ms), wanted, lambda model, now: model.ttl_changed(wanted, now, ttl_ms)
        )
        self._give(TtlChanged(task_id=wanted, ttl_ms=ttl_ms, token=token))

    def end_at_once(self, number: int, how: str) -> None:
        """The host ends a task, whatever its worker does: as ``failed`` or ``cancelled``."""
        wanted, token = task_id(number), next(self._numbers)
        error = ErrorObject(-32050, "ended by hand") if how == "failed" else None
        wire = None if error is None else error.to_wire()
        self.acts[token] = Act(
            ("host", number, how), wanted, lambda model, now: model.host_ended(wanted, now, wire)
        )
        self._give(TaskEnded(task_id=wanted, token=token, error=error))

    def lose(self, number: int, node: str | None = None) -> None:
        """Tell of the work that a node left: that of the record, unless said otherwise."""
        record = self.store.records.get(task_id(number))
        lost = node or (record.node if record is not None else None) or "node-0"
        self._give(WorkLost(task_id(number), lost))

    def crash(self, *, landed: int | None = None) -> None:
        """End the process; one of the things that it asked of the store may be done, and nobody hears."""
        if landed is not None:
            self._write(self.asked[landed])
        self.asked.clear()
        self.acts.clear()
        self.workers.clear()
        self._begin()

    def wake(self) -> None:
        """Tell the engine that its deadline has come."""
        self._give(TimePassed())
        assert self.deadline is None or self.deadline > self.now, "a deadline is never met again and again"

    def wait(self, milliseconds: int) -> None:
        """Let time pass, with all deadlines on the way."""
        until = self.now + milliseconds
        while self.deadline is not None and self.deadline <= until:
            self.now = max(self.now, self.deadline)
            self.wake()
            self.settle()
        self.now = until

    # -- the store -----------------------------------------------------------------------------------------

    def serve(self, at: int = 0, *, fails: bool = False) -> None:
        """Answer what waits at this place, or say that the store cannot."""
        asked = self.asked.pop(at)
        effect, act = asked.effect, asked.act
        if fails:
            self.store_failed = True
            if act is not None and act.for_caller:
                act.answer = STORE_DOWN
            self._give(self.store.fail(effect))
            return
        self._give(self._write(asked), act)

    def settle(self) -> None:
        """Answer everything, oldest first, until nothing waits; then all must be well."""
        while self.asked:
            self.serve()
        self.check_rest()

    def _write(self, asked: Asked) -> Any:
        """Carry out what was asked. Where a record changes, this is the moment that counts."""
        effect = asked.effect
        before = self.store.records.get(effect.task_id) if isinstance(effect, Delete) else None
        if isinstance(effect, Save):
            before = self.store.records.get(effect.record.task_id)
        outcome = self.store.answer(effect)
        self.conflicts += isinstance(outcome, SaveConflict)
        if isinstance(outcome, Saved) and isinstance(effect, Save):
            self._saved(asked, before, effect.record)
        elif isinstance(outcome, Saved):
            assert before is not None
            assert before.expired(self.now) or before.task_id in self._orphans(), "TTL.1: removed too early"
            self.model.tasks.pop(before.task_id)
        return outcome

    def _orphans(self) -> set[str]:
        """Return the tasks whose callers left before they had the handle: nobody can ask for them."""
        handed_out = self._handed_out
        return {task.task_id for task in self.model.tasks.values() if task.task_id not in handed_out}

    _handed_out: set[str] = field(init=False, factory=set)

    def _saved(self, asked: Asked, before: TaskRecord | None, after: TaskRecord) -> None:
        assert asked.act is not None, "somebody wanted it"
        known = self.model.tasks.get(after.task_id)
        changes = self.model.changes.get(after.task_id, 0)
        asked.act.answer = asked.act.apply(self.model, asked.decided_at)
        modelled = self.model.tasks[after.task_id]
        assert known != modelled, "what changes nothing is not written (GET.1, UPD.3)"
        view = task_view(after)
        moved = view.pop("lastUpdatedAt")
        assert view == modelled.view(), (view, modelled.view())
        assert (after.node, after.resumptions) == (modelled.node, 0 if modelled.ended else modelled.run)
        keys = [entry.key for entry in after.inputs]
        assert keys == list(modelled.questions), "INP.1: a key is used once, and kept"
        if before is None:
            assert after.version == 1
            return
        assert after.version == before.version + 1
        was_ended = before.status.terminal
        assert not was_ended or view | {"ttlMs": 0} == _view(before) | {"ttlMs": 0}, "LIFE.1"
        changed = self.model.changes.get(after.task_id, 0) > changes
        later = moved > task_view(before)["lastUpdatedAt"]
        assert later == changed, "LIFE.5: lastUpdatedAt moves exactly when the view does"
        for one, same in zip(before.inputs, after.inputs, strict=False):
            assert (one.key, one.request) == (same.key, same.request), "INP.1: a key keeps its request"
            assert one.response in (None, same.response), "UPD.5: an answer is never replaced"

    # -- what the engine says --------------------------------------------------------------------------------

    def _give(self, fact: Input, act: Act | None = None) -> None:
        """Hand in a fact; ``act`` is whose question to the store it answers."""
        step = self.engine.handle(fact, now=self.now)
        self.deadline = step.deadline
        labelled = [(effect, self._whose(effect)) for effect in step.effects]
        if act is not None and act.answer is None and not any(same(whose, act) for _, whose in labelled):
            self._decided(act)
        for effect, whose in labelled:
            if isinstance(effect, StoreEffect):
                self.asked.append(Asked(effect, whose, self.now))
            else:
                self._see_to(effect)

    def _whose(self, effect: Effect) -> Act | None:
        """Return who wants this of the store: only the engine knows it of a question that it repeats."""
        if not isinstance(effect, Load | Save | Delete):
            return None
        operation = self.engine._tasks._questions[effect.token].operation
        wanted = operation.task_id
        if isinstance(operation, ElapseGrace):
            return Act(("grace", wanted), wanted, lambda model, now: model.grace_elapsed(wanted, now))
        if isinstance(operation, LoseWork):
            node, successor = operation.node, operation.successor
            return Act(
                ("lose", wanted, node),
                wanted,
                lambda model, now: model.work_lost(wanted, now, node, successor),
            )
        return self.acts.get(operation.exchange or operation.report)

    def _decided(self, act: Act) -> None:
        """Something was decided that needs no save, so it may not change anything."""
        before = self.model.tasks.get(act.task_id)
        act.answer = act.apply(self.model, self.now)
        after = self.model.tasks.get(act.task_id)
        assert after == before, f"{act.name}: promised, and not saved"

    def _see_to(self, effect: Effect) -> None:
        match effect:
            case Reply(exchange=exchange, message=message):
                act = self._answered(exchange)
                assert message is not None
                assert act.answer is not None, f"{act.name}: LIFE.4: a reply before its save"
                self._compare(act.answer, message)
                if act.name[0] == "create":
                    self._handed_out.add(act.task_id)
            case AcceptReport(token=token):
                act = self._answered(token)
                assert act.answer == ReportAnswer(), f"{act.name}: taken, wanted {act.answer}"
            case RejectReport(token=token, reason=reason):
                act = self._answered(token)
                assert act.answer is not None
                assert act.answer.refused is not None, f"{act.name}: refused, for {reason}"
                assert act.answer.refused in reason, f"{act.name}: {reason}"
            case StartWork(task_id=wanted):
                self._start(wanted, 0)
            case ResumeWork(task_id=wanted, resumption=run):
                self._start(wanted, run)
            case DeliverInput(task_id=wanted):
                self._deliver(effect)
            case RequestCancel(task_id=wanted, reason=reason):
                worker = self.workers[wanted]
                assert not worker.over
                assert not worker.told, "CAN.6: a worker is told once"
                worker.told.append(reason)
            case StartTool() | StopCall():
                pass
            case _:
                raise AssertionError(f"nobody wanted {effect}")

    def _answered(self, key: Hashable) -> Act:
        assert key in self.acts, "one answer to each request, and to each report"
        act = self.acts.pop(key)
        if act.answer is None and not any(asked.act is act for asked in self.asked):
            self._decided(act)  # it never came to the store
        return act

    def _compare(self, answer: PeerAnswer, message: Mapping[str, Any]) -> None:
        problem = difference(answer, message)
        assert problem is None, problem
        if isinstance(answer, ErrorAnswer) and answer.unknown_task:
            self._unknown = self._unknown or message["error"]
            assert message["error"] == self._unknown, "GET.2: one answer for all"

    def _start(self, wanted: str, run: int) -> None:
        assert wanted not in self.workers, "two workers of one task"
        task = self.model.tasks.get(wanted)
        if task is not None and not task.ended:  # which may have come before the word that it was saved
            assert (task.run, task.node) == (run, self.node), "LIFE.4: work begins once that is durable"
        self.workers[wanted] = Worker(run)

    def _deliver(self, delivery: DeliverInput) -> None:
        worker, task = self.workers[delivery.task_id], self.model.tasks.get(delivery.task_id)
        assert not worker.over
        for answer in delivery.answers:
            assert answer.key not in worker.delivered, "UPD.5: an answer is delivered once"
            worker.delivered.add(answer.key)
            if task is not None and not task.ended:  # likewise
                asked = task.questions[answer.key]
                assert (answer.name, answer.ask) == (asked.name, asked.ask)
                assert answer.response == asked.answer

    # -- at rest ---------------------------------------------------------------------------------------------

    def check_rest(self) -> None:
        """What must be so when the store has answered everything."""
        tasks = self.engine._tasks
        assert not tasks._questions, "nothing is kept of what is over"
        assert not tasks._creations
        assert not tasks._resumptions
        assert not self.engine._exchanges.by_key, "every request has its reply"
        waiting = set(self.acts.values())
        assert self.store_failed or not waiting, f"without an answer: {[act.name for act in waiting]}"
        known = {record.task_id for record in self.store.records.values()}
        assert known == set(self.model.tasks), "the store has what the model has"
        due = [self.deadline] if self.deadline is not None else []
        for wanted, worker in self.workers.items():
            self._check_worker(wanted, worker, due)

    def check_bounds(self) -> None:
        """What must be so at any time: the engine holds what is under way, and no more (LIM.3)."""
        tasks = self.engine._tasks
        assert len(tasks._questions) <= len(self.asked), "LIM.3: questions that nobody answers"
        assert len(self.engine._exchanges.by_key) <= len(self.acts), "LIM.3: exchanges that are over"
        running = {name for name, worker in self.workers.items() if not worker.over}
        assert set(tasks._workers) <= running, "LIM.3: workers that have ended"
        tokens = [asked.effect.token for asked in self.asked]
        assert len(set(tokens)) == len(tokens), "no two questions under one token"

    def _check_worker(self, wanted: str, worker: Worker, due: list[int]) -> None:
        task = self.model.tasks.get(wanted)
        if worker.over or (task is not None and task.expired(self.now)):
            return
        if task is None or task.ended or task.run != worker.run:
            assert worker.told, "the worker of an ended task is told to stop"
            return
        answered = {
            key for key, asked in task.questions.items() if asked.answer is not None and asked.ask is not None
        }
        assert self.store_failed or worker.delivered >= answered, "an answer reaches the worker"
        assert bool(worker.told) == (task.cancelled_at_ms is not None), "CAN.6: so does the wish to cancel"
        if task.cancelled_at_ms is not None:
            limit = task.cancelled_at_ms + GRACE_MS
            if self.store_failed:  # at the end of the grace, it may be: that is tried again
                limit = max(limit, self.now + STORE_RETRY_MS)
            assert due
            assert due[0] <= limit, "a cancelled worker has a deadline"


def same(one: Act | None, other: Act) -> bool:
    """Whether two are the same: those of the engine itself are made anew for each of its questions."""
    return one is not None and one.name == other.name


def _view(record: TaskRecord) -> dict[str, Any]:
    view = task_view(record)
    del view["lastUpdatedAt"]
    return view


def _progressed(message: str) -> Callable[[ServerModel, str, int, int], ReportAnswer]:
    return lambda model, wanted, now, run: model.progressed(wanted, now, run=run, message=message)


_BROKE: Final = ErrorObject(-32001, "broke", {"at": 3})
_ENDS: Final[Mapping[str, tuple[Callable[..., Input], Mapping[str, Any], Mapping[str, Any]]]] = {
    "completed": (WorkCompleted, {"result": DONE}, {"result": DONE}),
    "failed": (WorkFailed, {"error": _BROKE}, {"error": _BROKE.to_wire(), "message": "broke"}),
    "cancelled": (WorkStopped, {}, {}),
}
