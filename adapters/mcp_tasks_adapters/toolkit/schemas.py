"""JSON Schemas of tools: checked when the tool is declared, then used on every call.

Nothing is ever fetched: a ``$ref`` leads within the schema or to a metaschema of JSON Schema itself, else the
declaration is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

__all__ = ["GaveUpError", "Schema"]

_PROBLEMS_SHOWN = 5
_PROBLEM_CHARS = 300

PEERS_SCHEMA_CHARS: Final = 64 * 1024
"""A longer schema of a peer's is not used: to check it alone takes more than a second."""
PEERS_SCHEMA_STEPS: Final = 50_000
"""Keywords that are looked at, and members of theirs, to check one value against a schema of a peer's."""

_CHOOSING: Final = frozenset(
    {"not", "oneOf", "if", "then", "else", "contains", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that may refuse a value because a schema in them, or beside them, accepts it."""


class GaveUpError(Exception):
    """To check a value against a peer's schema would take too long."""


class Schema:
    """One schema, ready to check values.

    The dialect is the one ``$schema`` names, 2020-12 by default. Raises ``ValueError``, naming the tool's
    ``owner`` as the author knows it, for an unknown dialect, an invalid schema, or a reference that leads
    nowhere; ``ModuleNotFoundError`` without ``jsonschema``, which every adapter extra brings.

    ``of_peer``: a peer wrote it, and may want to keep this process busy. Its regular expressions are not run,
    so that it may refuse less than it says; one that is very large, or in which they choose the schemas of
    properties, is refused with ``ValueError``.
    """

    def __init__(self, definition: Mapping[str, Any], *, owner: str, of_peer: bool = False) -> None:
        if of_peer:
            _check_affordable(definition, owner)
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
        self._budget = _Budget() if of_peer else None
        keywords: dict[str, _Check] = {"uniqueItems": _unique_items}
        if self._budget is not None:
            keywords = self._budget.counting({**kind.VALIDATORS, **keywords})
        self._validator = jsonschema.validators.extend(kind, keywords)(schema, registry=_registry())

    def problem(self, value: Any, name: str) -> str | None:
        """Return what is wrong with ``value``, called ``name``, in a line a problem; ``None``: nothing.

        Raises :class:`GaveUpError` where a peer's schema makes that too much work.
        """
        errors = self._validator.iter_errors(value)
        if self._budget is not None:
            errors = self._budget.spent_on(errors)
        try:
            shown = [_describe(error, name) for error, _ in zip(errors, range(_PROBLEMS_SHOWN), strict=False)]
        except ArithmeticError:  # "multipleOf" tries to divide whatever is called a number
            return f"{name}: a number is too large to be checked"
        return "\n".join(shown) or None


def _check_affordable(definition: Mapping[str, Any], owner: str) -> None:
    """Raise ``ValueError`` for a peer's schema that is not used."""
    text = json.dumps(definition)
    if len(text) > PEERS_SCHEMA_CHARS:
        raise ValueError(f"{owner}: the schema is too large")
    if '"patternProperties"' in text:
        raise ValueError(f"{owner}: the schema holds patternProperties, which are not run")


_Check = Callable[[Any, Any, Any, Any], Any]
"""What checks one keyword: of a validator, the keyword's value, the value to check, and the whole schema."""


class _Budget:
    """How much work may still go into one check."""

    def __init__(self) -> None:
        self._steps = 0
        self._skipped = False

    def counting(self, keywords: Mapping[str, _Check]) -> dict[str, _Check]:
        """Return the keywords such that each counts what it does, and no pattern is run."""
        counting = {keyword: self._counted(check) for keyword, check in keywords.items()}
        return {**counting, "pattern": self._skip}

    def spent_on(self, errors: Iterator[Any]) -> Iterator[Any]:
        """Return the errors, without those that only a pattern that was not run may have caused."""
        self._steps, self._skipped = PEERS_SCHEMA_STEPS, False
        for error in errors:
            if not (self._skipped and _CHOOSING.intersection(error.absolute_schema_path)):
                yield error

    def _counted(self, check: _Check) -> _Check:
        def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
            self._steps -= max(1, len(wanted)) if isinstance(wanted, list | dict) else 1
            if self._steps < 0:
                raise GaveUpError("the check takes too long")
            return check(validator, wanted, value, schema)

        return counted

    def _skip(self, validator: Any, wanted: Any, value: Any, schema: Any) -> None:
        self._skipped = True


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
