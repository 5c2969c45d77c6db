"""Anything, in any order: the server engine and the reference model stay of one mind.

After each step hold, as :mod:`tests.model.server_world` checks them: a terminal task never changes (LIFE.1),
no reply comes before its save (LIFE.4), and one for each request; the view is the model's, with every
outstanding key and no other (GET.1, INP.1), keys are never used twice, no task has two workers, and deadlines
move on. Whenever the store has answered everything, nothing is left in the engine that is over, every answer
has reached its worker (UPD.5), and every wish to cancel has a deadline (CAN.6).
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.model.server_world import CALLERS, FORM, ROOTS, World, task_id

TASKS: Final = 3
numbers = st.integers(0, TASKS - 1)
named = st.lists(st.sampled_from(["q", "r"]), min_size=1, max_size=2, unique=True)
lifetimes = st.sampled_from([None, None, 6_000, 30_000])
asks = st.sampled_from(["one", "two", "three"])
undeclared = st.sampled_from([{}, {}, {"tasks": False}, {"tasks_enabled": False}])
often = st.sampled_from([True, True, True, False])


class ServerMachine(RuleBasedStateMachine):
    """What callers, workers, the host, the store and time may do, to any of the tasks made so far."""

    world: World

    @initialize(ttl=lifetimes, tool=st.sampled_from(["steady", "steady", "frail"]), names=st.just([]) | named)
    def begin(self, ttl: int | None, tool: str, names: list[str]) -> None:
        """There is a task, and mostly it has asked something."""
        self.world = self.make_world()
        self.world.settle()
        self.made = 1
        self.values = 0
        self.world.create(0, CALLERS[0], ttl_ms=ttl, tool=tool)
        self.world.settle()
        if names:
            self.world.ask(0, "first", *names)
            self.world.settle()

    def make_world(self) -> World:
        """Return the world that the machine acts on."""
        return World()

    @precondition(lambda self: self.made < TASKS)
    @rule(caller=st.sampled_from(CALLERS), ttl=lifetimes, leaves=st.booleans(), at_once=often)
    def create(self, caller: str, ttl: int | None, leaves: bool, at_once: bool) -> None:
        self.world.create(self.made, caller, ttl_ms=ttl, leaves=leaves)
        self.made += 1
        self.then(at_once)

    def then(self, at_once: bool) -> None:
        """Let the store answer now, or leave that to other rules."""
        if at_once:
            self.world.settle()

    # -- callers -------------------------------------------------------------------------------------------

    def caller(self, number: int, owns: bool) -> str:
        """Return the owner of a task, or somebody else."""
        task = self.world.model.tasks.get(task_id(number))
        owner = CALLERS[0] if task is None or task.owner is None else task.owner
        return owner if owns else next(other for other in CALLERS if other != owner)

    @rule(number=numbers, owns=often, facts=undeclared)
    def get(self, number: int, owns: bool, facts: dict[str, Any]) -> None:
        """NEG.6, NEG.7, SEC.1."""
        self.world.get(number, self.caller(number, owns), **facts)

    @rule(number=numbers, owns=often, all_of_them=st.booleans(), fits=often, facts=undeclared, at_once=often)
    def answer(
        self, number: int, owns: bool, all_of_them: bool, fits: bool, facts: dict[str, Any], at_once: bool
    ) -> None:
        """All that is outstanding, or the first and something else."""
        task = self.world.model.tasks.get(task_id(number % self.made))
        outstanding = [] if task is None else list(task.outstanding)
        keys = outstanding if all_of_them else [*outstanding[:1], "q", "nothing"]
        number %= self.made
        self.world.answer(number, self.caller(number, owns), *dict.fromkeys(keys), fits=fits, **facts)
        self.then(at_once)

    @rule(number=numbers, owns=often, at_once=often)
    def cancel(self, number: int, owns: bool, at_once: bool) -> None:
        number %= self.made
        self.world.cancel(number, self.caller(number, owns))
        self.then(at_once)

    # -- workers ---------------------------------------------------------------------------------------------

    def worker(self, number: int) -> int | None:
        """Return a task that a worker is at, if there is one: this, or the first."""
        working = [at for at in (number, *range(TASKS)) if self.world.working(at)]
        return working[0] if working else None

    @rule(
        number=numbers, message=st.sampled_from(["half", "more"]), run=st.none() | st.just(0), at_once=often
    )
    def progress(self, number: int, message: str, run: int | None, at_once: bool) -> None:
        if (at := self.worker(number)) is not None:
            self.world.progress(at, message, run=run)
        self.then(at_once)

    @rule(number=numbers, received=st.lists(asks, max_size=1), at_once=often)
    def checkpoint(self, number: int, received: list[str], at_once: bool) -> None:
        if (at := self.worker(number)) is not None:
            self.values += 1
            self.world.checkpoint(at, self.values, *received)
        self.then(at_once)

    @rule(number=numbers, ask=asks, names=named, of=st.sampled_from([FORM, FORM, FORM, ROOTS]), at_once=often)
    def ask(self, number: int, ask: str, names: list[str], of: dict[str, Any], at_once: bool) -> None:
        """Of roots the callers have not declared any (INP.2)."""
        if (at := self.worker(number)) is not None:
            self.world.ask(at, ask, *names, of=of)
        self.then(at_once)

    @rule(number=numbers, ask=asks, at_once=often)
    def withdraw(self, number: int, ask: str, at_once: bool) -> None:
        if (at := self.worker(number)) is not None:
            self.world.withdraw(at, ask)
        self.then(at_once)

    @rule(number=numbers, how=st.sampled_from(["completed", "failed", "cancelled"]), at_once=often)
    def end(self, number: int, how: str, at_once: bool) -> None:
        if (at := self.worker(number)) is not None:
            self.world.end(at, how)
        self.then(at_once)

    # -- the host and its store -----------------------------------------------------------------------------

    @rule(number=numbers, how=st.sampled_from(["failed", "cancelled"]), at_once=often)
    def end_at_once(self, number: int, how: str, at_once: bool) -> None:
        self.world.end_at_once(number % self.made, how)
        self.then(at_once)

    @rule(number=numbers, ttl=lifetimes, at_once=often)
    def change_ttl(self, number: int, ttl: int | None, at_once: bool) -> None:
        self.world.change_ttl(number % self.made, ttl)
        self.then(at_once)

    @rule(at=st.integers(0, 9), fails=st.sampled_from([False, False, False, False, True]))
    @precondition(lambda self: self.world.asked)
    def serve(self, at: int, fails: bool) -> None:
        self.world.serve(at % len(self.world.asked), fails=fails)

    @precondition(lambda self: self.world.nodes < 4)
    @rule(at=st.none() | st.integers(0, 9), told=often)
    def crash(self, at: int | None, told: bool) -> None:
        """Between any two effects; then, at once or later, the next process hears of what is lost."""
        asked = len(self.world.asked)
        self.world.crash(landed=at % asked if at is not None and asked else None)
        if told:
            for number in range(self.made):
                self.lose(number, at_once=False)

    @precondition(lambda self: self.world.nodes > 1)
    @rule(number=numbers, at_once=often)
    def lose(self, number: int, at_once: bool) -> None:
        """Work that runs here is not lost."""
        record = self.world.store.records.get(task_id(number))
        if record is None or record.node != self.world.node:
            self.world.lose(number)
        self.then(at_once)

    # -- time ------------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 400, 6_000, 40_000]), late=st.booleans())
    def wait(self, milliseconds: int, late: bool) -> None:
        """Time passes, and the engine hears of its deadlines when they come, or of the last one only."""
        if late:
            self.world.now += milliseconds
            self.world.wake()
        else:
            self.world.wait(milliseconds)

    # -- always ----------------------------------------------------------------------------------------------

    @invariant()
    def is_bounded(self) -> None:
        """LIM.3: what the engine holds is what is under way."""
        self.world.check_bounds()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.settle()
            for number in range(TASKS):
                for caller in CALLERS:
                    self.world.get(number, caller)
            self.world.settle()


ServerMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestServerMachine = ServerMachine.TestCase
