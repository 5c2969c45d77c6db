"""``requestState``: what a server remembers between two rounds of a call, kept by the client (INP.4).

The client is not trusted with it. A :class:`Sealer` makes sure that bytes which come back are the server's
own; :func:`seal_state` and :func:`open_state` write into them to whom and to which call they belong, and
until when. Nothing is random: the same state sealed twice gives the same token.

No seal can say that a token was not used before. Until it expires, its owner can send the same call with it
again; a server that must do a thing only once has to remember that it did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, Final, Protocol

from attrs import field, frozen

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.wire.base64url import to_bytes, to_text
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = ["HmacSealer", "SealedState", "Sealer", "open_state", "seal_state"]


# -- seals ----------------------------------------------------------------------------------------------


class Sealer(Protocol):
    """What makes tokens that nobody else can make. Its outputs are header-safe ASCII."""

    def seal(self, payload: bytes) -> str:
        """Return a token for ``payload``."""

    def open(self, token: str) -> bytes | None:
        """Return the payload of a token that ``seal`` made; ``None`` for any other string. Never raises."""


KEY_BYTES: Final = 32
"""The shortest key: as long as the hash, below which HMAC loses strength."""


def _as_tuple(keys: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(keys)


def _check_keys(_: object, __: object, keys: tuple[bytes, ...]) -> None:
    # No message shows a key, or what was taken for one.
    if not keys:
        raise ValueError("HmacSealer needs a key")
    for key in keys:
        if not isinstance(key, bytes):
            raise TypeError(f"a key of HmacSealer must be bytes, not {type(key).__name__}")
        if len(key) < KEY_BYTES:
            raise ValueError(f"a key of HmacSealer must have at least {KEY_BYTES} bytes")


@frozen(eq=False)
class HmacSealer:
    """Seals with HMAC-SHA256.

    The payload is authenticated, not hidden: whoever holds a token can read what is in it, and only cannot
    change it. For a state that the client must not read, write a :class:`Sealer` that encrypts.

    The first of ``keys`` seals, every one opens (SEC.2): to rotate, put the new key in front, and take the
    old one away once :attr:`~mcp_tasks_proto.limits.Limits.request_state_ms` has passed. Raises
    ``ValueError`` for no key, or one of less than 32 bytes, which should be random; ``TypeError`` for what
    is not bytes.
    """

    _keys: tuple[bytes, ...] = field(converter=_as_tuple, repr=False, validator=_check_keys)

    def seal(self, payload: bytes) -> str:
        """Return a token for ``payload``: its version, the payload and its code, in base64url."""
        return f"{_VERSION}.{to_text(payload)}.{to_text(_code(self._keys[0], payload))}"

    def open(self, token: str) -> bytes | None:
        """Return the payload of a token that one of the keys sealed; ``None`` for anything else."""
        read = _TOKEN.fullmatch(token) if isinstance(token, str) else None
        if read is None:
            return None
        payload, code = to_bytes(read[1]), to_bytes(read[2])
        if payload is None or code is None:
            return None
        if not any(compare_digest(code, _code(key, payload)) for key in self._keys):
            return None
        return payload


_VERSION: Final = "v1"
_CONTEXT: Final = b"mcp-tasks-proto requestState v1\0"
"""What is sealed begins with this, so that a key that has other uses too makes no tokens by accident."""
_TOKEN: Final = re.compile(rf"{_VERSION}\.([A-Za-z0-9_-]*+)\.([A-Za-z0-9_-]{{43}})")


def _code(key: bytes, payload: bytes) -> bytes:
    return digest(key, _CONTEXT + payload, "sha256")


# -- states ---------------------------------------------------------------------------------------------


@frozen
class SealedState:
    """What came back."""

    asked: Mapping[str, Mapping[str, Any]]
    """What was asked then: name -> request."""
    state: Any
    """The handler's own."""


def seal_state(
    sealer: Sealer,
    *,
    principal: str | None,
    method: str,
    params: Mapping[str, Any],
    asked: Mapping[str, Mapping[str, Any]],
    state: Any,
    expires_at_ms: int,
) -> str:
    """Return the ``requestState`` for a call, good for its retry by the same caller before ``expires_at_ms``.

    ``params`` are those of the call; what changes from round to round in them is left out of account. Raises
    :class:`LocalProtocolError` when ``asked``, ``state`` or ``params`` are not JSON.
    """
    contents = {
        "call": _call_digest(principal, method, params),
        "expiresAtMs": expires_at_ms,
        "asked": {name: dict(request) for name, request in asked.items()},
        "state": state,
    }
    return sealer.seal(encode(contents))


def open_state(
    sealer: Sealer,
    token: Any,
    *,
    principal: str | None,
    method: str,
    params: Mapping[str, Any],
    now: int,
) -> SealedState | None:
    """Return what :func:`seal_state` sealed for this very call, by this caller, and still good at ``now``.

    ``None`` for whatever else came in as ``token``; nobody is told what was wrong with it.
    """
    payload = sealer.open(token) if isinstance(token, str) else None
    if payload is None:
        return None
    try:
        contents = json.loads(payload)
        call = _call_digest(principal, method, params)
    except (ValueError, RecursionError, LocalProtocolError):
        return None
    match contents:
        case {
            "call": str(sealed_for),
            "expiresAtMs": int(expires_at_ms),
            "asked": dict(asked),
            "state": state,
        } if sealed_for == call and now < expires_at_ms:
            return SealedState(asked, state)
    return None


_OF_ONE_ROUND: Final = frozenset({"_meta", "inputResponses", "requestState"})
"""The params in which the rounds of one call differ."""


def _call_digest(principal: str | None, method: str, params: Mapping[str, Any]) -> str:
    """Return a digest of who asks for what. Members of an object may stand in any order."""
    lasting = {name: value for name, value in params.items() if name not in _OF_ONE_ROUND}
    try:
        text = json.dumps([principal, method, lasting], sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise LocalProtocolError("the params of a call are not JSON") from None
    return sha256(text.encode("ascii")).hexdigest()
