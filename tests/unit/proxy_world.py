"""What the tests of the proxy share: settings, a toy cipher, bindings."""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto import HmacSealer
from mcp_tasks_proto.proxy import Binding, ProxyLimits, ProxySettings, Upstream

START: Final = 1_700_000_000_000
UPSTREAM_TASK: Final = "upstream-task-7f3a"
RANDOM: Final = bytes(range(32))


@frozen
class ToyAead:
    """A stream of hashes and a code: enough to tell whether the core uses a cipher as it should."""

    key: bytes
    nonce_bytes: int = 12

    def _stream(self, nonce: bytes, length: int) -> bytes:
        blocks = (
            sha256(self.key + nonce + bytes([n % 256, n // 256])).digest() for n in range(length // 32 + 1)
        )
        return b"".join(blocks)[:length]

    def encrypt(self, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
        mask = self._stream(nonce, len(plaintext))
        text = bytes(one ^ other for one, other in zip(plaintext, mask, strict=True))
        return text + digest(self.key, nonce + associated + text, "sha256")

    def decrypt(self, nonce: bytes, ciphertext: bytes, associated: bytes) -> bytes | None:
        text, code = ciphertext[:-32], ciphertext[-32:]
        if not compare_digest(code, digest(self.key, nonce + associated + text, "sha256")):
            return None
        mask = self._stream(nonce, len(text))
        return bytes(one ^ other for one, other in zip(text, mask, strict=True))


def make_settings(*upstreams: Upstream, limits: ProxyLimits | None = None, **more: Any) -> ProxySettings:
    return ProxySettings(
        name="proxy",
        version="1",
        sealer=HmacSealer([b"k" * 32]),
        upstreams=upstreams or (Upstream(name="renderer"),),
        limits=limits or ProxyLimits(),
        **more,
    )


def make_binding(**changed: Any) -> Binding:
    facts: dict[str, Any] = {
        "handle": "",
        "upstream": "renderer",
        "identity": "",
        "upstream_task_id": UPSTREAM_TASK,
        "authorization": "",
        "principal": "alice",
        "project": None,
        "tool": "render",
        "declared": {"elicitation": {"form": {}}},
        "created_at": "2023-11-14T22:13:20.000Z",
        "bound_at_ms": START,
        "ttl_ms": 60_000,
        "keep_ms": 600_000,
        "poll_interval_ms": 500,
    }
    return Binding(**{**facts, **changed})
