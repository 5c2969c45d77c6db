"""Standard output that somebody, or a full disk, may refuse to take."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from typing import Final

__all__ = ["reporting"]


@contextmanager
def reporting(unwritten: int, what: str = "what was found") -> Iterator[None]:
    """Write to standard output; where that cannot be, say of ``what``, and exit with ``unwritten``.

    A pipe that is closed is no such case: whoever reads has read enough.
    """
    refusal: OSError | None = None
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        refusal = error
    finally:
        refusal = refusal or _refusal()
        if refusal is not None:
            print(f"Error: {what} cannot be written: {refusal.strerror}.", file=sys.stderr)
            # What is still buffered would be tried again as the interpreter ends, with a code of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(unwritten)


_FULL: Final = {EDQUOT, EFBIG, EIO, ENOSPC}


def _refusal() -> OSError | None:
    """Return why standard output does not take what is still to be written."""
    if sys.stdout is None or sys.stdout.closed:  # whoever started this wants none of it, or has had all
        return None
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return None
    except OSError as error:
        return error
    return None
