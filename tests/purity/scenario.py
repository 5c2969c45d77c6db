"""Busy days of every engine, printed: run by ``test_determinism.py`` under different hash seeds.

They go where order could leak in: many tasks on one stream, several keys at once, several principals,
expiry of many at the same moment, an end with many streams open.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from tests.purity.busy_proxies import proxy, proxy_of_both_eras
from tests.purity.busy_requesters import requester, requester_of_both_eras
from tests.purity.busy_servers import server, server_of_both_eras
from tests.purity.writing_down import Begin, beginning

DAYS: Final[Mapping[str, Callable[[Begin], None]]] = {
    "server": server,
    "server-of-both-eras": server_of_both_eras,
    "requester": requester,
    "requester-of-both-eras": requester_of_both_eras,
    "proxy": proxy,
    "proxy-of-both-eras": proxy_of_both_eras,
}

if __name__ == "__main__":
    for name, live in DAYS.items():
        lines: list[str] = []
        live(beginning(lines, by_hash="by-hash" in sys.argv))
        for line in lines:
            print(name, line)
