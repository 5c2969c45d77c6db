"""References to tasks in files: saved so that a process may be killed at any moment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from mcp_tasks_proto.requester import TaskReference

__all__ = ["load_reference", "save_reference"]


def save_reference(path: str | os.PathLike[str], reference: Mapping[str, Any]) -> None:
    """Write a reference in place of what the file held. At every moment the file has all of one or the other.

    Only its owner may read it: it may hold answers on their way to the server. Raises ``OSError``.
    """
    target = Path(path)
    file, temporary = mkstemp(prefix=f".{target.name}.", dir=target.parent)  # for its owner alone
    try:
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            json.dump(reference, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def load_reference(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a reference that :func:`save_reference` wrote.

    Raises ``OSError``, and ``ValueError``, naming what is wrong, for a file that holds anything else.
    """
    try:
        reference = json.loads(Path(path).read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("a task reference is not nested so deeply") from None
    TaskReference.from_json(reference)
    loaded: dict[str, Any] = reference
    return loaded
