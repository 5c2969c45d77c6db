"""A client of this project in a session of 2025-11-25, as a subject of conversations (LEG.10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked
from mcp_tasks_proto.legacy.requester import DualEraRequester
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    Prompt,
    RequesterLimits,
    RequesterSettings,
    ResponseReceived,
    WithdrawPrompt,
)
from mcp_tasks_proto.wire.jsonrpc import result_message

__all__ = ["ReceiverSubject"]

Output = dict[str, Any]
START: Final = 1_700_000_000_000
CALL: Final = "call"
GREETING: Final[dict[str, Any]] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}


@define(eq=False)
class ReceiverSubject:
    """Takes the steps of a conversation with a client on stdio, whose call its server has not answered."""

    setup: Mapping[str, Any]
    _engine: DualEraRequester = field(init=False)
    _now: int = field(init=False, default=START)
    _deadline: int | None = field(init=False, default=None)
    _ids: Iterator[int] = field(init=False, factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        setup = self.setup
        settings = RequesterSettings(
            name="vectors",
            version="1",
            endpoint="stdio",
            capabilities=setup["capabilities"],
            tasks=setup.get("tasks", True),
            listen=False,
            limits=RequesterLimits(**setup.get("limits", {})),
        )
        self._engine = DualEraRequester(settings=settings, http=False, era="legacy")
        self._tell(CallWanted(call=CALL, tool="render"))

    def step(self, at_ms: int, given: Mapping[str, Any]) -> list[Output]:
        """Let time pass, and tell of the fact."""
        outputs: list[Output] = []
        until = START + at_ms
        while self._deadline is not None and self._deadline <= until:
            self._now = max(self._now, self._deadline)
            outputs += self._tell(TimePassed())
        self._now = until
        match given["type"]:
            case "server_request":
                new_id = f"task-{next(self._ids)}-0123456789abcdefghijk"
                return outputs + self._tell(ServerAsked(message=given["message"], new_id=new_id))
            case "answer":
                return outputs + self._tell(AnswerGiven(CALL, given["key"], given["response"]))
        return outputs

    def _tell(self, fact: Any) -> list[Output]:
        outputs: list[Output] = []
        facts = [fact]
        while facts:
            step = self._engine.handle(facts.pop(0), now=self._now)
            self._deadline = step.deadline
            for effect in step.effects:
                match effect:
                    case Prompt():
                        outputs.append({"type": "prompt", "key": effect.key, "request": effect.request})
                    case WithdrawPrompt():
                        outputs.append({"type": "withdraw_prompt", "key": effect.key})
                    case SendLegacy(message=dict(message)):
                        if "method" not in message:
                            outputs.append({"type": "respond", "message": message})
                        facts += _heard(effect.request, message, effect.awaits_response)
        return outputs


def _heard(request: int, message: Mapping[str, Any], awaits_response: bool) -> list[Any]:
    """Return what comes back at once: the greeting, and that what is owed nothing has left."""
    if message.get("method") == "initialize":
        return [ResponseReceived(request=request, message=result_message(message["id"], GREETING))]
    return [] if awaits_response else [ResponseReceived(request=request, message=None)]
