"""The commands of ``mcp-tasks`` and their options."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from typing import Any

import click

from mcp_tasks_adapters.cli import diagram as diagrams
from mcp_tasks_adapters.cli.client.commands import COMMANDS
from mcp_tasks_adapters.cli.kit.command import kit_command
from mcp_tasks_adapters.cli.serve import (
    LOOPS,
    Endpoint,
    ServeError,
    from_loop_module,
    prepare,
    run_http,
    run_stdio,
)
from mcp_tasks_adapters.cli.store import KEYS_VARIABLE, PROXY_STORE_VARIABLE, STORE_VARIABLE, choose_store
from mcp_tasks_adapters.cli.target import TargetError, load_server
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit.server import LEGACY_POLICIES
from mcp_tasks_proto.proxy import InputKind

__all__ = ["mcp_tasks"]

POSITIVE = click.IntRange(min=1)

loop_option = click.option(
    "--loop",
    type=click.Choice(LOOPS),
    default="asyncio",
    show_default=True,
    help="The event loop that tools run on.",
)


def _check_path(context: click.Context, parameter: click.Parameter, path: str) -> str:
    if not path.startswith("/"):
        raise click.BadParameter("a path begins with /")
    return path


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="mcp-tasks-proto", message="mcp-tasks %(version)s")
def mcp_tasks() -> None:
    """Serve MCP Tasks, call tools and live with their tasks, watch the protocol at work."""


@mcp_tasks.command()
@click.argument("target")
@loop_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="The port to listen on.",
)
@click.option("--path", default="/mcp", show_default=True, callback=_check_path, help="The endpoint's path.")
@click.option("--stdio", is_flag=True, help="Serve one client over stdin and stdout instead of HTTP.")
@click.option(
    "--legacy",
    type=click.Choice(LEGACY_POLICIES),
    show_default="what the server says; ignore, unless it says something else",
    help="What clients of protocol version 2025-11-25 get: everything but tasks (ignore), tasks as well "
    "(serve), or nothing (refuse).",
)
@click.option("--ttl-ms", type=POSITIVE, help="Lifetime of a task whose tool names none, in milliseconds.")
@click.option("--max-tasks", type=POSITIVE, help="Tasks kept at once, of all callers together.")
@click.option(
    "--store",
    envvar=STORE_VARIABLE,
    metavar="STORE",
    show_default="a file of this server's own; it is said where",
    show_envvar=True,
    help="Where tasks are kept: sqlite:FILE, postgres:DSN, or memory: for as long as this process lives. "
    "Several servers may share a file, or a database. A DSN with a password belongs into the variable.",
)
@click.option(
    "--store-key-file",
    type=click.Path(),
    metavar="FILE",
    help="Keys to seal the records with, in Base64, newest first. "
    f"They may be given in the variable {KEYS_VARIABLE} instead.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST",
    help="A Host header to accept beside the loopback names and that of --host: example.org, "
    "example.org:8000, example.org:*, or * for any. May be repeated.",
)
@click.option(
    "--allow-origin",
    "allowed_origins",
    multiple=True,
    metavar="ORIGIN",
    help="A web page's origin to accept beside the loopback ones: https://example.org, or * for any. "
    "May be repeated.",
)
def serve(
    target: str,
    loop: str,
    stdio: bool,
    legacy: str | None,
    ttl_ms: int | None,
    max_tasks: int | None,
    store: str | None,
    store_key_file: str | None,
    **endpoint: Any,
) -> None:
    """Run a server.

    TARGET names it: package.module:attr or path/to/file.py:attr.

    Says "listening on URL" on stderr once it is ready. SIGTERM and SIGINT end it: open streams get their last
    message, running tasks are told to stop.
    """
    try:
        # On stdio nothing but messages may stand on stdout, whatever the author's module prints (STD.1).
        with redirect_stdout(sys.stderr) if stdio else nullcontext():
            server = load_server(target)
        prepare(server, ttl_ms=ttl_ms, max_tasks=max_tasks, legacy=legacy)
        chosen = choose_store(store, store_key_file, target=target, server=server)
        if stdio:
            run_stdio(server, loop=loop, chosen=chosen)
        else:
            run_http(server, Endpoint(**endpoint), loop=loop, chosen=chosen)
    except TargetError as error:
        click.echo(error.author_traceback, nl=False, err=True)
        raise click.ClickException(str(error)) from None
    except (ServeError, StoreError) as error:
        raise click.ClickException(str(error)) from None


@mcp_tasks.command("proxy")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    required=True,
    metavar="[NAME=]URL",
    help="The endpoint of a server behind the proxy. May be repeated: then each has a name, and its tools "
    "are called NAME__tool.",
)
@loop_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="The port to listen on.",
)
@click.option("--path", default="/mcp", show_default=True, callback=_check_path, help="The endpoint's path.")
@click.option(
    "--input",
    "kinds",
    type=click.Choice([kind.value for kind in InputKind]),
    multiple=True,
    default=[InputKind.FORM.value],
    show_default=True,
    help="A kind of input that upstreams may ask callers for. May be repeated.",
)
@click.option(
    "--callers",
    type=click.Path(),
    metavar="FILE",
    show_default="everybody is let in, without a name",
    help="A TOML file of [[caller]] tables, with the tokens and API keys of those who are let in.",
)
@click.option(
    "--store",
    envvar=PROXY_STORE_VARIABLE,
    metavar="STORE",
    show_default="memory:",
    show_envvar=True,
    help="Where handles, ends of tasks and the ledger are kept: sqlite:FILE, for one proxy at a time, or "
    "memory: for as long as this process lives.",
)
@click.option(
    "--store-key-file",
    type=click.Path(),
    metavar="FILE",
    help="Keys to seal what is in the file with, in Base64, newest first. "
    f"They may be given in the variable {KEYS_VARIABLE} instead.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST",
    help="A Host header to accept beside the loopback names and that of --host. May be repeated.",
)
@click.option(
    "--allow-origin",
    "allowed_origins",
    multiple=True,
    metavar="ORIGIN",
    help="A web page's origin to accept beside the loopback ones. May be repeated.",
)
def proxy_command(
    upstreams: tuple[str, ...],
    loop: str,
    kinds: tuple[str, ...],
    callers: str | None,
    store: str | None,
    store_key_file: str | None,
    **endpoint: Any,
) -> None:
    """Run a proxy before one server or several.

    It hands out task ids of its own, says "listening on URL" on stderr once it is ready, and ends on SIGTERM
    and SIGINT: open streams get their last message; tasks go on at their servers.
    """
    try:
        serve_proxy = from_loop_module(loop, "serve_proxy")  # which says so where an extra is missing
        from mcp_tasks_adapters.cli.proxy import choose_proxy_store, make_proxy, run_proxy

        chosen = choose_proxy_store(store, store_key_file)
        proxy = make_proxy(upstreams, callers, kinds)
        run_proxy(proxy, Endpoint(**endpoint), serve_proxy=serve_proxy, loop=loop, chosen=chosen)
    except (ServeError, StoreError) as error:
        raise click.ClickException(str(error)) from None


@mcp_tasks.command()
@loop_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each message instead.")
def demo(loop: str, as_json: bool) -> None:
    """Watch a client and a server at work.

    Starts a server on a free port, over a file in a temporary folder, and takes a task through its life:
    created, polled, answered, completed, though its server is killed on the way and started again. Then one
    that fails, one whose tool errs, one that is cancelled. Shows every message, and what to notice in it,
    which is checked: anything unexpected ends it with exit code 1.
    """
    from mcp_tasks_adapters.cli.demo import run_demo

    sys.exit(run_demo(loop=loop, as_json=as_json))


@mcp_tasks.command()
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(diagrams.FORMATS)),
    default="mermaid",
    show_default=True,
    help="A Mermaid state diagram, or the whole table in Markdown.",
)
def diagram(output_format: str) -> None:
    """Print the state machine of a task, as the core runs it."""
    click.echo(diagrams.render(output_format), nl=False)


for command in (*COMMANDS, kit_command):
    mcp_tasks.add_command(command)
