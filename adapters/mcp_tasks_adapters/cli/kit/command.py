"""``mcp-tasks kit`` as it is declared; :mod:`.run` does what it says."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from mcp_tasks_adapters.cli.serve import LOOPS

__all__ = ["ROLES", "STRENGTHS", "kit_command"]

ROLES: Final = {
    "completing": "gives a task that completes by itself",
    "erring": "gives a task that ends with isError",
    "failing": "gives a task that fails with a JSON-RPC error",
    "asking": "gives a task that asks for input, best of all for two things at once",
    "asking-first": "asks for input before anything else (input_required)",
    "slow": "gives a task that works until it is cancelled, or for long",
    "expiring": "gives a task whose ttlMs is a few seconds",
    "plain": "answers at once, and never gives a task",
}
"""What tools can be named for, and what such a tool does."""

STRENGTHS: Final = ("must", "should", "choice")

EXAMPLES: Final = """\b
Examples:
  mcp-tasks kit http://127.0.0.1:8000/mcp --skip delete_everything
  mcp-tasks kit URL --no-search --completing 'render={"frames": 2}' --slow idle
  mcp-tasks kit --stdio "python server.py" --json
  mcp-tasks kit URL --only HTTP.2 --only "a task completes"
  mcp-tasks kit URL --strength should --accept "other verbs" --require LIFE.2

\b
Exit codes:
    0  nothing failed that counts; what is not observable does not fail
    1  a check failed, or a rule that is required has not passed
    2  what was typed cannot be used, or the report not be written
    3  no server answered, none of all checks saw anything, or the time was over before all was examined
  130  stopped by Ctrl-C, 143 by SIGTERM; what was known by then was reported"""


def _role_options(command: Any) -> Any:
    for role, meaning in reversed(ROLES.items()):
        option = click.option(f"--{role}", metavar="TOOL[=ARGS]", help=f"A tool that {meaning}.")
        command = option(command)
    return command


@click.command("kit", epilog=EXAMPLES, short_help="Examine a server or a proxy, rule by rule.")
@click.argument("url", required=False)
@click.option("--stdio", metavar="COMMAND", help="Start the server with this command, in place of URL.")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="An HTTP header to send. Repeatable."
)
@click.option(
    "--other-header",
    "other_headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="The same of another caller, from whom tasks must be kept. Repeatable.",
)
@_role_options
@click.option(
    "--skip", "skipped", multiple=True, metavar="TOOL", help="A tool that is not to be called. Repeatable."
)
@click.option("--no-search", is_flag=True, help="Call no tools but those that are named.")
@click.option(
    "--strength",
    type=click.Choice(STRENGTHS),
    default="choice",
    show_default=True,
    help="Report what the specification demands (must), also what it recommends (should), or also what it "
    "leaves open and the contract of this project decides (choice).",
)
@click.option(
    "--only",
    multiple=True,
    metavar="RULE|CHECK",
    help="Examine by this rule (HTTP.2, or HTTP for all of them), or this check, alone. Repeatable.",
)
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="CHECK",
    help="A check that may fail: it is reported, and does not count for the exit code. Repeatable.",
)
@click.option(
    "--require",
    "required",
    multiple=True,
    metavar="RULE",
    help="A rule that has to pass: that it is not observable is as bad as a failure. Repeatable.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0.1, max=3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest wait for an answer, and for a task to do what is expected of it.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1, max=86_400),
    default=180.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest run. What was not examined by then is not observable.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on stdout.")
@click.option(
    "--server-log", type=click.Path(), metavar="FILE", help="Where the stderr of a --stdio server goes."
)
@click.option(
    "--loop",
    type=click.Choice(LOOPS),
    default="asyncio",
    show_default=True,
    help="The event loop of the kit itself.",
)
def kit_command(**options: Any) -> None:
    """Examine a server or a proxy, and report rule by rule: pass, fail or not observable.

    URL is its endpoint. It may be anybody's: nothing of this project has to be in it.

    The kit calls tools. Those of which it knows nothing it calls once each, with arguments made from their
    schemas, to see which of them give tasks; tools that say they destroy something (destructiveHint) are left
    alone. Where that is too much, name the tools. ARGS is a JSON object; without it, arguments are made up.
    A tool that is named and that the server does not list is taken for a slip, and no tool is called.

    The tasks that it has made are cancelled in the end.
    """
    try:
        from mcp_tasks_adapters.cli.kit.run import run

        code = run(**options)
    except ModuleNotFoundError as error:
        extra = {"h11": "cli", "trio": "trio"}.get(error.name or "")
        if extra is None:
            raise
        raise click.ClickException(
            f"this needs {error.name}, which is not installed: pip install 'mcp-tasks-proto[{extra}]'"
        ) from error
    sys.exit(code)
