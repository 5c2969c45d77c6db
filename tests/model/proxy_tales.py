"""Short stories that between them come to every rule of the proxy.

Each is told to a :class:`~tests.model.proxy_world.World`, which compares all of it with the reference model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.testing.model.proxy import ProxyCaller
from tests.model.proxy_callers import CALLERS, KEEP_MS, PAYLOAD_MS, TOOLS, UNLIKE, response
from tests.model.proxy_wants import ANSWER_MS, CALL_MS, PROMOTE_MS, STATE_MS
from tests.model.proxy_world import World

__all__ = ["TALES", "Tale", "tell"]

Tale = Callable[[World], None]
ADA: Final[ProxyCaller] = CALLERS["ada"]
LEFT, RIGHT, UNKNOWN, PLAIN = TOOLS
TROUBLES_FROM: Final = {"tools/call": 3, "tasks/get": 1, "tasks/update": 1, "tasks/cancel": 1}
"""Where what can happen to anybody begins in what the honest upstream may answer."""
LOST, UNSENT, BAD_GATEWAY, BAD_REQUEST, GARBAGE, DOWN = range(6)
COMPLETED, FAILED, CANCELLED, WORKING = range(1, 5)
NO_SUCH_TASK, NO_SUCH_METHOD = 16, 17
"""What the other upstream may say of any task."""


def tell(tale: Tale, **facts: Any) -> None:
    """Tell a story to its end, and look at what is left; ``AssertionError`` where a rule is broken."""
    world = World(**facts)
    tale(world)
    world.check_bounds()
    world.check_ledger()
    world.check_calm()
    world.check_ledger()


# -- words ---------------------------------------------------------------------------------------------------


def up(world: World, method: str) -> list[int]:
    """Return the names of the requests of a method that are up."""
    return [name for name, sent in world.in_flight.items() if sent.message["method"] == method]


def befalls(world: World, method: str, trouble: int) -> None:
    """Something happens to the oldest request of a method, at the honest upstream."""
    world.answer(up(world, method)[0], TROUBLES_FROM[method] + trouble)
    world.settle()


def begun(world: World, name: str = LEFT, caller: ProxyCaller = ADA) -> None:
    """A call is up at its upstream."""
    world.call(caller, name)
    world.settle_all(calls=False)


def made(world: World, name: str = LEFT, caller: ProxyCaller = ADA) -> str:
    """A task is made, and its handle known."""
    begun(world, name, caller)
    world.settle_all()
    return world.handles[-1]


def asked(world: World, handle: str, *kinds: int, caller: ProxyCaller = ADA) -> None:
    """Somebody asks how a task stands, and upstream it is answered so."""
    world.get(caller, handle)
    world.settle()
    for kind in kinds or (0,):
        world.answer(up(world, "tasks/get")[0], kind)
        world.settle()


def moved(world: World, handle: str, how: str) -> None:
    """What is true of a task changes."""
    binding = world.model.bindings[handle]
    world.move(binding.upstream, str(binding.task_id), how)


def promoted(world: World) -> str:
    """A call has become a task of the proxy's own."""
    begun(world)
    world.wait(PROMOTE_MS)
    world.settle()
    return world.handles[-1]


# -- calls ---------------------------------------------------------------------------------------------------


def relayed(world: World) -> None:
    """PRX.12: a task is made, polled, and ends; and another, whose upstream keeps it for ever."""
    for how in ("completed", "failed", "cancelled"):
        handle = made(world)
        asked(world, handle)
        moved(world, handle, "working")
        asked(world, handle)
        moved(world, handle, how)
        asked(world, handle)
        world.get(ADA, handle)
        world.settle()


def unlike_as_ever(world: World) -> None:
    """PRX.1: calls of those who declare less, or may less; and of tools that there are not."""
    begun(world)
    world.settle_all()
    for unlike in UNLIKE.values():
        for name in TOOLS:
            begun(world, name, unlike(ADA))
            world.settle_all()


