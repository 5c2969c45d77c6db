"""2025-11-25 on stdio, on both loops (LEG.2, LEG.8, STD.1)."""

from __future__ import annotations

import pytest
from mcp_tasks_adapters.toolkit import Limits

from tests.adapters.http_harness import LOOPS, call, passes
from tests.adapters.legacy_harness import initialize, message
from tests.adapters.test_stdio import Peer, serving

QUICK = Limits(shutdown_grace_ms=500)
"""Nothing here waits for the end of this."""


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def begin(peer: Peer) -> None:
    """Open the session."""
    result = peer.ask(initialize())["result"]
    assert result["protocolVersion"] == "2025-11-25"
    peer.send(message("notifications/initialized"))


def test_leg2_the_process_is_the_session(loop: str) -> None:
    with serving(loop, legacy="serve") as peer:
        assert peer.ask(message("ping", id=1))["error"]["code"] == -32602
        begin(peer)
        assert peer.ask(message("ping", id=2))["result"] == {}
        peer.send(message("tools/call", {"name": "grow", "arguments": {"name": "new"}}, id=3))
        news, answer = sorted((peer.receive(), peer.receive()), key=lambda one: "id" in one)
        assert news == message("notifications/tools/list_changed", {})
        assert answer["id"] == 3
        peer.end()
        assert peer.receive() is None


def test_leg8_a_task_asks_and_is_answered(loop: str) -> None:
    with serving(loop, legacy="serve") as peer:
        begin(peer)
        made = peer.ask(message("tools/call", {"name": "ask", "task": {}}, id=1))["result"]["task"]
        peer.send(message("tasks/result", {"taskId": made["taskId"]}, id=2))
        while (told := peer.receive()).get("method") != "elicitation/create":
            pass
        answer = {"action": "accept", "content": {"name": "Ada"}}
        peer.send({"jsonrpc": "2.0", "id": told["id"], "result": answer})
        while (told := peer.receive()).get("id") != 2:
            pass
        assert told["result"]["content"][0]["text"] == "Hello, Ada!"
        peer.end()


def test_can7_a_call_is_cancelled(loop: str) -> None:
    with serving(loop, legacy="serve") as peer:
        begin(peer)
        peer.send(message("tools/call", {"name": "wait"}, id=1))
        assert passes(peer.tools.started)
        peer.send(message("notifications/cancelled", {"requestId": 1}))
        assert passes(peer.tools.cancelled)
        assert peer.ask(message("ping", id=1))["result"] == {}
        peer.end()


def test_leg9_both_eras_on_one_process(loop: str) -> None:
    with serving(loop, legacy="serve") as peer:
        begin(peer)
        assert peer.ask(call("echo", text="modern"))["result"]["resultType"] == "complete"
        assert (
            "resultType"
            not in peer.ask(message("tools/call", {"name": "echo", "arguments": {"text": "legacy"}}, id=1))[
                "result"
            ]
        )
        peer.end()


def test_std1_what_waits_for_the_client_does_not_keep_the_process(loop: str) -> None:
    with serving(loop, legacy="serve", limits=QUICK) as peer:
        begin(peer)
        assert peer.ask(message("tools/call", {"name": "ask"}, id=1))["method"] == "elicitation/create"
        peer.end()
        assert peer.receive()["method"] == "notifications/cancelled"
        assert peer.receive()["error"]["data"] == {"reason": "shutting_down"}
        assert peer.receive() is None
