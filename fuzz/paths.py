"""Where everything is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["CAMPAIGNS", "DICTIONARY", "PROJECT", "WORK", "seeds", "shown"]

PROJECT: Final = Path(__file__).parent.parent
CAMPAIGNS: Final = PROJECT / "fuzz" / "campaigns"
DICTIONARY: Final = PROJECT / "fuzz" / "words.dict"
WORK: Final = PROJECT / ".fuzz"
"""What campaigns leave behind: what they found, and the inputs that reach new places. Not committed."""


def seeds(target: str) -> list[Path]:
    """Return the seeds of a target, among them every finding that was fixed."""
    return sorted((PROJECT / "fuzz" / "corpus" / target).iterdir())


def shown(path: Path) -> str:
    """Return a path as one would type it."""
    return str(path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path)
