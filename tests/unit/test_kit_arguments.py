"""Arguments that are made up for tools: they fit common schemas, and no schema makes them fail."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from mcp_tasks_proto.testing.kit.arguments import sample


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a", "b"]},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "required": ["a"],
            "$defs": {"a": {"const": 1}},
        },
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x~1y~0z"}}, "required": ["a"]}
        | {"$defs": {"x/y~z": {"const": 1}}},
        {"type": ["integer", "null"], "maximum": -5},
        {"type": "integer", "minimum": 1.5, "maximum": 2.5},
        {"type": "number", "exclusiveMinimum": 3},
        {"type": "number", "exclusiveMaximum": 0},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "string", "minLength": 9},
        {"type": "string", "maxLength": 2},
        {"type": "string", "format": "date-time"},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
        {"enum": ["a", "b"]},
        {"type": "string", "examples": ["x"]},
        {"default": {"a": []}},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"oneOf": [{"const": "a"}]},
        {"allOf": [{"type": "string"}]},
        {"allOf": [{"required": ["a"]}], "properties": {"a": {"type": "string"}}, "required": ["a"]},
    ],
)
def test_a_sample_fits_its_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(schema).validate(sample(schema))


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": []},
        {"type": {}},
        {"enum": []},
        {"enum": "abc"},
        {"$ref": "#/nowhere/at/all"},
        {"$ref": "#"},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 10**9},
        {"type": "object", "properties": [], "required": [1, "a"]},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}},
            "required": ["a", "b"] * 500,
        },
        {"type": "string", "minLength": 10**12, "maxLength": -1},
        {"type": "string", "minLength": "9"},
        {"type": "integer", "minimum": True},
        {"type": "integer", "minimum": float("inf")},
        {"type": "string", "maxLength": float("nan")},
        {"type": "array", "minItems": float("inf")},
    ],
)
def test_no_schema_is_too_odd(schema: Any) -> None:
    sample(schema)
