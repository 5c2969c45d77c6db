"""Handles: the ids that callers get, and the two ways to make them (PRX.5).

:class:`StoredHandles` are random; all they stand for is in the store. :class:`SealedHandles` carry it inside,
encrypted, so that replicas share keys instead of a table. Randomness is data from the host. What a caller
presents is echoed as it is, never sealed anew.
"""

from __future__ import annotations

import json
from re import compile as pattern
from typing import Any, Final, Protocol

from attrs import field, frozen

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.proxy.bindings import Binding, binding_from_json, binding_to_json, with_handle
from mcp_tasks_proto.wire.base64url import to_bytes, to_text
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = [
    "MOST_RANDOM_BYTES",
    "RANDOM_BYTES",
    "Aead",
    "HandleCodec",
    "HandleKey",
    "SealedHandles",
    "StoredHandles",
]

RANDOM_BYTES: Final = 32
"""How much randomness the host gives for one handle."""

MOST_RANDOM_BYTES: Final = 64 * RANDOM_BYTES
"""How much it may give at once, for the next handles too."""


class HandleCodec(Protocol):
    """How handles are made and read."""

    @property
    def stored(self) -> bool:
        """Whether a binding is found by its handle in the store, and must be there first (PRX.6)."""

    def issue(self, binding: Binding, random: bytes) -> str:
        """Return a new handle for a binding, whose own :attr:`~Binding.handle` is not looked at."""

    def well_formed(self, handle: str) -> bool:
        """Whether it could be a handle at all: nothing else is looked up."""

    def open(self, handle: str) -> Binding | None:
        """Return the binding that is in a handle; ``None``: there is none in it. Never raises."""


_RANDOM: Final = pattern(r"[A-Za-z0-9_-]{43}")


@frozen
class StoredHandles:
    """Random handles of 256 bits: the default."""

    @property
    def stored(self) -> bool:
        """They mean nothing without the store."""
        return True

    def issue(self, binding: Binding, random: bytes) -> str:
        """Return the random bytes as text."""
        return to_text(random)

    def well_formed(self, handle: str) -> bool:
        """Whether it has the form of one."""
        return _RANDOM.fullmatch(handle) is not None

    def open(self, handle: str) -> Binding | None:
        """There is nothing in it."""
        return None


class Aead(Protocol):
    """Authenticated encryption under one key: AES-GCM, ChaCha20-Poly1305 or the like."""

    @property
    def nonce_bytes(self) -> int:
        """The length of a nonce; at most :data:`RANDOM_BYTES`."""

    def encrypt(self, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
        """Return the ciphertext with its tag."""

    def decrypt(self, nonce: bytes, ciphertext: bytes, associated: bytes) -> bytes | None:
        """Return the plaintext; ``None``: it is not authentic. Never raises."""


@frozen
class HandleKey:
    """A key with its name, which stands in every handle that it sealed."""

    name: str = field()
    aead: Aead = field(repr=False)

    @name.validator
    def _check_name(self, _: Any, name: str) -> None:
        if not _KEY_NAME.fullmatch(name):
            raise ValueError(f"a key's name has 1 to 32 letters, digits, - and _, not {name!r}")


_KEY_NAME: Final = pattern(r"[A-Za-z0-9_-]{1,32}")
_VERSION: Final = "p1"
_SEALED: Final = pattern(rf"{_VERSION}\.(?P<key>[A-Za-z0-9_-]{{1,32}})\.(?P<text>[A-Za-z0-9_-]++)")


def _check_keys(_: Any, __: Any, keys: tuple[HandleKey, ...]) -> None:
    if not keys:
        raise ValueError("SealedHandles needs a key")
    if len({key.name for key in keys}) < len(keys):
        raise ValueError("two keys of SealedHandles have the same name")


@frozen
class SealedHandles:
    """Handles that carry their binding, encrypted and authenticated.

    The first of ``keys`` seals, every one opens: to rotate, put the new key in front, and take the old one
    away once ``ProxyLimits.keep_ms`` and the retention of payloads have passed. Version and key name are
    authenticated with the rest. Raises ``ValueError`` for no key, or two of the same name.
    """

    keys: tuple[HandleKey, ...] = field(converter=tuple[HandleKey, ...], validator=_check_keys)

    @property
    def stored(self) -> bool:
        """They need no store to be read."""
        return False

    def issue(self, binding: Binding, random: bytes) -> str:
        """Seal a binding under the first key."""
        key = self.keys[0]
        nonce = random[: key.aead.nonce_bytes]
        plaintext = encode(binding_to_json(with_handle(binding, "")))
        sealed = key.aead.encrypt(nonce, plaintext, _associated(key.name))
        return f"{_VERSION}.{key.name}.{to_text(nonce + sealed)}"

    def well_formed(self, handle: str) -> bool:
        """Whether it has the form of one."""
        return _SEALED.fullmatch(handle) is not None

    def open(self, handle: str) -> Binding | None:
        """Return the binding that one of the keys sealed."""
        read = _SEALED.fullmatch(handle)
        data = None if read is None else to_bytes(read["text"])
        if read is None or data is None:
            return None
        key = next((key for key in self.keys if key.name == read["key"]), None)
        if key is None:
            return None
        nonce, sealed = data[: key.aead.nonce_bytes], data[key.aead.nonce_bytes :]
        plaintext = key.aead.decrypt(nonce, sealed, _associated(key.name))
        if plaintext is None:
            return None
        try:
            return with_handle(binding_from_json(json.loads(plaintext)), handle)
        except (ValueError, RecursionError):
            return None  # of a version that this one does not know


def check_random(random: bytes) -> None:
    """Refuse, as :class:`LocalProtocolError`, randomness that is too short, or not for whole handles."""
    size = len(random) if isinstance(random, bytes) else 0
    if not 0 < size <= MOST_RANDOM_BYTES or size % RANDOM_BYTES:
        raise LocalProtocolError(
            f"it carries {RANDOM_BYTES} random bytes, "
            f"or a multiple of that, up to {MOST_RANDOM_BYTES} (PRX.5)"
        )


def _associated(key: str) -> bytes:
    return f"mcp-tasks-proto handle {_VERSION}.{key}".encode()
