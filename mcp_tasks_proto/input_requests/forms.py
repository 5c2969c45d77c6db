"""Forms: the restricted JSON Schema of ``requestedSchema``, and what people fill in (core, "Elicitation").

A form is one flat object: its fields are strings, numbers, booleans, a choice of one, or a choice of several.
What comes back is checked against every keyword that such a schema may have, with JSON Schema's own meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from mcp_tasks_proto.input_requests.formats import FORMATS
from mcp_tasks_proto.input_requests.shapes import (
    AMOUNT,
    BOOLEAN,
    NUMBER,
    OBJECT,
    STRING,
    STRINGS,
    Check,
    array_of,
    by_tag,
    choice,
    is_integer,
    is_number,
    members,
    some,
)

__all__ = ["check_authored_schema", "check_content", "check_schema"]


# -- the schema ----------------------------------------------------------------------------------------

_WORDS: Final = some(STRINGS)
_OPTIONS: Final = some(array_of(members({"const": STRING, "title": STRING})))

_UNTITLED_ITEMS: Final = members({"type": choice("string"), "enum": _WORDS})
_TITLED_ITEMS: Final = members({"anyOf": _OPTIONS}, optional={"type": choice("string"), "enum": _WORDS})


def _items(candidate: Any) -> str | None:
    titled = isinstance(candidate, Mapping) and "anyOf" in candidate
    return (_TITLED_ITEMS if titled else _UNTITLED_ITEMS)(candidate)


_RANGE: Final[Mapping[str, Check]] = {"minimum": NUMBER, "maximum": NUMBER}
_FIELDS: Final[Mapping[str, tuple[Mapping[str, Check], Mapping[str, Check]]]] = {
    "string": (
        {},
        {
            "minLength": AMOUNT,
            "maxLength": AMOUNT,
            "format": STRING,
            "enum": _WORDS,
            "enumNames": STRINGS,
            "oneOf": _OPTIONS,
        },
    ),
    "number": ({}, _RANGE),
    "integer": ({}, _RANGE),
    "boolean": ({}, {}),
    "array": ({"items": _items}, {"minItems": AMOUNT, "maxItems": AMOUNT}),
}
"""Type of a field -> the keywords it must have, and those it may have."""

_FIELD: Final = by_tag(
    "type",
    {
        kind: members(required, optional={"title": STRING, "description": STRING, **optional})
        for kind, (required, optional) in _FIELDS.items()
    },
)
_SCHEMA: Final = members(
    {"type": choice("object"), "properties": OBJECT}, optional={"required": STRINGS, "$schema": STRING}
)


def check_schema(schema: Any) -> str | None:
    """Accept the schema of a form."""
    if problem := _SCHEMA(schema):
        return problem
    for name, field in schema["properties"].items():
        if problem := _FIELD(field):
            return f".properties[{name!r}]{problem}"
    return None


# -- what only an author is held to -------------------------------------------------------------------

# fmt: off
_KEYWORDS: Final = frozenset(
    {
        "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
        "dependentSchemas", "dependentRequired", "dependencies", "type", "enum", "const", "multipleOf",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
        "format", "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
        "minContains", "maxContains", "minItems", "maxItems", "uniqueItems", "properties",
        "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames",
        "minProperties", "maxProperties", "required",
    }
)
# fmt: on
"""The keywords with which JSON Schema refuses values, in any of its versions."""

_FORMAT: Final = choice(*FORMATS)


def check_authored_schema(schema: Mapping[str, Any]) -> str | None:
    """Accept a schema that :func:`check_schema` accepts, if the form does what its author means.

    Nobody would hold an answer to a keyword that forms do not have; a required field that is not on the form
    cannot be filled in; a default that the form refuses would come back as an error.
    """
    if problem := _check_keywords(schema, ("type", "properties", "required")):
        return problem
    for name in schema.get("required", ()):
        if name not in schema["properties"]:
            return f".required names {name!r}, which is not one of the properties"
    for name, field in schema["properties"].items():
        if problem := _check_authored_field(field):
            return f".properties[{name!r}]{problem}"
    return None


def _check_authored_field(field: Mapping[str, Any]) -> str | None:
    for where, part, known in _parts(field):
        if problem := _check_keywords(part, known):
            return f"{where}{problem}"
    if "format" in field and (problem := _FORMAT(field["format"])):
        return f".format{problem}"
    if "default" in field and (problem := _check_value(field, field["default"])):
        return f".default{problem}"
    return None


def _parts(field: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Collection[str]]]:
    """Every schema in a field: where it stands, itself, and the keywords that mean something in it."""
    required, optional = _FIELDS[field["type"]]
    yield "", field, {"type", *required, *optional}
    items = field.get("items", {})
    yield ".items", items, ("type", "enum", "anyOf")
    for where, holder, keyword in (("", field, "oneOf"), (".items", items, "anyOf")):
        for index, option in enumerate(holder.get(keyword, ())):
            yield f"{where}.{keyword}[{index}]", option, ("const",)


def _check_keywords(schema: Mapping[str, Any], known: Collection[str]) -> str | None:
    foreign = sorted(_KEYWORDS.intersection(schema).difference(known))
    return f" has {foreign[0]!r}, which forms do not know there" if foreign else None


# -- the answer -----------------------------------------------------------------------------------------


def check_content(schema: Mapping[str, Any], content: Any) -> str | None:
    """Accept what was filled in, for a schema that :func:`check_schema` accepts.

    As in JSON Schema, members beside the form's own are let pass.
    """
    if problem := OBJECT(content):
        return problem
    for name in schema.get("required", ()):
        if name not in content:
            return f" lacks {name!r}"
    for name, field in schema["properties"].items():
        if name in content and (problem := _check_value(field, content[name])):
            return f"[{name!r}]{problem}"
    return None


def _check_value(field: Mapping[str, Any], value: Any) -> str | None:
    match field["type"]:
        case "string":
            return _check_string(field, value)
        case "boolean":
            return BOOLEAN(value)
        case "array":
            return _check_selection(field, value)
        case "integer" if not is_integer(value):
            return " must be an integer"
        case "number" if not is_number(value):
            return " must be a number"
    return _check_range(field, value, "minimum", "maximum")


def _check_string(field: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return " must be a string"
    if problem := _check_range(field, len(value), "minLength", "maxLength"):
        return problem
    known_format = FORMATS.get(field["format"]) if "format" in field else None
    if known_format is not None and not known_format.fits(value):
        return f" must be {known_format.wanted}"
    titled = [option["const"] for option in field.get("oneOf", ())]
    if value not in field.get("enum", (value,)) or (titled and titled.count(value) != 1):
        return " must be one of the choices offered"
    return None


def _check_selection(field: Mapping[str, Any], value: Any) -> str | None:
    if problem := STRINGS(value):
        return problem
    if problem := _check_range(field, len(value), "minItems", "maxItems"):
        return problem
    items, chosen = field["items"], set(value)
    titled = (option["const"] for option in items.get("anyOf", ()))
    for offered in (items.get("enum"), titled if "anyOf" in items else None):
        if offered is not None and not chosen.issubset(offered):
            return " must be among the choices offered"
    return None


def _check_range(field: Mapping[str, Any], amount: float, least: str, most: str) -> str | None:
    if least in field and amount < field[least]:
        return f" must keep to the form's {least}"
    if most in field and amount > field[most]:
        return f" must keep to the form's {most}"
    return None
