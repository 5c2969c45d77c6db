"""The proxy that is measured: before the server at PORT. ``python -m bench.proxied LOOP PORT``."""

from __future__ import annotations

import asyncio
import sys

import trio
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.collector import relax_collector
from mcp_tasks_adapters.proxy import HttpUpstream, Proxy

from bench.lifeline import end_with_parent
from bench.ours import MANY, say_ready
from mcp_tasks_proto.proxy import ProxyLimits


def before(port: str) -> Proxy:
    """Return a proxy before the server on a port of this machine."""
    upstream = HttpUpstream(name="bench", url=f"http://127.0.0.1:{port}/mcp")
    return Proxy([upstream], proxy_limits=ProxyLimits(tasks=MANY, tasks_per_principal=MANY))


if __name__ == "__main__":
    end_with_parent()
    relax_collector()  # as `mcp-tasks proxy` does
    match sys.argv[1]:
        case "trio":
            trio.run(lambda: trio_h11.serve_proxy(before(sys.argv[2]), ready=say_ready))
        case "asyncio":
            asyncio.run(asyncio_h11.serve_proxy(before(sys.argv[2]), ready=say_ready))
