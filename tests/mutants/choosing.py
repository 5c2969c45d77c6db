"""Which tests look for a mutant, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

__all__ = ["Chooser", "Reach", "function_of", "module_of"]

OF_FUNCTION: Final = 8
OF_MODULE: Final = 32
"""How many tests come first because they have found mutants of the same function, or of the same module."""


@frozen
class Reach:
    """What is known of the tests without a mutant."""

    tests: Mapping[str, Sequence[str]]
    """By function, as mutmut writes it: the tests that reach it."""
    seconds: Mapping[str, float]
    """By test: what it costs of a CPU."""
    left_out: Sequence[str]
    """Tests that fail in the workspace without a mutant."""
    digest: str
    """Of all that this depends on."""


@define(eq=False)
class Chooser:
    """Chooses tests for one mutant after the other, and learns which of them find something."""

    reach: Reach
    seconds: float
    """How much of tests a mutant is given."""
    _found: dict[str, list[str]] = field(init=False, factory=dict)
    """By function, and by module: the tests that have found a mutant of it, the latest last."""

    def tests_for(self, mutant: str) -> list[str]:
        """Return tests for a mutant, the likely ones first, of no more than its seconds but at least one."""
        function = function_of(mutant)
        reaching = self.reach.tests.get(function, ())
        likely = [
            *reversed(self._found.get(function, [])[-OF_FUNCTION:]),
            *reversed(self._found.get(module_of(mutant), [])[-OF_MODULE:]),
        ]
        there = set(reaching)
        quick = sorted(reaching, key=lambda test: self.reach.seconds[test])
        chosen: list[str] = []
        left = self.seconds
        for test in dict.fromkeys([*(test for test in likely if test in there), *quick]):
            left -= self.reach.seconds[test]
            if left < 0 and chosen:
                break
            chosen.append(test)
        return chosen

    def note(self, mutant: str, test: str) -> None:
        """Note that a test has found a mutant."""
        for place in (function_of(mutant), module_of(mutant)):
            found = self._found.setdefault(place, [])
            if test in found:
                found.remove(test)
            found.append(test)


def function_of(mutant: str) -> str:
    """Return the function of a mutant, with its module."""
    return mutant.replace("__init__.", "").rpartition("__mutmut_")[0]


def module_of(mutant: str) -> str:
    """Return the module of a mutant."""
    return function_of(mutant).rpartition(".")[0]
