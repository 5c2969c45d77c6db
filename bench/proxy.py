"""What a proxy costs: ours against the smallest h11 relay on the same loop, before the smallest server.

Both loops, ``tasks/get`` of working tasks and ``tools/call`` that makes one, neither of which can be
answered from memory; 32 keep-alive connections in a closed loop. The relay (``relay.py``) reads and writes
HTTP on both sides, as a proxy has to, and passes the bodies on as bytes. Two more figures tell what a caller
waits longer than without anything between, one request at a time, and how the two compare in processor time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from attrs import field, frozen

from bench.harness import Comparison, Figure, Options, ServerProcess, alternate, main, pin_load
from bench.load import CONNECTIONS, Load, drive, exchange, waits
from bench.messages import CREATED, TOOL, VERSION, call_load, get_load, task_of

__all__ = ["measure"]

LOOPS: Final = ("trio", "asyncio")
OPERATIONS: Final = ("get", "create")
TARGET: Final = 0.5
WARM_UP_SECONDS: Final = 0.3
WORKING: Final = b'"working"'

TASK: Final = {
    "taskId": "upstream-task-0123456789abcdef",
    "status": "working",
    "createdAt": "2026-08-01T12:00:00.000Z",
    "lastUpdatedAt": "2026-08-01T12:00:00.000Z",
    "ttlMs": None,
    "pollIntervalMs": 1000,
}
FRESH: Final = {"ttlMs": 86_400_000, "cacheScope": "private"}
RESULTS: Final[Mapping[str, Any]] = {
    "server/discover": {
        **FRESH,
        "supportedVersions": [VERSION],
        "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    },
    "tools/list": {**FRESH, "tools": [{"name": TOOL, "inputSchema": {"type": "object"}}]},
    "tools/call": {"resultType": "task", **TASK},
    "tasks/get": {"resultType": "complete", **TASK},
}
"""What the server says, whatever it is asked about."""


def measure(options: Options) -> Sequence[Figure]:
    """Return what the proxy reaches on each loop."""
    pin_load()
    return [figure for loop in LOOPS for figure in measure_loop(loop, options)]


def measure_loop(loop: str, options: Options) -> Sequence[Figure]:
    """Return one loop's figures. The server behind is with the load, so that it takes nothing from what is
    measured; the one that is asked directly is a second one."""
    results = json.dumps(RESULTS)
    with ExitStack() as servers:

        def start(*arguments: str, beside_load: bool = False) -> ServerProcess:
            return servers.enter_context(ServerProcess("-m", *arguments, beside_load=beside_load))

        behind = str(start("bench.bare", loop, results, beside_load=True).port)
        sides = {
            "proxy": Side(start("bench.proxied", loop, behind)),
            "relay": Side(start("bench.relay", loop, behind)),
            "direct": Side(start("bench.bare", loop, results)),
        }
        return [figure for operation in OPERATIONS for figure in compare(loop, operation, sides, options)]


@frozen
class Run:
    """What one run of one side gave."""

    rate: float
    """Replies a second."""
    processor_ms: float
    """Of the side, for each reply; 0: not known."""
    wait_ms: float
    """For a reply, one request at a time: the median."""


@frozen
class Side:
    """One way to the server: through the proxy, through the relay, or none between."""

    process: ServerProcess
    loads: Mapping[str, Load] = field(init=False)
    """What is asked, by operation."""

    @loads.default
    def _make_loads(self) -> Mapping[str, Load]:
        port = self.process.port
        calls = call_load(port)
        made = [task_of(exchange(port, calls.requests[0], CREATED)) for _ in range(CONNECTIONS)]
        return {"create": calls, "get": Load(requests=get_load(port, made).requests, marker=WORKING)}

    def run(self, operation: str, seconds: float) -> Run:
        """Measure it once."""
        port, load, process = self.process.port, self.loads[operation], self.process
        measured = drive(port, load, seconds=seconds, warm_up=WARM_UP_SECONDS, used=process.processor_seconds)
        each_ms = 1000 * measured.used / measured.replies
        return Run(measured.rate, each_ms, 1000 * median(waits(port, load, seconds=seconds / 4)))


def compare(loop: str, operation: str, sides: Mapping[str, Side], options: Options) -> Sequence[Figure]:
    """Measure one operation on every side in turn."""
    runs: dict[str, list[Run]] = {name: [] for name in sides}

    def measure_side(name: str) -> float:
        run = sides[name].run(operation, options.seconds)
        runs[name].append(run)
        return run.rate

    rates = alternate({name: partial(measure_side, name) for name in sides}, options.runs)

    def compared(value: Callable[[Run], float]) -> Comparison:
        return Comparison({name: [value(run) for run in of_side] for name, of_side in runs.items()})

    waiting = compared(lambda run: run.wait_ms)
    figures = [
        Figure(
            benchmark="proxy",
            subject=f"{operation}, through proxy / relay, {loop}+h11",
            value=rates.ratio("proxy", "relay"),
            unit="x",
            at_least=TARGET,
            detail=told(rates, "{:,.0f}/s"),
        ),
        Figure(
            benchmark="proxy",
            subject=f"{operation}, added by the proxy, {loop}+h11",
            value=median(a - b for a, b in zip(waiting.sides["proxy"], waiting.sides["direct"], strict=True)),
            unit="ms",
            detail=told(waiting, "{:.2f} ms"),
        ),
    ]
    processor = compared(lambda run: run.processor_ms)
    if processor.median("proxy"):
        figures.append(
            Figure(
                benchmark="proxy",
                subject=f"{operation}, processor time, relay / proxy, {loop}+h11",
                value=processor.ratio("relay", "proxy"),
                unit="x",
                detail=told(processor, "{:.3f} ms"),
            )
        )
    return figures


def told(compared: Comparison, form: str) -> str:
    """Return the median of each side."""
    return ", ".join(f"{name} {form.format(compared.median(name))}" for name in compared.sides)


if __name__ == "__main__":
    main(measure, __doc__, seconds=1.0, runs=5)
