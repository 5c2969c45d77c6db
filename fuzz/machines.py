"""State machines of ``tests/model``, driven by the fuzzer's bytes in place of Hypothesis' own choices."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, get_state_machine_test

from fuzz.targets import Check

__all__ = ["drive"]


def drive(machine: type[RuleBasedStateMachine]) -> Check:
    """Return a target that has the machine run as the bytes decide; it raises what the machine raises.

    Bytes that end too early end the run, after everything that they did decide.
    """
    unhurried = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    test: Any = get_state_machine_test(machine, settings=unhurried)
    check: Check = test.hypothesis.fuzz_one_input
    return check
