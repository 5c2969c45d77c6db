"""Reports that somebody, or a full disk, may refuse to take."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["reporting"]


@contextmanager
def reporting(unwritten: int) -> Iterator[None]:
    """Write a report to standard output; where that cannot be, say so and exit with ``unwritten``.

    A pipe that is closed is no such case: whoever reads has read enough.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        click.echo(f"Error: what was found cannot be written: {error.strerror}.", err=True)
        # What is still buffered the interpreter would try again as it ends, and exit with a code of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(unwritten)
