"""Options of the test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that writes the golden traces anew; off, they are compared."""
    parser.addoption(
        "--update-traces", action="store_true", help="write what the engine says into tests/traces/*.txt"
    )
