"""Anything, in any order: the server toward clients of 2025-11-25 and the reference model stay of one mind.

After each step hold, as :mod:`tests.model.legacy_world` checks them: each request is answered once, as the
model says, and one that waits for the end of a task not before it (LEG.4); an end never changes (LEG.5);
every question is with one client that can answer it, and with one only (LEG.8); its answer reaches the work
once (UPD.5); no task has two workers; a client that waits knows how its task stands (LEG.6); and the server
holds what is under way, and no more (LIM.3). That no reply comes before its save is the same engine's to see
to, toward clients of either era: :mod:`tests.model.test_server_machine` holds it to that.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.testing.strategies import hostile_messages, legacy_messages
from tests.model.legacy_world import CALLERS, World

TASKS: Final = 4
clients = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4])
numbers = st.integers(0, 9)
tools = st.sampled_from(["optional", "optional", "required", "forbidden"])
wishes = st.sampled_from(
    [
        None,
        {},
        {},
        {"ttl": 20_003},
        {"ttl": 20_003},
        {"ttl": None},
        {"ttl": 0},
        {"ttl": 2**60},
        5,
        {"ttl": "x"},
    ]
)
kinds = st.sampled_from(["form", "form", "form", "sampling"])
often = st.sampled_from([True, True, True, False])


class LegacyServerMachine(RuleBasedStateMachine):
    """What clients, tools, workers and time may do."""

    world: World

    @initialize(
        policy=st.sampled_from([LegacyPolicy.SERVE] * 7 + [LegacyPolicy.IGNORE]),
        ttl=st.sampled_from([None, 20_003]),
        asks=st.booleans(),
        waits=st.booleans(),
    )
    def begin(self, policy: LegacyPolicy, ttl: int | None, asks: bool, waits: bool) -> None:
        """Everybody is there; mostly there is a task, and it has asked something."""
        self.world = World(policy=policy)
        for number in range(len(CALLERS)):
            self.world.join(number)
        if policy is LegacyPolicy.SERVE:
            self.world.call(0, "optional", {} if ttl is None else {"ttl": ttl})
            self.world.end_call(next(iter(self.world.open)), "completed")
            if asks:
                self.world.ask(0, "q")
            if waits:
                self.world.result(0, 0)

    def client(self, number: int) -> int:
        """Return a client whose session is open."""
        if number not in self.world.clients:
            self.world.join(number)
        return number

    def running(self, number: int) -> Hashable | None:
        """Return a call whose handler runs, if there is one."""
        found = list(self.world.handlers.values())
        return found[number % len(found)] if found else None

    def task(self, number: int) -> int:
        """Return the number of a task, mostly of one that there is."""
        return number % max(self.world.made, 1) if number < 9 else number

    # -- sessions ------------------------------------------------------------------------------------------

    @rule(number=clients)
    def join(self, number: int) -> None:
        self.world.join(number)

    @rule(number=clients, really=st.sampled_from([False, True]))
    def leave(self, number: int, really: bool) -> None:
        if really and number in self.world.clients:
            self.world.leave(number)

    # -- clients -------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.open) < 8)
    @rule(number=clients, tool=tools, task=wishes)
    def call(self, number: int, tool: str, task: Any) -> None:
        """LEG.3: plainly, or as a task, of tools that may refuse either."""
        if self.world.made + len(self.world.handlers) < TASKS or task is None:
            self.world.call(self.client(number), tool, task)

    @rule(number=clients, task=numbers)
    def get(self, number: int, task: int) -> None:
        self.world.get(self.client(number), self.task(task))

    @rule(number=clients, task=numbers)
    def cancel(self, number: int, task: int) -> None:
        self.world.cancel(self.client(number), self.task(task))

    @precondition(lambda self: len(self.world.open) < 8)
    @rule(number=clients, task=numbers)
    def result(self, number: int, task: int) -> None:
        self.world.result(self.client(number), self.task(task))

    @rule(number=clients)
    def list_tasks(self, number: int) -> None:
        self.world.list(self.client(number))

    @rule(principal=st.sampled_from(["ada", "bob", None]), task=numbers, declares=often)
    def get_as_a_modern_client(self, principal: str | None, task: int, declares: bool) -> None:
        """LEG.9."""
        self.world.modern_get(principal, self.task(task), declares=declares)

    @precondition(lambda self: self.world.questions)
    @rule(number=numbers, how=st.sampled_from(["fits", "fits", "fits", "not", "error"]))
    def answer(self, number: int, how: str) -> None:
        """LEG.8: rightly, wrongly, or not at all."""
        asked = list(self.world.questions)
        self.world.answer(asked[number % len(asked)], how)

    @rule(number=clients, question=st.integers(0, 12))
    def answer_what_was_not_asked(self, number: int, question: int) -> None:
        """Of this client, not any more, or never."""
        self.world.answer_nothing(self.client(number), question)

    @precondition(lambda self: self.world.model.waiters)
    @rule(number=numbers, politely=st.booleans())
    def give_up(self, number: int, politely: bool) -> None:
        waiting = list(self.world.model.waiters)
        self.world.give_up(waiting[number % len(waiting)], politely=politely)

    @precondition(lambda self: self.world.open)
    @rule(number=numbers)
    def use_an_id_twice(self, number: int) -> None:
        """WIRE.3: the first request is untouched."""
        waiting = list(self.world.open)
        self.world.repeat(waiting[number % len(waiting)])

    @rule(number=clients, message=hostile_messages() | legacy_messages())
    def say_anything(self, number: int, message: Any) -> None:
        """WIRE.1, SEC.1: nearly valid, hostile, or about tasks that nobody has."""
        self.world.say(self.client(number), message)

    @rule(number=st.sampled_from([0, 2, 3, 4]), message=legacy_messages())
    def intrude(self, number: int, message: Any) -> None:
        """SEC.1, LEG.2: in a session of somebody else."""
        self.world.intrude(self.client(number), message)

    # -- tools and workers ---------------------------------------------------------------------------------

    @precondition(lambda self: self.world.handlers)
    @rule(number=numbers, how=st.sampled_from(["completed", "is error", "failed"]))
    def end_call(self, number: int, how: str) -> None:
        call = self.running(number)
        assert call is not None
        self.world.end_call(call, how)

    @precondition(lambda self: self.world.handlers)
    @rule(number=numbers, names=st.sampled_from([("a",), ("a", "b")]), kind=kinds)
    def ask_in_call(self, number: int, names: tuple[str, ...], kind: str) -> None:
        call = self.running(number)
        if call is not None and self.world.open[call].wanted is None:
            self.world.ask_in_call(call, *names, kind=kind)

    @precondition(lambda self: self.world.made)
    @rule(task=numbers, message=st.sampled_from(["half", "more"]))
    def progress(self, task: int, message: str) -> None:
        self.world.progress(task % self.world.made, message)

    @precondition(lambda self: self.world.made)
    @rule(task=numbers, name=st.sampled_from(["q", "r"]), kind=kinds)
    def ask(self, task: int, name: str, kind: str) -> None:
        self.world.ask(task % self.world.made, name, kind)

    @precondition(lambda self: self.world.made)
    @rule(task=numbers, how=st.sampled_from(["completed", "is error", "failed", "cancelled"]))
    def end(self, task: int, how: str) -> None:
        self.world.end(task % self.world.made, how)

    # -- time ----------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 1_000, 10_000, 30_000]))
    def wait(self, milliseconds: int) -> None:
        self.world.wait(milliseconds)

    @rule(milliseconds=st.sampled_from([1, 86_400_000]))
    def set_the_clock_back(self, milliseconds: int) -> None:
        """The server keeps its own time, and nothing lives the longer for it."""
        self.world.host.now -= milliseconds
        self.world.look_at_the_clock()
        self.world.host.now += milliseconds

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.bring_to_an_end()


LegacyServerMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestLegacyServerMachine = LegacyServerMachine.TestCase
