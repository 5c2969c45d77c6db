"""The client commands of ``mcp-tasks`` as they are declared; :mod:`.runs` does what they say.

What it takes to be a client is imported when a command runs: the other commands work without.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

import click

from mcp_tasks_adapters.cli.client.exit_codes import MEANINGS
from mcp_tasks_adapters.cli.serve import LOOPS

__all__ = ["COMMANDS"]

EXTRAS: Final = {"h11": "cli", "trio": "trio"}
"""A package -> the extra of this distribution that brings it."""

ERAS: Final = ("modern", "legacy")

EXIT_CODES: Final = "\b\nExit codes:\n" + "\n".join(
    f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items()
)


def _run(name: str, **options: Any) -> None:
    try:
        from mcp_tasks_adapters.cli.client.runs import run

        code = run(name, **options)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise click.ClickException(
            f"this needs {error.name}, which is not installed: pip install 'mcp-tasks-proto[{extra}]'"
        ) from error
    sys.exit(code)


class _Command(click.Command):
    """Takes words that begin with a dash, as ids of tasks may: none of these options is a single letter."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else list(args)
        rest = super().parse_args(ctx, args)
        for word in ctx.params["words"]:
            if word == "-h" and word in options:
                click.echo(self.get_help(ctx))
                ctx.exit()
            if word.startswith("--") and word in options:
                known = [name for option in self.params for name in option.opts]
                raise click.NoSuchOption(word, possibilities=get_close_matches(word, known), ctx=ctx)
        return rest


def _command(name: str, words: str, text: str, *own: click.Option) -> click.Command:
    """Declare a command. Its ``words`` are taken as they are: a server may be named in two ways."""
    argument = click.Argument(["words"], nargs=-1, metavar=words)
    return _Command(
        name,
        context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
        callback=partial(_run, name),
        params=[argument, *own, *_common_options()],
        help=text,
        epilog=EXIT_CODES,
    )


def _common_options() -> Sequence[click.Option]:
    return (
        click.Option(
            ["--stdio"], metavar="COMMAND", help="Start the server with this command, in place of URL."
        ),
        click.Option(
            ["--header", "headers"],
            multiple=True,
            metavar="'NAME: VALUE'",
            help="An HTTP header to send. Repeatable.",
        ),
        click.Option(
            ["--ca-file"],
            metavar="FILE",
            help="Certificates, as PEM, of the authorities to trust over https, in place of the system's.",
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True, help="One JSON object a line, and nothing else, on stdout."
        ),
        click.Option(
            ["--trace"],
            metavar="FILE",
            help="Write every message into a file, as JSON lines; headers are left out.",
        ),
        click.Option(
            ["--record"],
            metavar="FILE",
            help="Record this client's engine into a new file, for `mcp-tasks replay`: it holds arguments, "
            "answers, results, ids and the URL; headers are left out.",
        ),
        click.Option(
            ["--era"],
            type=click.Choice(ERAS),
            help="Speak this revision of MCP only: modern is 2026-07-28, legacy 2025-11-25. By default the "
            "server is asked.",
        ),
        click.Option(
            ["--loop"], type=click.Choice(LOOPS), default="asyncio", show_default=True, help="The event loop."
        ),
    )


def _watch() -> click.Option:
    return click.Option(["--watch"], is_flag=True, help="Show every change of the task, and let it stand.")


def _timeout() -> click.Option:
    return click.Option(
        ["--timeout"],
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Wait no longer than this. The task goes on.",
    )


def _answers() -> Sequence[click.Option]:
    return (
        click.Option(
            ["--answer", "answers"],
            multiple=True,
            metavar="KEY=JSON",
            help="Answer the question KEY beforehand: with the content of its form, a whole response, or one "
            "of the words accept (the form's defaults), decline, cancel. KEY may be *, for any other "
            "question. Repeatable.",
        ),
        click.Option(
            ["--answers", "answers_file"],
            metavar="FILE",
            help="The same from a file: a JSON object, key to answer.",
        ),
    )


COMMANDS: Final[Sequence[click.Command]] = (
    _command("tools", "URL", "List the tools of a server, with their arguments."),
    _command(
        "call",
        "URL TOOL [ARGS]...",
        """Call a tool, wait for what comes of it, print the result.

        \b
        ARGS are the tool's arguments:
          scene=sunset frames:=100    one by one: = for text, := for JSON
          '{"frames": 100}'           as one JSON object
          @FILE, or - for stdin       the same, from there

        A call that becomes a task is watched to its end. Its questions are asked here. Where there is no
        terminal they are cancelled, unless --answer has their answers. Ctrl-C stops the watching, not the
        task, and says how to go on with it.
        """,
        _watch(),
        _timeout(),
        click.Option(
            ["--save"],
            metavar="FILE",
            help="Keep what `mcp-tasks resume FILE` needs, until the task is over.",
        ),
        *_answers(),
    ),
    _command(
        "resume",
        "{FILE|URL TASK_ID}",
        """Go on with a task: wait for its end, answer its questions, print the result.

        FILE is what `mcp-tasks call --save FILE` kept: questions that were answered are not asked again.
        The file is kept up to date, and removed when the task is over.
        """,
        _watch(),
        _timeout(),
        *_answers(),
    ),
    _command("get", "URL TASK_ID", "Show how a task stands."),
    _command(
        "cancel",
        "URL TASK_ID",
        """Tell a server that the result of a task is not wanted any more.

        The task may take a moment to stop, or be done before it can: `mcp-tasks get` says what became of it.
        """,
    ),
    _command(
        "update",
        "URL TASK_ID ANSWERS",
        """Answer the questions of a task.

        ANSWERS is a JSON object, key to answer; @FILE, or - for stdin, takes it from there. An answer is the
        content of a form, a whole response, or one of the words "accept" (the form's defaults), "decline",
        "cancel". It is checked before it is sent.
        """,
    ),
    _command(
        "watch",
        "URL TASK_ID...",
        """Watch tasks to their ends, and print their results.

        Their questions are shown, and left to others. Of several tasks, the exit code is that of the first
        one, in the order given, that is not completed.
        """,
        _timeout(),
    ),
)
"""All of them."""
