"""base64url without padding, in the one way that each sequence of bytes is written."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

__all__ = ["to_bytes", "to_text"]


def to_text(data: bytes) -> str:
    """Write bytes as header-safe ASCII."""
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def to_bytes(text: str) -> bytes | None:
    """Read base64url. Only the one way that :func:`to_text` writes the bytes will do."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if to_text(data) == text else None
