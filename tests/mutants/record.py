"""What became of each mutant, and the record of it: one text file a module, for people to read.

Verdicts are read from what mutmut keeps beside the mutated module: an exit code for each mutant, and the
lines at which each of them stands.
"""

from __future__ import annotations

import ast
import difflib
import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from signal import SIGKILL, SIGPROF, SIGXCPU
from typing import Final, TypeGuard

from attrs import frozen

from tests.mutants import verdicts

__all__ = ["Mutant", "Record", "excluded", "mutants", "parsed", "reasons", "rendered"]

KILLED: Final = "killed"
SURVIVED: Final = "survived"
TIMED_OUT: Final = "timed out"
UNREACHED: Final = "unreached"
PENDING: Final = "not run"
EXCLUDED: Final = "excluded"

NOT_JUSTIFIED: Final = "not yet justified"

_VERDICTS: Final[Mapping[int | None, str]] = {
    None: PENDING,
    verdicts.SURVIVED: SURVIVED,
    verdicts.UNREACHED: UNREACHED,
}
_TIME_LIMIT: Final = {-SIGPROF, -SIGXCPU, -SIGKILL}
"""Exit codes where a test, or all together, took too long. Others are a failed test, or a crash."""


def _verdict(exit_code: int | None) -> str:
    return TIMED_OUT if exit_code in _TIME_LIMIT else _VERDICTS.get(exit_code, KILLED)


@frozen(kw_only=True)
class Mutant:
    """One change to one function."""

    function: str
    before: str
    after: str
    verdict: str

    @property
    def change(self) -> tuple[str, ...]:
        """The lines that differ, marked with ``-`` and ``+``."""
        compared = difflib.ndiff(self.before.splitlines(), self.after.splitlines())
        lines = [line for line in compared if line[:2] in ("- ", "+ ")]
        indent = min((len(line) - 2 - len(line[2:].lstrip()) for line in lines), default=0)
        return tuple(line[:2] + line[2 + indent :].rstrip() for line in lines)

    @property
    def key(self) -> str:
        """What a justification hangs on: it stays with the change, whatever number mutmut gives it."""
        return "\n".join((self.function, *self.change))


@frozen(kw_only=True)
class Record:
    """What was found out about one module."""

    module: str
    commit: str
    tests: str
    counts: Mapping[str, int]
    survivors: tuple[tuple[str, str], ...]
    """Function and change as in :attr:`Mutant.key`, and why nothing can tell it from the original."""

    @property
    def judged(self) -> int:
        """How many mutants count: those that are not excluded."""
        return sum(number for verdict, number in self.counts.items() if verdict != EXCLUDED)

    @property
    def percent_killed(self) -> float:
        """Found by a test, or by the time limit, of those that count."""
        found = self.counts.get(KILLED, 0) + self.counts.get(TIMED_OUT, 0)
        return 100.0 * found / self.judged if self.judged else 100.0

    @property
    def complete(self) -> bool:
        """Whether every mutant has run."""
        return not self.counts.get(PENDING)

    @property
    def justified(self) -> bool:
        """Whether every mutant has run, and it is said of each survivor why it cannot be found."""
        return self.complete and all(because != NOT_JUSTIFIED for _, because in self.survivors)


# -- what does not count -------------------------------------------------------------------------------------


def excluded(before: str, after: str) -> bool:
    """Whether a change is one that no test should find.

    That is a change to nothing but *prose* - a text with a space in it, which is for people, as what an error
    says is - or to the type that ``typing.cast`` is told, which does nothing.
    """
    changes = list(_changes(_parsed(before), _parsed(after)))
    return bool(changes) and all(changes)


def _parsed(function: str) -> ast.AST:
    return ast.parse(textwrap.dedent(function)).body[0]


