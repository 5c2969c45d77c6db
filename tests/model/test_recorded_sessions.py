"""Any session of a server is the same again when its recording is replayed, in whichever process.

Sessions are those of :mod:`tests.model.test_server_machine`: callers, workers, a store that answers late,
fails or meets conflicts, crashes between any two effects, time that jumps. Each process of them is one
recording.
"""

from __future__ import annotations

import os
import subprocess
import sys
from json import dumps
from pathlib import Path
from typing import Any, Final

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from mcp_tasks_proto import Limits, RemoteProtocolError, ServerEngine
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.testing import Recorder, ServerHost, replay
from mcp_tasks_proto.testing.strategies import messages
from mcp_tasks_proto.wire.jsonrpc import decode
from tests.model.server_world import SETTINGS, TOOLS, World
from tests.model.test_server_machine import ServerMachine

ROOT: Final = Path(__file__).parents[2]
REPLAY: Final = """
import sys
from pathlib import Path

from mcp_tasks_proto.testing import replay

for path in sorted(Path(sys.argv[1]).iterdir()):
    with path.open(encoding="ascii") as lines:
        found = replay(lines)
    if not found.same:
        sys.exit("\\n".join(found.describe()))
    print(path.name, found.inputs)
"""
"""What a process of its own does with a folder of recordings."""


@define(eq=False)
class RecordedWorld(World):
    """A world whose every process is recorded."""

    recordings: list[list[str]] = field(init=False, factory=list)

    def make_engine(self) -> Any:
        self.recordings.append([])
        return Recorder(World.make_engine(self), self.recordings[-1].append)


def machine(kept: list[list[str]]) -> type[ServerMachine]:
    """Return a machine that replays what it has lived through, and keeps it."""

    class Recorded(ServerMachine):
        def make_world(self) -> World:
            return RecordedWorld()

        def teardown(self) -> None:
            ServerMachine.teardown(self)
            if hasattr(self, "world"):
                assert isinstance(self.world, RecordedWorld)
                for lines in self.world.recordings:
                    found = replay(lines)
                    assert found.same, "\n".join(found.describe())
                    assert found.inputs == len(lines) - 1
                kept.extend(self.world.recordings)

    return Recorded


def replayed_under(hash_seed: str, folder: Path) -> list[str]:
    """Replay all recordings of a folder in a process of its own; return what it read."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", REPLAY, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_any_session_is_the_same_again_under_any_hash_seed(tmp_path: Path) -> None:
    kept: list[list[str]] = []
    run_state_machine_as_test(
        machine(kept), settings=settings(max_examples=30, stateful_step_count=30, deadline=None)
    )
    assert len(kept) > 30, "crashes included"
    for number, lines in enumerate(kept):
        (tmp_path / f"{number:04}.jsonl").write_text("\n".join(lines), encoding="ascii")
    first, second = replayed_under("1", tmp_path), replayed_under("4711", tmp_path)
    assert first == second
    assert len(first) == len(kept)


def is_let_in(message: Any) -> bool:
    """Whether a codec lets a peer say this at all (WIRE.2)."""
    try:
        decode(dumps(message).encode("utf-8", "surrogatepass"), Limits())
    except RemoteProtocolError:
        return False
    return True


@settings(max_examples=20)
@given(said=st.lists(messages().filter(is_let_in), max_size=6), both_eras=st.booleans())
def test_whatever_peers_say_is_the_same_again(said: list[Any], both_eras: bool) -> None:
    lines: list[str] = []
    engine = DualEraServer if both_eras else ServerEngine
    host = ServerHost(engine=Recorder(engine(settings=SETTINGS, tools=TOOLS), lines.append))
    for message in said:
        host.send(message, principal="ada", connection="pipe")
        host.advance(700)
    found = replay(lines)
    assert found.same, "\n".join(found.describe())
    assert found.inputs >= len(said)
