"""The server that is measured: one tool on one of the two loops. ``python -m bench.ours LOOP``."""

from __future__ import annotations

import asyncio
import sys

import trio
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.collector import relax_collector
from mcp_tasks_adapters.toolkit import Server, TaskContext, TaskOffer, ToolCall

from bench.lifeline import end_with_parent
from bench.messages import TOOL
from mcp_tasks_proto.limits import Limits

__all__ = ["server"]

MANY = 10_000_000

server = Server("bench", version="1.0", limits=Limits(tasks=MANY, tasks_per_principal=MANY))


@server.tool(TOOL, description="Say hello")
async def hello(call: ToolCall) -> TaskOffer:
    """Become a task that completes at once."""
    return call.task(say_hello)


async def say_hello(_task: TaskContext) -> str:
    """Complete."""
    return "hello"


def say_ready(url: str) -> None:
    """Tell the benchmark where to connect."""
    print(url, flush=True)


if __name__ == "__main__":
    end_with_parent()
    relax_collector()  # as `mcp-tasks serve` does
    match sys.argv[1]:
        case "trio":
            trio.run(lambda: trio_h11.serve_http(server, ready=say_ready))
        case "asyncio":
            asyncio.run(asyncio_h11.serve_http(server, ready=say_ready))
