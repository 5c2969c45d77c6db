"""``requestState``: INP.4, SEC.2."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import string
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.request_state import HmacSealer, SealedState, Sealer, open_state, seal_state

KEY: Final = b"k" * 32
OTHER_KEY: Final = b"o" * 32
SEALER: Final = HmacSealer([KEY])

ALPHABET: Final = string.ascii_letters + string.digits + "-_"

ASKED: Final[Mapping[str, Mapping[str, Any]]] = {
    "confirm": {
        "method": "elicitation/create",
        "params": {"message": "Publish?", "requestedSchema": {"type": "object", "properties": {}}},
    }
}
PARAMS: Final[Mapping[str, Any]] = {"name": "render", "arguments": {"scene": "dawn", "frames": 3}}
DEADLINE: Final = 1_000_000


def seal(**changes: Any) -> str:
    given: dict[str, Any] = {
        "principal": "ada",
        "method": "tools/call",
        "params": PARAMS,
        "asked": ASKED,
        "state": {"step": 1},
        "expires_at_ms": DEADLINE,
    }
    return seal_state(changes.pop("sealer", SEALER), **{**given, **changes})


def reopen(token: Any, **changes: Any) -> SealedState | None:
    given: dict[str, Any] = {
        "principal": "ada",
        "method": "tools/call",
        "params": PARAMS,
        "now": DEADLINE - 1,
    }
    return open_state(changes.pop("sealer", SEALER), token, **{**given, **changes})


# -- seals ----------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.binary())
def test_what_was_sealed_opens(payload: bytes) -> None:
    assert SEALER.open(SEALER.seal(payload)) == payload


def test_a_token_is_header_safe() -> None:
    token = SEALER.seal(bytes(range(256)))
    assert set(token) <= {*ALPHABET, "."}


def test_a_token_is_the_same_every_time() -> None:
    assert SEALER.seal(b"x") == HmacSealer([KEY]).seal(b"x")


def test_a_payload_is_authenticated_and_not_hidden() -> None:
    version, payload, _ = SEALER.seal(b"anyone can read this").split(".")
    assert version == "v1"
    assert base64.urlsafe_b64decode(payload + "=") == b"anyone can read this"
    assert HmacSealer.__doc__ is not None
    assert "authenticated, not hidden" in HmacSealer.__doc__


def test_keys_rotate() -> None:
    """SEC.2: the first seals, all open."""
    old, both, new = HmacSealer([OTHER_KEY]), HmacSealer([KEY, OTHER_KEY]), HmacSealer([KEY])
    assert both.open(old.seal(b"x")) == b"x"
    assert both.seal(b"x") == new.seal(b"x")
    assert new.open(old.seal(b"x")) is None
    assert old.open(both.seal(b"x")) is None


@pytest.mark.parametrize("keys", [[], [b""], [b"k" * 31], [KEY, b"short"]])
def test_weak_keys_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="HmacSealer"):
        HmacSealer(keys)


@pytest.mark.parametrize("keys", [KEY, "k" * 32, ["k" * 32], [32], [bytearray(KEY)]])
def test_keys_are_bytes(keys: Any) -> None:
    with pytest.raises(TypeError, match="must be bytes") as caught:
        HmacSealer(keys)
    assert "kk" not in str(caught.value)


def test_keys_are_not_shown() -> None:
    """SEC.2."""
    assert "kkk" not in repr(SEALER)


def variants() -> Iterator[str]:
    """Every token that differs from a good one in one character, by one more, or by one less."""
    good = SEALER.seal(b"the payload")
    for at in range(len(good)):
        yield good[:at] + good[at + 1 :]
        for character in ALPHABET + ".=+/ \n":
            if character != good[at]:
                yield good[:at] + character + good[at + 1 :]
            yield good[:at] + character + good[at:]
    for character in ALPHABET + ".=+/ \n\0é":
        yield good + character


def test_no_other_token_opens() -> None:
    """One changed bit, base64 that is written otherwise, padding, whitespace: all of it is another token."""
    good = SEALER.seal(b"the payload")
    assert not [token for token in variants() if token != good and SEALER.open(token) is not None]


def test_every_flipped_bit_is_noticed() -> None:
    good = SEALER.seal(b"the payload").encode()
    for at in range(len(good)):
        for bit in range(8):
            flipped = bytearray(good)
            flipped[at] ^= 1 << bit
            assert SEALER.open(flipped.decode("latin-1")) is None


def test_base64_that_python_would_read_alike_is_another_token() -> None:
    """The last character of a payload of one byte carries four bits that say nothing."""
    version, payload, code = SEALER.seal(b"x").split(".")
    alike = payload[0] + ALPHABET[ALPHABET.index(payload[1]) + 1]
    assert base64.urlsafe_b64decode(alike + "==") == b"x"
    assert SEALER.open(f"{version}.{alike}.{code}") is None


def test_the_code_has_one_spelling_too() -> None:
    version, payload, code = SEALER.seal(b"x").split(".")
    alike = [code[:-1] + last for last in ALPHABET]
    same = [
        one for one in alike if base64.urlsafe_b64decode(one + "=") == base64.urlsafe_b64decode(code + "=")
    ]
    assert len(same) == 4
    assert [one for one in same if SEALER.open(f"{version}.{payload}.{one}") is not None] == [code]


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        ".",
        "..",
        "v1",
        "v1..",
        "v1.." + "A" * 43,
        "v1.A." + "A" * 43,
        "v1.AAAA." + "A" * 42,
        "v1.AAAA." + "A" * 44,
        "v1.AAAA.====" + "A" * 39,
        "v2." + SEALER.seal(b"x")[3:],
        "V1." + SEALER.seal(b"x")[3:],
        SEALER.seal(b"x").swapcase(),
        SEALER.seal(b"x") + "\n",
        SEALER.seal(b"x") * 2,
        SEALER.seal(b"x").replace("v1", "\N{FULLWIDTH LATIN SMALL LETTER V}1"),
        "\ud800",
        "\0",
        "é" * 100,
        "A" * 5_000_000,
        "v1." + "A" * 5_000_000,
        "v1." + "A" * 5_000_000 + "." + "A" * 43,
        None,
        7,
        [],
        {},
        SEALER.seal(b"x").encode(),
    ],
    ids=count(),
)
def test_garbage_opens_nothing(garbage: Any) -> None:
    assert SEALER.open(garbage) is None
    assert reopen(garbage) is None


@settings(deadline=None)
@given(st.text())
def test_no_text_opens_or_raises(text: str) -> None:
    assert SEALER.open(text) is None


def test_another_use_of_the_key_makes_no_token() -> None:
    """The key may sign other things: a plain HMAC of the payload is no seal."""
    payload, code = (
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (b"x", hmac.digest(KEY, b"x", hashlib.sha256))
    )
    assert SEALER.open(f"v1.{payload}.{code}") is None


# -- states: what opens ---------------------------------------------------------------------------------

JSON_VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_state_comes_back() -> None:
    assert reopen(seal()) == SealedState(asked=ASKED, state={"step": 1})


@settings(deadline=None, max_examples=50)
@given(
    principal=st.none() | st.text(),
    method=st.text(),
    params=st.dictionaries(st.text(), JSON_VALUES, max_size=3),
    state=JSON_VALUES,
    expires_at_ms=st.integers(min_value=1, max_value=2**53),
)
def test_any_json_comes_back(
    principal: str | None, method: str, params: dict[str, Any], state: Any, expires_at_ms: int
) -> None:
    token = seal(principal=principal, method=method, params=params, state=state, expires_at_ms=expires_at_ms)
    opened = reopen(token, principal=principal, method=method, params=params, now=expires_at_ms - 1)
    assert opened == SealedState(asked=ASKED, state=state)


def test_sealing_is_deterministic() -> None:
    assert seal() == seal(sealer=HmacSealer([KEY]))


def test_another_round_of_the_same_call_may_differ_where_rounds_differ() -> None:
    """The metadata, the answers and the state itself are new in every round."""
    token = seal(params={**PARAMS, "_meta": {"progressToken": 1}})
    retry = {
        **PARAMS,
        "_meta": {"progressToken": 2},
        "inputResponses": {"confirm": {}},
        "requestState": token,
    }
    assert reopen(token, params=retry) is not None
    assert reopen(seal(params=retry), params=PARAMS) is not None


def test_members_may_come_in_any_order() -> None:
    token = seal(params={"name": "render", "arguments": {"a": {"x": 1, "y": 2}, "b": [1, 2]}})
    turned = {"arguments": {"b": [1, 2], "a": {"y": 2, "x": 1}}, "name": "render"}
    assert reopen(token, params=turned) is not None


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(), JSON_VALUES, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_no_order_of_members_matters(arguments: dict[str, Any], random: Any) -> None:
    names = list(arguments)
    random.shuffle(names)
    token = seal(params={"name": "render", "arguments": arguments})
    turned = {"arguments": {name: arguments[name] for name in names}, "name": "render"}
    assert reopen(token, params=turned) is not None


def test_lone_surrogates_in_what_a_peer_sent_are_no_obstacle() -> None:
    params = {"name": "\ud800"}
    assert reopen(seal(params=params), params=params) is not None


def test_the_client_learns_nothing_of_its_principal() -> None:
    """SEC.2: the principal can be a credential."""
    _, payload, _ = seal(principal="secret subject").split(".")
    assert b"secret subject" not in base64.urlsafe_b64decode(payload + "===")


# -- states: what does not --------------------------------------------------------------------------------


def test_it_expires() -> None:
    token = seal()
    assert reopen(token, now=DEADLINE - 1) is not None
    assert reopen(token, now=DEADLINE) is None
    assert reopen(token, now=DEADLINE + 2**53) is None


@pytest.mark.parametrize("thief", ["bob", "Ada", "ada ", "", "None", "null", None])
def test_it_is_no_use_to_anyone_else(thief: str | None) -> None:
    assert reopen(seal(principal="ada"), principal=thief) is None


@pytest.mark.parametrize("somebody", ["", "None", "null"])
def test_nobody_is_not_somebody(somebody: str) -> None:
    """SEC.1: no principal matches only no principal."""
    assert reopen(seal(principal=None), principal=None) is not None
    assert reopen(seal(principal=None), principal=somebody) is None
    assert reopen(seal(principal=somebody), principal=None) is None


def test_it_belongs_to_one_method() -> None:
    assert reopen(seal(), method="prompts/get") is None


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": "render"},
        {"name": "erase", "arguments": PARAMS["arguments"]},
        {"name": "render", "arguments": {"scene": "dusk", "frames": 3}},
        {"name": "render", "arguments": {"scene": "dawn"}},
        {"name": "render", "arguments": {"scene": "dawn", "frames": "3"}},
        {"name": "render", "arguments": {"scene": "dawn", "frames": 3, "_meta": {}}},
        {"name": "render", "arguments": None},
        {**PARAMS, "more": 1},
    ],
    ids=count(),
)
def test_it_belongs_to_one_call(params: dict[str, Any]) -> None:
    assert reopen(seal(), params=params) is None


def test_arguments_that_share_a_name_with_what_rounds_change_still_count() -> None:
    token = seal(params={"name": "render", "arguments": {"requestState": 1}})
    assert reopen(token, params={"name": "render", "arguments": {"requestState": 2}}) is None


def test_parts_of_a_call_cannot_trade_places() -> None:
    token = seal(principal="a", method="b", params={})
    assert reopen(token, principal="b", method="a", params={}) is None
    assert reopen(token, principal="ab", method="", params={}) is None


def test_another_server_cannot_have_sealed_it() -> None:
    assert reopen(seal(sealer=HmacSealer([OTHER_KEY]))) is None


def test_a_changed_state_does_not_open() -> None:
    version, payload, code = seal().split(".")
    changed = payload.replace(payload[20:24], "AAAA")
    assert changed != payload
    assert reopen(f"{version}.{changed}.{code}") is None


def test_every_changed_character_of_a_state_is_noticed() -> None:
    token = seal()
    for at, character in enumerate(token):
        other = ALPHABET[(ALPHABET.find(character) + 1) % len(ALPHABET)]
        assert reopen(token[:at] + other + token[at + 1 :]) is None


@pytest.mark.parametrize("token", [None, True, 1, 1.5, [], {}, [seal()], seal().encode()], ids=count())
def test_a_token_is_a_string(token: Any) -> None:
    assert reopen(token) is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"x",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"call":1,"expiresAtMs":9000000,"asked":{},"state":null}',
        b'{"call":"","expiresAtMs":9000000,"asked":{},"state":null}',
        b"[" * 100_000,
    ],
    ids=count(),
)
def test_a_payload_that_is_no_state_opens_nothing(payload: bytes) -> None:
    """The host may seal other things with the same sealer."""
    assert reopen(SEALER.seal(payload)) is None


def test_params_too_deep_to_compare_open_nothing() -> None:
    """A peer cannot raise, also where the host's parser lets anything in."""
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    assert reopen(seal(), params={"name": deep}) is None


