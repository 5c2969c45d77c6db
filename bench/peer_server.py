"""The peer: the same tool on fastmcp with fastmcp-tasks, under uvicorn with h11.

It runs in an environment of its own (``peers.py`` makes it) and knows nothing of this project.
"""

from __future__ import annotations

import socket

import uvicorn
from fastmcp import FastMCP  # type: ignore[import-not-found]
from fastmcp_tasks import TasksExtension  # type: ignore[import-not-found]

from bench.lifeline import end_with_parent

__all__ = ["server"]

server = FastMCP("bench", version="1.0")
server.add_extension(TasksExtension())


@server.tool(task=True, description="Say hello", output_schema=None)  # type: ignore[untyped-decorator]
async def hello() -> str:
    """Complete at once; whoever declares tasks gets a task."""
    return "hello"


if __name__ == "__main__":
    end_with_parent()
    # Plain JSON replies without sessions, and no access log: the fastest it can be asked to be.
    app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(app, http="h11", loop="asyncio", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])
