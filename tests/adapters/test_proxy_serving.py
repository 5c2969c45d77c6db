"""A proxy through real sockets, on both loops: a client of ours, a proxy, a server of ours."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from attrs import evolve
from mcp_tasks_adapters import RequestFacts, Unauthorized, asyncio_h11, trio_h11
from mcp_tasks_adapters.client import Completed, Failed, NoResultError
from mcp_tasks_adapters.proxy import (
    AesGcm,
    Caller,
    HttpUpstream,
    MemoryProxyStore,
    Proxy,
    SqliteProxyStore,
    StdioUpstream,
)
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.storing import StoreError

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import Access, HandleKey, SealedHandles
from mcp_tasks_proto.vocabulary import MODERN_VERSION, TASKS_EXTENSION
from tests.adapters.client_farm import Farm
from tests.adapters.client_harness import LOOPS, ScriptedServer, run, task
from tests.adapters.proxy_harness import EAGER, before, connecting, proxying

on_loops = pytest.mark.parametrize("loop", LOOPS)
KEYS = RecordKeys([bytes(32)])
NAMED = {"action": "accept", "content": {"name": "Ada"}}
CAPABILITIES: dict[str, Any] = {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}
DISCOVERED = {
    "supportedVersions": [MODERN_VERSION],
    "capabilities": CAPABILITIES,
    "ttlMs": 0,
    "cacheScope": "private",
}

LISTED = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}


async def answer(_: Any) -> dict[str, Any]:
    return NAMED


def texts(outcome: Any) -> list[str]:
    assert isinstance(outcome, Completed), outcome
    return [block["text"] for block in outcome.result["content"]]


def of_failure(outcome: Any) -> tuple[int | None, str | None]:
    assert isinstance(outcome, Failed), outcome
    return outcome.code, (outcome.data or {}).get("reason")


def before_farm(loop: str, scenario: Callable[[Any, Farm, str], Awaitable[None]], **options: Any) -> None:
    """Run a scenario with a server and a proxy before it, whose URL it is given."""

    async def go(on: Any) -> None:
        farm = Farm(on)
        async with on.serving(farm.server) as url, proxying(on, before(url), **options) as proxied:
            await scenario(on, farm, proxied)

    run(loop, go)


# -- calls and tasks -----------------------------------------------------------------------------------------


@on_loops
def test_prx1_ordinary_calls_and_errors_pass(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with connecting(on, url) as client:
            added = await (await client.call_tool("add", {"a": 1, "b": 2})).settle()
            assert isinstance(added, Completed)
            assert added.result["structuredContent"] == {"sum": 3}
            failed = await (await client.call_tool("fail")).settle()
            assert isinstance(failed, Completed)
            assert failed.result["isError"]
            broken = await (await client.call_tool("break_down")).settle()
            assert isinstance(broken, Failed)
            assert (broken.code, broken.data) == (-31_000, {"node": 7})

    before_farm(loop, scenario)


@on_loops
@pytest.mark.parametrize("kept", ["memory", "sqlite"])
@pytest.mark.parametrize("listen", [True, False])
def test_prx8_a_task_is_the_proxys_from_its_creation_to_its_end(
    loop: str, kept: str, listen: bool, tmp_path: Path
) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with connecting(on, url, listen=listen) as client:
            call = await client.call_tool("work")
            await farm.started.wait()
            task_id = call.task_id
            assert task_id is not None
            assert len(task_id) == 43
            farm.release.set()
            assert texts(await call.settle()) == ["worked"]
            assert (await client.get_task(task_id)).task_id == task_id

    store = SqliteProxyStore(tmp_path / "proxy.db", keys=KEYS) if kept == "sqlite" else MemoryProxyStore()
    before_farm(loop, scenario, store=store)


@on_loops
def test_prx10_questions_reach_the_caller_and_answers_the_tool(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with connecting(on, url, answer=answer) as client:
            for tool in ("ask", "ask_first"):
                assert texts(await (await client.call_tool(tool)).settle()) == [str(NAMED)]

    before_farm(loop, scenario)


@on_loops
def test_prx11_a_cancelled_task_stops_at_its_server(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with connecting(on, url) as client:
            call = await client.call_tool("work")
            await farm.started.wait()
            await call.cancel(wait=True)
            await farm.stopped.wait()

    before_farm(loop, scenario)


@on_loops
def test_prx4_who_leaves_takes_the_call_along(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with connecting(on, url) as client:
            job = on.spawn(lambda: client.call_tool("wait"))
            await farm.started.wait()
            job.cancel()
            await farm.stopped.wait()

    before_farm(loop, scenario)


@on_loops
def test_prx4_progress_passes_under_the_callers_token(loop: str) -> None:
    heard: list[Any] = []

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        def hear(_: str, params: Any) -> None:
            heard.append(params)
            farm.release.set()

        async with connecting(on, url) as client:
            call = await client.call_tool("wait", on_notification=hear)
            assert texts(await call.settle()) == ["waited"]

    before_farm(loop, scenario)
    assert [params["message"] for params in heard] == ["half"]


@on_loops
def test_a_proxy_before_a_proxy(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with (
            proxying(on, before(url)) as foremost,
            connecting(on, foremost, answer=answer) as client,
        ):
            assert texts(await (await client.call_tool("ask")).settle()) == [str(NAMED)]

    before_farm(loop, scenario)


# -- policies ------------------------------------------------------------------------------------------------


@on_loops
def test_prx5_handles_that_carry_their_binding_need_no_table(loop: str) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        codec = SealedHandles([HandleKey("k1", AesGcm(bytes(32)))])
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, codec=codec)) as one,
            proxying(on, before(url, codec=codec)) as other,
            connecting(on, one) as client,
            connecting(on, other) as elsewhere,
        ):
            handle = (await client.call_tool("work")).task_id
            assert handle is not None
            assert handle.startswith("p1.k1.")
            farm.release.set()
            assert texts(await elsewhere.watch(handle).settle()) == ["worked"]
            other_character = "A" if handle[-9] != "A" else "B"
            with pytest.raises(NoResultError, match="Task not found"):
                await elsewhere.get_task(handle[:-9] + other_character + handle[-8:])

    run(loop, go)


def test_prx5_a_key_for_handles_has_its_length() -> None:
    with pytest.raises(StoreError, match="32 bytes"):
        AesGcm(bytes(16))
    assert AesGcm(bytes(32)).decrypt(b"", b"", b"") is None


@on_loops
def test_prx16_a_call_that_takes_long_becomes_a_task(loop: str) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, tasks=False, promote_after_ms=10)) as proxied,
            connecting(on, proxied) as client,
        ):
            call = await client.call_tool("wait")
            assert call.task_id is not None
            farm.release.set()
            assert texts(await call.settle()) == ["waited"]

    run(loop, go)


@on_loops
def test_prx16_a_promoted_call_whose_proxy_is_gone_has_failed(loop: str, tmp_path: Path) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        store = SqliteProxyStore(tmp_path / "proxy.db", keys=KEYS)
        async with on.serving(farm.server) as url:
            proxy = before(url, tasks=False, promote_after_ms=10)
            async with proxying(on, proxy, store=store) as first, connecting(on, first) as client:
                handle = (await client.call_tool("wait")).task_id
                assert handle is not None
            async with proxying(on, proxy, store=store) as second, connecting(on, second) as client:
                assert of_failure(await client.watch(handle).settle()) == (-32603, "worker_lost")
            await farm.stopped.wait()

    run(loop, go)


@on_loops
def test_prx17_who_takes_no_tasks_may_get_one_as_rounds(loop: str) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, collapse=True)) as proxied,
            connecting(on, proxied, tasks=False, answer=answer) as client,
        ):
            call = await client.call_tool("ask")
            assert call.task_id is None
            assert texts(await call.settle()) == [str(NAMED)]

    run(loop, go)


# -- what outlives what --------------------------------------------------------------------------------------


@on_loops
def test_prx6_a_handle_is_good_after_a_restart_of_the_proxy(loop: str, tmp_path: Path) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        async with on.serving(farm.server) as url:
            store = SqliteProxyStore(tmp_path / "proxy.db", keys=KEYS)
            async with proxying(on, before(url), store=store) as first, connecting(on, first) as client:
                call = await client.call_tool("work")
                await farm.started.wait()
                handle = call.task_id
                assert handle is not None
            farm.release.set()
            async with proxying(on, before(url), store=store) as second, connecting(on, second) as client:
                assert texts(await client.watch(handle).settle()) == ["worked"]

    run(loop, go)


@on_loops
def test_prx13_an_end_is_readable_when_its_server_is_gone(loop: str, tmp_path: Path) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        store = SqliteProxyStore(tmp_path / "proxy.db", keys=KEYS)
        farm.release.set()
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url), store=store) as first,
            connecting(on, first) as client,
        ):
            call = await client.call_tool("work")
            await call.settle()
            handle = call.task_id
        async with proxying(on, before(url), store=store) as second, connecting(on, second) as client:
            assert texts(await client.watch(handle).settle()) == ["worked"]

    run(loop, go)


# -- upstreams -----------------------------------------------------------------------------------------------


@on_loops
def test_prx15_one_upstream_down_leaves_the_others_working(loop: str) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        farm.release.set()
        async with on.serving(farm.server) as gone:
            pass
        async with on.serving(farm.server) as url:
            upstreams = [HttpUpstream(name="farm", url=url), HttpUpstream(name="gone", url=gone)]
            async with (
                proxying(on, Proxy(upstreams, proxy_limits=EAGER)) as proxied,
                connecting(on, proxied) as client,
            ):
                assert {tool["name"].partition("__")[0] for tool in await client.list_tools()} == {"farm"}
                assert texts(await (await client.call_tool("farm__work")).settle()) == ["worked"]
                down = await (await client.call_tool("gone__work")).settle()
                assert of_failure(down) == (-32603, "upstream_unavailable")

    run(loop, go)


ON_STDIO = textwrap.dedent(
    """
    from mcp_tasks_adapters.asyncio_h11 import serve_stdio
    from mcp_tasks_adapters.toolkit import Server, text
    import asyncio

    server = Server("on stdio")

    @server.tool(task="required")
    async def work(call):
        async def go(task):
            return text("worked")
        return call.task(go, poll_interval_ms=1)

    asyncio.run(serve_stdio(server))
    """
)


@on_loops
def test_prx15_an_upstream_on_stdio_is_started_when_it_is_needed(loop: str) -> None:
    async def go(on: Any) -> None:
        upstream = StdioUpstream(name="local", command=[sys.executable, "-c", ON_STDIO])
        async with (
            proxying(on, Proxy([upstream], proxy_limits=EAGER)) as proxied,
            connecting(on, proxied) as client,
        ):
            assert texts(await (await client.call_tool("work")).settle()) == ["worked"]

    run(loop, go)


@on_loops
def test_prx15_an_upstream_that_no_system_starts_leaves_the_others_working(loop: str) -> None:
    async def go(on: Any) -> None:
        scripts = {
            "server/discover": lambda reply: reply.result(DISCOVERED),
            "tools/list": lambda reply: reply.result(LISTED),
        }
        with ScriptedServer(scripts) as server:
            odd = StdioUpstream(name="odd", command=["odd\0name"])
            upstreams = odd, HttpUpstream(name="farm", url=server.url)
            async with proxying(on, Proxy(upstreams)) as proxied, connecting(on, proxied) as client:
                assert [tool["name"] for tool in await client.list_tools()] == ["farm__work"]

    run(loop, go)


@on_loops
def test_prx4_a_call_whose_answer_is_lost_is_sent_once(loop: str) -> None:
    scripts = {
        "server/discover": lambda reply: reply.result(DISCOVERED),
        "tools/list": lambda reply: reply.result(LISTED),
        "tools/call": lambda reply: reply.close(),
    }

    async def go(on: Any) -> None:
        with ScriptedServer(scripts) as server:
            upstream = HttpUpstream(name="farm", url=server.url)
            async with proxying(on, Proxy([upstream])) as proxied, connecting(on, proxied) as client:
                outcome = await (await client.call_tool("work")).settle()
                assert of_failure(outcome) == (-32603, "outcome_unknown")
            assert [asked.method for asked in server.asked].count("tools/call") == 1

    run(loop, go)


@on_loops
def test_prx9_headers_are_the_proxys_own_and_the_authorization_is_the_callers(loop: str) -> None:
    scripts = {
        "server/discover": lambda reply: reply.result(DISCOVERED),
        "tools/list": lambda reply: reply.result(LISTED),
        "tools/call": lambda reply: reply.result({"content": []}),
    }

    async def authenticate(facts: RequestFacts) -> Caller:
        return Caller("alice", Access(authorizations={"farm": facts.headers["x-who"]}))

    async def go(on: Any) -> None:
        with ScriptedServer(scripts) as server:
            upstream = HttpUpstream(
                name="farm",
                url=server.url,
                authorizations={"alices": {"Authorization": "Bearer hers"}},
            )
            async with proxying(on, Proxy([upstream], authenticate=authenticate)) as proxied:
                async with connecting(on, proxied, headers={"X-Who": "alices"}) as client:
                    await (await client.call_tool("work")).settle()
                seen = [dict(asked.headers) for asked in server.asked]
                assert {headers["authorization"] for headers in seen} == {"Bearer hers"}
                assert not any("x-who" in headers for headers in seen)
                assert seen[-1]["mcp-name"] == "work"
                before_count = len(server.asked)
                async with connecting(on, proxied, headers={"X-Who": "bobs"}) as client:
                    unknown = await (await client.call_tool("work")).settle()
                    assert of_failure(unknown) == (-32603, "upstream_unavailable")
                assert len(server.asked) == before_count

    run(loop, go)


# -- callers -------------------------------------------------------------------------------------------------


@on_loops
def test_prx7_a_task_is_nothing_to_anybody_but_its_owner(loop: str) -> None:
    def authenticate(facts: RequestFacts) -> Caller:
        if "x-who" not in facts.headers:
            raise Unauthorized(www_authenticate="Bearer")
        return Caller(facts.headers["x-who"], Access())

    async def go(on: Any) -> None:
        farm = Farm(on)
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, authenticate=authenticate)) as proxied,
            connecting(on, proxied, headers={"X-Who": "alice"}) as alice,
            connecting(on, proxied, headers={"X-Who": "bob"}) as bob,
            connecting(on, proxied) as nobody,
        ):
            call = await alice.call_tool("work")
            await farm.started.wait()
            assert call.task_id is not None
            refusals = []
            for task_id in (call.task_id, "x" * 43):
                with pytest.raises(NoResultError) as refusal:
                    await bob.get_task(task_id)
                refusals.append(refusal.value.outcome)
            assert refusals[0] == refusals[1]
            refused = await (await nobody.call_tool("work")).settle()
            assert isinstance(refused, Failed)
            assert refused.http_status == 401
            farm.release.set()
            assert texts(await call.settle()) == ["worked"]

    run(loop, go)


@on_loops
def test_sec1_a_function_that_names_nobody_lets_none_in(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    def authenticate(_: RequestFacts) -> Any:
        return "alice"

    async def go(on: Any) -> None:
        farm = Farm(on)
        async with (
            on.serving(farm.server) as url,
            proxying(on, before(url, authenticate=authenticate)) as proxied,
            connecting(on, proxied) as client,
        ):
            refused = await (await client.call_tool("add", {"a": 1, "b": 2})).settle()
            assert of_failure(refused)[0] == -32603

    run(loop, go)
    assert "function failed: TypeError" in caplog.text


# -- the end -------------------------------------------------------------------------------------------------


@on_loops
def test_who_still_waits_when_the_proxy_ends_is_told(loop: str) -> None:
    async def go(on: Any) -> None:
        farm = Farm(on)
        async with on.serving(farm.server) as url:
            proxy = before(url, limits=Limits(shutdown_grace_ms=1))
            over = on.event()
            async with proxying(on, proxy) as proxied:
                outcomes: list[Any] = []

                async def call() -> None:
                    async with connecting(on, proxied) as client:
                        outcomes.append(await (await client.call_tool("wait")).settle())
                    over.set()

                on.spawn(call)
                await farm.started.wait()
            await over.wait()
            assert of_failure(outcomes[0]) == (-32603, "shutting_down")
            await farm.stopped.wait()

    run(loop, go)


# -- what upstreams do wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_leg2_a_session_that_never_was_is_unknown(verb: str) -> None:
    async def go(on: Any) -> None:
        async with proxying(on, before("http://127.0.0.1:9/mcp")) as url:
            place = urlsplit(url)
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            session = "Mcp-Session-Id: x\r\nAccept: text/event-stream"
            head = f"{verb} {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\n{session}\r\n\r\n"
            writer.write(head.encode())
            assert (await reader.readline()).split()[1] == b"404"
            writer.close()
            await writer.wait_closed()

    run("asyncio", go)


@on_loops
def test_an_option_that_a_proxy_has_not_is_refused(loop: str) -> None:
    async def go(on: Any) -> None:
        serve_proxy = (trio_h11 if loop == "trio" else asyncio_h11).serve_proxy
        with pytest.raises(TypeError, match="allowed_host="):
            await serve_proxy(before("http://127.0.0.1:9/mcp"), allowed_host=["example.com"])

    run(loop, go)


@on_loops
def test_prx15_an_upstream_of_another_era_is_left_out(loop: str) -> None:
    old = {"server/discover": lambda reply: reply.error(-32601, status="404 Not Found")}

    async def go(on: Any) -> None:
        farm = Farm(on)
        farm.release.set()
        with ScriptedServer(old) as server:
            async with on.serving(farm.server) as url:
                upstreams = [HttpUpstream(name="farm", url=url), HttpUpstream(name="old", url=server.url)]
                async with (
                    proxying(on, Proxy(upstreams, proxy_limits=EAGER)) as proxied,
                    connecting(on, proxied) as client,
                ):
                    assert {tool["name"].partition("__")[0] for tool in await client.list_tools()} == {"farm"}
                    refused = await (await client.call_tool("old__work")).settle()
                    assert of_failure(refused) == (-32603, "upstream_refused")

    run(loop, go)


def garbage(reply: Any) -> Any:
    return reply.http(b"{", "Content-Type: application/json")


FAULTS: dict[str, Callable[[Any], Any]] = {
    "closed": lambda reply: reply.close(),
    "reset": lambda reply: reply.reset(),
    "garbage": garbage,
    "no HTTP": lambda reply: reply.raw(b"nonsense\r\n\r\n").close(),
    "502": lambda reply: reply.http(status="502 Bad Gateway"),
    "slow": lambda reply: reply.hang(),
}


@on_loops
@pytest.mark.parametrize("fault", FAULTS)
def test_prx4_a_poll_that_fails_may_be_tried_again(loop: str, fault: str) -> None:
    """Whatever became of it; and nothing of the upstream's is told (error table)."""
    scripts: dict[str, Any] = {
        "server/discover": lambda reply: reply.result(DISCOVERED),
        "tools/list": lambda reply: reply.result(LISTED),
        "tools/call": lambda reply: reply.result({**task(), "resultType": "task"}),
        "tasks/get": FAULTS[fault],
        "subscriptions/listen": lambda reply: reply.error(-32601),
    }
    limits = evolve(EAGER, request_timeout_ms=1_000)

    async def go(on: Any) -> None:
        with ScriptedServer(scripts) as server:
            proxy = Proxy([HttpUpstream(name="farm", url=server.url)], proxy_limits=limits)
            async with proxying(on, proxy) as proxied, connecting(on, proxied, listen=False) as client:
                call = await client.call_tool("work")
                assert call.task_id is not None
                with pytest.raises(NoResultError) as failed:
                    await client.get_task(call.task_id)
                outcome = failed.value.outcome
                assert of_failure(outcome) == (-32603, "upstream_unavailable")
                assert "task-1" not in repr(outcome)
                assert str(server.port) not in repr(outcome)

    run(loop, go)
