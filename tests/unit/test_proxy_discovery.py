"""What is known of the upstreams, for how long and for whom: PRX.2."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import TASKS_EXTENSION, TaskSupport
from mcp_tasks_proto.proxy import Era
from mcp_tasks_proto.proxy.discovery import Discovery, DiscoveryCache, read_discovery
from tests.unit.proxy_world import START

MODERN = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}},
    "ttlMs": 5000,
    "cacheScope": "public",
}
LEGACY = {
    "supportedVersions": ["2025-11-25"],
    "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
    "ttlMs": 5000,
}


def tool(name: Any = "render", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def page(*tools: Any, ttl_ms: Any = 9000, scope: str = "public") -> dict[str, Any]:
    return {"tools": list(tools), "ttlMs": ttl_ms, "cacheScope": scope}


def read(discovered: Any = MODERN, *pages: Any) -> Discovery:
    found = read_discovery(discovered, list(pages), version="2026-07-28", most_tools=3)
    assert found is not None
    return found


def test_prx2_a_modern_upstream_that_advertises_tasks() -> None:
    found = read(MODERN, page(tool("a")), page(tool("b")))
    assert (found.era, found.tasks, sorted(found.tools)) == (Era.MODERN, True, ["a", "b"])
    assert found.tools["a"].support is TaskSupport.OPTIONAL
    assert (found.ttl_ms, found.public) == (5000, True)


@pytest.mark.parametrize(
    "capabilities", [{}, {"extensions": {}}, {"extensions": {TASKS_EXTENSION: True}}, {"tasks": {}}]
)
def test_prx2_a_modern_upstream_that_does_not(capabilities: dict[str, Any]) -> None:
    assert not read({**MODERN, "capabilities": capabilities}).tasks


@pytest.mark.parametrize(
    ("execution", "support"),
    [
        ({"taskSupport": "required"}, TaskSupport.REQUIRED),
        ({"taskSupport": "optional"}, TaskSupport.OPTIONAL),
        ({"taskSupport": "perhaps"}, TaskSupport.FORBIDDEN),
        ({}, TaskSupport.FORBIDDEN),
        (None, TaskSupport.FORBIDDEN),
    ],
)
def test_prx2_a_legacy_upstream_says_it_for_each_tool(execution: Any, support: TaskSupport) -> None:
    found = read(LEGACY, page(tool(execution=execution)))
    assert (found.era, found.tasks) == (Era.LEGACY, True)
    assert found.tools["render"].support is support


def test_prx2_a_legacy_upstream_without_tasks() -> None:
    assert not read({**LEGACY, "capabilities": {"tasks": {"list": {}}}}).tasks


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"supportedVersions": "2026-07-28", "capabilities": {}},
        {"supportedVersions": ["2026-07-28"], "capabilities": []},
        {"supportedVersions": ["1999-01-01"], "capabilities": {}},
    ],
)
def test_prx2_an_upstream_that_makes_no_sense_is_none(nonsense: dict[str, Any]) -> None:
    assert read_discovery(nonsense, [], version="2026-07-28", most_tools=3) is None


def test_lim3_too_many_tools_are_none() -> None:
    many = page(*(tool(str(number)) for number in range(4)))
    assert read_discovery(MODERN, [many], version="2026-07-28", most_tools=3) is None
    assert len(read(MODERN, page(*(tool(str(number)) for number in range(3)))).tools) == 3


def test_http3_tools_that_must_not_be_used_are_left_out() -> None:
    bad = tool("bad", inputSchema={"type": "object", "x-mcp-header": "X"})
    found = read(MODERN, page(bad, tool(7), "nonsense", tool("good")), {"tools": 7, "ttlMs": 1})
    assert list(found.tools) == ["good"]


@pytest.mark.parametrize("ttl_ms", [0, -1, None, "60", True])
def test_prx2_without_a_sensible_ttl_nothing_is_kept(ttl_ms: Any) -> None:
    assert read(MODERN, page(ttl_ms=ttl_ms)).ttl_ms == 0


# -- the cache -------------------------------------------------------------------------------------------


def test_prx2_a_discovery_is_kept_for_its_time() -> None:
    cache, found = DiscoveryCache(9), read(MODERN, page())
    cache.put("up", "alice", found, START)
    assert cache.get("up", "alice", START + 4999) is found
    assert cache.get("up", "alice", START + 5000) is None
    cache.put("up", "alice", read(MODERN, page(ttl_ms=0)), START + 5000)
    assert cache.get("up", "alice", START + 5000) is None


def test_prx2_the_cache_scope_is_honoured() -> None:
    cache, everybodys, alices = DiscoveryCache(9), read(MODERN, page()), read(MODERN, page(scope="private"))
    cache.put("up", "alice", alices, START)
    assert cache.get("up", "bob", START) is None
    cache.put("up", "alice", everybodys, START)
    assert cache.get("up", "bob", START) is everybodys
    assert cache.get("up", "alice", START) is alices
    assert cache.last("up", "alice") is alices
    assert cache.get("other", "bob", START) is None


def test_prx2_what_was_contradicted_is_dropped() -> None:
    cache = DiscoveryCache(9)
    for upstream, authorization, scope in (
        ("up", "alice", "private"),
        ("up", "bob", "public"),
        ("b", "", "x"),
    ):
        cache.put(upstream, authorization, read(MODERN, page(scope=scope)), START)
    cache.drop("up", "alice")
    assert cache.get("up", "alice", START) is None
    assert cache.get("up", "bob", START) is None
    assert cache.get("b", "", START) is not None
    cache.drop_all("b")
    assert cache.get("b", "", START) is None


def test_lim3_the_oldest_makes_room() -> None:
    cache, found = DiscoveryCache(2), read(MODERN, page(scope="private"))
    for name in ("a", "b", "c"):
        cache.put("up", name, found, START)
    assert [cache.get("up", name, START) is found for name in ("a", "b", "c")] == [False, True, True]
    cache.put("up", "c", found, START)
    assert cache.get("up", "b", START) is found, "what is known anew drives nothing out"
    cache.drop_all()
    assert cache.get("up", "c", START) is None