# -- misuse -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state", [object(), {1: 2}, float("nan"), {"a": {1, 2}}, b"x", "\ud800"], ids=count()
)
def test_a_state_is_json(state: Any) -> None:
    with pytest.raises(LocalProtocolError):
        seal(state=state)


def test_requests_are_json() -> None:
    with pytest.raises(LocalProtocolError):
        seal(asked={"confirm": {"method": object()}})


def test_params_are_json() -> None:
    with pytest.raises(LocalProtocolError, match="params"):
        seal(params={"name": object()})


# -- a sealer of one's own --------------------------------------------------------------------------------


class Drawer:
    """Keeps the payload to itself, and gives out a number."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def seal(self, payload: bytes) -> str:
        self.payloads.append(payload)
        return str(len(self.payloads) - 1)

    def open(self, token: str) -> bytes | None:
        return self.payloads[int(token)] if token.isdecimal() and int(token) < len(self.payloads) else None


def test_a_host_can_bring_its_own_sealer() -> None:
    sealer: Sealer = Drawer()
    assert seal(sealer=sealer) == "0"
    assert reopen("0", sealer=sealer) == SealedState(asked=ASKED, state={"step": 1})
    assert reopen("1", sealer=sealer) is None
    assert reopen(None, sealer=sealer) is None
    assert reopen("0", sealer=sealer, principal="bob") is None


def test_what_is_sealed_is_json() -> None:
    """For a sealer that encrypts or stores, the payload is UTF-8."""
    drawer = Drawer()
    seal(sealer=drawer, state="é")
    assert json.loads(drawer.payloads[0])["state"] == "é"


def test_inp4_a_call_is_digested_as_compact_json_so_that_nodes_of_two_versions_agree() -> None:
    _, payload, _ = seal(params={"name": "render", "arguments": {"b": 1, "a": [True, None]}}).split(".")
    contents = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    call = b'["ada","tools/call",{"arguments":{"a":[true,null],"b":1},"name":"render"}]'
    assert contents["call"] == hashlib.sha256(call).hexdigest()
