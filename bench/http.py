"""What a request costs over HTTP: our servers against the smallest h11 servers that answer the same JSON.

Both loops, ``tasks/get`` of completed tasks and ``tools/call`` that makes one; 32 keep-alive connections in a
closed loop. The smallest server (``bare.py``) answers from memory what ours answered before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.clients import Client
from bench.harness import Figure, Options, ServerProcess, alternate, main, pin_load

__all__ = ["measure"]

LOOPS = ("trio", "asyncio")
TARGETS = {"get": 0.65, "create": 0.4}


def measure(options: Options) -> Sequence[Figure]:
    """Return each loop's share of the speed of the smallest server on it."""
    pin_load()
    return [figure for loop in LOOPS for figure in measure_loop(loop, options)]


def measure_loop(loop: str, options: Options) -> Sequence[Figure]:
    """Return one loop's figures."""
    with ServerProcess("-m", "bench.ours", loop) as server:
        ours = Client(server.port)
        with ServerProcess("-m", "bench.bare", loop, ours.results_json()) as other:
            bare = Client(other.port, task_ids=ours.task_ids)
            return [
                *compare(loop, "get", ours, bare, options),
                *compare(loop, "create", ours, bare, options),
            ]


def compare(loop: str, operation: str, ours: Client, bare: Client, options: Options) -> Sequence[Figure]:
    """Measure one operation on both servers in turn."""
    compared = alternate(
        {
            "ours": lambda: ours.rate(operation, options.seconds),
            "bare": lambda: bare.rate(operation, options.seconds),
        },
        options.runs,
    )
    return [
        Figure(
            benchmark="http",
            subject=f"{operation}, {loop}+h11 / bare {loop}+h11",
            value=compared.ratio("ours", "bare"),
            unit="x",
            at_least=TARGETS[operation],
            detail=f"{compared.median('ours'):,.0f}/s / {compared.median('bare'):,.0f}/s",
        )
    ]


if __name__ == "__main__":
    main(measure, __doc__, seconds=1.0, runs=9)
