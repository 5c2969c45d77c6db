"""What a client may be told when it connects, the same on every loop."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any, Final, TypedDict, cast

from attrs import evolve

from mcp_tasks_adapters.client.answers import AnswerFunction
from mcp_tasks_adapters.client.driver import TraceFunction
from mcp_tasks_adapters.client.http import ConnectionLimits, HeadersFunction
from mcp_tasks_adapters.toolkit.server import RecordFunction
from mcp_tasks_proto.legacy.messages import Era
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import RequesterLimits, RequesterSettings

__all__ = ["HttpOptions", "Options", "StdioOptions", "requester_settings"]


class Options(TypedDict, total=False):
    """Of every client; all of them may be left out."""

    answer: AnswerFunction | None
    """Answers the server's questions (REQ.4). Without it none are invited: no ``elicitation`` is declared,
    and a server that asks all the same is told that the question was cancelled."""
    capabilities: Mapping[str, Any] | None
    """Client capabilities to declare instead of those that ``answer`` implies, elicitation by form and by
    URL: when it can do less, or can do sampling or roots as well."""
    tasks: bool
    """Whether to declare the Tasks extension: true. Without it every call is answered at once, or refused."""
    listen: bool
    """Whether to have the news of tasks sent, where the server does that: true. Else they are polled."""
    era: Era | None
    """Which revision to speak: ``"modern"`` is 2026-07-28, ``"legacy"`` 2025-11-25. By default that shows in
    how the server answers the first request, and :attr:`Client.era` says which it is."""
    on_trace: TraceFunction | None
    """Is told of every message sent and received, and of what became of each request."""
    record: RecordFunction | None
    """Records the engine: unlike ``on_trace``, all that it is told, so that it can be lived through again."""
    name: str
    """Who the client is, to the server: ``clientInfo``."""
    version: str
    limits: Limits
    """Bounds of what is received (``message_bytes``, ``message_depth``, ``header_bytes``), of the patience
    with a server that does not read (``write_timeout_ms``), or does not end (``shutdown_grace_ms``)."""
    requester_limits: RequesterLimits
    """Bounds and timing of calls, polls and questions."""


class HttpOptions(Options, total=False):
    """Of a client over HTTP."""

    headers: Mapping[str, str] | HeadersFunction | None
    """Headers to add to every request, or a function, async or not, that is asked for them each time."""
    ssl_context: ssl.SSLContext | None
    """For ``https``, in place of the standard library's default."""
    connection_limits: ConnectionLimits


class StdioOptions(Options, total=False):
    """Of a client that starts its server."""

    env: Mapping[str, str] | None
    """The server's environment; by default this process's own."""
    cwd: str | os.PathLike[str] | None
    """The server's working directory; by default this process's own."""
    stderr: Any
    """Where the server's stderr goes, as ``subprocess`` has it: by default to this process's own."""


_INPUT_CAPABILITIES: Final = ("elicitation", "sampling", "roots")


def requester_settings(endpoint: str, *, mirror_arguments: bool, options: Options) -> RequesterSettings:
    """Return the engine's settings. Raises ``ValueError`` where the options contradict each other."""
    answer, capabilities = options.get("answer"), options.get("capabilities")
    if capabilities is None:
        capabilities = {} if answer is None else {"elicitation": {"form": {}, "url": {}}}
    elif answer is None and any(name in capabilities for name in _INPUT_CAPABILITIES):
        raise ValueError("capabilities= promises to answer questions, which takes an answer= function")
    limits, streams = options.get("requester_limits") or RequesterLimits(), None
    if connection_limits := cast(HttpOptions, options).get("connection_limits"):
        streams = connection_limits.connections // 2  # the others are for everything else
        limits = evolve(limits, listen_streams=max(1, min(limits.listen_streams, streams)))
    return RequesterSettings(
        name=options.get("name", "mcp-tasks-proto"),
        version=options.get("version", "0"),
        endpoint=endpoint,
        capabilities=capabilities,
        tasks=options.get("tasks", True),
        listen=options.get("listen", True) and streams != 0,
        mirror_arguments=mirror_arguments,
        limits=limits,
    )
