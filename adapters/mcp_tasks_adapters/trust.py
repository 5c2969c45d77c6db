"""Which authorities to trust for ``https``, where it is not those that the system trusts."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["trusting"]

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


def trusting(path: str | os.PathLike[str]) -> ssl.SSLContext:
    """Return a context that trusts the authorities whose certificates are in a PEM file, and no others.

    The same certificates give the same context, so that what was read anew is seen to be as before. Raises
    ``ValueError``.
    """
    try:
        text = Path(path).read_text(encoding="ascii", errors="ignore")  # comments have any letters
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    wanted = f"{path} holds no certificates as PEM: {_BEGIN}"
    if _BEGIN not in text:  # nothing at all would stand for what the system trusts
        raise ValueError(wanted)
    try:
        return _context(text)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(wanted) from error


@lru_cache(maxsize=64)
def _context(certificates: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificates)
