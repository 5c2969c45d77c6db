"""What comes back for an input request: UPD.4, SEC.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.input_requests import check_requests, check_response
from tests.unit.input_samples import (
    EMPTY_FORM,
    FIELDS,
    IMAGE,
    OPTIONS,
    ROOTS,
    accept,
    field_problem,
    filled,
    form,
    sample,
    schema_problem,
    text,
    url,
    use,
)

# -- answers: shapes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("response", [None, True, 1, "accept", [], ["accept"]], ids=repr)
@pytest.mark.parametrize("request_", [EMPTY_FORM, url(), sample(), ROOTS], ids=count())
def test_an_answer_is_an_object(request_: dict[str, Any], response: Any) -> None:
    assert check_response(request_, response) == "answer must be an object"


@pytest.mark.parametrize("request_", [EMPTY_FORM, url()], ids=count())
def test_an_elicitation_is_accepted_declined_or_cancelled(request_: dict[str, Any]) -> None:
    for action in ("accept", "decline", "cancel"):
        assert check_response(request_, {"action": action}) is None
    assert check_response(request_, {}) == "answer lacks 'action'"
    for other in ("Accept", "", None, True, ["accept"]):
        problem = check_response(request_, {"action": other})
        assert problem == "answer.action must be one of 'accept', 'decline', 'cancel'"


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("content", [None, {}, {"name": 7}, "no", []], ids=repr)
def test_whoever_declines_owes_no_content(action: str, content: Any) -> None:
    """A person's no is never lost over what stands beside it."""
    request = form({"name": {"type": "string"}}, ["name"])
    assert check_response(request, {"action": action}) is None
    assert check_response(request, {"action": action, "content": content}) is None


def test_a_url_brings_no_content() -> None:
    assert accept(url(), {"any": "thing"}) is None


@pytest.mark.parametrize("content", [None, True, 1, "x", [], [{}]], ids=repr)
def test_the_content_of_a_form_is_an_object(content: Any) -> None:
    assert accept(EMPTY_FORM, content) == "answer.content must be an object"


def test_no_content_is_an_empty_form() -> None:
    assert check_response(form({"name": {"type": "string"}}), {"action": "accept"}) is None
    required = form({"name": {"type": "string"}}, ["name"])
    assert check_response(required, {"action": "accept"}) == "answer.content lacks 'name'"


@pytest.mark.parametrize(
    "response",
    [
        {"role": "assistant", "content": text("Hi."), "model": "m", "stopReason": "endTurn", "_meta": {}},
        {"role": "user", "content": [text("Hi."), IMAGE], "model": ""},
        {"role": "assistant", "content": [use("1"), use("2")], "model": "m", "stopReason": "toolUse"},
        {"role": "assistant", "content": [], "model": "m", "resultType": "complete"},
    ],
    ids=count(),
)
def test_what_a_model_says(response: dict[str, Any]) -> None:
    assert check_response(sample(), response) is None


@pytest.mark.parametrize(
    ("response", "sentence"),
    [
        ({}, " lacks 'role'"),
        ({"role": "assistant", "content": text("Hi.")}, " lacks 'model'"),
        ({"role": "assistant", "model": "m"}, " lacks 'content'"),
        ({"role": "model", "content": text("Hi."), "model": "m"}, ".role must be one of 'user', 'assistant'"),
        ({"role": "assistant", "content": "Hi.", "model": "m"}, ".content must be an object"),
        ({"role": "assistant", "content": [{"type": "text"}], "model": "m"}, ".content[0] lacks 'text'"),
        ({"role": "assistant", "content": text("Hi."), "model": None}, ".model must be a string"),
        (
            {"role": "assistant", "content": text("Hi."), "model": "m", "stopReason": 1},
            ".stopReason must be a string",
        ),
    ],
    ids=count(),
)
def test_what_no_model_says(response: dict[str, Any], sentence: str) -> None:
    assert check_response(sample(), response) == f"answer{sentence}"