def _changes(before: object, after: object, cast: bool = False) -> Iterator[bool]:
    """For each place at which two trees differ, yield whether it is one that does not count."""
    if isinstance(before, ast.AST) and (cast or _prose(before)):
        if not isinstance(after, ast.AST) or ast.dump(before) != ast.dump(after):
            yield True
    elif _is_cast(before) and _is_cast(after):
        yield from _changes(before.args[0], after.args[0], cast=True)
        yield from _changes(before.args[1], after.args[1])
    elif isinstance(before, ast.AST) and type(before) is type(after):
        for name in before._fields:
            yield from _changes(getattr(before, name), getattr(after, name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _changes(one, other)
    elif before != after:
        yield False


def _is_cast(node: object) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "cast" and len(node.args) == 2


def _prose(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        return any(_prose(part) for part in node.values)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


# -- reading mutmut's files ----------------------------------------------------------------------------------


def mutants(mutated: Path) -> list[Mutant]:
    """Return the mutants of one module, in order; ``mutated`` is mutmut's copy of it.

    There are none where the last run was of other modules: then the copy is as the module is.
    """
    meta, spans = mutated.with_suffix(".py.meta"), mutated.with_suffix(".py.spans")
    lines = mutated.read_text().splitlines() if mutated.exists() else []
    if not (meta.exists() and any("__mutmut_orig" in line for line in lines)):
        return []
    exit_codes = json.loads(meta.read_text())["exit_code_by_key"]
    where = json.loads(spans.read_text())["spans"]

    def text(name: str) -> str:
        first, last = where[name]
        return textwrap.dedent("\n".join(lines[first - 1 : last])).strip().replace(name, "function")

    found = []
    for key, code in exit_codes.items():
        name = key.rpartition(".")[2]
        function = name.rpartition("__mutmut_")[0]
        before, after = text(f"{function}__mutmut_orig"), text(name)
        verdict = EXCLUDED if excluded(before, after) else _verdict(code)
        found.append(Mutant(function=_readable(function), before=before, after=after, verdict=verdict))
    return found


def _readable(mangled: str) -> str:
    """Return a function's name as it is written: mutmut has ``x_name`` and ``xǁClassǁname``."""
    return mangled.removeprefix("x").strip("ǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled[2:]


def again(mutated: Path) -> None:
    """Have all mutants run once more that no test has found: there may be other tests now."""
    meta = mutated.with_suffix(".py.meta")
    if meta.exists():
        kept = json.loads(meta.read_text())
        codes = kept["exit_code_by_key"]
        kept["exit_code_by_key"] = {
            key: code if _verdict(code) == KILLED else None for key, code in codes.items()
        }
        meta.write_text(json.dumps(kept))


# -- the record ----------------------------------------------------------------------------------------------

_ORDER: Final = (KILLED, TIMED_OUT, SURVIVED, UNREACHED, PENDING, EXCLUDED)


def recorded(module: str, commit: str, tests: str, found: list[Mutant], because: Mapping[str, str]) -> Record:
    """Return the record of one module, with the reasons that an earlier one gave."""
    left = [mutant.key for mutant in found if mutant.verdict in (SURVIVED, UNREACHED)]
    return Record(
        module=module,
        commit=commit,
        tests=tests,
        counts=Counter(mutant.verdict for mutant in found),
        survivors=tuple((key, because.get(key, NOT_JUSTIFIED)) for key in left),
    )


def rendered(record: Record) -> str:
    """Return a record as text."""
    lines = [
        f"module     {record.module}",
        f"commit     {record.commit}",
        f"tests      {record.tests}",
        f"mutants    {sum(record.counts.values())}",
        *(f"{verdict:<11}{record.counts[verdict]}" for verdict in _ORDER if record.counts.get(verdict)),
        f"found      {record.percent_killed:.1f} % of {record.judged}",
    ]
    for key, because in record.survivors:
        function, *change = key.splitlines()
        lines += ["", function, *(f"    {line}" for line in change)]
        lines += textwrap.wrap(f"because: {because}", 110, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def parsed(text: str) -> Record:
    """Return the record that :func:`rendered` wrote. Raises :class:`ValueError` if it is none."""
    head, *survivors = text.rstrip("\n").split("\n\n")
    members = {line[:11].strip(): line[11:] for line in head.splitlines()}
    missing = {"module", "commit", "tests", "mutants", "found"} - members.keys()
    if missing:
        raise ValueError(f"a record without {', '.join(sorted(missing))}")
    entries = []
    for entry in survivors:
        change, _, because = entry.partition("\n  because: ")
        lines = change.splitlines()
        key = "\n".join((lines[0], *(line.removeprefix("    ") for line in lines[1:])))
        entries.append((key, " ".join(because.split())))
    return Record(
        module=members["module"],
        commit=members["commit"],
        tests=members["tests"],
        counts={verdict: int(members[verdict]) for verdict in _ORDER if verdict in members},
        survivors=tuple(entries),
    )


def reasons(path: Path) -> dict[str, str]:
    """Return the justifications that the record at ``path`` gives; none if there is no such record."""
    return dict(parsed(path.read_text()).survivors) if path.exists() else {}
