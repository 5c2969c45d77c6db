"""What may be typed, or stand in a file: arguments, answers, servers, headers of the client commands."""

from __future__ import annotations

import io
import json
import re
import stat
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_tasks_adapters.cli.client.arguments import InputError, read_arguments, read_object
from mcp_tasks_adapters.cli.client.place import Place, read_headers, tracing
from mcp_tasks_adapters.cli.client.prepared import PreparedAnswers
from mcp_tasks_adapters.cli.client.reference_file import ReferenceFile
from mcp_tasks_adapters.client import TraceEntry

from mcp_tasks_proto.requester import TaskReference

FORM: Final = {
    "method": "elicitation/create",
    "params": {
        "message": "Publish?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["accept", "wait"], "default": "wait"},
                "count": {"type": "integer", "default": "none"},
            },
        },
    },
}
VISIT: Final = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay.", "url": "https://pay.example/"},
}

CERTIFICATE: Final = Path(__file__).parent / "localhost.pem"
ACCEPTED: Final = {"action": "accept"}


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


# -- arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (['{"frames": 100}'], {"frames": 100}),
        ([' {"a": null}'], {"a": None}),
        (["scene=sunset", "frames:=100"], {"scene": "sunset", "frames": 100}),
        (["frames=100"], {"frames": "100"}),
        (["path=@home"], {"path": "@home"}),
        (["equation=a=b", "empty="], {"equation": "a=b", "empty": ""}),
        (['tags:=["a", "b"]', "on:=true"], {"tags": ["a", "b"], "on": True}),
    ],
)
def test_reads_arguments(words: list[str], arguments: dict[str, Any]) -> None:
    assert read_arguments(words) == arguments


def test_reads_arguments_from_a_file_and_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "arguments.json"
    file.write_text('{"frames": 7}', encoding="utf-8")
    assert read_arguments([f"@{file}"]) == {"frames": 7}
    stdin(monkeypatch, '{"frames": 8}')
    assert read_arguments(["-"]) == {"frames": 8}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["frames"], "'frames' is no argument: write name=text or name:=json"),
        (["=1"], "'=1' is no argument"),
        ([":=1"], "':=1' is no argument"),
        (["a=1", "a:=2"], "The argument 'a' is given twice."),
        (["a:=NaN"], "The argument 'a': Parse error: NaN and Infinity are not JSON."),
        (["a:=sunset"], "The argument 'a': Parse error: not JSON at character 0."),
        (["a:=sunset"], "A text is written a=text, without the colon."),
        (["{"], "ARGS: Parse error: not JSON at character 1."),
        (['{"a": 1, "a": 2}'], "ARGS: Parse error: an object has two members of the same name."),
        (["@absent.json"], "ARGS: cannot read absent.json: No such file or directory."),
    ],
)
def test_says_what_is_wrong_with_arguments(words: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)):
        read_arguments(words)


def test_only_an_object_is_an_object(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"ANSWERS in .*list\.json must be a JSON object\."):
        read_object(f"@{file}", "ANSWERS")


# -- answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "request_", "response"),
    [
        ('q={"count": 3}', FORM, {"action": "accept", "content": {"count": 3}}),
        ('q={"action": "wait"}', FORM, {"action": "accept", "content": {"action": "wait"}}),
        ('q={"action": "wait", "x": 3}', FORM, {"action": "accept", "content": {"action": "wait", "x": 3}}),
        ('q={"action": "accept", "x": 3}', FORM, {**ACCEPTED, "content": {"action": "accept", "x": 3}}),
        ('q={"action": "decline"}', FORM, {"action": "decline"}),
        ('q={"action": "accept", "content": {}}', FORM, {"action": "accept", "content": {}}),
        ("q=accept", FORM, {"action": "accept", "content": {"action": "wait"}}),
        ("q=decline", FORM, {"action": "decline"}),
        ('q="cancel"', FORM, {"action": "cancel"}),
        ("q=accept", VISIT, {"action": "accept"}),
        ("*=decline", VISIT, {"action": "decline"}),
    ],
)  # fmt: skip
def test_reads_prepared_answers(pair: str, request_: dict[str, Any], response: dict[str, Any]) -> None:
    assert PreparedAnswers.read([pair], None).take("q", request_) == response


def test_an_answer_is_for_its_key_and_that_of_the_star_for_all_others(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"a": "decline", "b": "decline", "unasked": "accept"}), encoding="utf-8")
    answers = PreparedAnswers.read(["b=cancel", "*=accept"], str(file))
    taken = [answers.take(key, VISIT) for key in ("a", "b", "c", "d")]
    assert [response and response["action"] for response in taken] == [
        "decline",
        "cancel",
        "accept",
        "accept",
    ]
    assert answers.unused == ["unasked"]


def test_a_question_without_an_answer_of_its_own_has_none() -> None:
    assert PreparedAnswers.read(["a=accept"], None).take("b", VISIT) is None


@pytest.mark.parametrize("pair", ['q={"count": "three"}', "q=7", 'q={"action": "later", "content": {}}'])
def test_a_prepared_answer_that_does_not_fit_is_never_sent(pair: str) -> None:
    """UPD.4: it is checked before; what the server would have made of it nobody finds out."""
    with pytest.raises(InputError, match="The prepared answer to 'q' does not fit: "):
        PreparedAnswers.read([pair], None).take("q", FORM)


