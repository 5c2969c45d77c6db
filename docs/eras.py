"""The page about both eras, with the table of who gets what as a run of all of them gave it."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Final

from tests.adapters.era_matrix import CLIENTS, LOOPS, SERVERS, TRANSPORTS, Cell, cell

__all__ = ["eras"]

ERAS: Final = {"modern": "2026-07-28", "legacy": "2025-11-25", "dual": "both"}
SERVED: Final = {"refuse": "2026-07-28 (`refuse`)", "ignore": "both (`ignore`)", "serve": "both (`serve`)"}
WAYS: Final = tuple(product(TRANSPORTS, LOOPS))

PAGE: Final = """# Both eras

Two revisions of the protocol are in use. In 2026-07-28, *modern* here, every request says what it is, and
tasks are an extension: the server decides that a call becomes one. In 2025-11-25, *legacy*, `initialize`
opens a session, and tasks are part of the protocol: the client decides, and the server says for each tool
whether it may. What came before is not spoken.

- **A server** is of both eras unless it says otherwise: `Server(legacy=…)`, `mcp-tasks serve --legacy …`.
  `ignore`, the default, serves clients of 2025-11-25 without tasks; `serve` gives them tasks as well;
  `refuse` tells them what is spoken here. What a client gets depends on how it begins: with `initialize`,
  or with the metadata of 2026-07-28. Both kinds may come at once, to the same port:
  [Serving tools](serving.md#clients-of-2025-11-25).
- **A client** finds out by itself: it begins with a modern request, and opens a session where that is
  answered as by a server that does not know it. `connect(era=…)` and `--era` force one:
  [Calling tools](client.md#servers-of-2025-11-25). So our client speaks 2026-07-28 with every server of ours.
- **A task** is one record, whoever made it, and both eras can read and cancel it.

The same fact has two names, and both are right:

| | 2026-07-28 | 2025-11-25 |
|---|---|---|
| a tool's own error (`isError`) | the task is `completed` | it is `failed`, with that in `tasks/result` |
| the result of a task | in `tasks/get` | in `tasks/result`, which waits for the end |
| its questions | in `tasks/get`; `tasks/update` answers | requests on the stream of `tasks/result` |
| `tasks/cancel` | acknowledged; `cancelled` once the work has stopped | `cancelled` at once |
| `tasks/cancel` after the end | acknowledged | refused, -32602 |
| `tasks/list` | there is none | where callers have names |

## Who gets what

This table is no promise but what happened when `make docs` ran each client of ours with each server of
ours, on trio and on asyncio, over HTTP and on stdio. Three tools are called: one that never runs as a
task, one that may, and one that only runs as one. The first asks a question before it answers; tasks ask
theirs on the way.

| client speaks | server speaks | over | together they speak | never a task | may be a task | only a task |
|---|---|---|---|---|---|---|
"""
FAILURES: Final = """
What a person is shown where it says so:

"""


def eras() -> str:
    """Return the page. Runs every client with every server."""
    rows: list[str] = []
    notes: dict[str, int] = {}
    for client, server in product(CLIENTS, SERVERS):
        alike: dict[Cell, list[str]] = defaultdict(list)
        for transport, loop in WAYS:
            alike[cell(client, server, transport, loop)].append(f"{transport} on {loop}")
        for found, ways in alike.items():
            over = "HTTP, stdio" if len(ways) == len(WAYS) else ", ".join(ways)
            outcomes = " | ".join(_shown(outcome, notes) for outcome in found.outcomes)
            spoken = "nothing" if found.era is None else ERAS[found.era]
            rows.append(f"| {ERAS[client]} | {SERVED[server]} | {over} | {spoken} | {outcomes} |\n")
    sentences = [f"{number}. {sentence}\n" for sentence, number in notes.items()]
    return "".join([PAGE, *rows, FAILURES, *sentences])


def _shown(outcome: str, notes: dict[str, int]) -> str:
    """Return what stands in the table; sentences are below it."""
    if outcome in ("result", "task"):
        return outcome
    return f"error {notes.setdefault(outcome, len(notes) + 1)}"