def answers_of_all_kinds(world: World) -> None:
    """PRX.4, PRX.6: whatever an upstream answers to a call, of who takes tasks and who takes none."""
    for how in ("as ever", "undeclared", "without forms"):
        for name, kinds in ((LEFT, 9), (RIGHT, 21)):
            for kind in range(kinds):
                begun(world, name, UNLIKE[how](CALLERS["key"]))
                world.answer(up(world, "tools/call")[0], kind)
                world.settle()
                world.settle_all()


def lost_calls(world: World) -> None:
    """PRX.4: the answer to a call is lost; or the call itself is, once, or each time; or nothing comes."""
    for troubles in ([LOST], [UNSENT], [UNSENT] * 3, [BAD_GATEWAY]):
        begun(world)
        for trouble in troubles:
            befalls(world, "tools/call", trouble)
        world.settle_all()
    begun(world)
    world.wait(CALL_MS)
    assert not up(world, "tools/call")


def store_fails(world: World) -> None:
    """PRX.6: a binding that cannot be kept, and an upstream that cannot be told at first."""
    begun(world)
    world.answer(up(world, "tools/call")[0])
    world.serve()
    world.serve(fails=True)
    for _ in range(2):
        befalls(world, "tasks/cancel", LOST)
        world.wait(1_000)
    world.settle_all()


def full(world: World) -> None:
    """LIM.3: more tasks than one caller may have."""
    for _ in range(4):
        begun(world)
        world.settle_all()


def left_before_the_handle(world: World) -> None:
    """CAN.7: a caller leaves while its call is up, or while its task is bound."""
    leaving = world.call(ADA, LEFT)
    world.settle_all(calls=False)
    world.leave(leaving)
    for served in range(2):
        leaving = world.call(ADA, LEFT)
        world.settle_all(calls=False)
        world.answer(up(world, "tools/call")[0])
        for _ in range(served):
            world.serve()
        world.leave(leaving)
        world.settle_all()
    leaving = world.call(CALLERS["eve"], LEFT)
    world.leave(leaving)
    world.settle_all()


def discovery(world: World) -> None:
    """PRX.2: asked once by who come together, again when it is stale or contradicted; told when it fails."""
    for caller in ("ada", "eve", "mal"):
        world.call(CALLERS[caller], LEFT)
    world.settle_all()
    world.wait(100_000)
    made(world)
    begun(world, RIGHT)
    world.answer(up(world, "tools/call")[0], 14)  # -32601
    begun(world, RIGHT)
    world.settle_all()
    world.wait(100_000)
    world.call(ADA, LEFT)
    for _ in range(3):
        world.answer(up(world, "server/discover")[0], 1)
    world.call(ADA, LEFT)
    world.answer(up(world, "server/discover")[0], 4)
    world.call(ADA, LEFT)
    world.wait(ANSWER_MS)
    for kind in range(20):
        world.wait(100_000)
        world.call(ADA, RIGHT)
        world.answer(up(world, "server/discover")[0], kind)
        world.settle_all()
        world.wait(100_000)
        world.call(ADA, RIGHT)
        world.answer(up(world, "server/discover")[0])
        world.answer(up(world, "tools/list")[0], kind)
        world.settle_all()


def contradicted_while_asked(world: World) -> None:
    """PRX.2: an upstream contradicts what it is being asked for; who asks later asks anew."""
    handle = made(world, RIGHT)
    world.wait(100_000)
    world.get(ADA, handle)
    world.settle()
    world.call(ADA, RIGHT)
    world.answer(up(world, "tasks/get")[0], NO_SUCH_METHOD)
    world.call(ADA, RIGHT)
    assert len(up(world, "server/discover")) == 2
    world.settle_all()


# -- tasks ---------------------------------------------------------------------------------------------------


def denied(world: World) -> None:
    """PRX.7, GET.2: everybody, in every way, at tasks of both upstreams, and at what is no task."""
    handles = [made(world), made(world, RIGHT), "x" * 43, "up-1"]
    for caller in CALLERS:
        for unlike in UNLIKE.values():
            for handle in handles:
                asking = unlike(CALLERS[caller])
                world.get(asking, handle)
                world.update(asking, handle, {"a": response(True)})
                world.listen(asking, [handle])
                world.settle_all()
                world.cancel(asking, handle)
                world.settle_all()
    world.get(evolve(ADA, principal=None), handles[0])
    world.settle()


