"""Where a key of a TOML document stands: each that its reader finds, in the line where it is written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_tasks_adapters.proxy.toml_lines import Path, find_lines

DOCUMENT = '''\
# first, a comment with [brackets] and a "quote
name = "one" # and one behind
"quoted.key" . 'other' = 'it''s'[0:0]

[listen]
port=1
hosts = [ # where
  "a, b ]",
  'c',

  { x = 1, "y z" = [1, [2, 3], {}] },
]

text = """
[not.a.table]
no = 1 \\""" still ""\\""""
raw = \'\'\'
[nor.this] \'\'\'\'\'
[ servers . "a.b" ]
when = 2026-08-01T12:00:00Z
tail.deep.est = { a.b = 1, c = "}" }

[[people]]
name = "x"
[people.home]
town = "y"
[[people]]
name = "z"
[[people.tokens]]
a = 1
[[people.tokens]]
a = 2
'''.replace("'it''s'[0:0]", "'it is'")


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    if above:
        yield above
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield from paths(member, (*above, name))


def test_each_key_is_found_where_it_stands() -> None:
    found = find_lines(DOCUMENT)
    assert set(found) == set(paths(tomllib.loads(DOCUMENT)))
    rows = DOCUMENT.splitlines()
    assert [
        rows[found[path] - 1] for path in (("quoted.key", "other"), ("listen",), ("listen", "hosts", 1))
    ] == [
        "\"quoted.key\" . 'other' = 'it is'",
        "[listen]",
        "  'c',",
    ]
    assert found["listen", "hosts", 2, "y z", 1, 1] == 11
    assert rows[found["servers", "a.b", "tail", "deep", "est", "c"] - 1].startswith("tail.deep.est")
    assert rows[found["people", 1, "tokens", 1, "a"] - 1] == "a = 2"
    assert rows[found["people", 1, "tokens", 1, "a"] - 2] == "[[people.tokens]]"
    assert rows[found["people", 0, "home", "town"] - 1] == 'town = "y"'


@pytest.mark.parametrize("text", ["", "\n\n# nothing", "a = 1", "a = 1\r\nb = [\r\n 2]\r\n", "[a]\n[b]"])
def test_small_documents(text: str) -> None:
    assert set(find_lines(text)) == set(paths(tomllib.loads(text)))


keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=4)
values = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), keys),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)


def written(value: Any) -> str:
    """Write a value as TOML, on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        pairs = (f"{written(name)} = {written(member)}" for name, member in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[ {' , '.join(written(member) for member in value)} ]"
    return str(value).lower()


@given(st.dictionaries(keys, st.dictionaries(keys, values, max_size=3), max_size=3))
def test_every_document_gives_up_its_lines(document: dict[str, Any]) -> None:
    lines: list[str] = []
    expected: dict[Path, int] = {}
    for table, members in document.items():
        lines.append(f"[{written(table)}]")
        expected[table,] = len(lines)
        for name, member in members.items():
            lines.append(f"{written(name)} = {written(member)}")
            expected |= dict.fromkeys(paths(member, (table, name)), len(lines))
    text = "\n".join(lines)
    assert set(paths(tomllib.loads(text))) == set(expected)
    assert find_lines(text) == expected
