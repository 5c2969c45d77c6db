"""Sealed tokens (INP.4, PRX.5, SEC.2). Line 1 is JSON that is sealed, the rest are changes to the token.

Of request states, sealed handles and sealed records alike:

* What was sealed opens as what it was, under every key that is not retired, and under no other.
* A token that was changed, and a text that nobody sealed, opens as nothing, without an exception.
* A request state opens for its own caller, method and params only, until it expires.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from attrs import evolve, frozen
from mcp_tasks_adapters.proxy.encryption import AesGcm
from mcp_tasks_adapters.stores.sealing import RecordKeys, UnsealError

from fuzz.comparing import read_json, same
from fuzz.editing import edited
from mcp_tasks_proto import HmacSealer
from mcp_tasks_proto.proxy.bindings import Binding, binding_to_json
from mcp_tasks_proto.proxy.handles import HandleKey, SealedHandles
from mcp_tasks_proto.request_state import open_state, seal_state
from mcp_tasks_proto.wire.jsonrpc import encode

OLD: Final = b"o" * 32
NEW: Final = b"n" * 32
RANDOM: Final = bytes(range(32))
EXPIRES_MS: Final = 1_700_000_000_000
PLACE: Final = "render-0123456789abcdef 3"
PARAMS: Final = {"name": "render", "arguments": {"frames": 3}, "_meta": {"progressToken": 1}}
Keys = tuple[bytes, ...]


@frozen(kw_only=True)
class Seal:
    """One kind of token: how it is made under the first of some keys, and opened under any of them."""

    make: Callable[[Keys, Any], str]
    open: Callable[[Keys, str], Any]
    """``None``: it is not one of ours."""


def check(data: bytes) -> None:
    """Seal, change, open."""
    first, _, edits = data.partition(b"\n")
    contents = read_json(first)
    for seal in (STATES, HANDLES, RECORDS):
        _check_seal(seal, contents, edits)
    _check_call(contents if isinstance(contents, dict) else {})


def _check_seal(seal: Seal, contents: Any, edits: bytes) -> None:
    old, new = seal.make((OLD,), contents), seal.make((NEW, OLD), contents)
    for token, keys in ((old, (OLD,)), (old, (NEW, OLD)), (new, (NEW, OLD)), (new, (NEW,))):
        assert same(seal.open(keys, token), [contents]), "SEC.2: what was sealed does not open"
    assert seal.open((OLD,), new) is None, "SEC.2: it opens under a key that did not seal it"
    assert seal.open((NEW,), old) is None, "SEC.2: it opens under a key that did not seal it"
    changed = edited(old, edits)
    if changed != old:
        assert seal.open((NEW, OLD), changed) is None, "INP.4: a token that was changed opens"
    forged = str(edits, "latin-1")
    assert seal.open((NEW, OLD), forged) is None, "INP.4: a token that nobody sealed opens"


def _check_call(params: dict[str, Any]) -> None:
    """A state belongs to one call of one caller, for a while."""
    sealer = HmacSealer([NEW])
    token = _sealed_state((NEW,), None, params)
    good: dict[str, Any] = {"principal": "ada", "method": "tools/call", "params": params}

    def opens(now: int = EXPIRES_MS - 1, **other: Any) -> bool:
        return open_state(sealer, token, now=now, **{**good, **other}) is not None

    assert opens()
    assert opens(params={**params, "inputResponses": {"a": 1}, "requestState": token, "_meta": {}})
    assert not opens(now=EXPIRES_MS), "INP.4: it opens when it has expired"
    assert not opens(principal=None), "INP.4: it opens for nobody in particular"
    assert not opens(principal="ada "), "INP.4: it opens for somebody else"
    assert not opens(method="prompts/get"), "INP.4: it opens for another method"
    assert not opens(params={**params, "\0": 0}), "INP.4: it opens for another call"
    lasting = [name for name in params if name not in ("_meta", "inputResponses", "requestState")]
    for name in lasting:
        without = {other: value for other, value in params.items() if other != name}
        assert not opens(params=without), "INP.4: it opens for another call"


# -- the kinds of tokens -------------------------------------------------------------------------------------


def _sealed_state(keys: Keys, contents: Any, params: dict[str, Any] = PARAMS) -> str:
    return seal_state(
        HmacSealer(keys),
        principal="ada",
        method="tools/call",
        params=params,
        asked={"confirm": {"method": "roots/list"}},
        state=contents,
        expires_at_ms=EXPIRES_MS,
    )


def _opened_state(keys: Keys, token: str) -> Any:
    found = open_state(
        HmacSealer(keys),
        token,
        principal="ada",
        method="tools/call",
        params=PARAMS,
        now=EXPIRES_MS - 1,
    )
    return None if found is None else [found.state]


def _handles(keys: Keys) -> SealedHandles:
    return SealedHandles([HandleKey(f"key-{key[:1].decode()}", AesGcm(key)) for key in keys])


BINDING: Final = Binding(
    handle="",
    upstream="films",
    identity="films-1",
    upstream_task_id="task-1",
    authorization="shared",
    principal=None,
    project="p",
    tool="render",
    declared={},
    created_at="2023-11-14T22:13:20.000Z",
    bound_at_ms=1,
    ttl_ms=2,
    keep_ms=3,
    poll_interval_ms=4,
)


def _sealed_handle(keys: Keys, contents: Any) -> str:
    return _handles(keys).issue(evolve(BINDING, declared={"is": contents}), RANDOM)


def _opened_handle(keys: Keys, handle: str) -> Any:
    binding = _handles(keys).open(handle)
    if binding is None:
        return None
    expected = evolve(BINDING, handle=handle, declared=binding.declared)
    assert same(binding_to_json(binding), binding_to_json(expected)), "PRX.5: another binding than was sealed"
    return [binding.declared["is"]]


def _sealed_record(keys: Keys, contents: Any) -> str:
    text = encode({"is": contents}).decode()
    return RecordKeys(keys).seal(text, PLACE).hex()


def _opened_record(keys: Keys, token: str) -> Any:
    with suppress(ValueError):
        sealed = bytes.fromhex(token)
        if sealed.hex() != token:
            return None  # hexadecimal digits are this target's own, and have other ways to be written
        for other in ("", PLACE + "0"):
            with suppress(UnsealError):
                RecordKeys(keys).unseal(sealed, other)
                raise AssertionError("a record opens in another place than its own")
        return [read_json(RecordKeys(keys).unseal(sealed, PLACE).encode())["is"]]
    return None


STATES: Final = Seal(make=_sealed_state, open=_opened_state)
HANDLES: Final = Seal(make=_sealed_handle, open=_opened_handle)
RECORDS: Final = Seal(make=_sealed_record, open=_opened_record)
