"""What the client below logs: of use only where nothing else explains what happened."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

__all__ = ["kept_log"]

LOGGER: Final = "mcp_tasks_adapters"


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def kept_log() -> Iterator[None]:
    """Keep what is logged out of the way, and print it at the end of the block.

    A block that raises has its own explanation.
    """
    kept, logger = _Kept(), logging.getLogger(LOGGER)
    logger.addHandler(kept)
    try:
        yield
        for line in kept.lines:
            click.echo(f"mcp-tasks: {line}", err=True)
    finally:
        logger.removeHandler(kept)
