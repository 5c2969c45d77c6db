"""Records sealed at rest: AES-256-GCM under keys of the operator's. Needs the extra ``crypto``.

The first key seals, all of them open. To rotate, put a new key in front: a record is sealed under it the next
time that it is saved. An old key may go when the last task that was saved under it has expired.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from mcp_tasks_adapters.storing import StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["HANDLE_KEYS_VARIABLE", "KEYS_VARIABLE", "KEY_BYTES", "RecordKeys", "UnsealError", "new_cipher"]

KEY_BYTES: Final = 32
"""The length of a key."""

KEYS_VARIABLE: Final = "MCP_TASKS_STORE_KEYS"
"""The variable in which the command line and configurations look for keys."""

HANDLE_KEYS_VARIABLE: Final = "MCP_TASKS_HANDLE_KEYS"
"""The one for keys of handles that carry their binding."""

_FORM: Final = b"\x01"
"""First byte of what is sealed: the form of the rest."""
_NONCE_BYTES: Final = 12
_HEAD_BYTES: Final = len(_FORM) + _NONCE_BYTES


class UnsealError(ValueError):
    """What is stored was not sealed for this place, under one of these keys."""


class RecordKeys:
    """The keys of a store, each of 32 random bytes, newest first.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError` when there is none, one has another length, or the
    package ``cryptography`` is missing.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise StoreError("There is no key to seal records with.")
        if any(len(key) != KEY_BYTES for key in keys):
            raise StoreError(f"A key to seal records with is {KEY_BYTES} bytes long.")
        self._ciphers = [new_cipher(key) for key in keys]

    @classmethod
    def from_text(cls, text: str) -> RecordKeys:
        """Read keys in Base64, newest first, with white space between them.

        ``openssl rand -base64 32`` makes one. Raises :class:`~mcp_tasks_adapters.storing.StoreError`.
        """
        try:
            return cls([base64.b64decode(word, validate=True) for word in text.split()])
        except ValueError:
            raise StoreError(
                "A key to seal records with is written in Base64, and one of these is not."
            ) from None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> RecordKeys:
        """Read the keys in a file. Raises :class:`~mcp_tasks_adapters.storing.StoreError`."""
        try:
            text = Path(path).read_text(encoding="ascii")
        except OSError as error:
            raise StoreError(f"The keys in {path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError:
            raise StoreError(f"The keys in {path} are not written in Base64.") from None
        return cls.from_text(text)

    @classmethod
    def from_environment(cls, name: str, environment: Mapping[str, str] = os.environ) -> RecordKeys | None:
        """Read the keys in a variable; ``None`` where it is not set, or empty.

        Raises :class:`~mcp_tasks_adapters.storing.StoreError`.
        """
        text = environment.get(name, "")
        return cls.from_text(text) if text.strip() else None

    def seal(self, text: str, place: str) -> bytes:
        """Return ``text`` sealed under the first key. It opens at ``place`` only."""
        nonce = token_bytes(_NONCE_BYTES)
        return _FORM + nonce + self._ciphers[0].encrypt(nonce, text.encode(), place.encode())

    def unseal(self, sealed: bytes, place: str) -> str:
        """Return what was sealed for ``place`` under one of the keys. Raises :class:`UnsealError`."""
        from cryptography.exceptions import InvalidTag

        form, nonce, rest = sealed[:1], sealed[1:_HEAD_BYTES], sealed[_HEAD_BYTES:]
        if form == _FORM and rest:
            for cipher in self._ciphers:
                with suppress(InvalidTag):
                    return cipher.decrypt(nonce, rest, place.encode()).decode()
        raise UnsealError("it was sealed under a key that was not given, or is broken")


def new_cipher(key: bytes) -> AESGCM:
    """Return the cipher of a key. Raises :class:`~mcp_tasks_adapters.storing.StoreError`."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as error:
        raise StoreError(
            "Sealing records needs cryptography, which is not installed: "
            "pip install 'mcp-tasks-proto[crypto]'"
        ) from error
    return AESGCM(key)
