"""Proxies to be killed: ``python -m tests.crash.proxy_lives LOOP FILE FARM PLAIN``.

For each line on standard input a new process serves a proxy over the same file, and tells its id and where it
listens. They are forked from this one, which has imported all they need: so a life begins in no time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import trio
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.proxy import HttpUpstream, Proxy, SqliteProxyStore
from mcp_tasks_adapters.stores.sealing import RecordKeys

from mcp_tasks_proto.proxy import ProxyLimits

PROMOTE_AFTER_MS = 20


def live(loop: str, file: str, farm: str, plain: str) -> None:
    """Serve until killed."""
    proxy = Proxy(
        [HttpUpstream(name="farm", url=farm, listen=False), HttpUpstream(name="plain", url=plain)],
        proxy_limits=ProxyLimits(tasks_per_principal=100_000, poll_floor_ms=1),
        promote_after_ms=PROMOTE_AFTER_MS,
    )
    store = SqliteProxyStore(file, keys=RecordKeys([bytes(32)]))

    def ready(url: str) -> None:
        print(os.getpid(), url, flush=True)

    if loop == "trio":
        trio.run(lambda: trio_h11.serve_proxy(proxy, store=store, ready=ready))
    else:
        asyncio.run(asyncio_h11.serve_proxy(proxy, store=store, ready=ready))


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who is killed leaves nothing behind
    while sys.stdin.readline():
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            live(*sys.argv[1:])
