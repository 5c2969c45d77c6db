"""The file in which a task's reference is kept, so that another process can go on with it (REQ.6)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp_tasks_adapters.cli.client.arguments import InputError
from mcp_tasks_adapters.client import load_reference, save_reference

__all__ = ["ReferenceFile"]


class ReferenceFile:
    """One file."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def claim(self) -> None:
        """Make sure that a reference can be kept here, and that none is.

        Raises :class:`InputError`: the task of a reference that were overwritten could not be found again.
        """
        if os.path.lexists(self.path):
            raise InputError(
                f"--save: {self.path} is there already. Go on with its task, mcp-tasks resume {self.path}, "
                "or remove it."
            )
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise InputError(f"--save: cannot write into {self.path.parent}.")

    def save(self, reference: Mapping[str, Any]) -> None:
        """Put a reference in place of the last one. Raises ``OSError``."""
        save_reference(self.path, reference)

    def load(self) -> dict[str, Any]:
        """Return the reference. Raises :class:`InputError` where there is none."""
        try:
            return load_reference(self.path)
        except OSError as error:
            raise InputError(f"Cannot read {self.path}: {error.strerror}.") from None
        except ValueError as error:
            raise InputError(f"{self.path} is no saved task: {error}.") from None

    def remove(self) -> None:
        """Take it away, if it is there. Raises ``OSError``."""
        with suppress(FileNotFoundError):
            self.path.unlink()
