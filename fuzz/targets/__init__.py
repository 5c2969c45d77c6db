"""What is fuzzed. Each target is a module with one function, ``check``, which takes any bytes.

It returns when all is well and raises when it is not: ``AssertionError`` for a property that does not hold,
anything else for an exception that nobody documents. A new target is a module here, a line in
:data:`TARGETS`, and a folder of seeds in ``fuzz/corpus``. For a state machine of ``tests/model`` there is a
line in :data:`MACHINES` in place of the module.

This module imports none of the code under test: the fuzzer has to be there first, to watch it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

__all__ = ["MACHINES", "TARGETS", "Check", "load"]

Check = Callable[[bytes], None]

TARGETS: Final[Mapping[str, str]] = {
    "jsonrpc": "JSON and JSON-RPC: bytes to messages, and back",
    "params": "params and task views: what is read is written again as it was",
    "http_requests": "what a server reads on an HTTP connection",
    "http_responses": "what a client reads on an HTTP connection",
    "event_streams": "server-sent events",
    "lines": "the framing of stdio",
    "header_values": "values in headers: what is sent is what is checked",
    "tokens": "sealed tokens: request states, handles of a proxy, stored records",
    "cursors": "cursors of lists, and requests to the dashboard",
    "references": "saved references, and what resumes from them",
    "records": "stored records, bindings, snapshots, ledger entries and rows",
    "dialogue": "servers of one era and of both, and what anybody says to them",
    "server": "a server, its workers and its store, beside the reference model",
    "server_machine": "the same, by the state machine of the model tests",
    "requester_machine": "a requester, beside its reference model",
    "legacy_server_machine": "a server toward clients of 2025-11-25, beside its reference model",
    "legacy_requester_machine": "a requester toward servers of 2025-11-25, beside its reference model",
    "proxy_machine": "a proxy, its store and its upstreams, beside its reference model",
    "whole_machine": "clients, a proxy, servers and stores together, and all that may go wrong between them",
    "codec": "what we accept, and what the official SDK's types accept",
}
"""The name of each target, and what it is about."""

MACHINES: Final[Mapping[str, tuple[str, str]]] = {
    "server_machine": ("tests.model.test_server_machine", "ServerMachine"),
    "requester_machine": ("tests.model.test_requester_machine", "RequesterMachine"),
    "legacy_server_machine": ("tests.model.test_legacy_server_machine", "LegacyServerMachine"),
    "legacy_requester_machine": ("tests.model.test_legacy_requester_machine", "LegacyRequesterMachine"),
    "proxy_machine": ("tests.model.test_proxy_machine", "ProxyMachine"),
    "whole_machine": ("tests.model.test_whole_machine", "WholeMachine"),
}
"""Targets that are state machines: the module, and the name of the class."""


def load(target: str) -> Check:
    """Return the function of a target. Raises ``ModuleNotFoundError`` for a package that it needs."""
    if target in MACHINES:
        module, name = MACHINES[target]
        driven: Check = import_module("fuzz.machines").drive(getattr(import_module(module), name))
        return driven
    check: Check = import_module(f"{__name__}.{target}").check
    return check
