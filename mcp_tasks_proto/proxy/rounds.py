"""Rounds of input before a result: the upstream's ``requestState``, sealed anew (INP.4, PRX.10).

What an upstream wants back is nobody's but its own: the caller gets a state of the proxy's, good for this
very call by this very caller. The hidden task of a collapsed call is named in it by its handle (PRX.17).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.errors import ErrorObject, invalid_params, limit_reached
from mcp_tasks_proto.proxy.callers import Exchange
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.input_gate import check_answers, is_shown
from mcp_tasks_proto.request_state import open_state, seal_state
from mcp_tasks_proto.vocabulary import INPUT_METHODS

__all__ = ["STALE_STATE", "Round", "Rounds"]

STALE_STATE = invalid_params("requestState is not one that this proxy gave for this request, or is too old")


@frozen(kw_only=True)
class Round:
    """What a caller brings back from an earlier round; of a first one, nothing."""

    answers: Mapping[str, Any] = field(factory=dict)
    upstream_state: str | None = None
    handle: str | None = None
    """The hidden task of a collapsed call."""


_FIRST: Final = Round()


@define(eq=False, repr=False)
class Rounds:
    """Asks callers for input, and reads what they bring back."""

    desk: Desk

    def open(self, exchange: Exchange) -> Round | ErrorObject:
        """Read ``requestState`` and ``inputResponses``: answers to what was asked, of kinds that this request
        declares. Without a state nothing says what was asked: they are only known to be answers, and go up as
        they are, for an upstream may know them by their keys alone (core, "MRTR")."""
        params = exchange.request.params
        first = "inputResponses" not in params and "requestState" not in params
        if first or exchange.request.method not in INPUT_METHODS:
            return _FIRST
        responses = params.get("inputResponses", {})
        if not isinstance(responses, dict):
            return invalid_params("inputResponses must be an object")
        if "requestState" not in params:
            return self._unasked(responses)
        shared = self.desk.shared
        sealed = open_state(
            shared.settings.sealer,
            params["requestState"],
            principal=exchange.principal,
            method=exchange.request.method,
            params=params,
            now=shared.now,
        )
        if sealed is None:
            return STALE_STATE
        answers = {name: responses[name] for name in sealed.asked if name in responses}
        if error := check_answers(sealed.asked, answers, exchange.capabilities):
            return error
        return Round(answers=answers, upstream_state=sealed.state["round"], handle=sealed.state["task"])

    def _unasked(self, responses: Mapping[str, Any]) -> Round | ErrorObject:
        if len(responses) > self.desk.shared.limits.input_keys:
            return limit_reached("input_keys")
        mistyped = next((name for name, one in responses.items() if not isinstance(one, dict)), None)
        problem = f"inputResponses[{mistyped!r}] must be an object"
        return Round(answers=responses) if mistyped is None else invalid_params(problem)

    def relay(self, exchange: Exchange, declared: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Pass on what an upstream asks for, if it may."""
        requests, state = result.get("inputRequests", {}), result.get("requestState")
        well_formed = isinstance(requests, Mapping) and (state is None or isinstance(state, str))
        if exchange.request.method not in INPUT_METHODS or not well_formed or not (requests or state):
            return self.desk.callers.fail(exchange, trouble(Trouble.INVALID))
        if requests and not is_shown(requests, declared, self.desk.shared.limits.input_keys):
            return self.desk.callers.fail(exchange, trouble(Trouble.UNDECLARED_INPUT))
        shown = self.desk.rewriter().requests(requests)
        return self.ask(exchange, shown, upstream_state=state)

    def ask(
        self,
        exchange: Exchange,
        requests: Mapping[str, Mapping[str, Any]],
        *,
        upstream_state: str | None = None,
        handle: str | None = None,
    ) -> None:
        """End a request with a round of input, be it an empty one that only asks to come again."""
        shared = self.desk.shared
        token = seal_state(
            shared.settings.sealer,
            principal=exchange.principal,
            method=exchange.request.method,
            params=exchange.request.params,
            asked=requests,
            state={"round": upstream_state, "task": handle},
            expires_at_ms=shared.now + shared.limits.request_state_ms,
        )
        if len(token) > shared.limits.request_state_chars:
            return self.desk.callers.fail(exchange, limit_reached("request_state_chars"))
        body: dict[str, Any] = {"resultType": "input_required", "requestState": token}
        if requests:
            body["inputRequests"] = dict(requests)
        return self.desk.callers.reply(exchange, body)
