"""The vectors of ``docs/vectors``: up to date, well formed, complete, true of the engines, able to fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from docs.generate_vectors import FILES, FOLDER, files
from docs.rules import SECTIONS
from docs.vector_sources.stories import LEFT_OUT, TRACES
from docs.vector_sources.unstated import UNSTATED
from docs.vectors.runner import difference, load, problem_of
from mcp_tasks_proto import Limits, ServerEngine
from mcp_tasks_proto.legacy.requester import DualEraRequester
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.proxy import ProxyEngine, ProxyLimits
from mcp_tasks_proto.requester import RequesterEngine, RequesterLimits
from tests.model.planting import Fault
from tests.model.test_planted_faults import FAULTS
from tests.unit.vector_subjects.all import FUNCTIONS, ROLES

SAFE: Final = 2**53
"""Up to here every JSON parser reads an integer as it is."""
SCHEMA: Final = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
TEXTS: Final = files()
"""Of each file, what is to be in it."""
BY_FILE: Final[Mapping[str, list[dict[str, Any]]]] = {
    name: json.loads(TEXTS[f"{name}.json"])["vectors"] for name in FILES
}


ALL: Final = [vector for of_file in BY_FILE.values() for vector in of_file]


STATED_FAULTS: Final = [
    one for one in FAULTS if "taken over" not in one.what and "two workers" not in one.what
]
"""Those of what vectors state; that work is taken over by another node, none does."""


# -- the files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_up_to_date(name: str) -> None:
    written = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert written == TEXTS[f"{name}.json"], "run `python -m docs.generate_vectors`"


def test_there_are_no_other_files() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == {*TEXTS, "schema.json"}
    assert [one["id"] for one in load()] == [one["id"] for name in sorted(BY_FILE) for one in BY_FILE[name]]


def test_what_is_expected_is_no_result_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise AssertionError("an engine ran")

    for engine in (ServerEngine, DualEraServer, RequesterEngine, DualEraRequester, ProxyEngine):
        monkeypatch.setattr(engine, "handle", run)
    assert files() == TEXTS


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", FILES)
def test_the_files_fit_the_schema(name: str) -> None:
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    Draft202012Validator(SCHEMA).validate(document)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vector: vector.pop("source"),
        lambda vector: vector.pop("says"),
        lambda vector: vector.update(rules=[]),
        lambda vector: vector.update(rules=["GET"]),
        lambda vector: vector.update(source="somewhere"),
        lambda vector: vector.update(role="waiter"),
        lambda vector: vector.update(kind="function"),
        lambda vector: vector.update(more=1),
        lambda vector: vector["setup"].update(tool=[]),
        lambda vector: vector["steps"].append({}),
        lambda vector: vector["steps"][0].update(at_ms=0.5),
        lambda vector: vector["steps"][0]["given"].update(type="perceive"),
        lambda vector: vector["steps"][0]["given"].pop("message"),
        lambda vector: vector["steps"][0]["expect"].append({"type": "settle"}),
    ],
)
def test_the_schema_refuses_what_is_no_vector(spoil: Any) -> None:
    vector = deepcopy(next(one for one in ALL if one.get("role") == "server"))
    document = {"format": "mcp-tasks-vectors/1", "title": "One", "vectors": [vector]}
    assert Draft202012Validator(SCHEMA).is_valid(document)
    spoil(vector)
    assert not Draft202012Validator(SCHEMA).is_valid(document)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vector: vector.update(function="encode"),
        lambda vector: vector["given"].update(value=7),
        lambda vector: vector["given"].pop("value"),
        lambda vector: vector["given"].update(more=""),
        lambda vector: vector["expect"].update(malformed=True),
        lambda vector: vector.update(steps=[]),
    ],
)
def test_the_schema_knows_each_function(spoil: Any) -> None:
    vector = deepcopy(next(one for one in ALL if one.get("function") == "encode_header_value"))
    document = {"format": "mcp-tasks-vectors/1", "title": "One", "vectors": [vector]}
    assert Draft202012Validator(SCHEMA).is_valid(document)
    spoil(vector)
    assert not Draft202012Validator(SCHEMA).is_valid(document)


def test_ids_are_unique_and_begin_with_their_first_rule() -> None:
    ids = [one["id"] for one in ALL]
    assert len(set(ids)) == len(ids)
    assert [one["id"] for one in ALL if not one["id"].startswith(f"{one['rules'][0]}/")] == []


def test_numbers_are_integers_that_every_parser_reads() -> None:
    """Fractions stand only where they are what a vector is about: content of forms."""
    fractions = []
    for vector in ALL:
        for value in _scalars(vector):
            if isinstance(value, float):
                fractions.append(vector["function"])
            assert not isinstance(value, int) or abs(value) <= SAFE, vector["id"]
    assert set(fractions) == {"check_response"}


def test_patterns_are_of_the_kind_that_every_language_has() -> None:
    """No look-around and no references back, which some engines leave out for good reasons."""
    patterns = [value["$pattern"] for vector in ALL for value in _objects(vector) if "$pattern" in value]
    assert patterns
    assert [one for one in patterns if re.search(r"\(\?|\\[1-9]", one)] == []


# -- completeness ----------------------------------------------------------------------------------------


def test_every_rule_has_a_vector_and_every_vector_a_rule() -> None:
    known = {rule for section in SECTIONS.values() for rule in section}
    cited = {rule for vector in ALL for rule in vector["rules"]}
    assert known - cited == set()
    assert cited - known == set()


def test_what_is_not_stated_is_said_to_readers() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    known = {rule for section in SECTIONS.values() for rule in section}
    assert set(UNSTATED) <= known
    assert [rule for rule, why in UNSTATED.items() if f"| {rule} | {why} |" not in readme] == []


def test_traces_are_vectors_or_left_out_for_a_reason() -> None:
    told = {one["id"].rpartition("/")[2] for one in ALL if "/trace/" in one["id"]}
    for path in TRACES:
        left_out = [words for words in LEFT_OUT if words in path.read_text(encoding="utf-8")]
        assert (path.stem in told) is (not left_out), path.stem
    texts = [path.read_text(encoding="utf-8") for path in TRACES]
    assert [words for words in LEFT_OUT if not any(words in text for text in texts)] == []
    assert len(told) > len(TRACES) // 2


def test_every_function_and_role_is_explained_and_used() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert {one["function"] for one in ALL if one["kind"] == "function"} == set(FUNCTIONS)
    assert {one["role"] for one in ALL if one["kind"] == "conversation"} == set(ROLES)
    explained = set(re.findall(r"^\| `(\w+)`", readme, re.MULTILINE))
    assert explained >= {*FUNCTIONS, *ROLES}
    for role in ROLES:
        for part in ("fact", "output"):
            assert explained >= set(SCHEMA["$defs"][f"{role}_{part}"]["properties"]["type"]["enum"])


# -- the engines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_the_engines_are_as_the_vectors_say(name: str) -> None:
    problems = {one["id"]: problem_of(one, FUNCTIONS, ROLES) for one in BY_FILE[name]}
    assert {id_: problem for id_, problem in problems.items() if problem is not None} == {}


# -- the runner ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_expectation_is_found(name: str) -> None:
    """In each vector another place is altered; the runner finds every one."""
    unnoticed = []
    for number, vector in enumerate(BY_FILE[name]):
        altered = deepcopy(vector)
        places = [
            place
            for part in _expected(altered)
            for place in _places(part)
            if not str(place[0][place[1]]).startswith("$")
        ]
        if not places:
            continue
        holder, key = places[number % len(places)]
        holder[key] = _another(holder[key])
        if problem_of(altered, FUNCTIONS, ROLES) is None:
            unnoticed.append(vector["id"])
    assert unnoticed == []


@pytest.mark.parametrize("fault", STATED_FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_fault_in_the_engine_is_found_by_a_vector_of_its_rule(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault.where, fault.name, fault.plant(getattr(fault.where, fault.name)))
    of_rule = [one for one in ALL if one.get("role") == "server" and fault.rule in one["rules"]]
    assert any(problem_of(one, FUNCTIONS, ROLES) is not None for one in of_rule)


def test_an_output_that_is_missing_or_too_many_is_found() -> None:
    conversations = [one for one in ALL if one["kind"] == "conversation"]
    for vector in conversations[::7]:
        speaking = [step for step in vector["steps"] if step["expect"]]
        silent = [step for step in vector["steps"] if not step["expect"]]
        if speaking:
            without = deepcopy(vector)
            without["steps"][vector["steps"].index(speaking[-1])]["expect"].pop()
            assert "beside what is expected" in (problem_of(without, FUNCTIONS, ROLES) or ""), vector["id"]
        if silent:
            more = deepcopy(vector)
            one = {"type": "stop_call", "exchange": "nobody's"}
            more["steps"][vector["steps"].index(silent[0])]["expect"].append(one)
            assert "lacks" in (problem_of(more, FUNCTIONS, ROLES) or ""), vector["id"]


TIMESTAMP: Final[Any] = next(one for one in ALL if one.get("function") == "timestamp")
CALL: Final[Any] = {
    "kind": "conversation",
    "role": "server",
    "setup": {},
    "steps": [
        {"given": {"type": "receive"}, "expect": [{"type": "start_tool", "exchange": "$of"}]},
        {"given": {"type": "wait"}, "expect": [{"type": "reply", "exchange": "$of", "message": None}]},
    ],
}


def _raise(*_: Any) -> Any:
    raise ValueError("not today")


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_raise, "raised ValueError: not today"),
        (lambda given: None, "it: None is not an object"),
        (
            lambda given: {"text": given["unix_ms"]},
            "it.text: 1700000000000 is not '2023-11-14T22:13:20.000Z'",
        ),
    ],
)
def test_a_function_that_fails_is_told_and_ends_no_run(function: Any, problem: str) -> None:
    assert problem_of(TIMESTAMP, {"timestamp": function}, {}) == problem


@pytest.mark.parametrize(
    ("outputs", "problem"),
    [
        # Placeholders stand for integers too, also where they say where an output goes.
        (
            [[{"type": "start_tool", "exchange": 7}], [{"type": "reply", "exchange": 7, "message": None}]],
            None,
        ),
        ([[{"type": "start_tool", "exchange": 7}], [{"type": "reply", "exchange": 8}]], "step 1 lacks"),
        ([[{"type": "start_tool", "exchange": 7}], [{"type": "reply", "exchange": 7}]], "step 1 reply lacks"),
        ([[{"type": "start_tool", "exchange": "$7"}], [{"type": "reply", "exchange": "8"}]], "step 1 lacks"),
        ([[{"type": "start_tool", "exchange": 7, "message": "x"}], []], "step 1 lacks"),
        ([[{"exchange": 7}]], "step 0 gives no outputs"),
        ([None], "step 0 gives no outputs"),
        ([], "step 0 raised IndexError"),
    ],
)
def test_a_role_that_fails_is_told_and_ends_no_run(outputs: list[Any], problem: str | None) -> None:
    class Role:
        def __init__(self, setup: Mapping[str, Any]) -> None:
            self.left = list(outputs)

        def step(self, at_ms: int, given: Mapping[str, Any]) -> Any:
            return self.left.pop(0)

    told = problem_of(CALL, {}, {"server": Role})
    assert told is None if problem is None else (told or "").startswith(problem)
    assert problem_of(CALL, {}, {"server": _raise}) == "setup raised ValueError: not today"


MATCHES: Final[list[tuple[Any, Any, bool]]] = [
    (1, 1, True),
    (1, "1", False),
    (1, True, False),
    (True, True, True),
    (0, False, False),
    (None, None, True),
    (None, False, False),
    ("a", "a", True),
    ("$$a", "$a", True),
    ("$$a", "$$a", False),
    ({}, {}, True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": 1}, {"a": 1, "b": 2}, False),
    ({"a": None}, {}, False),
    ({"$ref": "x"}, {"$ref": "x"}, True),
    ([1, 2], [1, 2], True),
    ([1, 2], [2, 1], False),
    ([1], [1, 2], False),
    ([], {}, False),
    ({"$has": {"a": 1}}, {"a": 1, "b": 2}, True),
    ({"$has": {"a": 1}}, {"b": 2}, False),
    ({"$has": {"a": 1}}, [], False),
    ({"$has": {}, "$lacks": ["b"]}, {"a": 1}, True),
    ({"$has": {}, "$lacks": ["b"]}, {"b": None}, False),
    ({"$any": "string"}, "", True),
    ({"$any": "string"}, 1, False),
    ({"$any": "integer"}, 0, True),
    ({"$any": "integer"}, True, False),
    ({"$any": "integer or null"}, None, True),
    ({"$any": "integer or null"}, 1, True),
    ({"$any": "integer or null"}, "1", False),
    ({"$any": "integer or null"}, True, False),
    ({"$any": "boolean"}, False, True),
    ({"$any": "boolean"}, 0, False),
    ({"$any": "value"}, None, True),
    ({"$time": 250}, "2023-11-14T22:13:20.250Z", True),
    ({"$time": 250}, "2023-11-14T22:13:20.250+00:00", True),
    ({"$time": 250}, "2023-11-14T22:13:20.251Z", False),
    ({"$time": 0}, "2023-11-14T22:13:20Z", False),
    ({"$time": 0}, 1_700_000_000_000, False),
    ({"$time": 0}, "2023-02-31T22:13:20.000Z", False),
    ({"$pattern": "a+"}, "aaa", True),
    ({"$pattern": "a+"}, "aab", False),
    ({"$without": "b"}, "aaa", True),
    ({"$without": "b"}, "abc", False),
    ({"$unordered": ["a", "b"]}, ["b", "a"], True),
    ({"$unordered": ["a", "b"]}, ["a", "a"], False),
    ({"a": "$x", "b": "$x"}, {"a": "t", "b": "t"}, True),
    ({"a": "$x", "b": "$x"}, {"a": "t", "b": "u"}, False),
    ({"a": "$x", "b": "$x"}, {"a": 1, "b": "1"}, False),
    ({"a": "$x"}, {"a": None}, False),
    ({"a": "$x", "b": {"$other_than": "$x"}}, {"a": "t", "b": "u"}, True),
    ({"a": "$x", "b": {"$other_than": "$x"}}, {"a": "t", "b": "t"}, False),
    ({"a": "$x", "b": {"$unordered": ["$x", "v"]}}, {"a": "t", "b": ["v", "t"]}, True),
]


@pytest.mark.parametrize(("expected", "actual", "match"), MATCHES)
def test_the_rules_of_matching(expected: Any, actual: Any, match: bool) -> None:
    assert (difference(expected, actual, {}) is None) is match


def test_every_matcher_is_explained() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    used = {name for vector in ALL for value in _objects(vector) for name in value if name.startswith("$")}
    known = {"$has", "$lacks", "$any", "$time", "$pattern", "$without", "$unordered", "$other_than"}
    assert used - {"$defs", "$ref"} == known
    assert [name for name in known if not re.search(rf"[`\"]{re.escape(name)}[`\"]", readme)] == []


def test_the_limits_of_the_readme_are_those_of_the_engines() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(server|requester|proxy)`(?:, `receiver`)? \| (`\w+` \d+.*) \|$", readme, re.MULTILINE
    )
    usual = {"server": Limits(), "requester": RequesterLimits(), "proxy": ProxyLimits()}
    assert {role for role, _ in rows} == set(usual)
    for role, said in rows:
        for name, value in re.findall(r"`(\w+)` (\d+)", said):
            assert getattr(usual[role], name) == int(value), name


def test_every_link_of_the_readme_leads_somewhere() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", readme):
        assert (FOLDER / link).exists(), link


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```$\n+```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert found
    for source, printed in found:
        exec(compile(source, "README.md", "exec"), {})
        assert capsys.readouterr().out == printed


# -- parts of vectors --------------------------------------------------------------------------------------


def _expected(vector: Mapping[str, Any]) -> list[Any]:
    """Return what a vector expects, to be altered in place."""
    if vector["kind"] == "function":
        return [vector["expect"]]
    return [step["expect"] for step in vector["steps"]]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where something stands whose exact form counts: scalars, and what is empty."""
    members: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        if key in ("$any", "$pattern", "$without", "$other_than", "$lacks"):
            continue
        if isinstance(member, (dict, list)) and member:
            yield from _places(member)
        else:
            yield value, key


def _another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else "altered"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _objects(member)


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _scalars(member)
    else:
        yield value
