"""A campaign from its process to its line in the ledger, with a fuzzer that does as it is told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fuzz import campaign, desk, ledger, revision

FUZZER = r"""
import sys
from contextlib import nullcontext
from pathlib import Path
from time import time_ns


def instrument_imports(include):
    return nullcontext()


def Setup(words, check):
    global given, examine
    given, examine = words, check


def Fuzz():
    for number in range(5):
        examine(b"line\n")
    print("#5\tINITED cov: 17 ft: 21 corp: 3/12b lim: 4 exec/s: 0 rss: 40Mb", file=sys.stderr)
    prefix = next(word for word in given if word.startswith("-artifact_prefix=")).partition("=")[2]
    {ending}
"""
FINDS = "Path(prefix + 'crash-1').write_bytes(b'found'); sys.exit(77)"
BREAKS = "sys.exit(1)"
ENDS = "sys.exit(0)"
KEEPS = (
    "folders = [Path(word) for word in given[1:] if not word.startswith('-')];"
    "known = [file for folder in folders[:-1] for file in folder.iterdir()];"
    "(folders[0] / f'{time_ns()} {len(known)}').write_bytes(b'line'); sys.exit(0)"
)
IS_PATIENT = (
    "patience = [word.partition('=')[2] for word in given if word.startswith(('-timeout', '-report_slow'))];"
    "sys.exit(len(patience) != 2 or len(set(patience)) != 1)"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have nothing written but here."""
    for module in (campaign, desk):
        monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.setattr(ledger, "CAMPAIGNS", tmp_path / "campaigns")
    others = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *([others] if others else [])]))
    return tmp_path


def run(folder: Path, ending: str, *, from_seeds: bool = False) -> int:
    """Run a campaign whose fuzzer ends in this way."""
    (folder / "atheris.py").write_text(FUZZER.replace("{ending}", ending))
    return desk.run_campaigns(["lines"], seconds=60, jobs=1, recorded=True, from_seeds=from_seeds)


def test_an_input_is_not_slow_before_it_is_one_that_does_not_end(folder: Path) -> None:
    """A machine that is busy makes no finding."""
    assert run(folder, IS_PATIENT) == 0


def test_a_campaign_goes_on_from_all_that_was_kept_or_from_the_seeds_alone(folder: Path) -> None:
    known = []
    for from_seeds in (False, False, True, False, True):
        before = kept_by_campaigns(folder)
        assert run(folder, KEEPS, from_seeds=from_seeds) == 0
        (new,) = kept_by_campaigns(folder) - before
        known.append(new.partition(" ")[2])
    assert known == ["0", "1", "0", "3", "0"]


def kept_by_campaigns(folder: Path) -> set[str]:
    """Return the names of all inputs that were kept."""
    return {path.name for path in (folder / "work" / "lines").glob("corpus*/*")}


def test_a_campaign_is_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, ENDS) == 0
    _, line = (folder / "campaigns" / "lines.txt").read_text().splitlines()
    assert line.split()[2:6] == ["5", "17", "3", "0"]
    assert "5 executions, 17 edges" in capsys.readouterr().out


def test_what_is_recorded_is_the_commit_that_was_there_when_it_began(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = iter(["0a0a0a0a", "1b1b1b1b"])
    monkeypatch.setattr(revision, "_git", lambda *words: next(commits) if "HEAD" in words else "")
    assert run(folder, ENDS) == 0
    _, line = (folder / "campaigns" / "lines.txt").read_text().splitlines()
    assert line.split()[0] == "0a0a0a0a"
    assert next(commits) == "1b1b1b1b"


def test_what_a_fuzzer_finds_is_told_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, FINDS) == 1
    assert (folder / "campaigns" / "lines.txt").read_text().splitlines()[1].split()[5] == "1"
    said, last = capsys.readouterr().out.split("To be looked at:")
    assert "FOUND: not to be seen again" in said
    told, command = last.strip().splitlines()
    assert told.startswith("lines: FOUND: not to be seen again")
    printing = command.partition("lines: ")[2].partition(" > ")[0]
    assert subprocess.check_output(printing, shell=True) == b"found"


def test_a_campaign_that_cannot_be_kept_anywhere_is_told_and_ends_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "atheris.py").write_text(FUZZER.replace("{ending}", ENDS))
    (folder / "work").mkdir()
    (folder / "work" / "jsonrpc").touch()
    (folder / "campaigns").touch()
    assert desk.run_campaigns(["jsonrpc", "lines"], seconds=60, jobs=1, recorded=True) == 1
    said = capsys.readouterr().out
    assert f"jsonrpc: DID NOT BEGIN: {folder / 'work' / 'jsonrpc' / 'corpus'}: Not a directory" in said
    assert "5 executions, 17 edges" in said
    assert f"NOT RECORDED: {folder / 'campaigns'}" in said


def test_a_fuzzer_that_breaks_down_is_no_campaign(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, BREAKS) == 1
    assert not (folder / "campaigns").exists()
    assert "BROKE DOWN: its process ended with 1" in capsys.readouterr().out
