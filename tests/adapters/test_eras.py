"""Every client of ours with every server of ours, on both transports and loops (LEG.1, LEG.3, LEG.9, NEG.9).

What should come of each pair is the compatibility matrix of the specification's versioning page, with tasks
where both sides have them. ``docs/eras.md`` shows what came of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from docs.generate import RUN_PAGES
from tests.adapters.era_matrix import CLIENTS, LOOPS, SERVERS, TRANSPORTS, Cell, ClientEra, cell

DOCS: Final = Path(__file__).parents[2] / "docs"

REFUSED: Final = (
    "no session with the server: Unsupported protocol version; this server speaks 2026-07-28 (-32022)"
)
NO_TASKS: Final = (
    "Method not found: tools/call of archive without a task: it runs only as one, and clients of 2025-11-25 "
    "have none here; those of 2026-07-28 may"
)

MODERN: Final = Cell(era="modern", outcomes=("result", "task", "task"))
EXPECTED: Final[dict[tuple[ClientEra, str], Cell]] = {
    **{("modern", server): MODERN for server in SERVERS},
    **{("dual", server): MODERN for server in SERVERS},
    ("legacy", "refuse"): Cell(era=None, outcomes=(REFUSED, REFUSED, REFUSED)),
    ("legacy", "ignore"): Cell(era="legacy", outcomes=("result", "result", NO_TASKS)),
    ("legacy", "serve"): Cell(era="legacy", outcomes=("result", "task", "task")),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_leg9_each_client_with_each_server(client: ClientEra, server: str, transport: str, loop: str) -> None:
    assert cell(client, server, transport, loop) == EXPECTED[client, server]


@pytest.mark.parametrize("name", RUN_PAGES)
def test_the_page_shows_what_the_run_gave(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == RUN_PAGES[name](), "run `make docs`"
