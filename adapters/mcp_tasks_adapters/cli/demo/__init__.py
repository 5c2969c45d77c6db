"""``mcp-tasks demo``: a server of its own, a client of its own, and every message between them.

With ``--proxy``, a proxy of its own stands between.
"""

from __future__ import annotations

from mcp_tasks_adapters.cli.demo.client import Client, UnexpectedError
from mcp_tasks_adapters.cli.demo.process import running_proxy, running_server
from mcp_tasks_adapters.cli.demo.proxied import CALLERS, tell_of_the_proxy
from mcp_tasks_adapters.cli.demo.screen import JsonScreen, RichScreen
from mcp_tasks_adapters.cli.demo.story import tell

__all__ = ["run_demo"]


def run_demo(*, loop: str, as_json: bool, proxy: bool = False) -> int:
    """Run the demo; return the exit code: 0 when every message was as expected, else 1."""
    screen = JsonScreen() if as_json else RichScreen()
    try:
        with running_server(loop) as server:
            if proxy:
                with running_proxy(loop, server, CALLERS) as proxied:
                    screen.opening(server.url, loop, proxied.url)
                    tell_of_the_proxy(screen, server, proxied.url)
            else:
                with Client(server.url, screen) as client:
                    screen.opening(server.url, loop)
                    tell(client, screen, server)
        screen.closing()
    except UnexpectedError as surprise:
        screen.failed(str(surprise))
        return 1
    return 0
