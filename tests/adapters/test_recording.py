"""``--record`` and ``mcp-tasks replay``: what runs is recorded into a file, and lived through again."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import stat
import subprocess
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from mcp_tasks_adapters.cli import recording
from mcp_tasks_adapters.cli.client.arguments import InputError
from mcp_tasks_adapters.cli.client.place import recording as recording_client
from mcp_tasks_adapters.cli.commands import mcp_tasks
from mcp_tasks_adapters.cli.recording import RecordingError, RecordingFile, recording_into
from mcp_tasks_adapters.toolkit import Server

from mcp_tasks_proto import TimePassed
from mcp_tasks_proto.proxy import ProxyEngine
from mcp_tasks_proto.testing import Recorder
from mcp_tasks_proto.testing.recordings import LINE_BYTES
from tests.adapters.cli_client_harness import MCP_TASKS
from tests.adapters.cli_client_harness import run as run_client
from tests.adapters.driver_harness import World, logged, on_both_loops
from tests.adapters.test_cli_proxy import FARM, TOKEN, running
from tests.traces.sessions import live
from tests.unit.proxy_world import make_settings
from tests.unit.world import make_engine

CALLERS: Final = """
[[caller]]
token_sha256 = "{digest}"
principal = "alice"
"""


def replayed(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(mcp_tasks, ["replay", *arguments], input=stdin)


def written(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return str(path)


@pytest.fixture
def same(tmp_path: Path) -> str:
    """A recording of a requester."""
    return written(tmp_path / "same.jsonl", live("requester"))


@pytest.fixture
def different(tmp_path: Path) -> str:
    """One with a difference in its third line."""
    lines = live("requester")
    line = json.loads(lines[2])
    line["effects"][0]["message"]["method"] = "tools/\u202elist"
    return written(tmp_path / "different.jsonl", [*lines[:2], json.dumps(line), *lines[3:]])


# -- replay --------------------------------------------------------------------------------------------------


def test_says_that_an_engine_did_the_same(same: str) -> None:
    ran = replayed(same)
    assert ran.exit_code == 0
    assert ran.output.startswith(f"{same}: ")
    assert ran.output.endswith("inputs of a requester: the same effects\n")


def test_says_where_it_did_something_else(different: str) -> None:
    ran = replayed(different, "--width", "40")
    assert ran.exit_code == 1
    first, line, effect, member, *_ = ran.output.splitlines()
    assert first.endswith("different from line 3 on")
    assert line.startswith("  line 3, at 1700000000000: {")
    assert effect == "    effect 1 SendRequest: changed (recorded -> now)"
    assert member == '      message.method: "tools/\\u202elist" -> "tools/call"', "no command for a terminal"


def test_the_worst_of_several_is_the_exit_code(same: str, different: str, tmp_path: Path) -> None:
    assert replayed(same, different, same).exit_code == 1
    garbage = written(tmp_path / "garbage.jsonl", ["garbage"])
    ran = replayed(same, garbage, different)
    assert ran.exit_code == 2
    assert "line 1 cannot be read: it is not JSON" in ran.output
    assert "a recording, as --record writes it, begins with how its engine was made" in ran.output
    assert "different from line 3 on" in ran.output


def test_reads_from_stdin_and_tells_in_json(different: str) -> None:
    ran = replayed("-", "--json", "--most", "1", stdin=Path(different).read_bytes())
    assert ran.exit_code == 1
    told = json.loads(ran.output)
    assert (told["file"], told["same"], told["stopped"]) == ("-", False, True)
    assert [one["line"] for one in told["differences"]] == [3]


def test_sec2_a_file_cannot_command_a_terminal(tmp_path: Path) -> None:
    """Whoever sends a recording may have written anything into it."""
    lines = live("requester")
    line = json.loads(lines[2])
    line["effects"][0]["message"]["params\x1b[2J\n  "] = "a  b"
    ran = replayed(written(tmp_path / "a.jsonl", [*lines[:2], json.dumps(line), *lines[3:]]))
    assert ran.exit_code == 1
    assert '      message.params\\u001b[2J\\n  : "a  b" -> (absent)' in ran.output.splitlines()
    garbage = written(tmp_path / "b.jsonl", [lines[0], '{"end": "\\u001b[2J"}'])
    assert "the recording ends: \\u001b[2J" in replayed(garbage).output


def test_says_that_a_file_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        ran = replayed(str(path))
        assert ran.exit_code == 2
        assert ran.output.splitlines()[1].startswith("  it cannot be read: ")
    assert replayed().exit_code == 2


def test_says_that_nothing_can_be_written(same: str) -> None:
    """And does not end as where an engine did something else."""
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [*MCP_TASKS, "replay", same], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (
        2,
        "Error: what was found cannot be written: No space left on device.\n",
    )


def test_lim3_a_file_may_have_no_line_at_all(tmp_path: Path) -> None:
    """And be as long as it likes: no more than a line is read at a time."""
    path = tmp_path / "zeros"
    with path.open("wb") as file:
        file.truncate(LINE_BYTES + 3)
    ran = replayed(str(path))
    assert ran.exit_code == 2
    assert f"it is longer than {LINE_BYTES} bytes" in ran.output


def test_is_listed_with_the_other_commands() -> None:
    listed = CliRunner().invoke(mcp_tasks, ["--help"]).output
    assert "replay" in listed
    for command in ("serve", "proxy", "call"):
        text = CliRunner().invoke(mcp_tasks, [command, "--help"]).output
        assert "--record FILE" in text
        assert "arguments" in text[text.index("--record FILE") :], "it says what a recording holds"


# -- the file ------------------------------------------------------------------------------------------------


def test_sec2_a_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    before = os.umask(0)
    try:
        with recording_into(str(path)) as record:
            assert record is not None
            Recorder(make_engine(), record)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text().splitlines()[-1]) == {"end": "the process has ended"}


def test_a_recording_is_never_written_over(same: str) -> None:
    before = Path(same).read_bytes()
    with pytest.raises(RecordingError, match="already"):
        RecordingFile(same)
    assert Path(same).read_bytes() == before


def test_sec2_a_recording_follows_no_link(tmp_path: Path) -> None:
    """Nor does it wait for whoever reads a pipe."""
    link, pipe = tmp_path / "link.jsonl", tmp_path / "pipe.jsonl"
    link.symlink_to(tmp_path / "elsewhere.jsonl")
    os.mkfifo(pipe)
    for path in (link, pipe):
        with pytest.raises(RecordingError, match="already"):
            RecordingFile(str(path))
    assert not (tmp_path / "elsewhere.jsonl").exists()


def test_says_that_there_can_be_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"cannot write .*: No such file"):
        RecordingFile(str(tmp_path / "none" / "x.jsonl"))
    for command in (["serve", "nothing.py:server"], ["proxy", "--upstream", "http://127.0.0.1:1/"]):
        (tmp_path / "nothing.py").write_text(FARM)
        words = [word.replace("nothing", str(tmp_path / "nothing")) for word in command]
        ran = CliRunner().invoke(mcp_tasks, [*words, "--record", str(tmp_path)])
        assert ran.exit_code == 1
        assert "Error: --record: there is a" in ran.output
    with pytest.raises(InputError, match="--record: there is a"), recording_client(str(tmp_path)):
        pass


def test_a_file_to_which_nothing_was_written_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    file = RecordingFile(str(path))
    file.close()
    file.close()
    assert not path.exists()
    assert not file.take("late")
    gone = RecordingFile(str(path))
    path.unlink()
    gone.close()


def test_lim3_a_recording_has_a_limit_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "new.jsonl"
    lines = live("server")
    with recording_into(str(path), most_bytes=20_000) as record:
        assert record is not None
        taken = [record(line) for line in lines]
    assert path.stat().st_size <= 20_000
    assert taken.count(True) == taken.index(False), "and nothing after it"
    assert json.loads(path.read_text().splitlines()[-1]) == {"end": "its limit of 20000 bytes was reached"}
    ran = replayed(str(path))
    assert ran.exit_code == 0
    assert "the recording ends: its limit of 20000 bytes was reached" in ran.output
    assert [one.getMessage() for one in caplog.records] == ["the recording has reached its limit, and ends"]


def test_a_full_disk_ends_a_recording_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class NearlyFull(FileIO):
        """Has room for ten bytes."""

        left = 10

        def write(self, data: Any) -> int:
            if not NearlyFull.left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done = super().write(bytes(data)[: NearlyFull.left])
            NearlyFull.left -= done
            return done

    monkeypatch.setattr(recording, "FileIO", NearlyFull)
    path = tmp_path / "new.jsonl"
    with recording_into(str(path)) as record:
        assert record is not None
        recorder = Recorder(ProxyEngine(settings=make_settings()), record)
        assert recorder.handle(TimePassed(), now=1).deadline is not None
        assert record("late") is False
    assert path.stat().st_size == 10
    assert [one.getMessage() for one in caplog.records] == [
        "the recording cannot be written, and ends: No space left on device"
    ]


def test_who_does_not_record_has_no_file() -> None:
    with recording_into(None) as record:
        assert record is None


# -- what runs -----------------------------------------------------------------------------------------------


@on_both_loops
async def test_a_driver_that_is_recorded_does_the_same(world: World) -> None:
    """A function that records and fails is logged once, and changes nothing (LIM.3)."""
    server = Server("farm", legacy="serve")

    @server.tool()
    async def say(call: Any) -> str:
        return "hello"

    lines: list[str] = []

    def record(line: str) -> bool:
        lines.append(line)
        if len(lines) == 4:
            raise RuntimeError("a bug in somebody's function")
        return True

    server.record = record
    with logged() as said:
        world.serve(server)
        for _ in range(3):
            called = await world.call("say")
            assert called.result["content"] == [{"type": "text", "text": "hello"}]
    assert len(lines) == 4
    assert len(said) == 1
    assert "a record= function failed, and nothing more is recorded" in said[0]
    assert "somebody's" not in said[0]


def test_what_ran_is_the_same_again(tmp_path: Path) -> None:
    """A server that is killed, a proxy before it, a client: real processes, and a token that none of them
    writes down (SEC.2)."""
    (tmp_path / "farm.py").write_text(FARM, encoding="utf-8")
    callers = tmp_path / "callers.toml"
    callers.write_text(CALLERS.format(digest=sha256(TOKEN.encode()).hexdigest()), encoding="utf-8")
    paths = {name: tmp_path / f"{name}.jsonl" for name in ("server", "proxy", "client")}
    farm = f"{tmp_path / 'farm.py'}:server"
    with (
        running("serve", farm, "--store", "memory:", "--record", str(paths["server"])) as served,
        running(
            "proxy", "--upstream", served.url, "--callers", str(callers), "--record", str(paths["proxy"])
        ) as proxied,
    ):
        header = f"Authorization: Bearer {TOKEN}"
        answer = ["--answer", "sure=accept", "--record", str(paths["client"])]
        called = run_client("call", proxied.url, "publish", "--header", header, *answer)
        assert (called.code, called.out) == (0, "Published.\n"), called.err
        assert proxied.end(signal.SIGTERM)[0] == 0
        served.process.kill()
    ran = replayed(*map(str, paths.values()))
    assert ran.exit_code == 0, ran.output
    for name, path in paths.items():
        text = path.read_text(encoding="ascii")
        assert text.count("\n") > 5
        assert TOKEN not in text
        assert ('{"end": "the process has ended"}' in text) is (name != "server"), "killed"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_server_on_stdio_and_its_client_are_the_same_again(tmp_path: Path) -> None:
    """A connection, a report of a worker: what is a name here is no JSON."""
    (tmp_path / "farm.py").write_text(FARM, encoding="utf-8")
    mine, its = tmp_path / "client.jsonl", tmp_path / "server.jsonl"
    server = [*MCP_TASKS, "serve", f"{tmp_path / 'farm.py'}:server", "--stdio", "--record", str(its)]
    # Which era it is of need not be found out: a server that starts slowly would be taken for a legacy one.
    words = ["call", "--stdio", shlex.join(server), "--era", "modern", "publish", "--answer", "sure=accept"]
    called = run_client(*words, "--record", str(mine))
    assert called.code == 0, called.err
    assert '"of": "StdioConnection"' in its.read_text()
    assert '"of": "Report"' in its.read_text()
    ran = replayed(str(mine), str(its))
    assert ran.exit_code == 0, ran.output
