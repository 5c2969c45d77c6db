"""The PostgreSQL server that tests share, and what becomes of these tests where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.postgres_server import PostgresServer, find_binaries


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run a server for the length of all tests; each makes a database of its own in it."""
    binaries = find_binaries()
    assert binaries is not None, "tests that need it are not collected"
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """Run a server that only this test may stop and start."""
    binaries = find_binaries()
    assert binaries is not None, "tests that need it are not collected"
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server
    finally:
        server.remove()
