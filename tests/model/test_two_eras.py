"""One scenario, played in both eras, ends the same (LEG.3 to LEG.9)."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import Status
from mcp_tasks_proto.requester import Cancelled, Completed, Failed, Outcome
from tests.model.two_eras import Ending, Script, play
from tests.model.workshop import DONE, Plan, fits

steps = st.lists(
    st.tuples(st.sampled_from([1, 90, 1_500]), st.sampled_from(["progress", "ask", "ask twice"])), max_size=5
).map(tuple)
intervals = st.sampled_from([1, 400, 5_000])
answers = st.lists(st.booleans(), max_size=6).map(tuple)

calls = st.builds(
    Script,
    as_task=st.booleans(),
    plan=st.builds(
        Plan,
        steps=steps,
        last_ms=st.sampled_from([1, 700, 12_000]),
        end=st.sampled_from(["complete", "err", "fail"]),
        poll_interval_ms=intervals,
    ),
    willing=answers,
)
cancelled_tasks = st.builds(
    Script,
    plan=st.builds(Plan, steps=steps, end=st.just("never"), poll_interval_ms=intervals),
    willing=answers,
    silent_after=st.none() | st.integers(0, 3),
    cancels=st.just(True),
    waits=st.booleans(),
)
stopped_tasks = st.builds(
    Script,
    plan=st.builds(Plan, steps=steps, end=st.just("stop"), poll_interval_ms=intervals),
    willing=answers,
)


def essence(ending: Ending) -> dict[str, Any]:
    """Return what must not depend on the era: all but moments, and the ids of one side or the other."""
    record = ending.record
    kept = None
    if record is not None:
        kept = (record.status, record.result, record.error)
    return {"outcome": told(ending.outcome), "asked": ending.asked, "told": ending.told, "record": kept}


def told(outcome: Outcome) -> Any:
    """Return what a caller is told."""
    match outcome:
        case Completed(result=result):
            return "completed", {name: value for name, value in result.items() if name != "_meta"}
        case Failed():
            return "failed", outcome.code, outcome.message, outcome.data, outcome.fault
        case _:
            return type(outcome).__name__


@settings(max_examples=100, deadline=None)
@given(calls | cancelled_tasks | stopped_tasks, st.booleans())
def test_leg9_a_scenario_ends_the_same_in_both_eras(script: Script, http: bool) -> None:
    modern, legacy = play(script, "modern", http=http), play(script, "legacy", http=http)
    event(
        f"{type(modern.outcome).__name__}, {len(modern.asked)} questions, task: {modern.record is not None}"
    )
    assert essence(legacy) == essence(modern)
    assert (modern.record is not None) == script.as_task
    if not script.cancels:
        assert fits(script.plan.end, modern.outcome)
        assert len(modern.asked) == sum(
            {"ask": 1, "ask twice": 2}.get(kind, 0) for _, kind in script.plan.steps
        )
    else:
        assert isinstance(modern.outcome, Cancelled)


@settings(max_examples=20, deadline=None)
@given(steps, intervals, st.booleans())
def test_leg5_a_worker_that_goes_on_all_the_same_is_where_the_eras_differ(
    steps: tuple[tuple[int, str], ...], interval: int, http: bool
) -> None:
    """CAN.6: 2026-07-28 asks the worker to stop, and says how it ended; in 2025-11-25 it is over at once."""
    last_ms = 90_000
    plan = Plan(steps=steps, last_ms=last_ms, obeys=False, poll_interval_ms=interval)
    script = Script(plan=plan, cancels=True)
    modern, legacy = play(script, "modern", http=http), play(script, "legacy", http=http)
    assert essence(evolve(legacy, outcome=modern.outcome, record=modern.record)) == essence(modern)
    assert isinstance(modern.outcome, Completed)
    assert modern.outcome.result["content"] == DONE["content"]
    assert isinstance(legacy.outcome, Cancelled)
    assert legacy.record is not None
    assert legacy.record.status is Status.CANCELLED
