"""What it means for two JSON values to be the same."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["canonical", "read_json", "same"]


def canonical(value: Any) -> str:
    """Return a value as text, the same for the same values only: 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, whatever the order of their members."""
    return canonical(one) == canonical(other)


def read_json(data: bytes) -> Any:
    """Read an input as JSON that can be sent; ``None``: it is none.

    As text: given bytes, Python would read UTF-16 as well, and past a byte order mark.
    """
    try:
        value = json.loads(data.decode("utf-8"))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    return value
