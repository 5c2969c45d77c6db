"""What the kit found, for people and for programs, and how far it has come."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mcp_tasks_adapters.cli.client.harmless import cut, one_line
from mcp_tasks_adapters.cli.kit.selection import Selection
from mcp_tasks_proto.testing.kit import (
    Finding,
    Kit,
    RuleFinding,
    Strength,
    Verdict,
    by_strength,
    counted,
    failures,
    finding_to_json,
    rule_to_json,
)

__all__ = ["JsonReport", "PeopleReport", "ProgressLine", "Report", "plural"]

STYLES: Final = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.NOT_OBSERVABLE: "dim"}

WORDS: Final = {
    Strength.MUST: "the specification demands it",
    Strength.SHOULD: "the specification recommends it",
    Strength.CHOICE: "the specification leaves it open, the contract decides",
}
"""How strongly something is asked for."""

SHOWN_CHARS: Final = 1_500
"""The most that is shown to a person of one message."""


class Report(Protocol):
    """Shows what was found."""

    def show(self, findings: Sequence[Finding], kit: Kit, *, interrupted: bool) -> None:
        """Show these findings of the kit's, and which tools served."""


class JsonReport:
    """One JSON object a line: each check, each rule, and a summary."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def show(self, findings: Sequence[Finding], kit: Kit, *, interrupted: bool) -> None:
        """Print it."""
        rules = self._selection.rules_of(findings)
        summary = {
            "type": "summary",
            "rules": {verdict.value: number for verdict, number in counted(rules).items()},
            "checks": {verdict.value: sum(one.verdict is verdict for one in findings) for verdict in Verdict},
            "failed": {strength.value: number for strength, number in by_strength(findings).items()},
            "accepted": [one.check.name for one in findings if self._accepts(one)],
            "requiredButNotPassed": self._selection.not_passed(rules),
            "tools": {role.value: cut(call.tool, SHOWN_CHARS) for role, call in kit.desk.calls.items()},
            "outOfTime": kit.out_of_time,
            "interrupted": interrupted,
        }
        lines = [*map(finding_to_json, findings), *map(rule_to_json, rules), summary]
        for line in lines:
            # Not a letter beyond ASCII: a server's words must neither steer a terminal nor end a line.
            click.echo(json.dumps(line))

    def _accepts(self, finding: Finding) -> bool:
        return finding.verdict is Verdict.FAIL and not self._selection.counts(finding)


class PeopleReport:
    """A table of the rules, and every failure with what was sent and what came."""

    def __init__(self, out: Console, selection: Selection) -> None:
        self._out = out
        self._selection = selection

    def show(self, findings: Sequence[Finding], kit: Kit, *, interrupted: bool) -> None:
        """Print it."""
        rules = self._selection.rules_of(findings)
        for role, call in kit.desk.calls.items():
            tool = (one_line(call.tool), "bold")
            self._out.print(Text.assemble(tool, (f"  {role.meaning}", "dim")), soft_wrap=True)
        self._out.print(_table(rules))
        for finding in failures(findings):
            self._failure(finding)
        self._say(_summary(rules, interrupted=interrupted))
        if failures(findings):
            self._say(self._failed(findings))
        if kit.out_of_time:
            self._say(Text("The time was over before everything was examined (--time-limit)", "bold red"))
        for rule in self._selection.not_passed(rules):
            self._say(Text.assemble((f"{rule} was required, and has not passed", "bold red")))

    def _failed(self, findings: Sequence[Finding]) -> str:
        """Say how many checks failed, and how strongly what they ask for is asked for."""
        numbers = by_strength(findings)
        parts = [f"{number} {strength.value}" for strength, number in numbers.items() if number]
        text = f"{plural(sum(numbers.values()), 'check')} failed: {', '.join(parts)}"
        accepted = sum(not self._selection.counts(one) for one in failures(findings))
        return f"{text}; {accepted} accepted" if accepted else text

    def _failure(self, finding: Finding) -> None:
        check, shown = finding.check, finding_to_json(finding)
        accepted = "" if self._selection.counts(finding) else "  (accepted)"
        rules = f"  {', '.join(check.rules)}{accepted}"
        self._say(Text.assemble(("✗ ", "bold red"), (check.name, "bold"), rules))
        for name, text in (
            ("asked for", f"{check.asks} ({WORDS[check.strength]})"),
            ("source", check.source),
            ("but", finding.reason),
        ):
            self._say(Text.assemble((f"  {name}: ", "dim"), one_line(text)))
        for exchange in shown.get("exchanges", ()):
            self._exchange(exchange)
        self._out.print()

    def _exchange(self, exchange: Mapping[str, Any]) -> None:
        sent, came = exchange["sent"], exchange["came"]
        for head in (sent["verb"], *sent["headers"]) if "verb" in sent else ():
            self._say(Text(f"    → {one_line(head)}", "dim"))
        if "message" in sent:
            self._say(Text.assemble(("    → ", "dim"), _brief(sent["message"])))
        if "status" in came:
            head = f"HTTP {came['status']} {came['contentType']}"
            self._say(Text(f"    ← {one_line(head)}", "dim"))
        for message in came["messages"]:
            self._say(Text.assemble(("    ← ", "dim"), _brief(message)))
        if "trouble" in came:
            self._say(Text.assemble(("    ← ", "dim"), one_line(came["trouble"])))

    def _say(self, line: Text | str) -> None:
        self._out.print(line, soft_wrap=True)


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, SHOWN_CHARS)


def _table(rules: Sequence[RuleFinding]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("rule", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for rule in rules:
        verdict = Text(rule.verdict.value, STYLES[rule.verdict])
        table.add_row(rule.rule, verdict, Text(one_line(_detail(rule)), "dim"))
    return table


def _detail(rule: RuleFinding) -> str:
    if rule.verdict is Verdict.FAIL:
        failed = [one for one in rule.findings if one.verdict is Verdict.FAIL]
        return "; ".join(f"{one.check.name} ({one.check.strength.value})" for one in failed)
    if rule.verdict is Verdict.NOT_OBSERVABLE:
        return rule.reason
    passed = sum(one.verdict is Verdict.PASS for one in rule.findings)
    unseen = len(rule.findings) - passed
    return plural(passed, "check") + (f", {unseen} not observable" if unseen else "")


def _summary(rules: Sequence[RuleFinding], *, interrupted: bool) -> Text:
    numbers = counted(rules)
    parts = [(f"{numbers[verdict]} {verdict.value}", STYLES[verdict]) for verdict in Verdict]
    text = Text(", ").join(Text(words, style) for words, style in parts)
    return Text.assemble(f"{plural(len(rules), 'rule')}: ", text, "; interrupted" if interrupted else "")


def plural(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class ProgressLine:
    """A line that says what goes on, where stderr is a terminal; nothing elsewhere."""

    def __init__(self, err: Console, selection: Selection) -> None:
        self._selection = selection
        moves = sys.stderr.isatty() and not err.is_dumb_terminal
        self._live = Live(console=err, transient=True, refresh_per_second=8) if moves else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, kit: Kit) -> None:
        """Show how far a run has come."""
        if self._live is not None:
            done = len(kit.findings)
            failed = sum(map(self._selection.counts, self._selection.reported(kit.findings)))
            self._live.update(
                Text.assemble(
                    (f"{done}/{len(kit.checks)} ", "bold"),
                    (f"{failed} failed  " if failed else "", "red"),
                    (kit.doing, "dim"),
                )
            )