@pytest.mark.parametrize(
    "roots", [[], [{"uri": "file:///a b", "name": "A"}, {"uri": "file://host/b", "_meta": {}}]]
)
def test_roots(roots: list[Any]) -> None:
    assert check_response(ROOTS, {"roots": roots}) is None


@pytest.mark.parametrize(
    ("response", "sentence"),
    [
        ({}, " lacks 'roots'"),
        ({"roots": None}, ".roots must be an array"),
        ({"roots": {}}, ".roots must be an array"),
        ({"roots": ["file:///a"]}, ".roots[0] must be an object"),
        ({"roots": [{"uri": "file:///a"}, {"name": "A"}]}, ".roots[1] lacks 'uri'"),
        ({"roots": [{"uri": "https://example.com"}]}, ".roots[0].uri must be a file:// URI"),
        ({"roots": [{"uri": 1}]}, ".roots[0].uri must be a file:// URI"),
        ({"roots": [{"uri": "file:///a", "name": 1}]}, ".roots[0].name must be a string"),
    ],
    ids=count(),
)
def test_no_roots(response: dict[str, Any], sentence: str) -> None:
    assert check_response(ROOTS, response) == f"answer{sentence}"


@pytest.mark.parametrize(
    "request_",
    [None, {}, {"method": "later/method"}, {"method": "elicitation/create"}, form({"x": {"type": "object"}})],
    ids=count(),
)
def test_a_malformed_request_has_no_right_answer(request_: Any) -> None:
    """It may have come from a peer: it is not tried to be understood, and raises nothing."""
    problem = check_response(request_, {"action": "accept", "content": {"x": {}}})
    assert problem is not None
    assert problem.startswith("request")


# -- answers: forms -------------------------------------------------------------------------------------


def test_required_fields() -> None:
    request = form({"a": {"type": "string"}, "b": {"type": "string"}}, ["b"])
    assert accept(request, {"b": ""}) is None
    assert accept(request, {"a": ""}) == "answer.content lacks 'b'"


def test_members_beside_the_form_are_let_pass() -> None:
    """JSON Schema's default."""
    assert accept(form({"a": {"type": "string"}}), {"b": {"c": [1]}}) is None


GOOD_AND_BAD: Final[Sequence[tuple[Mapping[str, Any], Sequence[Any], Sequence[Any], str]]] = [
    ({"type": "string"}, ["", "a", "é" * 100], [None, 1, True, ["a"], {}], " must be a string"),
    (
        {"type": "string", "minLength": 2},
        ["ab", "😀😀"],
        ["", "a", "😀"],
        " must keep to the form's minLength",
    ),
    ({"type": "string", "maxLength": 2}, ["", "ab", "😀😀"], ["abc"], " must keep to the form's maxLength"),
    ({"type": "string", "maxLength": 2.0}, ["ab"], ["abc"], " must keep to the form's maxLength"),
    ({"type": "number"}, [0, -1.5, 3, 1e300, 10**400], [True, "1", None, [1]], " must be a number"),
    ({"type": "number"}, [], [float("nan"), float("inf"), float("-inf")], " must be a number"),
    ({"type": "number", "minimum": 18}, [18, 18.0, 99], [17.999, -1], " must keep to the form's minimum"),
    ({"type": "number", "maximum": 0.5}, [0.5, -9], [0.51, 1], " must keep to the form's maximum"),
    ({"type": "integer"}, [0, 3.0, -7, 2**63], [3.5, True, "3", None], " must be an integer"),
    ({"type": "integer"}, [], [float("nan"), float("inf")], " must be an integer"),
    ({"type": "integer", "minimum": 0.5}, [1, 2.0], [0, 0.0], " must keep to the form's minimum"),
    ({"type": "integer", "maximum": 2**53}, [2**53], [2**53 + 1], " must keep to the form's maximum"),
    ({"type": "boolean"}, [True, False], [0, 1, "true", None], " must be true or false"),
    (
        {"type": "string", "enum": ["r", "g"]},
        ["r", "g"],
        ["R", "", "rg"],
        " must be one of the choices offered",
    ),
    ({"type": "string", "enum": ["r"]}, ["r"], [["r"]], " must be a string"),
    ({"type": "string", "oneOf": OPTIONS}, ["r", "g"], ["Red", ""], " must be one of the choices offered"),
    (
        {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        ["r", "g"],
        ["Red", ""],
        " must be one of the choices offered",
    ),
    # one that is offered twice is not "exactly one of" them
    (
        {"type": "string", "oneOf": [*OPTIONS, OPTIONS[0]]},
        ["g"],
        ["r"],
        " must be one of the choices offered",
    ),
    (
        {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}},
        [[], ["r"], ["g", "r", "g"]],
        [["r", "b"], [""]],
        " must be among the choices offered",
    ),
    (
        {"type": "array", "items": {"anyOf": OPTIONS}},
        [[], ["r"], ["g", "r"]],
        [["Red"], ["r", ""]],
        " must be among the choices offered",
    ),
    (
        {"type": "array", "items": {"anyOf": OPTIONS, "enum": ["r"]}},
        [["r"]],
        [["g"]],
        " must be among the choices offered",
    ),
    ({"type": "array", "items": {"anyOf": OPTIONS}}, [], ["r", None, {"r": 1}, 1], " must be an array"),
    ({"type": "array", "items": {"anyOf": OPTIONS}}, [], [["r", 1], ["r", ["r"]]], "[1] must be a string"),
    (
        {"type": "array", "items": {"anyOf": OPTIONS}, "minItems": 1},
        [["r"], ["r", "g"]],
        [[]],
        " must keep to the form's minItems",
    ),
    (
        {"type": "array", "items": {"anyOf": OPTIONS}, "maxItems": 1},
        [[], ["g"]],
        [["r", "g"], ["r", "r"]],
        " must keep to the form's maxItems",
    ),
]


