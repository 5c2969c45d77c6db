"""How the sources of the vectors are written: one vector a line where that is enough to understand it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

__all__ = ["Vector", "conversation", "decided", "function", "legacy_spec", "spec", "table", "tasks_spec"]

Vector = dict[str, Any]

MODERN: Final = "docs/specification/2026-07-28/"
LEGACY: Final = "docs/specification/2025-11-25/"
TASKS: Final = "specification/draft/tasks.md"


# -- where a rule comes from -----------------------------------------------------------------------------


def spec(page: str, section: str) -> str:
    """Name a section of the specification of 2026-07-28."""
    return f"{MODERN}{page}.mdx#{section}"


def legacy_spec(page: str, section: str) -> str:
    """Name a section of the specification of 2025-11-25."""
    return f"{LEGACY}{page}.mdx#{section}"


def tasks_spec(section: str) -> str:
    """Name a section of the Tasks extension (SEP-2663)."""
    return f"{TASKS}#{section}"


def decided(rule: str) -> str:
    """Say that the specification leaves it open, and that this project has decided."""
    return f"decision: {rule}"


# -- vectors ---------------------------------------------------------------------------------------------


def function(name: str, id_: str, says: str, given: Any, expect: Any, *, rules: str, source: str) -> Vector:
    """Return a vector for a pure function."""
    return {
        "id": id_,
        "rules": rules.split(),
        "source": source,
        "says": says,
        "kind": "function",
        "function": name,
        "given": given,
        "expect": expect,
    }


def table(
    name: str,
    rules: str,
    source: str,
    rows: Sequence[tuple[str, str, Any, Any]],
    *,
    ours: Collection[str] = (),
) -> list[Vector]:
    """Return vectors for one function: the last word of each id, what it says, what is given and expected.

    ``ours`` are the words of those that the specification leaves open.
    """
    first = rules.split()[0]
    sources = {word: decided(first) if word in ours else source for word, *_ in rows}
    assert sources.keys() >= set(ours), set(ours) - sources.keys()
    return [
        function(name, f"{first}/{name}/{word}", says, given, expect, rules=rules, source=sources[word])
        for word, says, given, expect in rows
    ]


def conversation(
    role: str,
    id_: str,
    says: str,
    steps: Sequence[Mapping[str, Any]],
    *,
    rules: str,
    source: str,
    setup: Mapping[str, Any],
) -> Vector:
    """Return a vector for an engine of this role. What came on a shared channel has no HTTP status."""
    on_channels = {step["given"]["exchange"] for step in steps if "channel" in step["given"]}
    return {
        "id": id_,
        "rules": rules.split(),
        "source": source,
        "says": says,
        "kind": "conversation",
        "role": role,
        "setup": dict(setup),
        "steps": [_on_these(step, on_channels) for step in steps],
    }


def _on_these(step: Mapping[str, Any], channels: Collection[str]) -> dict[str, Any]:
    return {**step, "expect": [_without_status(output, channels) for output in step["expect"]]}


def _without_status(output: Mapping[str, Any], exchanges: Collection[str]) -> dict[str, Any]:
    unsaid = "http_status" if output.get("exchange") in exchanges else None
    return {name: value for name, value in output.items() if name != unsaid}
