"""Where stores of the tests keep tasks: the PostgreSQL server they share, or what becomes of them without."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.adapters.postgres_server import PostgresServer, find_binaries
from tests.adapters.store_harness import File, Place

REQUIRED: Final = "POSTGRES_REQUIRED"
"""Set where tests must not go without a server, as in CI."""
FIXTURES: Final = {"postgres", "own_postgres"}
POSTGRES: Final = "postgres"
"""The place that needs one."""
MISSING: Final = (
    "There are no server programs of PostgreSQL here: install Debian's postgresql, or name the folder of "
    "initdb and postgres in POSTGRES_BIN."
)

LEFT_OUT: Final = "without PostgreSQL"
"""What a worker tells of itself: how many tests it has left out."""

deselected: pytest.StashKey[int] = pytest.StashKey()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a server where there can be none; where there must be one, it fails."""
    needing = [item for item in items if _needs_a_server(item)]
    if not needing or find_binaries() is not None or os.environ.get(REQUIRED):
        return
    config.stash[deselected] = len(needing)
    getattr(config, "workeroutput", {})[LEFT_OUT] = len(needing)
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear what a worker has left out: each has collected all tests."""
    config: pytest.Config = node.config
    if LEFT_OUT in (told := getattr(node, "workeroutput", {})):
        config.stash[deselected] = told[LEFT_OUT]


def _needs_a_server(item: pytest.Item) -> bool:
    if isinstance(item, pytest.Function) and "place" in item.fixturenames:
        return item.callspec.params["place"] == POSTGRES
    return bool(FIXTURES & set(getattr(item, "fixturenames", ())))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out."""
    count = config.stash.get(deselected, 0)
    if count:
        terminalreporter.write_sep("=", "PostgreSQL was not tested", yellow=True)
        terminalreporter.write_line(f"{count} tests were left out. {MISSING}")


def _running() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        pytest.fail(MISSING, pytrace=False)
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run a server for the length of all tests; each makes a schema of its own in it."""
    yield from _running()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """Run a server that only this test may stop and start."""
    yield from _running()


@pytest.fixture(params=["sqlite", POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return where to keep tasks, for a test of every store that several nodes share."""
    if request.param == POSTGRES:
        schema: Place = request.getfixturevalue("postgres").new_schema()
        return schema
    return File(tmp_path / "tasks.db")
