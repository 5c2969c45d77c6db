"""Anything, in any order: the proxy engine and the reference model stay of one mind.

Callers of two projects, one of them with less than the others, before an upstream that tells the truth and
one that says anything, whose ids are the same. After each step holds what :mod:`tests.model.proxy_world`
checks: every request that goes up, everything asked of the store and every reply is the model's. So a call is
sent once (PRX.4), a handle is durable before it is told (PRX.6), an end never changes (PRX.13), no upstream's
id is told (PRX.8), denials are equal (GET.2), and the ledger has each event once (HIS.1).
"""

from __future__ import annotations

from typing import Final

from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mcp_tasks_proto.testing.model.proxy import ProxyCaller
from tests.model.proxy_callers import CALLERS, KEEP_MS, PAYLOAD_MS, TOOLS, UNLIKE, response
from tests.model.proxy_upstreams import STATUSES
from tests.model.proxy_wants import PROMOTE_MS
from tests.model.proxy_world import World

callers = st.sampled_from(list(CALLERS))
unlike = st.sampled_from([*["as ever"] * 3 * len(UNLIKE), *UNLIKE])
numbers = st.integers(0, 9)
moves = st.sampled_from([None, *STATUSES])
often = st.sampled_from([True, True, True, False])
kinds = st.sampled_from([0, 0, 0, 1]) | st.integers(0, 25)
tools = st.sampled_from([*TOOLS[:2] * 4, *TOOLS])
keys = st.lists(st.sampled_from(["a", "a", "b", "c"]), max_size=2, unique=True)
thens = st.sampled_from(["all", "all", "store", "later"]) | st.integers(1, 25)
FORGED: Final = ("", "up-1", "x" * 43)
"""A stranger to any codec, an upstream's own id, and one that could be a handle."""


