"""Values made up to fit a JSON Schema: arguments for tools, contents for forms.

The schema is a server's, so that nothing in it makes this raise, or go on for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define

__all__ = ["sample"]

DEPTH: Final = 8
"""How deep a value may go; schemas may refer to themselves."""
PARTS: Final = 256
"""How many parts a value may have."""
LENGTH: Final = 1024
"""How long a text may be."""

BOUND: Final = 10**300
"""Of numbers that are looked at: those beyond, infinite ones and NaN are not."""

FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-07-28",
    "date-time": "2026-07-28T00:00:00Z",
    "email": "kit@example.org",
    "uri": "https://example.org/",
}


def sample(schema: Any) -> Any:
    """Return a value that very likely fits: defaults, first choices, and no more than is required.

    Patterns are not looked at, and bounds beyond those above are not kept.
    """
    return _Maker(schema).make(schema, DEPTH)


@define
class _Maker:
    root: Any
    """The whole schema, for references within it."""
    left: int = PARTS

    def make(self, schema: Any, depth: int) -> Any:
        self.left -= 1
        if not isinstance(schema, Mapping) or depth == 0 or self.left < 0:
            return None
        for word in ("const", "default"):
            if word in schema:
                return schema[word]
        for word in ("enum", "examples"):
            if choices := _array(schema, word):
                return choices[0]
        if isinstance(reference := schema.get("$ref"), str):
            return self.make(self._referred(reference), depth - 1)
        for word in ("anyOf", "oneOf", "allOf"):
            if (choices := _array(schema, word)) and "properties" not in schema:
                return self.make(choices[0], depth - 1)
        return self._of_type(schema, depth)

    def _referred(self, reference: str) -> Any:
        found = self.root
        for part in reference.removeprefix("#").strip("/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kinds = schema.get("type", "object" if "properties" in schema else None)
        kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
        match kind:
            case "object":
                known = schema.get("properties")
                schemas: Mapping[str, Any] = known if isinstance(known, Mapping) else {}
                names = [name for name in _array(schema, "required") if isinstance(name, str)]
                return {name: self.make(schemas.get(name, {"type": "string"}), depth - 1) for name in names}
            case "array":
                least = min(_number(schema, "minItems", 0), self.left)
                return [self.make(schema.get("items"), depth - 1) for _ in range(int(least))]
            case "string":
                text = FORMATS.get(str(schema.get("format")), "kit")
                least, most = _number(schema, "minLength", 0), _number(schema, "maxLength", LENGTH)
                return text.ljust(int(min(least, LENGTH)), "t")[: max(0, int(most))]
            case "integer" | "number":
                below = min(_number(schema, "maximum", 1), _number(schema, "exclusiveMaximum", 2) - 1)
                above = _number(schema, "exclusiveMinimum", below - 1) + 1
                number = _number(schema, "minimum", max(below, above))
                return int(-(-number // 1)) if kind == "integer" else number
            case "boolean":
                return True
        return None


def _array(schema: Mapping[str, Any], word: str) -> list[Any]:
    found = schema.get(word)
    return found[:PARTS] if isinstance(found, list) else []


def _number(schema: Mapping[str, Any], word: str, otherwise: float) -> Any:
    found = schema.get(word)
    if not isinstance(found, int | float) or isinstance(found, bool):
        return otherwise
    return found if abs(found) < BOUND else otherwise
