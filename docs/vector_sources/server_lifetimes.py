"""TTL: how long a task can be read, and what happens at a bound."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, tasks_spec
from docs.vector_sources.speaking import (
    ACCEPT,
    DONE,
    asks,
    call,
    created,
    error,
    final,
    form,
    get,
    handler,
    host,
    made,
    seen,
    server,
    starts,
    step,
    stops,
    unknown,
    update,
    wait,
    worker,
    works,
)

TASK: Final = tasks_spec("tasks-1")


def lifetimes() -> list[Vector]:
    """Return those of TTL."""
    short: dict[str, Any] = {"becomes": {"ttl_ms": 500}}
    return [
        server(
            "readable-to-the-end",
            "readable to the last moment, unknown from then on; the work is told to stop",
            made(**short),
            step(get("2"), seen("2"), at=499),
            step(get("3"), stops(reason="expired"), unknown("3"), at=500),
            step(worker("complete", result=DONE), at=600),
            step(get("4"), unknown("4")),
            rules="TTL.1",
            source=TASK,
        ),
        server(
            "parked",
            "trap 6: a task that waits for input is told to stop; nothing stays parked",
            made(**short),
            step(asks(confirm=form())),
            step(wait(), stops(reason="expired"), at=500),
            step(update("2", {"confirm": ACCEPT}), unknown("2")),
            step(get("3"), unknown("3")),
            rules="TTL.1",
            source=TASK,
        ),
        server(
            "ended",
            "a task that has ended stays readable for its time",
            made(**short),
            step(worker("complete", result=DONE), at=100),
            step(get("2"), seen("2", "completed", result=final()), at=499),
            step(get("3"), unknown("3"), at=500),
            rules="TTL.3 TTL.1",
            source=TASK,
        ),
        server(
            "unlimited",
            "null: for ever",
            made(becomes={"ttl_ms": None}),
            step(worker("complete", result=DONE)),
            step(get("2"), seen("2", "completed", result=final(), ttlMs=None), at=10**12),
            rules="TTL.1",
            source=TASK,
        ),
        server(
            "trap-15-huge",
            "trap 15: 25 days and more do not overflow",
            step(call("1"), starts("1")),
            step(
                handler("1", "become_task", ttl_ms=2_160_000_000), created("1", ttlMs=2_160_000_000), works()
            ),
            step(get("2"), seen("2", ttlMs=2_160_000_000), at=2_159_999_999),
            step(get("3"), stops(reason="expired"), unknown("3"), at=2_160_000_000),
            rules="TTL.1 LIFE.5",
            source=TASK,
        ),
        server(
            "ceiling",
            "no lifetime is longer than the server's longest",
            step(call("1"), starts("1")),
            step(handler("1", "become_task", ttl_ms=90_000), created("1", ttlMs=60_000), works()),
            step(call("2"), starts("2")),
            step(handler("2", "become_task", ttl_ms=None), created("2", "$other", ttlMs=60_000), works("2")),
            rules="TTL.3",
            source=decided("TTL.3"),
            limits={"ttl_ceiling_ms": 60_000},
        ),
        server(
            "shortened",
            "the host may shorten a lifetime, and it is seen",
            made(),
            step(host("set_ttl", of="1", ttl_ms=1000), at=100),
            step(get("2"), seen("2", ttlMs=1000, lastUpdatedAt={"$time": 100}), at=999),
            step(get("3"), stops(reason="expired"), unknown("3"), at=1000),
            rules="TTL.3",
            source=TASK,
        ),
        server(
            "extended",
            "or extend it, also of a task that has ended",
            made(**short),
            step(worker("complete", result=DONE), at=100),
            step(host("set_ttl", of="1", ttl_ms=5000), at=200),
            step(get("2"), seen("2", "completed", result=final(), ttlMs=5000), at=4999),
            step(get("3"), unknown("3"), at=5000),
            rules="TTL.3",
            source=TASK,
        ),
        server(
            "too-late-to-extend",
            "what is past its time is gone",
            made(**short),
            step(wait(), stops(reason="expired"), at=500),
            step(host("set_ttl", of="1", ttl_ms=5000), at=501),
            step(get("2"), unknown("2")),
            rules="TTL.3 TTL.1",
            source=TASK,
        ),
        *(
            server(
                f"cap-{limit}",
                f"at the bound {limit} creation fails and names it; no work starts, and what is there stays",
                made(principal="ada", arguments=arguments),
                step(call("2", principal="ada", arguments=arguments), starts("2")),
                step(handler("2", "become_task"), error("2", -32603, 200, data={"reason": limit})),
                step(get("3", principal="ada"), seen("3")),
                rules="TTL.2 LIM.3",
                source=decided("TTL.2"),
                limits={limit: most},
            )
            for limit, most, arguments in (
                ("tasks", 1, {}),
                ("tasks_per_principal", 1, {}),
                ("task_bytes", 1500, {"text": "x" * 1000}),
            )
        ),
        server(
            "cap-of-one-principal",
            "the bound of one principal is nobody else's",
            made(principal="ada"),
            made("2", "$other", principal="bob"),
            rules="TTL.2 LIM.3",
            source=decided("TTL.2"),
            limits={"tasks_per_principal": 1},
        ),
        server(
            "room-after-expiry",
            "there is room again once something has expired",
            made(**short),
            step(call("2"), starts("2"), at=499),
            step(handler("2", "become_task"), error("2", -32603, 200, data={"reason": "tasks"})),
            step(wait(), stops(reason="expired"), at=500),
            made("3", "$other", at=600),
            rules="TTL.2",
            source=decided("TTL.2"),
            limits={"tasks": 1},
        ),
    ]
