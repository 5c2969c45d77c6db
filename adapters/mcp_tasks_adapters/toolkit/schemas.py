"""JSON Schemas of tools: checked when the tool is declared, then used on every call.

Nothing is ever fetched: a ``$ref`` leads within the schema or to a metaschema of JSON Schema itself, else the
declaration is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Schema"]

_PROBLEMS_SHOWN = 5
_PROBLEM_CHARS = 300


class Schema:
    """One schema, ready to check values.

    The dialect is the one ``$schema`` names, 2020-12 by default. Raises ``ValueError``, naming the tool's
    ``owner`` as the author knows it, for an unknown dialect, an invalid schema, or a reference that leads
    nowhere; ``ModuleNotFoundError`` without ``jsonschema``, which every adapter extra brings.
    """

    def __init__(self, definition: Mapping[str, Any], *, owner: str) -> None:
        # Slow to import, and of no use to a server whose tools have no schemas.
        import jsonschema  # type: ignore[import-untyped]

        kind = jsonschema.validators.validator_for(definition, default=None)
        if kind is None:
            dialect = definition.get("$schema")
            if dialect is not None:
                raise ValueError(f"{owner}: the schema dialect {dialect!r} is not supported")
            kind = jsonschema.Draft202012Validator
        try:
            kind.check_schema(definition)
        except jsonschema.SchemaError as error:
            raise ValueError(f"{owner}: not a valid schema, at {error.json_path}: {error.message}") from None
        _check_references(definition, kind.META_SCHEMA["$schema"], owner)
        # Whoever follows a reference to the root would go on with the class that "$schema" names.
        schema = {keyword: value for keyword, value in definition.items() if keyword != "$schema"}
        quick = jsonschema.validators.extend(kind, {"uniqueItems": _unique_items})
        self._validator = quick(schema, registry=_registry())

    def problem(self, value: Any, name: str) -> str | None:
        """Return what is wrong with ``value``, called ``name``, in a line a problem; ``None``: nothing."""
        errors = self._validator.iter_errors(value)
        try:
            shown = [_describe(error, name) for error, _ in zip(errors, range(_PROBLEMS_SHOWN), strict=False)]
        except ArithmeticError:  # "multipleOf" tries to divide whatever is called a number
            return f"{name}: a number is too large to be checked"
        return "\n".join(shown) or None


def _unique_items(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    """Check ``uniqueItems``. The library compares every item with every other, for hours if a peer wants."""
    from jsonschema import ValidationError

    if wanted and validator.is_type(value, "array") and len(set(map(_canonical, value))) < len(value):
        yield ValidationError("has non-unique elements")


def _canonical(value: Any) -> str:
    """Return a text that is the same for two JSON values exactly when they are equal: 1 is 1.0, and not true.

    A text, because the hashes of numbers can be made to collide.
    """
    return json.dumps(_with_integers(value), sort_keys=True)


def _with_integers(value: Any) -> Any:
    match value:
        case dict():
            return {name: _with_integers(member) for name, member in value.items()}
        case list():
            return list(map(_with_integers, value))
        case float() if value.is_integer():
            return int(value)
    return value


def _describe(error: Any, name: str) -> str:
    message = error.message
    if len(message) > _PROBLEM_CHARS:
        message = f"{message[:_PROBLEM_CHARS]}…"
    return f"{name}{error.json_path[1:]}: {message}"


def _registry() -> Any:
    """Return a registry that knows the metaschemas, and fetches nothing."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    return REGISTRY


def _check_references(definition: Mapping[str, Any], dialect: str, owner: str) -> None:
    """Raise ``ValueError`` unless every reference in the schema leads somewhere."""
    import referencing.exceptions
    import referencing.jsonschema

    specification = referencing.jsonschema.specification_with(dialect)
    root = specification.create_resource(definition)
    pending = [(root, _registry().resolver_with_root(root))]
    while pending:
        resource, resolver = pending.pop()
        for reference in _references(resource.contents):
            try:
                resolver.lookup(reference)
            except (referencing.exceptions.Unresolvable, ValueError):
                raise ValueError(
                    f"{owner}: the reference {reference!r} leads nowhere; references are never fetched"
                ) from None
        pending.extend((inner, resolver.in_subresource(inner)) for inner in resource.subresources())


def _references(contents: Any) -> list[str]:
    if not isinstance(contents, Mapping):
        return []
    found = (contents.get(keyword) for keyword in ("$ref", "$dynamicRef", "$recursiveRef"))
    return [reference for reference in found if isinstance(reference, str)]
