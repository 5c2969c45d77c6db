"""Short stories of a requester toward a server of 2025-11-25; each is told to a world that compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcp_tasks_proto.requester import Completed, Failed
from tests.model.legacy_requester_world import BROKE, GONE, LIMITS, World, form, sampling

__all__ = ["STORIES", "Story", "tell"]

Story = Callable[[World], None]


def tell(story: Story) -> None:
    """Play a story to its end, over HTTP and on stdio; ``AssertionError`` where a rule is broken."""
    for http in (False, True):
        world = World(http=http)
        story(world)
        world.bring_to_an_end()


def working(world: World) -> str:
    """A call has become a task; return its id."""
    world.call("render")
    world.hand_out(next(iter(world.outer)))
    return list(world.tasks)[-1]


def told(world: World, status: str, *, after_ms: int = 1_000) -> None:
    """The next poll is answered."""
    world.wait(after_ms)
    world.tell(world.host.number_of("tasks/get"), status)


def parked(world: World) -> str:
    """Its task waits, and has asked something."""
    task_id = working(world)
    told(world, "input_required")
    world.ask("q1", "elicitation/create", form("one"), task_id=task_id)
    return task_id


def called(world: World) -> None:
    """LEG.3, trap 22: of each kind of tool, and answered plainly."""
    for tool, how in (("render", "done"), ("draw", "broke"), ("greet", "done")):
        world.call(tool)
        world.finish(next(iter(world.outer)), how)


def completed(world: World) -> None:
    """LEG.4: what it ended with is fetched."""
    working(world)
    told(world, "completed")
    world.lose(world.host.number_of("tasks/result"))
    told(world, "completed")
    world.result(world.host.number_of("tasks/result"), "done")


def failed(world: World) -> None:
    """LEG.6, trap 21: with a result, and with an error."""
    for payload in ("done", "empty", "broke"):
        working(world)
        told(world, "failed")
        world.result(world.host.number_of("tasks/result"), payload)


def withheld(world: World) -> None:
    """REQ.3: a server that fails to give a result is asked again, a few times, and then taken at its word."""
    down = {"code": -32603, "message": "down"}
    for error, last, kind in ((down, "done", Completed), (GONE, "done", Completed), (down, None, Failed)):
        call = world.tasks[working(world)].call
        for _ in range(LIMITS.result_attempts - 1):
            told(world, "completed", after_ms=4_000)
            world.refuse(world.host.number_of("tasks/result"), error)
            assert call not in world.host.outcomes
        told(world, "completed", after_ms=4_000)
        if last is None:
            world.refuse(world.host.number_of("tasks/result"), error)
        else:
            world.result(world.host.number_of("tasks/result"), last)
        assert isinstance(world.host.outcomes.get(call), kind), "REQ.3: a few times, and no more"


def failed_with_an_error_of_the_servers_own(world: World) -> None:
    """LEG.4: the code of an error says nothing where a task is said to have failed; HTTP's status does."""
    call = world.tasks[working(world)].call
    if world.http:
        told(world, "failed")
        world.refuse(world.host.number_of("tasks/result"), BROKE, http_status=503)
        assert call not in world.host.outcomes
    told(world, "failed")
    world.refuse(world.host.number_of("tasks/result"), {"code": -32603, "message": "broke"})
    assert isinstance(world.host.outcomes.get(call), Failed), "LEG.4: it is what the call ended with"


def cancelled(world: World) -> None:
    """LEG.5, REQ.7: by the server, by a caller that waits, and by one that does not."""
    working(world)
    told(world, "cancelled")
    for wait in (True, False):
        world.cancel(world.tasks[working(world)].call, wait=wait)
        world.refuse(world.host.number_of("tasks/cancel"), GONE)
        world.tell(world.host.number_of("tasks/get"), "completed")


def gone(world: World) -> None:
    """LEG.7, trap 23."""
    parked(world)
    world.refuse(world.host.number_of("tasks/result"), GONE)
    world.wait(1_000)
    world.refuse(world.host.number_of("tasks/get"), GONE)


def answered(world: World) -> None:
    """LEG.8, trap 24: one stream, however often it is seen to wait."""
    task_id = parked(world)
    for _ in range(3):
        told(world, "input_required")
    world.answer(*next(iter(world.shown)))
    world.ask(7, "sampling/createMessage", sampling("two"), task_id=task_id)
    told(world, "input_required")
    world.answer(*next(iter(world.shown)))
    told(world, "working")
    told(world, "completed")
    world.result(world.host.number_of("tasks/result"), "done")


def asked_again(world: World) -> None:
    """LEG.8: after the stream broke, the same question under another id."""
    task_id = parked(world)
    world.answer(*next(iter(world.shown)))
    world.lose(world.host.number_of("tasks/result"))
    told(world, "input_required")
    world.ask(2, "elicitation/create", form("one"), task_id=task_id)


