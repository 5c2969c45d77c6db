"""``mcp-tasks replay``: recordings, lived through again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from mcp_tasks_adapters.cli.client.harmless import cut, harmless, one_line
from mcp_tasks_adapters.cli.reports import reporting

if TYPE_CHECKING:
    from mcp_tasks_proto.testing.recordings import Replay

__all__ = ["replay_command"]

SAME, DIFFERENT, UNREADABLE = 0, 1, 2
"""Exit codes, from the best to the worst."""

STANDARD_INPUT: Final = "-"

EPILOG: Final = """\b
Examples:
  mcp-tasks serve farm.py:server --record monday.jsonl
  mcp-tasks replay monday.jsonl

\b
Exit codes:
    0  every engine did the same
    1  one did something else
    2  a recording cannot be read, or not to its end, or this not be written"""


@click.command("replay", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each file instead.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Inputs with differences to tell of, of each file; then the rest is left.",
)
@click.option(
    "--width",
    type=click.IntRange(min=20),
    default=300,
    show_default=True,
    help="Characters that are shown of a value, at most.",
)
def replay_command(files: Sequence[str], as_json: bool, most: int, width: int) -> None:
    """Replay recordings, and say where behaviour differs.

    FILE is what --record of serve, proxy or a client command has written, or - for stdin. An engine is made
    as the recorded one was, and told the same at the same times; nothing is sent to anybody, and nothing
    waits. Each effect that is missing, added, out of order or different is told with its line.

    What is printed holds payloads, as the recording does.
    """
    worst = SAME
    for name in files:
        result = _replay(name, most)
        told = [json.dumps({"file": name, **result.to_json()})] if as_json else _lines_of(name, result, width)
        with reporting(UNREADABLE):
            for line in told:
                click.echo(line)
        worst = max(worst, _code(result))
    sys.exit(worst)


def _lines_of(name: str, result: Replay, width: int) -> list[str]:
    """Return what is told to people. Spaces are left alone, for they may be what differs."""
    first, *rest = result.describe(width=width)
    if result.unreadable is not None and result.unreadable.line == 1:
        rest.append("a recording, as --record writes it, begins with how its engine was made")
    longest = 3 * width + 200  # two values and the way to them
    rest = [line.replace("\n", "\\n") for line in rest]
    return [f"{one_line(name)}: {first}", *(f"  {harmless(cut(line, longest))}" for line in rest)]


def _replay(name: str, most: int) -> Replay:
    # Every engine comes along: the other commands do without.
    from mcp_tasks_proto.testing.recordings import LINE_BYTES, Replay, Unreadable, replay

    try:
        with _opened(name) as stream:
            return replay(_lines(stream, LINE_BYTES + 2), most=most)
    except OSError as error:
        return Replay(unreadable=Unreadable(None, error.strerror or str(error)))


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else open(name, "rb")


def _lines(stream: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    """Give line by line; one that is longer, in parts."""
    while line := stream.readline(most_bytes):
        yield line


def _code(result: Replay) -> int:
    if result.unreadable is not None:
        return UNREADABLE
    return DIFFERENT if result.differences else SAME
