"""The ways in which bytes may arrive: readers must not tell them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["ways_to_cut"]

LONGEST_PIECE: Final = 61
LONGEST_BY_BYTES: Final = 256
"""What is longer is not given byte by byte, which would take most of the time."""


def ways_to_cut(data: bytes) -> Iterator[list[bytes]]:
    """Yield the bytes as a whole, one by one, and in pieces whose lengths the bytes decide."""
    yield [data]
    if len(data) <= LONGEST_BY_BYTES:
        yield [data[at : at + 1] for at in range(len(data))]
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        length = 1 + data[at] % LONGEST_PIECE
        pieces.append(data[at : at + length])
        at += length
    yield pieces
