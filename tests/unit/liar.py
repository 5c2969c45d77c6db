"""An engine that breaks its promises, for a host to notice."""

from __future__ import annotations

from typing import Any

__all__ = ["Liar"]


class Liar:
    """An engine of any role that says what it was told to, one step for each input."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)

    def handle(self, fact: Any, *, now: int) -> Any:
        """Return the next step."""
        return self.steps.pop(0)
