"""Where everything is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["CAMPAIGNS", "DICTIONARY", "PROJECT", "SEEDS", "WORK", "seeds", "shown", "trouble_with"]

PROJECT: Final = Path(__file__).parent.parent
CAMPAIGNS: Final = PROJECT / "fuzz" / "campaigns"
DICTIONARY: Final = PROJECT / "fuzz" / "words.dict"
SEEDS: Final = PROJECT / "fuzz" / "corpus"
WORK: Final = PROJECT / ".fuzz"
"""What campaigns leave behind: what they found, and the inputs that reach new places. Not committed."""


def seeds(target: str) -> list[Path]:
    """Return the seeds of a target, among them every finding that was fixed."""
    folder = SEEDS / target
    return sorted(folder.iterdir()) if folder.exists() else []


def shown(path: Path) -> str:
    """Return a path as one would type it."""
    return str(path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path)


def trouble_with(error: OSError) -> str:
    """Return what the system says of a file, for a person."""
    said = error.strerror or str(error)
    return said if error.filename is None else f"{shown(Path(error.filename))}: {said}"
