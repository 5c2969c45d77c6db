"""Every target has nothing to say about its seeds, and finds what is planted in the code that it is about."""

from __future__ import annotations

import logging
from collections.abc import Callable
from json import JSONDecoder
from typing import Any, Final

import pytest
from attrs import evolve, frozen
from mcp_tasks_adapters.dashboard import requests
from mcp_tasks_adapters.http_connection import HttpConnection
from mcp_tasks_adapters.http_exchange import HttpExchange
from mcp_tasks_adapters.stores import rows
from mcp_tasks_adapters.stores.sealing import RecordKeys

from fuzz.differences import DIFFERENCES, Case
from fuzz.findings import replay
from fuzz.paths import seeds
from fuzz.targets import TARGETS, codec, load
from mcp_tasks_proto import exchanges, request_state
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.legacy.server.cursors import Cursors
from mcp_tasks_proto.requester import TaskReference
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.wire import http, jsonrpc, schema
from mcp_tasks_proto.wire.jsonrpc import Request, decode
from mcp_tasks_proto.wire.sse import EventDecoder
from mcp_tasks_proto.wire.stdio import LineDecoder
from tests.model import (
    test_planted_legacy_faults,
    test_planted_legacy_requester_faults,
    test_planted_requester_faults,
    test_proxy_planted_faults,
)
from tests.model.planting import Fault as ServerFault
from tests.model.test_planted_faults import FAULTS

Wrapped = Callable[..., Any]


@frozen(kw_only=True)
class Fault:
    """``name`` of ``where`` is replaced by ``faulty``, or by what ``wrap`` makes of it."""

    target: str
    what: str
    where: Any
    name: str
    faulty: Any = None
    wrap: Callable[[Wrapped], Wrapped] | None = None


def _last_piece_only(take_body: Wrapped) -> Wrapped:
    def faulty(self: Any, data: bytes) -> None:
        self._body.clear()
        take_body(self, data)

    return faulty


def _with_lone_newlines(read: Wrapped) -> Wrapped:
    def faulty(self: Any, chunk: bytes, found: Any) -> None:
        self._after_return = False
        read(self, chunk, found)

    return faulty


def _unending(extend: Wrapped) -> Wrapped:
    def faulty(self: Any, part: bytes, found: Any) -> None:
        self._skipping = False
        extend(self, part, found)

    return faulty


def _once_more(fail: Wrapped) -> Wrapped:
    def faulty(self: HttpExchange, reason: str) -> None:
        self.over = False
        fail(self, reason)

    return faulty


def _raising(self: Cursors, cursor: Any, principal: str) -> str | None:
    """The cursor as it was once read: what is sealed is decoded, whatever it is."""
    payload = self.sealer.open(cursor) if isinstance(cursor, str) else None
    match None if payload is None else decode(payload, self.limits):
        case {"tasks/list": owner, "after": str() as after} if owner == principal:
            return after
    return None


def _anybodys(self: Cursors, cursor: Any, principal: str) -> str | None:
    payload = self.sealer.open(cursor) if isinstance(cursor, str) else None
    contents = {} if payload is None or len(payload) > 200 else decode(payload, self.limits)
    return contents.get("after")


def _placeless(unseal: Wrapped) -> Wrapped:
    return lambda self, sealed, place: unseal(self, sealed, "anywhere")


def _without_lifetime(to_json: Wrapped) -> Wrapped:
    return lambda self: {**to_json(self), "ttlMs": None}


def _only_known(to_stored: Wrapped) -> Wrapped:
    return lambda instance: {name: value for name, value in to_stored(instance).items() if name != "later"}


def _with_text_ids(parse: Wrapped) -> Wrapped:
    def faulty(value: Any) -> Any:
        message = parse(value)
        return evolve(message, id=str(message.id)) if isinstance(message, Request) else message

    return faulty


def _eager(save: Wrapped) -> Wrapped:
    def faulty(self: Tasks, question: Any, before: Any, decision: Any, after: Any) -> None:
        self._conclude(question.operation, decision)
        save(self, question, before, decision, after)

    return faulty


