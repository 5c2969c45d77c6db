"""Options of the test suite."""

from __future__ import annotations

import os

import pytest

os.environ["MCP_TASKS_STORE"] = "memory:"
"""For every server that a test starts and does not tell where to keep tasks."""
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Tests start hundreds of processes: none needs to compile anew what another has compiled."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that writes the golden traces anew; off, they are compared."""
    parser.addoption(
        "--update-traces", action="store_true", help="write what the engine says into tests/traces/*.txt"
    )
