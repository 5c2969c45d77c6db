"""What retained tasks cost: memory for each, and time for requests when there are many.

Memory is what the resident set of a server grows by while 20,000 small tasks are made over HTTP, complete,
and are kept. Time is that of the core alone, as in ``core.py``, with 100,000 tasks kept against 1,000.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.clients import Client
from bench.core import rate
from bench.embedded import Embedded
from bench.harness import Figure, Options, ServerProcess, alternate, main, pin_load
from bench.load import CONNECTIONS
from bench.messages import call_body, get_body
from bench.peers import peer_server

__all__ = ["measure"]

TASKS = 20_000
PEER_TASKS = 5_000
"""Enough for the peer's figure, which is for information: 20,000 would take it a minute."""
WARM_UP_TASKS = 1_000
BYTES_TARGET = 2_000
FEW, MANY = 1_000, 100_000
GROWTH_TARGET = 1.10


def measure(options: Options) -> Sequence[Figure]:
    """Return bytes for each task, and how the cost of requests grows with their number."""
    pin_load()
    return [*measure_memory(options), *measure_growth(options)]


def measure_memory(options: Options) -> Sequence[Figure]:
    """Return what a retained task takes, on both loops and on the peer."""
    figures = []
    for subject, server, tasks, target in (
        ("trio+h11", ServerProcess("-m", "bench.ours", "trio"), TASKS, BYTES_TARGET),
        ("asyncio+h11", ServerProcess("-m", "bench.ours", "asyncio"), TASKS, BYTES_TARGET),
        ("fastmcp+uvicorn", peer_server(), PEER_TASKS, None),
    ):
        with server:
            client = Client(server.port)
            client.create(WARM_UP_TASKS)
            before = server.resident_bytes
            made = client.create(options.many(tasks)).replies
            after = server.resident_bytes
        figures.append(
            Figure(
                benchmark="memory",
                subject=f"kept task, {subject}",
                value=(after - before) / made,
                unit="B",
                at_most=target,
                detail=f"{before / 1e6:.0f} MB -> {after / 1e6:.0f} MB with {made:,} tasks",
            )
        )
    return figures


def measure_growth(options: Options) -> Sequence[Figure]:
    """Return how many times as long requests take with many tasks kept as with few."""
    most = options.many(MANY)
    few, many = Embedded(), Embedded()
    few_polls, many_polls = polls(few, FEW), polls(many, most)
    gets = alternate(
        {
            "few": lambda: 1e6 / rate(lambda: few.answer(next(few_polls)), options.seconds),
            "many": lambda: 1e6 / rate(lambda: many.answer(next(many_polls)), options.seconds),
        },
        options.runs,
    )
    creates = alternate(
        {"few": lambda: creation_time(filled(FEW)), "many": lambda: creation_time(many)}, options.runs
    )
    return [
        Figure(
            benchmark="memory",
            subject=f"{operation} with {most:,} tasks kept / with {FEW:,}",
            value=compared.ratio("many", "few"),
            unit="x",
            at_most=GROWTH_TARGET,
            detail=f"{compared.median('many'):.1f} µs / {compared.median('few'):.1f} µs",
        )
        for operation, compared in (("get", gets), ("create", creates))
    ]


def creation_time(embedded: Embedded) -> float:
    """Return the microseconds that one creation takes, over as many as leave few tasks still few."""
    body = call_body()
    start = time.perf_counter()
    for _ in range(FEW):
        embedded.answer(body)
    return (time.perf_counter() - start) / FEW * 1e6


def filled(tasks: int) -> Embedded:
    """Return a core that keeps this many tasks."""
    embedded = Embedded()
    embedded.fill(tasks)
    return embedded


def polls(embedded: Embedded, kept: int) -> cycle[bytes]:
    """Fill a core with ``kept`` tasks; return endless polls of as many of them as there are connections."""
    polled = random.Random(1).sample(embedded.fill(kept), CONNECTIONS)
    return cycle([get_body(task_id) for task_id in polled])


if __name__ == "__main__":
    main(measure, __doc__, seconds=0.5, runs=9)