@pytest.mark.parametrize(("field", "good", "bad", "sentence"), GOOD_AND_BAD, ids=count())
def test_what_may_be_filled_in(
    field: Mapping[str, Any], good: Sequence[Any], bad: Sequence[Any], sentence: str
) -> None:
    """UPD.4."""
    assert [filled(field, value) for value in good] == [None] * len(good)
    assert [filled(field, value) for value in bad] == [sentence] * len(bad)


def test_a_keyword_that_forms_do_not_have_is_not_enforced() -> None:
    """A peer's form may have one; what it means is for the peer to say."""
    assert filled({"type": "string", "pattern": "(a+)+$", "format": "uuid"}, "a" * 100 + "!") is None


def test_no_sentence_repeats_a_value() -> None:
    """SEC.2."""
    secret = "hunter2 hunter2"
    answers: list[tuple[dict[str, Any], Any]] = [
        (form({"x": field}), {"action": "accept", "content": {"x": value}})
        for field in FIELDS.values()
        for value in (secret, [secret], {secret: secret})
    ]
    answers += [
        (form({}), {"action": secret}),
        (sample(), {"role": secret, "content": text("a"), "model": "m"}),
        (sample(), {"role": "user", "content": {"type": secret}, "model": "m"}),
        (ROOTS, {"roots": [{"uri": secret}]}),
    ]
    problems = [problem for request, response in answers if (problem := check_response(request, response))]
    assert len(problems) > len(FIELDS)
    assert not [problem for problem in problems if "hunter2" in problem]


def test_the_sentence_names_the_field() -> None:
    request = form({"first": {"type": "boolean"}, "age": {"type": "integer", "minimum": 18}})
    assert (
        accept(request, {"first": True, "age": 17}) == "answer.content['age'] must keep to the form's minimum"
    )


# -- the form check against JSON Schema itself ----------------------------------------------------------

WORDS: Final = st.sampled_from(["", "a", "b", "ab", "abc", "é", "😀"])
NUMBERS: Final = st.integers(-4, 4) | st.sampled_from(
    [-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 1e300, 2.0**53, 10**400]
)
COUNTS: Final = st.integers(0, 3) | st.sampled_from([0.0, 1.0, 2.0])
CHOICES: Final = st.lists(WORDS, min_size=1, max_size=4)
TITLED: Final = st.lists(st.fixed_dictionaries({"const": WORDS, "title": WORDS}), min_size=1, max_size=4)


