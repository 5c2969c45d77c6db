"""What a requester is configured with: LIM.3."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from mcp_tasks_proto.requester import RequesterLimits

NAMES = [bound.name for bound in attrs.fields(RequesterLimits)]


def test_defaults_that_are_written_down() -> None:
    limits = RequesterLimits()
    assert (limits.calls, limits.listen_streams, limits.call_timeout_ms) == (10_000, 8, 300_000)


@pytest.mark.parametrize("name", NAMES)
def test_lim3_each_limit_can_be_set(name: str) -> None:
    for value in (1, 2**53):
        assert getattr(RequesterLimits(**{name: value}), name) == value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1])
def test_lim3_no_limit_can_be_switched_off(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        RequesterLimits(**{name: value})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, 1.5, "1", [1]], ids=repr)
def test_lim3_each_limit_is_an_integer(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=name):
        RequesterLimits(**{name: value})
