"""SIGHUP: the configuration of a running proxy is read anew (PRX.2)."""

from __future__ import annotations

import sys
from collections.abc import Callable

from mcp_tasks_adapters.cli.serve import ServeError
from mcp_tasks_adapters.proxy.config import ProxyConfig
from mcp_tasks_adapters.proxy.driver import Reconfigure
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.request_state import Sealer

__all__ = ["Reloading"]


class Reloading:
    """Puts another configuration in force, or says why not: a wrong one leaves the old one as it is."""

    def __init__(self, read: Callable[[], ProxyConfig], config: ProxyConfig, sealer: Sealer) -> None:
        """Take what reads the configuration, what it is now, and what seals ``requestState``: it stays."""
        self._read = read
        self._began_with = config.fixed
        self._sealer = sealer
        self._reconfigure: Reconfigure | None = None

    def running(self, reconfigure: Reconfigure) -> None:
        """Take what puts another declaration in force."""
        self._reconfigure = reconfigure

    def reload(self) -> None:
        """Read the configuration and put it in force. On the loop's thread, which waits meanwhile."""
        if self._reconfigure is None:
            return
        try:
            config = self._read()
            proxy = config.proxy(sealer=self._sealer)
        except Exception as error:
            # Whatever is wrong with a file, those who are served are not to notice.
            why = error if isinstance(error, ServeError | StoreError | ValueError) else describe(error)
            _say(f"{why}\nthe configuration before stays in force")
            return
        self._reconfigure(proxy)
        _say("the configuration is reloaded")
        waiting = [name for name, value in config.fixed.items() if value != self._began_with[name]]
        if waiting:
            tables = ", ".join(f"[{name}]" for name in waiting)
            _say(f"what has changed in {tables} takes a restart, and is not in force")


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
