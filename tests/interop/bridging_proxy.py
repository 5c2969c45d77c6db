"""A proxy that bridges the eras, before one server::

    python -m tests.interop.bridging_proxy trio http://127.0.0.1:8000/mcp

Otherwise it runs as ``mcp-tasks proxy`` does.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from mcp_tasks_adapters import RequestFacts, asyncio_h11, trio_h11
from mcp_tasks_adapters.cli.serve import Endpoint, run_endpoint
from mcp_tasks_adapters.proxy import Caller, HttpUpstream, Proxy

from mcp_tasks_proto.proxy import Access, InputKind

__all__ = ["main"]


def caller(facts: RequestFacts) -> Caller:
    """Return who calls: whoever says a name. Nobody else has one."""
    return Caller(facts.headers.get("x-user"), Access())


def main(loop: str, url: str) -> None:
    """Run one."""
    proxy = Proxy(
        [HttpUpstream(name="farm", url=url)],
        authenticate=caller,
        instructions="Ask for anything.",
        bridging=True,
        input_kinds=frozenset(InputKind),
    )
    serve_proxy: Any = {"trio": trio_h11.serve_proxy, "asyncio": asyncio_h11.serve_proxy}[loop]
    run_endpoint(partial(serve_proxy, proxy), Endpoint(), loop=loop, notice=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