@pytest.mark.parametrize(
    ("pairs", "complaint"),
    [
        (["q"], "--answer 'q': write KEY=JSON, or KEY= and one of accept, decline, cancel."),
        (["=accept"], "--answer '=accept': write KEY=JSON"),
        (["q=yes"], "The answer to 'q': Parse error"),
        (["q=accept", "q=cancel"], "--answer 'q' is given twice."),
    ],
)
def test_says_what_is_wrong_with_prepared_answers(pairs: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)):
        PreparedAnswers.read(pairs, None)


# -- servers, headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "task_id", "words"),
    [
        ("http://127.0.0.1:8000/mcp", "a1", "http://127.0.0.1:8000/mcp a1"),
        ("https://farm.example/mcp?a=1&b=2", "a:1", "'https://farm.example/mcp?a=1&b=2' a:1"),
        ("http://127.0.0.1:8000/mcp", "-a", "http://127.0.0.1:8000/mcp -a"),
        ("http://127.0.0.1:8000/mcp", "--a", "-- http://127.0.0.1:8000/mcp --a"),
        ("http://127.0.0.1:8000/mcp", "a; rm -r /", "http://127.0.0.1:8000/mcp 'a; rm -r /'"),
        ("stdio:python server.py", "--a", "--stdio 'python server.py' -- --a"),
    ],
)
def test_names_a_task_as_it_is_typed(endpoint: str, task_id: str, words: str) -> None:
    assert Place.of(endpoint, {}).words(task_id) == words


@pytest.mark.parametrize(
    ("endpoint", "headers", "complaint"),
    [
        ("localhost:8000/mcp", {}, "'localhost:8000/mcp' is no server: "),
        ("http://ann:secret@farm.example/", {}, "a URL must not hold credentials"),
        ("stdio:", {}, "--stdio needs the command that starts the server."),
        ("stdio:python 'server.py", {}, "--stdio: No closing quotation."),
        ("stdio:python server.py", {"Authorization": "x"}, "--header is for servers over HTTP."),
    ],
)
def test_says_what_is_wrong_with_a_server(endpoint: str, headers: dict[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)):
        Place.of(endpoint, headers)


@pytest.mark.parametrize(
    ("endpoint", "name", "complaint"),
    [
        ("https://farm.example/", "none.pem", "none.pem cannot be read: No such file"),
        ("https://farm.example/", "text", "text holds no certificates as PEM"),
        ("https://farm.example/", "empty", "empty holds no certificates as PEM"),
        ("stdio:python server.py", "text", "--ca-file is for servers over HTTP."),
    ],
)
def test_says_what_is_wrong_with_certificates(
    tmp_path: Path, endpoint: str, name: str, complaint: str
) -> None:
    (tmp_path / "text").write_text("-----BEGIN CERTIFICATE-----")
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match=re.escape(complaint)):
        Place.of(endpoint, {}, None, str(tmp_path / name))


def test_certificates_are_typed_again_to_go_on() -> None:
    words = Place.of("https://farm.example/", {}, "modern", str(CERTIFICATE)).words("t1")
    assert words == f"--era modern --ca-file {CERTIFICATE} https://farm.example/ t1"


def test_reads_headers() -> None:
    lines = ["Authorization: Bearer a:b", "X-Trace:7"]
    assert read_headers(lines) == {"Authorization": "Bearer a:b", "X-Trace": "7"}


@pytest.mark.parametrize(
    "line",
    [
        *("Bearer secret", ": secret", "Host: secret", "Mcp-Name: secret"),
        *(
            "A secret: x",
            "A: secret\r\nB: x",
            "A: secret\n\nsecret",
            "A: secret\0",
            "A: secret \u4e16",
            "\u4e16: secret",
        ),
    ],
)
def test_refuses_headers_without_repeating_them(line: str) -> None:
    """SEC.2: a header may be a secret."""
    with pytest.raises(InputError) as caught:
        read_headers([line])
    assert "secret" not in str(caught.value)


# -- files -----------------------------------------------------------------------------------------------


def reference() -> dict[str, Any]:
    made = TaskReference(
        endpoint="http://127.0.0.1:1/mcp",
        task_id="t",
        tool="render",
        capabilities={},
        created_ms=0,
        ttl_ms=None,
        poll_interval_ms=None,
    )
    return made.to_json()


def test_a_reference_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    """REQ.6."""
    file = ReferenceFile(str(tmp_path / "job.json"))
    file.claim()
    file.save(reference())
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.load() == reference()
    file.remove()
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_reference_is_never_overwritten_by_another_call(tmp_path: Path) -> None:
    file = ReferenceFile(str(tmp_path / "job.json"))
    file.save(reference())
    with pytest.raises(InputError, match="is there already"):
        file.claim()
    file.path.unlink()
    file.path.symlink_to("nowhere")
    with pytest.raises(InputError, match="is there already"):
        file.claim()


def test_says_before_the_call_that_a_reference_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write into"):
        ReferenceFile(str(tmp_path / "absent" / "job.json")).claim()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 99}', '"\\ud800"'])
def test_says_what_is_wrong_with_a_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(f"{path} is no saved task: ")):
        ReferenceFile(str(path)).load()


def test_traces_into_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with tracing(str(path)) as write:
        assert write is not None
        write(TraceEntry(at_ms=1, event="sent", request=1, message={"method": "tools/list"}))
        assert json.loads(path.read_text(encoding="utf-8"))["message"] == {"method": "tools/list"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_says_that_a_trace_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--trace: cannot write"), tracing(str(tmp_path)):
        pass
