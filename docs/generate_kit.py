"""Writes the tables of docs/kit.md: all checks, and what real runs of the kit gave. Takes two minutes.

    FASTMCP_PYTHON=... python -m docs.generate_kit                   # both
    python -m docs.generate_kit --without-runs                       # the checks alone

``FASTMCP_PYTHON`` is an interpreter that has fastmcp 4.1.4, fastmcp-tasks 4.1.4 and uvicorn. A test fails
when the table of the checks is stale.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from docs.rules import SECTIONS
from mcp_tasks_proto.testing.kit import CHECKS, NOT_CHECKED, Strength
from tests.interop.servers import ROOT, serving

__all__ = ["PAGE", "checks", "with_part"]

PAGE: Final = Path(__file__).parent / "kit.md"
COMMAND: Final = (sys.executable, "-m", "mcp_tasks_adapters.cli")
SERVER: Final = "tests/adapters/kit_server.py:server"
SERVE: Final = (*COMMAND, "serve", SERVER, "--store", "memory:")
TOOLS: Final = ("--asking", "commission")
"""A tool that asks for two things at once; the others are found out."""
CALLERS: Final = ("--header", "x-user: ada", "--other-header", "x-user: bob")
LONGEST_S: Final = 600

WORDS: Final = {"pass": "pass", "fail": "**fail** ({})", "not observable": "-"}

MARKS: Final = "<!-- {name}: begin -->\n\n{text}\n<!-- {name}: end -->"
PART: Final = r"<!-- {name}: begin -->\n.*?<!-- {name}: end -->"


def with_part(page: str, name: str, text: str) -> str:
    """Return the page with another text between the marks of this name."""
    marked = MARKS.format(name=name, text=text)
    return re.sub(PART.format(name=name), lambda _: marked, page, count=1, flags=re.DOTALL)


def checks() -> str:
    """Return the part of the page that needs no run: all checks, and the rules without any."""
    rules = [rule for section in SECTIONS.values() for rule in section]
    order = list(Strength)
    sorted_checks = sorted(CHECKS, key=lambda one: (rules.index(one.rules[0]), order.index(one.strength)))
    lines = ["| rules | check | what it asks for | strength | source |", "|---|---|---|---|---|"]
    for check in sorted_checks:
        lines.append(row(", ".join(check.rules), check.name, check.asks, check.strength.value, check.source))
    lines += ["", "Not checked, though they are about servers:", ""]
    lines += [f"- {rule}: {reason}." for rule, reason in NOT_CHECKED.items()]
    return "\n".join([*lines, ""])


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


BAR: Final = "\\|"


# -- runs ----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Run:
    """What one run of the kit gave."""

    title: str
    lines: Sequence[Mapping[str, Any]]

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the objects of one type."""
        return [line for line in self.lines if line["type"] == kind]


def examined(title: str, *words: str) -> Run:
    """Run the command."""
    ran = subprocess.run(
        [*COMMAND, "kit", *words, *TOOLS, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=False,
        timeout=LONGEST_S,
        text=True,
    )
    if ran.returncode not in (0, 1):
        raise SystemExit(f"{title}: the kit ended with {ran.returncode}")
    run = Run(title=title, lines=[json.loads(line) for line in ran.stdout.splitlines()])
    print(title, run.of("summary")[0]["rules"], file=sys.stderr)
    return run


def runs() -> list[Run]:
    """Examine all servers."""
    fastmcp = (os.environ["FASTMCP_PYTHON"], "-m", "tests.interop.fastmcp_server")
    found: list[Run] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for loop in ("trio", "asyncio"):
            with serving([*SERVE, "--loop", loop], folder / "ours.log") as url:
                found.append(examined(f"ours, HTTP, {loop}", url, *CALLERS, "--loop", loop))
        with (
            serving(SERVE, folder / "ours.log") as url,
            serving([*COMMAND, "proxy", "--upstream", url], folder / "proxy.log") as proxy,
        ):
            found.append(examined("ours, behind our proxy", proxy))
        found.append(examined("ours, stdio", "--stdio", shlex.join([*SERVE, "--stdio"])))
        with serving([*fastmcp, "http"], folder / "fastmcp.log") as url:
            found.append(examined("fastmcp, HTTP", url))
        patient = ("--wait", "20", "--time-limit", "500")  # it takes its time to start
        found.append(examined("fastmcp, stdio", "--stdio", shlex.join([*fastmcp, "stdio"]), *patient))
    return found


def results(found: Sequence[Run]) -> str:
    """Return what the runs gave."""
    lines = [row("rule", *(run.title for run in found)), f"|---|{'---|' * len(found)}"]
    verdicts = [verdict_of_rules(run) for run in found]
    lines += [row(rule, *(of_run[rule] for of_run in verdicts)) for rule in verdicts[0]]
    for verdict in ("pass", "fail", "not observable"):
        lines.append(row(f"*{verdict}*", *(str(run.of("summary")[0]["rules"][verdict]) for run in found)))
    return "\n".join([*lines, "", "What failed, and how:", "", *failed(found), ""])


def verdict_of_rules(run: Run) -> dict[str, str]:
    """Return a word or two for each rule; a failure says how strongly that is asked for which failed."""
    words: dict[str, str] = {}
    for line in run.of("rule"):
        failing = [one["strength"] for one in run.of("check") if _fails(one, line["rule"])]
        strongest = next((one.value for one in Strength if one.value in failing), None)
        words[line["rule"]] = WORDS[line["verdict"]].format(strongest)
    return words


def _fails(check: Mapping[str, Any], rule: str) -> bool:
    return check["verdict"] == "fail" and rule in check["rules"]


def failed(found: Sequence[Run]) -> Iterator[str]:
    """Yield what failed, each check once."""
    yield from ("| rules | check | strength | where | what came |", "|---|---|---|---|---|")
    by_check: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for run in found:
        for line in run.of("check"):
            if line["verdict"] == "fail":
                by_check.setdefault(line["check"], []).append((run.title, line))
    for name, lines in by_check.items():
        first = lines[0][1]
        reasons = "; ".join(dict.fromkeys(line["reason"] for _, line in lines))
        where = "; ".join(title for title, _ in lines)
        yield row(", ".join(first["rules"]), name, first["strength"], where, reasons)


def main() -> None:
    page = with_part(PAGE.read_text(encoding="utf-8"), "checks", checks())
    if sys.argv[1:] != ["--without-runs"]:
        page = with_part(page, "runs", results(runs()))
    PAGE.write_text(page, encoding="utf-8")
    print("docs/kit.md")


if __name__ == "__main__":
    main()
