"""Short stories that between them reach every cell of the lifecycle table that anything can reach.

Each is told to a :class:`~tests.model.server_world.World`, which compares all of it with the reference model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from tests.model.server_world import CALLERS, GRACE_MS, ROOTS, World

__all__ = ["STORIES", "Story", "tell"]

Story = Callable[[World], None]
OWNER: Final = CALLERS[0]
ENDS: Final = ("completed", "failed", "cancelled")


def tell(story: Story) -> None:
    """Play a story to its end, and look at what is left of it; ``AssertionError`` where a rule is broken."""
    world = World()
    world.settle()
    story(world)
    world.settle()
    for caller in CALLERS:
        world.get(0, caller)
    world.settle()
    world.wait(2 * GRACE_MS)
    world.get(0, OWNER)
    world.settle()


def working(world: World, *, tool: str = "steady") -> None:
    """There is a task."""
    world.create(0, OWNER, tool=tool)
    world.settle()


def parked(world: World, *, tool: str = "steady") -> None:
    """It waits for two answers."""
    working(world, tool=tool)
    world.ask(0, "one", "q", "r")
    world.settle()


# -- what can happen to a task that has not ended ------------------------------------------------------------


def progress(world: World) -> None:
    """The worker says something."""
    world.progress(0, "half")


def checkpoint(world: World) -> None:
    """The worker saves where it is."""
    world.checkpoint(0, 1)


def ask(world: World) -> None:
    """The worker asks."""
    world.ask(0, "two", "s")


def ask_undeclared(world: World) -> None:
    """It asks for what the call did not declare (INP.2)."""
    world.ask(0, "two", "s", of=ROOTS)


def ask_once_cancelled(world: World) -> None:
    """It does so although cancellation was asked for."""
    cancel(world)
    world.settle()
    world.ask(0, "two", "s")


def answer_nothing(world: World) -> None:
    """An update names nothing that is outstanding."""
    world.answer(0, OWNER, "nothing")


def answer_wrongly(world: World) -> None:
    """One of two answers does not fit (UPD.4)."""
    world.answer(0, OWNER, "q", fits=False)


def answer_one(world: World) -> None:
    """One of two is answered."""
    world.answer(0, OWNER, "q")


def answer_both(world: World) -> None:
    """Both are answered, at the same moment, by two updates."""
    world.answer(0, OWNER, "q")
    world.answer(0, OWNER, "r")
    world.serve()
    world.serve()
    world.serve(1)


def answer_others(world: World) -> None:
    """Somebody else answers, and cancels (SEC.1)."""
    world.answer(0, CALLERS[1], "q", "r")
    world.cancel(0, CALLERS[1])


def answer_late(world: World) -> None:
    """An answer comes after cancellation was asked for (CAN.6)."""
    cancel(world)
    world.settle()
    world.answer(0, OWNER, "q", "r")


def withdraw_one(world: World) -> None:
    """Of two questions one is given up."""
    world.ask(0, "two", "s")
    world.settle()
    world.withdraw(0, "two")


def withdraw_all(world: World) -> None:
    """All that was asked is given up; then the same name is asked again (INP.1)."""
    world.withdraw(0, "one")
    world.settle()
    world.ask(0, "two", "q")


def cancel(world: World) -> None:
    """The caller cancels, twice."""
    world.cancel(0, OWNER)
    world.cancel(0, OWNER)


def change_ttl(world: World) -> None:
    """The host gives it another lifetime."""
    world.change_ttl(0, 60_000)


def expire(world: World) -> None:
    """Its lifetime ends (TTL.1)."""
    world.change_ttl(0, 5_000)
    world.settle()
    world.wait(4_999)
    world.get(0, OWNER)
    world.settle()
    world.wait(1)
    world.get(0, OWNER)


def lose(world: World) -> None:
    """Its node ends, and another takes the work over, or says that it cannot."""
    world.crash()
    world.lose(0)
    world.settle()
    world.lose(0, "node-1")
    world.settle()
    if world.working(0):
        world.progress(0, "not gone", run=0)


def lose_cancelled(world: World) -> None:
    """Its node ends when it was to be cancelled."""
    cancel(world)
    world.settle()
    lose(world)


def ask_again(world: World) -> None:
    """The run after a crash asks what was asked before, one of it answered."""
    answer_one(world)
    world.settle()
    lose(world)
    world.settle()
    world.ask(0, "one", "q")
    world.settle()
    world.ask(0, "two", "r")
    world.settle()
    world.answer(0, OWNER, "r")


def ask_again_what_was_answered(world: World) -> None:
    """Likewise, all of it answered."""
    world.answer(0, OWNER, "q", "r")
    world.settle()
    lose(world)
    world.settle()
    world.ask(0, "one", "q", "r")


def end(world: World, how: str) -> None:
    """The worker ends."""
    world.end(0, how)


def end_at_once(world: World, how: str) -> None:
    """The host ends it, and the worker says something all the same."""
    world.end_at_once(0, how)
    world.settle()
    world.progress(0, "late")
    world.settle()
    world.end(0, "completed")


def elapse(world: World) -> None:
    """A cancelled worker does not stop, and its grace elapses."""
    cancel(world)
    world.settle()
    world.wait(GRACE_MS)


def leave(world: World) -> None:
    """Another caller leaves before it has the handle (CAN.7)."""
    world.create(1, CALLERS[1], leaves=True)


ANY: Final[Mapping[str, Story]] = {
    story.__name__.replace("_", " "): story
    for story in (
        progress,
        checkpoint,
        ask,
        ask_undeclared,
        ask_once_cancelled,
        answer_nothing,
        cancel,
        change_ttl,
        expire,
        lose,
        lose_cancelled,
        elapse,
        leave,
    )
}
PARKED: Final[Mapping[str, Story]] = {
    story.__name__.replace("_", " "): story
    for story in (
        answer_one,
        answer_both,
        answer_wrongly,
        answer_others,
        answer_late,
        withdraw_one,
        withdraw_all,
        ask_again,
        ask_again_what_was_answered,
    )
}
ENDINGS: Final[Mapping[str, Story]] = {
    **{f"end {how}": partial(end, how=how) for how in ENDS},
    **{f"end at once {how}": partial(end_at_once, how=how) for how in ENDS[1:]},
}

# -- what can happen to a task that has ended, or ends first -------------------------------------------------


def overtaken(world: World, late: Story, how: str) -> None:
    """The worker says something, and its end is saved before that."""
    late(world)
    world.end(0, how)
    world.serve(len(world.asked) - 1)


def overtaken_question(world: World, how: str) -> None:
    """Likewise, of a question that comes after a cancel request."""
    world.cancel(0, OWNER)
    world.settle()
    world.ask(0, "two", "s")
    world.end(0, how)
    world.serve(1)


def overtaken_grace(world: World, how: str) -> None:
    """The grace of a worker elapses at the moment when it ends."""
    world.cancel(0, OWNER)
    world.settle()
    world.now += GRACE_MS
    world.wake()
    world.end(0, how)
    world.serve(1)


def after_the_end(world: World, how: str) -> None:
    """Callers and the host come when it is over."""
    world.end(0, how)
    world.settle()
    for late in (answer_nothing, cancel, change_ttl):
        late(world)
        world.settle()
    for again in ENDS[1:]:
        world.end_at_once(0, again)
        world.settle()


def _late() -> Iterator[tuple[str, Story]]:
    """Each thing that may come late, and each way to end before it."""
    for how in ENDS:
        for name, late in {"progress": progress, "ask": ask, **ENDINGS}.items():
            if "at once" not in name:
                yield f"{name} after {how}", partial(overtaken, late=late, how=how)
        yield f"question after {how}", partial(overtaken_question, how=how)
        yield f"grace after {how}", partial(overtaken_grace, how=how)
        yield f"all after {how}", partial(after_the_end, how=how)


def _from(beginning: Story, story: Story, world: World) -> None:
    beginning(world)
    story(world)


STORIES: Final[Mapping[str, Story]] = {
    **{f"working, {name}": partial(_from, working, story) for name, story in {**ANY, **ENDINGS}.items()},
    **{
        f"parked, {name}": partial(_from, parked, story)
        for name, story in {**ANY, **PARKED, **ENDINGS}.items()
    },
    **{f"working, {name}": partial(_from, working, story) for name, story in _late()},
    "frail, lose": partial(_from, partial(working, tool="frail"), lose),
    "frail and parked, lose": partial(_from, partial(parked, tool="frail"), lose),
}
"""By name."""
