"""Faults that are planted in an engine, one at a time, for the model to find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import frozen

from mcp_tasks_proto import ServerEngine, StartWork

__all__ = ["Fault", "Wrapped", "always", "begun_twice", "must_be_found"]

Wrapped = Callable[..., Any]


@frozen(kw_only=True)
class Fault:
    """One rule that is broken: ``name`` of ``where`` is replaced by what ``plant`` makes of it."""

    rule: str
    what: str
    where: Any
    name: str
    plant: Callable[[Wrapped], Wrapped]


def always(value: Any) -> Callable[[Wrapped], Wrapped]:
    """Return what plants a function that always says the same."""
    return lambda _: lambda *_, **__: value


def must_be_found(
    fault: Fault, tellings: Iterable[Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant a fault; fail unless one of the tellings does."""
    monkeypatch.setattr(fault.where, fault.name, fault.plant(getattr(fault.where, fault.name)))
    for tell in tellings:
        try:
            tell()
        except AssertionError:
            return
    pytest.fail(f"nothing tells that {fault.rule} is broken: {fault.what}")


def begun_twice(conclude: Wrapped) -> Wrapped:
    """Each worker that is to begin does so twice."""

    def faulty(self: ServerEngine, *given: Any) -> None:
        conclude(self, *given)
        self._out.extend([effect for effect in self._out if isinstance(effect, StartWork)])

    return faulty
