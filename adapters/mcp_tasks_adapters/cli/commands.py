"""The commands of ``mcp-tasks`` and their options."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import click

from mcp_tasks_adapters.cli import diagram as diagrams
from mcp_tasks_adapters.cli.client.commands import COMMANDS
from mcp_tasks_adapters.cli.kit.command import kit_command
from mcp_tasks_adapters.cli.options import (
    POSITIVE,
    endpoint_options,
    loop_option,
    record_options,
    store_options,
)
from mcp_tasks_adapters.cli.recording import RecordingError, recording_into
from mcp_tasks_adapters.cli.replay import replay_command
from mcp_tasks_adapters.cli.serve import (
    Endpoint,
    ServeError,
    from_loop_module,
    prepare,
    run_http,
    run_stdio,
)
from mcp_tasks_adapters.cli.store import (
    HANDLE_KEYS_VARIABLE,
    PROXY_STORE_VARIABLE,
    STORE_VARIABLE,
    choose_store,
)
from mcp_tasks_adapters.cli.target import TargetError, load_server
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit.server import LEGACY_POLICIES
from mcp_tasks_proto.proxy import InputKind

if TYPE_CHECKING:
    from mcp_tasks_adapters.proxy.config import ProxyConfig

__all__ = ["mcp_tasks"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="mcp-tasks-proto", message="mcp-tasks %(version)s")
def mcp_tasks() -> None:
    """Serve MCP Tasks, call tools and live with their tasks, watch the protocol at work."""


@mcp_tasks.command()
@click.argument("target")
@loop_option
@endpoint_options
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
@store_options(
    variable=STORE_VARIABLE,
    default="a file of this server's own; it is said where",
    kinds="Where tasks are kept: sqlite:FILE, postgres:DSN, or memory: for as long as this process lives. "
    "Several servers may share a file, or a database. A DSN with a password belongs into the variable.",
)
@record_options
def serve(
    target: str,
    loop: str,
    stdio: bool,
    legacy: str | None,
    ttl_ms: int | None,
    max_tasks: int | None,
    store: str | None,
    store_key_file: str | None,
    record: str | None,
    record_bytes: int,
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
        with recording_into(record, most_bytes=record_bytes) as server.record:
            if stdio:
                run_stdio(server, loop=loop, chosen=chosen)
            else:
                run_http(server, Endpoint(**endpoint), loop=loop, chosen=chosen)
    except TargetError as error:
        click.echo(error.author_traceback, nl=False, err=True)
        raise click.ClickException(str(error)) from None
    except (ServeError, StoreError) as error:
        raise click.ClickException(str(error)) from None
    except RecordingError as error:
        raise click.ClickException(f"--record: {error}.") from None


@mcp_tasks.command("proxy")
@click.argument("config", required=False, type=click.Path())
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    metavar="[NAME=]URL",
    help="The endpoint of a server behind the proxy. May be repeated: then each has a name, and its tools "
    "are called NAME__tool.",
)
@click.option(
    "--upstream-stdio",
    "stdio",
    multiple=True,
    metavar="[NAME=]COMMAND",
    help="The same for a server that is started with this command, and talked to on stdio.",
)
@loop_option
@endpoint_options
@click.option(
    "--stdio",
    "on_stdio",
    is_flag=True,
    help="Serve one caller over stdin and stdout instead of HTTP. It has no name.",
)
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
    "--ca-file",
    type=click.Path(),
    metavar="FILE",
    show_default="those that the system trusts",
    help="Certificates, as PEM, of the authorities to trust for upstreams over https.",
)
@click.option(
    "--legacy",
    type=click.Choice(LEGACY_POLICIES),
    show_default="ignore, unless CONFIG says something else",
    help="What callers of protocol version 2025-11-25 get: everything but tasks (ignore), tasks as well "
    "(serve), or nothing (refuse).",
)
@click.option(
    "--callers",
    type=click.Path(),
    metavar="FILE",
    show_default="everybody is let in, without a name",
    help="A TOML file of [[caller]] tables, with the tokens and API keys of those who are let in.",
)
@store_options(
    variable=PROXY_STORE_VARIABLE,
    default="memory:",
    kinds="Where handles, ends of tasks and the ledger are kept: sqlite:FILE, for one proxy at a time, or "
    "memory: for as long as this process lives.",
)
@click.option(
    "--handle-key-file",
    type=click.Path(),
    metavar="FILE",
    help="Keys in Base64, newest first: handles carry, sealed, what they stand for, and proxies that share "
    f"the keys take each other's. They may be given in the variable {HANDLE_KEYS_VARIABLE} instead.",
)
@click.option(
    "--forget-project",
    metavar="NAME",
    help="Remove all that is kept of a project, and serve nobody. While a proxy runs, say deleted = true of "
    "the project in CONFIG.",
)
@record_options
@click.option("--check", is_flag=True, help="Say what each caller would see, and serve nobody.")
@click.option("--json", "as_json", is_flag=True, help="Say it as one JSON object. Only with --check.")
@click.pass_context
def proxy_command(
    context: click.Context,
    /,
    config: str | None,
    upstreams: tuple[str, ...],
    stdio: tuple[str, ...],
    loop: str,
    on_stdio: bool,
    kinds: tuple[str, ...],
    callers: str | None,
    store: str | None,
    store_key_file: str | None,
    handle_key_file: str | None,
    ca_file: str | None,
    legacy: str | None,
    forget_project: str | None,
    record: str | None,
    record_bytes: int,
    check: bool,
    as_json: bool,
    **endpoint: Any,
) -> None:
    """Run a proxy before one server or several.

    CONFIG is a TOML file that says all of it: docs/proxy.md has an example. What is given here as well goes
    before what stands there. SIGHUP has it read again, and leaves streams and tasks as they are. Without a
    file there are --upstream and --upstream-stdio.

    It hands out task ids of its own, says "listening on URL" on stderr once it is ready, and ends on SIGTERM
    and SIGINT: open streams get their last message; tasks go on at their servers.
    """
    if as_json and not check:
        raise click.UsageError("--json goes with --check.")
    given = _given(context)
    in_file = [one.opts[0] for one in context.command.params if one.name in given and one.name in _IN_A_FILE]
    if config is not None and in_file:
        raise click.UsageError(f"{in_file[0]} is for a proxy without a file: CONFIG says that.")
    if config is not None and config.startswith(("http://", "https://")):
        raise click.UsageError("CONFIG is a file; a server is named with --upstream URL.")
    if config is None and not upstreams and not stdio and forget_project is None:
        raise click.UsageError("Nothing to stand before: give a CONFIG, --upstream or --upstream-stdio.")
    try:
        # Which says so where an extra is missing.
        serve_proxy = from_loop_module(loop, "serve_proxy_stdio" if on_stdio else "serve_proxy")
        from mcp_tasks_adapters.cli import proxy as proxies

        here = {name: value for name, value in endpoint.items() if name in given}

        def read() -> ProxyConfig:
            if config is None:
                said = proxies.make_config(upstreams, callers, kinds, stdio=stdio, ca_file=ca_file)
            else:
                said = proxies.load_config(config)
            return proxies.with_options(
                said,
                endpoint=here,
                store=store,
                key_file=store_key_file,
                handle_key_file=handle_key_file,
                legacy=legacy,
            )

        if forget_project is not None:
            from mcp_tasks_adapters.cli.forgetting import forget_project as forget

            click.echo(forget(read(), forget_project))
        elif check:
            sys.exit(proxies.check_proxy(read, as_json=as_json))
        else:
            again = None if config is None else read
            with recording_into(record, most_bytes=record_bytes) as taking:
                proxies.run_proxy(
                    read(), read=again, serve_proxy=serve_proxy, loop=loop, on_stdio=on_stdio, record=taking
                )
    except (ServeError, StoreError) as error:
        raise click.ClickException(str(error)) from None
    except RecordingError as error:
        raise click.ClickException(f"--record: {error}.") from None


_IN_A_FILE: Final = frozenset({"upstreams", "stdio", "kinds", "callers", "ca_file"})
"""Parameters that cannot be given beside a file, which says all of it."""


def _given(context: click.Context) -> Sequence[str]:
    """Return the options that somebody gave, on the command line or in a variable."""
    default = click.core.ParameterSource.DEFAULT
    return [name for name in context.params if context.get_parameter_source(name) is not default]


@mcp_tasks.command()
@loop_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each message instead.")
@click.option("--proxy", is_flag=True, help="Tell the story of a proxy before the server instead.")
def demo(loop: str, as_json: bool, proxy: bool) -> None:
    """Watch a client and a server at work.

    Starts a server on a free port, over a file in a temporary folder, and takes a task through its life:
    created, polled, answered, completed, though its server is killed on the way and started again. Then one
    that fails, one whose tool errs, one that is cancelled. Shows every message, and what to notice in it,
    which is checked: anything unexpected ends it with exit code 1.

    With --proxy there is a proxy before the server: a task has an id on each side of it, a stranger is
    refused as for a task that never was, and its end can be read when its server has forgotten it.
    """
    from mcp_tasks_adapters.cli.demo import run_demo

    sys.exit(run_demo(loop=loop, as_json=as_json, proxy=proxy))


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


for command in (*COMMANDS, kit_command, replay_command):
    mcp_tasks.add_command(command)
