"""What the client below logs: of use only where nothing else explains what happened."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

__all__ = ["kept_log"]

LOGGER: Final = "mcp_tasks_adapters"

LINES_KEPT: Final = 20
"""Different ones; a server may give cause for any number of them."""


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: dict[str, int] = {}
        """What was logged, and how often."""

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if line in self.lines or len(self.lines) < LINES_KEPT:
            self.lines[line] = self.lines.get(line, 0) + 1


@contextmanager
def kept_log() -> Iterator[None]:
    """Keep what is logged out of the way, and print it at the end of the block.

    A block that raises has its own explanation.
    """
    kept, logger = _Kept(), logging.getLogger(LOGGER)
    logger.addHandler(kept)
    try:
        yield
        for line, times in kept.lines.items():
            often = "" if times == 1 else f" ({times} times)"
            click.echo(f"mcp-tasks: {line}{often}", err=True)
    finally:
        logger.removeHandler(kept)
