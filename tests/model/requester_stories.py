"""Short stories of a requester; each is told to a :class:`~tests.model.requester_world.World`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.model.requester_world import DONE, FORM, SAMPLING, World, handle, view

__all__ = ["STORIES", "Story", "tell"]

Story = Callable[[World], None]
HINT_MS: Final = 1_000
ACK: Final = {"resultType": "complete"}


def tell(story: Story) -> None:
    """Play a story to its end; ``AssertionError`` where a rule is broken."""
    world = World(listen="stream" in story.__name__)
    story(world)
    world.bring_to_an_end()


def until(world: World, method: str) -> None:
    """Wait until a request of this method is on its way."""
    while not world.host.waiting(method):
        assert world.host.deadline is not None, f"{method} comes"
        world.wait(max(world.host.deadline - world.host.now, 0))


def poll(world: World, status: str = "working", **more: Any) -> None:
    """Wait for the next poll, and answer it."""
    until(world, "tasks/get")
    world.reply("tasks/get", view(status, **more))


def working(world: World, **more: Any) -> int:
    """A call has become a task."""
    call = world.call()
    world.reply("tools/call", handle(**more))
    return call


def parked(world: World, *keys: str) -> int:
    """Its task asks something."""
    call = working(world)
    poll(world, "input_required", keys=keys or ("q", "r"), at=1)
    return call


def streamed(world: World) -> int:
    """A stream brings its news."""
    call = working(world)
    world.wait(20)
    world.agree(stream(world), {"one"})
    return call


def stream(world: World) -> int:
    """Return the newest stream."""
    return max(world.streams)


# -- calls, polls, ends ------------------------------------------------------------------------------------


def returned(world: World) -> None:
    """REQ.1: a result, with a resultType, without, and with one that nobody knows."""
    for more in ({}, {"resultType": "complete"}, {"resultType": "partial"}, {"resultType": 5}):
        world.call()
        world.reply("tools/call", {**DONE, **more})


def asked_before_a_task(world: World) -> None:
    """REQ.1: rounds of questions, one of them empty, one that nobody here can answer."""
    call = world.call()
    rounds = {"resultType": "input_required", "inputRequests": {"q": FORM, "r": FORM}, "requestState": "s"}
    world.reply("tools/call", rounds)
    world.answer(call, "q", {"action": "maybe"})
    world.answer(call, "q")
    world.answer(call, "r")
    world.reply("tools/call", {"resultType": "input_required", "requestState": "t"})
    world.wait(1_000)
    world.reply("tools/call", {"resultType": "input_required", "inputRequests": {"q": SAMPLING}})


def handed_out_twice(world: World) -> None:
    """REQ.1: the task of another call, or a handle that is none."""
    working(world)
    working(world)
    world.call()
    world.reply("tools/call", {"resultType": "task", "taskId": "two"})


def hints(world: World) -> None:
    """REQ.2: hints that make sense, and others."""
    working(world, pollIntervalMs=5_000)
    world.wait(5_000)
    for hint in (250, 0, -7, 1, 2_000):
        world.reply("tasks/get", view(pollIntervalMs=hint))
        world.wait(max(hint, 1_000))


def two_schedules(world: World) -> None:
    """REQ.2, trap 17."""
    working(world, pollIntervalMs=500)
    working(world, task_id="two", pollIntervalMs=4_000)
    for _ in range(8):
        world.wait(500)
        if world.host.waiting("tasks/get"):
            world.reply("tasks/get", view(pollIntervalMs=500))


def troubled(world: World) -> None:
    """REQ.3: polls fail in every way, and none of them is the end."""
    working(world)
    until(world, "tasks/get")
    world.fail("tasks/get")
    until(world, "tasks/get")
    world.refuse("tasks/get", -32603)
    until(world, "tasks/get")
    world.refuse("tasks/get", -32603, status=503, retry_after_ms=9_001)
    until(world, "tasks/get")
    world.receive(world.host.number_of("tasks/get"), None, status=401)
    until(world, "tasks/get")
    world.wait(5_003)
    poll(world, "completed")


def another_task(world: World) -> None:
    """REQ.5: a view that is not of the task; then its end, and more."""
    call = working(world)
    poll(world, "completed", task_id="two")
    poll(world, "failed")
    world.answer(call, "q")


def gone(world: World) -> None:
    """REQ.6: the task is unknown when another process goes on."""
    call = working(world)
    world.restart()
    world.refuse("tasks/get", -32602)
    world.resume(call)
    world.refuse("tasks/get", -32601)


def unheard(world: World) -> None:
    """REQ.5: its time passes without news; the poll that decides fails."""
    working(world, ttlMs=2_501)
    for _ in range(3):
        world.wait(HINT_MS)
        if world.host.waiting("tasks/get"):
            world.fail("tasks/get")
    world.wait(10_000)


def outlived(world: World) -> None:
    """REQ.5: a task that is heard of after its time lives on."""
    working(world, ttlMs=2_501)
    for _ in range(6):
        poll(world, ttlMs=2_501)


def waited_for(world: World) -> None:
    """REQ.3: a caller has a deadline."""
    world.call(life_ms=3_301)
    world.reply("tools/call", handle())
    world.wait(4_000)


# -- questions ---------------------------------------------------------------------------------------------


def answered(world: World) -> None:
    """REQ.4: two keys, one after the other, the second while the first is on its way."""
    call = parked(world)
    world.answer(call, "q", {"action": "maybe"})
    world.answer(call, "q")
    world.answer(call, "r")
    world.reply("tasks/update", ACK)
    world.reply("tasks/update", ACK)
    poll(world, "input_required", keys=["q", "r"], at=2)
    poll(world, "completed", at=3)


def answered_in_vain(world: World) -> None:
    """REQ.4: an update is lost, its acknowledgement as well, and then the question is moot."""
    call = parked(world)
    world.answer(call, "q")
    world.fail("tasks/update")
    world.wait(500)
    world.fail("tasks/update")
    world.wait(100)
    if world.host.waiting("tasks/get"):
        world.reply("tasks/get", view("working", at=2))
    poll(world, "working", at=2)
    world.wait(3_000)


def moot(world: World) -> None:
    """REQ.4: a question goes away, and comes back."""
    parked(world)
    poll(world, "input_required", keys=["r"], at=2)
    poll(world, "input_required", keys=["q", "r"], at=3)
    poll(world, "cancelled", at=4)


def refused(world: World) -> None:
    """UPD.4: two answers are refused together, then one alone, and the question stays."""
    call = parked(world)
    world.answer(call, "q")
    world.fail("tasks/update")
    world.answer(call, "r")
    world.wait(500)
    world.refuse("tasks/update", -32602)
    world.refuse("tasks/update", -32602)
    world.reply("tasks/update", ACK)
    poll(world, "input_required", keys=["r"], at=2)
    poll(world, "input_required", keys=["q"], at=3)


def restarted(world: World) -> None:
    """REQ.4, REQ.6: between an answer and its acknowledgement; and with a question on show."""
    call = parked(world)
    world.answer(call, "q")
    world.restart()
    world.reply("tasks/get", view("input_required", keys=["q", "r"], at=1))
    world.reply("tasks/update", ACK)
    world.restart()
    world.reply("tasks/get", view("input_required", keys=["q", "r"], at=1))
    world.answer(3, "r")
    world.answer(3, "q")


def restarted_elsewhere(world: World) -> None:
    """INP.2: the next process can ask nobody, the one after that can."""
    parked(world)
    world.restart(capabilities={})
    world.reply("tasks/get", view("input_required", keys=["q", "s"], at=1))
    world.restart(capabilities={"elicitation": {}})
    world.reply("tasks/get", view("input_required", keys=["q", "s"], at=1))


def impossible(world: World) -> None:
    """INP.2: what nobody can be asked is cancelled, or left alone."""
    working(world)
    broken = {"method": "elicitation/create", "params": 5}
    poll(world, "input_required", inputRequests={"x": broken, "y": SAMPLING, "z": {}}, at=1)
    world.reply("tasks/update", ACK)


def too_many(world: World) -> None:
    """LIM.3: a task asks more than it may."""
    parked(world)
    poll(world, "input_required", keys=["a", "b", "c"], at=2)


# -- cancelling --------------------------------------------------------------------------------------------


def cancelled_and_waited_for(world: World) -> None:
    """REQ.7, trap 20: nobody is asked any more; the server is told until it knows."""
    call = parked(world)
    world.cancel(call, wait=True)
    world.fail("tasks/cancel")
    world.answer(call, "q")
    poll(world, "input_required", keys=["q", "r", "s"], at=2)
    world.reply("tasks/cancel", ACK)
    world.cancel(call, wait=True)
    poll(world, "completed", at=3)


def cancelled_and_left(world: World) -> None:
    """REQ.7: a few tries outlive the call."""
    call = parked(world)
    world.cancel(call, wait=False)
    for pause_ms in (500, 1_000, 2_000):
        world.fail("tasks/cancel")
        world.wait(pause_ms)


def abandoned(world: World) -> None:
    """REQ.7: that cancels nothing."""
    call = parked(world)
    world.abandon(call)
    world.wait(5_000)
    world.resume(call)
    world.reply("tasks/get", view("completed", at=2))


# -- streams -----------------------------------------------------------------------------------------------


def ended_on_a_stream(world: World) -> None:
    """REQ.5, trap 19: the end comes by both ways."""
    streamed(world)
    world.wait(HINT_MS)
    poll_request, news = world.host.number_of("tasks/get"), stream(world)
    world.notify(news, view("completed", at=3))
    world.reply(poll_request, view("failed", at=4))


def overtaken_on_a_stream(world: World) -> None:
    """REQ.5: a poll brings what is older than the news; news that are older; news of another task."""
    streamed(world)
    world.wait(HINT_MS)
    world.notify(stream(world), view("input_required", keys=["q"], at=5))
    world.reply("tasks/get", view("working", at=2))
    world.notify(stream(world), view("working", at=3))
    world.notify(stream(world), view("completed", "two", at=9))


def hinted_at_on_a_stream(world: World) -> None:
    """SUB.2: there is news, and the stream does not say which."""
    streamed(world)
    poll(world)
    news = view("completed", at=3)
    del news["result"]
    world.wait(HINT_MS)
    world.notify(stream(world), news)
    world.wait(1)
    world.reply("tasks/get", view("completed", at=3))


def lost_stream(world: World) -> None:
    """REQ.2: without a stream the task is polled as before."""
    streamed(world)
    poll(world)
    world.wait(2_000)
    world.fail(stream(world))
    world.wait(1)
    world.reply("tasks/get", view("completed", at=3))


STORIES: Final[Mapping[str, Story]] = {
    story.__name__.replace("_", " "): story
    for story in (
        returned,
        asked_before_a_task,
        handed_out_twice,
        hints,
        two_schedules,
        troubled,
        another_task,
        gone,
        unheard,
        outlived,
        waited_for,
        answered,
        answered_in_vain,
        moot,
        refused,
        restarted,
        restarted_elsewhere,
        impossible,
        too_many,
        cancelled_and_waited_for,
        cancelled_and_left,
        abandoned,
        ended_on_a_stream,
        overtaken_on_a_stream,
        hinted_at_on_a_stream,
        lost_stream,
    )
}
"""By name."""
