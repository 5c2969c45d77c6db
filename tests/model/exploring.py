"""Every state of a small world, breadth first: which steps there are from each, and when two states are one.

Two states are one when nothing that may still happen tells them apart: :func:`shape` writes down all
that the engine, the store and the model hold, without the numbers that only name things and the moments that
only were.

Every state within :class:`Bounds` is visited, and these are narrow. There are no lifetimes that run out, no
progress, no checkpoints, no questions withdrawn, no callers that leave, no stores that fail, and a host that
neither ends a task by itself nor changes its lifetime. One process runs at a time. Lost work is taken over,
once, by the one that begins: it is neither given up nor lost again. What waits at the store is about one
task, but for graces that elapse meanwhile; what is only looked up is looked up at once. An update answers one
question, and fits; nobody asks again for what is under way or done; about a task that has ended nothing is
begun any more. Strangers are no part of it: a check may let them in, but nothing goes on from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final

from attrs import define, frozen

from mcp_tasks_proto import Delete, Load, Save, TaskRecord
from tests.model.memento import Memento
from tests.model.server_world import CALLERS, GRACE_MS, Asked, World, task_id

__all__ = ["Bounds", "Explored", "explore", "shape"]

Move = tuple[Any, ...]
"""The name of a method of :class:`World`, and its arguments."""


@frozen(kw_only=True)
class Bounds:
    """How small the world is."""

    tasks: int = 2
    names: tuple[str, ...] = ("q",)
    """What each run of the work asks, in one question."""
    ends: tuple[str, ...] = ("completed", "failed", "cancelled")
    """How a worker may end, at any time."""
    in_flight: int = 2
    """Changes, all of one task, that wait at the store at once."""
    in_flight_after_crash: int = 1
    """The same in the second process."""
    crashes: int = 1


@define
class Explored:
    """What was found."""

    states: int = 0
    moves: int = 0
    """Steps that were taken, from all of them."""
    at_rest: int = 0
    """States in which nothing waits at the store."""
    conflicts: int = 0
    """Steps in which a save came too late."""


def look_up(world: World) -> None:
    """Answer everything that was only asked for: who waits for a look-up might as well not have begun."""
    while (at := next((at for at, one in enumerate(world.asked) if not is_change(one)), None)) is not None:
        world.serve(at)


def is_change(asked: Asked) -> bool:
    """Whether the store is to change something."""
    return isinstance(asked.effect, Save)


def _crash(world: World, landed: int | None) -> None:
    world.crash(landed=landed)


def _late(world: World) -> None:
    assert world.deadline is not None
    world.now = max(world.now, world.deadline)
    world.wake()


MOVES: Final[Mapping[str, Callable[..., None]]] = {
    "create": World.create,
    "ask": World.ask,
    "answer": World.answer,
    "cancel": World.cancel,
    "end": World.end,
    "lose": World.lose,
    "serve": World.serve,
    "crash": _crash,
    "late": _late,
}


def moves(world: World, bounds: Bounds) -> Iterator[Move]:
    """Return every step that there is from here."""
    for at in range(len(world.asked)):
        yield "serve", at
    if world.nodes <= bounds.crashes:
        yield "crash", None
        for at in range(len(world.asked)):
            yield "crash", at
    if len(world.asked) >= (bounds.in_flight if world.nodes == 1 else bounds.in_flight_after_crash):
        return
    if world.deadline is not None:
        yield ("late",)
    for number in range(bounds.tasks):
        if any(_about(one) != task_id(number) for one in world.asked):
            continue
        yield from _moves_of(world, number, bounds)


def _moves_of(world: World, number: int, bounds: Bounds) -> Iterator[Move]:
    task, caller = world.model.tasks.get(task_id(number)), CALLERS[number]
    asked = [
        one.act.name for one in world.asked if one.act is not None and one.act.task_id == task_id(number)
    ]
    if task is None:
        if not asked:
            yield "create", number, caller
        return
    if task.ended:
        return
    if task.node != world.node and task.node is not None and not asked:
        yield "lose", number
    kinds = {name[0] for name in asked}
    if "cancel" not in kinds and task.cancelled_at_ms is None:
        yield "cancel", number, caller
    for key in task.outstanding:
        if not any(name[0] == "answer" and name[3] == (key,) for name in asked):
            yield "answer", number, caller, key
    if world.working(number) and not any(isinstance(kind, type) for kind in kinds):
        run = world.workers[task_id(number)].run
        if not any(question.ask == f"run {run}" for question in task.questions.values()):
            yield "ask", number, f"run {run}", *bounds.names
        for how in bounds.ends:
            yield "end", number, how


def explore(bounds: Bounds, check: Callable[[World], None]) -> Explored:
    """Visit every state; ``check`` may do with each world what it likes."""
    found = Explored()
    seen: set[Hashable] = set()
    waiting: deque[tuple[Hashable, Memento]] = deque()
    world = World()
    world.settle()

    def arrive() -> None:
        found.moves += 1
        key = shape(world)
        if key not in seen:
            seen.add(key)
            found.states += 1
            found.at_rest += not world.asked
            waiting.append((key, Memento(world, through=(Asked,), replaced=frozenset({"decision"}))))

    arrive()
    while waiting:
        key, here = waiting.popleft()
        here.restore()
        assert shape(world) == key, "a state that is put back is what it was"
        for name, *facts in list(moves(world, bounds)):
            here.restore()
            before = world.conflicts
            MOVES[name](world, *facts)
            look_up(world)
            found.conflicts += world.conflicts - before
            arrive()
        here.restore()
        check(world)
    return found


# -- when two states are one ---------------------------------------------------------------------------------


def shape(world: World) -> Hashable:
    """Return what there is to a state, the tasks in whichever order.

    Left out are the moments of creation and of the last change, and how often a save met a conflict: nothing
    that happens later depends on them within these bounds. A crash may come before or after any of the saves
    that are under way, so their order does not count.
    """
    engine = world.engine
    assert not len(engine._streams)
    assert not engine._tasks._sweeping._busy
    parts = [_part(world, number) for number in range(2)]
    return world.nodes, tuple(sorted(parts, key=repr))


def _part(world: World, number: int) -> tuple[Any, ...]:
    """Return everything about one task, wherever it is held."""
    wanted, tasks = task_id(number), world.engine._tasks
    stored, worker, known = (
        world.store.records.get(wanted),
        world.workers.get(wanted),
        tasks._workers.get(wanted),
    )
    version = 0 if stored is None else stored.version
    due = tasks.timers.get(wanted)
    return (
        None if stored is None else _record(world, stored, version),
        None
        if worker is None
        else (worker.run, tuple(sorted(worker.delivered)), bool(worker.told), worker.over),
        None
        if known is None
        else (
            _record(world, known.record, version),
            tuple(sorted(known.delivered)),
            known.told_to_stop,
        ),
        None if due is None else due - world.now,
        tuple(
            sorted((_asked(world, one, version) for one in world.asked if _about(one) == wanted), key=repr)
        ),
    )


def _about(asked: Asked) -> str | None:
    effect = asked.effect
    if isinstance(effect, Save):
        return effect.record.task_id
    return effect.task_id if isinstance(effect, Load | Delete) else None


def _asked(world: World, asked: Asked, version: int) -> tuple[Any, ...]:
    """Return what waits at the store: whose it is, and what would be written."""
    effect, whose = asked.effect, asked.act
    named = () if whose is None else (str(whose.name[0]), *map(str, whose.name[2:]))
    if whose is not None and whose.name[0] == "answer":
        named = ("answer", *whose.name[3])
    written = None
    if isinstance(effect, Save):
        written = _record(world, effect.record, version), (effect.expected_version or 0) - version
    return type(effect).__name__, named, written


def _record(world: World, record: TaskRecord, version: int) -> tuple[Any, ...]:
    cancelled = record.cancel_requested_at_ms
    return (
        record.version - version,
        record.status.value,
        tuple((one.key, one.ask, one.response is not None, one.withdrawn) for one in record.inputs),
        None if cancelled is None else cancelled + GRACE_MS > world.now,
        None if record.node is None else record.node == world.node,
        record.resumptions,
    )
