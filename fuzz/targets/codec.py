"""What we accept, and what the official SDK's types (``mcp-types``) accept. The input is a message.

The two must be of one mind: on whether the bytes are a message, on what kind of message they are, and on the
params of those methods of 2026-07-28 that both know. Where they differ by contract,
:data:`fuzz.differences.DIFFERENCES` has a row that says so; everything else is a finding.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Final

from fuzz.differences import Case, is_by_contract
from mcp_tasks_proto import HmacSealer, Limits, ServerSettings
from mcp_tasks_proto.errors import RemoteProtocolError
from mcp_tasks_proto.negotiation import Refused, negotiate
from mcp_tasks_proto.wire import schema
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    decode,
    parse_message,
)
from mcp_tasks_proto.wire.schema import ParamsError, structure

types: Final[Any] = import_module("mcp_types")
methods: Final[Any] = import_module("mcp_types.methods")
ValidationError: Final[type[Exception]] = import_module("pydantic").ValidationError

VERSION: Final = "2026-07-28"
LIMITS: Final = Limits()
SETTINGS: Final = ServerSettings(name="fuzz", version="1", sealer=HmacSealer([b"k" * 32]))
REQUESTS: Final = {
    "tools/call": schema.CallToolParams,
    "subscriptions/listen": schema.ListenParams,
    "tools/list": None,
    "server/discover": None,
}
NOTIFICATIONS: Final = {"notifications/cancelled": schema.CancelledParams}


def check(data: bytes) -> None:
    """Have both read it."""
    ours, why = _read_by_us(data)
    theirs = _read_by_them(data)
    if (ours is None) != (theirs is None):
        case = Case(value=_leniently_read(data), ours=why)
        assert is_by_contract(case), f"{'they' if ours is None else 'we'} accept it: {why}"
    elif ours is not None and (kinds := (_kind_of(ours), type(theirs).__name__))[0] != kinds[1]:
        case = Case(value=_leniently_read(data), kinds=kinds)
        assert is_by_contract(case), f"we take it for a {kinds[0]}, they for a {kinds[1]}"
    if (isinstance(ours, Request) and ours.method in REQUESTS) or (
        isinstance(ours, Notification) and ours.method in NOTIFICATIONS
    ):
        _check_params(ours)


# -- messages ------------------------------------------------------------------------------------------------


def _read_by_us(data: bytes) -> tuple[Message | None, str]:
    """Return the message, or why there is none."""
    try:
        message = parse_message(decode(data, LIMITS))
    except RemoteProtocolError as refusal:
        return None, refusal.error.message
    return (None, message.error.message) if isinstance(message, Malformed) else (message, "")


def _read_by_them(data: bytes) -> Any:
    try:
        return types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError:
        return None


def _leniently_read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _kind_of(message: Message) -> str:
    if isinstance(message, Response):
        return "JSONRPCResponse" if message.error is None else "JSONRPCError"
    return f"JSONRPC{type(message).__name__}"


# -- params --------------------------------------------------------------------------------------------------


def _check_params(message: Request | Notification) -> None:
    ours = _our_objection(message)
    theirs = _their_objections(message)
    if bool(ours) != bool(theirs):
        case = Case(value=message.params, ours=ours, theirs=theirs)
        assert is_by_contract(case), f"{message.method}: we say {ours!r}, they object to {theirs}"


def _our_objection(message: Request | Notification) -> str:
    """Return why we refuse it; empty: we do not."""
    if isinstance(message, Request):
        decision = negotiate(message, http=None, tasks_enabled=True, settings=SETTINGS, tools={})
        if isinstance(decision, Refused):
            return decision.error.message
    wanted = {**REQUESTS, **NOTIFICATIONS}[message.method]
    try:
        if wanted is not None:
            structure(wanted, message.params)
    except ParamsError as error:
        return str(error)
    return ""


def _their_objections(message: Request | Notification) -> tuple[str, ...]:
    """Return the members that they object to."""
    request = isinstance(message, Request)
    validate = methods.validate_client_request if request else methods.validate_client_notification
    try:
        validate(message.method, VERSION, message.params)
    except ValidationError as error:
        found = [".".join(map(str, one["loc"])) for one in error.errors()]  # type: ignore[attr-defined]
        return tuple(name.removeprefix("params.") for name in found)
    return ()
