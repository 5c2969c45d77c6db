"""What a run found, as values: rule by rule, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.testing.kit.all_checks import NOT_CHECKED
from mcp_tasks_proto.testing.kit.checks import Answer, Finding, Strength, Verdict

__all__ = ["RuleFinding", "by_strength", "counted", "failures", "finding_to_json", "rule_to_json", "rules_of"]

SHOWN_CHARS: Final = 2_000
"""The most that is shown of one text of a server's."""
SHOWN_ITEMS: Final = 50
"""The most that is shown of one array or object."""
SHOWN_DEPTH: Final = 16


@frozen(kw_only=True)
class RuleFinding:
    """What is known of a rule of the contract."""

    rule: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    """Those of its checks."""
    reason: str = ""
    """Why nothing can be said, where that is so."""


def rules_of(findings: Sequence[Finding]) -> list[RuleFinding]:
    """Return what the checks say of each rule, in the order of the rules.

    A rule fails with any of its checks, and passes where some pass and none fails.
    """
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        for rule in finding.check.rules:
            by_rule.setdefault(rule, []).append(finding)
    found = [_rule(rule, tuple(of_rule)) for rule, of_rule in by_rule.items()]
    found += [
        RuleFinding(rule=rule, verdict=Verdict.NOT_OBSERVABLE, reason=reason)
        for rule, reason in NOT_CHECKED.items()
    ]
    return sorted(found, key=lambda one: _place(one.rule))


def _rule(rule: str, findings: tuple[Finding, ...]) -> RuleFinding:
    verdicts = {finding.verdict for finding in findings}
    for verdict in (Verdict.FAIL, Verdict.PASS):
        if verdict in verdicts:
            return RuleFinding(rule=rule, verdict=verdict, findings=findings)
    reasons = dict.fromkeys(finding.reason for finding in findings)
    return RuleFinding(
        rule=rule, verdict=Verdict.NOT_OBSERVABLE, findings=findings, reason="; ".join(reasons)
    )


SECTIONS: Final = (
    "WIRE",
    "NEG",
    "LIFE",
    "GET",
    "UPD",
    "CAN",
    "INP",
    "TTL",
    "SUB",
    "HTTP",
    "STD",
    "LEG",
    "SEC",
    "LIM",
)


def _place(rule: str) -> tuple[int, int]:
    section, _, number = rule.partition(".")
    return SECTIONS.index(section), int(number)


def failures(findings: Sequence[Finding]) -> list[Finding]:
    """Return the checks that failed, those that the specification demands first."""
    order = list(Strength)
    failed = [one for one in findings if one.verdict is Verdict.FAIL]
    return sorted(failed, key=lambda one: order.index(one.check.strength))


def counted(rules: Sequence[RuleFinding]) -> dict[Verdict, int]:
    """Return how many rules have each verdict."""
    return {verdict: sum(rule.verdict is verdict for rule in rules) for verdict in Verdict}


def by_strength(findings: Sequence[Finding]) -> dict[Strength, int]:
    """Return how many checks of each strength failed."""
    failed = failures(findings)
    return {strength: sum(one.check.strength is strength for one in failed) for strength in Strength}


# -- as JSON -------------------------------------------------------------------------------------------------


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """Return what became of a check as a JSON object."""
    check = finding.check
    shown: dict[str, Any] = {
        "type": "check",
        "check": check.name,
        "rules": list(check.rules),
        "verdict": finding.verdict.value,
        "strength": check.strength.value,
        "asks": check.asks,
        "source": check.source,
    }
    if finding.reason:
        shown["reason"] = _short(finding.reason)
    if finding.answers:
        shown["exchanges"] = [_exchange(answer) for answer in finding.answers]
    return shown


def rule_to_json(rule: RuleFinding) -> dict[str, Any]:
    """Return what is known of a rule as a JSON object."""
    shown: dict[str, Any] = {"type": "rule", "rule": rule.rule, "verdict": rule.verdict.value}
    if rule.reason:
        shown["reason"] = _short(rule.reason)
    if rule.findings:
        shown["checks"] = {finding.check.name: finding.verdict.value for finding in rule.findings}
    return shown


def _exchange(answer: Answer) -> dict[str, Any]:
    """Return what was sent and what came; what is long is cut."""
    post = answer.post
    body = post.body.decode("utf-8", "replace") if post.message is None else post.message
    sent: dict[str, Any] = {"message": _short(body)} if post.verb == "POST" else {}
    if answer.over_http:
        sent = {"verb": post.verb, "headers": [f"{name}: {value}" for name, value in post.headers], **sent}
    came: dict[str, Any] = {"messages": [_short(one) for one in answer.messages[-SHOWN_ITEMS:]]}
    if answer.status is not None:
        came["status"] = answer.status
        came["contentType"] = _short(answer.headers.get("content-type", ""))
    if answer.trouble is not None:
        came["trouble"] = _short(answer.trouble)
    return {"sent": sent, "came": came}


def _short(value: Any, depth: int = SHOWN_DEPTH) -> Any:
    """Return a JSON value without most of what makes it long."""
    match value:
        case str():
            return value if len(value) <= SHOWN_CHARS else f"{value[:SHOWN_CHARS]}…"
        case Mapping() | list() if depth == 0:
            return "…"
        case Mapping():
            pairs = list(value.items())[:SHOWN_ITEMS]
            return {_short(name): _short(one, depth - 1) for name, one in pairs}
        case list():
            return [_short(one, depth - 1) for one in value[:SHOWN_ITEMS]]
    return value
