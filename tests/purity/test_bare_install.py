"""A bare install, with attrs and cattrs alone: the core imports whole, the command explains itself."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]

WITHOUT_THE_REST: Final = """
import importlib, pkgutil, sys

class NotInstalled:
    installed = {"attr", "attrs", "cattr", "cattrs", "typing_extensions"} | sys.stdlib_module_names
    ours = {"mcp_tasks_proto", "mcp_tasks_adapters"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.installed | self.ours:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in requirements}


def run_bare(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program where nothing is installed but what a bare install brings."""
    paths = [
        str(ROOT),
        str(ROOT / "adapters"),
        *(path for path in sys.path if path.endswith("site-packages")),
    ]
    source = f"import sys\nsys.path[:0] = {paths!r}\n{WITHOUT_THE_REST}\n{textwrap.dedent(program)}"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", source], capture_output=True, text=True, timeout=60, check=False
    )


def test_requires_attrs_and_cattrs_only() -> None:
    assert names(project()["dependencies"]) == {"attrs", "cattrs"}


def test_every_extra_but_those_of_development_is_in_all() -> None:
    extras = project()["optional-dependencies"]
    assert set(extras) - {"all", "test", "fuzz", "mutants", "check"} == {
        "trio",
        "asyncio",
        "cli",
        "crypto",
        "postgres",
    }
    assert extras["all"] == ["mcp-tasks-proto[trio,asyncio,cli,crypto,postgres]"]


def test_the_core_and_the_toolkit_import() -> None:
    ran = run_bare(
        """
        import mcp_tasks_proto
        for module in pkgutil.walk_packages(mcp_tasks_proto.__path__, "mcp_tasks_proto."):
            # Those are for tests that have hypothesis.
            if not module.name.startswith("mcp_tasks_proto.testing.strategies"):
                importlib.import_module(module.name)

        from mcp_tasks_adapters.toolkit import Server
        server = Server("bare")

        @server.tool()
        async def plain(call):
            return "plain"

        mcp_tasks_proto.ServerEngine(settings=server.settings(), tools=server.declarations())
        """
    )
    assert ran.returncode == 0, ran.stderr


def test_the_command_says_what_to_install() -> None:
    ran = run_bare("from mcp_tasks_adapters.cli import main; main()")
    assert ran.returncode == 1
    assert ran.stderr == "mcp-tasks needs click, which is not installed: pip install 'mcp-tasks-proto[cli]'\n"
