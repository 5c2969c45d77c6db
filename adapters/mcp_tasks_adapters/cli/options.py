"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import click

from mcp_tasks_adapters.cli.recording import RECORD_BYTES
from mcp_tasks_adapters.cli.serve import LOOPS
from mcp_tasks_adapters.cli.store import KEYS_VARIABLE
from mcp_tasks_adapters.origins import host_problem, origin_problem

__all__ = ["POSITIVE", "endpoint_options", "loop_option", "record_options", "store_options"]

Decorator = Callable[[Any], Any]

POSITIVE: Final = click.IntRange(min=1)

loop_option: Final = click.option(
    "--loop",
    type=click.Choice(LOOPS),
    default="asyncio",
    show_default=True,
    help="The event loop that it runs on.",
)


def _check_path(context: click.Context, parameter: click.Parameter, path: str) -> str:
    if not path.startswith("/"):
        raise click.BadParameter("a path begins with /")
    return path


def _check_each(problem_of: Callable[[str], str | None]) -> Callable[..., Sequence[str]]:
    """Return what refuses values that could never be met: they would keep out whom they are to let in."""

    def check(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> Sequence[str]:
        for value in values:
            if (problem := problem_of(value)) is not None:
                raise click.BadParameter(f"{value} {problem}")
        return values

    return check


_ENDPOINT: Final[Sequence[Decorator]] = (
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        show_default="a free one",
        help="The port to listen on.",
    ),
    click.option(
        "--path", default="/mcp", show_default=True, callback=_check_path, help="The endpoint's path."
    ),
    click.option(
        "--allow-host",
        "allowed_hosts",
        multiple=True,
        metavar="HOST",
        callback=_check_each(host_problem),
        help="A Host header to accept beside the loopback names and that of --host: example.org, "
        "example.org:8000, example.org:*, or * for any. May be repeated.",
    ),
    click.option(
        "--allow-origin",
        "allowed_origins",
        multiple=True,
        metavar="ORIGIN",
        callback=_check_each(origin_problem),
        help="A web page's origin to accept beside the loopback ones: https://example.org, or * for any. "
        "May be repeated.",
    ),
)


def endpoint_options(command: Any) -> Any:
    """Declare where to listen, and for whom, under the names of ``cli.serve.Endpoint``."""
    return reduce(lambda declared, option: option(declared), reversed(_ENDPOINT), command)


def store_options(*, variable: str, default: str, kinds: str) -> Decorator:
    """Declare ``--store``, whose default and ``kinds`` are said in its help, and the keys to it."""

    def declare(command: Any) -> Any:
        keys = click.option(
            "--store-key-file",
            type=click.Path(),
            metavar="FILE",
            help="Keys to seal what is stored with, in Base64, newest first. "
            f"They may be given in the variable {KEYS_VARIABLE} instead.",
        )
        store = click.option(
            "--store",
            envvar=variable,
            metavar="STORE",
            show_default=default,
            show_envvar=True,
            help=kinds,
        )
        return store(keys(command))

    return declare


def record_options(command: Any) -> Any:
    """Declare ``--record`` and its bound."""
    bound = click.option(
        "--record-bytes",
        type=POSITIVE,
        default=RECORD_BYTES,
        show_default=True,
        help="The longest recording; a last line says that it is full.",
    )
    record = click.option(
        "--record",
        type=click.Path(),
        metavar="FILE",
        help="Record all that the engine is told and says into a new file, for `mcp-tasks replay`. It holds "
        "arguments, answers, results and the ids of tasks and sessions: whoever reads it can read and use "
        "them. Tokens of Authorization headers, and keys, are not in it.",
    )
    return record(bound(command))
