"""A proxy on stdio, bridging, before one server: ``python -m tests.adapters.stdio_proxy trio URL``."""

from __future__ import annotations

import asyncio
import sys

import trio
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.proxy import HttpUpstream, Proxy

from tests.adapters.proxy_harness import EAGER

if __name__ == "__main__":
    loop, url = sys.argv[1:]
    proxy = Proxy([HttpUpstream(name="farm", url=url)], proxy_limits=EAGER, bridging=True)
    if loop == "trio":
        trio.run(trio_h11.serve_proxy_stdio, proxy)
    else:
        asyncio.run(asyncio_h11.serve_proxy_stdio(proxy))
