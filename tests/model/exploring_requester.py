"""Every state of a small world with a requester in it, breadth first.

There is a server, which is right and slow, and a network that may lose what is said, on its way there or
back. Two states are one when nothing that may still happen tells them apart: :func:`shape` writes down all
that the engine, the model and the server hold, moments as they are from now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.requester.calls import Watch
from mcp_tasks_proto.testing.model import ModelBounds, WatchedTask
from tests.model.memento import Memento
from tests.model.requester_world import World, handle, view

__all__ = ["Bounds", "Explored", "SmallWorld", "explore", "shape"]

INTERVAL_MS: Final = 1_000
SMALL: Final = ModelBounds(
    poll_interval_ms=INTERVAL_MS,
    first_backoff_ms=1_000,
    last_backoff_ms=2_000,
    request_timeout_ms=2_500,
    cancel_attempts=2,
)
REPLACED: Final = frozenset({"cancellation", "watch", "task", "engine"})
SHALLOW: Final = frozenset(
    {"saved", "on_show", "references", "response", "view", "outcomes", "resumed", "capabilities", "declared"}
)
METHODS: Final = {"poll": "tasks/get", "update": "tasks/update", "cancel": "tasks/cancel"}
ENDED: Final = ("completed", "cancelled")
Move = tuple[Any, ...]
"""The name of a method of :class:`SmallWorld`, and its arguments."""


@frozen(kw_only=True)
class Bounds:
    """How small the world is."""

    tasks: tuple[str, ...] = ("one",)
    keys: tuple[str, ...] = ("q",)
    """What each task asks, at once, and once in its life."""
    losses: int = 1
    """Requests or answers that are lost."""
    restarts: int = 1
    cancels: bool = True


@define
class Explored:
    """What was found."""

    states: int = 0
    moves: int = 0
    """Steps that were taken, from all of them."""
    over: int = 0
    """States in which every call is over and nothing is left to say."""


@define(eq=False)
class Truth:
    """How a task stands at the server."""

    status: str = "working"
    outstanding: set[str] = field(factory=set)
    asked: bool = False
    changes: int = 0
    """How often its view has changed."""


@define(eq=False, kw_only=True)
class SmallWorld(World):
    """The world of a requester, and the server that it talks to."""

    sizes: Bounds
    bounds: ModelBounds = SMALL
    truth: dict[str, Truth] = field(init=False)
    losses: int = field(init=False)
    restarts: int = field(init=False)

    def begin(self) -> None:
        """Each call has become a task."""
        self.losses, self.restarts = self.sizes.losses, self.sizes.restarts
        self.truth = {task_id: Truth() for task_id in self.sizes.tasks}
        for task_id in self.sizes.tasks:
            self.call()
            self.reply("tools/call", handle(task_id))

    # -- the server ------------------------------------------------------------------------------------------

    def change(self, task_id: str, status: str) -> None:
        """The task asks, or ends."""
        truth = self.truth[task_id]
        truth.status, truth.changes = status, truth.changes + 1
        truth.outstanding = set(self.sizes.keys) if status == "input_required" else set()
        truth.asked |= status == "input_required"

    def _serve(self, request: int) -> Any:
        """Do what is asked for; return the result."""
        message = self.host.in_flight[request].message
        params = message["params"]
        truth = self.truth[params["taskId"]]
        if message["method"] == "tasks/update" and truth.status == "input_required":
            truth.outstanding -= set(params["inputResponses"])
            if not truth.outstanding:
                self.change(params["taskId"], "working")
        if message["method"] == "tasks/cancel" and truth.status not in ENDED:
            self.change(params["taskId"], "cancelled")
        if message["method"] != "tasks/get":
            return {"resultType": "complete"}
        keys = sorted(truth.outstanding)
        return view(truth.status, params["taskId"], at=truth.changes, keys=keys)

    def answer_request(self, kind: str, task_id: str) -> None:
        """A request reaches the server, and its answer the requester."""
        request = self.in_flight(kind, task_id)
        assert request is not None
        self.reply(request, self._serve(request))

    def lose(self, kind: str, task_id: str, *, served: bool) -> None:
        """A request is lost on its way, or its answer is."""
        request = self.in_flight(kind, task_id)
        assert request is not None
        self.losses -= 1
        if served:
            self._serve(request)
        self.fail(request)

    def in_flight(self, kind: str, task_id: str) -> int | None:
        """Return the request of this kind about a task."""
        for request in self.host.waiting(METHODS[kind]):
            if self.host.params_of(request)["taskId"] == task_id:
                return request
        return None

    @property
    def loses(self) -> bool:
        """Whether the next deadline is that of a request."""
        return self.host.deadline in [flight.until_ms for flight in self.model.flights.values()]

    # -- the rest --------------------------------------------------------------------------------------------

    def answer_question(self, task_id: str, key: str) -> None:
        """Somebody answers."""
        self.answer(self.model.watcher_of(task_id), key)

    def cancel_task(self, task_id: str, wait: bool) -> None:
        """Somebody cancels."""
        self.cancel(self.model.watcher_of(task_id), wait=wait)

    def crash(self) -> None:
        """The process ends, and another goes on."""
        self.restarts -= 1
        self.restart()

    def late(self) -> None:
        """The next deadline comes; that of a request which nobody has answered counts as a loss."""
        assert self.host.deadline is not None
        self.losses -= self.loses
        self.host.now = self.host.deadline
        self.wake()


MOVES: Final[Mapping[str, Callable[..., None]]] = {
    "change": SmallWorld.change,
    "answer request": SmallWorld.answer_request,
    "lose": SmallWorld.lose,
    "answer": SmallWorld.answer_question,
    "cancel": SmallWorld.cancel_task,
    "crash": SmallWorld.crash,
    "late": SmallWorld.late,
}


def moves(world: SmallWorld) -> Iterator[tuple[Move, dict[str, Any]]]:
    """Return every step that there is from here."""
    if world.restarts and world.model.watched():
        yield ("crash",), {}
    polls = world.host.waiting("tasks/get")
    if world.host.deadline is not None and not polls and world.losses >= world.loses:
        yield ("late",), {}
    for task_id, truth in world.truth.items():
        for kind in METHODS:
            if world.in_flight(kind, task_id) is None:
                continue
            yield ("answer request", kind, task_id), {}
            if world.losses:
                for served in [False] if kind == "poll" else [False, True]:
                    yield ("lose", kind, task_id), {"served": served}
        yield from _moves_of(world, task_id, truth)


def _moves_of(world: SmallWorld, task_id: str, truth: Truth) -> Iterator[tuple[Move, dict[str, Any]]]:
    call = world.model.watcher_of(task_id)
    if call is None:
        return
    if truth.status not in ENDED:
        yield ("change", task_id, "completed"), {}
        if not truth.asked:
            yield ("change", task_id, "input_required"), {}
    task = world.model.task_of(call)
    for key in task.on_show:
        yield ("answer", task_id, key), {}
    if world.sizes.cancels and not task.cancelling:
        yield ("cancel", task_id, True), {}
        yield ("cancel", task_id, False), {}


def explore(sizes: Bounds, check: Callable[[SmallWorld], None]) -> Explored:
    """Visit every state; ``check`` may do with each world what it likes."""
    found = Explored()
    seen: set[Hashable] = set()
    waiting: deque[Memento] = deque()
    world = SmallWorld(sizes=sizes)
    world.begin()

    def arrive() -> None:
        found.moves += 1
        key = shape(world)
        if key not in seen:
            seen.add(key)
            found.states += 1
            found.over += world.host.deadline is None
            world.host.effects.clear()
            waiting.append(Memento(world, replaced=REPLACED, shallow=SHALLOW))

    arrive()
    while waiting:
        here = waiting.popleft()
        here.restore()
        for (name, *facts), options in list(moves(world)):
            here.restore()
            MOVES[name](world, *facts, **options)
            arrive()
        here.restore()
        check(world)
    return found


# -- when two states are one ---------------------------------------------------------------------------------


def shape(world: SmallWorld) -> Hashable:
    """Return what there is to a state, the tasks in whichever order.

    Left out are what requests and calls are called, when the handle came, and why a poll failed: nothing that
    happens depends on it, without a lifetime.
    """
    parts = [_part(world, task_id, truth) for task_id, truth in world.truth.items()]
    return world.losses, world.restarts, tuple(sorted(parts, key=repr))


def _part(world: SmallWorld, task_id: str, truth: Truth) -> tuple[Any, ...]:
    call = world.model.watcher_of(task_id)
    here = truth.status, tuple(sorted(truth.outstanding)), truth.asked, truth.changes
    rest = _flights(world, task_id), _cancellations(world, task_id)
    if call is None:
        ended = {world.outcomes[one].kind for one in world.outcomes if _was_of(world, one, task_id)}
        return here, tuple(sorted(ended)), rest
    watch = world.host.engine._watcher._watched[task_id]
    resumed = tuple(sorted(world.resumed[call].answers)) if call in world.resumed else None
    return here, resumed, rest, _modelled(world, world.model.task_of(call)), _watched(world, watch)


def _was_of(world: SmallWorld, call: Hashable, task_id: str) -> bool:
    return call in world.saved and world.saved[call][0].task_id == task_id


def _flights(world: SmallWorld, task_id: str) -> tuple[Any, ...]:
    now, engine = world.model.now, world.host.engine
    found = []
    for kind in METHODS:
        request = world.in_flight(kind, task_id)
        if request is not None:
            answers = world.host.params_of(request).get("inputResponses", {})
            until_ms = engine._timers.get(("timeout", request))
            assert until_ms is not None
            found.append((kind, tuple(answers), until_ms - now))
    return tuple(found)


def _cancellations(world: SmallWorld, task_id: str) -> tuple[Any, ...]:
    now = world.model.now
    return tuple(
        (one.call is None, one.attempts, world.model.due.get(("cancel", number), now) - now)
        for number, one in world.model.cancellations.items()
        if one.task_id == task_id
    )


def _modelled(world: SmallWorld, task: WatchedTask) -> tuple[Any, ...]:
    now, call = world.model.now, world.model.watcher_of(task.saved.task_id)
    due = {kind: at_ms - now for (kind, owner), at_ms in world.model.due.items() if owner == call}
    return (
        tuple((key, answer is not None) for key, answer in task.saved.answers.items()),
        tuple(sorted(task.saved.sent)),
        None if task.view is None else (task.view["status"], task.view["lastUpdatedAt"]),
        task.failures,
        task.update_failures,
        task.cancelling,
        tuple(sorted(task.prompted)),
        tuple(task.on_show),
        max(task.last_poll_ms - now, -INTERVAL_MS),
        tuple(sorted((kind, at_ms) for kind, at_ms in due.items() if kind != "cancel")),
    )


def _watched(world: SmallWorld, watch: Watch) -> tuple[Any, ...]:
    now, timers = world.model.now, world.host.engine._timers
    assert not watch.denied
    assert not watch.refused
    assert watch.stream is None
    due = [timers.get((name, watch.task_id)) for name in ("poll", "update", "expiry")]
    return (
        tuple(
            (key, entry.state.value, entry.prompted, entry.on_show is not None)
            for key, entry in watch.reference.ledger.items()
        ),
        watch.seen,
        watch.failures,
        watch.update_failures,
        watch.cancelling,
        watch.submitted,
        watch.cancellation is None,
        watch.polling is None,
        watch.updating is None,
        max(watch.last_poll_ms - now, -INTERVAL_MS),
        tuple(None if at_ms is None else at_ms - now for at_ms in due),
    )
