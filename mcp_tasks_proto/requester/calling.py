"""Calls under way: sent, answered, put right and sent again, become tasks, and settled, each of them once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError
from mcp_tasks_proto.requester.cache import ResultCache
from mcp_tasks_proto.requester.calls import Call, SentCall, SentToolList
from mcp_tasks_proto.requester.cancellations import Cancellations
from mcp_tasks_proto.requester.effects import Prompt, Settle, WithdrawPrompt
from mcp_tasks_proto.requester.listening import Listener
from mcp_tasks_proto.requester.outcomes import Completed, Failed, Fault, ObservationLost, Outcome, failure
from mcp_tasks_proto.requester.questions import Questions
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.requests import Requests, backoff
from mcp_tasks_proto.requester.rounds import CANCELLED_ANSWER, answerable, read_round
from mcp_tasks_proto.requester.tools import usable_tools
from mcp_tasks_proto.requester.watching import Watcher
from mcp_tasks_proto.vocabulary import INPUT_METHODS
from mcp_tasks_proto.wire.reading import read_view
from mcp_tasks_proto.wire.schema import ABSENT, ParamsError

__all__ = ["Calls"]


@define(eq=False, repr=False, kw_only=True)
class Calls:
    """The calls of one requester, from their request to their outcome."""

    requests: Requests
    listener: Listener
    cancellations: Cancellations
    cache: ResultCache
    questions: Questions = field(init=False)
    watcher: Watcher = field(init=False)
    """The tasks that calls have become."""
    by_key: dict[Hashable, Call] = field(init=False, factory=dict)
    """Those that have no outcome yet."""
    _waiting_for_tools: dict[Hashable, Call] = field(init=False, factory=dict)
    _listing: int | None = field(init=False, default=None)
    """The request for a page of tools that is in flight."""

    def __attrs_post_init__(self) -> None:
        self.questions = Questions(requests=self.requests, settle=self.settle)
        self.watcher = Watcher(
            requests=self.requests,
            listener=self.listener,
            questions=self.questions,
            cancellations=self.cancellations,
            settle=self.settle,
        )

    def open(self, call: Call, deadline_ms: int | None) -> bool:
        """Take a call in, if there is room for one more."""
        if call.key in self.by_key:
            raise LocalProtocolError("this call is under way already")
        if deadline_ms is not None and not isinstance(deadline_ms, int):
            raise LocalProtocolError("deadline_ms is an integer, Unix milliseconds, or None")
        if len(self.by_key) + len(self.cancellations) >= self.requests.settings.limits.calls:
            message = "too many calls are under way (RequesterLimits.calls)"
            self.requests.out.append(Settle(call.key, Failed(code=None, message=message, fault=Fault.CALLER)))
            return False
        self.by_key[call.key] = call
        if deadline_ms is not None:
            self.requests.timers.set(("deadline", call.key), deadline_ms)
        return True

    # -- sending -----------------------------------------------------------------------------------------

    def send(self, call: Call) -> None:
        """Send the request that the call is, with what its present round of input has brought."""
        if (
            self.requests.settings.mirror_arguments
            and call.tool
            and (fault := self.requests.tools.fault(call.tool))
        ):
            return self.fail(call, f"the tool's definition is wrong: {fault}", Fault.SERVER)
        params = dict(call.params)
        if call.round is not None and call.round.requests:
            params["inputResponses"] = dict(call.answers)
        if call.round is not None and call.round.state is not None:
            params["requestState"] = call.round.state
        try:
            self.requests.check(call.method, params)
        except LocalProtocolError as error:
            return self.fail(call, str(error), Fault.CALLER)
        call.request = self.requests.send(SentCall(call=call), call.method, params, meta=call.meta)
        return None

    # -- ends ----------------------------------------------------------------------------------------------

    def settle(self, call: Call, outcome: Outcome) -> None:
        """End a call: nothing of it is left, on this side or on the screen."""
        del self.by_key[call.key]
        self.requests.timers.clear(("deadline", call.key))
        self.requests.timers.clear(("again", call.key))
        self._leave_tools(call)
        if call.request is not None:
            self.requests.stop(call.request)
        for key in call.asked:
            self.requests.out.append(WithdrawPrompt(call.key, key))
        if call.watch is not None:
            self.watcher.end(call.watch, outcome)
        self.requests.out.append(Settle(call.key, outcome))

    def lose(self, call: Call, reason: str) -> None:
        """End a call without knowing how it ends at the server."""
        if call.watch is not None and call.watch.trouble is not None:
            reason = f"{reason}; the last poll failed: {call.watch.trouble}"
        self.settle(call, ObservationLost(reason=reason, view=call.view))

    def fail(self, call: Call, message: str, fault: Fault, http_status: int | None = None) -> None:
        """End a call that failed, by other than an error of the server's."""
        self.settle(call, Failed(code=None, message=message, fault=fault, http_status=http_status))

    # -- answers ---------------------------------------------------------------------------------------------

    def answered(self, call: Call, result: Mapping[str, Any]) -> None:
        """A result: final, a round of input, or a task (REQ.1)."""
        kind = result.get("resultType", "complete")
        if kind == "complete":
            self._completed(call, result)
        elif kind == "input_required" and call.method in INPUT_METHODS:
            self._asked_input(call, result)
        elif kind == "task" and call.method == "tools/call" and self.requests.settings.tasks:
            self._became_task(call, result)
        else:
            message = f"the server answered {call.method} with a result of a type that it may not be"
            self.fail(call, message, Fault.SERVER)

    def _completed(self, call: Call, result: Mapping[str, Any]) -> None:
        if call.method == "tools/list":
            self.requests.tools.add_page(result, first=call.params.get("cursor") is None)
            result = usable_tools(result)
        elif call.method == "server/discover":
            self.requests.adopt_version(result.get("supportedVersions"))
        if not call.rounds:
            self.cache.put(call.method, call.params, result, self.requests.now)
        self.settle(call, Completed(result))

    def _asked_input(self, call: Call, result: Mapping[str, Any]) -> None:
        try:
            if call.rounds >= self.requests.settings.limits.input_rounds:
                raise ValueError("it asks for input again and again (RequesterLimits.input_rounds)")
            call.round = read_round(result, self.requests.settings)
        except ValueError as error:
            return self.fail(call, f"the server's input_required result is wrong: {error}", Fault.SERVER)
        call.rounds += 1
        call.answers = {}
        for key, request in call.round.requests.items():
            if answerable(request, self.requests.settings.capabilities):
                self.requests.out.append(Prompt(call=call.key, key=key, request=request))
            else:
                call.answers[key] = CANCELLED_ANSWER
        if not call.asked:
            again_ms = self.requests.now + backoff(self.requests.settings, call.rounds)
            self.requests.timers.set(("again", call.key), again_ms)
        return None

    def _became_task(self, call: Call, result: Mapping[str, Any]) -> None:
        try:
            view = read_view(result)
        except ParamsError as error:
            return self.fail(call, f"the server's task handle is wrong: {error}", Fault.SERVER)
        if view.task_id in self.watcher:
            return self.fail(call, "the server gave the task of another call", Fault.SERVER)
        reference = TaskReference(
            endpoint=self.requests.settings.endpoint,
            task_id=view.task_id,
            tool=call.params["name"],
            capabilities=self.requests.declared,
            created_ms=self.requests.now,
            ttl_ms=None if view.ttl_ms is ABSENT else view.ttl_ms,
            poll_interval_ms=view.poll_interval_ms,
        )
        return self.watcher.begin(call, reference, view)

    def refused(self, call: Call, error: ErrorObject, http_status: int | None) -> None:
        """An error: something to put right and send again, once for each kind, or the end."""
        if error.code not in call.mended:
            if self.requests.adopt_offered(error) is not None:
                # Perhaps the very one that was refused: who names it all the same is asked again, once.
                call.mended.add(error.code)
                return self.send(call)
            if (
                error.code == ErrorCode.HEADER_MISMATCH
                and call.tool
                and self.requests.settings.mirror_arguments
            ):
                # The tool's definition may have changed since it was listed (HTTP.3).
                call.mended.add(error.code)
                return self.wait_for_tools(call)
        return self.settle(call, failure(error, http_status))

    # -- tools -----------------------------------------------------------------------------------------------

    def wait_for_tools(self, call: Call) -> None:
        """Learn which arguments are mirrored before the call is sent."""
        self._waiting_for_tools[call.key] = call
        if self._listing is None:
            self._listing = self.requests.send(SentToolList(first=True), "tools/list", {})

    def tools_listed(self, sent: SentToolList, result: Mapping[str, Any]) -> None:
        """Take in a page of tools; after the last one, send the calls that waited for it."""
        cursor = self.requests.tools.add_page(result, first=sent.first)
        if cursor is None:
            self.release_waiting()
        else:
            self._listing = self.requests.send(SentToolList(first=False), "tools/list", {"cursor": cursor})

    def release_waiting(self) -> None:
        """Send the calls that wait for the list of tools, be it that there is none."""
        waiting, self._waiting_for_tools, self._listing = self._waiting_for_tools, {}, None
        for call in waiting.values():
            self.send(call)

    def _leave_tools(self, call: Call) -> None:
        """A call ends; the list of tools is not read on for nobody."""
        self._waiting_for_tools.pop(call.key, None)
        if self._listing is not None and not self._waiting_for_tools:
            self.requests.stop(self._listing)
            self._listing = None
