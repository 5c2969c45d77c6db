"""The garbage collector, in a process that does nothing but serve."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["relax_collector"]

YOUNG_OBJECTS: Final = 10_000
"""So many new objects before a collection. Requests under way hold a few dozen each: with the usual 700, a
handful of clients at once is a collection that finds nothing but live objects."""


def relax_collector() -> None:
    """Let the collector run less often, and never again over what the program itself consists of.

    For the process of a server, once everything is imported. What requests leave behind goes by its reference
    count; cycles are rare, and still found.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
