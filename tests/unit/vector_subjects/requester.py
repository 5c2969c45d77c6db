"""A requester of this project as a subject of conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    Cancelled,
    CancelWanted,
    Completed,
    Expired,
    Failed,
    HttpReply,
    KeepReference,
    NotificationReceived,
    ObservationLost,
    PassOn,
    Prompt,
    RequesterEngine,
    RequesterLimits,
    RequesterSettings,
    RequestFailed,
    RequestWanted,
    ResponseReceived,
    ResumeWanted,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WaitAbandoned,
    WithdrawPrompt,
)
from mcp_tasks_proto.wire.jsonrpc import notification_message

__all__ = ["RequesterSubject"]

Output = dict[str, Any]
START: Final = 1_700_000_000_000


@define(eq=False)
class RequesterSubject:
    """Takes the steps of a conversation with a requester."""

    setup: Mapping[str, Any]
    _engine: RequesterEngine = field(init=False)
    _references: dict[Any, Any] = field(init=False, factory=dict)
    _now: int = field(init=False, default=START)
    _deadline: int | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        setup = self.setup
        settings = RequesterSettings(
            name="vectors",
            version="1",
            endpoint="https://example.com/mcp",
            capabilities=setup.get("capabilities", {}),
            tasks=setup.get("tasks", True),
            listen=setup.get("listen", False),
            mirror_arguments=setup.get("mirror_arguments", False),
            limits=RequesterLimits(**setup.get("limits", {})),
        )
        self._engine = RequesterEngine(settings=settings)
        self._deadline = None

    def step(self, at_ms: int, given: Mapping[str, Any]) -> list[Output]:
        """Let time pass, and tell of the fact."""
        outputs: list[Output] = []
        until = START + at_ms
        while self._deadline is not None and self._deadline <= until:
            self._now = max(self._now, self._deadline)
            outputs += self._tell(TimePassed())
        self._now = until
        match given["type"]:
            case "wait":
                return outputs
            case "restart":
                self._start()
                return outputs
        return outputs + self._tell(self._fact(given))

    def _tell(self, fact: Any) -> list[Output]:
        step = self._engine.handle(fact, now=self._now)
        self._deadline = step.deadline
        told = [self._told(effect) for effect in step.effects]
        return [one for one in told if one is not None]

    def _fact(self, given: Mapping[str, Any]) -> Any:
        deadline = given.get("deadline_ms")
        until = None if deadline is None else START + deadline
        match given["type"]:
            case "want_call":
                return CallWanted(
                    call=given["call"],
                    tool=given["tool"],
                    arguments=given.get("arguments", {}),
                    meta=given.get("meta", {}),
                    deadline_ms=until,
                )
            case "want_request":
                params = given.get("params", {})
                return RequestWanted(
                    call=given["call"], method=given["method"], params=params, deadline_ms=until
                )
            case "resume":
                reference = given.get("reference", self._references.get(given.get("of")))
                return ResumeWanted(call=given["call"], reference=reference, deadline_ms=until)
            case "cancel":
                return CancelWanted(given["call"], given.get("wait", False))
            case "abandon":
                return WaitAbandoned(given["call"])
            case "answer":
                return AnswerGiven(given["call"], given["key"], given["response"])
            case "notification":
                message = notification_message(given["method"], given["params"])
                return NotificationReceived(given["request"], message)
            case "broken":
                return RequestFailed(given["request"], "reset", given["sent"])
        http = None
        if "http_status" in given:
            http = HttpReply(status=given["http_status"], retry_after_ms=given.get("retry_after_ms"))
        return ResponseReceived(request=given["request"], message=given.get("message"), http=http)

    def _told(self, effect: Any) -> Output | None:
        match effect:
            case SendRequest():
                return {"type": "send_request", "request": effect.request, "message": effect.message}
            case StopRequest():
                return {"type": "stop_request", "request": effect.request}
            case Prompt():
                told = {"type": "prompt", "call": effect.call, "key": effect.key, "again": effect.again}
                return {**told, "request": effect.request}
            case WithdrawPrompt():
                return {"type": "withdraw_prompt", "call": effect.call, "key": effect.key}
            case PassOn():
                told = {"type": "pass_on", "call": effect.call, "method": effect.method}
                return {**told, "params": effect.params}
            case Settle():
                return {"type": "settle", "call": effect.call, **_outcome(effect.outcome)}
            case KeepReference():
                self._references[effect.call] = effect.reference
                return None
        assert isinstance(effect, ShowView)
        return None


def _outcome(outcome: Any) -> Output:
    match outcome:
        case Completed(result=result):
            return {"outcome": "completed", "result": result}
        case Failed():
            error = {"code": outcome.code, "message": outcome.message, "data": outcome.data}
            return {"outcome": "failed", "error": error, "fault": outcome.fault.value}
        case Cancelled():
            return {"outcome": "cancelled"}
        case Expired():
            return {"outcome": "expired"}
    assert isinstance(outcome, ObservationLost)
    return {"outcome": "observation_lost"}
