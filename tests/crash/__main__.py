"""``python -m tests.crash``: the long run, on any store that ``mcp-tasks serve`` takes."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.crash.run import NotStartedError, Plan, run


def shown(store: str) -> str:
    """Return a store as it may be shown: a DSN may hold a password."""
    kind, _, _ = store.partition(":")
    return store if kind in ("sqlite", "memory") else f"{kind}:…"


def main() -> int:
    """Return the exit code: 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=main.__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill (default: %(default)s)")
    parser.add_argument("--store", help="as for mcp-tasks serve (default: a temporary SQLite file)")
    parser.add_argument("--seed", type=int, default=random.getrandbits(32), help="default: a new one")
    parser.add_argument("--servers", type=int, default=1, help="how many at a time (default: %(default)s)")
    parser.add_argument("--loop", choices=["trio", "asyncio"], help="default: now this one, now that")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcp-tasks-crash-") as folder:
        plan = Plan(
            store=chosen.store or f"sqlite:{folder}/tasks.db",
            kills=chosen.kills,
            seed=chosen.seed,
            servers=chosen.servers,
            loops=[chosen.loop] if chosen.loop else ["trio", "asyncio"],
            folder=Path(folder),
        )
        where = shown(chosen.store) if chosen.store else "a temporary SQLite file"
        print(f"{plan.kills} kills on {where}, seed {plan.seed}", flush=True)
        started = monotonic()
        try:
            verdict = run(plan, lambda news: print(f"  {news}", flush=True))
        except NotStartedError as error:
            sys.exit(str(error))
    for name, number in sorted(verdict.counts.items()):
        print(f"{number:>8}  {name}")
    for fault in verdict.faults:
        print(f"BROKEN: {fault}")
    if verdict.faults:
        with tempfile.NamedTemporaryFile("w", prefix="mcp-tasks-crash-", suffix=".txt", delete=False) as file:
            file.writelines(f"{event}\n" for event in [*verdict.history, *verdict.notes])
        print(f"what happened is in {file.name}")
    print(f"{len(verdict.faults)} promises broken, {monotonic() - started:.0f} s")
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
