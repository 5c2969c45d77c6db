"""Ciphers for handles that carry their binding. Needs the extra ``crypto``."""

from __future__ import annotations

from typing import Final

from mcp_tasks_adapters.stores.sealing import KEY_BYTES, new_cipher
from mcp_tasks_adapters.storing import StoreError

__all__ = ["AesGcm"]


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