def asked_anew(world: World) -> None:
    """LEG.8: the same once its task has worked on, which is another question, though its stream broke."""
    task_id = parked(world)
    for number in (2, 3):
        world.answer(*next(iter(world.shown)))
        told(world, "input_required")
        world.lose(world.host.number_of("tasks/result"))
        told(world, "working")
        world.ask(number, "elicitation/create", form("one"), task_id=task_id)
        told(world, "input_required")


def moot(world: World) -> None:
    """LEG.8: a task works again, and a question is taken back."""
    task_id = parked(world)
    told(world, "input_required")
    told(world, "working")
    world.ask(2, "elicitation/create", form("two"), task_id=task_id)
    told(world, "input_required")
    world.withdraw(world.model.questions[-1])
    told(world, "input_required")


def asked_in_a_call(world: World) -> None:
    """LEG.8: one after the other, and three beside each other, two as tasks (LEG.10)."""
    world.call("greet")
    request = next(iter(world.outer))
    world.ask(1, "elicitation/create", form("one"), on=request)
    world.ask(2, "elicitation/create", {**form("two"), "task": {}}, on=request)
    world.ask(3, "elicitation/create", {**form("three"), "task": {}}, on=request)
    world.ask(4, "elicitation/create", form("four"), on=request)
    two, three = world.model.received
    for number, made in enumerate((two, three), 5):
        world.ask(number, "tasks/result", {"taskId": made})
    for _ in ("one", "two"):
        world.answer(*next(iter(world.shown)))
    world.finish(request, "done")
    world.ask(7, "tasks/get", {"taskId": two})
    world.ask(8, "tasks/get", {"taskId": three})


def not_answered(world: World) -> None:
    """REQ.6: a call without an answer is lost; the time that somebody needs to answer is not the server's."""
    world.call("greet")
    world.wait(30_000)
    world.ask(1, "elicitation/create", form("one"), on=next(iter(world.outer)))
    world.wait(60_000)
    world.answer(*next(iter(world.shown)))
    world.wait(60_000)


def not_asked(world: World) -> None:
    """INP.2: what was not declared, what is none, and what is for nobody."""
    world.ask(1, "ping", {})
    world.ask(2, "elicitation/create", form("early"))
    working(world)
    world.ask("3", "roots/list", {})
    world.ask(4, "elicitation/create", {"message": 5}, task_id=next(iter(world.tasks)))
    world.ask(5, "tools/list", {})


def received(world: World) -> None:
    """LEG.10: made, listed, waited for, answered, cancelled, expired."""
    task_id = working(world)
    for number, name in enumerate(("one", "two", "three")):
        world.ask(number, "elicitation/create", {**form(name), "task": {"ttl": 9_001}}, task_id=task_id)
    told(world, "input_required")
    one, two, three = world.model.received
    for number, made in enumerate((one, two, three), 10):
        world.ask(number, "tasks/result", {"taskId": made})
    world.withdraw(world.model.questions[0])
    world.answer(*next(iter(world.shown)))
    world.ask(20, "tasks/cancel", {"taskId": two})
    world.ask(21, "tasks/list", {})
    world.ask(22, "tasks/list", {"cursor": "x"})
    world.ask(23, "tasks/result", {"taskId": one})
    world.wait(9_001)
    world.ask(24, "tasks/get", {"taskId": three})


def asked_by_what_is_gone(world: World) -> None:
    """LEG.10: a task of this side waits for an answer, and the one of the server's that asked is gone."""
    task_id = working(world)
    world.ask(1, "elicitation/create", {**form("one"), "task": {}}, task_id=task_id)
    world.ask(2, "tasks/result", {"taskId": next(iter(world.model.received))})
    world.wait(1_000)
    world.refuse(world.host.number_of("tasks/get"), GONE)
    world.ask(3, "tasks/get", {"taskId": next(iter(world.model.received))})


def restarted(world: World) -> None:
    """REQ.6: with a question that is answered, and one that is not."""
    task_id = parked(world)
    world.answer(*next(iter(world.shown)))
    world.restart()
    world.tell(world.host.number_of("tasks/get"), "input_required")
    world.ask(9, "elicitation/create", form("two"), task_id=task_id)
    told(world, "cancelled")


STORIES: Final[Mapping[str, Story]] = {
    story.__name__.replace("_", " "): story
    for story in (
        called,
        completed,
        failed,
        withheld,
        failed_with_an_error_of_the_servers_own,
        cancelled,
        gone,
        answered,
        asked_again,
        asked_anew,
        moot,
        asked_in_a_call,
        not_answered,
        not_asked,
        received,
        asked_by_what_is_gone,
        restarted,
    )
}
"""By name."""
