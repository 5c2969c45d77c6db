"""What whoever runs a proxy reads of an upstream that does not answer (SEC.2)."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from mcp_tasks_adapters.proxy.troubles import LINE_S, LINES, Troubles

from mcp_tasks_proto.requester import Fault, HttpReply, RequestFailed, ResponseReceived
from tests.adapters.client_harness import LOOPS, run
from tests.adapters.proxy_harness import before, connecting, proxying

REFUSED = RequestFailed(1, "no connection to the server: connection refused")
ANSWERED = ResponseReceived(request=2, message={}, http=HttpReply(status=200))
FARM, ALICES = ("farm", ""), ("farm", "alice")


def said(caplog: pytest.LogCaptureFixture, *facts: Any, method: str = "tools/list") -> list[str]:
    troubles = Troubles()
    for way, fact in facts:
        troubles.note(way, method, fact)
    return [record.getMessage() for record in caplog.records]


def test_a_trouble_is_told_once_and_that_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    assert said(
        caplog, *[(FARM, one) for one in (ANSWERED, REFUSED, REFUSED, ANSWERED, ANSWERED, REFUSED)]
    ) == [
        "upstream farm does not answer: no connection to the server: connection refused",
        "upstream farm answers again",
        "upstream farm does not answer: no connection to the server: connection refused",
    ]


def test_each_authorization_has_its_own(caplog: pytest.LogCaptureFixture) -> None:
    denied = ResponseReceived(request=3, message=None, http=HttpReply(status=401))
    assert said(caplog, (FARM, ANSWERED), (ALICES, denied), (FARM, ANSWERED)) == [
        "upstream farm, under the authorization alice, does not take its credentials: HTTP 401"
    ]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "no connection: its certificate is not accepted: Hostname mismatch, not for 'farm.example'.",
            "no connection: its certificate is not accepted: Hostname mismatch, not for",
        ),
        (
            "the server cannot be started: [Errno 2] No such file or directory: '/opt/farm'",
            "the server cannot be started: [Errno 2] No such file or directory",
        ),
        (
            "the server's answer is not well-formed HTTP: illegal status line: bytearray(b'canary')",
            "the server's answer is not well-formed HTTP: illegal status line",
        ),
        (
            'the server cannot be started: [Errno 2] No such file or directory: "/opt/bob\'s"',
            "the server cannot be started: [Errno 2] No such file or directory",
        ),
    ],
)
def test_sec2_no_address_is_told(caplog: pytest.LogCaptureFixture, reason: str, words: str) -> None:
    assert said(caplog, (FARM, RequestFailed(1, reason))) == [f"upstream farm does not answer: {words}"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (200, "gives no answer that can be read: HTTP 200"),
        (204, "gives no answer that can be read: HTTP 204"),
        (307, "redirects, which is not followed: HTTP 307"),
        (403, "does not take its credentials: HTTP 403"),
        (429, "takes no more requests for now: HTTP 429"),
        (503, "does not answer: HTTP 503"),
    ],
)
def test_an_answer_without_a_message_is_told(
    caplog: pytest.LogCaptureFixture, status: int, words: str
) -> None:
    answer = ResponseReceived(request=1, message=None, http=HttpReply(status=status))
    assert said(caplog, (FARM, answer), (FARM, answer)) == [f"upstream farm {words}"]


@pytest.mark.parametrize("method", ["notifications/cancelled", "POST", "DELETE"])
def test_what_is_no_request_is_answered_without_a_message(
    caplog: pytest.LogCaptureFixture, method: str
) -> None:
    taken = ResponseReceived(request=1, message=None, http=HttpReply(status=202))
    assert said(caplog, (FARM, taken), method=method) == []


def test_what_may_be_an_answer_of_another_era_ends_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = ResponseReceived(request=1, message=None, http=HttpReply(status=404))
    troubles = Troubles()
    for method in ["server/discover", "initialize"] * 2:
        troubles.note(FARM, method, nowhere)
    assert caplog.messages == ["upstream farm is no server of MCP: HTTP 404"]


def test_lim3_an_upstream_whose_answers_change_all_the_time_fills_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 1000.0
    troubles = Troubles(lambda: now_s)
    for _ in range(1000):
        for fact in (REFUSED, ANSWERED):
            troubles.note(FARM, "tools/list", fact)
    assert len(caplog.messages) == LINES
    assert caplog.messages[-1] == "upstream farm answers again"
    troubles.note(ALICES, "tools/list", REFUSED)
    assert caplog.messages[-1].startswith("upstream farm, under the authorization alice, does not answer")
    troubles.note(FARM, "tools/list", REFUSED)
    now_s += LINE_S
    troubles.note(FARM, "tools/list", ANSWERED)
    assert len(caplog.messages) == LINES + 1, "it stands there already"
    for fact in (REFUSED, ANSWERED):
        troubles.note(FARM, "tools/list", fact)
    assert caplog.messages[LINES + 1 :] == [
        "upstream farm does not answer: no connection to the server: connection refused"
    ]


@pytest.mark.parametrize(
    "fact",
    [
        RequestFailed(1, "no transport carries it", fault=Fault.CALLER),
        ResponseReceived(request=1, message={"error": {}}, http=HttpReply(status=500)),
        ResponseReceived(request=1, message={}),
    ],
)
def test_what_says_nothing_of_the_upstream_is_not_told(
    caplog: pytest.LogCaptureFixture, fact: ResponseReceived | RequestFailed
) -> None:
    assert said(caplog, (FARM, fact)) == []


def test_what_a_caller_did_wrong_makes_no_trouble_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    fault = RequestFailed(3, "no transport carries it", fault=Fault.CALLER)
    assert said(caplog, *[(FARM, one) for one in (REFUSED, fault, REFUSED, ANSWERED)]) == [
        "upstream farm does not answer: no connection to the server: connection refused",
        "upstream farm answers again",
    ]


def test_an_address_where_no_server_of_mcp_is_found_is_told(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = ResponseReceived(request=1, message=None, http=HttpReply(status=404))
    assert said(caplog, (FARM, nowhere)) == [], "so does a server that speaks another revision"
    assert said(caplog, (FARM, nowhere), method="initialize") == [
        "upstream farm is no server of MCP: HTTP 404"
    ]


@pytest.mark.parametrize("loop", LOOPS)
def test_prx15_whoever_runs_the_proxy_is_told_that_an_upstream_is_down(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    async def go(on: Any) -> None:
        async with (
            proxying(on, before(f"http://127.0.0.1:{port}/mcp")) as url,
            connecting(on, url) as client,
        ):
            await (await client.call_tool("render")).settle()

    run(loop, go)
    told = [one for one in caplog.messages if one.startswith("upstream farm does not answer")]
    assert told == ["upstream farm does not answer: no connection to the server: connection refused"]
    assert str(port) not in caplog.text