def answered(world: World) -> None:
    """PRX.10, UPD.4: answers to what is asked and to what is not, that fit or not, declared or not."""
    handle = made(world)
    world.update(ADA, handle, {"a": response(True)})
    world.settle_all()
    moved(world, handle, "input_required")
    asked(world, handle)
    some: tuple[dict[str, Any], ...] = (
        {},
        {"c": {}},
        {"a": response(True)},
        {"a": response(True), "b": response(False)},
    )
    for responses in some:
        for caller in (ADA, UNLIKE["without forms"](ADA)):
            world.update(caller, handle, responses)
            world.settle_all()
    for trouble in range(6):
        world.update(ADA, handle, {"a": response(True)})
        world.settle()
        world.answer(up(world, "tasks/get")[0])
        befalls(world, "tasks/update", trouble)
        world.settle_all()
    moved(world, handle, "completed")
    for _ in range(2):
        world.update(ADA, handle, {"a": response(True)})
        world.settle_all()


def refused_answers(world: World) -> None:
    """UPD.4, PRX.8: an upstream finds fault with answers that fit, and names its task."""
    handle = made(world, RIGHT)
    moved(world, handle, "input_required")
    for kind in range(14):
        world.update(ADA, handle, {"a": response(True)})
        world.settle()
        world.answer(up(world, "tasks/get")[0])
        world.answer(up(world, "tasks/update")[0], kind)
        world.settle_all()


def said_of_a_task(world: World) -> None:
    """PRX.8, PRX.10, PRX.13: whatever an upstream may say of its task."""
    for kind in range(24):
        handle = made(world, RIGHT)
        asked(world, handle, kind)
        world.settle_all()
        asked_again = world.model.end_of(handle, world.now) is None
        if asked_again:
            asked(world, handle, WORKING)
        world.wait(KEEP_MS + PAYLOAD_MS)


def two_ends(world: World) -> None:
    """PRX.13: an upstream tells of two ends; the one that is kept first stands for both who ask."""
    handle = made(world, RIGHT)
    for _ in range(3):
        world.get(ADA, handle)
    world.settle()
    for kind in (COMPLETED, FAILED):
        world.answer(up(world, "tasks/get")[0], kind)
    world.serve(1)
    world.serve()
    world.answer(up(world, "tasks/get")[0], NO_SUCH_TASK)
    world.settle()
    world.get(ADA, handle)
    world.settle()


def store_fails_at_the_end(world: World) -> None:
    """The store fails when an end is looked for, kept, and looked for again."""
    handle = made(world)
    world.get(ADA, handle)
    world.serve(fails=True)
    moved(world, handle, "completed")
    world.get(ADA, handle)
    world.settle()
    world.answer(up(world, "tasks/get")[0])
    world.serve(fails=True)
    handle = made(world, RIGHT)
    world.get(ADA, handle)
    world.settle()
    world.answer(up(world, "tasks/get")[0], NO_SUCH_TASK)
    world.serve(fails=True)
    world.settle_all()


def troubles_of_get(world: World) -> None:
    """PRX.4: a get is sent again where it may help."""
    handle = made(world)
    for trouble in range(6):
        asked(world, handle, 1 + trouble)
        world.settle_all()
    world.get(ADA, handle)
    world.settle()
    world.wait(ANSWER_MS)
    assert not up(world, "tasks/get")


def cancelled(world: World) -> None:
    """PRX.11: a wish goes up; when the task has ended nothing does; whoever asks for what is gone is told."""
    handle = made(world)
    for trouble in range(6):
        world.cancel(ADA, handle)
        world.settle()
        befalls(world, "tasks/cancel", trouble)
        world.settle_all()
    moved(world, handle, "cancelled")
    asked(world, handle)
    world.cancel(ADA, handle)
    world.settle()


