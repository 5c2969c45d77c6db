"""The process that fuzzes: ``python -m fuzz.worker TARGET COUNTER FLAG...``, the flags being libFuzzer's.

It counts what it executes in the eight bytes of the file ``COUNTER``, for whoever watches it.
"""

from __future__ import annotations

import logging
import mmap
import sys
from importlib import import_module
from typing import Final

from fuzz.targets import Check, load

WATCHED: Final = ["mcp_tasks_proto", "mcp_tasks_adapters"]
"""The packages whose edges the fuzzer sees."""


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    logging.disable()  # what is said of one unreadable record, say, is of no use a thousand times a second
    target, counter, *flags = sys.argv[1:]
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=WATCHED):
        check = load(target)
    with open(counter, "r+b") as file:
        counted = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
    atheris.Setup([sys.argv[0], *flags], _counting(check, counted))
    atheris.Fuzz()


def _counting(check: Check, counted: memoryview[int]) -> Check:
    def check_one(data: bytes) -> None:
        counted[0] += 1
        check(data)

    return check_one


if __name__ == "__main__":
    main()
