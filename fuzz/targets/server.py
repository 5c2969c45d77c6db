"""A server engine, its store and its workers, beside the reference model (LIFE, GET, UPD, CAN, INP, TTL).

The input is a script (:mod:`fuzz.script`): two bytes a step, a letter of :data:`OPERATIONS` and how it is
done. :class:`~tests.model.server_world.World` compares each step with the model, and checks its invariants.

Another role has a module like this one: a world, and a letter for each thing that may happen in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import define, field

from fuzz.script import Choices, Operation, perform
from tests.model.server_world import CALLERS, FORM, ROOTS, World, task_id

TASKS: Final = 3
LIFETIMES: Final = (None, 6_000, 30_000)
ASKS: Final = ("one", "two")
NAMES: Final = (("q",), ("r",), ("q", "r"))
ENDS: Final = ("completed", "failed", "cancelled")
NODES: Final = 4


@define(eq=False)
class Scene(World):
    """A world in which no id is given twice."""

    made: int = field(init=False, default=1)
    """How many tasks there have been."""


def check(data: bytes) -> None:
    """Perform the script, and let everything come to rest."""
    world = Scene()
    world.settle()
    world.create(0, CALLERS[0])
    world.settle()
    perform(world, OPERATIONS, data)
    world.settle()
    for number in range(TASKS):
        for caller in CALLERS:
            world.get(number, caller)
    world.settle()
    world.check_bounds()
    for task in world.model.tasks.values():
        runs_here = not task.ended and task.node == world.node and not world.store_failed
        assert not runs_here or task.task_id in world.workers, "LIFE.4: work that nobody was told to begin"


def _owner(world: Scene, number: int, choices: Choices) -> str:
    """Return the owner of a task; now and then somebody else."""
    task = world.model.tasks.get(task_id(number))
    owner = CALLERS[0] if task is None or task.owner is None else task.owner
    return choices.of([owner, owner, owner, *(other for other in CALLERS if other != owner)])


def _create(world: Scene, choices: Choices) -> None:
    if world.made < TASKS:
        tool, caller = choices.of(["steady", "frail"]), choices.of(CALLERS)
        ttl_ms, leaves = choices.of(LIFETIMES), choices.of([False, False, True])
        world.create(world.made, caller, tool=tool, ttl_ms=ttl_ms, leaves=leaves)
        world.made += 1


def _get(world: Scene, choices: Choices) -> None:
    number = choices.of(range(TASKS))
    facts = choices.of([{}, {}, {"tasks": False}, {"tasks_enabled": False}])
    world.get(number, _owner(world, number, choices), **facts)


def _answer(world: Scene, choices: Choices) -> None:
    number = choices.of(range(TASKS))
    task = world.model.tasks.get(task_id(number))
    outstanding = [] if task is None else list(task.outstanding)
    keys = choices.of([outstanding, [*outstanding[:1], "q", "nothing"]])
    fits = choices.of([True, True, True, False])
    world.answer(number, _owner(world, number, choices), *dict.fromkeys(keys), fits=fits)


def _cancel(world: Scene, choices: Choices) -> None:
    number = choices.of(range(TASKS))
    world.cancel(number, _owner(world, number, choices))


def _worker(world: Scene, choices: Choices) -> int | None:
    """Return a task that a worker is at, if there is one."""
    working = [number for number in range(TASKS) if world.working(number)]
    return choices.of(working) if working else None


def _ask(world: Scene, choices: Choices) -> None:
    if (number := _worker(world, choices)) is not None:
        of = choices.of([FORM, FORM, FORM, ROOTS])
        world.ask(number, choices.of(ASKS), *choices.of(NAMES), of=of)


def _withdraw(world: Scene, choices: Choices) -> None:
    if (number := _worker(world, choices)) is not None:
        world.withdraw(number, choices.of(ASKS))


def _progress(world: Scene, choices: Choices) -> None:
    if (number := _worker(world, choices)) is not None:
        world.progress(number, choices.of(["half", "more"]), run=choices.of([None, None, 0]))


def _checkpoint(world: Scene, choices: Choices) -> None:
    """The worker saves where it is, which is further on each time."""
    if (number := _worker(world, choices)) is not None:
        world.checkpoint(number, next(world._numbers), *choices.of([(), *((ask,) for ask in ASKS)]))


def _end(world: Scene, choices: Choices) -> None:
    if (number := _worker(world, choices)) is not None:
        world.end(number, choices.of(ENDS))


def _end_at_once(world: Scene, choices: Choices) -> None:
    world.end_at_once(choices.of(range(TASKS)), choices.of(["failed", "cancelled"]))


def _change_ttl(world: Scene, choices: Choices) -> None:
    world.change_ttl(choices.of(range(TASKS)), choices.of(LIFETIMES))


def _serve(world: Scene, choices: Choices) -> None:
    if world.asked:
        fails = choices.of([False, False, False, False, True])
        world.serve(choices.of(range(len(world.asked))), fails=fails)


def _settle(world: Scene, _: Choices) -> None:
    world.settle()


def _crash(world: Scene, choices: Choices) -> None:
    if world.nodes < NODES:
        world.crash(landed=choices.of([None, *range(len(world.asked))]))


def _lose(world: Scene, choices: Choices) -> None:
    number = choices.of(range(TASKS))
    record = world.store.records.get(task_id(number))
    if world.nodes > 1 and (record is None or record.node != world.node):
        world.lose(number)


def _wait(world: Scene, choices: Choices) -> None:
    milliseconds = choices.of([1, 400, 6_000, 40_000])
    if choices.of([True, False]):
        world.wait(milliseconds)
    else:
        world.now += milliseconds
        world.wake()


OPERATIONS: Final[Mapping[str, Operation[Scene]]] = {
    "n": _create,
    "g": _get,
    "a": _answer,
    "x": _cancel,
    "q": _ask,
    "w": _withdraw,
    "p": _progress,
    "k": _checkpoint,
    "e": _end,
    "h": _end_at_once,
    "t": _change_ttl,
    "s": _serve,
    ".": _settle,
    "c": _crash,
    "l": _lose,
    "z": _wait,
}
"""New task, get, answer, cancel; question, withdraw, progress, checkpoint, end; host's end, ttl; store,
settle, crash, lost work, time."""
