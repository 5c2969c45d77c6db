"""What holds for a requester whatever its server, its network and its caller do: REQ.1 to REQ.7, LIM.3."""

from __future__ import annotations

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.requester import RequesterEngine
from mcp_tasks_proto.testing import RequesterHost
from tests.model.adversary import LIMITS, MOVES, START, Adversary, Move, make_engine

numbers = st.integers(0, 2_000)


@frozen(kw_only=True)
class Script:
    """What an engine is made for, and what it is put through."""

    listen: bool
    mirror_arguments: bool
    tasks: int
    asks: bool
    moves: list[tuple[Move, int, int]]

    def engine(self) -> RequesterEngine:
        """Return a fresh engine."""
        return make_engine(listen=self.listen, mirror_arguments=self.mirror_arguments)

    def play(self) -> Adversary:
        """Make the moves against a fresh engine. The host and the adversary assert all the way."""
        adversary = Adversary(RequesterHost(engine=self.engine(), now=START))
        adversary.begin(self.tasks, asks=self.asks)
        for move, one, two in self.moves:
            move(adversary, one, two)
        return adversary


scripts = st.builds(
    Script,
    listen=st.booleans(),
    mirror_arguments=st.booleans(),
    tasks=st.integers(0, 3),
    asks=st.booleans(),
    moves=st.lists(st.tuples(st.sampled_from(MOVES), numbers, numbers), max_size=80),
)


@settings(max_examples=400, deadline=None)
@given(scripts)
def test_every_call_settles_once_and_leaves_nothing_behind(script: Script) -> None:
    """REQ.2: polls keep to the hint in force; REQ.4: questions and answers are single; REQ.6: one outcome."""
    script.play().bring_to_an_end()


@settings(max_examples=100, deadline=None)
@given(scripts)
def test_nothing_a_server_says_makes_a_hot_loop(script: Script) -> None:
    """A requester wakes for its own sake as often as its limits allow, for each of its calls."""
    adversary = script.play()
    wakes, began, sent = adversary.wakes, adversary.host.now, len(adversary.host.effects)
    adversary.pass_time(30_000)
    allowed = LIMITS.calls * (30_000 // LIMITS.poll_floor_ms + 20)
    assert adversary.host.now == began + 30_000
    assert adversary.wakes - wakes <= allowed
    assert len(adversary.host.effects) - sent <= 3 * allowed


@settings(max_examples=50, deadline=None)
@given(scripts)
def test_the_same_facts_have_the_same_effects(script: Script) -> None:
    adversary = script.play()
    adversary.bring_to_an_end()
    assert repr(adversary.replay(script.engine())) == repr(adversary.steps)
