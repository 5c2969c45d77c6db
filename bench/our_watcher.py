"""Our client, as it watches tasks by polling: ``python -m bench.our_watcher LOOP URL TASKS ARGUMENTS``."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import trio
from mcp_tasks_adapters import asyncio_h11, trio_h11

from bench.meter import answer_parent

__all__ = ["watch"]


async def watch(connect: Any, forever: Any, url: str, tasks: int, arguments: dict[str, Any]) -> None:
    """Have tasks made, all of which the client watches by itself, and go on until the process ends."""
    async with connect(url, listen=False) as client:
        for _ in range(tasks):
            call = await client.call_tool("last", arguments)
            assert call.task_id is not None
        answer_parent()
        await forever()


if __name__ == "__main__":
    loop, url, tasks, arguments = sys.argv[1:]
    if loop == "trio":
        trio.run(watch, trio_h11.connect, trio.sleep_forever, url, int(tasks), json.loads(arguments))
    else:
        asyncio.run(watch(asyncio_h11.connect, asyncio.Event().wait, url, int(tasks), json.loads(arguments)))
