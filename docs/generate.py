"""Writes the pages of ``docs/`` that come from the code, or a run of it; a test fails when they are stale."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.eras import eras
from docs.rules import SECTIONS
from mcp_tasks_proto.errors import ERROR_TABLE
from mcp_tasks_proto.lifecycle import render_mermaid, render_table
from mcp_tasks_proto.proxy import TROUBLE_TABLE

DOCS: Final = Path(__file__).parent
TESTS: Final = DOCS.parent / "tests"
AREAS: Final = "WIRE|NEG|LIFE|GET|UPD|CAN|INP|TTL|SUB|HTTP|STD|REQ|LEG|PRX|HIS|SEC|LIM"
CITATION: Final = re.compile(rf"\b({AREAS})\.(\d+)\b")
TEST_NAME: Final = re.compile(r"\bdef test_(\w+)")
CITATION_IN_NAME: Final = re.compile(rf"(?<![a-z0-9])({AREAS.lower()})(\d+)(?![a-z0-9])")

NOTE: Final = "<!-- Written by docs/generate.py (make docs): change the code, not this page. -->"


def states() -> str:
    """Return the page about the life of a task."""
    return f"""{NOTE}

# The life of a task

Five statuses, and one table that says what every fact does to a task in each of them. It is
`mcp_tasks_proto.lifecycle.TABLE`; the module's own text explains the ideas behind it.
`mcp-tasks diagram` prints what is below.

## Changes of status

```mermaid
{render_mermaid()}```

## The whole table

- `-> status`: the task moves there.
- `stay`: the task takes the fact in, and keeps its status.
- `ignore`: too late, or without meaning; its sender is told that all is well, and nothing changes.
- `reject`: it cannot be; its sender is told so, and nothing changes.

{render_table()}"""


def errors() -> str:
    """Return the page about the error codes."""
    rows = "".join(
        f"| {int(code)} | {code.name} | {http_status} | {meaning} |\n"
        for code, (http_status, meaning) in ERROR_TABLE.items()
    )
    troubles = "".join(
        f"| {trouble.value} | {'' if retryable is None else str(retryable).lower()} | {text} |\n"
        for trouble, (text, retryable) in TROUBLE_TABLE.items()
    )
    return f"""{NOTE}

# Error codes

What an engine puts into the `error` of a response, and the HTTP status that goes with it over HTTP. A tool
may fail with any code of its own; that one goes with HTTP 200.

| code | name | HTTP | meaning |
|---|---|---|---|
{rows}
`INVALID_PARAMS` about the metadata of the request itself (`_meta`) goes with HTTP 400. A request that is
refused for its head carries `INVALID_REQUEST` with 401, 403, 406, 408, 413, 415 or 431; 404 (another path)
and 405 have no body.
A reply that ends a stream has no status of its own: the stream began with 200.

## A proxy's troubles

-32603 of a proxy says in `data.reason` what is in the way. Where `data.retryable` is there, it says whether
the same request may be sent again. A handle that is forged, expired, somebody else's or withdrawn is none of
these: it is -32602 with one text for all.

| reason | retryable | meaning |
|---|---|---|
{troubles}"""


def citations() -> dict[str, list[str]]:
    """Return, for each rule, the files below ``tests/`` that cite it: ``LEG.3``, or ``test_leg3_…``."""
    cited: dict[str, list[str]] = {rule: [] for section in SECTIONS.values() for rule in section}
    for path in sorted(TESTS.rglob("test_*.py")) + sorted(TESTS.rglob("*.txt")):
        text = path.read_text(encoding="utf-8")
        names = " ".join(TEST_NAME.findall(text))
        found = CITATION.findall(text) + CITATION_IN_NAME.findall(names)
        for rule in {f"{area.upper()}.{number}" for area, number in found}:
            cited.setdefault(rule, []).append(path.relative_to(TESTS).as_posix())
    return cited


def rules() -> str:
    """Return the page that sets each rule beside its tests."""
    cited = citations()
    parts = [
        f"""{NOTE}

# The rules and their tests

What a peer can count on, and the files below `tests/` whose tests cite it. Numbers are names: gaps mean
nothing.
"""
    ]
    for title, section in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| rule | what it says | tests |\n|---|---|---|\n")
        for rule, meaning in section.items():
            files = ", ".join(f"[{path}](../tests/{path})" for path in cited[rule])
            parts.append(f"| {rule} | {meaning} | {files} |\n")
    return "".join(parts)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "states.md": states,
    "errors.md": errors,
    "rules.md": rules,
}
RUN_PAGES: Final[Mapping[str, Callable[[], str]]] = {"eras.md": lambda: f"{NOTE}\n\n{eras()}"}
"""Those that show what a run gave; it takes a while."""


def main() -> None:
    for name, page in {**PAGES, **RUN_PAGES}.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
