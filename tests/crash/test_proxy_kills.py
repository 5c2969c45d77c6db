"""A real proxy, killed again and again under load: PRX.4, PRX.6, PRX.13, PRX.16.

Callers and upstreams live on. No call is sent twice, no handle is dead, what a caller saw of a task only goes
on from there, and a promoted call whose proxy is gone has honestly failed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from random import Random
from threading import Condition, Event, Thread
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from attrs import define, field

from mcp_tasks_proto.vocabulary import MODERN_VERSION, TASKS_EXTENSION
from tests.adapters.client_harness import Reply, ScriptedServer, task
from tests.adapters.http_harness import PATIENCE_SECONDS, mcp_headers, message

KILLS = 10
CALLERS = 4
ENDED = ("completed", "failed", "cancelled")
REPLIES = (5, 40)
"""How many a proxy gives before it is killed."""
ROOT = Path(__file__).parents[2]


# -- what lives on -------------------------------------------------------------------------------------------


def upstream(capabilities: dict[str, Any], **scripts: Any) -> ScriptedServer:
    found = {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": {"tools": {}, **capabilities},
        "ttlMs": 600_000,
        "cacheScope": "private",
    }
    tools = [{"name": "work", "inputSchema": {"type": "object"}}]
    listed = {"tools": tools, "ttlMs": 600_000, "cacheScope": "private"}
    return ScriptedServer(
        {
            "server/discover": lambda reply: reply.result(found),
            "tools/list": lambda reply: reply.result(listed),
            **scripts,
        }
    )


def make_task(reply: Reply) -> None:
    number = reply.asked.params["arguments"]["number"]
    reply.result({**task(taskId=f"task-{number}"), "resultType": "task"})


def done(what: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": what}]}


@define(eq=False)
class Farm:
    """Its tasks end when they are looked at for the third time."""

    looks: Counter[str] = field(factory=Counter)

    def show(self, reply: Reply) -> None:
        task_id = reply.asked.params["taskId"]
        self.looks[task_id] += 1
        ended = self.looks[task_id] > 2
        state = {"result": done(task_id)} if ended else {}
        reply.result(task("completed" if ended else "working", taskId=task_id, **state))


@define(eq=False)
class Plain:
    """It knows no tasks, and takes its time; for calls that are held, for ever."""

    over: Event = field(factory=Event)

    def work(self, reply: Reply) -> None:
        arguments = reply.asked.params["arguments"]
        self.over.wait(None if arguments["held"] else 0.05)
        with suppress(OSError):
            reply.result(done(f"number {arguments['number']}"))


# -- callers -------------------------------------------------------------------------------------------------


@define(eq=False)
class Callers:
    """They call, and look at their tasks, until the proxy is gone; they never send a call again."""

    random: Random
    numbers: Iterator[int] = field(factory=count)
    seen: dict[str, list[Any]] = field(factory=dict)
    """What came back about each handle, from the handle on."""
    replies: int = 0
    news: Condition = field(factory=Condition)

    def work(self, url: str, replies: int) -> list[Thread]:
        """Begin; return who is at work, once there were so many replies."""
        threads = [Thread(target=self._until_it_is_gone, args=(url,)) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        with self.news:
            goal = self.replies + replies
            assert self.news.wait_for(lambda: self.replies >= goal, PATIENCE_SECONDS)
        return threads

    def _until_it_is_gone(self, url: str) -> None:
        with suppress(OSError, HTTPException):
            while True:
                upstream = self.random.choice(["farm", "plain"])
                self.call(url, upstream)
                for handle in self.random.sample(sorted(self.seen), min(3, len(self.seen))):
                    self.look(url, handle)

    def call(self, url: str, upstream: str, *, held: bool = False) -> Any:
        """Call a tool, and remember the handle, if it became one."""
        arguments = {"number": next(self.numbers), "held": held}
        answer = ask(url, "tools/call", {"name": f"{upstream}__work", "arguments": arguments})
        result = answer.get("result", {})
        with self.news:
            if "taskId" in result:
                self.seen.setdefault(result["taskId"], []).append(result)
            self.replies += 1
            self.news.notify_all()
        return answer

    def look(self, url: str, handle: str) -> Any:
        """Ask how a task stands."""
        with self.news:
            before = len(self.seen[handle])
        answer = ask(url, "tasks/get", {"taskId": handle})
        with self.news:
            # Others may have looked meanwhile: an order is known only where they have not.
            if before == len(self.seen[handle]):
                self.seen[handle].append(answer.get("result", answer))
            self.replies += 1
            self.news.notify_all()
        return answer


def ask(url: str, method: str, params: dict[str, Any]) -> Any:
    body = message(method, params)
    where = urlsplit(url)
    with closing(HTTPConnection("127.0.0.1", where.port, timeout=PATIENCE_SECONDS)) as connection:
        connection.request("POST", where.path, json.dumps(body), dict(mcp_headers(body)))
        return json.loads(connection.getresponse().read())


# -- the proxy -----------------------------------------------------------------------------------------------


@define(eq=False)
class Lives:
    """One life of a proxy after the other."""

    command: list[str]
    process: subprocess.Popen[str] = field(init=False)
    pid: int | None = None

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid is not None:
            self.kill()
        self.process.communicate()

    def begin(self) -> str:
        """Start one; return where it is."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        pid, url = self.process.stdout.readline().split()
        self.pid = int(pid)
        return url

    def kill(self) -> None:
        """End it at once."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        self.pid = None


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_prx4_prx6_prx13_prx16_killed_under_load(loop: str, tmp_path: Path) -> None:
    """Ten times on each loop: twenty in all."""
    seed = Random().getrandbits(32)
    print(f"seed {seed}")
    random, farm, plain = Random(seed), Farm(), Plain()
    tasks: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
    with (
        upstream(tasks, **{"tools/call": make_task, "tasks/get": farm.show}) as first,
        upstream({}, **{"tools/call": plain.work}) as second,
        Lives(
            [
                *(sys.executable, "-m", "tests.crash.proxy_lives"),
                *(loop, str(tmp_path / "proxy.db"), first.url, second.url),
            ]
        ) as lives,
    ):
        callers = Callers(random)
        orphans = []
        try:
            for _ in range(KILLS):
                url = lives.begin()
                orphans.append(callers.call(url, "plain", held=True)["result"]["taskId"])
                threads = callers.work(url, random.randint(*REPLIES))
                lives.kill()
                for thread in threads:
                    thread.join(PATIENCE_SECONDS)
                    assert not thread.is_alive()
            calls = Counter(
                asked.params["arguments"]["number"]
                for server in (first, second)
                for asked in server.all("tools/call")
            )
            assert set(calls.values()) == {1}, "a call was sent twice"
            check_afterwards(lives.begin(), callers, orphans)
        finally:
            plain.over.set()


def check_afterwards(url: str, callers: Callers, orphans: list[str]) -> None:
    """Look at every task until it has ended, and at what was seen of it."""
    assert len(callers.seen) > KILLS
    for handle, seen in callers.seen.items():
        while seen[-1].get("status") not in ENDED:
            answer = callers.look(url, handle)
            assert "result" in answer, f"a dead handle: {answer}"
        assert callers.look(url, handle)["result"] == seen[-1], "another end"
        views = [view for view in seen[1:] if "status" in view]
        ends = [view for view in views if view["status"] in ENDED]
        assert views[len(views) - len(ends) :] == ends, "a stale view after the end"
        assert all(view == ends[0] for view in ends), "two ends"
        assert {view["taskId"] for view in views} == {handle}
        refusals = [one["error"]["code"] for one in seen if "error" in one]
        assert -32602 not in refusals, "a handle that was dead for a while"
        if ends[0]["status"] == "failed":
            assert ends[0]["error"]["data"]["reason"] == "worker_lost"
    for handle in orphans:
        assert callers.seen[handle][-1]["status"] == "failed", "an orphan that has not failed"
