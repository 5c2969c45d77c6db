"""The peer's client, as it watches tasks by polling: ``python -m bench.peer_watcher URL TASKS ARGUMENTS``.

It runs in an environment of its own (``peers.py`` makes it) and knows nothing of this project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client  # type: ignore[import-not-found]
from fastmcp_tasks.client import call_tool_task  # type: ignore[import-not-found]
from fastmcp_tasks.client_models import GetTaskRequest  # type: ignore[import-not-found]

from bench.meter import answer_parent

__all__ = ["watch"]


# The specification requires the header Mcp-Name of these requests, and our server insists on it. The peer
# leaves it out; this has it sent.
GetTaskRequest.name_param = "taskId"


async def watch(url: str, tasks: int, arguments: dict[str, Any]) -> None:
    """Have tasks made, wait for the results of all, and go on until the process ends."""
    async with Client(url) as client:
        handles = [await call_tool_task(client, "last", arguments) for _ in range(tasks)]
        waiting = [asyncio.create_task(handle.result()) for handle in handles]
        answer_parent()
        await asyncio.gather(*waiting)


if __name__ == "__main__":
    url, tasks, arguments = sys.argv[1:]
    asyncio.run(watch(url, int(tasks), json.loads(arguments)))
