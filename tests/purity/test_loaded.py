"""Layer two of purity: what importing the core brings into a fresh interpreter.

``attrs`` and ``cattrs`` load some of the standard library themselves. What of it is on the list below is the
baseline, measured in the same way, written down here so that a change of theirs is noticed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

IMPURE: Final = frozenset(
    {
        "_random",
        "_socket",
        "_ssl",
        "asyncio",
        "concurrent.futures",
        "ctypes",
        "h11",
        "hypothesis",
        "http",
        "io",
        "jsonschema",
        "logging",
        "mcp_tasks_adapters",
        "multiprocessing",
        "os",
        "psycopg",
        "random",
        "secrets",
        "selectors",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "trio",
        "uuid",
    }
)

BASELINE: Final = frozenset({"_socket", "io", "os", "threading", "time"})
"""``io``, ``os`` and ``time`` belong to any interpreter; the others come with ``cattrs``."""

WITH_HYPOTHESIS: Final = "mcp_tasks_proto.testing.strategies"
"""How modules are called that are for tests alone, and need a library: nothing else imports them."""

MEASURE: Final = """
import importlib, json, pkgutil, sys

sys.path[:0] = json.loads(sys.argv[1])
impure = set(json.loads(sys.argv[2]))
apart = sys.argv[3]

import attrs, cattrs
baseline = sorted(impure & sys.modules.keys())

import mcp_tasks_proto
names = ["mcp_tasks_proto"]
for module in pkgutil.walk_packages(mcp_tasks_proto.__path__, "mcp_tasks_proto."):
    if not module.name.startswith(apart):
        importlib.import_module(module.name)
        names.append(module.name)
print(json.dumps({"baseline": baseline, "core": sorted(impure & sys.modules.keys()), "names": names}))
"""


def measure() -> dict[str, list[str]]:
    """Import all of the core in an interpreter of its own, isolated (``-I``, ``-S``)."""
    paths = json.dumps([str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))])
    command = [sys.executable, "-I", "-S", "-c", MEASURE, paths, json.dumps(sorted(IMPURE)), WITH_HYPOTHESIS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    measured: dict[str, list[str]] = json.loads(ran.stdout)
    return measured


def test_the_core_loads_nothing_impure() -> None:
    measured = measure()
    assert set(measured["core"]) == set(measured["baseline"])


def test_the_baseline_is_what_attrs_and_cattrs_load() -> None:
    assert set(measure()["baseline"]) <= BASELINE


def test_every_module_was_measured() -> None:
    files = (ROOT / "mcp_tasks_proto").rglob("*.py")
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files
    }
    assert set(measure()["names"]) == {name for name in names if not name.startswith(WITH_HYPOTHESIS)}
