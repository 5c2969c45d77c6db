"""Short stories of clients of 2025-11-25; each is told to a :class:`~tests.model.legacy_world.World`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcp_tasks_proto.legacy.server import LegacyPolicy
from tests.model.legacy_world import CALLERS, World

__all__ = ["STORIES", "Story", "tell"]

Story = Callable[[World], None]
ADA, STDIO, BOB, SILENT, NOBODY = range(5)
"""The clients, by their number in :data:`~tests.model.legacy_world.CALLERS`."""


def tell(story: Story) -> None:
    """Play a story to its end; ``AssertionError`` where a rule is broken."""
    world = World(policy=LegacyPolicy.IGNORE if "ignored" in story.__name__ else LegacyPolicy.SERVE)
    for number in range(len(CALLERS)):
        world.join(number)
    story(world)
    for number in range(len(CALLERS)):
        world.get(number, 0)
        world.list(number)
    world.bring_to_an_end()


def working(world: World, client: int = ADA, **task: object) -> None:
    """A call has become a task."""
    world.call(client, "optional", task)
    world.end_call(next(iter(world.handlers.values())), "completed")


def parked(world: World, kind: str = "form") -> None:
    """It asks something, and two clients wait for its result."""
    working(world)
    world.result(ADA, 0)
    world.result(STDIO, 0)
    world.ask(0, "q", kind)


# -- calls ---------------------------------------------------------------------------------------------------


def called(world: World) -> None:
    """LEG.3, trap 22: plainly and as a task, of tools that take the one, the other, or both."""
    for tool in ("optional", "required", "forbidden"):
        for task in (None, {}, {"ttl": 5}, {"ttl": 0}, {"ttl": None}, {"ttl": 2**60}, 5):
            world.call(ADA, tool, task)
            for call in list(world.handlers.values()):
                world.end_call(call, "is error")


def called_and_ignored(world: World) -> None:
    """LEG.1: no tasks are served."""
    for tool in ("optional", "required", "forbidden"):
        world.call(ADA, tool, {"ttl": 5})
        for call in list(world.handlers.values()):
            world.end_call(call, "completed")
    world.cancel(ADA, 0)
    world.result(ADA, 0)


def asked_in_a_call(world: World) -> None:
    """INP.4, LEG.8: rounds of questions on the call's own stream."""
    for client, how in ((ADA, "fits"), (ADA, "not"), (STDIO, "error"), (SILENT, "fits")):
        world.call(client, "optional")
        call = next(iter(world.handlers.values()))
        world.ask_in_call(call, "a", "b")
        for number in list(world.questions):
            world.answer(number, how)
        for running in list(world.handlers.values()):
            world.end_call(running, "failed")
    world.call(ADA, "optional")
    world.ask_in_call(next(iter(world.handlers.values())), "a", kind="sampling")
    world.answer(next(iter(world.questions)), "error")


# -- tasks ---------------------------------------------------------------------------------------------------


def ended(world: World, how: str) -> None:
    """LEG.4, LEG.6, LEG.9: several wait for the end, and one asks afterwards."""
    working(world)
    world.result(ADA, 0)
    world.result(SILENT, 0)
    world.progress(0, "half")
    world.end(0, how)
    world.result(STDIO, 0)
    world.cancel(ADA, 0)
    for principal in ("ada", "bob", None):
        world.modern_get(principal, 0, declares=True)
    world.modern_get("ada", 0, declares=False)


def completed(world: World) -> None:
    """With a result."""
    ended(world, "completed")


def erred(world: World) -> None:
    """With ``isError``: failed, and the result can be had (trap 21)."""
    ended(world, "is error")


def failed(world: World) -> None:
    """With a protocol error."""
    ended(world, "failed")


def cancelled(world: World) -> None:
    """LEG.5: at once, whatever its work does afterwards."""
    parked(world)
    world.cancel(BOB, 0)
    world.cancel(ADA, 0)
    world.end(0, "completed")
    world.cancel(ADA, 0)
    world.result(ADA, 0)


def listed(world: World) -> None:
    """LEG.7: over several pages, each caller's own."""
    for client in (ADA, ADA, BOB, STDIO, NOBODY):
        working(world, client)
    for client in range(len(CALLERS)):
        world.list(client)


def expired(world: World) -> None:
    """LEG.7, trap 23: also for who waits."""
    working(world, ttl=20_003)
    world.result(ADA, 0)
    world.result(SILENT, 0)
    world.wait(20_002)
    world.get(ADA, 0)
    world.wait(1)
    world.cancel(ADA, 0)


# -- questions -----------------------------------------------------------------------------------------------


def answered(world: World) -> None:
    """LEG.8: one of two questions, twice; by who was not asked; and the other with an error."""
    parked(world)
    world.ask(0, "r")
    first, second = world.questions
    world.answer_nothing(STDIO, first)
    world.answer(first)
    world.answer_nothing(ADA, first)
    world.answer(second, "error")
    world.ask(0, "q")
    world.answer(max(world.questions), "not")
    world.end(0, "completed")


def asked_of_who_can(world: World) -> None:
    """INP.2: only who declared it, and takes streams."""
    working(world)
    world.result(SILENT, 0)
    world.result(STDIO, 0)
    world.ask(0, "q", "sampling")
    world.result(ADA, 0)
    world.answer(max(world.questions), "error")


def asked_of_another(world: World) -> None:
    """LEG.8: when a client leaves, another is asked, be it polite, or the session over."""
    parked(world)
    world.give_up(next(iter(world.model.waiters)), politely=False)
    world.result(ADA, 0)
    world.leave(STDIO)
    world.result(ADA, 0)
    world.give_up(next(iter(world.model.waiters)), politely=True)
    world.answer(max(world.questions))
    world.join(STDIO)


def withdrawn(world: World) -> None:
    """LEG.8: questions are taken back when the task is over."""
    parked(world)
    world.end(0, "completed")


def intruded(world: World) -> None:
    """SEC.1, LEG.2, WIRE.3."""
    parked(world)
    world.intrude(ADA, {"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {}})
    world.repeat(next(iter(world.open)))
    world.result(BOB, 0)
    world.result(NOBODY, 0)


STORIES: Final[Mapping[str, Story]] = {
    story.__name__.replace("_", " "): story
    for story in (
        called,
        called_and_ignored,
        asked_in_a_call,
        completed,
        erred,
        failed,
        cancelled,
        listed,
        expired,
        answered,
        asked_of_who_can,
        asked_of_another,
        withdrawn,
        intruded,
    )
}
"""By name."""
