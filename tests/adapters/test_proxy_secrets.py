"""What nobody may learn of an upstream, and what no stranger may learn of a task."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_tasks_adapters import RequestFacts
from mcp_tasks_adapters.proxy import Caller, HttpUpstream, Proxy, SqliteProxyStore
from mcp_tasks_adapters.stores.sealing import RecordKeys

from mcp_tasks_proto.proxy import Access
from mcp_tasks_proto.vocabulary import MODERN_VERSION, TASKS_EXTENSION
from tests.adapters.client_harness import LOOPS, Reply, ScriptedServer, run, task
from tests.adapters.dashboard_harness import SERVER_NAME, Scene, scene
from tests.adapters.dashboard_harness import TASK as TASK_PREFIX
from tests.adapters.dashboard_harness import TOKEN as UPSTREAM_TOKEN
from tests.adapters.http_harness import Client as Socket
from tests.adapters.http_harness import message, post
from tests.adapters.proxy_harness import EAGER, connecting, proxying

on_loops = pytest.mark.parametrize("loop", LOOPS)
TASK = "canary-task-id"
NAME = "canary-server-name"
TOKEN = "canary-token"
RESULT = "canary-result"
DISCOVERED = {
    "supportedVersions": [MODERN_VERSION],
    "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}},
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": NAME, "version": "1"}},
}
LISTED = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}


def upstream_task(status: str = "working", **more: Any) -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/serverInfo": {"name": NAME, "version": "1"}}
    return {**task(status, taskId=TASK, statusMessage=f"{TASK} is at it"), "_meta": meta, **more}


def answered(reply: Reply) -> None:
    done = {"resultType": "complete", "content": [{"type": "text", "text": RESULT}]}
    reply.result(upstream_task("completed", result=done))


SCRIPTS: dict[str, Any] = {
    "server/discover": lambda reply: reply.result(DISCOVERED),
    "tools/list": lambda reply: reply.result(LISTED),
    "tools/call": lambda reply: reply.result({**upstream_task(), "resultType": "task"}),
    "tasks/get": answered,
    "subscriptions/listen": lambda reply: reply.close(),
}


@on_loops
def test_prx8_nothing_of_an_upstream_is_seen_but_its_results(
    loop: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    caplog.set_level(0)

    async def go(on: Any) -> None:
        with ScriptedServer(SCRIPTS) as server:
            secrets = [TASK, NAME, TOKEN, f":{server.port}"]
            upstream = HttpUpstream(
                name="canary", url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}
            )
            store = SqliteProxyStore(tmp_path / "proxy.db", keys=RecordKeys([bytes(32)]))
            async with proxying(on, Proxy([upstream], proxy_limits=EAGER), store=store) as url:

                def trace(entry: Any) -> None:
                    seen.append(json.dumps(entry.to_json()))

                async with connecting(on, url, on_trace=trace) as client:
                    call = await client.call_tool("work")
                    await call.settle()
                    await client.discover()
            assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {TOKEN}"}
        assert RESULT in "".join(seen)
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert RESULT.encode() not in files
        for secret in secrets:
            assert not [frame for frame in seen if secret in frame]
            assert secret not in caplog.text
        for secret in (TASK, NAME, TOKEN):
            assert secret.encode() not in files

    run(loop, go)


# -- every byte that leaves, and every byte that stays -----------------------------------------------------

EMPTY_FORM = {"type": "object", "properties": {}}
FORM = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "?", "requestedSchema": EMPTY_FORM},
}
DONE = {"resultType": "complete", "content": [{"type": "text", "text": RESULT}]}
BODIES = {"inputResponses": {"sure": {"action": "accept", "content": {}}}}


def busy_day(scene: Scene) -> None:
    """Live through every kind of request there is, each answered in every way there is."""
    asking = scene.make()
    scene.farm.change("input_required", inputRequests={"sure": FORM})
    listen_to(scene, asking)
    ended = scene.make_ended("completed", result=DONE)
    failed = scene.make()
    name = [*scene.farm.tasks][-1]
    scene.farm.change("failed", error={"code": 7, "message": f"{name} broke", "data": [name]})
    handles = (asking, ended, failed, name)
    for owner in ("alice", "bob"):
        scene.mcp("server/discover", {}, owner)
        scene.mcp("tools/list", {}, owner)
        for handle in handles:
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                scene.mcp(method, {"taskId": handle, **(BODIES if method == "tasks/update" else {})}, owner)
    callers: list[str | None] = ["alice", "bob", "gil", "eve", "key-1", None]
    for who in callers:
        scene.ask("GET", scene.path(), who)
        for handle in handles:
            scene.ask("GET", scene.path(handle), who)
            scene.ask("GET", scene.path(handle, "/payload"), who)
            scene.ask("PUT", scene.path(handle, "/assignee"), who, {"assignee": "gil"})
            scene.ask("DELETE", scene.path(handle, "/assignee"), who)
            scene.ask("POST", scene.path(handle, "/answers"), who, BODIES)
            scene.ask("POST", scene.path(handle, "/cancel"), who)
    for fault in ("down", "forgets"):
        scene.farm.down = fault == "down"
        if fault == "forgets":
            scene.farm.tasks.clear()
        scene.mcp("tasks/get", {"taskId": asking})
        scene.ask("GET", scene.path(asking, "/payload"))
    scene.ask("GET", "/elsewhere")
    scene.ask("GET", scene.path(), "alice", None, {"Host": "evil.example"})


def listen_to(scene: Scene, handle: str) -> None:
    """Take the first two messages of a listen stream: the acknowledgement and a view."""
    body = message("subscriptions/listen", {"notifications": {"taskIds": [handle]}})
    who = (("X-Who", "alice"), ("X-Project", scene.project))
    with Socket(scene.port) as socket:
        socket.send(post(body, *who))
        scene.heard.append(("alice", repr(socket.head()).encode()))
        scene.heard.extend(("alice", json.dumps(socket.event()).encode()) for _ in range(2))


@pytest.mark.parametrize("loop", ["trio", "asyncio", "asgi"])
def test_prx8_his3_no_canary_in_any_byte(loop: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every frame and header, of MCP and of the dashboard; every log line; every column, and every byte of
    the file, be it in use or not."""
    caplog.set_level(0)
    store = SqliteProxyStore(tmp_path / "proxy.db", keys=RecordKeys([bytes(32)]))
    with scene(loop, store=store) as shown:
        busy_day(shown)
        secrets = [TASK_PREFIX, SERVER_NAME, UPSTREAM_TOKEN, f":{shown.farm.server.port}", "tenant=1"]
        asked = shown.farm.server.asked
    assert {one.headers["authorization"] for one in asked} == {f"Bearer {UPSTREAM_TOKEN}"}
    assert len(shown.heard) > 150
    for who, heard in shown.heard:
        assert not [secret for secret in secrets if secret.encode() in heard], heard
        if RESULT.encode() in heard:
            assert who == "alice"
    assert [who for who, heard in shown.heard if RESULT.encode() in heard]
    with closing(sqlite3.connect(tmp_path / "proxy.db")) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = repr([file.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
    assert "The farm" in columns
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in [*secrets[:3], RESULT]:
        assert secret not in columns
        assert secret.encode() not in files
    # An ASGI server logs the paths that it is asked for, here with an upstream's id as well.
    logged = repr([one.getMessage() for one in caplog.records if not one.name.startswith("uvicorn")])
    assert not [secret for secret in [*secrets, RESULT] if secret in logged]


# -- refusals ----------------------------------------------------------------------------------------------


@on_loops
def test_sec1_every_refusal_is_the_same_bytes(loop: str) -> None:
    """Forged, foreign, denied and unknown: one answer, head and body, for each method."""

    def authenticate(facts: RequestFacts) -> Caller:
        who, _, where = facts.headers["x-who"].partition("@")
        project, _, lacking = where.partition(" without ")
        return Caller(
            who,
            Access(
                project=project,
                profile="none" if lacking == "tool" else "default",
                authorizations={} if lacking == "upstream" else {"canary": lacking},
            ),
        )

    async def go(on: Any) -> None:
        with ScriptedServer(SCRIPTS) as server:
            upstream = HttpUpstream(name="canary", url=server.url)
            proxy = Proxy([upstream], proxy_limits=EAGER, authenticate=authenticate)
            async with proxying(on, proxy) as url:
                async with connecting(on, url, headers={"X-Who": "alice@film"}) as client:
                    handle = (await client.call_tool("work")).task_id
                assert handle is not None
                refusals: dict[str, set[bytes]] = {}
                cases = [
                    (handle, "bob@film"),
                    (handle, "alice@other"),
                    (handle, "alice@film without tool"),
                    (handle, "alice@film without upstream"),
                    (handle, "alice@film without the same authorization"),
                    (handle[:-1], "alice@film"),
                    ("x" * 43, "alice@film"),
                    (TASK, "alice@film"),
                    ("a+b/c", "alice@film"),
                    ("x" * 4096, "alice@film"),
                ]
                port = int(url.split(":")[2].split("/")[0])
                for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                    for task_id, who in cases:
                        if method == "tasks/cancel" and task_id == handle and who.startswith("alice"):
                            continue  # whoever owns a task can stop it (PRX.7)
                        answer = await _ask(on, port, method, task_id, who)
                        refusals.setdefault(method, set()).add(answer)
                assert {len(answers) for answers in refusals.values()} == {1}

    run(loop, go)


async def _ask(on: Any, port: int, method: str, task_id: str, who: str) -> bytes:
    """Ask on a thread, with a plain socket, and return the response but for its date."""
    answers: list[bytes] = []
    answered = on.event()

    async def ask() -> None:
        more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
        body = message(method, {"taskId": task_id, **more})
        answers.append(await on_thread(on, lambda: _exchange(port, post(body, ("X-Who", who)))))
        answered.set()

    on.spawn(ask)
    await answered.wait()
    return answers[0]


async def on_thread(on: Any, call: Any) -> Any:
    """Run a function that blocks beside the loop."""
    if type(on).__name__ == "OnTrio":
        import trio

        return await trio.to_thread.run_sync(call)
    import asyncio

    return await asyncio.to_thread(call)


def _exchange(port: int, request: bytes) -> bytes:
    with Socket(port) as socket:
        socket.socket.sendall(request)
        head = b""
        while b"\r\n\r\n" not in head:
            head += socket.socket.recv(65536)
        fields, _, body = head.partition(b"\r\n\r\n")
        lines = [line for line in fields.split(b"\r\n") if not line.lower().startswith(b"date:")]
        length = next(int(line[15:]) for line in lines if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            body += socket.socket.recv(65536)
        return b"\r\n".join(lines) + body