def fields_of(
    kind: str, required: dict[str, Any], optional: dict[str, Any]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **required}, optional=optional)


ANY_FIELD: Final = st.one_of(
    fields_of("string", {}, {"minLength": COUNTS, "maxLength": COUNTS}),
    fields_of("string", {"enum": CHOICES}, {"enumNames": CHOICES, "maxLength": COUNTS}),
    fields_of("string", {"oneOf": TITLED}, {"enum": CHOICES}),
    fields_of("number", {}, {"minimum": NUMBERS, "maximum": NUMBERS}),
    fields_of("integer", {}, {"minimum": NUMBERS, "maximum": NUMBERS}),
    fields_of("boolean", {}, {"title": WORDS, "description": WORDS}),
    fields_of(
        "array",
        {"items": st.fixed_dictionaries({"type": st.just("string"), "enum": CHOICES})},
        {"minItems": COUNTS, "maxItems": COUNTS},
    ),
    fields_of(
        "array",
        {
            "items": st.fixed_dictionaries(
                {"anyOf": TITLED}, optional={"type": st.just("string"), "enum": CHOICES}
            )
        },
        {"minItems": COUNTS, "maxItems": COUNTS},
    ),
)
NAMES: Final = st.sampled_from(["a", "b", "c", "é"])
ANY_SCHEMA: Final = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, ANY_FIELD, max_size=3)},
    optional={"required": st.lists(NAMES, unique=True, max_size=2)},
)
ANY_VALUE: Final = st.one_of(
    WORDS,
    NUMBERS,
    st.booleans(),
    st.none(),
    st.lists(WORDS, max_size=4),
    st.lists(WORDS | NUMBERS | st.none() | st.just({}), max_size=2),
    st.dictionaries(NAMES, WORDS, max_size=1),
)


def valid(schema: Mapping[str, Any], value: Any) -> bool:
    verdict: bool = jsonschema.Draft202012Validator(schema).is_valid(value)
    return verdict


@settings(deadline=None, max_examples=400)
@given(ANY_FIELD, ANY_VALUE)
def test_a_field_is_filled_in_as_json_schema_says(field: dict[str, Any], value: Any) -> None:
    assert field_problem(field) is None
    assert (filled(field, value) is None) == valid(field, value)


@settings(deadline=None, max_examples=200)
@given(ANY_SCHEMA, st.dictionaries(NAMES, ANY_VALUE, max_size=4))
def test_a_form_is_filled_in_as_json_schema_says(schema: dict[str, Any], content: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema_problem(schema, from_peer=True) is None
    request = form({}, requestedSchema=schema)
    assert (accept(request, content) is None) == valid(schema, content)


@settings(deadline=None, max_examples=200)
@given(ANY_FIELD, ANY_VALUE)
def test_an_author_gives_defaults_that_json_schema_accepts(field: dict[str, Any], default: Any) -> None:
    assert (field_problem({**field, "default": default}) is None) == valid(field, default)


MEMBERS: Final = (
    "method params mode message requestedSchema type properties required items messages role content"
    " maxTokens action roots uri enum oneOf default"
)
TELLING: Final = ["elicitation/create", "object", "string", "array", "url", "form", "accept"]
ANY_JSON: Final = st.recursive(
    ANY_VALUE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MEMBERS.split()), inner | st.sampled_from(TELLING), max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=200)
@given(ANY_JSON, ANY_JSON, st.sampled_from([EMPTY_FORM, url(), sample(), ROOTS]))
def test_nothing_a_peer_sends_raises(request_: Any, response: Any, good: dict[str, Any]) -> None:
    check_requests(request_, from_peer=True)
    check_requests({"a": request_})
    check_requests({"a": {**good, "params": request_}})
    check_response(request_, response)
    check_response(good, response)
