"""A server in a process of its own: ``python -m tests.adapters.node_process FILE LOOP``.

It has a tool whose work asks a question, saves a checkpoint and waits; and says on stdout, a line for each,
what its work comes to. ``create`` on stdin calls the tool, and the task's id is said. Until stdin ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Thread
from typing import Any

from mcp_tasks_adapters.stores import SqliteStore
from mcp_tasks_adapters.toolkit import Server, TaskContext, ToolCall, elicit

from tests.adapters.loop_harness import Loop


def lasting_server(loop: Loop, say: Any) -> Server:
    """Return the server; ``say`` is told what the work comes to."""
    server = Server("farm")

    @server.tool(resumable=True)
    async def lasting(call: ToolCall) -> Any:
        async def run(task: TaskContext) -> Any:
            say(f"begins at {task.checkpointed}")
            try:
                if task.checkpointed is None:
                    answers = await task.request_input({"sure": elicit(message="Sure?")})
                    say(f"was told {'yes' if answers['sure'].accepted else 'no'}")
                    await task.checkpoint(1)
                    say("saved")
                await loop.event().wait()
            finally:
                say("told to stop" if task.cancelled else "stops")

        return call.task(run, ttl_ms=None)

    return server


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # a line at once, or not at all


def main(path: Path, name: str) -> None:
    loop = Loop(name)
    wanted: list[str] = []

    async def serve() -> None:
        async with loop.node(lasting_server(loop, say), SqliteStore(path, poll_ms=5)) as driver:
            say("ready")
            while "end" not in wanted:
                if wanted:
                    wanted.pop(0)
                    say(await loop.create(driver, "lasting"))
                await loop.pause()

    def read() -> None:
        for line in iter(sys.stdin.readline, ""):
            wanted.append(line.strip())
        wanted.append("end")

    Thread(target=read, daemon=True).start()
    loop.run(serve)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
