"""What the core costs: a ``tasks/get`` from bytes to bytes, against bare ``json`` on the same two messages.

Ours is decoding, negotiation, engine and memory store, in one process on one core without a loop, as an
embedder has them. The other side is ``json.loads`` of the request and ``json.dumps`` of the reply.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.embedded import Embedded
from bench.harness import Figure, Options, alternate, main, pin_load
from bench.messages import COMPLETED, get_body

__all__ = ["measure"]

TARGET = 0.25
TASKS = 1000


def measure(options: Options) -> Sequence[Figure]:
    """Return the core's share of the speed of bare ``json``."""
    pin_load()
    embedded = Embedded()
    request = get_body(embedded.fill(TASKS)[TASKS // 2])
    reply = embedded.answer(request)
    if COMPLETED not in reply:
        raise RuntimeError(f"not the reply to be measured: {reply!r}")
    message = json.loads(reply)

    def bare() -> None:
        json.loads(request)
        json.dumps(message).encode()

    compared = alternate(
        {
            "core": lambda: rate(lambda: embedded.answer(request), options.seconds),
            "json": lambda: rate(bare, options.seconds),
        },
        options.runs,
    )
    core, bare_json = 1e6 / compared.median("core"), 1e6 / compared.median("json")
    return [
        Figure(
            benchmark="core",
            subject="tasks/get, bytes to bytes / bare json",
            value=compared.ratio("core", "json"),
            unit="x",
            at_least=TARGET,
            detail=f"{core:.1f} µs / {bare_json:.1f} µs",
        )
    ]


def rate(operation: Callable[[], object], seconds: float, batch: int = 100) -> float:
    """Return how often a second ``operation`` runs; the clock is read once for each batch."""
    for _ in range(batch):
        operation()
    done, start = 0, time.perf_counter()
    end = start + seconds
    while time.perf_counter() < end:
        for _ in range(batch):
            operation()
        done += batch
    return done / (time.perf_counter() - start)


if __name__ == "__main__":
    main(measure, __doc__, seconds=1.0)
