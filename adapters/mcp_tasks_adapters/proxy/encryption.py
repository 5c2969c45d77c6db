"""Ciphers for handles that carry their binding. Needs the extra ``crypto``."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from mcp_tasks_adapters.stores.sealing import HANDLE_KEYS_VARIABLE, KEY_BYTES, new_cipher
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_proto.proxy import HandleKey, SealedHandles
from mcp_tasks_proto.request_state import HmacSealer, Sealer

__all__ = ["AesGcm", "HandleKeys"]


class AesGcm:
    """AES-256-GCM, the :class:`~mcp_tasks_proto.proxy.Aead` of a :class:`~mcp_tasks_proto.proxy.HandleKey`.

    Nonces are random, so that a key is good for some four thousand million handles. Raises
    :class:`~mcp_tasks_adapters.storing.StoreError` for a key that is not 32 bytes long, and when the package
    ``cryptography`` is missing.
    """

    nonce_bytes: Final = 12

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise StoreError(f"A key to seal handles with is {KEY_BYTES} bytes long.")
        self._cipher = new_cipher(key)

    def encrypt(self, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
        """Return the ciphertext with its tag."""
        return self._cipher.encrypt(nonce, plaintext, associated)

    def decrypt(self, nonce: bytes, ciphertext: bytes, associated: bytes) -> bytes | None:
        """Return the plaintext; ``None``: it is not authentic."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(nonce, ciphertext, associated)
        except (InvalidTag, ValueError):  # the latter for a nonce that is too short
            return None


def _check_keys(_: Any, __: Any, keys: tuple[bytes, ...]) -> None:
    if not keys:
        raise StoreError("There is no key to seal handles with.")
    for key in keys:
        AesGcm(key)
    if len(set(keys)) < len(keys):
        raise StoreError("Two of the keys to seal handles with are the same.")


@frozen
class HandleKeys:
    """Keys of handles that carry their binding, each of 32 random bytes, newest first: the first seals, all
    of them open (PRX.5). Proxies that share them take each other's handles.

    Raises :class:`~mcp_tasks_adapters.storing.StoreError` when there is none, one has another length or is
    there twice, and when the package ``cryptography`` is missing.
    """

    keys: tuple[bytes, ...] = field(converter=tuple[bytes, ...], repr=False, validator=_check_keys)

    @classmethod
    def from_text(cls, text: str) -> HandleKeys:
        """Read keys in Base64, newest first, with white space between them."""
        try:
            return cls([base64.b64decode(word, validate=True) for word in text.split()])
        except binascii.Error:
            raise StoreError(
                "A key to seal handles with is written in Base64, and one of these is not."
            ) from None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> HandleKeys:
        """Read the keys in a file."""
        try:
            return cls.from_text(Path(path).read_text(encoding="ascii"))
        except OSError as error:
            raise StoreError(f"The keys in {path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError:
            raise StoreError(f"The keys in {path} are not written in Base64.") from None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> HandleKeys | None:
        """Read the keys in the variable that is for them; ``None`` where it is not set, or empty."""
        text = environment.get(HANDLE_KEYS_VARIABLE, "")
        return cls.from_text(text) if text.strip() else None

    def codec(self) -> SealedHandles:
        """Return what makes and reads the handles. A key's name follows from it, so that all agree on it."""
        return SealedHandles(
            tuple(HandleKey(_derived(key, "name").hex()[:8], AesGcm(key)) for key in self.keys)
        )

    def sealer(self) -> Sealer:
        """Return what seals ``requestState``: a round begun at one proxy goes on at another (INP.4)."""
        return HmacSealer(tuple(_derived(key, "requestState") for key in self.keys))


def _derived(key: bytes, purpose: str) -> bytes:
    """Return other bytes for another purpose, which tell nothing of the key."""
    return hmac.digest(key, f"mcp-tasks handles {purpose}".encode("ascii"), "sha256")
