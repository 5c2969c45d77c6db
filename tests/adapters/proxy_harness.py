"""Proxies under test: one on either loop before a server of ours, and stores asked from a plain test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.client import RequesterLimits
from mcp_tasks_adapters.proxy import HttpUpstream, Proxy
from mcp_tasks_adapters.proxy.storing import ProxyStoreEffect

from mcp_tasks_proto.history import TaskEntry, opened
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy import Binding, ProxyLimits, SaveBinding, Snapshot, TaskQuota
from tests.adapters.client_harness import QUICK, OnTrio

NOW = 1_700_000_000_000
ROOMY = TaskQuota(tasks=1000, tasks_per_principal=1000)
EAGER = ProxyLimits(poll_floor_ms=1, listening_poll_ms=1)
"""So that tests need not wait."""


# -- on a loop -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def proxying(on: Any, proxy: Proxy, **options: Any) -> AsyncIterator[str]:
    """Run a proxy for the length of the block; give its URL. When the block is left, so has the proxy."""
    ready, over = on.event(), on.event()
    urls: list[str] = []
    module = trio_h11 if isinstance(on, OnTrio) else asyncio_h11

    def listening(url: str) -> None:
        urls.append(url)
        ready.set()

    async def serve() -> None:
        try:
            await module.serve_proxy(proxy, ready=listening, **options)
        finally:
            over.set()

    job = on.spawn(serve)
    await ready.wait()
    try:
        yield urls[0]
    finally:
        job.cancel()
        await over.wait()


def before(url: str, **options: Any) -> Proxy:
    """Return a proxy before one server."""
    return Proxy([HttpUpstream(name="farm", url=url)], proxy_limits=EAGER, **options)


def connecting(on: Any, url: str, **options: Any) -> Any:
    """Connect a client of the modern era that polls without waiting."""
    limits: RequesterLimits = options.pop("requester_limits", QUICK)
    return on.connect(url, era="modern", requester_limits=limits, **options)


# -- for stores ----------------------------------------------------------------------------------------------


def binding(handle: str = "h1", **changes: Any) -> Binding:
    facts: dict[str, Any] = {
        "handle": handle,
        "upstream": "farm",
        "identity": "digest",
        "upstream_task_id": "canary-upstream-id",
        "authorization": "",
        "principal": "alice",
        "project": "film",
        "tool": "render",
        "declared": {},
        "created_at": "2026-08-01T12:00:00.000Z",
        "bound_at_ms": NOW,
        "ttl_ms": 1000,
        "keep_ms": 5000,
        "poll_interval_ms": 500,
    }
    return Binding(**{**facts, **changes})


def entry(handle: str = "h1", **changes: Any) -> TaskEntry:
    facts: dict[str, Any] = {
        "handle": handle,
        "project": "film",
        "owner": "alice",
        "caller": "Alice",
        "api_key": False,
        "upstream": "farm",
        "tool": "render",
        "status": Status.WORKING,
        "now": NOW,
    }
    return opened(**{**facts, **changes})


def save(
    handle: str = "h1", *, quota: TaskQuota = ROOMY, stored: bool = True, owner: str = "alice", **changes: Any
) -> SaveBinding:
    """Return the effect that saves a binding and its entry."""
    bound = binding(handle, principal=owner, **changes) if stored else None
    return SaveBinding(binding=bound, entry=entry(handle, owner=owner), quota=quota, token="save")


def snapshot(handle: str = "h1", text: str = "canary-result", stored_at_ms: int = NOW) -> Snapshot:
    view = {"taskId": handle, "status": "completed", "result": {"content": [{"type": "text", "text": text}]}}
    return Snapshot(handle=handle, status=Status.COMPLETED, view=view, stored_at_ms=stored_at_ms)


def ask(bench: Any, *effects: ProxyStoreEffect) -> Sequence[Any]:
    """Put effects, each of which has one answer, to a store; return the answers."""
    answers: list[Any] = []
    for effect in effects:
        bench.store.submit(effect, answers.append)
    bench.until(lambda: len(answers) == len(effects))
    return answers


def tell(bench: Any, *effects: ProxyStoreEffect) -> Sequence[Any]:
    """Put effects that have no answer of their own to a store; return what it told by itself."""
    told: list[Any] = []
    for effect in effects:
        bench.store.submit(effect, told.append)
    return told
