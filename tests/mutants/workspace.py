"""Where mutants live: a copy of the core that mutmut can read, beside the tests, in ``.mutants``.

mutmut leaves decorated functions alone, and every property and validator of the core is one. In the copy each
decorator is applied in a line of its own after the function, which means the same, so that mutmut sees them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]  # there is a link to this folder in the workspace
WORKSPACE: Final = REPOSITORY / ".mutants"
MUTANTS: Final = WORKSPACE / "mutants"
"""What mutmut makes of it."""
CORE: Final = "mcp_tasks_proto"

TESTS: Final = ("tests/unit", "tests/traces")

_CONFIGURATION: Final = """\
[tool.pytest.ini_options]
pythonpath = ["."]
addopts = "--import-mode=importlib --strict-markers -p no:cacheprovider"

[tool.mutmut]
source_paths = ["{core}"]
only_mutate = {modules}
also_copy = ["adapters", "docs"]
"""

_LEFT_DECORATED: Final = {"overload", "staticmethod", "classmethod"}
"""mutmut knows the last two; an overload does nothing."""


def undecorated(source: str) -> str:
    """Return ``source`` with decorators applied after their functions: ``name = property(name)``."""
    lines = source.splitlines()
    # From the end, so that the numbers of the lines before stay what they are.
    for function in sorted(_decorated(ast.parse(source)), key=lambda found: -found.lineno):
        decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
        applied = function.name
        for decorator in reversed(decorators):
            applied = f"{decorator}({applied})"
        indent = " " * function.col_offset
        assert function.end_lineno is not None
        lines.insert(function.end_lineno, f"{indent}{function.name} = {applied}")
        del lines[function.decorator_list[0].lineno - 1 : function.lineno - 1]
    return "\n".join(lines) + "\n"


def _decorated(module: ast.Module) -> Iterator[ast.FunctionDef]:
    places: list[list[ast.stmt]] = [
        module.body,
        *(node.body for node in module.body if isinstance(node, ast.ClassDef)),
    ]
    for place in places:
        for node in place:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                names = {ast.unparse(decorator) for decorator in node.decorator_list}
                if not names & _LEFT_DECORATED:
                    yield node


def prepare(modules: Iterable[str], workspace: Path = WORKSPACE) -> None:
    """Bring the copy up to date and write mutmut's configuration for ``modules``."""
    modules = sorted(modules)
    workspace.mkdir(exist_ok=True)
    for name in ("tests", "docs", "adapters"):
        if not (workspace / name).exists():
            (workspace / name).symlink_to(REPOSITORY / name)
    for path in sorted((REPOSITORY / CORE).rglob("*.py")):
        module = str(path.relative_to(REPOSITORY))
        text = path.read_text()
        _write(workspace / module, undecorated(text) if module in modules else text)
        if module in modules:
            _forget_plain_copy(workspace / "mutants" / module)
    for path in (REPOSITORY / CORE).rglob("*.typed"):
        _write(workspace / path.relative_to(REPOSITORY), path.read_text())
    _write(workspace / "pyproject.toml", _CONFIGURATION.format(core=CORE, modules=json.dumps(modules)))


def _forget_plain_copy(mutated: Path) -> None:
    """Have mutmut make a module anew that it has copied as it is, or was making when it was interrupted.

    It would take any file that is younger than its source for done. Verdicts are kept beside it; where it was
    killed while it wrote those, there are none.
    """
    verdicts = mutated.with_suffix(".py.meta")
    if verdicts.exists() and not _is_json(verdicts):
        verdicts.unlink()
        mutated.unlink(missing_ok=True)
    if mutated.exists() and "__mutmut_orig" not in mutated.read_text():
        mutated.unlink()


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def _write(path: Path, text: str) -> bool:
    """Write a file unless it says the same already; return whether it was written."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True
