"""What the tests of the proxy share: settings, a toy cipher, bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto import MODERN_VERSION, TASKS_EXTENSION, HmacSealer
from mcp_tasks_proto.proxy import (
    Binding,
    HandleCodec,
    ProxyEngine,
    ProxyLimits,
    ProxySettings,
    SendUpstream,
    StoredHandles,
    Upstream,
)
from mcp_tasks_proto.testing import ProxyHost, ProxyStore
from mcp_tasks_proto.wire.base64url import to_bytes, to_text

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
        sealer=more.pop("sealer", None) or HmacSealer([b"k" * 32]),
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


# -- a proxy and its upstreams ---------------------------------------------------------------------------

FORMS: Final[Mapping[str, Any]] = {"elicitation": {}}
CREATED: Final = "2023-11-14T22:13:20.000Z"
LATER: Final = "2023-11-14T22:13:25.000Z"
DONE: Final[Mapping[str, Any]] = {"content": [{"type": "text", "text": "done"}]}


def make_proxy(
    *upstreams: Upstream,
    store: ProxyStore | None = None,
    codec: HandleCodec | None = None,
    node: str | None = None,
    **settings: Any,
) -> ProxyHost:
    """Return a proxy before these upstreams, or before one with the name ``renderer``."""
    engine = ProxyEngine(
        settings=make_settings(*upstreams, **settings), codec=codec or StoredHandles(), node=node
    )
    return ProxyHost(engine=engine, store=store or ProxyStore(), now=START)


def discover(
    host: ProxyHost,
    *tools: str,
    upstream: str | None = None,
    tasks: bool = True,
    ttl_ms: int = 3_600_000,
    scope: str = "private",
    capabilities: Mapping[str, Any] | None = None,
    definitions: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Answer what a proxy asks of an upstream it does not know: it is modern, and lists these tools."""
    served: dict[str, Any] = {"tools": {}, **(capabilities or {})}
    if tasks:
        served["extensions"] = {**served.get("extensions", {}), TASKS_EXTENSION: {}}
    cached = {"ttlMs": ttl_ms, "cacheScope": scope}
    discovered = {"supportedVersions": [MODERN_VERSION], "capabilities": served, **cached}
    host.answer("server/discover", discovered, upstream=upstream)
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in tools or ("render",)]
    host.answer("tools/list", {"tools": [*listed, *definitions], **cached}, upstream=upstream)


def task(status: str = "working", task_id: str = UPSTREAM_TASK, **more: Any) -> dict[str, Any]:
    """Return a view as an upstream writes it."""
    view = {
        "taskId": task_id,
        "status": status,
        "createdAt": CREATED,
        "lastUpdatedAt": CREATED,
        "ttlMs": 60_000,
        "pollIntervalMs": 1000,
    }
    return {**view, **more}


def create(task_id: str = UPSTREAM_TASK, **more: Any) -> dict[str, Any]:
    """Return a create result as an upstream writes it."""
    return {"resultType": "task", **task(task_id=task_id, **more)}


def completed(**more: Any) -> dict[str, Any]:
    """Return the view of a completed task as an upstream writes it."""
    return task("completed", lastUpdatedAt=LATER, result=dict(DONE), **more)


def call(host: ProxyHost, tool: str = "render", **facts: Any) -> int:
    """Call a tool, answer the discovery if there is one, and return the exchange."""
    facts.setdefault("capabilities", FORMS)
    arguments = facts.pop("arguments", {"frames": 3})
    exchange = host.request("tools/call", {"name": tool, "arguments": arguments}, **facts)
    discover_all(host)
    return exchange


def discover_all(host: ProxyHost) -> None:
    """Answer the discoveries that are under way, if there are any."""
    for sent in list(host.in_flight.values()):
        if sent.message["method"] == "server/discover":
            discover(host, upstream=sent.upstream)


def handed_out(host: ProxyHost, task_id: str = UPSTREAM_TASK, **facts: Any) -> str:
    """Have a task made upstream, and return the handle that its caller got."""
    facts.setdefault("principal", "alice")
    exchange = call(host, **facts)
    host.answer("tools/call", create(task_id))
    handle: str = result(host.reply_to(exchange))["taskId"]
    return handle


def ask(host: ProxyHost, method: str, handle: str, **facts: Any) -> int:
    """Send one of ``tasks/*`` about a task, and return the exchange."""
    facts.setdefault("principal", "alice")
    facts.setdefault("capabilities", FORMS)
    params = {"taskId": handle, **facts.pop("params", {})}
    return host.request(method, params, **facts)


def get(
    host: ProxyHost, handle: str, answer: Mapping[str, Any] | None = None, **facts: Any
) -> dict[str, Any]:
    """Send ``tasks/get``, have the upstream answer, if there is an answer, and return the reply."""
    exchange = ask(host, "tasks/get", handle, **facts)
    if answer is not None:
        host.answer("tasks/get", {"resultType": "complete", **answer})
    return host.reply_to(exchange)


def result(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in a reply, which must have one."""
    assert "result" in reply, reply
    found: dict[str, Any] = reply["result"]
    return found


def view(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a result that are its own, without what every one has."""
    return {name: value for name, value in result(reply).items() if name not in ("resultType", "_meta")}


def error(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error in a reply, which must have one."""
    assert "error" in reply, reply
    found: dict[str, Any] = reply["error"]
    return found


def reason(reply: Mapping[str, Any]) -> str:
    """Return why an internal error is one."""
    found = error(reply)
    assert found["code"] == -32603, found
    why: str = found["data"]["reason"]
    return why


def methods(host: ProxyHost) -> list[str]:
    """Return the methods of all requests that went up, oldest first."""
    return [sent.message["method"] for sent in host.of(SendUpstream)]


def sent_up(host: ProxyHost, method: str) -> list[dict[str, Any]]:
    """Return the params of all requests of a method that went up, oldest first."""
    return [sent.message["params"] for sent in host.of(SendUpstream) if sent.message["method"] == method]


@frozen
class ToySealer:
    """Seals ``requestState`` so that nobody can read it; the nonce is made of the payload."""

    aead: ToyAead = ToyAead(b"sealer")

    def seal(self, payload: bytes) -> str:
        nonce = sha256(payload).digest()[:12]
        return to_text(nonce + self.aead.encrypt(nonce, payload, b"state"))

    def open(self, token: str) -> bytes | None:
        data = to_bytes(token)
        return None if data is None else self.aead.decrypt(data[:12], data[12:], b"state")
