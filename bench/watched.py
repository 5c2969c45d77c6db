"""The server whose tasks are watched, and which counts how often: ``python -m bench.watched``."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_tasks_adapters import asyncio_h11
from mcp_tasks_adapters.stores.memory import MemoryStore
from mcp_tasks_adapters.storing import StoreEffect
from mcp_tasks_adapters.toolkit import Server, TaskContext, TaskOffer, ToolCall

from bench.lifeline import end_with_parent
from mcp_tasks_proto.effects import Load
from mcp_tasks_proto.limits import Limits

__all__ = ["server"]

MANY = 10_000_000

server = Server(
    "bench",
    version="1.0",
    limits=Limits(tasks=MANY, tasks_per_principal=MANY, streams_per_principal=1024, exchanges=8192),
)


class CountingStore(MemoryStore):
    """Counts how often a task was looked up: once for each poll."""

    lookups = 0

    def submit(self, effect: StoreEffect, answer: Any) -> None:
        """Carry out ``effect``."""
        self.lookups += isinstance(effect, Load)
        super().submit(effect, answer)


store = CountingStore()

LASTING = {
    "type": "object",
    "properties": {"seconds": {"type": "number"}, "poll_ms": {"type": "integer"}},
    "required": ["seconds", "poll_ms"],
}


@server.tool(task="required", description="Take so long, and ask to be polled so often", input_schema=LASTING)
async def last(call: ToolCall) -> TaskOffer:
    """Become a task."""

    async def run(_task: TaskContext) -> str:
        await asyncio.sleep(call.arguments["seconds"])
        return "done"

    return call.task(run, poll_interval_ms=call.arguments["poll_ms"])


@server.tool(task="forbidden", description="Say how often tasks were looked up")
async def lookups(call: ToolCall) -> str:
    """Tell."""
    return str(store.lookups)


def say_ready(url: str) -> None:
    """Tell the benchmark where to connect."""
    print(url, flush=True)


if __name__ == "__main__":
    end_with_parent()
    asyncio.run(asyncio_h11.serve_http(server, store=store, ready=say_ready))
