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
from tests.model.proxy_upstreams import STATUSES
from tests.model.proxy_world import CALLERS, TOOLS, UNLIKE, World, response

callers = st.sampled_from(list(CALLERS))
unlike = st.sampled_from([*["as ever"] * len(UNLIKE), *UNLIKE])
numbers = st.integers(0, 9)
often = st.sampled_from([True, True, True, False])
kinds = st.sampled_from([0, 0, 0, 0]) | st.integers(0, 25)
tools = st.sampled_from([TOOLS[0], TOOLS[0], TOOLS[1], *TOOLS])
FORGED: Final = ("", "up-1", "x" * 43)
"""A stranger to any codec, an upstream's own id, and one that could be a handle."""


class ProxyMachine(RuleBasedStateMachine):
    """What callers, upstreams, the host, the store and time may do."""

    world: World

    @initialize(promotes=st.booleans(), left_tasks=often, ready=often)
    def begin(self, promotes: bool, left_tasks: bool, ready: bool) -> None:
        """There is a proxy; mostly there is a task, too, that its caller knows of."""
        self.world = World(promotes=promotes, left_tasks=left_tasks)
        if ready:
            self.world.call(CALLERS["ada"], TOOLS[0])
            self.world.settle_all()

    def caller(self, name: str, how: str) -> ProxyCaller:
        return UNLIKE[how](CALLERS[name])

    def handle(self, number: int) -> str:
        known = [*self.world.handles, *FORGED[:1]] if number < 8 else FORGED
        return known[number % len(known)]

    def then(self, at_once: bool) -> None:
        """Let the store answer now, or leave that to other rules."""
        if at_once:
            self.world.settle()

    # -- callers -------------------------------------------------------------------------------------------

    @rule(name=callers, how=unlike, tool=tools, at_once=often)
    def call(self, name: str, how: str, tool: str, at_once: bool) -> None:
        self.world.call(self.caller(name, how), tool)
        self.then(at_once)

    @rule(name=callers, how=unlike, number=numbers, owns=often, at_once=often)
    def get(self, name: str, how: str, number: int, owns: bool, at_once: bool) -> None:
        handle = self.handle(number)
        self.world.get(self.asking(name, how, handle, owns), handle)
        self.then(at_once)

    @rule(
        name=callers,
        how=unlike,
        number=numbers,
        owns=often,
        keys=st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True),
        fits=often,
        at_once=often,
    )
    def update(
        self, name: str, how: str, number: int, owns: bool, keys: list[str], fits: bool, at_once: bool
    ) -> None:
        handle = self.handle(number)
        responses = {key: response(fits) for key in keys}
        self.world.update(self.asking(name, how, handle, owns), handle, responses)
        self.then(at_once)

    @rule(name=callers, how=unlike, number=numbers, owns=often, at_once=often)
    def cancel(self, name: str, how: str, number: int, owns: bool, at_once: bool) -> None:
        handle = self.handle(number)
        self.world.cancel(self.asking(name, how, handle, owns), handle)
        self.then(at_once)

    @precondition(lambda self: len(self.world.listening.streams) < 3)
    @rule(name=callers, how=unlike, owns=often, at_once=often)
    def listen(self, name: str, how: str, owns: bool, at_once: bool) -> None:
        handles = [*self.world.handles, *FORGED]
        self.world.listen(self.asking(name, how, handles[0], owns), handles)
        self.then(at_once)

    def asking(self, name: str, how: str, handle: str, owns: bool) -> ProxyCaller:
        """Return the owner of a task, as ever or not; or somebody."""
        binding = self.world.model.bindings.get(handle)
        caller = self.caller(name, how)
        if binding is None or not owns:
            return caller
        return self.caller(str(binding.owner), how) if binding.owner else evolve(caller, principal=None)

    @precondition(lambda self: self.world.waiting())
    @rule(number=numbers)
    def leave(self, number: int) -> None:
        waiting = self.world.waiting()
        self.world.leave(waiting[number % len(waiting)])

    @precondition(lambda self: self.world.listening.unread)
    @rule()
    def read(self) -> None:
        self.world.read()

    # -- upstreams -----------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.in_flight)
    @rule(number=numbers, kind=kinds, at_once=often)
    def answer(self, number: int, kind: int, at_once: bool) -> None:
        """In any order, and anything; what is never answered is lost."""
        names = list(self.world.in_flight)
        self.world.answer(names[number % len(names)], kind)
        self.then(at_once)

    @rule()
    def answer_truly(self) -> None:
        """All that is in flight is answered with the truth."""
        self.world.settle_all()

    @precondition(lambda self: self.world.answered)
    @rule(number=numbers)
    def repeat(self, number: int) -> None:
        self.world.repeat(self.world.answered[number % len(self.world.answered)])

    @precondition(lambda self: self.world.streams_up())
    @rule(number=numbers, kind=kinds, at_once=often)
    def push(self, number: int, kind: int, at_once: bool) -> None:
        streams = self.world.streams_up()
        self.world.push(streams[number % len(streams)], kind)
        self.then(at_once)

    @rule(upstream=st.sampled_from(["left", "right"]), number=numbers, how=st.sampled_from(STATUSES))
    def move(self, upstream: str, number: int, how: str) -> None:
        """What is true of a task changes."""
        self.world.move(upstream, number, how)

    # -- the host and its store -----------------------------------------------------------------------------

    @precondition(lambda self: self.world.asked)
    @rule(at=numbers, fails=st.sampled_from([False, False, False, True]))
    def serve(self, at: int, fails: bool) -> None:
        self.world.serve(at % len(self.world.asked), fails=fails)

    @precondition(lambda self: self.world.nodes < 4)
    @rule(at=st.none() | numbers, told=often)
    def crash(self, at: int | None, told: bool) -> None:
        """Then, at once or later, the next process hears of what is lost."""
        asked = len(self.world.asked)
        self.world.crash(landed=at % asked if at is not None and asked else None)
        if told:
            for handle in list(self.world.store.bindings):
                self.world.lose(handle)

    @precondition(lambda self: self.world.nodes < 4)
    @rule(after=st.integers(0, 3))
    def crash_soon(self, after: int) -> None:
        """The process ends between two effects of what comes next."""
        self.world.dies_after = after

    @rule(number=numbers, at_once=often)
    def lose(self, number: int, at_once: bool) -> None:
        self.world.lose(self.handle(number))
        self.then(at_once)

    # -- time ------------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 400, 3_000, 6_000, 45_000, 130_000]), at_once=often)
    def wait(self, milliseconds: int, at_once: bool) -> None:
        self.world.wait(milliseconds)
        self.then(at_once)

    # -- always ----------------------------------------------------------------------------------------------

    @invariant()
    def holds(self) -> None:
        self.world.check_bounds()
        self.world.check_ledger()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.check_calm()


ProxyMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestProxyMachine = ProxyMachine.TestCase
