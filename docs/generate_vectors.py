"""Writes ``docs/vectors/*.json`` from what is in ``docs/vector_sources``; a test fails when they are stale.

No engine runs here: what a vector expects stands in its source, and a test holds the engines to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from docs.vector_sources import (
    his,
    http_endpoint,
    http_values,
    inp,
    leg,
    life,
    neg,
    proxy_calls,
    prx,
    receiving,
    req,
    server_bounds,
    server_input,
    server_lifetimes,
    server_listening,
    server_tasks,
    server_whole,
    stories,
    wire,
)
from docs.vector_sources.making import Vector

FOLDER: Final = Path(__file__).parent / "vectors"
FORMAT: Final = "mcp-tasks-vectors/1"
WIDTH: Final = 110

FILES: Final[Mapping[str, tuple[str, str]]] = {
    "wire": ("Messages", "WIRE"),
    "neg": ("Capability negotiation", "NEG"),
    "life": ("The life of a task", "LIFE"),
    "get-upd-can": ("Get, update, cancel", "GET UPD CAN"),
    "inp": ("Input requests", "INP"),
    "ttl": ("Lifetime", "TTL"),
    "sub": ("Listening", "SUB"),
    "http": ("Streamable HTTP", "HTTP"),
    "std": ("stdio", "STD"),
    "req": ("The requester", "REQ"),
    "leg": ("The legacy era, 2025-11-25", "LEG"),
    "prx": ("The proxy", "PRX"),
    "his": ("The ledger of a proxy", "HIS"),
    "sec-lim": ("Security and bounds", "SEC LIM"),
}
"""Each file's title, and the areas of rules that it is about: a vector is in the file of its first rule."""

SOURCES: Final[tuple[Callable[[], list[Vector]], ...]] = (
    wire.messages,
    wire.lines,
    neg.vectors,
    life.vectors,
    inp.vectors,
    http_endpoint.vectors,
    http_values.vectors,
    prx.vectors,
    his.vectors,
    server_whole.messages,
    server_whole.negotiation,
    server_whole.http,
    server_tasks.life,
    server_tasks.reads,
    server_tasks.updates,
    server_tasks.cancellations,
    server_input.inputs,
    server_lifetimes.lifetimes,
    server_listening.listening,
    server_bounds.security,
    req.vectors,
    leg.vectors,
    receiving.vectors,
    proxy_calls.vectors,
    stories.vectors,
)


def vectors() -> list[Vector]:
    """Return every vector."""
    return [one for source in SOURCES for one in source()]


def files() -> dict[str, str]:
    """Return the text of every file, by its name."""
    written = vectors()
    return {
        f"{name}.json": _text(title, [one for one in written if _area(one) in areas.split()])
        for name, (title, areas) in FILES.items()
    }


def _area(vector: Vector) -> str:
    first: str = vector["rules"][0]
    return first.partition(".")[0]


def _text(title: str, of_file: list[Vector]) -> str:
    """Return a file as it is written: readable, and the same each time."""
    return _written({"format": FORMAT, "title": title, "vectors": of_file}, 0) + "\n"


def _written(value: Any, indent: int) -> str:
    """Return JSON whose objects and arrays are on one line each where there is room for them."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(line) + indent <= WIDTH or not isinstance(value, (dict, list)):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        first, last = "{", "}"
        parts = [
            f"{json.dumps(name, ensure_ascii=False)}: {_written(member, indent + 2)}"
            for name, member in value.items()
        ]
    else:
        first, last = "[", "]"
        parts = [_written(item, indent + 2) for item in value]
    return f"{first}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * indent}{last}"


def main() -> None:
    for name, written in files().items():
        (FOLDER / name).write_text(written, encoding="utf-8")
        print(f"docs/vectors/{name}")


if __name__ == "__main__":
    main()
