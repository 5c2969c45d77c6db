"""Documentation that cannot rot: generated pages are up to date, and every Python example runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from docs.generate_kit import PAGE as KIT_PAGE
from docs.generate_kit import checks, with_part
from mcp_tasks_proto.testing import model, strategies, strategies_for_requesters

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
"""A Python block and, where one follows at once, the text that it prints."""
LEGACY_TRAPS: Final = range(21, 25)


def load_generator() -> ModuleType:
    spec = spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR: Final = load_generator()


def examples() -> list[Any]:
    """Every Python block of the README and ``docs/``, with what it prints."""
    found = []
    for page in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
        for number, match in enumerate(EXAMPLE.finditer(page.read_text(encoding="utf-8")), start=1):
            found.append(pytest.param(*match.groups(), id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize("name", GENERATOR.PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == GENERATOR.PAGES[name](), "run `make docs`"


def test_the_checks_of_the_kit_are_up_to_date() -> None:
    written = KIT_PAGE.read_text(encoding="utf-8")
    assert written == with_part(written, "checks", checks()), (
        "run `python -m docs.generate_kit --without-runs`"
    )


def test_every_rule_has_a_test_and_every_citation_a_rule() -> None:
    known = {rule for section in GENERATOR.SECTIONS.values() for rule in section}
    cited = GENERATOR.citations()
    assert [rule for rule in known if not cited[rule]] == []
    assert sorted(set(cited) - known) == []


@pytest.mark.parametrize("trap", LEGACY_TRAPS)
def test_the_traps_of_the_legacy_era_are_tests_of_both_sides(trap: int) -> None:
    named = re.compile(rf"def test_(\w+_)?trap{trap}_")
    tests = [
        path.name for path in Path(__file__).parent.glob("test_*.py") if named.search(path.read_text("utf-8"))
    ]
    assert any(name.startswith("test_legacy_requester_") for name in tests)
    assert any(not name.startswith("test_legacy_requester_") for name in tests)


@pytest.mark.parametrize(("source", "printed"), examples())
def test_examples_run(source: str, printed: str | None, tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    if printed is not None:
        assert ran.stdout == printed


def test_the_counts_of_visited_states_are_those_that_tests_check() -> None:
    page = " ".join((DOCS / "testing.md").read_text(encoding="utf-8").split())
    told = re.findall(r"(\d[\d ]*) states, (\d[\d ]*) steps", page)
    checked = {
        found
        for name in ("test_every_state.py", "test_every_requester_state.py")
        for found in re.findall(
            r"states=(\d+), moves=(\d+)", (ROOT / "tests/model" / name).read_text("utf-8")
        )
    }
    assert told
    assert {tuple(count.replace(" ", "") for count in counts) for counts in told} <= checked


@pytest.mark.parametrize("module", [strategies, strategies_for_requesters])
def test_every_strategy_is_in_a_table_of_the_page(module: ModuleType) -> None:
    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    name = module.__name__.removeprefix("mcp_tasks_proto.testing")
    _, _, table = page.partition(f"| in `{name}` |")
    rows = re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE)
    functions = [one for one in module.__all__ if one.islower()]
    assert sorted(rows) == sorted(functions)
    assert [one for one in module.__all__ if not one.islower() and f"`{one}`" not in page] == []


@pytest.mark.parametrize("name", [one for one in model.__all__ if one.endswith("Model")] + ["ProxyModel"])
def test_every_reference_model_is_shown_at_work(name: str) -> None:
    examples = EXAMPLE.findall((DOCS / "testing.md").read_text(encoding="utf-8"))
    assert any(f"{name}(" in source for source, _ in examples)


def test_the_readme_shows_how_to_embed_the_core() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "engine.handle(" in "".join(source for source, _ in EXAMPLE.findall(readme))


def test_the_readme_names_only_targets_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`?make (\w+)`?", readme))
    assert targets >= {"demo", "test"}
    assert targets <= set(re.findall(r"^(\w+):", makefile, re.MULTILINE))


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
