"""Writes the pages of ``docs/`` that come from the code; a test fails when they are stale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from mcp_tasks_proto.errors import ERROR_TABLE
from mcp_tasks_proto.lifecycle import render_mermaid, render_table

DOCS: Final = Path(__file__).parent

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
    return f"""{NOTE}

# Error codes

What an engine puts into the `error` of a response, and the HTTP status that goes with it over HTTP. A tool
may fail with any code of its own; that one goes with HTTP 200.

| code | name | HTTP | meaning |
|---|---|---|---|
{rows}
`INVALID_PARAMS` about the metadata of the request itself (`_meta`) goes with HTTP 400.
A reply that ends a stream has no status of its own: the stream began with 200.
"""


PAGES: Final[Mapping[str, Callable[[], str]]] = {"states.md": states, "errors.md": errors}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
