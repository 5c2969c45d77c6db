"""How our servers compare with the peer: PyPI ``fastmcp`` and ``fastmcp-tasks`` under uvicorn with h11.

The same tool, the same requests, byte for byte; 32 keep-alive connections in a closed loop. The first run
makes an environment for the peer in ``.bench/peer``, unless FASTMCP_PYTHON names an interpreter that has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.clients import Client
from bench.harness import PROJECT, Figure, Options, ServerProcess, alternate, main, pin_load

__all__ = ["measure", "peer_python", "peer_server"]

LOOPS = ("trio", "asyncio")
TARGETS = {"get": 4.0, "create": 8.0}
REQUIREMENTS = ("fastmcp==4.1.4", "fastmcp-tasks==4.1.4", "uvicorn", "h11")


def measure(options: Options) -> Sequence[Figure]:
    """Return how many times as fast as the peer each loop is."""
    with ExitStack() as servers:
        peer = Client(servers.enter_context(peer_server()).port)
        ours = {
            loop: Client(servers.enter_context(ServerProcess("-m", "bench.ours", loop)).port)
            for loop in LOOPS
        }
        pin_load()
        return [
            figure for operation in TARGETS for figure in compare(operation, {**ours, "peer": peer}, options)
        ]


def compare(operation: str, clients: dict[str, Client], options: Options) -> Sequence[Figure]:
    """Measure one operation on every server in turn."""
    compared = alternate(
        {side: partial(client.rate, operation, options.seconds) for side, client in clients.items()},
        options.runs,
    )
    return [
        Figure(
            benchmark="peers",
            subject=f"{operation}, {loop}+h11 / fastmcp+uvicorn",
            value=compared.ratio(loop, "peer"),
            unit="x",
            at_least=TARGETS[operation],
            detail=f"{compared.median(loop):,.0f}/s / {compared.median('peer'):,.0f}/s",
        )
        for loop in LOOPS
    ]


def peer_server() -> ServerProcess:
    """Return the peer's server, not yet started."""
    return ServerProcess("-m", "bench.peer_server", python=peer_python())


def peer_python() -> Path:
    """Return the interpreter of the peer's environment, which is made if there is none."""
    if named := os.environ.get("FASTMCP_PYTHON"):
        return Path(named)
    home = PROJECT / ".bench" / "peer"
    python = home / "bin" / "python"
    made = home / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS)
    if not made.exists() or made.read_text() != wanted:
        print(f"making the peer's environment in {home.relative_to(PROJECT)} ...", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *REQUIREMENTS], check=True)
        made.write_text(wanted)
    return python


if __name__ == "__main__":
    main(measure, __doc__, seconds=1.5)
