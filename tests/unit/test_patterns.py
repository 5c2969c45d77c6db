"""Regular expressions mean the same in every Python that is supported."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = [
    path for folder in ("mcp_tasks_proto", "adapters") for path in (ROOT / folder).rglob("*.py")
]
POSSESSIVE_GROUP: Final = re.compile(r"\)(?:[*+?]|\{[0-9,]*\})\+|\(\?>")


def possessive_groups(source: str) -> list[str]:
    """Return the strings that repeat a group possessively, or have an atomic one."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and POSSESSIVE_GROUP.search(text)]


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11.0 to 3.11.4 go on from where the group failed, not from where it began."""
    assert {str(path): found for path in SOURCES if (found := possessive_groups(path.read_text()))} == {}


@pytest.mark.parametrize("pattern", ["(?:a|b)*+", "(a)++", "(a)?+", "(ab){2,}+", "(?>a)"])
def test_sees_such_a_group(pattern: str) -> None:
    assert possessive_groups(f"x = r{pattern!r}")
