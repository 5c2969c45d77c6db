"""Which checks count, and how: what ``--only``, ``--accept``, ``--require`` and ``--strength`` say."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from mcp_tasks_adapters.cli.client.arguments import InputError
from mcp_tasks_adapters.cli.kit.command import STRENGTHS
from mcp_tasks_proto.testing.kit import CHECKS, NOT_CHECKED, Check, Finding, RuleFinding, Verdict, rules_of

__all__ = ["Selection", "select"]

RULES = frozenset({rule for check in CHECKS for rule in check.rules} | NOT_CHECKED.keys())
SECTIONS = frozenset(rule.partition(".")[0] for rule in RULES)
NAMES = frozenset(check.name for check in CHECKS)


@frozen(kw_only=True)
class Selection:
    """What is examined, reported, and held against the server."""

    checks: tuple[Check, ...]
    """Those that are run."""
    rules: frozenset[str]
    """Those that are reported."""
    accepted: frozenset[str] = frozenset()
    """Checks that may fail."""
    required: tuple[str, ...] = ()
    """Rules that have to pass."""
    strengths: tuple[str, ...] = STRENGTHS

    def counts(self, finding: Finding) -> bool:
        """Whether a failure is held against the server."""
        return finding.verdict is Verdict.FAIL and finding.check.name not in self.accepted

    def reported(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings that are strong enough to be reported."""
        return [one for one in findings if one.check.strength.value in self.strengths]

    def rules_of(self, reported: Sequence[Finding]) -> list[RuleFinding]:
        """Return what is reported of each rule."""
        return [one for one in rules_of(reported) if one.rule in self.rules]

    def not_passed(self, rules: Sequence[RuleFinding]) -> list[str]:
        """Return the required rules that have not passed, whether or not they failed."""
        passed = {one.rule for one in rules if one.verdict is Verdict.PASS}
        return [rule for rule in self.required if rule not in passed]


def select(
    *, only: Sequence[str], accepted: Sequence[str], required: Sequence[str], strength: str
) -> Selection:
    """Return what was selected. Raises :class:`InputError` for a rule or a check that there is not."""
    _see_that_there_are("--only", only, RULES | SECTIONS | NAMES, "rule or check")
    _see_that_there_are("--accept", accepted, NAMES, "check")
    _see_that_there_are("--require", required, RULES, "rule")
    wanted = {rule for rule in RULES if not only or {rule, rule.partition(".")[0]} & set(only)}
    checks = [one for one in CHECKS if one.name in only or wanted & set(one.rules)]
    named = {rule for one in checks if one.name in only for rule in one.rules}
    return Selection(
        checks=tuple(checks),
        rules=frozenset(wanted | named),
        accepted=frozenset(accepted),
        required=tuple(required),
        strengths=STRENGTHS[: STRENGTHS.index(strength) + 1],
    )


def _see_that_there_are(option: str, named: Sequence[str], known: frozenset[str], what: str) -> None:
    for name in named:
        if name not in known:
            raise InputError(f"{option}: there is no {what} {name!r}; a report names all of them.")