def forgotten(world: World) -> None:
    """An upstream loses a task before its time, and after it."""
    handle = made(world)
    world.upstreams["left"].tasks.clear()
    asked(world, handle)
    world.settle_all()
    world.wait(50_000)
    asked(world, handle)
    world.settle_all()


def outlived(world: World) -> None:
    """PRX.13, HIS.4: an end is readable for longer than its handle would live; then nothing is left."""
    handle, other = made(world), made(world, RIGHT)
    world.wait(KEEP_MS - 20_000)
    moved(world, handle, "completed")
    asked(world, handle)
    for milliseconds in (30_000, PAYLOAD_MS, KEEP_MS, 200_000):
        world.wait(milliseconds)
        for one in (handle, other):
            world.get(ADA, one)
            world.settle_all()


def ended_again(world: World) -> None:
    """HIS.4: an end is told for its time; after that its upstream is asked, and may have another."""
    handle = made(world, RIGHT)
    world.wait(10_000)
    asked(world, handle, COMPLETED)
    world.wait(world.payload_ms)
    asked(world, handle, FAILED)


def same_ids(world: World) -> None:
    """PRX.15: two upstreams give the same id, of which each has its own truth."""
    left, right = made(world), made(world, RIGHT)
    moved(world, left, "completed")
    moved(world, right, "failed")
    world.listen(ADA, [left, right])
    world.settle_all()
    for handle in (left, right):
        world.get(ADA, handle)
        world.settle_all()


# -- listening -----------------------------------------------------------------------------------------------


def listened(world: World) -> None:
    """PRX.14: two tasks are listened to, by their owner and by others; one is pushed, one is polled."""
    handles = [made(world), made(world, RIGHT), "x" * 43, "up-1"]
    for caller in CALLERS.values():
        world.listen(caller, handles)
    world.settle_all()
    for name in world.streams_up():
        world.push(name, 0)
    for how in ("working", "input_required", "working", "completed"):
        for handle in handles[:2]:
            moved(world, handle, how)
        for name in world.streams_up():
            world.push(name, 10)
            world.settle()
        world.wait(2_000)
        world.settle_all()
    world.wait(60_000)
    world.settle_all()


def listened_to_undeclared(world: World) -> None:
    """PRX.10: a task asks for what its caller never declared; of that nothing is told, on a stream either."""
    handle = made(world, LEFT, UNLIKE["without forms"](ADA))
    moved(world, handle, "input_required")
    world.listen(ADA, [handle])
    world.settle_all()


def slow_reader(world: World) -> None:
    """SUB.2: who reads slowly gets the latest; and nothing that is older than that, nor after the end."""
    handle = made(world, RIGHT)
    world.listen(ADA, [handle])
    world.settle()
    for kind in range(1, 12):
        for name in world.streams_up():
            world.push(name, kind)
        world.settle()
        moved(world, handle, "working")
        world.wait(700)
        for name in up(world, "tasks/get"):
            world.answer(name, WORKING)
    world.settle_all()


def old_news(world: World) -> None:
    """SUB.2: a poll and a push come in the wrong order."""
    handle = made(world)
    world.listen(ADA, [handle])
    world.settle()
    (poll,) = up(world, "tasks/get")
    stale = dict(world.upstreams["left"].tasks["up-1"])
    world.wait(100)
    moved(world, handle, "input_required")
    for name in world.streams_up():
        world.push(name, 10)
    while world.listening.unread:
        world.read()
    world.upstreams["left"].tasks["up-1"], latest = stale, world.upstreams["left"].tasks["up-1"]
    world.answer(poll)
    world.upstreams["left"].tasks["up-1"] = latest
    world.settle_all()


def read_too_late(world: World) -> None:
    """HIS.4: an end waits for its reader for longer than it is kept."""
    handle, other = made(world), made(world, RIGHT)
    world.listen(ADA, [handle, other])
    world.settle()
    moved(world, handle, "completed")
    for name in up(world, "tasks/get"):
        world.answer(name)
    world.settle()
    world.wait(world.payload_ms)
    while world.listening.unread:
        world.read()
    world.settle_all()
    world.check_streams()


