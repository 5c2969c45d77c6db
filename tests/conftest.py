"""Options of the test suite."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

os.environ["MCP_TASKS_STORE"] = "memory:"
"""For every server that a test starts and does not tell where to keep tasks."""
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Tests start hundreds of processes: none needs to compile anew what another has compiled."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell starts what runs in its background: but processes that tests start are interrupted by them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in each run, unless EXPLORE=1 asks for others: what fails for one fails for everybody.
# And that a busy machine is slow says nothing about what is tested.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=os.environ.get("EXPLORE") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def pytest_collection() -> None:
    """Where coverage is measured, measure what tests call, and nothing of the processes that they start."""
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that writes the golden traces anew; off, they are compared."""
    parser.addoption(
        "--update-traces", action="store_true", help="write what the engine says into tests/traces/*.txt"
    )
