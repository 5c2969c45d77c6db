"""The clock of clients: deadlines come, whatever is done to the system's clock (REQ.2, REQ.3)."""

from __future__ import annotations

import pytest
from mcp_tasks_adapters.clock import SteadyClock

START_MS = 1_700_000_000_000


class Times:
    """The system's clock, and what has passed in truth."""

    def __init__(self) -> None:
        self.system_ms = START_MS
        self.passed_ms = 5
        self.clock = SteadyClock(lambda: self.system_ms * 1_000_000, lambda: self.passed_ms * 1_000_000)

    def pass_(self, milliseconds: int, *, set_by: int = 0) -> int:
        """Let time pass while the system's clock is set; return what the clock says then."""
        self.passed_ms += milliseconds
        self.system_ms += milliseconds + set_by
        return self.clock.now_ms() - START_MS


def test_it_keeps_to_the_systems_clock_with_its_small_corrections() -> None:
    times = Times()
    assert times.pass_(0) == 0
    assert times.pass_(60_000) == 60_000
    assert times.pass_(60_000, set_by=-900) == 119_100
    assert times.pass_(60_000, set_by=400) == 179_500


@pytest.mark.parametrize("back_ms", [1_500, 3_600_000, START_MS])
def test_it_goes_on_when_the_systems_clock_is_set_back(back_ms: int) -> None:
    times = Times()
    assert times.pass_(1_000) == 1_000
    assert times.pass_(1_000, set_by=-back_ms) == 2_000
    assert times.pass_(1_000) == 3_000
    assert times.pass_(1_000, set_by=-back_ms) == 4_000


def test_it_goes_ahead_with_it() -> None:
    times = Times()
    assert times.pass_(1_000, set_by=3_600_000) == 3_601_000
    assert times.pass_(1_000) == 3_602_000


def test_a_clock_that_is_set_right_again_costs_nothing() -> None:
    times = Times()
    assert times.pass_(1_000, set_by=-3_600_000) == 1_000
    assert times.pass_(1_000, set_by=3_600_000) == 2_000
    assert times.pass_(1_000, set_by=3_600_000) == 3_603_000
