"""A proxy with a dashboard under test, on a thread of its own: its people, its upstream, and who asks it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import count
from typing import Any
from urllib.parse import quote, urlsplit

import trio
import uvicorn
from attrs import define, field, frozen
from mcp_tasks_adapters import RequestFacts, Unauthorized, asyncio_h11, trio_h11
from mcp_tasks_adapters.asgi import asgi_proxy_app
from mcp_tasks_adapters.proxy import Caller, HttpUpstream, Proxy

from mcp_tasks_proto.history import Viewer
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import Access
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, MODERN_VERSION, SERVER_INFO, TASKS_EXTENSION
from tests.adapters.client_harness import Reply, ScriptedServer, task
from tests.adapters.http_harness import PATIENCE_SECONDS, mcp_headers, message
from tests.adapters.proxy_harness import EAGER

__all__ = ["LOOPS", "SERVER_NAME", "TASK", "TOKEN", "Answered", "Scene", "Town", "scene", "serving"]

LOOPS = ("trio", "asyncio", "asgi")

TASK = "canary-task"
"""What the upstream's ids begin with."""
SERVER_NAME = "canary-server-name"
TOKEN = "canary-token"
"""By which the proxy is known there."""
META = {SERVER_INFO: {"name": SERVER_NAME, "version": "1"}}


# -- people --------------------------------------------------------------------------------------------------


@define(eq=False)
class Town:
    """Everybody is the same in every project but ``elsewhere``, where there is nobody of these."""

    team: frozenset[str] = frozenset({"alice", "bob", "carol"})
    direct: frozenset[str] = frozenset({"gil"})
    cut_off: set[str] = field(factory=set)
    """Those who have no authorization for the upstream any more."""
    profile: str = "default"
    label: str = "The farm"
    """Of the upstream that all others have an authorization for."""

    def authenticate(self, facts: RequestFacts) -> Caller:
        """Name a caller by a header, ``key`` and more for an API key; another names the project of calls."""
        who = facts.headers.get("x-who")
        if who is None:
            raise Unauthorized(www_authenticate="Bearer")
        key = who.startswith("key")
        return Caller(who, self._access(facts.headers.get("x-project"), who, key=key))

    def viewer(self, caller: Caller, project: str) -> Viewer | None:
        """Return a person, who has a part in every project but one."""
        if caller.access.api_key or caller.principal is None:
            return None
        here = frozenset({project}) if project != "elsewhere" else frozenset[str]()
        return Viewer(
            principal=caller.principal,
            teams=here if caller.principal in self.team else frozenset(),
            direct=here if caller.principal in self.direct else frozenset(),
            upstreams=frozenset() if caller.principal in self.cut_off else frozenset({self.label}),
        )

    def access(self, caller: Caller, project: str) -> Access | None:
        """Return what a person may do in a project."""
        return self._access(project, caller.principal or "")

    def _access(self, project: str | None, who: str, *, key: bool = False) -> Access:
        return Access(
            project=project,
            profile=self.profile,
            authorizations={"farm": ""},
            api_key=key,
            caller=f"The laptop of {who}",
        )


# -- the upstream --------------------------------------------------------------------------------------------


def discovered(reply: Reply) -> None:
    """Answer ``server/discover``."""
    extensions: dict[str, Any] = {TASKS_EXTENSION: {}}
    capabilities: dict[str, Any] = {"tools": {}, "extensions": extensions}
    fresh = {"ttlMs": 600_000, "cacheScope": "private"}
    told = {"supportedVersions": [MODERN_VERSION], "capabilities": capabilities, "_meta": META}
    reply.result({**told, **fresh})


def listed(reply: Reply) -> None:
    """Answer ``tools/list``."""
    tools = [{"name": "work", "inputSchema": {"type": "object"}}]
    reply.result({"tools": tools, "ttlMs": 600_000, "cacheScope": "private", "_meta": META})


@define(eq=False)
class Farm:
    """A server whose tasks are as the test says."""

    tasks: dict[str, dict[str, Any]] = field(factory=dict)
    down: bool = False
    server: ScriptedServer = field(init=False)
    _names: Iterator[int] = field(init=False, factory=count)

    def __attrs_post_init__(self) -> None:
        scripts: dict[str, Callable[[Reply], Any]] = {
            "server/discover": discovered,
            "tools/list": listed,
            "tools/call": self._call,
            "tasks/get": self._get,
            "tasks/update": lambda reply: reply.result({}),
            "tasks/cancel": lambda reply: reply.result({}),
        }
        self.server = ScriptedServer(scripts)

    def _call(self, reply: Reply) -> None:
        name = f"{TASK}-{next(self._names)}"
        self.tasks[name] = _task("working", name)
        reply.result({**self.tasks[name], "resultType": "task"})

    def _get(self, reply: Reply) -> None:
        found = self.tasks.get(reply.asked.params["taskId"])
        if self.down:
            reply.http(status="503 Service Unavailable")
        elif found is None:
            reply.error(-32602, "Task not found")
        else:
            reply.result(found)

    def change(self, status: str, **more: Any) -> str:
        """Change the task that was made last, and return its name."""
        name = [*self.tasks][-1]
        self.tasks[name] = _task(status, name, **more)
        return name


