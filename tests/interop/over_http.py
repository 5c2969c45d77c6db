"""Serving somebody else's ASGI application the way ``mcp-tasks serve`` serves ours."""

# mypy: disable-error-code="import-not-found"
# Where this runs has uvicorn; where it is checked need not.

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn

__all__ = ["serve_over_http"]


def serve_over_http(app: Any, *, path: str = "/mcp") -> None:
    """Serve on a free port until told to stop; say "listening on URL" on stderr first.

    The socket listens already when that is said, so whoever connects then will be answered.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}{path}", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, access_log=False, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