PLANTED: Final = [
    Fault(
        target="jsonrpc",
        what="JSON as the standard library takes it",
        where=jsonrpc,
        name="_DECODER",
        faulty=JSONDecoder(),
    ),
    Fault(
        target="jsonrpc",
        what="what is null in an error is lost",
        where=ErrorObject,
        name="to_wire",
        faulty=lambda self: {"code": self.code, "message": self.message},
    ),
    Fault(
        target="params",
        what="absent and null are the same",
        where=schema,
        name="_WIRE",
        faulty=schema._make_converter(wire_name=schema._camel_case, as_it_came=False),
    ),
    Fault(
        target="http_requests",
        what="a body is the last piece of it",
        where=HttpConnection,
        name="_take_body",
        wrap=_last_piece_only,
    ),
    Fault(
        target="http_requests",
        what="bodies of any length are kept",
        where=HttpConnection,
        name="_refuse_body",
        faulty=lambda self, status, error: None,
    ),
    Fault(
        target="http_requests",
        what="any page may ask",
        where=http,
        name="check_reach",
        faulty=lambda *_: None,
    ),
    Fault(
        target="http_responses",
        what="a body is the last piece of it",
        where=HttpExchange,
        name="_take_body",
        wrap=_last_piece_only,
    ),
    Fault(
        target="http_responses",
        what="a request fails that was answered",
        where=HttpExchange,
        name="_fail",
        wrap=_once_more,
    ),
    Fault(
        target="event_streams",
        what="CRLF is two line ends where it is cut",
        where=EventDecoder,
        name="_read",
        wrap=_with_lone_newlines,
    ),
    Fault(
        target="lines",
        what="the rest of a line that is too long is read",
        where=LineDecoder,
        name="_extend",
        wrap=_unending,
    ),
    Fault(
        target="header_values",
        what="white space around a value is sent as it is",
        where=http,
        name="_PLAIN",
        faulty=http._FIELD_VALUE,
    ),
    Fault(
        target="header_values",
        what="any Base64 of a value will do",
        where=http,
        name="b64encode",
        faulty=type("Anything", (bytes,), {"__eq__": lambda *_: True, "__hash__": None}),
    ),
    Fault(
        target="tokens",
        what="a seal is not looked at",
        where=request_state,
        name="compare_digest",
        faulty=lambda *_: True,
    ),
    Fault(
        target="tokens",
        what="a state is good for every call",
        where=request_state,
        name="_call_digest",
        faulty=lambda *_: "any",
    ),
    Fault(
        target="tokens",
        what="a record opens in every place",
        where=RecordKeys,
        name="unseal",
        wrap=_placeless,
    ),
    Fault(
        target="cursors",
        what="a request state is read as a cursor",
        where=Cursors,
        name="opened",
        faulty=_raising,
    ),
    Fault(
        target="cursors",
        what="a cursor is anybody's",
        where=Cursors,
        name="opened",
        faulty=_anybodys,
    ),
    Fault(
        target="cursors",
        what="a place is written for another list",
        where=requests,
        name="Place",
        wrap=lambda place: lambda newest_first, handle: place(newest_first + 1, handle),
    ),
    Fault(
        target="references",
        what="a lifetime is lost",
        where=TaskReference,
        name="to_json",
        wrap=_without_lifetime,
    ),
    Fault(
        target="records",
        what="what a later version wrote is lost",
        where=schema,
        name="to_stored",
        wrap=_only_known,
    ),
    Fault(
        target="records",
        what="an expiry that no column holds",
        where=rows,
        name="LAST_MS",
        faulty=2**80,
    ),
    Fault(
        target="dialogue",
        what="ids are text",
        where=exchanges,
        name="parse_message",
        wrap=_with_text_ids,
    ),
    Fault(
        target="server_machine",
        what="a task is told of before it is saved",
        where=Tasks,
        name="_save",
        wrap=_eager,
    ),
    Fault(
        target="codec",
        what="null is an id",
        where=jsonrpc,
        name="_ID_TYPES",
        faulty=(int, str, type(None)),
    ),
]

PLANTED_IN_ROLES: Final[dict[str, tuple[list[Any], set[str]]]] = {
    "requester_machine": (
        test_planted_requester_faults.FAULTS,
        {"the server is not told", "sent before it is saved", "to abandon is to cancel"},
    ),
    "legacy_server_machine": (
        test_planted_legacy_faults.FAULTS,
        {"a result is not waited for", "questions stay", "every tool is called plainly"},
    ),
    "legacy_requester_machine": (
        test_planted_legacy_requester_faults.FAULTS,
        {"answers are sent twice", "answers wait for each other", "a task here lives for ever"},
    ),
    "proxy_machine": (
        test_proxy_planted_faults.FAULTS,
        {"a handle is told before it is durable", "anybody is the owner", "polls are not counted"},
    ),
    "whole_machine": (
        [*FAULTS, *test_proxy_planted_faults.FAULTS, *test_planted_legacy_requester_faults.FAULTS],
        {"a worker is never told to stop", "the upstream's id is the handle", "results are not fetched"},
    ),
}
"""Those of ``tests/model`` that the seeds of the state machines find: all, and which of them, by target."""


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_show_nothing(target: str) -> None:
    paths = seeds(target)
    assert paths
    assert replay(load(target), paths) == {}


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: f"{fault.target}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    check = load(fault.target)
    planted = fault.faulty if fault.wrap is None else fault.wrap(getattr(fault.where, fault.name))
    monkeypatch.setattr(fault.where, fault.name, planted)
    assert replay(check, seeds(fault.target)), f"{fault.target} does not notice"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_fault_planted_in_the_server_is_found(fault: ServerFault, monkeypatch: pytest.MonkeyPatch) -> None:
    check = load("server")
    monkeypatch.setattr(fault.where, fault.name, fault.plant(getattr(fault.where, fault.name)))
    assert replay(check, seeds("server")), f"nothing tells that {fault.rule} is broken: {fault.what}"


@pytest.mark.parametrize("target", PLANTED_IN_ROLES)
def test_faults_planted_in_a_role_are_found(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check = load(target)
    faults, names = PLANTED_IN_ROLES[target]
    chosen = [fault for fault in faults if fault.what in names]
    assert {fault.what for fault in chosen} == names
    for fault in chosen:
        with monkeypatch.context() as patch:
            patch.setattr(fault.where, fault.name, fault.plant(getattr(fault.where, fault.name)))
            assert any(replay(check, [seed]) for seed in seeds(target)), fault.what


def test_every_target_has_a_fault() -> None:
    assert {fault.target for fault in PLANTED} | {"server", *PLANTED_IN_ROLES} == set(TARGETS)


def test_every_difference_to_the_official_types_has_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none has two rows that explain it: each row stands for something of its own."""
    met: list[str] = []

    def explain(case: Case) -> bool:
        rows = [row.what for row in DIFFERENCES if row.applies(case)]
        met.extend(rows)
        return len(rows) == 1

    monkeypatch.setattr(codec, "is_by_contract", explain)
    assert replay(codec.check, seeds("codec")) == {}
    assert set(met) == {row.what for row in DIFFERENCES}


def test_loading_a_target_keeps_nobody_else_from_logging() -> None:
    """What the adapters log is part of what other tests look at, in this same process."""
    logger = logging.getLogger("mcp_tasks_adapters")
    for target in TARGETS:
        load(target)
    assert logger.isEnabledFor(logging.WARNING)
