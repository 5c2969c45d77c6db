"""The PostgreSQL store keeps the promises of ``stores/contract.md``, alone and with others over one schema."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from mcp_tasks_adapters.stores.postgres import PostgresStore
from mcp_tasks_adapters.storing import News, StoreEffect, StoreError

from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.inputs import LoadFailed, RecordChanged, Saved, SaveFailed, SaveRefused
from mcp_tasks_proto.testing.store_suite import NODE_CHECKS, STORE_CHECKS, Ask, Check, Nodes, compare
from tests.adapters.driver_harness import logged
from tests.adapters.postgres_server import PostgresServer
from tests.adapters.store_harness import NOW, ROOMY, Bench, StoreNodes, opened, postgres_store, record
from tests.adapters.store_strategies import effect_lists


@pytest.fixture
def dsn(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
def bench(dsn: str) -> Iterator[Bench]:
    with opened(postgres_store(dsn)) as bench:
        yield bench


@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_every_store(bench: Bench, check: Check[Ask]) -> None:
    check(bench.ask)


@pytest.mark.parametrize("check", NODE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_nodes(dsn: str, check: Check[Nodes]) -> None:
    nodes = StoreNodes(lambda: postgres_store(dsn))
    try:
        check(nodes)
    finally:
        nodes.close()
