"""Every bound there is: LIM.3."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from mcp_tasks_proto.limits import DEEPEST_MESSAGE, Limits

NAMES = [bound.name for bound in attrs.fields(Limits)]


def test_defaults_that_the_contract_names() -> None:
    limits = Limits()
    assert limits.message_bytes == 4 * 1024 * 1024  # WIRE.2
    assert limits.message_depth == 64  # WIRE.2
    assert limits.ttl_ceiling_ms is None


def test_one_second_is_a_thousand_milliseconds() -> None:
    """Trap 30: what is a time says so, and is long enough to be one."""
    times = {name: getattr(Limits(), name) for name in NAMES if name.endswith("_ms")}
    assert times.pop("ttl_ceiling_ms") is None
    assert all(time >= 1000 for time in times.values())


@pytest.mark.parametrize("name", NAMES)
def test_each_can_be_set(name: str) -> None:
    for value in (1, DEEPEST_MESSAGE if name == "message_depth" else 2**53):
        assert getattr(Limits(**{name: value}), name) == value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1])
def test_none_can_be_switched_off(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: value})


def test_wire2_no_message_may_be_nested_so_deep_that_what_holds_it_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="message_depth"):
        Limits(message_depth=DEEPEST_MESSAGE + 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [1.5, "1", [1]], ids=repr)
def test_each_is_an_integer(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ttl_ceiling_ms"])
def test_only_the_ceiling_of_lifetimes_may_be_missing(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        Limits(**{name: None})  # type: ignore[arg-type]


def test_they_are_named_and_fixed() -> None:
    with pytest.raises(TypeError):
        Limits(1)  # type: ignore[call-arg]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Limits().tasks = 1  # type: ignore[misc]
    assert Limits(tasks=7) == Limits(tasks=7) != Limits()
