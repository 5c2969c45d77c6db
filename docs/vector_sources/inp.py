"""INP.1, INP.2, UPD.4: what may be asked of a client, and what is an answer."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, table

ELICITATION: Final = "client/elicitation"
FORMS: Final = spec(ELICITATION, "requested-schema")
ACTIONS: Final = spec(ELICITATION, "response-actions")
CAPABILITIES: Final = spec(ELICITATION, "capabilities")
SAMPLING: Final = spec("client/sampling", "capabilities")


def form(*required: str, **properties: Any) -> dict[str, Any]:
    """Return a request that shows a form."""
    schema = {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Please", "requestedSchema": schema},
    }


URL: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Please", "url": "https://example.com/", "elicitationId": "e-1"},
}
ROOTS: Final[dict[str, Any]] = {"method": "roots/list"}
SAMPLE: Final[dict[str, Any]] = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 10},
}


def answer(request: Any, response: Any) -> dict[str, Any]:
    """Return a request and what comes back."""
    return {"request": request, "response": response}


def accept(**content: Any) -> dict[str, Any]:
    """Return a form that is filled in."""
    return {"action": "accept", "content": content}


TAKEN: Final[dict[str, Any]] = {"accepted": True}
REFUSED: Final[dict[str, Any]] = {"accepted": False}
NAME: Final = form("name", name={"type": "string"})


def fits(word: str, says: str, schema: Any, *values: Any) -> list[tuple[str, str, Any, Any]]:
    """Return a row for each value of one field that fits."""
    return _field(word, says, schema, values, TAKEN)


def unfit(word: str, says: str, schema: Any, *values: Any) -> list[tuple[str, str, Any, Any]]:
    """Return a row for each that does not."""
    return _field(f"{word}-not", says, schema, values, REFUSED)


def _field(word: str, says: str, schema: Any, values: Any, expect: Any) -> list[tuple[str, str, Any, Any]]:
    return [
        (f"{word}-{number}", says, answer(form(field=schema), accept(field=value)), expect)
        for number, value in enumerate(values, start=1)
    ]


CHOICE: Final[dict[str, Any]] = {"type": "string", "enum": ["red", "green"]}
TITLED: Final[dict[str, Any]] = {
    "type": "string",
    "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}],
}
SEVERAL: Final[dict[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 2,
    "items": {"type": "string", "enum": ["a", "b", "c"]},
}

FIELDS: Final = [
    *fits("string", "a string", {"type": "string"}, "", "Ada", "世界"),
    *unfit("string", "no string", {"type": "string"}, 7, True, None, [], {}),
    *fits(
        "length",
        "characters are counted, not bytes",
        {"type": "string", "minLength": 2, "maxLength": 3},
        "ab",
        "世界人",
        "🎬🎬",
    ),
    *unfit(
        "length", "too short, too long", {"type": "string", "minLength": 2, "maxLength": 3}, "a", "abcd", "🎬"
    ),
    *fits("integer", "a whole number", {"type": "integer"}, 0, -7, 9007199254740991),
    *unfit("integer", "no whole number", {"type": "integer"}, 1.5, "1", True),
    *fits("range", "the bounds belong to it", {"type": "integer", "minimum": 1, "maximum": 3}, 1, 3),
    *unfit("range", "out of bounds", {"type": "integer", "minimum": 1, "maximum": 3}, 0, 4),
    *fits("number", "any number", {"type": "number"}, 0, 1.5, -3),
    *unfit("number", "no number", {"type": "number"}, "1.5", False),
    *fits("boolean", "true or false", {"type": "boolean"}, True, False),
    *unfit("boolean", "neither", {"type": "boolean"}, 0, 1, "true"),
    *fits("enum", "one of the choices", CHOICE, "red", "green"),
    *unfit("enum", "none of the choices", CHOICE, "blue", "RED", ["red"]),
    *fits("titled", "the value of a choice", TITLED, "r", "g"),
    *unfit("titled", "its title is not its value", TITLED, "Red", "x"),
    *fits("several", "some of the choices", SEVERAL, ["a"], ["a", "c"]),
    *unfit("several", "too few, too many, another one, no array", SEVERAL, [], ["a", "b", "c"], ["z"], "a"),
    *fits("email", "an address", {"type": "string", "format": "email"}, "ada@example.com"),
    *unfit("email", "none", {"type": "string", "format": "email"}, "ada", "@example.com"),
    *fits("date", "a day", {"type": "string", "format": "date"}, "2024-02-29"),
    *unfit("date", "no day", {"type": "string", "format": "date"}, "2023-02-29", "29.02.2024", "2024-2-9"),
    *fits(
        "date-time",
        "a moment",
        {"type": "string", "format": "date-time"},
        "2024-02-29T12:00:00Z",
        "2024-02-29T12:00:00.5+01:00",
    ),
    *unfit(
        "date-time",
        "no moment",
        {"type": "string", "format": "date-time"},
        "2024-02-29",
        "2024-02-29T25:00:00Z",
    ),
    *fits("uri", "a URI", {"type": "string", "format": "uri"}, "https://example.com/a?b#c"),
    *unfit("uri", "none", {"type": "string", "format": "uri"}, "example.com", "https://exa mple.com"),
]

FORM: Final = [
    ("filled", "a form that is filled in", answer(NAME, accept(name="Ada")), TAKEN),
    ("required-missing", "a field that is required", answer(NAME, accept()), REFUSED),
    ("no-content", "no content counts as an empty one", answer(NAME, {"action": "accept"}), REFUSED),
    (
        "no-content-needed",
        "which is enough where nothing is required",
        answer(form(), {"action": "accept"}),
        TAKEN,
    ),
    ("optional-missing", "a field that is not", answer(form(name={"type": "string"}), accept()), TAKEN),
    ("content-array", "content is an object", answer(NAME, {"action": "accept", "content": []}), REFUSED),
    ("content-null", "content is an object", answer(form(), {"action": "accept", "content": None}), REFUSED),
]

ACTION: Final = [
    ("decline", "no thanks", answer(NAME, {"action": "decline"}), TAKEN),
    ("cancel", "gone away", answer(NAME, {"action": "cancel"}), TAKEN),
    (
        "decline-content",
        "what stands there is not looked at",
        answer(NAME, {"action": "decline", "content": {"name": 7}}),
        TAKEN,
    ),
    ("unknown", "another word", answer(NAME, {"action": "maybe"}), REFUSED),
    ("case", "words are exact", answer(NAME, {"action": "Accept", "content": {"name": "Ada"}}), REFUSED),
    ("missing", "no action", answer(NAME, {"content": {"name": "Ada"}}), REFUSED),
    ("null", "no object", answer(NAME, None), REFUSED),
    ("string", "no object", answer(NAME, "accept"), REFUSED),
    ("array", "no object", answer(NAME, [accept(name="Ada")]), REFUSED),
    ("extra", "more than is asked for", answer(NAME, {**accept(name="Ada"), "_meta": {"a": 1}}), TAKEN),
    ("url", "who goes to a URL owes no content", answer(URL, {"action": "accept"}), TAKEN),
    ("url-missing", "but says so", answer(URL, {}), REFUSED),
]

OTHERS: Final = [
    ("roots", "a list", answer(ROOTS, {"roots": [{"uri": "file:///home/ada", "name": "home"}]}), TAKEN),
    ("roots-empty", "an empty list", answer(ROOTS, {"roots": []}), TAKEN),
    ("roots-missing", "no list", answer(ROOTS, {}), REFUSED),
    ("roots-uri", "only files", answer(ROOTS, {"roots": [{"uri": "https://example.com"}]}), REFUSED),
    ("roots-action", "an answer to another kind of request", answer(ROOTS, {"action": "accept"}), REFUSED),
    (
        "sampled",
        "a message",
        answer(SAMPLE, {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}),
        TAKEN,
    ),
    ("sampled-empty", "no message", answer(SAMPLE, {}), REFUSED),
    (
        "sampled-model",
        "which model it was has to be said",
        answer(SAMPLE, {"role": "assistant", "content": {"type": "text", "text": "x"}}),
        REFUSED,
    ),
    (
        "sampled-role",
        "a role that there is not",
        answer(SAMPLE, {"role": "robot", "content": {"type": "text", "text": "x"}, "model": "m"}),
        REFUSED,
    ),
]


# -- capabilities ----------------------------------------------------------------------------------------


def asked(declared: Any, *requests: Any) -> dict[str, Any]:
    """Return requests, and what the client declares."""
    return {
        "requests": {f"q{number}": one for number, one in enumerate(requests)},
        "client_capabilities": declared,
    }


def missing(**capabilities: Any) -> dict[str, Any]:
    """Return what is missing."""
    return {"required": capabilities or None}


TOOLED: Final[dict[str, Any]] = {**SAMPLE, "params": {**SAMPLE["params"], "tools": []}}
CONTEXT: Final[dict[str, Any]] = {**SAMPLE, "params": {**SAMPLE["params"], "includeContext": "thisServer"}}

KINDS: Final = [
    ("form-empty", "an empty object means forms", asked({"elicitation": {}}, NAME), missing()),
    ("form", "forms are named", asked({"elicitation": {"form": {}}}, NAME), missing()),
    ("form-none", "nothing is declared", asked({}, NAME), missing(elicitation={"form": {}})),
    (
        "form-url-only",
        "URLs are no forms",
        asked({"elicitation": {"url": {}}}, NAME),
        missing(elicitation={"form": {}}),
    ),
    (
        "form-no-mode",
        "a request without a mode shows a form",
        asked(
            {"elicitation": {}},
            {
                "method": "elicitation/create",
                "params": {"message": "x", "requestedSchema": {"type": "object", "properties": {}}},
            },
        ),
        missing(),
    ),
    (
        "form-true",
        "only an object declares",
        asked({"elicitation": True}, NAME),
        missing(elicitation={"form": {}}),
    ),
    (
        "form-null",
        "only an object declares",
        asked({"elicitation": None}, NAME),
        missing(elicitation={"form": {}}),
    ),
    ("url", "URLs are named", asked({"elicitation": {"url": {}}}, URL), missing()),
    (
        "url-empty",
        "an empty object does not mean URLs",
        asked({"elicitation": {}}, URL),
        missing(elicitation={"url": {}}),
    ),
    (
        "url-form-only",
        "forms are no URLs",
        asked({"elicitation": {"form": {}}}, URL),
        missing(elicitation={"url": {}}),
    ),
    (
        "both",
        "both are asked for and declared",
        asked({"elicitation": {"form": {}, "url": {}}}, NAME, URL),
        missing(),
    ),
    ("roots", "roots", asked({"roots": {}}, ROOTS), missing()),
    ("roots-none", "nothing is declared", asked({}, ROOTS), missing(roots={})),
    ("sampling", "sampling", asked({"sampling": {}}, SAMPLE), missing()),
    ("sampling-none", "nothing is declared", asked({"elicitation": {}}, SAMPLE), missing(sampling={})),
    ("sampling-tools", "sampling with tools", asked({"sampling": {"tools": {}}}, TOOLED), missing()),
    (
        "sampling-tools-none",
        "tools are named",
        asked({"sampling": {}}, TOOLED),
        missing(sampling={"tools": {}}),
    ),
    (
        "sampling-context-none",
        "context is named",
        asked({"sampling": {}}, CONTEXT),
        missing(sampling={"context": {}}),
    ),
    (
        "several",
        "all that is missing, at once",
        asked({"elicitation": {}}, NAME, ROOTS, SAMPLE),
        missing(roots={}, sampling={}),
    ),
    (
        "tasks-only",
        "tasks are no kind of input",
        asked({"extensions": {"io.modelcontextprotocol/tasks": {}}}, NAME),
        missing(elicitation={"form": {}}),
    ),
]

KEYS: Final = [
    ("new", "the tool's own name", {"name": "confirm", "used": []}, {"key": "confirm"}),
    ("second", "asked twice", {"name": "confirm", "used": ["confirm"]}, {"key": "confirm.2"}),
    (
        "third",
        "asked three times",
        {"name": "confirm", "used": ["confirm", "confirm.2"]},
        {"key": "confirm.3"},
    ),
    (
        "gap",
        "the first that is free",
        {"name": "confirm", "used": ["confirm", "confirm.3"]},
        {"key": "confirm.2"},
    ),
    (
        "others",
        "other names do not count",
        {"name": "confirm", "used": ["size", "size.2"]},
        {"key": "confirm"},
    ),
    (
        "like-a-number",
        "a tool's own name may look so",
        {"name": "confirm.2", "used": ["confirm", "confirm.2"]},
        {"key": "confirm.2.2"},
    ),
]


def vectors() -> list[Vector]:
    """Return all of them."""
    check = "check_response"
    return [
        *table(check, "UPD.4", ACTIONS, _of("action", ACTION)),
        *table(check, "UPD.4", FORMS, _of("form", FORM)),
        *table(check, "UPD.4", FORMS, _of("field", FIELDS)),
        *table(check, "UPD.4", spec("basic/patterns/mrtr", "inputresponses"), OTHERS),
        *table("missing_capabilities", "INP.2 NEG.10", CAPABILITIES, KINDS[:11]),
        *table("missing_capabilities", "INP.2 NEG.10", SAMPLING, KINDS[11:]),
        *table("unique_key", "INP.1", decided("INP.1"), KEYS),
    ]


def _of(kind: str, rows: list[Any]) -> list[Any]:
    return [(f"{kind}-{word}", *rest) for word, *rest in rows]
