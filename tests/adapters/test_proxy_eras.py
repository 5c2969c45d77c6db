"""A proxy between the eras, with every transport in front of it: HTTP and its sessions, stdio, ASGI."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp_tasks_adapters import RequestFacts
from mcp_tasks_adapters.asgi import asgi_proxy_app
from mcp_tasks_adapters.client import Cancelled, Completed, Failed, NoResultError
from mcp_tasks_adapters.proxy import AesGcm, Caller, HttpUpstream, Proxy, SqliteProxyStore
from mcp_tasks_adapters.stores.sealing import RecordKeys

from mcp_tasks_proto.proxy import Access, HandleKey, SealedHandles
from tests.adapters.client_farm import Farm
from tests.adapters.client_harness import LOOPS, QUICK, OnAsyncio, run
from tests.adapters.proxy_harness import EAGER, before, connecting, proxying
from tests.interop.servers import ROOT

on_loops = pytest.mark.parametrize("loop", LOOPS)
on_eras = pytest.mark.parametrize("era", ["modern", "legacy"])
NAMED = {"action": "accept", "content": {"name": "Ada"}}


async def answer(_: Any) -> dict[str, Any]:
    return NAMED


def texts(outcome: Any) -> list[str]:
    assert isinstance(outcome, Completed), outcome
    return [block["text"] for block in outcome.result["content"]]


async def visit(client: Any, farm: Farm) -> None:
    """Call a tool plainly, as a task, and as one that asks."""
    added = await (await client.call_tool("add", {"a": 1, "b": 2})).settle()
    assert added.result["structuredContent"] == {"sum": 3}
    call = await client.call_tool("work")
    assert call.task_id is not None
    farm.release.set()
    assert texts(await call.settle()) == ["worked"]
    assert texts(await (await client.call_tool("ask")).settle()) == [str(NAMED)]


@on_eras
@on_loops
def test_prx_bridge_over_http(loop: str, era: Any) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, bridging=True)) as proxied,
            on.connect(proxied, era=era, answer=answer, requester_limits=QUICK) as client,
        ):
            await visit(client, farm)

    run(loop, go)


@on_loops
def test_leg2_sec1_a_session_is_its_callers_and_ends_with_its_client(loop: str) -> None:
    def caller(facts: RequestFacts) -> Caller:
        return Caller(facts.headers.get("x-user"), Access())

    async def go(on: Any) -> None:
        farm = Farm(on)
        seen: list[Any] = []
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, bridging=True, authenticate=caller)) as proxied,
        ):
            alice = {"era": "legacy", "headers": {"X-User": "alice"}, "on_trace": seen.append}
            async with on.connect(proxied, requester_limits=QUICK, **alice) as client:
                call = await client.call_tool("work")
                await farm.started.wait()
                stranger = {"era": "legacy", "headers": {"X-User": "mallory"}}
                async with on.connect(proxied, requester_limits=QUICK, **stranger) as other:
                    gone = await other.watch(call.task_id).settle()
                    assert not isinstance(gone, Completed)
                assert isinstance(await call.cancel(wait=True), Cancelled)
        (farewell,) = [entry for entry in seen if entry.verb == "DELETE"]
        assert [entry.http_status for entry in seen if entry.request == farewell.request] == [None, 200]

    run(loop, go)


@on_eras
@on_loops
def test_prx_bridge_on_stdio(loop: str, era: Any) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        async with on.serving(farm.server) as url:
            command = [sys.executable, "-m", "tests.adapters.stdio_proxy", loop, url]
            options = {"era": era, "answer": answer, "requester_limits": QUICK, "cwd": ROOT}
            async with on.connect_stdio(command, **options) as client:
                await visit(client, farm)

    run(loop, go)


@asynccontextmanager
async def under_uvicorn(proxy: Proxy) -> AsyncIterator[str]:
    server = uvicorn.Server(
        uvicorn.Config(asgi_proxy_app(proxy), port=0, log_config=None, timeout_graceful_shutdown=1)
    )
    serving = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await serving


@on_eras
def test_prx_bridge_under_asgi(era: Any) -> None:
    async def go(on: Any) -> None:
        assert isinstance(on, OnAsyncio)
        farm = Farm(on)
        async with (
            on.serving(farm.server) as url,
            under_uvicorn(before(url, bridging=True)) as proxied,
            on.connect(proxied, era=era, answer=answer, requester_limits=QUICK) as client,
        ):
            await visit(client, farm)

    run("asyncio", go)


# -- upstreams of 2025-11-25, and a proxy that is started again ----------------------------------------------


@on_loops
def test_prx6_a_task_of_a_legacy_upstream_is_there_after_a_restart(loop: str, tmp_path: Path) -> None:
    """The session is another one; tasks that belong to whoever is authenticated are still to be had."""

    async def go(on: Any) -> None:
        farm = Farm(on)
        farm.server.legacy = "serve"
        store = SqliteProxyStore(tmp_path / "proxy.db", keys=RecordKeys([bytes(32)]))
        async with on.serving(farm.server) as url:
            upstream = HttpUpstream(name="farm", url=url, era="legacy")
            proxy = Proxy([upstream], proxy_limits=EAGER)

            async def hesitate(_: Any) -> Any:
                await on.event().wait()

            async with (
                proxying(on, proxy, store=store) as first,
                connecting(on, first, answer=hesitate) as client,
            ):
                asking = (await client.call_tool("ask")).task_id
                working = (await client.call_tool("work")).task_id
                await farm.started.wait()
            async with (
                proxying(on, proxy, store=store) as second,
                connecting(on, second, answer=answer) as client,
            ):
                assert texts(await client.watch(asking).settle()) == [str(NAMED)]
                await client.cancel_task(working)
                assert isinstance(await client.watch(working).settle(), Cancelled)

    run(loop, go)


@on_loops
def test_upd3_a_proxy_that_a_legacy_upstream_has_not_asked_takes_no_answer(loop: str) -> None:
    """It shares keys with the one that was asked, and says that this may have been another."""

    async def go(on: Any) -> None:
        farm = Farm(on)
        farm.server.legacy = "serve"
        asked, may_answer = on.event(), on.event()

        async def hesitate(_: Any) -> Any:
            asked.set()
            await may_answer.wait()
            return NAMED

        async with on.serving(farm.server) as url:
            upstream = HttpUpstream(name="farm", url=url, era="legacy")
            codec = SealedHandles([HandleKey("k1", AesGcm(bytes(32)))])
            async with (
                proxying(on, Proxy([upstream], proxy_limits=EAGER, codec=codec)) as one,
                proxying(on, Proxy([upstream], proxy_limits=EAGER, codec=codec)) as other,
                connecting(on, one, answer=hesitate) as client,
                connecting(on, other, answer=hesitate) as elsewhere,
            ):
                call = await client.call_tool("ask")
                await asked.wait()
                assert call.task_id is not None
                (key,) = (await client.get_task(call.task_id)).input_requests or {}
                with pytest.raises(NoResultError) as refused:
                    await elsewhere.update_task(call.task_id, {key: NAMED})
                outcome = refused.value.outcome
                assert isinstance(outcome, Failed)
                assert outcome.data == {"reason": "asked_elsewhere", "retryable": True}
                may_answer.set()
                assert texts(await call.settle()) == [str(NAMED)]

    run(loop, go)
