"""Golden traces: each file beside this one is a story, and the engine must tell its part word for word.

The complete list of effects of every step is compared, so an effect that nobody expected fails as one that is
missing does. ``pytest tests/traces --update-traces`` writes the engine's lines anew; read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from mcp_tasks_proto.testing.traces import play

TRACES: Final = sorted(Path(__file__).parent.glob("*.txt"))

SERVER_TRAPS: Final = {*range(1, 9), *range(11, 16), 30}
"""The traps that a server falls into; of others, traces show the server's side."""

PROXY_TRAPS: Final = {*range(25, 30)}
"""The traps that a proxy falls into."""


@pytest.mark.parametrize("path", TRACES, ids=[path.stem for path in TRACES])
def test_trace(path: Path, pytestconfig: pytest.Config) -> None:
    text = path.read_text(encoding="utf-8")
    played = play(text)
    if pytestconfig.getoption("--update-traces"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == text


@pytest.mark.parametrize("path", TRACES, ids=[path.stem for path in TRACES])
def test_a_trace_says_what_it_is_about(path: Path) -> None:
    """A title, then a paragraph that begins with the rules behind it; a trap is named by its number."""
    title, blank, why, *_ = path.read_text(encoding="utf-8").splitlines()
    assert title
    assert blank == ""
    assert re.match(r"([A-Z]+\.\d+(, |\. ))+[A-Z`]", why)
    named = re.match(r"trap-(\d+)-", path.name)
    assert (named is not None) is title.startswith("Trap ")
    assert named is None or title.startswith(f"Trap {int(named[1])}: ")


def test_every_trap_of_a_server_or_a_proxy_has_a_trace() -> None:
    traced = {int(found[1]) for path in TRACES if (found := re.match(r"trap-(\d+)-", path.name))}
    assert traced >= SERVER_TRAPS | PROXY_TRAPS
