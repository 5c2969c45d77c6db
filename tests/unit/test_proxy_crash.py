"""The proxy is killed between any two effects; all but its store is gone: PRX.4, PRX.6, PRX.13, PRX.16.

A caller and an upstream live on. For every moment at which the proxy can be killed: the upstream ran each
call at most once, every handle that the caller got still works, an end that it was told stays as it was told,
be it by an answer or on a stream, and a promoted call whose node is gone is honestly failed. The ledger has
each task once, and its end once (HIS.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field

from mcp_tasks_proto import MessageReceived, Reply, Send, StreamReady, TimePassed, WorkLost
from mcp_tasks_proto.effects import StopCall
from mcp_tasks_proto.errors import ErrorObject, unknown_task
from mcp_tasks_proto.history.entries import CREATED
from mcp_tasks_proto.proxy import (
    DropTask,
    HandleCodec,
    HandleKey,
    Note,
    ProxyEffect,
    ProxyEngine,
    ProxyInput,
    Purge,
    SealedHandles,
    SendUpstream,
    StopUpstream,
    StoredHandles,
    UpstreamAnswered,
)
from mcp_tasks_proto.testing import ProxyStore, request
from mcp_tasks_proto.wire.jsonrpc import error_message, result_message
from tests.unit.proxy_world import DONE, FORMS, LATER, START, ToyAead, make_settings, task
from tests.unit.world import ACCEPTED, form

CODECS: dict[str, HandleCodec] = {
    "stored": StoredHandles(),
    "sealed": SealedHandles([HandleKey("a", ToyAead(b"k"))]),
}


@define(eq=False)
class Renderer:
    """An upstream with a memory: a call becomes a task that asks once, and ends when it is answered."""

    tasks: bool = True
    """Whether it has tasks; if not, a call takes for ever until it is told to answer."""
    ran: Counter[str] = field(factory=Counter)
    """How often each call was carried out."""
    answered: set[str] = field(factory=set)
    cancelled: set[str] = field(factory=set)
    slow: list[int] = field(factory=list)

    def answer(self, sent: SendUpstream) -> UpstreamAnswered | None:
        """Answer a request, or keep it for later."""
        params = sent.message["params"]
        match sent.message["method"]:
            case "server/discover":
                extensions: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}} if self.tasks else {}
                capabilities = {"tools": {}, "extensions": extensions}
                found = {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                    "ttlMs": 9_000_000,
                }
                return reply(sent, found)
            case "tools/list":
                return reply(sent, {"tools": [{"name": "render"}], "ttlMs": 9_000_000})
            case "tools/call":
                name = params["arguments"]["name"]
                self.ran[name] += 1
                if not self.tasks:
                    self.slow.append(sent.request)
                    return None
                return reply(sent, {"resultType": "task", **task(task_id=f"task-of-{name}")})
            case "tasks/update":
                self.answered.add(params["taskId"])
                return reply(sent, {})
            case "tasks/cancel":
                self.cancelled.add(params["taskId"])
                return reply(sent, {})
            case "tasks/get":
                return self._get(sent, params["taskId"])
            case "subscriptions/listen":  # it does not push, so that the proxy polls
                message = error_message(sent.request, ErrorObject(-32601, "Method not found"))
                return UpstreamAnswered(request=sent.request, message=message)
        return None

    def _get(self, sent: SendUpstream, task_id: str) -> UpstreamAnswered:
        if task_id.removeprefix("task-of-") not in self.ran:
            message = error_message(sent.request, unknown_task())
            return UpstreamAnswered(request=sent.request, message=message)
        if task_id in self.cancelled:
            return reply(sent, task("cancelled", task_id, lastUpdatedAt=LATER))
        if task_id in self.answered:
            return reply(sent, task("completed", task_id, lastUpdatedAt=LATER, result=dict(DONE)))
        return reply(sent, task("input_required", task_id, inputRequests={"a": form()}))


def reply(sent: SendUpstream, result: dict[str, Any]) -> UpstreamAnswered:
    return UpstreamAnswered(request=sent.request, message=result_message(sent.request, result))


@define(eq=False, kw_only=True)
class World:
    """A proxy that can be killed, between a caller and an upstream that cannot."""

    codec: HandleCodec
    upstream: Renderer
    settings: dict[str, Any] = field(factory=dict)
    kill_at: int | None = None
    """Before which effect, counted over all, the proxy is killed."""
    store: ProxyStore = field(factory=ProxyStore)
    now: int = START
    nodes: int = 0
    done: int = 0
    """Effects that were carried out."""
    killed: bool = False
    engine: ProxyEngine = field(init=False)
    deadline: int | None = None
    replies: dict[int, dict[str, Any]] = field(factory=dict)
    views: dict[str, list[dict[str, Any]]] = field(factory=dict)
    """What the caller has seen of each handle it got, from the handle on."""
    exchanges: int = 0

    def __attrs_post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start a proxy that knows nothing but its store."""
        self.nodes += 1
        settings = make_settings(**self.settings)
        self.engine = ProxyEngine(settings=settings, codec=self.codec, node=f"node-{self.nodes}")
        self.deadline = None

    def give(self, fact: ProxyInput) -> None:
        """Hand in a fact, and carry out what comes of it, unless the proxy is killed on the way."""
        facts = [fact]
        while facts:
            step = self.engine.handle(facts.pop(0), now=self.now)
            self.deadline = step.deadline
            for effect in step.effects:
                if self.done == self.kill_at and not self.killed:
                    self.killed = True
                    return self.start()
                self.done += 1
                facts.extend(self.carry_out(effect))
        return None

    def carry_out(self, effect: ProxyEffect) -> Iterator[ProxyInput]:
        """Carry out one effect."""
        match effect:
            case Reply(exchange=int() as exchange, message=dict() as message):
                self.replies[exchange] = message
            case SendUpstream():
                if (answer := self.upstream.answer(effect)) is not None:
                    yield answer
            case Send(message=message):
                self.told(message["params"])
                yield StreamReady(effect.exchange)
            case DropTask(handle=handle):
                self.store.drop(handle)
            case Note():
                self.store.note(effect)
            case Reply() | StopCall() | StopUpstream() | Purge():
                pass
            case _:
                yield self.store.answer(effect)

    # -- the caller ----------------------------------------------------------------------------------------

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Send a request; return the reply, or ``None`` where the proxy was killed before it."""
        self.exchanges += 1
        message = request(method, params, capabilities=FORMS)
        self.give(MessageReceived(exchange=self.exchanges, message=message, principal="alice"))
        return self.replies.get(self.exchanges)

    def see(self, answer: dict[str, Any] | None) -> None:
        """Take in a reply that may hold a view; what it says must go on from what was seen."""
        self.told((answer or {}).get("result", {}))

    def told(self, members: dict[str, Any]) -> None:
        """Take in a view, be it in a result or in a notification: they differ by their envelopes only."""
        if "taskId" in members:
            view = {name: value for name, value in members.items() if name not in ("resultType", "_meta")}
            self.views.setdefault(view["taskId"], []).append(view)

    def call(self, name: str) -> None:
        """Call the tool once; a caller never sends the same call again."""
        self.see(self.ask("tools/call", {"name": "render", "arguments": {"name": name}}))

    def poll(self) -> None:
        """Ask how every task stands."""
        for handle in list(self.views):
            self.see(self.ask("tasks/get", {"taskId": handle}))

    def update(self) -> None:
        """Answer what every task asks."""
        for handle in list(self.views):
            self.ask("tasks/update", {"taskId": handle, "inputResponses": {"a": ACCEPTED}})

    def cancel(self) -> None:
        """Cancel every task."""
        for handle in list(self.views):
            self.ask("tasks/cancel", {"taskId": handle})

    def listen(self) -> None:
        """Listen to every task, until the proxy is gone."""
        self.ask("subscriptions/listen", {"notifications": {"taskIds": list(self.views)}})

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        until = self.now + milliseconds
        while self.deadline is not None and self.deadline <= until:
            self.now = max(self.now, self.deadline)
            self.give(TimePassed())
        self.now = until


def relayed(world: World) -> None:
    """Two tasks: made, polled, answered, ended."""
    world.call("one")
    world.poll()
    world.call("two")
    world.update()
    world.poll()
    world.poll()


def promoted(world: World) -> None:
    """A call that takes long becomes a task, and ends."""
    world.call("one")
    world.wait(5000)
    world.see(world.replies.get(1))
    world.poll()
    for name in world.upstream.slow:
        if world.nodes == 1:
            message = result_message(name, DONE)
            world.give(UpstreamAnswered(request=name, message=message))
    world.poll()
    for handle, binding in list(world.store.bindings.items()):
        if binding.node is not None and binding.node != f"node-{world.nodes}":
            world.give(WorkLost(handle, binding.node))
    world.poll()


def listened(world: World) -> None:
    """Two tasks are listened to; one ends, and then the other one is cancelled."""
    world.call("one")
    world.call("two")
    world.listen()
    world.wait(1000)
    for handle in list(world.views)[:1]:
        world.ask("tasks/update", {"taskId": handle, "inputResponses": {"a": ACCEPTED}})
    world.wait(1000)
    world.cancel()
    world.wait(1000)
    world.poll()


def cancelled(world: World) -> None:
    """A task is cancelled, and again when it has ended."""
    world.call("one")
    world.cancel()
    world.poll()
    world.cancel()
    world.poll()


STORIES = {
    "relayed": (relayed, True),
    "promoted": (promoted, False),
    "listened": (listened, True),
    "cancelled": (cancelled, True),
}


def live(story: str, codec: str, kill_at: int | None) -> World:
    tell, tasks = STORIES[story]
    settings = {} if tasks else {"promote_after_ms": 5000}
    world = World(codec=CODECS[codec], upstream=Renderer(tasks), settings=settings, kill_at=kill_at)
    tell(world)
    return world


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("story", STORIES)
def test_prx_killed_between_any_two_effects(story: str, codec: str) -> None:
    whole = live(story, codec, None)
    ends = {"listened": {"completed", "cancelled"}, "cancelled": {"cancelled"}}.get(story, {"completed"})
    assert {seen[-1]["status"] for seen in whole.views.values()} == ends
    assert whole.done > 15
    for moment in range(whole.done):
        world = live(story, codec, moment)
        assert world.killed
        assert max(world.upstream.ran.values(), default=0) <= 1, f"a call ran twice, killed at {moment}"
        for handle in world.views:
            answer = world.ask("tasks/get", {"taskId": handle})
            assert answer is not None
            assert "result" in answer, f"a dead handle, killed at {moment}: {answer}"
            world.see(answer)
        for seen in world.views.values():
            check_story(seen, moment, promoted=story == "promoted")
            if seen[-1]["status"] in ENDS and story != "promoted":
                assert seen[-1]["status"] in ends
        check_ledger(world, moment)


ENDS = ("completed", "failed", "cancelled")


def check_ledger(world: World, moment: int) -> None:
    """Each task that a caller knows is there once, and ends there as it ended."""
    assert set(world.views) <= set(world.store.entries), (
        f"a task that is not in the ledger, killed at {moment}"
    )
    for handle, entry in world.store.entries.items():
        made = [event for event in entry.timeline if event.kind == CREATED]
        ends = [event for event in entry.timeline if event.status is not None and event.status.terminal]
        assert len(made) == 1
        assert len(ends) == (handle in world.store.snapshots), f"an end that is not noted, killed at {moment}"
        assert all(event.status is entry.status for event in ends)
        for view in world.views.get(handle, [])[-1:]:
            if view["status"] in ENDS:
                assert view["status"] == entry.status.value


def check_story(seen: list[dict[str, Any]], moment: int, *, promoted: bool) -> None:
    """An end is the end; and there is one, honestly told."""
    ends = [view for view in seen if view["status"] in ENDS]
    assert all(view == ends[0] for view in ends), f"two ends, killed at {moment}"
    assert seen[len(seen) - len(ends) :] == ends, f"a stale view after the end, killed at {moment}"
    if promoted:
        assert ends, f"an orphan without an end, killed at {moment}"
        if ends[0]["status"] == "failed":
            assert ends[0]["error"]["data"]["reason"] == "worker_lost"
