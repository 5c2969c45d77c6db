"""Checks of messages as such, over whatever they come (WIRE, STD)."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import SECOND_RESPONSE, Script
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Check, Need, Strength, check
from mcp_tasks_proto.testing.kit.desk import Desk
from mcp_tasks_proto.testing.kit.judging import demand, modern_results, refused, result_of, seen
from mcp_tasks_proto.vocabulary import SERVER_INFO
from mcp_tasks_proto.wire.jsonrpc import is_id

__all__ = ["CHECKS", "WATCHES"]

MODERN: Final = (Need.MODERN,)
JSON_RPC: Final = (
    "JSON-RPC 2.0, section 5.1 (Error object), by reference in MCP 2026-07-28, Overview: Messages"
)
MESSAGES: Final = "MCP 2026-07-28, Overview: Requests"
ERROR_CODES: Final = "MCP 2026-07-28, Overview: Error Codes"

DEEP: Final = 100_000
"""Levels of nesting that no message has."""


@check(
    "WIRE.1",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A body, or a line, that is not JSON is answered with -32700.",
    source=JSON_RPC,
)
def what_is_not_json(desk: Desk) -> Script[None]:
    refused((yield from desk.ask(desk.raw(b'{"jsonrpc": "2.0", "id": 0, "method": '))), -32700)


@check(
    "WIRE.1",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A JSON value that is no request object is answered with -32600: another jsonrpc, no method, an "
    "array of requests. Where there is no method that a header could be compared with, -32020 is as good.",
    source=f"{JSON_RPC}; MCP 2026-07-28, Streamable HTTP: Sending Messages 4 (a single request)",
)
def what_is_no_request(desk: Desk) -> Script[None]:
    good = desk.request("server/discover")
    refused((yield from desk.ask(desk.changed(good, jsonrpc="1.0"))), -32600)
    codes = (-32600, -32020) if desk.speaks_http else (-32600,)
    for post in (desk.changed(good, method=1), desk.changed(good, method=None)):
        refused((yield from desk.ask(post)), *codes)
    refused((yield from desk.ask(desk.raw(b"[" + good.body + b"]"))), *codes)


@check(
    "WIRE.1",
    strength=Strength.MUST,
    needs=MODERN,
    asks="The id of a request is a string or an integer; null, true, 1.5 and an object are answered with "
    "-32600.",
    source=f"{MESSAGES} (the id is a string or integer, and must not be null)",
)
def ids_that_are_none(desk: Desk) -> Script[None]:
    good = desk.request("server/discover")
    ids: tuple[Any, ...] = (None, True, 1.5, {})
    for wrong in ids:
        refused((yield from desk.ask(desk.changed(good, id=wrong))), -32600)


@check(
    "WIRE.1",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="Params that are no object are answered with -32600.",
    source=f"{MESSAGES} (params is an object; the code is left open)",
)
def params_that_are_no_object(desk: Desk) -> Script[None]:
    post = desk.changed(desk.request("server/discover"), params=[1])
    refused((yield from desk.ask(post)), -32600)


@check(
    "WIRE.2",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="JSON is read strictly: NaN, a member twice and half a surrogate pair are errors (-32700 or "
    "-32600).",
    source="RFC 8259; the specification does not say how strictly it is to be read",
)
def json_that_is_not_strict(desk: Desk) -> Script[None]:
    good = desk.request("server/discover").body
    for more in (b'"kit":NaN,', b'"jsonrpc":"2.0",', b'"kit":"\\ud800",'):
        post = desk.raw(b"{" + more + good.removeprefix(b"{"))
        refused((yield from desk.ask(post)), -32700, -32600)


@check(
    "WIRE.2",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="A message that is nested too deeply is an error, and the server goes on.",
    source="The specification sets no bound; RFC 8259, section 9, lets implementations have one",
)
def nesting_without_end(desk: Desk) -> Script[None]:
    deep = b"[" * DEEP + b"]" * DEEP
    post = desk.raw(b'{"kit":' + deep + b"," + desk.request("server/discover").body.removeprefix(b"{"))
    answer = yield from desk.ask(post)
    went_on = yield from desk.ask(desk.request("server/discover"))
    demand(went_on.result is not None, "the server does not answer any more", answer, went_on)
    demand(answer.result is None, "it was taken", answer)


@check(
    "WIRE.3",
    strength=Strength.MUST,
    needs=MODERN,
    asks='A response has the id of its request, of the same type: 7 and "7" are two ids.',
    source="MCP 2026-07-28, Overview: Responses",
)
def ids_come_back_as_they_were(desk: Desk) -> Script[None]:
    for id_ in (desk.new_id(), str(desk.new_id()), "kit ✓", 2**53 - 1):
        answer = yield from desk.ask(desk.request("server/discover", id=id_))
        result_of(answer)
        back = (answer.response or {}).get("id")
        same = back == id_ and type(back) is type(id_)
        demand(same, "the response has another id", answer)


@check(
    "WIRE.3",
    strength=Strength.MUST,
    needs=(*MODERN, Need.STDIO),
    asks="A notification is never answered.",
    source="MCP 2026-07-28, Overview: Notifications",
)
def notifications_are_not_answered(desk: Desk) -> Script[None]:
    message = {"jsonrpc": "2.0", "method": "notifications/kit", "params": {}}
    stream = yield from desk.opened(desk.post(message, era="none"))
    came = yield from desk.next_message(stream, desk.settings.quiet_ms)
    answer = yield from desk.closed(stream)
    demand(came is None, "something came for a notification", answer)


@check(
    "WIRE.3",
    strength=Strength.CHOICE,
    needs=(*MODERN, Need.STDIO, Need.LISTEN),
    asks="An id that is in flight on the same channel is answered with -32600, and the first request goes "
    "on.",
    source=f"{MESSAGES} (a sender must not do it; what a receiver does is left open)",
)
def ids_in_flight(desk: Desk) -> Script[None]:
    listen = desk.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    stream = yield from desk.opened(listen)
    yield from desk.next_message(stream)
    refused((yield from desk.ask(desk.request("server/discover", id=listen.message["id"]))), -32600)
    result_of((yield from desk.ask(desk.request("server/discover"))))
    yield from desk.next_message(stream, desk.settings.quiet_ms)
    first = yield from desk.closed(stream)
    demand(first.response is None, "the request that was in flight has ended", first)


@check(
    "WIRE.4",
    strength=Strength.MUST,
    needs=MODERN,
    asks="Every result says what kind it is: resultType, a string.",
    source="MCP 2026-07-28, Overview: Result Responses",
)
def results_say_their_kind(desk: Desk) -> None:
    for answer, result in modern_results(desk):
        demand(isinstance(result.get("resultType"), str), "a result has no resultType", answer)


@check(
    "WIRE.4",
    strength=Strength.SHOULD,
    needs=MODERN,
    asks=f"Every result says whose it is: _meta, {SERVER_INFO}.",
    source="MCP 2026-07-28, Overview: _meta, Per-response protocol fields",
)
def results_say_whose_they_are(desk: Desk) -> None:
    for answer, result in modern_results(desk):
        meta = result.get("_meta")
        demand(
            isinstance(meta, dict) and isinstance(meta.get(SERVER_INFO), dict),
            "a result has no serverInfo",
            answer,
        )


@check(
    "WIRE.3",
    strength=Strength.MUST,
    asks="A request is answered once, and each response has the id of its request. (On HTTP nothing is read "
    "after the response.)",
    source="MCP 2026-07-28, Overview: Responses; JSON-RPC 2.0, section 5",
)
def responses_belong_to_their_requests(desk: Desk) -> None:
    seen(any(answer.response is not None for answer in desk.log), "there was no response")
    for answer in desk.log:
        demand(answer.trouble != SECOND_RESPONSE, f"there came {SECOND_RESPONSE}", answer)
        id_ = answer.post.message.get("id") if answer.post.era != "none" else None
        if answer.response is not None and is_id(id_):
            back = answer.response.get("id")
            # Whoever refuses a head has perhaps not read the body, and so no id.
            unread = answer.error is not None and back is None
            same = back == id_ and type(back) is type(id_)
            demand(same or unread, "a response has the id of no request, or of another", answer)


@check(
    "WIRE.1",
    strength=Strength.MUST,
    needs=MODERN,
    asks="The code of an error is an integer: not one that this version has given up (-32002, -32042), nor "
    "one of -32020 to -32099 that the specification does not define.",
    source=ERROR_CODES,
)
def codes_that_are_not_to_be_used(desk: Desk) -> None:
    for answer in _errors(desk):
        code = answer.code
        demand(type(code) is int, "the code of an error is no integer", answer)
        reserved = -32099 <= code <= -32020 and code not in (-32020, -32021, -32022)
        demand(not reserved and code not in (-32002, -32042), f"an error has the code {code}", answer)


@check(
    "WIRE.1",
    strength=Strength.SHOULD,
    needs=MODERN,
    asks="No error has a code of -32000 to -32019, which implementations used before they were ruled out.",
    source=ERROR_CODES,
)
def codes_of_before(desk: Desk) -> None:
    for answer in _errors(desk):
        before = isinstance(answer.code, int) and -32019 <= answer.code <= -32000
        demand(not before or answer.code == -32002, f"an error has the code {answer.code}", answer)


def _errors(desk: Desk) -> list[Answer]:
    """Return each error that a modern request got. Raises :class:`Unseen` where there is none."""
    errors = [one for one in desk.log if one.error is not None and one.post.era != "legacy"]
    seen(errors, "there was no error")
    return errors


@check(
    "WIRE.5",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="Members, params and keys of _meta that nobody knows do no harm.",
    source="The specification lets objects have further members, and says nothing of their reader",
)
def what_nobody_knows(desk: Desk) -> Script[None]:
    post = desk.request("server/discover", {"kit": {"a": [1]}}, meta={"org.example.kit/key": [True]})
    result_of((yield from desk.ask(desk.changed(post, kit="kit"))))


@check(
    "STD.1",
    strength=Strength.MUST,
    needs=(Need.STDIO,),
    asks="Nothing stands on stdout but messages, one a line.",
    source="MCP 2026-07-28, stdio",
)
def nothing_but_messages(desk: Desk) -> None:
    for answer in desk.log:
        if answer.trouble is not None and answer.trouble.startswith("a line") and not answer.over_limit:
            raise Broken(f"{answer.trouble} came on stdout", answer)


CHECKS: Final[tuple[Check, ...]] = (
    what_is_not_json,
    what_is_no_request,
    ids_that_are_none,
    params_that_are_no_object,
    json_that_is_not_strict,
    nesting_without_end,
    ids_come_back_as_they_were,
    notifications_are_not_answered,
    ids_in_flight,
    what_nobody_knows,
)
WATCHES: Final[tuple[Check, ...]] = (
    results_say_their_kind,
    results_say_whose_they_are,
    responses_belong_to_their_requests,
    codes_that_are_not_to_be_used,
    codes_of_before,
    nothing_but_messages,
)
