"""The classes whose values stand in a recording, each under its own name.

All inputs and effects of every engine, and what they are made of. Keys are not among them, nor what holds
keys: :mod:`~mcp_tasks_proto.testing.recordings.sealing` has what is written in their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, get_args

from attrs import frozen

from mcp_tasks_proto.effects import CancelReason, Effect, InputAnswer, Quota
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.history import Observation, Retention, TaskEntry, TimelineEvent
from mcp_tasks_proto.inputs import Default, HttpHead, Input, Keep, LegacyInput
from mcp_tasks_proto.legacy.messages import DualEraEffect, DualEraInput
from mcp_tasks_proto.legacy.proxy import DualEraProxyEffect, DualEraProxyInput
from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.legacy.server.inner import InnerExchange, InnerToken
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import (
    Access,
    Binding,
    InputKind,
    ProxyLimits,
    ProxySettings,
    Snapshot,
    StoredHandles,
    TaskQuota,
    ToolProfile,
    Upstream,
)
from mcp_tasks_proto.records import InputEntry, Resumption, TaskRecord
from mcp_tasks_proto.requester import Fault, HttpReply, Outcome, RequesterLimits, RequesterSettings
from mcp_tasks_proto.settings import InputVisibility, ServerSettings, TaskSupport, ToolDeclaration
from mcp_tasks_proto.testing.recordings.sealing import SomeHandles, SomeSealer
from mcp_tasks_proto.wire.http import HeaderParameter
from mcp_tasks_proto.wire.schema import Absent, TaskView

__all__ = ["ENUMS", "VALUES", "Name"]


@frozen
class Name:
    """In place of an object that a host uses as a name - of an exchange, a connection, a report - and that is
    neither JSON nor a value of this package. The same object has the same number throughout a recording.

    Where an engine complains of such an object, and names its class, a replay has this class in its place.
    """

    of: str
    """What it was: the name of its class."""
    number: int


_UNIONS: Final = (
    Input,
    LegacyInput,
    Effect,
    DualEraInput,
    DualEraEffect,
    DualEraProxyInput,
    DualEraProxyEffect,
    Outcome,
)

_PARTS: Final[tuple[type, ...]] = (
    Access,
    Binding,
    ErrorObject,
    HeaderParameter,
    HttpHead,
    HttpReply,
    InnerExchange,
    InnerToken,
    InputAnswer,
    InputEntry,
    Limits,
    Name,
    Observation,
    ProxyLimits,
    ProxySettings,
    Quota,
    RequesterLimits,
    RequesterSettings,
    Resumption,
    Retention,
    ServerSettings,
    Snapshot,
    SomeHandles,
    SomeSealer,
    StoredHandles,
    TaskEntry,
    TaskQuota,
    TaskRecord,
    TaskView,
    TimelineEvent,
    ToolDeclaration,
    ToolProfile,
    Upstream,
)

VALUES: Final[Mapping[str, type]] = {
    cls.__name__: cls for cls in (*(cls for union in _UNIONS for cls in get_args(union)), *_PARTS)
}
"""Classes of values by their names."""

ENUMS: Final[Mapping[str, type[Enum]]] = {
    cls.__name__: cls
    for cls in (
        Absent,
        CancelReason,
        Default,
        Fault,
        InputKind,
        InputVisibility,
        Keep,
        LegacyPolicy,
        Status,
        TaskSupport,
    )
}
"""Enumerations by their names."""