def _task(status: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a task that says its secrets wherever it can."""
    return task(status, taskId=name, statusMessage=f"{name} is at it", note=name, _meta=META, **more)


# -- who asks ------------------------------------------------------------------------------------------------


@frozen
class Answered:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def bytes_but_for_date(self) -> bytes:
        """Everything that can be compared."""
        headers = {name: value for name, value in self.headers.items() if name not in ("date", "server")}
        return repr((self.status, sorted(headers.items()))).encode() + self.body

    @property
    def reason(self) -> str:
        """Why it is refused."""
        reason: str = self.json["error"]["reason"]
        return reason


@define(eq=False)
class Scene:
    """A proxy, what is before and behind it."""

    port: int
    town: Town
    farm: Farm
    project: str = "film"
    endpoint: str = "/mcp"
    heard: list[tuple[str | None, bytes]] = field(factory=list)
    """All that came back, head and body, and to whom."""

    def ask(
        self,
        method: str,
        path: str,
        who: str | None = "alice",
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Answered:
        """Send a request and read the answer."""
        fields = {} if who is None else {"X-Who": who}
        data = None
        if body is not None:
            fields["Content-Type"] = "application/json"
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request(method, path, data, {**fields, **(headers or {})})
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            answered = Answered(response.status, told, response.read())
        self.heard.append((who, repr((answered.status, told)).encode() + answered.body))
        return answered

    def mcp(self, method: str, params: dict[str, Any], who: str = "alice") -> Any:
        """Send an MCP request; return what came back."""
        declared: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}}
        body = message(method, {**params, "_meta": {CLIENT_CAPABILITIES: declared}})
        fields = {**dict(mcp_headers(body)), "X-Project": self.project}
        return self.ask("POST", self.endpoint, who, body, fields).json

    def make(self, who: str = "alice") -> str:
        """Make a task in the project; return its handle."""
        handle: str = self.mcp("tools/call", {"name": "work", "arguments": {}}, who)["result"]["taskId"]
        return handle

    def make_ended(self, status: str, who: str = "alice", **more: Any) -> str:
        """Make a task that ends, and see its end."""
        handle = self.make(who)
        self.farm.change(status, **more)
        self.mcp("tasks/get", {"taskId": handle}, who)
        return handle

    def path(self, handle: str | None = None, part: str = "", project: str | None = None) -> str:
        """Return where a project's list or one of its tasks is."""
        shown = f"/projects/{quote(self.project if project is None else project, safe='')}/tasks"
        return shown if handle is None else f"{shown}/{quote(handle, safe='')}{part}"

    def tasks(self, query: str = "", who: str = "alice") -> list[Any]:
        """Return the rows of a list."""
        answered = self.ask("GET", f"{self.path()}{query}", who)
        assert answered.status == 200, answered
        rows: list[Any] = answered.json["tasks"]
        return rows


@contextmanager
def scene(loop: str, town: Town | None = None, **options: Any) -> Iterator[Scene]:
    """Run a proxy with a dashboard; ``options`` are the proxy's, but for ``store`` and ``path``."""
    town = town or Town()
    farm = Farm()
    serve = {name: options.pop(name) for name in ("store", "path") if name in options}
    with farm.server:
        upstream = HttpUpstream(
            name="farm",
            label="The farm",
            url=farm.server.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            listen=False,
        )
        settings: dict[str, Any] = {
            "authenticate": town.authenticate,
            "members": town,
            "proxy_limits": EAGER,
            "limits": Limits(message_bytes=64 * 1024),
            **options,
        }
        with serving(loop, Proxy([upstream], **settings), **serve) as port:
            yield Scene(port, town, farm, endpoint=serve.get("path", "/mcp"))


@contextmanager
def serving(loop: str, proxy: Proxy, **options: Any) -> Iterator[int]:
    """Run a proxy on a thread for the length of the block; give its port."""
    started = threading.Event()
    ready: list[Any] = []

    def say_ready(port: int, stop: Callable[[], object]) -> None:
        ready.extend((port, stop))
        started.set()

    run = {"trio": _run_trio, "asyncio": _run_asyncio, "asgi": _run_asgi}[loop]
    thread = threading.Thread(target=run, args=(proxy, options, say_ready))
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    port, stop = ready
    try:
        yield port
    finally:
        stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def _port(url: str) -> int:
    return urlsplit(url).port or 0


def _run_trio(proxy: Proxy, options: dict[str, Any], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:
            await trio_h11.serve_proxy(
                proxy,
                ready=lambda url: say_ready(_port(url), lambda: token.run_sync_soon(scope.cancel)),
                **options,
            )

    trio.run(main, strict_exception_groups=True)


def _run_asyncio(proxy: Proxy, options: dict[str, Any], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        post, cancel = asyncio.get_running_loop().call_soon_threadsafe, task.cancel
        try:
            await asyncio_h11.serve_proxy(
                proxy, ready=lambda url: say_ready(_port(url), lambda: post(cancel)), **options
            )
        except asyncio.CancelledError:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

    asyncio.run(main())


def _run_asgi(proxy: Proxy, options: dict[str, Any], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        config = uvicorn.Config(
            asgi_proxy_app(proxy, **options), port=0, log_config=None, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)

        def stop() -> None:
            server.should_exit = True

        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        say_ready(server.servers[0].sockets[0].getsockname()[1], stop)
        await serving

    asyncio.run(main())
