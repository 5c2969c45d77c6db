"""One proxy engine, its store and its upstreams, and the reference model that every step is compared with.

Nothing is carried out by itself: what the engine asks of the store waits until :meth:`World.serve` comes to
it, and what it asks of an upstream until :meth:`World.answer` does. Each request of a caller is told as a
story (:mod:`tests.model.proxy_requests`): after each fact that the engine is given, what the stories want
next, and what they tell, must be what the engine does, and nothing else. So no call is sent twice, no request
is answered twice or before its save, and whatever is told is the model's. A step that is not so raises
``AssertionError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import (
    ExchangeClosed,
    HmacSealer,
    LoadFailed,
    Reply,
    Saved,
    SaveFailed,
    SaveRefused,
    Send,
    StopCall,
    StreamReady,
    TimePassed,
    WorkLost,
)
from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.proxy import (
    DrawRandom,
    DropTask,
    LoadTask,
    MessageAdmitted,
    Note,
    ProxyEffect,
    ProxyEngine,
    ProxyInput,
    ProxySettings,
    Purge,
    SaveBinding,
    SaveSnapshot,
    SendUpstream,
    SnapshotKept,
    StopUpstream,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.testing import ProxyStore, request
from mcp_tasks_proto.testing.model import ErrorAnswer, PeerAnswer, difference
from mcp_tasks_proto.testing.model.proxy import (
    ModelLedger,
    ProxyCaller,
    ProxyModel,
    Said,
)
from mcp_tasks_proto.testing.model.proxy.views import shown_view
from mcp_tasks_proto.wire.base64url import to_text
from mcp_tasks_proto.wire.jsonrpc import notification_message
from tests.model.proxy_callers import (
    KEEP_MS,
    LIMITS,
    METADATA_MS,
    PAYLOAD_MS,
    PURGE_MS,
    access_of,
)
from tests.model.proxy_listening import Listening
from tests.model.proxy_matching import check_secrets, fits, has_all, is_sent, same_view
from tests.model.proxy_requests import Requests
from tests.model.proxy_upstreams import SomeUpstream
from tests.model.proxy_wants import (
    ANSWER_MS,
    CALL_MS,
    DUE,
    FAILED,
    LOADED,
    PROMOTE_MS,
    SAVED,
    TIMED_OUT,
    Binds,
    Draws,
    Given,
    Keeps,
    Knows,
    Run,
    Sends,
    Story,
    Waits,
    Want,
)

__all__ = ["World"]

START: Final = 1_700_000_000_000


@define(eq=False, kw_only=True)
class Asked:
    """A discovery under way."""

    waiting: list[Story]
    outdated: bool = False


@define(eq=False, kw_only=True)
class World:
    """Says things to the engine, and checks what comes of them."""

    promotes: bool = False
    collapses: bool = False
    left_tasks: bool = True
    right_tasks: bool = True
    payload_ms: int = PAYLOAD_MS
    now: int = START
    store: ProxyStore = field(factory=ProxyStore)
    model: ProxyModel = field(init=False)
    upstreams: dict[str, SomeUpstream] = field(init=False)
    engine: ProxyEngine = field(init=False)
    requests: Requests = field(init=False)
    listening: Listening = field(init=False)
    asked: list[LoadTask | SaveBinding | SaveSnapshot | DrawRandom] = field(init=False, factory=list)
    """What the engine asked of its host, oldest first."""
    in_flight: dict[int, SendUpstream] = field(init=False, factory=dict)
    """Requests to upstreams, by name."""
    answered: list[int] = field(init=False, factory=list)
    """Names of requests that have their answer already."""
    stories: list[Story] = field(init=False, factory=list)
    handles: list[str] = field(init=False, factory=list)
    """Those that callers have got, oldest first."""
    given: dict[str, Given] = field(init=False, factory=dict)
    """What stands behind each ``requestState`` that callers have got, oldest first."""
    deadline: int | None = field(init=False, default=None)
    nodes: int = field(init=False, default=0)
    dies_after: int | None = None
    """After how many effects of the next step the process ends."""
    _by_token: dict[Any, Want] = field(init=False, factory=dict)
    _draws: list[Draws] = field(init=False, factory=list)
    """Those for whom randomness was asked for."""
    _drawn: dict[str, bytes] = field(init=False, factory=dict)
    """What has come of it, by the handle that it makes."""
    _by_name: dict[int, Want] = field(init=False, factory=dict)
    _discoveries: dict[tuple[str, str], Asked] = field(init=False, factory=dict)
    _purge_at_ms: int = field(init=False, default=0)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _denial: dict[str, Any] | None = field(init=False, default=None)
    """The one answer to all who ask for what is not theirs, or not there (GET.2)."""
    # What the stories expect of the step that is being looked at:
    _wants: list[Want] = field(init=False, factory=list)
    _told: list[tuple[Story, PeerAnswer]] = field(init=False, factory=list)
    _notes: list[tuple[str, str, bool]] = field(init=False, factory=list)
    _drops: list[str] = field(init=False, factory=list)
    _stops: list[int] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self.model = ProxyModel(
            upstreams={"left": True, "right": True},
            promotes=self.promotes,
            collapses=self.collapses,
            keep_ms=KEEP_MS,
            poll_floor_ms=LIMITS.poll_floor_ms,
            payload_ms=self.payload_ms,
            ledger=ModelLedger(metadata_ms=METADATA_MS),
        )
        self.upstreams = {
            "left": SomeUpstream(
                name="left", honest=True, serves_tasks=self.left_tasks, insists=self.collapses
            ),
            "right": SomeUpstream(name="right", honest=False, serves_tasks=self.right_tasks),
        }
        self.begin_process()

    def begin_process(self) -> None:
        """Begin a process that knows nothing but its store."""
        self.nodes += 1
        settings = ProxySettings(
            name="proxy",
            version="1",
            sealer=HmacSealer([b"k" * 32]),
            upstreams=(Upstream(name="left"), Upstream(name="right")),
            profiles={
                "all": ToolProfile(),
                "none": ToolProfile(tools=frozenset()),
                "plain": ToolProfile(task_tools=frozenset()),
            },
            collapse=self.collapses,
            promote_after_ms=PROMOTE_MS if self.promotes else None,
            retention=Retention(payload_ms=self.payload_ms, metadata_ms=METADATA_MS),
            limits=LIMITS,
        )
        self.engine = ProxyEngine(settings=settings, node=self.node)
        self.requests = Requests(self)
        self.listening = Listening(self)
        self.model.known.clear()
        self._purge_at_ms = self.now
        self.wake()

    @property
    def node(self) -> str:
        """The name of the node that is alive."""
        return f"node-{self.nodes}"

    # -- what stories say ------------------------------------------------------------------------------------

    def tell(self, story: Story, answer: PeerAnswer) -> None:
        """Expect this answer, if its caller still waits."""
        if story.exchange is not None and story.open:
            story.open = False
            self._told.append((story, answer))

    def note(self, handle: str, status: str, *, polled: bool) -> None:
        """Expect this in the ledger."""
        self._notes.append((handle, status, polled))

    def drop(self, handle: str) -> None:
        """Expect that a handle is removed."""
        self._drops.append(handle)

    def stop(self, want: Sends) -> None:
        """Expect that a request is given up, and with it the story that waits for its answer."""
        if want.token in self.in_flight and self._by_name.get(want.token) is want:
            self._stops.append(want.token)
            if want.story is not None and want.story.awaited is want:
                self._close(want.story)

    def forget(self, target: tuple[str, str]) -> None:
        """What was known of an upstream does not hold (PRX.2)."""
        self.model.known.pop(target, None)
        if target in self._discoveries:
            self._discoveries[target].outdated = True

    def begin(self, about: str, run: Run) -> None:
        """Begin a story that nobody waits for."""
        self._start(Story(about=about), run)

    def _start(self, story: Story, run: Run) -> None:
        story.run = run
        self.stories.append(story)
        self._go_on(story, None)

    def _close(self, story: Story) -> None:
        story.run.close()
        self.stories.remove(story)

    def _go_on(self, story: Story, outcome: Any) -> None:
        """Resume a story, up to where it has to wait."""
        try:
            want = story.run.send(outcome)
            while isinstance(want, Knows):
                found = self.model.fresh(*want.target, self.now)
                if found is None:
                    story.awaited = want
                    return self._ask_around(want.target, story)
                want = story.run.send(found)
        except StopIteration as end:
            self.stories.remove(story)
            if end.value is not None:
                self.tell(story, end.value)
            return None
        story.awaited = want
        if want.story is None:
            want.story = story
            self._wants.append(want)
        return None

    def _ask_around(self, target: tuple[str, str], story: Story) -> None:
        asked = self._discoveries.get(target)
        if asked is not None and not asked.outdated:
            asked.waiting.append(story)
            return
        asked = self._discoveries[target] = Asked(waiting=[story])
        self.begin(f"discovery of {target[0]}", self._discovered(target, asked))

    def _discovered(self, target: tuple[str, str], asked: Asked) -> Run:
        found = yield from self.requests.discover(target)
        if not asked.outdated and not isinstance(found, str):
            self.model.known[target] = found
        if self._discoveries.get(target) is asked:
            del self._discoveries[target]
        for story in asked.waiting:
            self._go_on(story, found)
        return None

    # -- callers -------------------------------------------------------------------------------------------

    def call(
        self,
        caller: ProxyCaller,
        name: str,
        responses: Mapping[str, Any] | None = None,
        state: str | None = None,
    ) -> int:
        """Call a tool, or do so again with answers, and with a state that somebody was given."""
        params: dict[str, Any] = {"name": name, "arguments": {}}
        if responses is not None:
            params["inputResponses"] = dict(responses)
        if state is not None:
            params["requestState"] = state
        given = None if state is None else self.given.get(state, "forged")
        return self._request(
            f"call of {name}",
            caller,
            params,
            "tools/call",
            lambda story: self.requests.call(story, name, caller, responses, given),
        )

    def get(self, caller: ProxyCaller, handle: str) -> int:
        """Ask how a task stands."""
        return self._request(
            "get",
            caller,
            {"taskId": handle},
            "tasks/get",
            lambda story: self.requests.get(story, handle, caller),
        )

    def update(self, caller: ProxyCaller, handle: str, responses: Mapping[str, Any]) -> int:
        """Answer what a task asks."""
        return self._request(
            "update",
            caller,
            {"taskId": handle, "inputResponses": dict(responses)},
            "tasks/update",
            lambda story: self.requests.update(story, handle, responses, caller),
        )

    def cancel(self, caller: ProxyCaller, handle: str) -> int:
        """Ask for cancellation."""
        return self._request(
            "cancel",
            caller,
            {"taskId": handle},
            "tasks/cancel",
            lambda story: self.requests.cancel(story, handle, caller),
        )

    def _request(
        self,
        about: str,
        caller: ProxyCaller,
        params: Mapping[str, Any],
        method: str,
        run: Callable[[Story], Run],
    ) -> int:
        story = Story(about=about, exchange=next(self._exchanges))
        assert story.exchange is not None
        message = self._message(caller, method, params, story.exchange)
        self._give(message, lambda: self._start(story, run(story)))
        return story.exchange

    def _message(
        self, caller: ProxyCaller, method: str, params: Mapping[str, Any], exchange: int
    ) -> MessageAdmitted:
        return MessageAdmitted(
            exchange=exchange,
            message=request(
                method,
                params,
                id=exchange,
                tasks=caller.declares_tasks,
                capabilities=caller.capabilities,
            ),
            principal=caller.principal,
            tasks_enabled=caller.tasks_enabled,
            access=access_of(caller),
        )

    def listen(self, caller: ProxyCaller, handles: list[str]) -> None:
        """Open a listen stream."""
        exchange = next(self._exchanges)
        params = {"notifications": {"taskIds": handles}}
        message = self._message(caller, "subscriptions/listen", params, exchange)

        def open_it() -> None:
            if caller.declares_tasks or not caller.tasks_enabled:
                self.listening.opened(exchange, caller, handles if caller.tasks_enabled else None)
            else:
                refused = Story(about="listen", exchange=exchange)
                self._told.append((refused, ErrorAnswer(code=-32021)))

        self._give(message, open_it)

    def leave(self, exchange: int) -> None:
        """Whoever waits for a reply, or listens, goes away."""

        def left() -> None:
            self.listening.closed(exchange)
            for story in [one for one in self.stories if one.exchange == exchange and one.open]:
                story.open = False
                story.due_at_ms = None
                if story.leaves is not None:
                    self.stop(story.leaves)
                if story.abandons is not None:
                    self.requests.abandoned(story.abandons)
                if isinstance(story.awaited, Waits):
                    self._close(story)

        self._give(ExchangeClosed(exchange), left)

    # -- the store -----------------------------------------------------------------------------------------

    def serve(self, at: int = 0, *, fails: bool = False) -> None:
        """Answer what waits at this place, or say that the store cannot."""
        asked = self.asked.pop(at)
        want = self._by_token.pop(asked.token, None)
        if fails and not isinstance(asked, DrawRandom):
            failed = LoadFailed if isinstance(asked, LoadTask) else SaveFailed
            self._give(failed(asked.token), lambda: self._outcome(want, asked, FAILED))
            return
        fact, outcome = self._carry_out(asked, want)
        self._give(fact, lambda: self._outcome(want, asked, outcome))

    def _carry_out(
        self, asked: LoadTask | SaveBinding | SaveSnapshot | DrawRandom, want: Want | None
    ) -> tuple[ProxyInput, Any]:
        """Do what was asked of the store; where something is written, this is the moment that counts."""
        fact = self.store.answer(asked)
        match asked, fact:
            case SaveBinding(), Saved():
                assert isinstance(want, Binds)
                want.answer = want.apply(want.handle, asked.entry.created_at_ms)
                return fact, SAVED
            case SaveBinding(), SaveRefused(limit=limit):
                return fact, limit
            case SaveBinding(), _:
                return fact, FAILED
            case SaveSnapshot(snapshot=offered), SnapshotKept(snapshot=kept):
                view = want.view if isinstance(want, Keeps) else offered.view
                end = self.model.keep(
                    offered.handle, view, offered.stored_at_ms, polled=asked.observation.polled
                )
                assert same_view(kept.view, end.view), "PRX.13: the first end stands"
                return fact, end.view
            case DrawRandom(), _:
                self._drawn[to_text(fact.random)] = fact.random
                return fact, LOADED
        return fact, LOADED

    def _outcome(self, want: Want | None, asked: Any, outcome: Any) -> None:
        if isinstance(asked, DrawRandom):
            return  # whom it is for shows when a binding is saved
        if want is None:
            self.listening.served(asked, outcome)
        else:
            self._resume(want, outcome)

    def _resume(self, want: Want, outcome: Any) -> None:
        story = want.story
        assert story is not None
        if story.awaited is want:
            self._go_on(story, outcome)
        else:
            want.early = outcome

    def settle(self) -> None:
        """Let the store answer everything, oldest first."""
        while self.asked:
            self.serve()

    def settle_all(self, *, calls: bool = True) -> None:
        """Let everybody answer everything, and truly, until nothing but streams is open; callers read all.

        Without ``calls``, those that are up at upstreams go on there.
        """
        while True:
            self.settle()
            while self.listening.unread:
                self.read()
            left_open = [*self.streams_up(), *([] if calls else self.calls_up())]
            waiting = [name for name in self.in_flight if name not in left_open]
            if not waiting and not self.asked:
                return
            for name in waiting:
                if name in self.in_flight:
                    self.answer(name)

    # -- upstreams -----------------------------------------------------------------------------------------

    def answer(self, name: int, kind: int = 0) -> None:
        """Have an upstream answer a request: ``kind`` 0 is the truth, others are all that may come."""
        sent = self.in_flight[name]
        upstream = self.upstreams[sent.upstream]
        kinds = upstream.answers(sent, self.now)
        spoken = kinds[kind % len(kinds)](name)
        result = spoken.said.result
        if sent.message["method"] == "tools/call" and result is not None and "createdAt" in result:
            upstream.made(result)
        if sent.message["method"] == "tasks/get" and result is not None:
            self.listening.hears(sent.upstream, result)
        fact: ProxyInput = UpstreamAnswered(
            request=name, message=spoken.message, http_status=spoken.http_status
        )
        if spoken.transport:
            fact = UpstreamFailed(name, sent=spoken.said.sent)
        self._give(fact, lambda: self._said(name, spoken.said))

    def _said(self, name: int, said: Said) -> None:
        sent = self.in_flight.pop(name)
        self.answered.append(name)
        if said.error is not None and said.error["code"] in (-32601, -32021, -32022):
            self.forget((sent.upstream, sent.authorization))
        want = self._by_name.pop(name, None)
        if want is None:
            self.listening.answered(sent, said)
        else:
            self._resume(want, said)

    def move(self, upstream: str, task_id: str, how: str) -> None:
        """What is true of one of an upstream's tasks changes."""
        if task_id in self.upstreams[upstream].tasks:
            self.upstreams[upstream].move(task_id, how, self.now)

    def plain_up(self) -> list[int]:
        """Return the names of all other requests that are up, and of calls."""
        return [name for name in self.in_flight if name not in self.streams_up()]

    def calls_up(self) -> list[int]:
        """Return the names of the calls that are under way at upstreams."""
        return [name for name, sent in self.in_flight.items() if sent.message["method"] == "tools/call"]

    def streams_up(self) -> list[int]:
        """Return the names of the listen streams that are open at upstreams."""
        return [
            name for name, sent in self.in_flight.items() if sent.message["method"] == "subscriptions/listen"
        ]

    def push(self, name: int, kind: int) -> None:
        """An upstream says on its stream that it agrees (0), how a task stands (1), or anything else."""
        sent = self.in_flight[name]
        task_ids = sent.message["params"]["notifications"]["taskIds"]
        upstream = self.upstreams[sent.upstream]
        method, params = "notifications/subscriptions/acknowledged", {"notifications": {"taskIds": task_ids}}
        if kind:
            views = upstream.views(task_ids[kind % len(task_ids)], self.now)
            method, params = "notifications/tasks", dict(views[kind % len(views)])
            self.listening.hears(sent.upstream, params)
        self._give(UpstreamNotified(name, notification_message(method, params)))

    def read(self) -> None:
        """What was sent first on a stream has left."""
        self._give(StreamReady(self.listening.unread.pop(0)))

    def waiting(self) -> list[int]:
        """Return the exchanges whose callers wait."""
        told = [story.exchange for story in self.stories if story.open and story.exchange is not None]
        return [*told, *self.listening.streams]

    def repeat(self, name: int) -> None:
        """An upstream answers once more what has its answer, or was given up: nothing comes of it."""
        self._give(UpstreamAnswered(request=name, message={"jsonrpc": "2.0", "id": name, "result": {}}))

    # -- the host ------------------------------------------------------------------------------------------

    def lose(self, handle: str) -> None:
        """Tell of the call of a node that is gone; what runs here is not lost."""
        binding = self.store.bindings.get(handle)
        node = "node-0" if binding is None or binding.node is None else binding.node
        if node != self.node:
            self._give(
                WorkLost(handle, node),
                lambda: self.begin("lost work", self.requests.lost(handle, node)),
            )

    def crash(self, *, landed: int | None = None) -> None:
        """End the process; one of the things that it asked of the store may be done, and nobody hears."""
        if landed is not None:
            asked = self.asked[landed]
            self._carry_out(asked, self._by_token.get(asked.token))
        for story in list(self.stories):
            story.run.close()
        self.stories.clear()
        for left in (
            self.asked,
            self.answered,
            self._wants,
            self._told,
            self._notes,
            self._drops,
            self._stops,
            self._draws,
        ):
            left.clear()
        for names in (self.in_flight, self._by_token, self._by_name, self._discoveries, self._drawn):
            names.clear()
        self.begin_process()

    # -- time ------------------------------------------------------------------------------------------------

    def wait(self, milliseconds: int) -> None:
        """Let time pass, with all deadlines on the way."""
        until = self.now + milliseconds
        while self.deadline is not None and self.deadline <= until:
            self.now = max(self.now, self.deadline)
            self.wake()
        self.now = until

    def wake(self) -> None:
        """Tell the engine that its deadline has come."""
        self._give(TimePassed(), self._time_passed)
        assert self.deadline is None or self.deadline > self.now, "a deadline is never met again and again"

    def _time_passed(self) -> None:
        """What is due in the stories, in the order of its time, and in that in which the times were set."""
        while (due := min(self._due(), key=lambda one: one[:2], default=None)) and due[0] <= self.now:
            due[2]()

    def _due(self) -> list[tuple[int, int, Callable[[], None]]]:
        due: list[tuple[int, int, Callable[[], None]]] = []
        for story in self.stories:
            if isinstance(story.awaited, Waits):
                due.append((story.awaited.due_at_ms, story.awaited.order, partial(self._go_on, story, DUE)))
            if story.due_at_ms is not None:
                due.append((story.due_at_ms, story.due_order, partial(self._overdue, story)))
        for name, want in self._by_name.items():
            assert isinstance(want, Sends)
            due.append((want.timeout_at_ms, want.order, partial(self._timed_out, name)))
        return due

    def _overdue(self, story: Story) -> None:
        story.due_at_ms = None
        self._go_on(story, DUE)

    def _timed_out(self, name: int) -> None:
        want = self._by_name.pop(name)
        assert isinstance(want, Sends)
        want.timed_out = True
        self._stops.append(name)
        self._resume(want, TIMED_OUT)

    # -- what the engine does --------------------------------------------------------------------------------

    def _give(self, fact: ProxyInput, expect: Callable[[], None] = lambda: None) -> None:
        """Hand in a fact, and compare what comes of it with what is expected; or end on the way."""
        step = self.engine.handle(fact, now=self.now)
        self.deadline = step.deadline
        expect()
        dies_after, self.dies_after = self.dies_after, None
        for at, effect in enumerate(step.effects):
            if at == dies_after:
                return self.crash()
            self._see_to(effect)
        left = [self._told, self._notes, self._drops, self._stops]
        unmet = [want for want in self._wants if not isinstance(want, Waits)]
        assert not unmet, f"nothing was done for {[want.story.about for want in unmet if want.story]}"
        assert not any(left), f"nothing was said of {left}"
        self._wants.clear()
        draws = [want for want in self._draws if want.story is not None and want.story.awaited is want]
        assert len(draws) <= sum(isinstance(one, DrawRandom) for one in self.asked), "a draw was not used"
        self.listening.check_step()
        self._check_deadline()
        if dies_after is not None:
            self.crash()
        return None

    def _check_deadline(self) -> None:
        """Whatever waits for a time is woken then; and what is past its time is removed now and then."""
        times = [when for when, *_ in self._due()]
        latest = min([*times, self._purge_at_ms])
        assert self.deadline is not None
        assert self.deadline <= latest, "a deadline that is missed"

    def _see_to(self, effect: ProxyEffect) -> None:
        match effect:
            case Reply(exchange=int() as exchange, message=dict() as message):
                self._replied(exchange, message)
            case Send(exchange=int() as exchange, message=message):
                check_secrets(message)
                self.listening.told(exchange, message)
            case SendUpstream():
                self._sent(effect)
            case StopUpstream(request=name):
                del self.in_flight[name]
                self.answered.append(name)
                self._by_name.pop(name, None)
                if name in self._stops:
                    self._stops.remove(name)
                else:
                    self.listening.stopped(name)
            case LoadTask() | SaveBinding() | SaveSnapshot() | DrawRandom():
                self._asks(effect)
            case DropTask(handle=handle):
                self._drops.remove(handle)
                self.store.drop(handle)
                self.model.dropped(handle)
            case Note():
                self._noted(effect)
            case Purge():
                self._purged(effect)
            case StopCall():
                pass
            case _:
                raise AssertionError(f"nobody wanted {effect}")

    def _replied(self, exchange: int, message: dict[str, Any]) -> None:
        expected = [told for told in self._told if told[0].exchange == exchange]
        if not expected:
            self.listening.ended(exchange, message)
            return
        story, answer = expected[0]
        assert message["id"] == exchange
        problem = difference(answer, message)
        assert problem is None, problem
        self._told.remove(expected[0])
        if story.given is not None:
            self.given[message["result"]["requestState"]] = story.given
        if "error" not in message or isinstance(message["error"].get("data"), dict):
            check_secrets(message)
        if isinstance(answer, ErrorAnswer) and answer.unknown_task:
            self._denial = self._denial or message["error"]
            assert message["error"] == self._denial, "GET.2: one answer for all"
        handle = message.get("result", {}).get("taskId")
        if handle is not None and handle not in self.handles:
            self.handles.append(handle)

    def _asks(self, effect: LoadTask | SaveBinding | SaveSnapshot | DrawRandom) -> None:
        self.asked.append(effect)
        if isinstance(effect, SaveBinding):
            self._hand_out(effect)
        want = self._wanted(lambda want: fits(want, effect))
        if want is None:
            assert isinstance(effect, LoadTask | SaveSnapshot), f"nobody wanted {effect}"
            self.listening.asks(effect)
            return
        if isinstance(want, Draws):
            self._draws.append(want)
            return
        want.token = effect.token
        self._by_token[effect.token] = want

    def _hand_out(self, effect: SaveBinding) -> None:
        """Give what was drawn for a handle to who wants such a binding (PRX.5)."""
        binding = effect.binding
        if binding is None or binding.handle not in self._drawn:
            return
        random = self._drawn.pop(binding.handle)
        want = next((one for one in self._draws if has_all(binding, one.binding)), None)
        if want is not None:
            self._draws.remove(want)
            self._resume(want, random)

    def _sent(self, effect: SendUpstream) -> None:
        self.in_flight[effect.request] = effect
        want = self._wanted(lambda want: is_sent(want, effect))
        if want is None:
            self.listening.sends(effect)
            return
        assert isinstance(want, Sends)
        want.token = effect.request
        want.timeout_at_ms = self.now + (CALL_MS if want.slow else ANSWER_MS)
        self._by_name[effect.request] = want

    def _wanted(self, fits: Callable[[Want], bool]) -> Want | None:
        want = next((want for want in self._wants if fits(want)), None)
        if want is not None:
            self._wants.remove(want)
        return want

    def _noted(self, note: Note) -> None:
        seen = note.observation
        noted = (note.handle, seen.status.value, seen.polled)
        if noted in self._notes:
            self._notes.remove(noted)
        else:
            assert not seen.polled
            assert self.listening.may_note(note.handle), f"nobody wanted {note}"
        self.store.note(note)
        self.model.ledger.seen(note.handle, seen.status.value, polled=seen.polled)

    def _purged(self, purge: Purge) -> None:
        """HIS.4: what is past its time is gone, and nothing else is."""
        assert self.now >= self._purge_at_ms, "it is not due yet"
        self._purge_at_ms = self.now + PURGE_MS
        self.store.purge(purge)
        self.model.purge(self.now)
        assert set(self.store.bindings) == set(self.model.bindings)
        assert set(self.store.snapshots) == set(self.model.ends)
        assert set(self.store.entries) == set(self.model.ledger.entries)

    # -- always ----------------------------------------------------------------------------------------------

    def check_bounds(self) -> None:
        """LIM.3: the engine holds what is under way, and no more."""
        engine = self.engine
        assert len(engine._asking._open) == len(self.asked)
        assert set(engine._upstreams._in_flight) == set(self.in_flight)
        waiting = {story.exchange for story in self.stories if story.open and story.exchange is not None}
        assert set(engine._callers.by_key) == waiting | set(self.listening.streams)
        assert len(engine._promotions) <= len(self.stories)

    def check_calm(self) -> None:
        """Whatever happened: once all is answered, all that is left are streams, and those are up to date."""
        self.dies_after = None
        self.settle_all()
        for _ in range(8):
            self.wait(10_000)
            self.settle_all()
        left = [story.about for story in self.stories if story.open and story.exchange is not None]
        assert not left, f"without an answer: {left}"
        self.check_streams()

    def check_streams(self) -> None:
        """Once all is answered and read, each stream has told how each of its tasks stands."""
        for stream in self.listening.streams.values():
            for handle, binding in stream.agreed.items():
                true = self.upstreams[binding.upstream].tasks.get(str(binding.task_id))
                known = self.model.find(handle, stream.caller, self.now)
                if true is None or binding.upstream != "left" or known is not binding:
                    continue
                if isinstance(shown_view(true, binding, self.model.clamps), ErrorAnswer):
                    continue  # PRX.10: it asks for what its caller never declared
                told = stream.told.get(handle, {})
                assert told.get("status") == true["status"], "SUB.2: the latest view"

    def check_ledger(self) -> None:
        """HIS.1: the ledger says of each task what the model says."""
        for handle, entry in self.store.entries.items():
            same = self.model.ledger.entries[handle]
            events = [
                (event.kind, event.assignee if event.status is None else event.status.value)
                for event in entry.timeline
            ]
            assert events == same.timeline
            assert (entry.status.value, entry.polls) == (same.status, same.polls)
            assert (entry.owner, entry.project, entry.tool) == (same.owner, same.project, same.tool)
            assert (entry.upstream, entry.api_key) == (same.upstream, same.api_key)
