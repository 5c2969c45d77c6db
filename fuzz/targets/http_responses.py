"""What a client reads on an HTTP connection (HTTP.4). The input is what a server sent.

* It makes no difference how the bytes were cut, to a client of either era and to the kit.
* Nothing that a server sends raises; a request gets one last fact, and nothing after it.
* A JSON body that ended is handed on as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve
from mcp_tasks_adapters.http_exchange import Fact, HttpAddress, HttpExchange, RequestWriter
from mcp_tasks_adapters.kit.http import Response as KitResponse

from fuzz.comparing import same
from fuzz.pieces import ways_to_cut
from mcp_tasks_proto.errors import RemoteProtocolError
from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import RequestFailed, ResponseReceived, SendRequest
from mcp_tasks_proto.testing import request
from mcp_tasks_proto.testing.kit import Ended, Post
from mcp_tasks_proto.testing.kit import Fact as KitFact
from mcp_tasks_proto.wire.jsonrpc import decode

LIMITS: Final = Limits(message_bytes=512)
ADDRESS: Final = HttpAddress.parse("http://localhost/mcp")
NOW_MS: Final = 1_700_000_000_000
REQUEST: Final = request("tools/list")
REQUESTS: Final[Mapping[str, SendRequest | SendLegacy]] = {
    "modern": SendRequest(request=1, message=REQUEST),
    "legacy": SendLegacy(request=1, message=REQUEST, version="2025-11-25"),
    "legacy stream": SendLegacy(request=1, verb="GET", version="2025-11-25"),
}
FINAL: Final = (ResponseReceived, RequestFailed)


def check(data: bytes) -> None:
    """Receive the server's bytes in every way, as the answer to each kind of request."""
    for kind, send in REQUESTS.items():
        whole, *others = [_received(pieces, send) for pieces in ways_to_cut(data)]
        for other in others:
            assert other == whole, f"{kind}: the borders of the chunks can be told"
        assert isinstance(whole[-1], FINAL), f"{kind}: no last fact"
        assert sum(isinstance(fact, FINAL) for fact in whole) == 1, f"{kind}: a fact after the last one"
    whole_report, *other_reports = [_examined(pieces) for pieces in ways_to_cut(data)]
    for report in other_reports:
        assert report == whole_report, "kit: the borders of the chunks can be told"
    assert [isinstance(one, Ended) for one in whole_report].index(True) == len(whole_report) - 1
    _check_body(data)


def _examined(pieces: list[bytes]) -> list[KitFact]:
    """Return all that the kit has to say of the response."""
    response = KitResponse(LIMITS)
    response.begin(Post(body=b"{}"), ADDRESS, {})
    facts: list[KitFact] = []
    for piece in [*pieces, b""]:
        if not any(isinstance(fact, Ended) for fact in facts):
            facts += response.receive(piece)
    last = facts.pop()
    assert isinstance(last, Ended), "kit: a response does not end"
    return [*facts, Ended(None if last.trouble is None else last.trouble.partition(":")[0])]


def _received(pieces: list[bytes], send: SendRequest | SendLegacy) -> list[Fact]:
    """Return all facts, without what is random in them, and without what h11 says of nonsense."""
    exchange = HttpExchange(RequestWriter(ADDRESS), LIMITS)
    exchange.begin(send)
    facts: list[Fact] = []
    bound = LIMITS.message_bytes + max(map(len, pieces), default=0)
    for piece in [*pieces, b""]:
        facts += exchange.receive(piece, NOW_MS)
        assert exchange.over == any(isinstance(fact, FINAL) for fact in facts)
        assert len(exchange._body) <= bound, "LIM.3: more is kept than may be"
    return [_told(fact) for fact in facts]


def _told(fact: Fact) -> Fact:
    if isinstance(fact, ServerAsked):
        return evolve(fact, new_id="")
    if isinstance(fact, RequestFailed):
        return evolve(fact, reason=fact.reason.partition(":")[0])
    return fact


# -- the same, in the plainest way ---------------------------------------------------------------------------

_PLAIN: Final = re.compile(
    rb"HTTP/1\.1 (?P<status>200|400|404) [A-Z][a-z]{0,9}\r\n"
    rb"Content-Type: application/json\r\n"
    rb"Content-Length: (?P<length>[0-9]{1,3})\r\n"
    rb"\r\n"
)


def _check_body(data: bytes) -> None:
    """A whole response of the plainest kind is handed on as it stands."""
    head = _PLAIN.match(data)
    if head is None:
        return
    body = data[head.end() :][: int(head["length"])]
    if len(body) < int(head["length"]) or len(body) > LIMITS.message_bytes:
        return
    expected = _plainly_decoded(body)
    (fact,) = _received([data], REQUESTS["modern"])
    assert isinstance(fact, ResponseReceived)
    assert fact.http is not None
    assert (fact.http.status, fact.request) == (int(head["status"]), 1)
    assert same(fact.message, expected), "HTTP.4: a body that is not what was sent"


def _plainly_decoded(body: bytes) -> Any:
    try:
        return decode(body, LIMITS)
    except RemoteProtocolError:
        return None
