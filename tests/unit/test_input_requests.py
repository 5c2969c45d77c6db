"""What a server may ask of a client: INP.1, INP.2, NEG.10, UPD.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.input_requests import check_requests, missing_capabilities, unique_key
from tests.unit.input_samples import (
    AUDIO,
    EMPTY_FORM,
    FIELDS,
    IMAGE,
    LINK,
    OPTIONS,
    RESOURCE,
    ROOTS,
    field_problem,
    form,
    problem_of,
    said,
    sample,
    schema_problem,
    text,
    url,
    use,
    used,
)

# -- asking: the set ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "requests",
    [
        {"confirm": EMPTY_FORM},
        {
            "a": form({"name": {"type": "string"}}, ["name"], mode="form"),
            "b": url(),
            "c": sample(),
            "d": ROOTS,
        },
        {"roots": {"method": "roots/list", "params": {"_meta": {}}}},
        {"confirm": {**EMPTY_FORM, "more": 1}},
        {"name with spaces": ROOTS, "é": ROOTS},
    ],
    ids=count(),
)
def test_good_requests(requests: dict[str, Any]) -> None:
    assert check_requests(requests) is None
    assert check_requests(requests, from_peer=True) is None


@pytest.mark.parametrize("requests", [{}, None, [], [ROOTS], "roots/list", 3], ids=count())
def test_something_must_be_asked(requests: Any) -> None:
    assert check_requests(requests) == "requests must be an object with at least one request"


@pytest.mark.parametrize("name", ["", 1, None, ()])
def test_a_name_is_a_string(name: Any) -> None:
    assert check_requests({name: ROOTS}) == "requests has a name that is not a string, or is empty"


def test_the_first_problem_is_named_with_its_request() -> None:
    requests: Any = {"fine": ROOTS, "odd": {"method": "x"}, "odder": 1}
    assert check_requests(requests) == (
        "requests['odd'].method must be one of 'elicitation/create', 'sampling/createMessage', 'roots/list'"
    )


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (None, " must be an object"),
        ("roots/list", " must be an object"),
        ({}, " lacks 'method'"),
        ({"method": ["roots/list"]}, ".method must be one of"),
        ({"method": "tools/call"}, ".method must be one of"),
        ({"method": "roots/list", "params": []}, ".params must be an object"),
        ({"method": "roots/list", "params": None}, ".params must be an object"),
        ({"method": "elicitation/create"}, " lacks 'params'"),
        ({"method": "sampling/createMessage"}, " lacks 'params'"),
        ({"method": "elicitation/create", "params": "?"}, ".params must be an object"),
    ],
    ids=count(),
)
def test_a_request_is_one_of_three(request_: Any, sentence: str) -> None:
    problem = problem_of(request_)
    assert problem is not None
    assert problem.startswith(sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mode": "dance"}, ".params.mode must be one of 'form', 'url'"),
        ({"mode": None}, ".params.mode must be one of 'form', 'url'"),
        ({"message": None}, ".params.message must be a string"),
        ({"mode": "url"}, ".params lacks 'url'"),
        ({"requestedSchema": None}, ".params.requestedSchema must be an object"),
    ],
    ids=count(),
)
def test_what_an_elicitation_needs(changes: dict[str, Any], sentence: str) -> None:
    assert problem_of(form({}, **changes)) == sentence


@pytest.mark.parametrize("missing", ["message", "requestedSchema"])
def test_what_a_form_needs(missing: str) -> None:
    request = form({})
    del request["params"][missing]
    assert problem_of(request) == f".params lacks {missing!r}"


def test_a_url_comes_with_a_message() -> None:
    assert problem_of(url(message=None)) == ".params.message must be a string"


@pytest.mark.parametrize(
    "address", ["https://example.com/?q=%20#top", "http://[::1]:8080/", "mailto:a@example.com", "file:///x"]
)
def test_a_url(address: str) -> None:
    assert problem_of(url(url=address)) is None


@pytest.mark.parametrize(
    "address", ["", "example.com", "/in", "https://exa mple.com", None, 3, ["https://e.org"]]
)
def test_no_url(address: Any) -> None:
    assert problem_of(url(url=address)) == ".params.url must be an absolute URI"


# -- asking: forms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FIELDS)
def test_every_kind_of_field_there_is(kind: str) -> None:
    assert field_problem(FIELDS[kind]) is None
    assert field_problem({**FIELDS[kind], "x-note": {"any": "thing"}, "examples": [1]}) is None


def test_a_form_may_be_written_with_tuples() -> None:
    """They are arrays in JSON."""
    schema = {
        "type": "object",
        "properties": {"x": {"type": "string", "enum": ("a", "b")}},
        "required": ("x",),
    }
    assert schema_problem(schema) is None


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ([], " must be an object"),
        ({}, " lacks 'type'"),
        ({"type": "object"}, " lacks 'properties'"),
        ({"type": "array", "properties": {}}, ".type must be 'object'"),
        ({"type": "object", "properties": []}, ".properties must be an object"),
        ({"type": "object", "properties": {}, "required": "x"}, ".required must be an array"),
        ({"type": "object", "properties": {}, "required": ["x", 1]}, ".required[1] must be a string"),
        ({"type": "object", "properties": {}, "$schema": 7}, ".$schema must be a string"),
    ],
    ids=count(),
)
def test_a_form_is_an_object(schema: Any, sentence: str) -> None:
    assert schema_problem(schema) == sentence
    assert schema_problem(schema, from_peer=True) == sentence


def test_a_form_may_name_its_dialect_and_more() -> None:
    dialect = "https://json-schema.org/draft/2020-12/schema"
    assert schema_problem({"$schema": dialect, "type": "object", "properties": {}, "title": "Form"}) is None


TYPES: Final = "one of 'string', 'number', 'integer', 'boolean', 'array'"


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (None, " must be an object"),
        (True, " must be an object"),
        ({}, " lacks 'type'"),
        ({"type": "object", "properties": {}}, f".type must be {TYPES}"),
        ({"type": ["string", "null"]}, f".type must be {TYPES}"),
        ({"type": "null"}, f".type must be {TYPES}"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, " lacks 'type'"),
        ({"type": "string", "title": 1}, ".title must be a string"),
        ({"type": "string", "description": None}, ".description must be a string"),
        ({"type": "string", "minLength": -1}, ".minLength must be a whole number that is not negative"),
        ({"type": "string", "maxLength": 1.5}, ".maxLength must be a whole number that is not negative"),
        ({"type": "string", "maxLength": True}, ".maxLength must be a whole number that is not negative"),
        ({"type": "string", "maxLength": "9"}, ".maxLength must be a whole number that is not negative"),
        ({"type": "string", "format": 1}, ".format must be a string"),
        ({"type": "string", "enum": "rg"}, ".enum must be an array"),
        ({"type": "string", "enum": []}, ".enum must not be empty"),
        ({"type": "string", "enum": ["r", 1]}, ".enum[1] must be a string"),
        ({"type": "string", "enumNames": [1]}, ".enumNames[0] must be a string"),
        ({"type": "string", "oneOf": []}, ".oneOf must not be empty"),
        ({"type": "string", "oneOf": ["r"]}, ".oneOf[0] must be an object"),
        ({"type": "string", "oneOf": [{"title": "Red"}]}, ".oneOf[0] lacks 'const'"),
        ({"type": "string", "oneOf": [{"const": "r"}]}, ".oneOf[0] lacks 'title'"),
        ({"type": "string", "oneOf": [{"const": 1, "title": "One"}]}, ".oneOf[0].const must be a string"),
        ({"type": "number", "minimum": "0"}, ".minimum must be a number"),
        ({"type": "number", "maximum": float("inf")}, ".maximum must be a number"),
        ({"type": "integer", "maximum": False}, ".maximum must be a number"),
        ({"type": "array"}, " lacks 'items'"),
        ({"type": "array", "items": ["r"]}, ".items must be an object"),
        ({"type": "array", "items": {}}, ".items lacks 'type'"),
        ({"type": "array", "items": {"type": "string"}}, ".items lacks 'enum'"),
        ({"type": "array", "items": {"type": "number", "enum": ["r"]}}, ".items.type must be 'string'"),
        ({"type": "array", "items": {"type": "string", "enum": []}}, ".items.enum must not be empty"),
        ({"type": "array", "items": {"anyOf": []}}, ".items.anyOf must not be empty"),
        ({"type": "array", "items": {"anyOf": [{"const": "r"}]}}, ".items.anyOf[0] lacks 'title'"),
        ({"type": "array", "items": {"anyOf": OPTIONS, "enum": 1}}, ".items.enum must be an array"),
        ({"type": "array", "items": {"anyOf": OPTIONS}, "minItems": -1}, ".minItems must be a whole number"),
    ],
    ids=count(),
)
def test_a_field_is_of_the_restricted_kind(field: Any, sentence: str) -> None:
    for from_peer in (False, True):
        problem = field_problem(field, from_peer=from_peer)
        assert problem is not None
        assert problem.startswith(sentence)


AUTHORS_MISTAKES: Final[Sequence[tuple[Mapping[str, Any], str]]] = [
    ({"type": "string", "pattern": "^a+$"}, " has 'pattern', which forms do not know there"),
    ({"type": "string", "const": "a"}, " has 'const', which forms do not know there"),
    ({"type": "string", "minimum": 3}, " has 'minimum', which forms do not know there"),
    ({"type": "number", "multipleOf": 2}, " has 'multipleOf', which forms do not know there"),
    ({"type": "number", "minLength": 2}, " has 'minLength', which forms do not know there"),
    ({"type": "integer", "exclusiveMinimum": 0}, " has 'exclusiveMinimum', which forms do not know there"),
    ({"type": "boolean", "items": 1}, " has 'items', which forms do not know there"),
    ({"type": "boolean", "enum": [True]}, " has 'enum', which forms do not know there"),
    (
        {"type": "array", "items": {"anyOf": OPTIONS}, "uniqueItems": True},
        " has 'uniqueItems', which forms do not know there",
    ),
    (
        {"type": "array", "items": {"type": "string", "enum": ["r"], "maxLength": 1}},
        ".items has 'maxLength', which forms do not know there",
    ),
    (
        {"type": "array", "items": {"anyOf": [*OPTIONS, {"const": "b", "title": "B", "not": {}}]}},
        ".items.anyOf[2] has 'not', which forms do not know there",
    ),
    (
        {"type": "string", "oneOf": [{"const": "b", "title": "B", "type": "number"}]},
        ".oneOf[0] has 'type', which forms do not know there",
    ),
    ({"type": "string", "format": "uuid"}, ".format must be one of 'email', 'uri', 'date', 'date-time'"),
    ({"type": "string", "default": 1}, ".default must be a string"),
    ({"type": "string", "maxLength": 1, "default": "ab"}, ".default must keep to the form's maxLength"),
    ({"type": "string", "enum": ["r"], "default": "b"}, ".default must be one of the choices offered"),
    ({"type": "integer", "default": 0.5}, ".default must be an integer"),
    ({"type": "boolean", "default": None}, ".default must be true or false"),
    ({"type": "array", "items": {"anyOf": OPTIONS}, "default": "r"}, ".default must be an array"),
]


@pytest.mark.parametrize(("field", "sentence"), AUTHORS_MISTAKES, ids=count())
def test_an_author_is_told_what_a_form_would_not_do(field: dict[str, Any], sentence: str) -> None:
    """UPD.4 holds because nothing can be asked that would not be checked in the answer."""
    assert field_problem(field) == sentence


@pytest.mark.parametrize("field", [field for field, _ in AUTHORS_MISTAKES], ids=count())
def test_a_client_shows_the_form_of_such_an_author(field: dict[str, Any]) -> None:
    assert field_problem(field, from_peer=True) is None


@pytest.mark.parametrize("keyword", ["additionalProperties", "minProperties", "allOf", "$ref", "if"])
def test_an_author_is_told_what_a_form_does_not_have(keyword: str) -> None:
    schema = {"type": "object", "properties": {}, keyword: {}}
    assert schema_problem(schema) == f" has {keyword!r}, which forms do not know there"
    assert schema_problem(schema, from_peer=True) is None


def test_an_author_requires_what_is_on_the_form() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name", "nmae"]}
    assert schema_problem(schema) == ".required names 'nmae', which is not one of the properties"
    assert schema_problem(schema, from_peer=True) is None


def test_upd4_whoever_is_not_said_to_be_a_peer_is_an_author() -> None:
    misnamed = {"confirm": form({"name": {"type": "string"}}, ["nmae"])}
    assert check_requests(misnamed) is not None
    assert check_requests(misnamed, from_peer=True) is None


# -- asking: sampling -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        sample(said("user", text("a"), IMAGE, AUDIO), said("assistant", text("b"))),
        sample(
            said("user"), said("assistant", text("b"), use("1"), use("2")), said("user", used("2"), used("1"))
        ),
        sample(
            said("assistant", use("1")),
            said("user", used("1", text("a"), IMAGE, LINK, RESOURCE, isError=True)),
        ),
        sample(
            modelPreferences={"hints": [{"name": "big"}, {}], "costPriority": 0, "intelligencePriority": 1.0},
            systemPrompt="Be brief.",
            includeContext="none",
            temperature=0.1,
            stopSequences=["."],
            metadata={"any": ["thing"]},
            tools=[
                {"name": "look", "description": "Look", "inputSchema": {"type": "object", "properties": {}}}
            ],
            toolChoice={"mode": "auto"},
        ),
        sample(toolChoice={}, maxTokens=10.0),
        sample(said("user", {**text("a"), "annotations": {}, "_meta": {}}), later="more"),
    ],
    ids=count(),
)
def test_good_sampling(request_: dict[str, Any]) -> None:
    assert problem_of(request_) is None


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (sample(messages=None), ".messages must be an array"),
        (sample(messages={}), ".messages must be an array"),
        (sample("hello"), ".messages[0] must be an object"),
        (sample({"role": "user"}), ".messages[0] lacks 'content'"),
        (sample({"content": text("a")}), ".messages[0] lacks 'role'"),
        (sample(said("system", text("a"))), ".messages[0].role must be one of 'user', 'assistant'"),
        (sample({"role": "user", "content": "a"}), ".messages[0].content must be an object"),
        (sample({"role": "user", "content": ["a"]}), ".messages[0].content[0] must be an object"),
        (sample(said("user", {"type": "video"})), ".messages[0].content.type must be one of 'text', "),
        (sample(said("user", {"type": {}})), ".messages[0].content.type must be one of 'text', "),
        (sample(said("user", {"text": "a"})), ".messages[0].content lacks 'type'"),
        (sample(said("user", {"type": "text"})), ".messages[0].content lacks 'text'"),
        (
            sample(said("user", text("a"), {**IMAGE, "data": b"x"})),
            ".messages[0].content[1].data must be a string",
        ),
        (sample(said("user", {**use("1"), "input": []})), ".messages[0].content.input must be an object"),
        (sample(said("user", used("1", use("2")))), ".messages[0].content.content[0].type must be one of"),
        (sample(said("user", used("1", isError="no"))), ".messages[0].content.isError must be true or false"),
        (sample(maxTokens="10"), ".maxTokens must be a whole number greater than 0"),
        (sample(maxTokens=0), ".maxTokens must be a whole number greater than 0"),
        (sample(maxTokens=True), ".maxTokens must be a whole number greater than 0"),
        (sample(maxTokens=float("nan")), ".maxTokens must be a whole number greater than 0"),
        (sample(modelPreferences=[]), ".modelPreferences must be an object"),
        (sample(modelPreferences={"hints": {}}), ".modelPreferences.hints must be an array"),
        (
            sample(modelPreferences={"hints": [{"name": 1}]}),
            ".modelPreferences.hints[0].name must be a string",
        ),
        (
            sample(modelPreferences={"costPriority": 1.1}),
            ".modelPreferences.costPriority must be a number from",
        ),
        (
            sample(modelPreferences={"speedPriority": "1"}),
            ".modelPreferences.speedPriority must be a number from",
        ),
        (sample(systemPrompt=None), ".systemPrompt must be a string"),
        (sample(includeContext="all"), ".includeContext must be one of 'none', 'thisServer', 'allServers'"),
        (sample(temperature="hot"), ".temperature must be a number"),
        (sample(stopSequences=[1]), ".stopSequences[0] must be a string"),
        (sample(metadata=[]), ".metadata must be an object"),
        (sample(tools={}), ".tools must be an array"),
        (sample(tools=[{"inputSchema": {"type": "object"}}]), ".tools[0] lacks 'name'"),
        (sample(tools=[{"name": "x"}]), ".tools[0] lacks 'inputSchema'"),
        (sample(tools=[{"name": "x", "inputSchema": {}}]), ".tools[0].inputSchema lacks 'type'"),
        (sample(toolChoice="auto"), ".toolChoice must be an object"),
        (sample(toolChoice={"mode": "always"}), ".toolChoice.mode must be one of 'auto', 'required', 'none'"),
    ],
    ids=count(),
)
def test_bad_sampling(request_: dict[str, Any], sentence: str) -> None:
    problem = problem_of(request_)
    assert problem is not None
    assert problem.startswith(f".params{sentence}")


BLOCKS: Final = [text("a"), IMAGE, AUDIO, use("1"), used("1")]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block["type"])
def test_what_a_block_needs(block: dict[str, Any]) -> None:
    for name in block:
        rest = {other: value for other, value in block.items() if other != name}
        assert problem_of(sample(said("user", rest))) == f".params.messages[0].content lacks {name!r}"
        problem = problem_of(sample(said("user", {**block, name: 7})))
        assert problem is not None
        assert problem.startswith(f".params.messages[0].content.{name} must be ")


@pytest.mark.parametrize("block", [text("a"), IMAGE, AUDIO, LINK, RESOURCE], ids=lambda block: block["type"])
def test_what_a_tool_result_holds(block: dict[str, Any]) -> None:
    for name in block:
        rest = {other: value for other, value in block.items() if other != name}
        problem = problem_of(sample(said("user", used("1", rest))))
        assert problem == f".params.messages[0].content.content[0] lacks {name!r}"


def test_a_resource_has_a_uri() -> None:
    nameless = {"type": "resource", "resource": {"text": "…"}}
    problem = problem_of(sample(said("user", used("1", nameless))))
    assert problem == ".params.messages[0].content.content[0].resource lacks 'uri'"


def test_a_tool_describes_itself_in_words() -> None:
    tool = {"name": "look", "inputSchema": {"type": "object"}, "description": 1}
    assert problem_of(sample(tools=[tool])) == ".params.tools[0].description must be a string"


def test_what_sampling_needs() -> None:
    assert (
        problem_of({"method": "sampling/createMessage", "params": {"messages": []}})
        == ".params lacks 'maxTokens'"
    )
    assert (
        problem_of({"method": "sampling/createMessage", "params": {"maxTokens": 1}})
        == ".params lacks 'messages'"
    )


ONE_EACH: Final = " must have one result for each tool use of the message before, and for no other"


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([said("user", used("1"))], "[0]" + ONE_EACH),
        ([said("assistant", use("1")), said("user", text("a"))], "[1]" + ONE_EACH),
        ([said("assistant", use("1"), use("2")), said("user", used("1"))], "[1]" + ONE_EACH),
        ([said("assistant", use("1")), said("user", used("2"))], "[1]" + ONE_EACH),
        ([said("assistant", use("1")), said("user", used("1"), used("1"))], "[1]" + ONE_EACH),
        ([said("assistant", use("1")), said("user", used("1")), said("user", used("1"))], "[2]" + ONE_EACH),
        ([said("assistant", use("1"))], " must end with the results of the tools that its last message uses"),
        (
            [said("assistant", use("1")), said("user", text("so"), used("1"))],
            "[1] has tool results, so it must be the user's and have nothing else",
        ),
        (
            [said("assistant", use("1")), said("assistant", used("1"))],
            "[1] has tool results, so it must be the user's and have nothing else",
        ),
        ([said("user", use("1"))], "[0] uses tools, so it must be the assistant's"),
    ],
    ids=count(),
)
def test_tool_uses_and_their_results_are_balanced(messages: list[Any], sentence: str) -> None:
    assert problem_of(sample(*messages)) == f".params.messages{sentence}"


# -- capabilities ---------------------------------------------------------------------------------------

FORM: Final[Mapping[str, Any]] = {"elicitation": {"form": {}}}
WITH_TOOLS: Final = sample(tools=[])
WITH_CHOICE: Final = sample(toolChoice={"mode": "none"})
WITH_CONTEXT: Final = sample(includeContext="thisServer")


@pytest.mark.parametrize(
    ("asked", "declared", "missing"),
    [
        # elicitation: {} means form (INP.2), also where the request does not say which mode it is of
        ([EMPTY_FORM], {}, FORM),
        ([EMPTY_FORM], {"elicitation": {}}, None),
        ([EMPTY_FORM], {"elicitation": {"form": {}}}, None),
        ([form({}, mode="form")], {"elicitation": {}}, None),
        ([EMPTY_FORM], {"elicitation": {"url": {}}}, FORM),
        ([EMPTY_FORM], {"elicitation": {"later": {}}}, FORM),
        ([url()], {}, {"elicitation": {"url": {}}}),
        ([url()], {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ([url()], {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        ([url()], {"elicitation": {"url": {"later": 1}}}, None),
        ([url(), EMPTY_FORM], {"elicitation": {"form": {}, "url": {}}}, None),
        ([url(), EMPTY_FORM], {}, {"elicitation": {"form": {}, "url": {}}}),
        ([url(), EMPTY_FORM], {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        # {"url": {}} alone would no longer mean form
        ([url(), EMPTY_FORM], {"elicitation": {}}, {"elicitation": {"form": {}, "url": {}}}),
        # sampling
        ([sample()], {}, {"sampling": {}}),
        ([sample()], {"sampling": {}}, None),
        ([WITH_TOOLS], {}, {"sampling": {"tools": {}}}),
        ([WITH_TOOLS], {"sampling": {}}, {"sampling": {"tools": {}}}),
        ([WITH_TOOLS], {"sampling": {"tools": {}}}, None),
        ([WITH_CHOICE], {"sampling": {"context": {}}}, {"sampling": {"tools": {}}}),
        ([WITH_CONTEXT], {"sampling": {}}, {"sampling": {"context": {}}}),
        ([WITH_CONTEXT], {"sampling": {"context": {}}}, None),
        ([sample(includeContext="none")], {"sampling": {}}, None),
        ([WITH_CONTEXT, WITH_TOOLS], {}, {"sampling": {"context": {}, "tools": {}}}),
        # roots
        ([ROOTS], {}, {"roots": {}}),
        ([ROOTS], {"roots": {}}, None),
        ([ROOTS], {"roots": {"listChanged": True}}, None),
        # several
        ([ROOTS, sample(), EMPTY_FORM], {"sampling": {}}, {"roots": {}, **FORM}),
        (
            [ROOTS, sample(), EMPTY_FORM],
            {"sampling": {}, "roots": {}, "elicitation": {}, "extensions": {}},
            None,
        ),
        ([], {}, None),
    ],
    ids=count(),
)
def test_what_a_client_must_declare_too(
    asked: list[Any], declared: dict[str, Any], missing: dict[str, Any] | None
) -> None:
    """NEG.10."""
    requests = {f"request {number}": request for number, request in enumerate(asked)}
    assert missing_capabilities(requests, declared) == missing


@pytest.mark.parametrize("value", [None, True, False, 0, 1, "", "form", [], ["form"], [{}]], ids=repr)
def test_a_malformed_capability_declares_nothing(value: Any) -> None:
    assert missing_capabilities({"a": EMPTY_FORM}, {"elicitation": value}) == FORM
    assert missing_capabilities({"a": EMPTY_FORM}, {"elicitation": {"form": value}}) == FORM
    assert missing_capabilities({"a": url()}, {"elicitation": {"url": value}}) == {"elicitation": {"url": {}}}
    assert missing_capabilities({"a": sample()}, {"sampling": value}) == {"sampling": {}}
    assert missing_capabilities({"a": WITH_TOOLS}, {"sampling": {"tools": value}}) == {
        "sampling": {"tools": {}}
    }
    assert missing_capabilities({"a": ROOTS}, {"roots": value}) == {"roots": {}}


@settings(deadline=None, max_examples=50)
@given(st.permutations([ROOTS, EMPTY_FORM, url(), WITH_CONTEXT, WITH_TOOLS]))
def test_the_order_of_requests_does_not_matter(asked: list[Any]) -> None:
    assert missing_capabilities(dict(enumerate(asked)), {}) == {  # type: ignore[arg-type]
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"context": {}, "tools": {}},
        "roots": {},
    }


def test_declaring_what_is_missing_is_enough() -> None:
    requests = {"a": ROOTS, "b": EMPTY_FORM, "c": url(), "d": WITH_CONTEXT, "e": WITH_TOOLS}
    missing = missing_capabilities(requests, {"elicitation": {}})
    assert missing is not None
    assert missing_capabilities(requests, missing) is None


@pytest.mark.parametrize(
    ("request_", "missing"),
    [
        ({}, None),
        ({"method": "later/method"}, None),
        ({"method": ["roots/list"]}, None),
        ({"method": "elicitation/create"}, FORM),
        ({"method": "elicitation/create", "params": []}, FORM),
        (
            {"method": "sampling/createMessage", "params": {"includeContext": []}},
            {"sampling": {"context": {}}},
        ),
    ],
    ids=count(),
)
def test_a_malformed_request_of_a_peer_is_no_trap(request_: Any, missing: dict[str, Any] | None) -> None:
    assert missing_capabilities({"a": request_}, {}) == missing


# -- keys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "used", "key"),
    [
        ("confirm", [], "confirm"),
        ("confirm", ["other"], "confirm"),
        ("confirm", ["confirm"], "confirm.2"),
        ("confirm", ["confirm", "confirm.2"], "confirm.3"),
        ("confirm", ["confirm.2"], "confirm"),
        ("confirm", ["confirm", "confirm.3"], "confirm.2"),
        ("confirm.2", ["confirm", "confirm.2"], "confirm.2.2"),
        ("confirm.2", ["confirm"], "confirm.2"),
        ("1", ["1"], "1.2"),
    ],
)
def test_a_key_is_never_used_twice(name: str, used: list[str], key: str) -> None:
    """INP.1."""
    assert unique_key(name, used) == key
    assert unique_key(name, frozenset(used)) == key


def test_a_tool_may_use_our_names_itself() -> None:
    """``confirm.2`` of the tool's own takes the place; nothing is lost and nothing is doubled."""
    used: set[str] = set()
    keys = []
    for name in ["confirm", "confirm.2", "confirm", "confirm.2", "confirm", "confirm.3"]:
        keys.append(unique_key(name, used))
        used.add(keys[-1])
    assert keys == ["confirm", "confirm.2", "confirm.3", "confirm.2.2", "confirm.4", "confirm.3.2"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "a.2", "a.3", "a.2.2", "b"]), max_size=30))
def test_keys_are_unique_for_life(names: list[str]) -> None:
    used: set[str] = set()
    for name in names:
        key = unique_key(name, used)
        assert key not in used
        assert key == name or key.startswith(f"{name}.")
        used.add(key)