def expires_while_listened_to(world: World) -> None:
    """PRX.7: a handle expires on an open stream, of which nobody reads, and one reads all."""
    handle = made(world)
    world.listen(ADA, [handle])
    world.settle_all()
    world.listen(ADA, [handle])
    world.settle()
    for name in world.streams_up():
        world.push(name, 0)
    for _ in range(5):
        world.wait(KEEP_MS // 4)
        for name in world.streams_up():
            world.push(name, 10)
        for name in up(world, "tasks/get"):
            world.answer(name)
        world.settle()
    world.settle_all()


def store_fails_for_a_stream(world: World) -> None:
    """A stream whose tasks cannot be looked for is about none of them; one that is left is closed."""
    handle = made(world)
    world.listen(ADA, [handle, handle])
    world.serve(fails=True)
    world.listen(UNLIKE["switched off"](ADA), [handle])
    world.listen(ADA, [handle])
    world.settle()
    for exchange in list(world.listening.streams):
        world.leave(exchange)
    world.settle_all()


# -- promotion -----------------------------------------------------------------------------------------------


def promoted_to_the_end(world: World) -> None:
    """PRX.16: whatever ends a promoted call, its task ends so, once."""
    for kind in [*range(5), *range(7, 18), 0]:
        begun(world, RIGHT)
        world.wait(PROMOTE_MS)
        world.settle()
        handle = world.handles[-1]
        world.get(ADA, handle)
        world.update(ADA, handle, {"a": response(True)})
        world.settle()
        world.answer(up(world, "tools/call")[0], kind)
        world.settle_all()
        world.get(ADA, handle)
        world.cancel(ADA, handle)
        world.settle()
        world.wait(KEEP_MS + PAYLOAD_MS)


def promoted_too_late(world: World) -> None:
    """It is answered, or its caller leaves, while it is bound; or it cannot be bound."""
    for fails in (False, True):
        for what in ("answered", "left", "waited for"):
            leaving = world.call(ADA, LEFT)
            world.settle_all(calls=False)
            world.wait(PROMOTE_MS)
            world.serve()
            if what == "answered":
                world.answer(up(world, "tools/call")[0])
            elif what == "left":
                world.leave(leaving)
            world.serve(fails=fails)
            for name in up(world, "tools/call"):
                world.answer(name)
            world.settle_all()


def promoted_and_outlived(world: World) -> None:
    """HIS.4: when its end is not kept any more it is gone, on streams as well: it does not work again."""
    handle = promoted(world)
    world.listen(ADA, [handle])
    world.settle()
    world.wait(10_000)
    world.answer(up(world, "tools/call")[0])
    world.settle()
    world.listen(ADA, [handle])
    world.settle()
    for _ in range(2):  # once it waits to be removed, once it is
        world.wait(world.payload_ms)
        for act in (world.get, world.cancel):
            act(ADA, handle)
            world.settle()
        world.lose(handle)
        world.settle_all()


def promoted_and_cancelled(world: World) -> None:
    """It is cancelled here; the store may fail, and the end is kept all the same."""
    for fails in (False, True):
        handle = promoted(world)
        world.cancel(ADA, handle)
        world.serve()
        world.cancel(ADA, handle)
        world.serve(1)
        world.serve(fails=fails)
        world.wait(300)
        world.settle()
        world.get(ADA, handle)
        world.settle()


def promoted_and_lost(world: World) -> None:
    """PRX.16: its node ends; the task is honestly failed, once, or was cancelled before that was known."""
    handles = [promoted(world), promoted(world)]
    world.lose(handles[0])
    world.listen(ADA, handles)
    world.settle_all(calls=False)
    world.crash()
    world.get(ADA, handles[0])
    world.cancel(ADA, handles[1])
    world.settle()
    for handle in [*handles, "x" * 43]:
        for fails in (True, False):
            world.lose(handle)
            world.serve(fails=fails)
            world.settle()
        world.get(ADA, handle)
        world.settle()


def promoted_end_not_kept(world: World) -> None:
    """The store fails for a while when it ends: an end that was earned is not lost."""
    handle = promoted(world)
    world.answer(up(world, "tools/call")[0])
    for pause in (250, 500, 1_000):
        world.serve(fails=True)
        world.get(ADA, handle)
        world.settle()
        world.wait(pause)
    world.settle()
    world.get(ADA, handle)
    world.settle()


# -- the end of the process ----------------------------------------------------------------------------------


def killed(world: World) -> None:
    """LIFE.4, PRX.6: between any two effects of a call, of a get and of a cancellation, and at each save."""
    for after in range(4):
        for act in (world.get, world.cancel):
            handle = made(world)
            moved(world, handle, "completed")
            world.dies_after = after
            act(ADA, handle)
            world.settle_all()
            world.get(ADA, handle)
            world.settle_all()
            world.wait(KEEP_MS + PAYLOAD_MS)
        begun(world)
        world.answer(up(world, "tools/call")[0])
        world.dies_after = after
        world.serve()
        world.crash(landed=0 if world.asked else None)
        world.settle_all()


# -- rounds of input -----------------------------------------------------------------------------------------

ASKS: Final = 2
"""The honest upstream's answer to a call that asks before there is a task."""
UNDECLARED: Final = UNLIKE["undeclared"](ADA)


def given(world: World) -> str:
    """Return the state that somebody was given last."""
    return list(world.given)[-1]


def rounds(world: World) -> None:
    """INP.4, PRX.10: a call asks before there is a task; who brings back what goes on, and nobody else."""
    begun(world)
    world.answer(up(world, "tools/call")[0], ASKS)
    state, right = given(world), {"a": response(True)}
    for caller, name, responses, brought in (
        (ADA, LEFT, right, f"{state}x"),
        (CALLERS["eve"], LEFT, right, state),
        (ADA, RIGHT, right, state),
        (ADA, LEFT, {"a": response(False)}, state),
        (UNLIKE["without forms"](ADA), LEFT, right, state),
        (ADA, LEFT, {"b": {}}, state),
        (ADA, LEFT, {**right, "b": {}}, state),
        (ADA, LEFT, right, None),
        (UNLIKE["without forms"](ADA), LEFT, right, None),
    ):
        world.call(caller, name, responses, brought)
        world.settle_all()
    world.wait(STATE_MS)
    world.call(ADA, LEFT, right, state)
    world.settle_all()


def collapsed_up(world: World, caller: ProxyCaller = UNDECLARED) -> str:
    """Somebody who declares no tasks has one all the same, hidden; return its handle."""
    world.call(caller, LEFT)
    world.settle_all(calls=False)
    for _ in range(2):  # it is refused, and declared
        world.answer(up(world, "tools/call")[0])
    world.settle()
    return list(world.model.bindings)[-1]


def collapsed(world: World) -> None:
    """PRX.17: the task asks, is answered, and ends; whatever its end is, it is that of the call."""
    for how in ("completed", "failed", "cancelled"):
        handle = collapsed_up(world)
        moved(world, handle, "input_required")
        world.settle_all()
        for responses in ({"a": response(False)}, {"a": response(True)}, None):
            world.call(UNDECLARED, LEFT, responses, given(world))
            world.settle_all()
        for act in (world.get, world.cancel):
            act(ADA, handle)  # it has no handle to anybody
            world.settle()
        moved(world, handle, how)
        for _ in range(2):
            world.call(UNDECLARED, LEFT, {"a": response(True)}, given(world))
            world.settle_all()


def collapsed_for_long(world: World) -> None:
    """A round ends when it has taken a while, be it with troubles on the way; its caller comes again."""
    handle = collapsed_up(world)
    for _ in range(3):
        befalls(world, "tasks/get", LOST)
    while not world.given:
        world.wait(500)
        world.settle_all()
    world.call(UNDECLARED, LEFT, None, given(world))
    world.serve(fails=True)
    world.call(UNDECLARED, LEFT, None, given(world))
    world.settle()
    befalls(world, "tasks/get", BAD_REQUEST)
    moved(world, handle, "completed")
    world.call(UNLIKE["without the tool"](UNDECLARED), LEFT, None, given(world))
    world.call(UNLIKE["in another project"](UNDECLARED), LEFT, None, given(world))
    world.settle_all()


def collapsed_and_left(world: World) -> None:
    """CAN.7: who leaves a first round cannot come back to its task, which is given up; later ones can be."""
    for milliseconds in (0, 600):
        collapsed_up(world)
        if milliseconds:
            world.answer(up(world, "tasks/get")[0])
            world.settle()
        world.leave(world.waiting()[0])
        world.settle_all()
    handle = collapsed_up(world)
    moved(world, handle, "input_required")
    world.settle_all()
    for served in range(4):
        leaving = world.call(UNDECLARED, LEFT, {"a": response(True)}, given(world))
        for _ in range(min(served, 1)):
            world.serve()
        if served > 1:
            world.answer(up(world, "tasks/get")[0])
        if served > 2:
            world.settle()
            world.answer(up(world, "tasks/update")[0])
        world.leave(leaving)
        world.settle_all()


def nothing_to_have(world: World) -> None:
    """NEG.7: where a caller is advertised no tasks, by what was last heard, its guesses find no method."""
    caller = UNLIKE["without the right"](ADA)
    begun(world, LEFT, caller)
    world.settle_all()
    for asking in (caller, UNLIKE["undeclared"](caller), ADA, evolve(ADA, authorizations={})):
        for act in (world.get, world.cancel):
            act(asking, "x" * 43)
            world.settle()


WITH_TASKS: Final[tuple[Tale, ...]] = (
    relayed,
    unlike_as_ever,
    answers_of_all_kinds,
    lost_calls,
    store_fails,
    full,
    left_before_the_handle,
    discovery,
    contradicted_while_asked,
    denied,
    answered,
    refused_answers,
    said_of_a_task,
    two_ends,
    store_fails_at_the_end,
    troubles_of_get,
    cancelled,
    forgotten,
    outlived,
    same_ids,
    listened,
    listened_to_undeclared,
    slow_reader,
    old_news,
    read_too_late,
    expires_while_listened_to,
    store_fails_for_a_stream,
    killed,
)
SHORT_RETENTION: Final[tuple[Tale, ...]] = (relayed, two_ends, outlived, ended_again, listened, read_too_late)
PROMOTING: Final[tuple[Tale, ...]] = (
    promoted_to_the_end,
    promoted_too_late,
    promoted_and_outlived,
    promoted_and_cancelled,
    promoted_and_lost,
    promoted_end_not_kept,
    unlike_as_ever,
)
COLLAPSING: Final[tuple[Tale, ...]] = (
    rounds,
    collapsed,
    collapsed_for_long,
    collapsed_and_left,
    answers_of_all_kinds,
    unlike_as_ever,
)
WITHOUT_TASKS: Final[tuple[Tale, ...]] = (unlike_as_ever, nothing_to_have)


def _named(tales: tuple[Tale, ...], world: str, **facts: int) -> dict[str, tuple[Tale, dict[str, Any]]]:
    return {f"{world}, {tale.__name__.replace('_', ' ')}": (tale, facts) for tale in tales}


TALES: Final[Mapping[str, tuple[Tale, dict[str, Any]]]] = {
    **_named(WITH_TASKS, "with tasks"),
    **_named(SHORT_RETENTION, "handles that outlive ends", payload_ms=KEEP_MS // 2),
    **_named(PROMOTING, "promoting", promotes=True, left_tasks=False, right_tasks=False),
    **_named(
        (promoted_to_the_end, promoted_and_lost, promoted_and_outlived),
        "promoting, handles that outlive ends",
        promotes=True,
        left_tasks=False,
        right_tasks=False,
        payload_ms=KEEP_MS // 2,
    ),
    **_named(COLLAPSING, "collapsing", collapses=True),
    **_named(WITHOUT_TASKS, "without tasks", left_tasks=False),
}
"""By name, and what its world is like."""
