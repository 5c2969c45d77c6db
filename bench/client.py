"""What it costs a client to watch tasks: our clients against PyPI ``fastmcp`` with ``fastmcp-tasks``.

1,000 tasks on our server, polled as often as it asks for, by one process of each client in turn: the
processor time that the process uses for a poll. And how many requests a listen stream saves.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from mcp_tasks_adapters.asyncio_h11 import connect
from mcp_tasks_adapters.client import Client, Completed, TraceEntry

from bench.harness import PROJECT, Figure, Options, ServerProcess, alternate, main, pin_load
from bench.load import exchange
from bench.messages import tool_request
from bench.peers import peer_python

__all__ = ["measure"]

LOOPS = ("trio", "asyncio")
LEAST_RATIO = 3.0
LEAST_SAVING = 10.0

TASKS = 1_000
FOREVER: Final = {"seconds": 3600, "poll_ms": 1000}
WARM_UP_SECONDS = 0.3

LISTENED_TASKS = 100
"""As many as one stream carries with room to spare."""
POLL_MS = 250
POLLS = 20


def measure(options: Options) -> Sequence[Figure]:
    """Return what a poll costs, and what listening saves."""
    with ServerProcess("-m", "bench.watched") as server:
        pin_load()
        saving = compare_requests(f"http://127.0.0.1:{server.port}/mcp")
    with ServerProcess("-m", "bench.watched") as server:
        return [*compare_polls(server.port, options), saving]


# -- processor time ------------------------------------------------------------------------------------------


def compare_polls(port: int, options: Options) -> Sequence[Figure]:
    """Measure what a poll costs each client, in turn."""
    tasks = options.many(TASKS)
    arguments = (f"http://127.0.0.1:{port}/mcp", str(tasks), json.dumps(FOREVER))
    with ExitStack() as stack:
        watchers = {
            loop: stack.enter_context(Watcher(sys.executable, "-m", "bench.our_watcher", loop, *arguments))
            for loop in LOOPS
        }
        peer = Watcher(str(peer_python()), "-m", "bench.peer_watcher", *arguments)
        watchers["peer"] = stack.enter_context(peer)
        sides: dict[str, Callable[[], float]] = {
            side: partial(watcher.microseconds_per_poll, port, options.seconds)
            for side, watcher in watchers.items()
        }
        compared = alternate(sides, options.runs)
    return [
        Figure(
            benchmark="client",
            subject=f"CPU per poll, {tasks:,} tasks, fastmcp / {loop}+h11",
            value=compared.ratio("peer", loop),
            unit="x",
            at_least=LEAST_RATIO,
            detail=f"{compared.median('peer'):,.0f} us / {compared.median(loop):,.0f} us",
        )
        for loop in LOOPS
    ]


class Watcher:
    """A client that watches its tasks in a process of its own, and stands still while it is not measured."""

    def __init__(self, *command: str) -> None:
        self._command = command

    def __enter__(self) -> Watcher:
        self._process = subprocess.Popen(
            self._command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "watching\n":
            self._stop()
            raise RuntimeError(f"did not begin to watch: {' '.join(self._command[1:4])}")
        self._process.send_signal(signal.SIGSTOP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def microseconds_per_poll(self, port: int, seconds: float) -> float:
        """Let it watch for so long; return the processor time that a poll took."""
        self._process.send_signal(signal.SIGCONT)
        time.sleep(WARM_UP_SECONDS)
        before, used = lookups(port), self._processor_seconds()
        time.sleep(seconds)
        while lookups(port) == before:  # it had no turn on a machine that is busy
            time.sleep(seconds)
        polls, used = lookups(port) - before, self._processor_seconds() - used
        self._process.send_signal(signal.SIGSTOP)
        return used * 1e6 / polls

    def _processor_seconds(self) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(file=stdin, flush=True)
        return float(stdout.readline())


def lookups(port: int) -> int:
    """Return how often the server has looked up a task so far."""
    body = json.loads(exchange(port, tool_request(port, "lookups")))
    return int(body["result"]["content"][0]["text"])


# -- requests ------------------------------------------------------------------------------------------------


def compare_requests(url: str) -> Figure:
    """Count what a client sends to see tasks through, polling and listening."""
    polling, listening = asyncio.run(see_through(url))
    return Figure(
        benchmark="client",
        subject=f"requests, {LISTENED_TASKS} tasks of {POLLS} polls, polling / listening",
        value=polling / listening,
        unit="x",
        at_least=LEAST_SAVING,
        detail=f"{polling:,} / {listening:,}",
    )


async def see_through(url: str) -> tuple[int, int]:
    """Have the same tasks made by a client that polls and one that listens; return what each has sent."""
    polling, listening = await asyncio.gather(
        *(requests_sent(url, listen=listen) for listen in (False, True))
    )
    return polling, listening


async def requests_sent(url: str, *, listen: bool) -> int:
    """Call a tool many times at once, and wait for all results; return how many requests that took."""
    sent: list[TraceEntry] = []

    def note(entry: TraceEntry) -> None:
        if entry.event == "sent":
            sent.append(entry)

    arguments = {"seconds": POLL_MS * (POLLS - 0.5) / 1000, "poll_ms": POLL_MS}
    async with connect(url, listen=listen, on_trace=note) as client:
        await asyncio.gather(*(see_one_through(client, arguments) for _ in range(LISTENED_TASKS)))
    return len(sent)


async def see_one_through(client: Client, arguments: dict[str, Any]) -> None:
    """Call the tool and wait for its result."""
    outcome = await (await client.call_tool("last", arguments)).settle()
    assert isinstance(outcome, Completed), outcome


if __name__ == "__main__":
    main(measure, __doc__, seconds=0.8)
