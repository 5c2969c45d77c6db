"""Bytes as a script: what a fuzzer says, step by step, to a world that checks itself.

Each step is two bytes. The first, a letter, names an operation of the world; the second says how it is done.
Any two bytes are a step, so that no change of the fuzzer's is lost, and seeds are words that one can read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from attrs import define

__all__ = ["Choices", "Operation", "perform"]

MOST_STEPS: Final = 80

W = TypeVar("W")
T = TypeVar("T")


@define
class Choices:
    """One byte, from which choices are drawn until it is used up; then it is always the first one."""

    left: int

    def of(self, options: Sequence[T]) -> T:
        """Choose one."""
        self.left, at = divmod(self.left, len(options))
        return options[at]


Operation = Callable[[W, Choices], object]
"""Does something to a world, if that makes sense at the moment."""


def perform(world: W, operations: Mapping[str, Operation[W]], data: bytes) -> None:
    """Do what the bytes say. A letter is that of an operation; other bytes stand for one of them each."""
    letters = list(operations)
    for at in range(0, min(len(data), 2 * MOST_STEPS) - 1, 2):
        letter = chr(data[at])
        operation = operations[letter if letter in operations else letters[data[at] % len(letters)]]
        operation(world, Choices(data[at + 1] - ord("0") if data[at + 1] >= ord("0") else data[at + 1]))