class ProxyMachine(RuleBasedStateMachine):
    """What callers, upstreams, the host, the store and time may do."""

    world: World

    @initialize(
        left_tasks=often,
        ready=st.sampled_from(["both", "both", "left", "promoted", "collapsed", ""]),
    )
    def begin(self, left_tasks: bool, ready: str) -> None:
        """There is a proxy; mostly there are tasks, too, that a caller knows of."""
        promotes, collapses = ready == "promoted", ready == "collapsed"
        self.world = World(
            promotes=promotes,
            collapses=collapses,
            left_tasks=(left_tasks or collapses) and not promotes,
            payload_ms=KEEP_MS // 2 if ready in ("left", "promoted") else PAYLOAD_MS,
        )
        if collapses:
            self.world.call(UNLIKE["undeclared"](CALLERS["ada"]), TOOLS[0])
            self.world.settle_all(calls=False)
        for name in {"both": TOOLS[:2], "left": TOOLS[:1], "promoted": TOOLS[:2]}.get(ready, ()):
            self.world.call(CALLERS["ada"], name)
            self.world.settle_all(calls=not promotes)
        if promotes:
            self.world.wait(PROMOTE_MS)
            self.world.settle()

    def caller(self, name: str, how: str) -> ProxyCaller:
        return UNLIKE[how](CALLERS[name])

    def handle(self, number: int) -> str:
        bound = self.world.model.bindings
        known = [handle for handle in self.world.handles if handle in bound]
        if number > 6 or not known:  # also what is hidden, or has expired
            known = [*bound, *self.world.handles, *FORGED]
        return known[-1 - number % len(known)]

    def then(self, who: str | int) -> None:
        """Let everybody answer now, and truly, or the store alone; or leave all of it to other rules.

        A number: the newest request that is up is answered so, and all others truly.
        """
        if who == "later":
            return
        self.world.settle()
        if isinstance(who, int) and (up := self.world.plain_up()):
            self.world.answer(up[-1], who)
        if who != "store":
            self.world.settle_all(calls=who == "all")

    # -- callers -------------------------------------------------------------------------------------------

    @rule(name=callers, how=unlike, tool=tools, then=thens)
    def call(self, name: str, how: str, tool: str, then: str | int) -> None:
        self.world.call(self.caller(name, how), tool)
        self.then(then)

    @precondition(lambda self: self.world.given)
    @rule(how=unlike, number=numbers, keys=keys, fits=often, then=thens)
    def call_again(self, how: str, number: int, keys: list[str], fits: bool, then: str | int) -> None:
        """Somebody comes back with the state of a round; mostly whoever was given it."""
        state, given = list(self.world.given.items())[-1 - number % len(self.world.given)]
        caller = UNLIKE[how](CALLERS[str(given.principal) if number < 8 else "eve"])
        if given.handle is not None:
            caller = UNLIKE["undeclared"](caller)
        responses = {key: response(fits) for key in keys} or None
        self.world.call(caller, given.tool, responses, state)
        self.then(then)

    @rule(name=callers, how=unlike, number=numbers, owns=often, moved=moves, then=thens)
    def get(self, name: str, how: str, number: int, owns: bool, moved: str | None, then: str | int) -> None:
        """How a task stands, which may be otherwise since a moment ago."""
        handle = self.handle(number)
        self.move(handle, moved)
        self.world.get(self.asking(name, how, handle, owns), handle)
        self.then(then)

    @rule(
        name=callers,
        how=unlike,
        number=numbers,
        owns=often,
        asks=often,
        keys=keys,
        fits=often,
        then=thens,
    )
    def update(
        self,
        name: str,
        how: str,
        number: int,
        owns: bool,
        asks: bool,
        keys: list[str],
        fits: bool,
        then: str | int,
    ) -> None:
        """Answers to what a task asks, or to what it does not."""
        handle = self.handle(number)
        self.move(handle, "input_required" if asks else None)
        responses = {key: response(fits) for key in keys}
        self.world.update(self.asking(name, how, handle, owns), handle, responses)
        self.then(then)

    @rule(name=callers, how=unlike, number=numbers, owns=often, then=thens)
    def cancel(self, name: str, how: str, number: int, owns: bool, then: str | int) -> None:
        handle = self.handle(number)
        self.world.cancel(self.asking(name, how, handle, owns), handle)
        self.then(then)

    @precondition(lambda self: len(self.world.listening.streams) < 3)
    @rule(name=callers, how=unlike, owns=often, then=thens)
    def listen(self, name: str, how: str, owns: bool, then: str | int) -> None:
        handles = [*self.world.handles, *FORGED]
        self.world.listen(self.asking(name, how, handles[0], owns), handles)
        self.then(then)

    def asking(self, name: str, how: str, handle: str, owns: bool) -> ProxyCaller:
        """Return the owner of a task, as ever or not; or somebody."""
        binding = self.world.model.bindings.get(handle)
        caller = self.caller(name, how)
        if binding is None or not owns:
            return caller
        return self.caller(str(binding.owner), how) if binding.owner else evolve(caller, principal=None)

    @precondition(lambda self: self.world.listening.unread)
    @rule()
    def read(self) -> None:
        self.world.read()

    # -- upstreams -----------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.in_flight)
    @rule(number=numbers, kind=kinds, then=thens)
    def answer(self, number: int, kind: int, then: str | int) -> None:
        """In any order, and anything; what is never answered is lost."""
        names = list(self.world.in_flight)
        self.world.answer(names[number % len(names)], kind)
        self.then(then)

    @rule(calls=often)
    def answer_truly(self, calls: bool) -> None:
        """All that is in flight is answered with the truth, be it with or without calls."""
        self.world.settle_all(calls=calls)

    @precondition(lambda self: self.world.streams_up())
    @rule(number=numbers, kind=kinds, then=thens)
    def push(self, number: int, kind: int, then: str | int) -> None:
        streams = self.world.streams_up()
        self.world.push(streams[number % len(streams)], kind)
        self.then(then)

    @rule(number=numbers, moved=moves, then=thens)
    def news(self, number: int, moved: str | None, then: str | int) -> None:
        """A task changes, and whoever listens may hear of it in time."""
        self.move(self.handle(number), moved)
        self.world.wait(2_000)
        self.then(then)

    def move(self, handle: str, how: str | None) -> None:
        """What is true of a task changes."""
        binding = self.world.model.bindings.get(handle)
        if binding is not None and how is not None:
            self.world.move(binding.upstream, str(binding.task_id), how)

    @precondition(lambda self: self.world.calls_up())
    @rule(number=numbers, kind=kinds, then=thens)
    def answer_call(self, number: int, kind: int, then: str | int) -> None:
        calls = self.world.calls_up()
        self.world.answer(calls[number % len(calls)], kind)
        self.then(then)

    # -- the host and its store -----------------------------------------------------------------------------

    @precondition(lambda self: self.world.asked)
    @rule(at=numbers, fails=st.sampled_from([False, False, False, True]))
    def serve(self, at: int, fails: bool) -> None:
        self.world.serve(at % len(self.world.asked), fails=fails)

    @rule(number=numbers, what=st.sampled_from(["leave", "repeat", "lose", "crash", "crash", "crash soon"]))
    def disturb(self, number: int, what: str) -> None:
        """A caller goes away, an upstream repeats itself, or the process ends.

        It ends between the next effects, or now, having written something perhaps that it never hears of;
        then the next one is told of what is lost.
        """
        world = self.world
        if what == "leave" and (waiting := world.waiting()):
            world.leave(waiting[number % len(waiting)])
        elif what == "repeat" and world.answered:
            world.repeat(world.answered[number % len(world.answered)])
        elif what == "lose":
            world.lose(self.handle(number))
        elif what == "crash" and world.nodes < 4:
            world.crash(landed=number if number < len(world.asked) else None)
            for handle in list(world.store.bindings):
                world.lose(handle)
        elif what == "crash soon" and world.nodes < 4:
            world.dies_after = number % 4

    # -- time ------------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 400, 400, 3_000, 3_000, 6_000, 45_000, 130_000]), then=thens)
    def wait(self, milliseconds: int, then: str | int) -> None:
        self.world.wait(milliseconds)
        self.then(then)

    # -- always ----------------------------------------------------------------------------------------------

    @invariant()
    def holds(self) -> None:
        self.world.check_bounds()
        self.world.check_ledger()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.check_calm()


ProxyMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestProxyMachine = ProxyMachine.TestCase
