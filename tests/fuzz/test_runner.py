"""The runner: what it says, and how a finding is made short."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import __main__ as command
from fuzz import desk, ledger, paths
from fuzz.findings import Finding, examine, minimise
from fuzz.pieces import ways_to_cut
from fuzz.script import Choices, perform
from fuzz.targets import TARGETS


def objects_to_needles(data: bytes) -> None:
    if data.count(b"needle") > 1:
        raise ValueError("two needles")
    assert b"\0" not in data, "a zero"


def test_without_words_the_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    told = capsys.readouterr().out
    assert all(target in told for target in TARGETS)


def test_without_a_fuzzer_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main(["jsonrpc", "--seconds", "1"]) == 2
    told = capsys.readouterr().err
    assert "3.11, 3.12 and 3.13" in told
    assert "--replay" in told
    assert command.main(["--all", "--where-possible"]) == 0


def test_an_unknown_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["jsonrcp"])
    assert "jsonrpc" in capsys.readouterr().err


def test_a_replay_tells_which_file_shows_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(desk, "load", lambda target: objects_to_needles)
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"needle")
    bad.write_bytes(b"a needle, and a needle")
    assert command.main(["--replay", "jsonrpc", str(good)]) == 0
    assert command.main(["--replay", "jsonrpc", str(good), str(bad)]) == 1
    told = capsys.readouterr().out
    assert f"{bad}: ValueError: two needles" in told
    assert "tests/fuzz/test_runner.py:" in told
    assert str(good) not in told


def test_a_target_that_lacks_a_package_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lack(target: str) -> None:
        raise ModuleNotFoundError("no", name="mcp_types")

    monkeypatch.setattr(desk, "load", lack)
    assert command.main(["--replay", "codec"]) == 2
    assert "mcp_types" in capsys.readouterr().out


def test_a_finding_is_minimised_to_what_shows_the_same_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(desk, "load", lambda target: objects_to_needles)
    monkeypatch.setattr(desk, "WORK", tmp_path)
    found = tmp_path / "crash-1"
    found.write_bytes(b"hay needle\0 hay" * 9)
    assert command.main(["--minimise", "lines", str(found)]) == 1
    kept = tmp_path / "lines" / "crash-1.shortest"
    assert kept.read_bytes() == b"needleneedle"
    assert f"python -m fuzz --replay lines {kept}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lines", "some.file"], "say --replay or --minimise"),
        (["--minimise", "lines"], "takes a target and one file"),
        (["lines", "--all"], "leave it out, or lines"),
        (["lines", "--jobs", "0"], "0 is no number from 1 on"),
        (["lines", "--seconds", "-3"], "--seconds"),
        (["lines", "--minutes", "soon"], "soon is no number"),
        (["lines", "--minutes", "nan"], "nan is less than a second, or no time at all"),
        (["lines", "--minutes", "0.001"], "0.001 is less than a second, or no time at all"),
    ],
)
def test_what_was_typed_is_refused_before_anything_begins(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_files_that_cannot_be_read_are_named_and_the_others_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(desk, "load", lambda target: objects_to_needles)
    (tmp_path / "found").write_bytes(b"\0")
    gone = tmp_path / "gone"
    assert command.main(["--replay", "lines", str(gone), str(tmp_path), str(tmp_path / "found")]) == 2
    said = capsys.readouterr().out
    assert "lines: 1 input, 1 finding\n" in said
    assert f"not replayed: {gone}: No such file or directory" in said
    assert f"not replayed: {tmp_path}: Is a directory" in said
    assert command.main(["--minimise", "lines", str(gone)]) == 2
    assert f"lines: not minimised: {gone}: No such file or directory" in capsys.readouterr().out


def test_a_target_without_seeds_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (desk, paths):
        monkeypatch.setattr(module, "SEEDS", tmp_path)
    assert command.main(["--replay", "lines"]) == 2
    assert f"not replayed: there is nothing in {tmp_path / 'lines'}" in capsys.readouterr().out


def test_what_was_minimised_is_told_though_it_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(desk, "load", lambda target: objects_to_needles)
    monkeypatch.setattr(desk, "WORK", tmp_path / "found")
    (tmp_path / "found").write_bytes(b"hay\0hay")
    assert command.main(["--minimise", "lines", str(tmp_path / "found")]) == 2
    said = capsys.readouterr().out
    assert r"from 7 bytes to 1: b'\x00'" in said
    assert f"not kept: {tmp_path / 'found' / 'lines'}: Not a directory" in said


def test_minimising_keeps_to_one_fault() -> None:
    assert minimise(objects_to_needles, b"xx\0yy") == b"\0"


def test_faults_are_told_apart_by_exception_and_place() -> None:
    zero, needles = (examine(objects_to_needles, data) for data in (b"\0", b"needleneedle"))
    assert isinstance(zero, Finding)
    assert zero.is_like(examine(objects_to_needles, b"\0\0"))
    assert not zero.is_like(needles)
    assert not zero.is_like(None)


def test_every_way_to_cut_gives_the_same_bytes() -> None:
    data = bytes(range(256))
    ways = list(ways_to_cut(data))
    assert len(ways) == 3
    assert {b"".join(pieces) for pieces in ways} == {data}


def test_any_bytes_are_a_script() -> None:
    said: list[str] = []
    operations = {
        "a": lambda world, choices: world.append(f"a{choices.of([1, 2])}{choices.of('xyz')}"),
        "b": lambda world, choices: world.append("b"),
    }
    perform(said, operations, b"a0a1a3\x00\x01\xff\xffb")
    assert said == ["a1x", "a2x", "a2y", "a2x", "b"]


def test_choices_are_those_of_the_byte() -> None:
    choices = Choices(5)
    assert [choices.of([0, 1]), choices.of([0, 1]), choices.of([0, 1]), choices.of([0, 1])] == [1, 0, 1, 0]


def test_minutes_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "CAMPAIGNS", tmp_path)
    assert ledger.cpu_minutes("lines") == 0
    (tmp_path / "lines.txt").write_text("header\na 3.11.7 10 5 3 0 1.5\nb 3.11.7 10 5 3 0 2.0\n")
    assert ledger.cpu_minutes("lines") == 3.5
