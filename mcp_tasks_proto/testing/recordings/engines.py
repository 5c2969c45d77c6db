"""The engines that can be recorded, and how the first line of a recording tells of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from attrs import evolve, fields, frozen

from mcp_tasks_proto.legacy.proxy import DualEraProxy, DualEraUpstreams
from mcp_tasks_proto.legacy.requester import DualEraRequester
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.proxy import ProxyEngine
from mcp_tasks_proto.requester import RequesterEngine
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.testing.recordings.sealing import (
    Note,
    NotedHandles,
    NotedSealer,
    PlayedHandles,
    PlayedSealer,
    Playing,
    SomeHandles,
    SomeSealer,
    with_handles,
    with_sealer,
)
from mcp_tasks_proto.testing.recordings.values import TYPE, UnreadableError, ValueWriter, read_value

__all__ = [
    "FORMAT",
    "LIBRARY",
    "Engine",
    "Head",
    "as_recorded",
    "noted_engine",
    "noted_fact",
    "played_fact",
    "read_head",
    "write_head",
]

FORMAT: Final = 1
"""The version of what stands in a recording."""

LIBRARY: Final = "0.1.0"
"""The version of this package."""


class Engine(Protocol):
    """Any engine of this package."""

    def handle(self, input: Any, *, now: int) -> Any:  # noqa: A002 - as the engines have it
        """Take in one fact; return a step: ``effects`` and ``deadline``."""


@frozen
class _Kind:
    """What is said of an engine of one class."""

    cls: Any
    role: str
    era: str
    """``"modern"``, or ``"both"``."""

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields that it is made with, by the names of its arguments. Those that number its requests
        begin with one in every engine that a host makes."""
        known = [one for one in fields(self.cls) if one.init and one.name != "names"]
        return {one.alias or one.name: one.name for one in known}


_KINDS: Final[Mapping[str, _Kind]] = {
    kind.cls.__name__: kind
    for kind in (
        _Kind(ServerEngine, "server", "modern"),
        _Kind(DualEraServer, "server", "both"),
        _Kind(RequesterEngine, "requester", "modern"),
        _Kind(DualEraRequester, "requester", "both"),
        _Kind(ProxyEngine, "proxy", "modern"),
        _Kind(DualEraUpstreams, "proxy", "both"),
        _Kind(DualEraProxy, "proxy", "both"),
    )
}


# -- recording -----------------------------------------------------------------------------------------------


def noted_engine(engine: Any, notes: list[Note]) -> Any:
    """Return an engine as this one, which has taken in nothing yet, whose uses of keys are noted.

    Raises ``TypeError`` for what is none of the engines.
    """
    kind = _KINDS.get(type(engine).__name__)
    if kind is None or kind.cls is not type(engine):
        raise TypeError(f"{type(engine).__name__} is no engine that can be recorded")
    changed = noted_fact(engine, notes)
    codec = getattr(engine, "codec", None)
    noted = None if codec is None else with_handles(codec, lambda one: NotedHandles(one, notes))
    return changed if noted is codec else evolve(changed, codec=noted)


def noted_fact(fact: Any, notes: list[Note]) -> Any:
    """Return an input, or an engine, such that its settings' sealer is noted; itself, if there is none."""
    return _changed_settings(fact, lambda sealer: NotedSealer(sealer, notes))


def as_recorded(fact: Any) -> Any:
    """Return an input as it is to be written: without keys."""
    return _changed_settings(fact, lambda _: SomeSealer())


def _changed_settings(fact: Any, change: Any) -> Any:
    settings = getattr(fact, "settings", None)
    changed = with_sealer(settings, change)
    return fact if changed is settings else evolve(fact, settings=changed)


def write_head(engine: Engine, writer: ValueWriter) -> dict[str, Any]:
    """Return the first line of a recording of this engine."""
    kind = _KINDS[type(engine).__name__]
    told: dict[str, Any] = {}
    for name, attribute in kind.fields.items():
        value = getattr(engine, attribute)
        if name == "settings":
            value = with_sealer(value, lambda _: SomeSealer())
        elif name == "codec":
            value = with_handles(value, lambda codec: SomeHandles(codec.stored))
        elif name == "tools":
            value = list(value)
        told[name] = writer.write(value, whole=True)
    return {
        "recording": FORMAT,
        "library": LIBRARY,
        "role": kind.role,
        "era": kind.era,
        "engine": {TYPE: kind.cls.__name__, **told},
    }


# -- replaying -----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Head:
    """What the first line says."""

    library: str
    """The version of this package that recorded."""
    role: str
    """``"server"``, ``"requester"`` or ``"proxy"``."""
    era: str
    """``"modern"``: 2026-07-28 alone; ``"both"``: 2025-11-25 as well."""
    engine: Engine
    """One that is made as the recorded one was."""


def read_head(line: Any, playing: Playing) -> Head:
    """Read a first line, and make its engine. Raises :class:`UnreadableError`."""
    if isinstance(line, dict) and "end" in line:
        raise UnreadableError(f"nothing was recorded: {line['end']}")
    if not isinstance(line, dict) or type(line.get("recording")) is not int:
        raise UnreadableError("this is no recording: the first line does not say recording")
    if line["recording"] != FORMAT:
        raise UnreadableError(
            f"it is in format {line['recording']}, as mcp-tasks-proto {line.get('library')} wrote it; "
            f"this version, {LIBRARY}, reads format {FORMAT}"
        )
    told = line.get("engine")
    if not isinstance(told, dict) or not isinstance(told.get(TYPE), str):
        raise UnreadableError("the first line does not say which engine it was")
    kind = _KINDS.get(told[TYPE])
    if kind is None:
        raise UnreadableError(f"this version has no engine {told[TYPE]}")
    return Head(
        library=str(line.get("library")),
        role=kind.role,
        era=kind.era,
        engine=_make(kind, {name: value for name, value in told.items() if name != TYPE}, playing),
    )


def _make(kind: _Kind, told: Mapping[str, Any], playing: Playing) -> Engine:
    unknown = sorted(told.keys() - kind.fields.keys())
    if unknown:
        raise UnreadableError(f"{kind.cls.__name__} has no {unknown[0]} in this version")
    made = {name: read_value(value) for name, value in told.items()}
    try:
        if "codec" in made:
            made["codec"] = with_handles(made["codec"], lambda codec: PlayedHandles(playing, codec.stored))
        made["settings"] = with_sealer(made["settings"], lambda _: PlayedSealer(playing))
        engine: Engine = kind.cls(**made)
    except Exception as error:  # whatever it is: what stands there may be anything
        raise UnreadableError(f"no {kind.cls.__name__} can be made of it: {error}") from None
    return engine


def played_fact(fact: Any, playing: Playing) -> Any:
    """Return an input whose settings' sealer answers from notes; itself, if there is none."""
    return _changed_settings(fact, lambda _: PlayedSealer(playing))
