"""What became of mutants, as mutmut keeps it: an exit code for each, in a file beside each module."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Final

from attrs import define, field

from tests.mutants.workspace import MUTANTS

__all__ = ["KILLED", "SURVIVED", "UNREACHED", "Verdicts"]

SURVIVED: Final = 0
KILLED: Final = 1
UNREACHED: Final = 33

SAVE_SECONDS: Final = 15.0
"""How long it may be until a verdict is written."""


@define(eq=False)
class Verdicts:
    """The verdicts on all mutants that there are."""

    codes: dict[str, int | None]
    _files: dict[str, Path]
    """By module: where they are kept; not for those that have no mutants."""
    _saved: float = field(init=False, factory=monotonic)

    @classmethod
    def read(cls, modules: Iterable[Path]) -> Verdicts:
        """Return the verdicts so far, of all mutants that there are."""
        codes: dict[str, int | None] = {}
        files = {}
        for path in modules:
            file = MUTANTS / f"{path}.meta"
            if file.exists():
                kept = json.loads(file.read_text())["exit_code_by_key"]
                codes |= kept
                files[str(path)] = file
        return cls(codes, files)

    def note(self, name: str, code: int) -> None:
        """Note a verdict, and save them now and then."""
        self.codes[name] = code
        if monotonic() - self._saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write them to where mutmut has them."""
        self._saved = monotonic()
        for file in self._files.values():
            kept = json.loads(file.read_text())
            codes = kept["exit_code_by_key"]
            kept["exit_code_by_key"] = {name: self.codes[name] for name in codes}
            if kept["exit_code_by_key"] != codes:
                file.with_suffix(".new").write_text(json.dumps(kept))
                file.with_suffix(".new").replace(file)

    def summary(self) -> str:
        """Return how far this has come."""
        run = [code for code in self.codes.values() if code is not None]
        missed = sum(code in (SURVIVED, UNREACHED) for code in run)
        return f"{len(run)} of {len(self.codes)} mutants, {missed} not found"
