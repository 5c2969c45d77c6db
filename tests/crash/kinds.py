"""The kinds of tasks there are, as the tools and those who check them know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = [
    "ASKING",
    "BRIEF_TTL_MS",
    "ERRING_TEXT",
    "FAILING_CODE",
    "FAILING_MESSAGE",
    "KINDS",
    "LIFETIME_MS",
    "MANY",
    "ROUNDS",
    "question",
]

KINDS: Final = ("plain", "asking", "resumable", "failing", "erring", "endless", "brief")
"""The tools, each of which makes tasks of one kind."""
ASKING: Final = frozenset({"asking", "resumable"})
"""Those that ask :data:`ROUNDS`, and return the answers."""

LIFETIME_MS: Final = 6 * 3_600_000
"""Of every task but the brief ones: longer than the longest run."""
BRIEF_TTL_MS: Final = 1_500
MANY: Final = 1_000_000
"""More tasks than any run makes."""

FAILING_CODE: Final = 7001
FAILING_MESSAGE: Final = "This kind fails"
ERRING_TEXT: Final = "This kind errs."

ROUNDS: Final[Sequence[Sequence[str]]] = (("left", "right"), ("left",), ("right", "left"))
"""What is asked, round by round: names come up again, keys must not (INP.1)."""


def question(number: int, name: str) -> str:
    """Return the text of a question, which no other question of its task has."""
    return f"round {number}: {name}?"
