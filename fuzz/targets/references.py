"""Saved references (REQ.6). The input is JSON, as somebody kept it in a file.

* Only ``ValueError`` is raised for what is no reference, and the call that resumes from it fails.
* A reference is written as it was read.
* Requesters of the modern era and of both resume from it without an exception, poll, and keep a reference
  that can be resumed from again. :class:`RequesterHost` holds the modern one to its promises.
"""

from __future__ import annotations

from typing import Any, Final

from fuzz.comparing import canonical, read_json, same
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.legacy.messages import ConnectionLost, DualEraInput, SendLegacy
from mcp_tasks_proto.legacy.requester import DualEraRequester
from mcp_tasks_proto.requester import (
    Failed,
    KeepReference,
    RequesterEngine,
    RequesterSettings,
    RequestFailed,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    Settle,
    StopRequest,
    TaskReference,
)
from mcp_tasks_proto.testing import RequesterHost

ENDPOINT: Final = "http://localhost/mcp"
SETTINGS: Final = RequesterSettings(
    name="fuzz", version="1", endpoint=ENDPOINT, capabilities={"elicitation": {}}, listen=False
)
NOW: Final = 1_700_000_000_000
PATIENCE_MS: Final = 60_000
"""How long the caller waits."""
STEPS: Final = 12
"""How many deadlines are met, with everything answered that is in flight; then nothing is."""
VIEW: Final = {
    "resultType": "complete",
    "status": "input_required",
    "createdAt": "2023-11-14T22:13:20.000Z",
    "lastUpdatedAt": "2023-11-14T22:13:20.000Z",
    "ttlMs": None,
    "inputRequests": {
        "confirm": {
            "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
}


def check(data: bytes) -> None:
    """Read it, write it, and resume from it in every way."""
    value = read_json(data)
    before = canonical(value)
    reference = _read(value)
    if reference is not None:
        written = reference.to_json()
        again = TaskReference.from_json(written)
        assert same(again.to_json(), written), "REQ.6: it changes each time that it is written"
        for name, member in written.items():
            assert name == "keys" or same(member, value.get(name)), f"REQ.6: {name} is lost"
        assert set(written["keys"]) == set(value["keys"]), "REQ.6: a key is lost"
    ours = reference is not None and reference.endpoint == ENDPOINT
    kept = _resume_modern(value, ours)
    if kept is not None:
        _resume_modern(kept, True)
    for http in (True, False):
        kept = _resume_either(value, ours, http=http)
        if kept is not None:
            _resume_either(kept, True, http=http)
    assert canonical(value) == before, "a reader changed what it read"


def _read(value: Any) -> TaskReference | None:
    try:
        return TaskReference.from_json(value)
    except ValueError:
        return None


def _resume_modern(value: Any, ours: bool) -> dict[str, Any] | None:
    """Resume, have the task found waiting for input, and return the reference that is kept of it."""
    host = RequesterHost(engine=RequesterEngine(settings=SETTINGS), now=NOW)
    call = host.resume(value, deadline_ms=NOW + PATIENCE_MS)
    failed = isinstance(host.outcomes.get(call), Failed)
    assert failed is not ours, "REQ.6: it resumes from what is no reference, or does not from what is one"
    for _ in range(STEPS):
        for number, sent in list(host.in_flight.items()):
            view = {**VIEW, "taskId": sent.message["params"].get("taskId")}
            host.reply(number, view if sent.message["method"] == "tasks/get" else {"resultType": "complete"})
        if host.deadline is None:
            break
        host.now = max(host.now, host.deadline)
        host.give(TimePassed())
    host.advance(PATIENCE_MS)
    assert call in host.outcomes, "a call with a deadline does not end"
    return host.references.get(call)


def _resume_either(value: Any, ours: bool, *, http: bool) -> dict[str, Any] | None:
    """Do so with a requester that has yet to find out the era; the server answers with nonsense, or not."""
    requester = DualEraRequester(settings=SETTINGS, http=http)
    now, settled, in_flight = NOW, list[Settle](), list[int]()
    kept: dict[str, Any] | None = None
    facts: list[DualEraInput] = [ResumeWanted(call="call", reference=value, deadline_ms=NOW + PATIENCE_MS)]
    for _ in range(2 * STEPS):
        step = requester.handle(facts.pop(0), now=now)
        for effect in step.effects:
            match effect:
                case Settle():
                    settled.append(effect)
                case KeepReference(reference=reference):
                    kept = reference
                case SendRequest(request=number) | SendLegacy(request=number):
                    in_flight.append(number)
                case StopRequest(request=number):
                    in_flight.remove(number)
        if in_flight and not facts:
            facts.append(_unanswered(in_flight.pop(0)))
        elif not facts:
            if step.deadline is None:
                break
            now = max(now, step.deadline)
            facts.append(TimePassed())
    requester.handle(ConnectionLost(), now=now)
    assert len(settled) <= 1, "REQ.6: a call settles once"
    assert ours or len(settled) == 1, "REQ.6: it resumes from what is no reference"
    return kept


def _unanswered(number: int) -> ResponseReceived | RequestFailed:
    if number % 3:
        return RequestFailed(number, "no connection", sent=False)
    return ResponseReceived(request=number, message={"jsonrpc": "2.0", "id": number, "result": {}})
