"""Writes ``docs/vectors/*.json`` from what is in ``docs/vector_sources``; a test fails when they are stale.

Nothing is run here: what a vector expects stands in its source, and a test holds the engines to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from docs.vector_sources import his, http_endpoint, http_values, inp, leg, life, neg, prx, req, server_rest, server_tasks, stories, wire
from docs.vector_sources.making import Vector

FOLDER: Final = Path(__file__).parent / "vectors"
FORMAT: Final = "mcp-tasks-vectors/1"

Source = Callable[[], list[Vector]]

FILES: Final[Mapping[str, tuple[str, Sequence[Source]]]] = {
    "wire": ("Messages", [wire.vectors, server_rest.messages, stories.vectors("WIRE")]),
    "neg": ("Capability negotiation", [neg.vectors, server_rest.negotiation, stories.vectors("NEG")]),
    "life": ("The life of a task", [life.vectors, server_tasks.life, stories.vectors("LIFE")]),
    "get-upd-can": ("Get, update, cancel", [inp.answers, server_tasks.vectors, server_rest.store_trouble, stories.vectors("GET UPD CAN")]),
    "inp": ("Input requests", [inp.vectors, server_rest.inputs, stories.vectors("INP")]),
    "ttl": ("Lifetime", [life.expiry, server_rest.lifetimes, stories.vectors("TTL")]),
    "sub": ("Listening", [server_rest.listening, stories.vectors("SUB")]),
    "std": ("stdio", [wire.stdio]),
    "http": ("Streamable HTTP", [http_endpoint.vectors, http_values.vectors, server_rest.http, stories.vectors("HTTP")]),
    "req": ("The requester", [req.vectors]),
    "leg": ("The legacy era, 2025-11-25", [leg.vectors]),
    "prx": ("The proxy", [prx.vectors, stories.vectors("PRX")]),
    "sec-lim": ("Security and bounds", [server_rest.security, stories.vectors("SEC LIM")]),
    "his": ("The ledger of a proxy", [his.vectors]),
}
"""Each file's title, and where its vectors come from. A vector is in the file of its first rule."""


def document(title: str, sources: Sequence[Source]) -> dict[str, Any]:
    """Return a file as JSON."""
    return {"format": FORMAT, "title": title, "vectors": [one for source in sources for one in source()]}


def text(document: Mapping[str, Any]) -> str:
    """Return a file as it is written: readable, and the same each time."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def files() -> dict[str, str]:
    """Return the text of every file, by its name."""
    return {f"{name}.json": text(document(title, sources)) for name, (title, sources) in FILES.items()}


def main() -> None:
    for name, written in files().items():
        (FOLDER / name).write_text(written, encoding="utf-8")
        print(f"docs/vectors/{name}")


if __name__ == "__main__":
    main()
